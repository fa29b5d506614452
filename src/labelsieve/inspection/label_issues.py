"""Candidate labels of a dataset, those most likely to be wrong first."""

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
from labelsieve.inspection.label_support import LabelSupport, candidate_indices, varying_labels

__all__ = [
    "MIN_REVIEWED",
    "LabelIssues",
    "draw_candidates",
    "find_label_issues",
]

MIN_REVIEWED = 50
"""Number of reviewed candidates required to show probabilities; also the default of `draw_candidates`."""

_ROWS_IN_NOTEBOOK = 10

_ADVICE = (
    f"For probabilities, review {MIN_REVIEWED} candidates from draw_candidates and pass them as checked."
)


@dataclass(frozen=True, eq=False, repr=False)
class LabelIssues:
    """Candidate labels ranked by `find_label_issues`, those most likely to be wrong first.

    Attributes
    ----------
    support : ndarray of shape (n_samples, n_labels)
        Support for each label in each row; see `LabelSupport`. Use it to rank labels, not as a probability.
    confidence : ndarray of shape (n_samples, n_labels)
        Support of the candidates rescaled to [0, 1], and 0 for all other labels. This is not a probability.
    probability : ndarray of shape (n_samples, n_labels) or None
        Estimated probability that a candidate is right; None if no candidates were reviewed.
    n_checked : int
        Number of reviewed candidates.
    rows, labels : ndarray of shape (n_candidates,)
        Row and label indices of the candidates, worst first. They are sorted by probability if candidates were
        reviewed, otherwise by support.
    answers : ndarray of shape (n_candidates,)
        Verdicts in the same order: 1 for right, 0 for wrong, -1 if not reviewed.
    label_names : tuple of str
        Names of the labels.
    row_ids : tuple
        Names of the rows.

    Examples
    --------
    The last row resembles the third, but it also has the label of the first two.

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
        """True if enough candidates were reviewed to show probabilities."""
        return self.n_checked >= MIN_REVIEWED

    @property
    def shown_probability(self) -> np.ndarray | None:
        """`probability` if enough candidates were reviewed, otherwise None."""
        return self.probability if self.has_probabilities else None

    @property
    def share_wrong(self) -> float | None:
        """Estimated fraction of wrong candidates, or None if too few candidates were reviewed."""
        if self.shown_probability is None:
            return None
        return float(1 - self.shown_probability[self.rows, self.labels].mean())

    @property
    def percentiles(self) -> np.ndarray:
        """Rank of each candidate as a percentage of the number of candidates."""
        return 100 * np.arange(1, self.n_candidates + 1) / self.n_candidates

    @property
    def unchecked(self) -> np.ndarray:
        """Positions in `rows` of the candidates that were not reviewed."""
        return np.flatnonzero(self.answers < 0)

    def to_frame(self) -> DataFrame:
        """Return a DataFrame with one row per candidate, worst first.

        Returns
        -------
        DataFrame
            Columns ``row`` (row id), ``label``, ``rank``, ``least_supported_percent`` (see `percentiles`),
            ``support``, ``probability`` (if at least 50 candidates were reviewed) and ``verdict`` ("keep", "remove"
            or "").
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
        """Return a DataFrame with one row per label that has candidates, in column order.

        Returns
        -------
        DataFrame
            Columns ``label``, ``n_candidates``, ``n_flagged`` and, if at least 50 candidates were reviewed,
            ``share_wrong`` (estimated fraction of wrong candidates). Flagged candidates have no verdict and look more
            likely wrong than right. Their number is not an error count.
        """
        scores = self.confidence if self.shown_probability is None else self.shown_probability
        probability_right = scores[self.rows, self.labels]
        n_labels, is_flagged = len(self.label_names), (probability_right < 0.5) & (self.answers < 0)
        summary = DataFrame(
            {
                "label": self.label_names,
                "n_candidates": np.bincount(self.labels, minlength=n_labels),
                "n_flagged": np.bincount(self.labels[is_flagged], minlength=n_labels),
            }
        )
        if self.has_probabilities:
            n_wrong = np.bincount(self.labels, 1 - probability_right, n_labels)
            summary["share_wrong"] = n_wrong / summary["n_candidates"]
        return summary[summary["n_candidates"] > 0].reset_index(drop=True)

    def verdicts(self) -> list[str]:
        """Return the verdict on each candidate, in rank order: "keep", "remove" or ""."""
        words = {1: "keep", 0: "remove", -1: ""}
        return [words[int(answer)] for answer in self.answers]

    def summary(self, n_shown: int = 5) -> str:
        """Return a text summary of a few lines.

        Parameters
        ----------
        n_shown : int, default=5
            Number of unreviewed candidates to list.
        """
        measure, first = self._first(n_shown)
        return "\n".join(
            [
                f"{self.n_candidates:,} candidate labels in {self.support.shape[0]:,} rows. Review first:",
                *(
                    f"  row {one_line(row)}, label {one_line(label)}: {measure} {value}"
                    for row, label, value in first
                ),
                self.caveat(_ADVICE),
            ]
        )

    def caveat(self, advice: str = "") -> str:
        """Return the note below a list of candidates, ending with `advice` on how to review some."""
        fraction = self.share_wrong
        if fraction is not None:
            return f"About {fraction:.0%} of all labels are wrong, estimated from {self.n_checked} reviewed labels."
        basis = f" based on {self.n_checked} reviewed labels" if self.n_checked else ""
        return (
            f"This is a review order{basis}, not a probability. It cannot find systematic errors, where wrong labels "
            f"follow from the features just as right ones do. {advice}"
        ).strip()

    def _first(self, n_shown: int) -> tuple[str, list[tuple[Hashable, str, str]]]:
        """Return "rank" or "probability", and row, label and that value of the first unreviewed candidates."""
        table = self.to_frame().iloc[self.unchecked[:n_shown]]
        if self.shown_probability is None:
            measure, values = "rank", table["rank"].map(f"{{:,}} of {self.n_candidates:,}".format)
        else:
            measure, values = "probability", table["probability"].map("{:.2f}".format)
        return measure, list(zip(table["row"], table["label"], values, strict=True))

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        measure, first = self._first(_ROWS_IN_NOTEBOOK)
        return html_table(
            f"{self.n_candidates} candidates, {self.n_checked} reviewed, worst first",
            ("row", "label", measure),
            first,
            self.caveat(_ADVICE),
        )

    def __repr__(self) -> str:
        return f"LabelIssues({self.n_candidates} candidates, {self.n_checked} reviewed)"


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
    """Rank candidate labels, those most likely to be wrong first.

    Parameters
    ----------
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Features.
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Candidate labels, 0 or 1.
    kernel : {"auto", "linear", "rbf"}, default="auto"
        Kernel of the regression, as in `LabelSupport`.
    use_labels : bool, default=True
        If True, the other labels of a row contribute to the support, as in `LabelSupport`.
    each_row_has_truth : bool, default=False
        If True, assume that every row has at least one right candidate.
    checked : tuple of (rows, labels, answers) or None, default=None
        Reviewed candidates: row indices, label indices, and answers (1 for right, 0 for wrong). With at least 50 of
        them, the result shows probabilities.
    label_names : iterable of str or None, default=None
        Unique label names. The default is the columns of a dataframe `Y`, or ``y0, y1, ...``.
    row_ids : iterable or None, default=None
        Unique row names. The default is the index of a dataframe `X`, or 0, 1, ...

    Returns
    -------
    LabelIssues
        All candidates, worst first. Print it for a summary.

    See Also
    --------
    draw_candidates : Draw random candidates to review.

    Notes
    -----
    Systematic errors, where wrong labels follow from the features just as right ones do, cannot be found from features
    and candidates alone. Review 50 random candidates to find labels that are wrong more often than others.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve import draw_candidates, find_label_issues
    >>> from labelsieve.datasets import load_digits_attributes
    >>> digits = load_digits_attributes()
    >>> issues = find_label_issues(digits.X, digits.candidates, label_names=digits.label_names)
    >>> worst = issues.rows[:200], issues.labels[:200]
    >>> bool(digits.Y[worst].mean() < 0.05)  # nearly all are wrong
    True
    >>> rows, labels = draw_candidates(digits.candidates, 50)
    >>> checked = rows, labels, digits.Y[rows, labels]  # verdicts of a reviewer
    >>> issues = find_label_issues(digits.X, digits.candidates, checked=checked)
    >>> issues
    LabelIssues(8715 candidates, 50 reviewed)
    """
    reject_lazy("find_label_issues", X, Y)
    model = LabelSupport(kernel, use_labels, each_row_has_truth).fit(X, Y, checked)
    return rank_candidates(
        model,
        label_names=model.label_names_in_ if label_names is None else label_names,
        row_ids=_row_ids(X) if row_ids is None else row_ids,
    )


def rank_candidates(
    model: LabelSupport, *, label_names: Iterable[Hashable], row_ids: Iterable[Hashable]
) -> LabelIssues:
    """Rank the candidates of a fitted model; names are those of `find_label_issues`."""
    n_samples, n_labels = model.support_.shape
    rows, labels = np.nonzero(model.confidence_)  # positive for candidates only
    answers = np.full(len(rows), -1, dtype=np.int8)
    reviewed = model._reviewed
    if reviewed is not None:
        positions = np.searchsorted(rows * n_labels + labels, reviewed.rows * n_labels + reviewed.labels)
        answers[positions] = reviewed.answers
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
        label_names=tuple(map(str, _check_names(label_names, n_labels, "label_names"))),
        row_ids=_check_names(row_ids, n_samples, "row_ids"),
    )


def draw_candidates(Y: Any, n: int = MIN_REVIEWED, *, random_state: Any = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw random candidates to review.

    Parameters
    ----------
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels)
        Candidate labels, 0 or 1.
    n : int, default=50
        Number of candidates to draw. All candidates are returned if there are fewer.
    random_state : int, Generator, RandomState or None, default=0
        Seed. With the same seed, a larger `n` only adds candidates.

    Returns
    -------
    rows, labels : ndarray of shape (n,)
        Row and label indices. Labels that are candidates in every row are never drawn.

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
    rows, labels = candidate_indices(candidates)
    is_informative = varying_labels(candidates)[labels]
    if not is_informative.any():
        raise ValueError(
            "Y must have a label that is a candidate in some rows but not in all, got none. Check that Y holds the "
            "labels."
        )
    rows, labels = rows[is_informative], labels[is_informative]
    drawn = np.sort(as_generator(random_state).permutation(len(rows))[:n])
    return rows[drawn], labels[drawn]


def _row_ids(X: Any) -> Iterable[Hashable]:
    """Return the index of a dataframe, otherwise row numbers."""
    return X.index.tolist() if hasattr(X, "iloc") else range(np.shape(X)[0])


def _check_names(names: Iterable[Hashable], expected: int, parameter: str) -> tuple[Hashable, ...]:
    """Return the names as a tuple; raise if their number is wrong or one occurs twice."""
    listed = tuple(names)
    if len(listed) != expected:
        raise ValueError(f"{parameter} must have {expected} entries, got {len(listed)}.")
    if len(set(listed)) < expected:
        name, times = Counter(listed).most_common(1)[0]
        raise ValueError(f"{parameter} must be unique, got {name!r} {times} times. Pass unique {parameter}.")
    return listed
