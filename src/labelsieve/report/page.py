"""The report of a run in a folder: the page, tables, figures; whole or not at all. The page needs jinja2."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from joblib import Parallel, delayed

from labelsieve import __version__
from labelsieve._pages import render
from labelsieve._text import count
from labelsieve.bench import RunError
from labelsieve.report.analysis.run_analysis import Analysis
from labelsieve.report.contents import Report
from labelsieve.report.interactive.charts import page_charts
from labelsieve.report.sections import Section
from labelsieve.report.tables.provenance import configuration_text
from labelsieve.report.tables.table import FORMATS
from labelsieve.report.wording import listed

if TYPE_CHECKING:
    from labelsieve._figures import Picture

__all__ = ["FORMATS_OF_FIGURES", "PAGE", "refuse_to_replace", "render_report", "write_report"]

PAGE = "index.html"
#: In which figures can be written.
FORMATS_OF_FIGURES = ("pdf", "svg", "png")
_GENERATOR = "labelsieve report"
# What a report consists of; a folder with anything else in it is not ours to replace.
_CONTENT = {PAGE: (), "tables": tuple(FORMATS), "figures": FORMATS_OF_FIGURES}

#: Section -> names and pictures.
Pictures = Mapping[str, Sequence[tuple[str, "Picture"]]]


def write_report(
    report: Report,
    folder: str | os.PathLike[str],
    *,
    figures: Sequence[str] = (),
    announce: Callable[[str], None] = lambda activity: None,
) -> Path:
    """Write a report into a folder, whole or not at all.

    Parameters
    ----------
    report : Report
        From `make_report`.
    folder : path
        Where to; an earlier report there is replaced, anything else is left alone.
    figures : sequence of {"pdf", "svg", "png"}, default=()
        Formats in which figures are written beside the page; needs matplotlib. The page draws its own.
    announce : callable
        Called with the name of each activity as it begins.

    Returns
    -------
    page : Path
        The page.

    Raises
    ------
    RunError
        The folder holds something that is not a report.
    """
    target = Path(folder)
    refuse_to_replace(target)
    with _replacing_folder(target) as made:
        announce("writing tables")
        _write_tables(report.sections, made / "tables")
        if figures:
            from labelsieve.report.charts.figures import draw_figures

            announce("drawing figures")
            _save_pictures(draw_figures(report.analysis), made / "figures", figures, announce)
        announce("writing the page")
        page = render_report(report, figures=figures)
        (made / PAGE).write_text(page, "utf-8")
    return target / PAGE


def render_report(report: Report, *, figures: Sequence[str] = ()) -> str:
    """Return the page; `figures` are the formats of figures that lie beside it."""
    analysis = report.analysis
    experiment = analysis.summary.experiment
    drawn = page_charts(analysis)
    return render(
        "experiment.html",
        scripts=("sort.js", "charts.js"),
        data=drawn,
        title=experiment.title or experiment.name,
        facts=_facts(analysis),
        missing=report.missing,
        findings=report.findings,
        sections=report.sections,
        charts=drawn["charts"],
        failures=analysis.facts.failures,
        configuration=configuration_text(analysis.summary),
        generator=f"{_GENERATOR} {__version__}",
        formats=listed([name.upper() for name in figures]),
    )


def refuse_to_replace(folder: Path) -> None:
    """Raise unless the folder is absent, empty or a report."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise RunError(f"{folder}: a folder for the report was expected, got a file; choose another place.")
    foreign = next((path for path in sorted(folder.iterdir()) if not _is_ours(path)), None)
    if foreign is not None:
        raise RunError(
            f"{folder}: an empty folder or an earlier report was expected, but {foreign.name!r} in it is not "
            "part of a report; choose another folder, or take that away."
        )


def _is_ours(path: Path) -> bool:
    """Whether a file or folder is part of a report."""
    endings = _CONTENT.get(path.name)
    if path.is_symlink() or endings is None:
        return False
    if path.name == PAGE:
        return path.is_file() and f'content="{_GENERATOR}' in path.read_text("utf-8", errors="replace")
    return path.is_dir() and all(entry.is_file() and entry.suffix[1:] in endings for entry in path.iterdir())


@contextmanager
def _replacing_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder that takes the place of `folder` at the end, and is gone if anything fails."""
    folder = Path(os.path.realpath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex[:8]
    made, old = (folder.with_name(f".{folder.name}.{mark}.{state}") for state in ("new", "old"))
    made.mkdir()
    try:
        yield made
        if folder.exists():
            folder.rename(old)
        try:
            made.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _write_tables(sections: Sequence[Section], folder: Path) -> None:
    folder.mkdir()
    for section in sections:
        for table in section.all_tables:
            # Tables for programs are long: nobody wants them typeset.
            endings = ("csv",) if table in section.files else FORMATS
            for ending in endings:
                (folder / f"{table.stem}.{ending}").write_text(FORMATS[ending](table), "utf-8")


def _save_pictures(
    pictures: Pictures, folder: Path, formats: Sequence[str], announce: Callable[[str], None]
) -> None:
    """Write every picture in the formats asked for, on all cores."""
    folder.mkdir()
    tasks = [
        delayed(picture.save)(folder, stem, formats) for pairs in pictures.values() for stem, picture in pairs
    ]
    saved = Parallel(n_jobs=-1, return_as="generator")(tasks)
    for number, paths in enumerate(saved, start=1):
        announce(f"drew {paths[0].stem}, {number} of {len(tasks)} figures")


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
