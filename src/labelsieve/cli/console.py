"""The two streams: results go to standard output, everything else to standard error."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from labelsieve._text import printable
from labelsieve.io.errors import Mention

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds before progress shows: what is faster needs none.
PATIENCE = 1.0

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]


class PlainConsole(Console):
    r"""Console to which names that come from data are text, never orders to the terminal.

    "[red]" and ":bell:" stay as they are; escape sequences are shown, in tables as in sentences. What is handed over
    as a `rich.text.Text`, and what a progress bar shows, does not pass here: filter it by `printable`.

    Examples
    --------
    >>> PlainConsole(width=40).print("[red] \x1b[31m")
    [red] \x1b[31m
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn every string that is printed, alone or in a table, into what is shown."""
        return super().render_str("\n".join(map(printable, text.split("\n"))), **options)


def results() -> PlainConsole:
    """Console for what the user asked for."""
    return PlainConsole()


def messages(*, quiet: bool = False) -> PlainConsole:
    """Console for notes and progress; long lines are left to the terminal."""
    return PlainConsole(stderr=True, soft_wrap=True, quiet=quiet)


def shows_progress(console: Console) -> bool:
    """Whether progress is seen: on a terminal only."""
    return console.is_terminal and not console.quiet


@contextmanager
def shown_if_long(progress: Progress) -> Iterator[None]:
    """Show progress from the second second on."""
    timer = threading.Timer(PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def typed() -> str:
    """What the user typed, for a page to tell."""
    return shlex.join(["labelsieve", *sys.argv[1:]])


def in_options(mention: Mention) -> str:
    """Spell an option of `read` for the command line.

    Examples
    --------
    >>> in_options(Mention("labels")), in_options(Mention("ignore", "bird id"))
    ('--labels', "--ignore 'bird id'")
    """
    names = {"chunks": "chunk-rows", "label_sep": "label-sep", "roles": "role"}
    value = mention.value
    if isinstance(value, dict):
        value = " ".join(f"{name}={role}" for name, role in value.items())
    option = names.get(mention.option, mention.option)
    return f"--{option}" + ("" if value is None else f" {shlex.quote(str(value))}")


def bar(console: Console, share: float, width: int) -> str:
    """Draw a share of a width; what is more than nothing is seen."""
    block = "#" if console.options.ascii_only else "█"
    return block * max(round(width * share), int(share > 0))


def duration(seconds: float | None) -> str:
    """Say a time in the unit that fits.

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
