"""Tests of the command line: help, errors, streams, signals and progress."""

import csv
import errno
import io
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from importlib import import_module

import numpy as np
import pytest
from rich.console import Console

import labelsieve
from conftest import RUN, fails, run, run_alone
from labelsieve.cli import EPILOG, _console, main
from labelsieve.io import Dataset, write

pytestmark = pytest.mark.usefixtures("plain_terminal")

DATA_OPTIONS = (
    "--labels", "--candidates", "--ignore", "--id", "--label-sep", "--text", "--role", "--nominal", "--missing"
)  # fmt: skip


def test_version_of_the_package_is_printed(capsys):
    assert run(capsys, "--version") == (0, f"labelsieve {labelsieve.__version__}\n", "")


@pytest.mark.parametrize(
    "command", ["", "select", "audit", "issues", "apply-review", "datasets info", "methods", "demo"]
)
def test_help_fits_a_screen_and_has_an_example(capsys, command):
    code, out, err = run(capsys, *command.split(), "--help")
    assert (code, err) == (0, "")
    assert "Example" in out
    assert len(out.splitlines()) <= 68
    assert max(map(len, out.splitlines())) <= 90
    if command in ("select", "audit", "issues", "apply-review", "datasets info"):
        for option in DATA_OPTIONS:
            assert re.search(rf"^  {option} ", out, re.MULTILINE)


def examples():
    """Collect the examples in the help of the program and its commands, in order."""
    for text in (EPILOG, *(import_module(f"labelsieve.cli.{name}").EPILOG for name in ("select", "methods"))):
        yield from (line.strip() for line in text.splitlines() if line.startswith("  labelsieve "))
    for name in ("issues", "audit"):
        text = import_module(f"labelsieve.cli.{name}").EPILOG
        yield "\n".join(line.strip() for line in text.splitlines() if line.startswith("  labelsieve "))


@pytest.mark.parametrize("example", [example for example in examples() if example != "labelsieve demo"])
def test_the_examples_of_the_help_run(capsys, example):
    rng = np.random.default_rng(0)
    X = rng.random((60, 12)).round(3)
    Y = X[:, :5] > 0.5
    write(Dataset(X, Y, name="data"), "data.arff")
    with open("data.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", *(f"x{j}" for j in range(12)), *(f"label_{j}" for j in range(5))])
        writer.writerows([f"row {k}", *x, *y.astype(int)] for k, (x, y) in enumerate(zip(X, Y, strict=True)))
    with open("tickets.csv", "w") as stream:
        stream.write("x,tags\n" + "".join(f"{x},{'a;b' if x > 0.5 else 'b'}\n" for x in X[:, 0]))
    with open("check.csv", "w") as stream:
        row = int(np.flatnonzero(Y[:, 0])[0])
        stream.write(f"id:name,label,verdict\nrow {row},label_0,right\n")
    for line in example.splitlines():
        if "--draw" in line:
            os.remove("check.csv")
        code, _, err = run(capsys, *shlex.split(line)[1:])
        assert code == 0, err


def test_unknown_commands_and_options_are_usage_errors(capsys, table):
    assert "'selct'" in fails(capsys, 2, "selct")
    assert "--labels" in fails(capsys, 2, "select", table, "--lables", "2")


# Errors


def failing_with(error):
    def read(*arguments, **options):
        raise error

    return read


def test_an_unexpected_failure_asks_for_a_report(capsys, monkeypatch, table):
    monkeypatch.setattr("labelsieve.cli._options.DataOptions.read", failing_with(KeyError("surprise")))
    assert "KeyError: 'surprise'" in fails(capsys, 1, "select", table)
    monkeypatch.setenv("LABELSIEVE_DEBUG", "1")
    with pytest.raises(KeyError, match="surprise"):
        main(["select", table])


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (OSError(errno.EIO, "broken"), 1)])
def test_an_interrupt_and_a_disk_error_are_one_line(capsys, monkeypatch, table, error, code):
    monkeypatch.setattr("labelsieve.cli._options.DataOptions.read", failing_with(error))
    fails(capsys, code, "select", table)


# Python would write truncated .pyc files, which break later imports.
LIMITED = (
    "import resource, sys; sys.dont_write_bytecode = True; "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
)


def test_a_full_disk_leaves_no_partial_file(table):
    # The operating system limits the file size per process, so start a separate one.
    program = (
        f"{LIMITED}; print([main([*sys.argv[1:], option, 'out.csv']) "
        "for option in ('--output', '--html', '--write-data')])"
    )
    done = run_alone(program, "select", table, "--labels", "2", "-q", stdout=subprocess.PIPE, check=True)
    assert done.stdout.endswith("[1, 1, 1]\n")
    assert len(re.findall(r"^error: out.csv: .*File too large", done.stderr, re.MULTILINE)) == 3
    assert os.listdir() == ["data.csv"]


def test_standard_output_on_a_full_disk_is_one_line(table):
    with open("out.json", "w") as stdout:
        done = run_alone(f"{LIMITED}; {RUN}", "select", table, "--labels", "2", "--json", "-q", stdout=stdout)
    assert done.returncode == 1
    assert re.fullmatch(r"error: .*File too large.*\n", done.stderr)


# Streams and signals


def test_a_closed_pipe_is_quiet(table):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        done = run_alone(RUN, "select", table, "--labels", "2", "-q", "--json", stdout=stdout)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("command", ["audit", "select", "issues"])
def test_quiet_prints_errors_only(table, command, capsys):
    assert run(capsys, command, table, "--labels", "2", "-q") == (0, "", "")
    code, out, err = run(capsys, command, table, "--labels", "2", "-q", "--json")
    assert (code, json.loads(out)["data"], err) == (0, "data", "")
    code, out, err = run(capsys, command, table, "--labels", "nothing", "-q")
    assert (code, out, err.count("\n"), err[:6]) == (1, "", 1, "error:")


def test_a_command_runs_without_standard_output(table):
    # Under cron, or with `labelsieve ... >&-`, Python has no output stream.
    closing = "import os; os.close(1); program = [sys.executable, '-m', 'labelsieve', *sys.argv[1:]]; "
    done = run_alone(closing + "os.execv(program[0], program)", "select", table, "--labels", "2")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_program_reports_it_and_leaves_no_file(table, number):
    program = f"import sys; from labelsieve.cli import main; {RUN}"
    endless = ["-m", "pml-fsmir", *("-p", "verbose=1"), *("-p", "max_iter=1000000000"), *("-p", "tol=0")]
    command = [sys.executable, "-c", program, "select", table, "--labels", "2", *endless, "-o", "r.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline().startswith("iteration 1 of")  # now it is at work
        for _ in range(2):  # systems often signal twice
            process.send_signal(number)
        out, err = process.communicate(timeout=100)
    assert (process.returncode, out) == (128 + number, "")
    assert err.splitlines()[-1].startswith("error: terminated")
    assert "Traceback" not in err
    assert os.listdir() == ["data.csv"]


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("module", ["typer", "labelsieve.cli", "labelsieve.cli.select", "pandas"])
def test_ctrl_c_during_imports_is_one_line(table, module):
    finder = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            sys.meta_path.remove(self)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from labelsieve.__main__ import main\n"
        "sys.exit(main())"
    )
    command = [sys.executable, "-c", finder, "select", table, "--labels", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted.\n")


def test_nohup_is_respected():
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); main(['--version']); "
    done = run_alone(program + "sys.exit(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)")
    assert done.returncode == 1


def test_a_signal_handler_of_the_calling_program_is_kept(capsys):
    before = signal.signal(signal.SIGTERM, own := lambda number, frame: None)
    try:
        assert main(["--version"]) == 0
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_command_line_runs_outside_the_main_thread(capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]


# Progress


def shown(monkeypatch, work):
    """Return the text that a terminal shows while `work` runs."""
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with _console.progress(console) as status:
        work(status)
        status.bars.refresh()
    return console.file.getvalue()


def test_status_shows_activity_steps_and_iterations(monkeypatch):
    def work(status):
        status.advance(3, 4, "counting")
        logging.getLogger("labelsieve").info("iteration 7 of at most 10")

    text = shown(monkeypatch, work)
    assert "counting" in text
    assert "iteration 7 of at most 10" in text


def test_warnings_of_the_library_are_printed_as_notes(monkeypatch):
    logger = logging.getLogger("labelsieve")
    before = (logger.level, list(logger.handlers))
    text = shown(monkeypatch, lambda status: logger.warning("mirror\nis dead"))
    assert "note: mirror is dead\n" in text
    assert (logger.level, list(logger.handlers)) == before


def test_verbose_is_logged_to_standard_error_without_a_terminal(capsys, table):
    arguments = ("select", table, "--labels", "2", "--json", "-p", "verbose=1", "--method", "pml-fsmir")
    _, out, err = run(capsys, *arguments)
    json.loads(out)
    assert re.search(r"^iteration 1 of at most 1000: objective", err, re.MULTILINE)
