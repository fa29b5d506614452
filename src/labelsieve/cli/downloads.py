"""Progress of downloads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from labelsieve.cli.console import shows_progress
from labelsieve.datasets.fetch import ProgressFactory


@contextmanager
def download_bars(console: Console) -> Iterator[ProgressFactory]:
    """Give what `fetch` takes as progress: a bar for every file, on a terminal only."""
    name_column = TextColumn("{task.description}", markup=False)
    columns = (name_column, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not shows_progress(console)) as progress:
        yield lambda file: _DownloadBar(progress, file)


class _DownloadBar:
    """One line of a rich progress display, spoken to as pooch speaks to tqdm."""

    def __init__(self, progress: Progress, file: str) -> None:
        self._progress = progress
        self._task = progress.add_task(file, total=None)

    @property
    def total(self) -> float | None:
        """Number of bytes to come, None if the server does not say."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        """Count bytes that came."""
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        """Begin to count again."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Leave the line as it is."""
