"""Tables and sections of a report, written as CSV, Markdown and LaTeX (booktabs)."""

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
#: Suffixes of columns with the standard deviations of another column.
FOLDS, SIZES = " std over folds", " std over sizes"
# Also matches text that sorts by its first number: "3 of 8", "2/0/1, +0.1", "0.40 / 0.32".
_NUMBER = re.compile(r"[–∞]|[−+<]?\d(?:[\d.,/() ]|of|(?<= )[−+])*")


class TableCell(NamedTuple):
    """Formatted value."""

    text: str
    #: "best" or "second" of the row, or "ahead" for a reference that is better than all methods.
    mark: str = ""
    folds: str = ""
    sizes: str = ""


@dataclass(frozen=True)
class Table:
    """Dataframe with a title and formats."""

    #: File name without suffix.
    stem: str
    title: str
    #: Values that are not rounded. The index has the row names. A column "x std over folds" has the standard deviations
    #: of the column "x".
    frame: pd.DataFrame
    #: Number format of all columns or by column. "p" is for p-values, "sig" for three significant digits.
    form: str | Mapping[str, str] = ".3f"
    note: str = ""
    #: Note to show with standard deviations over sizes instead of folds.
    size_note: str = ""
    #: Column -> heading of its group.
    groups: Mapping[str, str] = field(default_factory=dict)
    #: Marks of the cells, by row and column.
    marks: pd.DataFrame = field(default_factory=pd.DataFrame)
    #: Number of rows at the end, such as averages, that have two decimals and are not sorted.
    n_foot: int = 0

    @property
    def flat(self) -> pd.DataFrame:
        """Dataframe with the row names as the first column."""
        return self.frame.reset_index(allow_duplicates=True)

    @cached_property
    def columns(self) -> list[str]:
        """Headings without the first and without standard deviations."""
        return [name for name in self.frame.columns if not name.endswith((FOLDS, SIZES))]

    @property
    def headings(self) -> list[str]:
        """All headings."""
        return [str(self.frame.index.name or ""), *self.columns]

    @property
    def heading_groups(self) -> list[tuple[str, int]]:
        """Group headings with their numbers of columns, empty if there are no groups."""
        names = [self.groups.get(heading, "") for heading in self.headings]
        return [(name, len(list(run))) for name, run in groupby(names)] if self.groups else []

    @cached_property
    def numeric(self) -> list[bool]:
        """Return True for each column with numbers or text that starts with a number."""
        kinds = [pd.api.types.is_numeric_dtype(self.frame.index)]
        for place, name in enumerate(self.columns, start=1):
            texts = (row[place].text for row in self.cells)
            is_number = pd.api.types.is_numeric_dtype(self.frame[name])
            kinds.append(is_number or all(map(_NUMBER.fullmatch, texts)))
        return kinds

    @cached_property
    def cells(self) -> list[tuple[TableCell, ...]]:
        """Cells by row, starting with the row name."""
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
        """Rows of the table body."""
        return self.cells[: len(self.cells) - self.n_foot]

    @property
    def foot(self) -> list[tuple[TableCell, ...]]:
        """Rows of the table footer."""
        return self.cells[len(self.cells) - self.n_foot :]


@dataclass(frozen=True)
class Section:
    """Section of the page."""

    anchor: str
    title: str
    texts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    #: Detailed tables, collapsed on the page.
    folded: tuple[Table, ...] = ()
    #: Tables that are only written to files.
    files: tuple[Table, ...] = ()

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts that this section can have."""
        return (self.anchor, "settings") if self.anchor == "sensitivity" else (self.anchor,)

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """All tables, which are all written to files."""
        return (*self.tables, *self.folded, *self.files)


def show(value: Any, form: str) -> str:
    """Format a value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return _MISSING
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if form == "p":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    if form == "sig":
        form = ".0f" if abs(value) >= 100 else ".3g"
    # Use a minus sign, and no sign for zero.
    return re.sub(r"^([-+])(?=0\.?0*$)", "", f"{value:{form}}").replace("-", "−")


def cross(
    rows: pd.DataFrame, index: Any, columns: str, order: Sequence[Iterable[Any]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pivot the columns "words" and "mark" of a dataframe in the given order of rows and columns."""
    names = dict(zip(("index", "columns"), map(list, order), strict=True))
    words, marks = (
        rows.pivot(index=index, columns=columns, values=value).reindex(**names).rename_axis(columns=None)
        for value in ("words", "mark")
    )
    return words, marks.astype(object).fillna("")


def mark_best(values: pd.DataFrame, others: Sequence[str] = ()) -> pd.DataFrame:
    """Mark the lowest and second lowest value of each row, and lower values in the columns `others`.

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
    """Format a table as Markdown, with bold for best and underlined for second."""
    marks = {"best": "**{}**", "second": "<ins>{}</ins>", "ahead": "{} †"}
    rows = [
        [_in_markdown(name) for name in table.headings],
        *_format_cells(table, _in_markdown, marks, " ± "),
    ]
    columns = []
    for (heading, *texts), is_number in zip(zip(*rows, strict=True), table.numeric, strict=True):
        width = max(3, len(heading), *map(len, texts))
        rule = "-" * (width - is_number) + ":" * is_number
        columns.append([f"{text:{'>' if is_number else '<'}{width}}" for text in (heading, rule, *texts)])
    lines = [f"| {' | '.join(line)} |" for line in zip(*columns, strict=True)]
    note = [_in_markdown(table.note), ""] if table.note else []
    return "\n".join([f"### {_in_markdown(table.title)}", "", *note, *lines]) + "\n"


def as_latex(table: Table) -> str:
    """Format a table as LaTeX for booktabs and graphicx, with bold for best and underlined for second."""
    marks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "ahead": r"{}$^\dagger$"}
    rows = _format_cells(table, _in_latex, marks, r" $\pm$ ")
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
    # Shrink tables that are wider than the page.
    narrow = "\\resizebox{\\ifdim\\width>\\textwidth\\textwidth\\else\\width\\fi}{!}{%\n"
    text = text.replace(r"\begin{tabular}", narrow + r"\begin{tabular}", 1)
    text = text.replace(r"\end{tabular}", r"\end{tabular}}", 1)
    return "% needs \\usepackage{booktabs,graphicx}\n" + text


#: Suffix of a file -> function that formats a table.
FORMATS: dict[str, Callable[[Table], str]] = {
    "csv": lambda table: csv_text(table.flat),
    "md": as_markdown,
    "tex": as_latex,
}


def _format_cells(
    table: Table, escape: Callable[[str], str], marks: Mapping[str, str], plus_minus: str
) -> list[list[str]]:
    """Escape all cells and add marks and standard deviations over folds."""
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
    "macro_auc": "macro-AUC",
    "one_error": "one-error",
}


def metric_words(metric: str) -> str:
    """Return the name of a metric for running text.

    Examples
    --------
    >>> metric_words("ranking_loss"), metric_words("macro_f1")
    ('ranking loss', 'macro-F1')
    """
    return _METRIC_WORDS.get(metric, metric.replace("_", " "))


def metric_title(metric: str, direction: Literal["higher", "lower"]) -> str:
    """Return the name of a metric with an arrow towards better values.

    Examples
    --------
    >>> metric_title("ranking_loss", "lower"), metric_title("macro_f1", "higher")
    ('Ranking loss ↓', 'Macro-F1 ↑')
    """
    words = metric_words(metric)
    return f"{words[0].upper()}{words[1:]} {'↑' if direction == 'higher' else '↓'}"


def listed(names: Iterable[str], word: str = "and") -> str:
    """Join names with commas and a word before the last.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *others, last = [*names] or [""]
    return f"{', '.join(others)} {word} {last}" if others else last
