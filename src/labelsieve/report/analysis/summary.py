"""What a run comes down to: metrics averaged over folds, seeds and draws, and the facts beside them.

Every number of a report is computed from a summary, be it made of the results of a run or read from a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from labelsieve.bench.config import Experiment
from labelsieve.bench.results import CellRecord, DatasetFacts, Results, RunRecord
from labelsieve.report.analysis.cells import (
    Cost,
    Coverage,
    Descent,
    Failure,
    Note,
    Place,
    Stability,
    collect_descents,
    collect_failures,
    collect_notes,
    cover,
    measure_costs,
    measure_stability,
    rounded,
)

__all__ = ["Curve", "Facts", "Summary", "as_cost", "summarise"]

#: Where a run has several noise rates, tables show the one nearest to this, the rate of the paper's experiment.
USUAL_RATE = 0.2
#: Digits of means and differences: what sums in another order differ by must not count.
DIGITS = 12

#: Data set, noise, method, classifier, metric.
CurveKey = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Curve:
    """One metric against the number of features; a reference without sizes has a single point."""

    sizes: tuple[float | None, ...]
    n_features: np.ndarray
    values: np.ndarray
    #: Standard deviation over folds and seeds (n - 1) at each size, of means over draws; NaN for a single fold.
    fold_std: np.ndarray

    @property
    def mean(self) -> float:
        """Mean over the sizes, without the last digits: equal results summed in another order must tie."""
        return round(float(self.values.mean()), DIGITS)

    @property
    def std(self) -> float | None:
        """Standard deviation over the sizes (n - 1), if there are several."""
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else None

    @property
    def mean_fold_std(self) -> float | None:
        """Standard deviation over folds at one size, pooled over the sizes (root mean square); None for one fold."""
        is_known = np.isfinite(self.fold_std).all()
        return float(np.sqrt(np.mean(self.fold_std**2))) if is_known else None


@dataclass(frozen=True)
class Facts:
    """All of a summary but its curves, in values that JSON can hold."""

    datasets: tuple[DatasetFacts, ...]
    #: What was scored, in the configured order, and by which classifiers; where there are several conventions, these
    #: are names of a classifier under some of them.
    metrics: tuple[str, ...]
    classifiers: tuple[str, ...]
    #: Noise -> its rate, where it has one.
    noise_rates: dict[str, float | None]
    #: Data sets and the noises met there.
    conditions: tuple[tuple[str, str], ...]
    #: Data set -> the noise whose results stand in its tables.
    usual_noise: dict[str, str]
    coverage: Coverage
    costs: tuple[Cost, ...]
    stability: tuple[Stability, ...]
    descents: tuple[Descent, ...]
    failures: tuple[Failure, ...]
    notes: tuple[Note, ...]
    #: Calls of the runner; configuration, without its folder, and environment are kept of the last alone.
    runs: tuple[RunRecord, ...]
    #: Stored cells whose numbers are not those that were written.
    n_altered: int


@dataclass(frozen=True)
class Summary:
    """What a run comes down to; only what is complete has curves."""

    experiment: Experiment
    facts: Facts
    curves: dict[CurveKey, Curve]

    @cached_property
    def datasets(self) -> dict[str, DatasetFacts]:
        """The data sets by name."""
        return {facts.name: facts for facts in self.facts.datasets}

    def curve(self, place: Place, classifier: str, metric: str) -> Curve | None:
        """The curve of a method on a data set, or None where it is incomplete."""
        return self.curves.get((*place, classifier, metric))

    def direction(self, metric: str) -> Literal["higher", "lower"]:
        """Which values of a metric are better."""
        return self.experiment.directions[metric]

    def named_with_role(self, *roles: str) -> tuple[str, ...]:
        """The methods of some roles, in the configured order."""
        return _named_with_role(self.experiment, *roles)

    @property
    def compared(self) -> tuple[str, ...]:
        """The methods that are ranked: those proper, or the variants of an ablation."""
        return _compared(self.experiment)

    @property
    def references(self) -> tuple[str, ...]:
        """What they are held against."""
        return self.named_with_role("reference")


def summarise(results: Results) -> Summary:
    """Average the results of a run, complete or not, and keep what a report needs besides."""
    # Summaries are published; where a configuration lay on somebody's machine is no part of them.
    experiment, cells = results.experiment.model_copy(update={"folder": None}), results.cells
    coverage, complete = cover(results)
    curves = _average(results, complete)
    scored = {score.metric for score in results.scores}
    metrics = tuple(name for name in experiment.metric_names if name in scored)
    judged = {score.judge for score in results.scores}
    classifiers = tuple(judge.name for judge in experiment.judges() if judge.name in judged)
    rates = {cell.noise: cell.noise_rate for cell in cells}
    usual = _usual_noise(results.datasets, cells, rates)
    compared = _compared(experiment)
    shown = (*compared, *_named_with_role(experiment, "reference"))
    sizes = _sizes(curves, usual, shown, classifiers[:1], metrics[:1])
    *earlier, last = results.runs
    facts = Facts(
        datasets=tuple(results.datasets.values()),
        metrics=metrics,
        classifiers=classifiers,
        noise_rates=rates,
        conditions=tuple(dict.fromkeys((cell.dataset, cell.noise) for cell in cells)),
        usual_noise=usual,
        coverage=coverage,
        costs=measure_costs(cells),
        stability=measure_stability(results, sizes, classifiers[:1]),
        descents=collect_descents(cells, compared),
        failures=collect_failures(results),
        notes=collect_notes(results),
        runs=(
            *(replace(run, configuration={}, environment={}) for run in earlier),
            replace(last, configuration={**last.configuration, "folder": None}),
        ),
        n_altered=results.n_altered,
    )
    return Summary(experiment, facts, curves)


def as_cost(direction: Literal["higher", "lower"], values: np.ndarray) -> np.ndarray:
    """Turn values of a metric so that the smallest is best.

    Examples
    --------
    >>> as_cost("higher", np.array([0.5, 0.25]))
    array([-0.5 , -0.25])
    """
    return -values if direction == "higher" else values


class _Score(NamedTuple):
    """One value of a metric, and of which repetition."""

    seed: int
    fold: int
    draw: int
    value: float


def _average(results: Results, complete: set[tuple[Place, str]]) -> dict[CurveKey, Curve]:
    """Average what is complete over folds, seeds and draws; curves stand in the order of the plan."""
    places = [Place(cell.dataset, cell.noise, cell.method) for cell in results.cells]
    scores: dict[CurveKey, dict[float | None, list[_Score]]] = {}
    n_features: dict[tuple[Place, str, float | None], int] = {}
    for index, classifier, size, n_kept, metric, value in results.scores:
        place, cell = places[index], results.cells[index]
        if (place, classifier) in complete:
            points = scores.setdefault((*place, classifier, metric), {})
            points.setdefault(size, []).append(_Score(cell.seed, cell.fold, cell.draw, value))
            n_features[place, classifier, size] = n_kept
    curves = {}
    keys = ((*planned, metric) for planned in results.planned for metric in results.experiment.metric_names)
    for key in filter(scores.__contains__, keys):
        points = scores[key]
        sizes = sorted(points, key=lambda size: -1.0 if size is None else size)
        curves[key] = Curve(
            tuple(sizes),
            np.array([n_features[Place(*key[:3]), key[3], size] for size in sizes]),
            # In order: the last digits must not depend on which cell was finished first.
            np.array([np.mean([score.value for score in sorted(points[size])]) for size in sizes]),
            np.array([_fold_std(points[size]) for size in sizes]),
        )
    return curves


def _fold_std(scores: Iterable[_Score]) -> float:
    folds: dict[tuple[int, int], list[float]] = {}
    for seed, fold, _, value in sorted(scores):
        folds.setdefault((seed, fold), []).append(value)
    means = [np.mean(draws) for draws in folds.values()]
    return rounded(float(np.std(means, ddof=1))) if len(means) > 1 else np.nan


def _usual_noise(
    datasets: Iterable[str], cells: Iterable[CellRecord], rates: Mapping[str, float | None]
) -> dict[str, str]:
    """Choose the noise whose results stand in the tables, for data sets of which there is anything."""

    def distance(noise: str) -> float:
        rate = rates[noise]
        return np.inf if rate is None else abs(rate - USUAL_RATE)

    met: dict[str, dict[str, None]] = {}
    for cell in cells:
        met.setdefault(cell.dataset, {})[cell.noise] = None
    return {name: min(met[name], key=distance) for name in datasets if name in met}


def _sizes(
    curves: Mapping[CurveKey, Curve],
    usual_noise: Mapping[str, str],
    methods: Iterable[str],
    classifiers: Iterable[str],
    metrics: Iterable[str],
) -> dict[Place, list[int]]:
    """Numbers of features by place, where a method ranks features."""
    places = [Place(dataset, noise, method) for dataset, noise in usual_noise.items() for method in methods]
    found = {
        place: curves[*place, classifier, metric]
        for place in places
        for classifier in classifiers
        for metric in metrics
        if (*place, classifier, metric) in curves
    }
    return {place: curve.n_features.tolist() for place, curve in found.items() if None not in curve.sizes}


def _named_with_role(experiment: Experiment, *roles: str) -> tuple[str, ...]:
    return tuple(method.name for method in experiment.all_methods() if method.role in roles)


def _compared(experiment: Experiment) -> tuple[str, ...]:
    return _named_with_role(experiment, "method") or _named_with_role(experiment, "ablation")
