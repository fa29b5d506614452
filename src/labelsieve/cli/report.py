"""``labelsieve report``: report a run as page, tables and figures, or compare two runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console, RenderableType

from labelsieve._figures import has_matplotlib
from labelsieve._text import count, install_command, printable
from labelsieve.bench import RunError
from labelsieve.bench.results import read_results
from labelsieve.bench.store import FILE_NAME, database_path
from labelsieve.cli._console import lay_out, messages, progress, results
from labelsieve.cli._options import AsJson, option, write_errors
from labelsieve.report.findings import N_MAIN
from labelsieve.report.page import FIGURE_FORMATS, Report, check_replaceable, make_report, write_report
from labelsieve.report.summary import Summary, as_records, summarise
from labelsieve.report.summary_file import ENDING, is_summary, read_summary, write_summary
from labelsieve.report.tables import Table, listed, metric_title
from labelsieve.report.two_runs import compare_runs

EPILOG = """\
\b
Examples:
  labelsieve report
  labelsieve report tiny
  labelsieve report runs/paper-lite --control pml-fsmir --out lite --figures pdf
  labelsieve report paper-lite --summary paper-lite.csv.gz
  labelsieve report docs/results/paper-lite.csv.gz
  labelsieve report runs/before runs/after
"""

_RUNS = Path("runs")
# Section -> columns of its first table that fit on a terminal.
_NARROW = {
    "ablation": ("judged by", "with", "against", "all metrics"),
    "sensitivity": ("judged by", "best setting", "average rank", "best ahead of worst", "mean gain"),
}


def report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Run folder, its name in runs/, or a file written by --summary. Pass two to compare them. "
            "Default: the latest run.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("FOLDER", "Report folder. Default: in the run folder or next to the file."),
    ] = None,
    summary: Annotated[Path | None, option("FILE.csv.gz", "Small file of means for the same report.")] = None,
    control: Annotated[str | None, option("METHOD", "Method to compare the others with.")] = None,
    figures: Annotated[
        list[str] | None, option("FORMAT", "Figure format: pdf, svg or png. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report the results of a run as a page, tables and figures.

    The report of an unfinished run covers its complete parts. Two runs are compared on the terminal.
    """
    if runs is not None and len(runs) > 1:
        if len(runs) > 2:
            raise typer.BadParameter(f"expected one or two runs, got {len(runs)}", param_hint="RUN")
        options = {"--out": out, "--summary": summary, "--control": control, "--figures": figures}
        given = next((name for name, value in options.items() if value), None)
        if given is not None:
            raise typer.BadParameter("needs a single run, got two", param_hint=given)
        _compare(runs, as_json)
        return
    formats = tuple(dict.fromkeys(figures or ()))
    if formats and not has_matplotlib():
        raise RunError(f"figures need matplotlib. Install it: {install_command('matplotlib')}")
    unknown = next((name for name in formats if name not in FIGURE_FORMATS), None)
    if unknown is not None:
        known = ", ".join(FIGURE_FORMATS)
        raise typer.BadParameter(f"must be one of {known}, got {unknown!r}", param_hint="--figures")
    if summary is not None and not is_summary(summary):
        raise typer.BadParameter(f"must end in .csv.gz, got {str(summary)!r}", param_hint="--summary")
    source, default_folder = find_source(runs[0] if runs else None)
    folder = out or default_folder
    check_replaceable(folder)
    with progress(messages()) as announce:
        announce(f"reading {source}")
        found = read_means(source)
        announce("comparing methods")
        made = make_report(found, control=control)
        with write_errors(folder, "choose another folder with --out"):
            page = write_report(made, folder, figures=formats, announce=announce)
        if summary is not None:
            with write_errors(summary, "choose another file with --summary"):
                write_summary(found, summary)
    if as_json:
        typer.echo(json.dumps({"page": str(page), **made.as_dict()}, indent=2, allow_nan=False))
    else:
        _print_report(made, [path for path in (summary, page) if path is not None])


def read_means(source: Path) -> Summary:
    """Read a summary file or summarise a results file."""
    return read_summary(source) if is_summary(source) else summarise(read_results(source))


def find_source(run: str | None) -> tuple[Path, Path]:
    """Return the source file of a report and its default folder."""
    if run is not None and is_summary(Path(run)):
        return Path(run), Path(run.removesuffix(ENDING))
    path = database_path(run if run is not None else _latest_run())
    return path, path.parent / "report"


def _latest_run() -> Path:
    """Return the most recently changed run in ``runs``."""
    # While a run is active, its changes are in a second file.
    found = [path for ending in ("", "-wal") for path in _RUNS.glob(f"*/{FILE_NAME}{ending}")]
    if not found:
        raise RunError(f"no runs in {_RUNS}/. Pass a run folder, or start a run: labelsieve bench run tiny")
    return max(found, key=lambda path: path.stat().st_mtime).parent


def _print_report(made: Report, written: list[Path]) -> None:
    console = results()
    for text in (*made.missing, *made.findings[:N_MAIN]):
        console.print(printable(text))
    overall, among_all = made.analysis.main.overall, made.analysis.main.among_all
    if len(overall) > 1:
        names = sorted(among_all, key=among_all.__getitem__)
        columns = {"method": names}
        if len(among_all) > len(overall):
            columns["with references"] = [f"{among_all[name]:.2f}" for name in names]
        columns["average rank"] = [f"{overall[name]:.2f}" if name in overall else "" for name in names]
        console.print("", lay_out(console, columns, long="method"), "", sep="\n")
    for section in made.sections:
        if section.anchor in ("paper", *_NARROW) and section.tables:
            console.print(_narrow_table(console, section.tables[0], section.anchor), "", sep="\n")
    for path in written:
        console.print(f"wrote {printable(path)}", soft_wrap=True)


def _narrow_table(console: Console, table: Table, anchor: str) -> RenderableType:
    """Lay out the main columns of a section. The agreement with the paper is transposed."""
    cells = [[re.sub("[−–]", "-", cell.text) for cell in row] for row in table.rows]
    rows = list(zip(table.headings, *cells, strict=True))
    if anchor == "paper":
        # Rows without any value belong to methods that were not run.
        rows = list(zip(*(row for row in rows if set(row[1:]) != {"-"}), strict=True))
    shown = {head: texts for head, *texts in rows if anchor == "paper" or head in _NARROW[anchor]}
    long = "best setting" if anchor == "sensitivity" else next(iter(shown))
    return lay_out(console, shown, long=long, title=printable(table.title))


def _compare(runs: list[str], as_json: bool) -> None:
    """Print what two runs share and where they differ."""
    summaries = []
    with progress(messages()) as announce:
        for run in runs:
            source, _ = find_source(run)
            announce(f"reading {source}")
            summaries.append(read_means(source))
    found = compare_runs(*summaries)
    if found["differences"].empty:
        raise RunError(
            f"{runs[0]} and {runs[1]} have no finished results in common. Pass runs that share a dataset, a "
            "method, a classifier, a metric and a size."
        )
    if as_json:
        frames = {name: as_records(found[name]) for name in ("differences", "by_dataset")}
        content = {"first": runs[0], "second": runs[1], **found, **frames}
        typer.echo(json.dumps(content, indent=2, allow_nan=False))
        return
    console = results()
    for text in _sentences(runs, found):
        console.print(printable(text))
    groups = found["differences"].groupby("classifier", sort=False)
    for classifier, rows in groups:
        rows = rows[rows["difference"] != 0]
        if len(rows):
            title = f"classifier {printable(classifier)}" if len(groups) > 1 else None
            console.print("", lay_out(console, _columns(rows), long="method", title=title), sep="\n")


def _sentences(names: list[str], found: dict[str, Any]) -> list[str]:
    shared = found["differences"]
    n_differing = int((shared["difference"] != 0).sum())
    n_beyond = int((shared["difference"].abs() > shared["fold_std"]).sum())
    means = f"{count(len(shared), 'mean')} (one per method and metric)"
    outcome = (
        f"Of {means}, {n_differing} differ, {n_beyond} of them by more than the standard deviation "
        "over folds."
        if n_differing
        else f"All {means} are equal."
    )
    texts = [
        f"first: {names[0]}; second: {names[1]}.",
        f"Both have {count(found['by_dataset']['dataset'].nunique(), 'dataset')} and "
        f"{count(shared['method'].nunique(), 'method')}. {outcome}",
    ]
    for which in ("first", "second"):
        only = found[f"only_{which}"]
        parts = [f"{what} {listed(entries)}" for what, entries in only.items() if entries]
        if parts:
            texts.append(f"Only the {which} has results for {'; '.join(parts)}.")
    if found["other_data"]:
        texts.append(f"The runs used different data for {listed(found['other_data'])}.")
    if found["settings"]:
        texts.append(f"These settings differ: {listed(found['settings'])}.")
    return texts


def _columns(rows: pd.DataFrame) -> dict[str, list[str]]:
    return {
        "method": rows["method"].tolist(),
        "metric": list(map(metric_title, rows["metric"], rows["direction"])),
        "first": rows["first"].map("{:.4f}".format).tolist(),
        "second": rows["second"].map("{:.4f}".format).tolist(),
        "difference": rows["difference"].map("{:+.4f}".format).tolist(),
        "fold std": ["-" if std != std else f"{std:.4f}" for std in rows["fold_std"]],
    }
