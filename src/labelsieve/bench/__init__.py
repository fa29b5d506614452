"""Experiments: planned from a configuration, run in cells, stored one by one, resumed where they stopped.

The configuration needs the ``bench`` extra, so nothing of it is imported here.
"""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["RunError", "RunInterrupted", "require_packages"]


class RunError(ValueError):
    """An experiment cannot be set up, stored or read; the message says what to do."""


class RunInterrupted(Exception):
    """The user stopped a run; everything finished is stored.

    Not a KeyboardInterrupt, which typer would answer without the message.
    """


def require_packages() -> None:
    """Say in one line what experiments need besides the core."""
    if find_spec("pydantic") is None:
        raise RunError("experiments need the package pydantic: pip install 'labelsieve[bench]'")
