import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize, nnls

from graph_examples import fill
from labelsieve._numerics.norms import l21_weights, multiplicative_step
from labelsieve.methods.scmfs import SCMFS, SCMFSProblem, bounded_loadings, random_start
from oracles import check_multiplicative_update, solve_cone_program

EXAMPLE = {"alpha": 0.5, "beta": 1.0, "gamma": 0.2}


def start_of_example():
    """Return W, V, Q and B."""
    return (
        fill(0.1, 1, 2, 3, (4, 2)),
        fill(0.2, 1, 2, 4, (6, 2)),
        fill(0.2, 1, 1, 4, (2, 4)),
        fill(0.3, 2, 1, 3, (2, 3)),
    )


def solve_example(data, update, max_iter, tol=0.0, **weights):
    weights = EXAMPLE | weights
    model = SCMFS(**weights, update=update, max_iter=max_iter, tol=tol)
    return model._descend(*data, start_of_example())


def factors_after(X, Y, start, n_sweeps, update, alpha, beta, gamma):
    """Return the four factors after some sweeps."""
    problem = SCMFSProblem(SCMFS(alpha=alpha, beta=beta, gamma=gamma, update=update), X, Y)
    W, V, Q, B = start
    state = problem.state(W, V, np.hstack([np.sqrt(alpha) * Q, np.sqrt(beta) * B]))
    for _ in range(n_sweeps):
        state, _ = problem.sweep(state)
    n_features = X.shape[1]
    Q, B = state.Z[:, :n_features] / np.sqrt(alpha), state.Z[:, n_features:] / np.sqrt(beta)
    return state.W, state.V, Q, B


def plain_objective(X, Y, W, V, Q, B, alpha, beta, gamma):
    """Compute the objective from its definition, with every matrix formed."""
    return (
        ((X @ W - V) ** 2).sum()
        + alpha * ((X - V @ Q) ** 2).sum()
        + beta * ((Y - V @ B) ** 2).sum()
        + gamma * np.sqrt((W**2).sum(axis=1)).sum()
    )


def test_one_published_sweep_of_the_worked_example(tiny):
    W, V, Q, B = factors_after(*tiny, start_of_example(), 1, "published", **EXAMPLE)
    expected_W = [
        [0.10467866, 0.19201686], [0.13788092, 0.10153658], [0.23986605, 0.15072755], [0.08443075, 0.21842094]
    ]  # fmt: skip
    expected_Q = [
        [0.42345190, 0.36909784, 0.45137051, 0.75932309], [0.51406228, 0.60965823, 0.52818411, 0.31301952]
    ]  # fmt: skip
    expected_B = [[0.28732721, 0.65510138, 0.61162186], [0.67754546, 0.46002458, 0.39670346]]
    np.testing.assert_allclose(W, expected_W, atol=5e-9)
    np.testing.assert_allclose(V[0], [0.23683609, 0.45452971], atol=5e-9)
    np.testing.assert_allclose(Q, expected_Q, atol=5e-9)
    np.testing.assert_allclose(B, expected_B, atol=5e-9)
    result = solve_example(tiny, "published", 1)
    assert result.objective[1] == pytest.approx(5.8167943835, abs=5e-11)
    np.testing.assert_allclose(result.scores, [0.04782810, 0.02932083, 0.08025452, 0.05483626], atol=5e-9)
    np.testing.assert_allclose(result.extra["coef"].T, W @ B, rtol=1e-12)


def test_published_path_of_the_worked_example_and_early_stopping(tiny):
    W, V, *_ = factors_after(*tiny, start_of_example(), 5, "published", **EXAMPLE)
    expected_W = [
        [0.26744708, 0.17944501], [0.11405961, 0.27545108], [0.31443608, 0.16222871], [0.13166125, 0.22044664]
    ]  # fmt: skip
    np.testing.assert_allclose(W, expected_W, atol=5e-9)
    np.testing.assert_allclose(V[0], [0.05868683, 0.58242309], atol=5e-9)
    path = solve_example(tiny, "published", 6).objective
    np.testing.assert_allclose(
        path, [7.746623, 5.816794, 5.276445, 4.951275, 4.557341, 4.176146, 3.872637], atol=5e-7
    )
    assert path[5] == pytest.approx(4.1761456773, abs=5e-11)
    stopped = solve_example(tiny, "published", 500, tol=1e-3)
    assert len(stopped.objective) - 1 == 43
    assert stopped.objective[-1] == pytest.approx(2.9637945968, abs=5e-11)
    np.testing.assert_allclose(stopped.scores, [0.14217195, 0.09305123, 0.00355850, 0.00167463], atol=5e-9)


def test_bounded_path_of_the_worked_example(tiny):
    W, *_ = factors_after(*tiny, start_of_example(), 5, "bounded", **EXAMPLE)
    expected_W = [
        [0.39212256, 0.23193607], [0.14399691, 0.37872011], [0.43617961, 0.23183778], [0.17548175, 0.32571334]
    ]  # fmt: skip
    np.testing.assert_allclose(W, expected_W, atol=5e-9)
    result = solve_example(tiny, "bounded", 5000)
    np.testing.assert_allclose(
        result.objective[:6],
        [7.74662349, 5.90159139, 5.32330890, 5.00060223, 4.75439852, 4.54860348],
        atol=5e-9,
    )
    assert result.objective[-1] == pytest.approx(3.5564844006, abs=5e-11)
    # The factors are only accurate to the square root of the accuracy of the objective.
    np.testing.assert_allclose(result.scores, [2.04767721, 1.70086156, 0, 0.00138733], atol=1e-6)
    assert np.sqrt(result.scores.sum()) == pytest.approx(1.936, abs=5e-4)


def random_problem(seed, n_samples=12, n_features=5, n_labels=4, n_components=3):
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features))
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    return X, Y, random_start(X, Y, n_components, rng)


def test_published_updates_match_the_gradient():
    X, Y, (W, V, Q, B) = random_problem(0)
    weights = {"alpha": 0.7, "beta": 1.3, "gamma": 0.4}

    def J(W, V, Q, B):
        return plain_objective(X, Y, W, V, Q, B, **weights)

    new_W, new_V, new_Q, new_B = factors_after(X, Y, (W, V, Q, B), 1, "published", **weights)
    positive = X.T @ X @ W + 0.4 * l21_weights(W)[:, None] * W
    check_multiplicative_update("W", new_W, W, X.T @ V, positive, lambda W: J(W, V, Q, B))
    W = new_W
    negative = X @ W + 0.7 * X @ Q.T + 1.3 * Y @ B.T
    positive = V + V @ (0.7 * Q @ Q.T + 1.3 * B @ B.T)
    check_multiplicative_update("V", new_V, V, negative, positive, lambda V: J(W, V, Q, B))
    V = new_V
    check_multiplicative_update("Q", new_Q, Q, V.T @ X, V.T @ V @ Q, lambda Q: J(W, V, Q, B), 0.7)
    check_multiplicative_update("B", new_B, B, V.T @ Y, V.T @ V @ B, lambda B: J(W, V, Q, B), 1.3)


def test_repeated_bounded_steps_match_an_independent_solver():
    rng = np.random.default_rng(1)
    V, T = rng.random((20, 3)), 2 * rng.random((20, 6))
    Z = np.full((3, 6), 0.1)
    for _ in range(500):
        Z = bounded_loadings(V.T @ V, V.T @ T, Z)
    # Minimise |T - VZ|^2 over Z >= 0 with rows in the unit ball, a second-order cone constraint.
    blocks, offsets = [-sp.eye(18)], [np.zeros(18)]
    for row in range(3):
        members = sp.csr_matrix((np.ones(6), (range(6), range(6 * row, 6 * row + 6))), shape=(6, 18))
        blocks += [sp.csr_matrix((1, 18)), -members]
        offsets += [np.ones(1), np.zeros(6)]
    cones = [clarabel.NonnegativeConeT(18), *[clarabel.SecondOrderConeT(7)] * 3]
    solution = solve_cone_program(
        sp.kron(2 * V.T @ V, sp.eye(6)),
        -2 * (V.T @ T).ravel(),
        sp.vstack(blocks),
        np.concatenate(offsets),
        cones,
    )
    expected = np.reshape(solution.x, (3, 6))
    np.testing.assert_allclose(Z, expected, atol=1e-4)
    assert ((T - V @ Z) ** 2).sum() == pytest.approx(((T - V @ expected) ** 2).sum(), rel=1e-7)
    assert np.linalg.norm(Z, axis=1).max() == pytest.approx(1)  # the bound is active


def test_repeated_steps_on_one_factor_match_an_independent_solver():
    X, Y, (W, V, Q, B) = random_problem(2, n_samples=25)
    problem = SCMFSProblem(SCMFS(alpha=0.7, beta=1.3, gamma=2.0), X, Y)
    Z = np.hstack([np.sqrt(0.7) * Q, np.sqrt(1.3) * B])

    state = problem.state(W, V, Z)
    for _ in range(3000):
        state = problem.sweep(state)[0]._replace(V=V, Z=Z)  # update only W

    def objective_and_gradient(flat):
        W = flat.reshape(5, 3)
        R, sizes = X @ W - V, np.sqrt((W**2).sum(axis=1) + 1e-16)
        gradient = 2 * X.T @ R + 2.0 * W / sizes[:, None]
        return (R**2).sum() + 2.0 * sizes.sum(), gradient.ravel()

    options = {"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-10}
    reference = minimize(
        objective_and_gradient, np.full(15, 0.1), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 15, options=options
    )  # fmt: skip
    assert objective_and_gradient(state.W.ravel())[0] == pytest.approx(reference.fun, rel=1e-7)
    # Each row of V solves a non-negative least-squares problem.
    P, moving = X @ W, V
    for _ in range(3000):
        moving = multiplicative_step(moving, P + problem.target(Z), moving + moving @ (Z @ Z.T))
    design = np.vstack([np.eye(3), Z.T])
    T = np.hstack([np.sqrt(0.7) * X, np.sqrt(1.3) * Y])
    expected = [nnls(design, np.append(p, t))[0] for p, t in zip(P, T, strict=True)]
    np.testing.assert_allclose(moving, expected, atol=1e-5)


def test_bounded_loadings_of_an_empty_factor_do_not_change():
    Z = np.full((2, 3), 0.5)
    np.testing.assert_array_equal(bounded_loadings(np.zeros((2, 2)), np.zeros((2, 3)), Z), Z)
