"""Linear support vector machines with squared hinge loss, solved for many labels at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from labelsieve._numerics.batches import batches
from labelsieve._numerics.ridge import conjugate_gradient
from labelsieve._numerics.sparse import Matrix, dense, is_sparse

#: Maximum number of features for which X'X is formed. Beyond it, only the diagonal is used.
_LARGEST_GRAM = 3000
#: Number of decision values in a block: 4 MiB, which fits into the cache. Larger blocks were slower.
_BLOCK_ENTRIES = 2**19
#: Tolerance and iterations of conjugate gradients for one Newton step.
_CG_RTOL, _CG_MAX_ITER = 0.05, 30
#: Minimum decrease of a full step as a fraction of the linear prediction. Otherwise the step is shortened.
_SUFFICIENT = 1e-4
#: Relative change of an objective that may be rounding error.
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


class SquaredHingeFit(NamedTuple):
    """Linear machines, one per label."""

    #: Weights, of shape (n_labels, n_features).
    coef: np.ndarray
    intercept: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray


def solve_squared_hinge(
    X: Matrix, Y: np.ndarray, *, C: float = 1.0, tol: float = 1e-7, max_iter: int = 1000
) -> SquaredHingeFit:
    """Minimise ``(|w|^2 + b^2) / 2 + C sum_i max(0, 1 - y_i (x_i w + b))^2`` for every column y of ``Y``.

    `sklearn.svm.LinearSVC` minimises the same objective label by label, with the intercept in the penalty.
    Here, all labels share one product with ``X``. Every label takes its own Newton steps, computed by
    conjugate gradients with the shared preconditioner I + 2 C X'X. This is the Hessian of a label with all
    rows inside the margin, which is close to the Hessian of noisy labels. With many features, only the
    diagonal is used.

    A label has converged if its gradient norm is at most ``tol`` times the gradient norm at 0 times the
    fraction of its rarer class, as in liblinear, or if double precision allows no further decrease. After
    ``max_iter`` Newton steps, the best weights so far are returned. All computations use float64. Sparse
    features stay sparse.

    Labels are solved in blocks of at most 4 MiB of decision values, or of one label. The result is
    deterministic. The labels in a block affect rounding, so the result for a label depends on the other
    labels, but only within the tolerance.

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([[False], [True]])
    >>> fit = solve_squared_hinge(X, Y)  # w = 10/11, b = -4/11: there the gradient is 0
    >>> (11 * fit.coef).round(6), (11 * fit.intercept).round(6)
    (array([[10.]]), array([-4.]))
    """
    n_samples, n_labels = Y.shape
    X = _with_ones(X)
    W = np.zeros((X.shape[1], n_labels))
    n_iter, converged = np.zeros(n_labels, dtype=np.intp), np.zeros(n_labels, dtype=bool)
    # If the squares of features overflow, the labels do not converge.
    with np.errstate(over="ignore", invalid="ignore"):
        preconditioner = _preconditioner(X, C)
        for labels in batches(n_labels, width=n_samples, budget=_BLOCK_ENTRIES):
            W[:, labels], n_iter[labels], converged[labels] = _solve_block(
                X, Y[:, labels], C, tol, max_iter, preconditioner
            )
    return SquaredHingeFit(np.ascontiguousarray(W[:-1].T), W[-1].copy(), n_iter, converged)


class _Point(NamedTuple):
    """Weights of some labels, and the objective there. Labels are the last axis of every array."""

    W: np.ndarray
    #: Target (1 or -1) minus decision value.
    residual: np.ndarray
    #: True if a row is inside the margin of a label or on the wrong side.
    is_active: np.ndarray
    value: np.ndarray
    gradient: np.ndarray

    @classmethod
    def at(cls, W: np.ndarray, X: Matrix, Y: np.ndarray, C: float) -> Self:
        """Evaluate the objective and the gradient of every label."""
        residual = np.where(Y, 1.0, -1.0)
        residual -= X @ W
        is_active = (residual > 0) == Y
        loss = residual * is_active
        value = 0.5 * _dot(W, W) + C * _dot(loss, loss)
        gradient = X.T @ loss
        gradient *= -2 * C
        gradient += W
        return cls(W, residual, is_active, value, gradient)

    def of(self, labels: np.ndarray) -> Self:
        """Return a copy for the given labels."""
        return type(self)(*(entries[..., labels] for entries in self))

    def put(self, labels: np.ndarray, point: _Point) -> None:
        """Overwrite the given labels."""
        for entries, others in zip(self, point, strict=True):
            entries[..., labels] = others


def _solve_block(
    X: Matrix,
    Y: np.ndarray,
    C: float,
    tol: float,
    max_iter: int,
    preconditioner: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, number of steps and convergence of every label in a block."""
    n_samples, n_labels = Y.shape
    W = np.zeros((X.shape[1], n_labels))
    n_iter, converged = np.full(n_labels, max_iter), np.zeros(n_labels, dtype=bool)
    point = _Point.at(W, X, Y, C)
    n_positive = Y.sum(axis=0)
    rarer = np.maximum(np.minimum(n_positive, n_samples - n_positive), 1) / n_samples
    goal = tol * rarer * _norm(point.gradient)
    labels = np.arange(n_labels)
    # Exhausted labels are at the limit of double precision. Stuck labels found no lower point on the line.
    is_exhausted = is_stuck = np.zeros(n_labels, dtype=bool)
    for step in range(max_iter + 1):
        length = _norm(point.gradient)
        is_solved = ((length <= goal) | is_exhausted) & np.isfinite(length)
        is_over = is_solved | is_exhausted | is_stuck | (step == max_iter)
        if is_over.any():
            over = labels[is_over]
            W[:, over], n_iter[over], converged[over] = point.W[:, is_over], step, is_solved[is_over]
            if is_over.all():
                break
            labels, goal, Y, point = labels[~is_over], goal[~is_over], Y[:, ~is_over], point.of(~is_over)
        point, is_exhausted, is_stuck = _newton_step(point, X, Y, C, preconditioner)
    return W, n_iter, converged


def _newton_step(
    point: _Point, X: Matrix, Y: np.ndarray, C: float, preconditioner: Callable[[np.ndarray], np.ndarray]
) -> tuple[_Point, np.ndarray, np.ndarray]:
    """Return a lower point, and masks of the exhausted and of the stuck labels."""
    hessian = partial(_hessian_product, X=X, is_active=point.is_active, C=C)
    D = conjugate_gradient(
        hessian, -point.gradient, preconditioner=preconditioner, rtol=_CG_RTOL, max_iter=_CG_MAX_ITER
    )
    slope = _dot(point.gradient, D)
    found = _Point.at(point.W + D, X, Y, C)
    slack = _ROUNDING * point.value
    is_too_long = ~(found.value <= point.value + _SUFFICIENT * slope + slack)
    if is_too_long.any():
        start = point.of(is_too_long)
        change = start.residual - found.residual[:, is_too_long]
        fraction = _line_minimum(start, D[:, is_too_long], change, Y[:, is_too_long], C)
        found.put(is_too_long, _Point.at(start.W + fraction * D[:, is_too_long], X, Y[:, is_too_long], C))
    is_stuck = ~(found.value <= point.value + slack)
    if is_stuck.any():
        found.put(is_stuck, point.of(is_stuck))
    return found, ~is_stuck & (-slope <= slack), is_stuck


def _hessian_product(P: np.ndarray, *, X: Matrix, is_active: np.ndarray, C: float) -> np.ndarray:
    image = X @ P
    image *= is_active
    product: np.ndarray = X.T @ image
    product *= 2 * C
    product += P
    return product


def _line_minimum(start: _Point, D: np.ndarray, change: np.ndarray, Y: np.ndarray, C: float) -> np.ndarray:
    """Return the fraction of a step that minimises the objective, by Newton's method in a shrinking bracket.

    ``change`` is the decrease of the residuals in a full step.
    """
    along, squares = _dot(start.W, D), _dot(D, D)
    low, high = np.zeros(D.shape[1]), np.ones(D.shape[1])
    fraction = np.full(D.shape[1], 0.5)
    for _ in range(50):
        residual = start.residual - fraction * change
        moving = change * ((residual > 0) == Y)
        slope = along + fraction * squares - 2 * C * _dot(moving, residual)
        curvature = squares + 2 * C * _dot(moving, moving)
        low, high = np.where(slope < 0, fraction, low), np.where(slope < 0, high, fraction)
        newton = fraction - slope / curvature
        previous, fraction = fraction, np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        if (np.abs(fraction - previous) <= 1e-3 * fraction).all():
            break
    return fraction


def _preconditioner(X: Matrix, C: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that multiplies by the inverse of I + 2 C X'X, or of its diagonal if it is large."""
    n_features = X.shape[1]
    if n_features <= _LARGEST_GRAM:
        hessian = 2 * C * dense(X.T @ X)
        hessian.flat[:: n_features + 1] += 1
        # Badly scaled features can make it indefinite or overflow.
        try:
            factor = cho_factor(hessian, lower=True, overwrite_a=True)
        except (LinAlgError, ValueError):
            pass
        else:
            return partial(_solve_factored, factor)
    squares = X.multiply(X).sum(axis=0) if is_sparse(X) else np.einsum("ij,ij->j", X, X)
    scale = 1 / (1 + 2 * C * np.asarray(squares).reshape(-1, 1))
    return partial(np.multiply, scale)


def _solve_factored(factor: tuple[np.ndarray, bool], R: np.ndarray) -> np.ndarray:
    # LAPACK returns column order, but sparse products need row order.
    return np.ascontiguousarray(cho_solve(factor, R, check_finite=False))


def _with_ones(X: Matrix) -> Matrix:
    """Append a column of ones, whose weight is the intercept."""
    ones = np.ones((X.shape[0], 1))
    if not is_sparse(X):
        return np.hstack([X.astype(np.float64, copy=False), ones])
    return sp.hstack([X.astype(np.float64), sp.csr_matrix(ones)], format="csr")


def _dot(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", A, B)


def _norm(A: np.ndarray) -> np.ndarray:
    return np.sqrt(_dot(A, A))
