"""Products of standardised features and labels, as the greedy search needs them.

The columns of Z'Z, the Gram matrix of the standardised features, are computed on demand or all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TypeAlias

import numpy as np

from labelsieve._blocks.blocks import MemoryBlocks, RowBlocks
from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidate_precision import LabelScale, RidgeModels, fit_ridge
from labelsieve._numerics.scaling import Scaling, range_factors, scale_columns, scaling_of_moments
from labelsieve._numerics.sparse import by_columns
from labelsieve._row_problem import RowProblem
from labelsieve.methods._evidence import passes

#: Maximum number of features for which the full Gram matrix is formed.
LARGEST_GRAM = 5000
#: Cost of one operation in a matrix-vector product, which is memory-bound, relative to a matrix product.
_MEMORY_BOUND = 8
#: Columns are recomputed if the standard deviation over all rows exceeds that over the kept rows by more
#: than this factor, because subtracting sums would lose too much precision.
_LARGEST_LOSS = 100
#: Number of columns to prefetch in a pass over blocks.
_AHEAD = 64
#: Cache size in numbers: 128 MiB if the rows are in memory, where columns are cheap, otherwise 512 MiB.
_KEPT_IN_MEMORY, _KEPT = 2**24, 2**26

#: Returns the features that a search may select next, most likely first.
Likely: TypeAlias = Callable[[], np.ndarray]


class FormedGram:
    """Z'Z as a matrix."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def column(self, feature: int, likely: Likely) -> np.ndarray:
        """Return one column, a view that must not be modified."""
        column: np.ndarray = self.matrix[feature]
        return column

    def blocks(self, chosen: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Return the submatrices of several sets of features."""
        return (self.matrix[np.ix_(features, features)] for features in chosen)


class ColumnStore:
    """Cache of the products of single features with all features, in every inner fold.

    The most recently used columns are kept. If the rows are in memory, columns are computed one at a
    time. Otherwise, each pass over the rows prefetches columns that are likely to be needed next.
    """

    def __init__(self, rows: RowBlocks, n_folds: int, scaling: Scaling) -> None:
        self.rows = rows
        self.n_folds = n_folds
        self.scaling = scaling
        is_here = isinstance(rows, MemoryBlocks) and len(rows.sizes) == 1
        room = (_KEPT_IN_MEMORY if is_here else _KEPT) // (n_folds * len(scaling.factor))
        self.most = max(1, room)
        self.n_ahead = 1 if is_here else min(_AHEAD, self.most)
        #: Products (n_folds x n_features) and sums (n_folds) by feature, most recently used last.
        self._kept: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._is_ready = False

    def of(self, feature: int, likely: Likely) -> tuple[np.ndarray, np.ndarray]:
        """Return the products of a standardised feature with all features, and its sums, by fold."""
        if feature not in self._kept:
            self._fetch(feature, likely)
        self._kept[feature] = self._kept.pop(feature)
        return self._kept[feature]

    def fetch(self, features: np.ndarray, scaling: Scaling) -> tuple[np.ndarray, np.ndarray]:
        """Compute the products of features with the given scaling in one pass over the rows."""
        if not self._is_ready:
            self.rows.derive(by_columns, ["X"], gives="columns")
            self._is_ready = True
        products, sums = self.rows.fold(
            passes.products_of_columns, ["X", "columns", "fold"], self.n_folds, features, scaling.of(features)
        )
        return products, sums

    def _fetch(self, feature: int, likely: Likely) -> None:
        wanted = [feature]
        if self.n_ahead > 1:
            others = (other for other in likely().tolist() if other not in self._kept and other != feature)
            wanted += [other for other, _ in zip(others, range(self.n_ahead - 1), strict=False)]
        for oldest in list(self._kept)[: max(0, len(self._kept) + len(wanted) - self.most)]:
            del self._kept[oldest]
        products, sums = self.fetch(np.array(wanted), self.scaling)
        for i, known in enumerate(wanted):
            # A view would keep the whole batch in memory.
            self._kept[known] = products[i].copy(), sums[i].copy()


class GramOnDemand:
    """Z'Z of the rows outside an inner fold, or of all rows, column by column."""

    def __init__(self, store: ColumnStore, scaling: Scaling, held_out: int | None) -> None:
        self.store = store
        self.scaling = scaling
        self.held_out = held_out

    def column(self, feature: int, likely: Likely) -> np.ndarray:
        """Return one column, which must not be modified."""
        factor, offset = self.scaling.factor, np.asarray(self.scaling.offset)
        if factor[feature] == 0:
            return np.zeros(len(factor))
        in_all = self.store.scaling.factor[feature]
        ratio = factor[feature] / in_all if in_all > 0 else np.inf
        if ratio > _LARGEST_LOSS:
            # A feature that hardly varies in the kept rows must be centred at their own mean.
            products, sums = (part[0] for part in self.store.fetch(np.array([feature]), self.scaling))
            ratio = 1.0
        else:
            products, sums = self.store.of(feature, likely)
        seen = np.arange(self.store.n_folds) != (-1 if self.held_out is None else self.held_out)
        column: np.ndarray = products[seen].sum(axis=0)
        column -= offset * sums[seen].sum()
        column *= factor * ratio
        return column

    def blocks(self, chosen: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Compute the submatrices of several sets of features in one pass over the rows."""
        shared = self.store.n_folds, self.held_out, self.scaling, list(chosen)
        return iter(self.store.rows.fold(passes.gram_of_some, ["X", "fold"], *shared))


def is_gram_cheaper(n_features: int, n_columns: float, n_folds: int, *, is_sparse: bool) -> bool:
    """Return True if forming Z'Z is cheaper than computing ``n_columns`` of its columns.

    Columns of sparse features are so cheap that their Z'Z is never formed.
    """
    if is_sparse or n_features > LARGEST_GRAM:
        return False
    # Costs are in units of n_samples * n_features. Symmetry halves the cost of the full matrix.
    return n_features * (2 if n_folds else 1) < 2 * _MEMORY_BOUND * n_columns


def without_fold(
    gram: np.ndarray,
    part: np.ndarray,
    scaling: Scaling,
    kept: Scaling,
    n_kept: int,
    column: Callable[[int], np.ndarray],
) -> np.ndarray:
    """Derive Z'Z of the rows outside a fold from Z'Z of all rows and of the fold.

    ``scaling`` standardises the features over all rows, and ``kept`` over the rows outside the fold.
    ``column`` recomputes a column of the result.
    """
    matrix: np.ndarray = gram - part
    # Convert to the means and standard deviations of the kept rows.
    shift = (np.asarray(kept.offset) - np.asarray(scaling.offset)) * scaling.factor
    ratio = np.divide(kept.factor, scaling.factor, out=np.zeros_like(shift), where=scaling.factor > 0)
    for rows in batches(len(matrix), len(matrix)):
        matrix[rows] -= n_kept * np.outer(shift[rows], shift)
        matrix[rows] *= np.outer(ratio[rows], ratio)
    # If a feature hardly varies in the kept rows, subtracting large sums loses its digits.
    for feature in np.flatnonzero(ratio > _LARGEST_LOSS).tolist():
        matrix[feature] = matrix[:, feature] = column(feature)
    return matrix


Gram: TypeAlias = FormedGram | GramOnDemand


@dataclass(frozen=True)
class Problem:
    """Z'Z and Z'T of some rows, with standardised features Z and labels T.

    Constant features have factor 0. ``labels`` are the labels that vary, the columns of ``products``.
    """

    n_samples: int
    features: Scaling
    labels: LabelScale
    gram: Gram
    products: np.ndarray

    def regressions(self, chosen: Sequence[np.ndarray], sizes: Sequence[np.ndarray]) -> Iterator[RidgeModels]:
        """Yield the regressions on the top features of several rankings."""
        for features, wanted, gram in zip(chosen, sizes, self.gram.blocks(chosen), strict=True):
            scaling, products = self.features.of(features), self.products[features]
            yield fit_ridge(self.n_samples, scaling, self.labels, gram, products, wanted)


class Rows:
    """Source of the problems of all rows and of the rows outside each inner fold.

    ``folds`` holds the fold of every row, all 0 without folds.
    """

    def __init__(self, problem: RowProblem, folds: np.ndarray) -> None:
        self.n_folds = int(folds.max()) + 1
        self.n_samples = len(folds)
        self.rows = problem.rows
        self._is_sparse = problem.is_sparse
        self._n_outside = self.n_samples - np.bincount(folds)
        folds = folds.astype(np.min_scalar_type(self.n_folds))
        self.rows.derive(passes.in_double_rows, ["X"], gives="X")
        for name in ("X", "Y"):
            self.rows.derive(passes.order_by_fold, [name, "rows"], folds, gives=name)
        self.rows.derive(passes.sorted_folds, ["rows"], folds, gives="fold")
        self._largest, self._counts, self._n_known = self.rows.fold(
            passes.first_pass, ["X", "Y", "fold"], self.n_folds, combine=passes.merge_first_pass
        )
        #: Labels that were not dropped.
        self.kept_labels = np.arange(self._counts.shape[1])
        factor = range_factors(self._largest.max(axis=0))
        if (factor != 1).any():
            self.rows.derive(scale_columns, ["X"], factor, gives="X")
            self._largest *= factor
        self._moments = self.rows.fold(
            passes.moments_by_fold, ["X", "fold"], self.n_folds, combine=passes.merge_fold_moments
        )
        self._gram: np.ndarray | None = None

    @property
    def label_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of candidates and of known entries of every label."""
        return self._counts.sum(axis=0), self._n_known.sum(axis=0)

    def keep_labels(self, labels: np.ndarray) -> None:
        """Drop all other labels permanently."""
        if len(labels) < self._counts.shape[1]:
            self.kept_labels = labels
            self.rows.derive(passes.keep_labels, ["Y"], labels, gives="Y")
            self._counts, self._n_known = self._counts[:, labels], self._n_known[:, labels]

    def whole(self, *, form_gram: bool) -> Problem:
        """Return the problem of all rows.

        If ``form_gram`` is True and the features are dense, form Z'Z. Z'Z of the rows outside a fold is
        then computed by subtraction.
        """
        return self._problem(None, form_gram=form_gram and not self._is_sparse)

    def without(self, held_out: int) -> Problem:
        """Return the problem of the rows outside a fold. Call `whole` first."""
        return self._problem(held_out, form_gram=self._gram is not None)

    @cached_property
    def _store(self) -> ColumnStore:
        return ColumnStore(self.rows, self.n_folds, self._scaling(None))

    def _seen(self, held_out: int | None) -> list[int]:
        return [fold for fold in range(self.n_folds) if fold != held_out]

    def _scaling(self, held_out: int | None) -> Scaling:
        """Return the scaling that standardises the features over the rows outside a fold."""
        seen = self._seen(held_out)
        n_samples, mean, deviation = reduce(passes.merge, (self._moments[fold] for fold in seen))
        return scaling_of_moments(n_samples, mean, deviation, self._largest[seen].max(axis=0))

    def _problem(self, held_out: int | None, *, form_gram: bool) -> Problem:
        scaling, seen = self._scaling(held_out), self._seen(held_out)
        n_samples = self.n_samples if held_out is None else int(self._n_outside[held_out])
        counts, n_known = self._counts[seen].sum(axis=0), self._n_known[seen].sum(axis=0)
        labels = LabelScale.of_counts(counts, n_known, n_samples)
        in_all = self._scaling(None)
        shared = self.n_folds, held_out, scaling, labels, in_all if form_gram else None
        sums, part = self.rows.fold(passes.products, ["X", "Y", "fold"], *shared)
        gram: Gram = GramOnDemand(self._store, scaling, held_out)
        if form_gram and self._gram is None:
            self._gram = part
            gram = FormedGram(part)
        elif self._gram is not None:
            column = partial(gram.column, likely=_nothing)
            gram = FormedGram(without_fold(self._gram, part, in_all, scaling, n_samples, column))
        return Problem(n_samples, scaling, labels, gram, labels.scale_products(sums.centred()))


def _nothing() -> np.ndarray:
    return np.empty(0, dtype=np.intp)
