"""Features with mean 0 and variance 1, by rows or as products, without filling a sparse matrix."""

from __future__ import annotations

import numpy as np

from labelsieve.numerics.batches import batches
from labelsieve.numerics.scaling import Scaling
from labelsieve.numerics.sparse import dense, is_sparse
from labelsieve.numerics.typing import Matrix


class Standardised:
    """Z, the standardised features, in float64; a constant feature is a column of zeros.

    Of a sparse matrix the means are subtracted from products, not from entries.

    Parameters
    ----------
    X : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        Features.

    Examples
    --------
    >>> Z = Standardised(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> Z.rows(slice(0, 2))
    array([[-1.,  0.],
           [ 1.,  0.]])
    >>> Z.column_products()
    array([[2., 0.],
           [0., 0.]])
    """

    def __init__(self, X: Matrix) -> None:
        self.shape = X.shape
        self._scaling = Scaling.learn(X, "standard", centre=True)
        # Dense features stay as they are: their standardised copy would take as much memory again.
        self._X, self._rest = self._scaling.split(X.tocsr()) if is_sparse(X) else (X, None)

    def rows(self, block: slice) -> np.ndarray:
        """Some rows of Z."""
        if self._rest is None:
            return dense(self._scaling.apply(self._X[block]))
        rows: np.ndarray = dense(self._X[block]) - self._rest
        return rows

    def column_products(self) -> np.ndarray:
        """Z'Z, a number for every pair of features."""
        n_samples, n_features = self.shape
        if self._rest is not None:
            return dense(self._X.T @ self._X) - n_samples * np.outer(self._rest, self._rest)
        products = np.zeros((n_features, n_features))
        for block in batches(n_samples, n_features):
            Z = self.rows(block)
            products += Z.T @ Z
        return products

    def row_products(self) -> np.ndarray:
        """ZZ', a number for every pair of rows."""
        n_samples, n_features = self.shape
        if self._rest is not None:
            shift = self._X @ self._rest
            return dense(self._X @ self._X.T) - shift[:, None] - shift + self._rest @ self._rest
        assert self._scaling.offset is not None  # learned with centre=True
        products = np.zeros((n_samples, n_samples))
        for block in batches(n_features, n_samples):
            Z = (self._X[:, block] - self._scaling.offset[block]) * self._scaling.factor[block]
            products += Z @ Z.T
        return products
