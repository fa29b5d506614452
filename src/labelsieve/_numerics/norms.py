"""Row norms, the l2,1 norm with its quadratic bound, and steps that shrink or rescale matrices."""

from __future__ import annotations

import numpy as np

from labelsieve._numerics.sparse import Matrix, is_sparse

#: Added under the square root so that the weights of zero rows are finite.
EPSILON = float(np.finfo(np.float64).eps)


def squared_row_norms(M: Matrix) -> np.ndarray:
    """Return the squared Euclidean norm of every row of a dense or sparse matrix."""
    return np.asarray(M.multiply(M).sum(axis=1)).ravel() if is_sparse(M) else np.einsum("ij,ij->i", M, M)


def row_norms(W: np.ndarray) -> np.ndarray:
    """Return the Euclidean norm of every row.

    Examples
    --------
    >>> row_norms(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([5., 0.])
    """
    return np.sqrt(squared_row_norms(W))


def l21_norm(W: np.ndarray) -> float:
    """Return the sum of the row norms."""
    return float(row_norms(W).sum(dtype=np.float64))


def smooth_l21_norm(W: np.ndarray, epsilon: float = EPSILON) -> float:
    """Return the sum of the row norms, smoothed by epsilon under the root as in `l21_weights`."""
    return float(np.sqrt(squared_row_norms(W) + W.dtype.type(epsilon)).sum(dtype=np.float64))


def l21_weights(W: np.ndarray, epsilon: float = EPSILON) -> np.ndarray:
    """Return weights q with ``|V|_21 <= sum_i q_i |v_i|^2 + constant`` for all V, an equality at ``V = W``."""
    return 0.5 / np.sqrt(squared_row_norms(W) + W.dtype.type(epsilon))


def soft_threshold(M: np.ndarray, threshold: float) -> np.ndarray:
    """Move every entry towards 0 by ``threshold``, and set smaller entries to 0.

    Examples
    --------
    >>> soft_threshold(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    return M - np.clip(M, -threshold, threshold)


def into_unit_ball(M: np.ndarray) -> np.ndarray:
    """Scale rows that are longer than 1 to length 1.

    Examples
    --------
    >>> into_unit_ball(np.array([[3.0, 4.0], [0.3, 0.4]]))
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    return M / np.maximum(row_norms(M), 1)[:, None]


def multiplicative_step(
    factor: np.ndarray, numerator: np.ndarray, denominator: np.ndarray, exponent: float = 1.0
) -> np.ndarray:
    """Return ``factor * (numerator / (denominator + epsilon)) ** exponent``.

    Overwrites numerator and denominator. Exponents above 1 take larger steps, so check that the objective
    decreases. Entries whose squares would be subnormal become 0. They are negligible, and products with
    subnormal numbers are many times slower.

    Examples
    --------
    >>> multiplicative_step(np.array([2.0, 0.0]), np.array([3.0, 1.0]), np.array([1.0, 0.0])).round(6)
    array([6., 0.])
    """
    denominator += denominator.dtype.type(EPSILON)
    numerator /= denominator
    if exponent != 1:
        np.power(numerator, numerator.dtype.type(exponent), out=numerator)
    numerator *= factor
    numerator[numerator < np.sqrt(np.finfo(numerator.dtype).tiny)] = 0
    return numerator
