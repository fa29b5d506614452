"""The two streams: results go to standard output, everything else to standard error."""

from __future__ import annotations

import re
import shlex
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


_KEYWORD = re.compile(
    r"(?<![\w.=/-])(labels|candidates|ignore|nominal|missing)="
    r"(?:\"([^\"]*)\"|'([^']*)'|(-?\d+)(?!\w))?(?=[\s.,;:)]|$)"
)


def in_options(text: str) -> str:
    """Say in options of the command line what the library says in Python.

    Examples
    --------
    >>> in_options("leave it out with ignore='bird id', or check labels=")
    "leave it out with --ignore 'bird id', or check --labels"
    """

    def option(match: re.Match[str]) -> str:
        value = next((found for found in match.groups()[1:] if found is not None), None)
        return f"--{match[1]}" + ("" if value is None else f" {shlex.quote(value)}")

    return _KEYWORD.sub(option, text).replace("n_features_to_select must", "-k must")


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
