"""Tables of methods compared with one another, with the references and with the paper."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from labelsieve._text import count
from labelsieve.metrics import METRICS
from labelsieve.report.analysis import Analysis
from labelsieve.report.comparison import ALPHA, Comparison
from labelsieve.report.paper import FLAGSHIP, PaperCheck
from labelsieve.report.tables import FOLDS, SIZES, Table, mark_best
from labelsieve.report.wording import metric_title, metric_words

_OVERALL = "all metrics"


def metric_tables(comparison: Comparison) -> list[Table]:
    """One table per metric: data sets by methods and references, with the average ranks below."""
    return [_metric_table(comparison, metric) for metric in comparison.metrics]


def _metric_table(comparison: Comparison, metric: str) -> Table:
    summary = comparison.summary
    means = comparison.means[metric]
    direction = summary.direction(metric)
    marks = mark_best(summary.cost(metric, means), summary.references)
    deviations = {
        ending: comparison.table(metric, name) for ending, name in ((FOLDS, "fold_std"), (SIZES, "std"))
    }
    parts = {}
    for name in means:
        parts[name] = means[name]
        for ending, table in deviations.items():
            if table[name].notna().any():
                parts[name + ending] = table[name]
    frame = pd.DataFrame(parts)
    if comparison.ranks:
        average = comparison.average_ranks[metric].rename("average rank").to_frame().T
        frame = pd.concat([frame, average.reindex(columns=frame.columns)])
        marks = pd.concat([marks, mark_best(average).reindex(columns=marks.columns, fill_value="")])
    spreads = (
        f" ± standard deviation {of}" if deviations[ending].notna().any(axis=None) else ""
        for ending, of in (
            (FOLDS, "over the folds at one size (root mean square over the sizes)"),
            (SIZES, "over the sizes of the means over folds"),
        )
    )
    dagger = " † is a reference ahead of every method." if summary.references else ""
    note, size_note = (
        f"Mean over folds and sizes{spread}; {direction} is better. Best method bold, second underlined.{dagger}"
        for spread in spreads
    )
    return Table(
        # A user-defined metric could have the name of another table.
        metric if metric in METRICS else f"metric_{metric}",
        metric_title(metric, direction),
        frame.rename_axis("data set"),
        note=note,
        size_note=size_note,
        groups={**dict.fromkeys(summary.compared, "methods"), **dict.fromkeys(summary.references, "references")},
        marks=marks,
        n_foot=1 if comparison.ranks else 0,
    )  # fmt: skip


def rank_table(comparison: Comparison) -> Table:
    """Average ranks by metric and overall, best first; references are ranked in the last column only."""
    frame = comparison.average_ranks.rename(columns=metric_words)
    frame[_OVERALL] = pd.Series(comparison.overall)
    groups = dict.fromkeys(frame.columns, "average rank among the methods")
    among_all = pd.Series(comparison.among_all, dtype=float).sort_values(kind="stable")
    references = [name for name in among_all.index if name not in comparison.overall]
    frame = frame.reindex([*comparison.overall, *references])
    frame["with the references ranked too"] = among_all
    return Table(
        "average_ranks",
        "Average ranks",
        frame.rename_axis("method"),
        form=".2f",
        note="1 is best.",
        groups=groups,
        marks=mark_best(frame.T).T,
    )


def difference_table(comparison: Comparison) -> Table:
    """Tests by metric of whether the methods differ at all: Friedman's, and Iman and Davenport's."""
    names = ["Friedman χ²", "p (Friedman)", "Iman–Davenport F", "p (Iman–Davenport)"]
    frame = comparison.tests.set_axis(names, axis=1).rename(index=metric_words).rename_axis("metric")
    pairs = [np.triu(table < ALPHA, k=1).sum() for table in comparison.pairs.values()]
    n_methods = len(comparison.ranked_methods)
    head = "pairs that differ (Nemenyi)"
    frame[head] = [f"{n_different} of {n_methods * (n_methods - 1) // 2}" for n_different in pairs]
    return Table(
        "tests",
        "Do the methods differ at all?",
        frame,
        form=dict(zip(names, (".2f", "p") * 2, strict=True)),
        keys=pd.DataFrame({head: pairs}),
    )


def pair_tables(comparison: Comparison) -> list[Table]:
    """P-values of all pairs of methods (Nemenyi), by metric."""
    tables = []
    for metric, p_values in comparison.pairs.items():
        frame = p_values.mask(np.eye(len(p_values), dtype=bool)).rename_axis("method")
        marks = (frame < ALPHA).map({True: "best", False: ""}.get)
        title = f"Nemenyi p-values: {metric_words(metric)}"
        note = f"Adjusted for all pairs; bold is below {ALPHA}."
        tables.append(Table(f"nemenyi_{metric}", title, frame, form="p", note=note, marks=marks))
    return tables


def duel_tables(comparison: Comparison) -> list[Table]:
    """Wins, ties and losses of the control against each method, then the p-values; empty without a test."""
    duels = comparison.duels
    if duels.empty:
        return []
    counts = ["wins", "ties", "losses"]
    total = (
        duels.groupby("method", sort=False)[counts].sum().reset_index().assign(metric=_OVERALL, adjusted=1.0)
    )
    every = pd.concat([duels, total])
    every["words"] = every[counts].astype(str).agg("/".join, axis=1)
    every["lead"] = (every["wins"] - every["losses"]).astype(float)
    every["mark"] = np.where(every["adjusted"] < ALPHA, "best", "")
    order = {"index": duels["method"].unique(), "columns": [*duels["metric"].unique(), _OVERALL]}
    words, keys, marks = (
        every.pivot(index="method", columns="metric", values=value)
        .reindex(**order)
        .rename(columns=metric_words)
        for value in ("words", "lead", "mark")
    )
    control = comparison.control
    note = (
        f"Data sets where {control} is better/equal/worse; bold where Wilcoxon's test, "
        f"adjusted by Holm for the number of methods, is below {ALPHA}.{_least_p_value(comparison)}"
    )
    frame = words.rename_axis(index="against", columns=None)
    title = f"Win/tie/loss of {control}"
    p_names = {"p_value": "p (Wilcoxon)", "adjusted": "p (Holm)"}
    single = duels.assign(metric=duels["metric"].map(metric_words)).rename(
        columns={"method": "against", **p_names}
    )
    return [
        Table("win_tie_loss", title, frame, note=note, marks=marks, keys=keys),
        Table("wilcoxon", f"Wilcoxon's tests of {control}", single.set_index("metric"), form="p"),
    ]


def _least_p_value(comparison: Comparison) -> str:
    """Say if there are too few data sets for any difference to be significant."""
    n_datasets, n_methods = len(comparison.ranked_datasets), len(comparison.ranked_methods)
    # Of the 2^n patterns of signs, the two with all signs equal are the least likely.
    least = 2 * 0.5**n_datasets * (n_methods - 1)
    if least < ALPHA:
        return ""
    few = f"{count(n_datasets, 'data set')} and {count(n_methods, 'method')}"
    return f" With {few} it is never below {min(least, 1):.3f}: nothing can be bold."


def reference_tables(analysis: Analysis) -> list[Table]:
    """Comparisons in which methods beat the references: over all metrics, then one table per metric."""
    found = analysis.challenges
    if found.empty:
        return []
    tables = []
    for metric in (None, *analysis.facts.metrics):
        part = found if metric is None else found[found["metric"] == metric]
        pairs = part.groupby(["method", "reference"], sort=False)[["wins", "compared"]].sum().reset_index()
        pairs["words"] = pairs["wins"].astype(str) + " of " + pairs["compared"].astype(str)
        pairs["share"] = pairs["wins"] / pairs["compared"].replace(0, np.nan)
        pairs["mark"] = np.where(2 * pairs["wins"] > pairs["compared"], "best", "")
        order = {"index": list(analysis.summary.compared), "columns": list(found["reference"].unique())}
        words, keys, marks = (
            pairs.pivot(index="method", columns="reference", values=value).reindex(**order)
            for value in ("words", "share", "mark")
        )
        scope = "over all metrics and data sets" if metric is None else f"{metric_words(metric)}, data sets"
        tables.append(
            Table(
                "references" if metric is None else f"references_{metric}",
                f"Comparisons in which the method beats the reference: {scope}",
                words.rename_axis(index="method", columns=None),
                note="Bold: better in more than half.",
                marks=marks.astype(object).fillna(""),
                keys=keys,
            )
        )
    return tables


def condition_tables(analysis: Analysis) -> list[Table]:
    """Average ranks under each noise and classifier, without and with references; empty for one condition."""
    note = "Over all metrics and the data sets complete there; 1 is best."
    title = "Average ranks under other conditions"
    others = {name: other for name, other in analysis.others.items() if other.ranks}
    if not others:
        return []
    conditions = {"as above": analysis.main, **others}
    methods = pd.DataFrame(
        {name: pd.Series(other.overall, dtype=float) for name, other in conditions.items()}
    )
    methods = methods.reindex(list(analysis.summary.compared)).T.rename_axis("condition")
    ranks = analysis.main.among_all
    everyone = pd.DataFrame(
        {name: pd.Series(other.among_all, dtype=float) for name, other in conditions.items()}
    )
    everyone = everyone.reindex(sorted(ranks, key=ranks.__getitem__)).rename_axis("method")
    return [
        Table("conditions", title, methods, form=".2f", note=note, marks=mark_best(methods)),
        Table(
            "conditions_with_references",
            f"{title}, with the references ranked too",
            everyone,
            form=".2f",
            note=note,
            marks=mark_best(everyone.T).T,
        ),
    ]


def agreement_tables(checks: dict[str, PaperCheck]) -> list[Table]:
    """Agreement with the paper's numbers under every noise and classifier, then the same by metric."""
    place = f"label frequencies alone, every label predicted, in {FLAGSHIP}'s place"
    # Heading -> group above it and format.
    columns = {
        "cells": ("", ""),
        "mean difference": ("all methods", ".3f"),
        "correlation": ("all methods", ".2f"),
        "Spearman": ("all methods", ".2f"),
        f"difference of {FLAGSHIP}": (FLAGSHIP, ".3f"),
        f"rank of {FLAGSHIP}": (FLAGSHIP, ".2f"),
        "rank in the paper": (FLAGSHIP, ".2f"),
        "difference of frequencies": (place, ".3f"),
        "rank among ours": (place, ".2f"),
        "rank among the printed": (place, ".2f"),
    }
    groups = {name: group for name, (group, _) in columns.items() if group}
    form = {name: form for name, (_, form) in columns.items()}
    note = (
        "Differences are means of absolute values, ours minus the printed. Spearman's correlation is of the order of "
        "the methods, mean over data sets and metrics. Ranks are averages over data sets and metrics among the methods "
        f"that the paper compares; 1 is best. The last three columns put label frequencies with every label "
        f"predicted into {FLAGSHIP}'s place: how far they are from what is printed for it, and which rank they have."
    )
    title = "How well the paper's numbers are met"
    index = pd.Index(list(checks), name="judged by")
    overall = pd.DataFrame(
        [_agreement(check) for check in checks.values()], index=index, columns=list(columns)
    )
    named = [(name, check, metric) for name, check in checks.items() for metric in check.metrics]
    rows = [(metric_words(metric), *_agreement(check.only(metric))) for _, check, metric in named]
    index = pd.Index([name for name, _, _ in named], name="judged by")
    by_metric = pd.DataFrame(rows, index=index, columns=["metric", *columns])
    return [
        Table("paper_agreement", title, overall.astype(_floats(overall)), form, note, groups=groups),
        Table(
            "paper_agreement_by_metric",
            f"{title}, by metric",
            by_metric.astype(_floats(by_metric)),
            form,
            "As above, each metric alone.",
            groups=groups,
        ),
    ]


def _floats(frame: pd.DataFrame) -> dict[str, type]:
    """Columns of ranks and differences: without any, pandas would not take them for numbers."""
    return dict.fromkeys(frame.columns.difference(["cells", "metric"]), float)


def _agreement(check: PaperCheck) -> tuple[object, ...]:
    def mean(values: Iterable[float]) -> float | None:
        known = np.fromiter(values, float)
        return float(known.mean()) if len(known) else None

    return (
        len(check.differences),
        mean(np.abs(check.differences)),
        check.correlation,
        mean(check.spearman),
        mean(np.abs(check.flagship_differences())),
        check.flagship_rank(),
        check.flagship_rank("theirs"),
        mean(np.abs(check.flagship_differences(by_frequencies=True))),
        check.flagship_rank(by_frequencies=True),
        check.flagship_rank("theirs", by_frequencies=True),
    )


def paper_tables(check: PaperCheck) -> list[Table]:
    """Our means and the paper's by metric with the correlations of the orders, then all cells in full."""
    tables = []
    for metric in check.metrics:
        ours, theirs = check.table(metric, "ours"), check.table(metric, "theirs")
        words = ours.map("{:.2f} / ".format) + theirs.map("{:.2f}".format)
        orders = check.orders.loc[metric].rename(columns=str.capitalize)
        frame = words.where(theirs.notna(), None).join(orders)
        tables.append(
            Table(
                f"paper_{metric}",
                f"{metric_title(metric, METRICS[metric].direction)}: ours / the paper's",
                frame.rename_axis(index="data set", columns=None),
                form=".2f",
                note="Sorts by the difference.",
                groups=dict.fromkeys(orders.columns, "order of the methods"),
                keys=ours - theirs,
            )
        )
    cells = check.cells.assign(
        metric=check.cells["metric"].map(metric_words), difference=check.cells["ours"] - check.cells["theirs"]
    )
    cells = cells.rename(columns={"dataset": "data set", "theirs": "paper"}).set_index("metric")
    form = {"paper": ".2f", "difference": "+.3f"}
    return [*tables, Table("paper_cells", "Ours and the paper's, all cells", cells, form)]
