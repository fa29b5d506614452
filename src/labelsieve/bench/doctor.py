"""How much each open convention of the protocol changes each metric, for one data set and method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.alternatives import Alternative, list_alternatives
from labelsieve.bench.cells import CellResult, Task
from labelsieve.bench.components import build_method, use_folder
from labelsieve.bench.config import UNRANKED, DatasetSpec, Experiment, Judge, build_experiment
from labelsieve.bench.data import DatasetFacts, Fold, describe, load_dataset, require_rows, split_fold
from labelsieve.bench.judging import taught_labels
from labelsieve.bench.plan import Cell, has_weights, require_sizes, subset_sizes
from labelsieve.bench.results import Results, read_results
from labelsieve.bench.runner import Observer, run
from labelsieve.io import Dataset
from labelsieve.metrics import METRICS

__all__ = ["Diagnosis", "Effect", "Finding", "diagnose"]

#: The conventions that all others are compared with.
DEFAULTS = "protocol defaults"
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
    out: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """Measure what every open convention of the protocol does to every metric.

    This is an ordinary experiment whose conventions are the alternatives: features are ranked again only where a
    convention changes what the method sees, and a classifier is taught again only where it changes what that learns.

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
    out : Path or None, default=None
        Where to keep the run, so that it can be resumed and reported; None keeps nothing.
    progress : callable or None, default=None
        Called with the number of finished rankings and of all.

    Returns
    -------
    Diagnosis
        The baseline and a finding per alternative.

    Examples
    --------
    >>> found = diagnose("planted", "sum-f", folds=2)
    >>> [str(finding.alternative) for finding in found.findings if not finding.effects]
    ['noise model, given', 'classifier, own weights']
    """
    spec = DatasetSpec(name=dataset) if isinstance(dataset, str) else dataset
    if method in UNRANKED:
        raise RunError(f"a method that ranks features was expected, got {method!r}; see: labelsieve methods.")
    settings: dict[str, Any] = {
        "name": "doctor",
        "title": f"Open conventions on {spec.name}",
        "seeds": [seed],
        "folds": folds,
        "datasets": [spec.model_dump()],
        "methods": [method],
        "sizes": {"counts": {spec.name: list(counts)}} if counts else {"percent": list(percent)},
        "folder": folder,
    }
    baseline = build_experiment(settings, "doctor")
    use_folder(baseline)
    data = load_dataset(spec, folder)
    facts = describe(spec, data, baseline)
    require_rows(folds, facts.name, facts.n_samples)
    sizes = require_sizes(baseline, facts)
    rate = baseline.noise[0].rate
    assert rate is not None
    alternatives = list_alternatives(
        facts,
        rate,
        has_candidates=data.Y_candidates is not None,
        has_weights=has_weights(build_method(baseline.methods[0])),
        in_numbers=bool(counts),
    )
    entries = [
        {"name": str(alternative), **alternative.changes}
        for alternative in alternatives
        if not alternative.obstacle
    ]
    experiment = build_experiment({**settings, "conventions": [{"name": DEFAULTS}, *entries]}, "doctor")
    with TemporaryDirectory() as temporary:
        place = out or Path(temporary)
        run(experiment, place, _Counting(progress), jobs=jobs, command="labelsieve bench doctor")
        results = read_results(place)
    outcomes = _Outcomes(experiment, facts, data, results)
    problem = outcomes.problem(DEFAULTS)
    if problem:
        raise RunError(f"{facts.name}, {method}: {problem}")
    told = [record.notes for record in results.cells] + [record.notes for record in results.judgements]
    return Diagnosis(
        facts,
        experiment,
        sizes,
        outcomes.values(DEFAULTS),
        tuple(_finding(alternative, outcomes) for alternative in alternatives),
        tuple(dict.fromkeys(note for notes in told for note in notes)),
    )


class _Counting(Observer):
    """Counts rankings for who wants to know."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        self._progress = progress
        self._n_tasks = self._n_finished = 0

    def planned(self, cells: Sequence[Cell], outcomes: dict[str, bool], tasks: Sequence[Task]) -> None:
        self._n_tasks = len(tasks)

    def finished(self, task: Task, result: CellResult) -> None:
        self._n_finished += 1
        if self._progress is not None:
            self._progress(self._n_finished, self._n_tasks)


class _Outcomes:
    """What the rankings gave under every choice."""

    def __init__(self, experiment: Experiment, facts: DatasetFacts, data: Dataset, results: Results) -> None:
        self.data = data
        self._experiment = experiment
        self._facts = facts
        self._results = results
        self._judges = {judge.name: judge for judge in experiment.judges()}

    def problem(self, name: str) -> str:
        """What went wrong first; empty if nothing did."""
        return next(
            (found.error for found in self._results.judgements if found.judge == name and found.error), ""
        )

    def values(self, name: str) -> dict[str, np.ndarray]:
        """Metric -> values, an entry per fold: the mean over the sizes and over the draws of a random method."""
        found: dict[str, dict[int, list[float]]] = {metric: {} for metric in self._experiment.metric_names}
        for score in self._results.scores:
            if score.judge == name:
                fold = self._results.cells[score.cell].fold
                found[score.metric].setdefault(fold, []).append(score.value)
        return {
            metric: np.array([np.mean(values) for _, values in sorted(folds.items())])
            for metric, folds in found.items()
        }

    def sizes(self, name: str) -> str:
        """Numbers of features, in words."""
        rounding = self._judges[name].conventions.rounding
        return ", ".join(str(count) for _, count in subset_sizes(self._experiment, self._facts, rounding))

    def candidates_per_row(self, name: str) -> float:
        """Candidates that the method sees, on average."""
        folds = [part.Y_train for part in self._folds(self._judges[name])]
        return float(np.mean([Y.sum(dtype=np.int64) / Y.shape[0] for Y in folds]))

    def n_labels_with(self, name: str, *numbers: Literal["none", "all"]) -> float:
        """Labels that none, or all, of the rows have that the classifier learns from, on average."""
        judge = self._judges[name]
        counts = []
        for part in self._folds(judge):
            Y = taught_labels(part, judge.conventions)
            wanted = {"none": 0, "all": Y.shape[0]}
            n_rows = np.asarray(Y.sum(axis=0, dtype=np.int64)).ravel()
            counts.append(np.isin(n_rows, [wanted[number] for number in numbers]).sum())
        return float(np.mean(counts))

    def _folds(self, judge: Judge) -> Iterator[Fold]:
        (spec,), (seed,) = self._experiment.datasets, self._experiment.seeds
        noise = (judge.conventions.noise or self._experiment.noise)[0]
        for fold in range(self._experiment.folds):
            yield split_fold(self._experiment, spec, noise, seed, fold, split=judge.conventions.folds)


def _finding(alternative: Alternative, outcomes: _Outcomes) -> Finding:
    """Compare a choice with the defaults, or with its own reference."""
    paired = alternative.convention != "folds"
    name, other = str(alternative), alternative.reference or DEFAULTS
    problem = alternative.obstacle or outcomes.problem(name) or outcomes.problem(other)
    if problem:
        return Finding(alternative, {}, {}, paired, problem)
    values, reference = outcomes.values(name), outcomes.values(other)
    effects = {metric: _compare(values[metric], reference[metric], paired) for metric in values}
    return Finding(alternative, values, effects, paired, _note(alternative, name, other, outcomes))


def _compare(values: np.ndarray, reference: np.ndarray, paired: bool) -> Effect:
    spreading = [values - reference] if paired else [values, reference]
    variance = sum(np.var(part, ddof=1) for part in spreading) / len(values)
    return Effect(float(values.mean()), float(values.mean() - reference.mean()), float(np.sqrt(variance)))


def _note(alternative: Alternative, name: str, other: str, outcomes: _Outcomes) -> str:
    """Say what the choice means for this data."""
    match alternative.convention:
        case "noise model":
            here, there = outcomes.candidates_per_row(name), outcomes.candidates_per_row(other)
            how = "as many as the default adds on average, rounded; " if "count" in alternative.choice else ""
            return f"{how}{here:.2f} candidates per row, {there:.2f} by default"
        case "one-class labels":
            return _note_on_labels(outcomes.n_labels_with(name, "none", "all"), "one class")
        case "absent labels":
            return _note_on_labels(outcomes.n_labels_with(name, "none"), "no positive")
        case "empty rows":
            data = outcomes.data
            n_empty = int((np.asarray(data.Y.sum(axis=1)) == 0).sum())  # type: ignore[union-attr]
            return f"{n_empty} of {data.X.shape[0]} rows have no true label"
        case "ties":
            values, reference = outcomes.values(name), outcomes.values(other)
            same = all(np.array_equal(values[metric], reference[metric]) for metric in values)
            return "no true and false label have equal scores" if same else ""
        case "coverage" if alternative.choice == "count":
            return "another unit: labels from 1 on, not a share"
        case "folds":
            return "other folds, so the comparison is not paired"
        case "undefined F1" if alternative.changes["f1_undefined"] == 1:
            same = np.array_equal(outcomes.values(name)["macro_f1"], outcomes.values(other)["macro_f1"])
            return "every label is true or predicted somewhere in every test part" if same else ""
        case "rounding of sizes":
            kept, usual = outcomes.sizes(name), outcomes.sizes(other)
            return "the same numbers of features" if kept == usual else f"{kept} instead of {usual} features"
    return ""


def _note_on_labels(n_labels: float, what: str) -> str:
    if not n_labels:
        return f"no label has {what} in a training part"
    return f"{n_labels:.1f} labels have {what} in a training part, on average"
