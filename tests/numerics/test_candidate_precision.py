"""Tests of scoring a ranking by the candidates of held-out rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.metrics import label_ranking_average_precision_score

from labelsieve._numerics.candidate_precision import average_precision_rows, ridge_precision
from labelsieve._numerics.scaling import standard_scaling
from labelsieve._numerics.standardized import StandardizedFeatures
from labelsieve.methods._evidence.choice import SizeCurve


def problem(seed, n_samples=60, n_features=9, n_labels=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.5)
    Y = (X @ rng.normal(size=(n_features, n_labels)) + rng.normal(size=(n_samples, n_labels)) > 0.8).astype(
        float
    )
    return X, Y


def test_row_precision_equals_scikit_learn():
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((50, 7)) < 0.4).astype(int), rng.random((50, 7))
    found = average_precision_rows(Y, scores)
    np.testing.assert_array_equal(np.isnan(found), Y.sum(axis=1) == 0)
    for row in np.flatnonzero(Y.any(axis=1)):
        expected = label_ranking_average_precision_score(Y[[row]], scores[[row]])
        assert found[row] == pytest.approx(expected, abs=1e-15)
    np.testing.assert_array_equal(average_precision_rows(sp.csr_matrix(Y), scores), found)


def test_ties_are_broken_by_the_lower_label():
    Y = np.array([[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(average_precision_rows(Y, np.zeros((2, 3))), [1, 1 / 3])


def test_precision_without_labels_is_nan():
    assert np.isnan(average_precision_rows(np.zeros((3, 0)), np.zeros((3, 0)))).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_every_size_equals_a_separate_ridge_regression(container):
    X, Y = problem(1)
    Y[:40, 3] = 1  # constant in the training rows
    X[:40, 2] = 7
    order, sizes = np.array([4, 2, 0, 8, 1, 7]), [1, 2, 5, 6]
    found = ridge_precision(
        container(X[:40]), sp.csr_matrix(Y[:40]), container(X[40:]), sp.csr_matrix(Y[40:]), order, sizes
    )
    labels = [0, 1, 2, 4]
    for i, size in enumerate(sizes):
        chosen = X[:, order[:size]]
        deviation = chosen[:40].std(axis=0)
        Z = (chosen - chosen[:40].mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)
        predicted = Ridge(alpha=0.1 * 40).fit(Z[:40], Y[:40, labels]).predict(Z[40:])
        expected = average_precision_rows(Y[40:, labels], predicted)
        np.testing.assert_allclose(found[:, i], expected, atol=1e-14)


def test_constant_labels_have_no_precision():
    X, Y = problem(2)
    assert np.isnan(ridge_precision(X[:40], np.ones_like(Y[:40]), X[40:], Y[40:], np.arange(9), [3])).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_labels", [5, 6, 9, 13])
def test_rounding_does_not_break_ties_of_predicted_labels(n_labels, container):
    X, Y = problem(0, n_labels=n_labels)
    Y[:40, 1:] = Y[:40, :1]
    X = container(X)
    found = ridge_precision(X[:40], Y[:40], X[40:], Y[40:], np.arange(9), [3, 9])
    expected = average_precision_rows(Y[40:], np.zeros((20, n_labels)))
    np.testing.assert_array_equal(found, np.column_stack([expected, expected]))


@pytest.mark.parametrize("mean", [1e7, 1e8])
@pytest.mark.parametrize("n_labels", [5, 13])
def test_large_means_do_not_break_ties(n_labels, mean):
    X, Y = problem(0, n_labels=n_labels)
    X += mean
    Y[:40, 1:] = Y[:40, :1]
    found = ridge_precision(X[:40], Y[:40], X[40:], Y[40:], np.arange(9), [3, 9])
    expected = average_precision_rows(Y[40:], np.zeros((20, n_labels)))
    np.testing.assert_array_equal(found, np.column_stack([expected, expected]))


@pytest.mark.parametrize("container", [np.asarray, np.float32, sp.csr_matrix, sp.csc_array])
def test_products_equal_those_with_a_standardised_copy(container):
    X, Y = problem(4)
    X[:, 3], X[:, 5] = -2.5, 1e3 + X[:, 5]
    Z = container(X).astype(np.float64)
    Z = Z.toarray() if sp.issparse(Z) else Z
    Z = (Z - Z.mean(axis=0)) / np.where(Z.std(axis=0) > 1e-6, Z.std(axis=0), np.inf)
    features = StandardizedFeatures(container(X))
    some = np.array([5, 1, 3, 8])
    # Sparse features are centred after the product, which loses digits if a mean is large.
    tolerance = {"atol": 1e-6 if sp.issparse(container(X)) else 1e-11}
    np.testing.assert_allclose(features.gram(some), Z[:, some].T @ Z[:, some], **tolerance)
    np.testing.assert_allclose(features.products(Y), Z.T @ Y, **tolerance)
    np.testing.assert_allclose(features.products(sp.csr_matrix(Y)), Z.T @ Y, **tolerance)


def test_dense_features_with_large_means_lose_few_digits():
    X = 1e7 + np.random.default_rng(0).normal(size=(1001, 3))
    Y = np.arange(1001)[:, None] % 3 < 1
    Z = X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)
    Z /= np.sqrt((Z * Z).mean(axis=0))
    features = StandardizedFeatures(X)
    # Sums over a thousand values with 16 digits, of which the mean takes seven.
    np.testing.assert_allclose(features.gram(np.arange(3)), (Z.T @ Z).astype(float), atol=1e-6)
    np.testing.assert_allclose(features.products(Y.astype(float)), (Z.T @ Y).astype(float), atol=1e-6)


def test_a_feature_that_varies_by_rounding_errors_is_constant():
    X = np.array([[1e13, 5.0, 0.1 + 0.2], [1e13 + 1, 5.0, 0.3], [1e13, 6.0, 0.3]])
    np.testing.assert_array_equal(standard_scaling(X).factor > 0, [False, True, False])
    np.testing.assert_array_equal(standard_scaling(sp.csc_matrix(X)).factor > 0, [False, True, False])


def test_the_smallest_of_the_best_sizes_is_chosen():
    curve = SizeCurve(np.array([1, 4, 9]), np.array([[0.1, 0.3, 0.2], [0.1, 0.2 + 1e-15, 0.3]]))
    assert curve.best == 4
    np.testing.assert_allclose(curve.spread, [0, 0.05, 0.05])
