"""Tests of `labelsieve select`."""

import csv
import json
import os
import re

import numpy as np
import pytest

from conftest import fails, run
from labelsieve import METHODS
from labelsieve.io import Dataset, read, write

pytestmark = pytest.mark.usefixtures("plain_terminal")

PML_FSMIR = ("--method", "pml-fsmir")
DATA = "x,z,a,b\n0.5,1,1,0\n2,0,1,1\n1,1,0,1\n"


def found_in(capsys, *arguments):
    """Run `select` and return its JSON."""
    code, out, err = run(capsys, "select", *arguments, "--json")
    assert code == 0, err
    return json.loads(out, parse_constant=pytest.fail)


def test_the_table_ranks_the_planted_features_first(capsys, table):
    code, out, err = run(capsys, "select", table, "--labels", "2", "-k", "2")
    assert code == 0
    ranked = re.findall(r"^ +(\d+) +(\S+) +[\d.]+ +[\d.]+ +█", out, re.MULTILINE)
    assert sorted(name for _, name in ranked) == ["[red]width", "length"]
    assert [rank for rank, _ in ranked] == ["1", "2"]
    assert err.startswith("data: 60 rows, 5 ")


@pytest.mark.parametrize("width", ["40", "80"])
def test_long_names_are_cut_but_numbers_are_not(capsys, monkeypatch, table, width):
    monkeypatch.setenv("COLUMNS", width)
    code, out, _ = run(capsys, "select", table, "--labels", "2", "--all")
    assert code == 0
    assert max(map(len, out.splitlines())) <= int(width)
    assert "long_" * 10 not in out
    assert re.search(r"^ +\d +:bell: \S* +\d\.\d ", out, re.MULTILINE)
    assert ("criterion" in out) == (width == "80")


def test_json_contains_the_findings(capsys, planted):
    write(planted, "data.npz")
    found = found_in(capsys, "data.npz", "-k", "40%", "-p", "ridge=0.5", "-p", "redundancy=inf")
    sizes = (found["n_rows"], found["n_features"], found["n_labels"])
    assert (found["method"], *sizes) == ("evidence", 60, 5, 2)
    assert (found["parameters"]["ridge"], found["parameters"]["redundancy"]) == (0.5, "inf")
    assert found["evidence_test"]["p_value"] == 0.005
    assert found["evidence_test"]["no_better_than_chance"] is False
    assert [column["rank"] for column in found["columns"]] == [1, 2]
    assert {column["column"] for column in found["columns"]} == {"length", "[red]width"}
    assert "label_issues" not in found  # labels are checked on request


def test_listed_labels_show_whether_they_are_wrong_if_known(capsys, planted, table):
    write(planted, "data.npz")
    first, *others = found_in(capsys, "data.npz", "-k", "2", "--check-labels")["label_issues"]
    assert (first["row"], first["label"], first["wrong"]) == (0, "label_a", True)
    assert len(others) == 19
    assert not any(issue["wrong"] for issue in others)
    without_truth = found_in(capsys, table, "--labels", "2", "--check-labels")["label_issues"]
    assert all("wrong" not in issue for issue in without_truth)


def test_csv_lists_all_features_on_request(capsys, table, planted):
    assert run(capsys, "select", table, "--labels", "label_*", "-o", "all.csv", "--all", "-k", "2")[0] == 0
    with open("all.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["column"] for row in rows} == set(planted.feature_names)
    assert [row["kept"] for row in rows] == ["True", "True", "False", "False", "False"]
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("name", "given", "start"),
    [
        ("found.csv", (), "rank,column,"),
        ("found.JSON", (), "{"),
        ("found.txt", (), "rank "),
        ("found.csv", ("--json",), "{"),
    ],
)
def test_the_file_extension_sets_the_format(capsys, table, name, given, start):
    code, out, err = run(capsys, "select", table, "--labels", "2", "-o", name, *given)
    assert (code, out) == (0, "")
    assert f"wrote {name}" in err
    with open(name, encoding="utf-8") as stream:
        assert stream.read().startswith(start)


def test_a_copy_of_the_data_keeps_selected_features_and_all_labels(capsys, planted):
    write(planted, "data.npz")
    assert run(capsys, "select", "data.npz", "-k", "2", "--write-data", "small.csv")[0] == 0
    copy = read("small.csv")
    assert copy.feature_names == ("length", "[red]width")
    np.testing.assert_array_equal(copy.X, planted.X[:, :2])
    np.testing.assert_array_equal(copy.Y, planted.Y)
    np.testing.assert_array_equal(copy.Y_candidates, planted.Y_candidates)


def test_a_copy_of_a_table_keeps_its_columns(capsys):
    with open("data.csv", "w") as stream:
        stream.write("name;colour;x;tags\n")
        stream.writelines(
            f"r{k};{'red' if k % 2 else 'blue'};{k % 5},5;{'warm' if k % 2 else 'cold'}\n" for k in range(40)
        )
    options = ("--labels", "tags", "-k", "1")
    assert run(capsys, "select", "data.csv", *options, "--write-data", "small.csv")[0] == 0
    with open("small.csv") as stream:
        assert [next(stream), next(stream)] == ["name;colour;tags\n", "r0;blue;cold\n"]
    found = found_in(capsys, "data.csv", *options)
    assert [column["column"] for column in found["columns"]] == ["colour"]
    roles = {column["column"]: column["role"] for column in found["table"]}
    assert roles == {"name": "id", "colour": "category", "x": "number", "tags": "label"}


def test_quiet_leaves_standard_error_empty_and_a_warning_is_a_note(capsys, table):
    arguments = ("select", table, "--labels", "2", *PML_FSMIR, "-p", "max_iter=2", "--json")
    code, out, err = run(capsys, *arguments, "--quiet")
    assert (code, err) == (0, "")
    assert json.loads(out)["converged"] is False
    err = run(capsys, *arguments)[2]
    assert re.search(r"^note: PMLFSMIR did not converge", err, re.MULTILINE)


def test_selected_features_without_evidence_are_noted_once(capsys):
    with open("idle.csv", "w") as stream:
        stream.write("x,zero,nought,a\n" + "".join(f"{row % 2},0,{row % 5},{row % 2}\n" for row in range(20)))
    for method in ("evidence", "sum-f"):
        options = ("--labels", "a", "-k", "2", "--method", method, "--nominal", "code")
        err = run(capsys, "select", "idle.csv", *options)[2]
        assert err.count("note: 1 of the 2 selected") == 1


@pytest.mark.parametrize("method", ["evidence", "sum-f"])
def test_auto_chooses_the_number_of_features(capsys, table, method):
    arguments = (table, "--labels", "2", "-k", "auto", "--method", method)
    code, out, _ = run(capsys, "select", *arguments)
    assert code == 0
    assert len(re.findall(r"^ *\d+ +\d\.\d{3} +\d\.\d{3} +yes ", out, re.MULTILINE)) == 1
    found = found_in(capsys, *arguments)
    assert found["best"] == len(found["columns"])
    assert found["size_curve"][-1]["n_columns"] == 5


def test_stability_is_the_selection_frequency_in_subsamples(capsys, table):
    arguments = (table, "--labels", "2", "-k", "2", "--stability", "6")
    out = run(capsys, "select", *arguments)[1]
    assert re.search(r"^length +100% +61% to 100%", out, re.MULTILINE)
    found = found_in(capsys, *arguments)
    assert [column["frequency"] for column in found["columns"]] == [1.0, 1.0]
    assert found["stability"]["n_resamples"] == 6
    # 2^2 / ((2 * 0.6 - 1) * 5)
    assert found["stability"]["expected_by_chance"] == pytest.approx(4)


def test_labels_unrelated_to_the_features_are_noted(capsys):
    rng = np.random.default_rng(3)
    write(Dataset(rng.normal(size=(60, 8)), rng.random((60, 2)) < 0.4, name="chance"), "chance.npz")
    assert found_in(capsys, "chance.npz", "-k", "2")["evidence_test"]["no_better_than_chance"]
    assert "note:" in run(capsys, "select", "chance.npz", "-k", "2")[2]


def test_several_files_are_parts_of_one_dataset(capsys, planted):
    for name, rows in (("part-1.csv", slice(0, 30)), ("part-2.csv", slice(30, 60))):
        part = Dataset(
            planted.X[rows], planted.Y[rows], feature_names=planted.feature_names, label_names="ab"
        )
        write(part, name)
    assert found_in(capsys, "part-1.csv", "part-2.csv")["n_rows"] == 60


@pytest.mark.parametrize("slug", METHODS)
def test_every_method_can_be_chosen(capsys, table, slug):
    assert len(found_in(capsys, table, "--labels", "2", "-k", "2", "--method", slug)["columns"]) == 2


@pytest.mark.parametrize(("name", "n_features"), [("digits", 64), ("planted", 60)])
def test_built_in_datasets_are_loaded_by_name(capsys, name, n_features):
    assert found_in(capsys, name, "-m", "sum-f", "-k", "5")["n_features"] == n_features


# Data options


def test_data_options_are_passed_to_read(capsys):
    lines = [f"s{row},{'' if row == 3 else row % 7},{row % 2},{row % 2},1" for row in range(20)]
    with open("odd.csv", "w") as stream:
        stream.write("\n".join(["id,x,z,a,b", *lines]))
    found = found_in(capsys, "odd.csv", "--labels", "a,b", "--ignore", "id", "--missing", "mean", "--all")
    assert {column["column"] for column in found["columns"]} == {"x", "z"}
    for options in (("--role", "z=ignored", "--id", "id"), ("--ignore", "id", "--ignore", "z,b")):
        found = found_in(capsys, "odd.csv", "--labels", "a", *options, "--all")
        assert [column["column"] for column in found["columns"]] == ["x"]


# Errors


@pytest.mark.parametrize(
    ("content", "labels", "named"), [(DATA, "c", "'c'"), (DATA.replace("2,0,1,1", "2,0,1"), "2", "line 3")]
)
def test_an_invalid_table_is_one_line_and_writes_nothing(capsys, content, labels, named):
    with open("bad.csv", "w") as stream:
        stream.write(content)
    outputs = ("-o", "out.json", "--write-data", "small.csv", "--html", "page.html")
    assert named in fails(capsys, 1, "select", "bad.csv", "--labels", labels, "--json", "-q", *outputs)


@pytest.mark.parametrize("command", ["issues", "audit"])
def test_one_row_is_too_few_for_every_command(capsys, command):
    with open("one.csv", "w") as stream:
        stream.write("x,z,a,b\n1.5,2.5,1,0\n")
    assert "one.csv" in fails(capsys, 1, command, "one.csv", "--labels", "2", "-q")


def test_the_error_of_a_method_names_the_file(capsys, table):
    assert "data.csv: -k must be an integer from 1 to 5" in fails(
        capsys, 1, "select", table, "--labels", "2", "-k", "6"
    )
    with open("negative.csv", "w") as stream:
        stream.write(DATA.replace("0.5", "-0.5"))
    options = ("--labels", "2", *PML_FSMIR, "-p", "scale=none", "-q")
    assert "negative" in fails(capsys, 1, "select", "negative.csv", *options)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("-p", "rigde=1"), "'ridge'"),
        (("-p", "ridge"), "'ridge'"),
        (("-p", "ridge=-1"), "'ridge'"),
        (("-k", "1.5"), "'1.5'"),
        (("-k", "150%"), "'150%'"),
        (("-k", "many"), "'many'"),
        (("-k", "2", "-p", "n_features_to_select=2"), "--param"),
        (("--method", "pml-fsmi"), "'pml-fsmir'"),
        (("./data.csv",), "FILE"),
        (("--missing", "median"), "'median'"),
        (("--role", "x=colour"), "category"),
        (("--label-sep", ""), "--label-sep"),
        (("--output", "no/such/folder.csv"), "'no/such/folder.csv'"),
        (("--write-data", "small.parquet"), "'small.parquet'"),
        (("--write-data", "data.csv"), "'data.csv'"),
        (("--output", "a.csv", "--write-data", "a.csv"), "'a.csv'"),
        (("--stability", "1"), "--stability"),
        (("--keep", "legs", *PML_FSMIR), "--keep"),
        (("-p", "keep=legs"), "--keep"),
    ],
)
def test_usage_errors_are_one_helpful_line(capsys, table, arguments, named):
    assert named in fails(capsys, 2, "select", table, "--labels", "2", *arguments)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--write-data", "data.arff"), "data.xml"),
        (("--candidates", "labels.csv", "--write-data", "labels.csv"), "labels.csv"),
        (("--html", "small.xml", "--write-data", "small.arff"), "small.xml"),
    ],
)
def test_inputs_and_outputs_are_not_overwritten(capsys, planted, arguments, name):
    write(planted, "data-train.arff")
    os.rename("data-train.xml", "data.xml")
    with open("labels.csv", "w") as stream:
        stream.writelines(["a,b\n", *(f"{a},{b}\n" for a, b in planted.Y)])
    assert repr(name) in fails(capsys, 2, "select", "data-train.arff", *arguments)


def test_data_that_cannot_be_copied_leave_no_files(capsys, planted):
    write(planted, "data.npz")
    outputs = ("--output", "out.csv", "--html", "page.html", "--write-data", "small.svm")
    assert "small.svm" in fails(capsys, 1, "select", "data.npz", "-k", "2", "-q", *outputs)


def test_a_missing_file_is_one_line_with_the_closest_name(capsys, table):
    os.mkdir("folder.d")
    for name in (".", "folder.d", "missing.csv", "no/such/folder.csv"):
        assert name in fails(capsys, 1, "select", name)
    assert "'data.csv'" in fails(capsys, 1, "select", "dta.csv")
    path, meant = os.path.abspath("dta.csv"), os.path.abspath(table)
    assert repr(meant) in fails(capsys, 1, "issues", path)
    assert "--labels" in fails(capsys, 2, "select", "yeast", "--labels", "2")


def test_the_default_number_is_cross_validated(table, capsys):
    default, automatic = (
        json.loads(run(capsys, "select", table, "--labels", "2", "--json", *options)[1])
        for options in ([], ["-k", "auto"])
    )
    assert "size_curve" in default
    assert default["n_kept"] == automatic["n_kept"]
    assert [column["column"] for column in default["columns"]] == [
        column["column"] for column in automatic["columns"]
    ]
    half = json.loads(run(capsys, "select", table, "--labels", "2", "--json", "-m", "sum-f")[1])
    assert half["n_kept"] == half["n_columns"] // 2


def test_kept_columns_come_first_whatever_they_hold(capsys):
    lines = ["age,city,joined,x,label_0,label_1"]
    lines += [
        f"{i % 7},{('Rome', 'Oslo', 'Bern')[i % 3]},20{10 + i % 9}-0{1 + i % 4}-11,{i % 5},{i % 2},{i % 7 > 3}"
        for i in range(60)
    ]
    with open("mixed.csv", "w") as stream:
        stream.write("\n".join(lines).replace("True", "1").replace("False", "0"))
    options = ("mixed.csv", "--labels", "label_*")
    for keep, size in ((["city"], "1"), (["city", "joined"], "3"), (["city,j*"], "auto"), (["city"], "4")):
        words = [word for name in keep for word in ("--keep", name)]
        found = found_in(capsys, *options, *words, "-k", size)
        names = [column["column"] for column in found["columns"]]
        wanted = {"city", "joined"} if len(words) > 2 or "," in keep[0] else {"city"}
        assert set(names[: len(wanted)]) == wanted
        assert size == "auto" or len(names) == int(size)
    assert "'city'" in fails(capsys, 1, "select", *options, "--keep", "cty", "-q")
    assert "2" in fails(capsys, 1, "select", *options, "--keep", "city,joined", "-k", "1", "-q")


def test_columns_by_label(table, capsys):
    found = json.loads(run(capsys, "select", table, "--labels", "2", "--by-label", "--json")[1])
    assert set(found["columns_by_label"]) == {"label_a", "label_<i>b"}
    for columns in found["columns_by_label"].values():
        z2 = [column["z2"] for column in columns]
        assert z2 == sorted(z2, reverse=True)
        assert all(value > 4 for value in z2)
    code, out, _ = run(capsys, "select", table, "--labels", "2", "--by-label")
    assert code == 0
    assert "label_a" in out


@pytest.mark.parametrize("share", ["0.1", "10%"])
def test_tests_of_columns_do_not_change_the_selection(table, share, capsys):
    arguments = ("select", table, "--labels", "2", "-k", "3", "--json")
    plain, tested = (json.loads(run(capsys, *arguments, *options)[1]) for options in ([], ["--fdr", share]))
    assert tested["controlled_selection"]["fdr"] == 0.1
    assert tested["n_kept"] == plain["n_kept"] == 3
    for column, before in zip(tested["columns"], plain["columns"], strict=True):
        assert 0 < column.pop("p_value") <= column.pop("q_value") <= 1
        assert column.pop("is_bound") in (True, False)
        assert column == before
    out = run(capsys, "select", table, "--labels", "2", "-k", "3", "--fdr", share)[1]
    assert "2 of 5 columns are related to the labels" in " ".join(out.split())


@pytest.mark.parametrize("share", ["0", "1", "100%", "ten"])
def test_a_false_discovery_rate_is_a_share(table, share, capsys):
    assert "--fdr" in fails(capsys, 2, "select", table, "--labels", "2", "--fdr", share)


def test_too_few_rows_for_tests_are_one_error(capsys):
    with open("few.csv", "w") as stream:
        stream.write("x,z,label:a\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(12)))
    assert "at least 10 rows" in fails(capsys, 1, "select", "few.csv", "-k", "1", "--fdr", "0.1")
