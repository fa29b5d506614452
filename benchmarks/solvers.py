"""The solvers of PML-FSMIR against the products they cannot avoid, and against each other.

    python -m benchmarks.solvers            both parts
    python -m benchmarks.solvers --sweep    seconds of a multiplicative sweep against the bare X V' and U'X
    python -m benchmarks.solvers --race     time to 1.001 times the value multiplicative updates end at
    python -m benchmarks.solvers --race --dense     the same with sparse features made dense first

In the race both solvers start from the same factors; the multiplicative one runs until 10 sweeps gain less than
1e-6 of the objective, at most 3000 sweeps. Times are of the processor.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

import numpy as np

from benchmarks.problems import DATASETS, noisy
from benchmarks.table import print_table
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import dense
from labelsieve.methods._fsmir.block_descent import BlockDescent
from labelsieve.methods._fsmir.factorization import FactorizationProblem, multiplicative_sweep, start_factors
from labelsieve.methods._fsmir.labels import label_confidence, symbol_mutual_information

GOAL = 1.001


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--race", action="store_true")
    parser.add_argument("--dense", action="store_true")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS, metavar="NAME")
    options = parser.parse_args()
    if options.sweep or not options.race:
        sweep()
    if options.race or not options.sweep:
        race(options.datasets, options.dense)


def sweep(n_samples=20000, n_features=1000, n_labels=50, repeats=20):
    """Time a sweep and the bare products in turns, so that both see the same machine."""
    rng = np.random.default_rng(0)
    X = rng.random((n_samples, n_features))
    T = rng.random((n_samples, n_labels)) * (rng.random((n_samples, n_labels)) < 0.2)
    problem = FactorizationProblem.of_arrays(X, T, np.cov(T.T) ** 2, alpha=1, beta=1, gamma=1)
    k = int(np.sqrt(n_features))
    factors = start_factors(problem, k, "random", rng)
    bare, whole = [], []
    for _ in range(repeats):
        U = problem.rows.gather("U")
        start = time.perf_counter()
        _ = X @ factors.V.T, U.T @ X
        middle = time.perf_counter()
        factors, _ = multiplicative_sweep(problem, factors)
        bare.append(middle - start)
        whole.append(time.perf_counter() - middle)
    bare_ms, whole_ms = 1e3 * np.median(bare), 1e3 * np.median(whole)
    print_table(
        ["problem", "sweep ms", "bare X V' and U'X ms", "ratio"],
        [
            (
                f"dense {n_samples} x {n_features}, {n_labels} labels, {k} components",
                f"{whole_ms:.1f}",
                f"{bare_ms:.1f}",
                f"{whole_ms / bare_ms:.2f}",
            )
        ],
    )


def race(datasets, is_dense):
    """Print, per data set, when each solver reaches the goal."""
    ratios, rows = [], []
    for name in datasets:
        problem = factorization(name, is_dense)
        k = int(np.sqrt(problem.data.n_features))
        factors = start_factors(problem, k, "nndsvda", np.random.default_rng(0))
        start = problem.rows.gather("U"), factors
        values = multiply(problem, start, goal=-np.inf)
        goal = GOAL * values[-1]
        slow, _ = best_time(multiply, problem, start, goal)
        fast, fast_values = best_time(descend, problem, start, goal)
        is_reached = fast_values[-1] <= goal
        ratios.append(slow / fast)
        ratio = f"{slow / fast:.1f}" if is_reached else f"not reached, stands at {fast_values[-1]:.1f}"
        rows.append(
            (name, f"{values[-1]:.1f}", len(values), f"{slow:.3f}", f"{fast:.3f}", len(fast_values), ratio)
        )
        print(name, ratio, file=sys.stderr, flush=True)
    print_table(["data set", "mu ends at", "sweeps", "mu s", "cd s", "cd iterations", "ratio"], rows)
    print(f"Geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.1f}.")


def factorization(name, is_dense):
    """The factorisation that PML-FSMIR solves with its defaults, labels dense."""
    X, Y = noisy(name)
    X = Scaling.learn(X, "minmax").apply(dense(X) if is_dense else X)
    T = label_confidence(dense(Y).astype(float))
    return FactorizationProblem.of_arrays(X, T, symbol_mutual_information(T), alpha=1, beta=1, gamma=1)


def put_start(problem, start):
    """Give U to the rows, from which a run before took it, and return the other factors."""
    U, factors = start
    problem.rows.blocks[0]["U"] = U
    problem.rows.rename({}, drop=("before",))
    return factors


def multiply(problem, start, goal):
    """Run the multiplicative updates to the goal; returns the values on the way."""
    return follow(partial(multiplicative_sweep, problem), put_start(problem, start), 3000, goal)


def descend(problem, start, goal):
    """Run the accelerated solver to the goal, its set-up included; returns the values on the way."""
    descent = BlockDescent(problem)
    return follow(descent.step, descent.warm_up(put_start(problem, start)), 1000, goal)


def best_time(run, *arguments, repeats=3):
    """Shortest processor time of some runs, and what the last one returned; long ones run once."""
    times = []
    while len(times) < repeats and sum(times) < 5:
        began = time.process_time()
        result = run(*arguments)
        times.append(time.process_time() - began)
    return min(times), result


def follow(step, state, budget, goal):
    """Objective after every step, until the goal or until ten steps gain next to nothing."""
    values = []
    for _ in range(budget):
        state, value = step(state)
        values.append(value)
        if value <= goal or (len(values) > 10 and values[-11] - value <= 1e-6 * value):
            break
    return values


if __name__ == "__main__":
    main()
