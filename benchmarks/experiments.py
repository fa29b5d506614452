"""What running cells side by side gains, and what the runner costs over a bare loop.

    python -m benchmarks.experiments             both parts, profile quick
    python -m benchmarks.experiments --jobs      two jobs against one, from the command line, start-up included
    python -m benchmarks.experiments --overhead  the runner with one job against a loop that only fits and judges

The loop does the same work: folds, noise, one fit a cell, a classifier and eight metrics a size, nothing stored.
Runner and loop take turns, and the smaller time of each counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.table import print_table
from labelsieve.bench.components import build_classifier, build_method, feature_order
from labelsieve.bench.config import ALL_FEATURES, NO_FEATURES, load_experiment
from labelsieve.bench.data import derive_seed, describe, load_dataset, split_fold
from labelsieve.bench.plan import plan
from labelsieve.bench.runner import run
from labelsieve.classify import LabelFrequency
from labelsieve.metrics import METRICS, PROTOCOL_METRICS

RUN = "import sys; from labelsieve.cli import main; sys.exit(main(sys.argv[1:]))"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", action="store_true")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    rows = []
    if options.jobs or not options.overhead:
        rows.append(jobs(options.profile, options.repeats))
    if options.overhead or not options.jobs:
        rows.append(overhead(load_experiment(options.profile), options.repeats))
    print_table([f"profile {options.profile}", "s", "against", "s", "ratio"], rows)


def jobs(profile, repeats):
    """Time whole commands with one job and with two, in turns."""
    times = {1: [], 2: []}
    for _ in range(repeats):
        for n_jobs, seconds in times.items():
            with tempfile.TemporaryDirectory() as folder:
                command = [
                    "bench",
                    "run",
                    profile,
                    "--out",
                    f"{folder}/run",
                    "--jobs",
                    str(n_jobs),
                    "--quiet",
                ]
                start = time.perf_counter()
                subprocess.run([sys.executable, "-c", RUN, *command], check=True)
                seconds.append(time.perf_counter() - start)
    one, two = min(times[1]), min(times[2])
    return "one job, from the command line", f"{one:.1f}", "two jobs", f"{two:.1f}", f"{one / two:.2f}"


def overhead(experiment, repeats):
    """Time the runner and the bare loop, in turns."""
    bare, whole = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        bare_loop(experiment)
        middle = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            run(experiment, Path(folder) / "run", jobs=1)
        bare.append(middle - start)
        whole.append(time.perf_counter() - middle)
    runner, loop = min(whole), min(bare)
    return "runner with one job", f"{runner:.1f}", "bare loop", f"{loop:.1f}", f"{runner / loop:.3f}"


def bare_loop(experiment):
    """Rank, classify and judge every cell; what a script would do."""
    facts = {spec.name: describe(spec, load_dataset(spec, None), experiment) for spec in experiment.datasets}
    parts, where = None, None
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in plan(experiment, facts):
            place = (cell.dataset, cell.noise, cell.seed, cell.fold)
            if place != where:
                parts, where = split_fold(experiment, *place), place
            if cell.method.method == NO_FEATURES:
                judge(LabelFrequency(), parts, slice(0, 1))
                continue
            sizes, order = [parts.X_train.shape[1]], slice(None)
            if cell.method.method != ALL_FEATURES:
                selector = build_method(cell.method)
                if "random_state" in selector.get_params():
                    seed = derive_seed(cell.seed, "method", cell.dataset.name, cell.fold, cell.draw)
                    selector.set_params(random_state=seed)
                order = feature_order(selector.fit(parts.X_train, parts.Y_train), parts.X_train.shape[1])
                sizes = sorted({count for _, count in cell.judgements[0].sizes})
            for count in sizes:
                columns = order if isinstance(order, slice) else order[:count]
                judge(build_classifier(experiment.classifiers[0], experiment.conventions[0]), parts, columns)


def judge(classifier, parts, columns):
    classifier.fit(parts.X_train[:, columns], parts.Y_train)
    X = parts.X_test[:, columns]
    outputs = {"scores": classifier.decision_function(X), "predictions": classifier.predict(X)}
    metrics = [METRICS[name] for name in PROTOCOL_METRICS]
    return [metric.function(parts.Y_test, outputs[metric.needs]) for metric in metrics]


if __name__ == "__main__":
    main()
