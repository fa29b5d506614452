"""Feature scaling that keeps sparse matrices sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from labelsieve._blocks.blocks import RowBlocks
from labelsieve._numerics.moments import column_moments
from labelsieve._numerics.sparse import Matrix, dense, is_sparse

#: A feature is constant if its standard deviation is at most this fraction of its largest value.
_CONSTANT = 1e-12
#: Features with values above this, or below its inverse, are rescaled so that squares can be added.
_LARGEST_VALUE = 1e140


@dataclass(frozen=True)
class Scaling:
    """Scaling of features by ``(x - offset) * factor``.

    The offset is None if nothing is subtracted. The factor of a constant feature is 0.

    Examples
    --------
    >>> X = np.array([[1.0, 4.0, 5.0], [3.0, 8.0, 5.0]])
    >>> Scaling.learn(X, "minmax").apply(X)
    array([[0., 0., 0.],
           [1., 1., 0.]])
    >>> Scaling.learn(X, "standard").apply(X)
    array([[-1., -1.,  0.],
           [ 1.,  1.,  0.]])
    """

    offset: np.ndarray | None
    factor: np.ndarray

    @classmethod
    def learn(cls, X: Matrix, scale: str | None, *, centre: bool = False) -> Self:
        """Learn to scale every feature to [0, 1] or to unit variance, or to leave it unscaled.

        Sparse features are not shifted, to keep them sparse. For "minmax" they are divided by max|x|, which
        is equivalent for columns of zeros and positive entries. If ``centre`` is True, the mean is subtracted
        for every scale, also from sparse features, and the scaling is learned in float64. Apply such a
        scaling to sparse features with `split`.
        """
        if not centre and scale is None:
            return cls(None, np.ones(X.shape[1], dtype=X.dtype))
        if not centre and scale == "minmax":
            return cls.between(*column_extremes(X), is_sparse=is_sparse(X))
        mean, deviation = column_moments(X)
        if scale == "standard":
            factor = _divide(np.sqrt(X.shape[0]), np.sqrt(deviation))
        elif scale is None:
            factor = np.ones(X.shape[1])
        else:
            factor = _divide(1, dense(X.max(axis=0) - X.min(axis=0)).ravel())
        factor[deviation == 0] = 0
        if centre:
            return cls(mean, factor.astype(np.float64))
        return cls(None if is_sparse(X) else mean.astype(X.dtype), factor.astype(X.dtype))

    @classmethod
    def between(cls, low: np.ndarray, high: np.ndarray, *, is_sparse: bool) -> Self:
        """Scale features with the given extremes to [0, 1]. Sparse ones are only multiplied."""
        if not is_sparse:
            return cls(low, _divide(1, high - low))
        largest = np.where(low < high, np.maximum(-low, high), 0).astype(np.float64)
        return cls(None, _divide(1, largest).astype(low.dtype))

    def of(self, features: int | slice | np.ndarray) -> Scaling:
        """Return the scaling of the given features."""
        return Scaling(None if self.offset is None else self.offset[features], self.factor[features])

    def apply(self, X: Matrix) -> Matrix:
        """Return a scaled copy of the features, which is dense if there is an offset."""
        if self.offset is None:
            return scale_columns(X, self.factor)
        scaled: np.ndarray = dense(X) - self.offset
        scaled *= self.factor
        return scaled

    def split(self, X: Matrix) -> tuple[Matrix, np.ndarray | None]:
        """Scale features without shifting sparse ones, and return the row that is still to be subtracted.

        The row is None if there is nothing to subtract.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> X = sp.csr_matrix([[0.0, 2.0], [4.0, 0.0]])
        >>> scaled, rest = Scaling.learn(X, "minmax", centre=True).split(X)
        >>> scaled.toarray() - rest
        array([[-0.5,  0.5],
               [ 0.5, -0.5]])
        """
        if self.offset is None or not is_sparse(X):
            return self.apply(X), None
        scaled = scale_columns(X.astype(self.factor.dtype, copy=False), self.factor)
        return scaled, self.offset * self.factor

    def unscaled_model(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Convert a linear model of scaled features to weights and intercept for unscaled features.

        ``coef`` has one row per label. The weights have one column per label.
        """
        W = (coef * self.factor).T
        return W, intercept if self.offset is None else intercept - self.offset @ W


def column_extremes(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of every column, including implicit zeros.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> column_extremes(sp.csr_matrix([[0.0, 2.0], [4.0, 3.0]]))
    (array([0., 2.]), array([4., 3.]))
    """
    if not is_sparse(X):
        return X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
    n_samples, n_features = X.shape
    columns = X.indices if X.format == "csr" else np.repeat(np.arange(n_features), np.diff(X.indptr))
    implied = np.where(np.bincount(columns, minlength=n_features) < n_samples, 0, np.inf).astype(X.dtype)
    low, high = implied.copy(), -implied
    # Ten times faster than sorting the entries by column.
    np.minimum.at(low, columns, X.data)
    np.maximum.at(high, columns, X.data)
    return low, high


def row_extremes(rows: RowBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Compute the `column_extremes` of the features of all blocks in one pass."""
    low, high = rows.fold(column_extremes, ["X"], combine=_widest)
    return low, high


def _widest(a: Any, b: Any) -> Any:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def scaling_of_moments(
    n_samples: int, mean: np.ndarray, deviation: np.ndarray, largest: np.ndarray | None = None
) -> Scaling:
    """Return the `standard_scaling` of features whose `column_moments` are known.

    If ``largest`` is None, only features with a deviation of exactly 0 are constant.
    """
    factor = _divide(np.sqrt(n_samples), np.sqrt(deviation))
    factor[deviation == 0] = 0
    if largest is not None:
        factor[factor * (_CONSTANT * largest) >= 1] = 0
    return Scaling(mean, factor)


def standard_scaling(X: Matrix) -> Scaling:
    """Learn to scale every feature to mean 0 and variance 1, in float64.

    A feature is constant and becomes 0 if its standard deviation is at most ``1e-12`` times its largest
    value, since the rest would be rounding error. `Scaling.split` keeps sparse features sparse.

    Examples
    --------
    >>> standard_scaling(np.array([[1.0, 0.0], [1 + 1e-15, 4.0]])).factor
    array([0. , 0.5])
    """
    return scaling_of_moments(X.shape[0], *column_moments(X), largest_values(X))


def within_range(X: Matrix) -> Matrix:
    """Scale very large or very small features by powers of two so that their squares are representable.

    Other features do not change. If there is nothing to scale, ``X`` is returned unchanged.

    Examples
    --------
    >>> within_range(np.array([[2.0**700, 3.0], [2.0**699, 0.0]]))
    array([[0.5 , 3.  ],
           [0.25, 0.  ]])
    """
    factor = range_factors(largest_values(X))
    return X if (factor == 1).all() else scale_columns(X, factor)


def range_factors(largest: np.ndarray) -> np.ndarray:
    """Return the powers of two by which `within_range` multiplies features with these largest values."""
    largest = largest.astype(np.float64)
    is_extreme = (largest > _LARGEST_VALUE) | ((largest > 0) & (largest < 1 / _LARGEST_VALUE))
    exponent = np.where(is_extreme, np.frexp(largest)[1], 0)
    return np.ldexp(1.0, np.clip(-exponent, -1000, 1000))


def largest_values(X: Matrix) -> np.ndarray:
    """Return the largest absolute value of every column, without copying ``X``."""
    return np.maximum(dense(X.max(axis=0)).ravel(), -dense(X.min(axis=0)).ravel())


def scale_columns(X: Matrix, factor: np.ndarray) -> Matrix:
    """Return a copy with column j multiplied by ``factor[j]``, in the dtype of ``X``."""
    factor = factor.astype(X.dtype, copy=False)
    if not is_sparse(X):
        return X * factor
    by_entry = np.repeat(factor, np.diff(X.indptr)) if X.format == "csc" else factor[X.indices]
    by_entry *= X.data
    # Share the indices, which take half of the memory, unless scipy might sort them in place.
    is_shared = X.has_canonical_format
    indices, indptr = (X.indices, X.indptr) if is_shared else (X.indices.copy(), X.indptr.copy())
    matrix: Any = type(X)
    return matrix((by_entry, indices, indptr), shape=X.shape)


def minmax_rows(V: np.ndarray) -> np.ndarray:
    """Scale every row to [0, 1]. Constant rows become zero.

    Examples
    --------
    >>> minmax_rows(np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]))
    array([[0. , 0.5, 1. ],
           [0. , 0. , 0. ]])
    """
    lowest = V.min(axis=1, keepdims=True)
    spread = V.max(axis=1, keepdims=True) - lowest
    return (V - lowest) / np.where(spread > 0, spread, 1.0)


def _divide(numerator: float, spread: np.ndarray) -> np.ndarray:
    """Return ``numerator / spread``, or 0 if the spread is too small to divide by."""
    usable = spread > np.finfo(spread.dtype).tiny
    quotient = np.zeros_like(spread)
    np.divide(numerator, spread, out=quotient, where=usable)
    return quotient
