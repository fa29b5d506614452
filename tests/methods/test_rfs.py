import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from labelsieve._numerics.norms import l21_norm, row_norms
from labelsieve._row_problem import in_memory
from labelsieve.datasets import make_pml
from labelsieve.methods import rfs
from labelsieve.methods.rfs import RFS, _directions, _geometric_median, _vanishing_weight

SHAPES = [(60, 8, 3), (12, 30, 3), (20, 20, 1)]


def problem(seed, n_samples, n_features, n_labels):
    rng = np.random.default_rng(seed)
    X = np.maximum(rng.normal(size=(n_samples, n_features)), 0)
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    return X, Y


def solve_rfs(X, Y, **options):
    return RFS(**options)._solve(X, Y)


def directions_to_median(Y):
    return _directions(_geometric_median(Y, np.ones(len(Y), dtype=int)), Y)


def vanishing_weight(X, Y):
    return _vanishing_weight(in_memory(X, Y).rows)


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def objective(X, Y, W, b, alpha):
    return l21_norm(standardized(X) @ W + b - Y) + alpha * l21_norm(W)


def lower_bound(X, Y, W, b, alpha):
    """Return the value of a feasible point of the dual.

    The dual is ``max -<L, Y>`` subject to ``|l_i| <= 1``, ``|X'L|_j <= alpha`` and ``1'L = 0``.
    """
    X = standardized(X)
    residual = X @ W + b - Y
    L = residual / np.sqrt(row_norms(residual) ** 2 + np.finfo(float).eps)[:, None]
    L -= L.mean(axis=0)
    L /= max(1, row_norms(L).max(), row_norms(X.T @ L).max() / alpha)
    return -(L * Y).sum()


@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_duality_gap_closes(shape, alpha):
    X, Y = problem(0, *shape)
    result = solve_rfs(X, Y, alpha=alpha, max_iter=3000, tol=0)
    W, b = result.extra["coef"].T, result.extra["intercept"]
    value = objective(X, Y, W, b, alpha)
    bound = lower_bound(X, Y, W, b, alpha)
    assert bound <= value <= bound + 5e-4 * value
    np.testing.assert_allclose(result.objective[-1], value, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("shape", [(40, 8), (12, 30)])
def test_single_label_matches_the_linear_program(shape, alpha):
    n_samples, n_features = shape
    X, Y = problem(13, n_samples, n_features, 1)
    # Minimise |r|_1 + alpha |w|_1 with r = Xw + b - y, splitting variables by sign.
    R, Z, one = np.eye(n_samples), standardized(X), np.ones((n_samples, 1))
    equations = np.hstack([R, -R, -Z, Z, -one, one])
    cost = np.concatenate([np.ones(2 * n_samples), np.full(2 * n_features, alpha), [0, 0]])
    minimum = linprog(cost, A_eq=equations, b_eq=-Y[:, 0], method="highs").fun
    result = solve_rfs(X, Y, alpha=alpha, max_iter=3000, tol=1e-11)
    np.testing.assert_allclose(result.objective[-1], minimum, rtol=1e-5)


def test_linear_systems_have_the_size_of_the_shorter_side(monkeypatch):
    sizes = set()
    ridge = rfs._solve_ridge

    def watched(system, target, alpha):
        sizes.add(system.shape)
        return ridge(system, target, alpha)

    monkeypatch.setattr(rfs, "_solve_ridge", watched)
    solve_rfs(*problem(4, 12, 30, 3), alpha=1.0, max_iter=5, tol=0)
    solve_rfs(*problem(4, 30, 12, 3), alpha=1.0, max_iter=5, tol=0)
    assert sizes == {(12, 12)}


def test_shifting_and_scaling_the_features_does_not_matter():
    X, Y = problem(6, 60, 8, 3)
    expected = RFS(alpha=10.0).fit(X, Y).coef_
    changed = RFS(alpha=10.0).fit(X * np.arange(1, 9) - 5, Y).coef_
    np.testing.assert_allclose(changed, expected, atol=1e-7)


# The automatic weight


def test_vanishing_weight_separates_problems_with_and_without_features():
    """The bound is exact if no label row equals the geometric median, as in these problems."""
    for seed in range(5):
        X, Y = problem(20 + seed, 60, 8, 4)
        vanishing = vanishing_weight(standardized(X), Y)
        assert not directions_to_median(Y)[1].any()
        below = solve_rfs(X, Y, alpha=0.95 * vanishing, max_iter=3000, tol=1e-12).scores
        above = solve_rfs(X, Y, alpha=1.05 * vanishing, max_iter=3000, tol=1e-12).scores
        assert below.max() > 1e-3
        assert above.max() < 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_features_remain_below_the_vanishing_weight_if_the_median_is_a_row(seed):
    X, _ = problem(30 + seed, 80, 6, 1)
    # A third of the rows have the only label, so the median is 0, the row of all others.
    Y = (X[:, :1] > np.quantile(X[:, 0], 0.67)).astype(float)
    assert directions_to_median(Y)[1].sum() == (Y == 0).sum()
    vanishing = vanishing_weight(standardized(X), Y)
    assert vanishing > 0
    # Below the bound, the optimum of this linear program has a non-zero weight.
    scores = solve_rfs(X, Y, alpha=0.95 * vanishing, max_iter=3000, tol=1e-12).scores
    assert scores.max() > 1e-3


def test_geometric_median_minimises_the_distances():
    for seed in range(5):
        _, Y = problem(40 + seed, 31, 3, 5)
        directions, at_median = directions_to_median(Y)
        # The subdifferential contains 0: the rows at the median outweigh the pull of the others.
        assert np.linalg.norm(directions.sum(axis=0)) <= at_median.sum() + 1e-6
        np.testing.assert_allclose(row_norms(directions), ~at_median, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_labels", [1, 3, 6])
@pytest.mark.parametrize("n_samples", [12, 20, 50, 100, 400])
def test_automatic_weight_keeps_informative_features(n_samples, n_labels, seed):
    X, Y = make_pml(
        n_samples=n_samples, n_features=10, n_informative=2, n_labels=n_labels, noise=0.1, random_state=seed
    )
    selector = RFS(2).fit(X, Y)
    assert selector.scores_.max() > 1e-3
    assert 0 < selector.alpha_ <= 3 * np.sqrt(n_samples)


def test_automatic_weight_of_a_large_table():
    X, Y = make_pml(n_samples=900, random_state=0)
    assert RFS().fit(X, Y).alpha_ == 90
    assert RFS().fit(sp.csr_matrix(X), Y).alpha_ == 90
    assert RFS(alpha=7).fit(X, Y).alpha_ == 7
