"""What a cell may take, and what it took: seconds and memory, watched from a second thread."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

__all__ = ["LimitExceeded", "forget_peak_memory", "peak_mebibytes", "too_long", "watched"]

T = TypeVar("T")

_MIB = 2**20
_INTERVAL = 0.05
_AGAIN = 1.0


class LimitExceeded(BaseException):
    """A cell took more than it may; not an Exception, so that no method swallows it by accident."""


def watched(work: Callable[[], T], seconds: float | None, memory_mib: float | None) -> T:
    """Do some work, and stop it when it takes too long or too much memory.

    The exception arrives between two steps of Python: a single call into compiled code is not cut short.

    Parameters
    ----------
    work : callable
        What to do.
    seconds : float or None
        Most seconds.
    memory_mib : float or None
        Most MiB of memory above what the process has now, where the system tells.
    """
    if seconds is None and memory_mib is None:
        return work()
    watchdog = _Watchdog(seconds, memory_mib)
    try:
        try:
            value = work()
        finally:
            watchdog.stop()
    except LimitExceeded as stopped:
        watchdog.stop()  # again: the exception may have arrived just when it was to be stopped
        raise LimitExceeded(watchdog.reason) from stopped
    if watchdog.reason is not None:  # swallowed by the work, or not arrived
        raise LimitExceeded(watchdog.reason)
    return value


def too_long(seconds: float | None) -> str:
    """Say that a cell took too long."""
    return f"took more than {seconds:g} seconds; raise limits.seconds and run again with --retry-failed"


class _Watchdog:
    """A thread that raises `LimitExceeded` in the thread that made it."""

    def __init__(self, seconds: float | None, memory_mib: float | None) -> None:
        self.reason: str | None = None
        self._seconds = seconds
        self._memory_mib = memory_mib
        self._start = time.monotonic()
        self._base = resident_mebibytes()
        self._target = ctypes.c_ulong(threading.get_ident())
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Raise nothing from now on, not even what was ordered and has not arrived."""
        self._done.set()
        self._thread.join()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, None)

    def _watch(self) -> None:
        while not self._done.wait(_INTERVAL if self.reason is None else _AGAIN):
            self.reason = self.reason or self._excess()
            if self.reason is not None:
                # Again after a while: what a destructor or a callback raises, Python ignores.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._target, ctypes.py_object(LimitExceeded))

    def _excess(self) -> str | None:
        if self._seconds is not None and time.monotonic() - self._start > self._seconds:
            return too_long(self._seconds)
        if self._memory_mib is None or self._base is None:
            return None
        if (resident_mebibytes() or 0) - self._base > self._memory_mib:
            return (
                f"took more than {self._memory_mib:g} MiB of memory; raise limits.memory_mib and run again with "
                "--retry-failed"
            )
        return None


def resident_mebibytes() -> float | None:
    """Memory of this process, None where the system does not tell."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
    return None


def forget_peak_memory() -> None:
    """Let the peak start at the present size, where the system can do that."""
    # Memory that was freed but kept would be used again without a trace.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mebibytes() -> float | None:
    """Largest memory since the peak was forgotten, None where the system does not tell."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return None
