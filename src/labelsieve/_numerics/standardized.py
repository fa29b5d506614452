"""Products with standardised features that are never written down.

With ``Z = (X - mean) / deviation``, the columns of ``Z'Z`` and the products ``Z'Y`` are had from ``X`` itself:
sparse features stay sparse, dense ones are standardised a few rows at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.scaling import Scaling, standard_scaling
from labelsieve._numerics.sparse import Matrix, dense, is_sparse


class StandardizedFeatures:
    """Features with mean 0 and variance 1; constant ones are 0. Computes in float64.

    Takes an ndarray, CSR or CSC matrix.

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
        # Of dense features that are not float64 a few rows at a time become so.
        self.X = X.astype(np.float64, copy=False).tocsr() if is_sparse(X) else X

    def take(self, rows: slice) -> np.ndarray:
        """Return some rows of Z."""
        Z, mean = self.scaling.split(self.X[rows])
        return dense(Z) if mean is None else dense(Z) - mean

    def row_products(self) -> np.ndarray:
        """Return ZZ', a number for every pair of rows."""
        if is_sparse(self.X):
            S, mean = self.scaling.split(self.X)
            assert mean is not None  # as standardised features have an offset
            shift = S @ mean
            return dense(S @ S.T) - shift[:, None] - shift + mean @ mean
        total = np.zeros((self.n_samples, self.n_samples))
        for features in batches(self.X.shape[1], self.n_samples):
            Z = self.scaling.of(features).apply(self.X[:, features])
            total += Z @ Z.T
        return total

    def gram(self, features: np.ndarray | slice) -> np.ndarray:
        """Return Z'Z of some features, a number for every pair of them."""
        return second_moments(self.X[:, features], self.scaling.of(features))

    def products(self, Y: Matrix) -> np.ndarray:
        """Return Z'Y: n_features x n_labels, C-contiguous."""
        return product_sums(self.X, Y, self.scaling).centred()


def second_moments(X: Matrix, scaling: Scaling) -> np.ndarray:
    """Z'Z of the scaled rows of ``X``, dense ones a few at a time. Those of more rows are the sum."""
    n_samples, n_features = X.shape
    if is_sparse(X):
        S, mean = scaling.split(X)
        assert mean is not None  # as standardised features have an offset
        return dense(S.T @ S) - n_samples * np.outer(mean, mean)
    total = np.zeros((n_features, n_features))
    for rows in batches(n_samples, n_features):
        Z = scaling.apply(X[rows])
        total += Z.T @ Z
    return total


class ProductSums(NamedTuple):
    """What some rows add to Z'Y: sums that can be added to those of other rows.

    ``rest`` are the column sums of Z, which would be 0 if the means were not rounded; 0 for sparse features.
    """

    n_samples: int
    n_positive: np.ndarray
    rest: np.ndarray
    total: np.ndarray

    def centred(self) -> np.ndarray:
        """Z'Y of all rows that were added up, C-contiguous; uses up the sums."""
        product = np.ascontiguousarray(self.total)
        if self.rest.any():
            _subtract_outer(product, self.rest / self.n_samples, self.n_positive)
        return product


def product_sums(X: Matrix, Y: Matrix, scaling: Scaling) -> ProductSums:
    """Add up the products of some rows."""
    n_positive, rest = np.asarray(Y.sum(axis=0), dtype=np.float64).ravel(), np.zeros(X.shape[1])
    if is_sparse(X):
        S, mean = scaling.split(X)
        total = np.ascontiguousarray(dense(S.T @ Y))
        assert mean is not None  # as standardised features have an offset
        _subtract_outer(total, mean, n_positive)
        return ProductSums(X.shape[0], n_positive, rest, total)
    total = np.zeros((Y.shape[1], X.shape[1]))
    for rows in batches(*X.shape):
        Z = scaling.apply(X[rows])
        total += Y[rows].T @ Z
        rest += Z.sum(axis=0)
    return ProductSums(X.shape[0], n_positive, rest, total.T)


def _subtract_outer(product: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
    """Subtract ``u v'`` in place, a few rows at a time."""
    for rows in batches(*product.shape):
        product[rows] -= np.outer(u[rows], v)
