"""``labelsieve report``: what a run shows, as a page, tables and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelsieve._pages import missing_packages
from labelsieve._text import printable
from labelsieve.bench import RunError, require_packages
from labelsieve.cli.console import AsJson, messages, results
from labelsieve.cli.fitting import progress
from labelsieve.cli.tables import answer_table, lay_out
from labelsieve.cli.target import told_if_unwritable

if TYPE_CHECKING:
    from labelsieve.report.analysis.summary import Summary
    from labelsieve.report.contents import Report

EPILOG = """\
Examples:

labelsieve report

labelsieve report tiny

labelsieve report runs/paper-lite --control pml-fsmir --out lite --figures pdf

labelsieve report paper-lite --summary paper-lite.csv.gz

labelsieve report docs/results/paper-lite.csv.gz

labelsieve report runs/before runs/after
"""

_RUNS = Path("runs")


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Run folder, its name below runs/, or a file written by --summary; the latest run by default. "
            "Two of them are compared.",
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
    figures: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMAT", help="Write figures too, as pdf, svg or png; can be given again."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a run: a page to explore, tables, and figures if asked for.

    A run that is not finished has a report too, of what is there. Of two runs, the differences are shown.
    """
    require_packages()
    if runs is not None and len(runs) > 1:
        options = (("--out", out), ("--summary", summary), ("--control", control), ("--figures", figures))
        given = [name for name, value in options if value]
        if len(runs) > 2 or given:
            problem = (
                f"{given[0]} is for one run" if given else f"one run or two were expected, got {len(runs)}"
            )
            raise typer.BadParameter(problem, param_hint="RUN")
        _compare(runs, as_json)
        return
    run = runs[0] if runs else None
    formats = tuple(dict.fromkeys(figures or ()))
    needed = missing_packages(("jinja2", "matplotlib") if formats else ("jinja2",))
    if needed:
        raise RunError(f"a report needs {' and '.join(needed)}: pip install 'labelsieve[report]'")
    from labelsieve.report.analysis.summary_file import is_summary, write_summary
    from labelsieve.report.contents import make_report
    from labelsieve.report.page import FORMATS_OF_FIGURES, refuse_to_replace, write_report

    unknown = next((name for name in formats if name not in FORMATS_OF_FIGURES), None)
    if unknown is not None:
        raise typer.BadParameter(
            f"one of {', '.join(FORMATS_OF_FIGURES)} was expected, got {unknown!r}", param_hint="--figures"
        )
    if summary is not None and not is_summary(summary):
        raise typer.BadParameter(
            f"a file name that ends in .csv.gz was expected, got {str(summary)!r}", param_hint="--summary"
        )
    source, usual_folder = find_source(run)
    folder = out or usual_folder
    refuse_to_replace(folder)
    with progress(messages()) as name_activity:
        name_activity(f"reading {source}")
        found = read_means(source)
        name_activity("comparing")
        made = make_report(found, control=control)
        with told_if_unwritable(folder, "name another folder with --out"):
            page = write_report(made, folder, figures=formats, announce=name_activity)
        if summary is not None:
            with told_if_unwritable(summary, "name another file with --summary"):
                write_summary(found, summary)
    if as_json:
        typer.echo(json.dumps({"page": str(page), **made.as_dict()}, indent=2, allow_nan=False))
    else:
        _tell(made, [path for path in (summary, page) if path is not None])


def _compare(runs: list[str], as_json: bool) -> None:
    from labelsieve.cli.report_comparison import compare

    with progress(messages()) as name_activity:
        summaries = []
        for run in runs:
            source, _ = find_source(run)
            name_activity(f"reading {source}")
            summaries.append(read_means(source))
    compare(runs, summaries, as_json=as_json)


def read_means(source: Path) -> Summary:
    """What a results file comes down to, or what a summary file holds."""
    from labelsieve.bench.results import read_results
    from labelsieve.report.analysis.summary import summarise
    from labelsieve.report.analysis.summary_file import is_summary, read_summary

    return read_summary(source) if is_summary(source) else summarise(read_results(source))


def find_source(run: str | None) -> tuple[Path, Path]:
    """The file that a report is made of, and the folder it goes to unless another is named."""
    from labelsieve.bench.store import database_path
    from labelsieve.report.analysis.summary_file import ENDING, is_summary

    if run is not None and is_summary(Path(run)):
        return Path(run), Path(run.removesuffix(ENDING))
    path = database_path(run if run is not None else _latest_run())
    return path, path.parent / "report"


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
    for table in made.answers:
        console.print(answer_table(table))
        console.print()
    for path in written:
        console.print(f"wrote {printable(path)}", soft_wrap=True)
