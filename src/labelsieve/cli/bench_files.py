"""``labelsieve bench merge`` and ``export``: the files of runs, put together and given to other programs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from labelsieve._text import one_line
from labelsieve.bench import require_packages
from labelsieve.cli.console import messages

MERGE_EPILOG = """\
Examples:

labelsieve bench run tiny --datasets planted --out runs/planted

labelsieve bench run tiny --datasets digits --out runs/digits

labelsieve bench merge runs/planted runs/digits --out runs/both

Runs that differ in data sets, seeds, noises, methods and references can be merged; the experiment that has all of
them goes on in the new folder.
"""

EXPORT_EPILOG = """\
Examples:

labelsieve bench export tiny

labelsieve bench export tiny --to parquet

labelsieve bench export runs/tiny --to csv --out tiny.csv

pandas.read_csv and pandas.read_parquet open the file.
"""

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


def merge(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Run folders, or their names below runs/.")
    ],
    out: Annotated[Path, typer.Option(help="Run folder to write; it has no results yet.")],
    as_json: AsJson = False,
) -> None:
    """Put runs together that are parts of one experiment."""
    require_packages()
    from labelsieve.bench.merge import merge as merge_files
    from labelsieve.bench.results_file import database_path

    if len(runs) < 2:
        raise typer.BadParameter("two runs or more were expected, got one", param_hint="RUN")
    command = shlex.join(["labelsieve", *sys.argv[1:]])
    found = merge_files([database_path(run) for run in runs], out, command=command)
    if as_json:
        figures = {
            "folder": str(out),
            "rankings": found.n_rankings,
            "judgements": found.n_judgements,
            "planned": found.n_planned,
            "done": found.n_done,
            "failed": found.n_failed,
            "weights_lost": found.n_weights_lost,
        }
        typer.echo(json.dumps(figures))
    notes = messages()
    notes.print(
        f"{found.n_rankings} rankings and {found.n_judgements} judgements are in {one_line(out)}; {found.n_done} of "
        f"{found.n_planned} cells are done"
    )
    if found.n_weights_lost:
        notes.print(f"the weights of {found.n_weights_lost} rankings were damaged and are left out")
    notes.print(f"next: labelsieve report {one_line(shlex.quote(str(out)))}")


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
