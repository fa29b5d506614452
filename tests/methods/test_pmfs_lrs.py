from functools import partial

import clarabel
import numpy as np
import pytest

from graph_examples import fill, numerical_gradient
from labelsieve._numerics.graph import neighbor_graph
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.result import iterate
from labelsieve._numerics.ridge import WeightedRidge
from labelsieve.datasets import make_pml
from labelsieve.methods import pmfs_lrs
from labelsieve.methods.pmfs_lrs import PMFSLRS, PMFSLRSProblem, shrink_singular_values
from oracles import solve_cone_program

# Worked example, computed independently of this library.
EXAMPLE = {"alpha": 0.1, "beta": 0.6, "lam": 0.05, "mu": 1.0, "eta": 0.2}
W_1 = [
    [-0.49503719, 0.01541172, 0.62594645],
    [0.57161971, -0.01779593, -0.72278070],
    [-0.90825691, 0.77237382, -0.64876379],
    [-0.06455845, 0.46141495, -0.14714226],
]
W_5 = [
    [-0.34685251, 0.03312907, 0.43723690],
    [0.40051078, -0.03825415, -0.50487768],
    [-0.69059243, 0.61565304, -0.48927094],
    [-0.11962582, 0.31744658, -0.11907908],
]


def problem_of(X, Y, **weights):
    params = PMFSLRS(**EXAMPLE | weights)
    return PMFSLRSProblem(params, WeightedRidge(X - X.mean(axis=0)), Y, neighbor_graph(X, 2), params.lam)


def laplacian(problem):
    return np.diag(problem.graph.degrees) - problem.graph.affinity.toarray()


def plain_objective(problem, W, F, N):
    """Compute the objective from its definition, with every matrix formed and no smoothing."""
    H = np.eye(len(F)) - 1 / len(F)
    return (
        ((H @ (problem.ridge.X.X @ W - F)) ** 2).sum()
        + problem.params.eta * np.trace(F.T @ laplacian(problem) @ F)
        + problem.params.alpha * np.linalg.norm(F, "nuc")
        + problem.params.beta * np.abs(N).sum()
        + problem.lam * np.sqrt((W**2).sum(axis=1)).sum()
        + problem.params.mu / 2 * ((problem.Y - F - N) ** 2).sum()
    )


def start_of_example(problem):
    Y = problem.Y
    return problem.state(fill(0.1, 1, 2, 4, (4, 3)) - 0.2, Y, np.zeros_like(Y))


def test_sweeps_of_the_worked_example(tiny):
    problem = problem_of(*tiny)
    assert problem.curvature == pytest.approx(4.3542801901, abs=5e-11)
    state = start_of_example(problem)
    path = [problem.objective(state)]
    assert path[0] == pytest.approx(7.3324850794, abs=5e-11)
    for sweep in range(1, 7):
        state, value = problem.sweep(state, inner_steps=1)
        path.append(value)
        if sweep == 1:
            np.testing.assert_allclose(state.W, W_1, atol=6e-9)
            F = [[0.99838906, 0.13843953, 0.13044765], [0.74314596, 0.74376049, 0.08607002]]
            np.testing.assert_allclose(state.F[:2], F, atol=6e-9)
            np.testing.assert_array_equal(state.N[:2], 0)
            assert value == pytest.approx(1.5930656990, abs=5e-11)
        if sweep == 5:
            np.testing.assert_allclose(state.W, W_5, atol=6e-9)
            np.testing.assert_allclose(state.F[1], [0.66685174, 0.68706355, 0.16570621], atol=6e-9)
            scores = [0.31258031, 0.41677374, 1.09533262, 0.12926250]
            np.testing.assert_allclose(row_norms(state.W) ** 2, scores, atol=6e-9)
            assert value == pytest.approx(1.4509426506, abs=5e-11)
    expected = [7.332485, 1.593066, 1.513912, 1.475744, 1.458684, 1.450943, 1.447387]
    np.testing.assert_allclose(path, expected, atol=5e-7)


@pytest.mark.parametrize("inner_steps", [1, 5])
def test_limit_of_the_worked_example(tiny, inner_steps):
    problem = problem_of(*tiny)
    state = start_of_example(problem)
    sweep = partial(problem.sweep, inner_steps=inner_steps)
    state, history, _ = iterate(sweep, state, problem.objective(state), max_iter=5000, tol=1e-15)
    # Smoothing adds at most lam times 1e-6 for each of the four features.
    assert history[-1] == pytest.approx(1.4442621323, abs=1e-9)
    np.testing.assert_allclose(state.F[3], [0.20381871, 0.43583108, 0.71066988], atol=1e-6)
    norms = row_norms(state.W)
    np.testing.assert_allclose(norms[2:] ** 2, [0.95074895, 0.09376204], atol=1e-5)
    # Features 0 and 1 add up to 1, so any split of their total weight is optimal. In the example,
    # it is 0.28825427 each.
    assert norms[0] + norms[1] == pytest.approx(2 * np.sqrt(0.28825427), abs=1e-5)


def minimum_by_clarabel(problem):
    """Solve the same problem as a semidefinite program.

    Row norms, absolute values and two matrices next to F are additional variables.
    """
    X, Y = problem.ridge.X.X, problem.Y
    (n, q), d = Y.shape, X.shape[1]
    blocks = {"W": d * q, "F": n * q, "N": n * q, "r": d, "u": n * q, "A": n * n, "B": q * q}
    starts = dict(zip(blocks, np.cumsum([0, *blocks.values()])[:-1].tolist(), strict=True))
    size = sum(blocks.values())

    def at(name, index):
        return starts[name] + index

    W, F, N, r, u = (slice(starts[name], starts[name] + blocks[name]) for name in ("W", "F", "N", "r", "u"))
    H, one = np.eye(n) - 1 / n, np.eye(q)
    residual = np.zeros((n * q, size))
    residual[:, W], residual[:, F] = np.kron(X, one), -np.kron(H, one)
    misfit = np.zeros((n * q, size))
    misfit[:, F] = misfit[:, N] = np.eye(n * q)
    P = 2 * residual.T @ residual + problem.params.mu * misfit.T @ misfit
    P[F, F] += 2 * problem.params.eta * np.kron(laplacian(problem), one)
    cost = -problem.params.mu * misfit.T @ Y.ravel()
    cost[r], cost[u] = problem.lam, problem.params.beta
    for name, side in (("A", n), ("B", q)):
        cost[at(name, np.arange(side) * (side + 1))] = problem.params.alpha / 2

    rows, cones = [], []
    for feature in range(d):
        lines = np.zeros((q + 1, size))
        lines[0, at("r", feature)] = -1
        lines[1 + np.arange(q), at("W", feature * q + np.arange(q))] = -1
        rows.append(lines)
        cones.append(clarabel.SecondOrderConeT(q + 1))
    lines = np.zeros((2 * n * q, size))
    lines[: n * q, N], lines[n * q :, N] = np.eye(n * q), -np.eye(n * q)
    lines[: n * q, u] = lines[n * q :, u] = -np.eye(n * q)
    rows.append(lines)
    cones.append(clarabel.NonnegativeConeT(2 * n * q))
    # [[A, F], [F', B]] is positive semidefinite. Clarabel takes its upper triangle by columns, with
    # off-diagonal entries times sqrt(2).
    triangle = []
    for column in range(n + q):
        for row in range(column + 1):
            line = np.zeros(size)
            if column < n:
                places = [at("A", row * n + column), at("A", column * n + row)]
            elif row < n:
                places = [at("F", row * q + column - n)]
            else:
                places = [at("B", (row - n) * q + column - n), at("B", (column - n) * q + row - n)]
            for place in places:
                line[place] -= (1 if row == column else np.sqrt(2)) / len(places)
            triangle.append(line)
    rows.append(np.array(triangle))
    cones.append(clarabel.PSDTriangleConeT(n + q))
    A = np.vstack(rows)
    solution = solve_cone_program(P, cost, A, np.zeros(len(A)), cones)
    return solution.obj_val + problem.params.mu / 2 * (Y**2).sum()


@pytest.mark.parametrize("weights", [{}, {"alpha": 0.5, "beta": 0.2, "mu": 3.0}, {"lam": 0.3, "eta": 0.02}])
def test_interior_point_solver_finds_the_same_minimum(tiny, weights):
    problem = problem_of(*tiny, **weights)
    state = start_of_example(problem)
    state, _, _ = iterate(problem.sweep, state, problem.objective(state), max_iter=20000, tol=1e-14)
    found = plain_objective(problem, state.W, state.F, state.N)
    minimum = minimum_by_clarabel(problem)
    smoothed = problem.lam * 4 * np.sqrt(pmfs_lrs.SMOOTHING)
    assert minimum - 1e-7 <= found <= minimum + 1e-7 + smoothed


def random_problem(seed, n_samples=30, n_features=8, n_labels=5, **weights):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    return problem_of(X, Y, **weights), rng


def test_objective_and_gradient_match_the_definition():
    problem, rng = random_problem(0)
    W, F, N = rng.normal(size=(8, 5)), rng.normal(size=(30, 5)), rng.normal(size=(30, 5))
    state = problem.state(W, F, N)
    assert problem.objective(state) == pytest.approx(plain_objective(problem, W, F, N), rel=1e-8)
    smooth, _ = random_problem(0, alpha=0.0)
    slope = numerical_gradient(lambda F: plain_objective(smooth, W, F, N), F)
    np.testing.assert_allclose(smooth.gradient_F(F, N, state.P), slope, atol=1e-6)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20), (7, 7)])
@pytest.mark.parametrize("threshold", [0.0, 1.0, 3.0, 1e3])
def test_shrink_singular_values_matches_an_svd(shape, threshold):
    M = np.random.default_rng(2).normal(size=shape)
    U, values, V = np.linalg.svd(M, full_matrices=False)
    left = np.maximum(values - threshold, 0)
    shrunk, norm = shrink_singular_values(M, threshold)
    np.testing.assert_allclose(shrunk, (U * left) @ V, atol=1e-10)
    assert norm == pytest.approx(left.sum())


def authors_loop(X, Y, *, alpha, beta, lam, mu, n_rounds):
    """Run the published code: its step size, its threshold without absolute value, a random W."""
    n = len(Y)
    graph = neighbor_graph(X, 20)
    H, L = np.eye(n) - 1 / n, np.diag(graph.degrees) - graph.affinity.toarray()
    step = np.linalg.norm(2 * H + 2 * L + mu * np.eye(n))  # the Frobenius norm
    W, F, N = np.random.default_rng(0).normal(size=(X.shape[1], Y.shape[1])), Y.copy(), np.zeros_like(Y)
    for _ in range(n_rounds):
        D = np.diag(0.5 / np.sqrt((W**2).sum(axis=1) + 1e-12))
        W = np.linalg.solve(X.T @ H @ X + lam * D, X.T @ H @ F)
        gradient = 2 * H @ (F - X @ W) + 2 * L @ F + mu * (F + N - Y)
        U, values, V = np.linalg.svd(F - gradient / step, full_matrices=False)
        F = (U * np.maximum(values - alpha / step, 0)) @ V
        N = np.maximum(Y - F - beta / mu, 0)
    return W, F, N


def test_published_settings_reduce_to_the_row_sparse_regression():
    X, Y = make_pml(300, 50, n_informative=8, n_labels=8, noise=0.4, random_state=0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    W, F, N = authors_loop(Z, Y, alpha=1e4, beta=1e6, lam=100.0, mu=1e8, n_rounds=50)
    assert np.abs(F - Y).max() < 2e-5
    assert not N.any()
    model = PMFSLRS(solver="authors", lam=100.0, tol=1e-12, max_iter=500).fit(X, Y)
    np.testing.assert_allclose(model.coef_.T, W, atol=2e-6)
    np.testing.assert_array_equal(model.label_confidence_, Y)
    # With the same alpha and lam, the exact solver returns F = 0.
    with pytest.warns(UserWarning, match="PMFSLRS"):
        exact = PMFSLRS(alpha=1e4, lam=100.0).fit(X, Y)
    assert not exact.label_confidence_.any()


def test_automatic_sparsity_is_a_tenth_of_the_rows_or_keeps_features():
    X, Y = make_pml(200, 10, random_state=5)
    assert PMFSLRS().fit(X, Y).lam_ == 20
    rare = (np.arange(200) < 4)[:, None].astype(float)
    model = PMFSLRS(solver="authors", max_iter=1000).fit(X, rare)
    assert model.lam_ < 20
    assert np.sqrt(model.scores_).max() > 1e-4
