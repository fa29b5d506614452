"""A diagnosis of conventions as tables: for the terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labelsieve.metrics import METRICS

if TYPE_CHECKING:
    from labelsieve.bench.doctor import Diagnosis, Effect, Finding

_LARGEST_TOLD = 3
# What rich puts between two columns of this kind of table.
_GAP = 3
_NO_CHANGE, _NOT_APPLICABLE = "=", "-"
_DEFAULTS = "protocol defaults"


def print_diagnosis(found: Diagnosis, console: Console) -> None:
    """Say what matters most, then draw the tables, as many as the width needs."""
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


def markdown(found: Diagnosis) -> str:
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
    """Say in plain words what was measured, what matters most and what does not matter."""
    counts = sorted({count for _, count in found.sizes})
    sentences = [
        f"{found.facts.name}, {found.method}: {', '.join(map(str, counts))} of {found.facts.n_features} features, "
        f"{found.experiment.folds} folds, seed {found.experiment.seeds[0]}."
    ]
    effects = [
        f"{finding.alternative.words} takes {_name(metric)} from {effect.value - effect.difference:.3f} to "
        f"{effect.value:.3f}"
        for finding, metric in found.largest(_LARGEST_TOLD)
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
    """Say what the choices mean for this data, and why some change nothing."""
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
    first = max(len(line) for finding in found.findings for line in _labels(finding))
    first = max(first, len(_DEFAULTS))
    chunks: list[list[str]] = [[]]
    width = first
    for metric in found.values:
        lines = _title(metric, console.options.ascii_only).rsplit(" ", 2)
        needed = _GAP + max(len("+0.000*"), len(lines[0]), len(" ".join(lines[1:])))
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
        words = _title(metric, console.options.ascii_only).rsplit(" ", 2)
        table.add_column("\n".join((words[0], " ".join(words[1:]))), justify="right", no_wrap=True)
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


def _strongest(found: Diagnosis) -> dict[str, Finding]:
    """For every metric, the finding with the largest difference that stands out."""
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
    """Name a metric, with an arrow to where it is better."""
    arrows = {"higher": "up", "lower": "down"} if ascii_only else {"higher": "↑", "lower": "↓"}
    return f"{_name(metric)} {arrows[METRICS[metric].direction]}"
