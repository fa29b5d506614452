"""What a fit found, as tables for the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from labelsieve.cli.console import bar
from labelsieve.report.selection import Selection

_BAR_WIDTH = 20


def ranking_table(found: Selection, console: Console, *, everything: bool = False) -> Table:
    """Draw rank, name and score of the selected or of all features, which marks the selected."""
    most = max(abs(feature.score) for feature in found.features) or 1.0
    # A bar is worth less than a name.
    width = min(_BAR_WIDTH, max(0, console.width - 40))
    table = _table()
    table.add_column("rank", justify="right", no_wrap=True, min_width=4)
    table.add_column("feature", no_wrap=True, overflow="ellipsis")
    table.add_column("score", justify="right", no_wrap=True)
    if width:
        table.add_column("", width=width, no_wrap=True)
    if everything:
        table.add_column("selected")
    for feature in found.features if everything else found.selected:
        cells = [str(feature.rank), feature.name, f"{feature.score:#.4g}"]
        if width:
            cells.append(bar(console, max(feature.score, 0) / most, width))
        if everything:
            cells.append("yes" if feature.selected else "")
        table.add_row(*cells)
    return table


def suspects_table(found: Selection, console: Console, n_shown: int) -> Table:
    """Draw the candidates that the selected features support least."""
    table = _table("candidate labels that look wrong")
    table.add_column("sample", justify="right")
    table.add_column("label", no_wrap=True, overflow="ellipsis")
    table.add_column("support", justify="right", no_wrap=True)
    has_confidence = found.suspects[0].confidence is not None and console.width >= 60
    if has_confidence:
        table.add_column("method's confidence", justify="right", no_wrap=True)
    if found.truth is not None:
        table.add_column("truth", no_wrap=True)
    for suspect in found.suspects[:n_shown]:
        cells = [str(suspect.sample), suspect.label, f"{suspect.support:.2f}"]
        if has_confidence:
            cells.append(f"{suspect.confidence:.2f}")
        if found.truth is not None:
            cells.append("wrong" if suspect.wrong else "right")
        table.add_row(*cells)
    return table


def _table(title: str | None = None) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
