"""Means, squared deviations and correlated groups of columns. Sparse matrices are centred implicitly."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelsieve._blocks.blocks import RowBlocks
from labelsieve._numerics.batches import batches
from labelsieve._numerics.sparse import Matrix, dense, is_sparse


def centre_columns(M: np.ndarray) -> np.ndarray:
    """Subtract the mean of every column.

    Examples
    --------
    >>> centre_columns(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    return M - M.mean(axis=0)


def column_moments(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the sum of squared deviations of every column, both in float64.

    Deviations are computed from the mean, not as a difference of two large sums. They are set to 0 if they
    are within the rounding error of a constant column. Sparse matrices must not have duplicate entries.

    Examples
    --------
    >>> column_moments(np.array([[1.0, 0.1], [3.0, 0.1]]))
    (array([2. , 0.1]), array([2., 0.]))
    """
    n_samples, n_features = X.shape
    if is_sparse(X):
        columns = X.indices if X.format == "csr" else np.repeat(np.arange(n_features), np.diff(X.indptr))
        # bincount adds in float64, while a sparse sum would add float32 entries in float32.
        mean = np.bincount(columns, weights=X.data, minlength=n_features) / n_samples
        n_stored = np.bincount(columns, minlength=n_features)
        deviation = np.bincount(columns, weights=(X.data - mean[columns]) ** 2, minlength=n_features)
        # Not in place because bincount returns integers for empty input.
        deviation = deviation + (n_samples - n_stored) * mean**2
    else:
        mean = X.mean(axis=0, dtype=np.float64)
        deviation = np.empty(n_features, dtype=np.float64)
        for block in batches(n_features, n_samples):
            centred = X[:, block] - mean[block]
            deviation[block] = np.einsum("ij,ij->j", centred, centred)
    return mean, without_rounding(n_samples, mean, deviation)


def row_moments(rows: RowBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Compute the `column_moments` of the features of all blocks in one pass."""
    _, mean, deviation = rows.fold(_block_moments, ["X"], combine=_merge)
    return mean, deviation


def _block_moments(X: Matrix) -> tuple[int, np.ndarray, np.ndarray]:
    return X.shape[0], *column_moments(X)


def _merge(a: Any, b: Any) -> Any:
    return a[0] + b[0], *merge_moments(*a, *b)


def merge_moments(
    n_a: int,
    mean_a: np.ndarray,
    deviation_a: np.ndarray,
    n_b: int,
    mean_b: np.ndarray,
    deviation_b: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Merge the means and squared deviations of two tables with the same columns.

    See Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American Statistician
    37(3), 1983.

    Examples
    --------
    >>> merge_moments(1, np.array([1.0]), np.array([0.0]), 2, np.array([4.0]), np.array([2.0]))
    (array([3.]), array([8.]))
    """
    n = n_a + n_b
    shift = mean_b - mean_a
    mean = mean_a + shift * (n_b / n)
    return mean, without_rounding(n, mean, deviation_a + deviation_b + shift**2 * (n_a * n_b / n))


def without_rounding(n_samples: int, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Set deviations within the rounding error of a constant column to 0, in place."""
    rounding = n_samples * np.finfo(np.float64).eps * np.abs(mean)
    deviation[deviation <= n_samples * rounding**2] = 0.0
    return deviation


def correlated_groups(X: Matrix, threshold: float) -> np.ndarray:
    """Group columns that are connected by absolute correlations of at least ``threshold``.

    Returns the group of every column. Two columns of a group may be connected only through others. A
    constant column is a separate group. Groups are numbered in the order of their first columns. Correlations
    are computed in blocks, and only strong ones are kept. Sparse columns are centred implicitly and stay
    sparse.

    Examples
    --------
    >>> correlated_groups(np.array([[1.0, 5.0, -1.0], [2.0, 3.0, -2.0], [3.0, 6.0, -3.1]]), 0.9)
    array([0, 1, 0])
    """
    n_samples, n_columns = X.shape
    mean, deviation = column_moments(X)
    spread = np.sqrt(deviation)
    if is_sparse(X):
        X = X.tocsc().astype(np.float64)
    strong = []
    for block in batches(n_columns, max(n_samples, n_columns)):
        first = X[:, block]
        if is_sparse(X):
            correction = n_samples * np.outer(mean[block], mean)
            products = dense(first.T @ X) - correction
            # If the means are large, the difference is just rounding error.
            rounding = n_samples * np.finfo(np.float64).eps * np.abs(correction)
        else:
            # Centring one side is enough. Do it twice because the means of X magnify rounding errors.
            first = first - mean[block]
            first -= first.mean(axis=0)
            products = first.T @ X
            rounding = 0.0
        limits = threshold * np.outer(spread[block], spread)
        # Rounding must not separate duplicate columns.
        rows, columns = np.nonzero((np.abs(products) >= limits * (1 - 1e-12)) & (limits > rounding))
        strong.append(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=products.shape))
    _, groups = connected_components(sp.vstack(strong), directed=False)
    return groups.astype(np.intp)
