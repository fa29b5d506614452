"""The two streams: results go to standard output, everything else to standard error."""

from __future__ import annotations

from typing import Any

from rich.console import Console

# Names come from data: "[red]" and ":bell:" in them are text, not orders to the terminal.
PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}


def results() -> Console:
    """Console for what the user asked for."""
    return Console(**PLAIN)


def messages(*, quiet: bool = False) -> Console:
    """Console for notes and progress; long lines are left to the terminal."""
    return Console(**PLAIN, stderr=True, soft_wrap=True, quiet=quiet)


def one_line(text: object) -> str:
    """Fold a text into one line."""
    return " ".join(str(text).split())


def bar(console: Console, share: float, width: int) -> str:
    """Draw a share of a width; what is more than nothing is seen."""
    block = "#" if console.options.ascii_only else "█"
    return block * max(round(width * share), int(share > 0))
