"""The parts of an audit, each against a slow or independent version."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from labelsieve import PMLFSMIR, EvidenceSelector, SumF, audit, find_label_issues
from labelsieve._numerics.candidate_precision import average_precision_rows, ridge_precision
from labelsieve.datasets import make_pml
from labelsieve.inspection._leave_one_out import LeaveOneOut, linear_directions
from labelsieve.inspection.audit import inspect_dataset
from labelsieve.inspection.explanations import ExplainedSupport
from labelsieve.inspection.page import page_data
from labelsieve.inspection.stability import subsamples
from labelsieve.io import Dataset
from labelsieve.io.dataset import Column
from labelsieve.methods.evidence import evaluate_sizes


@pytest.fixture(scope="module")
def problem():
    return make_pml(n_samples=240, n_features=20, n_labels=5, n_informative=4, shuffle=False, random_state=0)


@pytest.fixture(scope="module")
def found(problem):
    return audit(*problem, name="planted")


@pytest.mark.parametrize("shape", [(40, 6), (20, 35)], ids=["tall", "wide"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_effects_of_features_equal_those_of_a_regression_without_the_row(shape, form):
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


def test_ranking_and_curve_of_numeric_columns_equal_those_of_the_selector(problem, found):
    selector = EvidenceSelector("auto", random_state=0).fit(*problem)
    assert found.ranking.parameters["redundancy"] == selector.redundancy_
    np.testing.assert_array_equal(found.size_curve.sizes, selector.size_curve_.sizes)
    np.testing.assert_allclose(found.size_curve.scores, selector.size_curve_.scores, atol=1e-12)
    assert found.n_kept == selector.n_features_
    np.testing.assert_array_equal(found.ranking.kept, np.argsort(selector.ranking_)[: found.n_kept])
    np.testing.assert_allclose(found.ranking.feature_evidence, selector.evidence_)


def test_a_column_is_judged_with_all_its_features(problem):
    X, Y = problem
    column_of = np.array([2, 0, 1, 1] + [3 + j // 2 for j in range(16)])
    judged = evaluate_sizes(EvidenceSelector(), X, Y, column_of=column_of, n_random=3)
    # The slow version: rank on the training rows of a fold, take whole columns, regress.
    folds = np.random.default_rng(0).permutation(len(X)) % 5
    scores = np.empty_like(judged.curve.scores)
    baseline = []
    for fold in range(5):
        train, test = folds != fold, folds == fold
        selector = EvidenceSelector(int(judged.curve.sizes[-2]), redundancy=judged.redundancy)
        ranking = selector.fit(X[train], Y[train]).ranking_
        columns = list(dict.fromkeys(column_of[np.argsort(ranking)]))
        for place, size in enumerate(judged.curve.sizes):
            features = np.flatnonzero(np.isin(column_of, columns[:size]))
            precision = ridge_precision(X[train], Y[train], X[test], Y[test], features, [len(features)])
            scores[fold, place] = np.nanmean(precision)
        frequency = np.tile(Y[train].mean(axis=0), (test.sum(), 1))
        baseline.append(np.nanmean(average_precision_rows(Y[test], frequency)))
    np.testing.assert_allclose(judged.curve.scores, scores, atol=1e-9)
    assert judged.baseline == pytest.approx(np.mean(baseline))
    # Of all columns every order is the same.
    np.testing.assert_allclose(judged.random[:, -1], judged.curve.mean[-1])
    assert (judged.random[:, :3].mean(axis=0) < judged.curve.mean[:3]).all()


def test_places_on_subsamples_are_those_of_fits_to_subsamples(problem, found):
    X, Y = problem
    parts = list(subsamples(len(X), 30, np.random.default_rng(0)))
    redundancy = found.ranking.parameters["redundancy"]
    for number in (0, 1, 7):
        rows = parts[number]
        fitted = EvidenceSelector(found.n_kept, redundancy=redundancy).fit(X[rows], Y[rows])
        np.testing.assert_array_equal(found.stability.places[number], fitted.ranking_)
    np.testing.assert_array_equal(found.stability.runs, found.stability.places <= found.n_kept)


def test_substitutes_are_those_of_the_subsamples_or_of_the_ranking():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 4))
    X = np.column_stack([x[:, 0], -x[:, 0] + 0.05 * rng.standard_normal(300), x[:, 1:]])
    Y = (x[:, :2] + rng.normal(0, 0.5, (300, 2)) > 0).astype(int)
    for n_resamples in (0, 10):
        found = inspect_dataset(
            Dataset(X, Y), SumF(2), command="select", method="sum-f", n_resamples=n_resamples
        )
        assert [[other for other, _ in others] for others in found.substitutes] == [[1], [0], [], [], []]
        assert found.substitutes[0][0][1] == pytest.approx(np.corrcoef(X[:, 0], X[:, 1])[0, 1])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_reasons_add_up_to_the_support(kernel):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (300, 5))
    score = X[:, 0] if kernel == "linear" else 3 * np.cos(2 * X[:, 0]) * X[:, 1]
    noise = rng.uniform(-2, 2, (300, 3))
    Y = (np.column_stack([score, 0.5 - score, X[:, 2]]) > noise).astype(int)
    explained = audit(X, Y, fast=True).label_issues
    assert explained.kernel == kernel
    issues, reasons = explained.issues, explained.reasons
    support = issues.support[issues.rows, issues.labels][explained.listed]
    parts = reasons.base + reasons.effects.sum(axis=1) + reasons.others + reasons.curved + reasons.labels
    np.testing.assert_allclose(parts, support, atol=1e-9)
    assert (np.abs(reasons.curved).max() > 0.1) == (kernel == "rbf")
    assert (np.diff(reasons.effects, axis=1) >= 0).all()
    # The support is that of `find_label_issues`.
    np.testing.assert_allclose(issues.support, find_label_issues(X, Y).support)


def test_the_features_of_a_column_are_one_reason(problem, found):
    X, Y = problem
    columns = [
        Column(name, "text", features=tuple(range(i, i + 10))) for i, name in ((0, "first"), (10, "second"))
    ]
    names = [f"y{j}" for j in range(5)]
    grouped = Dataset(X, Y, columns=columns, column_of=np.repeat([0, 1], 10), label_names=names)
    result = audit(grouped, n_columns=1, fast=True)
    reasons, single = result.label_issues.reasons, found.label_issues.reasons
    assert reasons.effects.shape[1] == 2
    np.testing.assert_allclose(reasons.others, 0, atol=1e-9)  # there is no third column
    total = single.effects.sum(axis=1) + single.others
    np.testing.assert_allclose(reasons.effects.sum(axis=1), total, atol=1e-9)
    assert set(result.columns.column) == {"first", "second"}
    assert len(result.columns.features[0]) == 10
    assert result.ranking.is_size_given
    assert len(result.selected) == 1


def test_permuted_labels_are_not_significant(problem):
    X, Y = problem
    permuted = audit(X, Y[np.random.default_rng(5).permutation(len(Y))], fast=True)
    assert permuted.is_no_better_than_chance
    assert permuted.to_dict()["evidence_test"]["no_better_than_chance"]
    assert 'class="banner" role="alert"' in permuted.to_html()


def test_percentages_need_enough_reviewed_candidates(problem):
    X, Y = problem
    rng = np.random.default_rng(0)
    rows, labels = np.nonzero(Y)
    drawn = rng.permutation(len(rows))[:60]
    checked = rows[drawn], labels[drawn], rng.random(60) < 0.8
    for n_checked in (0, 20, 60):
        some = None if not n_checked else tuple(part[:n_checked] for part in checked)
        found = audit(X, Y, checked=some, fast=True)
        is_enough = n_checked == 60
        assert ("share_wrong" in found.labels) == is_enough
        assert ("probability" in found.flagged) == is_enough
        assert ('"p":' in found.to_html()) == is_enough
        told = set(zip(found.flagged.row, found.flagged.label, strict=True))
        assert not is_enough or told.isdisjoint({(r, f"y{c}") for r, c in zip(*checked[:2], strict=True)})


def test_flagged_labels_come_first_and_are_counted(found):
    explained = found.label_issues
    issues = explained.issues
    confidence = issues.confidence[issues.rows, issues.labels][explained.listed]
    is_predicted = found.labels.set_index("label")["is_predicted"].to_numpy()
    assert explained.n_flagged == ((confidence < 0.5) & is_predicted[issues.labels[explained.listed]]).sum()
    assert (confidence[: explained.n_flagged] < 0.5).all()
    assert explained.n_flagged == found.labels.n_flagged.sum()


def test_json_contains_every_part_and_no_nan(found, tmp_path):
    text = found.to_json(tmp_path / "audit.json")
    told = json.loads(text)
    assert (tmp_path / "audit.json").read_text("utf-8") == text
    assert len(told["columns"]) == 20
    assert [answer["question"] for answer in told["answers"]][-2:] == [
        "Which labels look wrong?",
        "Which labels are missing?",
    ]
    assert told["columns"][0]["column"] == found.selected[0] == found.columns.column[0]
    assert told["label_issues"][0]["reasons"][0]["effect"] <= 0
    assert told["provenance"]["Seed"] == "0"
    assert told["stability"]["n_resamples"] == 30
    assert len(found.to_dict(kept_only=True, n_issues=3)["columns"]) == found.n_kept
    assert len(found.to_dict(kept_only=True, n_issues=3)["label_issues"]) == 3


def test_the_same_input_gives_the_same_json_and_steps_are_counted(problem):
    steps = []
    first = audit(*problem, fast=True, progress=lambda *step: steps.append(step)).to_json()
    assert audit(*problem, fast=True).to_json() == first
    done, totals, _ = zip(*steps, strict=True)
    assert len(set(totals)) == 1
    assert list(done) == sorted(done)
    assert done[-1] == totals[0]


def test_rare_labels_are_audited():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 3)), np.zeros((12, 3), dtype=int)
    Y[0, 0] = Y[5, 1] = Y[11, 2] = 1
    found = audit(X, Y, fast=True)
    json.loads(found.to_json())
    assert "nan" not in found.summary()
    found.to_html()


def test_the_planted_columns_come_first(found):
    assert set(found.columns.column[:4]) == {"x0", "x1", "x2", "x3"}
    assert set(np.flatnonzero(found.controlled.selected)) >= {0, 1, 2, 3}
    by_name = found.columns.set_index("column")
    np.testing.assert_array_equal(
        by_name.loc[[f"x{j}" for j in range(20)], "q_value"], found.controlled.q_values
    )


@pytest.mark.parametrize(("wanted", "n_kept"), [(7, 7), (0.5, 10)])
def test_the_number_of_columns_can_be_given(problem, wanted, n_kept):
    found = audit(*problem, n_columns=wanted, fast=True)
    assert len(found.selected) == found.n_kept == n_kept
    assert n_kept in found.size_curve.sizes
    assert f"You asked for {n_kept}" in found.summary()


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
    found = audit(frame, labels="tags", name="shop", fast=True)
    dataset = found.dataset
    assert found.selected[0] == "colour"
    assert dataset.row_ids[:2] == ("T000", "T001")
    assert set(found.columns.column) == {"colour", "size"}
    assert found.cell(0, 0) == colour[0]
    bars = page_data(found)["columns"][0]["h"]
    assert dict(zip(bars["t"], bars["c"], strict=True)) == pd.Series(colour).value_counts().to_dict()
    warm = list(dataset.label_names).index("warm")
    assert bars["l"][warm][bars["t"].index("red")] == (colour == "red").sum()
    roles = {column["column"]: column["role"] for column in found.to_dict()["table"]}
    assert roles == {"ticket": "id", "colour": "category", "size": "number", "tags": "label"}


def test_numbers_are_counted_in_bars_and_long_tails_in_the_last():
    def bars_of(values):
        data = Dataset(values[:, None], np.arange(101)[:, None] % 2)
        return page_data(inspect_dataset(data, SumF(1), command="select"))["columns"][0]["h"]

    values = np.r_[np.arange(100.0), 1e6]
    bars = bars_of(values)
    assert (len(bars["c"]), bars["t"], sum(bars["c"])) == (14, ["0", "99 and more"], 101)
    few = bars_of(values % 3)
    assert (few["d"], few["t"], few["c"]) == (1, ["0", "1", "2"], [34, 34, 33])


def test_any_method_ranks_and_sparse_labels_give_the_same_issues():
    rng = np.random.default_rng(1)
    X = rng.random((40, 5))
    Y = (X[:, :2] > 0.5).astype(int)
    candidates = np.maximum(Y, rng.random(Y.shape) < 0.2)
    dense = Dataset(X, Y, candidates)
    sparse = Dataset(X, sp.csr_array(Y), sp.csr_array(candidates))
    results = [
        inspect_dataset(data, PMLFSMIR(3), command="select", method="pml-fsmir", check_labels=True)
        for data in (dense, sparse)
    ]
    first, second = results
    assert first.ranking.is_iterative
    assert first.ranking.measure == "score"
    np.testing.assert_allclose(
        first.label_issues.issues.support, second.label_issues.issues.support, atol=1e-10
    )
    wrong = [record["wrong"] for record in first.issue_records()]
    assert wrong == [record["wrong"] for record in second.issue_records()]
    assert sum(wrong) == (candidates - Y).sum()


def test_warnings_are_part_of_the_result(problem):
    X, Y = problem
    dataset = Dataset(X, Y)
    with pytest.warns(ConvergenceWarning):
        found = inspect_dataset(dataset, PMLFSMIR(3, max_iter=1), command="select", n_permutations=19)
    (warning,) = found.warnings
    assert "PMLFSMIR" in warning
    assert warning in found.to_dict()["warnings"]
    assert warning in found.to_html()
    noise = np.random.default_rng(0).random((60, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chance = audit(noise, np.eye(4)[np.arange(60) % 4], fast=True)
    assert chance.is_no_better_than_chance
    assert any("significant" in text for text in chance.to_dict()["warnings"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": slice(5)}, "5"),
        ({"Y": 1}, "label"),
        ({"n_columns": 21}, "n_columns.* 1 to 20"),
        ({"n_columns": 0}, "n_columns"),
        ({"n_columns": -0.5}, "n_columns"),
        ({"n_columns": np.nan}, "n_columns"),
        ({"n_columns": 2.0}, "n_columns"),
        ({"n_columns": "auto"}, "n_columns"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_input_that_cannot_be_audited_raises(problem, change, message):
    X, Y = problem
    options = dict(change)
    rows = options.pop("rows", slice(None))
    if options.pop("Y", None):
        Y = np.ones_like(Y)
    with pytest.raises(ValueError, match=message):
        audit(X[rows], Y[rows], **options)


def test_reasons_name_the_other_label_of_the_row():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    horror = rng.random(300) < 0.4
    Y = np.column_stack([horror, ~horror & (rng.random(300) < 0.9), X[:, 0] > 0]).astype(int)
    Y[7, :2] = 1  # never both otherwise
    found = audit(X, pd.DataFrame(Y, columns=["Horror", "Comedy", "New"]), fast=True)
    record = next(record for record in found.issue_records() if record["row"] == 7)
    assert record["other_label"] in ("also has Horror", "also has Comedy")
    assert record["other_label_effect"] < -0.1
    assert record["n_labels_in_row"] == Y[7].sum()


def test_effects_of_other_labels_are_those_of_ridge_regressions(problem):
    X, Y = problem
    model = ExplainedSupport(kernel="linear", each_row_has_truth=False).fit(X, Y)
    assert model.label_penalty_ is not None
    R = model.chosen_.residuals()
    Z = (R - R.mean(axis=0)) / R.std(axis=0)
    rows, labels = np.arange(5), np.arange(5) % Y.shape[1]
    found = model.effects_of_labels(rows, labels)
    for row, label in zip(rows, labels, strict=True):
        others = np.delete(np.arange(Y.shape[1]), label)
        S = Z[:, others].T @ Z[:, others] / len(Z) + model.label_penalty_ * np.eye(len(others))
        weights = np.linalg.solve(S, Z[:, others].T @ Z[:, label] / len(Z))
        expected = Z[row, others] * weights * R[:, label].std()
        np.testing.assert_allclose(found[row, others], expected, atol=1e-10)
        assert found[row, label] == 0
