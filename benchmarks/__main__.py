"""Run the benchmarks, one process after the other, and write what they say.

    python -m benchmarks          a quarter of an hour on two cores, to benchmarks/results.md
    python -m benchmarks --full   the rest, to benchmarks/results-full.md

A single one is run by its own name, ``python -m benchmarks.costs``. The tables of a file come from one run of one
version of the code; the file is written when all of them are there.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.problems import DATASETS

LARGER = ("corel5k", "languagelog")
SMALLER = tuple(name for name in DATASETS if name not in LARGER)
#: Question -> the command that answers it, quick ones first.
QUESTIONS = {
    "How long does the command line take to start?": ("startup",),
    "How much faster is the accelerated solver of PML-FSMIR?": ("solvers",),
    "Which methods choose the same features on other rows?": ("stability",),
    "How good is a size that is chosen without true labels?": ("size",),
    "What does an audit cost, page included?": ("audit",),
    "What does every method cost?": ("costs", "--datasets", *SMALLER),
}
LONG_QUESTIONS = {
    "How much does PML-FSMIR's choice depend on start and rows?": ("stability", "--starts"),
    "Are right candidates told from wrong ones?": ("label_noise",),
    "What does every method cost on the two largest data sets?": ("costs", "--datasets", *LARGER),
    "What do rows in blocks cost, and do they stay within memory?": ("blocks", "--memory"),
    "What does a second worker gain?": ("blocks", "--cluster"),
}
FOLDER = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="the long questions instead of the others")
    is_full = parser.parse_args().full
    # One thread: ratios between threads are not the question, and the workers share the cores.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    began = time.monotonic()
    sections = []
    for question, (module, *options) in (LONG_QUESTIONS if is_full else QUESTIONS).items():
        command = ["-m", f"benchmarks.{module}", *options]
        print(f"== {question}", file=sys.stderr, flush=True)
        start = time.monotonic()
        # What it prints is the answer; progress goes to the standard error.
        done = subprocess.run(
            [sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        print(done.stdout, flush=True)
        took = f"`python {' '.join(command)}`, {time.monotonic() - start:.0f} s"
        sections.append(f"## {question}\n\n{took}\n\n{done.stdout.strip()}\n")
    target = FOLDER / ("results-full.md" if is_full else "results.md")
    target.write_text("\n".join([_heading(is_full, time.monotonic() - began), *sections]), "utf-8")
    print(f"wrote {target}", file=sys.stderr)


def _heading(is_full: bool, seconds: float) -> str:
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("labelsieve", "numpy", "scipy", "scikit-learn")
    )
    return (
        f"# Measured\n\nWritten by `make {'bench-full' if is_full else 'bench'}` in {seconds / 60:.0f} minutes, "
        f"one run, one thread a process: Python {platform.python_version()}, {packages}; {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores.\n[README.md](README.md) says how to read it.\n"
    )


if __name__ == "__main__":
    main()
