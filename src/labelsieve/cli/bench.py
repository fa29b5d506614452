"""``labelsieve bench``: run experiments, see how they stand, mend them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from labelsieve._text import closest, one_line, printable, shortened
from labelsieve.bench import RunError, require_packages
from labelsieve.cli import bench_doctor, bench_files
from labelsieve.cli._console import duration, messages, results, typed
from labelsieve.cli._options import AsJson

if TYPE_CHECKING:
    from labelsieve.bench.config import Experiment
    from labelsieve.bench.runner import Summary

#: Exit code of a run that came to its end with cells that failed.
FAILED_CELLS = 3

_ERRORS_SHOWN = 5

app = typer.Typer(help="Run experiments: resumable, one cell at a time.")

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Run folder, or its name below runs/.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Cells at the same time; all cores by default.")
]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Run the cells on this dask scheduler.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only what went wrong.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Import the methods, classifiers and metrics that the results file names by path."
    ),
]

_RUN_EPILOG = """\
Examples:

labelsieve bench run tiny

labelsieve bench run paper-lite --jobs 2

labelsieve bench run my.toml --out runs/mine

labelsieve bench run paper-weights --rankings runs/paper

labelsieve bench run paper --datasets birds --datasets yeast --out runs/paper-1

A run can be stopped or killed at any moment; the same command goes on where it was.
"""


@app.callback(invoke_without_command=True)
def bench(context: typer.Context) -> None:
    """Run experiments, see how they stand, mend them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("run", epilog=_RUN_EPILOG)
def run_command(
    config: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE-or-FILE", help="Built-in profile (see: bench profiles) or TOML file."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/NAME by default.")] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this data set of the experiment, and others so named: a part, to be merged later.",
        ),
    ] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            help="Go on although finished cells no longer count, or rankings are computed again.",
        ),
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed cells again, for example with higher limits.")
    ] = False,
    rankings: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Take rankings over from this run, where they are the same."),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the cells of an experiment that are not finished yet."""
    require_packages()
    from labelsieve.bench.config import load_experiment, restrict
    from labelsieve.bench.results_file import database_path

    experiment = load_experiment(config)
    if datasets:
        experiment = restrict(experiment, datasets)
    folder = out or Path("runs") / experiment.name
    options = {
        "accept_changes": accept_changes,
        "retry_failed": retry_failed,
        "rankings": None if rankings is None else database_path(rankings),
    }
    _run(experiment, folder, jobs, dask, quiet, as_json, **options)


@app.command("retry-failed")
def retry_failed(
    run: RunArgument,
    jobs: Jobs = None,
    dask: Dask = None,
    trust: Trust = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the failed cells of a run again, and whatever is missing.

    Example: labelsieve bench retry-failed runs/tiny
    """
    require_packages()
    from labelsieve.bench.results import read_results
    from labelsieve.bench.results_file import database_path

    folder = database_path(run).parent
    experiment = read_results(folder).experiment
    if experiment.import_paths() and not trust:
        raise RunError(
            f"{folder}: its configuration imports {', '.join(experiment.import_paths())}, which runs that code; if "
            "you trust this file, add --trust."
        )
    _run(experiment, folder, jobs, dask, quiet, as_json, retry_failed=True)


@app.command()
def status(run: RunArgument, as_json: AsJson = False) -> None:
    """Show how a run stands: finished, failed and missing cells of every data set.

    Example: labelsieve bench status tiny
    """
    require_packages()
    from labelsieve.bench.status import read_status

    found = read_status(run)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    console = results()
    table = Table("data set")
    for title in ("cells", "done", "failed", "missing", "cell time"):
        table.add_column(title, justify="right")
    for row in found.datasets:
        table.add_row(
            printable(row.name),
            str(row.planned),
            str(row.done),
            str(row.failed),
            str(row.missing),
            duration(row.seconds),
        )
    console.print(table)
    for failure in found.failures[:_ERRORS_SHOWN]:
        console.print(one_line(f"failed: {failure.cell}: {shortened(failure.error)}"), soft_wrap=True)
    if len(found.failures) > _ERRORS_SHOWN:
        console.print(f"and {len(found.failures) - _ERRORS_SHOWN} more; all with tracebacks: --json")
    for remark in found.remarks:
        console.print(one_line(remark), soft_wrap=True)


@app.command()
def repair(run: RunArgument) -> None:
    """Save the cells of a damaged results file that can still be read; the damaged file is kept beside it.

    Example: labelsieve bench repair runs/tiny
    """
    require_packages()
    from labelsieve.bench.repair import repair as save_readable
    from labelsieve.bench.results_file import database_path

    path = database_path(run)
    saved = save_readable(path)
    if saved is None:
        typer.echo(one_line(f"nothing is wrong with {path}; it stays as it is"))
        return
    typer.echo(
        one_line(f"{saved.n_cells} cells saved to {saved.path}; the damaged file is now {saved.damaged}")
    )


@app.command()
def profiles(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Print this one, to begin one's own with.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the built-in experiments, or print one.

    Example: labelsieve bench profiles tiny > my.toml
    """
    require_packages()
    from labelsieve.bench.config import PROFILES, load_experiment

    if name is not None:
        if name not in PROFILES:
            raise typer.BadParameter(f"{name!r} is no profile; {closest(name, PROFILES)}", param_hint="NAME")
        text = PROFILES[name].read_text("utf-8")
        typer.echo(json.dumps(load_experiment(name).as_dict(), indent=2) if as_json else text, nl=as_json)
        return
    rows = [(name, load_experiment(name)) for name in PROFILES]
    if as_json:
        typer.echo(
            json.dumps([{"name": name, **experiment.as_dict()} for name, experiment in rows], indent=2)
        )
        return
    table = Table("profile", "what it is")
    for title in ("data sets", "methods", "folds"):
        table.add_column(title, justify="right")
    for name, experiment in rows:
        n_methods = len(experiment.all_methods())
        table.add_row(
            name, experiment.title, str(len(experiment.datasets)), str(n_methods), str(experiment.folds)
        )
    results().print(table)


app.command(epilog=bench_files.MERGE_EPILOG)(bench_files.merge)
app.command(epilog=bench_files.EXPORT_EPILOG)(bench_files.export)
app.command(epilog=bench_doctor.EPILOG)(bench_doctor.doctor)


def _run(
    experiment: Experiment,
    folder: Path,
    jobs: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run, show the progress, and say how it ended."""
    from joblib import cpu_count

    from labelsieve.bench import RunInterrupted
    from labelsieve.bench.runner import run
    from labelsieve.cli.bench_progress import RunProgress

    notes = messages(quiet=quiet)
    jobs = jobs or cpu_count()
    with RunProgress(notes, messages(), jobs) as progress:
        try:
            summary = run(experiment, folder, progress, jobs=jobs, dask=dask, command=typed(), **options)
        except RunInterrupted as stop:
            raise RunInterrupted(f"{stop}; go on with: {typed()}") from stop.__cause__
    _tell(summary, folder, notes, as_json, bool(experiment.import_paths()))
    if summary.n_failed:
        raise typer.Exit(FAILED_CELLS)


def _tell(summary: Summary, folder: Path, notes: Any, as_json: bool, trusting: bool) -> None:
    if as_json:
        figures = {
            "folder": str(folder),
            "planned": summary.n_planned,
            "done": summary.n_done,
            "failed": summary.n_failed,
            "computed": summary.n_computed,
            "ranked": summary.n_ranked,
        }
        typer.echo(json.dumps(figures))
    rankings = f", with {summary.n_ranked} rankings" if summary.n_computed or summary.n_ranked else ""
    notes.print(
        f"{summary.n_done} of {summary.n_planned} cells are done, {summary.n_computed} computed now{rankings}; "
        f"results in {folder}"
    )
    if summary.n_failed:
        messages().print(
            f"{summary.n_failed} cells failed; see: labelsieve bench status {folder}; "
            f"try again with: labelsieve bench retry-failed {folder}{' --trust' if trusting else ''}"
        )
    notes.print(f"next: labelsieve report {folder}")
