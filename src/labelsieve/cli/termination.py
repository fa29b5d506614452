"""SIGTERM answered as Ctrl-C is: what is unfinished is cleaned up, and the end is told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """The system asks this program to end."""


@contextmanager
def raising_terminated(came: threading.Event) -> Iterator[None]:
    """Raise `Terminated` on SIGTERM, once, and set `came`.

    Python lets the main thread alone handle signals; a program with a handler of its own keeps it.
    """

    def answer(number: int, frame: object) -> None:
        # Those who ask often ask twice, the process and its group: the second must not stop the cleaning up.
        if not came.is_set():
            came.set()
            raise Terminated

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
