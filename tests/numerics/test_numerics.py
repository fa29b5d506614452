"""Numerical routines compared with slow, obvious versions."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mutual_info_score

from graph_examples import symbol_mutual_information
from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._numerics.candidates import is_binary
from labelsieve._numerics.information import cooccurrence, information_of_pairs
from labelsieve._numerics.moments import column_moments
from labelsieve._numerics.norms import l21_norm, l21_weights, row_norms
from labelsieve._numerics.products import left_product, right_product
from labelsieve._numerics.result import iterate
from labelsieve._numerics.scaling import column_extremes, scale_columns
from labelsieve.methods._fsmir import labels
from labelsieve.methods._fsmir.labels import symbol_information


def pair_loop(symbols):
    """Compute the mutual information in bits, one pair of columns at a time."""
    n_columns = symbols.shape[1]
    # scikit-learn needs integer symbols.
    codes = [np.unique(column, return_inverse=True)[1] for column in symbols.T]
    pairs = [[mutual_info_score(codes[i], codes[j]) for j in range(n_columns)] for i in range(n_columns)]
    return np.array(pairs) / np.log(2)


@given(arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 5)), elements=st.integers(0, 1)))
def test_binary_information_equals_the_pair_loop(Y):
    expected = pair_loop(Y)
    for container in (np.asarray, sp.csr_matrix):
        both = cooccurrence(container(Y * 1.0))
        np.testing.assert_allclose(information_of_pairs(both, len(Y)), expected, atol=1e-12)


@given(
    arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 5)), elements=st.integers(0, 6)),
    st.sampled_from([None, 1, 3, 10]),
)
def test_symbol_information_equals_the_pair_loop(sixths, n_bins):
    T = sixths / 6
    # With integers, the bin is exactly the ceiling of sixths * n_bins / 6.
    symbols = sixths if n_bins is None else -(-sixths.astype(int) * n_bins // 6)
    expected = pair_loop(symbols)
    for container in (np.asarray, sp.csr_matrix, sp.csc_matrix):
        np.testing.assert_allclose(symbol_mutual_information(container(T), n_bins), expected, atol=1e-12)


@pytest.mark.parametrize("n_bins", [None, 4])
@pytest.mark.parametrize("most_pairs", [1, 40, 2**22])
def test_symbol_information_does_not_depend_on_blocks_and_batches(monkeypatch, n_bins, most_pairs):
    rng = np.random.default_rng(0)
    T = np.round(rng.random((60, 7)), 1) * (rng.random((60, 7)) < 0.6)
    whole = symbol_mutual_information(T, n_bins)
    monkeypatch.setattr(labels, "_MAX_PAIRS", most_pairs)
    for container in (np.asarray, sp.csr_matrix):
        rows = MemoryBlocks([{"confidence": container(T[a : a + 7])} for a in range(0, 60, 7)])
        np.testing.assert_allclose(symbol_information(rows, 7, n_bins), whole, atol=1e-12)
        assert set(rows.blocks[0]) == {"rows", "confidence"}


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_array])
def test_extremes_include_implicit_zeros(container):
    X = np.array([[0, -1, 2, 3, 0], [5, 0, 4, 3, 0], [1, -2, 2, 3, 0]], dtype=np.float32)
    low, high = column_extremes(container(X))
    np.testing.assert_array_equal(low, [0, -2, 2, 3, 0])
    np.testing.assert_array_equal(high, [5, 0, 4, 3, 0])
    assert low.dtype == high.dtype == np.float32


def test_rounding_errors_do_not_split_a_symbol():
    T = np.array([[0.1 + 0.2, 1.0], [0.3, 1.0], [0.7, 0.5], [0.7, 0.5]])
    assert T[0, 0] != T[1, 0]
    np.testing.assert_allclose(symbol_mutual_information(T), np.ones((2, 2)))


@pytest.mark.parametrize("density", [0.01, 0.3])
def test_sparse_cooccurrence_is_exact(density):
    Y = (np.random.default_rng(0).random((500, 40)) < density).astype(float)
    assert (cooccurrence(sp.csr_matrix(Y)) == Y.T @ Y).all()


def test_information_is_symmetric_and_zero_for_independent_labels():
    Y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    Z = information_of_pairs(cooccurrence(Y), 20)
    assert Z[0, 1] == 0
    random = (np.random.default_rng(0).random((300, 12)) < 0.3) * 1.0
    for information in (information_of_pairs(cooccurrence(random), 300), symbol_mutual_information(random)):
        assert (information == information.T).all()


def test_l21_weights_give_an_upper_bound_of_the_norm():
    rng = np.random.default_rng(0)
    W, other = rng.standard_normal((2, 6, 3))
    weights = l21_weights(W)
    constant = l21_norm(W) - weights @ row_norms(W) ** 2
    assert weights @ row_norms(other) ** 2 + constant >= l21_norm(other)
    assert np.isfinite(l21_weights(np.zeros((2, 2)))).all()


def test_loop_stops_if_the_objective_is_constant_over_the_window():
    values = iter([5.0, 5.0, 4.0, 4.0, 4.0, 4.0])
    _, history, converged = iterate(lambda s: (s, next(values)), None, 6.0, max_iter=6, tol=1e-3, window=3)
    assert converged
    assert list(history) == [6, 5, 5, 4, 4, 4, 4]


def test_loop_that_reaches_max_iter_has_not_converged():
    _, history, converged = iterate(lambda s: (s / 2, s / 2), 1.0, 1.0, max_iter=3, tol=1e-9)
    assert not converged
    assert len(history) == 4


def test_nan_objective_raises():
    with pytest.raises(FloatingPointError, match="nan in iteration 1"):
        iterate(lambda s: (s, float("nan")), None, 1.0, max_iter=3, tol=0)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_matrix])
def test_moments_of_sparse_float32_are_as_accurate_as_of_float64(container):
    X = (np.random.default_rng(0).random((5000, 4)) + 100).astype(np.float32)
    for found, expected in zip(
        column_moments(container(X)), column_moments(X.astype(np.float64)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_array])
def test_moments_of_an_empty_sparse_matrix_are_zero(container):
    for found in column_moments(container((5, 3))):
        np.testing.assert_array_equal(found, np.zeros(3), strict=True)


def test_bins_include_their_upper_edge():
    """Thirds are not exact in binary, and 2/3 rounds up at 12 decimals."""
    T = np.array([[1 / 3], [2 / 3], [0.5], [1.0]])
    # With three bins the symbols are 1, 2, 2, 3, whose entropy is 1.5 bits.
    assert symbol_mutual_information(T, 3)[0, 0] == pytest.approx(1.5)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_sparse_products_equal_dense_products(container):
    rng = np.random.default_rng(0)
    M = rng.random((30, 12)) * (rng.random((30, 12)) < 0.3)
    V, U = rng.random((21, 12)), rng.random((30, 21))
    np.testing.assert_allclose(right_product(container(M), V), M @ V.T, rtol=1e-12)
    np.testing.assert_allclose(left_product(U, container(M)), U.T @ M, rtol=1e-12)
    single = container(M.astype(np.float32))
    assert right_product(single, V).dtype == np.float32
    assert left_product(U.astype(np.float32), single).dtype == np.float64


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_scaled_columns_share_only_sorted_indices(kind):
    X = kind(sp.random(30, 8, density=0.3, random_state=0, dtype=np.float32))
    factor = np.arange(1.0, 9.0)
    scaled = scale_columns(X, factor)
    assert type(scaled) is kind
    assert scaled.dtype == np.float32
    assert np.shares_memory(scaled.indices, X.indices)
    assert not np.shares_memory(scaled.data, X.data)
    np.testing.assert_array_equal(scaled.toarray(), X.toarray() * factor.astype(np.float32))
    unsorted = kind((X.data[::-1].copy(), X.indices[::-1].copy(), X.indptr), shape=X.shape)
    before = unsorted.toarray()
    scaled = scale_columns(unsorted, factor)
    scaled.sum_duplicates()
    np.testing.assert_array_equal(unsorted.toarray(), before)


def test_sums_of_squares_accept_unaligned_arrays():
    """Arrays received over a network may be unaligned. OpenBLAS kernels for old processors crash on them."""
    program = """if True:
        import numpy as np
        from labelsieve._numerics.products import inner, squared_norm
        values = np.frombuffer(b"-" + np.arange(40.0).tobytes(), offset=1).reshape(8, 5)
        assert not values.flags.aligned
        assert inner(values, values) == squared_norm(values) == 20540
    """
    plain = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
    subprocess.run([sys.executable, "-c", program], env=plain, check=True)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    "values", [[], [0, 1], [0.0, 1.0], [True], [2], [-1, 1], [0.5], [np.nan], [1j], ["1"], [None], [2**63]]
)
def test_only_numbers_zero_and_one_are_binary(values, signed):
    array = np.array(values)
    is_number = array.dtype.kind in "biuf"
    allowed = {-1, 0, 1} if signed else {0, 1}
    assert is_binary(array, signed=signed) == (is_number and all(value in allowed for value in values))
