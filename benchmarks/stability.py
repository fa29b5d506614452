"""Measure how much a selection depends on the rows and, for PML-FSMIR, on the start.

    python -m benchmarks.stability           methods side by side
    python -m benchmarks.stability --starts  starts of PML-FSMIR

For each method: Kuncheva's index of the 20 features selected on disjoint subsamples of half the rows. 1 means the same
features, 0 random ones. The evidence selector chooses its redundancy again on every subsample. For each start: mean
overlap of the top 20 features over pairs of random states, and over pairs of bootstrap samples of the rows, and the
final objective. An overlap of 1 means the same 20 features.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import combinations

import numpy as np
from sklearn.base import clone

from benchmarks.problems import noisy
from benchmarks.table import print_table
from labelsieve import PMLFSMIR, EvidenceSelector, SumF
from labelsieve.inspection.stability import kuncheva_stability

METHODS = {
    "evidence, redundancy auto": EvidenceSelector(20),
    "evidence, redundancy inf": EvidenceSelector(20, redundancy=np.inf),
    "evidence, redundancy 1": EvidenceSelector(20, redundancy=1.0),
    "evidence, redundancy 0": EvidenceSelector(20, redundancy=0.0),
    "sum-f": SumF(20),
    "pml-fsmir": PMLFSMIR(20, random_state=0),
}
STARTS = ("nndsvda", "nndsvd", "random")
# Water quality has only 16 features, so all are selected.
DATASETS = ["birds", "cal500", "chd_49", "slashdot", "yeast"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--starts", action="store_true")
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    if options.starts:
        compare_starts(options.datasets or ["birds", "yeast", "cal500"], options.repeats)
    else:
        compare_methods(options.datasets or DATASETS, options.repeats)


def compare_methods(datasets, repeats):
    """Print Kuncheva's index over subsamples, by method and dataset."""
    columns = {}
    for name in datasets:
        X, Y = noisy(name)
        subsamples = []
        for seed in range(repeats // 2):
            rows = np.random.default_rng(seed).permutation(X.shape[0])
            subsamples += [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns[name] = [
                kuncheva_stability(
                    [clone(selector).fit(X[part], Y[part]).get_support() for part in subsamples]
                )
                for selector in METHODS.values()
            ]
        print(name, columns[name], file=sys.stderr, flush=True)
    rows = [
        (method, *(f"{value:.2f}" for value in (*values, np.mean(values))))
        for method, *values in zip(METHODS, *columns.values(), strict=True)
    ]
    print_table(["method", *columns, "mean"], rows)


def compare_starts(datasets, repeats):
    """Print overlaps over random states and bootstraps, by start."""
    rows = []
    for name in datasets:
        X, Y = noisy(name)
        for init in STARTS:
            over_states = [fit(X, Y, init, seed) for seed in range(repeats)]
            over_rows = []
            for seed in range(repeats):
                drawn = np.random.default_rng(seed).integers(X.shape[0], size=X.shape[0])
                over_rows.append(fit(X[drawn], Y[drawn], init, 0))
            ends = [selector.objective_history_[-1] for selector in over_states]
            objective = f"{np.mean(ends):.1f}, {min(ends):.1f}..{max(ends):.1f}"
            rows.append(
                (f"{name}, {init}", objective, f"{overlap(over_states):.2f}", f"{overlap(over_rows):.2f}")
            )
            print(*rows[-1], file=sys.stderr, flush=True)
    print_table(["dataset, start", "objective (mean, min..max)", "random states", "bootstraps"], rows)


def fit(X, Y, init, seed):
    """Fit with the defaults, except for the start."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PMLFSMIR(n_features_to_select=20, init=init, random_state=seed).fit(X, Y)


def overlap(selectors):
    """Return the mean share of common features over pairs of selections."""
    supports = [selector.get_support() for selector in selectors]
    return np.mean([(a & b).sum() / 20 for a, b in combinations(supports, 2)])


if __name__ == "__main__":
    main()
