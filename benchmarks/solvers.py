"""Compare the solvers of PML-FSMIR: ``python -m benchmarks.solvers``.

Both start from the same factors. The multiplicative solver runs until 10 sweeps improve the objective by less than
1e-6, relatively, and for at most 3000 sweeps. Times are processor times.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

import numpy as np

from benchmarks.problems import DATASETS, noisy
from benchmarks.table import print_table
from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._numerics.information import cooccurrence, information_of_pairs
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import dense
from labelsieve.methods._fsmir.block_descent import WARM_UP, BlockDescent
from labelsieve.methods._fsmir.factorization import FactorizationProblem, multiplicative_sweep, start_factors
from labelsieve.methods._fsmir.labels import derive_confidence, symbol_information

GOAL = 1.001


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dense", action="store_true", help="make sparse features dense first")
    parser.add_argument("--datasets", nargs="+", default=DATASETS, metavar="NAME")
    options = parser.parse_args()
    race(options.datasets, options.dense)


def race(datasets, is_dense):
    """Print, for each dataset, when each solver reaches the goal."""
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
        ratio = f"{slow / fast:.1f}" if is_reached else f"not reached, ends at {fast_values[-1]:.1f}"
        rows.append(
            (name, f"{values[-1]:.1f}", len(values), f"{slow:.3f}", f"{fast:.3f}", len(fast_values), ratio)
        )
        print(name, ratio, file=sys.stderr, flush=True)
    print_table(["dataset", "mu ends at", "sweeps", "mu s", "cd s", "cd iterations", "ratio"], rows)
    print(f"Geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.1f}.")


def factorization(name, is_dense):
    """Return the factorization problem of PML-FSMIR with its defaults and dense labels."""
    X, Y = noisy(name)
    X = Scaling.learn(X, "minmax").apply(dense(X) if is_dense else X)
    Y = dense(Y).astype(float)
    rows = MemoryBlocks([{"Y": Y}])
    derive_confidence(rows, information_of_pairs(cooccurrence(Y), len(Y)))
    information = symbol_information(rows, Y.shape[1], None)
    T = rows.gather("confidence")
    return FactorizationProblem.of_arrays(X, T, information, alpha=1, beta=1, gamma=1)


def put_start(problem, start):
    """Put U back into the rows, after an earlier run took it, and return the other factors."""
    U, factors = start
    problem.rows.blocks[0]["U"] = U
    problem.rows.rename({}, drop=("before",))
    return factors


def multiply(problem, start, goal):
    """Run multiplicative updates to the goal and return the objective after each."""
    return follow(partial(multiplicative_sweep, problem), put_start(problem, start), 3000, goal)


def descend(problem, start, goal):
    """Run the accelerated solver to the goal, with its set-up, and return the objective after each step."""
    descent = BlockDescent(problem)
    return follow(descent.step, descent.warm_up(put_start(problem, start), WARM_UP), 1000, goal)


def best_time(run, *arguments, repeats=3):
    """Return the shortest processor time of a few runs, and the result of the last. Long ones run once."""
    times = []
    while len(times) < repeats and sum(times) < 5:
        began = time.process_time()
        result = run(*arguments)
        times.append(time.process_time() - began)
    return min(times), result


def follow(step, state, budget, goal):
    """Return the objective after each step, until the goal or until ten steps improve it very little."""
    values = []
    for _ in range(budget):
        state, value = step(state)
        values.append(value)
        if value <= goal or (len(values) > 10 and values[-11] - value <= 1e-6 * value):
            break
    return values


if __name__ == "__main__":
    main()
