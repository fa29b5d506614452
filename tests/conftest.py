"""Shared problems: the worked example, real data where the folder is at hand, and a terminal."""

import csv
import hashlib
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import settings

import labelsieve
from labelsieve.cli import main
from labelsieve.datasets import add_candidates, load
from labelsieve.inspection import _leave_one_out as leave_one_out
from labelsieve.io import Dataset

# No deadlines: how fast a shared machine is says nothing about the code.
settings.register_profile("labelsieve", deadline=None)
settings.load_profile("labelsieve")


def remembering(eigenpairs):
    """Take a large matrix apart once: dozens of pages, examples and commands are about the same digits."""
    known = {}

    def remembered(products, n_samples):
        if n_samples < 1000:
            return eigenpairs(products, n_samples)
        key = hashlib.sha256(products).digest()
        if key not in known:
            known[key] = eigenpairs(products, n_samples)
            for part in known[key]:
                part.flags.writeable = False
        return known[key]

    return remembered


leave_one_out._eigenpairs = remembering(leave_one_out._eigenpairs)


@pytest.fixture
def tiny():
    """Six rows, four features, three labels: the data of the worked examples."""
    X = np.array(
        [
            [0.1, 0.9, 0.4, 0.0],
            [0.2, 0.8, 0.5, 1.0],
            [0.9, 0.1, 0.6, 0.3],
            [0.8, 0.2, 0.5, 0.7],
            [0.5, 0.5, 0.1, 0.2],
            [0.4, 0.6, 0.9, 0.8],
        ]
    )
    Y = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 1, 0]], dtype=float)
    return X, Y


@pytest.fixture
def real():
    """Load a real data set by name, with candidates at 20 % flip noise; skip where the files are absent."""
    if "LABELSIEVE_DATA" not in os.environ:
        pytest.skip("LABELSIEVE_DATA names no folder with the real data sets")

    def load_noisy(name):
        data = load(name)
        return data.X, add_candidates(data.Y, rate=0.2, random_state=0)

    return load_noisy


@pytest.fixture
def plain_terminal(monkeypatch, tmp_path):
    """Eighty columns, no colour, an empty cache, no network, and an empty working folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LABELSIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LABELSIEVE_OFFLINE", "1")
    monkeypatch.delenv("LABELSIEVE_DEBUG", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)


@pytest.fixture
def one_job_here():
    """Runs with a single job compute their cells in this process."""
    import quick_cells  # here, or all tests wait while the process that only deals them out imports it

    with quick_cells.one_job_here():
        yield


@pytest.fixture
def planted():
    """Five features; each label follows one of the first two, save for one false candidate in row 0.

    The other features say nothing: each stands out in a single row. The labels of these rows differ, so that no
    scores are equal but for roundings, which are not those of every processor.
    """
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 2)) < 0.5).astype(int)
    Y[0, 0] = 0
    candidates = Y.copy()
    candidates[0, 0] = 1
    X = np.zeros((60, 5))
    X[:, :2] = (Y + 0.1 * rng.random((60, 2))).round(3)
    X[[1, 2, 5], [2, 3, 4]] = 0.5
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


#: A program that is the command line.
RUN = "sys.exit(main(sys.argv[1:]))"


def run_alone(program, *arguments, **options):
    """Run a program in a process of its own; `main` is the command line."""
    source = os.path.dirname(os.path.dirname(labelsieve.__file__))
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"}
    environment.pop("PYTHONUNBUFFERED", None)  # Python would not notice what a full disk did not take
    command = [sys.executable, "-c", f"import sys; from labelsieve.cli import main; {program}", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, encoding="utf-8", env=environment, **options)


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


def pytest_collection_modifyitems(items):
    """Long tests first, the longest before all: whoever begins one last decides how long all of them take."""
    items.sort(key=lambda item: -_seconds(item.get_closest_marker("slow")))


def _seconds(slow):
    return 0 if slow is None else slow.kwargs.get("seconds", 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One more than there are cores: tests that wait for the processes of a run leave theirs idle."""
    return (os.cpu_count() or 1) + 1
