"""PML-FP: worked example, prototype distances and confidences that are uniform on a set."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve.methods.pml_fp import PMLFP, prototype_distances
from oracles import X_RANKED as X
from oracles import Y_RANKED as Y

#: Distances to the three prototypes for all labels, including non-candidates.
DISTANCES = [
    [0.536773, 0.74087, 0.986471],
    [0.829533, 0.418994, 0.673146],
    [0.743724, 1.007748, 0.602599],
    [0.41003, 0.74087, 0.864942],
    [0.673146, 0.410961, 0.343693],
    [0.517808, 0.790921, 0.427931],
]
W_FIRST = [[0.265282, 0.049687, -0.314968], [-0.187469, 0.074953, 0.112516], [-0.039906, -0.200252, 0.240158]]
W_SECOND = [
    [0.240166, -0.012704, -0.227461],
    [-0.099876, 0.043606, 0.056269],
    [-0.139627, -0.050566, 0.190193],
]
W_LAST = [[0.240157, -0.000266, -0.239891], [-0.099882, -0.0002, 0.100082], [-0.139646, -0.000599, 0.140246]]
P_FIRST = np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0, 1], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0, 0.5]])


def solve(C3, max_iter):
    return PMLFP(C3=C3, max_iter=max_iter, tol=1e-9)._alternate(X, Y > 0, bias_ridge=1e-3)


@pytest.mark.parametrize("convert", [np.array, sp.csr_matrix, sp.csc_matrix])
def test_prototype_distances_of_the_worked_example(convert):
    np.testing.assert_allclose(prototype_distances(convert(X), Y > 0), DISTANCES * Y, atol=1e-6)


def test_the_only_row_of_a_label_is_its_prototype():
    Y = np.array([[True, False, False], [False, True, False], [False, True, False]])
    D = prototype_distances(X[:3], Y)
    assert D[0, 0] == pytest.approx(0, abs=1e-7)
    np.testing.assert_array_equal(D[:, 2], 0)


@pytest.mark.parametrize(("C3", "value"), [(1, 4.363083), (0.1, 1.623236)])
def test_the_first_iteration_reproduces_the_worked_example(C3, value):
    result = solve(C3, max_iter=1)
    np.testing.assert_allclose(result.extra["coef"].T, W_FIRST, atol=2e-6)
    F = X @ result.extra["coef"].T + result.extra["intercept"]
    np.testing.assert_allclose(F[0], [0.536944, -0.426304, -0.11064], atol=2e-6)
    np.testing.assert_allclose(F[5], [0.327103, -0.608822, 0.281719], atol=2e-6)
    np.testing.assert_allclose(result.extra["label_confidence"], P_FIRST, atol=1e-12)
    assert result.objective[-1] == pytest.approx(value, abs=2e-6)


def test_published_weight_reproduces_the_worked_example():
    result = solve(C3=1, max_iter=10)
    assert result.converged
    np.testing.assert_allclose(result.extra["coef"].T, W_SECOND, atol=2e-6)
    np.testing.assert_allclose(result.extra["intercept"], [0.414392, -0.607659, 0.193267], atol=2e-6)
    np.testing.assert_allclose(result.scores, [0.331028, 0.122650, 0.241301], atol=2e-6)
    np.testing.assert_allclose(result.extra["label_confidence"], P_FIRST, atol=1e-12)
    assert result.objective[-1] == pytest.approx(4.287062, abs=2e-6)


def test_small_weight_reproduces_the_worked_example():
    result = solve(C3=0.1, max_iter=10)
    expected = P_FIRST.copy()
    expected[1] = [0, 0, 1]
    assert result.converged
    assert result.objective[2:4] == pytest.approx([1.511906, 1.443408], abs=2e-6)
    np.testing.assert_allclose(result.extra["label_confidence"], expected, atol=1e-12)
    np.testing.assert_allclose(result.extra["coef"].T, W_LAST, atol=2e-6)


def random_candidates(n_labels, share, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(50, 6)), (rng.random((50, n_labels)) < share).astype(int)


@pytest.mark.parametrize("C3", [1e-3, 0.1, 10])
@pytest.mark.parametrize("n_labels", [4, 18])
def test_objective_never_increases_and_confidences_are_uniform_on_a_set(C3, n_labels):
    X, Y = random_candidates(n_labels, 0.75)  # with 18 labels, rows have too many candidates to enumerate
    selector = PMLFP(C3=C3).fit(X, Y)
    assert (np.diff(selector.objective_history_) <= 0).all()
    np.testing.assert_allclose(selector.coef_.sum(axis=0), 0, atol=1e-12)
    P = selector.label_confidence_
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert (P[Y == 0] == 0).all()
    np.testing.assert_allclose(P.max(axis=1) * (P > 0).sum(axis=1), 1)


def test_larger_weight_trusts_fewer_labels_down_to_the_nearest_prototype():
    X, Y = random_candidates(5, 0.6, seed=1)
    sizes = [(PMLFP(C3=C3, scale="standard").fit(X, Y).label_confidence_ > 0).sum() for C3 in (1e-3, 100)]
    assert sizes[0] > sizes[1]
    P = PMLFP(C3=1e4, scale=None).fit(X, Y).label_confidence_
    distances = np.where(Y, prototype_distances(X, Y > 0), np.inf)
    rows = Y.any(axis=1)
    np.testing.assert_array_equal(P[rows].argmax(axis=1), distances[rows].argmin(axis=1))
    np.testing.assert_array_equal((P[rows] > 0).sum(axis=1), 1)


def test_predict_returns_as_many_labels_as_rows_trust():
    X, Y = random_candidates(5, 0.5)
    selector = PMLFP(C3=100).fit(X, Y)
    assert selector.n_labels_predicted_ == 1
    np.testing.assert_array_equal(
        selector.predict(X).argmax(axis=1), selector.decision_function(X).argmax(axis=1)
    )
