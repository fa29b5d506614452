"""Fit with company: progress after a second, warnings as notes, refusals as errors."""

from __future__ import annotations

import logging
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
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
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from labelsieve._base import BaseSelector, check_parameters
from labelsieve._text import one_line, printable
from labelsieve.cli.console import shown_if_long, shows_progress
from labelsieve.inspection import size_choice
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.selection import Selection, summarise
from labelsieve.inspection.stability import evidence_test, n_shuffles, selection_stability
from labelsieve.io import Dataset, DatasetError
from labelsieve.methods._columns import ColumnSelector
from labelsieve.methods.evidence import EvidenceSelector
from labelsieve.size_curve import SizeCurve

#: What `select` and `demo` fit unless told otherwise: first on data that nobody had tuned on.
DEFAULT_METHOD = "evidence"

#: How to make more of the label check.
ADVICE = "Check some by hand: labelsieve issues FILE --draw 50 -o review.csv."
# Seconds of a fit from which on the halves of the rows are shared among processes.
_LONG_FIT = 0.5
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


def fit(
    selector: BaseSelector | ColumnSelector,
    dataset: Dataset,
    method: str,
    console: Console,
    name_activity: Callable[[str], None],
    *,
    choose_size: bool = False,
    n_resamples: int = 0,
    table: Dataset | None = None,
    ids: Sequence[str] | None = None,
    subject: Subject | None = None,
    check_labels: bool = False,
) -> Selection:
    """Fit on the candidates and ask how far that can be trusted; tells the warnings as notes.

    With `choose_size` the data decide how many features to select; halves of the rows are asked too if
    `n_resamples` is positive. Of a `table` columns are selected, and `ids` name the rows. For a page about a `subject`
    doubtful labels get reasons.
    """
    curve = stability = None
    with warnings_as_notes(console) as caught, told_as_data_errors(dataset):
        if choose_size:
            name_activity("trying numbers of features")
            curve = _settle_size(selector, dataset)
        name_activity(f"fitting {method}")
        start = time.perf_counter()
        selector.fit(dataset.X, dataset.candidates)
        # Other processes take seconds to start.
        n_jobs = -1 if time.perf_counter() - start > _LONG_FIT else None
        name_activity("comparing with shuffled labels")
        chance = evidence_test(
            dataset.X, dataset.candidates, n_permutations=n_shuffles(dataset.X, len(dataset.label_names))
        )
        if n_resamples:
            stability = selection_stability(
                selector,
                dataset.X,
                dataset.candidates,
                n_resamples=n_resamples,
                n_jobs=n_jobs,
                progress=lambda done, total: name_activity(f"half {done} of {total}"),
            )
        if check_labels:
            name_activity("checking the labels")
        converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        found = summarise(
            selector,
            dataset,
            method,
            converged=converged,
            curve=curve,
            chance=chance,
            stability=stability,
            table=table,
            ids=ids,
            subject=subject,
            check_labels=check_labels,
        )
    if found.n_arbitrary and found.features[0].leading > 0:  # when all are 0, the method itself warns
        n_selected = len(found.selected)
        enough = n_selected if found.curve is None else found.curve.enough
        example = f", such as -k {enough}" if enough < n_selected else ""
        console.print(f"note: {found.arbitrary_note} Ask for fewer{example}.")
    return found


def size_curve(selector: BaseSelector | ColumnSelector, dataset: Dataset) -> SizeCurve:
    """Say how well the method does with how many features."""
    if settles_size_itself(selector):
        automatic = clone(selector).set_params(n_features_to_select="auto")
        curve: SizeCurve = automatic.fit(dataset.X, dataset.candidates).size_curve_
        return curve
    return size_choice.choose_size(selector, dataset.X, dataset.candidates)


def _settle_size(selector: BaseSelector | ColumnSelector, dataset: Dataset) -> SizeCurve | None:
    """Let the data decide the number of features: in `fit` where the method can, else by cross-validation."""
    if settles_size_itself(selector):
        selector.set_params(n_features_to_select="auto")
        return None
    curve = size_curve(selector, dataset)
    selector.set_params(n_features_to_select=curve.best)
    return curve


def settles_size_itself(selector: BaseSelector | ColumnSelector) -> bool:
    """Return whether the method chooses the number of features, or columns, in its own fit."""
    if isinstance(selector, ColumnSelector):
        return isinstance(selector.selector, EvidenceSelector)
    try:
        check_parameters(clone(selector).set_params(n_features_to_select="auto"))
    except ValueError:
        return False
    return True


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
