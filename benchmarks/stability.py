"""How much PML-FSMIR's choice depends on the start and on the rows; run ``python -m benchmarks.stability``.

For every start: mean overlap of the top 20 features over pairs of random states, and over pairs of bootstrap
samples of the rows, with the objective it ends at. An overlap of 1 is the same 20 features.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import combinations

import numpy as np

from benchmarks.problems import noisy
from benchmarks.table import print_table
from labelsieve import PMLFSMIR

STARTS = ("nndsvda", "nndsvd", "random")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["birds", "yeast", "cal500"])
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    rows = []
    for name in options.datasets:
        X, Y = noisy(name)
        for init in STARTS:
            over_states = [fit(X, Y, init, seed) for seed in range(options.repeats)]
            over_rows = []
            for seed in range(options.repeats):
                drawn = np.random.default_rng(seed).integers(X.shape[0], size=X.shape[0])
                over_rows.append(fit(X[drawn], Y[drawn], init, 0))
            ends = [selector.objective_history_[-1] for selector in over_states]
            objective = f"{np.mean(ends):.1f}, {min(ends):.1f}..{max(ends):.1f}"
            rows.append(
                (f"{name}, {init}", objective, f"{overlap(over_states):.2f}", f"{overlap(over_rows):.2f}")
            )
            print(*rows[-1], file=sys.stderr, flush=True)
    print_table(["data set, start", "objective (mean, min..max)", "random states", "bootstraps"], rows)


def fit(X, Y, init, seed):
    """Fit with the defaults but for the start."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PMLFSMIR(n_features_to_select=20, init=init, random_state=seed).fit(X, Y)


def overlap(selectors):
    """Mean share of common features over pairs of selections."""
    supports = [selector.get_support() for selector in selectors]
    return np.mean([(a & b).sum() / 20 for a, b in combinations(supports, 2)])


if __name__ == "__main__":
    main()
