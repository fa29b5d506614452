"""The numbers of an audit, each against a slow or independent version."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelsieve import EvidenceSelector, audit
from labelsieve._numerics.candidate_precision import average_precision_rows, ridge_precision
from labelsieve.datasets import make_pml
from labelsieve.inspection._leave_one_out import LeaveOneOut, linear_directions
from labelsieve.inspection.auditing.distributions import distribution
from labelsieve.inspection.auditing.ranking import rank_columns
from labelsieve.inspection.auditing.run import audit_subject
from labelsieve.inspection.auditing.steadiness import Steadiness, substitutes
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.label_issues import find_label_issues
from labelsieve.inspection.stability import halves


@pytest.fixture(scope="module")
def problem():
    return make_pml(n_samples=240, n_features=20, n_labels=5, n_informative=4, shuffle=False, random_state=0)


@pytest.fixture(scope="module")
def found(problem):
    return audit(*problem, name="planted")


def run(X, Y, **options):
    """An audit of features, with what the tests want to change."""
    return audit_subject(Subject.of_arrays(X, Y), **{"n_columns": None, "checked": None, **options})


@pytest.mark.parametrize("frame", ["columns", "sizes", "labels", "doubtful"])
def test_frames_need_pandas_and_say_so(found, monkeypatch, frame):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas, .* pip install 'labelsieve\[pandas\]'"):
        getattr(found, frame)


@pytest.mark.parametrize("shape", [(40, 6), (20, 35)], ids=["tall", "wide"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_effects_of_features_are_those_of_a_regression_without_the_row(shape, form):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(3, 2, shape), (rng.random((shape[0], 3)) < 0.4).astype(float)
    model = LeaveOneOut(linear_directions(form(X)), Y)
    rows, labels = np.array([0, 3, 3, shape[0] - 1]), np.array([0, 1, 2, 2])
    base, effects = model.effects(form(X), rows, labels)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for row, label, intercept, own in zip(rows, labels, base, effects, strict=True):
        others = np.arange(len(X)) != row
        A = np.column_stack([np.ones(len(X) - 1), Z[others]])
        penalty = np.diag([0.0, *[model.penalty] * shape[1]])
        weights = np.linalg.solve(A.T @ A + penalty, A.T @ Y[others, label])
        assert intercept == pytest.approx(weights[0], abs=1e-9)
        np.testing.assert_allclose(own, weights[1:] * Z[row], atol=1e-9)
    np.testing.assert_allclose(base + effects.sum(axis=1), (Y - model.residuals())[rows, labels], atol=1e-9)


def test_of_plain_features_the_ranking_and_the_curve_are_those_of_the_selector(problem, found):
    selector = EvidenceSelector("auto", random_state=0).fit(*problem)
    assert found.ranking.redundancy == selector.redundancy_
    np.testing.assert_array_equal(found.curve.sizes, selector.size_curve_.sizes)
    np.testing.assert_allclose(found.curve.scores, selector.size_curve_.scores, atol=1e-12)
    assert found.n_kept == selector.n_features_
    kept = np.argsort(selector.ranking_)[: found.n_kept]
    np.testing.assert_array_equal(found.ranking.order[: found.n_kept], kept)
    np.testing.assert_allclose(found.ranking.column_evidence, selector.evidence_)


def test_a_column_is_kept_with_all_its_features_and_has_the_place_of_the_best(problem):
    X, Y = problem
    column_of = np.array([2, 0, 1, 1] + [3 + j // 2 for j in range(16)])
    ranking, _ = rank_columns(X, Y, column_of, n_kept=None, random_state=0)
    # The slow version: rank on the training rows of a fold, take whole columns, regress.
    folds = np.random.default_rng(0).permutation(len(X)) % 5
    scores = np.empty_like(ranking.curve.scores)
    without = []
    for fold in range(5):
        train, test = folds != fold, folds == fold
        n_steps = int(ranking.curve.sizes[-2])
        selector = EvidenceSelector(n_steps, redundancy=ranking.redundancy).fit(X[train], Y[train])
        columns = list(dict.fromkeys(column_of[np.argsort(selector.ranking_)]))
        for place, size in enumerate(ranking.curve.sizes):
            features = np.flatnonzero(np.isin(column_of, columns[:size]))
            judged = ridge_precision(X[train], Y[train], X[test], Y[test], features, [len(features)])
            scores[fold, place] = np.nanmean(judged)
        frequency = np.tile(Y[train].mean(axis=0), (test.sum(), 1))
        without.append(np.nanmean(average_precision_rows(Y[test], frequency)))
    np.testing.assert_allclose(ranking.curve.scores, scores, atol=1e-9)
    assert ranking.without == pytest.approx(np.mean(without))
    # Of all columns every order is the same.
    np.testing.assert_allclose(ranking.random[:, -1], ranking.curve.mean[-1])
    whole = EvidenceSelector(ranking.curve.best, redundancy=ranking.redundancy).fit(X, Y)
    order = np.argsort(whole.ranking_)
    np.testing.assert_array_equal(ranking.order, list(dict.fromkeys(column_of[order])))
    for column, feature in enumerate(ranking.best_feature):
        members = np.flatnonzero(column_of == column)
        assert feature == members[np.argmin(whole.ranking_[members])]


def test_places_on_subsamples_are_those_of_fits_to_subsamples(problem, found):
    X, Y = problem
    parts = list(halves(len(X), 30, np.random.default_rng(0)))
    for number in (0, 1, 7):
        rows = parts[number]
        fitted = EvidenceSelector(found.n_kept, redundancy=found.ranking.redundancy).fit(X[rows], Y[rows])
        np.testing.assert_array_equal(found.steadiness.places[number], fitted.ranking_)
    frequency = found.steadiness.frequency(3)
    np.testing.assert_allclose(frequency, (found.steadiness.places <= 3).mean(axis=0))
    assert (found.steadiness.group_frequency(3) >= frequency).all()


def test_a_twin_is_a_substitute_and_shares_the_frequency():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 4))
    X = np.column_stack([x[:, 0], -x[:, 0] + 0.05 * rng.standard_normal(300), x[:, 1:]])
    found = substitutes(X, np.arange(5), np.array([4, 1, 0, 2, 3]))
    assert [[other for other, _ in others] for others in found] == [[1], [0], [], [], []]
    assert found[0][0][1] == pytest.approx(np.corrcoef(X[:, 0], X[:, 1])[0, 1])
    places = np.array([[1, 2, 3, 4, 5], [2, 1, 3, 4, 5]])
    steadiness = Steadiness(places, found)
    assert steadiness.frequency(1)[:2].tolist() == [0.5, 0.5]
    assert steadiness.group_frequency(1)[:3].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_reasons_add_up_to_the_support(kernel):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (300, 5))
    score = X[:, 0] if kernel == "linear" else 3 * np.cos(2 * X[:, 0]) * X[:, 1]
    noise = rng.uniform(-2, 2, (300, 3))
    Y = (np.column_stack([score, 0.5 - score, X[:, 2]]) > noise).astype(int)
    doubts = run(X, Y).doubts
    assert doubts.kernel == kernel
    issues, reasons = doubts.issues, doubts.reasons
    support = issues.support[issues.rows, issues.labels][doubts.listed]
    parts = reasons.base + reasons.effects.sum(axis=1) + reasons.others + reasons.curved + reasons.labels
    np.testing.assert_allclose(parts, support, atol=1e-9)
    assert (np.abs(reasons.curved).max() > 0.1) == (kernel == "rbf")
    assert (np.diff(reasons.effects, axis=1) >= 0).all()
    # The support is that of `find_label_issues`.
    np.testing.assert_allclose(issues.support, find_label_issues(X, Y).support)


def test_the_features_of_a_column_are_one_reason(problem):
    X, Y = problem
    single = run(X, Y)
    subject = Subject.of_arrays(X, Y)
    grouped = Subject(
        "t", "", X, Y, subject.feature_names, subject.label_names, subject.columns[:2],
        np.array([0] * 10 + [1] * 10), subject.row_ids,
    )  # fmt: skip
    found = audit_subject(grouped, n_columns=1, checked=None)
    reasons = found.doubts.reasons
    assert reasons.effects.shape[1] == 2
    np.testing.assert_allclose(reasons.others, 0, atol=1e-9)  # there is no third column
    total = single.doubts.reasons.effects.sum(axis=1) + single.doubts.reasons.others
    np.testing.assert_allclose(reasons.effects.sum(axis=1), total, atol=1e-9)
    assert set(found.columns.column) == {"x0", "x1"}
    assert found.is_size_given
    assert len(found.selected) == 1


def test_shuffled_labels_are_said_to_be_chance(problem):
    X, Y = problem
    shuffled = audit(X, Y[np.random.default_rng(5).permutation(len(Y))])
    assert shuffled.is_no_better_than_chance
    assert "no better than chance" in shuffled.summary()
    assert 'class="banner" role="alert"' in shuffled.to_html()
    assert "no better than chance" not in audit(X, Y).summary()


def test_percentages_are_told_only_with_enough_checked_candidates(problem):
    X, Y = problem
    rng = np.random.default_rng(0)
    rows, labels = np.nonzero(Y)
    drawn = rng.permutation(len(rows))[:60]
    checked = rows[drawn], labels[drawn], rng.random(60) < 0.8
    for n_checked in (0, 20, 60):
        some = None if not n_checked else tuple(part[:n_checked] for part in checked)
        found = audit(X, Y, checked=some)
        is_enough = n_checked == 60
        assert ("share_wrong" in found.labels) == is_enough
        assert ("probability" in found.doubtful) == is_enough
        assert ('"p":' in found.to_html()) == is_enough
        told = set(zip(found.doubtful.row, found.doubtful.label, strict=True))
        assert not is_enough or told.isdisjoint({(r, f"y{c}") for r, c in zip(*checked[:2], strict=True)})


def test_what_looks_rather_wrong_comes_first_and_is_counted(found):
    issues, doubts = found.doubts.issues, found.doubts
    confidence = issues.confidence[issues.rows, issues.labels][doubts.listed]
    assert doubts.n_to_look_at == (confidence < 0.5).sum()
    assert (confidence[: doubts.n_to_look_at] < 0.5).all()
    assert doubts.n_to_look_at == found.labels.n_to_look_at.sum()


def test_json_holds_everything_and_no_nan(found, tmp_path):
    text = found.to_json(tmp_path / "audit.json")
    told = json.loads(text)
    assert (tmp_path / "audit.json").read_text("utf-8") == text
    assert len(told["columns"]) == 20
    assert told["answers"][0]["question"] == "Which columns matter?"
    assert told["columns"][0]["column"] == found.selected[0] == found.columns.column[0]
    assert told["doubtful"][0]["reasons"][0]["effect"] <= 0
    assert told["provenance"]["Seed"] == "0"


def test_the_planted_columns_come_first(found):
    assert set(found.columns.column[:4]) == {"x0", "x1", "x2", "x3"}
    assert set(np.flatnonzero(found.stands_out)) == {0, 1, 2, 3}


def test_noise_stands_out_by_chance_in_one_table_of_twenty():
    rng = np.random.default_rng(0)
    n_out = 0
    for _ in range(40):
        X, Y = rng.standard_normal((100, 10)), (rng.random((100, 4)) < 0.4).astype(int)
        n_out += run(X, Y, fast=True).stands_out.any()
    assert n_out <= 6  # more happens three times in a thousand at 5 %


def test_a_number_of_columns_can_be_asked_for(problem):
    found = audit(*problem, n_columns=7)
    assert len(found.selected) == found.n_kept == 7
    assert 7 in found.curve.sizes
    assert "You asked for 7" in found.summary()


def test_a_frame_with_tags_is_audited_by_its_columns():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 200)
    frame = pd.DataFrame(
        {
            "ticket": [f"T{number:03}" for number in range(200)],
            "colour": colour,
            "size": rng.standard_normal(200),
            "tags": [";".join(["warm"] * (c == "red") + ["cold"] * (c == "blue")) for c in colour],
        }
    )
    found = audit(frame, labels="tags", name="shop")
    assert found.selected[0] == "colour"
    assert found.subject.row_ids[:2] == ("T000", "T001")
    assert set(found.columns.column) == {"colour", "size"}
    assert found.subject.cell(0, 0) == colour[0]
    bars = distribution(found.subject, 0, 0)
    counts = dict(zip(bars.texts, bars.counts().tolist(), strict=True))
    assert counts == pd.Series(colour).value_counts().to_dict()
    warm = found.subject.Y[:, list(found.subject.label_names).index("warm")] > 0
    assert bars.counts(np.asarray(warm).ravel())[list(bars.texts).index("red")] == (colour == "red").sum()


def test_numbers_are_counted_in_bars_and_long_tails_in_the_last():
    values = np.r_[np.arange(100.0), 1e6]
    subject = Subject.of_arrays(values[:, None], np.arange(101)[:, None] % 2)
    bars = distribution(subject, 0, 0)
    assert (bars.n_bins, bars.texts) == (14, ("0", "99 and more"))
    assert bars.counts().sum() == 101
    few = distribution(Subject.of_arrays(values[:, None] % 3, np.arange(101)[:, None] % 2), 0, 0)
    assert (few.is_discrete, few.texts, few.counts().tolist()) == (True, ("0", "1", "2"), [34, 34, 33])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": slice(5)}, "at least 6. Got 5"),
        ({"Y": 1}, "some rows have and others do not"),
        ({"n_columns": 21}, "n_columns must be at most 20"),
        ({"n_columns": 0}, "n_columns must be a whole number"),
        ({"random_state": -1}, "random_state must be a whole number"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_the_reason(problem, change, message):
    X, Y = problem
    options = dict(change)
    rows = options.pop("rows", slice(None))
    if options.pop("Y", None):
        Y = np.ones_like(Y)
    with pytest.raises(ValueError, match=message):
        audit(X[rows], Y[rows], **options)
