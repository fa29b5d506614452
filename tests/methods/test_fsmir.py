"""Factorisation of PML-FSMIR: objective, solvers and start compared with slow, direct versions."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from graph_examples import symbol_mutual_information
from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._numerics.norms import l21_norm
from labelsieve._row_problem import in_memory
from labelsieve.methods._fsmir.block_descent import BlockDescent, _coordinate_changes, _coordinate_sweep
from labelsieve.methods._fsmir.factorization import (
    FactorizationProblem,
    Factors,
    leading_singular_vectors,
    nndsvd,
    start_factors,
)


def plain_objective(problem, V, W, U=None):
    """Compute the objective from its definition, with every matrix formed."""
    L = np.diag(problem.information.sum(axis=1)) - problem.information
    X, T = (problem.rows.gather(name) for name in "XT")
    X, T = (M.toarray() if sp.issparse(M) else M for M in (X, T))
    U = problem.rows.gather("U") if U is None else U
    return (
        np.sum((U @ V @ W - T) ** 2)
        + problem.alpha * np.sum((X - U @ V) ** 2)
        + problem.beta * np.trace(W @ L @ W.T)
        + problem.gamma * np.linalg.norm(W, axis=1).sum()
    )


@pytest.fixture(params=["dense", "sparse"])
def problem(request):
    rng = np.random.default_rng(0)
    X, T = (
        rng.random((40, 9)) * (rng.random((40, 9)) < 0.6),
        rng.random((40, 5)) * (rng.random((40, 5)) < 0.5),
    )
    if request.param == "sparse":
        X, T = sp.csr_matrix(X), sp.csr_matrix(T)
    return FactorizationProblem.of_arrays(
        X, T, symbol_mutual_information(T, 3), alpha=0.7, beta=0.3, gamma=0.5
    )


def random_factors(problem, n_components=3):
    """Return V and W, and store U with the rows."""
    rng = np.random.default_rng(1)
    put_U(problem, rng.random((40, n_components)))
    return Factors(rng.random((n_components, 9)), rng.random((9, 5)))


def put_U(problem, U):
    """Add its rows of U to every block."""
    for block in problem.rows.blocks:
        block["U"] = U[block["rows"]]


def in_blocks(problem, n_rows):
    """Split the problem into blocks of rows."""
    block, data = problem.rows.blocks[0], problem.data
    pieces = [slice(first, first + n_rows) for first in range(0, problem.rows.n_rows, n_rows)]
    rows = MemoryBlocks([{name: block[name][piece] for name in "XT"} for piece in pieces])
    return replace(problem, data=replace(data, rows=rows))


def test_cheap_objective_equals_the_plain_one(problem):
    V, W = random_factors(problem)
    cheap = problem.objective(problem.grams(), V, W, V @ W)
    assert cheap == pytest.approx(plain_objective(problem, V, W), rel=1e-12)


@pytest.mark.parametrize("n_components", [1, 3])
def test_block_descent_reports_the_objective_of_the_accepted_factors(problem, n_components):
    descent = BlockDescent(problem)
    state = first = descent.warm_up(random_factors(problem, n_components), 20)
    for _ in range(60):
        last = state.value
        state, value = descent.step(state)
        assert value <= last * (1 + 1e-12)
        assert value == pytest.approx(plain_objective(problem, *state.accepted), rel=1e-10)
        assert all((factor >= 0).all() for factor in (problem.rows.gather("U"), *state.accepted))
    assert state.value < first.value


def test_block_descent_ends_at_a_stationary_point(problem):
    """At a minimum, no small feasible change of an entry lowers the objective."""
    descent = BlockDescent(problem)
    state = descent.warm_up(random_factors(problem), 20)
    for _ in range(300):
        state, value = descent.step(state)
    factors = [factor.copy() for factor in (*state.accepted, problem.rows.gather("U"))]
    rng = np.random.default_rng(2)
    for factor in factors:
        for _ in range(40):
            i, j = (rng.integers(size) for size in factor.shape)
            kept = factor[i, j]
            for move in (1e-4, -1e-4):
                factor[i, j] = max(0, kept + move)
                assert plain_objective(problem, *factors) >= value * (1 - 1e-9)
            factor[i, j] = kept


def test_w_step_agrees_with_an_independent_solver(problem):
    """For fixed U and V, the steps on W converge to the minimum found by bounded L-BFGS."""
    V, start = random_factors(problem)
    descent, grams = BlockDescent(problem), problem.grams()

    def smoothed(w):
        W = w.reshape(9, 5)
        root = np.sqrt((W**2).sum(axis=1) + 1e-14)
        value = problem.objective(grams, V, W, V @ W) + problem.gamma * (root.sum() - l21_norm(W))
        gradient = 2 * (V.T @ (grams.S @ (V @ W) - grams.UT) + problem.beta * W @ problem.laplacian)
        return value, (gradient + problem.gamma * W / root[:, None]).ravel()

    result = minimize(
        smoothed, np.full(45, 0.1), jac=True, bounds=[(0, None)] * 45, method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    for block_rows in (1, 4, 9):
        W, descent.block_rows = start, block_rows
        for _ in range(200):
            W = descent._w_step(grams, V, grams.S @ V, W, W, W @ problem.laplacian)
        assert problem.objective(grams, V, W, V @ W) == pytest.approx(result.fun, rel=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-3)])
@pytest.mark.parametrize("n_rows", [1, 8, 21])
def test_grouped_coordinate_sweep_equals_a_sweep_row_by_row(n_rows, dtype, tolerance):
    rng = np.random.default_rng(3)
    root, M, target = rng.random((n_rows, n_rows)), rng.random((n_rows, 30)), rng.random((n_rows, 30))
    coupling = root @ root.T
    coupling /= np.diag(coupling)[:, None]
    expected = M.copy()
    for r in range(n_rows):
        expected[r] = np.maximum(expected[r] + target[r] - coupling[r] @ expected, 0)
    M, target, coupling = (part.astype(dtype) for part in (M, target, coupling))
    changed = M + _coordinate_changes(M, target - coupling @ M, coupling)
    np.testing.assert_allclose(changed, expected, atol=tolerance)
    _coordinate_sweep(M, target, coupling)
    np.testing.assert_allclose(M, expected, atol=tolerance)


@pytest.mark.parametrize("n_rows", [40, 7])
def test_rows_in_blocks_give_the_same_descent(problem, monkeypatch, n_rows):
    """Blocks return only sums over rows, also in rejected steps."""
    ends = []
    for part, piece in ((problem, 40), (in_blocks(problem, n_rows), 6)):
        monkeypatch.setattr("labelsieve.methods._fsmir.factorization._BLOCK_ROWS", piece)
        descent = BlockDescent(part)
        state = descent.warm_up(random_factors(part), 3)
        values = [state.value]
        for _ in range(40):
            state, value = descent.step(state)
            values.append(value)
        ends.append((values, *state.accepted, part.rows.gather("U")))
    assert 0 in np.diff(ends[0][0]), "some step was rejected"
    for whole, cut in zip(*ends, strict=True):
        np.testing.assert_allclose(cut, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox])
def test_random_start_of_a_block_is_its_part_of_one_stream(problem, kind):
    expected, rng = np.random.Generator(kind(5)), np.random.Generator(kind(5))
    part = in_blocks(problem, 7)
    V, _ = start_factors(part, 3, "random", rng)
    np.testing.assert_array_equal(part.rows.gather("U"), expected.random((40, 3)))
    np.testing.assert_array_equal(V, expected.random((3, 9)))
    assert rng.random() == expected.random(), "the generator goes on behind what was drawn"


def test_a_sample_of_repeated_rows_is_the_same_problem_scaled_down(problem):
    """If rows repeat, the objective of a sample is proportional to its size."""
    X, T = (problem.rows.gather(name)[[3] * 40] for name in "XT")
    alike = FactorizationProblem.of_arrays(
        X, T, problem.information, problem.alpha, problem.beta, problem.gamma
    )
    sample = alike.sample(10)
    V, W = random_factors(alike)
    U = alike.rows.gather("U")[[0] * 40]
    put_U(alike, U)
    put_U(sample, U[:10])
    whole = alike.objective(alike.grams(), V, W, V @ W)
    assert sample.objective(sample.grams(), V, W, V @ W) == pytest.approx(whole / 4, rel=1e-12)
    assert problem.sample(40) is problem


def test_start_on_a_sample_reaches_the_same_minimum(problem, monkeypatch):
    """With one component there is a single minimum. With more, the starts may find different ones."""
    ends = []
    for many in (40, 25):
        monkeypatch.setattr("labelsieve.methods._fsmir.block_descent._MANY_ROWS", many)
        descent = BlockDescent(problem)
        state = descent.start(1, "nndsvda", np.random.default_rng(0))
        assert state.value == pytest.approx(plain_objective(problem, *state.accepted), rel=1e-12)
        for _ in range(300):
            state, value = descent.step(state)
        ends.append(value)
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_singular_vectors_agree_with_lapack(container):
    X = np.random.default_rng(0).random((30, 12)) @ np.diag(0.5 ** np.arange(12))
    data = in_memory(container(X), X)
    projection, values, right, total = leading_singular_vectors(data, 4)
    left = data.rows.gather("image") @ projection
    assert total == pytest.approx(X.sum())
    expected = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(values, expected[1][:4], rtol=1e-8)
    truncated = (expected[0][:, :4] * expected[1][:4]) @ expected[2][:4]
    np.testing.assert_allclose((left * values) @ right, truncated, atol=1e-8)


@pytest.mark.parametrize(
    "X", [np.zeros((5, 4)), np.ones((5, 4)), np.eye(5)[:, :4]], ids=["zero", "rank 1", "eye"]
)
def test_nndsvd_of_degenerate_matrices_is_finite_and_non_negative(X):
    data = in_memory(X, X)
    V, sums = nndsvd(data, 3)
    U = data.rows.gather("U")
    np.testing.assert_array_equal(sums, U.sum(axis=0))
    for factor in (U, V):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
