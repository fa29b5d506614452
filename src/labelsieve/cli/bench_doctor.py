"""``labelsieve bench doctor``: measure the effect of each protocol convention on the metrics."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labelsieve.bench.config import DatasetSpec
from labelsieve.bench.doctor import Diagnosis, Finding, diagnose
from labelsieve.cli._console import messages, results
from labelsieve.cli._options import AsJson, DataOptions, Jobs, Quiet, option, parse_amount, with_data_options
from labelsieve.cli._run_progress import RunProgress
from labelsieve.metrics import METRICS
from labelsieve.report.tables import metric_title, metric_words

_LARGEST_SHOWN = 3
_METRICS_PER_TABLE = 4
_NO_CHANGE, _NOT_APPLICABLE = "=", "-"
_DEFAULTS = "protocol defaults"

EPILOG = """\
\b
Examples:
  labelsieve bench doctor digits
  labelsieve bench doctor birds --method sum-f --folds 5 --size 5% --size 20%
  labelsieve bench doctor data.csv --labels 3 --size 4
"""


# The configuration of an experiment does not support these options.
@partial(with_data_options, without=("id", "label_sep", "text", "role", "max_memory"))
def doctor(
    data: DataOptions,
    method: Annotated[
        str,
        option(
            "NAME",
            "Method (see labelsieve methods) or import path module:Class.",
            "--method",
            "-m",
        ),
    ] = "pml-fsmir",
    folds: Annotated[int, option("N", "Number of cross-validation folds.", min=2)] = 3,
    seed: Annotated[int, option("N", "Random seed of folds, noise and method.", min=0)] = 0,
    sizes: Annotated[
        list[str] | None,
        option(
            "K",
            "Number of features to keep: an integer or a fraction (20%). Repeatable. Default: 10%.",
            "--size",
        ),
    ] = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, option("FOLDER", "Folder to store the run in, for resuming and reporting.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure the effect of each protocol convention on the metrics.

    One convention is changed at a time. Folds and rankings stay the same unless the convention affects them.
    """
    percent, counts = _parse_sizes(sizes or ["10%"])
    console = messages(quiet=quiet)
    dataset: dict[str, Any] = {"name": data.files[0]}
    if data.find_entry(console) is None:
        dataset = {"name": Path(data.files[0]).stem, "path": data.files, **data.given}
    with RunProgress(console, console) as progress:
        found = diagnose(
            DatasetSpec.model_validate(dataset),
            method,
            folds=folds,
            seed=seed,
            percent=percent,
            counts=counts,
            jobs=jobs or cpu_count(),
            folder=os.getcwd(),
            out=out,
            observer=progress,
        )
    for warning in found.warnings:
        console.print(f"note: {warning}")
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, allow_nan=False))
    else:
        _print(found, results())


def _parse_sizes(texts: list[str]) -> tuple[list[float], list[int]]:
    """Parse percentages or numbers of features and sort them."""
    amounts = {parse_amount(text, "--size") for text in texts}
    counts = sorted(amount for amount in amounts if isinstance(amount, int))
    percent = sorted(round(100 * amount, 9) for amount in amounts if isinstance(amount, float))
    if percent and counts:
        raise typer.BadParameter("must be all fractions or all integers, got both", param_hint="--size")
    return percent, counts


def _print(found: Diagnosis, console: Console) -> None:
    """Print what matters most, then tables of values and differences that fit 80 columns."""
    for sentence in _sentences(found):
        console.print(sentence)
    console.print()
    metrics = list(found.values)
    for start in range(0, len(metrics), _METRICS_PER_TABLE):
        chunk = metrics[start : start + _METRICS_PER_TABLE]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("convention\n  alternative", no_wrap=True)
        for metric in chunk:
            title = metric_title(metric, METRICS[metric].direction)
            table.add_column(title.replace(" ", "\n", 1), justify="right", no_wrap=True)
        table.add_row(_DEFAULTS, *(f"{found.values[metric].mean():.3f}" for metric in chunk))
        for finding in found.findings:
            label = f"{finding.convention}\n  {finding.choice}"
            table.add_row(label, *(_cell(finding, metric) for metric in chunk))
        console.print(table)
        console.print()
    console.print(
        f"Below each value is its difference from the {_DEFAULTS}. * marks differences of more than two "
        f"standard errors over the {found.experiment.folds} folds, {_NO_CHANGE} means no difference, and "
        f"{_NOT_APPLICABLE} means not applicable."
    )
    for note in _notes(found):
        console.print(f"- {note}", soft_wrap=True)


def _cell(finding: Finding, metric: str) -> Text:
    effect = finding.effects.get(metric)
    if effect is None or effect.is_none:
        return Text(f"\n{_NOT_APPLICABLE if effect is None else _NO_CHANGE}", style="dim")
    style = "dim"
    if metric in finding.outstanding:
        is_better = (effect.difference > 0) == (METRICS[metric].direction == "higher")
        style = "green" if is_better else "red"
    change = f"{effect.difference:+.3f}{'*' if effect.stands_out else ''}"
    return Text.assemble(f"{effect.value:.3f}\n", (change, style))


def _sentences(found: Diagnosis) -> list[str]:
    """Summarise the measurement and the conventions that matter most or not at all."""
    counts = sorted({count for _, count in found.sizes})
    sentences = [
        f"{found.facts.name}, {found.method}: {', '.join(map(str, counts))} of {found.facts.n_features} features, "
        f"{found.experiment.folds} folds, seed {found.experiment.seeds[0]}."
    ]
    largest = found.largest(_LARGEST_SHOWN)
    if not largest:
        sentences.append("No alternative changes a metric by more than two standard errors.")
    for finding, metric in largest:
        effect = finding.effects[metric]
        before = effect.value - effect.difference
        sentences.append(
            f"{finding}: {metric_words(metric)} changes from {before:.3f} to {effect.value:.3f}."
        )
    same: dict[str, list[str]] = {}
    for finding in found.findings:
        if finding.effects and not finding.changes_something:
            same.setdefault(finding.convention, []).append(finding.choice)
    if same:
        names = [f"{convention}: {' or '.join(choices)}" for convention, choices in same.items()]
        sentences.append("\n  ".join(["No effect on any metric:", *names]))
    return sentences


def _notes(found: Diagnosis) -> list[str]:
    """Explain the alternatives for this dataset and why some have no effect."""
    notes = []
    for finding in found.findings:
        reference = f"compared with {finding.reference}" if finding.reference else ""
        remarks = ["" if finding.effects else "not applicable", finding.note, reference]
        if any(remarks):
            notes.append(f"{finding}: {'; '.join(filter(None, remarks))}.")
    return notes
