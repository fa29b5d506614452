"""PML-LC: worked example, collapse of the confidences, sparse features and prediction."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve.methods.pml_lc import PMLLC, cooccurrence_rates
from oracles import X_RANKED as X
from oracles import Y_RANKED as Y

#: Results of three independent solvers with a ridge of 1e-3 on b. The first rank-SVM has P = Y.
W_FIRST = [[0.265282, 0.049687, -0.314968], [-0.187469, 0.074953, 0.112516], [-0.039906, -0.200252, 0.240158]]
B_FIRST = [0.313147, -0.470956, 0.157809]
W_SECOND = [
    [0.240157, -0.012752, -0.227406],
    [-0.099882, 0.043561, 0.056321],
    [-0.139646, -0.050566, 0.190213],
]
W_LAST = [[0.240157, -0.000266, -0.239891], [-0.099882, -0.0002, 0.100082], [-0.139646, -0.000599, 0.140246]]


def solve(C2, max_iter):
    return PMLLC(C2=C2, max_iter=max_iter, tol=1e-9)._alternate(X, Y > 0, bias_ridge=1e-3)


def planted(seed=0, n_samples=80, n_noise=7):
    """Return three labels that depend on one feature each, with 20% false candidates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3 + n_noise))
    Y = X[:, :3] + 0.3 * rng.normal(size=(n_samples, 3)) > 0
    return X, (Y | (rng.random(Y.shape) < 0.2)).astype(int)


def test_cooccurrence_rates_of_the_worked_example():
    np.testing.assert_allclose(
        cooccurrence_rates(Y > 0), [[1, 0.5, 0.5], [2 / 3, 1, 2 / 3], [0.5, 0.5, 1]], atol=1e-12
    )


def test_published_weight_reproduces_the_worked_example_and_keeps_all_candidates():
    result = solve(C2=1, max_iter=10)
    assert result.converged
    np.testing.assert_allclose(result.extra["coef"].T, W_FIRST, atol=2e-6)
    np.testing.assert_allclose(result.extra["intercept"], B_FIRST, atol=2e-6)
    np.testing.assert_allclose(result.scores, [0.414787, 0.231133, 0.315229], atol=2e-6)
    np.testing.assert_array_equal(result.extra["label_confidence"], Y)
    # At W = 0 the ten active pairs cost 3.1, and p'Sp sums to 17.6667.
    np.testing.assert_allclose(result.objective[1:], -15.690909, atol=2e-6)


@pytest.mark.parametrize(
    ("max_iter", "value", "row_two"), [(1, 0.684251, [0, 0.5, 0.5]), (2, 0.503935, [0, 0, 1])]
)
def test_small_weight_reproduces_the_worked_example_step_by_step(max_iter, value, row_two):
    result = solve(C2=0.05, max_iter=max_iter)
    assert result.objective[-1] == pytest.approx(value, abs=3e-6)  # the reference solvers agree to 5e-6
    expected = np.array([[1, 0, 0], row_two, [0, 0, 1], [1, 0, 0], [1, 1, 1], [1, 0, 1]])
    np.testing.assert_array_equal(result.extra["label_confidence"], expected)


def test_small_weight_removes_a_label():
    result = solve(C2=0.05, max_iter=10)
    assert result.converged
    assert result.objective[-1] == pytest.approx(0.459606, abs=2e-6)
    np.testing.assert_allclose(result.extra["coef"].T, W_LAST, atol=2e-6)
    assert np.linalg.norm(result.extra["coef"], axis=1)[1] < 1e-3


def test_every_published_weight_gives_the_same_rank_svm():
    X, Y = planted()
    first = PMLLC(C2=1).fit(X, Y)
    np.testing.assert_array_equal(first.label_confidence_, Y)
    for C2 in (2, 10):
        np.testing.assert_array_equal(PMLLC(C2=C2).fit(X, Y).scores_, first.scores_)


@pytest.mark.parametrize("C2", [0.01, 0.05, 1.0])
@pytest.mark.parametrize("n_labels", [4, 18])
def test_objective_never_increases_and_weights_sum_to_zero(C2, n_labels):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))
    Y = (rng.random((40, n_labels)) < 0.75).astype(int)  # with 18, too many to enumerate
    selector = PMLLC(C2=C2).fit(X, Y)
    assert (np.diff(selector.objective_history_) <= 0).all()
    np.testing.assert_allclose(selector.coef_.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csc_matrix])
def test_sparse_features_give_the_same_model(scale, convert):
    X, Y = planted()
    X[np.abs(X) < 0.5] = 0
    dense = PMLLC(scale=scale, C2=0.03).fit(X, Y)
    sparse = PMLLC(scale=scale, C2=0.03).fit(convert(X), sp.csr_matrix(Y))
    np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=1e-4)
    np.testing.assert_allclose(sparse.decision_function(convert(X)), dense.decision_function(X), atol=1e-4)
    assert sp.issparse(sparse.label_confidence_)
    np.testing.assert_array_equal(sparse.label_confidence_.toarray(), dense.label_confidence_)


def test_shifting_the_features_changes_only_the_intercepts():
    X, Y = planted()
    here, there = PMLLC().fit(X, Y), PMLLC().fit(X + 100, Y)
    np.testing.assert_allclose(there.scores_, here.scores_, rtol=1e-4)
    np.testing.assert_allclose(there.decision_function(X + 100), here.decision_function(X), atol=1e-3)


def test_predict_returns_the_mean_number_of_labels():
    X, Y = planted()
    selector = PMLLC().fit(X, Y)
    assert selector.n_labels_predicted_ == round(Y[Y.any(axis=1)].sum(axis=1).mean()) == 2
    predicted = selector.predict(X)
    np.testing.assert_array_equal(predicted.sum(axis=1), 2)
    np.testing.assert_array_equal(predicted.argmin(axis=1), selector.decision_function(X).argmin(axis=1))
    # Each label depends on one feature.
    assert np.mean(predicted[X[:, 0] > 1, 0]) > 0.9
