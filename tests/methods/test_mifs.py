import numpy as np
import pytest
import scipy.sparse as sp

import graph_examples as example
from labelsieve._numerics.graph import neighbor_graph
from labelsieve._numerics.ridge import WeightedRidge
from labelsieve.datasets import make_pml
from labelsieve.methods.mifs import (
    MIFS,
    MIFSProblem,
    MIFSState,
    random_start,
    solve_feature_weights,
    solve_latent_labels,
)

EXAMPLE = {"alpha": 0.4, "beta": 1.0, "gamma": 0.8, "n_neighbors": 2, "bandwidth": "unit"}


def start_of_example():
    init = example.values("mifs", "init")
    return MIFSState(init["V"], init["B"], init["W"], example.X @ init["W"])


def solve_example(update, max_iter):
    model = MIFS(**EXAMPLE, update=update, max_iter=max_iter, tol=0.0)
    return model._descend(example.X, example.Y, start_of_example())


def problem_of(X, Y, n_neighbors=2, alpha=0.4, beta=1.0, gamma=0.8):
    return MIFSProblem(MIFS(alpha=alpha, beta=beta, gamma=gamma), X, Y, neighbor_graph(X, n_neighbors))


def plain_objective(X, Y, L, V, B, W, alpha=0.4, beta=1.0, gamma=0.8):
    """Compute the objective from its definition, with every matrix formed."""
    return (
        ((X @ W - V) ** 2).sum()
        + alpha * ((Y - V @ B) ** 2).sum()
        + beta * np.trace(V.T @ L @ V)
        + gamma * np.sqrt((W**2).sum(axis=1)).sum()
    )


def random_problem(seed, n_samples=15, n_features=6, n_labels=5, n_components=3):
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features))
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    return X, Y, random_start(X, Y, n_components, rng)


@pytest.mark.parametrize(("update", "short"), [("gauss-seidel", "gs"), ("jacobi", "jac")])
@pytest.mark.parametrize("rounds", [1, 5])
def test_gradient_rounds_of_the_worked_example(update, short, rounds):
    expected = example.values("mifs", f"{short}_it{rounds}")
    result = solve_example(update, rounds)
    np.testing.assert_allclose(result.extra["latent_coef"].T, expected["W"], rtol=1e-12)
    np.testing.assert_allclose(result.extra["coef"].T, expected["W"] @ expected["B"], rtol=1e-12)
    np.testing.assert_allclose(result.scores, expected["score"], rtol=1e-12)
    np.testing.assert_allclose(result.objective[-1], expected["J"], rtol=1e-13)


def test_objective_path_of_the_worked_example():
    history = solve_example("gauss-seidel", 300).objective
    np.testing.assert_allclose(
        history[:7], [3.666807, 2.730818, 2.459755, 2.366689, 2.272154, 2.176171, 2.076660], atol=5e-7
    )
    assert np.diff(history).max() < 0
    # Later rounds depend on rounding errors, because the gradient jumps where rows of W are near zero.
    assert 0.8 < history[-1] < 1.0


@pytest.mark.parametrize("rounds", [1, 5])
def test_exact_blocks_of_the_worked_example(rounds):
    problem = problem_of(example.X, example.Y)
    ridge = WeightedRidge(example.X)
    state = start_of_example()
    for _ in range(rounds):
        V = solve_latent_labels(problem, state)
        B = np.linalg.solve(V.T @ V, V.T @ example.Y)
        W = solve_feature_weights(problem, ridge, V, state.W)
        state = MIFSState(V, B, W, example.X @ W)
    expected = example.values("mifs", f"exact_it{rounds}")
    for name in ("V", "B", "W"):
        np.testing.assert_allclose(getattr(state, name), expected[name], rtol=1e-7)
    np.testing.assert_allclose(problem.objective(state), expected["J"], rtol=1e-10)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_objective_and_gradients_agree_with_the_plain_formula_and_finite_differences(kind):
    X, Y, state = random_problem(0)
    graph = neighbor_graph(X, 2)
    L = np.diag(graph.degrees) - graph.affinity.toarray()
    problem = MIFSProblem(MIFS(), kind(X), kind(Y), graph)
    assert problem.objective(state) == pytest.approx(plain_objective(X, Y, L, *state[:3]), rel=1e-12)
    for name in ("V", "B", "W"):
        numerical = example.numerical_gradient(
            lambda value, name=name: plain_objective(X, Y, L, *state._replace(**{name: value})[:3]),
            getattr(state, name),
        )
        np.testing.assert_allclose(getattr(problem, f"gradient_{name}")(state), numerical, atol=1e-6)


@pytest.mark.parametrize("update", ["gauss-seidel", "jacobi"])
@pytest.mark.parametrize("seed", range(3))
def test_cached_line_search_finds_the_steps_of_a_direct_one(update, seed):
    X, Y, state = random_problem(seed)
    graph = neighbor_graph(X, 5)
    L = np.diag(graph.degrees) - graph.affinity.toarray()
    problem = MIFSProblem(MIFS(), X, Y, graph)
    fast = MIFS(update=update, max_iter=10, tol=0.0)._descend(X, Y, state)

    def gradients():
        current = state._replace(P=X @ state.W)
        return [getattr(problem, f"gradient_{name}")(current) for name in ("V", "B", "W")]

    for _ in range(10):
        first = gradients()
        for place, name in enumerate(("V", "B", "W")):
            direction = (first if update == "jacobi" else gradients())[place]
            before = plain_objective(X, Y, L, *state[:3])
            for power in range(20):
                moved = state._replace(**{name: getattr(state, name) - 0.1**power * direction})
                if plain_objective(X, Y, L, *moved[:3]) - before <= -0.1 * 0.1**power * (direction**2).sum():
                    state = moved
                    break
    np.testing.assert_allclose(fast.objective[-1], plain_objective(X, Y, L, *state[:3]), rtol=1e-9)
    np.testing.assert_allclose(fast.extra["latent_coef"].T, state.W, rtol=1e-6, atol=1e-12)


def test_unit_ball_closes_the_escape():
    result = solve_example("unit-ball", 3000)
    assert result.objective[-1] == pytest.approx(2.49995, abs=5e-5)
    assert np.diff(result.objective).max() <= 1e-12
    W, WB = result.extra["latent_coef"].T, result.extra["coef"].T
    B = np.linalg.lstsq(W, WB, rcond=None)[0]
    assert np.linalg.norm(B, axis=1).max() <= 1 + 1e-6
    assert result.scores.max() > 1e-3


def test_number_of_latent_labels_is_capped_by_the_labels():
    X, Y = make_pml(50, 10, n_labels=4, random_state=2)
    assert MIFS(tol=1e-2, random_state=0).fit(X, Y).latent_coef_.shape == (4, 10)
    assert MIFS(tol=1e-2, n_components=2, random_state=0).fit(X, Y).latent_coef_.shape == (2, 10)


def test_early_stop_is_the_published_rule():
    X, Y = make_pml(100, 15, random_state=5)
    model = MIFS(max_iter=1000, random_state=0).fit(X, Y)
    change = np.abs(np.diff(model.objective_history_)) / model.objective_history_[1:]
    assert (change[:-1] > 1e-3).all()
    assert change[-1] <= 1e-3
