"""Memory of processes, as Linux reports it."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["forget_peak_memory", "peak_mebibytes", "resident_mebibytes"]

_MIB = 2**20


def resident_mebibytes(pid: int) -> float | None:
    """Return the memory of a process; None if the system does not say or the process is gone."""
    with suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
    return None


def forget_peak_memory() -> None:
    """Reset the peak to the present size, if the system can do that."""
    # Memory that was freed but kept would be used again without a trace.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mebibytes() -> float | None:
    """Return the largest memory since the peak was reset; None if the system does not say."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return None
