"""The permutation test against a loop over permutations, features and labels."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelsieve import evidence_test
from labelsieve.datasets import make_pml
from labelsieve.inspection import stability


def total_by_hand(X, Y, threshold):
    """Sum the excess of n r^2 over the threshold, and a millionth of n r^2, over features and labels."""
    total = 0.0
    for x in X.T:
        for y in Y.T:
            if x.std() > 0 and y.std() > 0:
                z2 = len(x) * np.corrcoef(x, y)[0, 1] ** 2
                total += max(z2 - threshold, 0) + 1e-6 * z2
    return total


def problem(seed, n_samples=40, n_features=6, n_labels=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.5)
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    X[:, 0] += Y[:, 1]
    return X, Y


def quiet(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evidence_test(*arguments, **options)


@pytest.mark.parametrize("threshold", [0.0, 4.0])
def test_totals_are_those_of_a_plain_loop(threshold):
    X, Y = problem(0)
    X = np.column_stack([X, np.full(40, 0.1)])
    Y = np.column_stack([Y, np.ones(40), np.zeros(40)])
    found = quiet(X, Y, n_permutations=9, random_state=7, threshold=threshold)
    rng = np.random.default_rng(7)
    expected = [total_by_hand(X, Y[rng.permutation(40)], threshold) for _ in range(9)]
    np.testing.assert_allclose(found.permuted, expected, rtol=1e-10)
    assert found.total == pytest.approx(total_by_hand(X, Y, threshold), rel=1e-10)
    assert found.p_value == (1 + sum(value >= found.total for value in expected)) / 10


@pytest.mark.parametrize("as_labels", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("as_features", [np.asarray, sp.csr_matrix, sp.csc_array, pd.DataFrame])
def test_sparse_and_dense_agree_for_any_number_of_batches(as_features, as_labels, monkeypatch):
    X, Y = problem(1)
    expected = evidence_test(X, Y, n_permutations=19)
    for budget in (1, 700, stability.BUDGET):  # one shuffle at a time, a few, all
        monkeypatch.setattr(stability, "BUDGET", budget)
        found = evidence_test(as_features(X), as_labels(Y), n_permutations=19)
        np.testing.assert_allclose(found.permuted, expected.permuted, rtol=1e-10)
        assert found.total == pytest.approx(expected.total, rel=1e-10)
        assert found.p_value == expected.p_value


def test_sparse_features_are_never_made_dense(monkeypatch):
    X, Y = problem(2)
    X = sp.csr_matrix(X)

    def fail(*_, **__):
        raise AssertionError("features were made dense")

    densified = type(X).toarray
    monkeypatch.setattr(type(X), "toarray", lambda M, *a, **k: fail() if M.shape == X.shape else densified(M))
    quiet(X, Y, n_permutations=5)


@pytest.mark.parametrize("seed", range(5))
def test_planted_features_are_significant(seed):
    X, Y = make_pml(n_samples=100, n_features=50, noise=0.2, random_state=seed)
    assert evidence_test(X, Y).p_value == 1 / 200


def test_p_values_of_permuted_tables_are_uniform():
    p_values = []
    for seed in range(60):
        X, Y = make_pml(n_samples=60, n_features=30, random_state=seed)
        shuffled = np.random.default_rng(seed).permutation(60)
        p_values.append(quiet(X, Y[shuffled], n_permutations=99, random_state=seed).p_value)
    # Kolmogorov's distance of 60 even values exceeds 0.21 once in a hundred times.
    assert np.abs(np.sort(p_values) - (np.arange(60) + 0.5) / 60).max() < 0.21


def test_an_insignificant_result_warns():
    X, Y = problem(3)
    shuffled = np.random.default_rng(1).permutation(40)
    with pytest.warns(UserWarning, match=r"p = 0\.\d+, 99 permutations"):
        found = evidence_test(X[:, 1:], Y[shuffled], n_permutations=99)
    assert found.p_value > 0.05


def test_constant_labels_or_features_have_no_evidence():
    X, Y = problem(4)
    for features, labels in ((np.ones_like(X), Y), (X, np.ones_like(Y)), (sp.csr_matrix(np.ones_like(X)), Y)):
        with pytest.warns(UserWarning, match="may be meaningless"):
            found = evidence_test(features, labels, n_permutations=19)
        assert (found.p_value, found.total) == (1, 0)
        assert not found.permuted.any()


def test_scale_and_offset_of_features_do_not_matter():
    X, Y = problem(5)
    expected = evidence_test(X, Y, n_permutations=19)
    found = evidence_test(X * [1e-6, 1, -3, 1e4, 2, 5] + 100, Y, n_permutations=19)
    np.testing.assert_allclose(found.permuted, expected.permuted, rtol=1e-6)
    assert found.p_value == expected.p_value


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("size", [2.0**-700, 2.0**700])
def test_features_whose_squares_overflow_or_underflow_are_significant(size, container):
    X, Y = problem(5)
    expected = evidence_test(container(X), Y, n_permutations=19)
    found = evidence_test(container(X * size), Y, n_permutations=19)
    np.testing.assert_allclose(found.permuted, expected.permuted, rtol=1e-12)
    assert found.p_value == expected.p_value


def test_bad_input_raises():
    X, Y = problem(6)
    with pytest.raises(ValueError, match="n_permutations"):
        evidence_test(X, Y, n_permutations=0)
    for threshold in (-1, np.nan):
        with pytest.raises(ValueError, match=f"threshold must be at least 0. Got {threshold}"):
            evidence_test(X, Y, threshold=threshold)
    with pytest.raises(ValueError, match=r"^y "):
        evidence_test(X, 0 * Y)
    with pytest.raises(ValueError, match="NaN"):
        evidence_test(np.where(X == 0, np.nan, X), Y)
