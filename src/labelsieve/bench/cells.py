"""Run one cell: rank on candidates, classify at every size, judge by the truth."""

from __future__ import annotations

import time
import traceback
import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from labelsieve.bench.components import build_classifier, build_method, feature_order, use_folder
from labelsieve.bench.config import ALL_FEATURES, NO_FEATURES, Conventions, Experiment
from labelsieve.bench.data import Fold, derive_seed, split_fold
from labelsieve.bench.limits import forget_peak_memory, peak_mebibytes
from labelsieve.bench.plan import Cell
from labelsieve.classify import LabelFrequency
from labelsieve.metrics import METRICS, Metric
from labelsieve.validation import label_outputs

__all__ = ["CellResult", "ScoreRow", "choose_metrics", "evaluate", "judge", "one_thread", "rank_features"]

_LONGEST_HISTORY = 10_000


class ScoreRow(NamedTuple):
    """One number: a metric of a classifier on a subset of the features."""

    classifier: str
    size: float | None
    n_features: int
    metric: str
    value: float


@dataclass
class CellResult:
    """What became of a cell; a failed one has an error and its traceback instead of scores."""

    error: str | None = None
    traceback: str | None = None
    fit_seconds: float | None = None
    seconds: float = 0.0
    peak_mib: float | None = None
    n_iter: int | None = None
    converged: bool | None = None
    ranking: np.ndarray | None = None
    objective: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    scores: list[ScoreRow] = field(default_factory=list)


def evaluate(experiment: Experiment, cell: Cell) -> CellResult:
    """Run a cell. Whatever goes wrong in it is part of the result."""
    start = time.perf_counter()
    result = CellResult()
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _run(experiment, cell, result, caught)
    except (Exception, SystemExit) as error:
        result = CellResult(
            error=" ".join(f"{type(error).__name__}: {error}".split()), traceback=traceback.format_exc()
        )
    else:
        result.notes = tuple(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    result.seconds = time.perf_counter() - start
    return result


def one_thread() -> AbstractContextManager[Any]:
    """Compute in one thread whatever the number of jobs: sums in another order would give other last digits."""
    limited: AbstractContextManager[Any] = _threadpools().limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    """Find the thread pools of this process once: looking takes longer than a small fit."""
    return ThreadpoolController()


def _run(experiment: Experiment, cell: Cell, result: CellResult, caught: list[Any]) -> None:
    use_folder(experiment)
    fold = split_fold(experiment, cell.dataset, cell.noise, cell.seed, cell.fold, cell.checksum)
    metrics = choose_metrics(experiment.metrics, experiment.conventions)
    n_features = fold.X_train.shape[1]
    if cell.method.method == NO_FEATURES:
        column = np.arange(1)
        constant = LabelFrequency().fit(fold.X_train[:, column], fold.Y_learn)
        values = judge(constant, fold, column, metrics, experiment.conventions)
        names = [classifier.name for classifier in experiment.classifiers]
        result.scores = [ScoreRow(name, None, 0, *value) for name in names for value in values]
        return
    if cell.method.method == ALL_FEATURES:
        order = np.arange(n_features)
        sizes: tuple[tuple[float | None, int], ...] = ((None, n_features),)
    else:
        order = rank_features(cell, fold, result, caught)
        sizes = cell.sizes
    for entry in experiment.classifiers:
        # Small percentages of few features are the same number of them.
        by_count = {}
        for size, count in sizes:
            if count not in by_count:
                columns = order[:count]
                classifier = build_classifier(entry, experiment.conventions)
                seeded(classifier, cell, "classifier", entry.params)
                classifier.fit(fold.X_train[:, columns], fold.Y_learn)
                by_count[count] = judge(classifier, fold, columns, metrics, experiment.conventions)
            result.scores += [ScoreRow(entry.name, size, count, *value) for value in by_count[count]]


def rank_features(cell: Cell, fold: Fold, result: CellResult, caught: list[Any]) -> np.ndarray:
    """Fit the method to the candidates of the training part, timed; returns the features, best first."""
    selector = seeded(build_method(cell.method), cell, "method", cell.method.params)
    forget_peak_memory()
    before = peak_mebibytes()
    start = time.perf_counter()
    selector.fit(fold.X_train, fold.Y_train)
    result.fit_seconds = time.perf_counter() - start
    after = peak_mebibytes()
    if before is not None and after is not None:
        result.peak_mib = max(0.0, after - before)
    result.ranking = feature_order(selector, fold.X_train.shape[1])
    objective = getattr(selector, "objective_history_", None)
    if objective is not None:
        result.objective = _thinned(np.asarray(objective, dtype=float))
    if hasattr(selector, "n_iter_"):
        result.n_iter = int(np.max(selector.n_iter_))
        result.converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return result.ranking


def seeded(estimator: Any, cell: Cell, purpose: str, given: dict[str, Any]) -> Any:
    """Seed an estimator that has a random part, unless the configuration does; returns it."""
    has_seed = hasattr(estimator, "get_params") and "random_state" in estimator.get_params(deep=False)
    if has_seed and "random_state" not in given:
        seed = derive_seed(cell.seed, purpose, cell.dataset.name, cell.fold, cell.draw)
        estimator.set_params(random_state=seed)
    return estimator


def _thinned(history: np.ndarray) -> np.ndarray:
    """Keep first, last and evenly spaced values of a long history."""
    if len(history) <= _LONGEST_HISTORY:
        return history
    kept: np.ndarray = np.linspace(0, len(history) - 1, _LONGEST_HISTORY).round().astype(int)
    return np.asarray(history[kept])


def judge(
    classifier: Any, fold: Fold, columns: np.ndarray, metrics: dict[str, Metric], conventions: Conventions
) -> list[tuple[str, float]]:
    """Compare what a classifier, taught on these columns, says of the test part with the labels there."""
    X_test = fold.X_test[:, columns]
    n_labels = fold.Y_test.shape[1]
    predictions = label_outputs(classifier, X_test, "predictions", n_labels)
    outputs = {
        "predictions": predictions,
        "scores": predictions
        if conventions.ranking_scores == "hard"
        else label_outputs(classifier, X_test, "scores", n_labels),
    }
    values = [(name, metric.function(fold.Y_test, outputs[metric.needs])) for name, metric in metrics.items()]
    for name, value in values:
        if not np.isfinite(value):
            raise ValueError(f"{name} must be a finite number. Got {value!r}.")
    return values


def choose_metrics(names: tuple[str, ...], conventions: Conventions) -> dict[str, Metric]:
    """Take the metrics with the conventions of the experiment."""
    options: dict[str, dict[str, Any]] = {
        # Results on file call the default a share.
        "coverage": {"unit": "count" if conventions.coverage == "count" else "zero-based"},
        "macro_f1": {"undefined": conventions.f1_undefined},
        "micro_f1": {"undefined": conventions.f1_undefined},
        "samples_f1": {"undefined": conventions.f1_undefined},
    }
    for name, metric in METRICS.items():
        if metric.needs == "scores":
            options.setdefault(name, {})["empty_rows"] = conventions.empty_rows
    return {name: METRICS[name].with_options(**options.get(name, {})) for name in names}
