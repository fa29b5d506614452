"""Measure the effect of each protocol convention on the metrics for one dataset and method."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.components import build_method, use_folder
from labelsieve.bench.config import UNRANKED, DatasetSpec, Experiment, build_experiment
from labelsieve.bench.data import DatasetFacts, describe, load_dataset
from labelsieve.bench.plan import has_weights, subset_sizes
from labelsieve.bench.results import Results, read_results
from labelsieve.bench.runner import Observer, run
from labelsieve.metrics import METRICS

#: Name of the conventions that alternatives are compared with.
DEFAULTS = "protocol defaults"
#: Larger differences, in standard errors, stand out.
_STANDARD_ERRORS = 2


class Effect(NamedTuple):
    """Effect of an alternative on a metric, with the standard error of the mean difference over folds."""

    value: float
    difference: float
    standard_error: float

    @property
    def is_none(self) -> bool:
        """Return True if the values are equal in all folds."""
        return self.difference == 0 and self.standard_error == 0

    @property
    def stands_out(self) -> bool:
        """Return True if the difference is larger than two standard errors."""
        return abs(self.difference) > _STANDARD_ERRORS * self.standard_error


@dataclass(frozen=True)
class Finding:
    """Alternative for a convention and its effects."""

    convention: str
    choice: str
    #: Entry of ``conventions`` in a configuration.
    changes: Mapping[str, Any]
    #: Name of the finding to compare with, empty for the defaults.
    reference: str = ""
    #: Explanation of the alternative, or the reason why it failed.
    note: str = ""
    #: Reason why the alternative does not apply to these data, empty if it does.
    obstacle: str = ""
    #: Metric -> mean over the sizes for each fold; empty if not applicable.
    values: dict[str, np.ndarray] = field(default_factory=dict)
    #: Metric -> effect; empty if not applicable.
    effects: dict[str, Effect] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.convention}, {self.choice}"

    @property
    def setting(self) -> str:
        """Setting for a configuration file, as TOML."""
        keys = {"noise": "noise", "classifiers": "classifiers", "rounding": "sizes.rounding"}
        return "\n".join(
            f"{keys.get(key, f'conventions.{key}')} = {_toml(value)}" for key, value in self.changes.items()
        )

    @property
    def paired(self) -> bool:
        """Return True if both sides of the comparison have the same folds."""
        return self.convention != "folds"

    @property
    def changes_something(self) -> bool:
        """Return True if the value of any metric differs."""
        return not all(effect.is_none for effect in self.effects.values())

    @property
    def outstanding(self) -> dict[str, float]:
        """Absolute differences that stand out, by metric, except for mere changes of unit."""
        return {
            metric: abs(effect.difference)
            for metric, effect in self.effects.items()
            if effect.stands_out and metric != self.convention
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {
            "convention": self.convention,
            "choice": self.choice,
            "setting": self.setting,
            "compared_with": self.reference or "defaults",
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
    """Effects of all conventions for one dataset and method."""

    facts: DatasetFacts
    #: Experiment whose first set of conventions is the default.
    experiment: Experiment
    #: Pairs of configured size and number of features.
    sizes: tuple[tuple[float, int], ...]
    #: Metric -> mean over the sizes for each fold, with the defaults.
    values: dict[str, np.ndarray]
    #: One finding per alternative, in protocol order.
    findings: tuple[Finding, ...]
    #: Warnings of the method and the classifiers.
    warnings: tuple[str, ...]

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.experiment.methods[0].name

    def largest(self, n: int) -> list[tuple[Finding, str]]:
        """Return the findings with the largest effects, each with the metric it affects most."""
        found = [finding for finding in self.findings if finding.outstanding]
        found.sort(key=lambda finding: -max(finding.outstanding.values()))
        return [
            (finding, max(finding.outstanding, key=finding.outstanding.__getitem__)) for finding in found[:n]
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain values."""
        return {
            "dataset": asdict(self.facts),
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
    observer: Observer | None = None,
) -> Diagnosis:
    """Measure the effect of each protocol convention on each metric.

    This runs an experiment with one set of conventions per alternative. Features are ranked again only if a convention
    changes the training data. The dataset is a catalogue name, ``"digits"``, ``"planted"``, or files. Sizes are
    percentages or `counts` of features. Relative paths and user-defined modules are searched in `folder`. The run is
    stored in `out` if given, for resuming and reporting.

    Examples
    --------
    >>> found = diagnose("planted", "sum-f", folds=2)
    >>> [str(finding) for finding in found.findings if not finding.effects]
    ['noise model, given', 'classifier, own weights']
    """
    spec = DatasetSpec(name=dataset) if isinstance(dataset, str) else dataset
    if method in UNRANKED:
        raise RunError(f"expected a method that ranks features, got {method!r}. See: labelsieve methods")
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
    rate = baseline.noise[0].rate
    assert rate is not None
    alternatives = list_alternatives(
        facts,
        rate,
        has_candidates=data.Y_candidates is not None,
        has_weights=has_weights(build_method(baseline.methods[0])),
        in_numbers=bool(counts),
    )
    entries = [{"name": str(one), **one.changes} for one in alternatives if not one.obstacle]
    experiment = build_experiment({**settings, "conventions": [{"name": DEFAULTS}, *entries]}, "doctor")
    with TemporaryDirectory() as temporary:
        place = out or Path(temporary)
        run(experiment, place, observer, jobs=jobs, command="labelsieve bench doctor")
        results = read_results(place)
    problem = _problem(results, DEFAULTS)
    if problem:
        raise RunError(f"{facts.name}, {method}: {problem}")
    notes = [*results.cells["notes"], *results.judgements["notes"]]
    return Diagnosis(
        facts,
        experiment,
        subset_sizes(baseline, facts),
        _values(results, DEFAULTS),
        tuple(_with_effects(one, results) for one in alternatives),
        tuple(dict.fromkeys(note for part in notes for note in part)),
    )


def _problem(results: Results, judge: str) -> str:
    """Return the first error with a set of conventions, or an empty string."""
    found = results.judgements
    return next(iter(found.loc[found["classifier"] == judge, "error"].dropna()), "")


def _values(results: Results, judge: str) -> dict[str, np.ndarray]:
    """Average over sizes and draws with a set of conventions, by metric and fold."""
    scores = results.scores[results.scores["classifier"] == judge].join(results.cells["fold"], on="cell")
    means = scores.groupby(["metric", "fold"])["value"].agg(lambda values: values.to_numpy().mean())
    return {metric: means[metric].to_numpy() for metric in results.experiment.metric_names}


def _with_effects(finding: Finding, results: Results) -> Finding:
    """Compare an alternative with the defaults or with its reference."""
    if finding.obstacle:
        return replace(finding, note=finding.obstacle)
    name, other = str(finding), finding.reference or DEFAULTS
    problem = _problem(results, name) or _problem(results, other)
    if problem:
        return replace(finding, note=problem)
    values, reference = _values(results, name), _values(results, other)
    effects = {metric: _compare(values[metric], reference[metric], finding.paired) for metric in values}
    return replace(finding, values=values, effects=effects)


def _compare(values: np.ndarray, reference: np.ndarray, paired: bool) -> Effect:
    samples = [values - reference] if paired else [values, reference]
    variance = sum(np.var(sample, ddof=1) for sample in samples) / len(values)
    return Effect(float(values.mean()), float(values.mean() - reference.mean()), float(np.sqrt(variance)))


def list_alternatives(
    facts: DatasetFacts, rate: float, *, has_candidates: bool, has_weights: bool, in_numbers: bool
) -> list[Finding]:
    """List all alternatives of the protocol, applicable or not.

    With noise, nearly every label has both classes and is predicted for some row. One-class labels and undefined F1
    matter more with clean training labels, so they are also compared there.
    """
    # The average number of labels that flipping adds to a row.
    count = max(1, round(rate * (facts.n_labels - facts.cardinality)))
    clean, hard = {"train_labels": "clean"}, {"ranking_scores": "hard"}
    with_clean, with_hard = "training labels, clean", "ranking scores, hard"
    added = "the rounded average number that the default adds"
    no_candidates = "" if has_candidates else "the dataset has no candidate labels"
    no_weights = "" if has_weights else "the method has no weights for features in [0, 1]"
    not_rounded = "sizes are numbers of features" if in_numbers else ""
    unit = "a different unit: a number of labels starting at 1, not a fraction"
    unpaired = "the folds differ, so the comparison is not paired"
    return [
        Finding("noise model", f"relative {rate:g}", {"noise": [{"model": "relative", "rate": rate}]}),
        Finding("noise model", f"count {count}", {"noise": [{"model": "count", "rate": count}]}, note=added),
        Finding("noise model", "given", {"noise": [{"model": "given"}]}, obstacle=no_candidates),
        Finding("test labels", "noisy", {"test_labels": "noisy"}),
        Finding("test labels", "noisy for F1", {"test_labels": "noisy-f1"}),
        Finding("training labels", "clean", clean),
        Finding("classifier", "RBF SVM", {"classifiers": ["rbf-svm"]}),
        Finding("classifier", "ML-kNN", {"classifiers": ["ml-knn"]}),
        Finding("classifier", "own weights", {"classifiers": ["own-weights"]}, obstacle=no_weights),
        Finding("one-class labels", "constant", {"one_class": "constant"}),
        Finding("one-class labels", "constant (clean)", {**clean, "one_class": "constant"}, with_clean),
        Finding("absent labels", "left out", {"absent_labels": "skip"}),
        Finding("absent labels", "left out (clean)", {**clean, "absent_labels": "skip"}, with_clean),
        Finding("ranking scores", "hard", hard),
        Finding("empty rows", "perfect", {"empty_rows": "perfect"}),
        Finding("ties", "by index", {"ties": "index"}),
        Finding("ties", "by index (hard)", {"ties": "index", **hard}, with_hard),
        Finding("coverage", "count", {"coverage": "count"}, note=unit),
        Finding("coverage", "one-based", {"coverage": "one-based"}),
        Finding("coverage", "excess", {"coverage": "excess"}),
        Finding("folds", "stratified", {"folds": "stratified"}, note=unpaired),
        Finding("folds", "consecutive", {"folds": "consecutive"}, note=unpaired),
        Finding("undefined F1", "1", {"f1_undefined": 1}),
        Finding("undefined F1", "left out", {"f1_undefined": "skip"}),
        Finding("undefined F1", "1 (clean)", {**clean, "f1_undefined": 1}, with_clean),
        Finding("rounding of sizes", "floor", {"rounding": "floor"}, obstacle=not_rounded),
        Finding("rounding of sizes", "up", {"rounding": "up"}, obstacle=not_rounded),
    ]


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value)
