"""The four answers in words: one source for the terminal, JSON and the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve._text import printable
from labelsieve.inspection.auditing.doubts import Doubts
from labelsieve.inspection.auditing.findings import SURE, Findings
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.label_issues import LabelIssues
from labelsieve.inspection.stability import EvidenceTest

__all__ = [
    "CHANCE",
    "LABELS_UNTOLD",
    "NOT_TRUSTED",
    "QUESTIONS",
    "Answer",
    "answers",
    "counted",
    "facts",
    "labels_said",
    "listed",
    "none_stands_out",
    "notes",
    "shuffles_said",
    "summary",
    "trust_said",
]

#: Names that a sentence mentions, and their letters.
_MENTIONED, _LONGEST_NAME = 3, 34
_SHOWN_ROWS, _SHOWN_COLUMNS = 5, 8

QUESTIONS = (
    "Which columns matter?",
    "How many to keep?",
    "How far to trust the choice?",
    "Which labels look wrong?",
)
CHANCE = (
    "This ranking is no better than chance.",
    "The columns say nothing about the labels that shuffled labels would not say as well (permutation test, "
    "p = {p:.2g}). Do not select columns or remove labels by this audit. Check that rows and labels are aligned, and "
    "that the informative columns are in the file.",
)
NOT_TRUSTED = "Not at all", ": there is nothing to rank the columns by."
LABELS_UNTOLD = "Cannot be told", ": the list orders candidates by chance; do not remove labels by it."
#: What the reasons of a candidate are, by the kernel that decided about its support.
_REASONS = {
    "linear": "Every reason is what one column adds to the prediction of a label from the other rows. Base rate, all "
    "columns and the other labels of the row sum to the support exactly; the table shows the columns that lower it "
    "most.",
    "rbf": "Here a Gaussian kernel of the columns predicted better than a straight line, so it decided about the "
    "support. The reasons are those of the straight line; what the kernel adds to them belongs to no single column and "
    "is told as “curved effects”, so that the parts still sum to the support.",
}


@dataclass(frozen=True)
class Answer:
    """A question and its answer; the first words of the answer are its gist."""

    question: str
    gist: str
    rest: str

    @property
    def plain(self) -> str:
        """The answer as one text."""
        return f"{self.gist}{self.rest}"


def answers(audit: Findings) -> tuple[Answer, ...]:
    """Answer the four questions."""
    found = _by_chance(audit) if audit.is_no_better_than_chance else _findings(audit)
    return tuple(Answer(question, *answer) for question, answer in zip(QUESTIONS, found, strict=True))


def _findings(audit: Findings) -> Iterable[tuple[str, str]]:
    n_columns = len(audit.subject.columns)
    yield (
        f"{int(audit.stands_out.sum()):,} of {counted(n_columns, 'column')}",
        f" say more about some label than chance explains; the ranking opens with {listed(audit.selected)}.",
    )
    yield _size(audit)
    yield _trust(audit)
    yield labels_said(audit.doubts.issues)


def _size(audit: Findings) -> tuple[str, str]:
    curve, n_columns, kept = audit.curve, len(audit.subject.columns), audit.n_kept
    reached, of_all = audit.expected(kept), float(curve.mean[-1])
    without = audit.ranking.without
    gist = f"Keep all {n_columns:,}" if kept == n_columns else f"Keep {kept:,}"
    if audit.is_size_given:
        gist = f"You asked for {kept:,}"
    rest = f": expected average precision {reached:.2f}"
    if kept < n_columns and curve.sizes[-1] == n_columns:
        same = f"{reached:.2f}" == f"{of_all:.2f}"
        rest += ", the same as with all" if same else f", against {of_all:.2f} with all {n_columns:,}"
    rest += f", {without:.2f} without columns."
    if audit.is_size_given and curve.best != kept:
        rest += f" The best number is {curve.best:,} with {audit.expected(curve.best):.2f}."
    elif curve.enough < kept:
        rest += f" {curve.enough:,} are within the spread of the folds."
    return gist, rest


def _trust(audit: Findings) -> tuple[str, str]:
    first = audit.ranking.order[: audit.n_kept]
    frequency, _, group = audit.frequencies
    return trust_said(frequency[first], group[first], audit.steadiness.n_resamples, audit.chance)


def trust_said(
    frequency: np.ndarray, with_substitutes: np.ndarray, n_resamples: int, chance: EvidenceTest
) -> tuple[str, str]:
    """How far to trust the choice of columns that come back so often: the gist and the rest."""
    n_sure = int((frequency >= SURE).sum())
    n_swapped = int(((frequency < SURE) & (with_substitutes >= SURE)).sum())
    rest = f" come back on at least {SURE:.0%} of {n_resamples} halves of the rows"
    if n_swapped:
        rest += f", {n_swapped:,} more together with a substitute"
    return f"{n_sure:,} of the {len(frequency):,}", f"{rest}; {shuffles_said(chance)}"


def shuffles_said(test: EvidenceTest) -> str:
    """The end of a sentence on how often chance does as well."""
    n_shuffles = len(test.shuffled)
    if test.p_value * (n_shuffles + 1) < 1.5:
        return f"none of {n_shuffles} shuffles of the labels gives as much evidence."
    return f"{test.p_value:.1%} of shuffled labels give as much evidence."


def labels_said(issues: LabelIssues) -> tuple[str, str]:
    """Which labels look wrong: the gist and the rest."""
    by_label = issues.by_label()
    n_doubtful = sum(doubts.n_to_look_at for doubts in by_label)
    many = counted(issues.n_candidates, "candidate")
    if not n_doubtful:
        return "None stands out", f": of {many} none looks rather wrong than right."
    where = ""
    if len(by_label) > 1:
        worst = max(by_label, key=lambda doubts: doubts.n_to_look_at / doubts.n_candidates)
        where = f", most often {_short(worst.label)} ({worst.n_to_look_at:,} of {worst.n_candidates:,})"
    gist = f"{n_doubtful:,} of {many}"
    share = issues.share_wrong
    if share is None:
        return gist, f" look rather wrong than right{where}: an order to read them in, no count of errors."
    rest = f" are more likely wrong than right{where}; about {share:.0%} of all are wrong, "
    return gist, f"{rest}estimated from {issues.n_checked} checked ones."


def _by_chance(audit: Findings) -> Iterable[tuple[str, str]]:
    curve = audit.curve
    yield none_stands_out(len(audit.subject.columns))
    yield (
        "No number can be recommended",
        f": the best reaches an average precision of {audit.expected(curve.best):.2f}, no column at all "
        f"{audit.ranking.without:.2f}.",
    )
    yield NOT_TRUSTED
    yield LABELS_UNTOLD


def none_stands_out(n_columns: int) -> tuple[str, str]:
    """Say that there is nothing to select by."""
    rest = f": all {n_columns:,} columns together have no more evidence than shuffled labels give."
    return "None stands out", rest


def summary(audit: Findings) -> str:
    """Say in one screen what was found."""
    lines = [headline(audit), ""]
    if audit.is_no_better_than_chance:
        lines += [" ".join(CHANCE).format(p=audit.chance.p_value), ""]
    for answer in answers(audit):
        lines += [answer.question, f"  {answer.plain}"]
    lines += ["", "  first columns: " + ", ".join(_short(name) for name in audit.selected[:_SHOWN_COLUMNS])]
    issues = audit.doubts.issues
    first = [
        f"{_short(issues.row_ids[issues.rows[place]])}/{_short(issues.label_names[issues.labels[place]])}"
        for place in issues.unchecked[:_SHOWN_ROWS]
    ]
    lines += ["  look first at: " + ", ".join(first)] if first else []
    lines += ["", issues.caveat()]
    return "\n".join(lines)


def notes(
    subject: Subject, doubts: Doubts | None, *, has_columns: bool, has_sizes: bool, has_halves: bool
) -> tuple[tuple[str, str], ...]:
    """What the numbers that were computed can and cannot say: headings and sentences."""
    found = []
    if doubts is not None:
        found.append(("Doubt is an order", doubts.issues.caveat()))
    if has_sizes:
        found.append(
            (
                "Quality is measured against candidates",
                "Average precision counts a wrong candidate as right, so it cannot reach 1. Differences between sizes "
                "are meaningful, the height is not the quality against the truth.",
            )
        )
    if has_columns:
        found += [
            (
                "Evidence is association",
                "z² is the number of rows times the squared correlation with one candidate label. It sees no "
                "interaction of columns, no curve that goes up and down again, and no cause. Values below 4 count as "
                "noise.",
            ),
            (
                "Substitutes share their evidence",
                "Of two columns that correlate by 0.9 or more one is kept, and the other may be dropped although it "
                "is as good.",
            ),
        ]
    if has_halves:
        found.append(
            (
                "Half of the rows say less",
                "Stability is how often a column is among the first when a random half of the rows decides. Halves "
                "know less than the whole table, so it errs on the side of doubt. The hollow dot tells how often a "
                "column or one of its substitutes came back.",
            )
        )
    if doubts is not None and doubts.kernel is not None:
        found.append(("Reasons add up", _REASONS[doubts.kernel]))
    found.append(
        (
            "What this page does not know",
            "Labels that are missing from a row, wrong values in columns, and whether the rows resemble those you will "
            "meet later.",
        )
    )
    if subject.remarks:
        found.append(("What was done to the table", " ".join(subject.remarks)))
    return tuple(found)


def facts(subject: Subject, n_candidates: int) -> list[str]:
    """The sizes of a table."""
    n_rows, n_columns, n_labels = subject.shape
    n_features = len(subject.feature_names)
    derived = f" giving {counted(n_features, 'feature')}" if n_features > n_columns else ""
    return [
        counted(n_rows, "row"),
        counted(n_columns, "column") + derived,
        counted(n_labels, "label"),
        counted(n_candidates, "candidate label"),
    ]


def headline(audit: Findings) -> str:
    """What was audited, in numbers."""
    n_rows, n_columns, n_labels = audit.subject.shape
    n_features = len(audit.subject.feature_names)
    derived = f" ({n_features:,} features)" if n_features > n_columns else ""
    return (
        f"{printable(audit.subject.name)}: {counted(n_rows, 'row')}, {counted(n_columns, 'column')}{derived}, "
        f"{counted(n_labels, 'label')}, {counted(audit.doubts.issues.n_candidates, 'candidate')}"
    )


def counted(number: int, noun: str) -> str:
    """Say how many there are of something, with separators of thousands.

    Examples
    --------
    >>> counted(1, "row"), counted(1500, "row")
    ('1 row', '1,500 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _short(name: object) -> str:
    text = printable(name)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 2]}…"


def listed(names: Sequence[object]) -> str:
    """Mention the first names."""
    said = [_short(name) for name in names[:_MENTIONED]]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
