"""Progress of a run: a bar per data set on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from labelsieve._text import one_line, printable, shortened
from labelsieve.bench.cells import CellResult, Task
from labelsieve.bench.config import DatasetSpec
from labelsieve.bench.plan import Cell
from labelsieve.bench.runner import Observer
from labelsieve.cli._console import download_bars, duration, shows_progress
from labelsieve.datasets.fetch import availability, fetch, is_known

# Seconds between lines where there is no terminal.
_PAUSE = 30.0


class RunProgress(Observer):
    """Show how the cells of a run finish, and how long the rest will take.

    Parameters
    ----------
    console : Console
        Where progress goes.
    alarms : Console
        Where failures go, shown even if progress is not.
    jobs : int
        Cells at the same time.
    """

    def __init__(self, console: Console, alarms: Console, jobs: int) -> None:
        self._console = console
        self._alarms = alarms
        self._jobs = jobs
        self._hidden = not shows_progress(console)
        columns: tuple[Any, ...] = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False),
        )
        self._progress = Progress(*columns, console=console, disable=self._hidden)
        self._tasks: dict[str, TaskID] = {}
        self._waiting: dict[str, list[Task]] = defaultdict(list)
        #: Judgements that are missing -> how often they stand in the plan.
        self._missing = Counter[str]()
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._n_cells = self._n_finished = 0
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def loading(self, spec: DatasetSpec) -> None:
        """Download what is not here yet; own files may well be called like a data set of the catalogue."""
        if not spec.path and is_known(spec.name) and availability(spec.name) == "download":
            with download_bars(self._console) as bars:
                fetch(spec.name, progress=bars)

    def planned(self, cells: Sequence[Cell], outcomes: dict[str, bool], tasks: Sequence[Task]) -> None:
        """Draw one bar per data set."""
        for task in tasks:
            self._waiting[task.cell.dataset.name].append(task)
        keys: dict[str, list[str]] = {}
        for cell in cells:
            own = keys.setdefault(cell.dataset.name, [])
            own += [judgement.key for judgement in cell.judgements if not judgement.obstacle]
        for name, own in keys.items():
            missing = [key for key in own if key not in outcomes]
            self._missing.update(missing)
            left = "" if missing else "finished"
            self._tasks[name] = self._progress.add_task(
                printable(name), total=len(own), completed=len(own) - len(missing), left=left
            )
        self._n_cells = sum(map(len, keys.values()))
        self._n_finished = self._n_cells - self._missing.total()
        if self._n_finished:
            self._console.print(f"{self._n_finished} of {self._n_cells} cells were finished before.")

    def finished(self, task: Task, result: CellResult) -> None:
        """Count what was done and estimate the rest."""
        cell = task.cell
        name = cell.dataset.name
        if result.error is not None:
            self._alarms.print(one_line(f"failed: {cell}: {shortened(result.error)}"))
        judges = {judgement.key: judgement.judge.name for judgement in cell.judgements}
        for key, judged in result.judgements.items():
            if judged.error is not None:
                self._alarms.print(one_line(f"failed: {cell}, {judges[key]}: {shortened(judged.error)}"))
        self._seconds[name, cell.method.name].append(result.seconds)
        self._waiting[name] = [other for other in self._waiting[name] if other.key != task.key]
        n_now = sum(self._missing.pop(key, 0) for key in judges)
        self._n_finished += n_now
        self._progress.update(self._tasks[name], advance=n_now, left=self._left(name))
        if self._hidden and time.monotonic() - self._last_line > _PAUSE:
            self._last_line = time.monotonic()
            self._console.print(
                f"{self._n_finished} of {self._n_cells} cells; {printable(name)}: {self._left(name)}"
            )

    def remark(self, text: str) -> None:
        """Pass a remark on."""
        self._alarms.print(one_line(text))

    def _left(self, name: str) -> str:
        """Say how long the rest of a data set will take, judged by its cells so far."""
        if not self._waiting[name]:
            return "finished"
        means = {
            method: sum(seconds) / len(seconds)
            for (dataset, method), seconds in self._seconds.items()
            if dataset == name
        }
        typical = sum(means.values()) / len(means)
        seconds = sum(means.get(task.cell.method.name, typical) for task in self._waiting[name])
        return f"about {duration(seconds / self._jobs)} left"
