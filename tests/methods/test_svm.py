"""Stacked SVMs against libsvm."""

import numpy as np
import pytest
from sklearn.svm import SVC

from labelsieve.methods._particle.svm import solve_svms


def random_stack(rng, n_problems, n_rows, n_features, duplicates=False):
    """Padded problems whose sides overlap, with two rows at least."""
    X = rng.random((n_problems, n_rows, n_features))
    if duplicates:
        X = np.round(X)
    sizes = rng.integers(2, n_rows + 1, n_problems)
    is_used = np.arange(n_rows) < sizes[:, None]
    is_first = (rng.random(is_used.shape) < 0.4) & is_used
    is_first[:, 0], is_first[:, 1] = True, False
    return X, is_first, is_used


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("duplicates", [False, True])
def test_weights_and_offsets_equal_libsvms(C, duplicates):
    X, is_first, is_used = random_stack(np.random.default_rng(0), 40, 30, 6, duplicates)
    dual, intercept, converged = solve_svms(
        X @ X.transpose(0, 2, 1), is_first, is_used, C=C, tol=1e-9, max_iter=100_000
    )
    assert converged.all()
    for p in range(len(X)):
        svm = SVC(kernel="linear", C=C, tol=1e-6).fit(X[p, is_used[p]], is_first[p, is_used[p]])
        np.testing.assert_allclose(dual[p] @ X[p], svm.coef_[0], atol=2e-5)
        # The offset is unique only if a row lies strictly between its bounds.
        if ((abs(dual[p]) > 1e-9) & (abs(dual[p]) < C - 1e-9)).any():
            np.testing.assert_allclose(intercept[p], svm.intercept_[0], atol=2e-5)


def test_dual_coefficients_are_feasible():
    X, is_first, is_used = random_stack(np.random.default_rng(1), 40, 20, 4)
    dual, _, _ = solve_svms(X @ X.transpose(0, 2, 1), is_first, is_used, C=0.5, tol=1e-8, max_iter=10_000)
    assert (dual[~is_used] == 0).all()
    assert (dual[is_first] >= -1e-15).all()
    assert (dual[is_used & ~is_first] <= 1e-15).all()
    assert abs(dual).max() <= 0.5 + 1e-15
    np.testing.assert_allclose(dual.sum(axis=1), 0, atol=1e-12)


def test_problems_that_need_more_iterations_are_reported():
    X, is_first, is_used = random_stack(np.random.default_rng(2), 5, 20, 3)
    _, _, converged = solve_svms(X @ X.transpose(0, 2, 1), is_first, is_used, C=1.0, tol=1e-9, max_iter=2)
    assert not converged.all()


def test_equal_rows_on_both_sides_give_no_direction():
    dual, intercept, converged = solve_svms(
        np.ones((1, 2, 2)), np.array([[True, False]]), np.ones((1, 2), bool), C=1.0, tol=1e-8, max_iter=99
    )
    assert converged.all()
    np.testing.assert_allclose(dual, [[1.0, -1.0]])
    np.testing.assert_allclose(intercept, [0.0], atol=1e-12)
