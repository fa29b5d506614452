"""Conjugate gradients, weighted ridge, multiplicative step and label order."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve._numerics.candidates import label_order, uniform_per_label
from labelsieve._numerics.norms import multiplicative_step
from labelsieve._numerics.ridge import Shifted, WeightedRidge, conjugate_gradient, largest_eigenvalue


def test_conjugate_gradients_solve_a_different_system_in_every_column():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    A = A @ A.T
    shifts = np.array([0.5, 3.0, 100.0])
    B = rng.normal(size=(30, 3))
    solution = conjugate_gradient(lambda Z: A @ Z + shifts * Z, B, rng.normal(size=(30, 3)))
    for column, shift in enumerate(shifts):
        expected = np.linalg.solve(A + shift * np.eye(30), B[:, column])
        np.testing.assert_allclose(solution[:, column], expected, rtol=1e-6)


def test_conjugate_gradients_converge_fast_with_a_good_preconditioner():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    A = A @ A.T
    shifts, B = np.array([1.0, 1.5, 3.0]), rng.normal(size=(30, 3))
    inverse = np.linalg.inv(A + 1.5 * np.eye(30))
    solution = conjugate_gradient(
        lambda Z: A @ Z + shifts * Z, B, preconditioner=lambda R: inverse @ R, max_iter=12
    )
    for column, shift in enumerate(shifts):
        expected = np.linalg.solve(A + shift * np.eye(30), B[:, column])
        np.testing.assert_allclose(solution[:, column], expected, rtol=1e-6)
    assert np.abs(conjugate_gradient(lambda Z: A @ Z + shifts * Z, B, max_iter=12) - solution).max() > 1e-3


def test_every_conjugate_gradient_step_lowers_the_quadratic():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(20, 20))
    A = A @ A.T
    B, start = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    values = [
        np.sum(X * (A @ X) / 2 - B * X)
        for X in (conjugate_gradient(lambda Z: A @ Z, B, start, max_iter=n) for n in range(6))
    ]
    assert (np.diff(values) < 0).all()


def test_conjugate_gradients_of_zero_are_zero():
    zero = np.zeros((3, 2))
    np.testing.assert_array_equal(conjugate_gradient(lambda Z: Z, zero, zero), zero)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("largest", [6000, 0])
@pytest.mark.parametrize("shifted", [False, True])
def test_weighted_ridge_solves_the_normal_equations_on_every_path(monkeypatch, shape, kind, largest, shifted):
    monkeypatch.setattr("labelsieve._numerics.ridge._LARGEST_FACTOR", largest)
    rng = np.random.default_rng(3)
    X = np.where(rng.random(shape) < 0.6, 0, rng.normal(size=shape))
    T, W = rng.normal(size=(shape[0], 3)), rng.normal(size=(shape[1], 2))
    offset = rng.normal(size=shape[1]) if shifted else None
    weights = 10 ** rng.uniform(-2, 4, shape[1])
    Z = X - offset if shifted else X
    ridge, system = WeightedRidge(Shifted(kind(X), offset)), Z.T @ Z + np.diag(weights)
    np.testing.assert_allclose(
        ridge.solver(weights)(T), np.linalg.solve(system, Z.T @ T), rtol=1e-6, atol=1e-10
    )
    np.testing.assert_allclose(ridge.normal_product(W), Z.T @ Z @ W, atol=1e-10)
    # Without a factorisation, only the diagonal is inverted.
    inverse = np.linalg.inv(system) if largest else np.diag(1 / np.diag(system))
    np.testing.assert_allclose(ridge.inverse(weights)(W), inverse @ W, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 64, 65, 200])
def test_largest_eigenvalue_is_a_tight_upper_bound(size):
    rng = np.random.default_rng(4)
    B = rng.normal(size=(size, max(1, size // 2)))
    largest = np.linalg.eigvalsh(B @ B.T)[-1]
    found = largest_eigenvalue(lambda V: B @ (B.T @ V), size)
    assert largest * (1 - 1e-12) <= found <= largest * (1 + 1e-5)
    assert largest_eigenvalue(np.zeros_like, size) == 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("shifted", [False, True])
def test_shifted_products_equal_those_of_the_shifted_matrix(kind, shifted):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((7, 4)) < 0.5, 0, rng.normal(size=(7, 4)))
    offset = rng.normal(size=4) if shifted else None
    features, Z = Shifted(kind(X), offset), X - offset if shifted else X
    W, R, factor = rng.normal(size=(4, 2)), rng.normal(size=(7, 3)), rng.normal(size=4)
    for found, expected in (
        (features.times(W), Z @ W),
        (features.transposed_times(R), Z.T @ R),
        (features.gram(), Z.T @ Z),
        (features.row_gram(), Z @ Z.T),
        (features.mean_row(), Z.mean(axis=0)),
        (features.squared_row_norms(), (Z**2).sum(axis=1)),
        (features.squared_column_norms(), (Z**2).sum(axis=0)),
        (features.centred().times(W), (Z - Z.mean(axis=0)) @ W),
        (features.scaled(factor).times(W), (Z * factor) @ W),
        (features.with_constant().times(np.eye(5)), np.column_stack([Z, np.ones(7)])),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-13)
    if kind is not sp.csc_matrix:
        np.testing.assert_allclose(features.take(np.array([1, 5])).times(W), Z[[1, 5]] @ W, atol=1e-13)
        np.testing.assert_allclose(features.row_products(slice(2, 4)), Z[2:4] @ Z.T, atol=1e-13)


@pytest.mark.parametrize("shape", [(3000, 5), (5, 3000)])
def test_weighted_ridge_in_single_precision_survives_a_singular_gram(shape):
    X = np.full(shape, 1e3, dtype=np.float32)  # rank one, X'X of size 3e9 and weights of 1
    W = WeightedRidge(X).solver(np.ones(shape[1], dtype=np.float32))(X[:, :1])
    assert W.dtype == np.float32
    np.testing.assert_allclose(X @ W, X[:, :1], rtol=1e-2)


def test_multiplicative_step_is_a_power_of_the_ratio_and_keeps_zeros():
    factor = np.array([[1.0, 2.0, 0.0, 1e-200]])
    for exponent in (1.0, 1.5):
        step = multiplicative_step(factor, np.array([[4.0, 1.0, 5.0, 1.0]]), np.full((1, 4), 2.0), exponent)
        np.testing.assert_allclose(step, [[2**exponent, 2 * 0.5**exponent, 0, 0]])


def test_multiplicative_step_with_an_empty_denominator_is_finite():
    assert np.isfinite(multiplicative_step(np.ones((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)))).all()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_random_columns_move_with_the_labels(kind):
    rng = np.random.default_rng(3)
    Y = (rng.random((10, 12)) < 0.3).astype(float)
    Y[:, 4] = 0
    order = rng.permutation(12)
    draw = uniform_per_label(Y, 3, np.random.default_rng(0))
    moved = uniform_per_label(kind(Y[:, order]), 3, np.random.default_rng(0))
    np.testing.assert_array_equal(moved, draw[:, order])
    np.testing.assert_array_equal(Y[:, order][:, label_order(Y[:, order])], Y[:, label_order(Y)])
