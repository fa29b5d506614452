"""Fit PML-FSMIR to blocks of rows: a file in blocks or at once, and blocks on one or two workers.

    python -m benchmarks.blocks --memory      time and largest memory, in blocks and in memory
    python -m benchmarks.blocks --cluster     multiplicative sweeps on one worker and on two

Files are written to a temporary folder (``--folder``) and stay in the page cache. Each fit of ``--memory`` runs in
its own process with one thread. Processor seconds and peak memory include imports and opening the file.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np
from numpy.lib.format import open_memmap

from benchmarks.costs import peak_mebibytes
from benchmarks.table import print_table
from labelsieve import PMLFSMIR
from labelsieve.io import read

N_LABELS = 20


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--rows", type=int, default=700_000, help="rows of the file of --memory")
    parser.add_argument("--features", type=int, help="default: 500, on a cluster 1000")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument(
        "--block-rows", type=int, default=130_000, help="rows of each of the two blocks of --cluster"
    )
    parser.add_argument("--components", type=int, default=64, help="components of --cluster")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        print(json.dumps(fit_and_measure(**json.loads(options.fit))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.memory or not options.cluster:
            memory(Path(folder), options)
        if options.cluster or not options.memory:
            cluster(Path(folder), options)


def write_files(folder, n_rows, n_features, dtype):
    """Write random features, some of which follow three hidden factors, and labels that follow them too."""
    rng = np.random.default_rng(0)
    loadings = rng.random((3, n_features), dtype=np.float32) * (rng.random(n_features) < 0.2)
    X = open_memmap(folder / "X.npy", "w+", dtype, (n_rows, n_features))
    Y = open_memmap(folder / "Y.npy", "w+", np.int8, (n_rows, N_LABELS))
    for first in range(0, n_rows, 2**14):
        rows = slice(first, min(first + 2**14, n_rows))
        factors = rng.random((rows.stop - rows.start, 3), dtype=np.float32)
        X[rows] = factors @ loadings + rng.random((len(factors), n_features), dtype=np.float32)
        Y[rows] = factors[:, np.arange(N_LABELS) % 3] + 0.5 * rng.random((len(factors), N_LABELS)) > 1
    X.flush(), Y.flush()


def memory(folder, options):
    """Print time and memory of fits in blocks and in memory."""
    n_features = options.features or 500
    write_files(folder, options.rows, n_features, np.float32)
    size = 4 * options.rows * n_features / 2**20
    rows, seconds = [], []
    for mode in ("in blocks", "in memory"):
        task = {
            "folder": str(folder),
            "in_memory": mode == "in memory",
            "n_components": max(30, int(np.sqrt(n_features))),
            "iterations": options.iterations,
        }
        result = in_process(task)
        seconds.append(result["seconds"])
        rows.append((f"{size:.0f} MiB, {mode}", f"{result['seconds']:.1f}", f"{result['peak']:.0f}"))
        print(*rows[-1], file=sys.stderr, flush=True)
    print_table(["fit", "processor s", "largest resident MiB"], rows)
    print(f"Processor time in blocks over that in memory: {seconds[0] / seconds[1]:.2f}.")


def in_process(task):
    """Fit in a new process and return its measurements."""
    command = [sys.executable, "-m", "benchmarks.blocks", "--fit", json.dumps(task)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def fit_and_measure(folder, in_memory, n_components, iterations):
    """Fit in this process and return its processor seconds and peak memory in MiB."""
    data = read(f"{folder}/X.npy", labels=f"{folder}/Y.npy", chunks=None if in_memory else "auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # With so many rows, nearly all confidences are distinct. Bins take one pass.
        selector = PMLFSMIR(n_components=n_components, mi_estimator="binned", max_iter=iterations, tol=0)
        selector.fit(data.X, data.candidates)
    return {"seconds": time.process_time(), "peak": peak_mebibytes()}


def cluster(folder, options):
    """Print the seconds of a multiplicative sweep over two blocks, on one and two workers."""
    from distributed import Client, LocalCluster

    write_files(folder, 2 * options.block_rows, options.features or 1000, np.float64)
    data = read(f"{folder}/X.npy", labels=f"{folder}/Y.npy", chunks=options.block_rows)
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    rows, walls = [], []
    for n_workers in (1, 2):
        listener = Listener()
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as workers,
            Client(workers),
            listener,
        ):
            selector = PMLFSMIR(
                n_components=options.components, solver="mu", init="random", random_state=0, verbose=1
            ).set_params(max_iter=options.iterations, tol=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                selector.fit(data.X, data.candidates)
        walls.append(listener.seconds())
        rows.append((f"{n_workers} worker(s)", f"{walls[-1]:.2f}"))
        print(*rows[-1], file=sys.stderr, flush=True)
    print_table(["two blocks", "wall seconds per sweep"], rows)
    print(f"Two workers over one: {walls[1] / walls[0]:.2f} of the time.")


class Listener(logging.Handler):
    """Log handler that records when iterations end."""

    def __init__(self):
        super().__init__()
        self.times = []

    def __enter__(self):
        logging.getLogger("labelsieve").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("labelsieve").removeHandler(self)

    def emit(self, record):
        """Record the time of an iteration."""
        if record.levelno >= logging.INFO:
            self.times.append(time.monotonic())

    def seconds(self):
        """Return the median time of an iteration."""
        return median(np.diff(self.times))


if __name__ == "__main__":
    main()
