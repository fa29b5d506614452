"""Linear SVMs of all labels together against a loop over the labels; run ``python -m benchmarks.machines``.

Features are the best fifth by SumF, scaled to [0, 1]; labels are those with both classes. The loop is scikit-learn's
LinearSVC as `LabelwiseSVM` used it, with tolerance 1e-6. Times are of the processor, the better of two in turns; the
differences are the largest of any decision value to LinearSVC with tolerance 1e-10.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from sklearn import config_context
from sklearn.svm import LinearSVC

from benchmarks.problems import DATASETS, noisy
from benchmarks.table import print_table
from labelsieve import SumF
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.squared_hinge import solve_squared_hinge


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, metavar="NAME")
    rows, ratios = [], []
    for name in parser.parse_args().datasets:
        X, Y = problem(name)
        times = {"loop": [], "together": []}
        for _ in range(2):
            loop = timed(times["loop"], solve_one_by_one, X, Y, 1e-6)
            together = timed(times["together"], solve_together, X, Y)
        exact = solve_one_by_one(X, Y, 1e-10)
        slow, fast = (min(seconds) for seconds in times.values())
        ratios.append(slow / fast)
        rows.append(
            (
                f"{name}, {'sparse' if is_sparse(X) else 'dense'} {X.shape[0]} x {X.shape[1]}, {Y.shape[1]} labels",
                f"{slow:.3f}",
                f"{fast:.3f}",
                f"{slow / fast:.1f}",
                *(f"{np.abs(values - exact).max():.0e}" for values in (loop, together)),
            )
        )
        print(rows[-1], file=sys.stderr, flush=True)
    print_table(["problem", "loop s", "together s", "ratio", "off, loop", "off, together"], rows)
    print(f"Geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.1f}.")


def problem(name):
    """The scaled features and the boolean labels that a classifier has to learn."""
    X, Y = noisy(name)
    chosen = np.argsort(-SumF().fit(X, Y).scores_, kind="stable")[: max(1, round(0.2 * X.shape[1]))]
    X = (X.tocsr() if is_sparse(X) else X)[:, chosen].astype(np.float64)
    Y = dense(Y) > 0
    return Scaling.learn(X, "minmax").apply(X), Y[:, Y.any(axis=0) & ~Y.all(axis=0)]


def solve_together(X, Y):
    fit = solve_squared_hinge(X, Y)
    return X @ fit.coef.T + fit.intercept


def solve_one_by_one(X, Y, tol):
    with config_context(assume_finite=True, skip_parameter_validation=True):
        machines = [LinearSVC(dual=False, tol=tol, max_iter=100_000).fit(X, labels) for labels in Y.T]
    return np.column_stack([machine.decision_function(X) for machine in machines])


def timed(times, function, *arguments):
    start = time.process_time()
    values = function(*arguments)
    times.append(time.process_time() - start)
    return values


if __name__ == "__main__":
    main()
