"""Inner cross-validation: how much redundancy counts, and how many features or columns to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from labelsieve._numerics.result import logger
from labelsieve.methods._evidence.passes import FoldModels, Precision, judge, merge_precision
from labelsieve.methods._evidence.path import Criterion, rank_features
from labelsieve.methods._evidence.problem import LARGEST_GRAM, Problem, Rows

#: What "auto" chooses from, most stable first: a filter, half and half, forward selection.
REDUNDANCIES = (np.inf, 1.0, 0.0)
#: Fewer rows are not divided into folds.
FEWEST_ROWS = 6
#: Minimum number of folds for choosing the number of features.
_SIZE_FOLDS = 5
#: Sizes on the grid besides all features, and the largest of them as a share of the features.
_N_SIZES = 12
_LARGEST_SHARE = 0.6
#: Largest number of features taken one by one in a fold that chooses the number: more change no choice, and are slow.
_SIZE_STEPS = 300
#: Share of the best precision that a more stable redundancy may cost.
_LARGEST_COST = 0.01
#: Precisions that differ by less are equal: rounding must not choose.
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class SizeCurve:
    """Scores of the first features of a ranking, by how many of them and by fold.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of features, ascending.
    scores : ndarray of shape (n_folds, n_sizes)
        Mean average precision against the candidates of the held-out rows of a fold; higher is better.

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
        """The size with the highest mean; of equally good ones the smallest."""
        mean = self.mean
        return int(self.sizes[np.argmax(mean >= mean.max() - _EQUAL)])

    @property
    def enough(self) -> int:
        """The smallest size whose mean lies within the spread over the folds of the best: hardly worse."""
        best = np.searchsorted(self.sizes, self.best)
        least = self.mean[best] - self.spread[best] - _EQUAL
        return int(self.sizes[np.argmax(self.mean >= least)])


class ColumnIndex:
    """Features grouped by their columns, which are numbers from 0, each used at least once.

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
        """Return the columns in the order of their first features."""
        columns = self.column_of[features]
        _, first = np.unique(columns, return_index=True)
        found: np.ndarray = columns[np.sort(first)]
        return found

    def features(self, columns: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of the first ``max(sizes)`` columns, and their number for every size."""
        first = columns[: max(sizes, default=0)]
        if not len(first):
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        return np.concatenate([self._features[j] for j in first]), np.cumsum(self._counts[first])[sizes - 1]


@dataclass(frozen=True)
class Plan:
    """The searches of one fit, known beforehand so that operations and bytes can be counted.

    ``n_folds`` is 0 if there is nothing to choose, or too few rows to choose by.
    """

    #: Redundancies to try, most stable first.
    redundancies: tuple[float, ...]
    #: Numbers of features or columns to try, ascending.
    sizes: np.ndarray
    n_folds: int
    #: Greedy steps of a search in an inner fold, and the most of the search in all rows.
    inner_steps: int
    most_steps: int

    @property
    def n_columns(self) -> int:
        """Columns of Z'Z that all searches need; one of an inner fold counts by its share of the rows."""
        n_greedy = np.count_nonzero(np.isfinite(self.redundancies))
        return int(self.most_steps + n_greedy * self.inner_steps * max(self.n_folds - 1, 0))

    def n_bytes(self, n_features: int, n_labels: int) -> int:
        """Bytes of what grows with the features: their products with the labels, and the greedy steps."""
        # The products of all rows, those of a fold, and those that change along a search.
        n_products = 1 + (self.n_folds > 0) + (self.most_steps > 0)
        return 8 * n_features * (n_products * n_labels + self.most_steps)


def plan_fit(
    shape: tuple[int, int],
    *,
    n_selected: int | None,
    redundancy: float | None,
    n_folds: int,
    max_steps: int,
    n_columns: int | None = None,
    sizes: np.ndarray | None = None,
    least_folds: int = _SIZE_FOLDS,
) -> Plan:
    """Plan the fit to features of a shape; None for a number or a redundancy has it chosen by cross-validation.

    With ``n_columns`` sizes count columns. ``sizes`` are those to try instead of a grid, ``least_folds`` is the minimum
    number of folds if the number of features is chosen.
    """
    n_samples, n_features = shape
    n_units = n_features if n_columns is None else n_columns
    is_wide = n_features > LARGEST_GRAM
    redundancies = REDUNDANCIES if redundancy is None else (redundancy,)
    if n_selected is None:
        sizes = size_grid(n_units, max_steps, is_wide=is_wide) if sizes is None else sizes
        n_folds = min(max(n_folds, least_folds), n_samples // 2)
        has_choice = True
    else:
        sizes = np.array([min(n_selected, max_steps) if is_wide else n_selected])
        has_choice = redundancy is None and n_selected < n_features and n_samples >= 2 * n_folds
    if not has_choice or n_samples < FEWEST_ROWS:
        n_folds = 0
    most_steps = 0 if redundancy == np.inf else min(n_selected or n_units, max_steps)
    # All features are the same features in any order, so no fold searches for them.
    inner_steps = min(max(sizes[sizes < n_units], default=0), max_steps)
    if n_selected is None:
        inner_steps = min(inner_steps, _SIZE_STEPS)
    return Plan(redundancies, sizes, n_folds, int(inner_steps), most_steps)


def size_grid(n_features: int, max_steps: int, *, is_wide: bool | None = None) -> np.ndarray:
    """Return the sizes to try: twelve in geometric steps up to 0.6 of the features, and all of them.

    Of wide tables, with more than 5000 features, neither all nor more than `max_steps` are tried.
    """
    largest = _LARGEST_SHARE * n_features
    is_wide = n_features > LARGEST_GRAM if is_wide is None else is_wide
    if is_wide:
        largest = min(largest, max_steps)
    grid = np.round(np.geomspace(1, max(largest, 1), _N_SIZES)).astype(np.intp)
    return np.unique(grid if is_wide else np.append(grid, n_features))


@dataclass(frozen=True)
class Choice:
    """Redundancy and number of features or columns to use, and the fitted attributes that explain the choice."""

    redundancy: float
    n_selected: int
    grounds: Mapping[str, Any] = field(default_factory=dict)


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

    In every fold the features are ranked once for each redundancy, and the labels regressed on the first of
    them, as many as each size says. With ``columns`` sizes count columns, each used with all its features.
    ``orders`` are judged as well, after those of the redundancies.
    """
    models = []
    for fold in range(rows.n_folds):
        logger.info("inner fold %d of %d", fold + 1, rows.n_folds)
        models.append(_learn(rows.without(fold), plan, criterion, columns, orders))
        on_fold()
    shared = models, len(plan.sizes), len(plan.redundancies)
    precision: Precision = rows.rows.fold(judge, ["X", "Y", "fold"], *shared, combine=merge_precision)
    return precision


def _learn(
    problem: Problem,
    plan: Plan,
    criterion: Criterion,
    columns: ColumnIndex | None,
    orders: Sequence[np.ndarray],
) -> FoldModels:
    """Rank the features with every redundancy, and regress the labels on the first of them."""
    ranked = [
        rank_features(problem, redundancy, criterion, plan.inner_steps)[0] for redundancy in plan.redundancies
    ]
    if columns is not None:
        ranked = [columns.order(order) for order in ranked]
    chosen, sizes = [], []
    for i, order in enumerate([*ranked, *orders]):
        # All features are the same features in any order: they are judged once.
        wanted = plan.sizes if i == 0 else plan.sizes[plan.sizes < len(order)]
        features = order[: max(wanted, default=0)]
        if columns is not None:
            features, wanted = columns.features(order, wanted)
        chosen.append(features)
        sizes.append(wanted)
    # Z'Z of all redundancies takes one pass over the rows; that of many other orders, too much memory.
    n_ranked = len(ranked)
    others = zip(chosen[n_ranked:], sizes[n_ranked:], strict=True)
    regressions = chain(
        problem.regressions(chosen[:n_ranked], sizes[:n_ranked]),
        *(problem.regressions([features], [wanted]) for features, wanted in others),
    )
    return list(zip(chosen, regressions, strict=True))


def most_stable(precision: Precision, redundancies: tuple[float, ...], size: int, tolerance: float) -> Choice:
    """Choose the most stable redundancy that is not clearly worse than the best.

    It may lie behind the best by `tolerance` standard errors of the difference over the rows, but no more than a
    hundredth of the best mean. If no row has a precision, the first redundancy is taken.
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
    grounds = {"cv_scores": precision.means[:, :, 0], "cv_gap": gap, "cv_allowed": allowed}
    return Choice(redundancies[chosen], size, grounds)


def best_pair(precision: Precision, redundancies: tuple[float, ...], sizes: np.ndarray) -> Choice:
    """Choose the redundancy and the size with the highest mean over the folds.

    Of equally good pairs the smaller size is taken, then the more stable redundancy.
    """
    scores = precision.means[:, : len(redundancies)]
    mean = scores.mean(axis=0)
    size, chosen = np.unravel_index(_first_largest(mean.T.ravel()), mean.T.shape)
    grounds: dict[str, Any] = {"size_curve": SizeCurve(sizes, scores[:, chosen])}
    if len(redundancies) > 1:
        gap = mean[chosen, size] - mean[:, size]
        grounds |= {"cv_scores": scores[:, :, size], "cv_gap": gap, "cv_allowed": np.zeros_like(gap)}
    return Choice(redundancies[chosen], int(sizes[size]), grounds)


def _first_largest(values: np.ndarray) -> int:
    return int(np.argmax(values >= values.max() - _EQUAL))
