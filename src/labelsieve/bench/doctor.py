"""How much each open convention of the protocol changes each metric, for one data set and method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.alternatives import Alternative, list_alternatives, vary
from labelsieve.bench.choices import Outcome, run_choices
from labelsieve.bench.components import use_folder
from labelsieve.bench.config import (
    ALL_FEATURES,
    NO_FEATURES,
    DatasetSpec,
    Experiment,
    build_experiment,
)
from labelsieve.bench.data import DatasetFacts, describe, load_dataset
from labelsieve.bench.plan import plan, subset_sizes
from labelsieve.datasets import Dataset
from labelsieve.metrics import METRICS

__all__ = ["Diagnosis", "Effect", "Finding", "diagnose"]

#: A difference stands out when it is more than this many standard errors.
_STANDARD_ERRORS = 2


class Effect(NamedTuple):
    """What a choice does to a metric.

    The standard error is that of the mean difference over the folds, fold by fold where both sides
    have the same folds.
    """

    value: float
    difference: float
    standard_error: float

    @property
    def is_none(self) -> bool:
        """Whether the values are the same in every fold, not only on average."""
        return self.difference == 0 and self.standard_error == 0

    @property
    def stands_out(self) -> bool:
        """Whether the difference is more than two standard errors."""
        return abs(self.difference) > _STANDARD_ERRORS * self.standard_error


@dataclass(frozen=True)
class Finding:
    """What one alternative does.

    Attributes
    ----------
    alternative : Alternative
        The convention and the choice.
    values : dict
        Metric -> mean over the sizes, an entry per fold; empty if the choice could not be made.
    effects : dict
        Metric -> what it does; empty if the choice could not be made.
    paired : bool
        Whether the folds are those of the other side of the comparison.
    note : str
        Why nothing changes, why it could not be computed, or what the choice means for this data.
    """

    alternative: Alternative
    values: dict[str, np.ndarray]
    effects: dict[str, Effect]
    paired: bool
    note: str

    @property
    def changes_something(self) -> bool:
        """Whether any metric has another value."""
        return not all(effect.is_none for effect in self.effects.values())

    @property
    def outstanding(self) -> dict[str, float]:
        """Metric -> size of its difference, where that stands out and is no matter of the unit."""
        return {
            metric: abs(effect.difference)
            for metric, effect in self.effects.items()
            if effect.stands_out and metric != self.alternative.convention
        }

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        effects = {
            metric: {**effect._asdict(), "stands_out": effect.stands_out}
            for metric, effect in self.effects.items()
        }
        return {
            "convention": self.alternative.convention,
            "choice": self.alternative.choice,
            "setting": self.alternative.setting,
            "compared_with": self.alternative.reference or "defaults",
            "applicable": bool(self.effects),
            "paired": self.paired,
            "note": self.note,
            "effects": effects,
        }


@dataclass(frozen=True)
class Diagnosis:
    """How much every open convention matters for one data set and method.

    Attributes
    ----------
    facts : DatasetFacts
        The data set.
    experiment : Experiment
        The defaults that everything is compared with.
    sizes : tuple
        Pairs of configured size and number of features.
    values : dict
        Metric -> mean over the sizes with the defaults, an entry per fold.
    findings : tuple of Finding
        One per alternative, in the order of the protocol.
    warnings : tuple of str
        What the method and the classifiers warned of.
    """

    facts: DatasetFacts
    experiment: Experiment
    sizes: tuple[tuple[float, int], ...]
    values: dict[str, np.ndarray]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.experiment.methods[0].name

    def largest(self, n: int) -> list[tuple[Finding, str]]:
        """The findings with the largest differences that stand out, each with the metric it changes most."""
        found = []
        for finding in self.findings:
            sizes = finding.outstanding
            if sizes:
                metric = max(sizes, key=sizes.__getitem__)
                found.append((sizes[metric], finding, metric))
        found.sort(key=lambda entry: -entry[0])
        return [(finding, metric) for _, finding, metric in found[:n]]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "dataset": self.facts.as_dict(),
            "method": self.method,
            "seed": self.experiment.seeds[0],
            "folds": self.experiment.folds,
            "sizes": [{"size": size, "n_features": count} for size, count in self.sizes],
            "metrics": {metric: METRICS[metric].direction for metric in self.values},
            "baseline": {
                metric: {"value": float(values.mean()), "std_over_folds": float(values.std(ddof=1))}
                for metric, values in self.values.items()
            },
            "findings": [finding.as_dict() for finding in self.findings],
            "warnings": list(self.warnings),
        }


def diagnose(
    dataset: str | DatasetSpec,
    method: str = "pml-fsmir",
    *,
    folds: int = 3,
    seed: int = 0,
    percent: Sequence[float] = (10,),
    counts: Sequence[int] = (),
    jobs: int = 1,
    folder: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """Measure what every open convention of the protocol does to every metric.

    Features are ranked again only where the convention changes what the method sees, and a classifier is
    taught again only where the convention changes what it learns.

    Parameters
    ----------
    dataset : str or DatasetSpec
        A name of the catalogue, ``"digits"``, ``"planted"``, or files.
    method : str, default="pml-fsmir"
        A slug or an import path ``package.module:Class``.
    folds : int, default=3
        Folds of the cross-validation.
    seed : int, default=0
        Seed of folds, noise and method.
    percent : sequence of float, default=(10,)
        Sizes in percent of the features.
    counts : sequence of int, default=()
        Sizes in numbers of features, instead of percentages.
    jobs : int, default=1
        Processes; the result does not depend on it.
    folder : str or None, default=None
        Where relative paths and own modules are looked for.
    progress : callable or None, default=None
        Called with the number of finished parts and of all parts.

    Returns
    -------
    Diagnosis
        The baseline and a finding per alternative.

    Examples
    --------
    >>> found = diagnose("planted", "sum-f", folds=2)
    >>> [str(finding.alternative) for finding in found.findings if not finding.effects]
    ['noise model, given']
    """
    spec = DatasetSpec(name=dataset) if isinstance(dataset, str) else dataset
    baseline = _baseline(spec, method, folds, seed, percent, counts, folder)
    use_folder(baseline)
    data = load_dataset(spec, folder)
    facts = describe(spec, data, baseline)
    alternatives = list_alternatives(baseline, facts, data.Y_candidates is not None)
    experiments = {"": baseline}
    for alternative in alternatives:
        if not alternative.obstacle:
            experiments[str(alternative)] = vary(baseline, alternative.changes)
    plans = {name: plan(experiment, facts={spec.name: facts}) for name, experiment in experiments.items()}
    sizes = {name: subset_sizes(experiment, facts) for name, experiment in experiments.items()}
    if not sizes[""]:
        raise RunError(
            f"sizes: numbers up to the {facts.n_features} features of {facts.name} were expected, got "
            f"{', '.join(map(str, counts))}."
        )
    outcomes, told = run_choices(experiments, plans, jobs, progress)
    if outcomes[""].error:
        raise RunError(f"{facts.name}, {method}: {outcomes[''].error}")
    return Diagnosis(
        facts,
        baseline,
        sizes[""],
        outcomes[""].by_fold(),
        tuple(_finding(alternative, outcomes, sizes, data) for alternative in alternatives),
        told,
    )


def _baseline(
    spec: DatasetSpec,
    method: str,
    folds: int,
    seed: int,
    percent: Sequence[float],
    counts: Sequence[int],
    folder: str | None,
) -> Experiment:
    """The protocol's defaults."""
    if method in (NO_FEATURES, ALL_FEATURES):
        raise RunError(f"a method that ranks features was expected, got {method!r}; see: labelsieve methods.")
    sizes = {"counts": {spec.name: list(counts)}} if counts else {"percent": list(percent)}
    settings = {
        "name": "doctor",
        "seeds": [seed],
        "folds": folds,
        "datasets": [spec.model_dump()],
        "methods": [method],
        "sizes": sizes,
        "folder": folder,
    }
    return build_experiment(settings, "doctor")


def _finding(
    alternative: Alternative,
    outcomes: Mapping[str, Outcome],
    sizes: Mapping[str, Sequence[tuple[float, int]]],
    data: Dataset,
) -> Finding:
    """Compare a choice with the defaults, or with its own reference."""
    paired = alternative.convention != "folds"
    outcome = outcomes.get(str(alternative), Outcome())
    other = outcomes[alternative.reference]
    problem = alternative.obstacle or outcome.error or other.error
    if problem:
        return Finding(alternative, {}, {}, paired, problem)
    values, reference = outcome.by_fold(), other.by_fold()
    effects = {metric: _compare(values[metric], reference[metric], paired) for metric in values}
    note = _note(alternative, outcome, other, sizes, data)
    return Finding(alternative, values, effects, paired, note)


def _compare(values: np.ndarray, reference: np.ndarray, paired: bool) -> Effect:
    spreading = [values - reference] if paired else [values, reference]
    variance = sum(np.var(part, ddof=1) for part in spreading) / len(values)
    return Effect(float(values.mean()), float(values.mean() - reference.mean()), float(np.sqrt(variance)))


def _note(
    alternative: Alternative,
    outcome: Outcome,
    other: Outcome,
    sizes: Mapping[str, Sequence[tuple[float, int]]],
    data: Dataset,
) -> str:
    """Say what the choice means for this data."""
    match alternative.convention:
        case "noise model":
            return _note_on_noise(alternative, outcome, other)
        case "one-class labels":
            return _note_on_one_class(outcome)
        case "empty rows":
            n_empty = int((np.asarray(data.Y.sum(axis=1)) == 0).sum())  # type: ignore[union-attr]
            return f"{n_empty} of {data.X.shape[0]} rows have no true label"
        case "coverage":
            return "another unit: labels from 1 on, not a share"
        case "folds":
            return "other folds, so the comparison is not paired"
        case "undefined F1" if alternative.changes["conventions"]["f1_undefined"] == 1:
            same = np.array_equal(outcome.by_fold()["macro_f1"], other.by_fold()["macro_f1"])
            return "every label is true or predicted somewhere in every test part" if same else ""
        case "rounding of sizes":
            return _note_on_sizes(sizes[str(alternative)], sizes[""])
    return ""


def _note_on_noise(alternative: Alternative, outcome: Outcome, other: Outcome) -> str:
    here, there = outcome.mean("candidates_per_row"), other.mean("candidates_per_row")
    how = "as many as the default adds on average, rounded; " if "count" in alternative.choice else ""
    return f"{how}{here:.2f} candidates per row, {there:.2f} by default"


def _note_on_one_class(outcome: Outcome) -> str:
    n_one_class = outcome.mean("n_one_class")
    if not n_one_class:
        return "no label has one class in a training part"
    return f"{n_one_class:.1f} labels have one class in a training part, on average"


def _note_on_sizes(*choices: Sequence[tuple[float, int]]) -> str:
    floor, default = (", ".join(str(count) for _, count in sizes) for sizes in choices)
    return "the same numbers of features" if floor == default else f"{floor} instead of {default} features"
