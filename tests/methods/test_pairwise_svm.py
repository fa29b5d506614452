"""Pairwise training and votes compared with loops, and stacked SVMs with libsvm."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from labelsieve.methods import _pairwise_svm as pairwise_svm
from labelsieve.methods._pairwise_svm import (
    count_votes,
    mean_weights,
    solve_svms,
    stacked_norms,
    train_pairwise,
)


@pytest.fixture
def problem():
    """Make rows, credible labels and candidates. Label 4 is always a candidate, and label 5 is never credible."""
    rng = np.random.default_rng(0)
    X = np.round(rng.random((80, 7)) * (rng.random((80, 7)) < 0.6), 3)
    candidate = rng.random((80, 6)) < 0.5
    candidate[:, 4] = True
    credible = candidate & (rng.random((80, 6)) < 0.4)
    credible[:, 5] = False
    return X, credible, candidate


def slow_pairs(X, credible, candidate):
    """Compute weights, offset and training accuracy of libsvm for every pair, from the definition."""
    trained = {}
    for j, k in combinations(range(credible.shape[1]), 2):
        first = [i for i in range(len(X)) if credible[i, j] and not candidate[i, k]]
        second = [i for i in range(len(X)) if credible[i, k] and not candidate[i, j] and i not in first]
        if first and second:
            rows, y = X[first + second], np.r_[np.ones(len(first)), np.zeros(len(second))]
            svm = SVC(kernel="linear", C=1.0, tol=1e-7).fit(rows, y)
            trained[j, k] = svm.coef_[0], svm.intercept_[0], svm.score(rows, y)
    return trained


@pytest.mark.parametrize("stack_rows", [0, 20, 128])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_every_solver_gives_the_solution_of_libsvm(problem, stack_rows, kind, monkeypatch):
    monkeypatch.setattr(pairwise_svm, "STACK_ROWS", stack_rows)
    X, credible, candidate = problem
    trained = train_pairwise(kind(X), credible, candidate, C=1.0)
    expected = slow_pairs(X, credible, candidate)
    assert list(zip(trained.first, trained.second, strict=True)) == list(expected)
    coef, intercept, accuracy = (np.array(values) for values in zip(*expected.values(), strict=True))
    tolerance = 1e-2 if stack_rows < 128 else 1e-5  # libsvm stops at a violation of 1e-3
    np.testing.assert_allclose(trained.coef, coef, atol=tolerance)
    np.testing.assert_allclose(trained.intercept, intercept, atol=tolerance)
    np.testing.assert_allclose(trained.accuracy, accuracy, atol=0.05 if stack_rows < 128 else 1e-12)


def test_large_problems_are_solved_without_precomputed_products(problem, monkeypatch):
    X, credible, candidate = problem
    expected = train_pairwise(X, credible, candidate, C=1.0)
    monkeypatch.setattr(pairwise_svm, "STACK_ROWS", 0)
    monkeypatch.setattr(pairwise_svm, "BUDGET", 1)
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(
            train_pairwise(rows, credible, candidate, C=1.0).coef, expected.coef, atol=1e-2
        )


def test_unfinished_problems_of_a_stack_go_to_libsvm(problem, monkeypatch):
    X, credible, candidate = problem
    expected = train_pairwise(X, credible, candidate, C=1.0)
    monkeypatch.setattr(pairwise_svm, "STACK_MAX_ITER", 1)
    np.testing.assert_allclose(train_pairwise(X, credible, candidate, C=1.0).coef, expected.coef, atol=1e-2)


@pytest.mark.parametrize("block_size", [1, 300, 2**22])
def test_the_result_does_not_depend_on_the_size_of_stacks(problem, block_size, monkeypatch):
    X, credible, candidate = problem
    expected = train_pairwise(X, credible, candidate, C=1.0)
    votes = count_votes(X, expected, 6)
    monkeypatch.setattr(pairwise_svm, "BUDGET", block_size)
    np.testing.assert_allclose(train_pairwise(X, credible, candidate, C=1.0).coef, expected.coef, atol=1e-7)
    np.testing.assert_array_equal(count_votes(X, expected, 6), votes)


def test_a_row_on_both_sides_counts_for_the_first_label():
    # Both labels are credible in row 0 without being candidates, as the reference code can produce.
    X = np.array([[0.0], [2.0]])
    credible = np.array([[True, True], [False, True]])
    nothing = np.zeros((2, 2), dtype=bool)
    trained = train_pairwise(X, credible, nothing, C=1.0)
    np.testing.assert_allclose(trained.coef, [[-1.0]])
    assert len(train_pairwise(X, credible[[0, 0]], nothing, C=1.0).first) == 0


def test_votes_weights_and_norms_match_loops(problem):
    X, credible, candidate = problem
    trained = train_pairwise(X, credible, candidate, C=1.0)
    votes, W, n_trained, squares = np.zeros((80, 6)), np.zeros((6, 7)), np.zeros(6), np.zeros(7)
    for p, (j, k) in enumerate(zip(trained.first, trained.second, strict=True)):
        a = trained.accuracy[p]
        for i in range(80):
            winner = j if X[i] @ trained.coef[p] + trained.intercept[p] > 0 else k
            votes[i, winner] += a
        W[j] += a * trained.coef[p]
        W[k] -= a * trained.coef[p]
        n_trained[[j, k]] += 1
        squares += (a * trained.coef[p]) ** 2
    np.testing.assert_allclose(count_votes(X, trained, 6, trained.accuracy), votes)
    np.testing.assert_allclose(count_votes(sp.csr_matrix(X), trained, 6, trained.accuracy), votes)
    np.testing.assert_allclose(
        mean_weights(trained, 6, trained.accuracy), W / np.maximum(n_trained, 1)[:, None], atol=1e-12
    )
    np.testing.assert_allclose(stacked_norms(trained, trained.accuracy), np.sqrt(squares))
    whole = count_votes(X, trained, 6)
    np.testing.assert_array_equal(whole.sum(axis=1), len(trained.first))


def test_unsolved_problems_are_reported_in_one_warning(problem, monkeypatch):
    monkeypatch.setattr(pairwise_svm, "STACK_ROWS", 0)
    monkeypatch.setattr(pairwise_svm, "LIBSVM_MAX_ITER", 2)
    with pytest.warns(ConvergenceWarning, match="6 of 6") as record:
        train_pairwise(*problem, C=1.0)
    assert len(record) == 1


def random_stack(rng, n_problems, n_rows, n_features, duplicates=False):
    """Make padded problems with overlapping sides and at least two rows."""
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
def test_weights_and_offsets_equal_those_of_libsvm(C, duplicates):
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


def test_equal_rows_on_both_sides_give_zero_weights():
    dual, intercept, converged = solve_svms(
        np.ones((1, 2, 2)), np.array([[True, False]]), np.ones((1, 2), bool), C=1.0, tol=1e-8, max_iter=99
    )
    assert converged.all()
    np.testing.assert_allclose(dual, [[1.0, -1.0]])
    np.testing.assert_allclose(intercept, [0.0], atol=1e-12)
