"""Tests of `labelsieve issues` and `labelsieve apply-review`."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import fails, run
from labelsieve import draw_candidates, find_label_issues
from labelsieve.io import read, write

pytestmark = pytest.mark.usefixtures("plain_terminal")

NAMES = [f"={k}" if k % 2 else f"bird {k}" for k in range(60)]


@pytest.fixture
def named(planted):
    """Planted data in a CSV file with row names."""
    with open("named.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["bird", *planted.feature_names, *planted.label_names])
        writer.writerows(
            [name, *x, *y] for name, x, y in zip(NAMES, planted.X, planted.Y_candidates, strict=True)
        )
    return "named.csv"


def lines_of(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def judge(path, verdict_of):
    """Fill in verdicts like a spreadsheet that saves semicolons and a byte order mark."""
    lines = lines_of(path)
    with open(path, "w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.DictWriter(stream, lines[0], delimiter=";", lineterminator="\r\n")
        writer.writeheader()
        writer.writerows({**line, "verdict": verdict_of(line)} for line in lines)


def issues_in(capsys, *arguments):
    """Run `issues` and return its JSON."""
    code, out, err = run(capsys, "issues", *arguments, "--json")
    assert code == 0, err
    return json.loads(out, parse_constant=pytest.fail)


def test_wrong_labels_come_first(table, capsys):
    code, out, err = run(capsys, "issues", table, "--labels", "2")
    assert code == 0
    first = next(line for line in out.splitlines() if "label_a" in line)
    assert first.split()[:2] == ["0", "label_a"]
    assert "labelsieve review FILE" in " ".join(out.split())
    assert "60 rows, 5 columns, 2 labels" in err
    assert "estimated" not in out


def test_json_has_the_same_findings(named, capsys):
    found = issues_in(capsys, named, "--labels", "2", "--id", "bird", "-n", "3")
    first = found["label_issues"][0]
    assert (first["row"], first["label"], first["rank"]) == ("bird 0", "label_a", 1)
    assert len(found["label_issues"]) == 3
    assert [label["label"] for label in found["labels"]] == ["label_a", "label_<i>b"]
    assert "share_wrong" not in found["labels"][0]
    assert found["caveat"]


def test_a_review_file_lists_every_label(table, planted, capsys):
    code, _, err = run(capsys, "issues", table, "--labels", "2", "--output", "review.csv")
    assert code == 0
    assert "wrote review.csv" in err
    lines = lines_of("review.csv")
    measured = ["sample", "label", "issue", "rank", "support"]
    assert list(lines[0]) == [*measured, "other labels", "verdict", "draw", "planned"]
    assert len(lines) == planted.Y_candidates.sum()
    issues = find_label_issues(planted.X, planted.Y_candidates)
    assert [int(line["sample"]) for line in lines] == issues.rows.tolist()
    assert {line["verdict"] for line in lines} == {""}
    run(capsys, "issues", table, "--labels", "2", "--output", "review.csv", "--worst", "3")
    assert len(lines_of("review.csv")) == 3


def test_drawn_labels_with_verdicts_give_probabilities(named, planted, capsys):
    drawing = ("issues", named, "--labels", "2", "--id", "bird", "--draw", "50", "-o", "check.csv")
    code, out, _ = run(capsys, *drawing)
    assert (code, out) == (0, "")
    rows, labels = draw_candidates(planted.Y_candidates, 50)
    lines = lines_of("check.csv")
    assert [int(line["sample"]) for line in lines] == rows.tolist()
    assert "rank" not in lines[0]
    columns = {name: label for label, name in enumerate(planted.label_names)}
    judge(
        "check.csv",
        lambda line: "right" if planted.Y[int(line["sample"]), columns[line["label"]]] else "wrong",
    )
    arguments = (named, "--labels", "2", "--checked", "check.csv", "--output", "review.csv")
    code, out, err = run(capsys, "issues", *arguments)
    assert code == 0, err
    assert "wrong, estimated" in out
    assert "probability" in out
    lines = lines_of("review.csv")
    assert "probability" in lines[0]
    assert sum(bool(line["verdict"]) for line in lines) == 50
    checked = (rows, labels, planted.Y[rows, labels])
    expected = find_label_issues(planted.X, planted.Y_candidates, checked=checked)
    assert [int(line["sample"]) for line in lines] == expected.rows.tolist()
    found = issues_in(capsys, *arguments[:-2])
    assert found["n_checked"] == 50
    assert 0 <= found["share_wrong"] <= 1


def test_few_verdicts_give_no_probabilities_and_a_note(table, capsys):
    run(capsys, "issues", table, "--labels", "2", "--draw", "9", "-o", "check.csv")
    assert "check.csv" in run(capsys, "issues", table, "--labels", "2", "--checked", "check.csv")[2]
    judge("check.csv", lambda line: "right")
    found = issues_in(capsys, table, "--labels", "2", "--checked", "check.csv", "-o", "review.csv")
    assert found["n_checked"] == 9
    assert "share_wrong" not in found
    assert "probability" not in lines_of("review.csv")[0]


def test_page_and_terminal_list_the_same_labels_with_reasons(named, capsys):
    arguments = (named, "--labels", "2", "--id", "bird")
    told = issues_in(capsys, *arguments, "--html", "page.html")
    with open("page.html", encoding="utf-8") as stream:
        data = json.loads(re.search(r'id="data">([^<]*)<', stream.read())[1])
    rows = data["rows"]
    listed = [
        (data["ids"][i], data["labels"][label]["n"]) for i, label in zip(rows["i"], rows["l"], strict=True)
    ]
    assert listed[: len(told["label_issues"])] == [(one["row"], one["label"]) for one in told["label_issues"]]
    assert data["candidates"] == told["n_candidates"]
    # Reasons and the rest sum to the support.
    sums = [b + o + q + sum(w[2::3]) for b, o, q, w in zip(*(rows[key] for key in "boqw"), strict=True)]
    assert rows["j"] == [
        total + curved for total, curved in zip(sums, rows.get("c", [0] * len(sums)), strict=True)
    ]
    assert issues_in(capsys, *arguments)["label_issues"] == told["label_issues"]


def test_true_labels_are_shown_if_known(capsys):
    found = issues_in(capsys, "digits", "--kernel", "linear", "-n", "20")
    assert sum(issue["wrong"] for issue in found["label_issues"]) >= 15
    assert found["n_candidates"] == 8715


def test_prediction_options_change_the_estimate(table, planted, capsys):
    run(capsys, "issues", table, "--labels", "2", "--kernel", "rbf", "--no-labels", "-o", "review.csv")
    expected = find_label_issues(planted.X, planted.Y_candidates, kernel="rbf", use_labels=False)
    assert [int(line["sample"]) for line in lines_of("review.csv")] == expected.rows.tolist()
    assert "note:" in run(capsys, "issues", table, "--labels", "2", "--each-row-has-truth")[2]


# apply-review


def test_a_review_changes_only_the_labels_of_a_table(named, planted, capsys):
    run(capsys, "issues", named, "--labels", "2", "--id", "bird", "-o", "review.csv")
    judge("review.csv", lambda line: {"1": "wrong", "2": "right"}.get(line["rank"], ""))
    options = ["--labels", "2", "--id", "bird"]
    code, out, err = run(capsys, "apply-review", named, "review.csv", *options, "-o", "clean.csv")
    assert (code, out) == (0, "")
    n_candidates = int(planted.Y_candidates.sum())
    assert f"{n_candidates - 1} labels stay" in err
    before, after = lines_of(named), lines_of("clean.csv")
    assert (before[0].pop("label_a"), after[0].pop("label_a")) == ("1", "0")
    assert before == after
    # The same review does not match the cleaned data.
    said = fails(capsys, 1, "apply-review", "clean.csv", "review.csv", *options, "-q", "-o", "again.csv")
    assert "'label_a'" in said


def test_candidates_next_to_true_labels_are_cleaned_in_every_format(planted, capsys):
    write(planted, "data.arff")
    run(capsys, "issues", "data.arff", "-o", "review.csv", "-n", "1")
    judge("review.csv", lambda line: "wrong")
    for ending in (".arff", ".npz", ".tsv"):
        code, _, err = run(capsys, "apply-review", "data.arff", "review.csv", "-o", f"clean{ending}")
        assert code == 0, err
        cleaned = read(f"clean{ending}")
        np.testing.assert_array_equal(cleaned.Y_candidates, planted.Y)
        np.testing.assert_array_equal(cleaned.Y, planted.Y)


def test_a_note_names_what_the_cleaned_file_does_not_contain(named, planted, capsys):
    options = ["--labels", "2", "--id", "bird", "--ignore", "noise"]
    run(capsys, "issues", named, *options, "-o", "review.csv")
    judge("review.csv", lambda line: "wrong" if int(line["sample"]) < 5 else "")
    n_emptied = int(planted.Y_candidates[:5].any(axis=1).sum())
    for name, n_notes in (("clean.csv", 2), ("clean.npz", 4)):
        code, _, err = run(capsys, "apply-review", named, "review.csv", *options, "-o", name)
        assert code == 0
        assert f"note: {n_emptied} rows " in err
        assert err.count("note: ") == n_notes


# Errors


def test_verdicts_are_never_overwritten(table, capsys):
    run(capsys, "issues", table, "--labels", "2", "-o", "review.csv")
    run(capsys, "issues", table, "--labels", "2", "-o", "review.csv")  # nothing is lost
    judge("review.csv", lambda line: "right" if line["rank"] == "7" else "")
    for options in ([], ["--draw", "5"]):
        assert "1 verdict" in fails(capsys, 1, "issues", table, "--labels", "2", "-o", "review.csv", *options)


@pytest.mark.parametrize(
    ("header", "line", "named_in_error"),
    [
        ("sample", "60,label_a,right", "'60'"),
        ("id:nest", "=1,label_a,right", "'nest'"),
    ],
)
def test_an_invalid_review_is_one_error_and_writes_nothing(named, header, line, named_in_error, capsys):
    with open("review.csv", "w") as stream:
        stream.write(f"{header},label,verdict\n{line}\n")
    options = ["--labels", "2", "-q", *(["--ignore", "bird"] if header == "sample" else [])]
    for command in (["issues", named, "--checked", "review.csv"], ["apply-review", named, "review.csv"]):
        assert named_in_error in fails(capsys, 1, *command, *options, "-o", "out.csv")


@pytest.mark.parametrize(
    ("arguments", "named_in_error"),
    [
        (["--draw", "5"], "--output"),
        (["--draw", "5", "--checked", "data.csv", "--remove-at", "0.1", "-o", "x.csv"], "--remove-at"),
        (["--draw", "5", "--html", "p.html", "-o", "x.csv"], "--html"),
        (["-o", "review.tsv"], "'review.tsv'"),
        (["-o", "data.csv"], "'data.csv'"),
        (["--checked", "review.csv", "-o", "review.csv"], "'review.csv'"),
    ],
)
def test_usage_errors_of_issues_come_before_any_work(table, arguments, named_in_error, capsys):
    assert named_in_error in fails(capsys, 2, "issues", table, "--labels", "2", *arguments)


def test_usage_errors_of_apply_review_come_before_any_work(table, capsys):
    assert "FILE" in fails(capsys, 2, "apply-review", table, "-o", "x.csv")
    assert "--output" in fails(capsys, 2, "apply-review", table, "review.csv")
    run(capsys, "issues", table, "--labels", "2", "-o", "review.csv")
    command = ("apply-review", table, "review.csv", "--labels", "2", "-o")
    assert "'review.csv'" in fails(capsys, 2, *command, "review.csv")
    assert ".arff" in fails(capsys, 2, *command, "clean.txt")
    assert "none.csv" in fails(capsys, 1, "apply-review", table, "none.csv", "--labels", "2", "-o", "x.csv")


def test_invalid_row_names_are_an_error(table, named, capsys):
    assert "'nest'" in fails(capsys, 1, "issues", named, "--labels", "2", "--id", "nest")
    assert "'noise' repeats" in run(capsys, "issues", table, "--labels", "2", "--id", "noise")[2]
    assert "digits" in fails(capsys, 2, "issues", "digits", "--id", "name")
    named_review = ["issues", named, "--labels", "2", "--id", "bird", "-o", "birds_review.csv"]
    assert run(capsys, *named_review)[0] == 0
    options = ["--labels", "2", "--id", "noise", "-o", "clean.csv"]
    for command in (
        ["issues", named, "--checked", "birds_review.csv"],
        ["apply-review", named, "birds_review.csv"],
    ):
        assert "'bird'" in fails(capsys, 2, *command, *options)


def test_labels_that_all_rows_have_cannot_be_drawn(capsys):
    with open("data.csv", "w") as stream:
        stream.write("x,label:a\n1,1\n2,1\n3,1\n")
    fails(capsys, 1, "issues", "data.csv", "--draw", "5", "-o", "check.csv")
    assert run(capsys, "issues", "data.csv")[0] == 0


# Guarantees


def judged_by_truth(path, planted, *, share=1.0):
    """Write the true verdicts on the first lines of a review file; return how many are right."""
    columns = {name: label for label, name in enumerate(planted.label_names)}
    lines = lines_of(path)
    truth = [
        planted.Y[int(line["sample"]), columns[line["label"]]] for line in lines[: round(share * len(lines))]
    ]
    verdicts = iter([*(["wrong", "right"][value] for value in truth), *[""] * len(lines)])
    judge(path, lambda line: next(verdicts))
    return sum(truth)


@pytest.fixture
def noisy(planted):
    """The planted problem in a CSV file, with twenty more wrong labels."""
    candidates = planted.Y_candidates.copy()
    absent = np.argwhere(candidates == 0)[::2][:20]
    candidates[tuple(absent.T)] = 1
    write(replace(planted, Y=candidates, Y_candidates=None), "noisy.csv")
    return "noisy.csv"


def test_removals_are_proposed_and_applied(noisy, planted, capsys):
    for name, share in ("half.csv", 0.5), ("check.csv", 1):
        run(capsys, "issues", noisy, "--draw", "30", "-o", name)
        judged_by_truth(name, planted, share=share)
    arguments = ("issues", noisy, "--remove-at", "20%", "--checked")
    code, out, _ = run(capsys, *arguments, "half.csv", "-o", "early.csv")
    assert code == 0
    assert "15 of 30" in out
    assert "proposed" not in lines_of("early.csv")[0]
    code, out, err = run(capsys, *arguments, "check.csv", "-o", "all.csv")
    assert code == 0, err
    assert "can be removed" in out
    assert "95%" in out
    proposed = [line for line in lines_of("all.csv") if line["proposed"]]
    assert proposed
    assert {(line["proposed"], line["verdict"]) for line in proposed} == {("remove", "")}
    n_wrong = sum(line["verdict"] == "wrong" for line in lines_of("all.csv"))
    for options, n_removed in ([], n_wrong), (["--proposed"], n_wrong + len(proposed)):
        code, _, err = run(capsys, "apply-review", noisy, "all.csv", *options, "-o", "clean.csv")
        assert code == 0
        assert f"{n_removed} labels removed" in err


def test_cleaned_copies_promise_nothing_about_columns(noisy, planted, capsys):
    run(capsys, "issues", noisy, "-o", "review.csv", "-n", "15")
    judge("review.csv", lambda line: "wrong")
    assert (
        "note: clean.csv.review.json"
        in run(capsys, "apply-review", noisy, "review.csv", "-o", "clean.csv")[2]
    )
    # A random draw from the cleaned copy does not make up for it.
    run(capsys, "issues", "clean.csv", "--draw", "20", "-o", "check.csv")
    judge("check.csv", lambda line: "wrong" if line["sample"] < "3" else "right")
    run(capsys, "apply-review", "clean.csv", "check.csv", "-o", "cleaner.csv")
    told = {}
    for name in (noisy, "clean.csv", "cleaner.csv"):
        code, out, err = run(capsys, "select", name, "-k", "2", "--fdr", "0.1", "--json")
        assert code == 0, err
        told[name] = (
            json.loads(out)["controlled_selection"]["is_cleaned"],
            "corrected with the help" in " ".join(err.split()),
        )
    assert told == {noisy: (False, False), "clean.csv": (True, True), "cleaner.csv": (True, True)}
    assert "at most 10%" not in " ".join(
        run(capsys, "select", "clean.csv", "-k", "2", "--fdr", "0.1")[1].split()
    )


def test_verdicts_of_a_random_draw_do_not_depend_on_the_columns(noisy, planted, capsys):
    run(capsys, "issues", noisy, "--draw", "30", "-o", "check.csv")
    judged_by_truth("check.csv", planted)
    run(capsys, "apply-review", noisy, "check.csv", "-o", "clean.csv")
    assert not Path("clean.csv.review.json").exists()


@pytest.fixture
def dropped(planted):
    """The planted problem in a CSV file, without ten of the true labels."""
    labels = planted.Y.copy()
    labels[tuple(np.argwhere(labels)[::5][:10].T)] = 0
    write(replace(planted, Y=labels, Y_candidates=None), "dropped.csv")
    return "dropped.csv"


def test_missing_labels_are_drawn_proposed_and_added(dropped, planted, capsys):
    arguments = (dropped, "--which", "missing")
    found = issues_in(capsys, *arguments, "--html", "page.html")
    assert found["answers"][0]["question"] == "Which labels are missing?"
    assert "Labels that may be missing" in Path("page.html").read_text()
    run(capsys, "issues", *arguments, "--draw", "50", "-o", "check.csv")
    assert 0 < len(lines_of("check.csv")) < 10  # a tenth of the absent labels
    n_right = judged_by_truth("check.csv", planted)
    out = run(capsys, "issues", *arguments, "--checked", "check.csv", "--add-at", "20%")[1]
    assert "at least 10 reviewed" in out
    run(capsys, "apply-review", dropped, "check.csv", "-o", "full.csv")
    n_added = int(read("full.csv").Y.sum() - read(dropped).Y.sum())
    assert n_added == n_right > 0
    assert Path("full.csv.review.json").exists()


def test_what_was_asked_for_without_reviews_is_answered(noisy, planted, capsys):
    run(capsys, "issues", noisy, "--draw", "30", "-o", "check.csv")
    judged_by_truth("check.csv", planted)
    out = run(capsys, "issues", noisy, "--checked", "check.csv", "--add-at", "20%", "-o", "all.csv")[1]
    assert "No absent label was reviewed" in out
    assert "proposed" not in lines_of("all.csv")[0]


def test_reviews_that_are_no_random_draw_are_not_used(noisy, planted, capsys):
    run(capsys, "issues", noisy, "-o", "review.csv", "-n", "20")
    judged_by_truth("review.csv", planted)
    code, out, _ = run(
        capsys, "issues", noisy, "--checked", "review.csv", "--remove-at", "20%", "-o", "all.csv"
    )
    assert code == 0
    assert "not a random draw" in " ".join(out.split())
    assert "proposed" not in lines_of("all.csv")[0]


@pytest.mark.parametrize("share", ["0", "0%", "100%", "1", "-0.1", "ten", "nan"])
@pytest.mark.parametrize("option", ["--remove-at", "--add-at"])
def test_bounds_must_be_shares(table, share, option, capsys):
    assert option in fails(capsys, 2, "issues", table, "--checked", "x.csv", f"{option}={share}")


def test_unlisted_labels_need_a_draw_of_missing_ones(table, capsys):
    for options in (["--unlisted"], ["--unlisted", "--draw", "5", "-o", "x.csv"]):
        assert "--unlisted" in fails(capsys, 2, "issues", table, "--labels", "2", *options)
