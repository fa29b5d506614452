"""The columns of a table in order, and how well the first of them predict, by how many.

A column of the table may give several features: the categories of a code, the parts of a date. Features are ranked as
`EvidenceSelector` ranks them; the place of a column is that of its best feature, and a column that is kept is kept with
all its features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from labelsieve._base import as_generator
from labelsieve._numerics.candidate_precision import average_precision_rows, fit_ridge
from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve._row_problem import in_memory
from labelsieve.inspection.auditing.budget import Budget
from labelsieve.methods._evidence.choice import best_pair
from labelsieve.methods._evidence.gram import is_gram_cheaper
from labelsieve.methods._evidence.passes import summarize
from labelsieve.methods._evidence.path import Criterion, rank_features
from labelsieve.methods._evidence.plan import REDUNDANCIES, size_grid
from labelsieve.methods._evidence.problem import Problem, Rows
from labelsieve.methods.evidence import EvidenceSelector
from labelsieve.size_curve import SizeCurve

__all__ = ["FEWEST_ROWS", "ColumnOrder", "ColumnRanking", "column_order", "rank_columns", "rank_on"]

#: Fewer rows are not divided into folds.
FEWEST_ROWS = 6
N_FOLDS = 5
#: Random orders of the columns that the ranking is compared with.
_RANDOM_ORDERS = 20
#: Share of the budget that the random orders may take, and that which must have sufficed for the whole curve.
_RANDOM_SHARE, _CURVE_SHARE = 0.1, 0.75

_DEFAULTS = EvidenceSelector().get_params()
#: Features that are taken one by one.
MAX_STEPS: int = _DEFAULTS["max_steps"]
CRITERION = Criterion(_DEFAULTS["threshold"], _DEFAULTS["ridge"])


@dataclass(frozen=True, eq=False)
class ColumnOrder:
    """The columns in order, by whatever method, and what each says about each label.

    Attributes
    ----------
    order : ndarray of shape (n_columns,)
        Columns, best first.
    column_of : ndarray of shape (n_features,)
        The column that each feature comes from, counted from 0.
    best_feature : ndarray of shape (n_columns,)
        The feature of each column that was taken first.
    evidence : ndarray of shape (n_features,)
        Evidence of every feature alone.
    signed_z2 : ndarray of shape (n_features, n_labels)
        Rows times squared correlation of a feature and a label, with the sign of the correlation.
    """

    order: np.ndarray
    column_of: np.ndarray
    best_feature: np.ndarray
    evidence: np.ndarray
    signed_z2: np.ndarray

    @classmethod
    def of(
        cls, X: Matrix, Y: Matrix, column_of: np.ndarray, *, order: np.ndarray, best_feature: np.ndarray
    ) -> Self:
        """Ask what the columns that some method put in order say about the labels."""
        X = within_range(X).astype(np.float64, copy=False)
        whole = Rows(in_memory(X, Y), np.zeros(X.shape[0], dtype=np.intp)).whole(form_gram=False)
        return cls(
            order=order,
            column_of=column_of,
            best_feature=best_feature,
            evidence=CRITERION.alone(whole.products, X.shape[0]),
            signed_z2=_signed_z2(whole, Y.shape[1]),
        )

    @cached_property
    def places(self) -> np.ndarray:
        """Place of every column, 1 is best."""
        places = np.empty(len(self.order), dtype=np.intp)
        places[self.order] = np.arange(1, len(places) + 1)
        return places

    @cached_property
    def column_evidence(self) -> np.ndarray:
        """Evidence of every column: that of the feature which says most."""
        found = np.zeros(len(self.order))
        np.maximum.at(found, self.column_of, self.evidence)
        return found

    @cached_property
    def column_z2(self) -> np.ndarray:
        """Signed z² of every column with every label: that of the feature which says most about it."""
        signed, column_of = self.signed_z2, self.column_of
        found = np.zeros((len(self.order), signed.shape[1]))
        strength = np.zeros_like(found)
        np.maximum.at(strength, column_of, np.abs(signed))
        features, labels = np.nonzero((np.abs(signed) == strength[column_of]) & (signed != 0))
        # Written from the last to the first, so that of equal ones the first feature stays.
        found[column_of[features[::-1]], labels[::-1]] = signed[features[::-1], labels[::-1]]
        return found


@dataclass(frozen=True, eq=False)
class ColumnRanking(ColumnOrder):
    """The order that an audit finds, and what speaks for it.

    Attributes
    ----------
    redundancy : float
        The weight of a feature's evidence alone that was chosen.
    curve : SizeCurve
        Average precision on held-out rows by number of columns.
    random : ndarray of shape (n_orders, n_sizes)
        The same for columns in random orders, mean over the folds.
    without : ndarray of shape (n_folds,)
        The same without any column: labels in the order of their frequency.
    """

    redundancy: float
    curve: SizeCurve
    random: np.ndarray
    without: np.ndarray


def column_order(features: np.ndarray, column_of: np.ndarray) -> np.ndarray:
    """Columns in the order of their first features.

    Examples
    --------
    >>> column_order(np.array([3, 0, 1, 2]), column_of=np.array([0, 0, 1, 2]))
    array([2, 0, 1])
    """
    columns = column_of[features]
    _, first = np.unique(columns, return_index=True)
    found: np.ndarray = columns[np.sort(first)]
    return found


def rank_on(X: Matrix, Y: Matrix, redundancy: float) -> np.ndarray:
    """Order the features by some rows alone, best first."""
    n_steps = min(X.shape[1], MAX_STEPS)
    form_gram = is_gram_cheaper(X.shape[1], n_steps, 0, is_sparse=is_sparse(X))
    whole = Rows(in_memory(X, Y), np.zeros(X.shape[0], dtype=np.intp)).whole(form_gram=form_gram)
    return rank_features(whole, redundancy, CRITERION, n_steps)[0]


def rank_columns(
    X: Matrix,
    Y: Matrix,
    column_of: np.ndarray,
    *,
    n_kept: int | None,
    budget: Budget,
    random_state: int,
) -> ColumnRanking:
    """Rank the columns and judge every number of them by cross-validation on the candidates.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features)
        Features.
    Y : {ndarray, CSR} of shape (n_samples, n_labels)
        0/1 candidates; some label must vary.
    column_of : ndarray of shape (n_features,)
        The column that each feature comes from, counted from 0.
    n_kept : int or None
        The number of columns for which the redundancy is chosen; None takes the pair with the highest precision.
    budget : Budget
        What the audit may take. Where three quarters of it will not do for all folds, the later folds are left out, and
        before that redundancies; comparing with random orders takes a tenth of it at most. What is left out is said.
    random_state : int
        Seed of the folds and of the random orders.
    """
    X = within_range(X).astype(np.float64, copy=False)
    n_samples, n_features = X.shape
    n_columns = int(column_of.max()) + 1
    sizes = size_grid(n_columns, MAX_STEPS)
    if n_kept is not None:
        sizes = np.union1d(sizes, [n_kept])
    n_steps = min(n_features, MAX_STEPS)
    n_folds = min(N_FOLDS, n_samples // 2)
    folds = as_generator(random_state).permutation(n_samples) % n_folds
    rows = Rows(in_memory(X, Y), folds)
    n_columns_asked = (1 + 2 * (n_folds - 1)) * n_steps
    whole = rows.whole(
        form_gram=is_gram_cheaper(n_features, n_columns_asked, n_folds, is_sparse=is_sparse(X))
    )
    judge = _Judge(X, Y, column_of, sizes)
    shuffler = np.random.default_rng([random_state, 1])
    orders = [shuffler.permutation(n_columns) for _ in range(_RANDOM_ORDERS)]
    precision = np.full((n_samples, len(REDUNDANCIES), len(sizes)), np.nan)
    without = np.full(n_samples, np.nan)
    random = np.full((n_samples, len(orders), len(sizes)), np.nan)
    redundancies: tuple[float, ...] = REDUNDANCIES
    n_judged, longest = 0, 0.0
    for fold in range(n_folds):
        start = budget.now()
        if fold and not budget.has(longest, _CURVE_SHARE):
            budget.cut(
                f"The size curve rests on {fold} instead of {n_folds} folds of the rows, for want of time."
            )
            break
        held_out = folds == fold
        problem = rows.without(fold)
        for place, redundancy in enumerate(redundancies):
            began = budget.now()
            order, _ = rank_features(problem, redundancy, CRITERION, n_steps)
            precision[held_out, place] = judge(problem, held_out, column_order(order, column_of))
            is_last = place + 1 == len(redundancies)
            if fold == 0 and not is_last and not budget.has(budget.now() - began, _CURVE_SHARE):
                redundancies = REDUNDANCIES[: place + 1]
                budget.cut(
                    f"{len(redundancies)} of {len(REDUNDANCIES)} ways to weigh redundant columns were tried, for want "
                    f"of time."
                )
                break
        without[held_out] = _without_features(problem, Y[held_out])
        began = budget.now()
        for number, shuffled in enumerate(orders):
            random[held_out, number] = judge(problem, held_out, shuffled)
            if fold == 0 and number + 1 < len(orders):
                one = (budget.now() - began) / (number + 1)
                if one * n_folds * (number + 2) > _RANDOM_SHARE * budget.seconds:
                    orders = orders[: number + 1]
                    budget.cut(
                        f"Random columns are those of {len(orders)} instead of {_RANDOM_ORDERS} orders, for want of "
                        f"time."
                    )
                    break
        n_judged, longest = fold + 1, max(longest, budget.now() - start)
    # Rows of folds that there was no time for are not judged.
    known = folds < n_judged
    precision, without, random, folds = precision[known], without[known], random[known], folds[known]
    precision = precision[:, : len(redundancies)]
    among = slice(None) if n_kept is None else np.flatnonzero(sizes == n_kept)
    judged = summarize(precision[:, :, among], folds, n_judged)
    redundancy = best_pair(judged, redundancies, sizes[among]).redundancy
    chosen = summarize(precision[:, [redundancies.index(redundancy)]], folds, n_judged)
    curve = best_pair(chosen, (redundancy,), sizes).grounds["size_curve"]
    order, _ = rank_features(whole, redundancy, CRITERION, n_steps)
    first = np.empty(n_columns, dtype=np.intp)
    first[column_of[order[::-1]]] = order[::-1]  # what is written last stays: the first feature of the order
    return ColumnRanking(
        order=column_order(order, column_of),
        column_of=column_of,
        best_feature=first,
        evidence=CRITERION.alone(whole.products, n_samples),
        signed_z2=_signed_z2(whole, Y.shape[1]),
        redundancy=float(redundancy),
        curve=curve,
        random=np.nanmean(random[:, : len(orders)], axis=0),
        without=np.array(
            [
                np.nanmean(without[folds == fold])
                for fold in range(n_judged)
                if np.isfinite(without[folds == fold]).any()
            ]
        ),
    )


class _Judge:
    """How well the first columns of an order predict the candidates of held-out rows."""

    def __init__(self, X: Matrix, Y: Matrix, column_of: np.ndarray, sizes: np.ndarray) -> None:
        self._X, self._Y, self._sizes = X, Y, sizes
        self._features = np.argsort(column_of, kind="stable")
        self._counts = np.bincount(column_of)
        self._starts = np.cumsum(self._counts) - self._counts

    def __call__(self, problem: Problem, held_out: np.ndarray, order: np.ndarray) -> np.ndarray:
        first = order[: self._sizes[-1]]
        chosen = np.concatenate(
            [self._features[self._starts[j] : self._starts[j] + self._counts[j]] for j in first]
        )
        n_features = np.cumsum(self._counts[first])[self._sizes - 1]
        (moments,) = problem.moments([chosen])
        return fit_ridge(moments, n_features).precision(self._X[held_out][:, chosen], self._Y[held_out])


def _without_features(problem: Problem, Y: Matrix) -> np.ndarray:
    """Precision of held-out rows if their labels stand in the order of how frequent they are elsewhere."""
    Y = Y[:, problem.labels.varying]
    return average_precision_rows(Y, np.tile(problem.labels.mean, (Y.shape[0], 1)))


def _signed_z2(problem: Problem, n_labels: int) -> np.ndarray:
    """Z values of features and labels, squared, with their signs; 0 for labels that do not vary."""
    found = np.zeros((len(problem.products), n_labels))
    products = problem.products
    found[:, problem.labels.varying] = np.sign(products) * products**2 / problem.n_samples
    return found
