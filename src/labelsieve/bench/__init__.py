"""Resumable experiments that run and store one cell at a time.

The configuration needs the ``bench`` extra, so this module does not import it.
"""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["RunError", "RunInterrupted", "require_packages"]


class RunError(ValueError):
    """Error in setting up, storing or reading an experiment."""


class RunInterrupted(Exception):
    """A run stopped by the user. Its finished cells are stored.

    This is not a KeyboardInterrupt because typer would drop its message.
    """


def require_packages() -> None:
    """Raise if the ``bench`` extra is not installed."""
    if find_spec("pydantic") is None:
        raise RunError("experiments need pydantic. Install it: pip install 'labelsieve[bench]'")
