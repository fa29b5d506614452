import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelsieve import LabelSupport, draw_candidates, find_label_issues


@pytest.fixture(scope="module")
def data():
    """Three labels that follow a feature each, with wrong candidates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    truth = (X[:, :3] > 0).astype(int)
    return X, np.maximum(truth, rng.random(truth.shape) < 0.2), truth


def checked(candidates, truth, n):
    """The answers of a person who knows the truth."""
    rows, labels = draw_candidates(candidates, n)
    return rows, labels, truth[rows, labels]


def test_every_candidate_is_listed_once_least_supported_first(data):
    X, Y, truth = data
    issues = find_label_issues(X, Y)
    assert issues.n_candidates == Y.sum()
    assert (Y[issues.rows, issues.labels] == 1).all()
    assert len(set(zip(issues.rows.tolist(), issues.labels.tolist(), strict=True))) == Y.sum()
    support = issues.support[issues.rows, issues.labels]
    assert (np.diff(support) >= 0).all()
    wrong = truth[issues.rows, issues.labels] == 0
    assert wrong[:30].mean() > 3 * wrong.mean()


def test_results_equal_those_of_the_estimator(data):
    X, Y, truth = data
    options = {"kernel": "linear", "use_labels": False}
    checks = checked(Y, truth, 20)
    issues = find_label_issues(X, Y, **options, checked=checks)
    model = LabelSupport(**options).fit(X, Y, checks)
    np.testing.assert_array_equal(issues.support, model.support_)
    np.testing.assert_array_equal(issues.confidence, model.confidence_)
    np.testing.assert_array_equal(issues.probability, model.probability_)


def test_names_of_rows_and_labels_are_kept(data):
    X, Y, _ = data
    ids = [f"r{i}" for i in range(300)]
    given = find_label_issues(X, Y, label_names=["a", "b", "c"], row_ids=ids).to_frame()
    of_frames = find_label_issues(
        pd.DataFrame(X, index=ids), pd.DataFrame(Y, columns=["a", "b", "c"], index=ids)
    ).to_frame()
    pd.testing.assert_frame_equal(given, of_frames)
    assert set(given["label"]) == {"a", "b", "c"}
    assert given["row"].str.startswith("r").all()
    plain = find_label_issues(X.tolist(), Y.tolist()).to_frame()
    assert plain["row"].tolist() == [int(name[1:]) for name in given["row"]]
    assert set(plain["label"]) == {"y0", "y1", "y2"}


def test_there_are_no_probabilities_without_reviews(data):
    X, Y, _ = data
    issues = find_label_issues(X, Y)
    assert issues.probability is None
    columns = "row label issue rank support verdict"
    assert list(issues.to_frame()) == columns.split()
    assert list(issues.label_summary()) == ["label", "n_candidates", "auc", "is_predicted", "n_flagged"]
    assert issues.share_wrong is None
    text = str(issues)
    assert "rank 1 of 536" in text
    assert "estimated" not in text


def test_few_reviews_change_the_order_and_show_no_probability(data):
    X, Y, truth = data
    issues = find_label_issues(X, Y, checked=checked(Y, truth, 49))
    assert issues.probability is not None
    assert (np.diff(issues.probability[issues.rows, issues.labels]) >= 0).all()
    assert "probability" not in issues.to_frame()
    assert "share_wrong" not in issues.label_summary()
    assert "49" in issues.caveat()
    assert "probability 0." not in str(issues)


def test_fifty_reviews_give_probabilities_and_shares(data):
    X, Y, truth = data
    issues = find_label_issues(X, Y, checked=checked(Y, truth, 50))
    frame, labels = issues.to_frame(), issues.label_summary()
    assert frame["probability"].is_monotonic_increasing
    assert frame["probability"].between(0, 1).all()
    expected = (1 - frame["probability"]).groupby(frame["label"]).mean()
    assert labels.set_index("label")["share_wrong"].to_dict() == pytest.approx(expected.to_dict())
    assert issues.share_wrong == pytest.approx(1 - frame["probability"].mean())
    assert issues.share_wrong == pytest.approx(1 - truth.sum() / Y.sum(), abs=0.1)
    assert f"{issues.share_wrong:.0%}" in issues.caveat()
    assert ": probability 0." in str(issues)


def test_reviewed_candidates_have_verdicts_and_are_not_listed_again(data):
    X, Y, truth = data
    rows, labels, answers = checked(Y, truth, 60)
    issues = find_label_issues(X, Y, checked=(rows, labels, answers))
    frame = issues.to_frame()
    assert frame["verdict"].value_counts().to_dict() == {
        "": int(Y.sum()) - 60,
        "right": int(answers.sum()),
        "wrong": int((1 - answers).sum()),
    }
    for row, label, answer in zip(rows, labels, answers, strict=True):
        own = frame[(frame["row"] == row) & (frame["label"] == f"y{label}")]
        assert own["verdict"].tolist() == ["right" if answer else "wrong"]
        assert own["probability"].tolist() == [answer]
    assert "probability 0\n" not in issues.summary(n_shown=20)


def test_reviews_may_use_small_integer_types(data):
    X, Y, truth = data
    rows, labels, answers = checked(Y[:200], truth[:200], 60)
    wide = find_label_issues(X[:200], Y[:200], checked=(rows, labels, answers))
    small = find_label_issues(
        X[:200], Y[:200], checked=(rows.astype(np.uint8), labels.astype(np.int8), answers)
    )
    assert rows.max() * Y.shape[1] > 255  # a place among all would not fit
    assert small.verdicts() == wide.verdicts()


def test_labels_below_one_half_are_flagged(data):
    X, Y, truth = data
    issues = find_label_issues(X, Y)
    expected = ((issues.confidence < 0.5) & (Y > 0)).sum(axis=0)
    assert issues.label_summary()["n_flagged"].tolist() == expected.tolist()
    rows, labels, answers = checked(Y, truth, 50)
    issues = find_label_issues(X, Y, checked=(rows, labels, answers))
    is_flagged = (issues.probability < 0.5) & (Y > 0)
    is_flagged[rows, labels] = False
    assert issues.label_summary()["n_flagged"].tolist() == is_flagged.sum(axis=0).tolist()
    assert issues.label_summary()["n_candidates"].tolist() == Y.sum(axis=0).tolist()


def test_labels_without_candidates_are_left_out_of_the_summary(data):
    X, Y, truth = data
    wide = np.column_stack([np.zeros(300, dtype=int), Y])
    rows, labels, answers = checked(Y, truth, 50)
    issues = find_label_issues(X, sp.csr_array(wide), checked=(rows, labels + 1, answers))
    assert issues.label_summary()["label"].tolist() == ["y1", "y2", "y3"]
    assert np.isfinite(issues.label_summary()["share_wrong"]).all()


def test_control_characters_in_names_are_escaped(data):
    X, Y, _ = data
    text = str(find_label_issues(X, Y, label_names=["\x1b[31m", "two\nlines", "c"]))
    assert "\x1b" not in text
    assert "two lines" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label_names": ["a", "b"]}, "label_names.* 3 .*2"),
        ({"label_names": ["a", "b", "a"]}, "label_names.*'a' 2 times"),
        ({"row_ids": range(299)}, "row_ids.* 300 .*299"),
        ({"row_ids": [*range(299), 0]}, "row_ids.* 0 2 times"),
        ({"kernel": "cubic"}, "kernel"),
        ({"checked": ([0], [0])}, "checked.*tuple"),
    ],
)
def test_invalid_options_raise(data, options, said):
    X, Y, _ = data
    with pytest.raises(ValueError, match=said):
        find_label_issues(X, Y, **options)


def test_drawn_candidates_are_candidates_and_differ(data):
    _, Y, _ = data
    rows, labels = draw_candidates(Y, 100)
    assert (Y[rows, labels] == 1).all()
    assert len(set(zip(rows.tolist(), labels.tolist(), strict=True))) == 100
    for labels_of in (sp.csr_array(Y), sp.csc_matrix(Y), pd.DataFrame(Y), Y.tolist()):
        again = draw_candidates(labels_of, 100)
        np.testing.assert_array_equal(again, (rows, labels))


def test_a_larger_draw_extends_a_smaller_one(data):
    _, Y, _ = data
    few, many = (set(zip(*map(tuple, draw_candidates(Y, n)), strict=True)) for n in (50, 80))
    assert few < many
    assert few != set(zip(*map(tuple, draw_candidates(Y, 50, random_state=1)), strict=True))


def test_every_candidate_is_drawn_as_often_as_another():
    Y = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 0]])
    counts = np.zeros(Y.shape)
    for seed in range(2000):
        rows, labels = draw_candidates(Y, 2, random_state=seed)
        counts[rows, labels] += 1
    assert (counts[Y == 0] == 0).all()
    # 2 of 5: 800 expected, standard deviation 22.
    assert np.abs(counts[Y == 1] - 800).max() < 100


def test_a_draw_larger_than_the_table_takes_all_candidates_that_vary():
    Y = np.array([[1, 0], [1, 1], [1, 1]])
    rows, labels = draw_candidates(Y, 50)
    assert (rows.tolist(), labels.tolist()) == ([1, 2], [1, 1])


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "50"])
def test_the_number_to_draw_must_be_an_integer(n):
    with pytest.raises(ValueError, match=r"^n "):
        draw_candidates([[1, 0], [0, 1]], n)


def test_nothing_can_be_drawn_of_labels_that_do_not_vary():
    with pytest.raises(ValueError, match="Y must"):
        draw_candidates([[1, 0], [1, 0]])
