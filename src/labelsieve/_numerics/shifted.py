"""Features less one and the same row, which is never subtracted where they are sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.moments import column_moments
from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.scaling import scale_columns
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix


@dataclass(frozen=True)
class Shifted:
    """The matrix ``X - 1 offset'``, as the products that are made with it.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        What is stored.
    offset : ndarray of shape (n_features,) or None, default=None
        What is subtracted from every row; None for nothing.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> features = Shifted(sp.csr_matrix([[0.0, 2.0], [4.0, 0.0]])).centred()
    >>> features.times(np.eye(2))
    array([[-2.,  1.],
           [ 2., -1.]])
    """

    X: Matrix
    offset: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        n_samples, n_features = self.X.shape
        return n_samples, n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of what is stored."""
        return self.X.dtype

    def astype(self, dtype: Any) -> Shifted:
        """The same in another precision; no copy if it is of this already."""
        return Shifted(self.X.astype(dtype, copy=False), self.offset)

    def mean_row(self) -> np.ndarray:
        """Mean of every column."""
        mean = np.asarray(self.X.mean(axis=0)).ravel()
        return mean if self.offset is None else mean - self.offset

    def centred(self) -> Shifted:
        """The same less its mean row."""
        mean = np.asarray(self.X.mean(axis=0)).ravel()
        return Shifted(self.X, mean) if is_sparse(self.X) else Shifted(self.X - mean)

    def with_constant(self) -> Shifted:
        """The same with a last column of ones."""
        offset = None if self.offset is None else np.append(self.offset, 0)
        return Shifted(with_constant(self.X), offset)

    def scaled(self, factor: np.ndarray) -> Shifted:
        """The same with column j multiplied by ``factor[j]``."""
        offset = None if self.offset is None else self.offset * factor
        return Shifted(scale_columns(self.X, factor), offset)

    def take(self, rows: Any) -> Shifted:
        """Some of the rows."""
        return Shifted(self.X[rows], self.offset)

    def times(self, W: np.ndarray) -> np.ndarray:
        """The product with a matrix that has a row per feature."""
        product: np.ndarray = self.X @ W
        if self.offset is not None:
            product -= self.offset @ W
        return product

    def transposed_times(self, R: np.ndarray) -> np.ndarray:
        """The product of the transpose with a matrix that has a row per row."""
        product: np.ndarray = self.X.T @ R
        if self.offset is not None:
            product -= np.outer(self.offset, R.sum(axis=0))
        return product

    def gram(self) -> np.ndarray:
        """Inner products of the features."""
        products = dense(self.X.T @ self.X)
        if self.offset is not None:
            cross = np.outer(np.asarray(self.X.sum(axis=0)).ravel(), self.offset)
            products -= cross + cross.T - self.X.shape[0] * np.outer(self.offset, self.offset)
        return products

    def row_gram(self) -> np.ndarray:
        """Inner products of the rows."""
        return self.row_products(slice(None))

    def row_products(self, rows: slice) -> np.ndarray:
        """Inner products of some of the rows with all of them."""
        products = dense(self.X[rows] @ self.X.T)
        if self.offset is not None:
            shift = self.X @ self.offset
            products -= shift[rows, None] + shift - self.offset @ self.offset
        return products

    def squared_column_norms(self) -> np.ndarray:
        """Squared Euclidean norm of every column."""
        _, deviation = column_moments(self.X)
        squares: np.ndarray = deviation + self.shape[0] * self.mean_row() ** 2
        return squares

    def squared_row_norms(self) -> np.ndarray:
        """Squared Euclidean norm of every row."""
        squares = squared_row_norms(self.X)
        if self.offset is not None:
            squares = squares - 2 * (self.X @ self.offset) + self.offset @ self.offset
        limited: np.ndarray = np.maximum(squares, 0)
        return limited


def with_constant(X: Matrix) -> Matrix:
    """Append a column of ones."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    return sp.hstack([X, sp.csr_matrix(ones)], format="csr") if is_sparse(X) else np.hstack([X, ones])
