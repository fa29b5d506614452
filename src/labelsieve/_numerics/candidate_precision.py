"""Score the first features of a ranking by how well they predict held-out candidate labels.

Candidate labels are enough to compare selections. If wrong labels appear at a rate ``r`` that does not
depend on the features, a label with probability ``p`` is a candidate with probability ``r + (1 - r) p``.
This grows with ``p``, so both probabilities rank the labels of a row in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import count_labels
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve._numerics.standardized import StandardizedFeatures

#: Ridge penalty as a fraction of the variance of a standardised feature.
_RIDGE = 0.1
#: Predicted labels are rounded to this many digits so that rounding errors do not break ties.
_DIGITS = 10


def average_precision_rows(Y: Matrix, scores: np.ndarray) -> np.ndarray:
    """Compute the label-ranking average precision of every row with respect to its candidates.

    The labels of a row are sorted by score, and ties by column. The precision at a candidate is the
    fraction of candidates among the labels up to it. The result is the mean over the candidates of the
    row, or nan if there are none. Unknown labels (NaN) are left out.

    Examples
    --------
    >>> average_precision_rows(np.array([[1, 0, 1], [0, 0, 0]]), np.array([[0.9, 0.8, 0.1], [0.1, 0.2, 0.3]]))
    array([0.83333333,        nan])
    """
    n_samples, n_labels = Y.shape
    precision = np.full(n_samples, np.nan)
    for rows in batches(n_samples, n_labels):
        labels = dense(Y[rows])
        order = np.argsort(np.where(np.isnan(labels), np.inf, -scores[rows]), axis=1, kind="stable")
        row, place = np.nonzero(np.take_along_axis(labels > 0, order, axis=1))
        n_candidates = np.bincount(row, minlength=len(order))
        first = np.cumsum(n_candidates) - n_candidates
        hits = np.arange(1, len(row) + 1) - first[row]
        total = np.bincount(row, weights=hits / (place + 1), minlength=len(order))
        np.divide(total, n_candidates, out=precision[rows], where=n_candidates > 0)
    return precision


def ridge_precision(
    X_train: Matrix,
    Y_train: Matrix,
    X_test: Matrix,
    Y_test: Matrix,
    order: np.ndarray,
    sizes: Sequence[int] | np.ndarray,
) -> np.ndarray:
    """Predict the candidates of the test rows from the first features of a ranking, and score every row.

    For every size, the labels are regressed on the standardised features ``order[:size]`` with a ridge
    penalty of a tenth of their variance. All sizes share one factorisation and must be in ascending
    order. Only the ranked columns of sparse features become dense. Labels that are constant in the
    training rows are ignored. Returns the average precision of every test row and size
    (n_test x n_sizes), or nan for rows without candidates among the remaining labels.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> ridge_precision(X, Y, X, Y, order=np.array([1, 0]), sizes=[1, 2]).mean(axis=0)
    array([0.75, 1.  ])
    """
    chosen = np.asarray(order)[: max(sizes)]
    features, labels = StandardizedFeatures(X_train[:, chosen]), LabelScale.learn(Y_train)
    gram = features.gram(np.arange(len(chosen)))
    products = labels.scale_products(features.products(Y_train[:, labels.varying]))
    models = fit_ridge(features.n_samples, features.scaling, labels, gram, products, sizes)
    return models.precision(X_test[:, chosen], Y_test)


@dataclass(frozen=True)
class LabelScale:
    """Labels that are not constant, with their means and standard deviations.

    The mean is that of the known entries. The deviation is that of a label whose unknown entries are
    replaced by the mean, so that its products with features have the right scale.
    """

    varying: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def learn(cls, Y: Matrix) -> Self:
        """Compute the scale of the columns of a 0/1 matrix, which may have unknown entries."""
        return cls.of_counts(*count_labels(Y), Y.shape[0])

    @classmethod
    def of_counts(cls, counts: np.ndarray, n_known: np.ndarray, n_samples: int) -> Self:
        """Compute the scale from the numbers of candidates and known entries of every label, and of rows."""
        varying = np.flatnonzero((counts > 0) & (counts < n_known))
        mean = counts[varying] / n_known[varying]
        return cls(varying, mean, np.sqrt(mean * (1 - mean) * (n_known[varying] / n_samples)))

    def scale_products(self, products: np.ndarray) -> np.ndarray:
        """Convert Z'Y to Z'T in place, for centred features Z and standardised labels T."""
        products /= self.deviation
        return products


@dataclass(frozen=True)
class RidgeModels:
    """Ridge regressions of the labels on the first features, one per size in ascending order.

    The weights map standardised features to centred labels: size x n_varying.
    """

    features: Scaling
    labels: LabelScale
    weights: list[np.ndarray]

    def precision(self, X: Matrix, Y: Matrix) -> np.ndarray:
        """Return the average precision of every row and model as in `ridge_precision`."""
        labels = self.labels
        precision = np.full((X.shape[0], len(self.weights)), np.nan)
        if not len(labels.varying):
            return precision
        Y = Y[:, labels.varying]
        X = X.tocsr() if is_sparse(X) else X
        for rows in batches(X.shape[0], max(X.shape[1], len(labels.varying))):
            (Z, shift), candidates = self.features.split(X[rows]), dense(Y[rows])
            for i, weights in enumerate(self.weights):
                size = len(weights)
                intercept = labels.mean if shift is None else labels.mean - shift[:size] @ weights
                predicted = np.round(Z[:, :size] @ weights + intercept, _DIGITS)
                precision[rows, i] = average_precision_rows(candidates, predicted)
        return precision


def fit_ridge(
    n_samples: int,
    features: Scaling,
    labels: LabelScale,
    gram: np.ndarray,
    products: np.ndarray,
    sizes: Sequence[int] | np.ndarray,
) -> RidgeModels:
    """Regress labels T on the first features Z for all ``sizes``, given Z'Z and Z'T."""
    # Some LAPACK builds reject empty matrices.
    if not len(sizes) or not len(labels.varying):
        return RidgeModels(features, labels, [np.empty((size, 0)) for size in sizes])
    # With A = L L', the regression on k features needs only the first k rows of L and of L^-1 Z'T.
    A = gram.copy()
    A[np.diag_indices_from(A)] += _RIDGE * n_samples
    L = cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    half_solved = solve_triangular(L, products, lower=True, check_finite=False)
    weights = [
        solve_triangular(L[:size, :size], half_solved[:size], lower=True, trans="T", check_finite=False)
        * labels.deviation
        for size in sizes
    ]
    return RidgeModels(features, labels, weights)
