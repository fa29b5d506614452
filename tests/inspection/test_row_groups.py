"""Tests of groups of rows that splits and permutations keep together."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelsieve import (
    ColumnSelector,
    EvidenceSelector,
    LabelSupport,
    SumF,
    audit,
    choose_size,
    controlled_selection,
    evidence_test,
    selection_stability,
)
from labelsieve._numerics.row_groups import RowOrders, blocks_by_size, draw_folds
from labelsieve._numerics.scaling import Scaling
from labelsieve.datasets import make_pml
from labelsieve.inspection._leave_one_out import LeaveOneOut, explain_by_other_labels, linear_directions
from labelsieve.io import read
from labelsieve.methods.evidence import evaluate_sizes

GROUPS = np.repeat(np.arange(24), [1, 2, 3, 5] * 6)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(GROUPS), 6)) + rng.normal(size=(24, 6))[GROUPS]
    Y = (X[:, :4] + rng.normal(size=(len(GROUPS), 4)) > 0.3).astype(float)
    Y[:, 3] = np.maximum(Y[:, 0], rng.random(len(GROUPS)) < 0.2)
    return X, Y


def without_group(X, Y, penalty, rows):
    """Residuals of some rows from a ridge regression on the others, with features standardized once."""
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / scale
    rest = np.setdiff1d(np.arange(len(X)), rows)
    # The intercept is not penalized.
    A = np.column_stack([np.ones(len(rest)), Z[rest]])
    weights = np.linalg.solve(A.T @ A + penalty * np.diag([0, *np.ones(X.shape[1])]), A.T @ Y[rest])
    return Y[rows] - np.column_stack([np.ones(len(rows)), Z[rows]]) @ weights


@pytest.mark.parametrize("form", ["tall", "sparse", "wide"])
def test_the_rows_of_a_group_are_left_out_together(problem, form):
    X, Y = problem
    if form == "sparse":
        X = X * (np.abs(X) > 1)
    elif form == "wide":
        X = np.hstack([X, np.random.default_rng(1).normal(size=(len(X), 90))])
    features = sp.csr_array(X) if form == "sparse" else X
    model = LeaveOneOut(linear_directions(features), Y, GROUPS)
    residuals = model.residuals()
    for group in (0, 1, 2, 3, 23):
        rows = np.flatnonzero(group == GROUPS)
        np.testing.assert_allclose(residuals[rows], without_group(X, Y, model.penalty, rows), atol=1e-8)
    rows, labels = np.array([0, 1, 2, 9, 9, 60]), np.array([0, 1, 2, 3, 0, 2])
    base, effects = model.effects(features, rows, labels)
    np.testing.assert_allclose(base + effects.sum(axis=1), (Y - residuals)[rows, labels], atol=1e-8)


def test_single_groups_change_nothing(problem):
    X, Y = problem
    plain = LeaveOneOut(linear_directions(X), Y)
    single = LeaveOneOut(linear_directions(X), Y, np.arange(len(X))[::-1])
    np.testing.assert_allclose(single.residuals(), plain.residuals(), atol=1e-12)
    np.testing.assert_allclose(single.press, plain.press)


def test_other_labels_explain_without_the_group(problem):
    rng = np.random.default_rng(0)
    R = rng.normal(size=(len(GROUPS), 4)) @ rng.normal(size=(4, 4))
    found = R.copy()
    penalty = explain_by_other_labels(found, groups=GROUPS)
    scaling = Scaling.learn(R, "standard", centre=True)
    Z = (R - scaling.offset) * scaling.factor
    n = len(Z)
    for group in (0, 1, 3):
        rows, rest = np.flatnonzero(group == GROUPS), np.flatnonzero(group != GROUPS)
        for label in range(4):
            others = np.delete(np.arange(4), label)
            A = np.column_stack([np.ones(len(rest)), Z[np.ix_(rest, others)]])
            ridge = penalty * n * np.diag([0, 1, 1, 1])
            weights = np.linalg.solve(A.T @ A + ridge, A.T @ Z[rest, label])
            left = Z[rows, label] - np.column_stack([np.ones(len(rows)), Z[np.ix_(rows, others)]]) @ weights
            np.testing.assert_allclose(found[rows, label] * scaling.factor[label], left, atol=1e-8)


def test_copies_of_rows_do_not_support_their_own_labels():
    X, Y = make_pml(n_samples=150, n_features=8, n_labels=3, random_state=0)
    rng = np.random.default_rng(0)
    noise = np.where(rng.random(Y.shape) < 0.5, Y, rng.random(Y.shape) < 0.5).astype(float)
    wide = np.hstack([X, rng.normal(size=(150, 80))])
    twice, labels = np.vstack([wide, wide]), np.vstack([noise, noise])
    once = LabelSupport("linear").fit(wide, noise)
    kept = LabelSupport("linear").fit(twice, labels, row_groups=np.tile(np.arange(150), 2))
    leaking = LabelSupport("linear").fit(twice, labels)
    np.testing.assert_allclose(kept.auc_, once.auc_, atol=0.05)
    assert leaking.auc_.mean() > once.auc_.mean() + 0.1


# Splits


def test_folds_and_halves_keep_groups_together_and_are_balanced():
    rng = np.random.default_rng(0)
    folds = draw_folds(len(GROUPS), 5, rng, GROUPS)
    assert all(len(set(folds[group == GROUPS])) == 1 for group in range(24))
    assert np.ptp(np.bincount(folds)) <= 2
    with pytest.raises(ValueError, match="at least 25"):
        draw_folds(len(GROUPS), 25, rng, GROUPS)


class Recorder(SumF):
    seen: ClassVar[list] = []

    def fit(self, X, y):
        Recorder.seen.append(np.asarray(X)[:, -1].astype(int))
        return super().fit(X, y)


def test_every_split_keeps_groups_together(problem):
    X, Y = problem
    X = np.column_stack([X, GROUPS])
    Recorder.seen.clear()
    choose_size(Recorder(), X, Y, row_groups=GROUPS)
    selection_stability(Recorder(2), X, Y, n_resamples=6, row_groups=GROUPS)
    parts = [part for part in Recorder.seen if len(part) < len(X)]
    assert len(parts) == 11
    for part in parts:
        groups, counts = np.unique(part, return_counts=True)
        np.testing.assert_array_equal(counts, np.bincount(GROUPS)[groups])


def test_inner_folds_keep_groups_together(monkeypatch, problem):
    X, Y = problem
    drawn = []

    def recorded(*arguments):
        drawn.append(draw_folds(*arguments))
        return drawn[-1]

    monkeypatch.setattr("labelsieve.methods.evidence.draw_folds", recorded)
    EvidenceSelector(3).fit(X, Y, row_groups=GROUPS)
    EvidenceSelector("auto").fit(X, Y, row_groups=GROUPS)
    ColumnSelector(EvidenceSelector(), np.arange(6) // 2, 2).fit(X, Y, row_groups=GROUPS)
    evaluate_sizes(EvidenceSelector(), X, Y, row_groups=GROUPS)
    assert len(drawn) == 4
    for folds in drawn:
        assert all(len(set(folds[group == GROUPS])) == 1 for group in range(24))


# Permutations


def test_permutations_exchange_whole_groups_of_one_size():
    orders = RowOrders(len(GROUPS), GROUPS)
    order = orders.draw(np.random.default_rng(0))
    assert sorted(order) == list(range(len(GROUPS)))
    moved = 0
    for members in (row for block in blocks_by_size(GROUPS) for row in block):
        sources = GROUPS[order[members]]
        assert len(set(sources)) == 1
        assert (sources[0] == GROUPS).sum() == len(members)
        moved += sources[0] != GROUPS[members[0]]
    assert moved > 10


def test_tests_of_grouped_rows_hold_their_level():
    """Labels and features that depend on the group only are related by chance; plain permutations miss that."""
    plain, grouped = [], []
    groups = np.repeat(np.arange(20), 8)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 3))[groups] + 0.1 * rng.normal(size=(160, 3))
        Y = (rng.random((20, 2)) < 0.5)[groups].astype(float)
        Y[:2] = [[1, 0], [0, 1]]
        plain.append(evidence_test_quietly(X, Y))
        grouped.append(evidence_test_quietly(X, Y, row_groups=groups))
    assert np.mean(np.array(plain) <= 0.05) > 0.5
    assert np.mean(np.array(grouped) <= 0.05) < 0.2
    assert controlled_selection(X, Y).selected.all()
    assert not controlled_selection(X, Y, row_groups=groups).selected.any()


def evidence_test_quietly(*arguments, **options):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evidence_test(*arguments, n_permutations=39, **options).p_value


def test_groups_that_cannot_be_exchanged_are_rejected(problem):
    X, Y = problem
    unequal = np.repeat(np.arange(11), np.arange(1, 12))
    with pytest.raises(ValueError, match="row_groups"):
        evidence_test(X, Y, row_groups=unequal)
    with pytest.raises(ValueError, match="row_groups"):
        controlled_selection(X, Y, row_groups=unequal)
    with pytest.raises(ValueError, match="one entry per row"):
        LabelSupport().fit(X, Y, row_groups=[0, 1])


@pytest.mark.parametrize("sizes", ["equal", "unequal"])
def test_an_audit_keeps_groups_together(sizes):
    rng = np.random.default_rng(0)
    per_group = np.full(30, 5) if sizes == "equal" else np.arange(1, 18)
    groups = np.repeat(np.arange(len(per_group)), per_group)
    effect = rng.normal(size=(len(per_group), 2))[groups]
    frame = pd.DataFrame(effect + 0.3 * rng.normal(size=effect.shape), columns=["a", "b"])
    frame["patient"] = [f"p{group}" for group in groups]
    frame["tags"] = [";".join(name for name, on in zip("xyz", row, strict=True) if on) for row in
                     np.column_stack([effect > 0, rng.random(len(groups)) < 0.3])]  # fmt: skip
    found = audit(read(frame, group="patient"), fast=True)
    assert found.selected[0] in ("a", "b")
    assert (found.evidence_test is None) == (found.controlled is None) == (sizes == "unequal")
    assert "nan" not in str(found)
