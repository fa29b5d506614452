"""Consoles for results and messages, progress bars and tables."""

from __future__ import annotations

import logging
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from labelsieve._text import one_line, printable

if TYPE_CHECKING:
    from labelsieve.datasets.fetch import ProgressFactory

_BAR_WIDTH, _MIN_BAR_WIDTH = 20, 5
# Number of spaces that rich puts between two columns of a table.
_GAP = 3
_LOG = logging.getLogger("labelsieve")


class PlainConsole(Console):
    r"""Console that prints text literally, without markup, emoji codes or escape sequences.

    It does not filter `rich.text.Text` objects or the texts of progress bars. Pass those through `printable`.

    Examples
    --------
    >>> PlainConsole(width=40).print("[red] \x1b[31m")
    [red] \x1b[31m
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a string, on its own or in a table."""
        return super().render_str("\n".join(map(printable, text.split("\n"))), **options)


def results(*, quiet: bool = False) -> PlainConsole:
    """Return the console for results, on standard output."""
    return PlainConsole(quiet=quiet)


def messages(*, quiet: bool = False) -> PlainConsole:
    """Return the console for notes and progress, on standard error. The terminal wraps long lines."""
    return PlainConsole(stderr=True, soft_wrap=True, quiet=quiet)


def command_line() -> str:
    """Return the command line of this process."""
    return shlex.join(["labelsieve", *sys.argv[1:]])


# Progress


def shows_progress(console: Console) -> bool:
    """Return True if the console is a terminal and not quiet."""
    return console.is_terminal and not console.quiet


@contextmanager
def progress(console: Console) -> Iterator[Status]:
    """Show a status line on a terminal, including the iterations that solvers log."""
    status = Status(console)
    level = _LOG.level
    if status.visible:
        _LOG.setLevel(logging.DEBUG)  # blocks of rows are logged at this level
    _LOG.addHandler(status)
    try:
        with status.bars:
            yield status
    finally:
        _LOG.removeHandler(status)
        _LOG.setLevel(level)


class Status(logging.Handler):
    """Status line with activity, bar, iteration or block of rows, elapsed time and time left."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.visible = shows_progress(console)
        self._console = console
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[state]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
        )
        self.bars = Progress(*columns, console=console, transient=True, disable=not self.visible)
        self._task = self.bars.add_task("", total=None, state="")
        self._n_passes = 0

    def __call__(self, activity: str) -> None:
        """Show an activity of unknown length."""
        self.bars.update(self._task, description=printable(activity), state="")

    def advance(self, done: int, total: int, activity: str) -> None:
        """Show an activity and its number of finished steps."""
        self.bars.update(self._task, description=printable(activity), state="", completed=done, total=total)

    def emit(self, record: logging.LogRecord) -> None:
        """Show a log record of the library in the status line, as a note, or as a line."""
        message = one_line(record.getMessage())
        block = getattr(record, "block", None)
        if block is not None:
            self._n_passes += block == 1
            self.bars.update(self._task, state=f"pass {self._n_passes}, {message}")
        elif record.levelno >= logging.WARNING:
            self._console.print(f"note: {message}")
        elif self.visible:
            self.bars.update(self._task, state=message)
        else:  # requested by the method's `verbose`
            self._console.print(message)


@contextmanager
def warnings_as_notes(console: Console) -> Iterator[None]:
    """Print each warning for users once, as a note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for_users = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    for text in dict.fromkeys(one_line(warning.message) for warning in for_users):
        console.print(f"note: {text}")


@contextmanager
def download_bars(console: Console) -> Iterator[ProgressFactory]:
    """Yield the progress bars for `fetch`, one per file and only on a terminal."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not shows_progress(console)) as bars:
        yield lambda file: _DownloadBar(bars, file)


class _DownloadBar:
    """Progress bar with the part of the tqdm interface that pooch uses."""

    #: Number of bytes, set by pooch, or 0 if unknown.
    total: int | None = None

    def __init__(self, bars: Progress, file: str) -> None:
        self._bars = bars
        self._task = bars.add_task(file, total=None)

    def update(self, size: int) -> None:
        """Count received bytes."""
        self._bars.update(self._task, total=self.total or None, advance=size)

    def reset(self) -> None:
        """Start counting again."""
        self._bars.update(self._task, completed=0)

    def close(self) -> None:
        """Leave the bar on the screen until all files are done."""


# Tables and numbers


def duration(seconds: float | None) -> str:
    """Format a duration in suitable units.

    Examples
    --------
    >>> duration(42.4), duration(130), duration(7300), duration(None)
    ('42 s', '2 min 10 s', '2 h 1 min', '-')
    """
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def lay_out(
    console: Console,
    columns: Mapping[str, Sequence[object]],
    *,
    long: str,
    title: str | None = None,
    bars: Sequence[float] | None = None,
) -> RenderableType:
    """Lay out columns of text as a table. The column `long` wraps on a narrow terminal.

    `bars` are fractions to draw as bars in the last column if there is room.
    """
    texts = {name: [printable(cell) for cell in cells] for name, cells in columns.items()}
    if bars is not None:
        used = sum(max(map(len, (name, *cells))) + _GAP for name, cells in texts.items())
        width = min(console.width - used, _BAR_WIDTH)
        if width >= _MIN_BAR_WIDTH:
            block = "#" if console.options.ascii_only else "█"
            texts[""] = [block * max(round(width * length), int(length > 0)) for length in bars]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, cells in texts.items():
        is_numeric = all(re.fullmatch(r"([-+]?[\d.]+(e[-+]\d+)?( ?%| of \d+)?)?|-", cell) for cell in cells)
        table.add_column(
            name, justify="right" if is_numeric else "left", no_wrap=name != long, overflow="fold"
        )
    for row in zip(*texts.values(), strict=True):
        table.add_row(*row)
    # Rich would wrap the table's own title at the width of the table.
    return table if title is None else Group(Text(title, style="bold"), table)
