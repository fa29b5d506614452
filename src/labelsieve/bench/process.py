"""Run cells in parallel in separate processes, so that a crash affects only one cell.

Each process has a thread that waits for it. Processes are started with `subprocess` because `multiprocessing` would run
the main program of the user again, does not work in dask workers, and its pools fail all cells if one process dies.
"""

from __future__ import annotations

import faulthandler
import itertools
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
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from labelsieve.bench.cells import CellResult, evaluate
from labelsieve.bench.config import Experiment
from labelsieve.bench.plan import Cell

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Seconds between checks of the limits, and between checks that the process is alive if there are no limits.
_INTERVAL, _LONG_INTERVAL = 0.05, 1.0
_SECONDS_TO_DUMP = 1.0


class Death(NamedTuple):
    """Outcome of a cell whose process died."""

    cause: str
    traceback: str | None = None


class CellProcess:
    """Process that runs cells one by one. It is started on demand, and again if it dies."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._process: subprocess.Popen[bytes] | None = None
        self._trace = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        self._closed = False

    def run(self, cell: Cell) -> CellResult | Death:
        """Run a cell and wait for its result. Stop it if it exceeds the limits."""
        process, is_new = self._process, False
        if process is None or process.poll() is not None:
            process, is_new = self._start(), True
        limits = self._experiment.limits
        is_limited = (limits.seconds, limits.memory_mib) != (None, None)
        try:
            if is_new:  # start-up time and memory do not count towards the limits
                self._connection.send(self._experiment)
                self._connection.recv()
            start, memory = time.monotonic(), _resident_mebibytes(process.pid)
            self._connection.send(cell)
            while not self._has_answer(process, _INTERVAL if is_limited else _LONG_INTERVAL):
                seconds = time.monotonic() - start
                if limits.seconds is not None and seconds > limits.seconds:
                    return self._stop(process, "seconds", f"{limits.seconds:g} seconds", seconds)
                taken = _resident_mebibytes(process.pid) - memory
                if limits.memory_mib is not None and taken > limits.memory_mib:
                    return self._stop(process, "memory_mib", f"{limits.memory_mib:g} MiB of memory", seconds)
            result: CellResult = self._connection.recv()
            return result
        except (EOFError, OSError):
            _kill(process)
            code = process.wait()
            ending = (
                f"ended with exit code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
            )
            return Death(f"the process of the cell {ending}", self._traceback())

    def close(self) -> None:
        """Kill the process and its children. It cannot be started again."""
        self._closed = True
        if self._process is not None:
            _kill(self._process)
        self._trace.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._trace.seek(0)
        self._trace.truncate()
        self._connection, theirs = Pipe()
        files = (theirs.fileno(), self._trace.fileno())
        program = f"import sys; sys.path[:] = {sys.path!r}; import labelsieve.bench.process as p; p.serve(*{files!r})"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=2,  # methods must not print to the standard output, which is for results
                env={**os.environ, **_ONE_THREAD},
                pass_fds=files,
                # The runner handles Ctrl-C and kills the whole group.
                process_group=0,
            )
        if self._closed:  # the run was stopped in the meantime
            _kill(self._process)
        return self._process

    def _has_answer(self, process: subprocess.Popen[bytes], seconds: float) -> bool:
        """Wait for an answer, or raise EOFError if the process ended without one."""
        if self._connection.poll(seconds):
            return True
        # If a method forked, its child may keep the pipe open.
        if process.poll() is not None and not self._connection.poll(0):
            raise EOFError
        return False

    def _stop(self, process: subprocess.Popen[bytes], key: str, limit: str, seconds: float) -> CellResult:
        """Stop a cell and record its traceback."""
        process.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_DUMP)
        _kill(process)
        error = (
            f"LimitExceeded: took more than {limit}; increase limits.{key} and run again with --retry-failed"
        )
        return CellResult(error=error, traceback=self._traceback(), seconds=seconds)

    def _traceback(self) -> str | None:
        """Return the traceback that the process wrote, if any."""
        with suppress(ValueError):  # closed by the runner
            self._trace.seek(0)
            return self._trace.read().decode(errors="replace") or None
        return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # already gone
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _resident_mebibytes(pid: int) -> float:
    """Return the memory of a process, or 0 if it is unknown or the process is gone."""
    with suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0


def serve(pipe: int, trace: int) -> None:
    """Run cells for a `CellProcess` until the runner ends."""
    connection: Connection[Any, Any] = Connection(pipe)
    faulthandler.enable(trace)
    # After the dump, the default action of the signal ends the process.
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
    """Queue messages from the runner, and end the process when the runner is gone."""
    with suppress(EOFError, OSError):
        while True:
            received.put(connection.recv())
    os._exit(0)


def run_locally(
    experiment: Experiment, cells: Iterable[Cell], jobs: int, remark: Callable[[str], None]
) -> Generator[tuple[Cell, CellResult]]:
    """Run cells in parallel and yield them in the order they finish.

    The next cell is taken when a process is free. `remark` is called with a message when a process dies.
    """
    processes = [CellProcess(experiment) for _ in range(jobs)]
    idle = list(processes)

    def run(cell: Cell) -> CellResult | Death:
        process = idle.pop()
        outcome = process.run(cell)
        idle.append(process)
        return outcome

    threads = ThreadPoolExecutor(jobs)
    try:
        yield from retry_dead_cells(
            _run_all(iter(cells), jobs, lambda cell: threads.submit(run, cell)), run, remark
        )
    finally:
        for process in processes:
            process.close()
        threads.shutdown(cancel_futures=True)


def _run_all(
    cells: Iterator[Cell], jobs: int, submit: Callable[[Cell], Future[CellResult | Death]]
) -> Iterator[tuple[Cell, CellResult | Death]]:
    """Run cells in `jobs` threads and yield them in the order they finish."""
    running = {submit(cell): cell for cell in itertools.islice(cells, jobs)}
    while running:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        finished = [(running.pop(future), future.result()) for future in done]
        # Start the next cells before yielding because storing results takes time.
        running |= {submit(cell): cell for cell in itertools.islice(cells, len(finished))}
        yield from finished


def retry_dead_cells(
    outcomes: Iterable[tuple[Cell, CellResult | Death]],
    run_alone: Callable[[Cell], CellResult | Death],
    remark: Callable[[str], None],
) -> Iterator[tuple[Cell, CellResult]]:
    """Retry the cells whose process died, one at a time. A cell fails if its process dies twice."""
    died = []
    for cell, outcome in outcomes:
        if isinstance(outcome, CellResult):
            yield cell, outcome
        else:
            remark(f"{cell}: {outcome.cause}. It will be retried at the end.")
            died.append(cell)
    for cell in died:
        outcome = run_alone(cell)
        if isinstance(outcome, Death):
            error = f"WorkerDied: {outcome.cause} twice; likely out of memory or a crash in compiled code"
            outcome = CellResult(error=error, traceback=outcome.traceback)
        yield cell, outcome
