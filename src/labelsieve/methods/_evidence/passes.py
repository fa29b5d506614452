"""What the evidence selector asks of the rows: one pass over the blocks for every question.

Every row belongs to an inner fold, by its number among all rows. Within a block the rows are put into the order of
their folds, so that those of a fold, and those outside it, are slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from labelsieve._blocks.blocks import Columns, add, block_function
from labelsieve._numerics.candidate_precision import RidgeModels
from labelsieve._numerics.moments import column_moments, merge_moments
from labelsieve._numerics.scaling import Scaling, largest_values, scale_columns
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.standardized import ProductSums, product_sums, second_moments
from labelsieve._numerics.typing import Matrix

__all__ = [
    "FoldModels",
    "FoldMoments",
    "Precision",
    "Sight",
    "by_columns",
    "gram_of_some",
    "judge",
    "keep_labels",
    "look",
    "merge_fold_moments",
    "merge_precision",
    "merge_sight",
    "moments_by_fold",
    "order_features",
    "order_labels",
    "products",
    "products_of_columns",
    "summarize",
    "times",
]

#: Share of the rows in which a sparse feature must be stored for one product with all rows to be the faster.
_MANY_ROWS = 0.1

#: Rows, means and squared deviations of every fold.
FoldMoments = list[tuple[int, np.ndarray, np.ndarray]]
#: For every redundancy the features that were chosen, and the regressions on them.
FoldModels = list[tuple[np.ndarray, RidgeModels]]


# Columns that are derived


@block_function("X", gives=("X", "fold"))
def order_features(rows: Mapping[str, Any], folds: np.ndarray) -> tuple[Columns, None]:
    """Put the features into the order of the folds: float64, rows that can be taken."""
    X = rows["X"].tocsr() if is_sparse(rows["X"]) else rows["X"]
    X = X.astype(np.float64, copy=False)
    fold = folds[rows["first_row"] : rows["first_row"] + X.shape[0]]
    order = _order(fold)
    return {"X": X if order is None else X[order], "fold": fold if order is None else fold[order]}, None


@block_function("Y", gives=("Y",))
def order_labels(rows: Mapping[str, Any], folds: np.ndarray) -> tuple[Columns, None]:
    """Put the labels into the order of the folds."""
    Y = rows["Y"]
    order = _order(folds[rows["first_row"] : rows["first_row"] + Y.shape[0]])
    return {"Y": Y if order is None else Y[order]}, None


def _order(fold: np.ndarray) -> np.ndarray | None:
    """Order rows by their folds; None for rows that are in order."""
    return None if (fold[1:] >= fold[:-1]).all() else np.argsort(fold, kind="stable")


@block_function("Y", gives=("Y",))
def keep_labels(rows: Mapping[str, Any], labels: np.ndarray) -> tuple[Columns, None]:
    """Leave out the other labels."""
    return {"Y": rows["Y"][:, labels]}, None


@block_function("X", gives=("X",))
def times(rows: Mapping[str, Any], factor: np.ndarray) -> tuple[Columns, None]:
    """Multiply the features."""
    return {"X": scale_columns(rows["X"], factor)}, None


@block_function("X", gives=("columns",))
def by_columns(rows: Mapping[str, Any]) -> tuple[Columns, None]:
    """Store sparse features by columns, for who asks for some of these."""
    return {"columns": rows["X"].tocsc() if is_sparse(rows["X"]) else rows["X"]}, None


# Passes


class Sight(NamedTuple):
    """What is seen of features and labels at first: largest values and numbers of candidates, by fold."""

    largest: np.ndarray
    counts: np.ndarray


@block_function("X", "Y", "fold")
def look(rows: Mapping[str, Any], n_folds: int) -> tuple[Columns, Sight]:
    """Find the largest values of the features, and count the candidates."""
    X, Y = rows["X"], rows["Y"]
    largest, counts = np.zeros((n_folds, X.shape[1])), np.zeros((n_folds, Y.shape[1]))
    for fold, own in enumerate(_slices(rows["fold"], n_folds)):
        if own.stop > own.start:
            largest[fold] = largest_values(_rows_of(X, own))
            counts[fold] = np.asarray(_rows_of(Y, own).sum(axis=0)).ravel()
    return {}, Sight(largest, counts)


def merge_sight(a: Sight, b: Sight) -> Sight:
    """Combine what was seen in two blocks."""
    return Sight(np.maximum(a.largest, b.largest), a.counts + b.counts)


@block_function("X", "fold")
def moments_by_fold(rows: Mapping[str, Any], n_folds: int) -> tuple[Columns, FoldMoments]:
    """Means and squared deviations of the features in every fold."""
    X = rows["X"]
    nothing = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    return {}, [
        (own.stop - own.start, *(column_moments(_rows_of(X, own)) if own.stop > own.start else nothing))
        for own in _slices(rows["fold"], n_folds)
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


@block_function("X", "Y", "fold")
def products(
    rows: Mapping[str, Any],
    n_folds: int,
    held_out: int | None,
    scaling: Scaling,
    labels: np.ndarray,
    gram_scaling: Scaling | None,
) -> tuple[Columns, tuple[ProductSums, Any]]:
    """Add up Z'Y of the rows outside a fold, and on demand Z'Z of those in it; of all rows if there is none."""
    X, Y = rows["X"], rows["Y"]
    sums: Any = None
    for part in _outside(rows["fold"], n_folds, held_out):
        added = product_sums(_rows_of(X, part), _rows_of(Y, part)[:, labels], scaling)
        sums = added if sums is None else add(sums, added)
    if gram_scaling is None:
        return {}, (sums, 0)
    own = slice(0, X.shape[0]) if held_out is None else _slices(rows["fold"], n_folds)[held_out]
    return {}, (sums, second_moments(_rows_of(X, own), gram_scaling))


@block_function("X", "columns", "fold")
def products_of_columns(
    rows: Mapping[str, Any], n_folds: int, features: np.ndarray, scaling: Scaling
) -> tuple[Columns, tuple[np.ndarray, np.ndarray]]:
    """Multiply some scaled features with all features, fold by fold, and sum them.

    The products have the shape (n_chosen, n_folds, n_features), the sums (n_chosen, n_folds). Sparse features are
    not centred.
    """
    X, columns, fold = rows["X"], rows["columns"], rows["fold"]
    found = np.empty((len(features), n_folds, X.shape[1]))
    if not is_sparse(X):
        Z, slices = scaling.apply(columns[:, features]), _slices(fold, n_folds)
        for i, own in enumerate(slices):
            np.matmul(Z[own].T, X[own], out=found[:, i])
        return {}, (found, np.stack([Z[own].sum(axis=0) for own in slices], axis=1))
    sums = np.empty((len(features), n_folds))
    for i, feature in enumerate(features.tolist()):
        stored = slice(*columns.indptr[feature : feature + 2])
        seen, values = columns.indices[stored], columns.data[stored] * scaling.factor[i]
        is_many = len(seen) > _MANY_ROWS * X.shape[0]
        Z = np.zeros((X.shape[0] if is_many else len(seen), n_folds))
        Z[seen if is_many else np.arange(len(seen)), fold[seen]] = values
        found[i] = ((X if is_many else X[seen]).T @ Z).T
        sums[i] = Z.sum(axis=0)
    return {}, (found, sums)


@block_function("X", "fold")
def gram_of_some(
    rows: Mapping[str, Any], n_folds: int, held_out: int | None, scaling: Scaling, chosen: list[np.ndarray]
) -> tuple[Columns, tuple[np.ndarray, ...]]:
    """Z'Z of some features, several times, in the rows outside a fold; in all rows if there is none."""
    grams = tuple(np.zeros((len(features), len(features))) for features in chosen)
    for gram, features in zip(grams, chosen, strict=True):
        X = rows["X"][:, features]
        for part in _outside(rows["fold"], n_folds, held_out):
            gram += second_moments(_rows_of(X, part), scaling.of(features))
    return {}, grams


class Precision(NamedTuple):
    """How precise predictions of held-out rows are, by redundancy and number of features.

    Parameters
    ----------
    n_rows : ndarray of shape (n_folds,)
        Rows of every fold that have a precision.
    means : ndarray of shape (n_folds, n_orders, n_sizes)
        Their mean precision, of the redundancies first; 0 where there are none.
    differences, deviations : ndarray of shape (n_redundancies, n_redundancies, n_sizes)
        Means, and sums of squared deviations from them, of the differences of every two redundancies, over all folds.
    """

    n_rows: np.ndarray
    means: np.ndarray
    differences: np.ndarray
    deviations: np.ndarray


@block_function("X", "Y", "fold")
def judge(
    rows: Mapping[str, Any], models: list[FoldModels], n_sizes: int, n_compared: int
) -> tuple[Columns, Precision]:
    """Judge the predictions of every row by the models that were learnt outside its fold."""
    X, Y = rows["X"], rows["Y"]
    precision = np.full((X.shape[0], len(models[0]), n_sizes), np.nan)
    for own, of_fold in zip(_slices(rows["fold"], len(models)), models, strict=True):
        if own.stop == own.start:
            continue
        features, labels = _rows_of(X, own), _rows_of(Y, own)
        for i, (chosen, regressions) in enumerate(of_fold):
            # All features are the same features in any order: they are judged once.
            precision[own, i] = precision[own, 0]
            if regressions.weights:
                judged = regressions.precision(features[:, chosen], labels)
                precision[own, i, : judged.shape[1]] = judged
    return {}, summarize(precision, rows["fold"], len(models), n_compared)


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
