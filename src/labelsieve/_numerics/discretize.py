"""Discretise features: zero is a separate symbol, and nonzero values go into bins of similar size.

If a feature has ``N`` nonzero values, bin ``b`` starts at the smallest value ``v`` for which
``(number of values < v) + (number of values <= v) >= 2 N b / n_bins``. Equal values always share a bin.
All numbers are integers, so the cuts do not depend on how the rows are divided into blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.blocks import MemoryBlocks, RowBlocks
from labelsieve._numerics.sparse import Matrix, SparseMatrix, is_sparse

#: Maximum number of distinct values, or of counts between two cuts, held in memory for all features.
_BUDGET = 2**22


@dataclass(frozen=True)
class Cuts:
    """First values of the bins of all features, in ascending order per feature.

    The bins of feature ``j`` are ``starts[offsets[j]:offsets[j + 1]]``. The first bin also takes smaller values.
    """

    starts: np.ndarray
    offsets: np.ndarray

    def of(self, feature: int) -> np.ndarray:
        """Return the first values of the bins of a feature."""
        return self.starts[self.offsets[feature] : self.offsets[feature + 1]]


def find_cuts(rows: RowBlocks, n_features: int, n_bins: int) -> Cuts:
    """Cut the nonzero values of every column of ``X`` into at most ``n_bins`` bins.

    A single block is sorted. With several blocks, one pass lists the distinct values. Features with too
    many distinct values need a few more passes, each of which narrows down the cuts.

    Examples
    --------
    >>> from labelsieve._blocks.blocks import MemoryBlocks
    >>> find_cuts(MemoryBlocks([{"X": np.array([[0.0], [7.0], [9.0], [9.0]])}]), 1, 2).starts
    array([7., 9.])
    """
    if len(rows.sizes) == 1:
        starts = rows.fold(_starts_of_block, ["X"], n_bins)
    else:
        starts = _starts_of_blocks(rows, n_features, n_bins)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in starts])])
    return Cuts(np.concatenate(starts), offsets)


def stored_values(X: Matrix) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows and values of the nonzero entries of every feature."""
    if is_sparse(X):
        X = X.tocsc()
        if not X.data.all():
            X = X.copy()
            X.eliminate_zeros()
        for first, stop in pairwise(X.indptr.tolist()):
            yield X.indices[first:stop], X.data[first:stop]
        return
    for feature in range(X.shape[1]):
        rows = np.flatnonzero(X[:, feature])
        yield rows, X[rows, feature]


def _starts_of_block(X: Matrix, n_bins: int) -> list[np.ndarray]:
    return [starts_of_sorted(np.sort(values), n_bins) for _, values in stored_values(X)]


def starts_of_sorted(values: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the first value of every nonempty bin of sorted values.

    Examples
    --------
    >>> starts_of_sorted(np.array([7.0, 9.0, 9.0]), 2)
    array([7., 9.])
    """
    n_values = len(values)
    if not n_values:
        return values
    twice_rank = 2 * n_values * np.arange(n_bins)
    # A bin starts at the value of its rank, or at the next one if the middle of the ties is below that rank.
    found = values[twice_rank // (2 * n_bins)]
    below, up_to = (np.searchsorted(values, found, side=side) for side in ("left", "right"))
    places = np.where((below + up_to) * n_bins >= twice_rank, below, up_to)
    return np.asarray(values[np.unique(places[places < n_values])])


def _starts_of_blocks(rows: RowBlocks, n_features: int, n_bins: int) -> list[np.ndarray]:
    """Return the first values of the bins of every feature if there are several blocks."""
    max_values = max(2 * n_bins, _BUDGET // n_features)
    values = rows.fold(_distinct_values, ["X"], max_values, combine=partial(_merge, max_values=max_values))
    edges = np.searchsorted(values.features, np.arange(n_features + 1))
    starts = [_first_of_bins(values.values[a:b], values.counts[a:b], n_bins) for a, b in pairwise(edges)]
    wide = np.flatnonzero(values.is_wide)
    if len(wide):
        for feature, found in zip(wide, _search_cuts(rows, wide, values, n_bins), strict=True):
            starts[feature] = found
    return starts


class _Values(NamedTuple):
    """Distinct values of every feature and their counts, or only the range of features with too many (wide)."""

    n_values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    is_wide: np.ndarray
    features: np.ndarray
    values: np.ndarray
    counts: np.ndarray


def _distinct_values(X: Matrix, max_values: int) -> _Values:
    n_features = X.shape[1]
    n_values = np.zeros(n_features, dtype=np.int64)
    low = np.full(n_features, np.inf, np.result_type(X.dtype, np.float32))
    high = -low
    distinct, counts = [np.empty(0, X.dtype)], [np.empty(0, np.int64)]
    n_distinct, is_wide = np.zeros(n_features, dtype=np.intp), np.zeros(n_features, dtype=bool)
    for feature, (_, values) in enumerate(stored_values(X)):
        n_values[feature] = len(values)
        if not len(values):
            continue
        low[feature], high[feature] = values.min(), values.max()
        found, repeats = np.unique(values, return_counts=True)
        n_distinct[feature] = len(found)
        # If many values rarely repeat, the feature will exceed the limit, so do not list and merge them.
        is_wide[feature] = len(found) > max_values or (
            len(found) > max_values // 8 and 2 * len(found) > len(values)
        )
        if not is_wide[feature]:
            distinct.append(found)
            counts.append(repeats)
    features = np.repeat(np.arange(n_features), np.where(is_wide, 0, n_distinct))
    return _Values(n_values, low, high, is_wide, features, np.concatenate(distinct), np.concatenate(counts))


def _merge(a: _Values, b: _Values, max_values: int) -> _Values:
    """Merge the values of two blocks."""
    features, values, counts = (np.concatenate(pair) for pair in zip(a[4:], b[4:], strict=True))
    is_wide = a.is_wide | b.is_wide
    order = np.lexsort((values, features))
    order = order[~is_wide[features[order]]]
    features, values, counts = features[order], values[order], counts[order]
    is_new = np.ones(len(values), dtype=bool)
    is_new[1:] = (features[1:] != features[:-1]) | (values[1:] != values[:-1])
    counts = np.add.reduceat(counts, np.flatnonzero(is_new)) if len(counts) else counts
    features, values = features[is_new], values[is_new]
    is_wide |= np.bincount(features, minlength=len(is_wide)) > max_values
    kept = ~is_wide[features]
    return _Values(
        a.n_values + b.n_values,
        np.minimum(a.low, b.low),
        np.maximum(a.high, b.high),
        is_wide,
        features[kept],
        values[kept],
        counts[kept],
    )


def _first_of_bins(values: np.ndarray, counts: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the first value of every nonempty bin of sorted distinct values."""
    # Twice the middle rank of equal values is an integer, so rounding cannot move a cut.
    twice_middle = 2 * np.cumsum(counts) - counts
    bins = twice_middle * n_bins // (2 * max(1, int(counts.sum())))
    is_first = np.ones(len(bins), dtype=bool)
    is_first[1:] = bins[1:] != bins[:-1]
    return np.asarray(values[is_first])


def _search_cuts(rows: RowBlocks, wide: np.ndarray, values: _Values, n_bins: int) -> np.ndarray:
    """Find the cuts of features with many distinct values by a search with several points per pass.

    Floating-point values are mapped to integers in the same order. The search starts between the integers
    of the smallest and the largest value and ends when two adjacent integers enclose each cut.
    """
    needed = -(-2 * values.n_values[wide, None] * np.arange(1, n_bins) // n_bins)
    below = np.repeat(_to_integers(values.low[wide])[:, None] - 1, n_bins - 1, axis=1)
    above = np.repeat(_to_integers(values.high[wide])[:, None] + 1, n_bins - 1, axis=1)
    steps = np.arange(1, np.clip(_BUDGET // needed.size, 16, 4096) + 1, dtype=np.uint64)
    dtype = values.low.dtype
    while (above - below > 1).any():
        spacing = (above - below - 1) // steps[-1] + 1
        # The last points coincide if the spacing does not divide the interval.
        points = below[..., None] + np.minimum(spacing[..., None] * steps, (above - below)[..., None])
        reached = rows.fold(_ranks_of_points, ["X"], wide, _to_floats(points, dtype))
        first = (reached >= needed[..., None]).argmax(axis=-1)[..., None]
        bounds = np.concatenate([below[..., None], points], axis=-1)
        below = np.take_along_axis(bounds, first, axis=-1)[..., 0]
        above = np.take_along_axis(bounds, first + 1, axis=-1)[..., 0]
    starts = np.full((len(wide), n_bins), -np.inf)
    starts[:, 1:] = _to_floats(above, dtype)
    return starts


def _ranks_of_points(X: Matrix, wide: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the number of values < point plus the number of values <= point, for every point."""
    ranks = np.zeros(points.shape, dtype=np.int64)
    for feature, (_, values) in enumerate(stored_values(X[:, wide])):
        for cut, grid in enumerate(points[feature]):
            if cut and (grid == points[feature, cut - 1]).all():
                ranks[feature, cut] = ranks[feature, cut - 1]
                continue
            # Few values lie within narrow bounds, and few of these equal a point.
            inside = values[(values >= grid[0]) & (values <= grid[-1])]
            places = np.searchsorted(grid, inside)
            up_to = np.bincount(places, minlength=len(grid))
            is_equal = grid[places] == inside
            below = np.bincount(places[~is_equal], minlength=len(grid))
            next_place = np.searchsorted(grid, inside[is_equal], side="right")
            below = below + np.bincount(next_place, minlength=len(grid))[: len(grid)]
            ranks[feature, cut] = 2 * np.count_nonzero(values < grid[0]) + np.cumsum(up_to + below)
    return ranks


def _to_integers(values: np.ndarray) -> np.ndarray:
    """Map floating-point values to integers in the same order."""
    sign = np.uint64(1 << (8 * values.dtype.itemsize - 1))
    bits = values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    return np.where(bits >= sign, sign - (bits - sign), sign + bits)


def _to_floats(numbers: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Invert `_to_integers`."""
    sign = np.uint64(1 << (8 * dtype.itemsize - 1))
    bits = np.where(numbers < sign, sign + (sign - numbers), numbers - sign)
    return bits.astype(f"u{dtype.itemsize}").view(dtype)


@dataclass(frozen=True)
class BinnedFeatures:
    """Discrete features as a sparse matrix of symbol indicators. The symbol zero is implicit.

    Column ``s`` of the indicators is 1 in the rows whose feature has symbol ``s``. If no symbol of a
    feature is set in a row, the row has the symbol zero. The symbols of feature ``j`` are the columns
    ``offsets[j]`` to ``offsets[j + 1] - 1``.
    """

    indicators: SparseMatrix
    offsets: np.ndarray

    @cached_property
    def _by_row(self) -> SparseMatrix:
        return self.indicators.tocsr()

    def rows(self, chosen: np.ndarray) -> BinnedFeatures:
        """Keep the chosen rows, and all symbols even if they no longer occur."""
        return replace(self, indicators=self._by_row[chosen])

    def groups(self, feature: int) -> list[np.ndarray]:
        """Return the rows of every symbol of a feature that occurs, zero first."""
        symbols = self.indicators[:, self.offsets[feature] : self.offsets[feature + 1]].tocsc()
        is_zero = np.ones(symbols.shape[0], dtype=bool)
        is_zero[symbols.indices] = False
        groups = [np.flatnonzero(is_zero), *np.split(symbols.indices, symbols.indptr[1:-1])]
        return [rows for rows in groups if len(rows)]


def feature_sums(offsets: np.ndarray) -> SparseMatrix:
    """Return the 0/1 matrix (n_features, n_symbols) that sums over the symbols of every feature."""
    n_symbols = int(offsets[-1])
    return sp.csr_matrix(
        (np.ones(n_symbols, dtype=np.int32), np.arange(n_symbols), offsets),
        shape=(len(offsets) - 1, n_symbols),
    )


def bin_features(X: Matrix, n_bins: int) -> BinnedFeatures:
    """Discretise every feature into at most ``n_bins + 1`` symbols.

    Zero is always a separate symbol, so sparse and dense matrices give the same symbols and 0/1 features
    are unchanged. The nonzero values are cut into ``n_bins`` bins of similar size. Equal values share a
    bin. If there are only two distinct values, each gets its own bin. The bins are invariant to
    increasing transformations of the nonzero values.

    Examples
    --------
    >>> X = np.array([[0.0, 7.0], [0.0, -3.0], [1.0, 7.5], [1.0, 80.0]])
    >>> bin_features(X, n_bins=2).indicators.toarray()
    array([[0, 1, 0],
           [0, 1, 0],
           [1, 0, 1],
           [1, 0, 1]], dtype=int32)
    """
    X = X.tocsc() if is_sparse(X) else X
    return cut_features(X, find_cuts(MemoryBlocks([{"X": X}]), X.shape[1], n_bins))


def cut_features(X: Matrix, cuts: Cuts) -> BinnedFeatures:
    """Discretise features by cuts that were found on rows including these."""
    members, sizes = [], []
    for feature, (rows, values) in enumerate(stored_values(X)):
        starts = cuts.of(feature)
        symbols = np.searchsorted(starts, values, side="right") - 1
        # Radix sort is fast for small integers.
        symbols = symbols.astype(np.min_scalar_type(len(starts)))
        members.append(rows[np.argsort(symbols, kind="stable")])
        sizes.append(np.bincount(symbols, minlength=len(starts)))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    rows = np.concatenate(members)
    indicators = sp.csc_matrix(
        (np.ones(len(rows), dtype=np.int32), rows, starts), shape=(X.shape[0], len(starts) - 1)
    )
    return BinnedFeatures(indicators, cuts.offsets)
