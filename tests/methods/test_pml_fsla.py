import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import lsq_linear
from sklearn.cluster import OPTICS

from graph_examples import fill
from labelsieve._numerics.norms import l21_weights, multiplicative_step
from labelsieve.datasets import make_pml
from labelsieve.methods.pml_fsla import (
    PMLFSLA,
    PMLFSLAProblem,
    number_of_clusters,
    project_rows_on_simplex,
    random_start,
)
from oracles import check_multiplicative_update

EXAMPLE = {"alpha": 1.0, "beta": 0.5, "gamma": 0.2}


def start_of_example():
    """Return Q, L, P and M."""
    return (
        fill(0.2, 1, 1, 4, (4, 2)),
        fill(0.2, 1, 2, 4, (6, 2)),
        fill(0.3, 2, 1, 3, (6, 2)),
        fill(0.3, 2, 1, 3, (2, 3)),
    )


def solve_example(data, update, max_iter, tol=0.0, rank_by="qm", **weights):
    model = PMLFSLA(**EXAMPLE | weights, rank_by=rank_by, update=update, max_iter=max_iter, tol=tol)
    return model._descend(*data, start_of_example())


def states_of(X, Y, start, update, n_sweeps, **weights):
    """Return the start and the state after each sweep."""
    problem = PMLFSLAProblem(PMLFSLA(**weights, update=update), X, Y != 0)
    states = [problem.start(start, Y)]
    for _ in range(n_sweeps):
        states.append(problem.sweep(states[-1])[0])
    return states


def plain_objective(X, Q, L, P, M, T, alpha, beta, gamma):
    """Compute the objective from its definition, with every matrix formed."""
    return (
        ((X - L @ Q.T) ** 2).sum()
        + alpha * ((T - P @ M) ** 2).sum()
        + beta * ((L - P) ** 2).sum()
        + gamma * np.sqrt(((Q @ M) ** 2).sum(axis=1)).sum()
    )


#: Q, M and some rows of T of the worked example, by update and number of sweeps.
FACTORS = {
    ("exact", 1): (
        [
            [0.51686089, 0.58414365],
            [0.46127456, 0.81591947],
            [0.59203735, 0.71266032],
            [0.96620055, 0.41423339],
        ],
        [[0.21279002, 0.40274247, 0.44816579], [0.46450557, 0.29349879, 0.30199488]],
        {0: [1, 0, 0], 1: [0.505, 0.495, 0], 4: [0.465, 0, 0.535]},
    ),
    ("exact", 5): (
        [
            [0.71956789, 0.29746765],
            [0.19011181, 0.91716651],
            [0.54424995, 0.56024073],
            [0.87007311, 0.32463761],
        ],
        [[0.01340554, 0.39164839, 0.59079009], [0.73841874, 0.17512288, 0.04506570]],
        {1: [0.58980869, 0.41019131, 0], 4: [0.58990399, 0, 0.41009601]},
    ),
    ("coded", 1): (
        [
            [0.51686089, 0.58414365],
            [0.46127456, 0.81591947],
            [0.59203735, 0.71266032],
            [0.96620055, 0.41423339],
        ],
        [[0.21103284, 0.39733326, 0.45548358], [0.46174245, 0.29052231, 0.30649072]],
        {1: [0.50847458, 0.49152542, 0], 4: [0.44776119, 0, 0.55223881]},
    ),
}


@pytest.mark.parametrize(("update", "n_sweeps"), FACTORS)
def test_factors_of_the_worked_example(update, n_sweeps, tiny):
    state = states_of(*tiny, start_of_example(), update, n_sweeps, **EXAMPLE)[-1]
    Q, M, rows_of_T = FACTORS[update, n_sweeps]
    np.testing.assert_allclose(state.Q, Q, atol=5e-9)
    np.testing.assert_allclose(state.M, M, atol=5e-9)
    for row, expected in rows_of_T.items():
        np.testing.assert_allclose(state.T[row], expected, atol=5e-9)


@pytest.mark.parametrize(
    ("update", "n_sweeps", "value", "scores"),
    [
        ("exact", 1, 4.7602518863, [0.45601023, 0.61383776, 0.64013995, 0.73072651]),
        ("exact", 5, 3.0873641961, [0.35637497, 0.54099776, 0.39437726, 0.50077213]),
        ("coded", 1, 4.7649752716, None),
        ("coded", 5, 3.0705662056, [0.35587529, 0.56366735, 0.39962894, 0.49854525]),
    ],
)
def test_objective_and_scores_of_the_worked_example(update, n_sweeps, value, scores, tiny):
    result = solve_example(tiny, update, n_sweeps)
    assert result.objective[-1] == pytest.approx(value, abs=5e-11)
    if scores:
        np.testing.assert_allclose(result.scores, scores, atol=5e-9)
    np.testing.assert_allclose((result.extra["coef"] ** 2).sum(axis=0), result.scores, rtol=1e-12)


def test_path_of_the_worked_example_and_early_stopping(tiny):
    path = solve_example(tiny, "exact", 6).objective
    np.testing.assert_allclose(
        path, [6.707169, 4.760252, 4.322233, 3.852456, 3.420226, 3.087364, 2.848564], atol=5e-7
    )
    for update, n_sweeps, value in (("exact", 44, 2.1601517614), ("coded", 43, 2.1872271469)):
        stopped = solve_example(tiny, update, 500, tol=1e-3)
        assert len(stopped.objective) - 1 == n_sweeps
        assert stopped.objective[-1] == pytest.approx(value, abs=5e-11)
    ends = [solve_example(tiny, update, 5000) for update in ("exact", "coded")]
    assert ends[0].objective[-1] == pytest.approx(2.0394168886, abs=5e-11)
    np.testing.assert_array_equal(np.argsort(-ends[0].scores), [1, 3, 2, 0])
    for end, expected in zip(ends, ([0.7601, 0, 0.2399], [0.9572, 0, 0.0428]), strict=True):
        np.testing.assert_allclose(end.extra["label_confidence"][4], expected, atol=5e-5)


def test_rank_by_q(tiny):
    orders = [np.argsort(-solve_example(tiny, "exact", 1, rank_by=rank_by).scores) for rank_by in ("qm", "q")]
    np.testing.assert_array_equal(orders, [[3, 2, 1, 0], [3, 1, 2, 0]])


def random_problem(seed, n_samples=12, n_features=5, n_labels=4, n_components=3):
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features))
    Y = (rng.random((n_samples, n_labels)) < 0.5).astype(float)
    Y[1] = 0  # a row without candidates
    return X, Y, random_start(X, Y, n_components, rng)


def test_exact_updates_match_the_gradient():
    X, Y, (Q, L, P, M) = random_problem(0)
    a, b, g = weights = (0.7, 1.3, 0.4)

    def J(Q, L, P, M, T):
        return plain_objective(X, Q, L, P, M, T, *weights)

    start, new = states_of(X, Y, (Q, L, P, M), "exact", 1, alpha=a, beta=b, gamma=g)
    T = start.T
    D = l21_weights(Q @ M)[:, None]
    check_multiplicative_update(
        "Q", new.Q, Q, X.T @ L, Q @ L.T @ L + g * (D * (Q @ M)) @ M.T, lambda Q: J(Q, L, P, M, T)
    )
    Q = new.Q
    check_multiplicative_update("L", new.L, L, X @ Q + b * P, L @ Q.T @ Q + b * L, lambda L: J(Q, L, P, M, T))
    L, T = new.L, new.T
    check_multiplicative_update(
        "P", new.P, P, a * T @ M.T + b * L, a * P @ M @ M.T + b * P, lambda P: J(Q, L, P, M, T)
    )
    P, D = new.P, l21_weights(Q @ M)[:, None]
    positive = a * P.T @ P @ M + g * Q.T @ (D * (Q @ M))
    check_multiplicative_update("M", new.M, M, a * P.T @ T, positive, lambda M: J(Q, L, P, M, T))


@pytest.mark.parametrize(
    ("weights", "largest_rise"), [((100, 1, 10), 4.6e3), ((0.01, 1, 1), 0.05), ((10, 1, 0.1), 12)]
)
def test_coded_updates_can_increase_the_objective(weights, largest_rise, tiny):
    weights = dict(zip(("alpha", "beta", "gamma"), weights, strict=True))
    coded, exact = (solve_example(tiny, update, 500, **weights) for update in ("coded", "exact"))
    assert np.diff(coded.objective).max() == pytest.approx(largest_rise, rel=0.03)
    assert np.diff(exact.objective).max() <= 1e-12 * exact.objective[0]
    if weights["alpha"] == 10:
        np.testing.assert_array_equal(np.argsort(-coded.scores), [0, 2, 3, 1])
        np.testing.assert_array_equal(np.argsort(-exact.scores), [1, 3, 2, 0])


@pytest.mark.parametrize("largest", [1.0, np.inf])
def test_repeated_capped_steps_match_an_independent_solver(largest):
    X, _, (Q, L, P, _) = random_problem(3, n_samples=20)
    Q = Q / 2  # small enough for the cap to be active
    for _ in range(5000):
        L = np.minimum(multiplicative_step(L, X @ Q + 0.05 * P, L @ (Q.T @ Q) + 0.05 * L), largest)
    # Minimising |X - LQ'|^2 + 0.05 |L - P|^2 is a bounded least-squares problem per row.
    design = np.vstack([Q, np.sqrt(0.05) * np.eye(3)])
    expected = [
        lsq_linear(design, np.append(x, np.sqrt(0.05) * p), (0, largest), method="bvls", tol=1e-12).x
        for x, p in zip(X, P, strict=True)
    ]
    np.testing.assert_allclose(L, expected, atol=1e-5)
    assert (L.max() == 1) == (largest == 1)


@given(
    arrays(np.float64, (3, 4), elements=st.floats(-2, 2)), arrays(np.bool_, (3, 4), elements=st.booleans())
)
def test_simplex_projection_satisfies_the_optimality_conditions(M, allowed):
    projected = project_rows_on_simplex(M, allowed)
    for row, given_row, places in zip(projected, M, allowed, strict=True):
        assert (row[~places] == 0).all()
        if not places.any():
            continue
        assert row.min() >= 0
        assert row.sum() == pytest.approx(1)
        # One level is subtracted from all entries and the result is clipped at 0.
        lowered = (given_row - row)[places & (row > 0)]
        np.testing.assert_allclose(lowered, lowered[0], atol=1e-12)
        assert (given_row[places & (row == 0)] <= lowered[0] + 1e-12).all()


@pytest.mark.filterwarnings("ignore:PMLFSLA did not converge")
def test_cleaned_labels_are_distributions_over_the_candidates():
    X, Y = make_pml(60, 12, n_labels=6, random_state=0)
    Y[3] = 0
    for update in ("bounded", "coded"):
        T = PMLFSLA(update=update, max_iter=20, tol=1e-2, random_state=0).fit(X, Y).label_confidence_
        assert (T[Y == 0] == 0).all()
        np.testing.assert_allclose(T.sum(axis=1), Y.any(axis=1), atol=1e-12)
    sparse = PMLFSLA(max_iter=20, tol=1e-2, random_state=0).fit(X, sp.csr_matrix(Y)).label_confidence_
    assert sp.issparse(sparse)


def test_number_of_clusters_matches_optics():
    X = np.random.default_rng(0).random((300, 2))
    found = OPTICS(min_samples=5, xi=0.05, min_cluster_size=0.01).fit(X).labels_
    assert number_of_clusters(X) == number_of_clusters(sp.csr_matrix(X)) == len({*found} - {-1})
    assert number_of_clusters(np.ones((10, 2))) == 1
