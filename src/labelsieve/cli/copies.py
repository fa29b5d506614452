"""Copies of the user's data with fewer columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labelsieve._text import printable
from labelsieve.cli.opening import Data
from labelsieve.cli.target import told_if_unwritable
from labelsieve.io.copies import write_selected


def write_copy(data: Data, kept: Sequence[int], path: Path) -> str:
    """Write the data with what was selected; return a note for the user, or "".

    Parameters
    ----------
    kept : sequence of int
        Positions of the selected columns among those that are ranked.
    """
    chosen = [data.dataset.ranked[place] for place in kept]
    with told_if_unwritable(path):
        is_table = write_selected(data.dataset, chosen, path)
    if is_table:
        return ""
    ending = Path(data.dataset.source).suffix
    return f"note: {printable(path)} holds the features made of the columns; {ending} holds the columns."
