"""Run cells side by side, each in a process of its own: a cell that crashes fails alone.

A thread drives one process and waits for it, so the code reads from top to bottom. The processes are plain Pythons
started through `subprocess`: those of `multiprocessing` run the user's program again and cannot be started by the
workers of a dask cluster, and in pools the death of one process fails the cells of the others.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from typing import Any, NamedTuple, Self

from labelsieve.bench.cells import CellResult, Task, evaluate
from labelsieve.bench.config import Experiment
from labelsieve.bench.limits import resident_mebibytes

__all__ = ["CellProcess", "Death", "run_locally", "settle"]

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Seconds between two checks of the limits; without limits, of whether the process is alive.
_INTERVAL, _LONG_INTERVAL = 0.05, 1.0
_SECONDS_TO_DUMP = 1.0
_HUNG_UP = (EOFError, OSError)


class Death(NamedTuple):
    """Outcome of a cell whose process died."""

    cause: str
    traceback: str | None = None


class _LimitExceeded(Exception):
    """A cell took too much time or memory."""


class CellProcess:
    """A process that runs one cell after the other, seen from the thread that drives it."""

    def __init__(self, experiment: Experiment) -> None:
        self._limits = experiment.limits
        self._ready = False
        self._closing = threading.Lock()
        self._traceback: str | None = None
        self._trace = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._connection, theirs = Pipe()
        files = (theirs.fileno(), self._trace.fileno())
        program = f"import sys; sys.path[:] = {sys.path!r}; import labelsieve.bench.process as p; p.serve(*{files!r})"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a method prints is not a result
                env={**os.environ, **_ONE_THREAD},
                pass_fds=files,
                # Ctrl-C is for the runner; and what a method starts is killed with it.
                process_group=0,
            )
        self._send(experiment)

    def run(self, task: Task) -> CellResult | Death:
        """Run a cell and wait for it; a cell that exceeds its limits is stopped."""
        try:
            if not self._ready:  # starting takes time and memory that do not count for the cell
                self._receive()
                self._ready = True
            start, memory = time.monotonic(), resident_mebibytes(self._process.pid)
            self._send(task)
            result: CellResult = self._receive(lambda: self._check_limits(start, memory))
        except _HUNG_UP:
            self.close()
            return Death(f"the process of the cell {self._fate()}", self._traceback)
        except _LimitExceeded as error:
            return self._stop(error, time.monotonic() - start)
        if self._limits.seconds is not None and result.seconds > self._limits.seconds:
            return CellResult(error=f"LimitExceeded: {self._too_long}", seconds=result.seconds)
        return result

    @property
    def is_alive(self) -> bool:
        """Whether the process can run another cell."""
        return self._process.poll() is None

    def close(self) -> None:
        """Kill the process and what it started; keep where it was, if it could write that."""
        with suppress(ProcessLookupError, PermissionError):  # all are gone
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        with self._closing:  # the runner may close it while a thread does
            if not self._trace.closed:
                self._trace.seek(0)
                self._traceback = self._trace.read().decode(errors="replace") or None
                self._trace.close()

    def _send(self, content: Any) -> None:
        with suppress(OSError):  # if the process is gone, that shows when it should answer
            self._connection.send(content)

    def _receive(self, check: Callable[[], None] | None = None) -> Any:
        """Wait for an answer; raises EOFError if the process ends without one."""
        limited = check is not None and (self._limits.seconds, self._limits.memory_mib) != (None, None)
        while not self._connection.poll(_INTERVAL if limited else _LONG_INTERVAL):
            # A process that a method forked may hold the pipe open.
            if not self.is_alive and not self._connection.poll(0):
                raise EOFError
            if check is not None:
                check()
        return self._connection.recv()

    @property
    def _too_long(self) -> str:
        limit = self._limits.seconds
        return f"took more than {limit:g} seconds; raise limits.seconds and run again with --retry-failed"

    def _check_limits(self, start: float, memory: float | None) -> None:
        """Raise an error if the cell exceeds a limit."""
        limits = self._limits
        if limits.seconds is not None and time.monotonic() - start > limits.seconds:
            raise _LimitExceeded(self._too_long)
        if limits.memory_mib is not None and memory is not None:
            taken = (resident_mebibytes(self._process.pid) or 0.0) - memory
            if taken > limits.memory_mib:
                raise _LimitExceeded(
                    f"took more than {limits.memory_mib:g} MiB of memory; raise limits.memory_mib and run again with "
                    "--retry-failed"
                )

    def _stop(self, reason: Exception, seconds: float) -> CellResult:
        """Stop a cell; its traceback says where it was."""
        self._process.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS_TO_DUMP)
        self.close()
        return CellResult(error=f"LimitExceeded: {reason}", traceback=self._traceback, seconds=seconds)

    def _fate(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"ended with exit code {code}"
        names = {int(number): number.name for number in signal.Signals}  # not every signal has one
        return f"was killed by {names.get(-code, f'signal {-code}')}"


def serve(pipe: int, trace: int) -> None:
    """Run cells until the runner ends: the other end of a `CellProcess`."""
    connection: Connection[Any, Any] = Connection(pipe)
    faulthandler.enable(trace)
    # The chained default action of the signal ends the process after the dump.
    faulthandler.register(signal.SIGUSR1, trace, all_threads=False, chain=True)
    received: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, received), daemon=True).start()
    experiment = received.get()
    with suppress(OSError):  # the runner is gone
        connection.send("ready")
        while True:
            connection.send(evaluate(experiment, received.get()))
    os._exit(0)


def _receive(connection: Connection[Any, Any], received: SimpleQueue[Any]) -> None:
    """Pass on what the runner sends; end the process at once when the runner is gone."""
    with suppress(*_HUNG_UP):
        while True:
            received.put(connection.recv())
    os._exit(0)


def run_locally(
    experiment: Experiment, tasks: Iterable[Task], jobs: int, remark: Callable[[str], None]
) -> Generator[tuple[Task, CellResult]]:
    """Run cells side by side and yield them in the order they finish.

    A single job has a process of its own as well, so that a cell that crashes is recorded.

    Parameters
    ----------
    experiment : Experiment
        The configuration.
    tasks : iterable of Task
        Cells to run; the next one is taken when there is a process for it.
    jobs : int
        Number of processes.
    remark : callable
        Called with a sentence when a process dies.
    """
    with _Crew(experiment, jobs) as crew:
        yield from settle(crew.run_all(iter(tasks)), crew.run, remark)


def settle(
    outcomes: Iterable[tuple[Task, CellResult | Death]],
    run_alone: Callable[[Task], CellResult | Death],
    remark: Callable[[str], None],
) -> Iterator[tuple[Task, CellResult]]:
    """Run the cells whose process died once more, one at a time; the second death is a failure of the cell."""
    died = []
    for task, outcome in outcomes:
        if isinstance(outcome, CellResult):
            yield task, outcome
        else:
            remark(f"{outcome.cause}, {task}; it is tried again at the end.")
            died.append(task)
    for task in died:
        outcome = run_alone(task)
        if isinstance(outcome, Death):
            error = f"WorkerDied: {outcome.cause}, twice; out of memory, or a crash in compiled code"
            outcome = CellResult(error=error, traceback=outcome.traceback)
        yield task, outcome


class _Crew:
    """Threads with a process each."""

    def __init__(self, experiment: Experiment, jobs: int) -> None:
        self._experiment = experiment
        self._jobs = jobs
        self._threads = ThreadPoolExecutor(jobs)
        self._processes: list[CellProcess] = []
        self._idle: list[CellProcess] = []
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._closed = True
        for process in list(self._processes):
            process.close()
        self._threads.shutdown(cancel_futures=True)

    def run_all(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, CellResult | Death]]:
        """Run cells side by side; yields them in the order they finish."""
        running: dict[Future[CellResult | Death], Task] = {}
        finished: list[tuple[Task, CellResult | Death]] = []
        while True:
            # Before results are yielded, because storing them takes a moment.
            while len(running) < self._jobs and (task := next(tasks, None)) is not None:
                running[self._threads.submit(self.run, task)] = task
            yield from finished
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            finished = [(running.pop(future), future.result()) for future in done]

    def run(self, task: Task) -> CellResult | Death:
        """Run a cell in an idle process or a new one."""
        process = self._idle.pop() if self._idle else self._start()
        outcome = process.run(task)
        if process.is_alive:
            self._idle.append(process)
        else:
            self._processes.remove(process)
        return outcome

    def _start(self) -> CellProcess:
        process = CellProcess(self._experiment)
        self._processes.append(process)
        if self._closed:  # the run was stopped meanwhile
            process.close()
        return process
