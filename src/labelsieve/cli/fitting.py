"""Around a fit: progress after a second, warnings as notes, rejected data as errors."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from labelsieve._text import one_line, printable
from labelsieve.cli.console import shown_if_long, shows_progress
from labelsieve.inspection.result import Audit
from labelsieve.inspection.wording import arbitrary_note
from labelsieve.io import Dataset, DatasetError

#: What `select` and `demo` fit unless told otherwise: first on data that nobody had tuned on.
DEFAULT_METHOD = "evidence"

#: How to make more of the label check.
ADVICE = "Check some by hand: labelsieve issues FILE --draw 50 -o review.csv."
_LEAST_ROWS = 2

_LOG = logging.getLogger("labelsieve")


@contextmanager
def progress(console: Console, *, has_steps: bool = False) -> Iterator[Callable[..., None]]:
    """Show what is going on, from the second second on and only on a terminal.

    Gives a function that names the present activity, and with `has_steps` takes the number of finished and of all
    steps for a bar with an estimate. Solvers report their iterations by logging.
    """
    display = _Display(console, has_steps=has_steps)
    level = _LOG.level
    if display.visible:
        _LOG.setLevel(logging.DEBUG)  # blocks of rows are told there
    _LOG.addHandler(display)
    try:
        with shown_if_long(display.progress):
            yield display.announce
    finally:
        _LOG.removeHandler(display)
        _LOG.setLevel(level)


class _Display(logging.Handler):
    """One line: a spinner, the activity, the iteration, the objective, the block of rows and the time."""

    def __init__(self, console: Console, *, has_steps: bool) -> None:
        super().__init__()
        self.visible = shows_progress(console)
        self._console = console
        estimate = (BarColumn(bar_width=20), TimeRemainingColumn()) if has_steps else ()
        columns = (
            SpinnerColumn(),
            *estimate,
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.fields[state]}", markup=False),
            TextColumn("{task.fields[block]}", markup=False),
            TimeElapsedColumn(),
        )
        self.progress = Progress(*columns, console=console, transient=True, disable=not self.visible)
        self._task = self.progress.add_task("", total=None, state="", block="")
        self._n_passes = 0

    def announce(self, activity: str, done: int | None = None, total: int | None = None) -> None:
        self.progress.update(
            self._task, description=printable(activity), state="", block="", completed=done, total=total
        )

    def emit(self, record: logging.LogRecord) -> None:
        message = one_line(record.getMessage())
        block = getattr(record, "block", None)
        if block is not None:
            self._n_passes += block == 1
            self.progress.update(self._task, block=f"pass {self._n_passes}, {message}")
        elif record.levelno >= logging.WARNING:
            self._console.print(f"note: {message}")
        elif self.visible:
            iteration, objective = getattr(record, "iteration", None), getattr(record, "objective", None)
            value = "" if objective is None else f", objective {objective:.5g}"
            self.progress.update(
                self._task, state=message if iteration is None else f"iteration {iteration}{value}"
            )
        else:  # the method's own `verbose` asked for it
            self._console.print(message)


def note_arbitrary(found: Audit, console: Console) -> None:
    """Note how many of the selected columns have nothing to show."""
    ranking = found.ranking
    assert ranking is not None
    if ranking.n_arbitrary and ranking.worth.max() > 0:  # if all are 0, the method itself warns
        enough = ranking.n_kept if found.size_curve is None else found.size_curve.enough
        example = f", such as -k {enough}" if enough < ranking.n_kept else ""
        console.print(f"note: {arbitrary_note(ranking, found.unit)} Ask for fewer{example}.")


@contextmanager
def warnings_as_notes(console: Console) -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings, and tell what they say to users, once each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    told = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    for text in dict.fromkeys(one_line(warning.message) for warning in told):
        console.print(f"note: {text}")


@contextmanager
def told_as_data_errors(dataset: Dataset) -> Iterator[None]:
    """Tell whose data it was that a method refuses."""
    source = dataset.source or dataset.name
    if dataset.X.shape[0] < _LEAST_ROWS:
        raise DatasetError(f"{source}: needs at least {_LEAST_ROWS} rows to learn from, got 1; add rows.")
    try:
        yield
    except DatasetError:  # rows that were read in the middle of the fit: says it all
        raise
    except (ValueError, FloatingPointError) as error:
        # Whoever gave -k has never heard of the parameter.
        said = re.sub(r"n_(features_to_select|columns) must", "-k must", str(error))
        raise DatasetError(f"{source}: {said}") from error
    except MemoryError as error:
        raise DatasetError(f"{dataset.name}: the fit does not fit into memory; take fewer rows.") from error
