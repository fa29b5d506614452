"""Inner cross-validation of the redundancy weight and of the number of features or columns to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from labelsieve._numerics.result import logger
from labelsieve.methods._evidence.passes import FoldModels, Precision, merge_precision, score_models
from labelsieve.methods._evidence.path import Criterion, rank_features
from labelsieve.methods._evidence.problem import LARGEST_GRAM, Problem, Rows

#: Redundancy weights that "auto" tries, most stable first: a filter, a compromise, forward selection.
REDUNDANCIES = (np.inf, 1.0, 0.0)
#: Minimum number of rows for cross-validation.
FEWEST_ROWS = 6
#: Minimum number of folds for choosing the number of features.
_SIZE_FOLDS = 5
#: Number of sizes on the grid besides all features, and the largest as a fraction of the features.
_N_SIZES = 12
_LARGEST_FRACTION = 0.6
#: Maximum number of greedy steps in a fold that chooses the number of features. More are slow and have
#: not changed a choice.
_SIZE_STEPS = 300
#: Maximum loss of a more stable redundancy, as a fraction of the best precision.
_LARGEST_COST = 0.01
#: Precisions that differ by less are ties, so that rounding errors cannot decide.
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class SizeCurve:
    """Scores of a ranking by number of features and fold.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of features in ascending order.
    scores : ndarray of shape (n_folds, n_sizes)
        Mean average precision of the held-out rows against their candidates. Higher is better.

    Examples
    --------
    >>> curve = SizeCurve(np.array([1, 2, 5]), np.array([[0.5, 0.8, 0.7], [0.5, 0.6, 0.7]]))
    >>> curve.mean
    array([0.5, 0.7, 0.7])
    >>> curve.best, curve.enough
    (2, 2)
    """

    sizes: np.ndarray
    scores: np.ndarray

    def __repr__(self) -> str:
        n_folds, n_sizes = self.scores.shape
        return f"SizeCurve({n_sizes} sizes, {n_folds} folds, best {self.best}, enough {self.enough})"

    @property
    def mean(self) -> np.ndarray:
        """Mean over the folds, by size."""
        mean: np.ndarray = self.scores.mean(axis=0)
        return mean

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation over the folds, by size."""
        spread: np.ndarray = self.scores.std(axis=0)
        return spread

    @property
    def best(self) -> int:
        """Size with the highest mean, the smallest if several are equal."""
        mean = self.mean
        return int(self.sizes[np.argmax(mean >= mean.max() - _EQUAL)])

    @property
    def enough(self) -> int:
        """Smallest size whose mean is within one standard deviation of the best."""
        best = np.searchsorted(self.sizes, self.best)
        least = self.mean[best] - self.spread[best] - _EQUAL
        return int(self.sizes[np.argmax(self.mean >= least)])


class ColumnIndex:
    """Features grouped by column. Columns are numbered from 0 and have at least one feature each.

    Examples
    --------
    >>> index = ColumnIndex(np.array([0, 1, 1, 2]))
    >>> index.order(np.array([2, 3, 1, 0]))
    array([1, 2, 0])
    >>> index.features(np.array([1, 2, 0]), np.array([1, 3]))
    (array([1, 2, 3, 0]), array([2, 4]))
    """

    def __init__(self, column_of: np.ndarray) -> None:
        self.column_of = column_of
        counts = np.bincount(column_of)
        self._features = np.split(np.argsort(column_of, kind="stable"), np.cumsum(counts)[:-1])
        self._counts = counts

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self._counts)

    def order(self, features: np.ndarray) -> np.ndarray:
        """Order the columns by their first occurrence in a feature ranking."""
        columns = self.column_of[features]
        _, first = np.unique(columns, return_index=True)
        found: np.ndarray = columns[np.sort(first)]
        return found

    def features(self, columns: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of the first ``max(sizes)`` columns, and their number at every size."""
        first = columns[: max(sizes, default=0)]
        if not len(first):
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        return np.concatenate([self._features[j] for j in first]), np.cumsum(self._counts[first])[sizes - 1]


@dataclass(frozen=True)
class Plan:
    """Searches of one fit, planned in advance to estimate time and memory.

    ``n_folds`` is 0 if there is nothing to choose or if there are too few rows.
    """

    #: Redundancies to try, most stable first.
    redundancies: tuple[float, ...]
    #: Numbers of features or columns to try, in ascending order.
    sizes: np.ndarray
    n_folds: int
    #: Greedy steps in an inner fold, and the maximum number of greedy steps on all rows.
    inner_steps: int
    max_steps: int

    @property
    def n_columns(self) -> int:
        """Number of columns of Z'Z to compute. In inner folds, a column counts as its fraction of rows."""
        n_greedy = np.count_nonzero(np.isfinite(self.redundancies))
        return int(self.max_steps + n_greedy * self.inner_steps * max(self.n_folds - 1, 0))

    def n_bytes(self, n_features: int, n_labels: int) -> int:
        """Estimate the memory for products of features and labels and for the greedy steps."""
        # Products of all rows, products of one fold, and a copy that the search updates.
        n_products = 1 + (self.n_folds > 0) + (self.max_steps > 0)
        return 8 * n_features * (n_products * n_labels + self.max_steps)


def plan_fit(
    shape: tuple[int, int],
    *,
    n_selected: int | None,
    redundancy: float | None,
    n_folds: int,
    max_steps: int,
    n_columns: int | None = None,
    sizes: np.ndarray | None = None,
    min_folds: int = _SIZE_FOLDS,
    n_kept: int = 0,
) -> Plan:
    """Plan the searches of a fit to features of a given shape.

    ``n_selected`` and ``redundancy`` are chosen by cross-validation if they are None. If ``n_columns``
    is given, sizes count columns. ``sizes`` replaces the default grid, ``min_folds`` is the minimum
    number of folds for choosing the number of features, and ``n_kept`` is the smallest number to try.
    """
    n_samples, n_features = shape
    n_units = n_features if n_columns is None else n_columns
    is_wide = n_features > LARGEST_GRAM
    redundancies = REDUNDANCIES if redundancy is None else (redundancy,)
    if n_selected is None:
        sizes = size_grid(n_units, max_steps, is_wide=is_wide) if sizes is None else sizes
        if n_kept:
            sizes = np.union1d(sizes[sizes >= n_kept], [n_kept])
        n_folds = min(max(n_folds, min_folds), n_samples // 2)
        has_choice = True
    else:
        sizes = np.array([min(n_selected, max_steps) if is_wide else n_selected])
        has_choice = redundancy is None and n_selected < n_features and n_samples >= 2 * n_folds
    if not has_choice or n_samples < FEWEST_ROWS:
        n_folds = 0
    outer_steps = 0 if redundancy == np.inf else min(n_selected or n_units, max_steps)
    # The order does not matter if all features are kept, so no fold searches that far.
    inner_steps = min(max(sizes[sizes < n_units], default=0), max_steps)
    if n_selected is None:
        inner_steps = min(inner_steps, _SIZE_STEPS)
    return Plan(redundancies, sizes, n_folds, int(inner_steps), outer_steps)


def size_grid(n_features: int, max_steps: int, *, is_wide: bool | None = None) -> np.ndarray:
    """Return the sizes to try: twelve in geometric steps up to 0.6 of the features, and all of them.

    Tables with more than 5000 features are wide: sizes are at most `max_steps`, and the full set is not
    tried.
    """
    largest = _LARGEST_FRACTION * n_features
    is_wide = n_features > LARGEST_GRAM if is_wide is None else is_wide
    if is_wide:
        largest = min(largest, max_steps)
    grid = np.round(np.geomspace(1, max(largest, 1), _N_SIZES)).astype(np.intp)
    return np.unique(grid if is_wide else np.append(grid, n_features))


@dataclass(frozen=True)
class Choice:
    """Chosen redundancy and number of features or columns, with the fitted attributes that explain them."""

    redundancy: float
    n_selected: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


def held_out_precision(
    rows: Rows,
    plan: Plan,
    criterion: Criterion,
    *,
    columns: ColumnIndex | None = None,
    orders: Sequence[np.ndarray] = (),
    on_fold: Callable[[], None] = lambda: None,
) -> Precision:
    """Compute the average precision of held-out rows against their candidates.

    Every fold ranks the features once per redundancy and regresses the labels on the top features of
    every size. With ``columns``, sizes count columns, and each column is used with all its features.
    The fixed ``orders`` are scored after the rankings.
    """
    models = []
    for fold in range(rows.n_folds):
        logger.info("inner fold %d of %d", fold + 1, rows.n_folds)
        models.append(_learn(rows.without(fold), plan, criterion, columns, orders))
        on_fold()
    shared = models, len(plan.sizes), len(plan.redundancies)
    precision: Precision = rows.rows.fold(score_models, ["X", "Y", "fold"], *shared, combine=merge_precision)
    return precision


def _learn(
    problem: Problem,
    plan: Plan,
    criterion: Criterion,
    columns: ColumnIndex | None,
    orders: Sequence[np.ndarray],
) -> FoldModels:
    """Rank the features with every redundancy, and regress the labels on the top features."""
    ranked = [
        rank_features(problem, redundancy, criterion, plan.inner_steps)[0] for redundancy in plan.redundancies
    ]
    if columns is not None:
        ranked = [columns.order(order) for order in ranked]
    chosen, sizes = [], []
    for i, order in enumerate([*ranked, *orders]):
        # The order does not matter if all features are used, so only the first order includes them.
        wanted = plan.sizes if i == 0 else plan.sizes[plan.sizes < len(order)]
        features = order[: max(wanted, default=0)]
        if columns is not None:
            features, wanted = columns.features(order, wanted)
        chosen.append(features)
        sizes.append(wanted)
    # One pass over the rows gives Z'Z for all redundancies. The other orders may be too many for memory.
    n_ranked = len(ranked)
    others = zip(chosen[n_ranked:], sizes[n_ranked:], strict=True)
    regressions = chain(
        problem.regressions(chosen[:n_ranked], sizes[:n_ranked]),
        *(problem.regressions([features], [wanted]) for features, wanted in others),
    )
    return list(zip(chosen, regressions, strict=True))


def most_stable(precision: Precision, redundancies: tuple[float, ...], size: int, tolerance: float) -> Choice:
    """Choose the most stable redundancy that is not clearly worse than the best.

    Its mean may be below the best by `tolerance` standard errors of the difference over the rows, but at
    most by 1% of the best mean. The first redundancy is used if no row has a precision.
    """
    gap = allowed = np.zeros(len(redundancies))
    n_rows = precision.n_rows.sum()
    if n_rows:
        mean = np.average(precision.means[:, :, 0], axis=0, weights=precision.n_rows)
        best = _first_largest(mean)
        gap = mean[best] - mean
        error = np.sqrt(precision.deviations[best, :, 0] / n_rows) / np.sqrt(n_rows)
        allowed = np.minimum(tolerance * error, _LARGEST_COST * mean[best])
    chosen = int(np.argmax(gap <= allowed + _EQUAL))
    attributes = {"cv_scores": precision.means[:, :, 0], "cv_gap": gap, "cv_allowed": allowed}
    return Choice(redundancies[chosen], size, attributes)


def best_pair(precision: Precision, redundancies: tuple[float, ...], sizes: np.ndarray) -> Choice:
    """Choose the redundancy and the size with the highest mean over the folds.

    Ties are broken by the smaller size, then by the more stable redundancy.
    """
    scores = precision.means[:, : len(redundancies)]
    mean = scores.mean(axis=0)
    size, chosen = np.unravel_index(_first_largest(mean.T.ravel()), mean.T.shape)
    attributes: dict[str, Any] = {"size_curve": SizeCurve(sizes, scores[:, chosen])}
    if len(redundancies) > 1:
        gap = mean[chosen, size] - mean[:, size]
        attributes |= {"cv_scores": scores[:, :, size], "cv_gap": gap, "cv_allowed": np.zeros_like(gap)}
    return Choice(redundancies[chosen], int(sizes[size]), attributes)


def _first_largest(values: np.ndarray) -> int:
    return int(np.argmax(values >= values.max() - _EQUAL))
