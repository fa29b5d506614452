"""``labelsieve bench doctor``: how much what papers leave open changes the result."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from labelsieve.bench import require_packages
from labelsieve.cli._console import messages, results, shown_if_long, shows_progress
from labelsieve.cli._options import AsJson, Candidates, DataOptions, Ignore, Labels, Missing, Nominal
from labelsieve.cli.bench_effects import markdown, print_diagnosis

if TYPE_CHECKING:
    from labelsieve.bench.config import DatasetSpec

EPILOG = """\
Examples:

labelsieve bench doctor digits

labelsieve bench doctor birds --method sum-f --folds 5 --size 5% --size 20%

labelsieve bench doctor data.csv --labels 3 --size 4 --markdown
"""


def doctor(
    dataset: Annotated[
        str,
        typer.Argument(metavar="DATASET", help="Name of the catalogue, or a data file."),
    ],
    labels: Labels = None,
    candidates: Candidates = None,
    ignore: Ignore = None,
    nominal: Nominal = None,
    missing: Missing = None,
    method: Annotated[
        str, typer.Option("--method", "-m", help="See: labelsieve methods; or an import path module:Class.")
    ] = "pml-fsmir",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds, noise and method.")] = 0,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", help="Features kept, 10% or a number; repeatable; 10% by default."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes; all cores by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep the run in this folder, to resume and report it.")
    ] = None,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown for documents.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")] = False,
) -> None:
    """Measure how much each open convention of the protocol changes each metric.

    The defaults are compared with one change at a time, on the same folds and with the same ranking wherever
    the change leaves them alone.
    """
    require_packages()
    from joblib import cpu_count

    from labelsieve.bench.doctor import diagnose

    if as_json and as_markdown:
        raise typer.BadParameter("give one of --json and --markdown, not both", param_hint="--markdown")
    percent, counts = _parse_sizes(sizes or ["10%"])
    console = messages(quiet=quiet)
    options = DataOptions(
        [dataset], labels, candidates=candidates, ignore=ignore, nominal=nominal, missing=missing
    )
    spec = _find_data(options, console)
    with _bar(console) as advance:
        found = diagnose(
            spec,
            method,
            folds=folds,
            seed=seed,
            percent=percent,
            counts=counts,
            jobs=jobs or cpu_count(),
            folder=os.getcwd(),
            out=out,
            progress=advance,
        )
    for warning in found.warnings:
        console.print(f"note: {warning}")
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, allow_nan=False))
    elif as_markdown:
        typer.echo(markdown(found))
    else:
        print_diagnosis(found, results())


def _find_data(data: DataOptions, console: Console) -> DatasetSpec:
    """Return the dataset to measure on, downloaded if necessary."""
    from labelsieve.bench.config import DatasetSpec

    [dataset] = data.files
    if data.find_entry(console) is None:
        return DatasetSpec.model_validate({"name": Path(dataset).stem, "path": dataset, **data.given})
    return DatasetSpec(name=dataset)


def _parse_sizes(texts: list[str]) -> tuple[list[float], list[int]]:
    """Read percentages or numbers of features, in rising order."""
    percent, counts = [], []
    for text in texts:
        try:
            if text.endswith("%"):
                percent.append(float(text.removesuffix("%")))
            else:
                counts.append(int(text))
        except ValueError:
            raise typer.BadParameter(
                f"a percentage such as 10% or a number such as 20 was expected, got {text!r}",
                param_hint="--size",
            ) from None
    if percent and counts:
        raise typer.BadParameter("give percentages or numbers of features, not both", param_hint="--size")
    if not all(0 < size <= 100 for size in percent) or not all(size >= 1 for size in counts):
        raise typer.BadParameter(
            f"above 0 and at most 100 %, or at least 1 feature, was expected, got {' '.join(texts)}",
            param_hint="--size",
        )
    return sorted(set(percent)), sorted(set(counts))


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[int, int], None]]:
    """Show a bar, from the second second on and only on a terminal; gives what is told the progress."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console, transient=True, disable=not shows_progress(console))
    task = progress.add_task("rankings judged", total=None)
    with shown_if_long(progress):
        yield lambda n_finished, n_all: progress.update(task, completed=n_finished, total=n_all)
