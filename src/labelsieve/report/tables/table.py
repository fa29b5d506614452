"""A table as a value, and the same as CSV, Markdown and LaTeX (booktabs)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from rich.cells import cell_len

from labelsieve._text import csv_text, one_line

__all__ = [
    "FORMATS",
    "Column",
    "Entry",
    "Mark",
    "Table",
    "as_csv",
    "as_latex",
    "as_markdown",
    "as_records",
    "name_columns",
    "only",
    "text_columns",
    "turned",
]

#: What an entry stands out by: the best and second best of its row, or a reference ahead of every method.
Mark = Literal["", "best", "second", "ahead"]

_MISSING = "–"
# Field of an entry -> what its column in a file is called.
_SPREADS = {"spread": "std over folds", "size_spread": "std over sizes"}


@dataclass(frozen=True)
class Entry:
    """One entry of a table.

    Parameters
    ----------
    value : float, str or None
        What it holds; None is a gap.
    spread : float or None, default=None
        Standard deviation over folds beside a number.
    mark : {"", "best", "second", "ahead"}
        How it stands out.
    form : str, default=".3f"
        Format of a number; "p" is that of p-values.
    words : str, default=""
        What readers see instead of the value, by which alone the table sorts.
    size_spread : float or None, default=None
        Standard deviation over sizes, for those who ask for it: pages and CSV have both.
    """

    value: float | str | None
    spread: float | None = None
    mark: Mark = ""
    form: str = ".3f"
    words: str = ""
    size_spread: float | None = None

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
        """The spread over folds for readers, empty if there is none."""
        return self._as_spread(self.spread)

    @property
    def size_spread_text(self) -> str:
        """The spread over sizes for readers, empty if there is none."""
        return self._as_spread(self.size_spread)

    def _as_spread(self, spread: float | None) -> str:
        return "" if spread is None or math.isnan(spread) else f"{spread:{self.form}}"


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
    #: The same where the spread over sizes is shown instead of that over folds.
    size_note: str = ""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over the columns and how many columns each covers; empty if no column has one."""
        runs = [(name, len(list(run))) for name, run in groupby(column.group for column in self.columns)]
        return runs if any(name for name, _ in runs) else []


def only(table: Table, headings: Sequence[str]) -> Table:
    """Some columns of a table, those it has; where there is little room."""
    places = [place for place, column in enumerate(table.columns) if column.heading in headings]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
    )


def turned(table: Table) -> Table:
    """A table with its few rows as columns."""
    first, *others = table.columns
    return replace(
        table,
        columns=(replace(first, heading=""), *(Column(row[0].text) for row in table.rows)),
        rows=tuple(
            (Entry(column.heading), *(row[place] for row in table.rows))
            for place, column in enumerate(others, start=1)
        ),
    )


def name_columns(first: str, numeric: Iterable[str]) -> tuple[Column, ...]:
    """Make a column of names and columns of numbers."""
    return (*text_columns(first), *(Column(name) for name in numeric))


def text_columns(*names: str) -> tuple[Column, ...]:
    """Make columns of texts."""
    return tuple(Column(name, numeric=False) for name in names)


def as_csv(table: Table) -> str:
    """Write a table as CSV, numbers in full; a spread is a column of its own."""
    header, rows = _in_full(table)
    return csv_text([header, *rows])


def as_records(table: Table) -> list[dict[str, float | str | None]]:
    """A table as values JSON can hold: a dictionary a row, numbers in full; a spread is an entry of its own.

    Examples
    --------
    >>> as_records(Table("ranks", "Ranks", name_columns("method", ["rank"]), ((Entry("mifs"), Entry(1.5)),)))
    [{'method': 'mifs', 'rank': 1.5}]
    """
    header, rows = _in_full(table)
    # JSON has no word for what is infinite.
    return [
        {
            name: None if isinstance(value, float) and math.isinf(value) else value
            for name, value in zip(header, row, strict=True)
        }
        for row in rows
    ]


def _in_full(table: Table) -> tuple[list[str], list[list[float | str | None]]]:
    """Headings and rows with nothing rounded, a column for every kind of spread that a column has."""
    entries = (*table.rows, *table.foot)
    spreads = [
        [name for name in _SPREADS if any(getattr(row[index], name) is not None for row in entries)]
        for index in range(len(table.columns))
    ]
    header = [
        text
        for column, names in zip(table.columns, spreads, strict=True)
        for text in (column.heading, *(f"{column.heading} {_SPREADS[name]}" for name in names))
    ]
    rows = [
        [
            value
            for entry, names in zip(row, spreads, strict=True)
            for value in (_full(entry.words or entry.value), *(_full(getattr(entry, name)) for name in names))
        ]
        for row in entries
    ]
    return header, rows


def as_markdown(table: Table) -> str:
    """Write a table as Markdown whose columns line up; bold is best, underlined second."""

    def dress(entry: Entry) -> str:
        text = _in_markdown(entry.text)
        dressed = {"best": f"**{text}**", "second": f"<ins>{text}</ins>", "ahead": f"{text} †"}.get(
            entry.mark, text
        )
        return f"{dressed} ± {entry.spread_text}" if entry.spread_text else dressed

    lines = [[_in_markdown(column.heading) for column in table.columns]]
    lines += [[dress(entry) for entry in row] for row in (*table.rows, *table.foot)]
    widths = [max(3, *(cell_len(line[index]) for line in lines)) for index in range(len(table.columns))]
    rule = ["-" * (width - 1) + ":" if column.numeric else "-" * width
            for column, width in zip(table.columns, widths, strict=True)]  # fmt: skip
    body = [
        [
            " " * (width - cell_len(text)) + text if column.numeric else text + " " * (width - cell_len(text))
            for text, width, column in zip(line, widths, table.columns, strict=True)
        ]
        for line in lines
    ]
    drawn = ["| " + " | ".join(line) + " |" for line in (body[0], rule, *body[1:])]
    note = [_in_markdown(table.note), ""] if table.note else []
    return "\n".join([f"### {_in_markdown(table.title)}", "", *note, *drawn]) + "\n"


def as_latex(table: Table) -> str:
    """Write a table as LaTeX for the packages booktabs and graphicx; bold is best, underlined second."""

    def dress(entry: Entry) -> str:
        text = _in_latex(entry.text)
        dressed = {
            "best": rf"\textbf{{{text}}}",
            "second": rf"\underline{{{text}}}",
            "ahead": rf"{text}$^\dagger$",
        }.get(entry.mark, text)
        return rf"{dressed} $\pm$ {entry.spread_text}" if entry.spread_text else dressed

    def line(cells: Sequence[str]) -> str:
        return " & ".join(cells) + r" \\"

    caption = _in_latex(f"{table.title}. {table.note}" if table.note else table.title)
    rows = [line([dress(entry) for entry in row]) for row in table.rows]
    foot = [r"\midrule", *(line([dress(entry) for entry in row]) for row in table.foot)] if table.foot else []
    return "\n".join(
        [
            "% needs \\usepackage{booktabs,graphicx}",
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{re.sub(r'[^a-z0-9]+', '-', table.stem.lower())}}}",
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{''.join('r' if column.numeric else 'l' for column in table.columns)}}}",
            r"\toprule",
            *_latex_groups(table),
            line([_in_latex(column.heading) for column in table.columns]),
            r"\midrule",
            *rows,
            *foot,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table*}",
            "",
        ]
    )


#: Ending of a file -> what writes it.
FORMATS: dict[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}


def _latex_groups(table: Table) -> list[str]:
    """A line of headings over groups of columns, each with a rule below."""
    if not table.groups:
        return []
    cells, rules, start = [], [], 1
    for name, width in table.groups:
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{_in_latex(name)}}}")
        if name:
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [" & ".join(cells) + r" \\", " ".join(rules)]


def _full(value: float | str | None) -> float | str | None:
    """A value for CSV: gaps are empty."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _in_markdown(text: str) -> str:
    """Escape what Markdown would take for an order."""
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
    """Escape what LaTeX would take for an order, and write signs as its commands."""
    return _LATEX_SPECIAL.sub(lambda match: _LATEX[match[0]], one_line(text))
