import csv
import errno
import inspect
import io
import json
import logging
import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import labelsieve
from conftest import RUN, fails, run, run_alone
from labelsieve import METHODS
from labelsieve.cli import demo, fitting, main, methods, root_epilog, select
from labelsieve.cli.methods import describe_parameters
from labelsieve.io import Dataset, read, write

pytestmark = pytest.mark.usefixtures("plain_terminal")


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
def test_every_method_is_explained_with_all_that_its_docstring_says(capsys, slug):
    method = METHODS[slug]
    described = describe_parameters(method)
    assert {name: default for name, default, _ in described} == method().get_params()
    assert [name for name, _, text in described if not text] == []
    code, out, err = run(capsys, "methods", slug)
    assert (code, err) == (0, "")
    assert out.startswith(f"{slug}  {method.__name__}\n")
    for name, default, _ in described:
        assert re.search(rf"^  {name} = {re.escape(repr(default))}(  |$)", out, re.MULTILINE)
    shown = " ".join(out.split()).lower()
    # Nothing is lost: every run of plain words of the docstring is there.
    said = " ".join(inspect.getdoc(method).partition("Examples\n---")[0].split())
    for words in re.findall(r"[A-Za-z][a-z]+(?: [a-z]+){3,}", re.sub(r"[`*]", "", said)):
        assert words.lower() in shown
    assert not re.search(r"``|\[\d\]_|^ *-{3,}$| :?$", out, re.MULTILINE)


def test_the_explanation_names_paper_choices_cost_and_reconstruction(capsys):
    _, out, _ = run(capsys, "methods", "pmfs-lrs")
    assert re.search(r"^Paper\n  \[1\] Sun, Chen, Liu et al\., \"Partial multi-label", out, re.MULTILINE)
    assert re.search(r"^Reconstruction\n  no\n", out, re.MULTILINE)
    assert re.search(r"^What it costs\n  A Cholesky factorisation", out, re.MULTILINE)
    assert re.search(r"^  solver = 'exact'  \{\"exact\", \"authors\"\}$", out, re.MULTILINE)
    assert re.search(r"^      \|H\(XW - F\)\|\^2 \+ eta", out, re.MULTILINE)
    _, out, _ = run(capsys, "methods", "fpml")
    assert re.search(r"^Reconstruction\n  yes", out, re.MULTILINE)
    _, out, _ = run(capsys, "methods", "evidence")
    assert re.search(r"^Paper\n  There is none\.\n", out, re.MULTILINE)


@pytest.mark.parametrize("slug", METHODS)
def test_every_explanation_says_what_the_method_costs(capsys, slug):
    record = json.loads(run(capsys, "methods", slug, "--json")[1])
    assert record["cost"], f"add a paragraph 'Cost: ...' to the Notes of {record['class']}"
    # It gets a capital, which the letter of a formula must not.
    assert not re.match(r"[A-Z] [a-z] ", record["cost"].replace("A ", "", 1)), "begin with a word"


def test_an_explanation_for_programs_is_one_object(capsys):
    record = json.loads(run(capsys, "methods", "drmfs", "--json")[1])
    assert (record["method"], record["class"], record["reconstruction"]) == ("drmfs", "DRMFS", False)
    assert record["references"] == [
        '[1] Hu, Li, Gao, Zhang, "Robust multi-label feature selection with dual-graph regularization", '
        "Knowledge-Based Systems 203, 2020."
    ]
    parameters = {entry["parameter"]: entry for entry in record["parameters"]}
    assert parameters["bandwidth"]["choices"] == ["unit", "median"]
    assert parameters["scale"]["choices"] == ["minmax", None]
    assert parameters["alpha"]["default"] == 1.0
    assert parameters["alpha"]["type"] == "float"
    assert parameters["alpha"]["description"] == "Weight of the feature graph."
    assert "coef_" in [entry["attribute"] for entry in record["attributes"]]
    assert "Cost" not in record["notes"]


def test_parameters_documented_together_share_their_first_sentence():
    texts = {name: text for name, _, text in describe_parameters(METHODS["pml-fsmir"])}
    expected = "Weights of the feature reconstruction, the label graph and the row sparsity (Eq. 8)."
    assert texts["alpha"] == texts["beta"] == texts["gamma"] == expected
    assert texts["w_update"] == '"exact" descends the objective.'


def test_the_methods_fit_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for arguments in (("methods",), ("methods", "pml-fsmir"), ("methods", "rfs")):
        assert max(map(len, run(capsys, *arguments)[1].splitlines())) <= 40


def test_a_formula_that_is_broken_stays_a_formula(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = run(capsys, "methods", "pml3er")[1].partition("Then minimises")[2].partition("Paper")[0]
    formula = shown.split("\n\n")[1].splitlines()
    assert len(formula) > 1
    assert all(re.match(r" {6}\S", line) for line in formula)


def test_an_unknown_method_names_the_closest(capsys):
    assert "did you mean 'pml-fsmir'?" in fails(capsys, 2, "methods", "PML-FSMIR")
    assert "not both" in fails(capsys, 2, "methods", "--json", "--markdown")


# demo


@pytest.fixture(scope="module")
def same_fit():
    """All demos fit the same digits: once for the tests that only look at what is shown."""

    def once(function):
        found = []

        def remembered(*arguments, **options):
            if not found:
                found.append(function(*arguments, **options))
            return found[0]

        return remembered

    with pytest.MonkeyPatch.context() as patch:
        for name in ("inspect_dataset",):
            patch.setattr(demo, name, once(getattr(demo, name)))
        yield


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory, same_fit):
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
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    n_wrong = 0
    for position, label in zip(data["rows"]["i"][:20], data["rows"]["l"][:20], strict=True):
        place = (int(data["ids"][position]), label)
        assert digits.Y_candidates[place] == 1
        n_wrong += digits.Y[place] == 0
    assert n_wrong == int(said[1])
    assert f"{n_wrong} of the first 20 are wrong, {wrong:,} of all." in page


def test_what_the_demo_proposes_next_runs(capsys, monkeypatch, demonstration):
    _out, err, folder = demonstration
    monkeypatch.chdir(folder.parent)
    commands = re.findall(r"labelsieve ((?:select|issues) \S*digits.*)$", err, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert run(capsys, *shlex.split(command))[0] == 0


@pytest.mark.parametrize(
    ("started", "on_path", "told"),
    [
        (".venv/bin/labelsieve", "", ".venv/bin/labelsieve"),
        (".venv/bin/labelsieve", ".venv/bin", "labelsieve"),
        ("pytest", "", "labelsieve"),
    ],
)
def test_the_demo_proposes_the_command_it_was_started_by(
    capsys, monkeypatch, same_fit, started, on_path, told
):
    script = Path(".venv/bin/labelsieve").absolute()
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(Path(on_path).absolute()))
    monkeypatch.setattr("sys.argv", [started, "demo"])
    monkeypatch.setattr("labelsieve.cli.demo.missing_packages", lambda: ["matplotlib"])
    err = run(capsys, "demo")[2]
    data = "labelsieve-demo/digits.csv"
    assert f"Try next: {told} select {data} -k auto\n          {told} issues {data}\n" in err


def test_the_demo_without_the_report_extra_says_what_to_install(capsys, monkeypatch, same_fit):
    monkeypatch.setattr("labelsieve.cli.demo.missing_packages", lambda: ["matplotlib"])
    code, out, err = run(capsys, "demo", "--output", "elsewhere")
    assert code == 0
    assert os.listdir("elsewhere") == ["digits.csv"]
    assert "pip install 'labelsieve[report]'" in err
    assert out.count("pixel_") == 12


@pytest.mark.parametrize("command", ["select", "issues"])
def test_a_page_without_the_report_extra_is_refused_before_the_work(capsys, monkeypatch, table, command):
    monkeypatch.setattr("labelsieve.cli.target.missing_packages", lambda needed: ["jinja2"])
    err = fails(capsys, 2, command, table, "--labels", "2", "--html", "page.html")
    assert "needs jinja2; pip install 'labelsieve[report]'" in err


def test_the_demo_needs_only_ascii_where_there_is_nothing_else(capsys, monkeypatch, same_fit):
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda self: True))
    monkeypatch.setattr("labelsieve.cli.demo.missing_packages", lambda: ["matplotlib"])
    code, out, _ = run(capsys, "demo")
    assert code == 0
    assert out.isascii()


def test_a_demo_that_cannot_be_written_is_one_line(capsys, same_fit):
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
def test_the_examples_of_the_help_run(capsys, monkeypatch, same_fit, example):
    rng = np.random.default_rng(0)
    X = rng.random((30, 12))
    data = Dataset(X, X[:, :2] > 0.5, name="data", label_names=("label_a", "label_b"))
    write(data, "data.arff")
    with open("data.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        is_named = " name" in example
        writer.writerow([*["name"] * is_named, *data.feature_names, *data.label_names])
        writer.writerows(
            [*[f"row {k}"] * is_named, *x, *y] for k, (x, y) in enumerate(zip(data.X, data.Y, strict=True))
        )
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
    monkeypatch.setattr("labelsieve.cli.select.open_data", failing_with(KeyError("surprise")))
    err = fails(capsys, 1, "select", table)
    assert "failed unexpectedly (KeyError: 'surprise'); please report it" in err
    monkeypatch.setenv("LABELSIEVE_DEBUG", "1")
    with pytest.raises(KeyError, match="surprise"):
        main(["select", table])


def test_an_interrupt_is_one_line(capsys, monkeypatch, table):
    monkeypatch.setattr("labelsieve.cli.select.open_data", failing_with(KeyboardInterrupt()))
    assert fails(capsys, 130, "select", table) == "error: interrupted.\n"


def test_a_closed_pipe_is_quiet(table):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        done = run_alone(RUN, "select", table, "--labels", "2", "-q", stdout=stdout)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_command_runs_without_standard_output(table):
    # As under cron, or `labelsieve ... >&-`: Python has no stream then.
    closing = "import os; os.close(1); program = [sys.executable, '-m', 'labelsieve', *sys.argv[1:]]; "
    done = run_alone(closing + "os.execv(program[0], program)", "select", table, "--labels", "2")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "selected" in done.stderr


# Progress


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self):
        return True


def shown(monkeypatch, patience, log):
    """What a terminal gets to see while `log` runs."""
    from rich.console import Console

    monkeypatch.setattr("labelsieve.cli.console.PATIENCE", patience)
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
    assert re.search(r"^inner fold 1 of 3$", err, re.MULTILINE)
    err = run(capsys, "select", table, "--labels", "2", "--json", "--method", "pml-fsmir", "-p", "verbose=1")[
        2
    ]
    assert re.search(r"^iteration 1 of at most 1000: objective", err, re.MULTILINE)


def test_a_disk_error_while_reading_is_told(capsys, monkeypatch, table):
    monkeypatch.setattr("labelsieve.cli.select.open_data", failing_with(OSError(errno.EIO, "broken")))
    assert "broken" in fails(capsys, 1, "select", table)
