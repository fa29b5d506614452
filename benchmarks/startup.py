"""Measure the start-up time of the command line: ``python -m benchmarks.startup``.

Times are processor times of whole processes, medians of interleaved repeats. ``--version`` is compared with importing
typer and rich, ``--help`` with the help of a program with two empty commands.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

from benchmarks.table import print_table

BARE_PROGRAM = """
import typer
app = typer.Typer()
@app.command()
def one(name: str, count: int = 1) -> None:
    "Do one thing."
@app.command()
def two(name: str, formal: bool = False) -> None:
    "Do another thing."
app()
"""
LABELSIEVE = "import sys; from labelsieve.cli import main; sys.exit(main())"
#: Name -> program, arguments.
PROGRAMS = {
    "import typer, rich": ("import typer, rich", ()),
    "labelsieve --version": (LABELSIEVE, ("--version",)),
    "two-command typer --help": (BARE_PROGRAM, ("--help",)),
    "labelsieve --help": (LABELSIEVE, ("--help",)),
}
COMPARED = {"labelsieve --version": "import typer, rich", "labelsieve --help": "two-command typer --help"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=21)
    repeats = parser.parse_args().repeats
    for program, arguments in PROGRAMS.values():  # the first start writes the compiled files
        processor_seconds(program, arguments)
    rounds = [
        {title: processor_seconds(*command) for title, command in PROGRAMS.items()} for _ in range(repeats)
    ]
    medians = {title: statistics.median(each[title] for each in rounds) for title in PROGRAMS}
    rows = []
    for title, seconds in medians.items():
        against = COMPARED.get(title)
        rows.append(
            (
                title,
                f"{1e3 * seconds:.0f}",
                f"{seconds / medians[against]:.2f}" if against else "",
                against or "",
            )
        )
    print_table(["program", "processor ms", "ratio", "of"], rows)


def processor_seconds(program: str, arguments: tuple[str, ...]) -> float:
    """Return user and system time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
