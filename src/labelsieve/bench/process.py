"""A process of its own that runs one cell after the other: both ends of it, and what passes between them.

It is a plain Python started through `subprocess`, with pickles on its standard input and output. What pools of
processes offer was measured and does not serve here: those of the standard library and of pebble import the
user's program again, which starts the run a second time where the program has no ``__main__`` guard; in loky's
the death of one process fails the cells of all others; in pebble's a process that dies while it holds the lock
all share can leave the rest waiting, and none says which process has which cell, without which nobody can watch
its memory. Besides, those processes cannot be started by the workers of a dask cluster, which may have no
children of that kind.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from labelsieve.bench.cells import CellResult, Task, evaluate
from labelsieve.bench.config import Experiment, Limits
from labelsieve.bench.limits import resident_mebibytes, too_long, too_much

__all__ = ["CellProcess", "Message"]

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_READY = "ready"
_CAN_TELL = hasattr(faulthandler, "register")
# How a pipe ends for its reader: between two pickles, or within one when the other side was killed.
_HUNG_UP = (EOFError, OSError, pickle.UnpicklingError)
_SECONDS_TO_TELL = 1.0
_FAREWELL_SECONDS = 5.0


class Message(NamedTuple):
    """What a process says: "ready" at first, then results, None when it is gone."""

    process: CellProcess
    content: CellResult | str | None


class CellProcess:
    """A process that runs cells, seen from the one that started it.

    Parameters
    ----------
    experiment : Experiment
        The configuration.
    messages : SimpleQueue of Message
        Where it is put what the process says.

    Attributes
    ----------
    task : Task
        The last one it was given.
    traceback : str or None
        Where the process was when it crashed or was stopped, if it came to tell.
    """

    task: Task
    traceback: str | None = None

    def __init__(self, experiment: Experiment, messages: SimpleQueue[Message]) -> None:
        self._began: float | None = None
        self._memory_before: float | None = None
        self._ready = False
        self._trace = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        fd = self._trace.fileno()
        # While modules are read nothing becomes garbage; looking for it took a tenth of the start.
        program = (
            f"import gc, sys; sys.path[:] = {sys.path!r}; gc.disable(); import labelsieve.bench.process as p; "
            f"gc.enable(); p.serve({fd})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ONE_THREAD},
            pass_fds=(fd,) if _CAN_TELL else (),
            # Deaf to Ctrl-C, which the runner answers; what a method starts can be ended with it.
            process_group=0,
        )
        self._send(experiment)
        self._listener = threading.Thread(target=self._listen, args=(messages,), daemon=True)
        self._listener.start()

    def begin(self, task: Task) -> None:
        """Hand a task over; if the process is gone, that shows when it should answer."""
        self.task = task
        self._began = None
        if self._ready:
            self._start()

    def is_ready(self) -> None:
        """Note that the process has started: what it took until then is not the cell's."""
        self._ready = True
        self._start()

    def excess(self, limits: Limits) -> str | None:
        """Say what the cell took too much of, if it did."""
        if self._began is None:
            return None
        if limits.seconds is not None and time.monotonic() - self._began > limits.seconds:
            return too_long(limits.seconds)
        if limits.memory_mib is not None and self._memory_before is not None:
            memory = resident_mebibytes(self._process.pid) or 0.0
            if memory - self._memory_before > limits.memory_mib:
                return too_much(limits.memory_mib)
        return None

    def stop(self, reason: str) -> CellResult:
        """End the process, whatever it does, for what it took; the result says where it was."""
        seconds = 0.0 if self._began is None else time.monotonic() - self._began
        if _CAN_TELL:
            self._process.send_signal(signal.SIGUSR1)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_TELL)
            self._kill()  # what it started may be there still
        self.end()
        return CellResult(error=f"LimitExceeded: {reason}", traceback=self.traceback, seconds=seconds)

    def fate(self) -> str:
        """Say how the process ended."""
        code = self._process.wait()
        if code >= 0:
            return f"ended with exit code {code}"
        names = {int(number): number.name for number in signal.Signals}  # not every signal has one
        return f"was killed by {names.get(-code, f'signal {-code}')}"

    def dismiss(self) -> None:
        """Let a process go that has nothing to do."""
        self._hang_up()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL_SECONDS)
        self.end()

    def end(self) -> None:
        """End the process, and what it started, whatever it does; keep what it had to tell."""
        if self._process.poll() is None:
            self._kill()
        self._process.wait()
        self._hang_up()
        self._listener.join(_FAREWELL_SECONDS)
        if not self._trace.closed:
            self._trace.seek(0)
            self.traceback = self._trace.read().decode(errors="replace") or None
            self._trace.close()

    def _kill(self) -> None:
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):  # all are gone, as systems differ in telling
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def _hang_up(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it is gone already, and did not read everything
            self._process.stdin.close()

    def _start(self) -> None:
        self._began = time.monotonic()
        self._memory_before = resident_mebibytes(self._process.pid)
        self._send(self.task)

    def _send(self, content: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            pickle.dump(content, self._process.stdin)
            self._process.stdin.flush()

    def _listen(self, messages: SimpleQueue[Message]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            try:
                while True:
                    messages.put(Message(self, pickle.load(answers)))
            except (EOFError, OSError):
                pass  # it is gone, or about to be
            except Exception:  # what is no pickle can raise anything
                self._process.kill()
            self._process.wait()
        messages.put(Message(self, None))


def serve(trace: int) -> None:
    """Run cells until nobody gives any: the other end of a `CellProcess`."""
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a method reads or prints must not come between.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):  # a child of a method must not hold the pipe of a dead process open
        os.register_at_fork(after_in_child=lambda: os.close(answers.fileno()))
    if _CAN_TELL:
        faulthandler.enable(trace)
        # In the chain comes what the signal does by itself: it ends the process, once everything is told.
        faulthandler.register(signal.SIGUSR1, trace, all_threads=False, chain=True)
    try:
        experiment = pickle.load(commands)
    except _HUNG_UP:  # the run was stopped before it began
        return
    tasks: SimpleQueue[Task] = SimpleQueue()
    threading.Thread(target=_receive, args=(commands, tasks), daemon=True).start()
    answer: Any = _READY
    with suppress(BrokenPipeError):  # nobody listens any more
        while True:
            pickle.dump(answer, answers)
            answers.flush()
            answer = evaluate(experiment, tasks.get())
    os._exit(0)


def _receive(commands: Any, tasks: SimpleQueue[Task]) -> None:
    """Pass tasks on; when there will be no more, or the runner was killed, end at once."""
    with suppress(*_HUNG_UP):
        while True:
            tasks.put(pickle.load(commands))
    os._exit(0)
