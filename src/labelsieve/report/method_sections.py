"""Sections that compare the methods with each other, the references and the paper."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from labelsieve._text import count
from labelsieve.metrics import METRICS
from labelsieve.report.analysis import Analysis
from labelsieve.report.comparison import ALPHA, Comparison
from labelsieve.report.paper import CITATION, FLAGSHIP, agreement, correlate_orders
from labelsieve.report.summary import arrange
from labelsieve.report.tables import (
    FOLDS,
    SIZES,
    Section,
    Table,
    cross,
    listed,
    mark_best,
    metric_title,
    metric_words,
)

_OVERALL = "all metrics"


def ranks(analysis: Analysis) -> Iterator[Section]:
    """Show average ranks by metric and overall, best first. References are only in the last column."""
    main = analysis.main
    if len(main.ranked_methods) < 2:
        return
    frame = main.average_ranks.rename(columns=metric_words)
    frame[_OVERALL] = pd.Series(main.overall)
    groups = dict.fromkeys(frame.columns, "average rank among the methods")
    among_all = pd.Series(main.among_all, dtype=float).sort_values(kind="stable")
    frame = frame.reindex([*main.overall, *(name for name in among_all.index if name not in main.overall)])
    frame["with references"] = among_all
    table = Table(
        "average_ranks",
        "Average ranks",
        frame.rename_axis("method"),
        form=".2f",
        groups=groups,
        marks=mark_best(frame.T).T,
    )
    scope = f"{count(len(main.ranked_datasets), 'dataset')} ({listed(main.ranked_datasets)})"
    text = f"Rank of each method, averaged over {scope}. 1 is best."
    yield Section("ranks", "Average ranks", (text,), (table, *_condition_tables(analysis)))


def _condition_tables(analysis: Analysis) -> list[Table]:
    """Make tables of average ranks by noise and classifier, without and with references."""
    others = {name: other for name, other in analysis.others.items() if other.ranks}
    if not others:
        return []
    conditions = {"as above": analysis.main, **others}
    methods, everyone = (
        pd.DataFrame({name: pd.Series(getattr(other, ranks)) for name, other in conditions.items()})
        for ranks in ("overall", "among_all")
    )
    methods = methods.reindex(list(analysis.summary.compared)).T.rename_axis("condition")
    ranks = analysis.main.among_all
    everyone = everyone.reindex(sorted(ranks, key=ranks.__getitem__)).rename_axis("method")
    title = "Average ranks under other conditions"
    longer = f"{title}, with references"
    note = "Over all metrics and complete datasets. 1 is best."
    return [
        Table("conditions", title, methods, ".2f", note, marks=mark_best(methods)),
        Table("conditions_with_references", longer, everyone, ".2f", note, marks=mark_best(everyone.T).T),
    ]


def curves(analysis: Analysis) -> Iterator[Section]:
    """Show charts of metrics by number of features, and all values in a file."""
    main, summary = analysis.main, analysis.summary
    means = summary.select(main.classifier, main.noise, summary.means)
    means = arrange(means, dataset=main.noise, metric=main.metrics, method=summary.shown)
    if means.groupby(["dataset", "method", "metric"])["size"].count().gt(1).any():
        heads = {"n_features": "features", "mean": "value"}
        frame = means[["dataset", "method", "metric", "size", "n_features", "mean"]].rename(columns=heads)
        text = (
            "Lines are means over folds, seeds and draws. Bands show one standard deviation over folds. Point at a "
            "line or use the arrow keys to see values. Click a name to show or hide its line."
        )
        file = Table("curves", "All metrics at all sizes", frame.set_index("dataset"))
        yield Section("curves", "Metrics by number of features", (text,), files=(file,))


def metrics(analysis: Analysis) -> Iterator[Section]:
    """Show a table per metric, with average ranks in the footer."""
    main = analysis.main
    if analysis.summary.shown and main.metrics:
        conditions = ", ".join(dict.fromkeys(main.noise.values()))
        text = f"Label noise: {conditions}; classifier: {main.classifier}."
        yield Section(
            "metrics", "Metrics", (text,), tuple(_metric_table(main, name) for name in main.metrics)
        )


def _metric_table(comparison: Comparison, metric: str) -> Table:
    summary, means = comparison.summary, comparison.means[metric]
    direction = summary.direction(metric)
    marks = mark_best(summary.cost(metric, means), summary.references)
    parts = {"": means, FOLDS: comparison.table(metric, "fold_std"), SIZES: comparison.table(metric, "std")}
    frame = pd.DataFrame(
        {
            name + ending: table[name]
            for name in means
            for ending, table in parts.items()
            if not ending or table[name].notna().any()
        }
    )
    if comparison.ranks:
        average = comparison.average_ranks[metric].rename("average rank").to_frame().T
        frame = pd.concat([frame, average.reindex(columns=frame.columns)])
        marks = pd.concat([marks, mark_best(average).reindex(columns=marks.columns, fill_value="")])
    dagger = " †: reference better than all methods." if summary.references else ""
    spreads = {
        FOLDS: " ± standard deviation over folds (root mean square over sizes)",
        SIZES: " ± standard deviation over sizes",
    }
    note, size_note = (
        f"Mean over folds and sizes{words if parts[ending].notna().any(axis=None) else ''}. "
        f"{direction.capitalize()} is better. Bold: best method. Underlined: second best.{dagger}"
        for ending, words in spreads.items()
    )
    groups = dict.fromkeys(summary.compared, "methods") | dict.fromkeys(summary.references, "references")
    return Table(
        # A user-defined metric may have the name of another table.
        metric if metric in METRICS else f"metric_{metric}",
        summary.title(metric),
        frame.rename_axis("dataset"),
        note=note,
        size_note=size_note,
        groups=groups,
        marks=marks,
        n_foot=1 if comparison.ranks else 0,
    )


def references(analysis: Analysis) -> Iterator[Section]:
    """Show how often methods beat the references, overall and by metric."""
    found = analysis.main.challenges
    if found.empty:
        return
    tables = []
    for metric in (None, *analysis.main.metrics):
        part = found if metric is None else found[found["metric"] == metric]
        pairs = part.groupby(["method", "reference"], sort=False)[["wins", "compared"]].sum().reset_index()
        pairs["words"] = pairs["wins"].astype(str) + " of " + pairs["compared"].astype(str)
        pairs["mark"] = np.where(2 * pairs["wins"] > pairs["compared"], "best", "")
        order = analysis.summary.compared, found["reference"].unique()
        words, marks = cross(pairs, "method", "reference", order)
        stem = "references" if metric is None else f"references_{metric}"
        scope = "all metrics" if metric is None else metric_words(metric)
        title = f"Comparisons won against references: {scope}"
        tables.append(Table(stem, title, words, note="Bold: better in more than half.", marks=marks))
    text = (
        "A useful method should beat simple references, such as filters, random rankings, all features or no features. "
        "A comparison is one metric on one dataset, averaged over sizes."
    )
    overall, *single = tables
    yield Section("references", "Comparison with references", (text,), (overall,), tuple(single))


def statistics(analysis: Analysis) -> Iterator[Section]:
    """Show tests of all methods, of all pairs, and of the control against each method."""
    main = analysis.main
    if main.no_tests or main.nemenyi_cd is None:
        if analysis.summary.compared:
            yield Section("statistics", "Statistical tests", (main.no_tests,))
        return
    scope = f"{count(len(main.ranked_datasets), 'dataset')} and {count(len(main.ranked_methods), 'method')}"
    texts = [
        f"Tests compare {scope} at the {ALPHA:.0%} level, with datasets as independent samples. Two average ranks are "
        f"significantly different if they differ by at least {main.nemenyi_cd:.2f} (Nemenyi, all pairs)."
    ]
    critical = main.bonferroni_dunn_cd
    if critical is None:
        texts.append(f"There are no tests of the control, {main.control}, because it is not ranked.")
    else:
        texts.append(
            f"A method is significantly different from {main.control} if their average ranks differ by at least "
            f"{critical:.2f} (Bonferroni–Dunn)."
        )
    duels = _duel_tables(main)
    tables = (_difference_table(main), *duels[:1])
    yield Section("statistics", "Statistical tests", tuple(texts), tables, (*_pair_tables(main), *duels[1:]))


def _difference_table(comparison: Comparison) -> Table:
    names = ["Friedman χ²", "p (Friedman)", "Iman–Davenport F", "p (Iman–Davenport)"]
    frame = comparison.tests.set_axis(names, axis=1).rename(index=metric_words).rename_axis("metric")
    n_methods = len(comparison.ranked_methods)
    frame["pairs that differ (Nemenyi)"] = [
        f"{np.triu(table < ALPHA, k=1).sum()} of {n_methods * (n_methods - 1) // 2}"
        for table in comparison.pairs.values()
    ]
    form = dict(zip(names, (".2f", "p") * 2, strict=True))
    return Table("tests", "Differences between methods", frame, form)


def _pair_tables(comparison: Comparison) -> Iterator[Table]:
    for metric, p_values in comparison.pairs.items():
        frame = p_values.mask(np.eye(len(p_values), dtype=bool)).rename_axis("method")
        marks = (frame < ALPHA).map({True: "best", False: ""}.get)
        title = f"Nemenyi p-values: {metric_words(metric)}"
        note = f"Adjusted for all pairs. Bold: below {ALPHA}."
        yield Table(f"nemenyi_{metric}", title, frame, form="p", note=note, marks=marks)


def _duel_tables(comparison: Comparison) -> list[Table]:
    """Make tables of wins, ties and losses of the control and of p-values. Empty without tests."""
    duels, control = comparison.duels, comparison.control
    if duels.empty:
        return []
    counts = ["wins", "ties", "losses"]
    total = duels.groupby("method", sort=False)[counts].sum().reset_index()
    every = pd.concat([duels, total.assign(metric=_OVERALL, adjusted=1.0)])
    every["words"] = every[counts].astype(str).agg("/".join, axis=1)
    every["mark"] = np.where(every["adjusted"] < ALPHA, "best", "")
    every["metric"] = every["metric"].map(metric_words)
    words, marks = cross(every, "method", "metric", (every["method"].unique(), every["metric"].unique()))
    note = (
        f"Numbers of datasets where {control} is better/equal/worse. Bold: p-value below {ALPHA} (Wilcoxon test with "
        "Holm's adjustment)."
    )
    n_datasets, n_methods = len(comparison.ranked_datasets), len(comparison.ranked_methods)
    # The smallest p-value is that of the two among 2^n sign patterns with all signs equal.
    least = 2 * 0.5**n_datasets * (n_methods - 1)
    if least >= ALPHA:
        few = f"{count(n_datasets, 'dataset')} and {count(n_methods, 'method')}"
        note += f" With {few}, p-values are never below {min(least, 1):.3f}."
    heads = {"method": "against", "p_value": "p (Wilcoxon)", "adjusted": "p (Holm)"}
    single = duels.assign(metric=duels["metric"].map(metric_words)).rename(columns=heads)
    title = f"Win/tie/loss of {control}"
    return [
        Table("win_tie_loss", title, words.rename_axis("against"), note=note, marks=marks),
        Table("wilcoxon", f"Wilcoxon tests of {control}", single.set_index("metric"), form="p"),
    ]


def paper(analysis: Analysis) -> Iterator[Section]:
    """Show the agreement with the paper, values by metric, and all cells in a file."""
    if not analysis.papers:
        return
    cells = analysis.papers[analysis.main.classifier]
    text = (
        f"Comparison with the values printed in {CITATION}. The paper does not state all conventions, so its "
        "numbers may not be directly comparable. Rank correlations compare the order of the methods."
    )
    every = cells[["metric", "dataset", "method", "ours", "theirs"]].assign(
        metric=cells["metric"].map(metric_words), difference=cells["ours"] - cells["theirs"]
    )
    every = every.rename(columns={"theirs": "paper"}).set_index("metric")
    form = {"paper": ".2f", "difference": "+.3f"}
    file = Table("paper_cells", "All cells shared with the paper", every, form)
    overall, by_metric = _agreement_tables(analysis)
    folded = (by_metric, *_paper_tables(cells))
    yield Section("paper", "Comparison with the paper", (text,), (overall,), folded, files=(file,))


def _agreement_tables(analysis: Analysis) -> list[Table]:
    """Make tables of the agreement with the paper by noise and classifier, overall and by metric."""
    place = f"label frequencies instead of {FLAGSHIP}"
    # Heading -> its group and format, in the order of `agreement`.
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
        "Differences are mean absolute differences from the printed values. Spearman correlations of the order of the "
        "methods are averaged over datasets and metrics. Ranks are averages over datasets and metrics among the "
        f"methods in the paper, and 1 is best. The last three columns replace {FLAGSHIP} by label frequencies with "
        "every label predicted."
    )
    title = "Agreement with the paper"
    found = pd.concat(
        {name: agreement(cells) for name, cells in analysis.papers.items()}, names=["judged by", "metric"]
    ).set_axis(list(columns), axis=1)
    overall = found.xs("", level="metric")
    by_metric = found.drop("", level="metric").rename(metric_words, level="metric").reset_index("metric")
    shorter = "As above, by metric."
    return [
        Table("paper_agreement", title, overall, form, note, groups=groups),
        Table("paper_agreement_by_metric", f"{title}, by metric", by_metric, form, shorter, groups=groups),
    ]


def _paper_tables(cells: pd.DataFrame) -> Iterator[Table]:
    """Make tables by metric of our means, the printed means and rank correlations."""
    orders = pd.DataFrame(
        {name.capitalize(): correlate_orders(cells, name) for name in ("spearman", "kendall")}
    )
    groups = dict.fromkeys(orders.columns, "order of the methods")
    words = cells["ours"].map("{:.2f} / ".format) + cells["theirs"].map("{:.2f}".format)
    for metric, part in cells.assign(words=words, mark="").groupby("metric", sort=False):
        frame, _ = cross(part, "dataset", "method", (part["dataset"].unique(), part["method"].unique()))
        frame = frame.join(orders.loc[metric]).rename_axis("dataset")
        title = f"{metric_title(metric, METRICS[metric].direction)}: ours / paper"
        yield Table(f"paper_{metric}", title, frame, form=".2f", groups=groups)
