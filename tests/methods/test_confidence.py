"""Confidence step compared with HiGHS, all subsets and random search."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from labelsieve.methods._partial_ranking import confidence
from labelsieve.methods._partial_ranking.confidence import (
    confidence_value,
    minimise_lovasz,
    update_confidence,
)


def linear_program(linear, B):
    """Return the optimum without affinity, by HiGHS with one variable per pair of labels."""
    n_labels = len(linear)
    first, second = np.nonzero(~np.eye(n_labels, dtype=bool))
    n_pairs = len(first)
    at = np.arange(n_pairs)
    shape = (n_pairs, n_labels)
    gaps = sp.csr_matrix((np.ones(n_pairs), (at, first)), shape)
    gaps -= sp.csr_matrix((np.ones(n_pairs), (at, second)), shape)
    A = sp.bmat([[gaps, -sp.eye(n_pairs)], [-np.ones((1, n_labels)), None]], format="csr")
    bounds = [(0, 1)] * n_labels + [(0, None)] * n_pairs
    cost = np.append(linear, B[first, second])
    return linprog(cost, A_ub=A, b_ub=np.append(np.zeros(n_pairs), -1), bounds=bounds, method="highs").fun


def slack_costs(rng, n_labels, spread, noise):
    """Return typical costs of a rank-SVM: hinges of score differences and a linear part."""
    f = spread * rng.normal(size=n_labels)
    B = np.maximum(0, 1 - f[:, None] + f)
    np.fill_diagonal(B, 0)
    return n_labels * (f + noise * rng.random(n_labels)) + n_labels, B


def value_of(linear, B):
    trusted, level = minimise_lovasz(linear[None], B[None])
    return confidence_value(trusted, level, linear[None], B[None], None)[0], trusted[0], level[0]


@pytest.mark.parametrize("shift", [0.0, -0.6, -3.0])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 8, 14])
def test_minimise_lovasz_matches_highs_on_random_costs(n_labels, shift):
    rng = np.random.default_rng(n_labels)
    for _ in range(8):
        linear = shift + n_labels * rng.random(n_labels)
        B = rng.random((n_labels, n_labels)) * (1 - np.eye(n_labels))
        assert value_of(linear, B)[0] == pytest.approx(linear_program(linear, B), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("spread", "noise"), [(0.3, 0.5), (0.3, 3), (1, 1), (1, 3), (3, 1)])
def test_minimise_lovasz_matches_highs_on_slacks_of_thirty_labels(spread, noise):
    rng = np.random.default_rng(0)
    for _ in range(3):
        linear, B = slack_costs(rng, 30, spread, noise)
        assert value_of(linear, B)[0] == pytest.approx(linear_program(linear, B), rel=1e-9)


def test_minimise_lovasz_runs_wolfe_if_no_greedy_base_is_optimal(monkeypatch):
    """With equal labels, the optimum is the set of all labels. No greedy base certifies it."""
    calls = []
    wolfe = confidence._wolfe
    monkeypatch.setattr(confidence, "_wolfe", lambda *args: calls.append(1) or wolfe(*args))
    B = 1 - np.eye(20)
    value, trusted, level = value_of(np.full(20, 5.0), B)
    assert calls
    assert value == pytest.approx(5)
    assert trusted.all()
    assert level == 1 / 20


def step(F, candidates, **options):
    n_samples, n_labels = candidates.shape
    count = candidates.sum(axis=1)
    weight = np.divide(1, count * (n_labels - count) + count**2 / 2, out=np.zeros(n_samples), where=count > 0)
    level = (count > 0).astype(float)
    return weight, *update_confidence(F, candidates, weight, candidates, level, **options)


def row_value(p, f, weight, cost, affinity):
    """Compute the objective of a row from its definition."""
    value = cost @ p - p @ affinity @ p
    for k, j in product(range(len(p)), repeat=2):
        value += weight * max(0, p[k] - p[j]) * max(0, 1 - f[k] + f[j])
    return value


def random_step(seed, n_samples=40, n_labels=7, share=0.5):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n_samples, n_labels))
    candidates = rng.random(F.shape) < share
    return rng, F, candidates, rng.random(F.shape) * candidates


def assert_unbeaten(rng, F, candidates, cost, affinity, weight, trusted, level):
    """Check that random feasible confidences are not better in any row."""
    for i in np.flatnonzero(candidates.any(axis=1)):
        found = row_value(trusted[i] * level[i], F[i], weight[i], cost[i], affinity)
        for _ in range(50):
            p = rng.random(7) ** 2 * candidates[i]
            p = np.minimum(p / min(1, p.sum()), 1)
            if p.sum() >= 1:
                assert row_value(p, F[i], weight[i], cost[i], affinity) >= found - 1e-9


def test_no_feasible_confidences_are_better():
    rng, F, candidates, cost = random_step(0)
    assert_unbeaten(rng, F, candidates, cost, np.zeros((7, 7)), *step(F, candidates, cost=cost))


def test_wolfe_matches_enumeration(monkeypatch):
    _, F, candidates, cost = random_step(1)
    _, trusted, level = step(F, candidates, cost=cost)
    monkeypatch.setattr(confidence, "ENUMERATION_LIMIT", 0)
    _, by_wolfe, level_by_wolfe = step(F, candidates, cost=cost)
    np.testing.assert_array_equal(by_wolfe, trusted)
    np.testing.assert_allclose(level_by_wolfe, level)


def semidefinite_affinity(rng, n_labels, scale):
    root = rng.random((n_labels, n_labels))
    return scale * root @ root.T


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 0.1])
def test_no_feasible_confidences_are_better_with_affinity(scale):
    rng, F, candidates, cost = random_step(2)
    affinity = semidefinite_affinity(rng, 7, scale)
    found = step(F, candidates, cost=cost, affinity=affinity)
    assert_unbeaten(rng, F, candidates, cost, affinity, *found)


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 0.1])
def test_linearised_affinity_never_increases_a_row_and_is_close_to_enumeration(monkeypatch, scale):
    rng, F, candidates, cost = random_step(3, share=0.7)
    affinity = semidefinite_affinity(rng, 7, scale)
    weight, trusted, level = step(F, candidates, cost=cost, affinity=affinity)
    monkeypatch.setattr(confidence, "ENUMERATION_LIMIT", 0)
    _, by_dc, level_by_dc = step(F, candidates, cost=cost, affinity=affinity)
    values = []
    for P in (trusted * level[:, None], by_dc * level_by_dc[:, None], candidates.astype(float)):
        rows = zip(P, F, weight, cost, strict=True)
        values.append(np.array([row_value(*row, affinity) for row in rows]))
    exact, dc, start = values
    assert (dc <= start + 1e-12).all()
    assert (exact <= dc + 1e-12).all()
    assert np.mean(dc <= exact + 1e-9) >= 0.9


def test_ties_go_to_the_smaller_then_the_first_set():
    candidates = np.ones((1, 3), dtype=bool)
    # Slacks have weight 0, so only the costs matter, and these are equal.
    trusted, level = update_confidence(
        np.zeros((1, 3)), candidates, np.zeros(1), candidates, np.ones(1), cost=np.full((1, 3), 2.0)
    )
    np.testing.assert_array_equal(trusted, [[True, False, False]])
    assert level[0] == 1


def test_rows_without_candidates_trust_no_label():
    candidates = np.array([[False, False], [True, False]])
    _, trusted, level = step(np.zeros((2, 2)), candidates)
    np.testing.assert_array_equal(trusted, candidates)
    np.testing.assert_array_equal(level, [0, 1])
