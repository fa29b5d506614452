"""What fits cost at scale, beside bare products of the same run; run ``python -m benchmarks.scale``.

    python -m benchmarks.scale --solver     PML-FSMIR on 200000 x 20000 sparse features: start and iteration
    python -m benchmarks.scale --methods    four methods on 1000000 x 50000, float32

Rows have 50 entries and three candidates of 100 labels. Times are of the processor. The unit is a pair of products that
none can avoid, X V' and U'X with as many components as PML-FSMIR has there; it is timed before and after each fit or
iteration, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from statistics import median

import numpy as np

from benchmarks.costs import peak_mebibytes
from benchmarks.evidence import processor_seconds
from benchmarks.memory import wide_sparse
from benchmarks.table import print_table
from labelsieve import PMLFSMIR, EvidenceSelector, SumF, SumMI
from labelsieve._base import nonnegative_features
from labelsieve.bench import limits
from labelsieve.methods._fsmir.block_descent import BlockDescent
from labelsieve.methods._fsmir.factorization import FactorizationProblem
from labelsieve.methods._fsmir.labels import label_confidence, symbol_mutual_information

N_LABELS, N_ENTRIES = 100, 50


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--solver", action="store_true")
    parser.add_argument("--methods", action="store_true")
    parser.add_argument("--shrink", type=int, default=1, help="divide rows and columns by this")
    options = parser.parse_args()
    if options.solver or not options.methods:
        solver(200_000 // options.shrink, 20_000 // options.shrink)
    if options.methods or not options.solver:
        methods(1_000_000 // options.shrink, 50_000 // options.shrink, min(64, 50_000 // options.shrink))


def solver(n_samples, n_features):
    """Print what the start and an iteration of PML-FSMIR cost, in pairs of products."""
    rows = []
    for dtype in map(np.dtype, (np.float64, np.float32)):
        X, Y = wide_sparse(n_samples, n_features, N_ENTRIES, N_LABELS, dtype)
        X, T = nonnegative_features(X, "minmax"), label_confidence(Y)
        information = symbol_mutual_information(T)
        problem = FactorizationProblem.of_arrays(X, T.astype(dtype), information, 1.0, 1.0, 1.0)
        n_components = int(np.sqrt(n_features))
        name = f"{n_samples} x {n_features}, {n_components} components, {dtype}"
        unit, start, iteration = solver_seconds(problem, n_components)
        rows.append((name, f"{unit:.2f}", f"{start / unit:.1f}", f"{iteration / unit:.2f}"))
        print(*rows[-1], file=sys.stderr, flush=True)
    print_table(["problem", "X V' and U'X, s", "start, pairs", "iteration, pairs"], rows)


def solver_seconds(problem, n_components, n_iterations=5):
    """Processor seconds of the pair, the start and an iteration."""
    pair, descent = Pair(problem.rows.gather("X"), n_components), BlockDescent(problem)
    pairs, iterations = [pair.seconds()], []
    began = time.process_time()
    state = descent.start(n_components, "nndsvda", np.random.default_rng(0))
    start = time.process_time() - began
    for _ in range(n_iterations):
        pairs.append(pair.seconds())
        began = time.process_time()
        state, _ = descent.step(state)
        iterations.append(time.process_time() - began)
    pairs.append(pair.seconds())
    return median(pairs), start, median(iterations)


def methods(n_samples, n_features, n_components):
    """Print seconds and memory of some methods on many sparse rows."""
    X, Y = wide_sparse(n_samples, n_features, N_ENTRIES, N_LABELS, np.dtype(np.float32))
    size_of_X = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    size_of_U = n_samples * n_components * 4 / 2**20
    pair = Pair(X, n_components)
    rows = []
    for selector in (
        SumF(),
        SumMI(),
        EvidenceSelector(min(100, n_features), redundancy=1.0),
        PMLFSMIR(n_components=n_components, max_iter=20),
    ):
        limits.forget_peak_memory()
        before = peak_mebibytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = processor_seconds(selector.fit, X, Y)
        extra = peak_mebibytes() - before
        unit = pair.seconds()
        rows.append(
            (
                type(selector).__name__,
                f"{seconds:.1f}",
                f"{seconds / unit:.1f}",
                f"{extra:.0f}",
                f"{extra / (6 * size_of_U + size_of_X):.2f}",
            )
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    print(
        f"{n_samples} x {n_features}, float32; X has {size_of_X:.0f} MiB, U with {n_components} components "
        f"{size_of_U:.0f} MiB.\n"
    )
    print_table(["method", "s", "pairs", "MiB above X and Y", "share of 6 U + X"], rows)


class Pair:
    """The two products of some sparse features that every iteration needs, with random factors."""

    def __init__(self, X, n_components):
        rng = np.random.default_rng(0)
        self.X = X
        self.n_components = n_components
        self.V = rng.random((X.shape[1], n_components), dtype=np.float32).astype(X.dtype)

    def seconds(self):
        """Processor seconds of both; what they need is not kept."""
        U = np.ones((self.X.shape[0], self.n_components), dtype=self.X.dtype)
        return processor_seconds(lambda: (self.X @ self.V, self.X.T @ U))


if __name__ == "__main__":
    main()
