"""Compare our numbers with those of the PML-FSMIR paper [1]_, cell by cell.

The paper's five tables (eight data sets, nine methods, mean and standard deviation over the sizes) ship with
the package as printed, to two decimals.

References
----------
.. [1] Gao, Pan, Han, Liu, "Noise-Resistant Label Reconstruction Feature Selection for Partial Multi-Label
   Learning", IJCAI 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from labelsieve.bench.config import EVERY_LABEL, Experiment
from labelsieve.metrics import METRICS
from labelsieve.report.comparison import Comparison
from labelsieve.report.statistics import rank_methods

__all__ = ["CITATION", "FLAGSHIP", "PaperCheck", "check_against_paper", "paper_values", "repeats_paper"]

CITATION = (
    "Gao, Pan, Han, Liu, “Noise-Resistant Label Reconstruction Feature Selection for Partial Multi-Label "
    "Learning”, IJCAI 2025"
)
#: The method that the paper proposes.
FLAGSHIP = "pml-fsmir"
# The order of two methods cannot be correlated.
_LEAST_METHODS = 3
_CELL = ["metric", "dataset", "method"]


@dataclass(frozen=True)
class PaperCheck:
    """Cells that both our run and the paper have."""

    #: Columns metric, dataset, method, ours, theirs.
    cells: pd.DataFrame
    #: Metric, data set -> our value of label frequencies with every label predicted; NaN if there is none.
    frequencies: dict[tuple[str, str], float]

    @property
    def metrics(self) -> list[str]:
        """Metrics that both have."""
        return list(self.cells["metric"].unique())

    def only(self, metric: str) -> PaperCheck:
        """The same for one metric."""
        return PaperCheck(self.cells[self.cells["metric"] == metric], self.frequencies)

    def table(self, metric: str, whose: str) -> pd.DataFrame:
        """Values of one side: data sets by methods, NaN where there is no shared cell."""
        return self._tables[metric][whose].copy()

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        found = {}
        for metric, cells in self.cells.groupby("metric", sort=False):
            table = cells.pivot(index="dataset", columns="method", values=["ours", "theirs"])
            methods = pd.MultiIndex.from_product([["ours", "theirs"], cells["method"].unique()])
            found[metric] = table.reindex(index=cells["dataset"].unique(), columns=methods)
        return found

    @property
    def differences(self) -> np.ndarray:
        """Ours minus theirs in all shared cells."""
        return (self.cells["ours"] - self.cells["theirs"]).to_numpy()

    @property
    def correlation(self) -> float:
        """Correlation of ours and theirs over all shared cells; NaN if one side is constant."""
        ours, theirs = (self.cells[name].to_numpy() for name in ("ours", "theirs"))
        constant = len(ours) < 2 or np.ptp(ours) == 0 or np.ptp(theirs) == 0
        return float("nan") if constant else float(np.corrcoef(ours, theirs)[0, 1])

    @cached_property
    def orders(self) -> pd.DataFrame:
        """Spearman's and Kendall's correlation of the order of the methods, by metric and data set."""
        rows = {}
        for key, cells in self.cells.groupby(_CELL[:2], sort=False):
            ours, theirs = cells["ours"].to_numpy(), cells["theirs"].to_numpy()
            if len(cells) < _LEAST_METHODS or np.ptp(ours) == 0 or np.ptp(theirs) == 0:
                rows[key] = (np.nan, np.nan)
            else:
                rows[key] = (
                    float(stats.spearmanr(ours, theirs).statistic),
                    float(stats.kendalltau(ours, theirs).statistic),
                )
        return pd.DataFrame(rows, index=["spearman", "kendall"]).T

    @property
    def spearman(self) -> np.ndarray:
        """Spearman's correlations of the metrics and data sets that have one."""
        return self.orders["spearman"].dropna().to_numpy()

    def flagship_differences(self, *, by_frequencies: bool = False) -> np.ndarray:
        """Ours minus theirs in PML-FSMIR's cells.

        With `by_frequencies`, label frequencies with every label predicted take the place of ours.
        """
        cells = self.cells[self.cells["method"] == FLAGSHIP]
        ours = self._frequencies(cells) if by_frequencies else cells["ours"]
        return (ours - cells["theirs"]).dropna().to_numpy()

    def flagship_rank(
        self, whose: Literal["ours", "theirs"] = "ours", *, by_frequencies: bool = False
    ) -> float | None:
        """Average rank of PML-FSMIR among the shared methods, over metrics and data sets that all of them have.

        With `by_frequencies`, label frequencies with every label predicted take its place. None if it is missing or
        alone.
        """
        ranks = []
        for metric in self.metrics:
            values = self.table(metric, whose)
            if FLAGSHIP not in values or values.shape[1] < 2:
                return None
            if by_frequencies:
                values[FLAGSHIP] = [self.frequencies[metric, dataset] for dataset in values.index]
            values = values.dropna()
            if len(values):
                place = values.columns.get_loc(FLAGSHIP)
                ranks += rank_methods(values, METRICS[metric].direction)[:, place].tolist()
        return float(np.mean(ranks)) if ranks else None

    def _frequencies(self, cells: pd.DataFrame) -> pd.Series:
        keys = zip(cells["metric"], cells["dataset"], strict=True)
        return pd.Series([self.frequencies[key] for key in keys], index=cells.index, dtype=float)


@cache
def paper_values() -> dict[tuple[str, str, str], tuple[float, float]]:
    """The paper's tables: metric, data set, method -> mean, standard deviation.

    Examples
    --------
    >>> len(paper_values()), paper_values()["ranking_loss", "birds", "pml-fsmir"]
    (360, (0.32, 0.09))
    """
    with (files("labelsieve.report") / "data" / "pml_fsmir_tables.csv").open(encoding="utf-8") as stream:
        table = pd.read_csv(stream, index_col=_CELL)
    return {key: (mean, std) for key, mean, std in table[["mean", "std"]].itertuples(name=None)}


def repeats_paper(experiment: Experiment) -> bool:
    """Tell if an experiment is the paper's or a part of it: its nine methods with defaults, on its data sets."""
    _, datasets, methods = (set(names) for names in zip(*paper_values(), strict=True))
    return (
        {dataset.name for dataset in experiment.datasets} <= datasets
        and len(experiment.noise) == len(experiment.seeds) == 1
        and {method.name for method in experiment.methods} == methods
        and _published(experiment) == methods
    )


def check_against_paper(comparison: Comparison) -> PaperCheck | None:
    """Collect the cells that we share with the paper; None without any.

    A method counts under its own name and with its defaults, coverage only as a share of the labels.
    """
    experiment = comparison.summary.experiment
    conventions = {judge.name: judge.conventions for judge in experiment.judges()}[comparison.classifier]
    published = _published(experiment)
    names = [method.name for method in experiment.all_methods() if method.method == EVERY_LABEL]
    rows, frequencies = [], {}
    for metric, table in comparison.means.items():
        if metric == "coverage" and conventions.coverage != "zero-based":
            continue
        for dataset, means in table.iterrows():
            frequencies[metric, str(dataset)] = float(means[names[0]]) if names else np.nan
            rows += [
                (metric, dataset, method, float(means[method]), paper_values()[metric, dataset, method][0])
                for method in comparison.summary.compared
                if method in published
                and (metric, dataset, method) in paper_values()
                and np.isfinite(means[method])
            ]
    cells = pd.DataFrame(rows, columns=[*_CELL, "ours", "theirs"])
    return PaperCheck(cells, frequencies) if rows else None


def _published(experiment: Experiment) -> set[str]:
    """Methods that carry their own name and have their defaults."""
    return {
        method.name for method in experiment.methods if method.method == method.name and not method.params
    }
