"""Tests that names with control characters are printed as text on terminals and pipes."""

import json
import os
import threading
import unicodedata
from contextlib import redirect_stderr, redirect_stdout

import pytest

from conftest import run
from labelsieve.cli import main

pytestmark = pytest.mark.usefixtures("plain_terminal")

#: Codes that set the title, ring the bell, clear the screen and reverse the text direction.
ORDERS = "\x1b]0;owned\x07\x9b2J\u202e"
FILE = f"data{ORDERS}.csv"
#: File with such column names.
NAMES = "names.csv"


@pytest.fixture
def hostile():
    rows = [f"{i / 10},{i % 3},{i % 2},{i % 2},{int(i > 10)}" for i in range(20)]
    for file, orders in ((FILE, ""), (NAMES, ORDERS)):
        header = [f"first{orders}", "[bold]second[/bold]", ":bell:", f"label_a{orders}", "label_b"]
        with open(file, "w", encoding="utf-8") as stream:
            stream.write("\n".join([",".join(header), *rows]))


def given_orders(text):
    """Return the characters of a text that are neither printable nor line endings."""
    return {letter for letter in text if unicodedata.category(letter) in {"Cc", "Cf"}} - {"\n", "\r"}


#: One command for each output with names: tables, JSON, messages, data errors and usage errors.
COMMANDS = {
    "select": (0, ["select", NAMES, "--labels", "2", "-m", "sum-f", "--all", "--check-labels"]),
    "select json": (0, ["select", FILE, "--labels", "2", "-m", "sum-f", "--json"]),
    "select to a file": (0, ["select", FILE, "--labels", "2", "-m", "sum-f", "-o", f"out{ORDERS}.csv"]),
    "issues": (0, ["issues", NAMES, "--labels", "2"]),
    "apply-review": (1, ["apply-review", FILE, f"none{ORDERS}", "--labels", "2", "-o", "out.csv"]),
    "audit": (0, ["audit", NAMES, "--labels", "2", "--fast"]),
    "info": (0, ["datasets", "info", NAMES, "--labels", "2"]),
    "no such file": (1, ["select", f"none{FILE}"]),
    "no such command": (2, [f"none{ORDERS}"]),
    "no such configuration": (1, ["bench", "run", f"none{ORDERS}.toml"]),
    "no such run": (1, ["report", f"none{ORDERS}"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_control_characters_are_not_written_to_a_pipe(name, hostile, capsys):
    code, arguments = COMMANDS[name]
    found, out, err = run(capsys, *arguments)
    assert found == code, err
    assert not given_orders(out + err)
    if "--json" in arguments:  # programs get the very names
        assert f"data{ORDERS}" in json.loads(out).values()
    if name == "info":
        assert "[bold]second[/bold]" in out
        assert ":bell:" in out


@pytest.mark.parametrize(
    ("terminal", "name"), [("dumb", "select"), ("dumb", "no such file"), ("xterm", "select")]
)
def test_control_characters_do_not_reach_a_terminal(terminal, name, hostile, monkeypatch):
    code, arguments = COMMANDS[name]
    monkeypatch.setenv("TERM", terminal)
    found, shown = run_on_a_terminal(*arguments)
    assert found == code, shown
    assert "\\x1b]0;owned\\x07" in shown
    # Rich writes bold text and erases its progress line.
    ours = {"\x1b"} if terminal == "xterm" else set()
    assert given_orders(shown) <= ours
    assert "\x1b]0;owned" not in shown


def run_on_a_terminal(*arguments):
    """Run the command line on a pseudo-terminal. Return the exit code and the output."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    pieces = []

    def read_all():
        while piece := read_some(ours):
            pieces.append(piece)

    reader = threading.Thread(target=read_all)
    reader.start()
    with open(theirs, "w", encoding="utf-8") as stream, redirect_stdout(stream), redirect_stderr(stream):
        code = main(list(arguments))
    reader.join()
    os.close(ours)
    return code, b"".join(pieces).decode()


def read_some(terminal):
    """Read from a pseudo-terminal. Linux raises an error if the other side is closed."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
