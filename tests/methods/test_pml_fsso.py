import numpy as np
import pytest
import scipy.sparse as sp

import graph_examples as example
from labelsieve._numerics.graph import neighbor_graph
from labelsieve._numerics.norms import l21_weights
from labelsieve.datasets import make_pml
from labelsieve.methods.pml_fsso import PMLFSSO, PMLFSSOProblem, balanced_start, random_start
from oracles import check_multiplicative_update

EXAMPLE = {"alpha": 1.0, "beta": 0.5, "gamma": 0.1, "theta": 0.2}


def problem_of(X, Y, n_neighbors=5, **options):
    return PMLFSSOProblem(PMLFSSO(**options), X, Y, neighbor_graph(X, n_neighbors))


def start_of_example():
    init = example.values("pml_fsso", "init")
    return init["U"], init["V"], init["M"]


def sweeps(problem, start, n_sweeps):
    """Return states and objectives of plain sweeps, without over-relaxation."""
    state, path = problem.state(start), []
    for _ in range(n_sweeps):
        state, value = problem.sweep(state)
        path.append((state, value))
    return path


@pytest.mark.parametrize("update", ["exact", "coded"])
@pytest.mark.parametrize("n_sweeps", [1, 5])
def test_sweeps_of_the_worked_example(update, n_sweeps):
    problem = problem_of(example.X, example.Y, example.N_NEIGHBORS, **EXAMPLE, update=update)
    state, value = sweeps(problem, start_of_example(), n_sweeps)[-1]
    expected = example.values("pml_fsso", f"{update}_it{n_sweeps}")
    for name in ("U", "V", "M"):
        np.testing.assert_allclose(getattr(state, name), expected[name], rtol=1e-12)
    np.testing.assert_allclose((state.W**2).sum(axis=1), expected["score"], rtol=1e-12)
    objective = problem.objective(state, state.U.T @ example.X)
    np.testing.assert_allclose(objective, expected["J_theta"], rtol=1e-13)
    np.testing.assert_allclose(value, expected.get("reported", expected["J_theta"]), rtol=1e-13)


def test_exact_objective_path_of_the_worked_example():
    problem = problem_of(example.X, example.Y, example.N_NEIGHBORS, **EXAMPLE)
    path = [value for _, value in sweeps(problem, start_of_example(), 300)]
    np.testing.assert_allclose(path[:6], [10.38950, 9.85388, 9.28980, 8.72126, 8.24222, 7.89016], atol=5e-6)
    assert path[-1] == pytest.approx(6.85378, abs=5e-6)
    assert (np.diff(path) < 0).all()


def test_authors_code_end_to_end():
    # The authors draw U, V, M in this order from numpy's legacy generator with seed 2.
    draw = np.random.RandomState(2).rand
    start = draw(6, 4), draw(4, 3), draw(4, 4)
    result = PMLFSSO(**EXAMPLE, update="coded", max_iter=1000)._descend(example.X, example.Y, start)
    assert result.converged
    assert len(result.objective) - 1 == 41
    np.testing.assert_allclose(
        result.extra["coef"].T,
        [
            [0.0020427, 0.07625068, 1.06860431],
            [0.99698451, 0.1465297, 0.00008012],
            [0.00001935, 0.43100486, 0.00076898],
            [0.00011454, 0.43821694, 0.00033814],
        ],
        atol=5e-9,
    )


def test_updates_match_the_gradient():
    rng = np.random.default_rng(0)
    X, Y = rng.random((12, 5)), (rng.random((12, 4)) < 0.4).astype(float)
    problem = problem_of(X, Y, 3, alpha=0.7, beta=1.3, gamma=0.4, theta=0.6)
    U, V, M = random_start(X, Y, 3, rng)
    S, A = problem.graph.affinity.toarray(), np.diag(problem.graph.degrees)

    def J(U, V, M):
        return problem.objective(problem.state((U, V, M)), U.T @ X)

    ((new, _),) = sweeps(problem, (U, V, M), 1)
    W = M.T @ V
    D = l21_weights(W)[:, None]
    negative = M @ X.T @ Y + 0.7 * U.T @ Y
    positive = M @ X.T @ X @ W + 0.7 * U.T @ U @ V + 0.6 * M @ (D * W)
    check_multiplicative_update("V", new.V, V, negative, positive, lambda V: J(U, V, M))
    V = new.V
    negative = 0.7 * Y @ V.T + 1.3 * X @ M.T + 0.4 * S @ U
    positive = 0.7 * U @ V @ V.T + 1.3 * U @ M @ M.T + 0.4 * A @ U
    check_multiplicative_update("U", new.U, U, negative, positive, lambda U: J(U, V, M))
    U, W = new.U, M.T @ V
    D = l21_weights(W)
    negative = V @ Y.T @ X + 1.3 * U.T @ X
    positive = V @ W.T @ X.T @ X + 1.3 * U.T @ U @ M + 0.6 * (V @ W.T) * D
    check_multiplicative_update("M", new.M, M, negative, positive, lambda M: J(U, V, M))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_balanced_start_matches_the_means_of_the_data(kind):
    X, Y = make_pml(50, 20, density=0.4, random_state=1)
    U, V, M = balanced_start(kind(X), kind(Y), random_start(X, Y, 16, np.random.default_rng(0)))
    assert (U @ V).mean() == pytest.approx(Y.mean())
    assert (U @ M).mean() == pytest.approx(X.mean())
    assert (X @ M.T @ V).mean() == pytest.approx(Y.mean())


def test_over_relaxation_needs_fewer_sweeps():
    X, Y = make_pml(100, 20, random_state=3)
    start = balanced_start(X, Y, random_start(X, Y, 16, np.random.default_rng(0)))
    plain = [value for _, value in sweeps(problem_of(X, Y), start, 200)]
    relaxed = PMLFSSO(max_iter=130, tol=0.0)._descend(X, Y, start).objective
    assert relaxed[1] == pytest.approx(plain[0])  # the first sweep is not relaxed
    assert relaxed[-1] <= plain[-1]
