"""Experiments: planned from a configuration, run in cells that are stored one by one, and resumable.

The configuration needs the ``bench`` extra, so nothing of it is imported here.
"""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["RunError", "RunInterrupted", "require_packages"]


class RunError(ValueError):
    """An experiment cannot be set up, stored or read."""


class RunInterrupted(Exception):
    """The user stopped a run; everything finished is stored.

    Not a KeyboardInterrupt, whose message typer would drop.
    """


def require_packages() -> None:
    """Raise an error if the extra for experiments is not installed."""
    if find_spec("pydantic") is None:
        raise RunError("experiments need the package pydantic: pip install 'labelsieve[bench]'")
