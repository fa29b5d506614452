"""Row statistics of the evidence selector, each computed in one pass over the blocks.

Every row has an inner fold. Within a block, rows are sorted by fold, so that the rows of a fold form a
slice and the rows outside it form at most two.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from labelsieve._blocks.blocks import add
from labelsieve._numerics.candidate_precision import LabelScale, RidgeModels
from labelsieve._numerics.candidates import count_labels, fill_unknown
from labelsieve._numerics.moments import column_moments, merge_moments
from labelsieve._numerics.scaling import Scaling, largest_values
from labelsieve._numerics.sparse import Matrix, is_sparse
from labelsieve._numerics.standardized import ProductSums, product_sums, second_moments

#: Fraction of stored entries above which a sparse feature is multiplied with all rows at once.
_MANY_ROWS = 0.1

#: Rows, means and squared deviations of every fold.
FoldMoments = list[tuple[int, np.ndarray, np.ndarray]]
#: Chosen features of every redundancy, with the regressions on them.
FoldModels = list[tuple[np.ndarray, RidgeModels]]


# Derived columns


def in_double_rows(X: Matrix) -> Matrix:
    """Convert features to float64 and, if sparse, to CSR."""
    return (X.tocsr() if is_sparse(X) else X).astype(np.float64, copy=False)


def order_by_fold(M: Any, rows: slice, folds: np.ndarray) -> Any:
    """Sort the rows of a block by fold."""
    fold = folds[rows]
    return M if (fold[1:] >= fold[:-1]).all() else M[np.argsort(fold, kind="stable")]


def sorted_folds(rows: slice, folds: np.ndarray) -> np.ndarray:
    """Return the sorted folds of the rows."""
    return np.sort(folds[rows])


def keep_labels(Y: Matrix, labels: np.ndarray) -> Matrix:
    """Keep only the given labels."""
    kept: Matrix = Y[:, labels]
    return kept


# Passes


def first_pass(X: Matrix, Y: Matrix, folds: np.ndarray, n_folds: int) -> tuple[np.ndarray, ...]:
    """Return the largest feature values, and the counts of candidates and of known labels, by fold."""
    largest = np.zeros((n_folds, X.shape[1]))
    counts, n_known = np.zeros((2, n_folds, Y.shape[1]))
    for fold, own in enumerate(_slices(folds, n_folds)):
        if own.stop > own.start:
            largest[fold] = largest_values(_rows_of(X, own))
            counts[fold], n_known[fold] = count_labels(_rows_of(Y, own))
    return largest, counts, n_known


def merge_first_pass(a: Any, b: Any) -> Any:
    """Merge the results of two blocks."""
    return np.maximum(a[0], b[0]), a[1] + b[1], a[2] + b[2]


def moments_by_fold(X: Matrix, folds: np.ndarray, n_folds: int) -> FoldMoments:
    """Compute the means and squared deviations of the features in every fold."""
    nothing = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    return [
        (own.stop - own.start, *(column_moments(_rows_of(X, own)) if own.stop > own.start else nothing))
        for own in _slices(folds, n_folds)
    ]


def merge_fold_moments(a: FoldMoments, b: FoldMoments) -> FoldMoments:
    """Merge the moments of two blocks."""
    return [merge(left, right) for left, right in zip(a, b, strict=True)]


def merge(
    a: tuple[int, np.ndarray, np.ndarray], b: tuple[int, np.ndarray, np.ndarray]
) -> tuple[int, np.ndarray, np.ndarray]:
    """Merge numbers of rows, means and squared deviations. Either side may have no rows."""
    if not a[0] or not b[0]:
        return a if a[0] else b
    return a[0] + b[0], *merge_moments(*a, *b)


def products(
    X: Matrix,
    Y: Matrix,
    folds: np.ndarray,
    n_folds: int,
    held_out: int | None,
    scaling: Scaling,
    labels: LabelScale,
    gram_scaling: Scaling | None,
) -> tuple[ProductSums, Any]:
    """Compute Z'Y of the rows outside a fold and, if ``gram_scaling`` is given, Z'Z of the rows in it.

    Without a held-out fold, both use all rows.
    """
    sums: Any = None
    for part in _outside(folds, n_folds, held_out):
        known = fill_unknown(_rows_of(Y, part)[:, labels.varying], labels.mean)
        added = product_sums(_rows_of(X, part), known, scaling)
        sums = added if sums is None else add(sums, added)
    if gram_scaling is None:
        return sums, 0
    own = slice(0, X.shape[0]) if held_out is None else _slices(folds, n_folds)[held_out]
    return sums, second_moments(_rows_of(X, own), gram_scaling)


def products_of_columns(
    X: Matrix, columns: Matrix, folds: np.ndarray, n_folds: int, features: np.ndarray, scaling: Scaling
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the products of some scaled features with all features, and their sums, by fold.

    The products have shape (n_chosen, n_folds, n_features) and the sums (n_chosen, n_folds). Sparse
    features are not centred.
    """
    found = np.empty((len(features), n_folds, X.shape[1]))
    if not is_sparse(columns):
        Z, slices = scaling.apply(columns[:, features]), _slices(folds, n_folds)
        for i, own in enumerate(slices):
            np.matmul(Z[own].T, X[own], out=found[:, i])
        return found, np.stack([Z[own].sum(axis=0) for own in slices], axis=1)
    sums = np.empty((len(features), n_folds))
    for i, feature in enumerate(features.tolist()):
        stored = slice(*columns.indptr[feature : feature + 2])
        seen, values = columns.indices[stored], columns.data[stored] * scaling.factor[i]
        is_many = len(seen) > _MANY_ROWS * X.shape[0]
        Z = np.zeros((X.shape[0] if is_many else len(seen), n_folds))
        Z[seen if is_many else np.arange(len(seen)), folds[seen]] = values
        found[i] = ((X if is_many else X[seen]).T @ Z).T
        sums[i] = Z.sum(axis=0)
    return found, sums


def gram_of_some(
    X: Matrix,
    folds: np.ndarray,
    n_folds: int,
    held_out: int | None,
    scaling: Scaling,
    chosen: list[np.ndarray],
) -> tuple[np.ndarray, ...]:
    """Compute Z'Z of several sets of features on the rows outside a fold, or on all rows without a fold."""
    grams = tuple(np.zeros((len(features), len(features))) for features in chosen)
    for gram, features in zip(grams, chosen, strict=True):
        some = X[:, features]
        for part in _outside(folds, n_folds, held_out):
            gram += second_moments(_rows_of(some, part), scaling.of(features))
    return grams


class Precision(NamedTuple):
    """Precision of the predictions for held-out rows, by order of the features and number of features."""

    #: Number of rows with a precision in every fold.
    n_rows: np.ndarray
    #: Mean precision, shape (n_folds, n_orders, n_sizes). Redundancies come first. 0 without such rows.
    means: np.ndarray
    #: Means and sums of squared deviations of the differences between redundancies, at every size.
    differences: np.ndarray
    deviations: np.ndarray


def score_models(
    X: Matrix, Y: Matrix, folds: np.ndarray, models: list[FoldModels], n_sizes: int, n_compared: int
) -> Precision:
    """Score the predictions for every row with the models that were trained without its fold."""
    precision = np.full((X.shape[0], len(models[0]), n_sizes), np.nan)
    for own, of_fold in zip(_slices(folds, len(models)), models, strict=True):
        if own.stop == own.start:
            continue
        features, labels = _rows_of(X, own), _rows_of(Y, own)
        for i, (chosen, regressions) in enumerate(of_fold):
            # The order does not matter if all features are used, so the first order is scored for all.
            precision[own, i] = precision[own, 0]
            if regressions.weights:
                scored = regressions.precision(features[:, chosen], labels)
                precision[own, i, : scored.shape[1]] = scored
    return summarize(precision, folds, len(models), n_compared)


def summarize(
    precision: np.ndarray, folds: np.ndarray, n_folds: int, n_compared: int | None = None
) -> Precision:
    """Summarise the precision of rows, an array of shape (n_rows, n_orders, n_sizes).

    Rows with nan are ignored. The first `n_compared` orders are compared in pairs, all if None.
    """
    n_orders, n_sizes = precision.shape[1:]
    n_redundancies = n_orders if n_compared is None else n_compared
    is_scored = ~np.isnan(precision).reshape(len(precision), -1).any(axis=1)
    n_rows, means = np.zeros(n_folds, dtype=np.int64), np.zeros((n_folds, n_orders, n_sizes))
    for fold in np.unique(folds[is_scored]):
        own = precision[is_scored & (folds == fold)]
        n_rows[fold], means[fold] = len(own), own.mean(axis=0)
    differences, deviations = np.zeros((2, n_redundancies, n_redundancies, n_sizes))
    scored = precision[is_scored][:, :n_redundancies]
    if len(scored):
        for i in range(n_redundancies):
            behind = scored[:, [i]] - scored
            differences[i] = behind.mean(axis=0)
            deviations[i] = ((behind - differences[i]) ** 2).sum(axis=0)
    return Precision(n_rows, means, differences, deviations)


def merge_precision(a: Precision, b: Precision) -> Precision:
    """Merge the precision of two blocks."""
    n_rows = a.n_rows + b.n_rows
    weight = np.divide(b.n_rows, n_rows, out=np.zeros(len(n_rows)), where=n_rows > 0)[:, None, None]
    _, differences, deviations = merge(
        (int(a.n_rows.sum()), a.differences, a.deviations), (int(b.n_rows.sum()), b.differences, b.deviations)
    )
    return Precision(n_rows, a.means + weight * (b.means - a.means), differences, deviations)


# Rows by fold


def _slices(fold: np.ndarray, n_folds: int) -> list[slice]:
    """Return the slice of every fold among rows sorted by fold."""
    bounds = np.searchsorted(fold, np.arange(n_folds + 1)).tolist()
    return [slice(a, b) for a, b in pairwise(bounds)]


def _outside(fold: np.ndarray, n_folds: int, held_out: int | None) -> list[slice]:
    """Return the slices of the rows outside a fold."""
    if held_out is None:
        return [slice(0, len(fold))]
    own = _slices(fold, n_folds)[held_out]
    return [slice(0, own.start), slice(own.stop, len(fold))]


def _rows_of(M: Matrix, rows: slice) -> Matrix:
    """Slice the rows. Return the matrix itself if the slice covers all, because sparse slices are copies."""
    return M if rows == slice(0, M.shape[0]) else M[rows]
