"""Shared fixtures and functions that run the command line."""

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

# No deadlines, because the speed of a shared machine varies.
settings.register_profile("labelsieve", deadline=None)
settings.load_profile("labelsieve")


def cached(eigenpairs):
    """Cache the decomposition of large matrices, because dozens of tests use the same digits."""
    cache = {}

    def cached_eigenpairs(products, n_samples):
        if n_samples < 1000:
            return eigenpairs(products, n_samples)
        key = hashlib.sha256(products).digest()
        if key not in cache:
            cache[key] = eigenpairs(products, n_samples)
            for part in cache[key]:
                part.flags.writeable = False
        return cache[key]

    return cached_eigenpairs


leave_one_out._eigenpairs = cached(leave_one_out._eigenpairs)


@pytest.fixture
def tiny():
    """Make the data of the worked examples: six rows, four features, three labels."""
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
    """Return a function that loads a real dataset with 20% flip noise. Skip tests if there are no files."""
    if "LABELSIEVE_DATA" not in os.environ:
        pytest.skip("LABELSIEVE_DATA is not set to a folder with the real datasets")

    def load_noisy(name):
        data = load(name)
        return data.X, add_candidates(data.Y, rate=0.2, random_state=0)

    return load_noisy


@pytest.fixture
def plain_terminal(monkeypatch, tmp_path):
    """Set up 80 columns, no colour, an empty cache, no network, and an empty working folder."""
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
    """Compute the cells of runs with a single job in this process."""
    import quick_cells  # imported here because the controller of pytest-xdist does not need it

    with quick_cells.one_job_here():
        yield


@pytest.fixture
def planted():
    """Make five features, two labels that follow the first two features, and one wrong label in row 0.

    Each of the other features is nonzero in a single row and irrelevant. The labels of these rows differ, so
    that no scores tie up to rounding, which depends on the processor.
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
    """Write the planted problem to a CSV file whose last two columns are the candidate labels."""
    with open("data.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*planted.feature_names, *planted.label_names])
        writer.writerows([*x, *y] for x, y in zip(planted.X, planted.Y_candidates, strict=True))
    return "data.csv"


#: Program that runs the command line.
RUN = "sys.exit(main(sys.argv[1:]))"


def run_alone(program, *arguments, **options):
    """Run a program in a separate process. It can call the command line as `main`."""
    source = os.path.dirname(os.path.dirname(labelsieve.__file__))
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"}
    environment.pop("PYTHONUNBUFFERED", None)  # otherwise Python does not report a full disk
    command = [sys.executable, "-c", f"import sys; from labelsieve.cli import main; {program}", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, encoding="utf-8", env=environment, **options)


def run(capsys, *arguments):
    """Run the command line, and return its exit code, output and errors."""
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, code, *arguments):
    """Run a command that must fail with a one-line error and write no file. Return the error."""
    before = sorted(os.listdir())
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (code, "")
    assert re.fullmatch(r"error: [^\n]+\n", err)
    assert sorted(os.listdir()) == before
    return err


def pytest_collection_modifyitems(items):
    """Run long tests first, because a long test that starts late delays the end of the run."""
    items.sort(key=lambda item: -_seconds(item.get_closest_marker("slow")))


def _seconds(slow):
    return 0 if slow is None else slow.kwargs.get("seconds", 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Use one worker more than there are cores, because tests that wait for other processes are idle."""
    return (os.cpu_count() or 1) + 1
