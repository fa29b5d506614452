"""Products with standardised features that are never written down.

With ``Z = (X - mean) / deviation``, the columns of ``Z'Z`` and the products ``Z'Y`` are had from ``X`` itself:
sparse features stay sparse, dense ones are standardised a few rows at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.scaling import Scaling, scale_columns, standard_scaling
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix, SparseMatrix

__all__ = ["ProductSums", "StandardizedFeatures", "product_sums", "second_moments", "standardize"]


class StandardizedFeatures(ABC):
    """Features with mean 0 and variance 1; constant ones are 0. Computes in float64."""

    def __init__(self, n_samples: int, scaling: Scaling) -> None:
        self.n_samples = n_samples
        self.scaling = scaling

    @abstractmethod
    def take(self, rows: slice) -> np.ndarray:
        """Some rows of Z."""

    @abstractmethod
    def row_products(self) -> np.ndarray:
        """ZZ', a number for every pair of rows."""

    @abstractmethod
    def gram(self, features: np.ndarray | slice) -> np.ndarray:
        """Z'Z of some features, a number for every pair of them."""

    @abstractmethod
    def products(self, Y: Matrix) -> np.ndarray:
        """Z'Y: n_features x n_labels, C-contiguous."""


def standardize(X: Matrix) -> StandardizedFeatures:
    """Return the standardised features of an ndarray, CSR or CSC matrix.

    Examples
    --------
    >>> features = standardize(np.array([[0.0, 5.0], [2.0, 7.0], [4.0, 5.0], [2.0, 7.0]]))
    >>> features.gram(np.array([0, 1]))
    array([[4., 0.],
           [0., 4.]])
    >>> features.products(np.array([[1.0], [0.0], [0.0], [0.0]])).round(3)
    array([[-1.414],
           [-1.   ]])
    """
    scaling = standard_scaling(X)
    # Of dense features that are not float64 a few rows at a time become so.
    return _Sparse(X.astype(np.float64, copy=False), scaling) if is_sparse(X) else _Dense(X, scaling)


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


class _Dense(StandardizedFeatures):
    def __init__(self, X: np.ndarray, scaling: Scaling) -> None:
        super().__init__(len(X), scaling)
        self.X = X

    def take(self, rows: slice) -> np.ndarray:
        return dense(self.scaling.apply(self.X[rows]))

    def row_products(self) -> np.ndarray:
        total = np.zeros((self.n_samples, self.n_samples))
        for features in batches(self.X.shape[1], self.n_samples):
            Z = self.scaling.of(features).apply(self.X[:, features])
            total += Z @ Z.T
        return total

    def gram(self, features: np.ndarray | slice) -> np.ndarray:
        return second_moments(self.X[:, features], self.scaling.of(features))

    def products(self, Y: Matrix) -> np.ndarray:
        return product_sums(self.X, Y, self.scaling).centred()


class _Sparse(StandardizedFeatures):
    """``Z = S - 1 m'`` with sparse S: a product with Z is one with S and a correction."""

    def __init__(self, X: SparseMatrix, scaling: Scaling) -> None:
        super().__init__(X.shape[0], scaling)
        rows = scale_columns(X.tocsr(), scaling.factor)
        assert is_sparse(rows)  # as X is
        self.rows = rows
        self.mean = np.asarray(scaling.offset) * scaling.factor

    def take(self, rows: slice) -> np.ndarray:
        return dense(self.rows[rows]) - self.mean

    def row_products(self) -> np.ndarray:
        shift = self.rows @ self.mean
        return dense(self.rows @ self.rows.T) - shift[:, None] - shift + self.mean @ self.mean

    def gram(self, features: np.ndarray | slice) -> np.ndarray:
        S, mean = self.rows[:, features], self.mean[features]
        return dense(S.T @ S) - self.n_samples * np.outer(mean, mean)

    def products(self, Y: Matrix) -> np.ndarray:
        product = np.ascontiguousarray(dense(self.rows.T @ Y))
        _subtract_outer(product, self.mean, np.asarray(Y.sum(axis=0)).ravel())
        return product
