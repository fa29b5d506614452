"""Limit the memory of this process, and say what did not fit."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
from scipy.linalg import blas

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_UNITS = {"": 1} | {unit: 1000**power for power, unit in enumerate("kmgtpe", start=1)}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("kmgtpe", start=1)}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgtpe]?i?)b?", re.IGNORECASE)
_FROM_NUMPY = re.compile(r"Unable to allocate (\d+(?:\.\d+)?)\.? (\w+) for an array")
_FROM_ARROW = re.compile(r"(?:malloc|realloc) of size (\d+)")
# The last small piece that does not fit says nothing about the whole.
_WORTH_TELLING = 10**6
# Compiled code reports a lack of memory in its own errors.
_OTHER_WORDS = (
    *("out of memory", "cannot allocate memory", "bad_alloc"),
    *("can't start new thread", "failed to launch worker thread"),
)


def parse_size(text: str) -> int:
    """Parse a number of bytes.

    Examples
    --------
    >>> parse_size("8GB"), parse_size("1.5 GiB"), parse_size("500m")
    (8000000000, 1610612736, 500000000)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].lower() not in _UNITS:
        raise ValueError(f"must be a size such as 8GB or 500MB, got {text!r}")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def format_size(n_bytes: float) -> str:
    """Format a number of bytes.

    Examples
    --------
    >>> format_size(8e9), format_size(53_687_091_200), format_size(1500)
    ('8 GB', '54 GB', '1.5 KB')
    """
    units = ["bytes", "KB", "MB", "GB", "TB", "PB", "EB"]
    while n_bytes >= 999.5 and len(units) > 1:
        n_bytes /= 1000
        units.pop(0)
    return f"{n_bytes:.2g} {units[0]}" if n_bytes < 99.5 else f"{n_bytes:.0f} {units[0]}"


def start_blas() -> None:
    """Let OpenBLAS allocate its buffers and start its threads, whatever the limit.

    If it had to do so later and could not, it would end the process or wait for ever. A fork ends its threads.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    try:
        for dtype in (np.float64, np.float32):
            square = np.ones((256, 256), dtype)
            square @ square
            blas.get_blas_funcs("gemm", dtype=dtype)(1.0, square, square)
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextmanager
def limited_memory(n_bytes: int | None) -> Iterator[None]:
    """Limit the memory that this process may allocate. More raises `MemoryError`. None sets no limit.

    Memory-mapped files do not count. Processes that are started meanwhile have the same limit each.
    """
    if n_bytes is None:
        yield
        return
    if resource is None:
        raise ValueError("memory cannot be limited on this system")
    start_blas()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = n_bytes if hard == resource.RLIM_INFINITY else min(n_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def lacks_memory(error: BaseException) -> bool:
    """Return True if an error means that there was not enough memory."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return any(words in str(error).lower() for words in _OTHER_WORDS)


def memory_reason(error: BaseException) -> str:
    """Say how much memory was needed and how much there is, as far as it is known.

    Examples
    --------
    >>> memory_reason(MemoryError("Unable to allocate 50.0 GiB for an array")).partition(", ")[0]
    'needs about 54 GB more'
    """
    parts, needed = [], 0
    if found := _FROM_NUMPY.search(str(error)):
        needed = parse_size(found[1] + found[2].removesuffix("ytes"))
    elif found := _FROM_ARROW.search(str(error)):
        needed = int(found[1])
    if needed >= _WORTH_TELLING:
        parts.append(f"needs about {format_size(needed)} more")
    limit = -1
    if resource is not None:
        soft = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
        limit = min((size for size in soft if size != resource.RLIM_INFINITY), default=-1)
    if limit >= 0:
        parts.append(f"limit {format_size(limit)}")
    else:
        with suppress(AttributeError, ValueError, OSError):
            total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            parts.append(f"this computer has {format_size(total)}")
    return ", ".join(parts) or "out of memory"
