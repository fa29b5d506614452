"""The largest eigenvalue, which bounds how far a gradient step may go."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

#: Up to this size a matrix is written down and decomposed; beyond it, it is only multiplied.
_SMALL = 64
#: Relative accuracy of the iteration, by which its result is raised to be a bound.
_ACCURACY = 1e-6


def largest_eigenvalue(product: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    """Return the largest eigenvalue of a positive semidefinite matrix, or very little more.

    Parameters
    ----------
    product : callable
        Multiplies the matrix with a matrix of ``size`` rows.
    size : int
        Number of its rows.

    Examples
    --------
    >>> A = np.diag([1.0, 3.0])
    >>> largest_eigenvalue(lambda V: A @ V, 2)
    3.0
    """
    if size <= _SMALL:
        return float(max(0.0, eigvalsh(product(np.eye(size)))[-1]))
    start = np.random.default_rng(0).normal(size=size)
    if not product(start[:, None]).any():
        return 0.0
    operator = LinearOperator(
        (size, size), matvec=lambda v: product(v.reshape(-1, 1)).ravel(), dtype=np.float64
    )
    found = eigsh(operator, k=1, which="LA", v0=start, tol=_ACCURACY, return_eigenvectors=False)
    return float(found[0]) * (1 + _ACCURACY)
