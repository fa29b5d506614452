"""Cells side by side in processes of this machine: one that dies fails its cell at most, never the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from queue import Empty, SimpleQueue
from typing import NamedTuple, Self

from labelsieve.bench.cells import CellResult, Task
from labelsieve.bench.config import Experiment
from labelsieve.bench.limits import too_long
from labelsieve.bench.process import CellProcess, Message

__all__ = ["Crew", "Death", "SecondChance", "run_locally"]

# Seconds between two looks at the memory and the clock; without limits, for Ctrl-C alone.
_INTERVAL, _LONG_INTERVAL = 0.05, 1.0


class Death(NamedTuple):
    """What there is instead of a result when the process of a cell is gone."""

    how: str
    traceback: str | None = None


def run_locally(
    experiment: Experiment, tasks: Iterable[Task], jobs: int, remark: Callable[[str], None]
) -> Generator[tuple[Task, CellResult]]:
    """Run cells side by side and yield them in the order they finish.

    A single job is a process of its own as well: a cell that crashes or runs out of memory is recorded.

    Parameters
    ----------
    experiment : Experiment
        The configuration.
    tasks : iterable of Task
        What to run; asked for the next when there is a process for it.
    jobs : int
        How many processes.
    remark : callable
        Told when a process dies.
    """
    fresh, again = iter(tasks), deque[Task]()
    chance = SecondChance(remark)

    def begin(crew: Crew) -> bool:
        """Give a process the next task, if there is one."""
        task = next(fresh, None) or (again.popleft() if again else None)
        if task is not None:
            crew.begin(task)
        return task is not None

    with Crew(experiment) as crew:
        while True:
            while crew.n_busy < jobs and begin(crew):
                pass
            if not crew.n_busy:
                return
            task, outcome = crew.next_outcome()
            result = chance.settle(task, outcome)
            if result is None:
                again.append(task)  # others are done by then: there is more memory
                continue
            begin(crew)  # first, for storing takes a moment
            yield task, result


class SecondChance:
    """A process may have been killed by somebody else; a cell whose process dies twice has itself to blame."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        self._remark = remark
        self._died: set[str] = set()

    def settle(self, task: Task, outcome: CellResult | Death) -> CellResult | None:
        """Make an outcome a result; None asks to run the cell again at the end."""
        if isinstance(outcome, CellResult):
            return outcome
        if task.key in self._died:
            error = f"WorkerDied: {outcome.how}, twice; out of memory, or a crash in compiled code"
            return CellResult(error=error, traceback=outcome.traceback)
        self._died.add(task.key)
        self._remark(f"{outcome.how}, {task}; it is tried again at the end.")
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

    def begin(self, task: Task) -> None:
        """Give a cell to a process."""
        process = self._idle.pop() if self._idle else CellProcess(self._experiment, self._messages)
        self._busy.append(process)
        process.begin(task)

    def next_outcome(self) -> tuple[Task, CellResult | Death]:
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

    def _listen(self, seconds: float) -> tuple[Task, CellResult | Death] | None:
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
            return process.task, Death(f"the process of the cell {process.fate()}", process.traceback)
        self._idle.append(process)
        return process.task, self._in_time(content)

    def _look(self) -> tuple[Task, CellResult] | None:
        """Stop a cell that takes too much."""
        for process in self._busy:
            reason = process.excess(self._experiment.limits)
            if reason is not None:
                self._busy.remove(process)
                return process.task, process.stop(reason)
        return None

    def _in_time(self, result: CellResult) -> CellResult:
        """Refuse what took too long although nobody looked in time."""
        limit = self._experiment.limits.seconds
        if limit is None or result.seconds <= limit:
            return result
        return CellResult(error=f"LimitExceeded: {too_long(limit)}", seconds=result.seconds)
