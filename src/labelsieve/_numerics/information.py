"""Mutual information of labels and discrete features in bits, and greedy selection by it.

One product of symbol indicators and labels counts all features against all labels. Counts of the symbol
zero and of absent labels follow by subtraction. With ``f(N) = N log2 N`` and a table of counts that sum to
n, ``n I = sum f(cells) - sum f(row sums) - sum f(column sums) + f(n)``. The arguments of f are integers up
to n, so its values are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from labelsieve._blocks.blocks import RowBlocks
from labelsieve._numerics.batches import batches
from labelsieve._numerics.discretize import BinnedFeatures, cut_features, feature_sums, find_cuts
from labelsieve._numerics.result import SolverResult, logger
from labelsieve._numerics.sparse import Matrix, by_columns, columns_of, dense, is_sparse

#: Density above which dense counting in blocks is faster than sparse counting.
_DENSE_FROM = 0.05


def information_of_pairs(both: np.ndarray, n_samples: int) -> np.ndarray:
    """Compute the mutual information of every pair of 0/1 columns from their `cooccurrence`.

    The diagonal holds the entropies.

    Examples
    --------
    >>> Y = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 0], [0, 0, 1]])
    >>> information_of_pairs(cooccurrence(Y), 4)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
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
    """Count the rows in which both columns are 1, for every pair of columns of a 0/1 matrix.

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
    for rows in batches(*Y.shape):
        # A block has far fewer than 2**24 rows, so float32 counts are exact, at half the cost.
        ones = dense(Y[rows]).astype(np.float32)
        counts += ones.T @ ones
    return counts


def plogp(counts: np.ndarray) -> np.ndarray:
    """Return ``N log2 N`` of nonnegative counts, with 0 at 0.

    Examples
    --------
    >>> plogp(np.array([0.0, 1.0, 4.0]))
    array([0., 0., 8.])
    """
    return counts * np.log2(np.maximum(counts, 1))


#: Maximum number of symbol and label counts in memory: 128 MiB.
_MOST_COUNTS = 2**25


def label_information(binned: BinnedFeatures, Y: Matrix) -> Iterator[np.ndarray]:
    """Yield the mutual information of every feature with the labels, one batch of labels at a time.

    Values within rounding error are set to 0.

    Examples
    --------
    >>> from labelsieve._numerics.discretize import bin_features
    >>> X = np.array([[0, 2], [0, 1], [1, 2], [1, 1]])
    >>> Y = np.array([[0, 1, 1], [0, 0, 1], [1, 1, 1], [1, 0, 1]])
    >>> next(label_information(bin_features(X, n_bins=5), Y))
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    yield from information_of_counts(count_symbols(binned, Y), binned.offsets)


class SymbolCounts(NamedTuple):
    """Number of rows of every symbol, of every label, and of every pair (n_symbols x n_labels)."""

    n_samples: int
    of_symbols: np.ndarray
    of_labels: np.ndarray
    of_both: np.ndarray


def count_symbols(binned: BinnedFeatures, Y: Matrix) -> SymbolCounts:
    """Count the rows of every symbol and label with one product."""
    Y = Y.astype(np.int32, copy=False)
    return SymbolCounts(
        Y.shape[0],
        np.diff(binned.indicators.tocsc().indptr).astype(np.int64),
        np.asarray(Y.sum(axis=0), dtype=np.int64).ravel(),
        dense(binned.indicators.T @ Y),
    )


def count_in_rows(
    rows: RowBlocks, n_features: int, n_labels: int, n_bins: int
) -> Iterator[tuple[SymbolCounts, np.ndarray]]:
    """Discretise the features of all blocks, and yield symbol counts and symbol offsets.

    Every batch of labels takes one pass over the rows. Most tables need a single batch.
    """
    rows.derive(by_columns, ["X"], gives="X")
    cuts = find_cuts(rows, n_features, n_bins)
    rows.derive(cut_features, ["X"], cuts, gives="symbols")
    for labels in batches(n_labels, int(cuts.offsets[-1]), _MOST_COUNTS):
        yield rows.fold(_count_block, ["symbols", "Y"], labels), cuts.offsets


def _count_block(symbols: BinnedFeatures, Y: Matrix, labels: slice) -> SymbolCounts:
    return count_symbols(symbols, columns_of(Y, labels))


def information_of_counts(counts: SymbolCounts, offsets: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the mutual information of every feature with batches of labels, from counts."""
    n_samples, of_symbols, of_labels, of_both = counts
    table = plogp(np.arange(n_samples + 1, dtype=np.float64))
    sums = feature_sums(offsets)
    of_zero = n_samples - sums @ of_symbols[:, None]
    of_features = sums @ table[of_symbols[:, None]] + table[of_zero]
    for labels in batches(len(of_labels), len(of_symbols)):
        n_positive, present = of_labels[labels], of_both[:, labels]
        zero_present = n_positive - sums @ present
        absent, zero_absent = of_symbols[:, None] - present, of_zero - zero_present
        cells = sums @ table[present] + table[zero_present] + (sums @ table[absent] + table[zero_absent])
        yield _information(cells, of_features, table[n_positive] + table[n_samples - n_positive], table)


def feature_information(binned: BinnedFeatures, feature: int) -> np.ndarray:
    """Compute the mutual information of every feature with the given one, whose own entry is its entropy.

    Examples
    --------
    >>> from labelsieve._numerics.discretize import bin_features
    >>> X = np.array([[0, 2], [0, 1], [1, 2], [1, 1]])
    >>> feature_information(bin_features(X, n_bins=5), 0)
    array([1., 0.])
    """
    n_samples = binned.indicators.shape[0]
    table = plogp(np.arange(n_samples + 1, dtype=np.float64))
    groups = binned.groups(feature)
    # The last column counts all rows.
    members = np.zeros((n_samples, len(groups) + 1), dtype=np.int32)
    members[:, -1] = 1
    for group, rows in enumerate(groups):
        members[rows, group] = 1
    sizes = members.sum(axis=0)
    sums = feature_sums(binned.offsets)
    of_symbols = dense(binned.indicators.T @ members)
    cells = sums @ table[of_symbols] + table[sizes - sums @ of_symbols]
    return _information(cells[:, :-1].sum(axis=1), cells[:, -1], table[sizes[:-1]].sum(), table)


def conditional_label_information(binned: BinnedFeatures, Y: Matrix, feature: int) -> np.ndarray:
    """Sum the conditional information of every feature about the labels, given one feature.

    This is ``sum_l I(f; y_l | feature)`` for every ``f``. It is the weighted mean of the information in the
    rows of each symbol of the given feature.

    Examples
    --------
    >>> from labelsieve._numerics.discretize import bin_features
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> either = np.array([[0], [1], [1], [0]])
    >>> conditional_label_information(bin_features(X, n_bins=5), either, 0)
    array([0., 1.])
    """
    total = np.zeros(len(binned.offsets) - 1)
    for rows in binned.groups(feature):
        information = sum(part.sum(axis=1) for part in label_information(binned.rows(rows), Y[rows]))
        total += len(rows) / Y.shape[0] * information
    return total


def _information(
    cells: np.ndarray, rows: np.ndarray, columns: np.ndarray | float, table: np.ndarray
) -> np.ndarray:
    """Compute mutual information from the sums of f over the cells and over both margins of a table."""
    n_samples = len(table) - 1
    information = (cells - rows - columns + table[-1]) / n_samples
    rounding = 32 * np.finfo(np.float64).eps * np.log2(max(2, n_samples))
    return np.where(information > rounding, information, 0.0)


def select_greedily(
    relevance: np.ndarray,
    redundancy_with: Callable[[int], np.ndarray],
    n_selected: int,
    dtype: np.dtype[Any] | type = np.float64,
) -> SolverResult:
    """Select features one by one by ``relevance - mean of redundancy_with(s) over the selected s``.

    The first of equally good features is selected. Selecting more features never changes the order of
    earlier ones. The selected features come first in the ranking, in order of selection, then the others
    by their last criterion. Scores run from ``n_features`` down to 1, or are all 0 if no feature is relevant.
    ``criterion`` in ``extra`` is the criterion when a feature was selected, or at the end.

    Examples
    --------
    The second feature repeats the first.

    >>> redundancy = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> result = select_greedily(np.array([3.0, 2.5, 2.0]), redundancy.__getitem__, 2)
    >>> result.scores, result.extra["criterion"]
    (array([3., 1., 2.]), array([3. , 1.6, 2. ]))
    """
    criterion = relevance.copy()
    redundancy = np.zeros_like(relevance)
    waiting = np.ones(len(relevance), dtype=bool)
    selected: list[int] = []
    while True:
        best = _first_largest(criterion, waiting)
        selected.append(best)
        waiting[best] = False
        logger.info(
            "feature %d of %d: column %d, criterion %.6g", len(selected), n_selected, best, criterion[best]
        )
        if len(selected) == n_selected:
            break
        redundancy += redundancy_with(best)
        criterion[waiting] = (relevance - redundancy / len(selected))[waiting]
    rest = np.flatnonzero(waiting)
    order = np.concatenate([selected, rest[np.argsort(-criterion[rest], kind="stable")]]).astype(np.intp)
    scores = np.zeros(len(order), dtype)
    if relevance.any():
        scores[order] = np.arange(len(order), 0, -1)
    return SolverResult(scores=scores, extra={"criterion": criterion.astype(dtype)})


def _first_largest(criterion: np.ndarray, waiting: np.ndarray) -> int:
    """Return the first waiting feature with the largest criterion, up to rounding errors."""
    values = np.where(waiting, criterion, -np.inf)
    largest = values.max()
    return int(np.argmax(values >= largest - 1e-12 * max(1.0, abs(largest))))
