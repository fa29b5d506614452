"""Label issues: all candidate labels, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pandas import DataFrame

from labelsieve._base import as_generator, binarize_tags, check_candidates, check_count, reject_lazy
from labelsieve._numerics.sparse import check_structure, is_sparse
from labelsieve._text import html_table, one_line
from labelsieve.inspection.label_support import LabelSupport, candidate_places, varying_labels

__all__ = [
    "ENOUGH_CHECKS",
    "LabelIssues",
    "draw_candidates",
    "find_label_issues",
]

ENOUGH_CHECKS = 50
"""Number of reviewed candidates from which probabilities and shares of wrong candidates are shown.

Examples
--------
>>> from labelsieve import draw_candidates
>>> from labelsieve.datasets import load_digits_attributes
>>> rows, labels = draw_candidates(load_digits_attributes().candidates)  # this many by default
>>> len(rows) == ENOUGH_CHECKS
True
"""

#: Rows of the table in a notebook.
_MOST_ROWS = 10

_ADVICE = f"Check about {ENOUGH_CHECKS} candidates that draw_candidates picks and pass them as checked."


@dataclass(frozen=True, eq=False, repr=False)
class LabelIssues:
    """All candidate labels, worst first: the result of `find_label_issues`.

    Attributes
    ----------
    support : ndarray of shape (n_samples, n_labels)
        Support of every row and label; see `LabelSupport`. It gives an order, not probabilities.
    confidence : ndarray of shape (n_samples, n_labels)
        Support of the candidates on a scale from 0 to 1, 0 elsewhere. Do not report it as a probability.
    probability : ndarray of shape (n_samples, n_labels) or None
        Probability that a candidate is right, estimated from reviewed candidates; None without any.
    n_checked : int
        Number of reviewed candidates.
    rows, labels : ndarray of shape (n_candidates,)
        Row and label of every candidate, counted from 0, worst first: by probability if candidates were reviewed, else
        by support.
    answers : ndarray of shape (n_candidates,)
        1 for a right candidate, 0 for a wrong one, -1 for one without a verdict, in the order of `rows`.
    label_names : tuple of str
        Names of the labels.
    row_ids : tuple
        Names of the rows.

    Examples
    --------
    The last row looks like the third but has the label of the first two.

    >>> from labelsieve import find_label_issues
    >>> X, Y = [[0.0], [0.1], [0.9], [1.0]], [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> issues = find_label_issues(X, Y)
    >>> int(issues.rows[0]), issues.label_names[issues.labels[0]]
    (3, 'y0')
    """

    support: np.ndarray
    confidence: np.ndarray
    probability: np.ndarray | None
    n_checked: int
    rows: np.ndarray
    labels: np.ndarray
    answers: np.ndarray
    label_names: tuple[str, ...]
    row_ids: tuple[Hashable, ...]

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.rows)

    @property
    def has_probabilities(self) -> bool:
        """Whether enough candidates were reviewed to show probabilities."""
        return self.n_checked >= ENOUGH_CHECKS

    @property
    def shown_probability(self) -> np.ndarray | None:
        """Probabilities if enough candidates were reviewed, else None."""
        return self.probability if self.has_probabilities else None

    @property
    def share_wrong(self) -> float | None:
        """Estimated share of wrong candidates; None unless enough candidates were reviewed."""
        if self.shown_probability is None:
            return None
        return float(1 - self.shown_probability[self.rows, self.labels].mean())

    @property
    def percentiles(self) -> np.ndarray:
        """For every candidate, in order: it is among the least supported x %."""
        return 100 * np.arange(1, self.n_candidates + 1) / self.n_candidates

    @property
    def unchecked(self) -> np.ndarray:
        """Positions in `rows` of the candidates without a verdict."""
        return np.flatnonzero(self.answers < 0)

    def to_frame(self) -> DataFrame:
        """Return a pandas frame with a row per candidate, worst first.

        Returns
        -------
        DataFrame
            Columns ``row`` (its name), ``label``, ``rank``, ``least_supported_percent``, ``support``, ``probability``
            if at least 50 candidates were reviewed, and ``verdict``: "keep", "remove" or "".
        """
        columns: dict[str, Any] = {
            "row": [self.row_ids[row] for row in self.rows],
            "label": [self.label_names[label] for label in self.labels],
            "rank": np.arange(1, self.n_candidates + 1),
            "least_supported_percent": self.percentiles,
            "support": self.support[self.rows, self.labels],
        }
        if self.shown_probability is not None:
            columns["probability"] = self.shown_probability[self.rows, self.labels]
        columns["verdict"] = self.verdicts()
        return DataFrame(columns)

    def label_summary(self) -> DataFrame:
        """Return a pandas frame with a row per label that has candidates, in column order.

        Returns
        -------
        DataFrame
            Columns ``label``, ``n_candidates``, ``n_flagged`` (candidates without a verdict that are more likely wrong
            than right: not an error count) and, if at least 50 candidates were reviewed, ``share_wrong``, estimated.
        """
        scale = self.confidence if self.shown_probability is None else self.shown_probability
        chance = scale[self.rows, self.labels]
        n_labels, is_flagged = len(self.label_names), (chance < 0.5) & (self.answers < 0)
        found = DataFrame(
            {
                "label": self.label_names,
                "n_candidates": np.bincount(self.labels, minlength=n_labels),
                "n_flagged": np.bincount(self.labels[is_flagged], minlength=n_labels),
            }
        )
        if self.has_probabilities:
            found["share_wrong"] = np.bincount(self.labels, 1 - chance, n_labels) / found["n_candidates"]
        return found[found["n_candidates"] > 0].reset_index(drop=True)

    def verdicts(self) -> list[str]:
        """Return the verdict on every candidate, in order: "keep", "remove" or ""."""
        words = {1: "keep", 0: "remove", -1: ""}
        return [words[int(answer)] for answer in self.answers]

    def summary(self, n_shown: int = 5) -> str:
        """Summarise the result in a few lines.

        Parameters
        ----------
        n_shown : int, default=5
            Number of candidates without a verdict to list.
        """
        measure, first = self._first(n_shown)
        return "\n".join(
            [
                f"{self.n_candidates} candidates of {self.support.shape[0]} rows and {len(self.label_names)} labels; "
                "least supported first:",
                *(
                    f"  row {one_line(row)}, label {one_line(label)}: {measure} {value}"
                    for row, label, value in first
                ),
                self.caveat(_ADVICE),
            ]
        )

    def caveat(self, advice: str = "") -> str:
        """Return the note under every list of candidates; `advice` says how to review some."""
        share = self.share_wrong
        if share is not None:
            return f"About {share:.0%} of all candidates are wrong, estimated from {self.n_checked} checked candidates."
        used = f" that uses {self.n_checked} checked candidates" if self.n_checked else ""
        return (
            f"This is an order{used}, not a probability. Wrong candidates that follow from the features as right ones "
            f"do (systematic noise) cannot be seen from features and candidates alone. {advice}"
        ).strip()

    def _first(self, n_shown: int) -> tuple[str, list[tuple[Hashable, str, str]]]:
        """Return the name of a measure, and row, label and measure of the first candidates without a verdict."""
        table = self.to_frame().iloc[self.unchecked[:n_shown]]
        measure = "least_supported_percent" if self.shown_probability is None else "probability"
        values = table[measure].map("{:.3g}".format)
        return measure.replace("_", " "), list(zip(table["row"], table["label"], values, strict=True))

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        measure, first = self._first(_MOST_ROWS)
        return html_table(
            f"{self.n_candidates} candidates, {self.n_checked} checked; least supported first",
            ("row", "label", measure),
            first,
            self.caveat(_ADVICE),
        )

    def __repr__(self) -> str:
        return f"LabelIssues({self.n_candidates} candidates, {self.n_checked} checked)"


def find_label_issues(
    X: Any,
    Y: Any,
    *,
    kernel: str = "auto",
    use_labels: bool = True,
    each_row_has_truth: bool = False,
    checked: Any = None,
    label_names: Iterable[str] | None = None,
    row_ids: Iterable[Hashable] | None = None,
) -> LabelIssues:
    """Rank all candidate labels, those that look wrong first.

    Parameters
    ----------
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Features.
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Candidate labels, 0/1.
    kernel : {"auto", "linear", "rbf"}, default="auto"
        Kernel of the prediction, as in `LabelSupport`.
    use_labels : bool, default=True
        Whether the other labels of a row count too, as in `LabelSupport`.
    each_row_has_truth : bool, default=False
        Whether every row is known to have at least one right candidate.
    checked : tuple of (rows, labels, answers) or None, default=None
        Reviewed candidates: row and label, counted from 0, and 1 if the candidate is right, 0 if it is wrong. From 50
        on, probabilities are shown.
    label_names : iterable of str or None, default=None
        Names of the labels; None takes the columns of a dataframe, else ``y0, y1, ...``.
    row_ids : iterable or None, default=None
        Names of the rows, all different; None takes the index of a dataframe ``X``, else 0, 1, ...

    Returns
    -------
    LabelIssues
        All candidates, worst first; print it for a summary.

    See Also
    --------
    draw_candidates : Draw candidates to review.

    Notes
    -----
    Systematic errors, which follow from the features like right labels, cannot be seen from features and candidates
    alone. 50 reviewed candidates show which labels are wrong more often than others.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve import draw_candidates, find_label_issues
    >>> from labelsieve.datasets import load_digits_attributes
    >>> digits = load_digits_attributes()
    >>> issues = find_label_issues(digits.X, digits.candidates, label_names=digits.label_names)
    >>> worst = issues.rows[:200], issues.labels[:200]
    >>> bool(digits.Y[worst].mean() < 0.05)  # nearly all of them are wrong
    True
    >>> rows, labels = draw_candidates(digits.candidates, 50)
    >>> checked = rows, labels, digits.Y[rows, labels]  # the answers of a person
    >>> issues = find_label_issues(digits.X, digits.candidates, checked=checked)
    >>> issues
    LabelIssues(8715 candidates, 50 checked)
    """
    reject_lazy("find_label_issues", X, Y)
    model = LabelSupport(kernel, use_labels, each_row_has_truth).fit(X, Y, checked)
    return issues_of(
        model,
        label_names=model.label_names_in_ if label_names is None else label_names,
        row_ids=_row_ids(X) if row_ids is None else row_ids,
    )


def issues_of(
    model: LabelSupport, *, label_names: Iterable[Hashable], row_ids: Iterable[Hashable]
) -> LabelIssues:
    """Rank the candidates that a model was fitted to; names as in `find_label_issues`."""
    n_samples, n_labels = model.support_.shape
    rows, labels = np.nonzero(model.confidence_)  # positive for candidates only
    answers = np.full(len(rows), -1, dtype=np.int8)
    checks = model._checks
    if checks is not None:
        places = np.searchsorted(rows * n_labels + labels, checks.rows * n_labels + checks.labels)
        answers[places] = checks.answers
    scores = model.support_ if model.probability_ is None else model.probability_
    order = np.argsort(scores[rows, labels], kind="stable")
    return LabelIssues(
        support=model.support_,
        confidence=model.confidence_,
        probability=model.probability_,
        n_checked=model.n_checked_,
        rows=rows[order],
        labels=labels[order],
        answers=answers[order],
        label_names=tuple(map(str, _distinct(label_names, n_labels, "label_names"))),
        row_ids=_distinct(row_ids, n_samples, "row_ids"),
    )


def draw_candidates(
    Y: Any, n: int = ENOUGH_CHECKS, *, random_state: Any = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw random candidates to review.

    Parameters
    ----------
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Candidate labels, 0/1.
    n : int, default=50
        Number of candidates; all if there are fewer.
    random_state : int, Generator, RandomState or None, default=0
        Seed. A larger `n` draws the same candidates and more.

    Returns
    -------
    rows, labels : ndarray of shape (n,)
        Row and label of each, counted from 0. Labels that are candidates of every row are left out.

    Examples
    --------
    >>> from labelsieve import draw_candidates
    >>> draw_candidates([[1, 0], [1, 1], [0, 1]], 2)
    (array([0, 1]), array([0, 1]))
    """
    check_count(n, "n", minimum=1)
    Y, _ = binarize_tags(Y)
    check_structure(Y, "Y")
    candidates, _ = check_candidates(Y if is_sparse(Y) else np.asarray(Y))
    rows, labels = candidate_places(candidates)
    useful = varying_labels(candidates)[labels]
    if not useful.any():
        raise ValueError(
            "Y must have a label that is a candidate of some rows but not of all. Got none, so checks would teach "
            "nothing. Check the labels themselves."
        )
    rows, labels = rows[useful], labels[useful]
    drawn = np.sort(as_generator(random_state).permutation(len(rows))[:n])
    return rows[drawn], labels[drawn]


def _row_ids(X: Any) -> Iterable[Hashable]:
    """Return the index of a dataframe, else numbers from 0."""
    return X.index.tolist() if hasattr(X, "iloc") else range(np.shape(X)[0])


def _distinct(names: Iterable[Hashable], expected: int, parameter: str) -> tuple[Hashable, ...]:
    """Return the names as a tuple; raise unless there are as many as expected, all different."""
    listed = tuple(names)
    if len(listed) != expected:
        raise ValueError(f"{parameter} must have {expected} entries. Got {len(listed)}. Give one for each.")
    if len(set(listed)) < expected:
        name, times = Counter(listed).most_common(1)[0]
        raise ValueError(
            f"{parameter} must all differ. Got {name!r} {times} times. Give {parameter} of your own."
        )
    return listed
