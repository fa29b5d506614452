"""What a cell may take, and what it took: seconds and memory, watched from a second thread."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["LimitExceeded", "Watchdog", "forget_peak_memory", "peak_mebibytes"]

_MIB = 2**20
_INTERVAL = 0.05
_AGAIN = 1.0


class LimitExceeded(BaseException):
    """A cell took more than it may; not an Exception, so that no method swallows it by accident."""


class Watchdog:
    """Stop the work of this thread when it takes too long or too much memory.

    The exception arrives between two steps of Python: a single call into compiled code is not cut short.

    Parameters
    ----------
    seconds : float or None
        Most seconds from now.
    memory_mib : float or None
        Most MiB of memory above what the process has now, where the system tells.
    parent : int or None
        A process that must stay alive: without it, nobody waits for the result, and this process ends.
    """

    def __init__(self, seconds: float | None, memory_mib: float | None, parent: int | None = None) -> None:
        self._seconds = seconds
        self._memory_mib = memory_mib
        self._parent = parent
        self._target = threading.get_ident()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._reason: str | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        self._base = resident_mebibytes()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._done.set()
        if self._reason is not None:
            # Ordered but maybe not yet delivered: it must arrive here, not in whatever comes next.
            while kind is not LimitExceeded:
                try:
                    time.sleep(0.01)
                except LimitExceeded:
                    break
            raise LimitExceeded(self._reason)

    def _watch(self) -> None:
        interval = _INTERVAL
        while not self._done.wait(interval):
            if self._parent is not None and os.getppid() != self._parent:
                os._exit(1)
            reason = self._excess()
            with self._lock:
                if reason is not None and not self._done.is_set():
                    self._reason = reason
                    # Again if it is lost: what a destructor or a callback raises, Python ignores.
                    interval = _AGAIN
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self._target), ctypes.py_object(LimitExceeded)
                    )

    def _excess(self) -> str | None:
        if self._seconds is not None and time.monotonic() - self._start > self._seconds:
            return f"took more than {self._seconds:g} seconds (limits.seconds)"
        if self._memory_mib is None or self._base is None:
            return None
        if (resident_mebibytes() or 0) - self._base > self._memory_mib:
            return f"took more than {self._memory_mib:g} MiB of memory (limits.memory_mib)"
        return None


def resident_mebibytes() -> float | None:
    """Memory of this process, None where the system does not tell."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
    return None


def forget_peak_memory() -> None:
    """Let the peak start at the present size, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mebibytes() -> float | None:
    """Largest memory since the peak was forgotten, None where the system does not tell."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return None
