"""``labelsieve bench merge`` and ``export``: the files of runs, put together and given to other programs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from labelsieve._text import one_line
from labelsieve.bench import RunError, require_packages
from labelsieve.cli.console import AsJson, messages, typed

MERGE_EPILOG = """\
Examples:

labelsieve bench run tiny --datasets planted --out runs/planted

labelsieve bench run tiny --datasets digits --out runs/digits

labelsieve bench merge runs/planted runs/digits --out runs/both

labelsieve bench merge first.csv.gz runs/digits --out both.csv.gz

Runs that differ in data sets, seeds, noises, methods and references can be merged; the experiment that has all of
them goes on in the new folder. Of a run whose folder is gone, the means that report --summary wrote can be merged with
those of other data sets.
"""

EXPORT_EPILOG = """\
Examples:

labelsieve bench export tiny

labelsieve bench export tiny --to parquet

labelsieve bench export runs/tiny --to csv --out tiny.csv

pandas.read_csv and pandas.read_parquet open the file.
"""


def merge(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN", help="Run folders, their names below runs/, or files written by report --summary."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Run folder to write, or FILE.csv.gz for the means alone; nothing is replaced."),
    ],
    as_json: AsJson = False,
) -> None:
    """Put runs together that are parts of one experiment."""
    require_packages()
    from labelsieve.report.summary_file import is_summary

    if len(runs) < 2:
        raise typer.BadParameter("two runs or more were expected, got one", param_hint="RUN")
    command = typed()
    if is_summary(out):
        figures = _merge_means(runs, out, command)
    else:
        means = next((run for run in runs if is_summary(Path(run))), None)
        if means is not None:
            raise typer.BadParameter(
                f"{means} holds means, of which no run folder can be made; a file name that ends in .csv.gz was "
                f"expected, got {str(out)!r}",
                param_hint="--out",
            )
        figures = _merge_results(runs, out, command)
    if as_json:
        typer.echo(json.dumps(figures))
    messages().print(f"next: labelsieve report {one_line(shlex.quote(str(out)))}")


def _merge_results(runs: list[str], out: Path, command: str) -> dict[str, str | int]:
    from labelsieve.bench.merge import merge as merge_files
    from labelsieve.bench.results_file import database_path

    found = merge_files([database_path(run) for run in runs], out, command=command)
    notes = messages()
    notes.print(
        f"{found.n_rankings} rankings and {found.n_judgements} judgements are in {one_line(out)}; {found.n_done} of "
        f"{found.n_planned} cells are done"
    )
    if found.n_weights_lost:
        notes.print(f"the weights of {found.n_weights_lost} rankings were damaged and are left out")
    return {
        "folder": str(out),
        "rankings": found.n_rankings,
        "judgements": found.n_judgements,
        "planned": found.n_planned,
        "done": found.n_done,
        "failed": found.n_failed,
        "weights_lost": found.n_weights_lost,
    }


def _merge_means(runs: list[str], out: Path, command: str) -> dict[str, str | int]:
    from labelsieve.cli.report import find_source, read_means
    from labelsieve.cli.target import told_if_unwritable
    from labelsieve.report.summary_file import merge_summaries, write_summary

    if out.exists():
        raise RunError(f"{out}: is there already; choose another file with --out.")
    merged = merge_summaries([(run, read_means(find_source(run)[0])) for run in runs], command=command)
    with told_if_unwritable(out, "name another file with --out"):
        write_summary(merged, out)
    coverage = merged.facts.coverage
    messages().print(
        f"the means of {len(merged.datasets)} data sets are in {one_line(out)}; {coverage.n_done} of "
        f"{coverage.n_planned} cells are done"
    )
    return {
        "file": str(out),
        "datasets": len(merged.datasets),
        "planned": coverage.n_planned,
        "done": coverage.n_done,
        "failed": coverage.n_failed,
    }


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run folder, or its name below runs/.")],
    to: Annotated[
        str | None, typer.Option(metavar="csv|parquet", help="Format; that of --out, or else csv.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write; in the run folder by default.")
    ] = None,
) -> None:
    """Write every number of a run to one table: a row for each judged size and metric."""
    require_packages()
    from labelsieve.bench.export import FORMATS
    from labelsieve.bench.export import export as write_rows
    from labelsieve.bench.results import read_results
    from labelsieve.bench.results_file import database_path

    form = to or (out.suffix[1:] if out is not None else "csv")
    if form not in FORMATS:
        raise typer.BadParameter(f"one of {', '.join(FORMATS)} was expected, got {form!r}", param_hint="--to")
    source = database_path(run)
    target = out or source.with_name(f"results.{form}")
    n_rows = write_rows(read_results(source), target, form)
    typer.echo(one_line(f"wrote {n_rows} rows to {target}"))
