"""Support with unknown labels, against regressions that leave out one row after the other."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import labelsieve as ls
from labelsieve._candidates import split_unknown
from labelsieve.inspection._leave_one_out import explain_by_other_labels
from labelsieve.inspection._reviews import RIGHT, WRONG, Review
from labelsieve.inspection.cleaning import corrected
from labelsieve.inspection.label_support import candidate_indices, varying_labels
from labelsieve.io import Dataset


def problem(seed=0, n_samples=50, n_features=6, n_labels=4, share=0.3):
    """Features and candidates with unknown entries; some labels follow one another."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    Y = (X[:, :n_labels] + 0.3 * rng.standard_normal((n_samples, n_labels)) > 0.3).astype(float)
    Y[:, 1] = np.maximum(Y[:, 0], rng.random(n_samples) < 0.2)
    return X, np.where(rng.random(Y.shape) < share, np.nan, Y)


def to_sparse(Y):
    """CSR with explicit NaN."""
    found = sp.csr_array(np.where(np.isnan(Y), 7.0, Y))
    found.data[found.data == 7] = np.nan
    return found


def left_out(Z, T, penalty):
    """Ridge regression with a free intercept, once for every row, without it."""
    design = np.column_stack([np.ones(len(Z)), Z])
    costs = penalty * np.diag(np.r_[0.0, np.ones(Z.shape[1])])
    predictions = np.empty_like(T)
    for row in range(len(Z)):
        rest = np.arange(len(Z)) != row
        A = design[rest].T @ design[rest] + costs
        predictions[row] = design[row] @ np.linalg.solve(A, design[rest].T @ T[rest])
    return predictions


@pytest.mark.parametrize(("n_samples", "n_features"), [(50, 6), (20, 30)])
@pytest.mark.parametrize("labels", [np.asarray, to_sparse])
def test_features_predict_known_and_unknown_labels(n_samples, n_features, labels):
    X, U = problem(1, n_samples, n_features)
    model = ls.LabelSupport(kernel="linear", use_labels=False).fit(X, labels(U))
    Z, known = (X - X.mean(axis=0)) / X.std(axis=0), ~np.isnan(U)
    filled = np.where(known, U, np.nanmean(U, axis=0))
    np.testing.assert_allclose(model.support_, left_out(Z, filled, model.penalty_), rtol=0, atol=1e-10)
    grid = n_samples * np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100])

    def press(penalty):
        errors = (filled - left_out(Z, filled, penalty)) / filled.std(axis=0)
        return (errors[known] ** 2).sum() / known.size

    assert model.penalty_ == pytest.approx(min(grid, key=press))
    assert model.press_ == pytest.approx(press(model.penalty_), rel=1e-9)


def test_the_mean_has_an_error_of_one():
    """The scale of a label is that of its imputed column, so that 1 still means uninformative features."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((400, 2)), (rng.random((400, 3)) < 0.4).astype(float)
    U = np.where(rng.random(Y.shape) < [0.1, 0.5, 0.8], np.nan, Y)
    assert ls.LabelSupport(kernel="linear").fit(X, U).press_ == pytest.approx(1, abs=0.03)


def test_unknown_labels_do_not_affect_other_labels_of_the_row():
    X, U = problem(2)
    known = ~np.isnan(U)
    alone = ls.LabelSupport(kernel="linear", use_labels=False).fit(X, U)
    both = ls.LabelSupport(kernel="linear").fit(X, U)
    assert both.label_penalty_ is not None
    R = np.where(known, np.nan_to_num(U) - alone.support_, 0)  # a residual of 0 is the absence of a surprise
    Z = (R - R.mean(axis=0)) / R.std(axis=0)

    def errors(penalty):
        left = np.empty_like(Z)
        for label in range(4):
            others = np.delete(Z, label, axis=1)
            left[:, [label]] = Z[:, [label]] - left_out(others, Z[:, [label]], 50 * penalty)
        return left

    grid = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
    assert both.label_penalty_ == min(grid, key=lambda penalty: (errors(penalty)[known] ** 2).sum())
    from_labels = R - errors(both.label_penalty_) * R.std(axis=0)
    np.testing.assert_allclose(both.support_, alone.support_ + from_labels, rtol=0, atol=1e-9)


def test_without_unknown_labels_a_mask_changes_nothing():
    R = np.random.default_rng(3).standard_normal((40, 1)) + np.random.default_rng(4).standard_normal((40, 3))
    masked = R.copy()
    assert explain_by_other_labels(R) == explain_by_other_labels(masked, np.ones(R.shape, dtype=bool))
    np.testing.assert_array_equal(R, masked)


@pytest.mark.parametrize("labels", [np.asarray, to_sparse, pd.DataFrame])
def test_unknown_labels_are_not_candidates(labels):
    X, U = problem(5)
    known = ~np.isnan(U)
    issues = ls.find_label_issues(X, labels(U))
    listed = np.zeros(U.shape, dtype=bool)
    listed[issues.rows, issues.labels] = True
    np.testing.assert_array_equal(listed, U == 1)
    assert not issues.confidence[~known].any()
    rows, columns = ls.draw_candidates(labels(U), 10_000)
    assert len(rows) == np.nansum(U)
    assert (U[rows, columns] == 1).all()
    with pytest.raises(ValueError, match="only candidates"):
        unknown = np.argwhere(~known)[0]
        ls.find_label_issues(X, labels(U), checked=([unknown[0]], [unknown[1]], [1]))


@pytest.mark.parametrize("labels", [np.asarray, to_sparse])
def test_unknown_labels_are_not_missing_labels(labels):
    X, U = problem(9, n_samples=60)
    found = ls.find_label_issues(X, labels(U), which="missing")
    assert (U[found.rows, found.labels] == 0).all()
    assert len(found.rows) == (U == 0).sum()
    plan = found.draw(20)
    assert (U[plan.rows, plan.labels] == 0).all()


@pytest.mark.parametrize("labels", [np.asarray, to_sparse])
def test_corrections_keep_unknown_labels(labels):
    X, U = problem(10)
    (row, label), absent = np.argwhere(U == 1)[0], np.argwhere(U == 0)[0]
    rows, columns = np.array([[row, label], absent]).T
    is_missing = np.array([False, True])
    review = Review(rows, columns, np.array([WRONG, RIGHT]), is_missing, np.zeros(2, dtype=int), ())
    found = corrected(Dataset(X, labels(U)), review).Y
    expected = U.copy()
    expected[rows, columns] = [0, 1]
    np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, expected)


def test_controlled_selection_takes_unknown_labels():
    X, U = problem(11, n_samples=120, n_features=12)
    found = ls.controlled_selection(X, U)
    assert found.selected[[0, 2, 3]].all()
    assert found.selected.sum() <= 5
    again = ls.controlled_selection(X, to_sparse(np.insert(U, 2, np.nan, axis=1)))
    np.testing.assert_array_equal(again.p_values, found.p_values)


def test_reviewed_labels_give_probabilities_of_known_candidates():
    X, U = problem(6, n_samples=200)
    rows, labels = ls.draw_candidates(U, 60)
    answers = (np.arange(60) % 4 > 0).astype(int)
    issues = ls.find_label_issues(X, U, checked=(rows, labels, answers))
    assert issues.has_probabilities
    assert not issues.probability[np.isnan(U)].any()
    assert np.isfinite(issues.probability).all()


def test_a_label_counts_as_varying_by_its_known_entries():
    U = np.array([[1, 1, 0, np.nan], [np.nan, 0, 0, np.nan], [1, np.nan, np.nan, np.nan]])
    for Y in (U, to_sparse(U)):
        assert varying_labels(Y).tolist() == [False, True, False, False]
        assert [*zip(*map(np.ndarray.tolist, candidate_indices(Y)), strict=True)] == [(0, 0), (0, 1), (2, 0)]
    X = np.arange(12.0).reshape(3, 4) ** 2
    support = ls.LabelSupport(kernel="linear").fit(X, U).support_
    np.testing.assert_array_equal(support[:, [0, 2, 3]], [[1, 0, 0]] * 3)


def test_support_of_unknown_labels_finds_the_true_ones():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 5))
    Y = (X[:, :4] + 0.5 * rng.standard_normal((300, 4)) > 0).astype(float)
    unknown = rng.random(Y.shape) < 0.3
    model = ls.LabelSupport().fit(X, np.where(unknown, np.nan, Y))
    assert roc_auc_score(Y[unknown], model.support_[unknown]) > 0.9


@pytest.mark.parametrize("labels", [np.asarray, to_sparse, pd.DataFrame])
def test_an_audit_shows_unknown_labels_in_a_note_only(labels):
    X, U = problem(8, n_samples=80, n_features=8)
    found = ls.audit(X, labels(U), fast=True)
    n_unknown = int(np.isnan(U).sum())
    assert found.n_candidates == np.nansum(U)
    assert found.dataset.notes == (f"{n_unknown} of {U.size} labels are unknown",)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert sum(f"{n_unknown} of {U.size} labels are unknown" in note for note in told["notes"]) == 1
    assert f"{n_unknown} of {U.size} labels are unknown" in found.to_html()
    assert "nan" not in found.summary().lower()
    model = ls.LabelSupport(each_row_has_truth=False).fit(X, labels(U))
    for label, area in enumerate(model.auc_):
        known = ~np.isnan(U[:, label])
        assert area == pytest.approx(roc_auc_score(U[known, label], model.support_[known, label]))
    filled = split_unknown(U)[0]
    Z, T = ((M - M.mean(axis=0)) / M.std(axis=0) for M in (X, filled))
    z2 = (Z.T @ T) ** 2 / len(X)
    np.testing.assert_allclose(np.abs(found.ranking.feature_z2), z2, rtol=1e-9)
