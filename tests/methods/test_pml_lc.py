"""PML-LC: the worked example, the collapse of its confidences, and bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from labelsieve.methods._partial_ranking.rank_svm import RankSVM
from labelsieve.methods.pml_fp import PMLFP
from labelsieve.methods.pml_lc import PMLLC, cooccurrence_rates

X = np.array([[1, 0.2, 0.1], [0.2, 1, 0.1], [0.2, 0.1, 1], [0.9, 0.1, 0.3], [0.1, 0.8, 0.4], [0.4, 0.3, 0.9]])
Y = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0], [1, 1, 1], [1, 0, 1]], dtype=float)
#: Solved by three independent solvers, with a ridge of 1e-3 on b; the first rank-SVM has P = Y.
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
    """Three features decide three labels; candidates have a fifth of the other labels added."""
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
    ("P", "value", "W"),
    [
        (Y, 1.975758, W_FIRST),
        ([[1, 0, 0], [0, 0.5, 0.5], [0, 0, 1], [1, 0, 0], [1, 1, 1], [1, 0, 1]], 1.242816, W_SECOND),
        ([[1, 0, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0], [1, 1, 1], [1, 0, 1]], 1.126273, W_LAST),
    ],
)
def test_rank_svms_of_the_worked_example(P, value, W):
    P = np.array(P)
    pair_weight = P.max(axis=1) / [4, 4, 2.5, 2.5, 4.5, 4]
    svm = RankSVM(X, 3, bias_ridge=1e-3)
    M = svm.solve(P > 0, pair_weight, np.zeros(svm.shape), tol=1e-9)
    assert svm.objective(M, P > 0, pair_weight) == pytest.approx(value, abs=2e-6)
    np.testing.assert_allclose(M[:-1], W, atol=2e-6)


@pytest.mark.parametrize(
    ("max_iter", "value", "row_two"), [(1, 0.684251, [0, 0.5, 0.5]), (2, 0.503935, [0, 0, 1])]
)
def test_small_weight_reproduces_the_worked_example_step_by_step(max_iter, value, row_two):
    result = solve(C2=0.05, max_iter=max_iter)
    assert result.objective[-1] == pytest.approx(value, abs=3e-6)  # the printed solvers agree to 5e-6
    expected = np.array([[1, 0, 0], row_two, [0, 0, 1], [1, 0, 0], [1, 1, 1], [1, 0, 1]])
    np.testing.assert_array_equal(result.extra["label_confidence"], expected)


def test_small_weight_ends_with_a_label_that_died():
    result = solve(C2=0.05, max_iter=10)
    assert result.converged
    assert result.objective[-1] == pytest.approx(0.459606, abs=2e-6)
    np.testing.assert_allclose(result.extra["coef"].T, W_LAST, atol=2e-6)
    assert np.linalg.norm(result.extra["coef"], axis=1)[1] < 1e-3


def test_every_published_weight_collapses_to_one_rank_svm():
    X, Y = planted()
    first = PMLLC(C2=1).fit(X, Y)
    np.testing.assert_array_equal(first.label_confidence_, Y)
    for C2 in (2, 10):
        np.testing.assert_array_equal(PMLLC(C2=C2).fit(X, Y).scores_, first.scores_)


@pytest.mark.parametrize("C2", [0.01, 0.05, 1.0])
@pytest.mark.parametrize("n_labels", [4, 18])
def test_the_objective_never_rises_and_weights_sum_to_zero(C2, n_labels):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))
    Y = (rng.random((40, n_labels)) < 0.75).astype(int)  # 18 labels: more candidates than are enumerated
    selector = PMLLC(C2=C2).fit(X, Y)
    assert (np.diff(selector.objective_history_) <= 0).all()
    np.testing.assert_allclose(selector.coef_.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csc_matrix])
def test_sparse_features_give_the_same_model_whatever_their_sign(scale, convert):
    X, Y = planted()
    X[np.abs(X) < 0.5] = 0
    dense = PMLLC(scale=scale, C2=0.03).fit(X, Y)
    sparse = PMLLC(scale=scale, C2=0.03).fit(convert(X), sp.csr_matrix(Y))
    np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=1e-4)
    np.testing.assert_allclose(sparse.decision_function(convert(X)), dense.decision_function(X), atol=1e-4)
    assert sp.issparse(sparse.label_confidence_)
    np.testing.assert_array_equal(sparse.label_confidence_.toarray(), dense.label_confidence_)


def test_a_shift_of_the_features_changes_nothing_but_the_intercepts():
    X, Y = planted()
    here, there = PMLLC().fit(X, Y), PMLLC().fit(X + 100, Y)
    np.testing.assert_allclose(there.scores_, here.scores_, rtol=1e-4)
    np.testing.assert_allclose(there.decision_function(X + 100), here.decision_function(X), atol=1e-3)


def test_prediction_before_fit_says_so():
    with pytest.raises(NotFittedError):
        PMLLC().predict(X)


@pytest.mark.parametrize("method", [PMLLC, PMLFP])
@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_cannot_be_ranked_give_zero_scores_and_a_warning(method, value):
    rng = np.random.default_rng(0)
    Y = np.ones((10, 1)) if value else np.eye(10)[:, :1]
    with pytest.warns(UserWarning, match="score 0"):
        selector = method().fit(rng.normal(size=(10, 3)), Y)
    np.testing.assert_array_equal(selector.scores_, 0)
    assert np.isfinite(selector.objective_history_).all()


@pytest.mark.parametrize("method", [PMLLC, PMLFP])
def test_planted_features_come_first(method):
    X, Y = planted(n_samples=150)
    np.testing.assert_array_equal(
        method(n_features_to_select=3).fit(X, Y).get_support(indices=True), [0, 1, 2]
    )


def test_predict_keeps_the_average_number_of_labels():
    X, Y = planted()
    selector = PMLLC().fit(X, Y)
    assert selector.n_labels_predicted_ == round(Y[Y.any(axis=1)].sum(axis=1).mean()) == 2
    predicted = selector.predict(X)
    np.testing.assert_array_equal(predicted.sum(axis=1), 2)
    np.testing.assert_array_equal(predicted.argmin(axis=1), selector.decision_function(X).argmin(axis=1))
    # Each label depends on one feature, so a trained ranker agrees far above chance.
    assert np.mean(predicted[X[:, 0] > 1, 0]) > 0.9
