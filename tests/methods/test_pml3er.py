import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.linear_model import Ridge

import graph_examples as example
from labelsieve._numerics.ridge import Shifted
from labelsieve.methods.pml3er import (
    PML3er,
    PML3erProblem,
    PML3erState,
    enrich_labels,
    propagate,
    transitions,
)

# Worked example, computed independently of this library. Its scores are squared norms.
X, Y = example.X, example.Y.astype(float)
F = [
    [0.87188634, 0.22077285, 0.26573180],
    [0.69602958, 0.74637412, 0.19810041],
    [0.22508859, 0.64688575, 0.87778136],
    [0.17920134, 0.35985977, 0.73470844],
    [0.77949712, 0.21345370, 0.78090714],
    [0.22558488, 0.78162682, 0.22616569],
]
E = [
    [1, 0, 0.06904933],
    [0.90817627, 1, 0],
    [0, 0.64624151, 1],
    [0, 0.32521355, 1],
    [0.99751518, 0, 1],
    [0, 1, 0.00104456],
]
ROUNDS = {
    1: {
        "J": 1.2877372780,
        "W": [
            [0.31384600, -0.11320707, 1.50993734],
            [1.42231761, -0.14268339, 0.13025907],
            [-0.84992390, 0.84922175, -0.57635070],
            [0.01893911, 0.41618093, -0.07252964],
        ],
        "C_1": [0.88594303, 0.89779282, 0],
        "scores": [2.39122591, 2.06031337, 1.77572834, 0.17882581],
    },
    5: {
        "J": 1.0938386972,
        "W": [
            [0.27368737, -0.38590661, 1.35024954],
            [1.25628393, -0.01581356, 0.02438735],
            [-0.64195174, 0.55810012, -0.39166709],
            [-0.11814083, 0.54842615, -0.08017097],
        ],
        "C_1": [0.73980177, 0.87153161, 0],
        "scores": [2.04700252, 1.57909413, 0.87698088, 0.32115588],
    },
}


def solve_example(max_iter):
    model = PML3er(lambda2=0.2, lambda3=0.1 / 6, fit_intercept=False, max_iter=max_iter, tol=0.0)
    E = enrich_labels(X, Y, n_neighbors=2, alpha=0.5, bandwidth="unit")
    return model._descend(Shifted(X), Y, E, example.fill(0.1, 1, 2, 4, (4, 3)) - 0.2)


def test_enrichment_of_the_worked_example():
    P = transitions(X, 2, "unit")
    np.testing.assert_allclose(propagate(P, Y, alpha=0.5), F, atol=6e-9)
    np.testing.assert_allclose(enrich_labels(X, Y, n_neighbors=2, alpha=0.5, bandwidth="unit"), E, atol=6e-9)


@pytest.mark.parametrize("rounds", [1, 5])
def test_rounds_of_the_worked_example(rounds):
    expected, result = ROUNDS[rounds], solve_example(rounds)
    assert result.objective[0] == pytest.approx(4.7276077955, abs=1e-9)
    assert result.objective[-1] == pytest.approx(expected["J"], abs=1e-9)
    np.testing.assert_allclose(result.extra["coef"].T, expected["W"], atol=1e-8)
    np.testing.assert_allclose(result.extra["label_confidence"][1], expected["C_1"], atol=1e-8)
    np.testing.assert_allclose(result.scores**2, expected["scores"], atol=3e-8)


def test_correlations_of_the_worked_example():
    B = [
        [0.94114120, -0.00038489, 0.01351931],
        [-0.01797894, 0.88925036, 0.00008491],
        [-0.00020761, -0.00558219, 0.96000125],
    ]
    problem = PML3erProblem(PML3er(lambda2=0.2, fit_intercept=False), Shifted(X), Y, np.array(E))
    found, values = problem.step_B(Y, np.eye(3))
    np.testing.assert_allclose(found, B, atol=1e-8)
    np.testing.assert_allclose(values, np.linalg.svd(found)[1], atol=1e-12)


def test_path_and_limit_of_the_worked_example():
    result = solve_example(1000)
    path = [4.727608, 1.287737, 1.164715, 1.125008, 1.105276, 1.093839, 1.086808]
    np.testing.assert_allclose(result.objective[:7], path, atol=6e-7)
    assert np.diff(result.objective).max() <= 1e-14
    assert result.objective[-1] == pytest.approx(1.0730471536, abs=1e-10)
    # The objective converges to the last bit before the weights do.
    np.testing.assert_allclose(result.scores**2, [1.82375836, 1.20872353, 0.60742768, 0.36008185], atol=5e-6)
    np.testing.assert_allclose(result.extra["label_confidence"][2], [0, 0.18658620, 0.96101020], atol=1e-6)


def test_propagation_converges_to_the_linear_solution():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(25, 3)), (rng.random((25, 4)) < 0.4).astype(float)
    P = transitions(X, 4, "mean")
    np.testing.assert_allclose(np.asarray(P.sum(axis=1)).ravel(), 1)
    assert not P.diagonal().any()
    for alpha in (0.0, 0.5, 0.95):
        expected = (1 - alpha) * np.linalg.solve(np.eye(25) - alpha * P.toarray(), Y)
        np.testing.assert_allclose(propagate(P, Y, alpha=alpha), expected, atol=1e-8)


def test_isolated_row_keeps_its_candidates():
    X = np.append(np.random.default_rng(1).normal(size=(30, 2)), [[1e5, 1e5]], axis=0)
    Y = (np.random.default_rng(2).random((31, 3)) < 0.5).astype(float)
    Y[-1] = [1, 0, 1]
    assert transitions(X, 5, "unit")[30].nnz == 0
    np.testing.assert_array_equal(enrich_labels(X, Y, n_neighbors=5, alpha=0.9, bandwidth="unit")[-1], Y[-1])


def plain_objective(problem, C, B, W, b):
    """Compute the objective from its definition."""
    X = problem.X.times(np.eye(problem.X.shape[1]))
    return (
        np.sum((problem.E - C @ B) ** 2) / 2
        + problem.params.lambda1 / 2 * np.sum((C - X @ W - b) ** 2)
        + problem.params.lambda2 * np.linalg.norm(B, "nuc")
        + len(X) * problem.params.lambda3 / 2 * np.sum(W**2)
    )


WEIGHTS = {"lambda1": 0.7, "lambda2": 0.3, "lambda3": 0.1}


def random_problem(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(25, 6)), (rng.random((25, 4)) < 0.5).astype(float)
    return PML3erProblem(PML3er(**WEIGHTS), Shifted(X).centred(), Y, rng.random((25, 4))), rng


def test_objective_matches_the_definition():
    problem, rng = random_problem(0)
    C, B, W, b = rng.random((25, 4)), rng.normal(size=(4, 4)), rng.normal(size=(6, 4)), rng.normal(size=4)
    state = PML3erState(C, B, np.linalg.norm(B, "nuc"), W, b, problem.X.times(W) + b)
    assert problem.objective(state) == pytest.approx(plain_objective(problem, C, B, W, b), rel=1e-12)


def test_every_block_is_optimal_given_the_others_at_convergence():
    """Compare with Ridge, bounded least squares and optimality conditions of the nuclear norm."""
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(25, 6)), (rng.random((25, 4)) < 0.5).astype(float)
    E = rng.random((25, 4))
    result = PML3er(**WEIGHTS, max_iter=20_000, tol=0.0)._descend(Shifted(X), Y, E)
    C, W, b = result.extra["label_confidence"], result.extra["coef"].T, result.extra["intercept"]
    ridge = Ridge(alpha=25 * 0.1 / 0.7).fit(X, C)
    np.testing.assert_allclose(W, ridge.coef_.T, atol=1e-6)
    np.testing.assert_allclose(b, ridge.intercept_, atol=1e-6)

    problem = PML3erProblem(PML3er(**WEIGHTS), Shifted(X), Y, E)
    B = np.eye(4)
    for _ in range(20_000):
        B, values = problem.step_B(C, B)
    slope = C.T @ (E - C @ B)  # must be lambda2 times a subgradient of the nuclear norm at B
    assert np.linalg.norm(slope, 2) <= 0.3 * (1 + 1e-9)
    assert np.sum(slope * B) == pytest.approx(0.3 * values.sum(), rel=1e-9)
    assert result.objective[-1] == pytest.approx(plain_objective(problem, C, B, W, b), rel=1e-7)

    A = np.vstack([B.T, np.sqrt(0.7) * np.eye(4)])
    for row in range(25):
        target = np.append(E[row], np.sqrt(0.7) * (X[row] @ W + b))
        free = Y[row] > 0
        if free.any():
            best = lsq_linear(A[:, free], target, bounds=(0, 1), tol=1e-12).x
            np.testing.assert_allclose(C[row, free], best, atol=1e-5)
        np.testing.assert_array_equal(C[row, ~free], 0)
