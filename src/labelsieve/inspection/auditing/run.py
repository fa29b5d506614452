"""The audit itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labelsieve._base import check_count
from labelsieve.inspection.auditing.doubts import doubt_subject
from labelsieve.inspection.auditing.provenance import provenance, support_said
from labelsieve.inspection.auditing.ranking import CRITERION, FEWEST_ROWS, rank_columns
from labelsieve.inspection.auditing.result import Audit
from labelsieve.inspection.auditing.steadiness import Steadiness, substitutes
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.label_support import varying_labels
from labelsieve.inspection.stability import n_shuffles, resample, shuffle_labels
from labelsieve.io import Dataset, read

__all__ = ["audit", "audit_subject"]

#: Subsamples, random orders of the columns and permutations of the labels; large tables are permuted 39 times.
_SETTINGS = {"n_resamples": 30, "n_random": 6, "n_permutations": 199}
_FAST_SETTINGS = {"n_resamples": 10, "n_random": 2, "n_permutations": 39}
_N_FOLDS = 5
_REDUNDANCIES = {np.inf: "inf (a pure filter)", 1.0: "1 (half and half)", 0.0: "0 (forward selection)"}


def audit(
    data: Any,
    labels: Any = None,
    *,
    n_columns: int | None = None,
    checked: Any = None,
    fast: bool = False,
    random_state: int = 0,
    name: str = "",
    progress: Callable[[int, int, str], None] | None = None,
) -> Audit:
    """Ask one table four questions: which columns matter, how many, how surely, and which labels look wrong.

    Parameters
    ----------
    data : path, DataFrame, Dataset or {array-like, sparse matrix} of shape (n_samples, n_features)
        The table: anything `labelsieve.io.read` reads, what it returns, or features.
    labels : int, str, sequence of str or {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Which columns of the table are labels, as in `read`; or, beside features, the candidate labels, 0/1. None
        where `data` knows.
    n_columns : int or None, default=None
        How many columns to keep; None takes the number with the best precision on held-out rows.
    checked : tuple of (rows, labels, answers) or None, default=None
        Candidates that a person verified, as in `find_label_issues`. From 50 on, probabilities are told.
    fast : bool, default=False
        Whether to draw 10 instead of 30 subsamples, 39 instead of 199 permutations and 2 instead of 6 random orders.
    random_state : int, default=0
        Seed of folds, halves and shuffles.
    name : str, default=""
        What to call the table.
    progress : callable or None, default=None
        Called with the number of finished steps, the number of all steps and a few words about the next one.

    Returns
    -------
    Audit
        Numbers, frames, `to_json` and `to_html`; print it for a summary, and a notebook shows its page.

    Examples
    --------
    >>> from labelsieve import audit
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_samples=300, n_features=30, shuffle=False, random_state=0)
    >>> found = audit(X, Y, name="planted")
    >>> found
    Audit('planted': 300 rows, 30 columns, 5 labels, keep 4)
    >>> found.selected  # of the five planted ones, x0 to x4
    ['x2', 'x4', 'x1', 'x0']
    """
    subject = _subject(data, labels, name)
    return audit_subject(
        subject,
        n_columns=n_columns,
        checked=checked,
        fast=fast,
        random_state=random_state,
        progress=progress,
    )


def _subject(data: Any, labels: Any, name: str) -> Subject:
    if isinstance(data, Dataset):
        return Subject.of_dataset(data)
    return Subject.of_dataset(read(data, labels, name=name or None))


def audit_subject(
    subject: Subject,
    *,
    n_columns: int | None,
    checked: Any,
    fast: bool = False,
    random_state: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
    command: str = "",
) -> Audit:
    """Audit a table that is ready; `command` is what the user typed."""
    X, Y, column_of = subject.X, subject.Y, subject.column_of
    _check(subject, n_columns, random_state)
    settings = _FAST_SETTINGS if fast else _SETTINGS
    n_resamples = settings["n_resamples"]
    step = _Steps(3 + min(_N_FOLDS, X.shape[0] // 2) + n_resamples, progress)
    step("permuting the labels", 0)
    chance = shuffle_labels(
        X,
        Y,
        n_permutations=min(settings["n_permutations"], n_shuffles(X, Y.shape[1])),
        random_state=random_state,
    )
    step("trying numbers of columns")
    ranking, selector = rank_columns(
        X,
        Y,
        column_of,
        n_kept=n_columns,
        random_state=random_state,
        n_random=settings["n_random"],
        on_fold=lambda: step("trying numbers of columns"),
    )
    step("checking the labels")
    doubts = doubt_subject(subject, checked=checked)
    step("resampling the rows")
    stability = resample(
        selector,
        X,
        Y,
        n_resamples=n_resamples,
        random_state=random_state,
        progress=lambda done, total: step("resampling the rows"),
    )
    assert stability.places is not None
    others = substitutes(X, ranking.best_feature, ranking.order)
    return Audit(
        subject=subject,
        chance=chance,
        ranking=ranking,
        n_kept=selector.n_features_,
        is_size_given=n_columns is not None,
        steadiness=Steadiness(stability.places, others),
        doubts=doubts,
        provenance=provenance(
            subject.source,
            command,
            {
                "Seed": str(random_state),
                "Folds, subsamples, permutations": f"{len(ranking.curve.scores)}, {n_resamples}, "
                f"{len(chance.shuffled)}",
                "Threshold, ridge": f"{CRITERION.threshold:g}, {CRITERION.ridge:g}",
                "Redundancy": _REDUNDANCIES[ranking.redundancy],
                "Support": support_said(doubts),
            },
        ),
    )


class _Steps:
    """Counts the finished steps for a progress callback."""

    def __init__(self, total: int, report: Callable[[int, int, str], None] | None) -> None:
        self._total, self._report, self._done = total, report, 0

    def __call__(self, activity: str, n_finished: int = 1) -> None:
        self._done += n_finished
        if self._report is not None:
            self._report(self._done, self._total, activity)


def _check(subject: Subject, n_columns: int | None, random_state: Any) -> None:
    """Refuse what cannot be audited, with the reason."""
    n_rows, n_ranked, _ = subject.shape
    check_count(random_state, "random_state", least=0)
    if n_rows < FEWEST_ROWS:
        raise ValueError(
            f"an audit must hold some rows back, so it needs at least {FEWEST_ROWS}. Got {n_rows}. Collect more rows."
        )
    if not n_ranked:
        raise ValueError(
            "an audit needs a column besides the labels. Got none. Name fewer columns as labels."
        )
    if not varying_labels(subject.Y).any():
        raise ValueError(
            "an audit needs a label that some rows have and others do not. Got none. Check which columns are labels."
        )
    if n_columns is not None:
        check_count(n_columns, "n_columns", least=1)
        if n_columns > n_ranked:
            raise ValueError(
                f"n_columns must be at most {n_ranked}, the number of columns. Got {n_columns}. Ask for fewer."
            )
