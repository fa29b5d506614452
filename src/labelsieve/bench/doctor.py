"""Measure how much each open convention of the protocol changes each metric, for one dataset and method."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult, Task, taught_labels
from labelsieve.bench.components import build_method, use_folder
from labelsieve.bench.config import UNRANKED, DatasetSpec, Experiment, Judge, build_experiment
from labelsieve.bench.data import DatasetFacts, Fold, describe, load_dataset, require_rows, split_fold
from labelsieve.bench.plan import Cell, has_weights, require_sizes, subset_sizes
from labelsieve.bench.results import Results, read_results
from labelsieve.bench.runner import Observer, run
from labelsieve.io import Dataset
from labelsieve.metrics import METRICS

__all__ = ["Alternative", "Diagnosis", "Effect", "Finding", "diagnose"]

#: The conventions that all others are compared with.
DEFAULTS = "protocol defaults"
#: A difference stands out if it is larger than this many standard errors.
_STANDARD_ERRORS = 2


@dataclass(frozen=True)
class Alternative:
    """One convention decided differently.

    Attributes
    ----------
    convention, choice : str
        What is open, and what is chosen instead of the default.
    words : str
        The choice as the subject of a sentence.
    changes : dict
        The entry of ``conventions`` in a configuration.
    reference : str, default=""
        The alternative it is compared with; empty for the defaults.
    obstacle : str, default=""
        Why the choice cannot be made for this data; empty if it can.
    """

    convention: str
    choice: str
    words: str
    changes: Mapping[str, Any]
    reference: str = ""
    obstacle: str = ""

    def __str__(self) -> str:
        return f"{self.convention}, {self.choice}"

    @property
    def setting(self) -> str:
        """The change as TOML."""
        places = {"noise": "noise", "classifiers": "classifiers", "rounding": "sizes.rounding"}
        return "\n".join(
            f"{places.get(key, f'conventions.{key}')} = {_toml(value)}" for key, value in self.changes.items()
        )


class Effect(NamedTuple):
    """Effect of a choice on a metric; the standard error is that of the mean difference over the folds."""

    value: float
    difference: float
    standard_error: float

    @property
    def is_none(self) -> bool:
        """Whether the values are the same in every fold."""
        return self.difference == 0 and self.standard_error == 0

    @property
    def stands_out(self) -> bool:
        """Whether the difference is larger than two standard errors."""
        return abs(self.difference) > _STANDARD_ERRORS * self.standard_error


@dataclass(frozen=True)
class Finding:
    """Effects of one alternative."""

    alternative: Alternative
    #: Metric -> mean over the sizes, an entry per fold; empty if the choice could not be made.
    values: dict[str, np.ndarray]
    #: Metric -> effect; empty if the choice could not be made.
    effects: dict[str, Effect]
    #: Whether both sides of the comparison have the same folds.
    paired: bool
    #: Why nothing changes, why it could not be computed, or what the choice means for this data.
    note: str

    @property
    def changes_something(self) -> bool:
        """Whether any metric has another value."""
        return not all(effect.is_none for effect in self.effects.values())

    @property
    def outstanding(self) -> dict[str, float]:
        """Metric -> absolute difference, if it stands out and is not only another unit."""
        return {
            metric: abs(effect.difference)
            for metric, effect in self.effects.items()
            if effect.stands_out and metric != self.alternative.convention
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "convention": self.alternative.convention,
            "choice": self.alternative.choice,
            "setting": self.alternative.setting,
            "compared_with": self.alternative.reference or "defaults",
            "applicable": bool(self.effects),
            "paired": self.paired,
            "note": self.note,
            "effects": {
                metric: {**effect._asdict(), "stands_out": effect.stands_out}
                for metric, effect in self.effects.items()
            },
        }


@dataclass(frozen=True)
class Diagnosis:
    """Effects of every open convention for one dataset and method."""

    facts: DatasetFacts
    #: The experiment whose first conventions are the defaults.
    experiment: Experiment
    #: Pairs of configured size and number of features.
    sizes: tuple[tuple[float, int], ...]
    #: Metric -> mean over the sizes with the defaults, an entry per fold.
    values: dict[str, np.ndarray]
    #: One per alternative, in the order of the protocol.
    findings: tuple[Finding, ...]
    #: Warnings of the method and the classifiers.
    warnings: tuple[str, ...]

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.experiment.methods[0].name

    def largest(self, n: int) -> list[tuple[Finding, str]]:
        """Return the findings with the largest differences that stand out, each with its strongest metric."""
        found = []
        for finding in self.findings:
            sizes = finding.outstanding
            if sizes:
                metric = max(sizes, key=sizes.__getitem__)
                found.append((sizes[metric], finding, metric))
        found.sort(key=lambda entry: -entry[0])
        return [(finding, metric) for _, finding, metric in found[:n]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
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
    """Measure the effect of every open convention of the protocol on every metric.

    This is an ordinary experiment whose conventions are the alternatives, so features are ranked again only if a
    convention changes what the method sees.

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
        Folder of relative paths and user-defined modules.
    out : Path or None, default=None
        Run folder, to resume and report the run; None keeps nothing.
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
        raise RunError(f"expected a method that ranks features, got {method!r}; see: labelsieve methods.")
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
    notes = [cell.notes for cell in results.cells] + [found.notes for found in results.judgements]
    return Diagnosis(
        facts,
        experiment,
        sizes,
        outcomes.values(DEFAULTS),
        tuple(_finding(alternative, outcomes) for alternative in alternatives),
        tuple(dict.fromkeys(note for part in notes for note in part)),
    )


class _Counting(Observer):
    """Observer that counts rankings."""

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
    """Results under every choice."""

    def __init__(self, experiment: Experiment, facts: DatasetFacts, data: Dataset, results: Results) -> None:
        self.data = data
        self._experiment = experiment
        self._facts = facts
        self._results = results
        self._judges = {judge.name: judge for judge in experiment.judges()}

    def problem(self, name: str) -> str:
        """Return the first error, or nothing."""
        return next(
            (found.error for found in self._results.judgements if found.judge == name and found.error), ""
        )

    def values(self, name: str) -> dict[str, np.ndarray]:
        """Return the mean over the sizes and draws, by metric, an entry per fold."""
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
        """List the numbers of features."""
        rounding = self._judges[name].conventions.rounding
        return ", ".join(str(count) for _, count in subset_sizes(self._experiment, self._facts, rounding))

    def candidates_per_row(self, name: str) -> float:
        """Return the mean number of candidates that the method sees per row."""
        folds = [part.Y_train for part in self._folds(self._judges[name])]
        return float(np.mean([Y.sum(dtype=np.int64) / Y.shape[0] for Y in folds]))

    def n_labels_with(self, name: str, *numbers: Literal["none", "all"]) -> float:
        """Return the mean number of labels that none, or all, of the training rows have."""
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
    """Compare a choice with the defaults, or with its reference."""
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
    """Explain what the choice means for this data."""
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


def list_alternatives(
    facts: DatasetFacts, rate: float, *, has_candidates: bool, has_weights: bool, in_numbers: bool
) -> list[Alternative]:
    """List every alternative that the protocol names, whether or not it applies.

    Noise gives nearly every label both classes and makes classifiers predict it somewhere. One-class labels and
    undefined F1 therefore matter with clean training labels, so both are compared there too.

    Parameters
    ----------
    facts : DatasetFacts
        The dataset.
    rate : float
        Rate of the noise that the alternatives are compared under.
    has_candidates : bool
        Whether the data has candidates.
    has_weights : bool
        Whether the method can be judged by its own weights.
    in_numbers : bool
        Whether sizes are numbers of features.
    """
    count = comparable_count(rate, facts)
    clean = {"train_labels": "clean"}
    on_clean = "training labels, clean"
    one_class = "a constant score for one-class labels"
    absent = "leaving out labels without a training positive"
    f1_of_1 = "an F1 of 1 where it is undefined"
    if_clean = ", when training on clean labels,"
    hard = "breaking ties by column, when ranking by 0/1 predictions,"
    entries: list[tuple[str, str, str, Mapping[str, Any]] | tuple[str, str, str, Mapping[str, Any], str]] = [
        ("noise model", f"relative {rate:g}", "noise relative to the true labels", _noise("relative", rate)),
        ("noise model", f"count {count}", f"noise of {count} labels in every row", _noise("count", count)),
        ("noise model", "given", "the noise of the data itself", {"noise": [{"model": "given"}]}),
        ("test labels", "noisy", "noise in the test labels", {"test_labels": "noisy"}),
        ("test labels", "noisy for F1", "noise in the test labels of F1", {"test_labels": "noisy-f1"}),
        ("training labels", "clean", "training on clean labels", clean),
        ("classifier", "RBF SVM", "an RBF SVM", {"classifiers": ["rbf-svm"]}),
        ("classifier", "ML-kNN", "ML-kNN", {"classifiers": ["ml-knn"]}),
        ("classifier", "own weights", "own weights", {"classifiers": ["own-weights"]}),
        ("one-class labels", "constant", one_class, {"one_class": "constant"}),
        (
            "one-class labels",
            "constant (clean)",
            one_class + if_clean,
            {**clean, "one_class": "constant"},
            on_clean,
        ),
        ("absent labels", "left out", absent, {"absent_labels": "skip"}),
        (
            "absent labels",
            "left out (clean)",
            absent + if_clean,
            {**clean, "absent_labels": "skip"},
            on_clean,
        ),
        ("ranking scores", "hard", "ranking by 0/1 predictions", {"ranking_scores": "hard"}),
        ("empty rows", "perfect", "counting empty rows as perfect", {"empty_rows": "perfect"}),
        ("ties", "by index", "breaking ties by column", {"ties": "index"}),
        (
            "ties",
            "by index (hard)",
            hard,
            {"ties": "index", "ranking_scores": "hard"},
            "ranking scores, hard",
        ),
        ("coverage", "count", "coverage in labels", {"coverage": "count"}),
        ("coverage", "one-based", "coverage from 1 on", {"coverage": "one-based"}),
        ("coverage", "excess", "coverage beyond the true labels", {"coverage": "excess"}),
        ("folds", "stratified", "stratifying the folds", {"folds": "stratified"}),
        ("folds", "consecutive", "folds of consecutive rows", {"folds": "consecutive"}),
        ("undefined F1", "1", f1_of_1, {"f1_undefined": 1}),
        ("undefined F1", "left out", "leaving undefined F1 out", {"f1_undefined": "skip"}),
        ("undefined F1", "1 (clean)", f1_of_1 + if_clean, {**clean, "f1_undefined": 1}, on_clean),
        ("rounding of sizes", "floor", "rounding sizes down", {"rounding": "floor"}),
        ("rounding of sizes", "up", "rounding sizes up", {"rounding": "up"}),
    ]
    obstacles = {
        "noise model, given": "" if has_candidates else "the data has no candidates of its own",
        "classifier, own weights": "" if has_weights else "the method has no weights for features in [0, 1]",
        **dict.fromkeys(
            ("rounding of sizes, floor", "rounding of sizes, up"),
            "sizes are numbers of features" if in_numbers else "",
        ),
    }
    found = [Alternative(*entry) for entry in entries]
    return [replace(one, obstacle=obstacles.get(str(one), "")) for one in found]


def _noise(model: str, rate: float) -> dict[str, Any]:
    return {"noise": [{"model": model, "rate": rate}]}


def comparable_count(rate: float, facts: DatasetFacts) -> int:
    """Return how many labels flipping adds to a row on average, rounded, at least one.

    Examples
    --------
    >>> yeast = DatasetFacts("yeast", 2417, 103, 14, 4.24, "", "percent")
    >>> comparable_count(0.2, yeast)  # 0.2 * (14 - 4.24)
    2
    """
    return max(1, round(rate * (facts.n_labels - facts.cardinality)))


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value)
