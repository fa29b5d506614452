"""Damage copies of a real results file and check what reading and resuming them gives.

``python tests/damage_results.py 300 100 100 40`` flips 300 single bits, overwrites 100 pages and cuts 100 files, and
resumes 40 of the runs.
"""

import io
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import chdir, redirect_stderr
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

import bench_runs as bench
import quick_cells
from labelsieve.bench import RunError
from labelsieve.bench.results import read_results, read_status
from labelsieve.cli import main as command_line

#: An experiment with cells that are done, cells that failed, weights and notes.
DAMAGED = """
folds = 4
datasets = [{ name = "small", path = "small.csv", labels = "label_*" }]
methods = ["own_methods:Slow", "own_methods:Broken", "mifs", { method = "rfs", params = { max_iter = 1 } }]
references = ["no-features", "all-features"]
[sizes]
percent = [20, 60]
"""


def make_results(folder):
    """Run an experiment; returns its configuration and its results file."""
    config = bench.make_project(folder, DAMAGED)
    bench.here(config, code=3)
    return config, folder / "runs" / "small" / "results.sqlite"


def _exact(value):
    """Plain values, numbers to the last bit."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    # A column of whole numbers holds floats if one is missing.
    return float(value).hex() if isinstance(value, int | float) else value


def _rows(table):
    """Rows of a table; a missing value is None, whatever else is in its column."""
    return table.astype(object).where(table.notna(), None).to_dict("records")


class Shown:
    """Everything that readers show of a results file."""

    def __init__(self, path):
        results, status = read_results(path), read_status(path)
        keys = results.cells["key"]
        entries = [("cell", cell) for cell in _rows(results.cells)]
        for table in (results.scores, results.judgements):
            entries += [(*table, row) for row in _rows(table.assign(cell=table["cell"].map(keys)))]
        entries += [("run", asdict(replace(run, n_computed=0, number=0))) for run in results.runs]
        entries += [("failure", failure) for failure in status["failures"]]
        self.entries = Counter(repr(_exact(entry)) for entry in entries)
        self.plan = repr(
            (
                results.experiment,
                results.datasets,
                results.planned.to_dict("records"),
                [row["planned"] for row in status["datasets"]],
            )
        )
        self.counts = [(row["done"], row["failed"], row["seconds"]) for row in status["datasets"]]
        self.n_missing = sum(row["missing"] for row in status["datasets"])
        self.is_warned = results.n_altered > 0 and any("damaged" in remark for remark in status["remarks"])


def verdict(truth, path):
    """Return "equal", "warned", "missing" (shown as such), "rejected" or, which must not be, "altered"."""
    try:
        found = Shown(path)
    except RunError:
        return "rejected"
    if found.plan != truth.plan or not found.entries <= truth.entries:
        return "altered"
    if any(
        new > old
        for pair in zip(found.counts, truth.counts, strict=True)
        for new, old in zip(*pair, strict=True)
    ):
        return "altered"
    if found.is_warned:
        return "warned"
    if found.entries == truth.entries:
        return "equal"
    return "missing" if found.n_missing > truth.n_missing else "altered"


def flip(data, rng):
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))


def overwrite(data, rng):
    """Fill a page with noise, zeros or another page."""
    page_size = int.from_bytes(data[16:18])
    page, other = (page_size * int(rng.integers(len(data) // page_size)) for _ in range(2))
    contents = (rng.bytes(page_size), bytes(page_size), data[other : other + page_size])
    data[page : page + page_size] = contents[int(rng.integers(3))]


def cut(data, rng):
    del data[int(rng.integers(len(data))) :]


DAMAGES = {"flip": flip, "overwrite": overwrite, "cut": cut}


def survey(path, folder, kind, number, seed=0):
    """Count the verdicts on damaged copies of a file."""
    truth, pristine = Shown(path), path.read_bytes()
    rng = np.random.default_rng(seed)
    counts = Counter()
    for _ in range(number):
        data = bytearray(pristine)
        DAMAGES[kind](data, rng)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        copy = folder / path.name
        copy.write_bytes(data)
        counts[verdict(truth, copy)] += 1
    return counts


def resume(config, path, number, seed=0):
    """Resume damaged runs; counts those with the results of the undamaged one, and those rejected as a whole."""
    pristine, expected = path.read_bytes(), bench.stored(path.parent)
    rng = np.random.default_rng(seed)
    counts = Counter()
    for turn in range(number):
        data = bytearray(pristine)
        list(DAMAGES.values())[turn % 3](data, rng)
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        path.write_bytes(data)
        out = io.StringIO()
        with quick_cells.one_job_here(), bench.fresh_modules(), chdir(config.parent), redirect_stderr(out):
            code = command_line(["bench", "run", config.name, "--jobs", "1"])
        assert "unexpectedly" not in out.getvalue()
        if code == 3:  # as the undamaged run, some of whose cells fail
            assert bench.stored(path.parent) == expected
        counts[{1: "rejected", 3: "completed"}[code]] += 1
    return counts


def main(n_flips, n_pages, n_cuts, n_resumed):
    with tempfile.TemporaryDirectory() as name:
        config, path = make_results(Path(name, "project"))
        print(f"{path.stat().st_size} bytes")
        total = Counter()
        for kind, number in zip(DAMAGES, (n_flips, n_pages, n_cuts), strict=True):
            counts = survey(path, Path(name, "copy"), kind, number)
            print(f"{kind}: {dict(sorted(counts.items()))}")
            total += counts
        print(f"resumed: {dict(resume(config, path, n_resumed))}")
    return total["altered"]


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
