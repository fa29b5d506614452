"""Each numeric routine against a slow, obvious version."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from sklearn.metrics import mutual_info_score

from labelsieve.numerics.block_descent import BlockDescent, _coordinate_changes
from labelsieve.numerics.factorization import FactorizationProblem, Factors, multiplicative_sweep
from labelsieve.numerics.information import (
    binary_mutual_information,
    cooccurrence,
    symbol_mutual_information,
)
from labelsieve.numerics.moments import column_moments
from labelsieve.numerics.nndsvd import leading_singular_vectors, nndsvd
from labelsieve.numerics.norms import l21_norm, l21_weights, row_norms
from labelsieve.numerics.result import iterate
from labelsieve.numerics.scaling import learn_scaling, minmax_scale


def pair_loop(symbols):
    """Mutual information of all pairs of columns in bits, one pair at a time."""
    n_columns = symbols.shape[1]
    # Scikit-learn wants the symbols as integers.
    codes = [np.unique(column, return_inverse=True)[1] for column in symbols.T]
    pairs = [[mutual_info_score(codes[i], codes[j]) for j in range(n_columns)] for i in range(n_columns)]
    return np.array(pairs) / np.log(2)


@given(arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 5)), elements=st.integers(0, 1)))
def test_binary_information_equals_the_pair_loop(Y):
    expected = pair_loop(Y)
    for container in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(binary_mutual_information(container(Y * 1.0)), expected, atol=1e-12)


@given(
    arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 5)), elements=st.integers(0, 6)),
    st.sampled_from([None, 1, 3, 10]),
)
def test_symbol_information_equals_the_pair_loop(sixths, n_bins):
    T = sixths / 6
    # Whole numbers know their bin exactly: the ceiling of sixths * n_bins / 6.
    symbols = sixths if n_bins is None else -(-sixths.astype(int) * n_bins // 6)
    expected = pair_loop(symbols)
    for container in (np.asarray, sp.csr_matrix, sp.csc_matrix):
        np.testing.assert_allclose(symbol_mutual_information(container(T), n_bins), expected, atol=1e-12)


def test_rounding_errors_do_not_split_a_symbol():
    T = np.array([[0.1 + 0.2, 1.0], [0.3, 1.0], [0.7, 0.5], [0.7, 0.5]])
    assert T[0, 0] != T[1, 0]
    np.testing.assert_allclose(symbol_mutual_information(T), np.ones((2, 2)))


@pytest.mark.parametrize("density", [0.01, 0.3])
def test_sparse_cooccurrence_counts_exactly(density):
    Y = (np.random.default_rng(0).random((500, 40)) < density).astype(float)
    assert (cooccurrence(sp.csr_matrix(Y)) == Y.T @ Y).all()


def test_information_is_symmetric_and_independent_labels_have_none():
    Y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    Z = binary_mutual_information(Y)
    assert Z[0, 1] == 0
    random = (np.random.default_rng(0).random((300, 12)) < 0.3) * 1.0
    for information in (binary_mutual_information(random), symbol_mutual_information(random)):
        assert (information == information.T).all()


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


def test_block_descent_reports_the_objective_of_the_accepted_factors(problem):
    descent = BlockDescent(problem)
    state = descent.start(random_factors())
    for _ in range(60):
        last = state.value
        state, value = descent.step(state)
        assert value <= last * (1 + 1e-12)
        assert value == pytest.approx(plain_objective(problem, *state.accepted), rel=1e-10)
        assert all((factor >= 0).all() for factor in state.accepted)


def test_block_descent_ends_at_a_stationary_point(problem):
    """At a minimum, no small feasible move of one entry lowers F."""
    descent = BlockDescent(problem)
    state = descent.start(random_factors())
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
def test_w_step_solves_the_convex_problem_like_an_independent_method(problem, monkeypatch, block_rows):
    """For fixed U and V the steps on W converge to the minimum that bounded L-BFGS finds."""
    monkeypatch.setattr("labelsieve.numerics.block_descent._W_BLOCK", block_rows * 5)
    U, V, W = random_factors()
    descent, grams = BlockDescent(problem), problem.grams(U)
    for _ in range(500):
        W = descent._w_step(grams, V, W, W, W @ problem.laplacian)
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


def test_dead_component_is_survived(problem):
    U, V, W = random_factors()
    V[1], U[:, 2] = 0, 0
    state = BlockDescent(problem).start(Factors(U, V, W))
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


def test_l21_weights_bound_the_norm_from_above():
    rng = np.random.default_rng(0)
    W, other = rng.standard_normal((2, 6, 3))
    weights = l21_weights(W)
    constant = l21_norm(W) - weights @ row_norms(W) ** 2
    assert weights @ row_norms(other) ** 2 + constant >= l21_norm(other)
    assert np.isfinite(l21_weights(np.zeros((2, 2)))).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_minmax_scale_maps_to_the_unit_interval_and_copies(container):
    X = container(np.array([[0.0, 2.0, 0.0], [4.0, 0.0, 0.0], [2.0, 1.0, 0.0]]))
    scaled = minmax_scale(X)
    dense = scaled if isinstance(scaled, np.ndarray) else scaled.toarray()
    np.testing.assert_array_equal(dense, [[0, 1, 0], [1, 0, 0], [0.5, 0.5, 0]])
    assert X.max() == 4


def test_loop_stops_only_after_the_whole_window_stood_still():
    values = iter([5.0, 5.0, 4.0, 4.0, 4.0, 4.0])
    _, history, converged = iterate(lambda s: (s, next(values)), None, 6.0, max_iter=6, tol=1e-3, window=3)
    assert converged
    assert list(history) == [6, 5, 5, 4, 4, 4, 4]


def test_loop_reports_a_spent_budget():
    _, history, converged = iterate(lambda s: (s / 2, s / 2), 1.0, 1.0, max_iter=3, tol=1e-9)
    assert not converged
    assert len(history) == 4


def test_loop_refuses_to_go_on_with_nan():
    with pytest.raises(FloatingPointError, match="became nan in iteration 1"):
        iterate(lambda s: (s, float("nan")), None, 1.0, max_iter=3, tol=0)


@pytest.mark.parametrize("scale", ["minmax", "standard"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_a_constant_column_is_scaled_to_nothing(container, dtype, scale):
    """A stored constant would otherwise become a column of ones, or explode by its rounding."""
    X = np.random.default_rng(0).random((1000, 3))
    X[:, 0], X[:, 2] = 0.1, 0.7
    factor = learn_scaling(container(X.astype(dtype)), scale).factor
    assert factor.dtype == dtype
    assert list(factor > 0) == [False, True, False]


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_matrix])
def test_moments_of_sparse_single_precision_are_those_of_double_precision(container):
    X = (np.random.default_rng(0).random((5000, 4)) + 100).astype(np.float32)
    for found, expected in zip(
        column_moments(container(X)), column_moments(X.astype(np.float64)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_upper_edge_of_a_bin_belongs_to_it():
    """Thirds are not exact in binary, and 2/3 rounds up at 12 decimals."""
    T = np.array([[1 / 3], [2 / 3], [0.5], [1.0]])
    # With three bins the symbols are 1, 2, 2, 3: one pair and two singles among four.
    assert symbol_mutual_information(T, 3)[0, 0] == pytest.approx(1.5)
