"""Sections on the methods compared with one another, with the references and with the paper."""

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
    """Average ranks by metric and overall, best first; references are ranked in the last column only."""
    main = analysis.main
    if len(main.ranked_methods) < 2:
        return
    frame = main.average_ranks.rename(columns=metric_words)
    frame[_OVERALL] = pd.Series(main.overall)
    groups = dict.fromkeys(frame.columns, "average rank among the methods")
    among_all = pd.Series(main.among_all, dtype=float).sort_values(kind="stable")
    frame = frame.reindex([*main.overall, *(name for name in among_all.index if name not in main.overall)])
    frame["with the references ranked too"] = among_all
    table = Table(
        "average_ranks",
        "Average ranks",
        frame.rename_axis("method"),
        form=".2f",
        note="1 is best.",
        groups=groups,
        marks=mark_best(frame.T).T,
    )
    scope = f"{count(len(main.ranked_datasets), 'data set')} ({listed(main.ranked_datasets)})"
    text = f"Each method's place on each data set, averaged over {scope}."
    yield Section("ranks", "Average ranks", (text,), (table, *_condition_tables(analysis)))


def _condition_tables(analysis: Analysis) -> list[Table]:
    """Average ranks under each noise and classifier, without and with references; empty for one condition."""
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
    longer = f"{title}, with the references ranked too"
    note = "Over all metrics and the data sets complete there; 1 is best."
    return [
        Table("conditions", title, methods, ".2f", note, marks=mark_best(methods)),
        Table("conditions_with_references", longer, everyone, ".2f", note, marks=mark_best(everyone.T).T),
    ]


def curves(analysis: Analysis) -> Iterator[Section]:
    """Every curve in long form, for programs; the page has charts."""
    main, summary = analysis.main, analysis.summary
    means = summary.select(main.classifier, main.noise, summary.means)
    means = arrange(means, dataset=main.noise, metric=main.metrics, method=summary.shown)
    if means.groupby(["dataset", "method", "metric"])["size"].count().gt(1).any():
        heads = {"dataset": "data set", "n_features": "features", "mean": "value"}
        frame = means[["dataset", "method", "metric", "size", "n_features", "mean"]].rename(columns=heads)
        text = (
            "Each metric against the number of features kept: means over folds, seeds and draws, the band one standard "
            "deviation over the folds. Point at a line, or move with the arrow keys, for its values; names below "
            "switch lines off and on."
        )
        file = Table("curves", "All metrics at all sizes", frame.set_index("data set"))
        yield Section("curves", "Metrics by number of features", (text,), files=(file,))


def metrics(analysis: Analysis) -> Iterator[Section]:
    """One table per metric: data sets by methods and references, with the average ranks below."""
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
    dagger = " † is a reference ahead of every method." if summary.references else ""
    spreads = {
        FOLDS: " ± standard deviation over the folds at one size (root mean square over the sizes)",
        SIZES: " ± standard deviation over the sizes of the means over folds",
    }
    note, size_note = (
        f"Mean over folds and sizes{words if parts[ending].notna().any(axis=None) else ''}; {direction} is better. "
        f"Best method bold, second underlined.{dagger}"
        for ending, words in spreads.items()
    )
    groups = dict.fromkeys(summary.compared, "methods") | dict.fromkeys(summary.references, "references")
    return Table(
        # A user-defined metric could have the name of another table.
        metric if metric in METRICS else f"metric_{metric}",
        summary.title(metric),
        frame.rename_axis("data set"),
        note=note,
        size_note=size_note,
        groups=groups,
        marks=marks,
        n_foot=1 if comparison.ranks else 0,
    )


def references(analysis: Analysis) -> Iterator[Section]:
    """Comparisons in which methods beat the references: over all metrics, then one table per metric."""
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
        scope = "over all metrics and data sets" if metric is None else f"{metric_words(metric)}, data sets"
        title = f"Comparisons in which the method beats the reference: {scope}"
        tables.append(Table(stem, title, words, note="Bold: better in more than half.", marks=marks))
    text = (
        "A method that does not beat random features, plain filters, all features or no features at all has "
        "not earned its place. A comparison is one metric on one data set, by the means over all sizes."
    )
    overall, *single = tables
    yield Section("references", "Do the methods beat the references?", (text,), (overall,), tuple(single))


def statistics(analysis: Analysis) -> Iterator[Section]:
    """Tests over data sets: of all methods, of all pairs, and of the control against each other method."""
    main = analysis.main
    if main.no_tests or main.nemenyi_cd is None:
        if analysis.summary.compared:
            yield Section("statistics", "Statistics", (main.no_tests,))
        return
    scope = f"{count(len(main.ranked_datasets), 'data set')} and {count(len(main.ranked_methods), 'method')}"
    text = (
        f"All tests compare methods over data sets, never over folds, at {ALPHA:.0%}. With {scope}, two methods "
        f"differ significantly if their average ranks are {main.nemenyi_cd:.2f} or more apart (Nemenyi, all pairs)"
    )
    critical = main.bonferroni_dunn_cd
    if critical is None:
        texts = [f"{text}.", f"{main.control}, the control, is not ranked, so nothing is compared with it."]
    else:
        differs = f"a method differs from {main.control} at {critical:.2f} (Bonferroni–Dunn)"
        texts = [f"{text}, and {differs}."]
    duels = _duel_tables(main)
    tables = (_difference_table(main), *duels[:1])
    yield Section("statistics", "Statistics", tuple(texts), tables, (*_pair_tables(main), *duels[1:]))


def _difference_table(comparison: Comparison) -> Table:
    names = ["Friedman χ²", "p (Friedman)", "Iman–Davenport F", "p (Iman–Davenport)"]
    frame = comparison.tests.set_axis(names, axis=1).rename(index=metric_words).rename_axis("metric")
    n_methods = len(comparison.ranked_methods)
    frame["pairs that differ (Nemenyi)"] = [
        f"{np.triu(table < ALPHA, k=1).sum()} of {n_methods * (n_methods - 1) // 2}"
        for table in comparison.pairs.values()
    ]
    form = dict(zip(names, (".2f", "p") * 2, strict=True))
    return Table("tests", "Do the methods differ at all?", frame, form)


def _pair_tables(comparison: Comparison) -> Iterator[Table]:
    for metric, p_values in comparison.pairs.items():
        frame = p_values.mask(np.eye(len(p_values), dtype=bool)).rename_axis("method")
        marks = (frame < ALPHA).map({True: "best", False: ""}.get)
        title = f"Nemenyi p-values: {metric_words(metric)}"
        note = f"Adjusted for all pairs; bold is below {ALPHA}."
        yield Table(f"nemenyi_{metric}", title, frame, form="p", note=note, marks=marks)


def _duel_tables(comparison: Comparison) -> list[Table]:
    """Wins, ties and losses of the control against each method, then the p-values; empty without a test."""
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
        f"Data sets where {control} is better/equal/worse; bold where Wilcoxon's test, "
        f"adjusted by Holm for the number of methods, is below {ALPHA}."
    )
    n_datasets, n_methods = len(comparison.ranked_datasets), len(comparison.ranked_methods)
    # Of the 2^n patterns of signs, the two with all signs equal are the least likely.
    least = 2 * 0.5**n_datasets * (n_methods - 1)
    if least >= ALPHA:
        few = f"{count(n_datasets, 'data set')} and {count(n_methods, 'method')}"
        note += f" With {few} it is never below {min(least, 1):.3f}: nothing can be bold."
    heads = {"method": "against", "p_value": "p (Wilcoxon)", "adjusted": "p (Holm)"}
    single = duels.assign(metric=duels["metric"].map(metric_words)).rename(columns=heads)
    title = f"Win/tie/loss of {control}"
    return [
        Table("win_tie_loss", title, words.rename_axis("against"), note=note, marks=marks),
        Table("wilcoxon", f"Wilcoxon's tests of {control}", single.set_index("metric"), form="p"),
    ]


def paper(analysis: Analysis) -> Iterator[Section]:
    """Agreement with the paper's numbers, our means and the paper's by metric, and all cells in full."""
    if not analysis.papers:
        return
    cells = analysis.papers[analysis.main.classifier]
    text = (
        f"The same cells in {CITATION}, as printed there. The paper does not say all conventions, so its "
        "numbers may mean something else; the order of the methods is compared by rank correlation."
    )
    every = cells[["metric", "dataset", "method", "ours", "theirs"]].assign(
        metric=cells["metric"].map(metric_words), difference=cells["ours"] - cells["theirs"]
    )
    every = every.rename(columns={"dataset": "data set", "theirs": "paper"}).set_index("metric")
    form = {"paper": ".2f", "difference": "+.3f"}
    file = Table("paper_cells", "Ours and the paper's, all cells", every, form)
    overall, by_metric = _agreement_tables(analysis)
    folded = (by_metric, *_paper_tables(cells))
    yield Section("paper", "Ours and the paper’s", (text,), (overall,), folded, files=(file,))


def _agreement_tables(analysis: Analysis) -> list[Table]:
    """Agreement with the paper's numbers under every noise and classifier, then the same by metric."""
    place = f"label frequencies alone, every label predicted, in {FLAGSHIP}'s place"
    # Heading -> group above it and format, in the order of `agreement`.
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
    found = pd.concat(
        {name: agreement(cells) for name, cells in analysis.papers.items()}, names=["judged by", "metric"]
    ).set_axis(list(columns), axis=1)
    overall = found.xs("", level="metric")
    by_metric = found.drop("", level="metric").rename(metric_words, level="metric").reset_index("metric")
    shorter = "As above, each metric alone."
    return [
        Table("paper_agreement", title, overall, form, note, groups=groups),
        Table("paper_agreement_by_metric", f"{title}, by metric", by_metric, form, shorter, groups=groups),
    ]


def _paper_tables(cells: pd.DataFrame) -> Iterator[Table]:
    """Our means and the paper's by metric, with the correlations of the orders."""
    orders = pd.DataFrame(
        {name.capitalize(): correlate_orders(cells, name) for name in ("spearman", "kendall")}
    )
    groups = dict.fromkeys(orders.columns, "order of the methods")
    words = cells["ours"].map("{:.2f} / ".format) + cells["theirs"].map("{:.2f}".format)
    for metric, part in cells.assign(words=words, mark="").groupby("metric", sort=False):
        frame, _ = cross(part, "dataset", "method", (part["dataset"].unique(), part["method"].unique()))
        frame = frame.join(orders.loc[metric]).rename_axis("data set")
        title = f"{metric_title(metric, METRICS[metric].direction)}: ours / the paper's"
        yield Table(f"paper_{metric}", title, frame, form=".2f", groups=groups)
