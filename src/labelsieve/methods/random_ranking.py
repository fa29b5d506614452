"""RandomRanking: the baseline that every method should beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from labelsieve._base import BlockSelector, RowProblem, as_generator
from labelsieve._numerics.result import SolverResult

__all__ = ["RandomRanking"]


@dataclass(eq=False, repr=False, kw_only=True)
class RandomRanking(BlockSelector):
    """Rank features at random, ignoring the data.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the ranking.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Uniform random numbers in [0, 1), and the rank of every feature (1 is best).

    Notes
    -----
    Cost: one random number per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.random_ranking import RandomRanking
    >>> X, Y = np.eye(4), np.eye(4, dtype=int)
    >>> RandomRanking(random_state=3).fit(X, Y).ranking_
    array([4, 3, 1, 2])
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_planted_features_are_found": "a random ranking ignores the data"
    }

    random_state: Any = None

    def _solve_rows(self, problem: RowProblem) -> SolverResult:
        scores = as_generator(self.random_state).random((problem.n_features,))
        return SolverResult(scores=scores.astype(problem.dtype))
