"""Credible labels of the worked example and degenerate data, and stacked least squares compared with scipy."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from labelsieve._numerics.graph import nearest_rows
from labelsieve.methods._particle import (
    _spectral_norm_below,
    balance_confidence,
    neighbor_vote,
    reconstruction_graph,
    solve_nnls,
)
from labelsieve.methods.particle_vls import ParticleVLS
from oracles import X_RANKED as X
from oracles import Y_RANKED as Y

TWO_FOLDS = [np.arange(3), np.arange(3, 6)]
KINDS = [np.asarray, sp.csr_matrix]


@pytest.mark.parametrize("kind", KINDS)
def test_worked_example_weights_of_the_neighbours(kind):
    neighbors, _ = nearest_rows(kind(X), 2, exclude_self=True)
    expected = np.zeros((6, 6))
    expected[0, 3] = expected[1, 4] = expected[2, 5] = 1
    expected[3, [0, 5]] = 0.790669, 0.209331
    expected[4, [1, 5]] = 0.695197, 0.304803
    expected[5, [2, 4]] = 0.74891, 0.25109
    np.testing.assert_allclose(reconstruction_graph(kind(X), neighbors).toarray(), expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_worked_example_confidences_without_the_row_itself(kind):
    result = ParticleVLS(n_neighbors=2)._propagate(kind(X), Y)
    P = [
        [0.952381, 0.047619, 0],
        [0, 0.221701, 0.778299],
        [0, 0, 1],
        [1, 0, 0],
        [0.06241, 0.178565, 0.759025],
        [0.06441, 0, 0.93559],
    ]
    assert (result.n_iter, result.converged) == (37, True)
    np.testing.assert_allclose(result.confidence, P, atol=1e-6)
    C = [
        [1, 0.174085, 0],
        [0, 1, 0.603656],
        [0, 0, 1],
        [1, 0, 0],
        [0, 1, 0.700898],  # all labels are candidates: the least confident one is forced to 0
        [0.114991, 0, 1],
    ]
    np.testing.assert_allclose(balance_confidence(result.confidence, Y), C, atol=1e-6)


@pytest.mark.parametrize(("fallback", "fourth_row"), [("candidate", [1, 0, 0]), ("labels", [0, 1, 0])])
def test_worked_example_credible_labels_without_the_row_itself(fallback, fourth_row):
    credible = ParticleVLS(n_neighbors=2, fallback=fallback)._elicit(X, Y, TWO_FOLDS)
    V = [
        [1, 0, 0.178654],
        [0, 0.149608, 1],
        [0.78153, 0, 1],
        [0.853885, 1, 0],
        [0, 1, 0.927512],
        [0, 0.044701, 1],
    ]
    np.testing.assert_allclose(credible.vote, V, atol=1e-6)
    expected = [[1, 0, 0], [0, 0, 1], [0, 0, 1], fourth_row, [0, 1, 1], [0, 0, 1]]
    np.testing.assert_array_equal(credible.labels, expected)


def test_a_row_that_is_its_own_neighbour_propagates_nothing():
    rng = np.random.default_rng(0)
    rows, candidates = rng.random((50, 30)), (rng.random((50, 4)) < 0.5).astype(float)
    neighbors, _ = nearest_rows(rows, 10)
    np.testing.assert_array_equal(neighbors[:, 0], np.arange(50))
    np.testing.assert_allclose(reconstruction_graph(rows, neighbors).toarray(), np.eye(50), atol=1e-9)
    result = ParticleVLS(exclude_self=False)._propagate(rows, candidates)
    shares = candidates / np.maximum(candidates.sum(axis=1, keepdims=True), 1)
    assert result.n_iter == 2
    np.testing.assert_allclose(result.confidence, shares, atol=1e-9)


def slow_elicitation(X, Y, folds, k, alpha, threshold):
    """Compute credible labels with loops over rows, the solver of scipy and the norm of numpy."""
    vote = np.zeros(Y.shape)
    for held_out in folds:
        rest = [i for i in range(len(X)) if i not in held_out]
        A, T = X[rest], np.zeros((len(rest), len(rest)))
        for i in range(len(rest)):
            distances = np.linalg.norm(A - A[i], axis=1)
            distances[i] = np.inf
            near = np.argsort(distances)[:k]
            weights = nnls(A[near].T, A[i])[0]
            T[i, near] = weights / (weights.sum() or 1)
        P = Y[rest]
        for _ in range(1000):
            new = (alpha * T @ P + (1 - alpha) * Y[rest]) * Y[rest]
            new /= new.sum(axis=1, keepdims=True)
            P, change = new, np.linalg.norm(new - P, 2)
            if change < 1e-5:
                break
        P = P * Y[rest].sum(axis=0) / P.sum(axis=0)
        C = (P - P.min(axis=1, keepdims=True)) / np.ptp(P, axis=1)[:, None]
        for i in held_out:
            distances = np.linalg.norm(A - X[i], axis=1)
            near = np.argsort(distances)[:k]
            v = sum((1 - distances[r] / distances[near].sum()) * C[r] for r in near)
            vote[i] = (v - v.min()) / (v.max() - v.min())
    credible = (vote >= threshold) & (Y == 1)
    for i in np.flatnonzero(~credible.any(axis=1)):
        credible[i, np.where(Y[i] == 1, vote[i], -1).argmax()] = True
    return vote, credible


@pytest.mark.parametrize("kind", KINDS)
def test_elicitation_matches_loops_over_rows(kind):
    rng = np.random.default_rng(3)
    rows, candidates = rng.random((60, 8)), (rng.random((60, 6)) < 0.4).astype(float)
    candidates[candidates.sum(axis=1) == 0, 0] = 1
    folds = np.array_split(rng.permutation(60), 4)
    model = ParticleVLS(n_neighbors=5, alpha=0.9, threshold=0.8)
    credible = model._elicit(kind(rows), candidates, folds)
    vote, labels = slow_elicitation(rows, candidates, folds, 5, 0.9, 0.8)
    np.testing.assert_allclose(credible.vote, vote, atol=1e-8)
    np.testing.assert_array_equal(credible.labels, labels)


def test_a_row_without_neighbours_has_no_edges():
    indices, _ = nearest_rows(X[:1], 10, exclude_self=True)
    assert reconstruction_graph(X[:1], indices).nnz == 0


def test_a_row_that_cannot_be_reconstructed_keeps_its_candidates():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    candidates = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    result = ParticleVLS(n_neighbors=2)._propagate(rows, candidates)
    np.testing.assert_allclose(result.confidence[0], [0.5, 0.5])


def test_a_row_without_candidates_has_no_confidence_and_no_credible_label():
    candidates = Y.copy()
    candidates[[1, 3]] = 0
    result = ParticleVLS(n_neighbors=2)._propagate(X, candidates)
    assert (result.confidence[[1, 3]] == 0).all()
    for fallback in ("candidate", "labels"):
        credible = ParticleVLS(n_neighbors=2, fallback=fallback)._elicit(X, candidates, TWO_FOLDS)
        assert not credible.labels[[1, 3]].any()


def test_a_label_without_candidates_has_zero_confidence():
    candidates = Y.copy()
    candidates[:, 1] = 0
    C = balance_confidence(ParticleVLS(n_neighbors=2)._propagate(X, candidates).confidence, candidates)
    assert np.isfinite(C).all()
    assert (C[:, 1] == 0).all()


def test_equal_confidences_become_zero_and_not_nan():
    np.testing.assert_array_equal(
        balance_confidence(np.full((2, 3), 1 / 3), np.ones((2, 3))), np.zeros((2, 3))
    )


def test_neighbours_at_distance_zero_have_equal_weights():
    C = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    vote = neighbor_vote(C, np.array([[0, 1, 2]]), np.zeros((1, 3)))
    np.testing.assert_allclose(vote, [[1, 0.5, 0]])


def test_a_single_neighbour_votes():
    C = np.array([[0.0, 1.0, 0.5]])
    np.testing.assert_allclose(neighbor_vote(C, np.array([[0]]), np.array([[3.0]])), C)


def test_candidates_with_the_same_largest_vote_are_all_credible():
    # Both rows of the first fold have a single neighbour, which only has label 2.
    rows = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    candidates = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    folds = [np.array([0]), np.array([1, 2])]
    credible = ParticleVLS(n_neighbors=2)._elicit(rows, candidates, folds)
    np.testing.assert_array_equal(credible.labels[0], [True, True, False])


def test_propagation_that_does_not_converge_warns():
    result = ParticleVLS(n_neighbors=2, max_iter=3)._propagate(X, Y)
    assert (result.n_iter, result.converged) == (3, False)
    assert not ParticleVLS(n_neighbors=2, max_iter=1)._elicit(X, Y, TWO_FOLDS).converged


def test_bounds_and_spectral_norm_stop_at_the_same_iteration():
    rng = np.random.default_rng(0)
    for _ in range(50):
        change = rng.normal(size=(9, 5)) * rng.choice([0.1, 1.0], size=5)
        norm = np.linalg.norm(change, 2)
        assert _spectral_norm_below(change, norm * 1.001)
        assert not _spectral_norm_below(change, norm * 0.999)
        assert _spectral_norm_below(change, np.linalg.norm(change) * 1.001)


def stacked(A, b):
    """Solve stacked problems that combine the rows of A (n, k, d) to b (n, d)."""
    return solve_nnls(A @ A.transpose(0, 2, 1), np.einsum("ijk,ik->ij", A, b))


def residuals(A, b, weights):
    return np.linalg.norm(np.einsum("ij,ijk->ik", weights, A) - b, axis=1)


def scipy_weights(A, b):
    return np.array([nnls(rows.T, target)[0] for rows, target in zip(A, b, strict=True)])


@pytest.mark.parametrize("lowest", [-1.0, 0.0])
def test_weights_equal_those_of_scipy_if_rows_are_independent(lowest):
    rng = np.random.default_rng(0)
    A, b = rng.uniform(lowest, 1, (300, 10, 30)), rng.uniform(lowest, 1, (300, 30))
    np.testing.assert_allclose(stacked(A, b), scipy_weights(A, b), atol=1e-9)


@pytest.mark.parametrize("kind", ["repeated", "dependent", "more rows than features", "binary", "zero"])
def test_residuals_equal_those_of_scipy_if_weights_are_not_unique(kind):
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
