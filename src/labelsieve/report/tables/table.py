"""A table as a value: rows of entries under headings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

__all__ = ["Column", "Entry", "Mark", "Table", "name_columns", "text_columns"]

#: What an entry stands out by: the best and second best of its row, or a reference ahead of every method.
Mark = Literal["", "best", "second", "ahead"]

_MISSING = "–"


@dataclass(frozen=True)
class Entry:
    """One entry of a table.

    Parameters
    ----------
    value : float, str or None
        What it holds; None is a gap.
    spread : float or None, default=None
        Standard deviation beside a number.
    mark : {"", "best", "second", "ahead"}
        How it stands out.
    form : str, default=".3f"
        Format of a number; "p" is that of p-values.
    words : str, default=""
        What readers see instead of the value, by which alone the table sorts.
    """

    value: float | str | None
    spread: float | None = None
    mark: Mark = ""
    form: str = ".3f"
    words: str = ""

    @property
    def is_gap(self) -> bool:
        """Whether there is nothing to show."""
        return self.value is None or (isinstance(self.value, float) and math.isnan(self.value))

    @property
    def text(self) -> str:
        """The value without its spread, for readers.

        Examples
        --------
        >>> Entry(0.12345).text, Entry(None).text, Entry(1e-5, form="p").text, Entry(7).text
        ('0.123', '–', '<0.001', '7')
        """
        if self.words:
            return self.words
        if self.is_gap:
            return _MISSING
        if not isinstance(self.value, float):
            return str(self.value)
        if math.isinf(self.value):
            return "∞" if self.value > 0 else "−∞"
        if self.form == "p":
            return "<0.001" if self.value < 0.001 else f"{self.value:.3f}"
        # A true minus sign; "-0.00" says nothing that "0.00" does not.
        text = f"{self.value:{self.form}}"
        return re.sub(r"^([-+])(?=0\.?0*$)", "", text).replace("-", "−")

    @property
    def sort_key(self) -> str:
        """What a page sorts by: a number, or nothing for a gap."""
        if self.is_gap or isinstance(self.value, str):
            return ""
        value = float(self.value or 0)
        return repr(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"

    @property
    def spread_text(self) -> str:
        """The spread for readers, empty if there is none."""
        is_known = self.spread is not None and not math.isnan(self.spread)
        return f"{self.spread:{self.form}}" if is_known else ""


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    heading: str
    #: Columns of one group stand under a common heading.
    group: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """Rows under headings; the first column names the row."""

    #: Name of its files.
    stem: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    #: Rows below a line, such as averages; they are not sorted.
    foot: tuple[tuple[Entry, ...], ...] = ()
    #: How to read it.
    note: str = ""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over the columns and how many columns each covers; empty if no column has one."""
        runs = [(name, len(list(run))) for name, run in groupby(column.group for column in self.columns)]
        return runs if any(name for name, _ in runs) else []


def name_columns(first: str, numeric: Iterable[str]) -> tuple[Column, ...]:
    """Make a column of names and columns of numbers."""
    return (*text_columns(first), *(Column(name) for name in numeric))


def text_columns(*names: str) -> tuple[Column, ...]:
    """Make columns of texts."""
    return tuple(Column(name, numeric=False) for name in names)
