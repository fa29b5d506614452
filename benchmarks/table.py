"""Print aligned Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["print_table"]


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under headings. The first column is text, the others are numbers."""
    lines = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    for line in (lines[0], rule, *lines[1:]):
        cells = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        print("| " + " | ".join((line[0].ljust(widths[0]), *cells)) + " |")
    print(flush=True)
