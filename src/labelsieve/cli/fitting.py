"""Fit with company: progress after a second, warnings as notes, refusals as errors."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from labelsieve._base import BaseSelector, check_parameters
from labelsieve.cli._console import warnings_as_notes
from labelsieve.inspection import size_choice
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.selection import Selection, summarise
from labelsieve.inspection.stability import evidence_test, n_shuffles, selection_stability
from labelsieve.io import Dataset, DatasetError
from labelsieve.io.tables.reading import require_rows
from labelsieve.methods._columns import ColumnSelector
from labelsieve.methods.evidence import EvidenceSelector
from labelsieve.size_curve import SizeCurve

#: What `select` and `demo` fit unless told otherwise: first on data that nobody had tuned on.
DEFAULT_METHOD = "evidence"

#: How to make more of the label check.
ADVICE = "Check some by hand: labelsieve issues FILE --draw 50 -o review.csv."
# Seconds of a fit from which on the halves of the rows are shared among processes.
_LONG_FIT = 0.5


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
def told_as_data_errors(dataset: Dataset) -> Iterator[None]:
    """Tell whose data it was that a method refuses."""
    source = dataset.source or dataset.name
    require_rows(dataset.X.shape[0], lambda *parts: DatasetError(f"{source}: ", *parts, "."))
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
