"""What changes when one thing is varied: the noise, a part of a method, a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any

import numpy as np

from labelsieve.report.analysis.cells import Place
from labelsieve.report.analysis.summary import DIGITS, Summary, as_cost


@dataclass(frozen=True)
class NoiseCurve:
    """One metric of one method on one data set against the noise rate."""

    dataset: str
    model: str
    method: str
    metric: str
    rates: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Ablation:
    """Variants of a method, the first of them whole; values of shape (n_datasets, n_variants), NaN for gaps."""

    classifier: str
    metric: str
    datasets: tuple[str, ...]
    variants: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True)
class Effect:
    """What a variant loses against another that has one part more, under one judge."""

    classifier: str
    fuller: str
    lesser: str
    #: What the lesser one sets that the fuller one does not, in words.
    taken_away: str
    #: Metric -> by how much the fuller one is better, on every data set that has both.
    gains: dict[str, np.ndarray]

    @property
    def all_gains(self) -> np.ndarray:
        """The same over all metrics."""
        return np.concatenate(list(self.gains.values()))


@dataclass(frozen=True)
class Sweep:
    """One metric of a method on one data set at every combination of one or two parameters."""

    method: str
    parameters: tuple[str, ...]
    #: Values of each parameter, rising.
    grid: tuple[tuple[Any, ...], ...]
    classifier: str
    dataset: str
    metric: str
    #: One axis a parameter; NaN for gaps.
    values: np.ndarray

    @property
    def is_numeric(self) -> bool:
        """Whether the values of all its parameters are numbers."""
        values = [value for axis in self.grid for value in axis]
        return all(isinstance(value, Real) and not isinstance(value, bool) for value in values)

    def setting(self, spot: int) -> list[str]:
        """The parameters at one place of the flattened grid, in words."""
        places = np.unravel_index(spot, self.values.shape)
        return [
            f"{name} = {axis[place]}"
            for name, axis, place in zip(self.parameters, self.grid, places, strict=True)
        ]


def noise_curves(summary: Summary, methods: Sequence[str], classifier: str) -> tuple[NoiseCurve, ...]:
    """Follow every method over the rates of each noise model that has several."""
    models: dict[str, list[tuple[float, str]]] = {}
    for noise, rate in summary.facts.noise_rates.items():
        if rate is not None:
            models.setdefault(noise.rsplit(" ", 1)[0], []).append((rate, noise))
    curves = []
    for model, levels in models.items():
        for dataset in summary.datasets:
            for method in methods:
                for metric in summary.facts.metrics:
                    points = [
                        (rate, curve.mean)
                        for rate, noise in sorted(levels)
                        if (curve := summary.curve(Place(dataset, noise, method), classifier, metric))
                    ]
                    if len(points) > 1:
                        rates, values = zip(*points, strict=True)
                        curves.append(NoiseCurve(dataset, model, method, metric, rates, values))
    return tuple(curves)


def ablations(summary: Summary, classifiers: Sequence[str], noise: dict[str, str]) -> tuple[Ablation, ...]:
    """Collect the variants of an ablation, by classifier and metric; empty if the run has fewer than two."""
    variants = summary.named_with_role("ablation")
    if len(variants) < 2:
        return ()
    return tuple(
        Ablation(
            classifier,
            metric,
            tuple(noise),
            variants,
            np.array(
                [
                    [_mean(summary, Place(dataset, level, name), classifier, metric) for name in variants]
                    for dataset, level in noise.items()
                ]
            ),
        )
        for classifier in classifiers
        for metric in summary.facts.metrics
    )


def effects(summary: Summary, found: Sequence[Ablation]) -> tuple[Effect, ...]:
    """Compare the whole method with every variant, and variants that differ in one parameter with each other."""
    if not found:
        return ()
    params = {method.name: method.params for method in summary.experiment.all_methods()}
    names = found[0].variants
    judges = dict.fromkeys(ablation.classifier for ablation in found)
    compared = []
    for judge, fuller, lesser in product(judges, names, names):
        # Taken away is what only the lesser one sets.
        differing = {
            name: value for name, value in params[lesser].items() if params[fuller].get(name) != value
        }
        is_one_part = len(differing) == 1 and set(params[fuller]) == set(params[lesser]) - set(differing)
        if fuller == lesser or not (fuller == names[0] or is_one_part):
            continue
        gains = {}
        for ablation in found:
            if ablation.classifier == judge:
                cost = as_cost(summary.direction(ablation.metric), ablation.values)
                gain = np.round(cost[:, names.index(lesser)] - cost[:, names.index(fuller)], DIGITS)
                gains[ablation.metric] = gain[np.isfinite(gain)]
        words = ", ".join(f"{name} = {str(value).lower()}" for name, value in differing.items())
        effect = Effect(judge, fuller, lesser, words, gains)
        compared += [effect] if effect.all_gains.size else []
    return tuple(compared)


def sweeps(summary: Summary, classifiers: Sequence[str], noise: dict[str, str]) -> tuple[Sweep, ...]:
    """Collect sweeps of one or two parameters, by classifier, data set and metric."""
    # (method, parameters) -> settings -> display name
    groups: dict[tuple[str, tuple[str, ...]], dict[tuple[Any, ...], str]] = {}
    for sweep in summary.experiment.sweeps:
        varied = tuple(sweep.parameters)
        names = groups.setdefault((sweep.method, varied), {})
        for method in sweep.methods():
            names[tuple(method.params[parameter] for parameter in varied)] = method.name
    found = []
    for (slug, varied), names in groups.items():
        if len(varied) > 2:
            continue
        grid = tuple(_rising(column) for column in zip(*names, strict=True))
        for classifier, (dataset, level), metric in product(
            classifiers, noise.items(), summary.facts.metrics
        ):
            values = np.full([len(axis) for axis in grid], np.nan)
            for settings, name in names.items():
                spot = tuple(axis.index(value) for axis, value in zip(grid, settings, strict=True))
                values[spot] = _mean(summary, Place(dataset, level, name), classifier, metric)
            if np.isfinite(values).any():
                found.append(Sweep(slug, varied, grid, classifier, dataset, metric, values))
    return tuple(found)


def whole_sweeps(found: Sequence[Sweep]) -> dict[tuple[str, str, tuple[str, ...]], list[Sweep]]:
    """Judge, method and parameters -> the sweeps without gaps, one a data set and metric."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[Sweep]] = {}
    for sweep in found:
        if np.isfinite(sweep.values).all() and sweep.values.size > 1:
            groups.setdefault((sweep.classifier, sweep.method, sweep.parameters), []).append(sweep)
    return groups


def setting_costs(summary: Summary, found: Sequence[Sweep]) -> np.ndarray:
    """What each setting of some sweeps over the same ones costs, a row for every sweep."""
    return np.array([as_cost(summary.direction(sweep.metric), sweep.values).ravel() for sweep in found])


def _rising(values: Sequence[Any]) -> tuple[Any, ...]:
    """Distinct values in order; what has no order stays as it came."""
    distinct = tuple(dict.fromkeys(values))
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return distinct


def _mean(summary: Summary, place: Place, classifier: str, metric: str) -> float:
    curve = summary.curve(place, classifier, metric)
    return np.nan if curve is None else curve.mean
