"""Add one feature after the other: relevance less the mean redundancy with those already chosen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelsieve._numerics.result import logger


def select_greedily(
    relevance: np.ndarray, redundancy_with: Callable[[int], np.ndarray], n_selected: int
) -> tuple[np.ndarray, np.ndarray]:
    """Choose features by ``relevance - mean over the chosen s of redundancy_with(s)``.

    Of features that are equally good, the first is taken. Choosing more never changes the order of those
    chosen before.

    Parameters
    ----------
    relevance : ndarray of shape (n_features,)
        The criterion while nothing is chosen.
    redundancy_with : callable
        Maps a feature to the redundancy of every feature with it; called once for every chosen one.
    n_selected : int
        How many to choose.

    Returns
    -------
    order : ndarray of shape (n_features,)
        The chosen features in their order, then the others by the last criterion.
    criterion : ndarray of shape (n_features,)
        The criterion when the feature was chosen, or at the end.

    Examples
    --------
    The second repeats the first.

    >>> redundancy = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> select_greedily(np.array([3.0, 2.5, 2.0]), redundancy.__getitem__, 2)
    (array([0, 2, 1]), array([3. , 1.6, 2. ]))
    """
    criterion = relevance.copy()
    redundancy = np.zeros_like(relevance)
    waiting = np.ones(len(relevance), dtype=bool)
    selected: list[int] = []
    while True:
        best = _first_largest(criterion, waiting)
        selected.append(best)
        waiting[best] = False
        logger.info(
            "feature %d of %d: column %d, criterion %.6g", len(selected), n_selected, best, criterion[best]
        )
        if len(selected) == n_selected:
            break
        redundancy += redundancy_with(best)
        criterion[waiting] = (relevance - redundancy / len(selected))[waiting]
    rest = np.flatnonzero(waiting)
    order = np.concatenate([selected, rest[np.argsort(-criterion[rest], kind="stable")]]).astype(np.intp)
    return order, criterion


def places_as_scores(order: np.ndarray) -> np.ndarray:
    """Score the features by how many stand behind them in the order, plus one.

    Examples
    --------
    >>> places_as_scores(np.array([2, 0, 1]))
    array([2., 1., 3.])
    """
    scores = np.empty(len(order))
    scores[order] = np.arange(len(order), 0, -1)
    return scores


def _first_largest(criterion: np.ndarray, waiting: np.ndarray) -> int:
    """First waiting feature whose criterion is the largest, up to the rounding that could break a tie."""
    values = np.where(waiting, criterion, -np.inf)
    largest = values.max()
    return int(np.argmax(values >= largest - 1e-12 * max(1.0, abs(largest))))
