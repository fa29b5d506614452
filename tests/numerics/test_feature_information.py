"""Binned features and their information compared with slow, direct computations."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._numerics import discretize
from labelsieve._numerics import information as engine
from labelsieve._numerics.batches import batches
from labelsieve._numerics.discretize import bin_features, cut_features
from oracles import bits, conditional_bits


def problem(seed, n_samples=80, n_features=9, n_labels=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    X[:, 1] = X[:, 1] > 0
    X[:, 2] = np.round(np.exp(X[:, 2]))
    X[:, 3] *= rng.random(n_samples) < 0.2
    X[:, 4] = 0
    X[:, 5] = 7
    Y = (rng.random((n_samples, n_labels)) < 0.3).astype(float)
    Y[:, 0] = X[:, 0] + 0.5 * rng.normal(size=n_samples) > 0
    Y[:, 3] = 0
    return X, Y


def codes(binned):
    """Return the symbol of every entry as an integer: 0 for zero, then the bins."""
    table = binned.indicators.toarray()
    return np.column_stack(
        [
            table[:, start:end] @ np.arange(1, end - start + 1)
            for start, end in zip(binned.offsets[:-1], binned.offsets[1:], strict=True)
        ]
    )


def test_zero_and_one_have_different_symbols():
    X = np.array([[0.0, 1.0, 1.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    np.testing.assert_array_equal(codes(bin_features(X, 2)), [[0, 1, 1], [1, 2, 1], [0, 1, 2], [0, 1, 2]])


def test_bins_have_equal_sizes_and_are_ordered():
    values = np.random.default_rng(0).permutation(np.arange(1.0, 101.0))
    symbols = codes(bin_features(values[:, None], 5))[:, 0]
    np.testing.assert_array_equal(symbols, np.ceil(values / 20))


def test_equal_values_share_a_bin_and_rare_extremes_have_separate_bins():
    values = np.array([1.0] * 3 + [2.0] * 94 + [3.0] * 3)
    np.testing.assert_array_equal(codes(bin_features(values[:, None], 5))[:, 0], values)


@pytest.mark.parametrize("n_distinct", [1, 2, 3, 7, 1000])
def test_bin_starts_satisfy_the_definition(n_distinct):
    rng = np.random.default_rng(n_distinct)
    for n_values in range(40):
        values = np.sort(rng.integers(1, n_distinct + 1, n_values)).astype(float)
        for n_bins in (2, 3, 5):
            starts = {
                min(
                    (v for v in values if 2 * n_values * b <= n_bins * (sum(values < v) + sum(values <= v))),
                    default=None,
                )
                for b in range(n_bins)
            } - {None}
            np.testing.assert_array_equal(discretize.starts_of_sorted(values, n_bins), sorted(starts))


def test_bins_are_invariant_to_increasing_maps_of_nonzero_values():
    X, _ = problem(1)
    X = np.abs(X)
    np.testing.assert_array_equal(codes(bin_features(X**3 * 50, 4)), codes(bin_features(X, 4)))


@pytest.mark.parametrize("as_sparse", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_sparse_and_dense_features_have_equal_symbols(as_sparse):
    X, _ = problem(2)
    stored_zero = as_sparse(X)
    stored_zero.data[:3] = 0
    np.testing.assert_array_equal(
        codes(bin_features(stored_zero, 5)), codes(bin_features(stored_zero.toarray(), 5))
    )


@pytest.mark.parametrize("as_labels", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_bins", [2, 5])
def test_label_information_equals_the_pairwise_computation(n_bins, as_labels, monkeypatch):
    X, Y = problem(3)
    binned = bin_features(X, n_bins)
    symbols = codes(binned)
    expected = [[bits(symbols[:, j], Y[:, k]) for k in range(5)] for j in range(9)]
    np.testing.assert_allclose(
        np.hstack(list(engine.label_information(binned, as_labels(Y)))), expected, atol=1e-12
    )
    monkeypatch.setattr(engine, "batches", lambda length, width: batches(length, width, 2 * width))
    parts = list(engine.label_information(binned, as_labels(Y)))
    assert [part.shape[1] for part in parts] == [2, 2, 1]
    np.testing.assert_allclose(np.hstack(parts), expected, atol=1e-12)


def test_information_of_independent_and_constant_columns_is_exactly_zero():
    X = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [3.0, 5.0, 0.0]] * 7)
    Y = np.repeat([0, 1, 0, 0, 0, 0, 0], 5)[:, None]
    information = next(engine.label_information(bin_features(X, 5), Y))
    np.testing.assert_array_equal(information, 0)


def test_feature_information_equals_the_pairwise_computation():
    X, _ = problem(4)
    binned = bin_features(X, 4)
    symbols = codes(binned)
    for given in range(9):
        expected = [bits(symbols[:, j], symbols[:, given]) for j in range(9)]
        np.testing.assert_allclose(engine.feature_information(binned, given), expected, atol=1e-12)


def test_conditional_information_equals_the_pairwise_computation():
    X, Y = problem(5)
    binned = bin_features(X, 3)
    symbols = codes(binned)
    for given in range(9):
        expected = [
            sum(conditional_bits(symbols[:, j], Y[:, k], symbols[:, given]) for k in range(5))
            for j in range(9)
        ]
        for labels in (Y, sp.csr_matrix(Y)):
            actual = engine.conditional_label_information(binned, labels, given)
            np.testing.assert_allclose(actual, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [7, 80, 33])
def test_cuts_of_blocks_equal_those_of_all_rows(monkeypatch, dtype, size):
    X, _ = problem(3)
    X[:, 6] *= np.exp(25 * X[:, 7])  # very small and very large values of both signs
    X = X.astype(dtype)
    rows = MemoryBlocks([{"X": X[i : i + size]} for i in range(0, len(X), size)])
    expected = codes(bin_features(X, 3))
    for budget in (2**22, 1):  # room for all values, or for almost none
        monkeypatch.setattr(discretize, "_BUDGET", budget)
        found = codes(cut_features(X, discretize.find_cuts(rows, X.shape[1], 3)))
        for a, b in zip(found.T, expected.T, strict=True):
            assert len(np.unique(a)) == len(np.unique(b)) == len(np.unique(np.c_[a, b], axis=0))
