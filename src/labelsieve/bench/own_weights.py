"""Judge a ranking by the weights that came with it: no classifier is taught."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from labelsieve._numerics.scaling import Scaling

__all__ = ["OwnWeights"]


class OwnWeights(BaseEstimator):  # type: ignore[misc]
    """Score labels by ``X @ coef_.T``, with the features scaled to [0, 1] on the training part; no intercept.

    Sparse features are divided by their largest value. The weights are those of a selector, restricted to the
    features that are kept; who uses this sets them before ``fit``, which learns the scaling and nothing else.

    Parameters
    ----------
    threshold : float, default=0.5
        Labels with a score of at least this are predicted.

    Examples
    --------
    >>> judge = OwnWeights()
    >>> judge.coef_ = np.array([[0.5], [0.2]])
    >>> judge.fit(np.array([[2.0], [4.0]]), None).decision_function(np.array([[3.0], [4.0]]))
    array([[0.25, 0.1 ],
           [0.5 , 0.2 ]])
    >>> judge.predict(np.array([[3.0], [4.0]]))
    array([[0, 0],
           [1, 0]])
    """

    coef_: np.ndarray

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the scaling of the training part; the labels are not looked at."""
        self.scaling_ = Scaling.learn(X, "minmax")
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Score every label of every row."""
        return np.asarray(self.scaling_.apply(X) @ self.coef_.T)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels whose score reaches the threshold."""
        return (self.decision_function(X) >= self.threshold).astype(int)
