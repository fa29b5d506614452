"""Many small support vector machines solved together."""

from __future__ import annotations

import numpy as np

#: Curvature below this, of two rows with the same features, is raised to it as in libsvm.
SMALLEST_CURVATURE = 1e-12


def solve_svms(
    gram: np.ndarray, is_first: np.ndarray, is_used: np.ndarray, *, C: float, tol: float, max_iter: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve the duals of a stack of SVMs by sequential minimal optimisation.

    Every step moves, in each open problem, the pair of coefficients that libsvm's second-order rule [1]_
    chooses; a problem is done when its most violating pair violates optimality by less than ``tol``. The
    numbers are double precision throughout, so ``tol`` may be much smaller than libsvm's.

    Parameters
    ----------
    gram : ndarray of shape (n_problems, n_rows, n_rows)
        Inner products of the rows.
    is_first : boolean ndarray of shape (n_problems, n_rows)
        Rows of the positive side.
    is_used : boolean ndarray of shape (n_problems, n_rows)
        Rows that are there; problems with fewer rows are padded. Both sides must have rows.
    C : float
        Weight of the hinge loss.
    tol : float
        Violation of optimality that is tolerated.
    max_iter : int
        Iteration budget.

    Returns
    -------
    dual : ndarray of shape (n_problems, n_rows)
        Coefficients of the rows in the weight vectors: in [0, C] on the positive side, in [-C, 0] on the
        other, 0 on padding.
    intercept : ndarray of shape (n_problems,)
        Offsets.
    converged : boolean ndarray of shape (n_problems,)
        Which problems reached the tolerance.

    References
    ----------
    .. [1] Fan, Chen and Lin, "Working set selection using second order information for training support
       vector machines", Journal of Machine Learning Research 6, 2005.

    Examples
    --------
    >>> x = np.array([[0.0], [2.0]])
    >>> dual, intercept, converged = solve_svms(
    ...     (x @ x.T)[None], np.array([[False, True]]), np.array([[True, True]]), C=1.0, tol=1e-9, max_iter=99
    ... )
    >>> dual @ x, intercept, converged
    (array([[1.]]), array([-1.]), array([ True]))
    """
    dual = np.zeros(is_first.shape)
    intercept = np.zeros(len(gram))
    converged = np.zeros(len(gram), dtype=bool)
    problems = np.arange(len(gram))
    # Open problems are worked on in compact copies: products, bounds, coefficients, and what the linear
    # score leaves of the label, which no row that may grow exceeds, at the optimum, in one that may shrink.
    K, beta = gram, dual.copy()
    upper, lower = np.where(is_first & is_used, C, 0.0), np.where(is_first | ~is_used, 0.0, -C)
    residual = np.where(is_first, 1.0, -1.0)
    slack = 1e-12 * C
    for _ in range(max_iter):
        growing = np.where(upper - beta > slack, residual, -np.inf)
        shrinking = np.where(beta - lower > slack, residual, np.inf)
        each = np.arange(len(problems))
        grow = growing.argmax(axis=1)
        highest = growing[each, grow]
        is_open = highest - shrinking.min(axis=1) >= tol
        # Compacting copies the products, so it waits until half of the problems are done.
        if 2 * np.count_nonzero(is_open) <= len(problems):
            ended = problems[~is_open]
            dual[ended], converged[ended] = beta[~is_open], True
            intercept[ended] = _intercept(growing[~is_open], shrinking[~is_open])
            if not is_open.any():
                break
            problems, K, beta, residual, upper, lower, growing, shrinking, grow, highest = (
                array[is_open]
                for array in (problems, K, beta, residual, upper, lower, growing, shrinking, grow, highest)
            )
            each = np.arange(len(problems))
        gap = np.maximum(highest[:, None] - shrinking, 0.0)
        products = K[each, grow]
        diagonal = np.einsum("ijj->ij", K)
        curvature = np.maximum(diagonal + diagonal[each, grow, None] - 2 * products, SMALLEST_CURVATURE)
        shrink = (gap**2 / curvature).argmax(axis=1)
        step = gap[each, shrink] / curvature[each, shrink]
        step = np.minimum(step, upper[each, grow] - beta[each, grow])
        step = np.minimum(step, beta[each, shrink] - lower[each, shrink])
        beta[each, grow] += step
        beta[each, shrink] -= step
        residual -= step[:, None] * (products - K[each, shrink])
    return dual, intercept, converged


def _intercept(growing: np.ndarray, shrinking: np.ndarray) -> np.ndarray:
    """Mean residual of the rows strictly between their bounds; without any, the middle of what fits."""
    is_free = np.isfinite(growing) & np.isfinite(shrinking)
    n_free = is_free.sum(axis=1)
    middle = (growing.max(axis=1) + shrinking.min(axis=1)) / 2
    mean = np.where(is_free, growing, 0.0).sum(axis=1) / np.maximum(n_free, 1)
    intercept: np.ndarray = np.where(n_free > 0, mean, middle)
    return intercept
