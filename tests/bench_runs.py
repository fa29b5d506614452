"""Helpers to start real runs of a small experiment and inspect their results."""

import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections import namedtuple
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import labelsieve
from forked_program import ForkedProgram
from labelsieve.bench.cells import evaluate as evaluate_cell
from labelsieve.cli import main
from quick_cells import computed

#: User-defined methods that misbehave.
OWN_METHODS = '''
import ctypes
import os
import subprocess
import time
import zlib
from collections import namedtuple
from pathlib import Path

import numpy as np

from labelsieve.methods.random_ranking import RandomRanking

FIXED = Path(__file__).with_name("fixed")
FIRST_ROW = np.loadtxt(Path(__file__).with_name("small.csv"), delimiter=",", skiprows=1, max_rows=1)[:10]


def learns_from_first_row(X):
    """Return True in one of two folds, where some methods kill their process."""
    return (X == FIRST_ROW).all(axis=1).any()


class Slow(RandomRanking):
    """Method that takes as long as an environment variable says."""

    def fit(self, X, Y):
        time.sleep(float(os.environ.get("PAUSE", "0")))
        if "PERMITS" in os.environ:
            wait_for_permit(Path(os.environ["PERMITS"]))
        return super().fit(X, Y)


def wait_for_permit(folder):
    """Wait for a file and remove it."""
    while True:
        for permit in folder.iterdir():
            try:
                permit.unlink()
                return
            except FileNotFoundError:  # another process was faster
                pass
        time.sleep(0.01)


class Deadly(RandomRanking):
    def fit(self, X, Y):
        if learns_from_first_row(X):
            os.kill(os.getpid(), 9)
        return super().fit(X, Y)


class Murderous(RandomRanking):
    """Method that kills the parent of its process."""

    def fit(self, X, Y):
        if learns_from_first_row(X):
            os.kill(os.getppid(), 9)
            time.sleep(600)
        return super().fit(X, Y)


class Broken(RandomRanking):
    def fit(self, X, Y):
        if not FIXED.exists():
            raise RuntimeError("out of\\nluck")
        return super().fit(X, Y)


class Rude(RandomRanking):
    def fit(self, X, Y):
        raise RuntimeError("\\x1b]0;owned\\x07 half a letter: \\udcff")


class Leaver(RandomRanking):
    def fit(self, X, Y):
        raise SystemExit("enough")


class Endless(RandomRanking):
    def fit(self, X, Y):
        if learns_from_first_row(X) and not FIXED.exists():
            child = subprocess.Popen(["sleep", "600"])
            FIXED.with_name("child").write_text(str(child.pid))
            self._wait()
        return super().fit(X, Y)

    def _wait(self):
        while not FIXED.exists():
            time.sleep(0.01)


class Deaf(RandomRanking):
    """Method with a long call into compiled code that blocks all threads."""

    def fit(self, X, Y):
        if learns_from_first_row(X) and not FIXED.exists():
            ctypes.PyDLL(None).sleep(600)
        return super().fit(X, Y)


class Hungry(RandomRanking):
    def fit(self, X, Y):
        eaten = []
        while learns_from_first_row(X) and len(eaten) < 40:
            eaten.append(np.ones(10 * 2**20 // 8))
            time.sleep(0.02)
        return super().fit(X, Y)
'''

SMALL = """
folds = 4
seeds = [0, 1, 2]
datasets = [{ name = "small", path = "small.csv", labels = "label_*" }]
methods = [
    { name = "slow", method = "own_methods:Slow" },
    { name = "slow half", method = "own_methods:Slow", params = { n_features_to_select = 0.5 } },
    { name = "slow third", method = "own_methods:Slow", params = { n_features_to_select = 0.3 } },
    "sum-mi",
]
references = ["no-features", "all-features"]
[sizes]
percent = [20, 60]
"""
N_SMALL = 72


def make_project(folder, text=SMALL, name="small"):
    """Write data, user-defined methods and a configuration, and return the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "own_methods.py").write_text(OWN_METHODS)
    if not (folder / "small.csv").exists():
        write_data(folder)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


def write_data(folder, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.random((80, 3)) < 0.4
    X = rng.normal(size=(80, 10)).round(3)
    X[:, :3] += Y
    names = [*(f"x{i}" for i in range(10)), *(f"label_{i}" for i in range(3))]
    np.savetxt(
        folder / "small.csv", np.hstack([X, Y]), delimiter=",", header=",".join(names), comments="", fmt="%g"
    )


@contextmanager
def fresh_modules():
    """Unload user-defined modules afterwards because other tests use the same names."""
    before = sys.path[:]
    try:
        yield
    finally:
        folders = tuple(f"{path}{os.sep}" for path in sys.path if path not in before)
        sys.path[:] = before
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").startswith(folders):
                del sys.modules[name]


def environment(pause=0.0, permits=None, cells="started"):
    """Return the environment of a program; for `cells` see `quick_cells.computed`."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(labelsieve.__file__).parents[1]),
        "PAUSE": str(pause),
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "CELLS": cells,
        **({} if permits is None else {"PERMITS": str(permits)}),
    }


def start(config, *arguments, terminal=None, **options):
    """Start ``labelsieve bench`` in a new session in the folder of the configuration."""
    words = ["labelsieve", "bench", "run", config.name, *map(str, arguments)]
    return ForkedProgram(words, config.parent, environment(**options), terminal)


def start_and_hold(config, *arguments, **options):
    """Start a run of the small experiment that finishes a cell, then waits until it may go on.

    Returns the process and a function that lets it go on.
    """
    permits = config.parent / "permits"
    permits.mkdir()
    (permits / "first").touch()
    process = start(config, *arguments, permits=permits, **options)
    wait_for_cells(config.parent / "runs" / "small", process)

    def let_go():
        for number in range(N_SMALL):
            (permits / str(number)).touch()

    return process, let_go


def without_progress(err):
    """Remove progress lines, whose number depends on the speed of the machine."""
    return "".join(
        line for line in err.splitlines(keepends=True) if not re.match(r"\d+ of \d+ cells; ", line)
    )


def inside(config, *arguments, verb="run", code=0, cells="started"):
    """Call the command line in this process, which saves its start; for the cells see `quick_cells.computed`."""
    out, err = io.StringIO(), io.StringIO()
    with computed(cells), fresh_modules(), chdir(config.parent), redirect_stdout(out), redirect_stderr(err):
        found = main(["bench", verb, config.name, *map(str, arguments)])
    assert found == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def here(config, *arguments, **options):
    """Call the command line with the cells in this process as well: for tests of anything but processes."""
    return inside(config, "--jobs", 1, *arguments, cells="here", **options)


def fails(config, *arguments, code=1, **options):
    """Run a command that must fail with one error and return the error."""
    out, err = inside(config, *arguments, code=code, **options)
    assert out == ""
    *_, message = err.splitlines()
    assert message.startswith("error: ")
    assert err.count("error: ") == 1
    return message


@contextmanager
def reading(folder):
    with closing(sqlite3.connect(f"{(folder / 'results.sqlite').as_uri()}?mode=ro", uri=True)) as database:
        yield database


def stored(folder):
    """Read everything that must not depend on how a run went, floats to the last bit."""
    with reading(folder) as database:
        rankings = database.execute(
            "SELECT key, description, params, error, n_iter, converged, ranking, objective, notes FROM rankings"
        ).fetchall()
        judgements = database.execute(
            "SELECT key, ranking, description, error, notes, scores FROM judgements"
        ).fetchall()
        (plan,) = database.execute("SELECT plan FROM experiment").fetchone()
    planned = [row[1] for row in json.loads(zlib.decompress(plan))]
    return {"rankings": sorted(rankings), "cells": sorted(judgements), "plan": planned}


def finished(folder):
    """Map every stored judgement to when it was computed, and by which run."""
    try:
        with reading(folder) as database:
            return {key: when for key, *when in database.execute("SELECT key, run, finished FROM judgements")}
    except sqlite3.OperationalError:  # not created yet
        return {}


def wait_for(condition, process=None, timeout=120):
    """Wait until a condition is true, or until the process has ended."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        if process is not None and process.poll() is not None:
            break
        time.sleep(0.05)


def wait_for_cells(folder, process):
    wait_for(lambda: finished(folder), process)


def processes_in_session(session):
    """List the processes in the session of a runner."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, *fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # gone meanwhile
                continue
            if int(fields[2]) == session and state != "Z":
                found.append(int(entry.name))
    return found


def workers_of(process):
    """List the processes that run cells."""
    found = []
    for pid in processes_in_session(process.pid):
        with suppress(OSError):  # gone meanwhile
            if b"labelsieve.bench.process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def wait_until_all_are_gone(process):
    """Wait until all processes of a runner have ended."""
    wait_for(lambda: not processes_in_session(process.pid), timeout=60)


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def undisturbed_run(folder):
    """Run the small experiment without faults and return its configuration, results and folder."""
    config = make_project(folder)
    here(config)
    runs = config.parent / "runs" / "small"
    results = stored(runs)
    assert len(results["cells"]) == N_SMALL
    return config, results, runs


@contextmanager
def small_disk(folder, size):
    """Mount a small file system and yield a function that remounts it with an option."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield lambda option: subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], check=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


Row = namedtuple("Row", ("classifier", "size", "n_features", "metric", "value"))


def evaluate(experiment, cell):
    """Evaluate a cell in this process; the scores of all its judgements are in one list."""
    result = evaluate_cell(experiment, cell)
    names = {judgement.key: judgement.judge.name for judgement in cell.judgements}
    judged = result.judgements
    found = {
        "error": result.error or next((part.error for part in judged.values() if part.error), None),
        "scores": [Row(names[key], *row) for key, part in judged.items() for row in part.scores],
        "ranking": result.ranked.order,
    }
    return SimpleNamespace(**{**vars(result), **found})
