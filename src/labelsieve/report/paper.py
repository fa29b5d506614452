"""Compare results with the tables of the PML-FSMIR paper [1]_.

The package contains the five printed tables: eight datasets, nine methods, mean and standard deviation over sizes, with
two decimals.

References
----------
.. [1] Gao, Pan, Han, Liu, "Noise-Resistant Label Reconstruction Feature Selection for Partial Multi-Label
   Learning", IJCAI 2025.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import pandas as pd

from labelsieve.bench.config import EVERY_LABEL, Experiment
from labelsieve.metrics import METRICS
from labelsieve.report.comparison import Comparison
from labelsieve.report.summary import arrange

CITATION = (
    "Gao, Pan, Han, Liu, “Noise-Resistant Label Reconstruction Feature Selection for Partial Multi-Label "
    "Learning”, IJCAI 2025"
)
#: Method proposed in the paper.
FLAGSHIP = "pml-fsmir"
# With fewer methods, rank correlations are meaningless.
_MIN_METHODS = 3
_CELL = ["metric", "dataset", "method"]


@cache
def paper_values() -> pd.DataFrame:
    """Return mean and std from the paper by metric, dataset and method.

    Examples
    --------
    >>> len(paper_values()), paper_values().loc[("ranking_loss", "birds", "pml-fsmir")].tolist()
    (360, [0.32, 0.09])
    """
    with (files("labelsieve.report") / "data" / "pml_fsmir_tables.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream, index_col=_CELL)[["mean", "std"]].sort_index()


def repeats_paper(experiment: Experiment) -> bool:
    """Return True for the experiment of the paper or a part: its nine methods with defaults on its datasets."""
    printed = paper_values().index
    methods = set(printed.unique("method"))
    return (
        {dataset.name for dataset in experiment.datasets} <= set(printed.unique("dataset"))
        and len(experiment.noise) == len(experiment.seeds) == 1
        and {method.name for method in experiment.methods} == methods
        and _published(experiment) == methods
    )


def shared_cells(comparison: Comparison) -> pd.DataFrame:
    """Collect the cells shared with the paper.

    Only methods with default names and parameters are included, and coverage only as a fraction of the labels. The
    columns are metric, dataset, method, ours, theirs, and frequencies: the value of label frequencies with every label
    predicted, or NaN if not run.
    """
    experiment = comparison.summary.experiment
    conventions = {judge.name: judge.conventions for judge in experiment.judges()}[comparison.classifier]
    published = _published(experiment)
    is_comparable = conventions.coverage == "zero-based"
    metrics = [name for name in comparison.metrics if name != "coverage" or is_comparable]
    scores = comparison.scores.rename(columns={"mean": "ours"})[[*_CELL, "ours"]]
    every_label = [method.name for method in experiment.all_methods() if method.method == EVERY_LABEL][:1]
    frequencies = scores[scores["method"].isin(every_label)].rename(columns={"ours": "frequencies"})
    theirs = paper_values()["mean"].rename("theirs").reset_index()
    methods = [name for name in comparison.summary.compared if name in published]
    ours = arrange(scores, metric=metrics, dataset=comparison.noise, method=methods)
    cells = ours.merge(theirs, on=_CELL)
    return cells.merge(frequencies.drop(columns="method"), on=["metric", "dataset"], how="left")


def correlate_orders(cells: pd.DataFrame, method: Literal["spearman", "kendall"]) -> pd.Series:
    """Correlate the order of the methods with that in the paper by metric and dataset."""
    groups = cells.groupby(_CELL[:2], sort=False)[["ours", "theirs"]]
    return groups.corr(method=method, min_periods=_MIN_METHODS).xs("ours", level=-1)["theirs"]


def agreement(cells: pd.DataFrame) -> pd.DataFrame:
    """Measure the agreement with the paper, for all metrics (row "") and by metric.

    Differences are mean absolute differences. Ranks are averages over metrics and datasets with all methods. They are
    given for the flagship method, here and in the paper, and for label frequencies in its place, or NaN if unknown.
    """
    is_flagship = cells["method"] == FLAGSHIP
    ours, theirs, frequencies = (cells[name] for name in ("ours", "theirs", "frequencies"))
    difference = (ours - theirs).abs()
    orders = correlate_orders(cells, "spearman")
    each = pd.DataFrame(
        {
            "difference": difference,
            "flagship_difference": difference[is_flagship],
            "flagship_rank": _ranks(cells, ours)[is_flagship],
            "flagship_rank_in_paper": _ranks(cells, theirs)[is_flagship],
            "frequencies_difference": (frequencies - theirs).abs()[is_flagship],
            "frequencies_rank": _ranks(cells, ours.mask(is_flagship, frequencies))[is_flagship],
            "frequencies_rank_in_paper": _ranks(cells, theirs.mask(is_flagship, frequencies))[is_flagship],
        }
    )
    parts = {"": cells.index, **{name: part.index for name, part in cells.groupby("metric", sort=False)}}
    means = {name: [each.loc[rows, one].dropna().mean() for one in each] for name, rows in parts.items()}
    found = pd.DataFrame.from_dict(means, orient="index", columns=each.columns)
    found.insert(0, "n_cells", [len(rows) for rows in parts.values()])
    pair = cells[["ours", "theirs"]]
    found.insert(2, "correlation", [pair.loc[rows].corr().at["ours", "theirs"] for rows in parts.values()])
    found.insert(3, "spearman", [(orders[name] if name else orders).mean() for name in parts])
    return found


def _ranks(cells: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Rank the methods by metric and dataset, NaN if any is missing or there is only one."""
    signs = {name: -1 if metric.direction == "higher" else 1 for name, metric in METRICS.items()}
    groups = (values * cells["metric"].map(signs)).groupby([cells["metric"], cells["dataset"]])
    n_methods = cells.groupby("metric")["method"].transform("nunique")
    return groups.rank().where((groups.transform("count") == n_methods) & (n_methods > 1))


def _published(experiment: Experiment) -> set[str]:
    """Return the methods with default names and parameters."""
    return {
        method.name for method in experiment.methods if method.method == method.name and not method.params
    }
