"""What inner cross-validation decides: how much redundancy counts, and how many features to keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelsieve._numerics.candidate_precision import fit_ridge
from labelsieve._numerics.result import logger
from labelsieve.methods._evidence.passes import FoldModels, Precision, judge, merge_precision
from labelsieve.methods._evidence.path import Criterion, rank_features
from labelsieve.methods._evidence.plan import Plan
from labelsieve.methods._evidence.problem import Problem, Rows
from labelsieve.size_curve import SizeCurve

__all__ = ["Choice", "best_pair", "held_out_precision", "steadiest"]

#: Share of the best precision that steadiness may cost at most.
_LARGEST_COST = 0.01
#: Precisions that differ by less are equal: rounding must not choose.
_EQUAL = 1e-12


@dataclass(frozen=True)
class Choice:
    """The redundancy and the number of features to use.

    Parameters
    ----------
    redundancy : float
        Redundancy.
    n_selected : int
        Number of features.
    grounds : mapping
        What it was chosen by: fitted attributes without their underscore.
    """

    redundancy: float
    n_selected: int
    grounds: Mapping[str, Any] = field(default_factory=dict)


def held_out_precision(rows: Rows, plan: Plan, criterion: Criterion) -> Precision:
    """Average precision of rows against their candidates, learnt from the rows outside their fold.

    In every fold the features are ranked once for each redundancy, and the labels regressed on the first of
    them, as many as each size says.
    """
    models = []
    for fold in range(rows.n_folds):
        logger.info("inner fold %d of %d", fold + 1, rows.n_folds)
        models.append(_learn(rows.without(fold), plan, criterion))
    precision: Precision = rows.rows.fold(judge, models, len(plan.sizes), combine=merge_precision)
    return precision


def _learn(problem: Problem, plan: Plan, criterion: Criterion) -> FoldModels:
    """Rank the features with every redundancy, and regress the labels on the first of them."""
    chosen, sizes = [], []
    for i, redundancy in enumerate(plan.redundancies):
        order, _ = rank_features(problem, redundancy, criterion, plan.inner_steps)
        # All features are the same features in any order: they are judged once.
        sizes.append(plan.sizes if i == 0 else plan.sizes[plan.sizes < len(order)])
        chosen.append(order[: max(sizes[i], default=0)])
    return [
        (features, fit_ridge(moments, wanted))
        for features, moments, wanted in zip(chosen, problem.moments(chosen), sizes, strict=True)
    ]


def steadiest(precision: Precision, redundancies: tuple[float, ...], size: int, tolerance: float) -> Choice:
    """Choose the steadiest redundancy that is not clearly worse than the best.

    How far it may lie behind the best: `tolerance` standard errors of the difference over the rows, but no
    more than a hundredth of the best mean.

    Parameters
    ----------
    precision : Precision
        At one size. If no row has any, the first redundancy is taken.
    redundancies : tuple of float
        What there is to choose from, steadiest first.
    size : int
        The number of features.
    tolerance : float
        Standard errors.

    Examples
    --------
    >>> from labelsieve.methods._evidence.passes import summarize
    >>> precision = np.array([[0.5, 1.0], [1.0, 0.505]])[:, :, None]
    >>> choice = steadiest(summarize(precision, np.array([0, 1]), 2), (np.inf, 0.0), size=3, tolerance=1.0)
    >>> choice.redundancy, choice.grounds["cv_gap"].round(4), choice.grounds["cv_allowed"].round(4)
    (inf, array([0.0025, 0.    ]), array([0.0075, 0.    ]))
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

    Of equally good pairs the smaller size is taken, then the steadier redundancy.

    Parameters
    ----------
    precision : Precision
        At all sizes.
    redundancies : tuple of float
        Steadiest first.
    sizes : ndarray of shape (n_sizes,)
        Ascending.
    """
    scores = precision.means
    mean = scores.mean(axis=0)
    size, chosen = np.unravel_index(_first_largest(mean.T.ravel()), mean.T.shape)
    grounds: dict[str, Any] = {"size_curve": SizeCurve(sizes, scores[:, chosen])}
    if len(redundancies) > 1:
        gap = mean[chosen, size] - mean[:, size]
        grounds |= {"cv_scores": scores[:, :, size], "cv_gap": gap, "cv_allowed": np.zeros_like(gap)}
    return Choice(redundancies[chosen], int(sizes[size]), grounds)


def _first_largest(values: np.ndarray) -> int:
    return int(np.argmax(values >= values.max() - _EQUAL))
