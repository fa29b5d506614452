"""From cells to curves: metrics averaged over folds, seeds and draws at every size."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from labelsieve.bench.results import Results
from labelsieve.metrics import METRICS

#: Where a run has several noise rates, tables show the one nearest to this, the rate of the paper's experiment.
USUAL_RATE = 0.2
_DIGITS = 12


class Place(NamedTuple):
    """Where a method was tried: a row of a table."""

    dataset: str
    noise: str
    method: str


@dataclass(frozen=True)
class Curve:
    """One metric against the number of features; a reference without sizes has a single point."""

    sizes: tuple[float | None, ...]
    n_features: np.ndarray
    values: np.ndarray

    @property
    def mean(self) -> float:
        """Mean over the sizes, without the last digits: equal results summed in another order must tie."""
        return round(float(self.values.mean()), _DIGITS)

    @property
    def std(self) -> float | None:
        """Standard deviation over the sizes (n - 1), if there are several."""
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Gap:
    """A method on a data set that cannot be counted, because cells are missing or failed."""

    place: Place
    n_done: int
    n_failed: int
    n_planned: int


@dataclass(frozen=True)
class Coverage:
    """How much of the plan is there."""

    n_planned: int
    n_done: int
    n_failed: int
    gaps: tuple[Gap, ...]
    #: Data sets of which nothing is there.
    untouched: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every planned cell was computed without failing."""
        return self.n_done == self.n_planned


class Aggregate:
    """The curves of a run; only what is complete has any.

    Parameters
    ----------
    results : Results
        The run.
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        scored = {score.metric for score in results.scores}
        self.metrics = tuple(name for name in results.experiment.metrics if name in scored)
        self.classifiers = tuple(dict.fromkeys(score.classifier for score in results.scores))
        self.noise_rates = {cell.noise: cell.noise_rate for cell in results.cells}
        self.coverage, self._complete = _cover(results)

    @cached_property
    def curves(self) -> dict[tuple[str, str, str, str, str], Curve]:
        """Curves by data set, noise, method, classifier and metric."""
        places = [Place(cell.dataset, cell.noise, cell.method) for cell in self.results.cells]
        values: dict[tuple[str, str, str, str, str], dict[float | None, list[float]]] = {}
        n_features: dict[tuple[Place, float | None], int] = {}
        for index, classifier, size, n_kept, metric, value in self.results.scores:
            place = places[index]
            if place in self._complete:
                points = values.setdefault((*place, classifier, metric), defaultdict(list))
                points[size].append(value)
                n_features[place, size] = n_kept
        curves = {}
        for key, points in values.items():
            sizes = sorted(points, key=lambda size: -1.0 if size is None else size)
            curves[key] = Curve(
                tuple(sizes),
                np.array([n_features[Place(*key[:3]), size] for size in sizes]),
                np.array([np.mean(points[size]) for size in sizes]),
            )
        return curves

    def curve(self, place: Place, classifier: str, metric: str) -> Curve | None:
        """The curve of a method on a data set, or None where it is incomplete."""
        return self.curves.get((*place, classifier, metric))

    def usual_noise(self, dataset: str) -> str | None:
        """The noise whose results stand in the tables of a data set; None if there is none."""
        met = dict.fromkeys(cell.noise for cell in self.results.cells if cell.dataset == dataset)

        def distance(noise: str) -> float:
            rate = self.noise_rates[noise]
            return np.inf if rate is None else abs(rate - USUAL_RATE)

        return min(met, key=distance, default=None)


def as_cost(metric: str, values: np.ndarray) -> np.ndarray:
    """Turn values of a metric so that the smallest is best.

    Examples
    --------
    >>> as_cost("macro_f1", np.array([0.5, 0.25]))
    array([-0.5 , -0.25])
    """
    return -values if METRICS[metric].direction == "higher" else values


def named_with_role(results: Results, *roles: str) -> tuple[str, ...]:
    """The methods of some roles, in the configured order."""
    return tuple(name for name in results.methods if results.roles[name] in roles)


def _cover(results: Results) -> tuple[Coverage, set[Place]]:
    """Count the cells of every place; returns what is missing, and the places where nothing is."""
    done, failed = Counter[Place](), Counter[Place]()
    for cell in results.cells:
        place = Place(cell.dataset, cell.noise, cell.method)
        (done if cell.status == "done" else failed)[place] += 1
    draws: Counter[str] = Counter()
    for cell in results.cells:
        draws[cell.method] = max(draws[cell.method], cell.draw + 1)
    experiment = results.experiment
    n_repeats = len(experiment.seeds) * experiment.folds
    met = dict.fromkeys((cell.dataset, cell.noise) for cell in results.cells)
    gaps, complete = [], set()
    for dataset, noise in met:
        for method in results.methods:
            place = Place(dataset, noise, method)
            n_planned = n_repeats * max(draws[method], 1)
            if done[place] == n_planned:
                complete.add(place)
            else:
                gaps.append(Gap(place, done[place], failed[place], n_planned))
    touched = {dataset for dataset, _ in met}
    untouched = tuple(name for name in results.datasets if name not in touched)
    coverage = Coverage(results.n_planned, sum(done.values()), sum(failed.values()), tuple(gaps), untouched)
    return coverage, complete
