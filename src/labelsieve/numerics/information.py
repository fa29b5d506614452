"""Entropy and mutual information of label columns, in bits, from counts.

With ``f(N) = N log2 N``, a table of counts that sum to n has the entropy ``log2 n - sum f(N) / n``. Two facts
make all pairs of columns cheap: ``f(0) = f(1) = 0``, so a value that occurs once never matters, and every
cell that involves the symbol zero follows from the cells that do not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from labelsieve.numerics.batches import batches
from labelsieve.numerics.sparse import dense, is_sparse
from labelsieve.numerics.typing import Matrix

#: Equal values computed in different summation orders differ in the last bits; they must stay one symbol.
DECIMALS = 12

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
    n_samples = Y.shape[0]
    both = cooccurrence(Y)
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


def symbol_mutual_information(T: Matrix, n_bins: int | None = None) -> np.ndarray:
    """Mutual information of every pair of columns of a matrix with entries in [0, 1], mostly zero.

    Parameters
    ----------
    T : {ndarray, sparse matrix} of shape (n_samples, n_labels)
        Zero is a symbol of its own. Values are compared after rounding to 12 decimals.
    n_bins : int or None, default=None
        None takes every distinct value as a symbol, which overestimates the information of columns with
        nearly as many values as rows; a number takes equal-width bins over (0, 1].

    Returns
    -------
    information : ndarray of shape (n_labels, n_labels)
        Symmetric, non-negative, in bits; the diagonal holds the entropies.

    Examples
    --------
    >>> T = np.array([[0.2, 0.7], [0.2, 0.7], [0.9, 0.0], [0.0, 0.4]])
    >>> symbol_mutual_information(T)
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    n_samples, n_labels = T.shape
    rows, symbols, label_of = _symbols(T, n_bins)
    counts = np.bincount(symbols, minlength=len(label_of)).astype(np.float64)
    present = sp.csr_matrix(
        (np.ones(len(rows)), (rows, label_of[symbols])), shape=(n_samples, n_labels), dtype=np.float64
    )
    both = cooccurrence(present)
    ones = np.diag(both)
    marginal = np.bincount(label_of, plogp(counts), minlength=n_labels) + plogp(n_samples - ones)
    joint = plogp(n_samples - ones[:, None] - ones + both)

    # A value that occurs once adds f(1) = 0 to every table, alone or together with any other value.
    repeated = np.flatnonzero(counts > 1)
    kept = counts[symbols] > 1
    columns = np.searchsorted(repeated, symbols[kept])
    indicator = sp.csc_matrix(
        (np.ones(len(columns)), (rows[kept], columns)), shape=(n_samples, len(repeated)), dtype=np.float64
    )
    by_row = indicator.tocsr()
    counts, label_of = counts[repeated], label_of[repeated]
    first = np.searchsorted(label_of, np.arange(n_labels + 1))
    against_zero = np.zeros((n_labels, n_labels))
    for label in np.unique(label_of):
        own = slice(first[label], first[label + 1])
        chosen = indicator[:, own].T.tocsr()
        together = (chosen @ by_row).tocsr()
        joint[label] += np.bincount(label_of[together.indices], plogp(together.data), minlength=n_labels)
        seen = (chosen @ present).toarray()
        against_zero[label] = plogp(counts[own, None] - seen).sum(axis=0)
    joint += against_zero + against_zero.T

    information = np.log2(n_samples) - (marginal[:, None] + marginal - joint) / n_samples
    # The two halves were summed in different orders; their mean is exactly symmetric.
    return np.maximum((information + information.T) / 2, 0)


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


def _symbols(T: Matrix, n_bins: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give every non-zero entry its row and a symbol number; symbols ascend by column.

    The third array maps a symbol to its column.
    """
    entries = sp.coo_matrix(T)
    values = np.round(entries.data, DECIMALS)
    if n_bins is not None:
        # Less than the rounding above, so that an upper edge such as 2/3 stays in its bin.
        values = np.ceil(values * n_bins - 1e-9)
    nonzero = values > 0
    rows, columns, values = entries.row[nonzero], entries.col[nonzero], values[nonzero]
    order = np.lexsort((values, columns))
    rows, columns, values = rows[order], columns[order], values[order]
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = (columns[1:] != columns[:-1]) | (values[1:] != values[:-1])
    return rows, np.cumsum(is_new) - 1, columns[is_new]


def _dense_row_blocks(Y: Matrix) -> Iterator[np.ndarray]:
    """Yield dense blocks of rows of bounded size."""
    for rows in batches(*Y.shape):
        yield dense(Y[rows])
