"""``labelsieve report``: what a run shows, as a page, tables and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelsieve._text import printable
from labelsieve.bench import RunError, require_packages
from labelsieve.cli.console import messages, results
from labelsieve.cli.fitting import progress
from labelsieve.cli.tables import lay_out
from labelsieve.pages import missing_packages

if TYPE_CHECKING:
    from labelsieve.report.analysis.summary import Summary
    from labelsieve.report.contents import Report

EPILOG = """\
Examples:

labelsieve report

labelsieve report tiny

labelsieve report runs/paper-lite --control pml-fsmir --out lite

labelsieve report paper-lite --summary paper-lite.csv.gz

labelsieve report docs/results/paper-lite.csv.gz
"""

_RUNS = Path("runs")


def report(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Run folder, its name below runs/, or a file written by --summary; the latest run by default.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the report; in or beside what is read, unless given."),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv.gz", help="Write the means to a small file that has the same report."),
    ] = None,
    control: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method that the others are compared with.")
    ] = None,
    figures: Annotated[bool, typer.Option(help="Draw figures, which takes most of the time.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False,
) -> None:
    """Write the report of a run: a page, tables and figures.

    A run that is not finished has a report too, of what is there.
    """
    require_packages()
    needed = [name for name in missing_packages() if figures or name != "matplotlib"]
    if needed:
        raise RunError(f"a report needs {' and '.join(needed)}: pip install 'labelsieve[report]'")
    from labelsieve.report.analysis.summary_file import ENDING, write_summary
    from labelsieve.report.contents import make_report
    from labelsieve.report.folder import refuse_to_replace, write_report

    if summary is not None and not summary.name.endswith(ENDING):
        raise typer.BadParameter(
            f"a file name ending in {ENDING} was expected, got {summary.name!r}", param_hint="--summary"
        )
    source = _source(run)
    folder = out or _folder_of(source)
    refuse_to_replace(folder)
    with progress(messages()) as name_activity:
        name_activity(f"reading {source}")
        found = _read(source)
        name_activity("comparing")
        made = make_report(found, control=control)
        try:
            page = write_report(made, folder, figures=figures, announce=name_activity)
        except OSError as error:
            raise RunError(
                f"{folder}: cannot be written ({error}); name another folder with --out."
            ) from None
        if summary is not None:
            try:
                write_summary(found, summary)
            except OSError as error:
                raise RunError(f"{summary}: cannot be written ({error}); name another file.") from None
    if as_json:
        told = {"page": str(page), **made.as_dict()}
        typer.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        _tell(made, [path for path in (summary, page) if path is not None])


def _source(run: str | None) -> Path:
    """The file that a report is made of: a summary, or the results of a run."""
    from labelsieve.bench.store import database_path
    from labelsieve.report.analysis.summary_file import ENDING

    if run is not None and run.endswith(ENDING):
        return Path(run)
    return database_path(run if run is not None else _latest_run())


def _folder_of(source: Path) -> Path:
    """Where the report of a file goes: into the folder of a run, or beside a summary."""
    from labelsieve.report.analysis.summary_file import ENDING

    if source.name.endswith(ENDING):
        return source.with_name(source.name.removesuffix(ENDING))
    return source.parent / "report"


def _read(source: Path) -> Summary:
    from labelsieve.bench.results import read_results
    from labelsieve.report.analysis.summary import summarise
    from labelsieve.report.analysis.summary_file import ENDING, read_summary

    return read_summary(source) if source.name.endswith(ENDING) else summarise(read_results(source))


def _latest_run() -> Path:
    """The run below ``runs`` that changed last."""
    from labelsieve.bench.store import FILE_NAME

    # Until a runner closes the file, its news lie in a second one.
    found = [path for ending in ("", "-wal") for path in _RUNS.glob(f"*/{FILE_NAME}{ending}")]
    if not found:
        raise RunError(f"no run is below {_RUNS}/; name one, or start one with: labelsieve bench run tiny")
    return max(found, key=lambda path: path.stat().st_mtime).parent


def _tell(made: Report, written: list[Path]) -> None:
    """Say on the terminal what was found."""
    console = results()
    for text in (*made.missing, *made.findings):
        console.print(printable(text))
    overall, among_all = made.analysis.main.overall, made.analysis.main.among_all
    if len(overall) > 1:
        names = sorted(among_all, key=among_all.__getitem__) if among_all else list(overall)
        columns = {"method": names}
        if len(among_all) > len(overall):
            columns["with references"] = [f"{among_all[name]:.2f}" for name in names]
        columns["average rank"] = [f"{overall[name]:.2f}" if name in overall else "" for name in names]
        console.print()
        console.print(lay_out(console.width, columns, long="method"))
        console.print()
    for path in written:
        console.print(f"wrote {printable(path)}", soft_wrap=True)
