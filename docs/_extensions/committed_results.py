"""Read committed summaries of experiments and tables of costs."""

import re
from functools import cache
from pathlib import Path

from labelsieve.report.leaderboard import Study, studies
from labelsieve.report.page import Report, make_report
from labelsieve.report.summary_file import ENDING, read_summary

DOCS = Path(__file__).parents[1]
_BENCHMARKS = DOCS.parent / "benchmarks"
#: Order of the profiles. Others follow by name.
_ORDER = (
    "field",
    "rivals",
    "kinds-of-noise",
    "noise",
    "paper",
    "paper-lite",
    "paper-weights",
    "stability",
    "ablation",
    "sensitivity",
)


@cache
def reports() -> dict[str, Report]:
    """Return the report of every summary in ``docs/results``, by profile."""
    found = {path.name.removesuffix(ENDING): path for path in (DOCS / "results").glob(f"*{ENDING}")}
    names = [name for name in _ORDER if name in found] + sorted(set(found) - set(_ORDER))
    return {name: make_report(read_summary(found[name])) for name in names}


@cache
def leaderboard() -> list[Study]:
    """Return the studies of all committed summaries that compare methods."""
    return studies([(name, report.analysis.summary) for name, report in reports().items()])


@cache
def measured_costs() -> dict[str, dict[str, str]]:
    """Return method -> dataset -> "seconds / MiB / iterations", from the tables of the benchmarks.

    Examples
    --------
    >>> "yeast" in measured_costs()["pml-fsmir"]
    True
    """
    costs: dict[str, dict[str, str]] = {}
    for name in ("results.md", "results-full.md"):
        text = (_BENCHMARKS / name).read_text(encoding="utf-8")
        for section in re.findall(
            r"^## What does every method cost.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
        ):
            lines = [_cells(line) for line in section.splitlines() if line.startswith("|")]
            for method, *entries in lines[2:]:
                costs.setdefault(method, {}).update(zip(lines[0][1:], entries, strict=True))
    return costs


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
