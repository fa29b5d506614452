"""``labelsieve demo``: what it shows, what it writes and what it proposes."""

import io
import json
import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from conftest import run
from labelsieve.cli import demo, main
from labelsieve.io import read

pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.fixture(scope="module")
def same_fit():
    """All demos fit the same digits: once for the tests that only look at the output."""

    found, inspect_dataset = [], demo.inspect_dataset

    def once(*arguments, **options):
        if not found:
            found.append(inspect_dataset(*arguments, **options))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "inspect_dataset", once)
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
    assert len(re.findall(r"pixel_\d_\d +[\d. ]+█", out)) == 12
    assert sorted(map(int, re.findall(r"\[ ?(\d+)\]", out))) == list(range(1, 13))
    assert max(map(len, out.splitlines())) <= 80


def test_the_demo_writes_picture_page_and_data_and_says_where(demonstration):
    _out, err, folder = demonstration
    assert sorted(path.name for path in folder.iterdir()) == ["demo.html", "demo.png", "digits.csv"]
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    for name in ("demo.html", "demo.png", "digits.csv"):
        assert os.path.join("labelsieve-demo", name) in err


def test_the_demo_counts_the_wrong_labels_it_lists(demonstration):
    out, _err, folder = demonstration
    digits = read(folder / "digits.csv")
    n_candidates = digits.Y_candidates.sum()
    said = re.search(r"(\d+) of the 20 [^%]* wrong[^%]* (\d+)%", out)
    assert int(said[2]) == round(100 * (n_candidates - digits.Y.sum()) / n_candidates)
    page = (folder / "demo.html").read_text()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    listed = zip(data["rows"]["i"][:20], data["rows"]["l"][:20], strict=True)
    places = [(int(data["ids"][position]), label) for position, label in listed]
    assert all(digits.Y_candidates[place] == 1 for place in places)
    assert sum(digits.Y[place] == 0 for place in places) == int(said[1])


def test_the_commands_that_the_demo_proposes_run(capsys, monkeypatch, demonstration):
    _out, err, folder = demonstration
    monkeypatch.chdir(folder.parent)
    commands = re.findall(r"labelsieve ((?:select|issues) \S*digits.*)$", err, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert run(capsys, *shlex.split(command))[0] == 0


def test_the_demo_without_matplotlib_in_ascii(capsys, monkeypatch, same_fit):
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda self: True))
    monkeypatch.setattr("labelsieve.cli.demo.has_matplotlib", lambda: False)
    code, out, err = run(capsys, "demo", "--output", "elsewhere")
    assert code == 0
    assert out.isascii()
    assert len(re.findall(r"^ +\d+ . pixel_", out, re.MULTILINE)) == 12
    assert os.listdir("elsewhere") == ["digits.csv"]
    assert "pip install 'labelsieve[" in err


def test_a_demo_that_cannot_be_written_is_one_line(capsys, same_fit):
    open("taken", "w").close()
    code, _, err = run(capsys, "demo", "--output", "taken")
    assert code == 1
    assert err.splitlines()[-1].startswith("error: taken: ")
