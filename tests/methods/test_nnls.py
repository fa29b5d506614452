"""Stacked non-negative least squares against scipy's one-by-one solver."""

import numpy as np
import pytest
from scipy.optimize import nnls

from labelsieve.methods._particle.nnls import solve_nnls


def stacked(A, b):
    """Rows of A (n, k, d) to combine to b (n, d), as products."""
    return solve_nnls(A @ A.transpose(0, 2, 1), np.einsum("ijk,ik->ij", A, b))


def residuals(A, b, weights):
    return np.linalg.norm(np.einsum("ij,ijk->ik", weights, A) - b, axis=1)


def scipy_weights(A, b):
    return np.array([nnls(rows.T, target)[0] for rows, target in zip(A, b, strict=True)])


@pytest.mark.parametrize("lowest", [-1.0, 0.0])
def test_weights_equal_scipys_when_the_rows_are_independent(lowest):
    rng = np.random.default_rng(0)
    A, b = rng.uniform(lowest, 1, (300, 10, 30)), rng.uniform(lowest, 1, (300, 30))
    np.testing.assert_allclose(stacked(A, b), scipy_weights(A, b), atol=1e-9)


@pytest.mark.parametrize("kind", ["repeated", "dependent", "more rows than features", "binary", "zero"])
def test_residuals_equal_scipys_when_the_weights_are_not_unique(kind):
    rng = np.random.default_rng(1)
    A, b = rng.random((200, 8, 12)), rng.random((200, 12))
    if kind == "repeated":
        A[:, 5] = A[:, 2]
    elif kind == "dependent":
        A[:, 7] = A[:, 2] + A[:, 3]
    elif kind == "more rows than features":
        A, b = A[:, :, :3], b[:, :3]
    elif kind == "binary":
        A, b = (A < 0.2).astype(float), (b < 0.2).astype(float)
    else:
        A[::2] = 0
    weights = stacked(A, b)
    assert (weights >= 0).all()
    np.testing.assert_allclose(residuals(A, b, weights), residuals(A, b, scipy_weights(A, b)), atol=1e-7)


def test_a_row_among_its_own_neighbours_takes_all_the_weight():
    A = np.random.default_rng(2).random((100, 6, 20))
    np.testing.assert_allclose(stacked(A, A[:, 4]), np.tile(np.eye(6)[4], (100, 1)), atol=1e-9)
