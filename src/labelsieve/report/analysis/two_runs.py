"""Two runs side by side: what both have, by how much it differs, and what only one has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from labelsieve.report.analysis.cells import rounded
from labelsieve.report.analysis.summary import DIGITS, Curve, Summary, as_cost

__all__ = ["Difference", "TwoRuns", "compare_runs"]

_NAMES = ("data sets", "noises", "methods", "classifiers", "metrics")
#: Settings that may change the numbers of what both have.
_SETTINGS = ("folds", "seeds", "random_draws", "classifiers", "sizes", "metrics", "conventions")


@dataclass(frozen=True)
class Difference:
    """One metric of one method in both runs: means over what both have."""

    method: str
    classifier: str
    metric: str
    direction: Literal["higher", "lower"]
    #: Data sets under a noise.
    n_shared: int
    first: float
    second: float
    #: Standard deviation over the folds of one size on one data set, in the quadratic mean over both runs.
    fold_std: float | None

    @property
    def difference(self) -> float:
        """The second minus the first."""
        return round(self.second - self.first, DIGITS)

    @property
    def better(self) -> str:
        """Which run is better; empty for neither."""
        cost = as_cost(self.direction, np.array([self.first, self.second]))
        return "" if not self.difference else "first" if cost[0] < cost[1] else "second"

    @property
    def stands_out(self) -> bool:
        """Whether it is larger than what folds differ by."""
        return self.fold_std is not None and abs(self.difference) > self.fold_std

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "difference": self.difference, "better": self.better}


@dataclass(frozen=True)
class TwoRuns:
    """What two runs have in common, and what not."""

    #: Over the data sets and noises that both have.
    differences: tuple[Difference, ...]
    #: The same of every data set and noise: (data set, noise) -> differences.
    by_dataset: dict[tuple[str, str], tuple[Difference, ...]]
    #: "methods" and so on -> those that only the first has, and only the second.
    only_first: dict[str, tuple[str, ...]]
    only_second: dict[str, tuple[str, ...]]
    #: Settings that differ, and data sets whose data do.
    settings: tuple[str, ...]
    other_data: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "differences": [found.as_dict() for found in self.differences],
            "by_dataset": [
                {"dataset": dataset, "noise": noise, **found.as_dict()}
                for (dataset, noise), differences in self.by_dataset.items()
                for found in differences
            ],
            **{name: getattr(self, name) for name in ("only_first", "only_second", "settings", "other_data")},
        }


def compare_runs(first: Summary, second: Summary) -> TwoRuns:
    """Compare what is complete in both, at the sizes that both have."""
    pairs = {
        key: pair
        for key, curve in first.curves.items()
        if key in second.curves
        and key[-1] in first.facts.metrics
        and (pair := _shared(curve, second.curves[key])) is not None
    }
    by_dataset: dict[tuple[str, str], list[Difference]] = {}
    groups: dict[tuple[str, str, str], list[Difference]] = {}
    for (dataset, noise, method, classifier, metric), (one, other, std) in pairs.items():
        direction = first.direction(metric)
        found = Difference(method, classifier, metric, direction, 1, one, other, std)
        by_dataset.setdefault((dataset, noise), []).append(found)
        groups.setdefault((method, classifier, metric), []).append(found)
    names = [
        [tuple(dict.fromkeys(part)) for part in zip(*run.curves, strict=True)] for run in (first, second)
    ]
    settings = [run.experiment.model_dump(include={*_SETTINGS}, mode="json") for run in (first, second)]
    return TwoRuns(
        tuple(map(_mean, groups.values())),
        {place: tuple(differences) for place, differences in by_dataset.items()},
        _missing(*names),
        _missing(*reversed(names)),
        tuple(key for key in _SETTINGS if settings[0][key] != settings[1][key]),
        tuple(
            name
            for name, facts in first.datasets.items()
            if name in second.datasets and facts.checksum != second.datasets[name].checksum
        ),
    )


def _shared(first: Curve, second: Curve) -> tuple[float, float, float | None] | None:
    """Means of two curves over the sizes of both, and what folds deviate by; None without such a size."""
    points = [
        {
            (size, int(kept)): (value, std)
            for size, kept, value, std in zip(
                curve.sizes, curve.n_features, curve.values, curve.fold_std, strict=True
            )
        }
        for curve in (first, second)
    ]
    sizes = [size for size in points[0] if size in points[1]]
    if not sizes:
        return None
    values, stds = np.array([[found[size] for size in sizes] for found in points]).transpose(2, 0, 1)
    one, other = values.mean(axis=1).tolist()
    return one, other, _quadratic_mean(stds.ravel())


def _mean(differences: Sequence[Difference]) -> Difference:
    """Put the data sets of one metric of one method together."""
    known = differences[0]
    first, second = (
        float(np.mean([getattr(found, name) for found in differences])) for name in ("first", "second")
    )
    std = _quadratic_mean([np.nan if found.fold_std is None else found.fold_std for found in differences])
    return Difference(
        known.method, known.classifier, known.metric, known.direction, len(differences), first, second, std
    )


def _quadratic_mean(values: Iterable[float]) -> float | None:
    known = np.array([value for value in values if np.isfinite(value)])
    return rounded(float(np.sqrt(np.mean(known**2)))) if len(known) else None


def _missing(own: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Names that only one run has complete results of; without any, all parts are there and empty."""
    found = {}
    for place, name in enumerate(_NAMES):
        known = set(others[place]) if others else set()
        found[name] = tuple(entry for entry in (own[place] if own else ()) if entry not in known)
    return found
