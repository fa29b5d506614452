"""Seconds that an audit may take, and what was left out for want of them."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Budget"]


class Budget:
    """Count seconds from the moment it is made.

    Parameters
    ----------
    seconds : float
        How long the audit should take.
    clock : callable, default=time.monotonic
        What tells the time.

    Examples
    --------
    >>> times = iter([0.0, 4.0, 4.0])
    >>> budget = Budget(5.0, clock=lambda: next(times))
    >>> budget.has(1.0), budget.has(2.0)
    (True, False)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        #: What tells the time.
        self.now = clock
        self._start = clock()
        #: Sentences on what was left out.
        self.cuts: list[str] = []

    @property
    def used(self) -> float:
        """Seconds that have passed."""
        return self.now() - self._start

    def has(self, seconds: float, share: float = 1.0) -> bool:
        """Whether so many seconds are left, of all or of a share that must leave something for what follows."""
        return self.used + seconds <= share * self.seconds

    def cut(self, sentence: str) -> None:
        """Say what is left out."""
        self.cuts.append(sentence)
