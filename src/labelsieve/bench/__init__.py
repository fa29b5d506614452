"""Resumable experiments that run and store one cell at a time.

The configuration needs the ``bench`` extra, so this module does not import it.
"""

from __future__ import annotations

from importlib.util import find_spec

from labelsieve._text import install_command

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
        packages = install_command("pydantic", "threadpoolctl", "iterative-stratification")
        raise RunError(f"experiments need pydantic. Install it: {packages}")
