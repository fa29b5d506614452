"""PARTICLE-VLS: worked example in both modes and prediction; both methods on degenerate data."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve.methods._pairwise_svm import PairwiseClassifiers
from labelsieve.methods.particle_map import ParticleMAP
from labelsieve.methods.particle_vls import ParticleVLS
from oracles import X_RANKED as X
from oracles import Y_RANKED as Y

BOTH = pytest.mark.parametrize("method", [ParticleVLS, ParticleMAP])


def solve(mode, weights="mean"):
    options = {"exclude_self": False, "fallback": "labels"} if mode == "reference" else {}
    return ParticleVLS(weights=weights, n_neighbors=2, cv=2, shuffle=False, scale=None, **options)._solve(
        X, Y
    )


def planted(seed=0, n_samples=120, n_features=8):
    """Return four labels, each determined by one of the first features, plus noisy candidates."""
    rng = np.random.default_rng(seed)
    features = rng.random((n_samples, n_features))
    features[np.arange(n_features), np.arange(n_features)] = 0.0  # every column has a zero
    Y_true = features[:, :4] > 0.6
    return features, (Y_true | (rng.random(Y_true.shape) < 0.2)).astype(float)


def test_worked_example_of_the_reference_code():
    result = solve("reference")
    trained = result.extra["classifiers"]
    # Label 3 is the virtual label. Pair (1, 2) has no row for label 1 and is skipped.
    pairs = [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]
    assert list(zip(trained.first, trained.second, strict=True)) == pairs
    W = [
        [0.7, -0.9, 0.2],
        [0.7, 0, -0.7],
        [1.5, -0.8, -0.7],
        [-0.840741, 1.381481, -0.840741],
        [-1.381395, 0.669767, 1.011628],
    ]
    np.testing.assert_allclose(trained.coef, W, atol=1e-6)
    np.testing.assert_allclose(trained.intercept, [0.07, 0.475, -0.35, -0.129259, 0.197674], atol=1e-6)
    np.testing.assert_array_equal(trained.accuracy, np.ones(5))
    coef = [[0.966667, -0.77037, -1.040698], [-0.566667, 1.140741, 0.334884], [-0.4, -0.52037, 0.855814]]
    np.testing.assert_allclose(result.extra["coef"].T, coef, atol=1e-6)
    np.testing.assert_allclose(result.scores, [1.615849, 1.317022, 1.078519], atol=1e-6)
    stacked = solve("reference", weights="stacked")
    np.testing.assert_allclose(stacked.scores, [2.417664, 1.951174, 1.658384], atol=1e-6)


def test_worked_example_with_defaults():
    result = solve("default")
    trained = result.extra["classifiers"]
    assert list(zip(trained.first, trained.second, strict=True)) == [(0, 2), (0, 3), (1, 3), (2, 3)]
    W = [[1.5, -0.8, -0.7], [1.5, -0.8, -0.7], [-0.338462, 0.515385, -0.453846], [-1.3, 0.8, 0.8]]
    np.testing.assert_allclose(trained.coef, W, atol=1e-6)
    np.testing.assert_array_equal(trained.accuracy, [1, 1, 0.75, 1])
    coef = [[1.5, -0.253846, -1.4], [-0.8, 0.386538, 0.8], [-0.7, -0.340385, 0.75]]
    np.testing.assert_allclose(result.extra["coef"].T, coef, atol=1e-6)
    np.testing.assert_allclose(result.scores, [2.067471, 1.19558, 1.080908], atol=1e-6)


def test_prediction_compares_accuracies_with_the_virtual_label():
    features, candidates = planted()
    selector = ParticleVLS().fit(features, candidates)
    trained, new = selector.classifiers_, np.random.default_rng(1).random((20, 8))
    scaled = selector.scaling_.apply(new)
    for i in range(20):
        collected = np.zeros(5)
        for p, (j, k) in enumerate(zip(trained.first, trained.second, strict=True)):
            wins = scaled[i] @ trained.coef[p] + trained.intercept[p] > 0
            collected[j if wins else k] += trained.accuracy[p]
        score = [math.ceil(round(value, 9)) for value in collected]
        expected = [value - score[4] for value in score[:4]]
        np.testing.assert_array_equal(selector.decision_function(new[i : i + 1])[0], expected)
        np.testing.assert_array_equal(selector.predict(new[i : i + 1])[0], np.array(expected) > 0)


def test_rounding_errors_in_summed_accuracies_are_removed():
    features, candidates = planted(n_samples=40)
    selector = ParticleVLS(scale=None).fit(features, candidates)
    accuracy = np.array([0.2, 0.4, 0.3, 0.1])
    assert sum(accuracy) > 1  # because of rounding
    selector.classifiers_ = PairwiseClassifiers(
        np.zeros(4, int), np.array([1, 2, 3, 4]), np.zeros((4, 8)), np.ones(4), accuracy
    )
    np.testing.assert_array_equal(selector.decision_function(features)[0], [1, 0, 0, 0])


@BOTH
def test_new_rows_are_scaled_like_the_rows_in_fit(method):
    features, candidates = planted()
    spread, shift = np.array([1, 10, 100, 1e3, 1, 1, 1e-3, 1]), np.arange(8.0)
    plain = method().fit(features, candidates)
    scaled = method().fit(features * spread + shift, candidates)
    new = np.random.default_rng(1).random((30, 8))
    np.testing.assert_array_equal(scaled.predict(new * spread + shift), plain.predict(new))
    np.testing.assert_array_equal(scaled.ranking_, plain.ranking_)


@BOTH
@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_sparse_features_and_labels_give_the_dense_result(method, scale):
    features, candidates = planted()
    features *= features > 0.3
    # Sparse features are never shifted, so compare with dense features that are only scaled.
    dense = features if scale != "standard" else features / features.std(axis=0)
    expected = method(scale=None if scale == "standard" else scale, cv=3).fit(dense, candidates)
    for kind in (sp.csr_matrix, sp.csc_matrix, sp.csr_array):
        selector = method(scale=scale, cv=3).fit(kind(features), sp.csr_matrix(candidates))
        np.testing.assert_allclose(selector.scores_, expected.scores_, rtol=1e-6)
        np.testing.assert_array_equal(selector.predict(kind(features)), expected.predict(dense))
        assert sp.issparse(selector.label_confidence_)
        np.testing.assert_allclose(
            selector.label_confidence_.toarray(), expected.label_confidence_, atol=1e-9
        )


@BOTH
def test_unshuffled_folds_are_contiguous(method):
    folds = method(cv=3, shuffle=False)._folds(8)
    assert [fold.tolist() for fold in folds] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert len(method(cv=10)._folds(4)) == 4


@BOTH
@pytest.mark.parametrize("weights", ["mean", "stacked"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_ridge_is_used_if_no_classifier_can_be_trained(method, weights, kind):
    # Every label is a candidate in every row, so no classifier has negative rows.
    selector = method(n_neighbors=2, cv=2, scale=None, weights=weights).fit(kind(X), np.ones((6, 2)))
    assert len(selector.classifiers_.first) == 0
    P = np.full((6, 2), 0.5)
    W = np.linalg.solve(X.T @ X + np.eye(3), X.T @ P)
    np.testing.assert_allclose(selector.coef_, W.T, atol=1e-8)
    np.testing.assert_allclose(selector.scores_, np.linalg.norm(W, axis=1), atol=1e-8)
    assert np.isfinite(selector.decision_function(X)).all()


@BOTH
def test_one_label_is_enough(method):
    features, candidates = planted()
    selector = method(1).fit(features, candidates[:, :1])
    np.testing.assert_array_equal(np.flatnonzero(selector.get_support()), [0])
    assert selector.predict(features).shape == (120, 1)
