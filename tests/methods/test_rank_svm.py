"""Rank-SVM compared with a loop over pairs, finite differences and an interior-point solver."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve.methods._partial_ranking import rank_svm
from labelsieve.methods._partial_ranking.rank_svm import PairCurvature, RankSVM, ranking_loss
from oracles import solve_cone_program


def smoothed_hinge(u, width):
    if width == 0:
        return max(0.0, u)
    if u <= 0:
        return 0.0
    return u**2 / (2 * width) if u < width else u - width / 2


def pair_loop(F, relevant, width):
    """Compute the loss of every row, one pair at a time."""
    n_labels = F.shape[1]
    return np.array(
        [
            sum(
                smoothed_hinge(1 - f[k] + f[j], width)
                for k in range(n_labels)
                for j in range(n_labels)
                if r[k] and not r[j]
            )
            for f, r in zip(F, relevant, strict=True)
        ]
    )


def quadratic_program(X, relevant, weight, bias_ridge):
    """Solve the same problem with one slack per pair by Clarabel. Return the optimal M."""
    n_features, n_labels = X.shape[1], relevant.shape[1]
    pairs = [
        (i, k, j)
        for i in range(len(X))
        for k in np.flatnonzero(relevant[i])
        for j in np.flatnonzero(~relevant[i])
    ]
    n_weights, n_pairs = (n_features + 1) * n_labels, len(pairs)
    margins = np.zeros((n_pairs, n_features + 1, n_labels))
    for row, (i, k, j) in enumerate(pairs):
        margins[row, :, k] = np.append(X[i], 1)
        margins[row, :, j] = -margins[row, :, k]
    ridge = np.repeat(np.append(np.full(n_features, 2.0), 2 * bias_ridge), n_labels)
    P = sp.diags(np.append(ridge, np.zeros(n_pairs))).tocsc()
    q = np.append(np.zeros(n_weights), [weight[i] for i, _, _ in pairs])
    A = sp.bmat([[-margins.reshape(n_pairs, -1), -sp.eye(n_pairs)], [None, -sp.eye(n_pairs)]], format="csc")
    b = np.append(-np.ones(n_pairs), np.zeros(n_pairs))
    solution = solve_cone_program(P, q, A, b, [clarabel.NonnegativeConeT(2 * n_pairs)])
    return np.array(solution.x[:n_weights]).reshape(n_features + 1, n_labels)


def random_problem(seed, n_samples, n_features, n_labels):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    return X, rng.random((n_samples, n_labels)) < 0.4, rng.random(n_samples)


@pytest.mark.parametrize("width", [0.0, 0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("limit", [0, 100])
def test_listed_and_sorted_losses_match_a_loop_over_pairs(monkeypatch, width, limit):
    monkeypatch.setattr(rank_svm, "LISTING_LIMIT", limit)
    rng = np.random.default_rng(0)
    F = np.round(rng.normal(size=(30, 7)), 1)  # rounding creates ties and slacks of exactly 0 and 1
    relevant = rng.random(F.shape) < 0.5
    relevant[0], relevant[1] = True, False
    value, _ = ranking_loss(F, relevant, width)
    np.testing.assert_allclose(value, pair_loop(F, relevant, width), atol=1e-11)


@pytest.mark.parametrize("limit", [0, 100])
def test_gradient_is_the_derivative_of_the_loss(monkeypatch, limit):
    monkeypatch.setattr(rank_svm, "LISTING_LIMIT", limit)
    rng = np.random.default_rng(1)
    F, direction = rng.normal(size=(2, 20, 6))
    relevant = rng.random(F.shape) < 0.4
    step = 1e-6
    ahead, behind = (ranking_loss(F + sign * step * direction, relevant, 0.3)[0] for sign in (1, -1))
    _, gradient = ranking_loss(F, relevant, 0.3)
    np.testing.assert_allclose((gradient * direction).sum(axis=1), (ahead - behind) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("width", [0.01, 0.3, 3.0])
def test_curvature_is_the_derivative_of_the_gradient(width):
    rng = np.random.default_rng(2)
    F, direction = rng.normal(size=(2, 20, 6))
    relevant = rng.random(F.shape) < 0.4
    relevant[0], relevant[1] = True, False
    weight = rng.random(len(F))
    # The step is small enough to keep every pair on its side of the kinks.
    step = 1e-7
    ahead, behind = (ranking_loss(F + sign * step * direction, relevant, width)[1] for sign in (1, -1))
    curvature = PairCurvature(F, relevant, weight, width)
    expected = weight[:, None] * (ahead - behind) / (2 * step)
    found = np.zeros_like(F)
    found[curvature.rows] = curvature.product(direction[curvature.rows])
    np.testing.assert_allclose(found, expected, atol=1e-6 / width)
    # Products with unit vectors give the columns of the matrix, and so its diagonal.
    n_tied = len(curvature.rows)
    columns = [curvature.product(np.tile(unit, (n_tied, 1)))[:, k] for k, unit in enumerate(np.eye(6))]
    np.testing.assert_allclose(curvature.diagonal, np.column_stack(columns), atol=1e-12)
    assert width == 0.01 or np.count_nonzero(curvature.diagonal) > 10


@pytest.mark.parametrize(("seed", "shape"), [(0, (20, 5, 4)), (1, (40, 10, 6)), (2, (30, 60, 5))])
def test_objective_matches_an_interior_point_solver(seed, shape):
    X, relevant, weight = random_problem(seed, *shape)
    svm = RankSVM(X, relevant.shape[1], bias_ridge=1e-3)
    expected = quadratic_program(X, relevant, weight, 1e-3)
    found = svm.solve(relevant, weight, np.zeros(svm.shape), tol=1e-6)
    best = svm.objective(expected, relevant, weight)
    assert svm.objective(found, relevant, weight) == pytest.approx(best, rel=3e-5)
    np.testing.assert_allclose(found, expected, atol=3e-3)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_tolerance_bounds_the_distance_to_the_optimum(tol):
    X, relevant, weight = random_problem(3, 50, 8, 5)
    svm = RankSVM(X, 5, bias_ridge=1e-3)
    best = svm.objective(quadratic_program(X, relevant, weight, 1e-3), relevant, weight)
    found = svm.objective(svm.solve(relevant, weight, np.zeros(svm.shape), tol=tol), relevant, weight)
    assert found <= best * (1 + 2 * tol)


@pytest.mark.parametrize("dead", [False, True])
def test_solution_does_not_depend_on_the_start(dead):
    X, relevant, weight = random_problem(8, 60, 8, 5)
    if dead:
        relevant[:, 2] = False  # only the tiny ridge limits the intercept of this label
    svm = RankSVM(X, 5)
    zero = svm.solve(relevant, weight, np.zeros(svm.shape), tol=1e-4)
    other = svm.solve(relevant, weight, np.random.default_rng(0).normal(size=svm.shape), tol=1e-4)
    # Both gradients are at most 1e-6, and the objective is 2-strongly convex in W.
    np.testing.assert_allclose(other[:-1], zero[:-1], atol=1e-5)


def test_solution_is_never_worse_than_the_start():
    X, relevant, weight = random_problem(5, 30, 5, 4)
    svm = RankSVM(X, 4)
    start = svm.solve(relevant, weight, np.zeros(svm.shape), tol=1e-8)
    again = svm.solve(relevant, weight, start, tol=0.5)
    assert svm.objective(again, relevant, weight) <= svm.objective(start, relevant, weight)


@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csc_matrix])
def test_implicit_offset_matches_centred_features(convert):
    X, relevant, weight = random_problem(6, 40, 6, 4)
    X[X < 0.5] = 0
    mean = X.mean(axis=0)
    dense = RankSVM(X - mean, 4)
    implicit = RankSVM(convert(X), 4, offset=mean)
    M = dense.solve(relevant, weight, np.zeros(dense.shape), tol=1e-4)
    N = implicit.solve(relevant, weight, np.zeros(dense.shape), tol=1e-4)
    np.testing.assert_allclose(N, M, atol=1e-5)
    np.testing.assert_allclose(implicit.scores(M), dense.scores(M), atol=1e-12)


def test_blocks_of_rows_do_not_change_the_result(monkeypatch):
    X, relevant, weight = random_problem(7, 40, 6, 4)
    whole = RankSVM(X, 4)
    monkeypatch.setattr(rank_svm, "BLOCK_SIZE", 80)
    pieces = RankSVM(X, 4)
    M = np.random.default_rng(0).normal(size=whole.shape)
    np.testing.assert_allclose(pieces.scores(M), whole.scores(M))
    assert pieces.objective(M, relevant, weight) == pytest.approx(whole.objective(M, relevant, weight))
    found, expected = (svm.solve(relevant, weight, 0 * M, tol=1e-4) for svm in (pieces, whole))
    np.testing.assert_allclose(found, expected, atol=1e-5)
