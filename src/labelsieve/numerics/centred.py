"""Features less their means, where the difference need not be written down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelsieve.numerics.scaling import scale_columns
from labelsieve.numerics.sparse import dense
from labelsieve.numerics.typing import Matrix


@dataclass(frozen=True)
class CentredFeatures:
    """Products with ``X - 1 offset'``; a sparse ``X`` stays sparse.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Features, as `Scaling.split` returns them.
    offset : ndarray of shape (n_features,) or None, default=None
        What is to be subtracted from every row; None for nothing.

    Examples
    --------
    >>> CentredFeatures(np.array([[1.0, 2.0], [3.0, 2.0]]), np.array([2.0, 2.0])).gram()
    array([[2., 0.],
           [0., 0.]])
    """

    X: Matrix
    offset: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        n_samples, n_features = self.X.shape
        return n_samples, n_features

    def product(self, W: np.ndarray) -> np.ndarray:
        """Return (X - 1 offset') W."""
        product: np.ndarray = self.X @ W
        return product if self.offset is None else product - self.offset @ W

    def transposed_product(self, T: np.ndarray) -> np.ndarray:
        """Return (X - 1 offset')' T."""
        product: np.ndarray = self.X.T @ T
        return product if self.offset is None else product - np.outer(self.offset, T.sum(axis=0))

    def normal_product(self, W: np.ndarray) -> np.ndarray:
        """Return (X - 1 offset')' (X - 1 offset') W."""
        return self.transposed_product(self.product(W))

    def gram(self) -> np.ndarray:
        """Return the products of all pairs of features, in float64."""
        # In double precision always: single precision may round it until it is not definite any more.
        X = self.X.astype(np.float64, copy=False)
        products = dense(X.T @ X)
        if self.offset is None:
            return products
        cross = np.outer(np.asarray(X.sum(axis=0)).ravel(), self.offset)
        return products - cross - cross.T + X.shape[0] * np.outer(self.offset, self.offset)

    def scaled(self, factor: np.ndarray) -> CentredFeatures:
        """Multiply feature j by ``factor[j]``, in float64."""
        X = scale_columns(self.X.astype(np.float64, copy=False), factor)
        return CentredFeatures(X, None if self.offset is None else self.offset * factor)

    def row_products(self) -> np.ndarray:
        """Return the products of all pairs of rows."""
        products = dense(self.X @ self.X.T)
        if self.offset is None:
            return products
        shift = self.X @ self.offset
        return products - shift[:, None] - shift + self.offset @ self.offset


def centre_columns(M: np.ndarray) -> np.ndarray:
    """Subtract the mean of every column.

    Examples
    --------
    >>> centre_columns(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    centred: np.ndarray = M - M.mean(axis=0)
    return centred
