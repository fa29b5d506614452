"""Backtracking along a ray."""

from __future__ import annotations

from collections.abc import Callable


def backtrack(
    change: Callable[[float], float],
    slope: float,
    *,
    sufficient: float = 0.1,
    shrink: float = 0.1,
    max_trials: int = 20,
) -> float:
    """Return the first step 1, shrink, shrink^2, ... with ``change(step) <= -sufficient * step * slope``.

    Parameters
    ----------
    change : callable
        Objective at a step minus objective at the start; made cheap by the caller from cached products.
    slope : float
        Decrease per unit step that the linear model promises, not negative.
    sufficient : float, default=0.1
        Share of the promise that a step must keep (Armijo's rule).
    shrink : float, default=0.1
        Factor between trials.
    max_trials : int, default=20
        Trials before giving up.

    Returns
    -------
    float
        The step, or 0.0 where no trial was good enough.

    Examples
    --------
    >>> backtrack(lambda step: -4 * step + 10 * step**2, 4.0)
    0.1
    """
    step = 1.0
    for _ in range(max_trials):
        if change(step) <= -sufficient * step * slope:
            return step
        step *= shrink
    return 0.0
