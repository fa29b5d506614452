"""What a fit found, as tables for the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from labelsieve._text import printable
from labelsieve.cli.console import bar
from labelsieve.inspection.selection import Selection

_BAR_WIDTH, _LEAST_BAR_WIDTH = 20, 5
# What rich puts between two columns of this kind of table.
_GAP = 3


def ranking_table(
    found: Selection, console: Console, *, width: int | None = None, everything: bool = False
) -> Table:
    """Draw rank, name and score of the selected features, or of all with the selected marked."""
    listed = found.features if everything else found.selected
    most = max(abs(feature.score) for feature in found.features) or 1.0
    width = width or console.width
    columns = {
        "rank": [str(feature.rank) for feature in listed],
        "feature": [feature.name for feature in listed],
        "score": [f"{feature.score:#.4g}" for feature in listed],
    }
    if everything:
        columns["selected"] = ["yes" if feature.selected else "" for feature in listed]
    # A bar is worth less than a name.
    free = width - sum(max(len(name), *map(len, cells)) + _GAP for name, cells in columns.items())
    bar_width = min(free, _BAR_WIDTH)
    if bar_width >= _LEAST_BAR_WIDTH:
        columns[""] = [bar(console, max(feature.score, 0) / most, bar_width) for feature in listed]
    return lay_out(width, columns, long="feature")


def suspects_table(found: Selection, console: Console, n_shown: int) -> Table:
    """Draw the candidates that the selected features support least."""
    listed = found.suspects[:n_shown]
    columns = {
        "sample": [str(suspect.sample) for suspect in listed],
        "label": [suspect.label for suspect in listed],
        "support": [f"{suspect.support:.2f}" for suspect in listed],
    }
    if listed[0].confidence is not None and console.width >= 60:
        columns["confidence"] = [f"{suspect.confidence:.2f}" for suspect in listed]
    if found.truth is not None:
        columns["truth"] = ["wrong" if suspect.wrong else "right" for suspect in listed]
    return lay_out(console.width, columns, long="label", title="candidate labels to doubt first")


def lay_out(width: int, columns: dict[str, list[str]], *, long: str, title: str | None = None) -> Table:
    """Lay out columns of which one holds names of any length: that one is cut where the terminal ends."""
    columns = {**columns, long: [printable(name) for name in columns[long]]}
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items() if name != long}
    room = width - sum(widths.values()) - _GAP * len(widths)
    for name, cells in columns.items():
        is_number = cells[0][-1:].isdigit() and name != long
        table.add_column(
            name,
            justify="right" if is_number else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=widths.get(name),
            max_width=max(room, len(long)) if name == long else None,
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table
