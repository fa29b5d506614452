"""Stage 1 of PML-FSMIR: confidences of the candidates and mutual information between the labels.

The rows get the column ``confidence``: ``T = R / max R`` with ``R = (Y Z) o Y`` (Eq. 1-3).

The information of T is computed from counts of its values. With ``f(N) = N log2 N``, a table of counts
with sum n has the entropy ``log2 n - sum f(N) / n``. Two facts make all pairs of columns cheap. As
``f(0) = f(1) = 0``, values that occur once do not matter, and cells that involve the symbol zero follow
from the other cells. A symbol is encoded as ``column * base + value``, where the integer value is the
rounded confidence or its bin. The counts of blocks of rows add up exactly because they are integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.blocks import RowBlocks
from labelsieve._numerics.batches import batches
from labelsieve._numerics.information import cooccurrence, plogp
from labelsieve._numerics.sparse import Matrix, columns_of, dense, is_sparse

#: Fraction of candidates above which confidences are made dense, because dense products are then faster.
_CROWDED = 0.1


def derive_confidence(rows: RowBlocks, information: np.ndarray | None) -> None:
    """Weight the candidates by their mutual information, or equally if ``information`` is None."""
    largest = 0.0
    if information is not None:
        rows.derive(_support, ["Y"], information, gives="support")
        largest = rows.fold(_largest_value, ["support"], combine=max)
    # If all labels are constant, there is no information.
    rows.derive(_divided, ["support"] if largest > 0 else ["Y"], largest or 1.0, gives="confidence")
    rows.rename({}, drop=("support",))


def _largest_value(support: Matrix) -> float:
    return float((support.data if is_sparse(support) else support).max(initial=0))


def _divided(support: Matrix, largest: float) -> Matrix:
    confidence = support.copy()
    # SciPy multiplies sparse matrices by the reciprocal, so the largest entry might differ from 1.
    values = confidence.data if is_sparse(confidence) else confidence
    values /= largest
    return confidence


def _support(Y: Matrix, information: np.ndarray) -> Matrix:
    """Compute ``(Y Z) o Y``.

    A sparse product adds the candidates of a row in the order of the labels. The order in a dense product
    may depend on the position of the row, which would turn equal confidences into different symbols.
    """
    if not is_sparse(Y):
        support: np.ndarray = sp.csr_matrix(Y) @ information
        support *= Y
        return support
    result = Y.copy()
    for rows in batches(*Y.shape):
        block = Y[rows]
        row_of = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        first = Y.indptr[rows.start]
        result.data[first : first + block.nnz] = (block @ information)[row_of, block.indices]
    return result


def derive_target(rows: RowBlocks, n_candidates: float, n_labels: int, dtype: np.dtype[Any]) -> None:
    """Derive ``T`` for the factorisation, in the dtype of the features and dense if candidates are many."""
    is_crowded = n_candidates > _CROWDED * rows.n_rows * n_labels
    rows.derive(_target, ["confidence"], is_crowded, dtype, gives="T")


def _target(confidence: Matrix, is_crowded: bool, dtype: np.dtype[Any]) -> Matrix:
    return (dense(confidence) if is_crowded else confidence).astype(dtype, copy=False)


#: Decimals that distinguish symbols. Equal values may differ in the last bits by the order of summation.
_DECIMALS = 12
#: Maximum number of symbols if the rows come in blocks.
_MAX_SYMBOLS = 2**22
#: Maximum number of pairs of symbols whose counts are in memory at once.
_MAX_PAIRS = 2**22


def symbol_information(rows: RowBlocks, n_labels: int, n_bins: int | None) -> np.ndarray:
    """Compute the mutual information between all columns of ``confidence``, in bits.

    The confidences are in [0, 1] and mostly zero. Zero is a separate symbol. With ``n_bins=None``, every
    distinct value, rounded to 12 decimals, is a symbol. This overestimates the information of columns with
    nearly as many values as rows. Otherwise, the symbols are equal-width bins over (0, 1]. The result is
    symmetric and non-negative with the entropies on the diagonal. It takes a few passes over the labels.
    """
    max_symbols = _MAX_SYMBOLS if n_bins is None and len(rows.sizes) > 1 else None
    symbols, counts, both = rows.fold(
        _count_symbols, ["confidence"], n_bins, combine=partial(_merge, max_symbols=max_symbols)
    )
    n_samples, label_of = rows.n_rows, symbols // _base(n_bins)
    ones = np.diag(both)
    marginal = np.bincount(label_of, plogp(counts), minlength=n_labels) + plogp(n_samples - ones)
    joint = plogp(n_samples - ones[:, None] - ones + both)

    # A value that occurs once adds f(1) = 0 to every table.
    repeated = counts > 1
    counts, label_of = counts[repeated], label_of[repeated]
    rows.derive(_symbols, ["confidence"], symbols[repeated], n_bins, gives="symbols")
    rows.derive(_present, ["confidence"], n_bins, gives="present")
    first = np.searchsorted(label_of, np.arange(n_labels + 1))
    against_zero = np.zeros((n_labels, n_labels))
    # Upper bounds: the number of pairs of symbols, and the number of pairs of entries in the same row.
    n_pairs = np.minimum(both.sum(axis=1), np.diff(first) * len(counts))
    for labels in _label_batches(n_pairs):
        own = slice(first[labels.start], first[labels.stop])
        together, seen = (part.tocoo() for part in rows.fold(_count_pairs, ["symbols", "present"], own))
        label_of_own, shape = label_of[own] - labels.start, (labels.stop - labels.start, n_labels)
        joint[labels] += _sum_cells(label_of_own, label_of, together, plogp(together.data), shape)
        # Rows with a symbol of one label and zero in the other.
        alone = counts[own][seen.row]
        less = plogp(alone - seen.data) - plogp(alone)
        against_zero[labels] = _sum_cells(label_of_own, np.arange(n_labels), seen, less, shape)
        against_zero[labels] += np.bincount(label_of_own, plogp(counts[own]), minlength=shape[0])[:, None]
    rows.rename({}, drop=("symbols", "present"))
    joint += against_zero + against_zero.T

    information = np.log2(n_samples) - (marginal[:, None] + marginal - joint) / n_samples
    # The two triangles differ by rounding. Their mean is exactly symmetric.
    return np.maximum((information + information.T) / 2, 0)


def _sum_cells(
    row_labels: np.ndarray, column_labels: np.ndarray, cells: Any, values: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Sum the values of pairs of symbols by the labels of the symbols."""
    places = row_labels[cells.row] * shape[1] + column_labels[cells.col]
    return np.bincount(places, values, minlength=shape[0] * shape[1]).reshape(shape)


def _label_batches(n_pairs: np.ndarray) -> Iterator[slice]:
    """Split the labels into batches with at most ``_MAX_PAIRS`` pairs, or with a single label."""
    up_to = np.cumsum(n_pairs)
    start = 0
    while start < len(n_pairs):
        before = up_to[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(up_to, before + _MAX_PAIRS, side="right")))
        yield slice(start, stop)
        start = stop


class _SymbolCounts(NamedTuple):
    """Sorted symbols, their counts, and the co-occurrence counts of non-zero entries of two columns."""

    symbols: np.ndarray
    counts: np.ndarray
    both: np.ndarray


def _count_symbols(confidence: Matrix, n_bins: int | None) -> _SymbolCounts:
    symbols, counts = np.unique(_entries(confidence, n_bins).data, return_counts=True)
    return _SymbolCounts(symbols, counts.astype(np.float64), cooccurrence(_present(confidence, n_bins)))


def _merge(a: _SymbolCounts, b: _SymbolCounts, max_symbols: int | None) -> _SymbolCounts:
    symbols, places = np.unique(np.concatenate([a.symbols, b.symbols]), return_inverse=True)
    if max_symbols is not None and len(symbols) > max_symbols:
        raise ValueError(
            f"mi_estimator='distinct' allows at most {max_symbols} distinct confidences if the rows come in "
            f"blocks, got more. Use mi_estimator='binned'."
        )
    counts = np.bincount(places, np.concatenate([a.counts, b.counts]), minlength=len(symbols))
    return _SymbolCounts(symbols, counts, a.both + b.both)


def _symbols(confidence: Matrix, chosen: np.ndarray, n_bins: int | None) -> Any:
    """Return a 0/1 matrix of the chosen symbols in every row."""
    entries = _entries(confidence, n_bins)
    places = np.searchsorted(chosen, entries.data)
    found = np.append(chosen, -1)[places] == entries.data
    return sp.csr_matrix(
        (np.ones(found.sum()), (entries.row[found], places[found])), shape=(entries.shape[0], len(chosen))
    )


def _present(confidence: Matrix, n_bins: int | None) -> Any:
    """Return a 0/1 matrix of the labels with a non-zero confidence in every row."""
    entries = _entries(confidence, n_bins)
    return sp.csr_matrix((np.ones(entries.nnz), (entries.row, entries.col)), shape=entries.shape)


def _count_pairs(symbols: Any, present: Any, own: slice) -> tuple[Any, Any]:
    """Count co-occurrences of some symbols with all symbols and with all labels."""
    chosen = columns_of(symbols, own).T
    return chosen @ symbols, chosen @ present


def _base(n_bins: int | None) -> int:
    return 1 + (10**_DECIMALS if n_bins is None else n_bins)


def _entries(T: Matrix, n_bins: int | None) -> Any:
    """Encode the symbols of all non-zero entries in a sparse matrix."""
    entries = sp.coo_matrix(T)
    values = np.rint(entries.data * 10.0**_DECIMALS)
    if n_bins is not None:
        # The small shift keeps an upper edge such as 2/3 in its bin.
        values = np.ceil(values / 10.0**_DECIMALS * n_bins - 1e-9)
    nonzero = values > 0
    row, column = entries.row[nonzero], entries.col[nonzero]
    numbers = column.astype(np.int64) * _base(n_bins) + values[nonzero].astype(np.int64)
    return sp.coo_matrix((numbers, (row, column)), shape=T.shape)
