"""The two streams: results go to standard output, everything else to standard error."""

from __future__ import annotations

import shlex
from typing import Any

from rich.console import Console

from labelsieve.datasets.errors import Mention

# Names come from data: "[red]" and ":bell:" in them are text, not orders to the terminal.
PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}


def results() -> Console:
    """Console for what the user asked for."""
    return Console(**PLAIN)


def messages(*, quiet: bool = False) -> Console:
    """Console for notes and progress; long lines are left to the terminal."""
    return Console(**PLAIN, stderr=True, soft_wrap=True, quiet=quiet)


def in_options(mention: Mention) -> str:
    """Spell an option of `read` for the command line.

    Examples
    --------
    >>> in_options(Mention("labels")), in_options(Mention("ignore", "bird id"))
    ('--labels', "--ignore 'bird id'")
    """
    return f"--{mention.option}" + ("" if mention.value is None else f" {shlex.quote(str(mention.value))}")


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
