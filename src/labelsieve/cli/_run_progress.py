"""Progress of an experiment, on a terminal and in a log."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from labelsieve._text import one_line, printable, short
from labelsieve.bench.cells import CellResult
from labelsieve.bench.config import DatasetSpec
from labelsieve.bench.plan import Cell
from labelsieve.bench.runner import Observer
from labelsieve.cli._console import download_bars, duration, shows_progress
from labelsieve.datasets.fetch import availability, fetch, is_known

# Seconds between progress lines if there is no terminal.
_PAUSE = 30.0


class RunProgress(Observer):
    """Progress of a run: one bar per dataset on a terminal, otherwise a line every 30 seconds.

    Failures go to the console `alarms`, even if progress is hidden.
    """

    def __init__(self, console: Console, alarms: Console) -> None:
        self._console = console
        self._alarms = alarms
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            disable=not shows_progress(console),
            speed_estimate_period=3600,
        )
        self._bars: dict[str, TaskID] = {}
        #: Missing judgement -> number of planned cells that need it.
        self._missing = Counter[str]()
        self._n_missing = self._n_cells = 0
        self._start = self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def loading(self, spec: DatasetSpec) -> None:
        """Download a catalogue dataset if it is missing."""
        # A user's file may share the name of a catalogue dataset.
        if not spec.path and is_known(spec.name) and availability(spec.name) == "download":
            with download_bars(self._console) as bars:
                fetch(spec.name, progress=bars)

    def planned(self, cells: Sequence[Cell], outcomes: dict[str, bool]) -> None:
        """Draw one bar per dataset."""
        keys: dict[str, list[str]] = defaultdict(list)
        for cell in cells:
            keys[cell.dataset.name] += [part.key for part in cell.judgements if not part.obstacle]
        for name, own in keys.items():
            missing = [key for key in own if key not in outcomes]
            self._missing.update(missing)
            self._bars[name] = self._progress.add_task(
                printable(name), total=len(own), completed=len(own) - len(missing)
            )
        self._n_cells = sum(map(len, keys.values()))
        self._n_missing = self._missing.total()
        self._start = time.monotonic()
        if self._n_missing < self._n_cells:
            n_finished = self._n_cells - self._n_missing
            self._console.print(f"{n_finished} of {self._n_cells} cells are already finished.")

    def finished(self, cell: Cell, result: CellResult) -> None:
        """Print failures and advance the bar."""
        judges = {judgement.key: judgement.judge.name for judgement in cell.judgements}
        errors = {f"{cell}, {judges[key]}": part.error for key, part in result.judgements.items()}
        for name, error in {str(cell): result.error, **errors}.items():
            if error is not None:
                self._alarms.print(one_line(f"failed: {name}: {short(error, 1000)}"))
        n_now = sum(self._missing.pop(key, 0) for key in judges)
        self._progress.update(self._bars[cell.dataset.name], advance=n_now)
        left, now = self._missing.total(), time.monotonic()
        if self._progress.disable and left and now - self._last_line > _PAUSE:
            self._last_line = now
            estimate = (now - self._start) * left / (self._n_missing - left)
            self._console.print(
                f"{self._n_cells - left} of {self._n_cells} cells finished, about {duration(estimate)} left"
            )

    def remark(self, text: str) -> None:
        """Print a note."""
        self._alarms.print(one_line(text))
