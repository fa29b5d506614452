"""Compare the results of two runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from labelsieve.report.summary import CURVE, DIGITS, Summary, rounded

_NAMES = dict(zip(CURVE, ("datasets", "noises", "methods", "classifiers", "metrics"), strict=True))
#: Settings that may affect shared results.
_SETTINGS = ("folds", "seeds", "random_draws", "classifiers", "sizes", "metrics", "conventions")
_MEAN = ["method", "classifier", "metric"]


def compare_runs(first: Summary, second: Summary) -> dict[str, Any]:
    """Compare the complete results of two runs at shared sizes.

    Returns
    -------
    found : dict
        - "differences": DataFrame with the columns method, classifier, metric, direction, n_shared (number of pairs of
          dataset and noise), first and second (means), fold_std (standard deviation over folds, root mean square over
          both runs), difference (second minus first) and better ("first", "second" or "").
        - "by_dataset": the same by dataset and noise.
        - "only_first" and "only_second": names in only one run, by kind such as "methods".
        - "settings" and "other_data": settings that differ, and datasets with different data.
    """
    point = [*CURVE, "size", "n_features"]
    shared = first.means.merge(second.means, on=point, suffixes=("_first", "_second"))
    shared = shared[shared["metric"].isin(first.facts.metrics)]
    stds = shared[["fold_std_first", "fold_std_second"]] ** 2
    shared = shared.assign(squares=stds.sum(axis=1), n_stds=stds.count(axis=1))
    curves = shared.groupby(CURVE, sort=False)
    table = curves[["mean_first", "mean_second"]].mean()
    table.columns = ["first", "second"]
    sums = curves[["squares", "n_stds"]].sum()
    table["fold_std"] = _rounded_root(sums["squares"] / sums["n_stds"].replace(0, np.nan))
    table = table.reset_index().assign(n_shared=1)
    groups = table.assign(square=table["fold_std"] ** 2).groupby(_MEAN, sort=False)
    means = groups[["first", "second"]].mean()
    means["fold_std"] = _rounded_root(groups["square"].mean())
    means["n_shared"] = groups.size()
    settings = [run.experiment.model_dump(include={*_SETTINGS}, mode="json") for run in (first, second)]
    return {
        "differences": _differences(means.reset_index(), first),
        "by_dataset": _differences(table, first, "dataset", "noise"),
        "only_first": _only(first, second),
        "only_second": _only(second, first),
        "settings": [key for key in _SETTINGS if settings[0][key] != settings[1][key]],
        "other_data": [
            name
            for name, facts in first.datasets.items()
            if name in second.datasets and facts.checksum != second.datasets[name].checksum
        ],
    }


def _differences(table: pd.DataFrame, run: Summary, *places: str) -> pd.DataFrame:
    difference = (table["second"] - table["first"]).round(DIGITS)
    direction = table["metric"].map(run.experiment.directions)
    gain = np.where(direction == "lower", -difference, difference)
    better = np.select([gain > 0, gain < 0], ["second", "first"], "")
    table = table.assign(direction=direction, difference=difference, better=better)
    numbers = ["n_shared", "first", "second", "fold_std", "difference", "better"]
    return table[[*places, *_MEAN, "direction", *numbers]]


def _rounded_root(squares: pd.Series) -> pd.Series:
    return np.sqrt(squares).map(rounded)


def _only(run: Summary, other: Summary) -> dict[str, tuple[str, ...]]:
    """Return the names with complete results in only one run."""
    return {
        words: tuple(name for name in run.means[column].unique() if name not in set(other.means[column]))
        for column, words in _NAMES.items()
    }
