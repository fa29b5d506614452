import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import softmax

import graph_examples as example
from labelsieve._numerics.graph import neighbor_graph
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.ridge import Shifted
from labelsieve.datasets import make_pml
from labelsieve.methods.pml_ld import (
    PMLLD,
    Enhancement,
    EnhancementState,
    Regression,
    group_rows,
    improve_correlation,
    margins,
)
from oracles import solve_cone_program

# Worked example, computed independently of this library. Its objective excludes the ridge of 1e-8.
RIDGE = 1e-8
X, Y = example.X, example.Y.astype(float)
PATH = [8.73747555, 1.77283484, 1.59124516, 1.56193841, 1.56113014, 1.56112142, 1.56112132]
WEIGHTS = {
    1: [
        [-0.13612319, -0.04478420, 0.83382116],
        [0.72381951, -0.06021262, -0.28800168],
        [-0.96475683, 0.83446940, -0.70867339],
        [0.00633630, 0.31436869, -0.05805759],
        [0.58769639, -0.10499682, 0.54581946],
    ],
    5: [
        [-0.20935210, 0.00545152, 0.87427551],
        [0.84253883, -0.05828429, -0.25374516],
        [-1.02452339, 0.88023447, -0.66136611],
        [0.05540000, 0.31488678, -0.13424592],
        [0.63318680, -0.05283278, 0.62053033],
    ],
}
SCORES = {
    1: [0.84604544, 0.78133553, 1.45921653, 0.31974756],
    5: [0.89900817, 0.88184769, 1.50395015, 0.34676333],
}


def solve_example(max_iter):
    groups = [np.array([0, 1, 4]), np.array([2, 3, 5])]
    params = PMLLD(lambda1=0.1, lambda2=0.2, rho=RIDGE / 6, max_iter=max_iter, tol=0.0)
    graph = neighbor_graph(X, 2, bandwidth=10.0)
    problem = Enhancement(params, Shifted(X).with_constant(), Y, graph, groups)
    return problem.solve(example.fill(0.1, 1, 2, 4, (5, 3)) - 0.2)


@pytest.mark.parametrize("rounds", [1, 5])
def test_rounds_of_the_worked_example(rounds):
    state, history, _ = solve_example(rounds)
    # Two features sum to 1, so in one direction only the ridge determines the weights. Remove it.
    open_direction = np.array([1, 1, 0, 0, -1]) / np.sqrt(3)
    weights = state.weights - np.outer(open_direction, open_direction @ state.weights)
    np.testing.assert_allclose(weights, WEIGHTS[rounds], atol=5e-8)
    np.testing.assert_allclose(row_norms(weights[:-1]), SCORES[rounds], atol=5e-8)
    without_ridge = history[-1] - RIDGE * (state.weights**2).sum()
    assert without_ridge == pytest.approx(PATH[rounds], abs=6e-9)


def test_limit_of_the_worked_example():
    state, history, converged = solve_example(100)
    assert converged
    np.testing.assert_allclose(history[:7], PATH, atol=6e-8)  # the ridge is at most 5e-8
    assert history[-1] - RIDGE * (state.weights**2).sum() == pytest.approx(1.5611213138, abs=1e-10)
    signs = np.array([[1, -1, -1], [1, -1, 1]])
    for Z, sign in zip(state.Z, signs, strict=True):
        np.testing.assert_allclose(Z @ Z.T, np.outer(sign, sign), atol=1e-6)
    np.testing.assert_allclose(state.D[0], [0.96073124, 0.24735053, 0.21504096], atol=6e-9)
    np.testing.assert_allclose(softmax(state.D, axis=1)[0], [0.50906346, 0.24943341, 0.24150313], atol=6e-9)


def test_second_stage_of_the_worked_example():
    state, _, _ = solve_example(100)
    params = PMLLD(C1=1.0, C2=0.1, epsilon=0.1, max_iter=200, tol=0.0)
    problem = Regression(params, Shifted(X).with_constant(), softmax(state.D, axis=1), margins(Y))
    weights, history, _ = problem.solve()
    # The objective of the example excludes the ridge of the intercepts, at most 2e-9 here.
    np.testing.assert_allclose(history[:2], [0.7798729131, -0.0290974760], atol=2e-9)
    assert history[-1] == pytest.approx(-0.0337166110, abs=2e-9)
    W = [
        [-0.10406783, -0.00176784, 0.10583567],
        [0.10406783, 0.00176784, -0.10583567],
        [-0.06745735, 0.10414269, -0.03668534],
        [-0.05059301, 0.10060702, -0.05001400],
    ]
    # The W of the example is accurate to six digits. The next test checks ours.
    np.testing.assert_allclose(weights[:-1], W, atol=2e-6)
    np.testing.assert_allclose(weights[:-1].sum(axis=1), 0, atol=1e-7)


def random_problem(seed, n_samples=30, n_features=6, n_labels=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    Y[0], Y[1] = 0, 1  # no candidates, all candidates
    return X, Y, rng


@pytest.mark.parametrize(
    ("C1", "C2", "epsilon"), [(1.0, 0.1, 0.1), (0.03, 0.03, 0.01), (1.0, 50.0, 0.1), (2.0, 0.0, 0.3)]
)
def test_second_stage_matches_lbfgs_and_never_increases(C1, C2, epsilon):
    X, Y, rng = random_problem(0)
    target = rng.dirichlet(np.ones(4), size=30)
    params = PMLLD(C1=C1, C2=C2, epsilon=epsilon, max_iter=500, tol=1e-14)
    problem = Regression(params, Shifted(X).with_constant(), target, margins(Y))
    weights, history, converged = problem.solve()
    assert converged
    assert np.diff(history).max() <= 1e-12 * np.abs(history).max()
    A = np.column_stack([X, np.ones(30)])
    ridge = np.append(np.ones(6), 1e-8)[:, None]

    def objective_and_gradient(flat):
        M = flat.reshape(7, 4)
        R = A @ M - target
        distance = np.sqrt((R**2).sum(axis=1))
        excess = np.maximum(distance - epsilon, 0)
        value = (ridge * M**2).sum() / 2 + C1 / 2 * (excess**2).sum() - C2 * (margins(Y) * (A @ M)).sum()
        slope = (C1 * excess / distance)[:, None] * R - C2 * margins(Y)
        return value, (ridge * M + A.T @ slope).ravel()

    assert problem.objective(weights) == pytest.approx(objective_and_gradient(weights.ravel())[0], rel=1e-12)
    start = rng.normal(size=28)
    gradient = example.numerical_gradient(lambda flat: objective_and_gradient(flat)[0], start)
    np.testing.assert_allclose(gradient, objective_and_gradient(start)[1], rtol=1e-5, atol=1e-6)
    reference = minimize(
        objective_and_gradient, np.zeros(28), jac=True, method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000},
    )  # fmt: skip
    assert history[-1] == pytest.approx(reference.fun, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(weights, reference.x.reshape(7, 4), atol=2e-4 * np.abs(weights).max())


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_first_stage_weights_solve_the_full_linear_system(kind):
    X, Y, rng = random_problem(1, n_samples=20)
    offset = rng.normal(size=6)
    groups = [np.arange(0, 20, 2), np.arange(1, 20, 2)]
    params, graph = PMLLD(lambda1=0.7, lambda2=0.9, rho=0.3 / 20), neighbor_graph(X, 3, bandwidth="median")
    problem = Enhancement(params, Shifted(kind(X), offset).with_constant(), Y, graph, groups)
    Z = [M / row_norms(M)[:, None] for M in rng.normal(size=(2, 4, 4))]
    weights = problem.solve_weights(EnhancementState(np.zeros((7, 4)), np.zeros((20, 4)), Z))

    # Build the full system, with the unknowns in row-major order.
    A = np.column_stack([X - offset, np.ones(20)])
    G = np.diag(problem.graph.degrees) - problem.graph.affinity.toarray()
    system = np.kron(A.T @ A + 0.7 * A.T @ G @ A + 0.3 * np.eye(7), np.eye(4))
    for rows, Z_group in zip(groups, Z, strict=True):
        system += 0.9 * np.kron(A[rows].T @ A[rows], Z_group @ Z_group.T)
    expected = np.linalg.solve(system, (A.T @ Y).ravel()).reshape(7, 4)
    np.testing.assert_allclose(weights, expected, atol=1e-8)

    def objective(weights):
        return problem.objective(EnhancementState(weights, A @ weights, Z))

    np.testing.assert_allclose(example.numerical_gradient(objective, expected), 0, atol=1e-6)


def test_correlations_reach_the_optimum_of_the_semidefinite_program():
    n = 4
    D = np.random.default_rng(2).normal(size=(9, n))
    M, Z = D.T @ D, np.eye(n)
    values = [np.trace(M)]
    for _ in range(2000):
        Z = improve_correlation(D, Z, np.arange(n))
        values.append(np.sum((D @ Z) ** 2))
    np.testing.assert_allclose(row_norms(Z), 1)
    assert np.diff(values).max() <= 1e-12 * values[0]

    # Clarabel takes the upper triangle of S by columns, with off-diagonal entries times sqrt(2).
    columns, rows = np.tril_indices(n)  # entry (row, column) with row <= column
    factor = np.where(rows == columns, 1.0, np.sqrt(2))
    is_diagonal = rows == columns
    A = sp.vstack([sp.eye(len(rows), format="csc")[is_diagonal], -sp.eye(len(rows))], format="csc")
    b = np.append(np.ones(n), np.zeros(len(rows)))
    cones = [clarabel.ZeroConeT(n), clarabel.PSDTriangleConeT(n)]
    nothing = sp.csc_matrix((len(rows), len(rows)))
    optimum = solve_cone_program(nothing, M[rows, columns] * factor, A, b, cones)
    assert values[-1] == pytest.approx(optimum.obj_val, rel=1e-6)


def test_label_with_zero_scores_keeps_its_correlations():
    D = np.array([[1.0, 0.0], [2.0, 0.0]])
    np.testing.assert_array_equal(improve_correlation(D, np.eye(2), np.arange(2)), np.eye(2))


def test_confidence_is_the_distribution_on_the_candidates():
    X, Y = make_pml(100, 10, random_state=4)
    model = PMLLD().fit(X, Y)
    expected = softmax(model.decision_function(X), axis=1) * Y
    np.testing.assert_allclose(model.label_confidence_, expected, atol=1e-9)
    sparse = PMLLD().fit(sp.csr_matrix(X), sp.csr_matrix(Y)).label_confidence_
    assert sp.issparse(sparse)
    np.testing.assert_allclose(sparse.toarray(), expected, atol=1e-8)


def test_groups_match_k_means_and_depend_only_on_the_seed():
    rng = np.random.default_rng(6)
    X = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], 10, axis=0) + rng.normal(size=(30, 2))
    groups = group_rows(X, 3, np.random.default_rng(0))
    assert sorted(rows.tolist() for rows in groups) == [list(range(k, k + 10)) for k in (0, 10, 20)]
    assert len(group_rows(np.zeros((5, 2)), 3, np.random.default_rng(0))) == 1
    X, Y = make_pml(100, 8, random_state=6)
    options = {"n_groups": 5, "lambda2": 1.0, "max_iter": 1000}
    first, second = (PMLLD(**options, random_state=1).fit(X, Y).scores_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - PMLLD(lambda2=1.0, max_iter=1000).fit(X, Y).scores_).max() > 1e-4 * first.max()
