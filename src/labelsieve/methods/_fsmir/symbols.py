"""Mutual information of columns with many different values, in bits, from counts of these.

With ``f(N) = N log2 N``, a table of counts that sum to n has the entropy ``log2 n - sum f(N) / n``. Two facts
make all pairs of columns cheap: ``f(0) = f(1) = 0``, so a value that occurs once never matters, and every
cell that involves the symbol zero follows from the cells that do not.

A symbol has a number, ``column * base + value``, where the value is an integer: the rounded confidence, or its bin.
Numbers and counts are integers, so blocks of rows give the counts of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.blocks import Columns, MemoryBlocks, RowBlocks, block_function
from labelsieve._numerics.information import cooccurrence, plogp
from labelsieve._numerics.sparse import columns_of
from labelsieve._numerics.typing import Matrix

__all__ = ["symbol_information", "symbol_mutual_information"]

#: Equal values computed in different summation orders differ in the last bits; they must stay one symbol.
_DECIMALS = 12
#: Symbols that are told apart where the rows come in blocks.
_MOST_SYMBOLS = 2**22
#: Pairs of symbols whose counts may be in memory at once.
_MOST_PAIRS = 2**22


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
    return symbol_information(MemoryBlocks([{"confidence": T}]), T.shape[1], n_bins)


def symbol_information(rows: RowBlocks, n_labels: int, n_bins: int | None) -> np.ndarray:
    """Do the same for the column ``confidence`` of rows in blocks; a few passes over the labels."""
    most = _MOST_SYMBOLS if n_bins is None and len(rows.sizes) > 1 else None
    symbols, counts, both = rows.fold(_count_symbols, n_bins, combine=partial(_merge, most=most))
    n_samples, label_of = rows.n_rows, symbols // _base(n_bins)
    ones = np.diag(both)
    marginal = np.bincount(label_of, plogp(counts), minlength=n_labels) + plogp(n_samples - ones)
    joint = plogp(n_samples - ones[:, None] - ones + both)

    # A value that occurs once adds f(1) = 0 to every table, alone or together with any other value.
    repeated = counts > 1
    counts, label_of = counts[repeated], label_of[repeated]
    rows.derive(_indicate, symbols[repeated], n_bins)
    first = np.searchsorted(label_of, np.arange(n_labels + 1))
    against_zero = np.zeros((n_labels, n_labels))
    # No more pairs of symbols occur than there are, nor than pairs of entries in the same row.
    n_pairs = np.minimum(both.sum(axis=1), np.diff(first) * len(counts))
    for labels in _label_batches(n_pairs):
        own = slice(first[labels.start], first[labels.stop])
        together, seen = (part.tocoo() for part in rows.fold(_count_pairs, own))
        label_of_own, shape = label_of[own] - labels.start, (labels.stop - labels.start, n_labels)
        joint[labels] += _sum_cells(label_of_own, label_of, together, plogp(together.data), shape)
        # A symbol without another label: all its rows, but for those where both were seen.
        alone = counts[own][seen.row]
        less = plogp(alone - seen.data) - plogp(alone)
        against_zero[labels] = _sum_cells(label_of_own, np.arange(n_labels), seen, less, shape)
        against_zero[labels] += np.bincount(label_of_own, plogp(counts[own]), minlength=shape[0])[:, None]
    rows.rename({}, drop=("symbols", "present"))
    joint += against_zero + against_zero.T

    information = np.log2(n_samples) - (marginal[:, None] + marginal - joint) / n_samples
    # The two halves were summed in different orders; their mean is exactly symmetric.
    return np.maximum((information + information.T) / 2, 0)


def _sum_cells(
    row_labels: np.ndarray, column_labels: np.ndarray, cells: Any, values: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Sum the values of cells of symbols by the labels of these."""
    places = row_labels[cells.row] * shape[1] + column_labels[cells.col]
    return np.bincount(places, values, minlength=shape[0] * shape[1]).reshape(shape)


def _label_batches(n_pairs: np.ndarray) -> Iterator[slice]:
    """Cut the labels so that not too many pairs are counted at once; a label alone may have more."""
    up_to = np.cumsum(n_pairs)
    start = 0
    while start < len(n_pairs):
        before = up_to[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(up_to, before + _MOST_PAIRS, side="right")))
        yield slice(start, stop)
        start = stop


class _SymbolCounts(NamedTuple):
    """Symbols that occur, ascending, how often, and how often two columns both have one."""

    symbols: np.ndarray
    counts: np.ndarray
    both: np.ndarray


@block_function("confidence")
def _count_symbols(rows: Mapping[str, Any], n_bins: int | None) -> tuple[Columns, _SymbolCounts]:
    entries = _entries(rows["confidence"], n_bins)
    symbols, counts = np.unique(entries.data, return_counts=True)
    return {}, _SymbolCounts(symbols, counts.astype(np.float64), cooccurrence(_present(entries)))


def _merge(a: _SymbolCounts, b: _SymbolCounts, most: int | None) -> _SymbolCounts:
    symbols, places = np.unique(np.concatenate([a.symbols, b.symbols]), return_inverse=True)
    if most is not None and len(symbols) > most:
        raise ValueError(
            f"mi_estimator='distinct' needs at most {most} distinct confidences where the rows come in blocks. "
            f"Got more. Use mi_estimator='binned'."
        )
    counts = np.bincount(places, np.concatenate([a.counts, b.counts]), minlength=len(symbols))
    return _SymbolCounts(symbols, counts, a.both + b.both)


@block_function("confidence", gives=("symbols", "present"))
def _indicate(rows: Mapping[str, Any], chosen: np.ndarray, n_bins: int | None) -> tuple[Columns, None]:
    """Say which of the chosen symbols every row has, and which labels it has any symbol of."""
    entries = _entries(rows["confidence"], n_bins)
    places = np.searchsorted(chosen, entries.data)
    found = np.append(chosen, -1)[places] == entries.data
    indicator = sp.csr_matrix(
        (np.ones(found.sum()), (entries.row[found], places[found])), shape=(entries.shape[0], len(chosen))
    )
    return {"symbols": indicator, "present": _present(entries)}, None


@block_function("symbols", "present")
def _count_pairs(rows: Mapping[str, Any], own: slice) -> tuple[Columns, tuple[Any, Any]]:
    """Count some symbols with all symbols, and with the presence of all labels."""
    chosen = columns_of(rows["symbols"], own).T
    return {}, (chosen @ rows["symbols"], chosen @ rows["present"])


def _base(n_bins: int | None) -> int:
    return 1 + (10**_DECIMALS if n_bins is None else n_bins)


def _entries(T: Matrix, n_bins: int | None) -> Any:
    """Rows, columns and numbers of the symbols of all entries that are not zero."""
    entries = sp.coo_matrix(T)
    values = np.rint(entries.data * 10.0**_DECIMALS)
    if n_bins is not None:
        # Less than the rounding above, so that an upper edge such as 2/3 stays in its bin.
        values = np.ceil(values / 10.0**_DECIMALS * n_bins - 1e-9)
    nonzero = values > 0
    row, column = entries.row[nonzero], entries.col[nonzero]
    numbers = column.astype(np.int64) * _base(n_bins) + values[nonzero].astype(np.int64)
    return sp.coo_matrix((numbers, (row, column)), shape=T.shape)


def _present(entries: Any) -> Any:
    return sp.csr_matrix((np.ones(entries.nnz), (entries.row, entries.col)), shape=entries.shape)
