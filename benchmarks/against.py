"""Fits of this code against those of another checkout, in turns.

    python -m benchmarks.against ../before                        PML-FSMIR on the paper's eight data sets
    python -m benchmarks.against ../before --methods rfs sum-f    other methods
    python -m benchmarks.against ../before --repeats 9            more pairs

Two processes load the data and fit whenever they are told to, first the one, then the other, so that both see the same
machine. The ratio is that of the medians of the processor times, this code over the other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.problems import DATASETS, noisy, with_seed
from benchmarks.table import print_table

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--methods", nargs="+", default=["pml-fsmir"], metavar="SLUG")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if str(options.other) == "-":
        serve()
        return
    ratios: dict[str, list[float]] = {slug: [] for slug in options.methods}
    for name in options.datasets:
        ours, theirs = Fitter(ROOT, name), Fitter(options.other, name)
        for slug in options.methods:
            pairs = [(ours.fit(slug), theirs.fit(slug)) for _ in range(options.repeats)]
            ratios[slug].append(median(a for a, _ in pairs) / median(b for _, b in pairs))
            print(f"{slug}, {name}: {ratios[slug][-1]:.3f}", file=sys.stderr, flush=True)
        ours.end(), theirs.end()
    rows = [
        (slug, *(f"{ratio:.3f}" for ratio in row), f"{np.exp(np.mean(np.log(row))):.3f}")
        for slug, row in ratios.items()
    ]
    print_table(["method", *options.datasets, "geometric mean"], rows)


class Fitter:
    """A process that fits with the code of one checkout."""

    def __init__(self, checkout: Path, name: str) -> None:
        path = os.pathsep.join((str(checkout.resolve() / "src"), str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.against", "-"],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ask(name)

    def fit(self, slug: str) -> float:
        """Processor seconds of one fit."""
        return float(self._ask(slug))

    def end(self) -> None:
        """Let the process go."""
        self._process.communicate()

    def _ask(self, word: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(word, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process that was asked for {word!r} ended")
        return answer


def serve() -> None:
    """Read a data set by its name, then fit each method that is asked for."""
    from labelsieve.methods import METHODS

    warnings.simplefilter("ignore")
    X, Y = noisy(input())
    print("loaded", flush=True)
    for line in sys.stdin:
        selector = with_seed(METHODS[line.strip()](), 0)
        start = time.process_time()
        selector.fit(X, Y)
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
