"""Tables of our numbers beside those of the PML-FSMIR paper."""

from __future__ import annotations

import numpy as np

from labelsieve.report.analysis.paper import PaperCheck
from labelsieve.report.tables.table import Column, Entry, Table, name_columns
from labelsieve.report.wording import metric_title, metric_words


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
                f"{metric_title(table.metric)}: ours / the paper's",
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
    names = (Column(head, numeric=False) for head in ("metric", "data set", "method"))
    return Table(
        "paper_cells", "Ours and the paper's, all cells", (*names, *(Column(head) for head in heads)), rows
    )
