"""Which methods find planted features; run ``python -m benchmarks.planted``.

The share of ten planted features among the ten selected of a hundred (300 rows, 10 labels), over ten seeds.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import with_seed
from benchmarks.table import print_table
from labelsieve.datasets import make_pml
from labelsieve.methods import METHODS

PROBLEM = {"n_samples": 300, "n_features": 100, "n_informative": 10, "n_labels": 10}
NOISE = (0.0, 0.2, 0.4)
SEEDS = range(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="SLUG")
    rows = []
    for slug in parser.parse_args().methods:
        print(slug, file=sys.stderr, flush=True)
        recalls = [[recall(slug, noise, seed) for seed in SEEDS] for noise in NOISE]
        rows.append((slug, *(f"{np.mean(row):.2f} ± {np.std(row):.2f}" for row in recalls)))
    rows.sort(key=lambda row: row[1:], reverse=True)
    print_table(["method", *(f"noise {noise:g}" for noise in NOISE)], rows)


def recall(slug: str, noise: float, seed: int) -> float:
    X, Y, _, informative = make_pml(**PROBLEM, noise=noise, return_truth=True, random_state=seed)
    selector = with_seed(METHODS[slug](n_features_to_select=len(informative)), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(selector.fit(X, Y).get_support()[informative].mean())


if __name__ == "__main__":
    main()
