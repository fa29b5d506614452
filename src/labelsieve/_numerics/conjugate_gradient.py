"""Conjugate gradients for several right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def conjugate_gradient(
    operator: Callable[[np.ndarray], np.ndarray],
    B: np.ndarray,
    start: np.ndarray | None = None,
    *,
    preconditioner: Callable[[np.ndarray], np.ndarray] | None = None,
    rtol: float = 1e-10,
    max_iter: int = 500,
) -> np.ndarray:
    """Solve ``operator(X) = B`` column by column, all columns in step, from ``start`` or from 0.

    ``operator`` must act on every column as a symmetric positive definite matrix, which may differ between
    columns; so must ``preconditioner``, which should come near the inverse. Every iteration lowers the
    quadratic whose minimum is sought, so a solve cut short is still a descent step.

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> conjugate_gradient(lambda X: A @ X, np.array([[3.0], [4.0]])).round(6)
    array([[1.],
           [1.]])
    """
    X, R = (np.zeros_like(B), B.copy()) if start is None else (start.copy(), B - operator(start))
    # Single precision cannot reach what double precision can.
    goal = max(rtol, 10 * np.finfo(B.dtype).eps) ** 2 * np.einsum("ij,ij->j", B, B)
    direction = np.zeros_like(B)
    energy = np.ones(B.shape[1], dtype=B.dtype)
    for _ in range(max_iter):
        active = np.einsum("ij,ij->j", R, R) > goal
        if not active.any():
            break
        Z = R if preconditioner is None else preconditioner(R)
        previous, energy = energy, np.einsum("ij,ij->j", R, Z)
        ratio = np.divide(energy, previous, out=np.zeros_like(energy), where=active & (previous > 0))
        direction = Z + ratio * direction
        image = operator(direction)
        curvature = np.einsum("ij,ij->j", direction, image)
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=active & (curvature > 0))
        X += step * direction
        R -= step * image
    return X
