"""The four answers in words: one source for the terminal, JSON and the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labelsieve._text import printable
from labelsieve.auditing.findings import SURE, Findings

__all__ = ["Answer", "answers", "notes", "summary"]

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
    leading = [_short(name) for name in audit.selected[:_MENTIONED]]
    yield (
        f"{int(audit.stands_out.sum()):,} of {counted(n_columns, 'column')}",
        f" say more about some label than chance explains; the ranking opens with {_listed(leading)}.",
    )
    yield _size(audit)
    yield _trust(audit)
    yield _labels(audit)


def _size(audit: Findings) -> tuple[str, str]:
    curve, n_columns, kept = audit.curve, len(audit.subject.columns), audit.n_kept
    reached, of_all = audit.expected(kept), float(curve.mean[-1])
    without = float(audit.ranking.without.mean())
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
    steadiness, kept = audit.steadiness, audit.n_kept
    n_shuffles = len(audit.chance.shuffled)
    if audit.chance.p_value * (n_shuffles + 1) < 1.5:
        chance = f"none of {n_shuffles} shuffles of the labels gives as much evidence."
    else:
        chance = f"{audit.chance.p_value:.1%} of shuffled labels give as much evidence."
    if not steadiness.n_resamples:
        return "Not resampled", f" for want of time; {chance}"
    first = audit.ranking.order[:kept]
    frequency, _, group = audit.frequencies
    n_sure = int((frequency[first] >= SURE).sum())
    n_swapped = int(((frequency[first] < SURE) & (group[first] >= SURE)).sum())
    rest = f" come back on at least {SURE:.0%} of {steadiness.n_resamples} halves of the rows"
    if n_swapped:
        rest += f", {n_swapped:,} more together with a substitute"
    return f"{n_sure:,} of the {kept:,}", f"{rest}; {chance}"


def _labels(audit: Findings) -> tuple[str, str]:
    issues = audit.doubts.issues
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
    yield (
        "None stands out",
        f": all {len(audit.subject.columns):,} columns together have no more evidence than shuffled labels give.",
    )
    yield (
        "No number can be recommended",
        f": the best reaches an average precision of {audit.expected(curve.best):.2f}, no column at all "
        f"{audit.ranking.without.mean():.2f}.",
    )
    yield "Not at all", ": there is nothing to rank the columns by."
    yield "Cannot be told", ": the list orders candidates by chance; do not remove labels by it."


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
    lines += ["", *audit.cuts, issues.caveat("").strip()]
    return "\n".join(lines)


def notes(audit: Findings) -> tuple[tuple[str, str], ...]:
    """What the numbers can and cannot say: headings and sentences."""
    issues = audit.doubts.issues
    if audit.doubts.kernel == "linear":
        reasons = (
            "Every reason is what one column adds to the prediction of a label from the other rows. Base rate, all "
            "columns and the other labels of the row sum to the support exactly; the table shows the columns that "
            "lower it most."
        )
    else:
        reasons = (
            "Here a Gaussian kernel of the columns predicted better than a straight line, so it decided about the "
            "support. The reasons are those of the straight line; what the kernel adds to them belongs to no single "
            "column and is told as “curved effects”, so that the parts still sum to the support."
        )
    removed = "" if not audit.subject.remarks else " ".join(audit.subject.remarks)
    found = [
        ("Doubt is an order", issues.caveat("").strip()),
        (
            "Quality is measured against candidates",
            "Average precision counts a wrong candidate as right, so it cannot reach 1. Differences between sizes are "
            "meaningful, the height is not the quality against the truth.",
        ),
        (
            "Evidence is association",
            "z² is the number of rows times the squared correlation with one candidate label. It sees no interaction "
            "of columns, no curve that goes up and down again, and no cause. Values below 4 count as noise.",
        ),
        (
            "Substitutes share their evidence",
            "Of two columns that correlate by 0.9 or more one is kept, and the other may be dropped although it is as "
            "good. The hollow dot tells how often a column or one of its substitutes came back.",
        ),
        (
            "Half of the rows say less",
            "Stability is how often a column is among the first when a random half of the rows decides. Halves know "
            "less than the whole table, so it errs on the side of doubt.",
        ),
        ("Reasons add up", reasons),
        (
            "What this page does not know",
            "Labels that are missing from a row, wrong values in columns, and whether the rows resemble those you will "
            "meet later.",
        ),
    ]
    return (*found, *([("What was done to the table", removed)] if removed else []))


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


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
