"""What do unknown labels cost? Run ``python -m benchmarks.unknown``.

On the training rows, with 20 % flip noise, a tenth of the features is selected from all candidate labels, and again
after 30 % of the entries, drawn at random, became unknown. For comparison, it is selected from 70 % of the rows. A
linear SVM on the selected features, trained on all candidates, is judged by the average precision of the true labels
of the test rows.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
from sklearn.model_selection import RepeatedKFold

from benchmarks.problems import DATASETS, NOISE
from benchmarks.table import print_table
from labelsieve import METRICS, EvidenceSelector
from labelsieve.classify import LabelwiseSVM
from labelsieve.datasets import add_candidates, load

SHARE_UNKNOWN = 0.3
SHARE_SELECTED = 0.1
AVERAGE_PRECISION = METRICS["average_precision"].function


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--repeats", type=int, default=3, help="random divisions into three parts")
    options = parser.parse_args()
    rows = []
    for name in options.datasets:
        data = load(name)
        splits = RepeatedKFold(n_splits=3, n_repeats=options.repeats, random_state=0).split(data.X)
        rows.append((name, np.array([compare(data, *split, seed) for seed, split in enumerate(splits)])))
        print(name, rows[-1][1].mean(axis=0), file=sys.stderr, flush=True)
    rows.append(("mean", np.mean([found for _, found in rows], axis=0)))
    print_table(
        [
            "dataset",
            "all known",
            "30 % unknown",
            "30 % of rows removed",
            "cost of unknown",
            "standard error",
        ],
        (
            (
                name,
                *(f"{value:.3f}" for value in found.mean(axis=0)),
                f"{(found[:, 0] - found[:, 1]).mean():z.3f}",
                f"{(found[:, 0] - found[:, 1]).std(ddof=1) / np.sqrt(len(found)):.3f}",
            )
            for name, found in rows
        ),
    )


def compare(data, train, test, seed):
    """Average precision with all labels, with some unknown, and with some rows removed."""
    X = data.X[train]
    Y = add_candidates(data.Y[train], "flip", rate=NOISE, random_state=seed)
    Y = Y.toarray() if hasattr(Y, "toarray") else np.asarray(Y)
    rng = np.random.default_rng(seed)
    is_unknown = rng.random(Y.shape) < SHARE_UNKNOWN
    kept = rng.permutation(len(Y))[: round((1 - SHARE_UNKNOWN) * len(Y))]
    problems = (X, Y), (X, np.where(is_unknown, np.nan, Y)), (X[kept], Y[kept])
    return [judge(X, Y, data.X[test], data.Y[test], select(*problem)) for problem in problems]


def select(X, Y):
    """Columns of the selected features."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EvidenceSelector(SHARE_SELECTED).fit(X, Y).get_support(indices=True)


def judge(X, Y, X_test, Y_test, columns):
    """Average precision of a linear SVM on these features."""
    machine = LabelwiseSVM().fit(X[:, columns], Y)
    return AVERAGE_PRECISION(Y_test, machine.decision_function(X_test[:, columns]))


if __name__ == "__main__":
    main()
