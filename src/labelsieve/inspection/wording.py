"""Findings in sentences, for the terminal, JSON and the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labelsieve._text import printable, short
from labelsieve.inspection.stability import STABLE, EvidenceTest

if TYPE_CHECKING:
    from labelsieve.inspection.ranking import Ranking
    from labelsieve.inspection.result import Audit

#: Selection frequency of reliable columns.
_RELIABLE = 0.9
#: Largest number of names in a sentence.
_MENTIONED = 3
_SHOWN_ROWS, _SHOWN_COLUMNS = 5, 8

#: Explanation of the reasons, by kernel.
_REASONS = {
    "linear": "Each reason is what one column adds to the prediction of a label from the other rows. Base rate, all "
    "columns and the other labels of the row sum to the support exactly. The table shows the columns that lower it "
    "most.",
    "rbf": "A Gaussian kernel of the columns predicted better than a straight line, so it gave the support. The "
    "reasons are those of the straight line. What the kernel adds belongs to no single column and is shown as “curved "
    "effects”, so that the parts still sum to the support.",
}


@dataclass(frozen=True)
class Answer:
    """A question with its answer, split into gist and rest."""

    question: str
    gist: str
    rest: str

    @property
    def plain(self) -> str:
        """The answer as one text."""
        return f"{self.gist}{self.rest}"


def answers(audit: Audit) -> list[Answer]:
    """Answer the questions that the findings can answer."""
    labels = Answer("Which labels look wrong?", *_labels(audit))
    if audit.ranking is not None:
        return [
            Answer("Which columns matter?", *_columns(audit, audit.ranking)),
            Answer("How many to keep?", *_size(audit, audit.ranking)),
            Answer("How far to trust the choice?", *_trust(audit, audit.ranking)),
            labels,
        ]
    if audit.label_issues is None:
        return []
    gist, _, rest = audit.label_issues.issues.caveat().partition(". ")
    return [labels, Answer("How far to trust that?", f"{gist.rstrip('.')}.", f" {rest}" if rest else "")]


def _columns(audit: Audit, ranking: Ranking) -> tuple[str, str]:
    n_columns = audit.dataset.n_columns
    if audit.is_no_better_than_chance:
        return "None stands out", f": permuted labels give as much evidence as all {n_columns:,} columns."
    first = f"The ranking starts with {_mentioned(audit.selected)}."
    if audit.command == "audit":
        n_out = int(ranking.stands_out.sum())
        has = "has" if n_out == 1 else "have"
        return (
            f"{n_out:,} of {_counted(n_columns, 'column')}",
            f" {has} significant evidence for a label. {first}",
        )
    rest = f" selected by {ranking.method}. {first}"
    if ranking.n_arbitrary:
        rest += f" {arbitrary_note(ranking, audit.unit)}"
    return f"{ranking.n_kept:,} of {_counted(n_columns, 'column')}", rest


def _size(audit: Audit, ranking: Ranking) -> tuple[str, str]:
    curve, n_columns, kept = audit.size_curve, audit.dataset.n_columns, ranking.n_kept
    without = audit.baseline_precision
    if audit.is_no_better_than_chance:
        rest = f": {kept:,} are kept here."
        if curve is not None and without is not None:
            best = audit.expected_precision(curve.best)
            rest = f": the best average precision is {best:.2f}, without any column it is {without:.2f}."
        return "No number can be recommended", rest
    if curve is None:
        return f"{kept:,} are kept", ": -k auto cross-validates the number."
    reached, of_all = audit.expected_precision(kept), float(curve.mean[-1])
    gist = f"Keep all {n_columns:,}" if kept == n_columns else f"Keep {kept:,}"
    if ranking.is_size_given:
        gist = f"You asked for {kept:,}"
    rest = f": expected average precision {reached:.2f}"
    if kept < n_columns and curve.sizes[-1] == n_columns:
        same = f"{reached:.2f}" == f"{of_all:.2f}"
        rest += ", the same as with all" if same else f", {of_all:.2f} with all {n_columns:,}"
    rest += "." if without is None else f", {without:.2f} without columns."
    if ranking.is_size_given and curve.best != kept:
        rest += f" The best number is {curve.best:,} with {audit.expected_precision(curve.best):.2f}."
    elif curve.enough < kept:
        rest += f" {curve.enough:,} {'is' if curve.enough == 1 else 'are'} within the spread of the folds."
    return gist, rest


def _trust(audit: Audit, ranking: Ranking) -> tuple[str, str]:
    if audit.is_no_better_than_chance:
        return "Not at all", ": there is no evidence to rank the columns by."
    tested = "" if audit.evidence_test is None else f" {_permutations(audit.evidence_test)}"
    stability = audit.stability
    if stability is None:
        how = (
            "too few rows have candidates" if audit.command == "audit" else "--stability 30 draws subsamples"
        )
        return "Not resampled", f": {how}.{tested}"
    frequency, together = stability.frequency[ranking.kept], stability.group_frequency[ranking.kept]
    n_swapped = int(((frequency < _RELIABLE) & (together >= _RELIABLE)).sum())
    rest = f" are selected in at least {_RELIABLE:.0%} of {stability.n_resamples} subsamples"
    if n_swapped:
        rest += f", {n_swapped:,} more together with a substitute"
    return f"{int((frequency >= _RELIABLE).sum()):,} of the {ranking.n_kept:,}", f"{rest}.{tested}"


def _permutations(test: EvidenceTest) -> str:
    n_permutations = len(test.permuted)
    if test.p_value * (n_permutations + 1) < 1.5:
        return f"None of {n_permutations} permutations of the labels gives as much evidence."
    return f"{test.p_value:.1%} of the permutations of the labels give as much evidence."


def _labels(audit: Audit) -> tuple[str, str]:
    if audit.label_issues is None:
        return "Not checked", ": --check-labels looks for label issues."
    if audit.is_no_better_than_chance:
        return "Unknown", ": this order has no basis here; do not remove labels by it."
    issues, by_label = audit.label_issues.issues, audit.labels
    n_flagged = by_label["n_flagged"].sum()
    many = _counted(issues.n_candidates, "candidate label")
    if not n_flagged:
        return "None is flagged", f" of {many}."
    where = ""
    if len(by_label) > 1:
        worst = by_label.loc[(by_label["n_flagged"] / by_label["n_candidates"]).idxmax()]
        where = f", most often {short(worst['label'])} ({worst['n_flagged']:,} of {worst['n_candidates']:,})"
    verb = "is" if n_flagged == 1 else "are"
    rest = f" {verb} flagged{where}."
    if issues.share_wrong is None:
        rest += " This is a review order, not an error count."
    else:
        rest += f" About {issues.share_wrong:.0%} of all are wrong, estimated from {issues.n_checked} reviewed labels."
    known = [record["wrong"] for record in audit.issue_records(20) if "wrong" in record]
    if known:
        n_wrong = int(audit.dataset.candidates.sum() - audit.dataset.Y.sum())  # type: ignore[union-attr]
        rest += f" The truth is known: {sum(known)} of the first {len(known)} are wrong, {n_wrong:,} of all."
    return f"{n_flagged:,} of {many}", rest


def arbitrary_note(ranking: Ranking, unit: str) -> str:
    """Say how many of the selected columns have no evidence."""
    many = f"{ranking.n_arbitrary} of the {ranking.n_kept} selected {unit}s"
    has, them = ("has", "it") if ranking.n_arbitrary == 1 else ("have", "them")
    if ranking.measure == "evidence":
        return f"{many} {has} no evidence above noise: chance put {them} there."
    return f"{many} {has} the {ranking.measure} 0: column order alone put {them} there."


def stability_note(audit: Audit) -> str:
    """Say how many columns are stable, and how many of them chance explains."""
    stability, unit = audit.stability, audit.unit
    assert stability is not None
    many = f"1 {unit} is" if stability.n_stable == 1 else f"{stability.n_stable} {unit}s are"
    note = f"{many} selected in at least {STABLE:.0%} of the subsamples."
    if stability.expected_by_chance < stability.n_stable:
        # An upper bound is rounded up.
        most = math.ceil(10 * stability.expected_by_chance) / 10
        return f"{note} Chance alone explains at most {most:.1f} of them on average."
    return f"{note} With {stability.n_selected} of {audit.dataset.n_columns} {unit}s selected, no bound is known."


def banner(audit: Audit) -> tuple[str, str] | None:
    """Return the warning at the top, as gist and rest; None if there is none."""
    if audit.evidence_test is None or not audit.is_no_better_than_chance:
        return None
    return (
        "This ranking is no better than chance.",
        f"Permuted labels give as much evidence (permutation test, p = {audit.evidence_test.p_value:.2g}). Do not "
        "select columns or remove labels by these findings. Check that rows and labels are aligned, and that the "
        "informative columns are in the file.",
    )


def warnings(audit: Audit) -> list[str]:
    """Return the banner, the warnings of the computation, and how many columns chance put there."""
    ranking, chance = audit.ranking, banner(audit)
    found = [*([] if chance is None else [" ".join(chance)]), *audit.warnings]
    if (
        ranking is not None and ranking.n_arbitrary and ranking.worth.max() > 0
    ):  # if all are 0, the method warns
        enough = ranking.n_kept if audit.size_curve is None else audit.size_curve.enough
        example = f", such as -k {enough}" if enough < ranking.n_kept else ""
        advice = f" Ask for fewer{example}." if ranking.n_kept > 1 else ""
        found.append(f"{arbitrary_note(ranking, audit.unit)}{advice}")
    return found


def headline(audit: Audit) -> str:
    """Return name and facts of the table in one line."""
    return f"{printable(audit.dataset.name or 'table')}: {', '.join(facts(audit))}"


def facts(audit: Audit) -> list[str]:
    """Return the sizes of the table, and for a selection the method."""
    dataset, ranking = audit.dataset, audit.ranking
    n_features = len(dataset.feature_names)
    encoded = f" ({_counted(n_features, 'feature')})" if n_features > dataset.n_columns else ""
    found = [
        _counted(dataset.X.shape[0], "row"),
        _counted(dataset.n_columns, "column") + encoded,
        _counted(len(dataset.label_names), "label"),
    ]
    if not dataset.is_lazy:
        found.append(_counted(audit.n_candidates, "candidate label"))
    if audit.command == "select" and ranking is not None:
        end = f", {'' if ranking.converged else 'not '}converged" if ranking.is_iterative else ""
        rounds = "" if ranking.n_iter is None else f" in {_counted(ranking.n_iter, 'iteration')}"
        found.append(f"{ranking.method}{end}{rounds}")
    return found


def summary(audit: Audit) -> str:
    """Return the findings in one screen of text."""
    warning = banner(audit)
    lines = [headline(audit), "", *([] if warning is None else [" ".join(warning), ""])]
    for answer in answers(audit):
        lines += [answer.question, f"  {answer.plain}"]
    lines.append("")
    if audit.selected:
        lines.append("  first columns: " + ", ".join(map(short, audit.selected[:_SHOWN_COLUMNS])))
    records = audit.issue_records(_SHOWN_ROWS)
    first = [f"{short(record['row'])}/{short(record['label'])}" for record in records]
    if first:
        lines.append("  review first: " + ", ".join(first))
    if audit.label_issues is not None:
        lines += ["", audit.label_issues.issues.caveat()]
    return "\n".join(lines)


def notes(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield headings and sentences about the limits of the numbers and the preparation of the table."""
    issues = audit.label_issues
    if issues is not None:
        yield "Support is an order", issues.issues.caveat()
    if audit.size_curve is not None:
        yield (
            "Precision is measured against candidates",
            "Average precision counts a wrong candidate as right, so it cannot reach 1. Compare sizes with each other; "
            "the height is not the quality against the truth.",
        )
    if audit.ranking is not None:
        yield (
            "Evidence is association",
            "z² is the number of rows times the squared correlation with one candidate label. It misses interactions "
            "of columns, curves that go up and down again, and causes. Values below 4 count as noise.",
        )
        yield (
            "Substitutes share their evidence",
            "If two columns correlate by 0.9 or more, one is kept and the other may be dropped although it is as good.",
        )
    if audit.stability is not None:
        yield (
            "Subsamples err on the side of caution",
            "Stability is how often a column is selected when a random half of the rows decides. Half of the rows say "
            "less than all of them. The hollow dot shows how often a column or one of its substitutes was selected.",
        )
    if issues is not None and issues.kernel is not None:
        yield "Reasons add up", _REASONS[issues.kernel]
    yield (
        "What this page does not know",
        "Labels that are missing from a row, wrong values in columns, and whether the rows resemble those you will "
        "meet later.",
    )
    remarks = _table_remarks(audit)
    if remarks:
        yield "What was done to the table", " ".join(remarks)


def _table_remarks(audit: Audit) -> list[str]:
    dataset = audit.dataset
    remarks = [f"{note.rstrip('.')}." for note in dataset.notes]
    left_out = [
        f"{column.name} ({column.role})"
        for column in dataset.columns
        if not column.features and column.role not in ("label", "ignored")
    ]
    if left_out:
        remarks.append(f"Not ranked: {', '.join(left_out)}.")
    n_missing = sum(column.n_missing for column in audit.ranked_columns)
    if n_missing:
        remarks.append(f"{n_missing:,} missing values of ranked columns were filled in for the computation.")
    return remarks


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _mentioned(names: Sequence[object]) -> str:
    """Mention the first names."""
    first = [short(name) for name in names[:_MENTIONED]]
    return first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"
