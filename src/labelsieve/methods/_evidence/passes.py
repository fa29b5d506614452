"""What the evidence selector asks of the rows: one pass over the blocks for every question.

Every row belongs to an inner fold, by its number among all rows. Within a block the rows are put into the order of
their folds, so that those of a fold, and those outside it, are slices.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from labelsieve._blocks.blocks import add
from labelsieve._numerics.candidate_precision import RidgeModels
from labelsieve._numerics.moments import column_moments, merge_moments
from labelsieve._numerics.scaling import Scaling, largest_values
from labelsieve._numerics.sparse import Matrix, is_sparse
from labelsieve._numerics.standardized import ProductSums, product_sums, second_moments

#: Share of the rows in which a sparse feature must be stored for one product with all rows to be the faster.
_MANY_ROWS = 0.1

#: Rows, means and squared deviations of every fold.
FoldMoments = list[tuple[int, np.ndarray, np.ndarray]]
#: For every redundancy the features that were chosen, and the regressions on them.
FoldModels = list[tuple[np.ndarray, RidgeModels]]


# Columns that are derived


def in_double_rows(X: Matrix) -> Matrix:
    """Return features in float64, whose rows can be taken."""
    return (X.tocsr() if is_sparse(X) else X).astype(np.float64, copy=False)


def order_by_fold(M: Any, rows: slice, folds: np.ndarray) -> Any:
    """Put rows into the order of their folds."""
    fold = folds[rows]
    return M if (fold[1:] >= fold[:-1]).all() else M[np.argsort(fold, kind="stable")]


def sorted_folds(rows: slice, folds: np.ndarray) -> np.ndarray:
    """Return the folds of the rows in that order."""
    return np.sort(folds[rows])


def keep_labels(Y: Matrix, labels: np.ndarray) -> Matrix:
    """Leave out the other labels."""
    kept: Matrix = Y[:, labels]
    return kept


# Passes


def first_pass(X: Matrix, Y: Matrix, folds: np.ndarray, n_folds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest values of the features and the numbers of candidates, by fold."""
    largest, counts = np.zeros((n_folds, X.shape[1])), np.zeros((n_folds, Y.shape[1]))
    for fold, own in enumerate(_slices(folds, n_folds)):
        if own.stop > own.start:
            largest[fold] = largest_values(_rows_of(X, own))
            counts[fold] = np.asarray(_rows_of(Y, own).sum(axis=0)).ravel()
    return largest, counts


def merge_first_pass(a: Any, b: Any) -> Any:
    """Combine the results of two blocks."""
    return np.maximum(a[0], b[0]), a[1] + b[1]


def moments_by_fold(X: Matrix, folds: np.ndarray, n_folds: int) -> FoldMoments:
    """Compute means and squared deviations of the features in every fold."""
    nothing = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    return [
        (own.stop - own.start, *(column_moments(_rows_of(X, own)) if own.stop > own.start else nothing))
        for own in _slices(folds, n_folds)
    ]


def merge_fold_moments(a: FoldMoments, b: FoldMoments) -> FoldMoments:
    """Combine the moments of two blocks."""
    return [merge(left, right) for left, right in zip(a, b, strict=True)]


def merge(
    a: tuple[int, np.ndarray, np.ndarray], b: tuple[int, np.ndarray, np.ndarray]
) -> tuple[int, np.ndarray, np.ndarray]:
    """Combine rows, means and squared deviations; there may be no rows."""
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
    labels: np.ndarray,
    gram_scaling: Scaling | None,
) -> tuple[ProductSums, Any]:
    """Add up Z'Y of the rows outside a fold, and on demand Z'Z of those in it; of all rows if there is none."""
    sums: Any = None
    for part in _outside(folds, n_folds, held_out):
        added = product_sums(_rows_of(X, part), _rows_of(Y, part)[:, labels], scaling)
        sums = added if sums is None else add(sums, added)
    if gram_scaling is None:
        return sums, 0
    own = slice(0, X.shape[0]) if held_out is None else _slices(folds, n_folds)[held_out]
    return sums, second_moments(_rows_of(X, own), gram_scaling)


def products_of_columns(
    X: Matrix, columns: Matrix, folds: np.ndarray, n_folds: int, features: np.ndarray, scaling: Scaling
) -> tuple[np.ndarray, np.ndarray]:
    """Multiply some scaled features with all features, fold by fold, and sum them.

    The products have the shape (n_chosen, n_folds, n_features), the sums (n_chosen, n_folds). Sparse features are
    not centred.
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
    """Z'Z of some features, several times, in the rows outside a fold; in all rows if there is none."""
    grams = tuple(np.zeros((len(features), len(features))) for features in chosen)
    for gram, features in zip(grams, chosen, strict=True):
        some = X[:, features]
        for part in _outside(folds, n_folds, held_out):
            gram += second_moments(_rows_of(some, part), scaling.of(features))
    return grams


class Precision(NamedTuple):
    """Precision of predictions of held-out rows, by redundancy and number of features."""

    #: Rows of every fold that have a precision.
    n_rows: np.ndarray
    #: Their mean precision, n_folds x n_orders x n_sizes, of the redundancies first; 0 if there are none.
    means: np.ndarray
    #: Means, and sums of squared deviations, of the differences of every two redundancies at every size.
    differences: np.ndarray
    deviations: np.ndarray


def judge(
    X: Matrix, Y: Matrix, folds: np.ndarray, models: list[FoldModels], n_sizes: int, n_compared: int
) -> Precision:
    """Judge the predictions of every row by the models that were learnt outside its fold."""
    precision = np.full((X.shape[0], len(models[0]), n_sizes), np.nan)
    for own, of_fold in zip(_slices(folds, len(models)), models, strict=True):
        if own.stop == own.start:
            continue
        features, labels = _rows_of(X, own), _rows_of(Y, own)
        for i, (chosen, regressions) in enumerate(of_fold):
            # All features are the same features in any order: they are judged once.
            precision[own, i] = precision[own, 0]
            if regressions.weights:
                judged = regressions.precision(features[:, chosen], labels)
                precision[own, i, : judged.shape[1]] = judged
    return summarize(precision, folds, len(models), n_compared)


def summarize(
    precision: np.ndarray, folds: np.ndarray, n_folds: int, n_compared: int | None = None
) -> Precision:
    """Sum up the precision of rows: (n_rows, n_orders, n_sizes), nan for those that have none.

    The first `n_compared` orders, those of the redundancies, are compared in pairs; None compares all.
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
    """Combine the precision of the rows of two blocks."""
    n_rows = a.n_rows + b.n_rows
    share = np.divide(b.n_rows, n_rows, out=np.zeros(len(n_rows)), where=n_rows > 0)[:, None, None]
    _, differences, deviations = merge(
        (int(a.n_rows.sum()), a.differences, a.deviations), (int(b.n_rows.sum()), b.differences, b.deviations)
    )
    return Precision(n_rows, a.means + share * (b.means - a.means), differences, deviations)


# Rows by fold


def _slices(fold: np.ndarray, n_folds: int) -> list[slice]:
    """Where the rows of every fold lie, which are in order."""
    bounds = np.searchsorted(fold, np.arange(n_folds + 1)).tolist()
    return [slice(a, b) for a, b in pairwise(bounds)]


def _outside(fold: np.ndarray, n_folds: int, held_out: int | None) -> list[slice]:
    """Where the rows outside a fold lie."""
    if held_out is None:
        return [slice(0, len(fold))]
    own = _slices(fold, n_folds)[held_out]
    return [slice(0, own.start), slice(own.stop, len(fold))]


def _rows_of(M: Matrix, rows: slice) -> Matrix:
    """Return a slice of the rows; the matrix itself, which a sparse slice would copy, if it is all of them."""
    return M if rows == slice(0, M.shape[0]) else M[rows]
