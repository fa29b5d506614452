"""What PML-LC and PML-FP share as estimators: scaling, scores of new rows, and prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from labelsieve._base import LOOP_CONSTRAINTS, BaseSelector, Interval, Real, StrOptions
from labelsieve.numerics.moments import column_moments
from labelsieve.numerics.result import SolverResult
from labelsieve.numerics.scaling import scale_columns
from labelsieve.numerics.typing import Matrix

WEIGHT = [Interval(Real, 0, None, closed="neither")]


class PartialRanker(BaseSelector):
    """A selector that is a linear label ranker trained on candidate labels."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        **LOOP_CONSTRAINTS,
        "C1": WEIGHT,
        "scale": [StrOptions({"minmax", "standard"}), None],
    }

    scale: str | None
    coef_: np.ndarray
    intercept_: np.ndarray
    scale_: np.ndarray
    n_labels_predicted_: int

    def decision_function(self, X: Any) -> np.ndarray:
        """Score the labels of new rows; higher means more relevant.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features, unscaled as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            ``(X * scale_) @ coef_.T + intercept_``.
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
        return X @ (self.coef_ * self.scale_).T + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """Give every row the ``n_labels_predicted_`` labels of highest score.

        After a fit to one-dimensional classes, give every row the class of highest score.

        Parameters
        ----------
        X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
            Features, unscaled as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_labels) or (n_samples,)
            1 for predicted labels and 0 for the others; or classes.
        """
        order = np.argsort(-self.decision_function(X), axis=1, kind="stable")
        if self.classes_ is not None:
            return self.classes_[order[:, 0]]
        labels = np.zeros(order.shape, dtype=np.int64)
        np.put_along_axis(labels, order[:, : self.n_labels_predicted_], 1, axis=1)
        return labels

    def _solve_scaled(self, X: Matrix, Y: Matrix, solve: Callable[..., SolverResult]) -> SolverResult:
        """Run ``solve`` on centred and scaled features; return what it found in terms of X itself."""
        mean, factor = _centre_and_factor(X, self.scale)
        if sp.issparse(X):
            scaled, offset = scale_columns(X.astype(np.float64), factor), mean * factor
        else:
            scaled, offset = (X - mean) * factor, None
        result = solve(scaled, Y, offset=offset)
        coef, confidence = result.extra["coef"], result.extra["label_confidence"]
        n_trusted = np.count_nonzero(confidence, axis=1)
        extra = {
            "coef": coef.astype(X.dtype),
            "intercept": (result.extra["intercept"] - coef @ (mean * factor)).astype(X.dtype),
            "scale": factor.astype(X.dtype),
            "label_confidence": sp.csr_matrix(confidence) if sp.issparse(Y) else confidence,
            "n_labels_predicted": max(1, round(float(n_trusted[n_trusted > 0].mean()))),
        }
        return replace(result, scores=result.scores.astype(X.dtype), extra=extra)


def candidate_mask(Y: Matrix) -> np.ndarray:
    """Return the candidates as a dense boolean matrix."""
    return (Y.toarray() if sp.issparse(Y) else Y) > 0


def _centre_and_factor(X: Matrix, scale: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean of every feature and the factor that scales it; 0 for a constant feature."""
    mean, deviation = column_moments(X)
    if scale == "standard":
        spread = np.sqrt(deviation / X.shape[0])
    elif scale == "minmax":
        spread = X.max(axis=0) - X.min(axis=0)
        spread = spread.toarray().ravel() if sp.issparse(spread) else spread
    else:
        spread = np.ones(X.shape[1])
    varies = (deviation > 0) & (spread > 0)
    return mean, np.divide(1.0, spread, out=np.zeros(X.shape[1]), where=varies)
