"""Squared hinge solver compared with liblinear and L-BFGS-B."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize, minimize_scalar
from sklearn.svm import LinearSVC

from labelsieve import SumF
from labelsieve._numerics import squared_hinge
from labelsieve._numerics.squared_hinge import solve_squared_hinge
from labelsieve.classify import LabelwiseSVM


def problem(n_samples=120, n_features=8, n_labels=5, *, noise=0.5, seed=0):
    """Make sparse features, with a constant and a duplicate, and labels from rare to frequent."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.6)
    X[:, 1], X[:, -1] = 1, X[:, 0]
    scores = X @ rng.normal(size=(n_features, n_labels)) + noise * rng.normal(size=(n_samples, n_labels))
    return X, scores > np.quantile(scores, np.linspace(0.1, 0.95, n_labels), axis=0).diagonal()


def objective_and_gradient(weights, X, y, C):
    """Evaluate the definition row by row. The last weight is the intercept."""
    value, gradient = 0.5 * weights @ weights, weights.copy()
    for row, is_positive in zip(X, y, strict=True):
        extended, sign = np.append(row, 1.0), 1 if is_positive else -1
        margin = 1 - sign * (extended @ weights)
        if margin > 0:
            value += C * margin**2
            gradient -= 2 * C * margin * sign * extended
    return value, gradient


def weights_of(fit, label):
    return np.append(fit.coef[label], fit.intercept[label])


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("noise", [0.0, 2.0], ids=["separable", "noisy"])
@pytest.mark.parametrize("shape", [(120, 8), (15, 40)], ids=str)
def test_decision_values_equal_liblinear(C, noise, shape):
    X, Y = problem(*shape, noise=noise)
    fit = solve_squared_hinge(X, Y, C=C, tol=1e-10)
    assert fit.converged.all()
    for label, y in enumerate(Y.T):
        machine = LinearSVC(C=C, dual=False, tol=1e-10, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(
            X @ fit.coef[label] + fit.intercept[label], machine.decision_function(X), atol=1e-5
        )


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_solution_equals_lbfgs_and_the_gradient_vanishes(C):
    X, Y = problem(n_samples=60)
    fit = solve_squared_hinge(X, Y, C=C, tol=1e-9)
    for label, y in enumerate(Y.T):
        value, gradient = objective_and_gradient(weights_of(fit, label), X, y, C)
        start = np.zeros(X.shape[1] + 1)
        other = minimize(
            objective_and_gradient,
            start,
            (X, y, C),
            "L-BFGS-B",
            jac=True,
            options={"ftol": 1e-15, "gtol": 1e-9},
        )
        assert value <= other.fun * (1 + 1e-12)
        np.testing.assert_allclose(weights_of(fit, label), other.x, atol=1e-5)
        rarer = min(y.sum(), len(y) - y.sum()) / len(y)
        at_zero = np.linalg.norm(objective_and_gradient(start, X, y, C)[1])
        assert np.linalg.norm(gradient) <= 1e-9 * rarer * at_zero * 1.01


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, np.asfortranarray])
def test_matrix_formats_give_equal_results_and_do_not_change(kind, monkeypatch):
    X, Y = problem()
    expected = solve_squared_hinge(X, Y)
    given = kind(X)
    if sp.issparse(given):
        toarray = sp.csr_matrix.toarray

        def small_only(self, *args, **kwargs):
            assert self.shape[0] != X.shape[0], "the features were made dense"
            return toarray(self, *args, **kwargs)

        monkeypatch.setattr(type(given), "toarray", small_only)
    fit = solve_squared_hinge(given, Y)
    monkeypatch.undo()
    np.testing.assert_allclose(fit.coef, expected.coef, atol=1e-8)
    np.testing.assert_array_equal(given.toarray() if sp.issparse(given) else given, X)


def test_float32_features_are_solved_in_float64():
    X, Y = problem()
    X = X.astype(np.float32)
    fit, expected = solve_squared_hinge(X, Y), solve_squared_hinge(X.astype(np.float64), Y)
    assert fit.coef.dtype == np.float64
    np.testing.assert_array_equal(fit.coef, expected.coef)


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_many_features_need_no_gram_matrix(noise, monkeypatch):
    X, Y = problem(noise=noise)
    expected = solve_squared_hinge(X, Y, C=10.0)
    monkeypatch.setattr(squared_hinge, "_LARGEST_GRAM", 0)
    monkeypatch.setattr(squared_hinge, "cho_factor", None)
    for given in (X, sp.csr_matrix(X)):
        fit = solve_squared_hinge(given, Y, C=10.0)
        assert fit.converged.all()
        np.testing.assert_allclose(fit.coef, expected.coef, atol=1e-5)


def test_blocks_of_labels_affect_only_rounding(monkeypatch):
    X, Y = problem(n_labels=7)
    whole = solve_squared_hinge(X, Y, tol=1e-10)
    np.testing.assert_array_equal(solve_squared_hinge(X, Y, tol=1e-10).coef, whole.coef)
    monkeypatch.setattr(squared_hinge, "_BLOCK_ENTRIES", 2 * len(X))
    np.testing.assert_allclose(solve_squared_hinge(X, Y, tol=1e-10).coef, whole.coef, atol=1e-8)
    alone = solve_squared_hinge(X, Y[:, 3:4], tol=1e-10)
    np.testing.assert_allclose(alone.coef[0], whole.coef[3], atol=1e-8)


def test_every_step_lowers_the_objective():
    X, Y = problem(noise=0.1)
    fits = [solve_squared_hinge(X, Y, C=1000.0, max_iter=steps) for steps in range(20)]
    for label, y in enumerate(Y.T):
        values = [objective_and_gradient(weights_of(fit, label), X, y, 1000.0)[0] for fit in fits]
        assert (np.diff(values) <= 1e-12 * values[0]).all()
        assert values[-1] < 0.5 * values[0]
    assert [fit.n_iter.max() for fit in fits[:3]] == [0, 1, 2]
    assert not fits[1].converged.any()
    assert fits[-1].converged.all()


def test_line_search_finds_the_minimum():
    rng = np.random.default_rng(0)
    X, Y = np.hstack([rng.normal(size=(40, 3)), np.ones((40, 1))]), rng.random((40, 6)) < 0.4
    start = squared_hinge._Point.at(rng.normal(size=(4, 6)), X, Y, 2.0)
    D = -start.gradient  # far too long
    fraction = squared_hinge._line_minimum(start, D, X @ D, Y, 2.0)
    for label in range(6):

        def along(t, label=label):
            return objective_and_gradient(start.W[:, label] + t * D[:, label], X[:, :-1], Y[:, label], 2.0)[0]

        best = minimize_scalar(along, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
        assert along(fraction[label]) <= best.fun * (1 + 1e-6)


def test_overflowing_features_give_finite_weights():
    X, Y = problem()
    fit = solve_squared_hinge(X * 1e200, Y)
    assert not fit.converged.any()
    assert np.isfinite(fit.coef).all()
    with pytest.warns(UserWarning, match="5 of 5"):
        LabelwiseSVM(scale=None).fit(X * 1e200, Y.astype(int))


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_badly_scaled_features_are_solved(factor):
    X, Y = problem()
    X[:, 2:4] *= factor
    fit = solve_squared_hinge(X, Y)
    assert fit.converged.all()
    for label, y in enumerate(Y.T):
        other = minimize(objective_and_gradient, weights_of(fit, label), (X, y, 1.0), "L-BFGS-B", jac=True)
        assert objective_and_gradient(weights_of(fit, label), X, y, 1.0)[0] <= other.fun * (1 + 1e-9)


def test_empty_labels_and_empty_features():
    X, Y = problem()
    assert solve_squared_hinge(X, Y[:, :0]).coef.shape == (0, 8)
    # Only the intercept, with all rows active: b + 2 C (n b - sum y) = 0.
    fit = solve_squared_hinge(X[:, :0], Y)
    n, total = len(Y), np.where(Y, 1, -1).sum(axis=0)
    np.testing.assert_allclose(fit.intercept, 2 * total / (1 + 2 * n))


@pytest.mark.parametrize("name", ["birds", "cal500", "chd_49", "water_quality", "yeast"])
def test_decision_values_on_real_data_equal_liblinear(name, real):
    X, Y = real(name)
    X = X[:, np.argsort(-SumF().fit(X, Y).scores_, kind="stable")[: X.shape[1] // 5]]
    machine = LabelwiseSVM().fit(X, Y)
    scaled = machine.scaling_.apply(X)
    for label, y in enumerate(Y.T):
        exact = LinearSVC(dual=False, tol=1e-10, max_iter=100_000).fit(scaled, y)
        ours = scaled @ machine.coef_[label] + machine.intercept_[label]
        np.testing.assert_allclose(ours, exact.decision_function(scaled), rtol=0, atol=1e-4)
