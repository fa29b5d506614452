"""Many small non-negative least-squares problems solved together."""

from __future__ import annotations

import numpy as np

#: A gradient below this share of the largest diagonal entry counts as zero; it keeps out columns that
#: depend on the chosen ones, for which the gradient is nothing but rounding.
GRADIENT_TOLERANCE = 1e-10


def solve_nnls(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Minimise ``t' G t - 2 c' t`` over ``t >= 0`` for a stack of problems.

    The active-set method of [1]_ runs on all problems at once: in every round each open problem lets the
    variable with the steepest gradient in, or shortens its step where a variable would turn negative.
    Columns that depend linearly on others are no trouble: they never enter.

    Parameters
    ----------
    gram : ndarray of shape (n_problems, n_variables, n_variables)
        The matrices ``G = A A'`` of the rows to combine.
    target : ndarray of shape (n_problems, n_variables)
        The vectors ``c = A b``.

    Returns
    -------
    weights : ndarray of shape (n_problems, n_variables)
        The minimisers.

    References
    ----------
    .. [1] Lawson and Hanson, "Solving Least Squares Problems", Prentice-Hall 1974, chapter 23.

    Examples
    --------
    >>> solve_nnls(np.array([[[2.0, 1.0], [1.0, 2.0]]]), np.array([[4.0, 1.0]]))
    array([[2., 0.]])
    """
    n_variables = target.shape[1]
    weights = np.zeros(target.shape)
    chosen = np.zeros(target.shape, dtype=bool)
    scale = np.einsum("ijj->ij", gram).max(axis=1, initial=0.0)
    problems = np.flatnonzero(scale > 0)
    settled = np.ones(len(problems), dtype=bool)
    # Every round changes the chosen set of every open problem; the cap only stops cycles due to rounding.
    for _ in range(10 * n_variables):
        # A problem settled on its chosen variables lets the steepest other one in, or is solved.
        gradient = target[problems] - np.einsum("ijk,ik->ij", gram[problems], weights[problems])
        gradient[chosen[problems]] = -np.inf
        steepest = gradient.argmax(axis=1)
        enters = settled & (gradient.max(axis=1) > GRADIENT_TOLERANCE * scale[problems])
        chosen[problems[enters], steepest[enters]] = True
        problems = problems[enters | ~settled]
        if not len(problems):
            break
        t, free = weights[problems], chosen[problems]
        solution = _solve_on(free, gram[problems], target[problems], scale[problems])
        blocking = free & (solution <= 0)
        ratio = np.divide(t, t - solution, out=np.full(t.shape, np.inf), where=blocking)
        step = np.minimum(ratio.min(axis=1, keepdims=True), 1.0)
        t += step * (solution - t)
        # The variable that stopped the step must leave exactly, whatever rounding made of it.
        leaving = blocking & ((t <= 0) | (ratio <= step))
        t[leaving] = 0.0
        weights[problems] = t
        chosen[problems] = free & ~leaving
        settled = ~blocking.any(axis=1)
    return weights


def _solve_on(free: np.ndarray, gram: np.ndarray, target: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Least-squares solutions with the variables outside ``free`` held at zero."""
    n_variables = free.shape[1]
    system = np.where(free[:, :, None] & free[:, None, :], gram, 0.0)
    # The held variables get a unit equation t_j = 0; the others a ridge far below the answer's precision,
    # so that one degenerate problem cannot fail the whole stack.
    diagonal = np.where(free, 1e-14 * scale[:, None], 1.0)
    system[:, np.arange(n_variables), np.arange(n_variables)] += diagonal
    return np.linalg.solve(system, np.where(free, target, 0.0)[:, :, None])[:, :, 0]
