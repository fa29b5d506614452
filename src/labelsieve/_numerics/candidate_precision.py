"""How well the first features of a ranking predict the candidates of rows that were held out.

Candidates suffice to compare selections. If false candidates appear at one rate ``r`` whatever the features,
the expected candidate is ``r + (1 - r) p`` where the true label has probability ``p``: what ranks the labels
of a row by their candidates ranks them by the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from labelsieve._numerics.batches import batches
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve._numerics.standardized import StandardizedFeatures

#: Share of a standardised feature's variance that the regression adds to it.
_RIDGE = 0.1
#: Digits of a predicted label that count. Labels that are predicted alike are ties, whatever the rounding.
_DIGITS = 10


def average_precision_rows(Y: Matrix, scores: np.ndarray) -> np.ndarray:
    """Label-ranking average precision of every row against its candidates.

    The labels of a row stand in the order of their scores, of equal ones the lower column first. The
    precision at a candidate is the share of candidates among the labels up to it; a row has their mean, nan if
    it has no candidates.

    Examples
    --------
    >>> average_precision_rows(np.array([[1, 0, 1], [0, 0, 0]]), np.array([[0.9, 0.8, 0.1], [0.1, 0.2, 0.3]]))
    array([0.83333333,        nan])
    """
    n_samples, n_labels = Y.shape
    precision = np.full(n_samples, np.nan)
    for rows in batches(n_samples, n_labels):
        order = np.argsort(-scores[rows], axis=1, kind="stable")
        row, place = np.nonzero(np.take_along_axis(dense(Y[rows]) != 0, order, axis=1))
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
    """Predict the candidates of test rows from the first features of a ranking, and judge every row.

    For every size the labels are regressed on the standardised features ``order[:size]``, with a tenth of
    their variance as ridge. One factorisation serves all sizes, which must ascend. Of sparse features nothing is
    made dense but what belongs to the ranking. Labels that do not vary in the training rows are left out.
    Returns the average precision of every test row (n_test x n_sizes); nan where it has no candidates among the
    other labels.

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
    """The labels that vary in some rows, and the means and standard deviations that standardise them."""

    varying: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def learn(cls, Y: Matrix) -> Self:
        """Look at the rows of a 0/1 matrix."""
        return cls.of_counts(np.asarray(Y.sum(axis=0)).ravel(), Y.shape[0])

    @classmethod
    def of_counts(cls, counts: np.ndarray, n_samples: int) -> Self:
        """Learn from the number of rows and of candidates among them."""
        mean = counts / n_samples
        varying = np.flatnonzero((mean > 0) & (mean < 1))
        mean = mean[varying]
        return cls(varying, mean, np.sqrt(mean * (1 - mean)))

    def scale_products(self, products: np.ndarray) -> np.ndarray:
        """Turn Z'Y of centred features Z into Z'T with the standardised labels T, in place."""
        products /= self.deviation
        return products


@dataclass(frozen=True)
class RidgeModels:
    """Regressions of the labels on the first of some features, one for every size, in ascending order.

    The weights lead from standardised features to centred labels: size x n_varying.
    """

    features: Scaling
    labels: LabelScale
    weights: list[np.ndarray]

    def precision(self, X: Matrix, Y: Matrix) -> np.ndarray:
        """Average precision of every row by every model, nan where it has none; see `ridge_precision`."""
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
    """Regress labels T on the first ``sizes`` of features Z, given Z'Z and Z'T; see `ridge_precision`."""
    # LAPACK does not take empty matrices everywhere.
    if not len(sizes) or not len(labels.varying):
        return RidgeModels(features, labels, [np.empty((size, 0)) for size in sizes])
    # With A = L L', the first k rows of L and of L^-1 Z'T are those of the regression on k features.
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
