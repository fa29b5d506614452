"""What a solver returns, and the one loop all iterative solvers share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

State = TypeVar("State")

logger = logging.getLogger("labelsieve")


@dataclass(frozen=True)
class SolverResult:
    """Feature scores and how they were reached.

    Parameters
    ----------
    scores : ndarray of shape (n_features,)
        Larger is better.
    objective : ndarray or None
        Objective at the start and after every iteration; None for a method without iterations.
    converged : bool
        Whether the stopping rule was met within the budget.
    n_selected : int or None
        How many features to keep, from a method that was asked to choose; None for the requested number.
    extra : mapping
        Further fitted attributes, name without the trailing underscore -> value.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve import SolverResult
    >>> result = SolverResult(scores=np.array([0.2, 0.7]), extra={"coef": np.array([[0.2, -0.7]])})
    >>> result.converged, result.objective is None
    (True, True)
    """

    scores: np.ndarray
    objective: np.ndarray | None = None
    converged: bool = True
    n_selected: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def iterate(
    step: Callable[[State], tuple[State, float]],
    state: State,
    value: float,
    *,
    max_iter: int,
    tol: float,
    window: int = 1,
    min_iter: int = 1,
) -> tuple[State, np.ndarray, bool]:
    """Repeat ``step`` until the objective stands still or the budget is spent.

    The loop stops when the objective changed by at most ``tol`` times its value over the last ``window``
    iterations. A window larger than one keeps slow but steady progress, and single rejected steps of a
    safeguarded solver, from being taken for convergence.

    Parameters
    ----------
    step : callable
        Maps a state to ``(next state, objective of the next state)``.
    state : object
        Where to start.
    value : float
        Objective of the start.
    max_iter : int
        Iteration budget.
    tol : float
        Relative change that counts as standing still.
    window : int, default=1
        Number of iterations the change is measured over.
    min_iter : int, default=1
        No stop before this iteration.

    Returns
    -------
    state : object
        The last state.
    history : ndarray of shape (n_iter + 1,)
        Objective at the start and after every iteration.
    converged : bool
        Whether the loop stopped by the rule and not by the budget.

    Examples
    --------
    >>> from labelsieve import iterate
    >>> halve = lambda x: (x / 2, 1 + (x / 2) ** 2)
    >>> x, history, converged = iterate(halve, 8.0, 65.0, max_iter=50, tol=1e-3)
    >>> converged, len(history) - 1
    (True, 9)
    """
    history = [value]
    for iteration in range(1, max_iter + 1):
        state, value = step(state)
        history.append(value)
        if not np.isfinite(value):
            raise FloatingPointError(
                f"The objective became {value!r} in iteration {iteration}; scale the features to [0, 1] "
                f"or choose weights closer to 1."
            )
        logger.info(
            "iteration %d of at most %d: objective %.8g",
            iteration,
            max_iter,
            value,
            extra={"iteration": iteration, "max_iter": max_iter, "objective": value},
        )
        if iteration >= max(window, min_iter) and abs(history[-1 - window] - value) <= tol * abs(value):
            return state, np.array(history), True
    return state, np.array(history), False
