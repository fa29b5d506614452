"""The audit itself: everything is computed here, in the order in which a budget can end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labelsieve._base import check_count
from labelsieve.inspection.auditing.budget import Budget
from labelsieve.inspection.auditing.doubts import doubt_subject
from labelsieve.inspection.auditing.provenance import provenance, support_said
from labelsieve.inspection.auditing.ranking import CRITERION, FEWEST_ROWS, rank_columns
from labelsieve.inspection.auditing.result import Audit
from labelsieve.inspection.auditing.steadiness import Steadiness, resample, substitutes
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.label_support import varying_labels
from labelsieve.inspection.stability import n_shuffles, shuffle_labels
from labelsieve.io import Dataset, read

__all__ = ["audit", "audit_subject"]

#: The fewest shuffles of the labels that can tell 5 %, and the share of the budget in which more are made.
_LEAST_SHUFFLES, _SHUFFLES_SHARE = 19, 0.4
_REDUNDANCIES = {np.inf: "inf (a pure filter)", 1.0: "1 (half and half)", 0.0: "0 (forward selection)"}


def audit(
    data: Any,
    labels: Any = None,
    *,
    n_columns: int | None = None,
    checked: Any = None,
    budget: float = 120.0,
    random_state: int = 0,
    name: str = "",
    progress: Callable[[str], None] | None = None,
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
    budget : float, default=120.0
        Seconds that this may take, about. Where they do not suffice, fewer halves of the rows are asked how stable
        the choice is; then fewer shuffles, folds and kernels follow. `cuts` says so, and so do summary and page.
    random_state : int, default=0
        Seed of folds, halves and shuffles.
    name : str, default=""
        What to call the table.
    progress : callable or None, default=None
        Called with a few words about what is being done.

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
        budget=Budget(budget),
        random_state=random_state,
        progress=progress or (lambda activity: None),
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
    budget: Budget,
    random_state: int,
    progress: Callable[[str], None],
    command: str = "",
) -> Audit:
    """Audit a table that is ready; `command` is what the user typed."""
    X, Y, column_of = subject.X, subject.Y, subject.column_of
    _check(subject, n_columns, budget.seconds, random_state)
    progress("comparing with shuffled labels")
    n_wanted = n_shuffles(X, Y.shape[1])
    chance = shuffle_labels(
        X,
        Y,
        n_permutations=n_wanted,
        random_state=random_state,
        is_enough=lambda n_done: n_done >= _LEAST_SHUFFLES and not budget.has(0.0, _SHUFFLES_SHARE),
    )
    if len(chance.shuffled) < n_wanted:
        budget.cut(
            f"The comparison with chance rests on {len(chance.shuffled)} instead of {n_wanted} shuffles of the "
            f"labels, for want of time."
        )
    progress("trying numbers of columns")
    ranking = rank_columns(X, Y, column_of, n_kept=n_columns, budget=budget, random_state=random_state)
    progress("asking the other rows about every label")
    doubts = doubt_subject(subject, checked=checked, budget=budget)
    places = resample(
        X, Y, column_of, ranking.redundancy, budget=budget, random_state=random_state, progress=progress
    )
    others = substitutes(X, ranking.best_feature, ranking.order)
    return Audit(
        subject=subject,
        chance=chance,
        ranking=ranking,
        n_kept=n_columns or ranking.curve.best,
        is_size_given=n_columns is not None,
        steadiness=Steadiness(places, others),
        doubts=doubts,
        cuts=tuple(budget.cuts),
        provenance=provenance(
            subject.source,
            command,
            {
                "Seed": str(random_state),
                "Folds, halves, shuffles": f"{len(ranking.curve.scores)}, {len(places)}, {len(chance.shuffled)}",
                "Threshold, ridge": f"{CRITERION.threshold:g}, {CRITERION.ridge:g}",
                "Redundancy": _REDUNDANCIES[ranking.redundancy],
                "Support": support_said(doubts),
                "Computed in": f"{budget.used:.1f} s of {budget.seconds:g} s",
            },
        ),
    )


def _check(subject: Subject, n_columns: int | None, seconds: float, random_state: Any) -> None:
    """Refuse what cannot be audited, with the reason."""
    n_rows, n_ranked, _ = subject.shape
    if not seconds > 0:
        raise ValueError(f"budget must be a positive number of seconds. Got {seconds!r}. Use 120.")
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
