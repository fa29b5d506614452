"""Products with standardised features that are never stored as a whole.

With ``Z = (X - mean) / deviation``, the products ``Z'Z`` and ``Z'Y`` are computed from ``X``. Sparse features
stay sparse, and dense features are standardised in batches of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.scaling import Scaling, standard_scaling
from labelsieve._numerics.sparse import Matrix, dense, is_sparse


class StandardizedFeatures:
    """Features scaled to mean 0 and variance 1, in float64. Constant features become 0.

    ``X`` is an ndarray, CSR or CSC matrix.

    Examples
    --------
    >>> features = StandardizedFeatures(np.array([[0.0, 5.0], [2.0, 7.0], [4.0, 5.0], [2.0, 7.0]]))
    >>> features.gram(np.array([0, 1]))
    array([[4., 0.],
           [0., 4.]])
    >>> features.products(np.array([[1.0], [0.0], [0.0], [0.0]])).round(3)
    array([[-1.414],
           [-1.   ]])
    """

    def __init__(self, X: Matrix) -> None:
        self.n_samples = X.shape[0]
        self.scaling = standard_scaling(X)
        # Dense features are converted to float64 in batches of rows.
        self.X = X.astype(np.float64, copy=False).tocsr() if is_sparse(X) else X

    def take(self, rows: slice) -> np.ndarray:
        """Return the given rows of Z."""
        Z, mean = self.scaling.split(self.X[rows])
        return dense(Z) if mean is None else dense(Z) - mean

    def row_products(self) -> np.ndarray:
        """Return ZZ', the inner products of all rows."""
        if is_sparse(self.X):
            S, mean = self.scaling.split(self.X)
            assert mean is not None  # standardised features have an offset
            shift = S @ mean
            return dense(S @ S.T) - shift[:, None] - shift + mean @ mean
        total = np.zeros((self.n_samples, self.n_samples))
        for features in batches(self.X.shape[1], self.n_samples):
            Z = self.scaling.of(features).apply(self.X[:, features])
            total += Z @ Z.T
        return total

    def gram(self, features: np.ndarray | slice) -> np.ndarray:
        """Return Z'Z for the given features."""
        return second_moments(self.X[:, features], self.scaling.of(features))

    def products(self, Y: Matrix) -> np.ndarray:
        """Return Z'Y as a C-contiguous array of shape (n_features, n_labels)."""
        return product_sums(self.X, Y, self.scaling).centred()


def second_moments(X: Matrix, scaling: Scaling) -> np.ndarray:
    """Compute Z'Z of the scaled rows of ``X``. The results of several blocks of rows can be added."""
    n_samples, n_features = X.shape
    if is_sparse(X):
        S, mean = scaling.split(X)
        assert mean is not None  # standardised features have an offset
        return dense(S.T @ S) - n_samples * np.outer(mean, mean)
    total = np.zeros((n_features, n_features))
    for rows in batches(n_samples, n_features):
        Z = scaling.apply(X[rows])
        total += Z.T @ Z
    return total


class ProductSums(NamedTuple):
    """Contribution of some rows to Z'Y, which can be added to that of other rows.

    ``rest`` holds the column sums of Z, which differ from 0 by rounding. It is 0 for sparse features.
    """

    n_samples: int
    n_positive: np.ndarray
    rest: np.ndarray
    total: np.ndarray

    def centred(self) -> np.ndarray:
        """Return Z'Y of all added rows as a C-contiguous array. Overwrites the sums."""
        product = np.ascontiguousarray(self.total)
        if self.rest.any():
            _subtract_outer(product, self.rest / self.n_samples, self.n_positive)
        return product


def product_sums(X: Matrix, Y: Matrix, scaling: Scaling) -> ProductSums:
    """Compute the contribution of some rows to Z'Y."""
    n_positive, rest = np.asarray(Y.sum(axis=0), dtype=np.float64).ravel(), np.zeros(X.shape[1])
    if is_sparse(X):
        S, mean = scaling.split(X)
        total = np.ascontiguousarray(dense(S.T @ Y))
        assert mean is not None  # standardised features have an offset
        _subtract_outer(total, mean, n_positive)
        return ProductSums(X.shape[0], n_positive, rest, total)
    total = np.zeros((Y.shape[1], X.shape[1]))
    for rows in batches(*X.shape):
        Z = scaling.apply(X[rows])
        total += Y[rows].T @ Z
        rest += Z.sum(axis=0)
    return ProductSums(X.shape[0], n_positive, rest, total.T)


def _subtract_outer(product: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
    """Subtract ``u v'`` in place, in batches of rows."""
    for rows in batches(*product.shape):
        product[rows] -= np.outer(u[rows], v)
