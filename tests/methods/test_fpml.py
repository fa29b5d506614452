import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import graph_examples as example
from labelsieve.datasets import make_pml
from labelsieve.methods.fpml import FPML, FPMLProblem, FPMLState
from oracles import X_RANKED as X
from oracles import Y_RANKED as Y

# Worked example, computed independently of this library.
W_STRONG = {
    1: [[0.12483, 0.067932, 0.034862], [0.067974, 0.075776, 0.110159], [0.066661, 0.07056, 0.09921]],
    2: [[0.113085, 0.060489, 0.031616], [0.062475, 0.065073, 0.103459], [0.064842, 0.062722, 0.094297]],
    16: [[0.111832, 0.054346, 0.032205], [0.059851, 0.064097, 0.104113], [0.067497, 0.061651, 0.091026]],
}
W_WEAK = {
    1: [[0.963571, 0.312452, -0.229065], [0.399135, 0.594992, 0.999561], [0.060622, 0.305719, 0.658056]],
    10: [[0.917403, 0.324643, -0.224757], [0.37281, 0.505359, 0.966853], [0.135032, 0.303118, 0.690455]],
}
EXAMPLE = {"n_components": 2, "fit_intercept": False, "scale": None}


def solve_example(lambda3, max_iter, tol=0.0, **options):
    return FPML(lambda3=lambda3, max_iter=max_iter, tol=tol, **EXAMPLE | options)._solve(X, Y)


@pytest.mark.parametrize(
    ("lambda3", "n_iter", "W"), [(10.0, 1, W_STRONG[1]), (10.0, 2, W_STRONG[2]), (0.1, 1, W_WEAK[1])]
)
def test_classifier_of_the_worked_example(lambda3, n_iter, W):
    np.testing.assert_allclose(solve_example(lambda3, n_iter).extra["coef"].T, W, atol=6e-7)


@pytest.mark.parametrize(
    ("lambda3", "path", "n_iter", "last", "W", "norms"),
    [
        (10.0, [10.799128, 7.091184, 6.991323], 16, 6.985495, W_STRONG[16], [0.128441, 0.136125, 0.129005]),
        (0.1, [4.425175, 3.47824, 3.438387], 10, 3.429503, W_WEAK[10], [0.998767, 1.1529, 0.766057]),
    ],
)
def test_objective_and_end_of_the_worked_example(lambda3, path, n_iter, last, W, norms):
    result = solve_example(lambda3, 200, tol=1e-6)
    np.testing.assert_allclose(result.objective[:3], path, atol=1e-6)
    assert result.converged
    assert len(result.objective) - 1 == n_iter
    assert result.objective[-1] == pytest.approx(last, abs=1e-6)
    np.testing.assert_allclose(result.extra["coef"].T, W, atol=1e-6)
    np.testing.assert_allclose(result.scores, norms, atol=1e-6)


def problem_of(X, Y, **weights):
    return FPMLProblem(FPML(**weights), X, Y)


def test_start_of_the_worked_example_is_the_truncated_svd():
    problem = problem_of(X, Y)
    state = problem.start(2)
    np.testing.assert_allclose(state.SG[0], [1.179478, 0.578087, 0.179478], atol=6e-7)
    W = [[0.182365, 0.098223, 0.048536], [0.113887, 0.127248, 0.185244], [0.088281, 0.102313, 0.152234]]
    np.testing.assert_allclose(state.W, W, atol=6e-7)
    state, _ = problem.round(state)
    np.testing.assert_allclose(state.SG[0], [0.762219, 0.358399, 0.080299], atol=6e-7)


def plain_objective(X, Y, S, G, F, W, l1, l2, l3, ridge):
    """Compute the objective from its definition, with every matrix formed."""
    return (
        ((Y - S @ G) ** 2).sum()
        + l1 * ((X - S @ F) ** 2).sum()
        + l2 * ((S @ G - X @ W) ** 2).sum()
        + l3 * (W**2).sum()
        + ridge * ((S**2).sum() + (G**2).sum() + (F**2).sum())
    )


@pytest.mark.parametrize("reg_all", [False, True])
def test_the_gradient_of_each_block_is_zero_after_its_step(reg_all):
    rng = np.random.default_rng(0)
    X, Y = rng.random((12, 6)), (rng.random((12, 5)) < 0.4).astype(float)
    weights = (0.7, 1.6, 0.3, 0.3 if reg_all else 1e-8)
    problem = problem_of(X, Y, lambda1=0.7, lambda2=1.6, lambda3=0.3, reg_all=reg_all)
    old = problem.start(3)
    new, value = problem.round(old)
    assert value == pytest.approx(plain_objective(X, Y, new.S, new.G, new.F, new.W, *weights), rel=1e-12)

    # F, G, S and W are updated in turn, each with the latest values of the others.
    moments = {
        "F": (old.S, old.G, new.F, old.W),
        "G": (old.S, new.G, new.F, old.W),
        "S": (new.S, new.G, new.F, old.W),
        "W": (new.S, new.G, new.F, new.W),
    }
    for place, name in enumerate("SGFW"):
        blocks = list(moments[name])

        def along(block, place=place, blocks=blocks):
            return plain_objective(X, Y, *blocks[:place], block, *blocks[place + 1 :], *weights)

        gradient = example.numerical_gradient(along, blocks[place], step=1e-5)
        np.testing.assert_allclose(gradient, 0, atol=1e-6, err_msg=name)


def test_result_does_not_depend_on_the_gauge():
    rng = np.random.default_rng(1)
    X, Y = rng.random((15, 5)), (rng.random((15, 6)) < 0.4).astype(float)
    problem = problem_of(X, Y)
    start = problem.start(3)
    A = rng.normal(size=(3, 3)) + 2 * np.eye(3)
    S, G, F = start.S @ A, np.linalg.solve(A, start.G), np.linalg.solve(A, start.F)
    other = FPMLState(S, G, F, start.W, S @ G, start.P, S.T @ S, S.T @ X)
    for _ in range(5):
        start, value = problem.round(start)
        other, other_value = problem.round(other)
    np.testing.assert_allclose(other.W, start.W, rtol=1e-5)
    np.testing.assert_allclose(other.SG, start.SG, rtol=1e-4, atol=1e-6)
    assert other_value == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_wide_and_sparse_features_give_the_same_result(monkeypatch, kind):
    X, Y = make_pml(25, 40, density=0.5, random_state=0)
    expected = FPML().fit(X, Y)
    monkeypatch.setattr("labelsieve._numerics.ridge._LARGEST_FACTOR", 0)  # solve without any factorisation
    for data in (kind(X), kind(np.vstack([X, X, X]))):
        model = FPML(lambda3=10.0 * data.shape[0] / 25).fit(
            data, sp.csr_matrix(np.tile(Y, (data.shape[0] // 25, 1)))
        )
        np.testing.assert_allclose(model.scores_, expected.scores_, rtol=1e-5, atol=1e-8)


def test_confidence_separates_true_candidates_from_noise():
    X, Y, Y_true, _ = make_pml(300, 20, n_labels=8, noise=0.3, density=0.8, return_truth=True, random_state=1)
    confidence = FPML().fit(X, Y).label_confidence_
    assert confidence.min() >= 0
    assert confidence.max() <= 1
    np.testing.assert_array_equal(confidence[Y == 0], 0)
    candidates = Y == 1
    assert roc_auc_score(Y_true[candidates], confidence[candidates]) > 0.6
    sparse = FPML().fit(sp.csr_matrix(X), sp.csr_matrix(Y)).label_confidence_
    assert sp.issparse(sparse)
    np.testing.assert_allclose(sparse.toarray(), confidence, atol=1e-8)


def test_label_order_does_not_matter_with_equal_singular_values():
    rng = np.random.default_rng(7)
    X = rng.random((60, 6))
    Y = np.eye(5)[np.arange(60) % 5]  # five equal singular values, three of them kept
    order = rng.permutation(5)
    model, moved = FPML().fit(X, Y), FPML().fit(X, Y[:, order])
    np.testing.assert_allclose(moved.scores_, model.scores_, rtol=1e-8)
    np.testing.assert_allclose(moved.coef_, model.coef_[order], rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize(("n_components", "rank"), [(0.6, 3), (0.1, 1), (4, 4), (50, 5)])
def test_rank_is_a_number_or_a_rounded_fraction_and_capped(n_components, rank, monkeypatch):
    ranks, start = [], FPMLProblem.start
    monkeypatch.setattr(FPMLProblem, "start", lambda self, rank: ranks.append(rank) or start(self, rank))
    FPML(n_components=n_components).fit(*make_pml(40, 8, random_state=8))
    assert ranks == [rank]
