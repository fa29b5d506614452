import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from labelsieve.methods.rfs import RFS, solve_rfs
from labelsieve.numerics.norms import l21_norm, row_norms

SHAPES = [(60, 8, 3), (12, 30, 3), (20, 20, 1)]


def problem(seed, n_samples, n_features, n_labels):
    rng = np.random.default_rng(seed)
    X = np.maximum(rng.normal(size=(n_samples, n_features)), 0)
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    return X, Y


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def objective(X, Y, W, b, alpha):
    return l21_norm(standardized(X) @ W + b - Y) + alpha * l21_norm(W)


def lower_bound(X, Y, W, b, alpha):
    """Value of a feasible point of the dual: max -<L, Y> with |l_i| <= 1, |X'L|_j <= alpha, 1'L = 0."""
    X = standardized(X)
    residual = X @ W + b - Y
    L = residual / np.sqrt(row_norms(residual) ** 2 + np.finfo(float).eps)[:, None]
    L -= L.mean(axis=0)
    L /= max(1, row_norms(L).max(), row_norms(X.T @ L).max() / alpha)
    return -(L * Y).sum()


@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_duality_gap_closes(shape, alpha):
    X, Y = problem(0, *shape)
    result = solve_rfs(X, Y, alpha=alpha, max_iter=3000, tol=0)
    W, b = result.extra["coef"].T, result.extra["intercept"]
    value = objective(X, Y, W, b, alpha)
    bound = lower_bound(X, Y, W, b, alpha)
    assert bound <= value <= bound + 5e-4 * value
    np.testing.assert_allclose(result.objective[-1], value, rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_independent_solver_finds_the_same_minimum(shape):
    _, n_features, n_labels = shape
    X, Y = problem(1, *shape)
    alpha, smoothing = 1.0, 1e-10
    Z = standardized(X)

    def smoothed(parameters):
        W, b = np.split(parameters.reshape(n_features + 1, n_labels), [n_features])
        R = Z @ W + b - Y
        r, w = np.sqrt(row_norms(R) ** 2 + smoothing), np.sqrt(row_norms(W) ** 2 + smoothing)
        R, V = R / r[:, None], alpha * W / w[:, None]
        return r.sum() + alpha * w.sum(), np.vstack([Z.T @ R + V, R.sum(axis=0)]).ravel()

    start = np.zeros((n_features + 1) * n_labels)
    for _ in range(5):  # Restarts forget the curvature of the far side of a kink.
        start = minimize(
            smoothed,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 3000, "maxfun": 10**5, "ftol": 0},
        ).x
    result = solve_rfs(X, Y, alpha=alpha, max_iter=3000, tol=1e-11)
    np.testing.assert_allclose(result.objective[-1], smoothed(start)[0], rtol=1e-4)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("shape", [(40, 8), (12, 30)])
def test_one_label_is_a_linear_programme_and_highs_finds_the_same_minimum(shape, alpha):
    n_samples, n_features = shape
    X, Y = problem(13, n_samples, n_features, 1)
    # Minimise |r|_1 + alpha |w|_1 with r = Xw + b - y, every signed quantity split into its two parts.
    R, Z, one = np.eye(n_samples), standardized(X), np.ones((n_samples, 1))
    equations = np.hstack([R, -R, -Z, Z, -one, one])
    cost = np.concatenate([np.ones(2 * n_samples), np.full(2 * n_features, alpha), [0, 0]])
    minimum = linprog(cost, A_eq=equations, b_eq=-Y[:, 0], method="highs").fun
    result = solve_rfs(X, Y, alpha=alpha, max_iter=3000, tol=1e-11)
    np.testing.assert_allclose(result.objective[-1], minimum, rtol=1e-5)


@pytest.mark.parametrize("as_features", [sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("shape", SHAPES)
def test_implicit_centring_of_sparse_features_gives_the_dense_solution(shape, as_features):
    X, Y = problem(2, *shape)
    dense, sparse = RFS(alpha=1.0).fit(X, Y), RFS(alpha=1.0).fit(as_features(X), sp.csr_matrix(Y))
    np.testing.assert_allclose(sparse.objective_history_, dense.objective_history_, rtol=1e-9)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_objective_never_rises_even_where_the_labels_are_met_exactly(shape, alpha):
    X, Y = problem(3, *shape)
    for features in (X, sp.csr_matrix(X)):
        history = solve_rfs(features, Y, alpha=alpha, max_iter=300, tol=0).objective
        assert np.diff(history).max() <= 1e-12 * history[0]


def test_no_system_is_larger_than_the_shorter_side(monkeypatch):
    sizes = set()
    ridge = solve_rfs.__globals__["_solve_ridge"]

    def watched(system, target, alpha):
        sizes.add(system.shape)
        return ridge(system, target, alpha)

    monkeypatch.setattr("labelsieve.methods.rfs._solve_ridge", watched)
    solve_rfs(*problem(4, 12, 30, 3), alpha=1.0, max_iter=5, tol=0)
    solve_rfs(*problem(4, 30, 12, 3), alpha=1.0, max_iter=5, tol=0)
    assert sizes == {(12, 12)}


def test_a_large_alpha_leaves_every_feature_out():
    X, Y = problem(5, 60, 8, 3)
    # At W = 0 the best b is the geometric median of the labels; no row gradient exceeds the sum of |x_ij|.
    alpha = 1.1 * np.abs(standardized(X)).sum(axis=0).max()
    assert RFS(alpha=alpha).fit(X, Y).scores_.max() < 1e-6


def test_shift_and_scale_of_the_features_do_not_matter():
    X, Y = problem(6, 60, 8, 3)
    expected = RFS().fit(X, Y).coef_
    changed = RFS().fit(X * np.arange(1, 9) - 5, Y).coef_
    np.testing.assert_allclose(changed, expected, atol=1e-7)


def test_the_weights_are_signed():
    X, _ = problem(7, 60, 3, 1)
    Y = np.column_stack([X[:, 0] > 0.3, X[:, 0] <= 0.3]).astype(int)
    coef = RFS(alpha=1.0).fit(X, Y).coef_
    assert coef[0, 0] > 0.1
    assert coef[1, 0] < -0.1


def test_an_outlying_row_moves_the_weights_less_than_in_a_ridge_regression():
    X, _ = problem(8, 60, 4, 1)
    Y = np.column_stack([X[:, 0] > 0.5] * 30).astype(float)
    wrong = Y.copy()
    wrong[np.argmax(X[:, 1])] = 1 - wrong[np.argmax(X[:, 1])]
    Z = standardized(X)

    def ridge(Y):
        return np.linalg.solve(Z.T @ Z + np.eye(4), Z.T @ (Y - Y.mean(axis=0)))

    robust = l21_norm(RFS(alpha=1.0).fit(X, wrong).coef_ - RFS(alpha=1.0).fit(X, Y).coef_)
    assert robust < 0.5 * l21_norm((ridge(wrong) - ridge(Y)).T)


def test_constant_features_score_zero_and_nothing_is_nan():
    X, Y = problem(9, 30, 5, 3)
    X[:, 2] = 0.1
    selector = RFS().fit(X, Y)
    assert selector.scores_[2] == 0
    assert np.isfinite(selector.coef_).all()


def test_float32_features_give_float32_results_near_those_of_float64():
    X, Y = problem(10, 60, 8, 3)
    single, double = RFS().fit(X.astype(np.float32), Y), RFS().fit(X, Y)
    assert single.scores_.dtype == single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.scores_, double.scores_, atol=1e-5)


def test_too_small_a_budget_warns():
    X, Y = problem(11, 60, 8, 3)
    with pytest.warns(ConvergenceWarning, match="RFS did not converge"):
        RFS(max_iter=1).fit(X, Y)


def test_alpha_must_be_positive():
    with pytest.raises(ValueError, match="alpha"):
        RFS(alpha=0).fit(*problem(12, 20, 3, 2))
