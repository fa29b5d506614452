import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from graph_examples import fill, numerical_gradient
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.result import iterate
from labelsieve._numerics.ridge import WeightedRidge, largest_eigenvalue
from labelsieve.datasets import make_pml
from labelsieve.methods import lcfs_pml
from labelsieve.methods.lcfs_pml import LCFSPML, LCFSPMLProblem, density_confidence, trusted_candidates
from oracles import solve_cone_program

# Worked example, computed independently of this library.
T = [
    [0.47215089, 0, 0],
    [0.36787944, 0.50810853, 0],
    [0, 0.36787944, 1],
    [0, 0, 0.51542657],
    [1, 0, 0.36787944],
    [0, 1, 0],
]
TRUSTED = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 1, 0]], dtype=float)
W_1 = [
    [0.32223035, -0.23560396, 0.95447798],
    [0.73126594, 0.07534715, -0.14496574],
    [-0.44014703, 0.41403288, -0.01274632],
    [-0.00559591, 0.58725096, -0.05488200],
]
S_1 = [
    [0.08378456, 0, 0.70558795],
    [0.88203170, -0.26047142, 0.27943549],
    [-0.64310556, 0.47163867, -0.70973660],
    [0, -0.05022271, 0],
]
LIMIT, LIMIT_SQUARES = 2.8452805765, [1.93321293, 0.38398272, 1.32677232, 0.33858115]


def problem_of(X, Y, trusted, *, alpha=1.0, beta=0.2, gamma=0.1):
    ridge = WeightedRidge(X)
    curvature = 2 * largest_eigenvalue(ridge.normal_product, X.shape[1])
    return LCFSPMLProblem(ridge, curvature, Y, trusted, alpha, beta, gamma)


def random_problem(seed, n_samples=40, n_features=8, n_labels=5, **weights):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_samples, n_features)) < 0.4, 0, rng.normal(size=(n_samples, n_features)))
    Y = (rng.random((n_samples, n_labels)) < 0.4).astype(float)
    return problem_of(X, Y, Y * (rng.random(Y.shape) < 0.7), **weights)


def plain_objective(problem, W, S):
    """Compute the objective from its definition, without smoothing."""
    X = problem.ridge.X.X
    return (
        ((X @ (W + S) - problem.Y) ** 2).sum()
        + problem.alpha * ((X @ W - problem.trusted) ** 2).sum()
        + problem.beta * np.sqrt((W**2).sum(axis=1)).sum()
        + problem.gamma * np.abs(S).sum()
    )


def test_confidence_and_trusted_labels_of_the_worked_example(tiny):
    t = density_confidence(*tiny, n_neighbors=2, lam=1.0)
    np.testing.assert_allclose(t, T, atol=5e-9)
    np.testing.assert_array_equal(trusted_candidates(t, theta=0.5, threshold="value"), TRUSTED)


def test_sweeps_of_the_worked_example(tiny):
    problem = problem_of(*tiny, TRUSTED)
    state = problem.state(fill(0.1, 1, 2, 4, (4, 3)) - 0.2, fill(0.1, 2, 1, 3, (4, 3)) - 0.2)
    path = [problem.objective(state)]
    assert path[0] == pytest.approx(12.3202505748, abs=5e-11)
    for sweep in range(1, 7):
        state, value = problem.sweep(state)
        path.append(value)
        if sweep == 1:
            np.testing.assert_allclose(state.W, W_1, atol=6e-9)
            np.testing.assert_allclose(state.S, S_1, atol=6e-9)
            assert value == pytest.approx(3.3561235080, abs=5e-11)
        if sweep == 5:
            # The example prints squared norms.
            squares = [1.84423294, 0.38836987, 1.20883460, 0.35078062]
            np.testing.assert_allclose(row_norms(state.W) ** 2, squares, atol=6e-9)
            assert value == pytest.approx(2.8476290822, abs=5e-11)
    expected = [12.320251, 3.356124, 2.963820, 2.876268, 2.853737, 2.847629, 2.845945]
    np.testing.assert_allclose(path, expected, atol=5e-7)


def test_limit_of_the_worked_example_from_its_own_start(tiny):
    problem = problem_of(*tiny, TRUSTED)
    state = problem.start()
    state, history, _ = iterate(problem.sweep, state, problem.objective(state), max_iter=2000, tol=1e-14)
    assert history[-1] == pytest.approx(LIMIT, abs=1e-9)
    np.testing.assert_allclose(row_norms(state.W) ** 2, LIMIT_SQUARES, atol=1e-5)
    np.testing.assert_array_equal(np.argsort(-row_norms(state.W)), [0, 2, 1, 3])


def minimum_by_clarabel(problem):
    """Solve the same problem as a second-order cone program."""
    X = problem.ridge.X.X
    n_features, n_labels = X.shape[1], problem.Y.shape[1]
    n_entries = n_features * n_labels
    XtX, one = np.kron(X.T @ X, np.eye(n_labels)), np.eye(n_entries)
    zero = np.zeros((n_entries, n_features))
    # Unknowns: W and S by rows, the norms r of the rows of W, the absolute values u of S.
    P = np.zeros((3 * n_entries + n_features,) * 2)
    P[:n_entries, :n_entries] = 2 * (1 + problem.alpha) * XtX
    P[:n_entries, n_entries : 2 * n_entries] = P[n_entries : 2 * n_entries, :n_entries] = 2 * XtX
    P[n_entries : 2 * n_entries, n_entries : 2 * n_entries] = 2 * XtX
    q = np.concatenate(
        [
            -2 * (X.T @ (problem.Y + problem.alpha * problem.trusted)).ravel(),
            -2 * (X.T @ problem.Y).ravel(),
            np.full(n_features, problem.beta),
            np.full(n_entries, problem.gamma),
        ]
    )
    norms = np.zeros((n_features * (n_labels + 1), len(q)))
    for feature in range(n_features):
        first = feature * (n_labels + 1)
        norms[first, 2 * n_entries + feature] = -1
        entries = feature * n_labels + np.arange(n_labels)
        norms[first + 1 + np.arange(n_labels), entries] = -1
    empty = np.zeros_like(one)
    sizes = np.block([[empty, one, zero, -one], [empty, -one, zero, -one]])
    A = np.vstack([norms, sizes])
    cones = [clarabel.SecondOrderConeT(n_labels + 1)] * n_features + [
        clarabel.NonnegativeConeT(2 * n_entries)
    ]
    solution = solve_cone_program(P, q, A, np.zeros(len(A)), cones)
    constant = (problem.Y**2).sum() + problem.alpha * (problem.trusted**2).sum()
    return solution.obj_val + constant


@pytest.mark.parametrize(
    "weights", [{"beta": 2.0, "gamma": 1.0}, {"beta": 10.0, "gamma": 0.5}, {"alpha": 0.2}]
)
@pytest.mark.parametrize("shape", [(40, 6), (8, 12)])
def test_interior_point_solver_finds_the_same_minimum(shape, weights):
    problem = random_problem(0, *shape, 3, **weights)
    state = problem.start()
    state, _, _ = iterate(problem.sweep, state, problem.objective(state), max_iter=3000, tol=1e-12)
    found = plain_objective(problem, state.W, state.S)
    minimum = minimum_by_clarabel(problem)
    # Smoothing adds at most sqrt(SMOOTHING) to every norm.
    smoothed = problem.beta * shape[1] * np.sqrt(lcfs_pml.SMOOTHING)
    assert minimum * (1 - 1e-7) <= found <= minimum * (1 + 1e-7) + smoothed


def test_objective_matches_the_definition_and_gradient_the_steps(monkeypatch):
    problem = random_problem(1, gamma=0.0)
    rng = np.random.default_rng(1)
    state = problem.state(rng.normal(size=(8, 5)), rng.normal(size=(8, 5)))
    assert problem.objective(state) == pytest.approx(plain_objective(problem, state.W, state.S), rel=1e-10)
    monkeypatch.setattr(lcfs_pml, "_INNER_STEPS", 1)
    W = problem.sweep(state)[0].W
    S = problem.sweep(state)[0].S
    slope_S = numerical_gradient(lambda S: plain_objective(problem, W, S), state.S)
    np.testing.assert_allclose(S, state.S - slope_S / problem.curvature, atol=1e-7)

    def bound(W):
        """Compute the objective with the quadratic bound of the row norms at the old W."""
        norms = row_norms(state.W)
        quadratic = ((W**2).sum(axis=1) / (2 * norms)).sum()
        return plain_objective(problem, W, state.S) + problem.beta * (quadratic - row_norms(W).sum())

    np.testing.assert_allclose(numerical_gradient(bound, W), 0, atol=1e-6)


def slow_confidence(X, Y, n_neighbors, lam):
    """Compute the confidences one row at a time."""
    t = np.zeros(Y.shape)
    for label in range(Y.shape[1]):
        rows = np.flatnonzero(Y[:, label])
        m = len(rows)
        distance = np.array([[np.linalg.norm(X[i] - X[j]) for j in rows] for i in rows])
        if m == 1:
            t[rows, label] = 1
            continue
        width = np.sort(distance.ravel())[int(0.02 * m * (m - 1)) + m]
        density = np.array([sum(np.exp(-((d / width) ** 2)) for d in line) - 1 for line in distance])
        away = np.array([min(distance[i, density > density[i]], default=-1) for i in range(m)])
        away[away < 0] = away.max()
        peaks = (density >= (density.max() + density.min()) / 2) & (away > (away.max() + away.min()) / 2)
        if not peaks.any():
            peaks = density == density.max()
        a = np.array([np.sort(np.delete(distance[i], i))[:n_neighbors].mean() for i in range(m)])
        c = distance[:, peaks].min(axis=1)
        a, c = a / a.max(), c / c.max()
        with np.errstate(invalid="ignore"):
            t[rows, label] = np.exp(-np.nan_to_num((1 + lam) * a * c / (lam * a + c)))
    return t


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0, 10.0])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_confidence_matches_the_definition_for_all_containers_and_blocks(monkeypatch, lam, kind):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((70, 4)) < 0.3, 0, rng.normal(size=(70, 4)))
    Y = (rng.random((70, 4)) < [0.9, 0.5, 0.2, 0.1]).astype(float)
    Y[:, 3] = np.arange(70) == 7
    expected = slow_confidence(X, Y, 6, lam)
    np.testing.assert_allclose(
        density_confidence(kind(X), kind(Y), n_neighbors=6, lam=lam), expected, atol=1e-9
    )
    cut = lcfs_pml.batches
    monkeypatch.setattr(lcfs_pml, "batches", lambda length, width: cut(length, width, budget=500))
    np.testing.assert_allclose(density_confidence(kind(X), Y, n_neighbors=6, lam=lam), expected, atol=1e-9)


def test_repeated_rows_have_distance_zero_and_a_single_positive_is_trusted():
    X = np.array([[1e3, 1.0], [1e3, 1.0], [1e3, 1.0], [0.0, 0.0]])
    t = density_confidence(X, np.array([[1, 0], [1, 0], [1, 0], [0, 1]]), n_neighbors=2, lam=1.0)
    np.testing.assert_array_equal(t, [[1, 0], [1, 0], [1, 0], [0, 1]])


def test_quantile_keeps_its_fraction_of_every_label():
    rng = np.random.default_rng(4)
    t = np.where(rng.random((200, 3)) < [0.9, 0.5, 0.0], rng.uniform(0.37, 1, (200, 3)), 0)
    trusted = trusted_candidates(t, theta=0.25, threshold="quantile")
    assert (trusted <= (t > 0)).all()
    np.testing.assert_allclose(trusted.sum(axis=0)[:2] / (t > 0).sum(axis=0)[:2], 0.75, atol=0.01)


@pytest.mark.parametrize("factor", [0.97, 1.03])
def test_automatic_weight_is_a_fraction_of_the_vanishing_weight(factor):
    X, Y = make_pml(100, 10, random_state=5)
    automatic = LCFSPML(theta=0.0).fit(X, Y)  # every candidate is trusted
    beta = automatic.beta_ / lcfs_pml.BETA_FRACTION * factor
    scores = LCFSPML(theta=0.0, beta=beta, gamma=1e9, tol=1e-12, max_iter=5000).fit(X, Y).scores_
    assert (scores.max() > 1e-4) == (factor < 1)
    gamma = automatic.gamma_ / lcfs_pml.GAMMA_FRACTION * factor
    problem = problem_of((X - X.mean(axis=0)) / X.std(axis=0), Y - Y.mean(axis=0), Y, beta=1e12, gamma=gamma)
    state = problem.start()
    state = iterate(problem.sweep, state, problem.objective(state), max_iter=300, tol=0)[0]
    assert state.S.any() == (factor < 1)


def test_rounds_end_when_trusted_labels_repeat_or_at_max_rounds():
    X, Y = make_pml(100, 10, noise=0.3, random_state=7)
    assert LCFSPML(max_rounds=1).fit(X, Y).n_rounds_ == 1
    # If every candidate is trusted, the second round would repeat the first.
    everything = LCFSPML(theta=0.0, max_rounds=9).fit(X, Y)
    assert everything.n_rounds_ == 1
    settled = LCFSPML(max_rounds=50).fit(X, Y)
    assert 1 < settled.n_rounds_ < 50
