"""`labelsieve issues` and `labelsieve apply-review`: from doubts to a review, and from the review to cleaned data."""

import csv
import json
import os
import re
import shlex

import numpy as np
import pytest

from conftest import fails, run
from labelsieve import draw_candidates, find_label_issues
from labelsieve.cli.issues import EPILOG
from labelsieve.io import read, write

pytestmark = pytest.mark.usefixtures("plain_terminal")

NAMES = [f"={k}" if k % 2 else f"bird {k}" for k in range(60)]


@pytest.fixture
def named(planted):
    """The planted data in a CSV file with names of the rows."""
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
    """Fill in the verdicts as a person would, in a spreadsheet that saves semicolons and a byte order mark."""
    lines = lines_of(path)
    with open(path, "w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.DictWriter(stream, lines[0], delimiter=";", lineterminator="\r\n")
        writer.writeheader()
        writer.writerows({**line, "verdict": verdict_of(line)} for line in lines)


def test_the_odd_candidate_comes_first_and_the_blind_spot_is_told(table, capsys):
    code, out, err = run(capsys, "issues", table, "--labels", "2")
    assert code == 0
    first = next(line for line in out.splitlines() if "label_a" in line)
    assert first.split()[:2] == ["0", "label_a"]
    assert "systematic noise" in " ".join(out.split())
    assert "not a probability" in out
    assert "--draw 50" in " ".join(out.split())
    assert "60 rows, 5 columns, 2 labels" in err
    assert "flagged" in out
    assert "wrong, estimated" not in out


def test_a_review_file_lists_every_candidate(table, planted, capsys):
    code, _, err = run(capsys, "issues", table, "--labels", "2", "--output", "review.csv")
    assert code == 0
    assert "wrote review.csv" in err
    lines = lines_of("review.csv")
    assert list(lines[0]) == ["sample", "label", "rank", "least_supported_percent", "verdict"]
    assert len(lines) == planted.Y_candidates.sum()
    issues = find_label_issues(planted.X, planted.Y_candidates)
    assert [int(line["sample"]) for line in lines] == issues.rows.tolist()
    assert {line["verdict"] for line in lines} == {""}
    run(capsys, "issues", table, "--labels", "2", "--output", "review.csv", "--worst", "3")
    assert len(lines_of("review.csv")) == 3


def test_the_column_of_names_is_no_feature(named, planted, capsys):
    code, out, err = run(capsys, "issues", named, "--labels", "2", "--id", "bird", "-o", "review.csv")
    assert code == 0, err
    assert "5 columns" in err
    assert "bird 0" in out
    lines = lines_of("review.csv")
    assert next(iter(lines[0])) == "id:bird"
    assert lines[0]["id:bird"] == "bird 0"
    assert {line["id:bird"].lstrip("'") for line in lines} <= set(NAMES)
    assert run(capsys, "issues", named, "--labels", "2", "--id", "bird", "--ignore", "noise")[0] == 0


def test_drawn_candidates_checked_by_a_person_give_probabilities(named, planted, capsys):
    code, out, err = run(
        capsys, "issues", named, "--labels", "2", "--id", "bird", "--draw", "50", "-o", "check.csv"
    )
    assert (code, out) == (0, "")
    assert "wrote 50 random candidates to check.csv" in err
    rows, labels = draw_candidates(planted.Y_candidates, 50)
    lines = lines_of("check.csv")
    assert [int(line["sample"]) for line in lines] == rows.tolist()
    assert "rank" not in lines[0]
    truth = {
        (str(row), planted.label_names[label]): planted.Y[row, label]
        for row in range(60)
        for label in range(2)
    }
    judge("check.csv", lambda line: "keep" if truth[line["sample"], line["label"]] else "remove")
    code, out, err = run(
        capsys, "issues", named, "--labels", "2", "--checked", "check.csv", "--output", "review.csv"
    )
    assert code == 0, err
    assert "estimated from 50 checked candidates" in " ".join(out.split())
    assert "wrong, estimated" in out
    assert "chance right" in out
    assert "holds no verdict" not in err
    lines = lines_of("review.csv")
    assert "probability" in lines[0]
    assert sum(bool(line["verdict"]) for line in lines) == 50
    expected = find_label_issues(
        planted.X, planted.Y_candidates, checked=(rows, labels, planted.Y[rows, labels])
    )
    assert [int(line["sample"]) for line in lines] == expected.rows.tolist()


def test_few_checks_show_no_probability(table, capsys):
    run(capsys, "issues", table, "--labels", "2", "--draw", "9", "-o", "check.csv")
    judge("check.csv", lambda line: "keep")
    code, out, _ = run(capsys, "issues", table, "--labels", "2", "--checked", "check.csv", "-o", "review.csv")
    assert code == 0
    assert "uses 9 checked candidates, not a probability" in " ".join(out.split())
    assert "probability" not in lines_of("review.csv")[0]


def test_a_review_without_verdicts_is_told(table, capsys):
    run(capsys, "issues", table, "--labels", "2", "--draw", "9", "-o", "check.csv")
    code, out, err = run(capsys, "issues", table, "--labels", "2", "--checked", "check.csv")
    assert code == 0
    assert "note: check.csv holds no verdict yet; write keep or remove into its verdict column." in err
    assert "checked candidates" not in out


def test_the_page_lists_what_the_terminal_lists_with_reasons(named, capsys):
    arguments = ("issues", named, "--labels", "2", "--id", "bird")
    code, out, err = run(capsys, *arguments, "--json", "--html", "page.html")
    assert code == 0, err
    assert "wrote page.html" in err
    told = json.loads(out)
    with open("page.html", encoding="utf-8") as stream:
        page = stream.read()
    data = json.loads(re.search(r'id="data">([^<]*)<', page)[1])
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
    # The same without a page.
    again = json.loads(run(capsys, *arguments, "--json")[1])
    assert again["label_issues"] == told["label_issues"]
    assert "one of --draw and --html" in fails(
        capsys, 2, *arguments, "--draw", "5", "-o", "x.csv", "--html", "p.html"
    )


def test_json_says_the_same(named, capsys):
    code, out, _ = run(capsys, "issues", named, "--labels", "2", "--id", "bird", "--json", "-n", "3")
    assert code == 0
    found = json.loads(out)
    first = found["label_issues"][0]
    assert (first["row"], first["label"], first["rank"]) == ("bird 0", "label_a", 1)
    assert first["least_supported_percent"] == pytest.approx(100 / found["n_candidates"])
    assert len(found["label_issues"]) == 3
    assert [label["label"] for label in found["labels"]] == ["label_a", "label_<i>b"]
    assert "share_wrong" not in found["labels"][0]
    assert "systematic noise" in found["caveat"]


def test_the_catalogue_and_its_truth(capsys):
    code, out, err = run(capsys, "issues", "digits", "--kernel", "linear", "-n", "20")
    assert code == 0, err
    assert sum(line.endswith("wrong") for line in map(str.rstrip, out.splitlines())) >= 15
    assert "8,715 candidates" in err


def test_options_reach_the_estimate(table, planted, capsys):
    run(capsys, "issues", table, "--labels", "2", "--kernel", "rbf", "--no-labels", "-o", "review.csv")
    expected = find_label_issues(planted.X, planted.Y_candidates, kernel="rbf", use_labels=False)
    assert [int(line["sample"]) for line in lines_of("review.csv")] == expected.rows.tolist()
    code, _, err = run(capsys, "issues", table, "--labels", "2", "--each-row-has-truth")
    assert code == 0
    assert "note: each_row_has_truth is dropped" in err


def test_seeds_draw_other_candidates_and_larger_draws_the_same_and_more(table, capsys):
    for name, options in (("a", []), ("b", ["--seed", "1"]), ("c", ["--seed", "0"])):
        number = "8" if name != "c" else "12"
        run(capsys, "issues", table, "--labels", "2", "--draw", number, "-o", f"{name}.csv", *options)
    first, other, more = (
        {(line["sample"], line["label"]) for line in lines_of(f"{name}.csv")} for name in "abc"
    )
    assert first != other
    assert first < more


def test_a_review_cleans_the_data(named, planted, capsys):
    run(capsys, "issues", named, "--labels", "2", "--id", "bird", "-o", "review.csv")
    judge("review.csv", lambda line: {"1": "remove", "2": "keep"}.get(line["rank"], ""))
    options = ["--labels", "2", "--id", "bird", "-o", "clean.csv"]
    code, out, err = run(capsys, "apply-review", named, "review.csv", *options)
    assert (code, out) == (0, "")
    n_candidates = int(planted.Y_candidates.sum())
    assert f"1 candidate removed, 1 kept; {n_candidates - 2} of {n_candidates} have no verdict" in err
    cleaned = read("clean.csv", ignore="bird")
    np.testing.assert_array_equal(cleaned.Y, planted.Y)
    np.testing.assert_array_equal(cleaned.X, planted.X)
    assert [line["bird"] for line in lines_of("clean.csv")] == NAMES
    # The removed candidate is none any more, so the same review does not fit the cleaned data.
    assert "line 2: label 'label_a' is no candidate of this row" in fails(
        capsys, 1, "apply-review", "clean.csv", "review.csv", "-o", "again.csv"
    )


def test_candidates_beside_the_truth_are_cleaned_in_every_format(planted, capsys):
    write(planted, "data.arff")
    run(capsys, "issues", "data.arff", "-o", "review.csv", "-n", "1")
    judge("review.csv", lambda line: "remove")
    for ending in (".arff", ".npz", ".tsv"):
        code, _, err = run(capsys, "apply-review", "data.arff", "review.csv", "-o", f"clean{ending}")
        assert code == 0, err
        cleaned = read(f"clean{ending}")
        np.testing.assert_array_equal(cleaned.Y_candidates, planted.Y)
        np.testing.assert_array_equal(cleaned.Y, planted.Y)


def test_rows_that_lose_their_last_candidate_are_counted(table, planted, capsys):
    run(capsys, "issues", table, "--labels", "2", "-o", "review.csv")
    judge("review.csv", lambda line: "remove" if int(line["sample"]) < 5 else "")
    _, _, err = run(capsys, "apply-review", table, "review.csv", "--labels", "2", "-o", "clean.npz")
    n_emptied = int(planted.Y_candidates[:5].any(axis=1).sum())
    assert f"note: {n_emptied} rows lost the last candidate." in err


def test_formats_that_hold_no_names_say_so(named, capsys):
    run(capsys, "issues", named, "--labels", "2", "--id", "bird", "-o", "review.csv")
    code, _, err = run(capsys, "apply-review", named, "review.csv", "--labels", "2", "-o", "clean.npz")
    assert code == 0
    assert "clean.npz does not hold the names of the rows" in err


def test_what_the_cleaned_file_does_not_hold_is_told(capsys):
    with open("data.csv", "w") as stream:
        stream.write("bird,colour,note,x,tag_a,tag_b\n")
        stream.writelines(f"b{k},{('red', 'blue')[k % 2]},seen,{k},{k % 2},{int(k < 3)}\n" for k in range(8))
    options = ["--labels", "tag_*", "--id", "bird", "--ignore", "note"]
    assert run(capsys, "issues", "data.csv", *options, "-o", "review.csv")[0] == 0
    code, _, err = run(capsys, "apply-review", "data.csv", "review.csv", *options, "-o", "clean.csv")
    assert code == 0
    assert "does not hold" not in err
    assert list(lines_of("clean.csv")[0]) == ["bird", "colour", "note", "x", "tag_a", "tag_b"]
    code, _, err = run(
        capsys, "apply-review", "data.csv", "review.csv", *options, "--nominal", "code", "-o", "clean.arff"
    )
    assert code == 0
    assert "note: clean.arff does not hold the columns that --ignore leaves out." in err


def test_verdicts_are_never_overwritten(table, capsys):
    run(capsys, "issues", table, "--labels", "2", "-o", "review.csv")
    run(capsys, "issues", table, "--labels", "2", "-o", "review.csv")  # nothing is lost
    judge("review.csv", lambda line: "keep" if line["rank"] == "7" else "")
    for options in ([], ["--draw", "5"]):
        said = fails(capsys, 1, "issues", table, "--labels", "2", "-o", "review.csv", *options)
        assert "review.csv: holds 1 verdict, which would be lost" in said
    assert "is read or written already" in fails(
        capsys, 2, "issues", table, "--labels", "2", "--checked", "review.csv", "-o", "review.csv"
    )


@pytest.mark.parametrize(
    ("header", "line", "said"),
    [
        ("sample", "60,label_a,keep", "review.csv, line 2: '60' is no row of the data"),
        ("sample", "0,label_x,keep", "review.csv, line 2: 'label_x' is no label of the data"),
        ("sample", "0,label_a,yes", "review.csv, line 2: the verdict must be keep, remove or nothing"),
        ("sample", "0,label_<i>b,keep\n0,label_<i>b,", "review.csv, line "),
        ("sample", "0,label_a,keep\n0,label_a,", "line 3: this row and label stand in line 2 already"),
        ("id:bird", "=0,label_a,keep", "line 2: no row of the data is called '=0'"),
        ("id:nest", "=1,label_a,keep", "has no column 'nest'"),
        ("name", "=1,label_a,keep", "is no review file of these data"),
    ],
)
def test_a_wrong_review_is_refused_and_nothing_is_written(named, header, line, said, capsys):
    with open("review.csv", "w") as stream:
        stream.write(f"{header},label,verdict\n{line}\n")
    options = ["--labels", "2", *(["--ignore", "bird"] if header in ("sample", "name") else [])]
    for command in (["issues", named, "--checked", "review.csv"], ["apply-review", named, "review.csv"]):
        assert said in fails(capsys, 1, *command, *options, "-o", "out.csv")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--draw", "5"], "needs --output"),
        (["--draw", "5", "--checked", "data.csv", "-o", "x.csv"], "give one of --draw and --checked"),
        (["--draw", "0", "-o", "x.csv"], "Invalid value for '--draw'"),
        (["-o", "review.tsv"], "'review.tsv' must end in .csv"),
        (["-o", "data.csv"], "'data.csv' is read or written already"),
        (["-o", "nowhere/review.csv"], "is not a file in an existing folder"),
        (["--kernel", "cubic"], "'cubic' is not one of"),
        (["data.csv"], "the same file is given twice"),
    ],
)
def test_wrong_usage_is_told_before_any_work(table, arguments, said, capsys):
    assert said in fails(capsys, 2, "issues", table, "--labels", "2", *arguments)


def test_wrong_names_of_rows_are_told(table, named, capsys):
    assert "has no column 'nest'" in fails(capsys, 1, "issues", named, "--labels", "2", "--id", "nest")
    said = fails(capsys, 1, "issues", table, "--labels", "2", "--id", "noise")
    assert "column 'noise' must name every row once" in said
    assert "leave out --id" in said
    assert "the rows of digits have no names" in fails(capsys, 2, "issues", "digits", "--id", "name")
    run(capsys, "issues", table, "--labels", "2", "-o", "review.csv")
    said = fails(capsys, 2, "issues", named, "--labels", "2", "--id", "bird", "--checked", "review.csv")
    assert "'review.csv' numbers its rows, not by 'bird'" in said
    options = ["--labels", "2", "--id", "bird", "-o", "clean.csv"]
    said = fails(capsys, 2, "apply-review", named, "review.csv", *options)
    assert "'review.csv' numbers its rows, not by 'bird'" in said


def test_a_file_that_is_no_review_is_told_before_the_data_are_read(named, capsys):
    with open("other.csv", "w") as stream:
        stream.write("bird 0,0,label_a,1,0.5,keep\n")
    for command in (["issues", named, "--checked", "other.csv"], ["apply-review", named, "other.csv"]):
        said = fails(capsys, 1, *command, "--labels", "2", "-o", "out.csv")
        assert "other.csv, line 1: is no review file of these data: it needs one column 'verdict'" in said


def test_a_review_needs_data_and_a_place_to_write(table, capsys):
    assert "give the data file, then the review file" in fails(
        capsys, 2, "apply-review", table, "-o", "x.csv"
    )
    assert "--output" in fails(capsys, 2, "apply-review", table, "review.csv")
    run(capsys, "issues", table, "--labels", "2", "-o", "review.csv")
    said = fails(capsys, 2, "apply-review", table, "review.csv", "--labels", "2", "-o", "review.csv")
    assert "is read or written already" in said
    said = fails(capsys, 2, "apply-review", table, "review.csv", "--labels", "2", "-o", "clean.txt")
    assert "must end in one of" in said
    said = fails(capsys, 1, "apply-review", table, "none.csv", "--labels", "2", "-o", "x.csv")
    assert "none.csv: does not exist" in said


def test_the_examples_of_the_help_run_one_after_the_other(capsys):
    rng = np.random.default_rng(0)
    X = rng.random((30, 8))
    names = [*(f"x{j}" for j in range(8)), *(f"label_{j}" for j in range(5))]
    with open("data.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", *names])
        writer.writerows([f"row {k}", *row] for k, row in enumerate(np.hstack([X, X[:, :5] > 0.5]).tolist()))
    examples = [line for line in EPILOG.splitlines() if line.startswith("labelsieve ")]
    assert len(examples) == 6
    for example in examples:
        code, _, err = run(capsys, *shlex.split(example)[1:])
        assert code == 0, err


def test_a_full_disk_leaves_no_review(table, capsys):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no full device")
    os.symlink("/dev/full", "full.csv")
    code, out, err = run(capsys, "issues", table, "--labels", "2", "-o", "full.csv")
    assert (code, out) == (1, "")
    assert "full.csv: cannot be written" in err


def test_labels_that_all_rows_have_cannot_be_drawn(capsys):
    with open("data.csv", "w") as stream:
        stream.write("x,label:a\n1,1\n2,1\n3,1\n")
    said = fails(capsys, 1, "issues", "data.csv", "--draw", "5", "-o", "check.csv")
    assert "a candidate of some rows but not of all" in said
    code, out, _ = run(capsys, "issues", "data.csv")
    assert code == 0
    assert "not a probability" in out
