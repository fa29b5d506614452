"""Compare the speed of this code with another checkout.

    python -m benchmarks.against ../before                        reading, select, audit, report and fits
    python -m benchmarks.against ../before --methods rfs sum-f    other methods
    python -m benchmarks.against ../before --repeats 9            more pairs

Two processes, one per checkout, alternate on the same task, so that both see the same load. The ratio is the median
processor time of this code over that of the other. The first pair of runs is not counted, because it imports modules.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import geometric_mean, median

from benchmarks.problems import DATASETS, noisy, with_seed
from benchmarks.table import print_table

ROOT = Path(__file__).parent.parent
#: Task -> command line. Commands are more stable across versions than imports.
COMMANDS = {
    "read CSV": ["datasets", "info", "{folder}/table.csv", "--labels", "label_*"],
    "read sparse ARFF": ["datasets", "info", "{folder}/sparse.arff"],
    "select": ["select", "{folder}/table.csv", "--labels", "label_*", "-k", "10"],
    "audit": ["audit", "{folder}/table.csv", "--labels", "label_*"],
    "report": ["report", "{checkout}/docs/results/paper-lite.csv.gz", "--out", "{folder}/report-{number}"],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--methods", nargs="*", default=["pml-fsmir", "evidence", "sum-f"], metavar="SLUG")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), metavar="NAME")
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=list(COMMANDS), metavar="TASK")
    parser.add_argument("--rows", type=int, default=3500, help="rows of the table that the commands read")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if str(options.other) == "-":
        serve()
        return
    tasks = {task: {"command": COMMANDS[task]} for task in options.commands}
    for name, slug in itertools.product(options.datasets, options.methods):
        tasks[f"{slug}, {name}"] = {"slug": slug, "dataset": name}
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as folder:
        if options.commands:
            write_files(Path(folder), options.rows)
        ours, theirs = (Worker(checkout, folder) for checkout in (ROOT, options.other))
        for title, task in tasks.items():
            pairs = [(ours.seconds(task), theirs.seconds(task)) for _ in range(options.repeats + 1)][1:]
            this, that = (median(times) for times in zip(*pairs, strict=True))
            ratios.append(this / that)
            rows.append((title, f"{this:.3f}", f"{that:.3f}", f"{ratios[-1]:.3f}"))
            print(*rows[-1], file=sys.stderr, flush=True)
        ours.end(), theirs.end()
    print_table(["task", "this, s", "other, s", "ratio"], rows)
    print(f"Geometric mean of the ratios: {geometric_mean(ratios):.3f}.")


def write_files(folder: Path, n_rows: int) -> None:
    """Write a table with a category and a sparse dataset, in formats that all versions read."""
    import pandas as pd

    from labelsieve.datasets import make_pml
    from labelsieve.io import Dataset, write

    X, Y = make_pml(n_rows, 49, n_labels=6, random_state=0)
    table = pd.DataFrame(X).add_prefix("x").assign(city=[f"city {row % 7}" for row in range(n_rows)])
    table.join(pd.DataFrame(Y).add_prefix("label_")).to_csv(folder / "table.csv", index=False)
    X, Y = make_pml(2 * n_rows, 500, n_labels=20, density=0.05, sparse=True, random_state=0)
    write(Dataset(X, Y, name="sparse"), folder / "sparse.arff")


class Worker:
    """A process that runs the code of one checkout."""

    def __init__(self, checkout: Path, folder: str) -> None:
        self._places = {"checkout": str(checkout.resolve()), "folder": folder}
        self._number = itertools.count()
        path = os.pathsep.join((f"{checkout.resolve()}/src", str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.against", "-"],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, task: dict[str, object]) -> float:
        """Return the processor seconds of a task."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        number = f"{self._process.pid}-{next(self._number)}"
        print(json.dumps({**task, **self._places, "number": number}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self._places['checkout']} failed at {task}")
        return float(answer)

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def serve() -> None:
    """Read tasks from standard input, one per line, and print their processor seconds."""
    from labelsieve.cli import main as run
    from labelsieve.methods import METHODS

    warnings.simplefilter("ignore")
    loaded = None, None
    for line in sys.stdin:
        task = json.loads(line)
        if "slug" in task:
            if loaded[0] != task["dataset"]:
                loaded = task["dataset"], noisy(task["dataset"])
            selector = with_seed(METHODS[task["slug"]](), 0)
            start = time.process_time()
            selector.fit(*loaded[1])
        else:
            words = [word.format(**task) for word in task["command"]]
            start = time.process_time()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
                code = run(words)
            if code:
                sys.exit(said.getvalue())
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
