"""SumF: the sum over labels of the F statistic of a one-way analysis of variance."""

from __future__ import annotations

import numpy as np

from labelsieve._base import BaseSelector
from labelsieve.numerics.batches import batches
from labelsieve.numerics.moments import column_moments
from labelsieve.numerics.result import SolverResult
from labelsieve.numerics.sparse import dense, is_sparse
from labelsieve.numerics.typing import Matrix

__all__ = ["SumF", "solve_sum_f"]

#: Largest share of a feature's variance that a label may explain. One that explains all of it has an infinite
#: F, and beyond this share the within-class variance is mostly rounding.
_LARGEST_SHARE = 1 - 1e-8


class SumF(BaseSelector):
    """Score every feature by its F statistics, summed over the candidate labels.

    The score of feature ``x`` is ``sum_l F(x; y_l)``, where ``F`` compares the variance of the class means
    with the variance inside the two classes of label ``l``: ``F = (n - 2) r2 / (1 - r2)`` with ``r2`` the
    squared correlation of ``x`` and ``y_l``. It equals the sum of :func:`sklearn.feature_selection.f_classif`
    over the labels.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Sum of the F statistics.
    ranking_ : ndarray of shape (n_features,)
        Place of every feature, 1 is best.

    Notes
    -----
    All features and labels are handled by one matrix product; sparse features are centred implicitly.
    A label that is a candidate of every row or of none adds nothing, and a constant feature scores 0. A
    feature that separates the classes of a label perfectly has an infinite F; here ``r2`` is limited to
    ``1 - 1e-8``, so that several such features can still be told apart by the other labels.

    Cost: one product of X with Y.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.sum_f import SumF
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 2.0], [5.0, 0.0]])
    >>> Y = np.array([[0, 1], [0, 1], [1, 1], [1, 1]])
    >>> SumF(n_features_to_select=1).fit(X, Y).scores_.round(2)
    array([32. ,  0.2])
    """

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        return solve_sum_f(X, Y)


def solve_sum_f(X: Matrix, Y: Matrix) -> SolverResult:
    """Sum the F statistics of every feature over the labels."""
    n_samples, n_features = X.shape
    mean, deviation = column_moments(X)
    n_positive = np.asarray(Y.sum(axis=0)).ravel()
    varies = (n_positive > 0) & (n_positive < n_samples)
    Y, n_positive = Y[:, varies], n_positive[varies]
    balance = n_samples / (n_positive * (n_samples - n_positive))
    if is_sparse(X):
        X = X.tocsc()

    scores = np.zeros(n_features)
    for block in batches(n_features, max(n_samples, Y.shape[1])):
        excess = _class_excess(X[:, block].astype(np.float64), mean[block], Y, n_positive)
        share = np.divide(
            excess**2 * balance,
            deviation[block, None],
            out=np.zeros_like(excess),
            where=deviation[block, None] > 0,
        )
        share = np.minimum(share, _LARGEST_SHARE)
        # Two rows leave no degree of freedom; the factor is the same for all features and must not be 0.
        scores[block] = max(n_samples - 2, 1) * (share / (1 - share)).sum(axis=1)
    return SolverResult(scores=scores.astype(X.dtype))


def _class_excess(X: Matrix, mean: np.ndarray, Y: Matrix, n_positive: np.ndarray) -> np.ndarray:
    """Sum of the centred features over the rows of every label: n_features x n_labels."""
    if not is_sparse(X):
        return np.asarray((X - mean).T @ Y)
    return dense(X.T @ Y) - np.outer(mean, n_positive)
