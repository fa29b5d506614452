"""What a cell may take, and what it took: seconds and memory, as the system tells."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["forget_peak_memory", "peak_mebibytes", "resident_mebibytes", "too_long", "too_much"]

_MIB = 2**20


def too_long(seconds: float) -> str:
    """Say that a cell took too long."""
    return f"took more than {seconds:g} seconds; raise limits.seconds and run again with --retry-failed"


def too_much(memory_mib: float) -> str:
    """Say that a cell took too much memory."""
    return f"took more than {memory_mib:g} MiB of memory; raise limits.memory_mib and run again with --retry-failed"


def resident_mebibytes(pid: int) -> float | None:
    """Memory of a process, None where the system does not tell or the process is gone."""
    with suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
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
