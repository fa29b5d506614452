"""``labelsieve bench``: run experiments, then merge and export their results."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count

from labelsieve._text import closest, count, one_line, short
from labelsieve.bench import RunError, RunInterrupted
from labelsieve.bench.config import PROFILES, Experiment, load_experiment, restrict
from labelsieve.bench.export import FORMATS
from labelsieve.bench.export import export as write_rows
from labelsieve.bench.merge import merge as merge_files
from labelsieve.bench.results import read_results, read_status
from labelsieve.bench.runner import run as run_cells
from labelsieve.bench.store import database_path
from labelsieve.cli import COMMANDS, Command, bench_doctor
from labelsieve.cli._console import command_line, duration, lay_out, messages, results
from labelsieve.cli._options import AsJson, Jobs, Quiet, option, write_errors, write_text
from labelsieve.cli._run_progress import RunProgress
from labelsieve.cli.report import find_source, read_means
from labelsieve.report.leaderboard import find, is_comparison, render_leaderboard, studies
from labelsieve.report.summary_file import is_summary, merge_summaries, write_summary

#: Exit code of a complete run that has failed cells.
FAILED_CELLS = 3

_ERRORS_SHOWN = 5

app = typer.Typer(help=COMMANDS["bench"])

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Run folder or its name in runs/.")]
Dask = Annotated[str | None, option("ADDRESS", "Dask scheduler to run the cells on.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import the code that the stored configuration refers to.")
]

_RUN_EPILOG = """\
\b
Examples:
  labelsieve bench run tiny
  labelsieve bench run paper-lite --jobs 2
  labelsieve bench run my.toml --out runs/mine
  labelsieve bench run paper-weights --rankings runs/paper
  labelsieve bench run paper --datasets birds --datasets yeast --out runs/paper-1

You can stop or kill a run at any time. Repeat the command to continue it.
"""

MERGE_EPILOG = """\
\b
Examples:
  labelsieve bench run tiny --datasets planted --out runs/planted
  labelsieve bench run tiny --datasets digits --out runs/digits
  labelsieve bench merge runs/planted runs/digits --out runs/both
  labelsieve bench merge first.csv.gz runs/digits --out both.csv.gz

The runs may differ in datasets, seeds, noise, methods and references. An experiment that covers all of them
can continue in the new folder. Files written by report --summary hold means, so merging them cannot add seeds.
"""

LEADERBOARD_EPILOG = """\
\b
Examples:
  labelsieve bench leaderboard docs/results/*.csv.gz
  labelsieve bench leaderboard mine.csv.gz runs/theirs --html board.html

Runs with the same folds, seeds, sizes, classifiers, metrics and conventions are compared with each other.
Other runs are separate studies on the same page.
"""

EXPORT_EPILOG = """\
\b
Examples:
  labelsieve bench export tiny
  labelsieve bench export tiny --to parquet
  labelsieve bench export runs/tiny --to csv --out tiny.csv

Read the file with pandas.read_csv or pandas.read_parquet.
"""


@app.callback(invoke_without_command=True)
def bench(context: typer.Context) -> None:
    """Run resumable experiments."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("run", cls=Command, epilog=_RUN_EPILOG)
def run_command(
    config: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE-or-FILE",
            help="Profile (see bench profiles) or TOML file.",
        ),
    ],
    out: Annotated[Path | None, option("FOLDER", "Run folder. Default: runs/NAME.")] = None,
    datasets: Annotated[list[str] | None, option("NAME", "Dataset to run. Repeatable. Default: all.")] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Continue even if finished cells become obsolete.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Rerun failed cells, e.g. with higher limits.")
    ] = False,
    rankings: Annotated[
        str | None, option("RUN", "Earlier run whose rankings are reused where possible.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the unfinished cells of an experiment."""
    experiment = load_experiment(config)
    if datasets:
        experiment = restrict(experiment, datasets)
    _run(
        experiment,
        out or Path("runs") / experiment.name,
        quiet,
        as_json,
        jobs=jobs or cpu_count(),
        dask=dask,
        accept_changes=accept_changes,
        retry_failed=retry_failed,
        rankings=None if rankings is None else database_path(rankings),
    )


@app.command("retry-failed", cls=Command, epilog="Example: labelsieve bench retry-failed runs/tiny")
def retry_failed(
    run: RunArgument,
    jobs: Jobs = None,
    dask: Dask = None,
    trust: Trust = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Rerun the failed and missing cells of a run."""
    folder = database_path(run).parent
    experiment = read_results(folder).experiment
    if experiment.import_paths() and not trust:
        raise RunError(
            f"{folder}: the stored configuration imports and runs {', '.join(experiment.import_paths())}; if "
            "you trust this code, add --trust."
        )
    _run(experiment, folder, quiet, as_json, jobs=jobs or cpu_count(), dask=dask, retry_failed=True)


def _run(experiment: Experiment, folder: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Run an experiment and show its progress and outcome."""
    notes = messages(quiet=quiet)
    with RunProgress(notes, messages()) as progress:
        try:
            counts = run_cells(experiment, folder, progress, command=command_line(), **options)
        except RunInterrupted as stop:
            raise RunInterrupted(f"{stop}; to continue: {command_line()}") from stop.__cause__
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), **counts}))
    notes.print(
        f"{counts['done']} of {counts['planned']} cells are done ({count(counts['computed'], 'new cell')}, "
        f"{count(counts['ranked'], 'new ranking')}). Results: {folder}"
    )
    if counts["failed"]:
        trust = " --trust" if experiment.import_paths() else ""
        messages().print(
            f"{count(counts['failed'], 'cell')} failed. For the errors: labelsieve bench status {folder}. "
            f"To retry: labelsieve bench retry-failed {folder}{trust}"
        )
    notes.print(f"next: labelsieve report {folder}")
    if counts["failed"]:
        raise typer.Exit(FAILED_CELLS)


@app.command(cls=Command, epilog="Example: labelsieve bench status tiny")
def status(run: RunArgument, as_json: AsJson = False) -> None:
    """Count the finished, failed and missing cells of a run."""
    found = read_status(run)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    console = results()
    rows = found["datasets"]
    keys = {"dataset": "name", "cells": "planned", "done": "done", "failed": "failed", "missing": "missing"}
    columns = {title: [row[key] for row in rows] for title, key in keys.items()}
    columns["cell time"] = [duration(row["seconds"]) for row in rows]
    console.print(lay_out(console, columns, long="dataset"), "", sep="\n")
    failures = found["failures"]
    for failure in failures[:_ERRORS_SHOWN]:
        console.print(one_line(f"failed: {failure['cell']}: {short(failure['error'], 1000)}"), soft_wrap=True)
    if len(failures) > _ERRORS_SHOWN:
        console.print(
            f"and {len(failures) - _ERRORS_SHOWN} more. For all errors with tracebacks, add --json."
        )
    for remark in found["remarks"]:
        console.print(one_line(remark), soft_wrap=True)


@app.command(cls=Command, epilog="Example: labelsieve bench profiles tiny > my.toml")
def profiles(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Profile to print, as a template for yours.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the built-in experiments or print one."""
    if name is not None:
        if name not in PROFILES:
            raise typer.BadParameter(
                f"{name!r} is not a profile; {closest(name, PROFILES)}", param_hint="NAME"
            )
        text = PROFILES[name].read_text("utf-8")
        typer.echo(json.dumps(load_experiment(name).as_dict(), indent=2) if as_json else text, nl=as_json)
        return
    found = {name: load_experiment(name) for name in PROFILES}
    if as_json:
        rows = [{"name": name, **experiment.as_dict()} for name, experiment in found.items()]
        typer.echo(json.dumps(rows, indent=2))
        return
    columns: dict[str, list[object]] = {
        "profile": list(found),
        "description": [experiment.title for experiment in found.values()],
        "datasets": [len(experiment.datasets) for experiment in found.values()],
        "methods": [len(experiment.all_methods()) for experiment in found.values()],
        "folds": [experiment.folds for experiment in found.values()],
    }
    console = results()
    console.print(lay_out(console, columns, long="description"))


@app.command(cls=Command, epilog=MERGE_EPILOG)
def merge(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs or files written by report --summary.")
    ],
    out: Annotated[Path, option("FOLDER", "New run folder, or FILE.csv.gz for means only.")],
    as_json: AsJson = False,
) -> None:
    """Merge the runs of one experiment."""
    if len(runs) < 2:
        raise typer.BadParameter("expected at least 2 runs, got 1", param_hint="RUN")
    if is_summary(out):
        figures = _merge_means(runs, out)
    else:
        means = next((run for run in runs if is_summary(Path(run))), None)
        if means is not None:
            raise typer.BadParameter(
                f"must end in .csv.gz because {means} contains only means, got {str(out)!r}",
                param_hint="--out",
            )
        figures = _merge_results(runs, out)
    if as_json:
        typer.echo(json.dumps(figures))
    messages().print(f"next: labelsieve report {one_line(shlex.quote(str(out)))}")


def _merge_results(runs: list[str], out: Path) -> dict[str, str | int]:
    found = merge_files([database_path(run) for run in runs], out, command=command_line())
    messages().print(
        f"merged {found['rankings']} rankings and {found['judgements']} judgements into {one_line(out)}; "
        f"{found['done']} of {found['planned']} cells are done"
    )
    _note_damage(found["damaged"])
    return {"folder": str(out), **found}


def _note_damage(n_damaged: int) -> None:
    if n_damaged:
        messages().print(
            f"note: {count(n_damaged, 'damaged row')} left out; labelsieve bench run recomputes them."
        )


def _merge_means(runs: list[str], out: Path) -> dict[str, str | int]:
    if out.exists():
        raise RunError(f"{out} already exists. Choose another file with --out.")
    merged = merge_summaries([(run, read_means(find_source(run)[0])) for run in runs], command=command_line())
    with write_errors(out, "choose another file with --out"):
        write_summary(merged, out)
    coverage = merged.facts.coverage
    messages().print(
        f"merged the means of {count(len(merged.datasets), 'dataset')} into {one_line(out)}; "
        f"{coverage.n_done} of {coverage.n_planned} cells are done"
    )
    return {
        "file": str(out),
        "datasets": len(merged.datasets),
        "planned": coverage.n_planned,
        "done": coverage.n_done,
        "failed": coverage.n_failed,
    }


@app.command(cls=Command, epilog=LEADERBOARD_EPILOG)
def leaderboard(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs or files written by report --summary.")
    ],
    html: Annotated[Path, option("FILE", "Page to write. Default: leaderboard.html.")] = Path(
        "leaderboard.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Rank the methods of several runs on one page."""
    parts = [(run, read_means(find_source(run)[0])) for run in runs]
    found = studies(parts)
    for run, summary in parts:
        if not is_comparison(summary):
            messages().print(f"note: {one_line(run)} is left out because it has no results of methods.")
    write_text(html, render_leaderboard(found))
    content: list[dict[str, Any]] = [
        {
            "name": study.name,
            "findings": [text for texts in find(study) for text in texts],
            "ranks": {judge: study.standing(classifier=judge).ranks for judge in study.names["classifier"]},
        }
        for study in found
    ]
    if as_json:
        typer.echo(json.dumps({"page": str(html), "studies": content}, indent=2))
        return
    console = results()
    for study, shown in zip(found, content, strict=True):
        console.print(f"{one_line(study.name)}: {study.settings}", "", sep="\n")
        for text in shown["findings"]:
            console.print(one_line(text))
        places = {name: None for by in shown["ranks"].values() for name in by}
        columns = {"method": list(places)}
        for judge, by in shown["ranks"].items():
            columns[judge] = [f"{by[name]:.2f}" if name in by else "-" for name in places]
        console.print("", lay_out(console, columns, long="method", title="average ranks"), "", sep="\n")
    console.print(f"wrote {one_line(html)}", soft_wrap=True)


@app.command(cls=Command, epilog=EXPORT_EPILOG)
def export(
    run: RunArgument,
    to: Annotated[
        str | None, option("csv|parquet", "File format. Default: the suffix of --out, or csv.")
    ] = None,
    out: Annotated[
        Path | None,
        option("FILE", "File to write. Default: results.csv or results.parquet in the run folder."),
    ] = None,
) -> None:
    """Export the results of a run to one table.

    It has a row for each size and metric.
    """
    form = to or (out.suffix[1:] if out is not None else "csv")
    if form not in FORMATS:
        raise typer.BadParameter(f"must be one of {', '.join(FORMATS)}, got {form!r}", param_hint="--to")
    source = database_path(run)
    target = out or source.with_name(f"results.{form}")
    with write_errors(target, "choose another file with --out"):
        found = read_results(source)
        n_rows = write_rows(found, target, form)
    _note_damage(found.n_altered)
    typer.echo(one_line(f"wrote {n_rows} rows to {target}"))


app.command(cls=Command, epilog=bench_doctor.EPILOG)(bench_doctor.doctor)
