"""Tests of `labelsieve demo`."""

import re
import shlex

import pytest

from conftest import run
from labelsieve.cli import review
from labelsieve.datasets import load_animals
from labelsieve.io import read
from labelsieve.review_app.session import Request

pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.fixture
def demo(capsys, tmp_path, monkeypatch):
    """Output and messages of the demo, and its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(capsys, "demo")
    assert code == 0
    return out, err, tmp_path / "labelsieve-demo"


def test_demo_audits_the_animals_and_writes_table_and_page(demo):
    out, err, folder = demo
    assert "\x1b" not in out + err  # no colours in a pipe
    assert max(map(len, out.splitlines())) <= 80
    assert sorted(path.name for path in folder.iterdir()) == [
        "animals.csv",
        "audit.html",
        "digits",
        "digits.csv",
    ]
    table = read(folder / "animals.csv")
    assert (table.candidates == load_animals().Y_candidates).all()


def test_demo_counts_the_wrong_labels_among_the_first_twenty(demo):
    out = demo[0]
    issues = re.findall(r"^(\w+) +(\w+) +-?\d\.\d\d +(wrong|right)", out, re.MULTILINE)
    animals = load_animals()
    rows, labels = list(animals.row_ids), list(animals.label_names)
    assert len(issues) == 5
    for row, label, truth in issues:
        place = rows.index(row), labels.index(label)
        assert animals.Y_candidates[place] == 1
        assert animals.Y[place] == (truth == "right")
    assert re.search(r"\b19 of the first 20\b", " ".join(out.split()))


def test_commands_suggested_by_the_demo_run(capsys, demo):
    commands = re.findall(r"^  labelsieve (.*)$", demo[1], re.MULTILINE)
    assert [shlex.split(command)[0] for command in commands] == ["audit", "select", "review", "review"]
    for command in commands[:2]:  # the others run until they are stopped
        assert run(capsys, *shlex.split(command))[0] == 0


def test_the_demo_ends_with_the_review_of_digits_as_images(demo, monkeypatch, capsys):
    shown = []

    class App:
        """An app that a person stops at once."""

        def __init__(self, session, port):
            self.session, self.url, self.review = session, "http://127.0.0.1:1/t/", session.review

        def wait(self):
            card = self.session.view(Request())["card"]
            row, _ = map(int, card["key"].split("-"))
            shown.append([self.session.image(row, image["column"]) for image in card["images"]])
            raise KeyboardInterrupt

        def close(self):
            self.session.close()

    monkeypatch.setattr(review, "RunningReview", App)
    monkeypatch.setattr(review.webbrowser, "open", lambda address: None)
    for command in re.findall(r"^  labelsieve (review .*)$", demo[1], re.MULTILINE):
        assert run(capsys, *shlex.split(command))[0] == 0
    assert shown[0] == []  # the animals
    ((path, kind),) = shown[1]
    assert path.parent == demo[2] / "digits"
    assert kind == "image/png"


def test_demo_in_a_folder_that_cannot_be_written_is_one_error(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").touch()
    code, _, err = run(capsys, "demo", "--output", "taken")
    assert code == 1
    assert err.splitlines()[-1].startswith("error: taken: ")
