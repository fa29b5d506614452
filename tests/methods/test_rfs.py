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


def test_no_system_is_larger_than_the_shorter_side(monkeypatch):
    sizes = set()
    ridge = rfs._solve_ridge

    def watched(system, target, alpha):
        sizes.add(system.shape)
        return ridge(system, target, alpha)

    monkeypatch.setattr(rfs, "_solve_ridge", watched)
    solve_rfs(*problem(4, 12, 30, 3), alpha=1.0, max_iter=5, tol=0)
    solve_rfs(*problem(4, 30, 12, 3), alpha=1.0, max_iter=5, tol=0)
    assert sizes == {(12, 12)}


def test_shift_and_scale_of_the_features_do_not_matter():
    X, Y = problem(6, 60, 8, 3)
    expected = RFS(alpha=10.0).fit(X, Y).coef_
    changed = RFS(alpha=10.0).fit(X * np.arange(1, 9) - 5, Y).coef_
    np.testing.assert_allclose(changed, expected, atol=1e-7)


# The automatic weight


def test_the_vanishing_weight_parts_problems_with_and_without_features():
    """Exactly so where the geometric median of the labels is no row of theirs, as in all of these."""
    for seed in range(5):
        X, Y = problem(20 + seed, 60, 8, 4)
        vanishing = vanishing_weight(standardized(X), Y)
        assert not directions_to_median(Y)[1].any()
        below = solve_rfs(X, Y, alpha=0.95 * vanishing, max_iter=3000, tol=1e-12).scores
        above = solve_rfs(X, Y, alpha=1.05 * vanishing, max_iter=3000, tol=1e-12).scores
        assert below.max() > 1e-3
        assert above.max() < 1e-5


@pytest.mark.parametrize("seed", range(5))
def test_below_the_vanishing_weight_features_are_left_where_the_median_is_a_row(seed):
    X, _ = problem(30 + seed, 80, 6, 1)
    # One label of which a third of the rows have it: the median is 0, the row of all others.
    Y = (X[:, :1] > np.quantile(X[:, 0], 0.67)).astype(float)
    assert directions_to_median(Y)[1].sum() == (Y == 0).sum()
    vanishing = vanishing_weight(standardized(X), Y)
    assert vanishing > 0
    # A linear programme: at the optimum below the bound, some weight is not 0.
    scores = solve_rfs(X, Y, alpha=0.95 * vanishing, max_iter=3000, tol=1e-12).scores
    assert scores.max() > 1e-3


def test_the_median_of_the_labels_is_where_the_distances_are_least():
    for seed in range(5):
        _, Y = problem(40 + seed, 31, 3, 5)
        directions, at_median = directions_to_median(Y)
        # Its subgradient holds 0: what pulls is outweighed by the rows at the median.
        assert np.linalg.norm(directions.sum(axis=0)) <= at_median.sum() + 1e-6
        np.testing.assert_allclose(row_norms(directions), ~at_median, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_labels", [1, 3, 6])
@pytest.mark.parametrize("n_samples", [12, 20, 50, 100, 400])
def test_the_automatic_weight_keeps_planted_features(n_samples, n_labels, seed):
    X, Y = make_pml(
        n_samples=n_samples, n_features=10, n_informative=2, n_labels=n_labels, noise=0.1, random_state=seed
    )
    selector = RFS(2).fit(X, Y)
    assert selector.scores_.max() > 1e-3
    assert 0 < selector.alpha_ <= 3 * np.sqrt(n_samples)


def test_the_automatic_weight_of_a_large_table_is_three_times_the_root_of_the_rows():
    X, Y = make_pml(n_samples=900, random_state=0)
    assert RFS().fit(X, Y).alpha_ == 90
    assert RFS().fit(sp.csr_matrix(X), Y).alpha_ == 90
    assert RFS(alpha=7).fit(X, Y).alpha_ == 7
