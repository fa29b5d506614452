"""Cells side by side in processes of this machine: one that dies fails its cell at most, never the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple, Self

from labelsieve.bench.cells import CellResult
from labelsieve.bench.config import Experiment
from labelsieve.bench.limits import too_long
from labelsieve.bench.plan import Cell
from labelsieve.bench.process import CellProcess, Message

__all__ = ["Crew", "Death", "SecondChance", "run_locally"]

# Seconds between two looks at the memory and the clock; without limits, for Ctrl-C alone.
_INTERVAL, _LONG_INTERVAL = 0.05, 1.0


class Death(NamedTuple):
    """What there is instead of a result when the process of a cell is gone."""

    how: str
    traceback: str | None = None


def run_locally(
    experiment: Experiment, cells: Sequence[Cell], jobs: int, remark: Callable[[str], None]
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
    """
    waiting = deque(cells)
    chance = SecondChance(remark)
    with Crew(experiment) as crew:
        while waiting or crew.n_busy:
            while waiting and crew.n_busy < jobs:
                crew.begin(waiting.popleft())
            cell, outcome = crew.next_outcome()
            result = chance.settle(cell, outcome)
            if result is None:
                waiting.append(cell)  # others are done by then: there is more memory
                continue
            if waiting:  # first, for storing takes a moment
                crew.begin(waiting.popleft())
            yield cell, result


class SecondChance:
    """A process may have been killed by somebody else; a cell whose process dies twice has itself to blame."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        self._remark = remark
        self._died: set[str] = set()

    def settle(self, cell: Cell, outcome: CellResult | Death) -> CellResult | None:
        """Make an outcome a result; None asks to run the cell again at the end."""
        if isinstance(outcome, CellResult):
            return outcome
        if cell.key in self._died:
            error = f"WorkerDied: {outcome.how}, twice; out of memory, or a crash in compiled code"
            return CellResult(error=error, traceback=outcome.traceback)
        self._died.add(cell.key)
        self._remark(f"{outcome.how}, {cell}; it is tried again at the end.")
        return None


class Crew:
    """Processes with a cell each, watched over; one is started when a cell finds none without work."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._messages: SimpleQueue[Message] = SimpleQueue()
        self._idle: list[CellProcess] = []
        self._busy: list[CellProcess] = []

    @property
    def n_busy(self) -> int:
        """Cells that are being run."""
        return len(self._busy)

    def begin(self, cell: Cell) -> None:
        """Give a cell to a process."""
        process = self._idle.pop() if self._idle else CellProcess(self._experiment, self._messages)
        self._busy.append(process)
        process.begin(cell)

    def next_outcome(self) -> tuple[Cell, CellResult | Death]:
        """Wait until a cell is finished, takes too much or has lost its process."""
        limits = self._experiment.limits
        interval = _LONG_INTERVAL if limits.seconds is limits.memory_mib is None else _INTERVAL
        while True:
            # What a process has said counts before what the clock says.
            found = self._listen(0.0) or self._look() or self._listen(interval)
            if found is not None:
                return found

    def close(self) -> None:
        """End all processes."""
        for process in self._busy:
            process.end()
        for process in self._idle:
            process.dismiss()
        self._busy, self._idle = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _listen(self, seconds: float) -> tuple[Cell, CellResult | Death] | None:
        """Wait for one message; None if it says nothing of a cell."""
        try:
            process, content = self._messages.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(content, str):
            process.is_ready()
            return None
        if content is None:
            process.end()
        if process in self._idle:  # it died without a cell
            self._idle.remove(process)
        if process not in self._busy:  # it was stopped
            return None
        self._busy.remove(process)
        if content is None:
            return process.cell, Death(f"the process of the cell {process.fate()}", process.traceback)
        self._idle.append(process)
        return process.cell, self._in_time(content)

    def _look(self) -> tuple[Cell, CellResult] | None:
        """Stop a cell that takes too much."""
        for process in self._busy:
            reason = process.excess(self._experiment.limits)
            if reason is not None:
                self._busy.remove(process)
                return process.cell, process.stop(reason)
        return None

    def _in_time(self, result: CellResult) -> CellResult:
        """Refuse what took too long although nobody looked in time."""
        limit = self._experiment.limits.seconds
        if limit is None or result.seconds <= limit:
            return result
        return CellResult(error=f"LimitExceeded: {too_long(limit)}", seconds=result.seconds)
