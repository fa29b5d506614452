"""The factorisation of PML-FSMIR: objective, solvers and start against slow, obvious versions."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from labelsieve.methods._fsmir.block_descent import BlockDescent, _coordinate_changes, _coordinate_sweep
from labelsieve.methods._fsmir.factorization import FactorizationProblem, Factors, multiplicative_sweep
from labelsieve.methods._fsmir.start import leading_singular_vectors, nndsvd
from labelsieve.numerics.information import symbol_mutual_information
from labelsieve.numerics.norms import l21_norm


def plain_objective(problem, U, V, W):
    """F as it is written, with every matrix formed."""
    L = np.diag(problem.information.sum(axis=1)) - problem.information
    X, T = (M.toarray() if sp.issparse(M) else M for M in (problem.X, problem.T))
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
    return FactorizationProblem(X, T, symbol_mutual_information(T, 3), alpha=0.7, beta=0.3, gamma=0.5)


def random_factors(n_components=3):
    rng = np.random.default_rng(1)
    return Factors(rng.random((40, n_components)), rng.random((n_components, 9)), rng.random((9, 5)))


def test_cheap_objective_equals_the_plain_one(problem):
    U, V, W = random_factors()
    cheap = problem.objective(problem.grams(U), V, W, V @ W)
    assert cheap == pytest.approx(plain_objective(problem, U, V, W), rel=1e-12)


def test_multiplicative_sweep_reports_the_objective_it_reached(problem):
    factors, value = multiplicative_sweep(problem, random_factors())
    assert value == pytest.approx(plain_objective(problem, *factors), rel=1e-12)


@pytest.mark.parametrize("n_components", [1, 3])
def test_block_descent_reports_the_objective_of_the_accepted_factors(problem, n_components):
    descent = BlockDescent(problem)
    state = first = descent.warm_up(random_factors(n_components))
    for _ in range(60):
        last = state.value
        state, value = descent.step(state)
        assert value <= last * (1 + 1e-12)
        assert value == pytest.approx(plain_objective(problem, *state.accepted), rel=1e-10)
        assert all((factor >= 0).all() for factor in state.accepted)
    assert state.value < first.value


def test_block_descent_ends_at_a_stationary_point(problem):
    """At a minimum, no small feasible move of one entry lowers F."""
    descent = BlockDescent(problem)
    state = descent.warm_up(random_factors())
    for _ in range(300):
        state, value = descent.step(state)
    factors = [factor.copy() for factor in state.accepted]
    rng = np.random.default_rng(2)
    for factor in factors:
        for _ in range(40):
            i, j = (rng.integers(size) for size in factor.shape)
            kept = factor[i, j]
            for move in (1e-4, -1e-4):
                factor[i, j] = max(0, kept + move)
                assert plain_objective(problem, *factors) >= value * (1 - 1e-9)
            factor[i, j] = kept


@pytest.mark.parametrize("block_rows", [1, 4, 9])
def test_w_step_solves_the_convex_problem_like_an_independent_method(problem, block_rows):
    """For fixed U and V the steps on W converge to the minimum that bounded L-BFGS finds."""
    U, V, W = random_factors()
    descent, grams = BlockDescent(problem), problem.grams(U)
    descent.block_rows = block_rows
    for _ in range(500):
        W = descent._w_step(grams, V, grams.S @ V, W, W, W @ problem.laplacian)
    ours = problem.objective(grams, V, W, V @ W)

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
    assert ours == pytest.approx(result.fun, rel=1e-6)


@pytest.mark.parametrize("n_rows", [1, 8, 21])
def test_grouped_coordinate_sweep_equals_one_row_after_the_other(n_rows):
    rng = np.random.default_rng(3)
    root, M, target = rng.random((n_rows, n_rows)), rng.random((n_rows, 30)), rng.random((n_rows, 30))
    coupling = root @ root.T
    coupling /= np.diag(coupling)[:, None]
    expected = M.copy()
    for r in range(n_rows):
        expected[r] = np.maximum(expected[r] + target[r] - coupling[r] @ expected, 0)
    changed = M + _coordinate_changes(M, target - coupling @ M, coupling)
    np.testing.assert_allclose(changed, expected, atol=1e-12)
    _coordinate_sweep(M, target, coupling)
    np.testing.assert_allclose(M, expected, atol=1e-12)


def test_rows_in_blocks_give_the_same_descent(problem, monkeypatch):
    """Sums over rows are all that leaves a block, rejected steps included."""
    ends = []
    for block_rows in (40, 7):
        monkeypatch.setattr("labelsieve.methods._fsmir.factorization._BLOCK_ROWS", block_rows)
        descent = BlockDescent(problem)
        state = descent.warm_up(random_factors(), 3)
        values = [state.value]
        for _ in range(40):
            state, value = descent.step(state)
            values.append(value)
        ends.append((values, *state.accepted))
    assert 0 in np.diff(ends[0][0]), "some step was rejected"
    for whole, in_blocks in zip(*ends, strict=True):
        np.testing.assert_allclose(in_blocks, whole, rtol=1e-9, atol=1e-12)


def test_sample_of_repeated_rows_is_the_same_problem_in_small(problem):
    """With all rows equal, a sample has the objective of the whole times its share."""
    alike = replace(problem, X=problem.X[[3] * 40], T=problem.T[[3] * 40])
    sample = alike.sample(10)
    U, V, W = random_factors()
    U = U[[0] * 40]
    whole = alike.objective(alike.grams(U), V, W, V @ W)
    assert sample.objective(sample.grams(U[:10]), V, W, V @ W) == pytest.approx(whole / 4, rel=1e-12)
    assert problem.sample(40) is problem


def test_start_on_a_sample_reports_its_objective_and_ends_where_the_whole_does(problem, monkeypatch):
    """With one component there is one minimum; more have several, and either start may find the deeper one."""
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


def test_dead_component_is_survived(problem):
    U, V, W = random_factors()
    V[1], U[:, 2] = 0, 0
    state = BlockDescent(problem).warm_up(Factors(U, V, W))
    for _ in range(5):
        state, value = BlockDescent(problem).step(state)
    assert np.isfinite(value)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_singular_vectors_agree_with_lapack(container):
    X = np.random.default_rng(0).random((30, 12)) @ np.diag(0.5 ** np.arange(12))
    left, values, right = leading_singular_vectors(container(X), 4)
    expected = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(values, expected[1][:4], rtol=1e-8)
    truncated = (expected[0][:, :4] * expected[1][:4]) @ expected[2][:4]
    np.testing.assert_allclose((left * values) @ right, truncated, atol=1e-8)


@pytest.mark.parametrize(
    "X", [np.zeros((5, 4)), np.ones((5, 4)), np.eye(5)[:, :4]], ids=["zero", "rank 1", "eye"]
)
def test_nndsvd_of_degenerate_matrices_is_finite_and_non_negative(X):
    for factor in nndsvd(X, 3):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
