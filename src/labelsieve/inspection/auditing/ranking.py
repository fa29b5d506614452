"""The columns of a table in order, and how well the first of them predict, by how many.

A column of the table may give several features: the categories of a code, the parts of a date. Features are ranked as
`EvidenceSelector` ranks them; the place of a column is that of its best feature, and a column that is kept is kept with
all its features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from sklearn.base import clone

from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.typing import Matrix
from labelsieve._row_problem import in_memory
from labelsieve.methods._columns import ColumnSelector
from labelsieve.methods._evidence.choice import FEWEST_ROWS, size_grid
from labelsieve.methods._evidence.gram import LARGEST_GRAM
from labelsieve.methods._evidence.path import Criterion
from labelsieve.methods._evidence.problem import Problem, Rows
from labelsieve.methods.evidence import EvidenceSelector, evaluate_sizes
from labelsieve.size_curve import SizeCurve

__all__ = ["CRITERION", "FEWEST_ROWS", "ColumnOrder", "ColumnRanking", "rank_columns"]

CRITERION = Criterion(EvidenceSelector().threshold, EvidenceSelector().ridge)


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
    without : float
        The same without any column: labels in the order of their frequency.
    """

    redundancy: float
    curve: SizeCurve
    random: np.ndarray
    without: float


def rank_columns(
    X: Matrix,
    Y: Matrix,
    column_of: np.ndarray,
    *,
    n_kept: int | None,
    random_state: int,
    n_random: int = 6,
    on_fold: Callable[[], None] = lambda: None,
) -> tuple[ColumnRanking, ColumnSelector]:
    """Rank the columns as `EvidenceSelector` does, and judge every number of them by cross-validation.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_samples, n_features)
        Features.
    Y : {ndarray, CSR} of shape (n_samples, n_labels)
        0/1 candidates; some label must vary.
    column_of : ndarray of shape (n_features,)
        The column that each feature comes from, counted from 0.
    n_kept : int or None
        The number of columns to keep; None takes the number with the highest precision.
    random_state : int
        Seed of the folds.
    n_random : int
        Number of random orders of the columns that the ranking is compared with.
    on_fold : callable
        Called after every fold of the size curve.
    """
    n_columns = int(column_of.max()) + 1
    method, sizes = EvidenceSelector(random_state=random_state), None
    if n_kept is not None:
        selector = ColumnSelector(method, column_of, n_kept).fit(X, Y)
        method = clone(method).set_params(redundancy=selector.selector_.redundancy_)
        sizes = np.union1d(
            size_grid(n_columns, method.max_steps, is_wide=X.shape[1] > LARGEST_GRAM), [n_kept]
        )
    judged = evaluate_sizes(
        method, X, Y, column_of=column_of, sizes=sizes, n_random=n_random, on_fold=on_fold
    )
    if n_kept is None:
        method = clone(method).set_params(redundancy=judged.redundancy)
        selector = ColumnSelector(method, column_of, judged.n_selected).fit(X, Y)
    shared = ColumnOrder.of(
        X,
        Y,
        column_of,
        order=np.argsort(selector.ranking_, kind="stable"),
        best_feature=selector.best_,
    )
    return ColumnRanking(
        **vars(shared),
        redundancy=judged.redundancy,
        curve=judged.curve,
        random=judged.random,
        without=judged.baseline,
    ), selector


def _signed_z2(problem: Problem, n_labels: int) -> np.ndarray:
    """Z values of features and labels, squared, with their signs; 0 for labels that do not vary."""
    found = np.zeros((len(problem.products), n_labels))
    products = problem.products
    found[:, problem.labels.varying] = np.sign(products) * products**2 / problem.n_samples
    return found
