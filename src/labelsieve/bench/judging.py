"""Judge a ranking: teach a classifier with its best features, compare what it says with the labels of the test part."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from labelsieve._numerics.sparse import dense
from labelsieve.bench.components import build_classifier, for_keeps, identify
from labelsieve.bench.config import ALL_FEATURES, EVERY_LABEL, UNRANKED, Conventions, MetricSpec
from labelsieve.bench.data import Fold, derive_seed
from labelsieve.bench.own_metrics import own_metric
from labelsieve.bench.own_weights import OwnWeights
from labelsieve.bench.plan import Cell, Judgement
from labelsieve.classify import LabelFrequency
from labelsieve.metrics import METRICS, Metric
from labelsieve.validation import label_outputs

__all__ = ["Judging", "ScoreRow", "choose_metrics", "seeded", "taught_labels"]

_F1 = ("macro_f1", "micro_f1", "samples_f1")


class ScoreRow(NamedTuple):
    """One number: a metric of a classifier on a subset of the features."""

    size: float | None
    n_features: int
    metric: str
    value: float


class _Outputs(NamedTuple):
    """What a classifier says of the test part, one column per label."""

    scores: Any
    predictions: Any


class Judging:
    """All judgements of one ranking; a classifier that several of them need is taught once.

    Parameters
    ----------
    cell : Cell
        The ranking and where it was made.
    fold : Fold
        The data.
    order : ndarray or None
        Features, best first; None for references that rank nothing.
    weights : ndarray of shape (n_labels, n_features) or None
        What came with the ranking.
    metrics : tuple of MetricSpec
        What is measured.
    """

    def __init__(
        self,
        cell: Cell,
        fold: Fold,
        order: np.ndarray | None,
        weights: np.ndarray | None,
        metrics: tuple[MetricSpec, ...],
    ) -> None:
        self._cell = cell
        self._fold = fold
        self._order = np.arange(fold.X_train.shape[1]) if order is None else order
        self._weights = weights
        self._metrics = metrics
        self._said: dict[str, _Outputs] = {}

    def judge(self, judgement: Judgement) -> list[ScoreRow]:
        """Take all metrics at all sizes."""
        metrics = choose_metrics(self._metrics, judgement.judge.conventions)
        slug, n_features = self._cell.method.method, len(self._order)
        sizes: tuple[tuple[float | None, int], ...] = judgement.sizes
        if slug in UNRANKED:
            sizes = ((None, n_features if slug == ALL_FEATURES else 0),)
        # Small percentages of few features are the same number of them.
        by_count = {
            count: self._take(metrics, self._say(judgement, count), judgement.judge.conventions)
            for count in dict.fromkeys(count for _, count in sizes)
        }
        return [ScoreRow(size, count, *value) for size, count in sizes for value in by_count[count]]

    def _say(self, judgement: Judgement, count: int) -> _Outputs:
        """Teach a classifier with the best features, or remember what it said."""
        spec, conventions = judgement.judge.classifier, judgement.judge.conventions
        classifier: Any = build_classifier(spec, conventions)
        columns = self._order[:count]
        if count == 0:
            classifier, columns = LabelFrequency(), self._order[:1]
        seeded(classifier, self._cell, "classifier", spec.params)
        taught = json.dumps(
            [identify(classifier, spec.params), conventions.train_labels, count], sort_keys=True
        )
        # Predictions alone will do for some: a classifier may have no scores.
        needs_scores = conventions.ranking_scores == "decision"
        said = self._said.get(taught)
        if said is None or (needs_scores and said.scores is None):
            if isinstance(classifier, OwnWeights):
                assert self._weights is not None  # the plan says who has none
                classifier.coef_ = self._weights[:, columns].astype(float)
            fold = self._fold
            classifier.fit(fold.X_train[:, columns], for_keeps(classifier, taught_labels(fold, conventions)))
            n_labels, X_test = fold.Y_test.shape[1], fold.X_test[:, columns]
            predictions = label_outputs(classifier, for_keeps(classifier, X_test), "predictions", n_labels)
            scores = label_outputs(classifier, X_test, "scores", n_labels) if needs_scores else None
            if self._cell.method.method == EVERY_LABEL:
                predictions = np.ones_like(predictions)
            said = _Outputs(scores, predictions)
            if len(self._cell.judgements) > 1:  # others may ask again
                self._said[taught] = said
        return said

    def _take(
        self, metrics: dict[str, Metric], said: _Outputs, conventions: Conventions
    ) -> list[tuple[str, float]]:
        """Compare what was said with the labels of the test part."""
        fold = self._fold
        if conventions.ranking_scores == "hard":
            said = said._replace(scores=said.predictions)
        labels: Any = slice(None)
        if conventions.absent_labels == "skip":
            labels = np.flatnonzero(np.asarray(taught_labels(fold, conventions).sum(axis=0)).ravel())
            said = _Outputs(*(dense(part)[:, labels] for part in said))
        values = []
        for name, metric in metrics.items():
            noisy = conventions.test_labels == "noisy" or (
                conventions.test_labels == "noisy-f1" and name in _F1
            )
            true = fold.Y_noisy if noisy else fold.Y_test
            value = metric.function(true[:, labels], getattr(said, metric.needs))
            if not np.isfinite(value):
                raise ValueError(f"{name} must be a finite number. Got {value!r}.")
            values.append((name, value))
        return values


def taught_labels(fold: Fold, conventions: Conventions) -> Any:
    """Labels that the classifier is taught."""
    return fold.Y_train if conventions.train_labels == "candidates" else fold.Y_clean


def choose_metrics(specs: tuple[MetricSpec, ...], conventions: Conventions) -> dict[str, Metric]:
    """Take the metrics with the conventions of the experiment; one's own have their own."""
    undefined = {"undefined": conventions.f1_undefined}
    options: dict[str, dict[str, Any]] = {
        "coverage": {"unit": conventions.coverage, "ties": conventions.ties},
        "average_precision": {"ties": conventions.ties},
        **dict.fromkeys(_F1, undefined),
    }
    for name, metric in METRICS.items():
        if metric.needs == "scores":
            options.setdefault(name, {})["empty_rows"] = conventions.empty_rows
    return {
        spec.name: own_metric(spec)
        if spec.is_own
        else METRICS[spec.name].with_options(**options.get(spec.name, {}))
        for spec in specs
    }


def seeded(estimator: Any, cell: Cell, purpose: str, given: dict[str, Any]) -> Any:
    """Seed an estimator that has a random part, unless the configuration does; returns it."""
    has_seed = hasattr(estimator, "get_params") and "random_state" in estimator.get_params(deep=False)
    if has_seed and "random_state" not in given:
        seed = derive_seed(cell.seed, purpose, cell.dataset.name, cell.fold, cell.draw)
        estimator.set_params(random_state=seed)
    return estimator
