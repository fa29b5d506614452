"""The page of a report: findings first, then sections of tables and pictures. Needs jinja2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from labelsieve import __version__
from labelsieve.pages import render
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.contents import Report
from labelsieve.report.tables.provenance import configuration_text
from labelsieve.report.wording import count, listed

if TYPE_CHECKING:
    from labelsieve.pictures import Picture

__all__ = ["GENERATOR", "Pictures", "render_report"]

GENERATOR = "labelsieve report"

#: Section -> names and pictures.
Pictures = Mapping[str, Sequence[tuple[str, "Picture"]]]


def render_report(report: Report, *, pictures: Pictures | None = None) -> str:
    """Return the page."""
    analysis, pictures = report.analysis, pictures or {}
    experiment = analysis.summary.experiment
    return render(
        "experiment.html",
        script="sort.js",
        title=experiment.title or experiment.name,
        facts=_facts(analysis),
        missing=report.missing,
        findings=report.findings,
        sections=report.sections,
        pictures={
            section.anchor: [picture for _, picture in pictures.get(section.anchor, ())]
            for section in report.sections
        },
        failures=analysis.facts.failures,
        configuration=configuration_text(analysis.summary),
        generator=f"{GENERATOR} {__version__}",
        has_figures=bool(pictures),
    )


def _facts(analysis: Analysis) -> str:
    """Say in one line what was run."""
    experiment = analysis.summary.experiment
    what = "variant" if analysis.compares_variants else "method"
    parts = [
        count(len(analysis.summary.datasets), "data set"),
        *([count(len(analysis.compared), what)] if analysis.compared else []),
        *([count(len(analysis.references), "reference")] if analysis.references else []),
        count(experiment.folds, "fold"),
        count(len(experiment.seeds), "seed"),
    ]
    finished = next((run.finished for run in reversed(analysis.facts.runs) if run.finished), None)
    day = f" Finished {finished[:10]}." if finished and analysis.facts.coverage.complete else ""
    return f"{experiment.name}: {listed(parts)}.{day}"
