import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import cosine_similarity

import graph_examples as example
from labelsieve._numerics.ridge import Shifted
from labelsieve.datasets import make_pml
from labelsieve.methods.pml_lfc import PMLLFC, PMLLFCProblem, Similarity

# Worked example, computed independently of this library. Its scores are squared norms.
X, Y = example.X, example.Y.astype(float)
ROUNDS = {
    1: {
        "J": 0.5625493463,
        "W": [
            [-0.54556926, 0.01346081, 0.69802663],
            [0.54556926, -0.01346081, -0.69802663],
            [-1.01952483, 0.87421897, -0.73657687],
            [-0.02875383, 0.42321032, -0.11758633],
        ],
        "P": {1: [0.76930138, 0.75358017, 0]},
        "scores": [0.78506819, 0.78506819, 2.34623517, 0.19376031],
    },
    5: {
        "J": 0.2664392011,
        "W": [
            [-0.42029933, -0.09310420, 0.56045647],
            [0.42029933, 0.09310420, -0.56045647],
            [-0.59289315, 0.67706375, -0.44633672],
            [-0.22947376, 0.35660350, -0.07465752],
        ],
        "P": {1: [0.54732925, 0.63399216, 0], 2: [0, 0.36497442, 0.81852583]},
        "scores": [0.49943138, 0.49943138, 1.00915408, 0.18539801],
    },
}


def solve_example(max_iter, similarity="and"):
    model = PMLLFC(lambda1=0.1 / 6, lambda2=2.0, similarity=similarity, max_iter=max_iter, tol=0.0)
    return model._regress(Shifted(X), Y, start=example.fill(0.1, 1, 2, 4, (4, 3)) - 0.2)


def test_similarity_of_the_worked_example():
    S = Similarity(Shifted(X), Y, "and")
    found = S.block(slice(None))
    np.testing.assert_allclose(found[0], [1, 0.48330486, 0, 0, 0.52009704, 0], atol=6e-9)
    np.testing.assert_allclose(found[2], [0, 0.27465527, 1, 0.65818652, 0.37091849, 0.53645250], atol=6e-9)
    assert S.squared_norm() == pytest.approx(10.6123964147, abs=6e-11)


@pytest.mark.parametrize("rounds", [1, 5])
def test_rounds_of_the_worked_example(rounds):
    expected, result = ROUNDS[rounds], solve_example(rounds)
    assert result.objective[0] == pytest.approx(4.6678988842, abs=6e-11)
    assert result.objective[-1] == pytest.approx(expected["J"], abs=6e-11)
    np.testing.assert_allclose(result.extra["coef"].T, expected["W"], atol=6e-9)
    for row, confidence in expected["P"].items():
        np.testing.assert_allclose(result.extra["label_confidence"][row], confidence, atol=6e-9)
    np.testing.assert_allclose(result.scores**2, expected["scores"], atol=6e-9)


def test_intercepts_of_the_worked_example():
    np.testing.assert_allclose(
        solve_example(1).extra["intercept"], [1.00595369, -0.14826595, 0.95034915], atol=6e-9
    )


def test_path_and_limit_of_the_worked_example():
    result = solve_example(3000)
    path = [4.667899, 0.562549, 0.348357, 0.302347, 0.277830, 0.266439, 0.262687]
    np.testing.assert_allclose(result.objective[:7], path, atol=6e-7)
    assert np.diff(result.objective).max() <= 1e-14
    assert result.objective[-1] == pytest.approx(0.2580913631, abs=1e-10)
    np.testing.assert_allclose(result.scores**2, [0.52079975, 0.52079975, 0.74965121, 0.33039894], atol=1e-6)
    np.testing.assert_allclose(result.extra["label_confidence"][2], [0, 0.24417923, 0.85569138], atol=1e-6)


def test_or_similarity_of_the_worked_example():
    result = solve_example(3000, "or")
    np.testing.assert_allclose(
        result.objective[[0, 1, 5]], [4.7090904134, 0.9914123485, 0.8667642245], atol=6e-11
    )
    assert result.objective[-1] == pytest.approx(0.8652425952, abs=1e-10)
    np.testing.assert_allclose(result.scores**2, [0.68179628, 0.68179628, 1.38163084, 0.25292159], atol=1e-6)


def random_problem(seed):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((25, 6)) < 0.5, 0, rng.normal(size=(25, 6)))
    Y = (rng.random((25, 4)) < 0.5).astype(float)
    Y[0], Y[1], X[2] = 0, 1, 0
    return X, Y, rng


def plain_similarity(X, Y, kind):
    by_features, by_labels = cosine_similarity(X), cosine_similarity(Y)
    both = by_features * by_labels
    return both if kind == "and" else by_features + by_labels - both


@pytest.mark.parametrize("kind", ["and", "or"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("shifted", [False, True])
def test_products_with_the_similarity_match_the_full_matrix(monkeypatch, kind, container, shifted):
    monkeypatch.setattr("labelsieve._numerics.batches.BUDGET", 60)
    X, Y, rng = random_problem(0)
    offset = rng.normal(size=6) if shifted else None
    P = rng.normal(size=(25, 4))
    S = Similarity(Shifted(container(X), offset), Y, kind)
    expected = plain_similarity(X - offset if shifted else X, Y, kind)
    np.testing.assert_allclose(S.product_by_labels(P), expected @ P, atol=1e-13)
    for by_rows in (False, True):
        S.by_rows = by_rows
        np.testing.assert_allclose(S.product(P), expected @ P, atol=1e-13)
    assert S.squared_norm() == pytest.approx((expected**2).sum(), rel=1e-13)


def test_products_run_by_rows_with_many_labels():
    rng = np.random.default_rng(5)
    X = Shifted(rng.normal(size=(100, 10)))
    assert not Similarity(X, (rng.random((100, 3)) < 0.3).astype(float), "and").by_rows
    assert Similarity(X, (rng.random((100, 200)) < 0.3).astype(float), "and").by_rows


def plain_objective(X, Y, W, b, P, lambda1, lambda2, kind):
    """Compute the objective from its definition."""
    n = len(X)
    return (
        np.sum((X @ W + b - P) ** 2) / 2
        + n * lambda1 / 2 * np.sum(W**2)
        + lambda2 / (4 * n) * np.sum((P @ P.T - plain_similarity(X, Y, kind)) ** 2)
    )


@pytest.mark.parametrize("kind", ["and", "or"])
def test_objective_and_gradient_match_the_definition(kind):
    X, Y, rng = random_problem(1)
    W, b, P = rng.normal(size=(6, 4)), rng.normal(size=4), rng.random((25, 4))
    S = Similarity(Shifted(X), Y, kind)
    problem = PMLLFCProblem(PMLLFC(lambda1=0.3, lambda2=1.7), Shifted(X), Y, S)

    def along(P):
        return plain_objective(X, Y, W, b, P, 0.3, 1.7, kind)

    prediction = X @ W + b
    assert problem.objective(W, prediction, P, S.product(P)) == pytest.approx(along(P), rel=1e-12)
    np.testing.assert_allclose(
        problem.gradient(prediction, P, S.product(P)), example.numerical_gradient(along, P), atol=1e-6
    )


@pytest.mark.parametrize("kind", ["and", "or"])
def test_solution_is_stationary_and_its_weights_are_a_ridge_regression(kind):
    X, Y, _ = random_problem(2)
    model = PMLLFC(lambda1=0.05, lambda2=3.0, similarity=kind, max_iter=20_000, tol=0.0)
    result = model._regress(Shifted(X), Y)
    W, b, P = result.extra["coef"].T, result.extra["intercept"], result.extra["label_confidence"]
    assert result.objective[-1] == pytest.approx(plain_objective(X, Y, W, b, P, 0.05, 3.0, kind), rel=1e-12)
    ridge = Ridge(alpha=25 * 0.05).fit(X, P)
    np.testing.assert_allclose(W, ridge.coef_.T, atol=1e-6)
    np.testing.assert_allclose(b, ridge.intercept_, atol=1e-6)
    slope = X @ W + b
    slope = P - slope + 3 / 25 * (P @ (P.T @ P) - plain_similarity(X, Y, kind) @ P)
    np.testing.assert_allclose(np.clip(P - slope, 0, Y), P, atol=1e-5)


def test_skipped_products_do_not_change_the_result(monkeypatch):
    X, Y = make_pml(60, 10, n_labels=6, random_state=0)
    expected = PMLLFC(lambda2=30.0, max_iter=500).fit(X, Y)
    products = []
    product = Similarity.product

    def count(self, P):
        products.append(len(P))
        return product(self, P)

    monkeypatch.setattr(Similarity, "product", count)
    PMLLFC(lambda2=30.0, max_iter=500).fit(X, Y)
    few = len(products)
    monkeypatch.setattr(
        PMLLFCProblem, "largest_decrease", lambda self, length: np.inf
    )  # without the bound, always multiply
    products.clear()
    model = PMLLFC(lambda2=30.0, max_iter=500).fit(X, Y)
    np.testing.assert_array_equal(model.scores_, expected.scores_)
    assert few < len(products)
