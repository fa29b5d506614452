"""What inner cross-validation decides: how much redundancy counts, and how many features to keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelsieve.methods._evidence.path import Criterion, rank_features
from labelsieve.methods._evidence.plan import Plan
from labelsieve.methods._evidence.problem import Rows
from labelsieve.numerics.candidate_precision import precision_by_size
from labelsieve.numerics.result import logger
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


def held_out_precision(rows: Rows, folds: np.ndarray, plan: Plan, criterion: Criterion) -> np.ndarray:
    """Average precision of every row against its candidates, learnt from the rows outside its fold.

    In every fold the features are ranked once for each redundancy, and the labels regressed on the first of
    them, as many as each size says.

    Returns
    -------
    ndarray of shape (n_samples, n_redundancies, n_sizes)
        nan for a row without candidates among the labels that vary outside its fold.
    """
    precision = np.full((len(folds), len(plan.redundancies), len(plan.sizes)), np.nan)
    n_folds = folds.max() + 1
    for fold in range(n_folds):
        logger.info("inner fold %d of %d", fold + 1, n_folds)
        held_out = folds == fold
        problem = rows.without(held_out)
        X, Y = rows.X[held_out], rows.Y[held_out]
        for i, redundancy in enumerate(plan.redundancies):
            order, _ = rank_features(problem, redundancy, criterion, plan.inner_steps)
            # All features are the same features in any order: they are judged once.
            sizes = plan.sizes if i == 0 else plan.sizes[plan.sizes < X.shape[1]]
            precision[held_out, i] = precision[held_out, 0]
            if len(sizes):
                chosen = order[: sizes[-1]]
                judged = precision_by_size(problem.moments(chosen), X[:, chosen], Y, sizes)
                precision[held_out, i, : len(sizes)] = judged
    return precision


def steadiest(
    precision: np.ndarray, folds: np.ndarray, redundancies: tuple[float, ...], size: int, tolerance: float
) -> Choice:
    """Choose the steadiest redundancy that is not clearly worse than the best.

    How far it may lie behind the best: `tolerance` standard errors of the difference over the rows, but no
    more than a hundredth of the best mean.

    Parameters
    ----------
    precision : ndarray of shape (n_samples, n_redundancies)
        Precision of every row; nan for rows that have none. If none has, the first redundancy is taken.
    folds : ndarray of shape (n_samples,)
        Fold of every row.
    redundancies : tuple of float
        What there is to choose from, steadiest first.
    size : int
        The number of features.
    tolerance : float
        Standard errors.

    Examples
    --------
    >>> precision = np.array([[0.5, 1.0], [1.0, 0.505]])
    >>> choice = steadiest(precision, np.array([0, 1]), (np.inf, 0.0), size=3, tolerance=1.0)
    >>> choice.redundancy, choice.grounds["cv_gap"].round(4), choice.grounds["cv_allowed"].round(4)
    (inf, array([0.0025, 0.    ]), array([0.0075, 0.    ]))
    """
    gap = allowed = np.zeros(len(redundancies))
    scored = precision[~np.isnan(precision).any(axis=1)]
    if len(scored):
        mean = scored.mean(axis=0)
        best = _first_largest(mean)
        gap = mean[best] - mean
        error = (scored[:, [best]] - scored).std(axis=0) / np.sqrt(len(scored))
        allowed = np.minimum(tolerance * error, _LARGEST_COST * mean[best])
    chosen = int(np.argmax(gap <= allowed + _EQUAL))
    grounds = {"cv_scores": _fold_means(precision, folds), "cv_gap": gap, "cv_allowed": allowed}
    return Choice(redundancies[chosen], size, grounds)


def best_pair(
    precision: np.ndarray, folds: np.ndarray, redundancies: tuple[float, ...], sizes: np.ndarray
) -> Choice:
    """Choose the redundancy and the size with the highest mean over the folds.

    Of equally good pairs the smaller size is taken, then the steadier redundancy.

    Parameters
    ----------
    precision : ndarray of shape (n_samples, n_redundancies, n_sizes)
        Precision of every row; nan for rows that have none.
    folds : ndarray of shape (n_samples,)
        Fold of every row.
    redundancies : tuple of float
        Steadiest first.
    sizes : ndarray of shape (n_sizes,)
        Ascending.
    """
    scores = _fold_means(precision, folds)
    mean = scores.mean(axis=0)
    size, chosen = np.unravel_index(_first_largest(mean.T.ravel()), mean.T.shape)
    grounds: dict[str, Any] = {"size_curve": SizeCurve(sizes, scores[:, chosen])}
    if len(redundancies) > 1:
        gap = mean[chosen, size] - mean[:, size]
        grounds |= {"cv_scores": scores[:, :, size], "cv_gap": gap, "cv_allowed": np.zeros_like(gap)}
    return Choice(redundancies[chosen], int(sizes[size]), grounds)


def _fold_means(precision: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Mean over the rows of every fold; 0 for a fold in which no row has a precision."""
    means = np.zeros((folds.max() + 1, *precision.shape[1:]))
    is_scored = ~np.isnan(precision).reshape(len(precision), -1).any(axis=1)
    for fold in np.unique(folds[is_scored]):
        means[fold] = precision[is_scored & (folds == fold)].mean(axis=0)
    return means


def _first_largest(values: np.ndarray) -> int:
    return int(np.argmax(values >= values.max() - _EQUAL))
