import numpy as np
import pytest
from scipy.optimize import minimize

import graph_examples as example
from labelsieve._numerics.graph import label_graph, neighbor_graph
from labelsieve.methods.drmfs import DRMFS

EXAMPLE = {"alpha": 0.5, "beta": 0.5, "gamma": 0.5, "n_neighbors": 2, "bandwidth": "unit"}


def published(max_iter, **options):
    """Run the multiplicative updates from the start of the worked example."""
    options = {**EXAMPLE, "solver": "multiplicative", "max_iter": max_iter, "tol": 0.0} | options
    return DRMFS(**options)._descend(example.X, example.Y, example.values("drmfs", "init")["W"])


@pytest.mark.parametrize("rounds", [1, 5])
def test_multiplicative_rounds_of_the_worked_example(rounds):
    expected = example.values("drmfs", f"it{rounds}")
    result = published(rounds)
    np.testing.assert_allclose(result.extra["coef"].T, expected["W"], rtol=1e-12)
    np.testing.assert_allclose(result.scores, expected["score"], rtol=1e-12)
    np.testing.assert_allclose(result.objective[-1], expected["J"], rtol=1e-13)


def test_objective_path_of_the_worked_example_and_published_stop():
    history = published(20).objective
    assert history[0] == pytest.approx(6.8934059764, abs=5e-11)
    np.testing.assert_allclose(
        history[:7], [6.893406, 6.162173, 5.874784, 5.734551, 5.661780, 5.623380, 5.602831], atol=5e-7
    )
    stopped = published(300, tol=1e-3)
    assert stopped.converged
    assert len(stopped.objective) - 1 == 9
    assert stopped.objective[-1] == pytest.approx(5.581464, abs=5e-7)


def test_published_stop_waits_for_the_third_round():
    assert len(published(300, tol=1.0).objective) - 1 == 3


@pytest.mark.parametrize(("solver", "max_iter"), [("multiplicative", 5000), ("accelerated", 1000)])
def test_both_solvers_reach_the_optimum_of_the_worked_example(solver, max_iter):
    optimum = example.values("drmfs", "optimum")
    result = published(max_iter, solver=solver)
    assert result.objective[-1] == pytest.approx(float(optimum["J"]), abs=1e-12)
    np.testing.assert_allclose(result.extra["coef"].T, optimum["W"], atol=1e-7)
    # Round 5 ranks feature 1 first, so stopping early gives another order than the optimum.
    np.testing.assert_array_equal(np.argsort(-result.scores), [0, 1, 3, 2])
    np.testing.assert_array_equal(np.argsort(-published(5).scores), [1, 0, 3, 2])


def random_problem(seed, n_samples=40, n_features=8, n_labels=5):
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features))
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    Y[:3] = 0  # rows without candidates
    return X, Y


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.1, 5.0, 0.01), (10.0, 0.0, 3.0), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize("bandwidth", ["unit", "median"])
def test_accelerated_solver_agrees_with_bounded_lbfgs(weights, bandwidth):
    X, Y = random_problem(0)
    alpha, beta, gamma = weights
    feature_graph = neighbor_graph(X.T, 3, bandwidth=bandwidth)
    graph_of_labels = label_graph(Y, 3, bandwidth=bandwidth)
    L_X = np.diag(feature_graph.degrees) - feature_graph.affinity.toarray()
    L_Y = np.diag(graph_of_labels.degrees) - graph_of_labels.affinity.toarray()

    def objective_and_gradient(flat):
        W = flat.reshape(8, 5)
        R = X @ W - Y
        loss, sizes = np.sqrt((R**2).sum(1) + 1e-16), np.sqrt((W**2).sum(1) + 1e-16)
        value = loss.sum() + alpha * np.trace(W.T @ L_X @ W) + beta * np.trace(W @ L_Y @ W.T)
        gradient = X.T @ (R / loss[:, None]) + 2 * alpha * L_X @ W + 2 * beta * W @ L_Y
        return value + gamma * sizes.sum(), (gradient + gamma * W / sizes[:, None]).ravel()

    reference = minimize(
        objective_and_gradient,
        np.full(40, 0.1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * 40,
        options={"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-10},
    )
    options = {"alpha": alpha, "beta": beta, "gamma": gamma, "n_neighbors": 3, "bandwidth": bandwidth}
    result = DRMFS(**options, max_iter=20000, tol=1e-13)._descend(X, Y)
    assert result.objective[-1] <= reference.fun + 1e-6
    assert result.objective[-1] == pytest.approx(reference.fun, rel=1e-5)
    np.testing.assert_allclose(result.extra["coef"].T, reference.x.reshape(8, 5), atol=5e-3)


def test_rows_that_are_fitted_exactly_do_not_break_the_weights():
    X = np.eye(6)
    Y = np.eye(6)[:, :3]
    for solver in ("accelerated", "multiplicative"):
        model = DRMFS(gamma=0.0, alpha=0.0, beta=0.0, solver=solver, max_iter=5000).fit(X, Y)
        np.testing.assert_allclose(model.coef_.T, Y, atol=1e-4)
