"""Features and labels of some rows as the greedy path wants them: standardised, and only their products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce

import numpy as np

from labelsieve._numerics.candidate_precision import LabelScale, TrainingMoments
from labelsieve._numerics.scaling import Scaling, range_factors, scaling_of_moments
from labelsieve._row_problem import RowProblem
from labelsieve.methods._evidence.gram import ColumnStore, FormedGram, Gram, GramOnDemand, without_fold
from labelsieve.methods._evidence.passes import (
    keep_labels,
    look,
    merge,
    merge_fold_moments,
    merge_sight,
    moments_by_fold,
    order_features,
    order_labels,
    products,
    times,
)

__all__ = ["Problem", "Rows"]


@dataclass(frozen=True)
class Problem:
    """What some rows say: Z'Z and Z'T of the standardised features Z and labels T.

    Parameters
    ----------
    n_samples : int
        How many rows there are.
    features : Scaling
        What standardises the features; a factor of 0 marks those that are constant.
    labels : LabelScale
        The labels that vary, and what standardises them.
    gram : Gram
        Z'Z.
    products : ndarray of shape (n_features, n_varying)
        Z'T.
    """

    n_samples: int
    features: Scaling
    labels: LabelScale
    gram: Gram
    products: np.ndarray

    def moments(self, chosen: Sequence[np.ndarray]) -> Iterator[TrainingMoments]:
        """What regressions on some of the features need, several times."""
        for features, gram in zip(chosen, self.gram.blocks(chosen), strict=True):
            yield TrainingMoments(
                self.n_samples, self.features.of(features), self.labels, gram, self.products[features]
            )


class Rows:
    """The problem of all rows, and of those that are left without an inner fold.

    Parameters
    ----------
    problem : RowProblem
        Features and candidates.
    folds : ndarray of shape (n_samples,)
        Inner fold of every row; all 0 if there are no folds.
    """

    def __init__(self, problem: RowProblem, folds: np.ndarray) -> None:
        self.n_folds = int(folds.max()) + 1
        self.n_samples = len(folds)
        self.rows = problem.rows
        self._is_sparse = problem.is_sparse
        self._n_outside = self.n_samples - np.bincount(folds)
        folds = folds.astype(np.min_scalar_type(self.n_folds))
        self.rows.derive(order_features, folds)
        self.rows.derive(order_labels, folds)
        self._largest, self._counts = self.rows.fold(look, self.n_folds, combine=merge_sight)
        factor = range_factors(self._largest.max(axis=0))
        if (factor != 1).any():
            self.rows.derive(times, factor)
            self._largest *= factor
        self._moments = self.rows.fold(moments_by_fold, self.n_folds, combine=merge_fold_moments)
        self._gram: np.ndarray | None = None

    @property
    def label_counts(self) -> np.ndarray:
        """Candidates of every label."""
        counts: np.ndarray = self._counts.sum(axis=0)
        return counts

    def keep_labels(self, labels: np.ndarray) -> None:
        """Leave out the other labels for good."""
        if len(labels) < self._counts.shape[1]:
            self.rows.derive(keep_labels, labels)
            self._counts = self._counts[:, labels]

    def whole(self, *, form_gram: bool) -> Problem:
        """Return the problem of all rows.

        Z'Z is formed on demand, dense features only; that of fewer rows is then found by subtraction.
        """
        return self._problem(None, form_gram=form_gram and not self._is_sparse)

    def without(self, held_out: int) -> Problem:
        """Return the problem of the rows outside a fold; that of all rows must be known."""
        return self._problem(held_out, form_gram=self._gram is not None)

    @cached_property
    def _store(self) -> ColumnStore:
        return ColumnStore(self.rows, self.n_folds, self._scaling(None))

    def _seen(self, held_out: int | None) -> list[int]:
        return [fold for fold in range(self.n_folds) if fold != held_out]

    def _scaling(self, held_out: int | None) -> Scaling:
        """What standardises the features over the rows outside a fold."""
        seen = self._seen(held_out)
        n_samples, mean, deviation = reduce(merge, (self._moments[fold] for fold in seen))
        return scaling_of_moments(n_samples, mean, deviation, self._largest[seen].max(axis=0))

    def _problem(self, held_out: int | None, *, form_gram: bool) -> Problem:
        scaling = self._scaling(held_out)
        n_samples = self.n_samples if held_out is None else int(self._n_outside[held_out])
        labels = LabelScale.of_counts(self._counts[self._seen(held_out)].sum(axis=0), n_samples)
        in_all = self._scaling(None)
        sums, part = self.rows.fold(
            products, self.n_folds, held_out, scaling, labels.varying, in_all if form_gram else None
        )
        gram: Gram = GramOnDemand(self._store, scaling, held_out)
        if form_gram and self._gram is None:
            self._gram = part
            gram = FormedGram(part)
        elif self._gram is not None:
            anew = partial(gram.column, likely=_nothing)
            gram = FormedGram(without_fold(self._gram, part, in_all, scaling, n_samples, anew))
        return Problem(n_samples, scaling, labels, gram, labels.scale_products(sums.centred()))


def _nothing() -> np.ndarray:
    return np.empty(0, dtype=np.intp)
