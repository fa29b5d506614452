"""The report of a run: one self-contained page, a folder of tables, a folder of figures. Needs jinja2."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from joblib import Parallel, delayed

from labelsieve import __version__
from labelsieve.bench import RunError
from labelsieve.report.analysis import Analysis
from labelsieve.report.findings import find, missing_parts
from labelsieve.report.provenance import configuration_text
from labelsieve.report.sections import Section, make_sections
from labelsieve.report.tables import FORMATS, Entry
from labelsieve.report.wording import count, listed

if TYPE_CHECKING:
    from labelsieve.report.picture import Picture

PAGE = "index.html"
_GENERATOR = "labelsieve report"
# What a report consists of; a folder with anything else in it is not ours to replace.
_CONTENT = {PAGE: (), "tables": tuple(FORMATS), "figures": ("pdf", "svg", "png")}

Pictures = Mapping[str, Sequence[tuple[str, "Picture"]]]


def write_report(
    analysis: Analysis,
    folder: str | os.PathLike[str],
    *,
    figures: bool = True,
    announce: Callable[[str], None] = lambda activity: None,
) -> Path:
    """Write the report of a run into a folder, whole or not at all.

    Parameters
    ----------
    analysis : Analysis
        From `analyse`.
    folder : path
        Where to; an earlier report there is replaced, anything else is left alone.
    figures : bool, default=True
        Draw; needs matplotlib.
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
    sections = make_sections(analysis)
    with _replacing_folder(target) as made:
        announce("writing tables")
        _write_tables(sections, made / "tables")
        pictures: Pictures = {}
        if figures:
            from labelsieve.report.illustrate import illustrate

            announce("drawing figures")
            pictures = illustrate(analysis)
            _save_pictures(pictures, made / "figures", announce)
        announce("writing the page")
        page = render_report(analysis, sections=sections, pictures=pictures)
        (made / PAGE).write_text(page, "utf-8")
    return target / PAGE


def render_report(
    analysis: Analysis, *, sections: Sequence[Section] | None = None, pictures: Pictures | None = None
) -> str:
    """Return the page: findings first, then sections of tables and pictures."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("labelsieve.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["sort_key"] = _sort_key
    environment.filters["zip"] = zip
    script = (files("labelsieve.report") / "templates" / "sort.js").read_text("utf-8")
    sections = make_sections(analysis) if sections is None else sections
    pictures = pictures or {}
    results = analysis.results
    return environment.get_template("experiment.html").render(
        title=results.experiment.title or results.name,
        facts=_facts(analysis),
        missing=missing_parts(analysis),
        findings=find(analysis),
        sections=sections,
        pictures={section.anchor: [p for _, p in pictures.get(section.anchor, ())] for section in sections},
        failures=analysis.failures,
        configuration=configuration_text(results),
        generator=f"{_GENERATOR} {__version__}",
        has_figures=bool(pictures),
        # The page may run this script and no other, whatever the names in its tables say.
        script=Markup(script),
        script_hash=_integrity(script),
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


def _save_pictures(pictures: Pictures, folder: Path, announce: Callable[[str], None]) -> None:
    """Write every picture as PDF, SVG and PNG, on all cores: embedding fonts takes most of a report's time."""
    folder.mkdir()
    tasks = [delayed(picture.save)(folder, stem) for pairs in pictures.values() for stem, picture in pairs]
    saved = Parallel(n_jobs=-1, return_as="generator")(tasks)
    for number, paths in enumerate(saved, start=1):
        announce(f"drew {paths[0].stem}, {number} of {len(tasks)} figures")


def _facts(analysis: Analysis) -> str:
    """Say in one line what was run."""
    results = analysis.results
    experiment = results.experiment
    what = "variant" if analysis.compares_variants else "method"
    parts = [
        count(len(results.datasets), "data set"),
        *([count(len(analysis.compared), what)] if analysis.compared else []),
        *([count(len(analysis.references), "reference")] if analysis.references else []),
        count(experiment.folds, "fold"),
        count(len(experiment.seeds), "seed"),
    ]
    finished = next((run.finished for run in reversed(results.runs) if run.finished), None)
    day = f" Finished {finished[:10]}." if finished and analysis.coverage.complete else ""
    return f"{results.name}: {listed(parts)}.{day}"


def _sort_key(entry: Entry) -> str:
    """What the script sorts by: a number, or nothing for a gap."""
    if entry.is_gap or isinstance(entry.value, str):
        return ""
    value = float(entry.value or 0)
    return repr(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _integrity(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
