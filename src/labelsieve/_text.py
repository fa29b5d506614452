"""Escaping and formatting of untrusted text for terminals, pages and spreadsheets."""

from __future__ import annotations

import difflib
import html
import os
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

# Unicode categories that can control the terminal: control characters (which start escape sequences), format
# characters (which can reverse the text direction), surrogates, line separators and paragraph separators.
_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Joiners are needed in several languages and in emoji.
_HARMLESS = {"\u200c", "\u200d"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def printable(text: object) -> str:
    r"""Escape characters that would control the terminal or break the line.

    Examples
    --------
    >>> printable("red \x1b[31m, naïve, 東京")
    'red \\x1b[31m, naïve, 東京'
    """
    string = str(text)
    if string.isascii() and string.isprintable():
        return string
    return "".join(
        letter.encode("unicode_escape").decode("ascii") if _is_control(letter) else letter
        for letter in string
    )


def _is_control(letter: str) -> bool:
    # The last two code points of a plane are not characters and are invalid in XML, including SVG.
    is_noncharacter = ord(letter) & 0xFFFE == 0xFFFE
    return is_noncharacter or (unicodedata.category(letter) in _CONTROLS and letter not in _HARMLESS)


def install_command(*packages: str) -> str:
    """Return the command that installs packages next to labelsieve: with pipx, uv or pip, and this Python.

    The packages are named because the extras of labelsieve need the place that it was installed from.
    """
    names = " ".join(packages)
    parts = Path(sys.prefix).parts
    if "pipx" in parts and "venvs" in parts:
        return f"pipx inject {parts[-1]} {names}"
    found = shutil.which("python")
    is_default = found is not None and os.path.realpath(found) == os.path.realpath(sys.executable)
    is_default = is_default and os.path.dirname(found or "") == os.path.dirname(sys.executable)
    python = "python" if is_default else shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {names}"
    return f"{python} -m pip install {names}"


def one_line(text: object) -> str:
    r"""Fold a text into one printable line.

    Examples
    --------
    >>> one_line("two\n  lines\x07")
    'two lines\\x07'
    """
    return printable(re.sub(r"\s+", " ", str(text)).strip())


def error_text(error: BaseException) -> str:
    """Return the type and message of an error, even if its ``__str__`` fails.

    Examples
    --------
    >>> error_text(ValueError("too few rows"))
    'ValueError: too few rows'
    """
    try:
        message = str(error)
    except (Exception, SystemExit) as failure:
        message = f"(its message failed with {type(failure).__name__})"
    return f"{type(error).__name__}: {message}"


def short(name: object, most: int = 36) -> str:
    """Shorten a long name to ``most`` characters.

    Examples
    --------
    >>> short("temperature", 8), short("age", 8)
    ('tempe...', 'age')
    """
    shown = one_line(name)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun in singular or plural.

    Examples
    --------
    >>> count(1, "dataset"), count(0, "method"), count(3, "entry", "entries")
    ('1 dataset', '0 methods', '3 entries')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    """Format a bound or a level without rounding it to a whole number.

    Examples
    --------
    >>> percent(0.1), percent(0.001)
    ('10%', '0.1%')
    """
    return f"{100 * share:.4g}%"


def closest(word: str, known: Iterable[str]) -> str:
    """Suggest the closest known word, or list all of them.

    Examples
    --------
    >>> closest("papr", ["paper", "tiny"]), closest("field", ["paper", "tiny"])
    ("did you mean 'paper'?", 'known are paper, tiny.')
    """
    words = list(known)
    meant = near(word, words)
    return f"did you mean {meant!r}?" if meant else f"known are {', '.join(words)}."


def near(word: str, known: Iterable[str]) -> str | None:
    """Return the closest known word, or None if none is close."""
    # Limit the length because the comparison takes quadratic time.
    return next(iter(difflib.get_close_matches(word[:50], list(known), n=1)), None)


def csv_cell(text: str) -> str:
    r"""Escape a text for a CSV cell. An apostrophe prevents spreadsheets from interpreting it as a formula.

    Examples
    --------
    >>> csv_cell("=1+1\x1b[2J"), csv_cell("age")
    ("'=1+1\\x1b[2J", 'age')
    """
    shown = printable(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def csv_text(frame: DataFrame) -> str:
    r"""Format a frame as CSV with full precision, empty cells for missing values, and escaped texts.

    Examples
    --------
    >>> from pandas import DataFrame
    >>> csv_text(DataFrame({"name": ["=1+1", "age"], "score": [0.5, None]}))
    "name,score\n'=1+1,0.5\nage,\n"
    """
    safe = frame.map(lambda cell: csv_cell(cell) if isinstance(cell, str) else cell).rename(columns=csv_cell)
    return safe.to_csv(index=False, lineterminator="\n")


def format_score(value: float) -> str:
    """Format a score with four significant digits, or as an integer if it is large.

    Examples
    --------
    >>> format_score(2010.4), format_score(0.5), format_score(0.00001)
    ('2010', '0.5000', '1.000e-05')
    """
    return f"{value:.0f}" if 1000 <= abs(value) < 1e9 else f"{value:#.4g}"


def html_table(title: str, header: Sequence[str], rows: Iterable[Iterable[object]], note: str = "") -> str:
    """Format an HTML table for a notebook, with escaped texts.

    Examples
    --------
    >>> print(html_table("Best", ["feature", "score"], [("<b>", 1.5)], "of two"))
    <div><p><strong>Best</strong></p><table><thead><tr><th>feature</th><th>score</th></tr></thead>
    <tbody><tr><td>&lt;b&gt;</td><td>1.5</td></tr></tbody></table>
    <p>of two</p></div>
    """
    head = _html_row("th", header)
    body = "\n".join(_html_row("td", row) for row in rows)
    below = f"\n<p>{_html(note)}</p>" if note else ""
    return (
        f"<div><p><strong>{_html(title)}</strong></p><table><thead>{head}</thead>\n"
        f"<tbody>{body}</tbody></table>{below}</div>"
    )


def _html_row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_html(cell)}</{tag}>' for cell in cells)}</tr>"


def _html(text: object) -> str:
    return html.escape(one_line(text))
