"""Products with standardised features that are never written down.

With ``Z = (X - mean) / deviation``, the columns of ``Z'Z`` and the products ``Z'Y`` are had from ``X`` itself:
sparse features stay sparse, dense ones are standardised a few rows at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from labelsieve.numerics.batches import batches
from labelsieve.numerics.scaling import Scaling, scale_columns, standard_scaling
from labelsieve.numerics.sparse import dense, is_sparse
from labelsieve.numerics.typing import Matrix, SparseMatrix

__all__ = ["StandardizedFeatures", "second_moments", "standardize"]

#: Share of the rows in which a sparse feature must be stored for one product with all rows to be the faster.
_MANY_ROWS = 0.1


class StandardizedFeatures(ABC):
    """Features with mean 0 and variance 1; constant ones are 0. Computes in float64.

    Parameters
    ----------
    n_samples : int
        Rows.
    scaling : Scaling
        What standardises the features.
    """

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
    def gram_column(self, feature: int) -> np.ndarray:
        """One column of Z'Z, with an entry for every feature."""

    @abstractmethod
    def products(self, Y: Matrix) -> np.ndarray:
        """Z'Y: n_features x n_labels, C-contiguous."""


def standardize(X: Matrix) -> StandardizedFeatures:
    """Return the standardised features of an ndarray, CSR or CSC matrix.

    Examples
    --------
    >>> features = standardize(np.array([[0.0, 5.0], [2.0, 7.0], [4.0, 5.0], [2.0, 7.0]]))
    >>> features.gram_column(1)
    array([0., 4.])
    >>> features.products(np.array([[1.0], [0.0], [0.0], [0.0]])).round(3)
    array([[-1.414],
           [-1.   ]])
    """
    scaling = standard_scaling(X)
    # Of dense features that are not float64 a few rows at a time become so.
    return _Sparse(X.astype(np.float64, copy=False), scaling) if is_sparse(X) else _Dense(X, scaling)


def second_moments(X: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Z'Z of the scaled rows of a dense ``X``, a few of them at a time."""
    n_samples, n_features = X.shape
    total = np.zeros((n_features, n_features))
    for rows in batches(n_samples, n_features):
        Z = scaling.apply(X[rows])
        total += Z.T @ Z
    return total


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

    def gram_column(self, feature: int) -> np.ndarray:
        # A single feature less a single number would stay float32.
        z = self.scaling.of(feature).apply(self.X[:, feature].astype(np.float64))
        # What rounding left of the mean would be multiplied by the means of X, large as they may be.
        z -= z.mean()
        column: np.ndarray = self.X.T @ z
        column *= self.scaling.factor
        return column

    def products(self, Y: Matrix) -> np.ndarray:
        total = np.zeros((Y.shape[1], self.X.shape[1]))
        rest = np.zeros(self.X.shape[1])
        for rows in batches(self.n_samples, self.X.shape[1]):
            Z = self.scaling.apply(self.X[rows])
            total += Y[rows].T @ Z
            rest += Z.sum(axis=0)
        # Sums that would be 0 if the means were not rounded.
        total -= np.outer(np.asarray(Y.sum(axis=0)).ravel() / self.n_samples, rest)
        return np.ascontiguousarray(total.T)


class _Sparse(StandardizedFeatures):
    """``Z = S - 1 m'`` with sparse S: a product with Z is one with S and a correction."""

    def __init__(self, X: SparseMatrix, scaling: Scaling) -> None:
        super().__init__(X.shape[0], scaling)
        rows = scale_columns(X.tocsr(), scaling.factor)
        assert is_sparse(rows)  # as X is
        self.rows = rows
        self.mean = np.asarray(scaling.offset) * scaling.factor

    @cached_property
    def columns(self) -> SparseMatrix:
        """The same by columns, for who asks for some of them."""
        return self.rows.tocsc()

    def take(self, rows: slice) -> np.ndarray:
        taken: np.ndarray = dense(self.rows[rows]) - self.mean
        return taken

    def row_products(self) -> np.ndarray:
        shift = self.rows @ self.mean
        return dense(self.rows @ self.rows.T) - shift[:, None] - shift + self.mean @ self.mean

    def gram(self, features: np.ndarray | slice) -> np.ndarray:
        S, mean = self.columns[:, features], self.mean[features]
        return dense(S.T @ S) - self.n_samples * np.outer(mean, mean)

    def gram_column(self, feature: int) -> np.ndarray:
        stored = slice(*self.columns.indptr[feature : feature + 2])
        rows, values = self.columns.indices[stored], self.columns.data[stored]
        if len(rows) > _MANY_ROWS * self.n_samples:
            column = np.zeros(self.n_samples)
            column[rows] = values
            product = self.rows.T @ column
        else:
            product = self.rows[rows].T @ values
        return np.asarray(product - (self.n_samples * self.mean[feature]) * self.mean)

    def products(self, Y: Matrix) -> np.ndarray:
        counts = np.asarray(Y.sum(axis=0)).ravel()
        product = np.ascontiguousarray(dense(self.rows.T @ Y))
        for features in batches(len(self.mean), len(counts)):
            product[features] -= np.outer(self.mean[features], counts)
        return product
