"""Names, errors and file names that try to steer the terminal reach it as text, whoever reads: a terminal or a pipe."""

import json
import os
import threading
import unicodedata
from contextlib import redirect_stderr, redirect_stdout

import pytest

from conftest import run
from labelsieve.cli import main

pytestmark = pytest.mark.usefixtures("plain_terminal")

#: Sets the title, rings the bell, clears the screen with the one-byte sequence, turns the direction of writing.
ORDERS = "\x1b]0;owned\x07\x9b2J\u202e"
FILE = f"data{ORDERS}.csv"
#: A file with such names, which are read as what is shown of them.
NAMES = "names.csv"


@pytest.fixture
def hostile():
    """Orders to the terminal as file name and as names of columns."""
    rows = [f"{i / 10},{i % 3},{i % 2},{i % 2},{int(i > 10)}" for i in range(20)]
    for file, orders in ((FILE, ""), (NAMES, ORDERS)):
        header = [f"first{orders}", "second", "third", f"label_a{orders}", "label_b"]
        with open(file, "w", encoding="utf-8") as stream:
            stream.write("\n".join([",".join(header), *rows]))


def given_orders(text):
    """What in a text is neither shown nor the end of a line."""
    return {letter for letter in text if unicodedata.category(letter) in {"Cc", "Cf"}} - {"\n", "\r"}


COMMANDS = {
    "select": (0, ["select", FILE, "--labels", "2", "-m", "sum-f"]),
    "select all": (0, ["select", FILE, "--labels", "2", "-m", "sum-f", "--all"]),
    "select csv": (0, ["select", FILE, "--labels", "2", "-m", "sum-f", "--format", "csv"]),
    "select json": (0, ["select", FILE, "--labels", "2", "-m", "sum-f", "--json"]),
    "select to a file": (0, ["select", FILE, "--labels", "2", "-m", "sum-f", "-o", f"out{ORDERS}.csv"]),
    "issues": (0, ["issues", FILE, "--labels", "2"]),
    "issues json": (0, ["issues", FILE, "--labels", "2", "--json"]),
    "issues to a file": (0, ["issues", FILE, "--labels", "2", "-o", f"out{ORDERS}.csv"]),
    "issues checked": (1, ["issues", FILE, "--labels", "2", "--checked", f"none{ORDERS}.csv"]),
    "apply-review": (1, ["apply-review", FILE, f"none{ORDERS}", "--labels", "2", "-o", "out.csv"]),
    "audit": (0, ["audit", FILE, "--labels", "2"]),
    "audit json": (0, ["audit", FILE, "--labels", "2", "--json"]),
    "info": (0, ["datasets", "info", FILE, "--labels", "2"]),
    "info json": (0, ["datasets", "info", FILE, "--labels", "2", "--json"]),
    "select names": (0, ["select", NAMES, "--labels", "2"]),
    "info names": (0, ["datasets", "info", NAMES, "--labels", "2"]),
    "no such file": (1, ["select", f"none{FILE}"]),
    "no such label": (1, ["select", FILE, "--labels", f"none{ORDERS}"]),
    "no labels": (1, ["datasets", "info", FILE, "--labels", "first"]),
    "no such data set": (1, ["datasets", "info", f"none{ORDERS}"]),
    "no such command": (2, [f"none{ORDERS}"]),
    "no such method": (2, ["methods", f"none{ORDERS}"]),
    "no such parameter": (2, ["select", FILE, "-p", f"none{ORDERS}=1"]),
    "no such option": (2, ["select", FILE, f"--none{ORDERS}"]),
    "no such configuration": (1, ["bench", "run", f"none{ORDERS}.toml"]),
    "no such run": (1, ["report", f"none{ORDERS}"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_order_is_written_where_there_is_no_terminal(name, hostile, capsys):
    code, arguments = COMMANDS[name]
    found, out, err = run(capsys, *arguments)
    assert found == code, err
    assert not given_orders(out + err)
    if "--json" in arguments:  # programs get the very names
        assert f"data{ORDERS}" in json.loads(out).values()


@pytest.mark.parametrize(
    ("terminal", "name"),
    [
        ("dumb", "select"),
        ("dumb", "info"),
        ("dumb", "no such file"),
        ("xterm", "select"),
        ("xterm", "select names"),
    ],
)
def test_no_order_reaches_a_terminal(terminal, name, hostile, monkeypatch):
    code, arguments = COMMANDS[name]
    monkeypatch.setenv("TERM", terminal)
    found, shown = run_on_a_terminal(*arguments)
    assert found == code, shown
    assert "\\x1b]0;owned\\x07\\x9b2J\\u202e" in shown
    # A terminal that can do more is told to write bold and to wipe its progress line: by us.
    ours = {"\x1b"} if terminal == "xterm" else set()
    assert given_orders(shown) <= ours
    assert "\x1b]0;owned" not in shown


def run_on_a_terminal(*arguments):
    """Run the command line on a pseudo-terminal; returns the exit code and what was shown."""
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
    """Read from a pseudo-terminal; nothing when the other side is closed, which Linux calls an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
