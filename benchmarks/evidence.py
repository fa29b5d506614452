"""What the evidence selector costs with everything automatic but the size; run ``python -m benchmarks.evidence``.

A dense table with groups of features that repeat one another, and wide sparse data in which every label has words of
its own. The time is that of the processor, the memory the rise of the process's peak above its size with the data
loaded; beside it stand a plain filter and the bare product X'Y, measured in the same run.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp

from benchmarks.costs import peak_mebibytes
from benchmarks.table import print_table
from labelsieve import EvidenceSelector, SumF
from labelsieve.bench import limits


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shrink", type=int, default=1, help="divide rows and columns by this")
    shrink = parser.parse_args().shrink
    rows = []
    for kind, (X, Y), n_selected in (
        ("dense", repeated_features(2000 // shrink, 3000 // shrink, 10), 20),
        ("sparse", topics(100_000 // shrink, 50_000 // shrink, 50), 100),
    ):
        limits.forget_peak_memory()
        before = peak_mebibytes()
        selector = EvidenceSelector(n_selected)
        seconds = processor_seconds(selector.fit, X, Y)
        mebibytes = peak_mebibytes() - before
        others = [processor_seconds(SumF().fit, X, Y), processor_seconds(lambda X, Y: X.T @ Y, X, Y)]
        rows.append(
            (
                f"{kind} {X.shape[0]} x {X.shape[1]}, {Y.shape[1]} labels, k = {n_selected}",
                f"{seconds:.2f}",
                f"{mebibytes:.0f}",
                f"{selector.redundancy_:g}",
                *(f"{seconds / max(other, 1e-6):.0f}" for other in others),
            )
        )
    columns = ["problem", "s", "MiB above the data", "redundancy", "times SumF", "times X'Y"]
    print_table(columns, rows)


def processor_seconds(function, *arguments):
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def repeated_features(n_samples, n_features, n_labels):
    """A fifth of the features repeats forty hidden ones, with noise; every label follows three of these."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n_samples, 40))
    X = rng.normal(size=(n_samples, n_features))
    n_copies = n_features // 5
    X[:, :n_copies] += 2 * hidden[:, rng.integers(40, size=n_copies)]
    weights = (rng.random((40, n_labels)) < 3 / 40) * rng.normal(size=(40, n_labels))
    Y = hidden @ weights + rng.normal(size=(n_samples, n_labels)) > 1
    return X, Y.astype(int)


def topics(n_samples, n_features, n_labels, n_entries=50, n_own=5):
    """Rows of a fixed number of words: any, but for a few from among the forty of each of three labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(n_labels, size=(n_samples, 3))
    words = rng.integers(n_features, size=(n_samples, n_entries))
    own = labels[:, :, None] * 40 + rng.integers(40, size=(n_samples, 3, n_own))
    words[:, : 3 * n_own] = own.reshape(n_samples, -1) % n_features
    X = _rows_of(words, rng.random(words.size), n_features)
    Y = _rows_of(labels, np.ones(labels.size), n_labels)
    Y.data[:] = 1
    return X, Y


def _rows_of(columns, values, n_columns):
    starts = np.arange(0, columns.size + 1, columns.shape[1])
    matrix = sp.csr_matrix((values, columns.ravel(), starts), shape=(len(columns), n_columns))
    matrix.sum_duplicates()
    return matrix


if __name__ == "__main__":
    main()
