"""Fit with company: progress after a second, warnings as notes, refusals as errors."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sklearn.exceptions import ConvergenceWarning

from labelsieve._base import BaseSelector
from labelsieve._text import one_line, printable
from labelsieve.datasets import Dataset, DatasetError
from labelsieve.inspection.selection import Selection, summarise

#: Seconds before progress shows: what is faster needs none.
PATIENCE = 1.0

_LOG = logging.getLogger("labelsieve")


@contextmanager
def progress(console: Console) -> Iterator[Callable[[str], None]]:
    """Show what is going on, from the second second on and only on a terminal.

    Gives a function that names the present activity. Solvers report their iterations by logging.
    """
    display = _Display(console)
    level = _LOG.level
    if display.visible:
        _LOG.setLevel(logging.INFO)
    _LOG.addHandler(display)
    timer = threading.Timer(PATIENCE, display.show)
    timer.daemon = True
    timer.start()
    try:
        yield display.announce
    finally:
        timer.cancel()
        timer.join()
        display.hide()
        _LOG.removeHandler(display)
        _LOG.setLevel(level)


class _Display(logging.Handler):
    """One line: a spinner, the activity, the iteration, the objective and the time."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.visible = console.is_terminal and not console.quiet
        self._console = console
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.fields[state]}", markup=False),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True, disable=not self.visible)
        self._task = self._progress.add_task("", total=None, state="")

    def show(self) -> None:
        self._progress.start()

    def hide(self) -> None:
        self._progress.stop()

    def announce(self, activity: str) -> None:
        self._progress.update(self._task, description=printable(activity), state="")

    def emit(self, record: logging.LogRecord) -> None:
        iteration = getattr(record, "iteration", None)
        if iteration is None:
            if record.levelno >= logging.WARNING:
                self._console.print(f"note: {one_line(record.getMessage())}")
        elif self.visible:
            objective = getattr(record, "objective", None)
            value = "" if objective is None else f", objective {objective:.5g}"
            self._progress.update(self._task, state=f"iteration {iteration}{value}")
        else:  # the method's own `verbose` asked for it
            self._console.print(record.getMessage())


def fit(selector: BaseSelector, dataset: Dataset, method: str, console: Console) -> Selection:
    """Fit on the candidates; returns what was found, and tells the warnings as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            selector.fit(dataset.X, dataset.candidates)
        except (ValueError, FloatingPointError) as error:
            # Whoever gave -k has never heard of the parameter.
            said = str(error).replace("n_features_to_select must", "-k must")
            raise DatasetError(f"{dataset.source or dataset.name}: {said}") from error
        except MemoryError as error:
            raise DatasetError(
                f"{dataset.name}: the fit does not fit into memory; take fewer rows."
            ) from error
    told = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    for text in dict.fromkeys(one_line(warning.message) for warning in told):
        console.print(f"note: {text}")
    converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in told)
    found = summarise(selector, dataset, method, converged=converged)
    if found.n_arbitrary and found.features[0].score > 0:  # when all are 0, the method itself warns
        console.print(
            f"note: {found.n_arbitrary} of the {len(found.selected)} selected features have the score 0: "
            "column order alone put them there, so ask for fewer."
        )
    return found
