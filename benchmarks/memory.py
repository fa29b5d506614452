"""Peak memory of a fit on wide sparse data; run ``python -m benchmarks.memory``.

200000 x 20000 with 50 entries a row and 100 labels. The memory is the rise of the process's peak above its size with
the data loaded; the time per iteration is that of a few iterations, as random data have nothing to converge to.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp

from benchmarks.costs import peak_mebibytes
from benchmarks.table import print_table
from labelsieve import PMLFSMIR
from labelsieve.bench import limits


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--solver", choices=["cd", "mu"], default="cd")
    options = parser.parse_args()
    X, Y = wide_sparse(200_000, 20_000, 50, 100, np.dtype(options.dtype))
    times = []
    for n_iterations in (1, 1 + options.iterations):
        limits.forget_peak_memory()
        before = peak_mebibytes()
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PMLFSMIR(solver=options.solver, max_iter=n_iterations).fit(X, Y)
        times.append(time.process_time() - start)
        extra = peak_mebibytes() - before
    print_table(
        ["solver", "peak above the data, MiB", "start and first iteration, s", "further iterations, s each"],
        [
            (
                f"{options.solver}, {options.dtype}",
                f"{extra:.0f}",
                f"{times[0]:.1f}",
                f"{(times[1] - times[0]) / options.iterations:.1f}",
            )
        ],
    )


def wide_sparse(n_samples, n_features, per_row, n_labels, dtype):
    """Random rows of a fixed number of entries, and three candidates a row."""
    rng = np.random.default_rng(0)
    indices = rng.integers(n_features, size=(n_samples, per_row))
    X = sp.csr_matrix(
        (rng.random(indices.size).astype(dtype), indices.ravel(), np.arange(0, indices.size + 1, per_row)),
        shape=(n_samples, n_features),
    )
    X.sum_duplicates()
    labels = rng.integers(n_labels, size=(n_samples, 3))
    Y = sp.csr_matrix((np.ones(labels.size), labels.ravel(), np.arange(0, labels.size + 1, 3)))
    Y.sum_duplicates()
    Y.data[:] = 1
    return X, Y


if __name__ == "__main__":
    main()
