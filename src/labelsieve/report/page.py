"""Report of a run: findings, tables and charts, written to a folder with a page, tables and figures."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from labelsieve import __version__
from labelsieve._pages import render
from labelsieve._text import count
from labelsieve.bench import RunError
from labelsieve.report import method_sections as methods
from labelsieve.report import run_sections as runs
from labelsieve.report.analysis import Analysis, analyse
from labelsieve.report.charts import Chart, charts_of, page_charts
from labelsieve.report.findings import N_MAIN, find, missing_parts
from labelsieve.report.summary import Summary, as_records
from labelsieve.report.tables import FORMATS, Section, listed

PAGE = "index.html"
#: Formats of figures.
FIGURE_FORMATS = ("pdf", "svg", "png")
_GENERATOR = "labelsieve report"
# Files and folders of a report. A folder with other content is not replaced.
_PARTS = (
    *(PAGE, "tables", "figures"),
    *(f"tables/*.{ending}" for ending in FORMATS),
    *(f"figures/*.{ending}" for ending in FIGURE_FORMATS),
)


def _more_findings(analysis: Analysis) -> Iterator[Section]:
    """Show the findings that the page does not open with."""
    yield Section("more-findings", "More findings", tuple(find(analysis)[N_MAIN:]))


_SECTIONS = (
    methods.ranks,
    methods.curves,
    methods.metrics,
    methods.references,
    methods.statistics,
    methods.paper,
    runs.costs,
    runs.stability,
    runs.noise,
    runs.ablation,
    runs.sensitivity,
    _more_findings,
    runs.failures,
    runs.provenance,
)


@dataclass(frozen=True)
class Report:
    """Findings and tables of a run."""

    analysis: Analysis
    #: Descriptions of missing parts, empty if the run is complete.
    missing: tuple[str, ...]
    #: Findings, most important first.
    findings: tuple[str, ...]
    sections: tuple[Section, ...]

    @cached_property
    def charts(self) -> dict[str, Chart]:
        """Charts by name."""
        return charts_of(self.analysis)

    def as_dict(self) -> dict[str, Any]:
        """Return findings and tables as JSON-compatible values."""
        main = self.analysis.main
        # JSON has no infinity, the statistic of perfect agreement.
        tests = main.tests.replace(np.inf, None).astype(object)
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
                metric: {
                    name: {"statistic": row[name], "p_value": row[f"{name}_p"]}
                    for name in ("friedman", "iman_davenport")
                    if len(tests)
                }
                for metric, row in tests.reindex(list(main.ranks)).iterrows()
            },
            "tables": {
                table.stem: as_records(table.flat)
                for section in self.sections
                for table in (*section.tables, *section.folded)
            },
        }


def make_report(summary: Summary, *, control: str | None = None) -> Report:
    """Compute the report of a run. `control` is passed to `analyse`."""
    analysis = analyse(summary, control=control)
    found = (section for part in _SECTIONS for section in part(analysis))
    sections = [section for section in found if section.texts or section.all_tables]
    if not summary.compared:
        # If the run has only sweeps, show them first.
        sections.sort(key=lambda section: section.anchor != "sensitivity")
    return Report(analysis, tuple(missing_parts(analysis)), tuple(find(analysis)), tuple(sections))


def write_report(
    report: Report,
    folder: Path,
    *,
    figures: Sequence[str] = (),
    announce: Callable[[str], None] = lambda activity: None,
) -> Path:
    """Write a report atomically into a folder and return the path of its page.

    An earlier report is replaced. A folder with other content raises an error. `figures` are file formats of figures,
    which need matplotlib. `announce` is called with a description of each step.
    """
    check_replaceable(folder)
    with _replacing_folder(folder) as made:
        announce("writing tables")
        _write_tables(report.sections, made / "tables")
        if figures:
            announce("drawing figures")
            _write_figures(report, made / "figures", figures, announce)
        announce("writing the page")
        page = render_report(report, figures=figures)
        (made / PAGE).write_text(page, "utf-8")
    return folder / PAGE


def render_report(report: Report, *, figures: Sequence[str] = ()) -> str:
    """Return the HTML page. `figures` are the file formats of the figures."""
    analysis = report.analysis
    experiment = analysis.summary.experiment
    return render(
        "experiment.html",
        styles=["experiment.css"],
        scripts=("sort.js", "charts.js"),
        data=page_charts(analysis, report.charts),
        title=experiment.title or experiment.name,
        facts=_facts(analysis),
        missing=report.missing,
        findings=report.findings[:N_MAIN],
        sections=report.sections,
        charts=report.charts,
        failures=analysis.facts.failures,
        configuration=json.dumps(analysis.facts.runs[-1].configuration, indent=2),
        generator=f"{_GENERATOR} {__version__}",
        formats=listed([name.upper() for name in figures]),
    )


def check_replaceable(folder: Path) -> None:
    """Raise if a folder exists and is neither empty nor a report."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunError(f"{folder}: expected a folder for the report, got a file. Choose another folder.")
    foreign = set(folder.rglob("*")).difference(*map(folder.glob, _PARTS))
    page = folder / PAGE
    if page.exists() and f'content="{_GENERATOR}' not in page.read_text("utf-8", errors="replace"):
        foreign.add(page)
    if foreign:
        raise RunError(
            f"{folder}: expected an empty folder or an earlier report, got a folder with {min(foreign).name!r}. Choose "
            "another folder."
        )


@contextmanager
def _replacing_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that replaces `folder` at the end or is removed on failure."""
    folder = Path(os.path.realpath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        made = Path(temporary, "new")
        made.mkdir()
        yield made
        old = Path(temporary, "old")
        if folder.exists():
            folder.rename(old)
        try:
            made.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise


def _write_tables(sections: Sequence[Section], folder: Path) -> None:
    folder.mkdir()
    for section in sections:
        for table in section.all_tables:
            # Long tables are for programs only.
            endings = ("csv",) if any(table is file for file in section.files) else FORMATS
            for ending in endings:
                (folder / f"{table.stem}.{ending}").write_text(FORMATS[ending](table), "utf-8")


def _write_figures(
    report: Report, folder: Path, formats: Sequence[str], announce: Callable[[str], None]
) -> None:
    """Write all figures in the requested formats, using all cores."""
    from labelsieve.report.figures import draw_figures

    folder.mkdir()
    tasks = [
        delayed(figure.save)(folder, stem, formats)
        for stem, figure in draw_figures(report.analysis, report.charts)
    ]
    saved = Parallel(n_jobs=-1, return_as="generator")(tasks)
    for number, paths in enumerate(saved, start=1):
        announce(f"drew {number} of {len(tasks)} figures ({paths[0].stem})")


def _facts(analysis: Analysis) -> str:
    """Describe the run in one line."""
    experiment, summary = analysis.summary.experiment, analysis.summary
    parts = [
        count(len(summary.datasets), "dataset"),
        *([count(len(summary.compared), analysis.noun)] if summary.compared else []),
        *([count(len(summary.references), "reference")] if summary.references else []),
        count(experiment.folds, "fold"),
        count(len(experiment.seeds), "seed"),
    ]
    finished = next((run.finished for run in reversed(analysis.facts.runs) if run.finished), None)
    day = f" Finished {finished[:10]}." if finished and analysis.facts.coverage.complete else ""
    return f"{experiment.name}: {listed(parts)}.{day}"
