"""Feature scaling that keeps sparse matrices sparse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve.numerics.moments import column_moments
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
    return apply_scaling(X, learn_scaling(X, "minmax"))


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


class Scaling(NamedTuple):
    """Offset and factor of every feature: x becomes ``(x - offset) * factor``. No offset for sparse data."""

    offset: np.ndarray | None
    factor: np.ndarray


def learn_scaling(X: Matrix, scale: str | None) -> Scaling:
    """Learn "minmax" or "standard" scaling, or none; constant features get the factor 0.

    Sparse matrices are only multiplied, since an offset would fill them: by 1 / max|x| for "minmax", which is
    the same thing for a column of zeros and positive entries, and by 1 / standard deviation for "standard".

    Examples
    --------
    >>> X = np.array([[0.0, 4.0], [1.0, 8.0]])
    >>> apply_scaling(X, learn_scaling(X, "standard"))
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    if scale is None:
        return Scaling(None, np.ones(X.shape[1], dtype=X.dtype))
    if scale == "minmax" and not sp.issparse(X):
        minimum = X.min(axis=0)
        return Scaling(minimum, _reciprocal(X.max(axis=0) - minimum))
    mean, deviation = column_moments(X)
    if scale == "minmax":
        spread = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
        spread[deviation == 0] = 0
    else:
        spread = np.sqrt(deviation / X.shape[0])
    offset = None if sp.issparse(X) else mean.astype(X.dtype)
    return Scaling(offset, _reciprocal(spread).astype(X.dtype))


def apply_scaling(X: Matrix, scaling: Scaling) -> Matrix:
    """Return ``(X - offset) * factor``; the input is left alone."""
    if scaling.offset is None:
        return scale_columns(X, scaling.factor)
    scaled = X - scaling.offset
    scaled *= scaling.factor
    return scaled
