"""Read damaged files in a child process first, because compiled parsers may end their process."""

from __future__ import annotations

import faulthandler
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from labelsieve.io import DatasetError
from labelsieve.io.memory import start_blas
from labelsieve.io.reading import format_of
from labelsieve.io.source import Source

#: Formats whose parsers, pyarrow and SciPy, can end the process if a file is damaged.
_CRASHING = ("parquet", "matlab")


def read_in_child_first(files: Sequence[str | Path], read: Callable[[], object]) -> None:
    """Call `read` in a child process if it parses risky formats. Raise if the process dies.

    Other errors are left to the next call in this process.
    """
    if not hasattr(os, "fork") or not any(map(_is_risky, files)):
        return
    with warnings.catch_warnings():
        # Python warns of threads. The child needs none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        with suppress(BaseException), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)  # parsers print messages before they end the process
            faulthandler.disable()
            read()
        os._exit(0)
    try:
        status = os.waitpid(child, 0)[1]
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    start_blas()
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        raise DatasetError(
            f"{', '.join(map(str, files))}: the parser crashed ({name}), so the file is damaged or does not fit into "
            "memory; save or copy it again."
        )


def _is_risky(file: str | Path) -> bool:
    try:
        return os.path.isfile(file) and format_of(Source(file)) in _CRASHING
    except DatasetError:
        return False
