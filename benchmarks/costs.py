"""Measure seconds, memory and iterations of every method on real data.

    python -m benchmarks.costs                                  all methods on the paper's eight datasets
    python -m benchmarks.costs --methods rfs --datasets yeast   some of them
    python -m benchmarks.costs --methods evidence rivals        next to the selectors of other packages

Datasets come from the folder in the environment variable LABELSIEVE_DATA, or are downloaded.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import DATASETS, noisy, with_seed
from benchmarks.table import print_table
from labelsieve.bench import cells
from labelsieve.bench.rivals import RIVALS
from labelsieve.methods import METHODS

SELECTORS = {**METHODS, **RIVALS}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--methods", nargs="+", choices=[*SELECTORS, "rivals"], default=list(METHODS), metavar="SLUG"
    )
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), metavar="NAME")
    parser.add_argument("--time-limit", type=float, default=600, metavar="SECONDS", help="for one fit")
    parser.add_argument("--fit", nargs=2, metavar=("SLUG", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        print(json.dumps(fit_and_measure(options.fit[0], Path(options.fit[1]))))
        return
    methods = [slug for given in options.methods for slug in (RIVALS if given == "rivals" else [given])]
    cells = {}
    for slug, name, text in costs(methods, options.datasets, options.time_limit):
        cells[slug, name] = text
        print(f"{slug}, {name}: {text}", file=sys.stderr, flush=True)
    print(
        "Processor seconds / MiB above the loaded data / iterations; "
        "* = the budget ended before the stopping rule was met.\n"
    )
    print_table(
        ["method", *options.datasets],
        ([slug, *(cells[slug, name] for name in options.datasets)] for slug in methods),
    )


def costs(
    methods: Iterable[str], datasets: Iterable[str], time_limit: float
) -> Iterable[tuple[str, str, str]]:
    """Fit every method to every dataset, each in a new process to measure its own peak memory."""
    for name in datasets:
        with tempfile.TemporaryDirectory() as folder:
            X, Y = noisy(name)
            save(X, Path(folder) / "X.npz")
            save(Y, Path(folder) / "Y.npz")
            for slug in methods:
                yield slug, name, run_fit(slug, folder, time_limit)


def run_fit(slug: str, folder: str, time_limit: float) -> str:
    """Run one fit in a new process and return its measurement or error."""
    command = [sys.executable, "-m", "benchmarks.costs", "--fit", slug, folder]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=time_limit, check=True)
    except subprocess.TimeoutExpired:
        return f"over {time_limit:g} s"
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        return f"failed: {reason}"
    record = json.loads(done.stdout)
    iterations = "" if record["iterations"] is None else f" / {record['iterations']}"
    ending = "" if record["converged"] else "*"
    return f"{record['seconds']:.2f} / {record['mebibytes']:.0f}{iterations}{ending}"


def fit_and_measure(slug: str, folder: Path) -> dict[str, Any]:
    """Fit one method with its defaults. Memory is the peak above that of the loaded data."""
    X, Y = restore(folder / "X.npz"), restore(folder / "Y.npz")
    selector = with_seed(SELECTORS[slug](), 0)
    before = peak_mebibytes(reset=True)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.fit(X, Y)
    return {
        "seconds": time.process_time() - start,
        "mebibytes": peak_mebibytes() - before,
        "iterations": getattr(selector, "n_iter_", None),
        "converged": not any(issubclass(warning.category, ConvergenceWarning) for warning in caught),
    }


def peak_mebibytes(*, reset: bool = False) -> float:
    """Return the peak memory of this process since the last reset, if the system supports resets."""
    known = cells.peak_mebibytes(reset=reset)
    if known is not None:
        return known
    # Not on Linux, where this number would start with the peak of the parent process.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def save(matrix: Any, path: Path) -> None:
    # The child must not parse the original file, which can take more memory than a fit.
    if sp.issparse(matrix):
        sp.save_npz(path, matrix, compressed=False)
    else:
        np.savez(path, dense=matrix)


def restore(path: Path) -> Any:
    with np.load(path) as parts:
        return parts["dense"] if "dense" in parts else sp.load_npz(path)


if __name__ == "__main__":
    main()
