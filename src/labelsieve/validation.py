"""Cross-validation on partial multi-label data: fit on candidate labels, score on true labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv

from labelsieve._base import take_rows
from labelsieve._candidates import require_known
from labelsieve._numerics.sparse import as_rows
from labelsieve.metrics import METRICS, Metric

__all__ = ["pml_cross_validate"]


def pml_cross_validate(
    estimator: Any,
    X: Any,
    Y_candidates: Any,
    Y_true: Any,
    *,
    cv: Any = 10,
    scoring: str | Iterable[str] | Mapping[str, Metric] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    return_estimator: bool = False,
) -> dict[str, Any]:
    """Cross-validate an estimator that is fitted on candidate labels and scored on true labels.

    In every fold, a clone of the estimator is fitted on the features and candidate labels of the training
    rows. Its output for the held-out rows is compared with their true labels. Neither the estimator nor the
    splitter has access to ``Y_true``.

    Parameters
    ----------
    estimator : object
        Classifier, or pipeline that ends in one, with ``fit`` and ``predict``. Ranking metrics also need
        ``decision_function`` or ``predict_proba``.
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Features.
    Y_candidates : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Candidate labels, 0/1.
    Y_true : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        True labels, 0/1.
    cv : int, splitter or iterable of (train, test), default=10
        Number of shuffled folds, splitter or splits. A splitter gets the candidate labels. For stratified
        folds, use ``MultilabelStratifiedKFold`` of the package iterative-stratification.
    scoring : str, iterable of str, mapping of str to Metric, or None, default=None
        Names in `labelsieve.METRICS`, None for all of them, or a mapping from your own names to metrics,
        for example with other conventions.
    random_state : int, RandomState or None, default=None
        Seed of the shuffled folds if ``cv`` is an integer. It does not affect the estimator.
    n_jobs : int or None, default=None
        Number of folds to run in parallel, as in joblib. It does not affect the results.
    return_estimator : bool, default=False
        If True, also return the fitted estimators.

    Returns
    -------
    results : dict
        Arrays ``test_<metric>``, ``fit_time`` and ``score_time`` (in seconds) with one entry per fold, and
        the list ``estimator`` if ``return_estimator`` is True.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from labelsieve import SumF, pml_cross_validate
    >>> from labelsieve.classify import LabelwiseSVM
    >>> from labelsieve.datasets import add_candidates, make_pml
    >>> X, Y_true = make_pml(noise=0.0, random_state=0)
    >>> Y_candidates = add_candidates(Y_true, rate=0.2, random_state=0)
    >>> model = make_pipeline(SumF(5), LabelwiseSVM())
    >>> results = pml_cross_validate(model, X, Y_candidates, Y_true, cv=5, random_state=0)
    >>> bool(results["test_average_precision"].mean() > 0.7)
    True
    """
    if not hasattr(estimator, "predict"):
        kind = "a feature selector" if hasattr(estimator, "get_support") else "an estimator"
        raise TypeError(
            f"estimator must have a predict method, got {type(estimator).__name__}, {kind} without one. "
            f"Add a classifier, for example make_pipeline(selector, LabelwiseSVM())."
        )
    metrics = _chosen_metrics(scoring)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    true_shape, candidate_shape = np.shape(Y_true), np.shape(Y_candidates)
    if len(true_shape) != 2 or true_shape != candidate_shape or true_shape[0] != n_rows:
        raise ValueError(
            f"Y_candidates and Y_true must be label matrices of the same shape with {n_rows} rows like X. "
            f"Got shapes {candidate_shape!r} and {true_shape!r}. Check that rows are samples."
        )
    X, Y_candidates = as_rows(X, "X"), as_rows(Y_candidates, "Y_candidates")
    Y_true = as_rows(Y_true, "Y_true")
    require_known(Y_candidates, "Y_candidates")
    require_known(Y_true, "Y_true")
    if cv is None:
        raise ValueError("cv must be a number of folds, a splitter or an iterable of splits, got None.")
    # check_cv would not shuffle the rows for an integer.
    splitter = (
        KFold(cv, shuffle=True, random_state=random_state) if isinstance(cv, Integral) else check_cv(cv)
    )
    folds = list(splitter.split(X, Y_candidates))
    rows = Parallel(n_jobs=n_jobs)(
        delayed(_run_fold)(clone(estimator), X, Y_candidates, Y_true, train, test, metrics)
        for train, test in folds
    )
    results: dict[str, Any] = {
        name: np.array([times_and_values[name] for _, times_and_values in rows]) for name in rows[0][1]
    }
    if return_estimator:
        results["estimator"] = [fitted for fitted, _ in rows]
    return results


def _run_fold(
    estimator: Any,
    X: Any,
    Y_candidates: Any,
    Y_true: Any,
    train: np.ndarray,
    test: np.ndarray,
    metrics: Mapping[str, Metric],
) -> tuple[Any, dict[str, float]]:
    """Fit on candidate labels, and score on true labels."""
    start = perf_counter()
    estimator.fit(take_rows(X, train), take_rows(Y_candidates, train))
    fitted = perf_counter()
    X_test, Y_test = take_rows(X, test), take_rows(Y_true, test)
    n_labels = np.shape(Y_true)[1]
    outputs = {
        needs: label_outputs(estimator, X_test, needs, n_labels)
        for needs in {metric.needs for metric in metrics.values()}
    }
    values = {
        f"test_{name}": metric.function(Y_test, outputs[metric.needs]) for name, metric in metrics.items()
    }
    return estimator, {"fit_time": fitted - start, "score_time": perf_counter() - fitted, **values}


def label_outputs(estimator: Any, X: Any, needs: str, n_labels: int) -> Any:
    """Return the predictions or the scores of a fitted estimator, one column per label.

    `needs` is "predictions" or "scores", as in `Metric`.
    """
    output = estimator.predict(X) if needs == "predictions" else _score_labels(estimator, X, n_labels)
    # An estimator of a single label may return a vector.
    return output.reshape(-1, 1) if output.ndim == 1 else output


def _score_labels(estimator: Any, X: Any, n_labels: int) -> np.ndarray:
    """Return one score per row and label, from decision_function or predict_proba."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X))
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"estimator must have decision_function or predict_proba for ranking metrics, got "
            f"{type(estimator).__name__}. Choose other metrics with the parameter scoring."
        )
    probabilities = estimator.predict_proba(X)
    if not isinstance(probabilities, list):
        # A single label has two classes, of which the last is the label itself.
        return probabilities if n_labels > 1 else probabilities[:, -1:]
    # Multi-output estimators return a list with the class probabilities of each label. A label with a single
    # class, 0 or 1, has one column.
    return np.column_stack(
        [
            of_classes @ (np.asarray(classes) == 1).astype(float)
            for of_classes, classes in zip(probabilities, estimator.classes_, strict=True)
        ]
    )


def _chosen_metrics(scoring: str | Iterable[str] | Mapping[str, Metric] | None) -> Mapping[str, Metric]:
    if scoring is None:
        return METRICS
    if isinstance(scoring, Mapping):
        return scoring
    names = [scoring] if isinstance(scoring, str) else list(scoring)
    for name in names:
        if name not in METRICS:
            raise ValueError(f"scoring must be names of metrics ({', '.join(METRICS)}), got {name!r}.")
    return {name: METRICS[name] for name in names}
