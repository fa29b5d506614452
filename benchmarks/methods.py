"""What every method costs on real data, and what it finds on planted problems.

    python -m benchmarks.methods                      seconds, memory and iterations, eight data sets
    python -m benchmarks.methods --json costs.json    the same, also as records in a file
    python -m benchmarks.methods --planted            recall of planted features against a random ranking

`--methods` and `--datasets` take some of them. The data sets are read from the folder named by the
environment variable LABELSIEVE_DATA, or downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
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

from benchmarks.problems import DATASETS, noisy
from labelsieve._base import BaseSelector
from labelsieve.bench import limits
from labelsieve.datasets import make_pml
from labelsieve.methods import METHODS

PLANTED = {"n_samples": 300, "n_features": 100, "n_informative": 10, "n_labels": 10}
PLANTED_NOISE = (0.0, 0.2, 0.4)
SEEDS = range(10)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="SLUG")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS), metavar="NAME")
    parser.add_argument("--time-limit", type=float, default=600, metavar="SECONDS", help="for one fit")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records there")
    parser.add_argument("--planted", action="store_true", help="recall on planted problems instead of costs")
    parser.add_argument("--fit", nargs=2, metavar=("SLUG", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        print(json.dumps(fit_and_measure(options.fit[0], Path(options.fit[1]))))
        return
    if options.planted:
        runs, columns = planted_recalls(options.methods), [f"noise {noise:g}" for noise in PLANTED_NOISE]
    else:
        runs, columns = costs(options.methods, options.datasets, options.time_limit), options.datasets
    records = []
    for record in runs:
        records.append(record)
        print(f"{record['method']}, {record['problem']}: {record['text']}", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps(records, indent=1) + "\n")
    print(as_table(records, columns))


def costs(methods: Iterable[str], datasets: Iterable[str], time_limit: float) -> Iterable[dict[str, Any]]:
    """Fit every method to every data set, each in a process of its own so that its peak memory is its own."""
    for name in datasets:
        with tempfile.TemporaryDirectory() as folder:
            X, Y = noisy(name)
            save(X, Path(folder) / "X.npz")
            save(Y, Path(folder) / "Y.npz")
            for slug in methods:
                yield {"method": slug, "problem": name, **run_fit(slug, folder, time_limit)}


def run_fit(slug: str, folder: str, time_limit: float) -> dict[str, Any]:
    """Start the process of one fit and read its measurement, or say what went wrong."""
    command = [sys.executable, "-m", "benchmarks.methods", "--fit", slug, folder]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=time_limit, check=True)
    except subprocess.TimeoutExpired:
        return {"failure": "time limit", "text": f"over {time_limit:g} s"}
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        return {"failure": reason, "text": f"failed: {reason}"}
    record = json.loads(done.stdout)
    iterations = "" if record["iterations"] is None else f", {record['iterations']} iterations"
    ending = "" if record["converged"] else ", not converged"
    return {**record, "text": f"{record['seconds']:.2f} s, {record['mebibytes']:.0f} MiB{iterations}{ending}"}


def fit_and_measure(slug: str, folder: Path) -> dict[str, Any]:
    """Fit one method with its defaults; the memory is the rise of the peak above that of the loaded data."""
    X, Y = restore(folder / "X.npz"), restore(folder / "Y.npz")
    selector = with_seed(METHODS[slug](), 0)
    limits.forget_peak_memory()
    before = peak_mebibytes()
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.fit(X, Y)
    return {
        "seconds": time.perf_counter() - start,
        "mebibytes": peak_mebibytes() - before,
        "iterations": getattr(selector, "n_iter_", None),
        "converged": not any(issubclass(warning.category, ConvergenceWarning) for warning in caught),
        "threads": os.environ.get("OMP_NUM_THREADS", f"all of {os.cpu_count()}"),
    }


def planted_recalls(methods: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Share of the informative features among as many selected ones, over several problems."""
    for slug in methods:
        for noise in PLANTED_NOISE:
            recalls = [planted_recall(slug, noise, seed) for seed in SEEDS]
            text = f"{np.mean(recalls):.2f} ± {np.std(recalls):.2f}"
            yield {"method": slug, "problem": f"noise {noise:g}", "recalls": recalls, "text": text}


def planted_recall(slug: str, noise: float, seed: int) -> float:
    X, Y, _, informative = make_pml(**PLANTED, noise=noise, return_truth=True, random_state=seed)
    selector = with_seed(METHODS[slug](n_features_to_select=len(informative)), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(selector.fit(X, Y).get_support()[informative].mean())


def with_seed(selector: BaseSelector, seed: int) -> BaseSelector:
    return selector.set_params(random_state=seed) if "random_state" in selector.get_params() else selector


def peak_mebibytes() -> float:
    """Largest resident size of this process, since it was last forgotten if it can be."""
    known = limits.peak_mebibytes()
    if known is not None:
        return known
    # Elsewhere than on Linux. There, this figure would start with the peak of the parent process.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def save(matrix: Any, path: Path) -> None:
    # The child must not parse the original file: reading one can take more memory than a fit.
    if sp.issparse(matrix):
        sp.save_npz(path, matrix, compressed=False)
    else:
        np.savez(path, dense=matrix)


def restore(path: Path) -> Any:
    with np.load(path) as parts:
        return parts["dense"] if "dense" in parts else sp.load_npz(path)


def as_table(records: list[dict[str, Any]], columns: list[str]) -> str:
    """Markdown: one row per method, one column per problem."""
    cells = {(record["method"], record["problem"]): record["text"] for record in records}
    methods = dict.fromkeys(record["method"] for record in records)
    lines = [["method", *columns], ["---"] * (1 + len(columns))]
    lines += [[slug, *(cells[slug, column] for column in columns)] for slug in methods]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
