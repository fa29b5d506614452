"""Feature scaling that keeps sparse matrices sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from labelsieve._blocks.blocks import RowBlocks
from labelsieve._numerics.moments import column_moments
from labelsieve._numerics.sparse import Matrix, dense, is_sparse

#: Standard deviation, as a share of the largest value, up to which a feature counts as constant.
_CONSTANT = 1e-12
#: Features with larger or, inverted, smaller values are brought into a range where their squares can be added.
_LARGEST_VALUE = 1e140


@dataclass(frozen=True)
class Scaling:
    """What brings features to a common scale: x becomes ``(x - offset) * factor``.

    The offset is None if nothing is subtracted; the factor of a feature that was constant is 0.

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
        """Learn to bring every feature to [0, 1] or to unit variance, or to leave it as it is.

        Sparse features are only multiplied, since an offset would fill them: by 1 / max|x| for "minmax", which
        is the same thing for a column of zeros and positive entries. ``centre`` subtracts the mean whatever the
        scale, from sparse features too, for which `split` does it without filling them, and learns in float64.
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
        """Bring every feature to [0, 1] by its smallest and largest value; sparse ones are only multiplied."""
        if not is_sparse:
            return cls(low, _divide(1, high - low))
        largest = np.where(low < high, np.maximum(-low, high), 0).astype(np.float64)
        return cls(None, _divide(1, largest).astype(low.dtype))

    def of(self, features: int | slice | np.ndarray) -> Scaling:
        """Return the scaling of some of the features."""
        return Scaling(None if self.offset is None else self.offset[features], self.factor[features])

    def apply(self, X: Matrix) -> Matrix:
        """Return the scaled features, dense where there is an offset; the input is left alone."""
        if self.offset is None:
            return scale_columns(X, self.factor)
        scaled: np.ndarray = dense(X) - self.offset
        scaled *= self.factor
        return scaled

    def split(self, X: Matrix) -> tuple[Matrix, np.ndarray | None]:
        """Return features that stay sparse, and what is to be subtracted from every row; None for nothing.

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
        """Turn a linear model of scaled features into the weights and intercept for the features themselves.

        ``coef`` has a row per label; the weights have a column per label.
        """
        W = (coef * self.factor).T
        return W, intercept if self.offset is None else intercept - self.offset @ W


def column_extremes(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of every column, zeros that are not stored among them.

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
    # Ten times as fast as sorting the entries by columns.
    np.minimum.at(low, columns, X.data)
    np.maximum.at(high, columns, X.data)
    return low, high


def row_extremes(rows: RowBlocks) -> tuple[np.ndarray, np.ndarray]:
    """`column_extremes` of the features of all blocks; one pass."""
    low, high = rows.fold(column_extremes, ["X"], combine=_widest)
    return low, high


def _widest(a: Any, b: Any) -> Any:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def scaling_of_moments(
    n_samples: int, mean: np.ndarray, deviation: np.ndarray, largest: np.ndarray | None = None
) -> Scaling:
    """Give features mean 0 and variance 1 whose moments (see `column_moments`) are known; `standard_scaling`.

    Without their largest values, only features without any deviation are taken for constant.
    """
    factor = _divide(np.sqrt(n_samples), np.sqrt(deviation))
    factor[deviation == 0] = 0
    if largest is not None:
        factor[factor * (_CONSTANT * largest) >= 1] = 0
    return Scaling(mean, factor)


def standard_scaling(X: Matrix) -> Scaling:
    """Learn to give every feature mean 0 and variance 1, in float64; `Scaling.split` keeps sparse ones sparse.

    A feature is taken for constant, and becomes 0, if its standard deviation is within ``1e-12`` of its
    largest value: what is left of it would be rounding.

    Examples
    --------
    >>> standard_scaling(np.array([[1.0, 0.0], [1 + 1e-15, 4.0]])).factor
    array([0. , 0.5])
    """
    return scaling_of_moments(X.shape[0], *column_moments(X), largest_values(X))


def within_range(X: Matrix) -> Matrix:
    """Scale features of extreme size by powers of two: exact, and their squares do not overflow or vanish.

    Others, and ``X`` itself if there is no such feature, are left alone.

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
    """Return the largest absolute value of every column, in the dtype of ``X`` and without a copy of it."""
    return np.maximum(dense(X.max(axis=0)).ravel(), -dense(X.min(axis=0)).ravel())


def scale_columns(X: Matrix, factor: np.ndarray) -> Matrix:
    """Multiply column j by ``factor[j]``, in the dtype of ``X``; the input is left alone."""
    factor = factor.astype(X.dtype, copy=False)
    if not is_sparse(X):
        return X * factor
    by_entry = np.repeat(factor, np.diff(X.indptr)) if X.format == "csc" else factor[X.indices]
    by_entry *= X.data
    # The indices are half of a matrix. They are shared unless scipy might still sort them in place.
    is_shared = X.has_canonical_format
    indices, indptr = (X.indices, X.indptr) if is_shared else (X.indices.copy(), X.indptr.copy())
    matrix: Any = type(X)
    return matrix((by_entry, indices, indptr), shape=X.shape)


def minmax_rows(V: np.ndarray) -> np.ndarray:
    """Bring every row to [0, 1]; a row of equal values becomes zero.

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
    """Return ``numerator / spread``, and 0 where the spread is too small to divide by."""
    usable = spread > np.finfo(spread.dtype).tiny
    quotient = np.zeros_like(spread)
    np.divide(numerator, spread, out=quotient, where=usable)
    return quotient
