"""Run a cell: rank features using candidate labels, then evaluate the ranking using true labels."""

from __future__ import annotations

import ctypes
import json
import re
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from labelsieve._numerics.sparse import dense
from labelsieve._text import error_text
from labelsieve.bench.components import (
    LinearWeights,
    build_classifier,
    build_method,
    copy_for_user_code,
    feature_order,
    identify,
    use_folder,
    user_metric,
)
from labelsieve.bench.config import ALL_FEATURES, EVERY_LABEL, UNRANKED, Conventions, Experiment, MetricSpec
from labelsieve.bench.data import Fold, derive_seed, split_fold
from labelsieve.bench.plan import Cell, Judgement, Ranked, has_weights
from labelsieve.classify import LabelFrequency
from labelsieve.metrics import METRICS, Metric
from labelsieve.validation import label_outputs

_F1 = ("macro_f1", "micro_f1", "samples_f1")


class ScoreRow(NamedTuple):
    """Value of a metric for a classifier trained on a feature subset."""

    size: float | None
    n_features: int
    metric: str
    value: float


@dataclass
class JudgementResult:
    """Scores of a judgement, or the error and traceback if it failed."""

    error: str | None = None
    traceback: str | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    scores: list[ScoreRow] = field(default_factory=list)


@dataclass
class CellResult:
    """Result of a cell, or the error if the ranking or the process failed."""

    error: str | None = None
    traceback: str | None = None
    fit_seconds: float | None = None
    #: Time of the whole cell.
    seconds: float = 0.0
    peak_mib: float | None = None
    n_iter: int | None = None
    converged: bool | None = None
    ranked: Ranked = field(default_factory=Ranked)
    objective: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    #: Key -> result.
    judgements: dict[str, JudgementResult] = field(default_factory=dict)


def evaluate(experiment: Experiment, cell: Cell) -> CellResult:
    """Run a cell and record any error in its result."""
    start = time.perf_counter()
    result = CellResult()
    # The order of a sum changes its last digits, so use one thread.
    with _threadpools().limit(limits=1), _capture(result) as caught:
        use_folder(experiment)
        place = cell.dataset, cell.noise, cell.seed, cell.fold, cell.checksum, cell.split
        fold = split_fold(experiment, *place)
        if cell.ranked is not None:
            result.ranked = cell.ranked
        elif cell.must_rank:
            _rank(cell, fold, result, caught)
        result.judgements = _judge(experiment, cell, fold, result.ranked)
    if result.error is not None:
        result = CellResult(error=result.error, traceback=result.traceback)
    result.seconds = time.perf_counter() - start
    return result


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    """Find the thread pools of this process. Cached because this is slower than a small fit."""
    return ThreadpoolController()


@contextmanager
def _capture(result: CellResult | JudgementResult) -> Iterator[list[warnings.WarningMessage]]:
    """Record warnings and errors in a result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield caught
        except (Exception, SystemExit) as error:
            result.error = " ".join(error_text(error).split())
            result.traceback = traceback.format_exc()
        else:
            texts = [" ".join(str(warning.message).split()) for warning in caught]
            result.notes = tuple(dict.fromkeys(texts))


def _judge(experiment: Experiment, cell: Cell, fold: Fold, ranked: Ranked) -> dict[str, JudgementResult]:
    evaluator = _Evaluator(cell, fold, ranked, experiment.metrics)
    results = {}
    for judgement in cell.judgements:
        if judgement.obstacle:
            continue
        result = results[judgement.key] = JudgementResult()
        start = time.perf_counter()
        with _capture(result):
            result.scores = evaluator.judge(judgement)
        result.seconds = time.perf_counter() - start
    return results


def _rank(cell: Cell, fold: Fold, result: CellResult, caught: list[warnings.WarningMessage]) -> None:
    """Fit the method to the training rows and measure time and memory."""
    selector = _set_seed(build_method(cell.method), cell, "method", cell.method.params)
    X, Y = copy_for_user_code(selector, fold.X_train), copy_for_user_code(selector, fold.Y_train)
    before = peak_mebibytes(reset=True)
    start = time.perf_counter()
    selector.fit(X, Y)
    result.fit_seconds = time.perf_counter() - start
    after = peak_mebibytes()
    result.peak_mib = None if before is None or after is None else max(0.0, after - before)
    n_features, n_labels = fold.X_train.shape[1], fold.Y_train.shape[1]
    # Single precision halves the size of the results file.
    weights = np.asarray(selector.coef_, dtype=np.float32) if has_weights(selector) else None
    if weights is not None and weights.shape != (n_labels, n_features):
        raise TypeError(f"coef_ must have shape {(n_labels, n_features)!r}, got {weights.shape!r}.")
    result.ranked = Ranked(feature_order(selector, n_features), weights)
    objective = getattr(selector, "objective_history_", None)
    if objective is not None:
        result.objective = np.asarray(objective, dtype=float)
    if hasattr(selector, "n_iter_"):
        result.n_iter = int(np.max(selector.n_iter_))
        result.converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def peak_mebibytes(*, reset: bool = False) -> float | None:
    """Return the peak memory of this process, or None if the system does not report it.

    If `reset` is true, later calls return the peak since this call.
    """
    with suppress(OSError, AttributeError):
        if reset:
            # Otherwise, reused memory that was freed but not returned would not raise the peak.
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")
        found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
        return None if found is None else int(found[1]) / 1024
    return None


class _Outputs(NamedTuple):
    """Outputs of a classifier for the test rows, one column per label."""

    scores: Any
    predictions: Any


class _Evaluator:
    """Evaluator of one ranking that fits each classifier only once."""

    def __init__(self, cell: Cell, fold: Fold, ranked: Ranked, metrics: tuple[MetricSpec, ...]) -> None:
        self._cell = cell
        self._fold = fold
        self._order = np.arange(fold.X_train.shape[1]) if ranked.order is None else ranked.order
        self._weights = ranked.weights
        self._metrics = metrics
        self._outputs: dict[str, _Outputs] = {}

    def judge(self, judgement: Judgement) -> list[ScoreRow]:
        """Compute all metrics for all subset sizes."""
        metrics = choose_metrics(self._metrics, judgement.judge.conventions)
        slug, n_features = self._cell.method.method, len(self._order)
        sizes: tuple[tuple[float | None, int], ...] = judgement.sizes
        if slug in UNRANKED:
            sizes = ((None, n_features if slug == ALL_FEATURES else 0),)
        # Several small percentages can give the same number of features.
        by_count = {
            count: self._measure(metrics, self._classify(judgement, count), judgement.judge.conventions)
            for count in dict.fromkeys(count for _, count in sizes)
        }
        return [ScoreRow(size, count, *value) for size, count in sizes for value in by_count[count]]

    def _classify(self, judgement: Judgement, count: int) -> _Outputs:
        """Fit a classifier to the best features or reuse its stored outputs."""
        spec, conventions = judgement.judge.classifier, judgement.judge.conventions
        classifier: Any = build_classifier(spec, conventions)
        columns = self._order[:count]
        if count == 0:
            classifier, columns = LabelFrequency(), self._order[:1]
        _set_seed(classifier, self._cell, "classifier", spec.params)
        identity = json.dumps(
            [identify(classifier, spec.params), conventions.train_labels, count], sort_keys=True
        )
        # A classifier without scores can be used if the conventions need only predictions.
        needs_scores = conventions.ranking_scores == "decision"
        outputs = self._outputs.get(identity)
        if outputs is None or (needs_scores and outputs.scores is None):
            if isinstance(classifier, LinearWeights):
                assert self._weights is not None  # otherwise the plan has an obstacle
                classifier.coef_ = self._weights[:, columns].astype(float)
            fold = self._fold
            classifier.fit(
                fold.X_train[:, columns], copy_for_user_code(classifier, _training_labels(fold, conventions))
            )
            n_labels, X_test = fold.Y_test.shape[1], fold.X_test[:, columns]
            predictions = label_outputs(
                classifier, copy_for_user_code(classifier, X_test), "predictions", n_labels
            )
            scores = label_outputs(classifier, X_test, "scores", n_labels) if needs_scores else None
            if self._cell.method.method == EVERY_LABEL:
                predictions = np.ones_like(predictions)
            outputs = _Outputs(scores, predictions)
            if len(self._cell.judgements) > 1:
                self._outputs[identity] = outputs
        return outputs

    def _measure(
        self, metrics: dict[str, Metric], outputs: _Outputs, conventions: Conventions
    ) -> list[tuple[str, float]]:
        """Compare outputs with the labels of the test rows."""
        fold = self._fold
        if conventions.ranking_scores == "hard":
            outputs = outputs._replace(scores=outputs.predictions)
        labels: Any = slice(None)
        if conventions.absent_labels == "skip":
            labels = np.flatnonzero(np.asarray(_training_labels(fold, conventions).sum(axis=0)).ravel())
            outputs = _Outputs(*(dense(part)[:, labels] for part in outputs))
        values = []
        for name, metric in metrics.items():
            noisy = conventions.test_labels == "noisy" or (
                conventions.test_labels == "noisy-f1" and name in _F1
            )
            true = fold.Y_noisy if noisy else fold.Y_test
            value = metric.function(true[:, labels], getattr(outputs, metric.needs))
            if not np.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r}.")
            values.append((name, value))
        return values


def _training_labels(fold: Fold, conventions: Conventions) -> Any:
    """Return the labels that the classifier is trained on."""
    return fold.Y_train if conventions.train_labels == "candidates" else fold.Y_clean


def choose_metrics(specs: tuple[MetricSpec, ...], conventions: Conventions) -> dict[str, Metric]:
    """Return metric functions, with conventions applied to the built-in ones."""
    undefined = {"undefined": conventions.f1_undefined}
    options: dict[str, dict[str, Any]] = {
        "coverage": {"unit": conventions.coverage, "ties": conventions.ties},
        "average_precision": {"ties": conventions.ties},
        **dict.fromkeys(_F1, undefined),
    }
    for name, metric in METRICS.items():
        if metric.needs == "scores" and name != "macro_auc":  # the others rank the labels of a row
            options.setdefault(name, {})["empty_rows"] = conventions.empty_rows
    return {
        spec.name: user_metric(spec)
        if spec.is_user_defined
        else METRICS[spec.name].with_options(**options.get(spec.name, {}))
        for spec in specs
    }


def _set_seed(estimator: Any, cell: Cell, purpose: str, given: dict[str, Any]) -> Any:
    """Set the random state of an estimator if the configuration does not, and return the estimator."""
    has_seed = hasattr(estimator, "get_params") and "random_state" in estimator.get_params(deep=False)
    if has_seed and "random_state" not in given:
        seed = derive_seed(cell.seed, purpose, cell.dataset.name, cell.fold, cell.draw)
        estimator.set_params(random_state=seed)
    return estimator
