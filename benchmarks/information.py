"""Mutual information of all label pairs against a plain pair loop; run ``python -m benchmarks.information``.

The loop is `sklearn.metrics.mutual_info_score`, one pair at a time, on corel5k at 20 % noise. It is timed on a
sample of the pairs (``--pairs``, 0 for all) and scaled to all of them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.metrics import mutual_info_score

from benchmarks.problems import noisy
from benchmarks.table import print_table
from labelsieve._numerics.information import binary_mutual_information
from labelsieve.methods._fsmir.labels import label_confidence, symbol_mutual_information


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3000)
    sampled = parser.parse_args().pairs
    _, Y = noisy("corel5k")
    T = label_confidence(Y.astype(float))
    print(f"corel5k, {Y.shape[0]} rows, {Y.shape[1]} labels, {Y.nnz / Y.shape[0]:.0f} candidates a row.\n")
    print_table(
        ["pairs of", "ours ms", "loop s", "ratio", "largest difference, bits", "pairs timed"],
        [
            compare("0/1 candidates (Z)", Y.astype(float), binary_mutual_information, sampled),
            compare("confidences (Z')", T, symbol_mutual_information, sampled),
        ],
    )


def compare(title, labels, fast, sampled):
    """Time the fast routine and the loop; a row with their ratio and how far they differ."""
    seconds = min(timed(fast, labels)[0] for _ in range(3))
    information = fast(labels)
    codes = [np.unique(column.round(12), return_inverse=True)[1] for column in labels.toarray().T]
    pairs = [(i, j) for i in range(len(codes)) for j in range(i + 1)]
    if 0 < sampled < len(pairs):
        chosen = [pairs[p] for p in np.random.default_rng(0).choice(len(pairs), sampled, replace=False)]
    else:
        chosen = pairs
    loop, values = timed(lambda: [mutual_info_score(codes[i], codes[j]) / np.log(2) for i, j in chosen])
    error = max(abs(information[i, j] - value) for (i, j), value in zip(chosen, values, strict=True))
    loop *= len(pairs) / len(chosen)
    return (
        title,
        f"{1e3 * seconds:.1f}",
        f"{loop:.1f}",
        f"{loop / seconds:.0f}",
        f"{error:.0e}",
        f"{len(chosen)} of {len(pairs)}",
    )


def timed(action, *arguments):
    """Seconds an action takes, and what it returns."""
    start = time.perf_counter()
    result = action(*arguments)
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
