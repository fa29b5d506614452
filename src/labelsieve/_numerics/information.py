"""Entropy and mutual information of 0/1 columns, in bits, from counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix

#: Density from which dense counting, block by block, is faster than sparse.
_DENSE_FROM = 0.05


def binary_mutual_information(Y: Matrix) -> np.ndarray:
    """Mutual information of every pair of columns of a 0/1 matrix; the diagonal holds the entropies.

    Parameters
    ----------
    Y : {ndarray, sparse matrix} of shape (n_samples, n_labels)
        Entries 0 and 1.

    Returns
    -------
    information : ndarray of shape (n_labels, n_labels)
        Symmetric, non-negative, in bits.

    Examples
    --------
    >>> Y = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 0], [0, 0, 1]])
    >>> binary_mutual_information(Y)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    return information_of_pairs(cooccurrence(Y), Y.shape[0])


def information_of_pairs(both: np.ndarray, n_samples: int) -> np.ndarray:
    """`binary_mutual_information` of columns of which `cooccurrence` is known."""
    ones = np.diag(both)
    zeros = n_samples - ones
    only_row = ones[:, None] - both
    only_column = only_row.T
    neither = zeros[:, None] - only_column

    def weighted_ratio(joint: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        # The ratio of integers is exactly 1 for independent columns, so their information is exactly 0.
        expected = row[:, None] * column
        ratio = np.divide(joint * n_samples, expected, out=np.ones_like(joint), where=joint > 0)
        return joint * np.log2(ratio)

    # This order of summation keeps the result exactly symmetric.
    same = weighted_ratio(both, ones, ones) + weighted_ratio(neither, zeros, zeros)
    different = weighted_ratio(only_row, ones, zeros) + weighted_ratio(only_column, zeros, ones)
    return np.maximum((same + different) / n_samples, 0)


def cooccurrence(Y: Matrix) -> np.ndarray:
    """Count, for every pair of columns of a 0/1 matrix, the rows where both are 1.

    Examples
    --------
    >>> cooccurrence(np.array([[1, 1], [1, 0], [0, 1], [1, 1]]))
    array([[3., 2.],
           [2., 3.]])
    """
    n_samples, n_labels = Y.shape
    if is_sparse(Y) and Y.nnz < _DENSE_FROM * n_samples * n_labels:
        return (Y.T @ Y).toarray().astype(np.float64)
    counts = np.zeros((n_labels, n_labels))
    for block in _dense_row_blocks(Y):
        # A block is far shorter than 2**24 rows, so float32 counts exactly, at half the cost.
        ones = block.astype(np.float32)
        counts += ones.T @ ones
    return counts


def plogp(counts: np.ndarray) -> np.ndarray:
    """Return ``N log2 N`` of non-negative counts, 0 at 0.

    Examples
    --------
    >>> plogp(np.array([0.0, 1.0, 4.0]))
    array([0., 0., 8.])
    """
    return counts * np.log2(np.maximum(counts, 1))


def _dense_row_blocks(Y: Matrix) -> Iterator[np.ndarray]:
    """Yield dense blocks of rows of bounded size."""
    for rows in batches(*Y.shape):
        yield dense(Y[rows])
