"""Result of a solver, and the loop that all iterative solvers share."""

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
    """Feature scores, with the course of the optimisation and further fitted attributes.

    Parameters
    ----------
    scores : ndarray of shape (n_features,)
        Scores of the features. Larger is better.
    objective : ndarray or None
        Objective at the start and after every iteration, or None if the method does not iterate.
    converged : bool
        False if the solver reached its maximum number of iterations.
    n_selected : int or None
        Number of features to keep if the method chose it, or None to keep the requested number.
    extra : mapping
        Further fitted attributes by name, without the trailing underscore.

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
    """Repeat ``step`` until the objective converges or ``max_iter`` is reached.

    The loop stops if the objective changes by at most ``tol`` times its value over the last ``window``
    iterations. Use a larger window if progress is slow or a safeguarded solver rejects single steps.

    Parameters
    ----------
    step : callable
        Maps a state to ``(next state, objective of the next state)``.
    state : object
        Initial state.
    value : float
        Objective of the initial state.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when the relative change of the objective is at most this.
    window : int, default=1
        Number of iterations over which the change is measured.
    min_iter : int, default=1
        Minimum number of iterations.

    Returns
    -------
    state : object
        Last state.
    history : ndarray of shape (n_iter + 1,)
        Objective at the start and after every iteration.
    converged : bool
        False if the loop reached ``max_iter``.

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
                f"The objective must be finite, got {value!r} in iteration {iteration}. Scale the features to "
                f"[0, 1] or choose weights closer to 1."
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
