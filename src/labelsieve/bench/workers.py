"""Processes of this machine that run cells: one that dies fails its cell at most, never the run.

``joblib.Parallel`` gives up all its processes when one of them dies, and cannot say which task was to blame. So
joblib's processes are used one by one, each with a pipe of its own.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait

from joblib.externals.loky.backend import get_context

from labelsieve.bench.cells import CellResult, evaluate
from labelsieve.bench.config import Experiment
from labelsieve.bench.limits import too_long
from labelsieve.bench.plan import Cell

__all__ = ["died", "run_locally"]

# A process may have been killed by somebody else; a cell whose process dies twice has itself to blame.
_ATTEMPTS = 2
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # the latter is as hard on Windows
_WATCH_INTERVAL = 0.5
_FAREWELL_SECONDS = 5.0


def run_locally(
    experiment: Experiment,
    cells: Sequence[Cell],
    jobs: int,
    remark: Callable[[str], None],
    *,
    grace: float = 30.0,
) -> Generator[tuple[Cell, CellResult]]:
    """Run cells side by side and yield them in the order they finish.

    A single job is a process of its own as well: a cell that crashes or runs out of memory is recorded.

    Parameters
    ----------
    experiment : Experiment
        The configuration.
    cells : sequence of Cell
        What to run.
    jobs : int
        How many processes.
    remark : callable
        Told when a process dies.
    grace : float, default=30.0
        Seconds beyond ``limits.seconds`` after which a process that does not answer is killed: compiled code
        cannot be interrupted otherwise.
    """
    waiting = deque(cells)
    deaths: Counter[str] = Counter()
    idle: list[_Worker] = []
    busy: list[_Worker] = []
    limit = experiment.limits.seconds

    def assign() -> None:
        while waiting and len(busy) < jobs:
            busy.append(idle.pop() if idle else _Worker(experiment))
            busy[-1].begin(waiting.popleft())

    try:
        assign()
        while busy:
            finished = []
            for worker in _answering(busy, None if limit is None else limit + grace):
                busy.remove(worker)
                cell, result = worker.cell, worker.result()
                if result is not None:
                    idle.append(worker)
                elif worker.overdue:
                    result = CellResult(error=f"LimitExceeded: {too_long(limit)}")
                else:
                    deaths[cell.key] += 1
                    if deaths[cell.key] < _ATTEMPTS:
                        remark(
                            f"the process of a cell {worker.fate()}, {cell}; it is tried again at the end."
                        )
                        waiting.append(cell)  # others are done by then: there is more memory
                        continue
                    result = died(f"the process of the cell {worker.fate()}, twice")
                finished.append((cell, result))
            assign()  # first, for storing takes a moment
            yield from finished
        while idle:
            idle.pop().dismiss()
    finally:
        for worker in (*busy, *idle):
            worker.kill()


def died(how: str) -> CellResult:
    """Make the result of a cell whose process is gone."""
    return CellResult(error=f"WorkerDied: {how}; out of memory, or a crash in compiled code")


def _answering(workers: Sequence[_Worker], patience: float | None) -> list[_Worker]:
    """Wait until workers have finished or died; those that take longer than `patience` are killed."""
    timeout = None
    if patience is not None:
        timeout = max(0.0, min(worker.began for worker in workers) + patience - time.monotonic())
    # Both: a process started by a method may keep the pipe of a dead worker open.
    handles = {handle: worker for worker in workers for handle in (worker.connection, worker.sentinel)}
    found = {id(handles[handle]): handles[handle] for handle in wait(list(handles), timeout)}
    if patience is not None and not found:
        for worker in workers:
            if time.monotonic() - worker.began >= patience:
                worker.overdue = True
                worker.kill()
                found[id(worker)] = worker
    return list(found.values())


class _Worker:
    """A process that runs one cell after the other."""

    cell: Cell
    began: float

    def __init__(self, experiment: Experiment) -> None:
        context = get_context("loky")  # unlike "spawn", it does not import the user's program again
        self.connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, experiment, os.getpid()), env=_ONE_THREAD
        )
        with _interrupts_held_back():
            self._process.start()
        theirs.close()
        self.sentinel: int = self._process.sentinel
        self.overdue = False

    def begin(self, cell: Cell) -> None:
        """Hand a cell over; if the process is gone, that shows when it should answer."""
        self.cell = cell
        self.began = time.monotonic()
        with suppress(OSError):
            self.connection.send(cell)

    def result(self) -> CellResult | None:
        """Take the result; None if the process died."""
        with suppress(EOFError, OSError):
            if self.connection.poll():
                return self.connection.recv()
        self.kill()
        return None

    def fate(self) -> str:
        """Say how the process ended."""
        code = self._process.exitcode
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def dismiss(self) -> None:
        """Let an idle process go."""
        self.connection.close()
        self._process.join(_FAREWELL_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the process whatever it does."""
        if self._process.is_alive():
            os.kill(self._process.pid, _KILL)
        self._process.join()
        self.connection.close()


def _serve(connection: Connection, experiment: Experiment, parent: int) -> None:
    """Run cells until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            connection.send(evaluate(experiment, connection.recv()))


def _end_with(parent: int) -> None:
    """End this process soon after the one that waits for its results."""
    while os.getppid() == parent:
        time.sleep(_WATCH_INTERVAL)
    os._exit(1)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start processes deaf to Ctrl-C, which the runner answers; if it comes meanwhile, it arrives afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
