"""What the report of a run costs; run ``python -m benchmarks.report``.

The page, all tables and the findings of a run of 8 data sets and 16 methods and references (``docs/results``), as the
command line makes them: processor time of whole processes beside that of ``labelsieve --help``, and of bare matplotlib
that draws as many panels as there are size curves, a line for each method, and writes them as SVG. Medians of
interleaved repeats.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.startup import LABELSIEVE, processor_seconds
from benchmarks.table import print_table

RUN = Path(__file__).parent.parent / "docs" / "results" / "paper-lite.csv.gz"
# Eight panels a figure: eight metrics on eight data sets are the size curves alone.
BARE_FIGURES = """
import sys
from matplotlib.figure import Figure
for metric in range(int(sys.argv[2])):
    figure = Figure(figsize=(6.4, 9), layout="constrained")
    for axes in figure.subplots(4, 2).ravel():
        for method in range(16):
            axes.plot([1, 5, 10, 15, 20], [method + 0.1 * size for size in range(5)], marker="o", label=str(method))
    figure.savefig(f"{sys.argv[1]}/{metric}.svg")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--bare", type=int, default=8, help="figures of eight panels that bare matplotlib draws"
    )
    parser.add_argument("--figures", action="store_true", help="time the figures too, as PDF: a minute")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = ("report", str(RUN), "--out", f"{folder}/report")
        programs = {
            "labelsieve --help": (LABELSIEVE, ("--help",)),
            f"bare matplotlib, {8 * options.bare} panels": (BARE_FIGURES, (folder, str(options.bare))),
            "labelsieve report": (LABELSIEVE, report),
        }
        if options.figures:
            programs["labelsieve report --figures pdf"] = (LABELSIEVE, (*report, "--figures", "pdf"))
        rounds = [
            {title: processor_seconds(*command) for title, command in programs.items()}
            for _ in range(options.repeats)
        ]
    medians = {title: statistics.median(each[title] for each in rounds) for title in programs}
    help_seconds, bare_seconds = list(medians.values())[:2]
    rows = [
        (title, f"{seconds:.2f}", f"{seconds / help_seconds:.1f}", f"{seconds / bare_seconds:.2f}")
        for title, seconds in medians.items()
    ]
    print_table(["program", "processor s", "times --help", "times bare matplotlib"], rows)


if __name__ == "__main__":
    main()
