"""Tables of a report: a frame of numbers in full, written as CSV, Markdown and LaTeX (booktabs)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.cells import cell_len

from labelsieve._text import csv_cell, one_line

__all__ = ["FORMATS", "Cell", "Table", "as_csv", "as_latex", "as_markdown", "as_records", "mark_best"]

_MISSING = "–"
#: Endings of columns that hold the deviations of the column before them.
FOLDS, SIZES = " std over folds", " std over sizes"


class Cell(NamedTuple):
    """What readers see of a value."""

    text: str
    #: "best" and "second" of its row, or "ahead": a reference ahead of every method.
    mark: str = ""
    folds: str = ""
    sizes: str = ""
    #: The number that a page sorts by; empty for gaps and texts.
    sort_key: str = ""


@dataclass(frozen=True)
class Table:
    """A frame and how to show it."""

    #: Name of its files.
    stem: str
    title: str
    #: Numbers in full. The index, whose name is a heading, names the rows. A column "x std over folds" holds the
    #: deviations of the column "x".
    frame: pd.DataFrame
    #: Format of the numbers, or of those of single columns; "p" is for p-values.
    form: str | Mapping[str, str] = ".3f"
    note: str = ""
    #: The note if the deviations over sizes are shown instead of those over folds.
    size_note: str = ""
    #: Column -> heading over it and its neighbours.
    groups: Mapping[str, str] = field(default_factory=dict)
    #: Marks of the cells, by row and column.
    marks: pd.DataFrame | None = None
    #: Numbers by which columns of words are sorted.
    keys: pd.DataFrame | None = None
    #: Number of rows below a line at the end, such as averages; they are not sorted.
    n_foot: int = 0
    foot_form: str = ".2f"

    @cached_property
    def columns(self) -> list[str]:
        """Headings, without the first and without deviations."""
        return [name for name in self.frame.columns if not name.endswith((FOLDS, SIZES))]

    @cached_property
    def numeric(self) -> list[bool]:
        """Tell if columns hold numbers, or words that sort by a number; the first included."""
        worded = set() if self.keys is None else set(self.keys.columns)
        kinds = [pd.api.types.is_numeric_dtype(self.frame.index)]
        return kinds + [
            name in worded or pd.api.types.is_numeric_dtype(self.frame[name]) for name in self.columns
        ]

    @property
    def headings(self) -> list[str]:
        """All headings."""
        return [str(self.frame.index.name or ""), *self.columns]

    @property
    def heading_groups(self) -> list[tuple[str, int]]:
        """Headings over the columns with the number of columns each covers; empty if no column has one."""
        if not self.groups:
            return []
        names = ["", *(self.groups.get(column, "") for column in self.columns)]
        return [(name, len(list(run))) for name, run in groupby(names)]

    @property
    def rows(self) -> list[list[Cell]]:
        """Cells of the body, the name of the row first."""
        return self._cells[: len(self.frame) - self.n_foot]

    @property
    def foot(self) -> list[list[Cell]]:
        """Cells of the rows below the line."""
        return self._cells[len(self.frame) - self.n_foot :]

    @cached_property
    def _cells(self) -> list[list[Cell]]:
        columns = [[Cell(show(value, "")) for value in self.frame.index]]
        columns += [self._column(column) for column in self.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def _column(self, column: str) -> list[Cell]:
        n_rows = len(self.frame)
        form = self.form if isinstance(self.form, str) else self.form.get(column, ".3f")
        forms = [form] * (n_rows - self.n_foot) + [self.foot_form] * self.n_foot
        values = self.frame[column].tolist()
        keys = values if self.keys is None or column not in self.keys else self.keys[column].tolist()
        marks = [""] * n_rows if self.marks is None or column not in self.marks else self.marks[column]
        folds, sizes = (self._deviations(column + ending, form) for ending in (FOLDS, SIZES))
        return [
            Cell(show(value, form), mark, fold, size, _sort_key(key))
            for value, form, mark, fold, size, key in zip(
                values, forms, marks, folds, sizes, keys, strict=True
            )
        ]

    def _deviations(self, column: str, form: str) -> list[str]:
        if column not in self.frame:
            return [""] * len(self.frame)
        return ["" if math.isnan(value) else f"{value:{form}}" for value in self.frame[column]]


def show(value: Any, form: str) -> str:
    """Write a value for readers.

    Examples
    --------
    >>> show(0.12345, ".3f"), show(None, ".3f"), show(1e-5, "p"), show(7, ".3f"), show(-0.001, "+.2f")
    ('0.123', '–', '<0.001', '7', '0.00')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return _MISSING
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if form == "p":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    # A true minus sign; "-0.00" says no more than "0.00".
    return re.sub(r"^([-+])(?=0\.?0*$)", "", f"{value:{form}}").replace("-", "−")


def mark_best(values: pd.DataFrame, others: Sequence[str] = ()) -> pd.DataFrame:
    """Mark the lowest value of every row and the second; of the columns in `others`, what is lower than all.

    Examples
    --------
    >>> mark_best(pd.DataFrame({"a": [2.0], "b": [3.0], "c": [1.0]}), others=["c"]).iloc[0].tolist()
    ['best', 'second', 'ahead']
    """
    numbers = values.to_numpy(dtype=float)
    is_other = values.columns.isin(list(others))
    marks = np.full(numbers.shape, "", dtype=object)
    for row, cost in enumerate(numbers):
        places = np.unique(cost[~is_other & np.isfinite(cost)])
        for place, name in zip(places, ("best", "second"), strict=False):
            marks[row, (cost == place) & ~is_other] = name
        if len(places):
            marks[row, (cost < places[0]) & is_other] = "ahead"
    return pd.DataFrame(marks, index=values.index, columns=values.columns)


def _sort_key(value: Any) -> str:
    if value is None or isinstance(value, str) or math.isnan(value):
        return ""
    return repr(float(value)) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def as_csv(table: Table) -> str:
    """Write a table as CSV, numbers in full; no name is taken for a formula."""
    frame = table.frame.reset_index(allow_duplicates=True)
    frame = frame.map(lambda value: csv_cell(value) if isinstance(value, str) else value)
    frame.columns = [csv_cell(name) for name in frame.columns]
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def as_records(table: Table) -> list[dict[str, Any]]:
    """Return a table as values that JSON can hold: a dictionary per row, numbers in full.

    Examples
    --------
    >>> as_records(Table("ranks", "Ranks", pd.DataFrame({"rank": [1.5]}, index=pd.Index(["mifs"], name="method"))))
    [{'method': 'mifs', 'rank': 1.5}]
    """
    frame = table.frame.reset_index(allow_duplicates=True)
    # JSON has no infinity.
    known = frame.notna() & ~frame.isin([np.inf, -np.inf])
    records: list[dict[str, Any]] = frame.astype(object).where(known, None).to_dict("records")
    return records


def as_markdown(table: Table) -> str:
    """Write a table as Markdown with aligned columns; bold is best, underlined second."""
    marks = {"best": "**{}**", "second": "<ins>{}</ins>", "ahead": "{} †"}
    lines = [[_in_markdown(name) for name in table.headings]]
    lines += _dressed(table, _in_markdown, marks, " ± ")
    widths = [max(3, *map(cell_len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * (width - 1) + ":" if is_number else "-" * width
            for width, is_number in zip(widths, table.numeric, strict=True)]  # fmt: skip
    written = []
    for line in (lines[0], rule, *lines[1:]):
        padding = [" " * (width - cell_len(text)) for width, text in zip(widths, line, strict=True)]
        cells = [
            space + text if is_number else text + space
            for text, space, is_number in zip(line, padding, table.numeric, strict=True)
        ]
        written.append(f"| {' | '.join(cells)} |")
    note = [_in_markdown(table.note), ""] if table.note else []
    return "\n".join([f"### {_in_markdown(table.title)}", "", *note, *written]) + "\n"


def as_latex(table: Table) -> str:
    """Write a table as LaTeX for the packages booktabs and graphicx; bold is best, underlined second."""
    marks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "ahead": r"{}$^\dagger$"}
    rows = _dressed(table, _in_latex, marks, r" $\pm$ ")
    if table.n_foot:
        rows[-table.n_foot][0] = "\\midrule\n" + rows[-table.n_foot][0]
    columns: Any = [_in_latex(name) for name in table.headings]
    if table.groups:
        over = ["", *(_in_latex(table.groups.get(name, "")) for name in table.columns)]
        columns = pd.MultiIndex.from_arrays([over, columns])
    caption = _in_latex(f"{table.title}. {table.note}" if table.note else table.title)
    text: str = (
        pd.DataFrame(rows, columns=columns)
        .style.hide(axis="index")
        .to_latex(
            environment="table*",
            position_float="centering",
            caption=caption,
            label=f"tab:{re.sub(r'[^a-z0-9]+', '-', table.stem.lower())}",
            column_format="".join("r" if is_number else "l" for is_number in table.numeric),
            hrules=True,
            multicol_align="c",
        )
    )
    # Tables wider than the page shrink to it.
    narrow = "\\resizebox{\\ifdim\\width>\\textwidth\\textwidth\\else\\width\\fi}{!}{%\n"
    text = text.replace(r"\begin{tabular}", narrow + r"\begin{tabular}", 1)
    text = text.replace(r"\end{tabular}", r"\end{tabular}}", 1)
    return "% needs \\usepackage{booktabs,graphicx}\n" + text


#: Ending of a file -> the function that writes it.
FORMATS: dict[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}


def _dressed(
    table: Table, escape: Callable[[str], str], marks: Mapping[str, str], plus_minus: str
) -> list[list[str]]:
    """Escape all cells, and add marks and deviations over folds."""
    return [
        [
            marks.get(cell.mark, "{}").format(escape(cell.text))
            + (f"{plus_minus}{cell.folds}" if cell.folds else "")
            for cell in row
        ]
        for row in (*table.rows, *table.foot)
    ]


def _in_markdown(text: str) -> str:
    escaped = re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", one_line(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "†": r"$^\dagger$",
    "∞": r"$\infty$",
    "−": r"$-$",
    "–": "--",
    "χ": r"$\chi$",
    "²": r"$^2$",
    "α": r"$\alpha$",
}
_LATEX_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))


def _in_latex(text: str) -> str:
    return _LATEX_SPECIAL.sub(lambda match: _LATEX[match[0]], one_line(text))
