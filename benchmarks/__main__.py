"""Run the benchmarks one after the other and write their tables to a file.

    python -m benchmarks          15 minutes on two cores, to benchmarks/results.md
    python -m benchmarks --full   the longer ones, to benchmarks/results-full.md

Run a single one by name: ``python -m benchmarks.costs``. All tables of a file come from one run of one version of
the code. The file is written at the end.
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
#: Question -> command that answers it, fast ones first.
QUESTIONS = {
    "How long does the command line take to start?": ("startup",),
    "How much faster is the accelerated solver of PML-FSMIR?": ("solvers",),
    "Which methods choose the same features on other rows?": ("stability",),
    "How good is a size chosen without true labels?": ("size",),
    "What do unknown labels cost?": ("unknown",),
    "What does an audit cost, including the page?": ("audit",),
    "What does a review cost?": ("review",),
    "What does every method cost?": ("costs", "--datasets", *SMALLER),
}
LONG_QUESTIONS = {
    "How much does PML-FSMIR's choice depend on start and rows?": ("stability", "--starts"),
    "How many verdicts find half of the wrong labels?": ("review", "--order"),
    "How well are right candidates separated from wrong ones?": ("label_noise",),
    "What does every method cost on the two largest datasets?": ("costs", "--datasets", *LARGER),
    "What do blocks of rows cost, and how much memory do they need?": ("blocks", "--memory"),
    "What does a second worker gain?": ("blocks", "--cluster"),
}
FOLDER = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="Run the long benchmarks instead of the others.")
    is_full = parser.parse_args().full
    # One thread per process, because the processes share the cores.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    began = time.monotonic()
    sections = []
    for question, (module, *options) in (LONG_QUESTIONS if is_full else QUESTIONS).items():
        command = ["-m", f"benchmarks.{module}", *options]
        print(f"== {question}", file=sys.stderr, flush=True)
        start = time.monotonic()
        # Tables go to standard output, progress to standard error.
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
    return (
        f"# Measured\n\nWritten by `make {'bench-full' if is_full else 'bench'}` in {seconds / 60:.0f} minutes, "
        f"one run, one thread per process: {environment()}.\n[README.md](README.md) explains the tables.\n"
    )


def environment() -> str:
    """Return the versions and the machine."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("labelsieve", "numpy", "scipy", "scikit-learn")
    )
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"Python {platform.python_version()}, {packages}; {machine}"


if __name__ == "__main__":
    main()
