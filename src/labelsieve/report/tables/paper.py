"""Tables of our numbers beside the paper's."""

from __future__ import annotations

import numpy as np

from labelsieve.report.analysis.paper import FLAGSHIP, PaperCheck
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.tables.table import Column, Entry, Table, name_columns, text_columns
from labelsieve.report.wording import metric_title, metric_words

_RANK = ".2f"


def agreement_tables(analysis: Analysis) -> list[Table]:
    """How well the paper's numbers are met under every noise and judge, then the same by metric."""
    if analysis.paper is None:
        return []
    checks = {analysis.main.classifier: analysis.paper, **analysis.other_papers}
    place = f"label frequencies alone, every label predicted, in {FLAGSHIP}'s place"
    columns = (
        Column("cells"),
        Column("mean difference", "all methods"),
        Column("correlation", "all methods"),
        Column("Spearman", "all methods"),
        Column(f"difference of {FLAGSHIP}", FLAGSHIP),
        Column(f"rank of {FLAGSHIP}", FLAGSHIP),
        Column("rank in the paper", FLAGSHIP),
        Column("difference of frequencies", place),
        Column("rank among ours", place),
        Column("rank among the printed", place),
    )
    note = (
        "Differences are means of absolute values, ours minus the printed. Spearman's correlation is of the order of "
        "the methods, mean over data sets and metrics. Ranks are averages over data sets and metrics among the methods "
        f"that the paper compares; 1 is best. The last three columns put label frequencies with every label "
        f"predicted into {FLAGSHIP}'s place: how far they are from what is printed for it, and which rank they have."
    )
    overall = Table(
        "paper_agreement",
        "How well the paper's numbers are met",
        (*text_columns("judged by"), *columns),
        tuple((Entry(name), *_agreement(check)) for name, check in checks.items()),
        note=note,
    )
    by_metric = Table(
        "paper_agreement_by_metric",
        "How well the paper's numbers are met, by metric",
        (*text_columns("judged by", "metric"), *columns),
        tuple(
            (Entry(name), Entry(metric_words(table.metric)), *_agreement(PaperCheck((table,))))
            for name, check in checks.items()
            for table in check.tables
        ),
        note="As above, each metric alone.",
    )
    return [overall, by_metric]


def _agreement(check: PaperCheck) -> tuple[Entry, ...]:
    return (
        Entry(len(check.differences)),
        Entry(_mean(np.abs(check.differences))),
        Entry(check.correlation, form=".2f"),
        Entry(_mean(check.spearman), form=".2f"),
        Entry(_mean(np.abs(check.flagship_differences()))),
        Entry(check.flagship_rank(), form=_RANK),
        Entry(check.flagship_rank("theirs"), form=_RANK),
        Entry(_mean(np.abs(check.flagship_differences(by_frequencies=True)))),
        Entry(check.flagship_rank(by_frequencies=True), form=_RANK),
        Entry(check.flagship_rank("theirs", by_frequencies=True), form=_RANK),
    )


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def paper_tables(check: PaperCheck) -> list[Table]:
    """Ours and the paper's means by metric, then the correlations of the orders, then all cells in full."""
    tables = []
    for table in check.tables:
        rows = []
        for row, dataset in enumerate(table.datasets):
            entries = [
                Entry(None)
                if np.isnan(theirs)
                else Entry(float(ours - theirs), words=f"{ours:.2f} / {theirs:.2f}")
                for ours, theirs in zip(table.ours[row], table.theirs[row], strict=True)
            ]
            correlation = (Entry(float(found[row]), form=".2f") for found in (table.spearman, table.kendall))
            rows.append((Entry(dataset), *entries, *correlation))
        tables.append(
            Table(
                f"paper_{table.metric}",
                f"{metric_title(table.metric, table.direction)}: ours / the paper's",
                (
                    *name_columns("data set", table.methods),
                    Column("Spearman", "order of the methods"),
                    Column("Kendall", "order of the methods"),
                ),
                tuple(rows),
                note="Sorts by the difference.",
            )
        )
    return [*tables, _paper_cells(check)]


def _paper_cells(check: PaperCheck) -> Table:
    heads = ("ours", "paper", "difference")
    rows = tuple(
        (
            Entry(metric_words(table.metric)),
            Entry(dataset),
            Entry(method),
            Entry(float(ours), form=".3f"),
            Entry(float(theirs), form=".2f"),
            Entry(float(ours - theirs), form="+.3f"),
        )
        for table in check.tables
        for row, dataset in enumerate(table.datasets)
        for method, ours, theirs in zip(table.methods, table.ours[row], table.theirs[row], strict=True)
        if np.isfinite(theirs)
    )
    columns = (*text_columns("metric", "data set", "method"), *map(Column, heads))
    return Table("paper_cells", "Ours and the paper's, all cells", columns, rows)
