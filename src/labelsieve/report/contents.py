"""What a report says, made once and given to the page, the terminal and programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from labelsieve.report.analysis.run_analysis import Analysis, analyse
from labelsieve.report.analysis.summary import Summary
from labelsieve.report.findings import find, missing_parts
from labelsieve.report.sections import Section, make_sections
from labelsieve.report.statistics import RankTest
from labelsieve.report.tables.table import Table, as_records, only, turned

__all__ = ["Report", "make_report"]

# Section -> columns of its first table that answer its question.
_NARROW = {
    "ablation": ("judged by", "with", "against", "all metrics"),
    "sensitivity": ("judged by", "best setting", "average rank", "best ahead of worst", "mean gain"),
}


@dataclass(frozen=True)
class Report:
    """Numbers, sentences and tables of a run."""

    analysis: Analysis
    #: What is missing of the run, in sentences; empty if it is complete.
    missing: tuple[str, ...]
    #: What the run shows, in sentences.
    findings: tuple[str, ...]
    sections: tuple[Section, ...]

    def as_dict(self) -> dict[str, Any]:
        """What was found, as values JSON can hold."""
        main = self.analysis.main
        return {
            "complete": self.analysis.facts.coverage.complete,
            "missing": list(self.missing),
            "findings": list(self.findings),
            "control": main.control or None,
            "average_ranks": main.overall,
            "average_ranks_with_references": main.among_all,
            "nemenyi_cd": main.nemenyi_cd,
            "bonferroni_dunn_cd": main.bonferroni_dunn_cd,
            "tests": {
                standing.metric: {
                    name: _as_dict(test)
                    for name, test in (
                        ("friedman", standing.friedman),
                        ("iman_davenport", standing.iman_davenport),
                    )
                    if test is not None
                }
                for standing in main.standings
            },
            "tables": {
                table.stem: as_records(table)
                for section in self.sections
                for table in (*section.tables, *section.folded)
            },
        }

    @property
    def answers(self) -> tuple[Table, ...]:
        """What a run of a special kind was made for, in tables narrow enough for a terminal."""
        first = {section.anchor: section.tables[0] for section in self.sections if section.tables}
        told = [turned(first["paper"])] if "paper" in first else []
        told += [only(first[anchor], heads) for anchor, heads in _NARROW.items() if anchor in first]
        return tuple(told)


def make_report(summary: Summary, *, control: str | None = None) -> Report:
    """Compute and say everything there is to say of a run; `control` is that of `analyse`."""
    analysis = analyse(summary, control=control)
    return Report(
        analysis, tuple(missing_parts(analysis)), tuple(find(analysis)), tuple(make_sections(analysis))
    )


def _as_dict(test: RankTest) -> dict[str, float | None]:
    # Perfect agreement gives an infinite statistic, which JSON has no word for.
    statistic = test.statistic if math.isfinite(test.statistic) else None
    return {"statistic": statistic, "p_value": test.p_value}
