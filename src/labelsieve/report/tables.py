"""Tables and sections of a report: frames of numbers in full, written as CSV, Markdown and LaTeX (booktabs)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from labelsieve._text import csv_text, one_line

_MISSING = "–"
#: Endings of columns that hold the deviations of the column before them.
FOLDS, SIZES = " std over folds", " std over sizes"
# Also words that start with a number, by which they sort: "3 of 8", "2/0/1, +0.1", "0.40 / 0.32".
_NUMBER = re.compile(r"[–∞]|[−+<]?\d(?:[\d.,/() ]|of|(?<= )[−+])*")


class TableCell(NamedTuple):
    """What readers see of a value."""

    text: str
    #: "best" and "second" of its row, or "ahead": a reference ahead of every method.
    mark: str = ""
    folds: str = ""
    sizes: str = ""


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
    marks: pd.DataFrame = field(default_factory=pd.DataFrame)
    #: Number of rows below a line at the end, such as averages; they have two decimals and are not sorted.
    n_foot: int = 0

    @property
    def flat(self) -> pd.DataFrame:
        """The frame with the names of its rows as the first column."""
        return self.frame.reset_index(allow_duplicates=True)

    @cached_property
    def columns(self) -> list[str]:
        """Headings, without the first and without deviations."""
        return [name for name in self.frame.columns if not name.endswith((FOLDS, SIZES))]

    @property
    def headings(self) -> list[str]:
        """All headings."""
        return [str(self.frame.index.name or ""), *self.columns]

    @property
    def heading_groups(self) -> list[tuple[str, int]]:
        """Headings over the columns with the number of columns each covers; empty if no column has one."""
        names = [self.groups.get(heading, "") for heading in self.headings]
        return [(name, len(list(run))) for name, run in groupby(names)] if self.groups else []

    @cached_property
    def numeric(self) -> list[bool]:
        """Tell if columns hold numbers, or words that start with one; the first column included."""
        kinds = [pd.api.types.is_numeric_dtype(self.frame.index)]
        for place, name in enumerate(self.columns, start=1):
            texts = (row[place].text for row in self.cells)
            is_number = pd.api.types.is_numeric_dtype(self.frame[name])
            kinds.append(is_number or all(map(_NUMBER.fullmatch, texts)))
        return kinds

    @cached_property
    def cells(self) -> list[tuple[TableCell, ...]]:
        """Cells by row, the name of the row first."""
        n_rows = len(self.frame)
        columns = [[TableCell(show(value, "")) for value in self.frame.index]]
        for name in self.columns:
            form = self.form if isinstance(self.form, str) else self.form.get(name, ".3f")
            texts = map(show, self.frame[name], [form] * (n_rows - self.n_foot) + [".2f"] * self.n_foot)
            folds, sizes = (
                [
                    "" if math.isnan(value) else f"{value:{form}}"
                    for value in self.frame.get(column, [math.nan] * n_rows)
                ]
                for column in (name + FOLDS, name + SIZES)
            )
            columns.append(list(map(TableCell, texts, self.marks.get(name, [""] * n_rows), folds, sizes)))
        return list(zip(*columns, strict=True))

    @property
    def rows(self) -> list[tuple[TableCell, ...]]:
        """Cells of the body."""
        return self.cells[: len(self.cells) - self.n_foot]

    @property
    def foot(self) -> list[tuple[TableCell, ...]]:
        """Cells of the rows below the line."""
        return self.cells[len(self.cells) - self.n_foot :]


@dataclass(frozen=True)
class Section:
    """Part of the page under a heading."""

    anchor: str
    title: str
    texts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    #: Tables to look things up in; folded on the page.
    folded: tuple[Table, ...] = ()
    #: Tables for programs; files only.
    files: tuple[Table, ...] = ()

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts of this section, if the run has their data."""
        return (self.anchor, "settings") if self.anchor == "sensitivity" else (self.anchor,)

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """All tables; each becomes a file."""
        return (*self.tables, *self.folded, *self.files)


def show(value: Any, form: str) -> str:
    """Write a value for readers."""
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


def cross(
    rows: pd.DataFrame, index: Any, columns: str, order: Sequence[Iterable[Any]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pivot the columns words and mark: names of rows by names of columns, in the given order."""
    names = dict(zip(("index", "columns"), map(list, order), strict=True))
    words, marks = (
        rows.pivot(index=index, columns=columns, values=value).reindex(**names).rename_axis(columns=None)
        for value in ("words", "mark")
    )
    return words, marks.astype(object).fillna("")


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


def as_markdown(table: Table) -> str:
    """Write a table as Markdown with aligned columns; bold is best, underlined second."""
    marks = {"best": "**{}**", "second": "<ins>{}</ins>", "ahead": "{} †"}
    rows = [[_in_markdown(name) for name in table.headings], *_dressed(table, _in_markdown, marks, " ± ")]
    columns = []
    for (heading, *texts), is_number in zip(zip(*rows, strict=True), table.numeric, strict=True):
        width = max(3, len(heading), *map(len, texts))
        rule = "-" * (width - is_number) + ":" * is_number
        columns.append([f"{text:{'>' if is_number else '<'}{width}}" for text in (heading, rule, *texts)])
    lines = [f"| {' | '.join(line)} |" for line in zip(*columns, strict=True)]
    note = [_in_markdown(table.note), ""] if table.note else []
    return "\n".join([f"### {_in_markdown(table.title)}", "", *note, *lines]) + "\n"


def as_latex(table: Table) -> str:
    """Write a table as LaTeX for the packages booktabs and graphicx; bold is best, underlined second."""
    marks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "ahead": r"{}$^\dagger$"}
    rows = _dressed(table, _in_latex, marks, r" $\pm$ ")
    if table.n_foot:
        rows[-table.n_foot][0] = "\\midrule\n" + rows[-table.n_foot][0]
    columns: Any = [_in_latex(name) for name in table.headings]
    if table.groups:
        over = [_in_latex(table.groups.get(name, "")) for name in table.headings]
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
FORMATS: dict[str, Callable[[Table], str]] = {
    "csv": lambda table: csv_text(table.flat),
    "md": as_markdown,
    "tex": as_latex,
}


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
        for row in table.cells
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


_METRIC_WORDS = {
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "samples_f1": "samples-F1",
    "one_error": "one-error",
}


def metric_words(metric: str) -> str:
    """Name a metric in a sentence.

    Examples
    --------
    >>> metric_words("ranking_loss"), metric_words("macro_f1")
    ('ranking loss', 'macro-F1')
    """
    return _METRIC_WORDS.get(metric, metric.replace("_", " "))


def metric_title(metric: str, direction: Literal["higher", "lower"]) -> str:
    """Name a metric with an arrow that points to better values.

    Examples
    --------
    >>> metric_title("ranking_loss", "lower"), metric_title("macro_f1", "higher")
    ('Ranking loss ↓', 'Macro-F1 ↑')
    """
    words = metric_words(metric)
    return f"{words[0].upper()}{words[1:]} {'↑' if direction == 'higher' else '↓'}"


def listed(names: Iterable[str]) -> str:
    """Join names with commas and "and".

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *others, last = [*names] or [""]
    return f"{', '.join(others)} and {last}" if others else last
