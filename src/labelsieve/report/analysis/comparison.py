"""Methods against one another over data sets: tables, ranks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from labelsieve._text import count
from labelsieve.report.analysis.cells import Place
from labelsieve.report.analysis.summary import Summary, as_cost
from labelsieve.report.statistics import (
    RankTest,
    WinTieLoss,
    bonferroni_dunn_cd,
    friedman,
    holm,
    iman_davenport,
    nemenyi_cd,
    nemenyi_p_values,
    rank_methods,
    win_tie_loss,
)

#: Level of all tests.
ALPHA = 0.05


@dataclass(frozen=True)
class MetricTable:
    """One metric: data sets by methods, and beside them the references; NaN where a run is incomplete."""

    metric: str
    #: Which values are better.
    direction: Literal["higher", "lower"]
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    references: tuple[str, ...]
    #: Of shape (n_datasets, n_methods + n_references), as `std` and `fold_std`.
    mean: np.ndarray
    #: Over the sizes; NaN where there is a single one.
    std: np.ndarray
    #: Over the folds, pooled over the sizes; NaN where there is a single one.
    fold_std: np.ndarray

    @property
    def cost(self) -> np.ndarray:
        """The means, turned so that the smallest is best."""
        return as_cost(self.direction, self.mean)

    def column(self, name: str) -> int:
        """The column of a method or reference."""
        return (*self.methods, *self.references).index(name)


@dataclass(frozen=True)
class Duel:
    """The control against another method over the data sets, seen from the control."""

    method: str
    outcome: WinTieLoss
    #: Wilcoxon's p-value, adjusted by Holm for the number of methods.
    adjusted: float


@dataclass(frozen=True)
class Standing:
    """Ranks of the methods by one metric, and what the tests make of them.

    Only methods and data sets without a gap between them take part.
    """

    metric: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    #: Of shape (n_datasets, n_methods); 1 is best.
    ranks: np.ndarray
    friedman: RankTest | None
    iman_davenport: RankTest | None
    #: Adjusted p-values of all pairs (Nemenyi).
    pairs: np.ndarray | None
    #: None where the control does not take part.
    duels: tuple[Duel, ...] | None

    @property
    def average(self) -> np.ndarray:
        """Average rank of each method."""
        return np.asarray(self.ranks.mean(axis=0))


@dataclass(frozen=True)
class Comparison:
    """Everything about one classifier, with each data set at one noise."""

    classifier: str
    noise: dict[str, str]
    control: str
    tables: tuple[MetricTable, ...]
    #: One for each table; empty when nothing can be ranked.
    standings: tuple[Standing, ...]
    #: Why there are no tests; empty if there are.
    no_tests: str

    @property
    def n_ranked(self) -> tuple[int, int]:
        """How many data sets and methods the ranks are made of."""
        ranks = self.standings[0].ranks if self.standings else np.empty((0, 0))
        return ranks.shape[0], ranks.shape[1]

    @property
    def ranked_methods(self) -> tuple[str, ...]:
        """The methods that take part in the ranking."""
        return self.standings[0].methods if self.standings else ()

    @cached_property
    def overall(self) -> dict[str, float]:
        """Average rank over all metrics and data sets, best first."""
        if not self.standings:
            return {}
        average = np.mean([standing.average for standing in self.standings], axis=0)
        order = np.argsort(average, kind="stable")
        return {self.ranked_methods[column]: float(average[column]) for column in order}

    @property
    def nemenyi_cd(self) -> float | None:
        """Critical difference of average ranks for all pairs; None without tests."""
        n_datasets, n_methods = self.n_ranked
        return None if self.no_tests else nemenyi_cd(n_methods, n_datasets, alpha=ALPHA)

    @property
    def bonferroni_dunn_cd(self) -> float | None:
        """Critical difference of average ranks from the control's; None without tests or control."""
        n_datasets, n_methods = self.n_ranked
        if self.no_tests or self.control not in self.ranked_methods:
            return None
        return bonferroni_dunn_cd(n_methods, n_datasets, alpha=ALPHA)

    @cached_property
    def among_all(self) -> dict[str, float]:
        """Average rank over metrics and data sets with the references ranked too; no test is made of it."""
        shared = _complete_part(self.tables, (*self.ranked_methods, *_complete_references(self)))
        if shared is None:
            return {}
        rows, columns, names = shared
        ranks = [
            _rank(table.mean[np.ix_(rows, columns)], table.direction).mean(axis=0) for table in self.tables
        ]
        return dict(zip(names, np.mean(ranks, axis=0).tolist(), strict=True))


@dataclass(frozen=True)
class Challenge:
    """How a method does against a reference, over all metrics and data sets."""

    method: str
    reference: str
    #: Metric -> number of data sets where the method is better, compared.
    wins: dict[str, int]
    compared: dict[str, int]

    @property
    def n_wins(self) -> int:
        """Comparisons in which the method is better."""
        return sum(self.wins.values())

    @property
    def n_compared(self) -> int:
        """All comparisons: a metric on a data set."""
        return sum(self.compared.values())

    @property
    def won(self) -> bool:
        """Whether the method is better in most comparisons."""
        return 2 * self.n_wins > self.n_compared


def compare(summary: Summary, *, control: str, classifier: str, noise: dict[str, str]) -> Comparison:
    """Make tables of all metrics and rank the methods; references are shown beside them.

    Parameters
    ----------
    summary : Summary
        The run.
    control : str
        The method that the others are compared with.
    classifier : str
        Which one's metrics.
    noise : dict of str to str
        Data set -> the noise to look at.
    """
    methods = summary.compared
    tables = tuple(_table(summary, metric, classifier, noise) for metric in summary.facts.metrics)
    part = _complete_part(tables, _worth_ranking(tables, methods))
    if part is None:
        return Comparison(classifier, noise, control, tables, (), _why_not(0, len(methods)))
    rows, columns, names = part
    refusal = _why_not(len(rows), len(names))
    standings = tuple(_standing(table, rows, columns, names, control, test=not refusal) for table in tables)
    return Comparison(classifier, noise, control, tables, standings, refusal)


def challenge_references(tables: Sequence[MetricTable]) -> tuple[Challenge, ...]:
    """Compare every method with every reference wherever both have results; pairs without are left out."""
    if not tables:
        return ()
    challenges = []
    for reference in tables[0].references:
        for method in tables[0].methods:
            wins, compared = {}, {}
            for table in tables:
                own, other = (table.cost[:, table.column(name)] for name in (method, reference))
                both = np.isfinite(own) & np.isfinite(other)
                wins[table.metric] = int((own[both] < other[both]).sum())
                compared[table.metric] = int(both.sum())
            challenge = Challenge(method, reference, wins, compared)
            if challenge.n_compared:
                challenges.append(challenge)
    return tuple(challenges)


def _table(summary: Summary, metric: str, classifier: str, noise: dict[str, str]) -> MetricTable:
    methods, references = summary.compared, summary.references
    shape = len(noise), len(methods) + len(references)
    mean, std, fold_std = (np.full(shape, np.nan) for _ in range(3))
    for row, (dataset, level) in enumerate(noise.items()):
        for column, method in enumerate((*methods, *references)):
            curve = summary.curve(Place(dataset, level, method), classifier, metric)
            if curve is not None:
                mean[row, column] = curve.mean
                std[row, column] = np.nan if curve.std is None else curve.std
                fold_std[row, column] = np.nan if curve.mean_fold_std is None else curve.mean_fold_std
    direction = summary.direction(metric)
    return MetricTable(metric, direction, tuple(noise), methods, references, mean, std, fold_std)


def _worth_ranking(tables: Sequence[MetricTable], methods: Sequence[str]) -> tuple[str, ...]:
    """Leave out methods that lack more than half of the data sets of which there is anything."""
    if not tables:
        return ()
    present = _present(tables)[:, : len(methods)]
    present = present[present.any(axis=1)]
    enough = 2 * present.sum(axis=0) >= max(len(present), 1)
    return tuple(name for name, is_enough in zip(methods, enough, strict=True) if is_enough)


def _complete_references(comparison: Comparison) -> tuple[str, ...]:
    """The references that are there wherever the methods were ranked."""
    table = comparison.tables[0] if comparison.tables else None
    if table is None or not comparison.standings:
        return ()
    rows = [table.datasets.index(name) for name in comparison.standings[0].datasets]
    present = _present(comparison.tables)[rows]
    return tuple(name for name in table.references if present[:, table.column(name)].all())


def _complete_part(
    tables: Sequence[MetricTable], names: Sequence[str]
) -> tuple[list[int], list[int], tuple[str, ...]] | None:
    """Rows where all of `names` have results, and the columns of `names`; None if there is no such row."""
    if not tables or not names:
        return None
    columns = [tables[0].column(name) for name in names]
    rows = np.flatnonzero(_present(tables)[:, columns].all(axis=1)).tolist()
    return (rows, columns, tuple(names)) if rows else None


def _present(tables: Sequence[MetricTable]) -> np.ndarray:
    """Where every metric has a value."""
    return np.asarray(np.all([np.isfinite(table.mean) for table in tables], axis=0))


def _why_not(n_datasets: int, n_methods: int) -> str:
    """Say why there can be no test; empty if there can."""
    if n_datasets >= 2 and n_methods >= 2:
        return ""
    few, many = count(n_datasets, "complete data set"), count(n_methods, "method")
    return f"Tests across data sets need two data sets and two methods or more; here are {few} and {many}."


def _standing(
    table: MetricTable,
    rows: list[int],
    columns: list[int],
    names: tuple[str, ...],
    control: str,
    *,
    test: bool,
) -> Standing:
    values = table.mean[np.ix_(rows, columns)]
    ranks = _rank(values, table.direction)
    datasets = tuple(table.datasets[row] for row in rows)
    if not test:
        return Standing(table.metric, datasets, names, ranks, None, None, None, None)
    return Standing(
        table.metric,
        datasets,
        names,
        ranks,
        friedman(ranks),
        iman_davenport(ranks),
        nemenyi_p_values(ranks),
        _duels(values, names, control, table.direction) if control in names else None,
    )


def _rank(values: np.ndarray, direction: Literal["higher", "lower"]) -> np.ndarray:
    """Rank each row; a single method has no one to be ranked against and is first."""
    return rank_methods(values, direction) if values.shape[1] > 1 else np.ones(values.shape)


def _duels(
    values: np.ndarray, names: tuple[str, ...], control: str, direction: Literal["higher", "lower"]
) -> tuple[Duel, ...]:
    """Wilcoxon's test of the control against every other method."""
    own = values[:, names.index(control)]
    others = [name for name in names if name != control]
    outcomes = [win_tie_loss(own, values[:, names.index(name)], direction) for name in others]
    adjusted = holm([outcome.p_value for outcome in outcomes]).tolist()
    return tuple(map(Duel, others, outcomes, adjusted))
