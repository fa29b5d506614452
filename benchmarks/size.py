"""Measure sizes chosen without true labels: ``python -m benchmarks.size``.

Each dataset is split in three. On the training rows, with 20 % flip noise, cross-validation on the candidates chooses a
size. A linear SVM on that many features is scored on the true labels of the test rows. The regret is how much better
the best size would have been. Sizes and regrets are means over the splits.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.problems import NOISE
from benchmarks.table import print_table
from labelsieve import METRICS, EvidenceSelector, SumF, choose_size
from labelsieve.classify import LabelwiseSVM
from labelsieve.datasets import add_candidates, load

DATASETS = ("birds", "chd_49", "water_quality", "yeast", "cal500", "slashdot")
SCORES = {"AP": METRICS["average_precision"], "micro-F1": METRICS["micro_f1"]}
#: Number of sizes at the start of a line: the chosen one, and the best for each metric.
N_SIZES = 1 + len(SCORES)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    rows = []
    for name in options.datasets:
        data = load(name)
        found = {method: [] for method in METHODS}
        for number, (train, test) in enumerate(KFold(3, shuffle=True, random_state=0).split(data.X)):
            if number < options.splits:
                Y_train = add_candidates(data.Y[train], "flip", rate=NOISE, random_state=number)
                for method, rank in METHODS.items():
                    order, sizes, chosen = rank(data.X[train], Y_train)
                    value = partial(evaluate, data.X[train], Y_train, data.X[test], data.Y[test], order)
                    found[method].append(compare(value, sizes, chosen, data.X.shape[1]))
        for method, values in found.items():
            rows.append((name, method, np.mean(values, axis=0)))
            print(*rows[-1], file=sys.stderr, flush=True)
    for method in METHODS:
        means = np.mean([values for _, other, values in rows if other == method], axis=0)
        means[:N_SIZES] = np.nan
        rows.append(("mean", method, means))
    columns = [f"{score}, {size}" for score in SCORES for size in ("chosen", "20 %", "all")]
    print_table(
        ["dataset, ranking", "chosen size", *(f"best, {score}" for score in SCORES), *columns],
        (
            (
                f"{name}, {method}",
                *("" if np.isnan(size) else f"{size:.0f}" for size in values[:N_SIZES]),
                *(f"{value:.3f}" for value in values[N_SIZES:]),
            )
            for name, method, values in rows
        ),
    )


def rank_by_evidence(X, Y):
    """Return the features, best first, the sizes tried, and the chosen size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = EvidenceSelector("auto").fit(X, Y)
        # The same search, continued to all features.
        whole = EvidenceSelector(0.99, redundancy=chosen.redundancy_, max_steps=X.shape[1]).fit(X, Y)
    return np.argsort(whole.ranking_), chosen.size_curve_.sizes, chosen.n_features_


def rank_by_sum_f(X, Y):
    """Return the features, best first, the sizes tried, and the chosen size."""
    curve = choose_size(SumF(), X, Y)
    return np.argsort(SumF().fit(X, Y).ranking_), curve.sizes, curve.best


METHODS = {"evidence": rank_by_evidence, "sum-f": rank_by_sum_f}


def compare(value, sizes, chosen, n_features):
    """Return the chosen and best sizes, then the regrets of the chosen size, a fifth and all, by metric."""
    compared = [chosen, max(1, round(0.2 * n_features)), n_features]
    tried = sorted({*sizes.tolist(), *compared})
    values = np.array([value(size) for size in tried])
    best = values.argmax(axis=0)  # the smallest of equal ones
    regrets = values.max(axis=0)[:, None] - values[np.searchsorted(tried, compared)].T
    return np.array([chosen, *np.take(tried, best), *regrets.ravel()])


def evaluate(X, Y, X_test, Y_test, order, size):
    """Return the scores of a linear SVM on the first features."""
    columns = order[:size]
    machine = LabelwiseSVM().fit(X[:, columns], Y)
    outputs = {
        "scores": machine.decision_function(X_test[:, columns]),
        "predictions": machine.predict(X_test[:, columns]),
    }
    return np.array([metric.function(Y_test, outputs[metric.needs]) for metric in SCORES.values()])


if __name__ == "__main__":
    main()
