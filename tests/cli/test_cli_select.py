import csv
import io
import json
import os
import re
import subprocess

import numpy as np
import pytest

from conftest import RUN, fails, run, run_alone
from labelsieve import METHODS
from labelsieve.io import Dataset, read, write

pytestmark = pytest.mark.usefixtures("plain_terminal")

PML_FSMIR = ("--method", "pml-fsmir")
OUTPUTS = ("--output", "--html", "--write-data")


def test_the_table_ranks_the_planted_features_first(capsys, table):
    code, out, err = run(capsys, "select", table, "--labels", "2", "-k", "2")
    assert code == 0
    ranked = re.findall(r"^ +(\d+) +(\S+) +[\d.]+ +[\d.]+ +█", out, re.MULTILINE)
    assert sorted(name for _, name in ranked) == ["[red]width", "length"]
    assert [rank for rank, _ in ranked] == ["1", "2"]
    assert re.search(
        r"^data: 60 rows, 5 features, 2 labels; evidence: 2 features selected$", err, re.MULTILINE
    )


@pytest.mark.parametrize("width", ["40", "80"])
def test_long_names_are_cut_and_numbers_are_not(capsys, monkeypatch, table, width):
    monkeypatch.setenv("COLUMNS", width)
    code, out, _ = run(capsys, "select", table, "--labels", "2", "--all")
    assert code == 0
    assert max(map(len, out.splitlines())) <= int(width)
    assert re.search(r"^ +\d +:bell: l\S*… +\d\.\d ", out, re.MULTILINE)
    shown = ["rank", "feature", "evidence", *(["criterion"] if width == "80" else [])]
    assert out.splitlines()[0].split() == [*shown, "selected"]


def test_json_holds_the_findings_and_nothing_else_is_on_standard_output(capsys, planted):
    write(planted, "data.npz")
    code, out, _ = run(
        capsys, "select", "data.npz", "--json", "--check-labels", "-k", "40%", "-p", "ridge=0.5"
    )
    assert code == 0
    found = json.loads(out, parse_constant=pytest.fail)
    assert (found["method"], found["n_rows"], found["n_features"], found["n_labels"]) == (
        "evidence",
        60,
        5,
        2,
    )
    assert found["parameters"]["ridge"] == 0.5
    assert found["evidence_test"]["p_value"] == 0.005
    assert [column["rank"] for column in found["columns"]] == [1, 2]
    assert {column["column"] for column in found["columns"]} == {"length", "[red]width"}
    assert len(found["label_issues"]) == 20


def test_the_false_candidate_is_doubted_first_and_known_to_be_false(capsys, planted):
    write(planted, "data.npz")
    out = run(capsys, "select", "data.npz", "--json", "--check-labels", "-k", "2")[1]
    first, *others = json.loads(out)["label_issues"]
    assert (first["row"], first["label"], first["wrong"]) == (0, "label_a", True)
    assert not any(issue["wrong"] for issue in others)


def test_without_a_truth_nothing_is_said_about_it(capsys, table):
    out = run(capsys, "select", table, "--labels", "2", "--json", "--check-labels")[1]
    assert all("wrong" not in issue for issue in json.loads(out)["label_issues"])


def test_csv_lists_all_features_on_request_with_full_names(capsys, table, planted):
    code, out, _ = run(capsys, "select", table, "--labels", "label_*", "--format", "csv", "--all", "-k", "2")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["column"] for row in rows} == set(planted.feature_names)
    assert [row["selected"] for row in rows] == ["1", "1", "0", "0", "0"]
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_a_copy_of_the_data_keeps_selected_features_and_all_labels(capsys, planted):
    write(planted, "data.npz")
    code, _, err = run(capsys, "select", "data.npz", "-k", "2", "--write-data", "small.csv")
    assert code == 0
    assert "wrote small.csv" in err
    copy = read("small.csv")
    assert copy.feature_names == ("length", "[red]width")
    np.testing.assert_array_equal(copy.X, planted.X[:, :2])
    np.testing.assert_array_equal(copy.Y, planted.Y)
    np.testing.assert_array_equal(copy.Y_candidates, planted.Y_candidates)


def test_results_go_to_a_file_instead_of_standard_output(capsys, table):
    code, out, err = run(capsys, "select", table, "--labels", "2", "--json", "-o", "found.json")
    assert (code, out) == (0, "")
    assert "wrote found.json" in err
    with open("found.json") as stream:
        assert json.load(stream)["n_features"] == 5
    code, out, _ = run(capsys, "select", table, "--labels", "2", "-o", "found.txt")
    assert (code, out) == (0, "")
    with open("found.txt", encoding="utf-8") as stream:
        assert "[red]width" in stream.read()


@pytest.mark.parametrize(
    ("name", "given", "start"),
    [
        ("found.csv", (), "rank,column,"),
        ("found.JSON", (), "{"),
        ("found.txt", (), "rank "),
        ("found.csv", ("--json",), "{"),
        ("found.csv", ("--format", "table"), "rank "),
        ("found.json", ("--format", "csv"), "rank,column,"),
    ],
)
def test_the_ending_of_the_file_chooses_the_form_unless_another_is_asked_for(
    capsys, table, name, given, start
):
    assert run(capsys, "select", table, "--labels", "2", "-o", name, *given)[0] == 0
    with open(name, encoding="utf-8") as stream:
        assert stream.read().startswith(start)


@pytest.mark.parametrize("command", ["select", "issues", "audit"])
def test_one_row_is_too_few_whoever_reads_it(capsys, command):
    with open("one.csv", "w") as stream:
        stream.write("x,z,a,b\n1.5,2.5,1,0\n")
    said = "error: one.csv: has 1 row, and nothing can be learnt from fewer than 2; add rows.\n"
    assert fails(capsys, 1, command, "one.csv", "--labels", "2", "-q") == said


def test_quiet_leaves_standard_error_empty(capsys, table):
    code, out, err = run(
        capsys, "select", table, "--labels", "2", *PML_FSMIR, "-p", "max_iter=2", "--quiet", "--json"
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["converged"] is False


def test_a_warning_of_the_method_becomes_one_note(capsys, table):
    code, _, err = run(capsys, "select", table, "--labels", "2", *PML_FSMIR, "-p", "max_iter=2")
    assert code == 0
    assert re.search(r"^note: PMLFSMIR did not converge within its iterations\..*$", err, re.MULTILINE)


def test_selected_features_that_say_nothing_are_noted(capsys):
    Y = np.arange(20)[:, None] % 2
    write(Dataset(np.hstack([Y, 0 * Y, 0 * Y]), Y, name="idle"), "idle.npz")
    code, _, err = run(capsys, "select", "idle.npz", "-k", "2")
    assert code == 0
    assert "note: 1 of the 2 selected features have no evidence above noise" in err
    code, _, err = run(capsys, "select", "idle.npz", "-k", "2", "--method", "sum-f")
    assert code == 0
    assert "note: 1 of the 2 selected features have the score 0" in err


def test_scores_that_are_all_0_are_noted_once(capsys):
    Y = np.arange(20)[:, None] % 2
    write(Dataset(np.zeros((20, 3)), Y, name="idle"), "idle.npz")
    code, _, err = run(capsys, "select", "idle.npz", "-k", "2", *PML_FSMIR)
    assert code == 0
    assert err.count("score 0") == 1
    code, _, err = run(capsys, "select", "idle.npz", "-k", "2")
    assert code == 0
    assert err.count("no evidence at all") == 1


@pytest.mark.parametrize("method", ["evidence", "sum-f"])
def test_the_data_decide_how_many_features(capsys, table, method):
    arguments = ("select", table, "--labels", "2", "-k", "auto", "--method", method)
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    assert "how many are enough" in out
    assert len(re.findall(r"^ *\d+ +\d\.\d{3} +\d\.\d{3} +yes ", out, re.MULTILINE)) == 1
    found = json.loads(run(capsys, *arguments, "--json")[1])
    assert found["best"] == len(found["columns"])
    assert found["size_curve"][-1]["n_columns"] == 5


def test_who_lets_the_data_decide_is_told_which_smaller_number_would_do(capsys):
    code, out, err = run(capsys, "select", "digits", "-k", "auto", "--json")
    assert code == 0, err
    found = json.loads(out)
    # Some pixels are never written on, and more of the others are better.
    assert found["enough"] < found["best"] == 64
    assert f"such as -k {found['enough']}." in err


def test_halves_of_the_rows_say_how_sure_a_feature_is(capsys, table):
    arguments = ("select", table, "--labels", "2", "-k", "2", "--stability", "6")
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    assert re.search(r"^length +100% +61% to 100%", out, re.MULTILINE)
    assert "2 features are selected in at least 60%" in " ".join(out.split())
    # 2^2 / ((2 * 0.6 - 1) * 5) = 4: a bound above the two stable features says nothing.
    found = json.loads(run(capsys, *arguments, "--json")[1])
    assert [column["frequency"] for column in found["columns"]] == [1.0, 1.0]
    assert found["stability"]["expected_by_chance"] == pytest.approx(4)


def test_the_page_is_that_of_an_audit_with_what_was_asked_for(capsys, table):
    code, _, err = run(
        capsys,
        *(
            "select",
            table,
            "--labels",
            "2",
            "-k",
            "2",
            "-m",
            "sum-f",
            "--html",
            "page.html",
            "--check-labels",
        ),
    )
    assert code == 0, err
    with open("page.html", encoding="utf-8") as stream:
        page = stream.read()
    data = json.loads(re.search(r'id="data">([^<]*)<', page)[1])
    assert "labelsieve select" in page
    assert (data["measure"], data["kept"], data["resamples"]) == ("score", 2, 0)
    assert "curve" not in data
    assert len(data["rows"]["i"]) > 0
    code, _, err = run(capsys, "select", table, "--labels", "2", "-k", "auto", "--html", "page.html")
    assert code == 0, err
    with open("page.html", encoding="utf-8") as stream:
        data = json.loads(re.search(r'id="data">([^<]*)<', stream.read())[1])
    assert data["measure"] == "evidence"
    assert data["best"] == data["kept"]
    assert "rows" not in data  # labels are checked on request


def test_labels_that_have_nothing_to_do_with_the_features_are_noted(capsys):
    rng = np.random.default_rng(3)
    write(Dataset(rng.normal(size=(60, 8)), rng.random((60, 2)) < 0.4, name="chance"), "chance.npz")
    code, out, err = run(capsys, "select", "chance.npz", "-k", "2", "--json", "--html", "page.html")
    assert code == 0
    assert json.loads(out)["evidence_test"]["no_better_than_chance"] is True
    assert err.count("than chance would") == 1
    with open("page.html", encoding="utf-8") as stream:
        assert "This ranking is no better than chance." in stream.read()


def test_parameters_may_be_infinite(capsys, table):
    code, out, err = run(capsys, "select", table, "--labels", "2", "-p", "redundancy=inf", "--json")
    assert code == 0, err
    assert json.loads(out, parse_constant=pytest.fail)["parameters"]["redundancy"] == "inf"


def test_several_files_are_parts_of_one_data_set(capsys, planted):
    for name, rows in (("part-1.csv", slice(0, 30)), ("part-2.csv", slice(30, 60))):
        part = Dataset(
            planted.X[rows], planted.Y[rows], feature_names=planted.feature_names, label_names="ab"
        )
        write(part, name)
    out = run(capsys, "select", "part-1.csv", "part-2.csv", "--json")[1]
    assert json.loads(out)["n_rows"] == 60


@pytest.mark.parametrize("slug", METHODS)
def test_every_method_can_be_chosen(capsys, table, slug):
    code, out, _ = run(capsys, "select", table, "--labels", "2", "-k", "2", "--method", slug, "--json")
    assert code == 0
    assert len(json.loads(out)["columns"]) == 2


def test_options_of_the_reader_are_passed_on(capsys):
    lines = [f"s{row},{'' if row == 3 else row % 7},{row % 2},{row % 2},1" for row in range(20)]
    with open("odd.csv", "w") as stream:
        stream.write("\n".join(["id,x,z,a,b", *lines]))
    options = ("--labels", "a,b", "--ignore", "id", "--missing", "mean", "--json", "--all")
    code, out, _ = run(capsys, "select", "odd.csv", *options)
    assert code == 0
    assert {column["column"] for column in json.loads(out)["columns"]} == {"x", "z"}


# What is refused

DATA = "x,z,a,b\n0.5,1,1,0\n2,0,1,1\n1,1,0,1\n"


@pytest.mark.parametrize(
    ("content", "labels", "complaint"),
    [
        ("", "2", "empty"),
        ("x,z,a,b\n", "2", "row|sample"),
        (DATA, None, "give --labels \\(names, a pattern"),
        (DATA, "c", "no column 'c'; the closest names are"),
        (DATA, "4", "--labels 4 must leave at least one feature"),
        (DATA.replace("1,1,0\n", "1,maybe,0\n"), "2", "maybe"),
        (DATA.replace("1,1,0\n", "1,7,0\n"), "2", "got '7' beside '1'; correct it, or check --labels"),
        (DATA.replace("1,1,0\n", "1,,0\n"), "2", "missing"),
        (DATA.replace("2,0,1,1", "2,0,1"), "2", "line 3"),
        (DATA.replace("2,0,1,1", "2,0,1,1,5"), "2", "line 3"),
        ("x,a\n1,0\n2,0\n", "1", "no row has a label"),
        ("x,a\n1,0\nred,0\n", "1", "no row has a label"),
        ("x,a\n1,1\n", "1", "has 1 row"),
    ],
)
def test_a_bad_table_is_one_line_and_nothing_written(capsys, content, labels, complaint):
    with open("bad.csv", "w") as stream:
        stream.write(content)
    outputs = ("-o", "out.json", "--write-data", "small.csv", "--html", "page.html")
    given = () if labels is None else ("--labels", labels)
    err = fails(capsys, 1, "select", "bad.csv", *given, "--json", *outputs)
    assert re.search(complaint, err)


def test_text_among_numbers_is_read_as_categories_or_left_out(capsys):
    with open("text.csv", "w") as stream:
        stream.write("x,colour,a\n1,red,1\n2,blue,0\n3,red,1\n4,blue,0\n")
    code, out, _ = run(
        capsys, "select", "text.csv", "--labels", "a", "--nominal", "onehot", "--json", "--all"
    )
    assert code == 0
    assert {column["column"] for column in json.loads(out)["columns"]} == {"x", "colour"}


@pytest.mark.parametrize("cell", ["", "nan", "5%", "inf"])
def test_what_is_no_plain_number_is_said_and_no_reason_to_refuse(capsys, cell):
    pytest.importorskip("pandas")
    with open("odd.csv", "w") as stream:
        stream.write(DATA.replace("0.5", cell))
    code, _, err = run(capsys, "select", "odd.csv", "--labels", "2")
    assert code == 0, err
    assert re.search(r"^x +number", err, re.MULTILINE)


def test_negative_features_are_scaled_or_refused(capsys):
    with open("negative.csv", "w") as stream:
        stream.write(DATA.replace("0.5", "-0.5"))
    assert run(capsys, "select", "negative.csv", "--labels", "2", "--json")[0] == 0
    err = fails(capsys, 1, "select", "negative.csv", "--labels", "2", *PML_FSMIR, "-p", "scale=none")
    assert "must not be negative" in err


def test_more_features_than_there_are_is_bad_data(capsys, table):
    assert "-k must be at most the number of columns that can be ranked (5)" in fails(
        capsys, 1, "select", table, "--labels", "2", "-k", "6"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-p", "rigde=1"), "no parameter 'rigde'; did you mean 'ridge'?"),
        (("-p", "ridge"), "NAME=VALUE was expected, got 'ridge'"),
        (("-p", "ridge=-1"), "'ridge' parameter of EvidenceSelector must be a float"),
        (("-p", "ridge=nan"), "Got 'nan'"),
        (("-p", "redundancy=some"), "'redundancy' parameter"),
        (("-p", "max_steps=1.5"), "'max_steps' parameter"),
        (("-k", "0"), "got '0'"),
        (("-k", "-3"), "got '-3'"),
        (("-k", "1.5"), "got '1.5'"),
        (("-k", "150%"), "got '150%'"),
        (("-k", "many"), "a share such as 0.2 or 20%, or auto was expected, got 'many'"),
        (("-k", "2", "-p", "n_features_to_select=2"), "set by --param too"),
        (("--method", "pml-fsmi"), "--method: 'pml-fsmi' is not a method; did you mean 'pml-fsmir'?"),
        (("--json", "--format", "csv"), "give one of --json and --format, not both"),
        (("./data.csv",), "the same file is given twice"),
        (("--format", "xml"), "xml"),
        (("--missing", "median"), "'median' is none of error, mean, zero"),
        (("--output", "no/such/folder.csv"), "'no/such/folder.csv' is not a file in an existing folder"),
        (("--html", "."), "'.' is not a file"),
        (("--write-data", "small.xls"), "must end in one of .arff"),
        (("--write-data", "data.csv"), "'data.csv' is read or written already"),
        (("--output", "a.csv", "--write-data", "a.csv"), "'a.csv' is read or written already"),
        (("--stability", "1"), "--stability: needs two halves or more"),
        (("--frobnicate",), "--frobnicate"),
    ],
)
def test_bad_usage_is_one_line_that_helps(capsys, table, arguments, complaint):
    assert complaint in fails(capsys, 2, "select", table, "--labels", "2", *arguments)


@pytest.fixture
def pair(planted):
    """The planted data as an ARFF file whose labels stand in `data.xml`, and its labels as a table."""
    write(planted, "data-train.arff")
    os.rename("data-train.xml", "data.xml")
    with open("labels.csv", "w") as stream:
        stream.writelines(["a,b\n", *(f"{a},{b}\n" for a, b in planted.Y)])
    return "data-train.arff"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--output", "data.xml"), "data.xml"),
        (("--write-data", "data.arff"), "data.xml"),
        (("--labels", "labels.csv", "--html", "labels.csv"), "labels.csv"),
        (("--candidates", "labels.csv", "--write-data", "labels.csv"), "labels.csv"),
        (("--html", "small.xml", "--write-data", "small.arff"), "small.xml"),
    ],
)
def test_nothing_that_is_read_or_written_is_overwritten(capsys, pair, arguments, name):
    assert f"{name!r} is read or written already" in fails(capsys, 2, "select", pair, *arguments)


def test_data_that_cannot_be_copied_leaves_no_other_file(capsys, planted):
    write(planted, "data.npz")
    outputs = ("--output", "out.csv", "--html", "page.html", "--write-data", "small.svm")
    err = fails(capsys, 1, "select", "data.npz", "-k", "2", "-q", *outputs)
    assert "svmlight holds either truth or candidates" in err


@pytest.mark.parametrize("name", ["-", "pipe"])
def test_what_comes_through_a_pipe_is_not_read(capsys, name):
    os.mkfifo("pipe")
    said = f"error: {name}: standard input and other pipes are not read; save the data to a file first.\n"
    assert fails(capsys, 1, "select", name) == said


def test_the_ranking_can_go_to_a_pipe(capsys, table):
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run(capsys, "select", table, "--labels", "2", "--json", "-o", "pipe")[0] == 0
        assert json.loads(os.read(reader, 2**16))["n_features"] == 5
    finally:
        os.close(reader)


def test_a_file_that_is_not_there_is_bad_data(capsys):
    assert "got 'missing.csv'; check the path" in fails(capsys, 1, "select", "missing.csv")
    assert "got 'no/such/folder.csv'; check the path" in fails(capsys, 1, "select", "no/such/folder.csv")


def test_a_misspelt_file_gets_the_name_of_the_one_beside_it(capsys, table):
    os.symlink("dtaa.csv", "dtaa.csv")  # a link in a circle is no file
    assert "got 'dta.csv'; did you mean 'data.csv'?" in fails(capsys, 1, "select", "dta.csv")
    path, meant = os.path.abspath("dta.csv"), os.path.abspath(table)
    assert f"got {path!r}; did you mean {meant!r}?" in fails(capsys, 1, "issues", path)


@pytest.mark.parametrize("folder", [".", "data", "data.d"])
def test_a_folder_is_bad_data(capsys, folder):
    os.makedirs(folder, exist_ok=True)
    assert f"{folder} is a folder; give the data file inside it" in fails(capsys, 1, "select", folder)


@pytest.mark.parametrize(("name", "n_features"), [("digits", 64), ("planted", 60)])
def test_data_that_is_built_in_goes_by_its_name(capsys, name, n_features):
    code, out, _ = run(capsys, "select", name, "-m", "sum-f", "-k", "5", "--json")
    assert code == 0
    assert json.loads(out)["n_features"] == n_features


def test_labels_of_the_catalogue_cannot_be_changed(capsys):
    assert "the catalogue knows the labels of yeast" in fails(capsys, 2, "select", "yeast", "--labels", "2")


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"


def test_a_full_disk_leaves_nothing_half_written(table):
    # The operating system's own limit on the size of a file, so in a process of its own.
    program = f"{LIMITED}; print([main([*sys.argv[1:], option, 'out.csv']) for option in {OUTPUTS}])"
    done = run_alone(program, "select", table, "--labels", "2", "-q", stdout=subprocess.PIPE, check=True)
    assert done.stdout.endswith("[1, 1, 1]\n")
    line = r"error: out.csv: cannot be written \(.*File too large.*\); check the folder and free space\.\n"
    assert re.fullmatch(3 * line, done.stderr)
    assert os.listdir() == ["data.csv"]


def test_standard_output_on_a_full_disk_is_one_line(table):
    with open("out.json", "w") as stdout:
        done = run_alone(f"{LIMITED}; {RUN}", "select", table, "--labels", "2", "--json", "-q", stdout=stdout)
    assert done.returncode == 1
    assert re.fullmatch(r"error: .*File too large; check the files and free space\.\n", done.stderr)


@pytest.mark.usefixtures("plain_terminal")
def test_names_in_a_csv_ranking_are_no_formulas(capsys):
    X = np.random.default_rng(0).random((20, 3))
    write(
        Dataset(X, X[:, :1] > 0.5, feature_names=("=1+1", "@cmd", "a,b"), label_names=("label",)), "odd.csv"
    )
    code, out, err = run(capsys, "select", "odd.csv", "--format", "csv", "--all")
    assert code == 0, err
    assert {row["column"] for row in csv.DictReader(io.StringIO(out))} == {"'=1+1", "'@cmd", "a,b"}
