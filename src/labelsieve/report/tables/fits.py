"""Tables of the fits: time, memory, convergence, stability, and what failed or warned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labelsieve.report.analysis.cells import STABILITY
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.tables.table import Column, Entry, Table, name_columns, text_columns


def cost_tables(analysis: Analysis) -> list[Table]:
    """Seconds, memory, iterations and convergence: data sets by methods."""
    costs = {(cost.dataset, cost.method): cost for cost in analysis.facts.costs}
    wanted = (
        ("seconds", "Seconds a fit", ".3g", "Mean over all fits."),
        ("peak_mib", "Peak memory of a fit (MiB)", ".3g", "The largest of all fits."),
        ("n_iter", "Iterations", ".4g", "Mean over all fits of the methods that iterate."),
        ("converged", "Share of the fits that converged", ".2f", ""),
    )
    tables = []
    for field, title, form, note in wanted:
        values = {key: value for key, cost in costs.items() if (value := getattr(cost, field)) is not None}
        table = _grid(field, title, analysis, values, form, note)
        tables += [table] if table is not None else []
    return tables


def stability_tables(analysis: Analysis) -> list[Table]:
    """Indices of stability: data sets by methods, with the means below."""
    notes = {
        "kuncheva": "1 for equal sets of features, about 0 for random ones; mean over the sizes.",
        "nogueira": "1 for equal sets of features, about 0 for random ones; mean over the sizes.",
        "jaccard": "Mean share of common features, not corrected for chance; mean over the sizes.",
    }
    tables = []
    for index in STABILITY:
        values = {(found.dataset, found.method): found.index[index] for found in analysis.facts.stability}
        title = f"Stability of the selected features: {index.capitalize()}"
        table = _grid(f"stability_{index}", title, analysis, values, ".2f", notes[index], average=True)
        tables += [table] if table is not None else []
    return tables


def gap_table(analysis: Analysis) -> Table:
    """What is not complete, by data set, noise and method."""
    columns = (
        *text_columns("data set", "noise", "method"),
        *(Column(head) for head in ("done", "failed", "planned")),
    )
    rows = tuple(
        (*map(Entry, gap.place), Entry(gap.n_done), Entry(gap.n_failed), Entry(gap.n_planned))
        for gap in analysis.facts.coverage.gaps
    )
    return Table("missing", "What is not complete", columns, rows)


def warning_table(analysis: Analysis) -> Table:
    """The warnings, most frequent first."""
    rows = tuple((Entry(note.method), Entry(note.text), Entry(note.n_cells)) for note in analysis.facts.notes)
    return Table("warnings", "Warnings met", (*text_columns("method", "warning"), Column("cells")), rows)


def _grid(
    stem: str,
    title: str,
    analysis: Analysis,
    values: Mapping[tuple[str, str], float],
    form: str,
    note: str,
    *,
    average: bool = False,
) -> Table | None:
    """Data sets by those methods that have any value; None if there are no values."""
    names = [name for name in analysis.shown if any(method == name for _, method in values)]
    datasets = [name for name in analysis.summary.datasets if any(dataset == name for dataset, _ in values)]
    if not names:
        return None
    rows = tuple(
        (Entry(dataset), *(Entry(values.get((dataset, name)), form=form) for name in names))
        for dataset in datasets
    )
    foot: tuple[tuple[Entry, ...], ...] = ()
    if average:
        whole = {name: [values.get((dataset, name), np.nan) for dataset in datasets] for name in names}
        foot = ((Entry("mean"), *(Entry(float(np.mean(whole[name])), form=form) for name in names)),)
    return Table(stem, title, name_columns("data set", names), rows, foot, note)
