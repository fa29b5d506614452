"""Our numbers beside those of the PML-FSMIR paper [1]_, cell by cell.

The paper's five tables (eight data sets, nine methods, mean and standard deviation over the sizes) ship with
the package as printed, to two decimals.

References
----------
.. [1] Gao, Pan, Han, Liu, "Noise-Resistant Label Reconstruction Feature Selection for Partial Multi-Label
   Learning", IJCAI 2025.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np
from scipy import stats

from labelsieve.bench.config import EVERY_LABEL, Experiment
from labelsieve.metrics import METRICS
from labelsieve.report.analysis.comparison import MetricTable
from labelsieve.report.statistics import rank_methods

CITATION = (
    "Gao, Pan, Han, Liu, “Noise-Resistant Label Reconstruction Feature Selection for Partial Multi-Label "
    "Learning”, IJCAI 2025"
)
#: The method that the paper proposes.
FLAGSHIP = "pml-fsmir"
# An order of two is no order to correlate.
_LEAST_METHODS = 3


@dataclass(frozen=True)
class PaperTable:
    """One metric, ours and theirs; arrays of shape (n_datasets, n_methods), NaN where one side has no cell."""

    metric: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    ours: np.ndarray
    theirs: np.ndarray
    #: Correlation of the orders of the methods, by data set; NaN where fewer than three methods are shared.
    spearman: np.ndarray
    kendall: np.ndarray
    #: Ours of label frequencies alone with every label predicted, by data set; NaN where there is none.
    frequencies: np.ndarray

    @property
    def direction(self) -> Literal["higher", "lower"]:
        """Which values are better; the paper has metrics of the package only."""
        return METRICS[self.metric].direction

    @property
    def difference(self) -> np.ndarray:
        """Ours minus theirs."""
        return np.asarray(self.ours - self.theirs)


@dataclass(frozen=True)
class PaperCheck:
    """All metrics that both have."""

    tables: tuple[PaperTable, ...]

    @property
    def differences(self) -> np.ndarray:
        """Ours minus theirs in all shared cells."""
        return _finite([table.difference.ravel() for table in self.tables])

    @property
    def correlation(self) -> float:
        """Correlation of ours and theirs over all shared cells; NaN where one side is constant."""
        ours, theirs = (
            _finite([getattr(table, name).ravel() for table in self.tables]) for name in ("ours", "theirs")
        )
        constant = len(ours) < 2 or np.ptp(ours) == 0 or np.ptp(theirs) == 0
        return float("nan") if constant else float(np.corrcoef(ours, theirs)[0, 1])

    @property
    def spearman(self) -> np.ndarray:
        """Spearman's correlations of all metrics and data sets that have one."""
        return _finite([table.spearman for table in self.tables])

    def flagship_differences(self, *, by_frequencies: bool = False) -> np.ndarray:
        """Ours minus theirs in PML-FSMIR's cells.

        With `by_frequencies`, label frequencies alone with every label predicted stand in ours' place.
        """
        parts = [np.empty(0)]
        for table in self.tables:
            if FLAGSHIP in table.methods:
                place = table.methods.index(FLAGSHIP)
                ours = table.frequencies if by_frequencies else table.ours[:, place]
                parts.append(ours - table.theirs[:, place])
        return _finite(parts)

    def flagship_rank(
        self, whose: Literal["ours", "theirs"] = "ours", *, by_frequencies: bool = False
    ) -> float | None:
        """Average rank of PML-FSMIR among the shared methods, over metrics and data sets that all of them have.

        With `by_frequencies`, label frequencies alone with every label predicted stand in its place. None where it
        is not there, or has nobody to be ranked against.
        """
        ranks = []
        for table in self.tables:
            if FLAGSHIP not in table.methods or len(table.methods) < 2:
                return None
            values, place = getattr(table, whose).copy(), table.methods.index(FLAGSHIP)
            if by_frequencies:
                values[:, place] = table.frequencies
            values = values[np.isfinite(values).all(axis=1)]
            if len(values):
                ranks += rank_methods(values, table.direction)[:, place].tolist()
        return float(np.mean(ranks)) if ranks else None


def _finite(parts: Sequence[np.ndarray]) -> np.ndarray:
    """What is known of several parts, in a row."""
    found = np.concatenate(parts)
    return np.asarray(found[np.isfinite(found)])


@cache
def paper_values() -> dict[tuple[str, str, str], tuple[float, float]]:
    """The paper's tables: metric, data set, method -> mean, standard deviation.

    Examples
    --------
    >>> len(paper_values()), paper_values()["ranking_loss", "birds", "pml-fsmir"]
    (360, (0.32, 0.09))
    """
    text = (files("labelsieve.report.analysis") / "data" / "pml_fsmir_tables.csv").read_text("utf-8")
    return {
        (row["metric"], row["dataset"], row["method"]): (float(row["mean"]), float(row["std"]))
        for row in csv.DictReader(text.splitlines())
    }


def repeats_paper(experiment: Experiment) -> bool:
    """Whether an experiment is the paper's or a part of it: its nine methods as they are, once, on its data sets."""
    _, datasets, methods = (set(names) for names in zip(*paper_values(), strict=True))
    return (
        {dataset.name for dataset in experiment.datasets} <= datasets
        and len(experiment.noise) == len(experiment.seeds) == 1
        and {method.name for method in experiment.methods} == methods
        and _published(experiment) == methods
    )


def check_against_paper(
    tables: Sequence[MetricTable], experiment: Experiment, judge: str
) -> PaperCheck | None:
    """Put our tables, made by a judge, beside the paper's; None if they have no cell in common.

    A method counts under its own name and with its defaults, coverage only as a share of the labels.
    """
    coverage = {found.name: found.conventions.coverage for found in experiment.judges()}[judge]
    published = _published(experiment)
    comparable = [table for table in tables if table.metric != "coverage" or coverage == "zero-based"]
    names = [method.name for method in experiment.all_methods() if method.method == EVERY_LABEL]
    frequencies = names[0] if names else None
    checked = [found for table in comparable if (found := _check(table, published, frequencies)) is not None]
    return PaperCheck(tuple(checked)) if checked else None


def _published(experiment: Experiment) -> set[str]:
    """The methods that are what their names say, with their defaults."""
    return {
        method.name for method in experiment.methods if method.method == method.name and not method.params
    }


def _check(table: MetricTable, published: set[str], frequencies: str | None) -> PaperTable | None:
    theirs = np.array(
        [
            [
                paper_values().get((table.metric, dataset, method), (np.nan,))[0]
                if method in published
                else np.nan
                for method in table.methods
            ]
            for dataset in table.datasets
        ]
    ).reshape(len(table.datasets), len(table.methods))
    ours = table.mean[:, : len(table.methods)]
    shared = np.isfinite(ours) & np.isfinite(theirs)
    if not shared.any():
        return None
    rows, columns = (np.flatnonzero(shared.any(axis=axis)) for axis in (1, 0))
    part = np.ix_(rows, columns)
    correlations = [_correlate(ours[row, shared[row]], theirs[row, shared[row]]) for row in rows]
    spearman, kendall = np.array(correlations).T
    return PaperTable(
        table.metric,
        tuple(table.datasets[row] for row in rows),
        tuple(table.methods[column] for column in columns),
        np.where(shared, ours, np.nan)[part],
        np.where(shared, theirs, np.nan)[part],
        spearman,
        kendall,
        np.full(len(rows), np.nan) if frequencies is None else table.mean[rows, table.column(frequencies)],
    )


def _correlate(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Spearman's and Kendall's correlation; NaN where there is no order to speak of."""
    if len(ours) < _LEAST_METHODS or np.ptp(ours) == 0 or np.ptp(theirs) == 0:
        return np.nan, np.nan
    return float(stats.spearmanr(ours, theirs).statistic), float(stats.kendalltau(ours, theirs).statistic)
