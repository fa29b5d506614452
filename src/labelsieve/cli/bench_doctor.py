"""``labelsieve bench doctor``: measure how much each open convention changes the results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from labelsieve.bench import require_packages
from labelsieve.cli._console import messages, results, shown_if_long, shows_progress
from labelsieve.cli._options import AsJson, Candidates, DataOptions, Ignore, Labels, Missing, Nominal
from labelsieve.metrics import METRICS

if TYPE_CHECKING:
    from labelsieve.bench.config import DatasetSpec
    from labelsieve.bench.doctor import Diagnosis, Effect, Finding

_LARGEST_SHOWN = 3
# Width that rich puts between two columns of this kind of table.
_GAP = 3
_NO_CHANGE, _NOT_APPLICABLE = "=", "-"
_DEFAULTS = "protocol defaults"

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
        typer.echo(_markdown(found))
    else:
        _print(found, results())


def _find_data(data: DataOptions, console: Console) -> DatasetSpec:
    """Return the dataset of a file or of a name; downloads what is missing."""
    from labelsieve.bench.config import DatasetSpec

    [dataset] = data.files
    if data.find_entry(console) is None:
        return DatasetSpec.model_validate({"name": Path(dataset).stem, "path": dataset, **data.given})
    return DatasetSpec(name=dataset)


def _parse_sizes(texts: list[str]) -> tuple[list[float], list[int]]:
    """Read percentages or numbers of features, in increasing order."""
    percent, counts = [], []
    for text in texts:
        try:
            if text.endswith("%"):
                percent.append(float(text.removesuffix("%")))
            else:
                counts.append(int(text))
        except ValueError:
            raise typer.BadParameter(
                f"expected a percentage such as 10% or a number such as 20, got {text!r}",
                param_hint="--size",
            ) from None
    if percent and counts:
        raise typer.BadParameter("give percentages or numbers of features, not both", param_hint="--size")
    if not all(0 < size <= 100 for size in percent) or not all(size >= 1 for size in counts):
        raise typer.BadParameter(
            f"expected percentages above 0 and up to 100, or numbers from 1, got {' '.join(texts)}",
            param_hint="--size",
        )
    return sorted(set(percent)), sorted(set(counts))


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal if it takes long; yields the function that advances it."""
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


def _print(found: Diagnosis, console: Console) -> None:
    """Print what matters most, then the tables, as many as the width needs."""
    for sentence in _sentences(found):
        console.print(sentence)
    console.print()
    for metrics in _chunks(found, console):
        console.print(_table(found, metrics, console))
        console.print()
    console.print(
        f"Below each value: its difference from the {_DEFAULTS}, with * if that is more than two standard "
        f"errors of the differences over the {found.experiment.folds} folds. "
        f"{_NO_CHANGE} exactly the same, {_NOT_APPLICABLE} not applicable."
    )
    for note in _notes(found):
        console.print(f"- {note}", soft_wrap=True)


def _markdown(found: Diagnosis) -> str:
    """Write the sentences, one table and the notes as Markdown."""
    metrics = list(found.values)
    strongest = _strongest(found)
    rows = [
        ["convention", "instead", *(_title(metric, ascii_only=False) for metric in metrics)],
        ["---", "---", *("---:" for _ in metrics)],
        [_DEFAULTS, "", *(f"{found.values[metric].mean():.3f}" for metric in metrics)],
    ]
    for finding in found.findings:
        cells = []
        for metric in metrics:
            effect = finding.effects.get(metric)
            if effect is None or effect.is_none:
                cells.append(_NOT_APPLICABLE if effect is None else _NO_CHANGE)
                continue
            change = _change(effect).replace("*", "\\*")
            cell = f"{effect.value:.3f} ({change})"
            cells.append(f"**{cell}**" if strongest.get(metric) is finding else cell)
        rows.append([finding.alternative.convention, finding.alternative.choice, *cells])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    legend = (
        f"In brackets: the difference from the {_DEFAULTS}; \\* more than two standard errors of the "
        f"differences over the {found.experiment.folds} folds; bold: the largest of these in its column; "
        f"`{_NO_CHANGE}` exactly the same; `{_NOT_APPLICABLE}` not applicable."
    )
    notes = "\n".join(f"- {note}" for note in _notes(found))
    return "\n\n".join([" ".join(_sentences(found)), table, legend, notes])


def _sentences(found: Diagnosis) -> list[str]:
    """Describe what was measured, what matters most and what does not matter."""
    counts = sorted({count for _, count in found.sizes})
    sentences = [
        f"{found.facts.name}, {found.method}: {', '.join(map(str, counts))} of {found.facts.n_features} features, "
        f"{found.experiment.folds} folds, seed {found.experiment.seeds[0]}."
    ]
    effects = [
        f"{finding.alternative.words} takes {_name(metric)} from {effect.value - effect.difference:.3f} to "
        f"{effect.value:.3f}"
        for finding, metric in found.largest(_LARGEST_SHOWN)
        for effect in [finding.effects[metric]]
    ]
    if effects:
        sentences.append(f"What matters most: {'; '.join(effects)}.")
    else:
        sentences.append("No choice changes a metric by more than two standard errors.")
    same = [
        str(finding.alternative)
        for finding in found.findings
        if finding.effects and not finding.changes_something
    ]
    if same:
        sentences.append(f"No change at all: {'; '.join(same)}.")
    return sentences


def _notes(found: Diagnosis) -> list[str]:
    """Explain what the choices mean for this data, and why some change nothing."""
    notes = []
    for finding in found.findings:
        reference = finding.alternative.reference
        remarks = [
            "" if finding.effects else "not applicable",
            finding.note,
            f"compared with {reference}" if reference else "",
        ]
        if any(remarks):
            notes.append(f"{finding.alternative}: {'; '.join(filter(None, remarks))}.")
    return notes


def _chunks(found: Diagnosis, console: Console) -> list[list[str]]:
    """Distribute the metrics over tables that fit the width."""
    first = max(len(_DEFAULTS), *(len(line) for finding in found.findings for line in _labels(finding)))
    chunks: list[list[str]] = [[]]
    width = first
    for metric in found.values:
        needed = _GAP + max(len("+0.000*"), *map(len, _heading(metric, console)))
        if chunks[-1] and width + needed > console.width:
            chunks.append([])
            width = first
        chunks[-1].append(metric)
        width += needed
    return chunks


def _table(found: Diagnosis, metrics: list[str], console: Console) -> Table:
    """Draw conventions against metrics: value above, difference below."""
    strongest = _strongest(found)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("convention\n  instead", no_wrap=True)
    for metric in metrics:
        table.add_column("\n".join(_heading(metric, console)), justify="right", no_wrap=True)
    table.add_row(_DEFAULTS, *(f"{found.values[metric].mean():.3f}" for metric in metrics))
    for finding in found.findings:
        cells = [_cell(finding, metric, is_strongest=strongest.get(metric) is finding) for metric in metrics]
        table.add_row("\n".join(_labels(finding)), *cells)
    return table


def _cell(finding: Finding, metric: str, *, is_strongest: bool) -> Text:
    effect = finding.effects.get(metric)
    if effect is None or effect.is_none:
        return Text(f"\n{_NOT_APPLICABLE if effect is None else _NO_CHANGE}", style="dim")
    style = "dim"
    if metric in finding.outstanding:
        is_better = (effect.difference > 0) == (METRICS[metric].direction == "higher")
        style = f"{'bold ' if is_strongest else ''}{'green' if is_better else 'red'}"
    return Text.assemble(f"{effect.value:.3f}\n", (_change(effect), style))


def _heading(metric: str, console: Console) -> tuple[str, str]:
    """Name a metric in two lines."""
    first, *rest = _title(metric, console.options.ascii_only).rsplit(" ", 2)
    return first, " ".join(rest)


def _strongest(found: Diagnosis) -> dict[str, Finding]:
    """Find the largest difference that stands out, for every metric."""
    strongest = {}
    for metric in found.values:
        rivals = [finding for finding in found.findings if metric in finding.outstanding]
        if rivals:
            strongest[metric] = max(rivals, key=lambda finding: finding.outstanding[metric])
    return strongest


def _labels(finding: Finding) -> tuple[str, str]:
    return finding.alternative.convention, f"  {finding.alternative.choice}"


def _change(effect: Effect) -> str:
    return f"{effect.difference:+.3f}{'*' if effect.stands_out else ''}"


def _name(metric: str) -> str:
    return metric.replace("_", " ").replace("f1", "F1")


def _title(metric: str, ascii_only: bool) -> str:
    """Name a metric, with an arrow in the better direction."""
    arrows = {"higher": "up", "lower": "down"} if ascii_only else {"higher": "↑", "lower": "↓"}
    return f"{_name(metric)} {arrows[METRICS[metric].direction]}"
