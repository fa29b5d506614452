"""Groups of correlated columns compared with a graph search over numpy's correlations."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve._numerics import moments
from labelsieve._numerics.moments import correlated_groups


def brute_force(X, threshold):
    """Group columns that are connected by strong correlations, in the order of their first columns."""
    n_columns = X.shape[1]
    strong = np.eye(n_columns, dtype=bool)
    for i in range(n_columns):
        for j in range(n_columns):
            if X[:, i].std() > 0 and X[:, j].std() > 0:
                strong[i, j] = abs(np.corrcoef(X[:, i], X[:, j])[0, 1]) >= threshold
    groups = np.full(n_columns, -1)
    n_groups = 0
    for start in range(n_columns):
        if groups[start] < 0:
            reached = [start]
            for column in reached:
                reached += [other for other in np.flatnonzero(strong[column]) if other not in reached]
            groups[reached] = n_groups
            n_groups += 1
    return groups


def families(seed, n_families=6, n_members=4):
    """Make scaled and permuted noisy copies of a few columns. About half of the entries are zero."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(80, n_families)) * (rng.random((80, n_families)) < 0.5)
    dropout = rng.choice([0.0, 0.05, 0.2, 0.4], (n_members, 1, n_families))
    X = np.hstack([common * (rng.random(common.shape) >= rate) for rate in dropout])
    return X[:, rng.permutation(X.shape[1])] * rng.choice([-3.0, 0.01, 1.0], X.shape[1])


@pytest.mark.parametrize("as_features", [np.asarray, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("threshold", [0.7, 0.9, 0.95])
def test_groups_equal_those_of_a_graph_search(threshold, as_features):
    sizes = set()
    for seed in range(5):
        X = families(seed)
        expected = brute_force(X, threshold)
        np.testing.assert_array_equal(correlated_groups(as_features(X), threshold), expected)
        sizes |= {*np.bincount(expected)}
    assert len(sizes) > 2


def test_groups_do_not_depend_on_blocks(monkeypatch):
    X = families(9)
    expected = correlated_groups(X, 0.9)
    monkeypatch.setattr(
        moments, "batches", lambda length, width: (slice(i, min(i + 5, length)) for i in range(0, length, 5))
    )
    np.testing.assert_array_equal(correlated_groups(X, 0.9), expected)
    np.testing.assert_array_equal(correlated_groups(sp.csr_matrix(X), 0.9), expected)


def test_chains_are_one_group_and_constant_columns_are_separate():
    t = np.linspace(-1, 1, 50)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3, 50))
    first, last = t, t + 0.28 * noise[0] + 0.28 * noise[1]
    X = np.column_stack([first, np.full(50, 0.1), t + 0.14 * noise[0] + 0.14 * noise[1], last, np.zeros(50)])
    assert abs(np.corrcoef(first, last)[0, 1]) < 0.9
    assert correlated_groups(X, 0.9).tolist() == [0, 1, 0, 0, 2]


def test_scaled_and_float32_copies_are_grouped():
    x = np.random.default_rng(1).normal(size=40)
    X = np.column_stack([x + 1e6, -1e-3 * x, x]).astype(np.float64)
    assert correlated_groups(X, 1 - 1e-9).tolist() == [0, 0, 0]
    assert correlated_groups(X[:, 1:].astype(np.float32), 0.999).tolist() == [0, 0]


@pytest.mark.parametrize("as_features", [np.asarray, sp.csc_array])
@pytest.mark.parametrize("mean", [1e6, 1e9, 1e11])
def test_unrelated_columns_with_large_means_are_separate(as_features, mean):
    X = np.random.default_rng(0).normal(size=(200, 5)) + mean
    assert correlated_groups(as_features(X), 0.9).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("mean", [1e6, 1e9])
def test_copies_with_large_means_are_grouped(mean):
    x = np.random.default_rng(0).integers(0, 50, size=200) + mean
    assert correlated_groups(np.column_stack([x, 2 * x]), 0.9).tolist() == [0, 0]
