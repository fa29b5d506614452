"""Experiments: planned from a configuration, run in cells, stored one by one, resumed where they stopped.

The configuration needs the ``bench`` extra, so nothing of it is imported here.
"""

from __future__ import annotations

__all__ = ["RunError", "RunInterrupted"]


class RunError(ValueError):
    """An experiment cannot be set up, stored or read; the message says what to do."""


class RunInterrupted(KeyboardInterrupt):
    """The user stopped a run; everything finished is stored."""
