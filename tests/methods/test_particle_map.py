"""PARTICLE-MAP: worked example in both modes, likelihood tables and prediction."""

import inspect
import pickle

import numpy as np

from labelsieve.methods._pairwise_svm import count_votes
from labelsieve.methods.particle_map import ParticleMAP
from oracles import X_RANKED as X
from oracles import Y_RANKED as Y


def solve(mode, weights="mean"):
    options = {"exclude_self": False, "fallback": "labels"} if mode == "reference" else {}
    return ParticleMAP(weights=weights, n_neighbors=2, cv=2, shuffle=False, scale=None, **options)._solve(
        X, Y
    )


def noisy_problem(seed=0):
    rng = np.random.default_rng(seed)
    features = rng.random((90, 6))
    Y_true = features[:, :5] > 0.6
    return features, (Y_true | (rng.random(Y_true.shape) < 0.2)).astype(float)


def test_worked_example_of_the_reference_code():
    result = solve("reference")
    coef = [[0.7, -0.7, -0.7], [-0.45, 0.9, 0], [-0.25, -0.2, 0.7]]
    np.testing.assert_allclose(result.extra["coef"].T, coef, atol=1e-6)
    np.testing.assert_allclose(result.scores, [1.212436, 1.006231, 0.76974], atol=1e-6)
    votes = [[2, 0, 0], [1, 1, 0], [1, 0, 1], [2, 0, 0], [1, 1, 0], [2, 0, 0]]
    np.testing.assert_array_equal(count_votes(X, result.extra["classifiers"], 3), votes)
    log_odds = [
        [0.510826, -0.587787, 1.609438],
        [-1.203973, 1.280934, 0.182322],
        [0.328504, 1.021651, 0.328504],
    ]
    np.testing.assert_allclose(result.extra["log_odds"], log_odds, atol=1e-6)
    np.testing.assert_allclose(solve("reference", "stacked").scores, [0.989949, 0.9, 0.728011], atol=1e-6)
    slope = solve("reference", "slope")
    np.testing.assert_allclose(
        slope.extra["coef"].T, np.array(coef) * [2.197225, 2.484907, 0.693147], atol=1e-5
    )
    np.testing.assert_allclose(slope.scores, [2.372061, 2.445237, 0.885522], atol=1e-6)


def test_worked_example_with_defaults():
    result = solve("default")
    coef = [[1.5, 0, -1.5], [-0.8, 0, 0.8], [-0.7, 0, 0.7]]  # label 1 has no pair
    np.testing.assert_allclose(result.extra["coef"].T, coef, atol=1e-6)
    np.testing.assert_allclose(result.scores, [2.12132, 1.131371, 0.989949], atol=1e-6)
    votes = [[1, 0, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    np.testing.assert_array_equal(count_votes(X, result.extra["classifiers"], 3), votes)
    slope = solve("default", "slope").extra["coef"]
    np.testing.assert_allclose(slope.T, np.array(coef) * [2.197225, 0, 2.70805], atol=1e-5)


def test_worked_example_of_the_ridge_fallback():
    W = [[0.634347, 0.006953, -0.040566], [-0.019445, 0.134402, 0.459854], [-0.043344, -0.006956, 0.609531]]
    np.testing.assert_allclose(ParticleMAP(n_neighbors=2)._ridge_weights(X, Y).T, W, atol=1e-6)


def test_likelihood_tables_are_counted_on_the_training_rows():
    features, candidates = noisy_problem()
    selector = ParticleMAP().fit(features, candidates)
    votes = count_votes(selector.scaling_.apply(features), selector.classifiers_, 5)
    for j in range(5):
        prior = (1 + candidates[:, j].sum()) / (2 + 90)
        with_label, without = selector.credible_labels_[:, j], candidates[:, j] == 0
        for r in range(5):
            likelihood = (1 + (votes[with_label, j] == r).sum()) / (5 + with_label.sum())
            likelihood_without = (1 + (votes[without, j] == r).sum()) / (5 + without.sum())
            expected = np.log(prior * likelihood / ((1 - prior) * likelihood_without))
            np.testing.assert_allclose(selector.log_odds_[j, r], expected)


def test_prediction_does_not_depend_on_test_labels_or_other_rows():
    features, candidates = noisy_problem()
    for name in ("predict", "decision_function"):
        assert list(inspect.signature(getattr(ParticleMAP, name)).parameters) == ["self", "X"]
    selector = ParticleMAP().fit(features, candidates)
    before = pickle.dumps(selector)
    new = np.random.default_rng(1).random((40, 6))
    together = selector.decision_function(new)
    alone = np.vstack([selector.decision_function(new[i : i + 1]) for i in range(40)])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(
        selector.predict(new), np.vstack([selector.predict(new[i : i + 1]) for i in range(40)])
    )
    assert pickle.dumps(selector) == before


def test_prediction_of_the_worked_example():
    selector = ParticleMAP(
        n_neighbors=2, cv=2, exclude_self=False, fallback="labels", shuffle=False, scale=None
    ).fit(X, Y)
    # The first row has the votes 2, 0, 0, which the table above maps to the odds 5, 0.3 and 1.389.
    # The last odds exceed 1, but lie at only 0.23 of the range.
    np.testing.assert_allclose(np.exp(selector.decision_function(X))[0], [5, 0.3, 1.388889], atol=1e-5)
    np.testing.assert_array_equal(
        selector.predict(X), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 0]]
    )


def test_prediction_thresholds_scaled_odds_and_equal_odds_predict_nothing():
    features, candidates = noisy_problem(3)
    selector = ParticleMAP().fit(features, candidates)
    odds = np.exp(selector.decision_function(features))
    lowest, highest = odds.min(axis=1, keepdims=True), odds.max(axis=1, keepdims=True)
    predicted = selector.predict(features)
    np.testing.assert_array_equal(predicted, (odds - lowest) / (highest - lowest) > 0.5)
    assert predicted.any(axis=1).all()
    selector.log_odds_ = np.full_like(selector.log_odds_, 2.0)
    selector.log_odds_[0] += 4e-16
    assert not selector.predict(features).any()
