import csv
import errno
import io
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import labelsieve
from labelsieve import METHODS
from labelsieve.cli import demo, fitting, main, methods, root_epilog, select
from labelsieve.cli.methods import describe_parameters
from labelsieve.datasets import Dataset, read, write

pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.fixture
def planted():
    """Five features; each label follows one of the first two, save for one false candidate in row 0.

    The other features say nothing: each stands out in a single row.
    """
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 2)) < 0.5).astype(int)
    Y[0, 0] = 0
    candidates = Y.copy()
    candidates[0, 0] = 1
    X = np.zeros((60, 5))
    X[:, :2] = (Y + 0.1 * rng.random((60, 2))).round(3)
    X[[1, 2, 3], [2, 3, 4]] = 0.5
    names = ("length", "[red]width", ":bell: " + "long_" * 30, "<b>x</b>", "noise")
    return Dataset(
        X, Y, candidates, feature_names=names, label_names=("label_a", "label_<i>b"), name="planted"
    )


@pytest.fixture
def table(planted):
    """The same in a CSV file whose last two columns are labels: the candidates."""
    with open("data.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*planted.feature_names, *planted.label_names])
        writer.writerows([*x, *y] for x, y in zip(planted.X, planted.Y_candidates, strict=True))
    return "data.csv"


def run_alone(program, *arguments, **options):
    """Run a program in a process of its own; `main` is the command line."""
    source = os.path.dirname(os.path.dirname(labelsieve.__file__))
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"}
    environment.pop("PYTHONUNBUFFERED", None)  # Python would not notice what a full disk did not take
    command = [sys.executable, "-c", f"import sys; from labelsieve.cli import main; {program}", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, encoding="utf-8", env=environment, **options)


RUN = "sys.exit(main(sys.argv[1:]))"
OUTPUTS = ("--output", "--html", "--write-data")


def run(capsys, *arguments):
    """Run the command line; returns exit code, output and errors."""
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, code, *arguments):
    """Run what must fail with one line and leave no file; returns that line."""
    before = sorted(os.listdir())
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (code, "")
    assert re.fullmatch(r"error: [^\n]+\n", err)
    assert sorted(os.listdir()) == before
    return err


# select: what comes out


def test_the_table_ranks_the_planted_features_first(capsys, table):
    code, out, err = run(capsys, "select", table, "--labels", "2", "-k", "2")
    assert code == 0
    ranked = re.findall(r"^ +(\d+) +(\S+) +[\d.]+ +█", out, re.MULTILINE)
    assert sorted(name for _, name in ranked) == ["[red]width", "length"]
    assert [rank for rank, _ in ranked] == ["1", "2"]
    assert re.search(r"^data: 60 samples, 5 features, 2 labels; pml-fsmir: converged in \d+ iter", err)


@pytest.mark.parametrize("width", ["40", "80"])
def test_long_names_are_cut_and_numbers_are_not(capsys, monkeypatch, table, width):
    monkeypatch.setenv("COLUMNS", width)
    code, out, _ = run(capsys, "select", table, "--labels", "2", "--all")
    assert code == 0
    assert max(map(len, out.splitlines())) <= int(width)
    assert re.search(r"^ +\d +:bell: long\S*… +\d\.\d+ ", out, re.MULTILINE)
    assert out.splitlines()[0].split()[:3] == ["rank", "feature", "score"]


def test_json_holds_the_findings_and_nothing_else_is_on_standard_output(capsys, planted):
    write(planted, "data.npz")
    code, out, _ = run(capsys, "select", "data.npz", "--json", "-k", "40%", "-p", "alpha=0.5")
    assert code == 0
    found = json.loads(out, parse_constant=pytest.fail)
    assert (found["method"], found["n_samples"], found["n_features"], found["n_labels"]) == (
        "pml-fsmir",
        60,
        5,
        2,
    )
    assert found["parameters"]["alpha"] == 0.5
    assert found["converged"] is True
    assert found["n_iter"] >= 1
    assert [feature["rank"] for feature in found["features"]] == [1, 2]
    assert {feature["name"] for feature in found["features"]} == {"length", "[red]width"}
    assert len(found["suspicious_labels"]) == 20


def test_the_false_candidate_is_doubted_first_and_known_to_be_false(capsys, planted):
    write(planted, "data.npz")
    out = run(capsys, "select", "data.npz", "--json", "-k", "2")[1]
    first, *others = json.loads(out)["suspicious_labels"]
    assert (first["sample"], first["label"], first["wrong"]) == (0, "label_a", True)
    assert not any(suspect["wrong"] for suspect in others)
    assert 0 <= first["confidence"] <= 1


def test_without_a_truth_nothing_is_said_about_it(capsys, table):
    out = run(capsys, "select", table, "--labels", "2", "--json")[1]
    assert all("wrong" not in suspect for suspect in json.loads(out)["suspicious_labels"])


def test_csv_lists_all_features_on_request_with_full_names(capsys, table, planted):
    code, out, _ = run(capsys, "select", table, "--labels", "label_*", "--format", "csv", "--all", "-k", "2")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["name"] for row in rows} == set(planted.feature_names)
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


def test_quiet_leaves_standard_error_empty(capsys, table):
    code, out, err = run(capsys, "select", table, "--labels", "2", "-p", "max_iter=2", "--quiet", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["converged"] is False


def test_a_warning_of_the_method_becomes_one_note(capsys, table):
    code, _, err = run(capsys, "select", table, "--labels", "2", "-p", "max_iter=2")
    assert code == 0
    assert re.search(r"^note: PMLFSMIR did not converge in max_iter=2 iterations\..*$", err, re.MULTILINE)


def test_selected_features_that_say_nothing_are_noted(capsys):
    with open("idle.csv", "w") as stream:
        stream.write("x,zero,nought,a\n" + "".join(f"{row % 2},0,0,{row % 2}\n" for row in range(20)))
    code, _, err = run(capsys, "select", "idle.csv", "--labels", "a", "-k", "2")
    assert code == 0
    assert "note: 1 of the 2 selected features have the score 0: column order alone" in err


def test_several_files_are_parts_of_one_data_set(capsys, planted):
    for name, rows in (("part-1.csv", slice(0, 30)), ("part-2.csv", slice(30, 60))):
        part = Dataset(
            planted.X[rows], planted.Y[rows], feature_names=planted.feature_names, label_names="ab"
        )
        write(part, name)
    out = run(capsys, "select", "part-1.csv", "part-2.csv", "--json")[1]
    assert json.loads(out)["n_samples"] == 60


@pytest.mark.parametrize("slug", METHODS)
def test_every_method_can_be_chosen(capsys, table, slug):
    code, out, _ = run(capsys, "select", table, "--labels", "2", "-k", "2", "--method", slug, "--json")
    assert code == 0
    assert len(json.loads(out)["features"]) == 2


def test_options_of_the_reader_are_passed_on(capsys):
    lines = [f"s{row},{'' if row == 3 else row % 7},{row % 2},{row % 2},1" for row in range(20)]
    with open("odd.csv", "w") as stream:
        stream.write("\n".join(["id,x,z,a,b", *lines]))
    options = ("--labels", "a,b", "--ignore", "id", "--missing", "mean", "--json", "--all")
    code, out, _ = run(capsys, "select", "odd.csv", *options)
    assert code == 0
    assert {feature["name"] for feature in json.loads(out)["features"]} == {"x", "z"}


# select: what is refused

DATA = "x,z,a,b\n0.5,1,1,0\n2,0,1,1\n1,1,0,1\n"


@pytest.mark.parametrize(
    ("content", "labels", "complaint"),
    [
        ("", "2", "empty"),
        ("x,z,a,b\n", "2", "row|sample"),
        (DATA.replace("0.5", ""), "2", "line 2|missing"),
        (DATA.replace("0.5", "nan"), "2", "nan|missing"),
        (DATA.replace("0.5", "inf"), "2", "inf"),
        (DATA, "c", "no column 'c'; the closest names are"),
        (DATA, "4", "at least one feature"),
        (DATA.replace("1,1,0\n", "1,maybe,0\n"), "2", "maybe"),
        (DATA.replace("1,1,0\n", "1,7,0\n"), "2", "7|0 and 1"),
        (DATA.replace("1,1,0\n", "1,,0\n"), "2", "missing"),
        (DATA.replace("2,0,1,1", "2,0,1"), "2", "line 3"),
        (DATA.replace("2,0,1,1", "2,0,1,1,5"), "2", "line 3"),
        (DATA.replace("z", "x"), "2", "'x'"),
        ("x,a\n1,0\n2,0\n", "1", "at least one candidate"),
        ("x,a\n1,1\n", "1", "sample"),
    ],
)
def test_a_bad_table_is_one_line_and_nothing_written(capsys, content, labels, complaint):
    with open("bad.csv", "w") as stream:
        stream.write(content)
    outputs = ("-o", "out.json", "--write-data", "small.csv", "--html", "page.html")
    err = fails(capsys, 1, "select", "bad.csv", "--labels", labels, "--json", *outputs)
    assert re.search(complaint, err)


def test_text_among_numbers_is_read_as_categories_or_left_out(capsys):
    with open("text.csv", "w") as stream:
        stream.write("x,colour,a\n1,red,1\n2,blue,0\n3,red,1\n4,blue,0\n")
    code, out, _ = run(
        capsys, "select", "text.csv", "--labels", "a", "--nominal", "onehot", "--json", "--all"
    )
    assert code == 0
    names = {feature["name"] for feature in json.loads(out)["features"]}
    assert names == {"x", "colour=blue", "colour=red"}


def test_negative_features_are_scaled_or_refused(capsys):
    with open("negative.csv", "w") as stream:
        stream.write(DATA.replace("0.5", "-0.5"))
    assert run(capsys, "select", "negative.csv", "--labels", "2", "--json")[0] == 0
    err = fails(capsys, 1, "select", "negative.csv", "--labels", "2", "-p", "scale=none")
    assert "must not be negative" in err


def test_more_features_than_there_are_is_bad_data(capsys, table):
    assert "at most the number of features (5)" in fails(
        capsys, 1, "select", table, "--labels", "2", "-k", "6"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-p", "alpa=1"), "no parameter 'alpa'; did you mean 'alpha'?"),
        (("-p", "alpha"), "NAME=VALUE was expected, got 'alpha'"),
        (("-p", "alpha=-1"), "'alpha' parameter of PMLFSMIR must be a float"),
        (("-p", "alpha=nan"), "Got 'nan'"),
        (("-p", "solver=sgd"), "'solver' parameter"),
        (("-p", "max_iter=1.5"), "'max_iter' parameter"),
        (("-k", "0"), "got '0'"),
        (("-k", "-3"), "got '-3'"),
        (("-k", "1.5"), "got '1.5'"),
        (("-k", "150%"), "got '150%'"),
        (("-k", "many"), "a number such as 20 or a share such as 0.2 or 20% was expected, got 'many'"),
        (("-k", "2", "-p", "n_features_to_select=2"), "set by --param too"),
        (("--method", "pml-fsmi"), "did you mean 'pml-fsmir'?"),
        (("--format", "xml"), "xml"),
        (("--missing", "median"), "'median' is none of error, mean, zero"),
        (("--output", "no/such/folder.csv"), "'no/such/folder.csv' is not a file in an existing folder"),
        (("--html", "."), "'.' is not a file"),
        (("--write-data", "small.xls"), "must end in one of .arff"),
        (("--write-data", "data.csv"), "'data.csv' is read or written already"),
        (("--output", "a.csv", "--write-data", "a.csv"), "'a.csv' is read or written already"),
        (("--frobnicate",), "--frobnicate"),
    ],
)
def test_bad_usage_is_one_line_that_helps(capsys, table, arguments, complaint):
    assert complaint in fails(capsys, 2, "select", table, "--labels", "2", *arguments)


def test_a_file_that_is_not_there_is_bad_data(capsys):
    assert "got 'missing.csv'" in fails(capsys, 1, "select", "missing.csv")


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


# methods


def test_methods_lists_every_method_in_three_forms(capsys):
    code, out, err = run(capsys, "methods")
    assert (code, err) == (0, "")
    for slug, method in METHODS.items():
        assert re.search(rf"^{slug} +{method.__name__} ", out, re.MULTILINE)
    listed = json.loads(run(capsys, "methods", "--json")[1])
    assert [entry["method"] for entry in listed] == list(METHODS)
    assert all(entry["summary"].endswith(".") for entry in listed)
    lines = run(capsys, "methods", "--markdown")[1].splitlines()
    assert lines[:2] == ["| method | class | what it does |", "| --- | --- | --- |"]
    assert len(lines) == 2 + len(METHODS)


@pytest.mark.parametrize("slug", METHODS)
def test_every_parameter_of_every_method_is_explained(capsys, slug):
    described = describe_parameters(METHODS[slug])
    assert {name: default for name, default, _ in described} == METHODS[slug]().get_params()
    assert [name for name, _, text in described if not text] == []
    code, out, _ = run(capsys, "methods", slug)
    assert code == 0
    assert all(name in out for name, _, _ in described)


def test_parameters_documented_together_share_their_first_sentence():
    texts = {name: text for name, _, text in describe_parameters(METHODS["pml-fsmir"])}
    expected = "Weights of the feature reconstruction, the label graph and the row sparsity (Eq. 8)."
    assert texts["alpha"] == texts["beta"] == texts["gamma"] == expected
    assert texts["w_update"] == '"exact" descends the objective.'


def test_the_methods_fit_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for arguments in (("methods",), ("methods", "pml-fsmir")):
        assert max(map(len, run(capsys, *arguments)[1].splitlines())) <= 40


def test_an_unknown_method_names_the_closest(capsys):
    assert "did you mean 'pml-fsmir'?" in fails(capsys, 2, "methods", "PML-FSMIR")
    assert "not both" in fails(capsys, 2, "methods", "--json", "--markdown")


# demo


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    """Output and messages of one demo, and its folder."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(tmp_path_factory.mktemp("demo"))
        patch.setenv("COLUMNS", "80")
        assert main(["demo"]) == 0
        return out.getvalue(), err.getvalue(), Path("labelsieve-demo").absolute()


def test_the_demo_shows_the_ranking_and_the_selected_pixels(demonstration):
    out, err, _ = demonstration
    assert "\x1b" not in out + err  # no colours in a pipe
    assert len(re.findall(r"pixel_\d_\d +[\d.]+ +█", out)) == 12
    assert sorted(map(int, re.findall(r"\[ ?(\d+)\]", out))) == list(range(1, 13))
    assert max(map(len, out.splitlines())) <= 80


def test_the_demo_writes_picture_page_and_data_and_says_where(demonstration):
    _out, err, folder = demonstration
    assert sorted(path.name for path in folder.iterdir()) == ["demo.html", "demo.png", "digits.csv"]
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    for name in ("demo.html", "demo.png", "digits.csv"):
        assert os.path.join("labelsieve-demo", name) in err


def test_what_the_demo_says_about_wrong_candidates_is_true(demonstration):
    out, _err, folder = demonstration
    digits = read(folder / "digits.csv")
    wrong = digits.Y_candidates.sum() - digits.Y.sum()
    said = re.search(r"(\d+) of the 20 least supported candidates are wrong; of all candidates, (\d+)%", out)
    assert int(said[2]) == round(100 * wrong / digits.Y_candidates.sum())
    page = (folder / "demo.html").read_text()
    rows = re.findall(
        r'<tr><td class="number">(\d+)</td><td>([a-z ]+)</td>.*?<td>(wrong|right)</td>', page, re.DOTALL
    )
    assert len(rows) == 20
    for sample, label, verdict in rows:
        place = (int(sample), digits.label_names.index(label))
        assert digits.Y_candidates[place] == 1
        assert (digits.Y[place] == 0) == (verdict == "wrong")
    assert sum(verdict == "wrong" for *_, verdict in rows) == int(said[1])


def test_what_the_demo_proposes_next_runs(capsys, monkeypatch, demonstration):
    _out, err, folder = demonstration
    monkeypatch.chdir(folder.parent)
    commands = re.findall(r"labelsieve ((?:select|methods).*)$", err, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert run(capsys, *shlex.split(command))[0] == 0


def test_the_demo_without_the_report_extra_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("labelsieve.cli.demo.missing_packages", lambda: ["matplotlib"])
    code, out, err = run(capsys, "demo", "--output", "elsewhere")
    assert code == 0
    assert os.listdir("elsewhere") == ["digits.csv"]
    assert "pip install 'labelsieve[report]'" in err
    assert out.count("pixel_") == 12


def test_a_page_without_the_report_extra_is_refused_before_the_work(capsys, monkeypatch, table):
    monkeypatch.setattr("labelsieve.cli.select.missing_packages", lambda: ["jinja2"])
    err = fails(capsys, 2, "select", table, "--labels", "2", "--html", "page.html")
    assert "needs jinja2; pip install 'labelsieve[report]'" in err


def test_the_demo_needs_only_ascii_where_there_is_nothing_else(capsys, monkeypatch):
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda self: True))
    monkeypatch.setattr("labelsieve.cli.demo.missing_packages", lambda: ["matplotlib"])
    code, out, _ = run(capsys, "demo")
    assert code == 0
    assert out.isascii()


def test_a_demo_that_cannot_be_written_is_one_line(capsys):
    open("taken", "w").close()
    code, _, err = run(capsys, "demo", "--output", "taken")
    assert code == 1
    assert re.search(r"^error: taken: cannot be written \(.*\); check the folder", err, re.MULTILINE)


# The program as a whole


def examples():
    """Every example of every help text."""
    texts = (root_epilog, demo.EPILOG, select.EPILOG, methods.EPILOG)
    return sorted({line for text in texts for line in text.splitlines() if line.startswith("labelsieve ")})


@pytest.mark.parametrize("example", examples())
def test_the_examples_of_the_help_run(capsys, monkeypatch, example):
    rng = np.random.default_rng(0)
    X = rng.random((30, 12))
    data = Dataset(X, X[:, :2] > 0.5, name="data", label_names=("label_a", "label_b"))
    write(data, "data.arff")
    with open("data.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*data.feature_names, *data.label_names])
        writer.writerows([*x, *y] for x, y in zip(data.X, data.Y, strict=True))
    monkeypatch.setattr(
        "labelsieve.cli.demo.missing_packages", lambda: ["matplotlib"]
    )  # drawing is tested above
    assert run(capsys, *shlex.split(example)[1:])[0] == 0


def test_the_version_is_the_package_version(capsys):
    assert run(capsys, "--version") == (0, f"labelsieve {labelsieve.__version__}\n", "")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("select", "--help"), ("demo", "--help")])
def test_help_has_examples(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "Examples:" in out


def test_an_unknown_command_is_bad_usage(capsys):
    assert "'selct'" in fails(capsys, 2, "selct")


def failing_with(error):
    def read_nothing(*args, **kwargs):
        raise error

    return read_nothing


def test_an_unexpected_failure_asks_for_a_report(capsys, monkeypatch, table):
    monkeypatch.setattr("labelsieve.cli.select.open_target", failing_with(KeyError("surprise")))
    err = fails(capsys, 1, "select", table)
    assert "failed unexpectedly (KeyError: 'surprise'); please report it" in err
    monkeypatch.setenv("LABELSIEVE_DEBUG", "1")
    with pytest.raises(KeyError, match="surprise"):
        main(["select", table])


def test_an_interrupt_is_one_line(capsys, monkeypatch, table):
    monkeypatch.setattr("labelsieve.cli.select.open_target", failing_with(KeyboardInterrupt()))
    assert fails(capsys, 130, "select", table) == "error: interrupted.\n"


def test_a_closed_pipe_is_quiet(table):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        done = run_alone(RUN, "select", table, "--labels", "2", "-q", stdout=stdout)
    assert (done.returncode, done.stderr) == (141, "")


# Progress


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self):
        return True


def shown(monkeypatch, patience, log):
    """What a terminal gets to see while `log` runs."""
    from rich.console import Console

    monkeypatch.setattr(fitting, "PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    console = Console(file=stream, force_terminal=True, width=100)
    with fitting.progress(console) as announce:
        announce("fitting rfs")
        log(console)
    return stream.getvalue()


def log_iteration(console):
    extra = {"iteration": 7, "max_iter": 10, "objective": 3.25}
    logging.getLogger("labelsieve").info("iteration 7 of at most 10", extra=extra)


def log_iteration_until_seen(console):
    while "iteration 7" not in console.file.getvalue():
        log_iteration(console)


def test_a_slow_fit_shows_iteration_and_objective(monkeypatch):
    text = shown(monkeypatch, 0.0, log_iteration_until_seen)
    assert "fitting rfs" in text
    assert "iteration 7, objective 3.25" in text


def test_a_fast_fit_shows_nothing(monkeypatch):
    assert shown(monkeypatch, 60.0, log_iteration) == ""


def test_warnings_of_the_library_log_become_notes(monkeypatch):
    text = shown(monkeypatch, 60.0, lambda _: logging.getLogger("labelsieve").warning("mirror\nis dead"))
    assert text == "note: mirror is dead\n"


def test_the_log_is_left_as_it_was(monkeypatch):
    logger = logging.getLogger("labelsieve")
    before = (logger.level, list(logger.handlers))
    shown(monkeypatch, 60.0, log_iteration)
    assert (logger.level, list(logger.handlers)) == before


def test_verbose_reaches_standard_error_where_there_is_no_terminal(capsys, table):
    code, out, err = run(capsys, "select", table, "--labels", "2", "--json", "-p", "verbose=1")
    assert code == 0
    json.loads(out)
    assert re.search(r"^iteration 1 of at most 1000: objective", err, re.MULTILINE)


def test_a_disk_error_while_reading_is_told(capsys, monkeypatch, table):
    monkeypatch.setattr("labelsieve.cli.select.open_target", failing_with(OSError(errno.EIO, "broken")))
    assert "broken" in fails(capsys, 1, "select", table)
