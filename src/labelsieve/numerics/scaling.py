"""Feature scaling that keeps sparse matrices sparse."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelsieve.numerics.typing import Matrix


def minmax_scale(X: Matrix) -> Matrix:
    """Bring every feature to [0, 1]; constant features become 0.

    Sparse matrices are divided by the column maximum instead, which is the same thing for a column that
    contains a zero and has no negative entry.

    Examples
    --------
    >>> minmax_scale(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[0., 0.],
           [1., 0.]])
    """
    if sp.issparse(X):
        maximum = X.max(axis=0).toarray().ravel()
        return scale_columns(X, _reciprocal(maximum))
    minimum = X.min(axis=0)
    return (X - minimum) * _reciprocal(X.max(axis=0) - minimum)


def scale_columns(X: Matrix, factor: np.ndarray) -> Matrix:
    """Multiply column j by ``factor[j]``, in the dtype of ``X``; the input is left alone."""
    factor = factor.astype(X.dtype, copy=False)
    if not sp.issparse(X):
        return X * factor
    scaled = X.copy()
    if scaled.format == "csc":
        scaled.data *= np.repeat(factor, np.diff(scaled.indptr))
    else:
        scaled.data *= factor[scaled.indices]
    return scaled


def _reciprocal(spread: np.ndarray) -> np.ndarray:
    """Return 1 / spread, and 0 where the spread is too small to divide by."""
    usable = spread > np.finfo(spread.dtype).tiny
    return np.divide(1, spread, out=np.zeros_like(spread), where=usable)
