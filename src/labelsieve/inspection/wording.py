"""Texts that describe an audit in the terminal, in JSON and on the page."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelsieve._numerics.candidates import fill_unknown
from labelsieve._numerics.row_groups import RowOrders
from labelsieve._text import percent, printable, short
from labelsieve.inspection.stability import STABLE, EvidenceTest

if TYPE_CHECKING:
    from pandas import DataFrame

    from labelsieve.inspection.explanations import ExplainedIssues, Reasons
    from labelsieve.inspection.guarantees import Correction
    from labelsieve.inspection.label_issues import LabelIssues
    from labelsieve.inspection.ranking import Ranking
    from labelsieve.inspection.result import Audit

#: Smallest selection frequency of a reliable column.
_RELIABLE = 0.9
#: Number of candidates from which a label can be flagged "most often".
_FEWEST_FOR_SHARE = 10
#: Maximum number of names in a sentence.
_MAX_NAMES = 3
_SHOWN_ROWS, _SHOWN_COLUMNS = 5, 8

#: Explanations of the reasons, by kernel.
_REASONS = {
    "linear": "Each reason is the contribution of one column to the prediction of a label from the other rows. The "
    "base rate, the contributions of all columns and that of the other labels in the row add up to the support. The "
    "table shows the columns that lower the support most.",
    "rbf": "A Gaussian kernel predicted the labels better than a linear model, so it determines the support. The "
    "reasons are those of the linear model. The rest of the prediction cannot be split by column. It is shown as "
    "“nonlinear effects”, so that the parts still add up to the support.",
}


@dataclass(frozen=True)
class Answer:
    """A question and its answer. The `gist` of the answer is set in bold."""

    question: str
    gist: str
    rest: str

    @property
    def plain(self) -> str:
        """The complete answer."""
        return f"{self.gist}{self.rest}"


def answers(audit: Audit) -> list[Answer]:
    """Answer the questions that the computed parts can answer."""
    explained = audit.label_issues
    labels = []
    if explained is None or explained.issues.which == "wrong":
        labels.append(Answer("Which labels look wrong?", *_labels(audit)))
    missing = None if explained is None else explained.missing or (None if labels else explained)
    if missing is not None:
        labels.append(Answer("Which labels are missing?", *_missing(audit, missing.issues)))
    if audit.ranking is not None:
        return [
            Answer("Which columns matter?", *_columns(audit, audit.ranking)),
            Answer("How many should you keep?", *_size(audit, audit.ranking)),
            Answer("How reliable is the selection?", *_reliability(audit, audit.ranking)),
            *labels,
        ]
    if explained is None:
        return []
    gist, _, rest = explained.issues.caveat().partition(". ")
    return [*labels, Answer("How reliable is this?", f"{gist.rstrip('.')}.", f" {rest}" if rest else "")]


def _columns(audit: Audit, ranking: Ranking) -> tuple[str, str]:
    n_columns = audit.dataset.n_columns
    if audit.is_no_better_than_chance:
        return "None is significant", ": permuted labels give as much evidence."
    top = (
        f"The top {'column is' if len(audit.selected) == 1 else 'columns are'} {_join_names(audit.selected)}."
    )
    if audit.command == "audit" and audit.controlled is None:
        why = "too few rows have candidate labels"
        if not can_be_exchanged(audit):
            why = "the groups of rows differ in size, so permutations cannot exchange them"
        return "Not tested", f": {why}. {top}"
    if audit.command == "audit" and audit.controlled is not None:
        n_related = int(audit.controlled.selected.sum())
        if not n_related:
            return (
                "No single column is significant",
                f", only all {n_columns:,} together. The columns with the most evidence come first. {top}",
            )
        verb = "is" if n_related == 1 else "are"
        # The notes of the page have the whole promise.
        first_sentence, _, _ = audit.controlled.promise.partition(". ")
        return (
            f"{n_related:,} of {_counted(n_columns, 'column')}",
            f" {verb} related to a label. {first_sentence}. {top}",
        )
    rest = f" selected by {ranking.method}. {top}"
    if ranking.n_arbitrary:
        rest += f" {arbitrary_note(ranking, audit.unit)}"
    return f"{ranking.n_kept:,} of {_counted(n_columns, 'column')}", rest


def can_be_exchanged(audit: Audit) -> bool:
    """Return True if permutations can exchange the groups of rows."""
    dataset = audit.dataset
    return dataset.is_lazy or RowOrders(dataset.X.shape[0], dataset.groups).is_possible


def _size(audit: Audit, ranking: Ranking) -> tuple[str, str]:
    curve, n_columns, kept = audit.size_curve, audit.dataset.n_columns, ranking.n_kept
    without = audit.baseline_precision
    if audit.is_no_better_than_chance:
        rest = f": {kept:,} are selected without significant evidence."
        if curve is not None and without is not None:
            best = audit.expected_precision(curve.best)
            rest = f": the best average precision is {best:.2f}, compared with {without:.2f} without columns."
        return "No recommendation", rest
    if curve is None:
        return f"{kept:,} are kept", ". Pass -k auto to choose the number by cross-validation."
    if without is not None and not round(audit.expected_precision(curve.best), 2) > round(without, 2):
        return (
            "No number of columns helps",
            f": expected average precision {audit.expected_precision(curve.best):.2f} with {curve.best:,}, "
            f"{without:.2f} with none. {kept:,} {'is' if kept == 1 else 'are'} kept.",
        )
    gist = f"Keep all {n_columns:,}" if kept == n_columns else f"Keep {kept:,}"
    if n_columns == 1:
        gist = "Keep it"
    if ranking.is_size_given:
        gist = f"You asked for {kept:,}"
    compared = []
    if kept < n_columns and curve.sizes[-1] == n_columns:
        compared.append(f"all {n_columns:,}: {curve.mean[-1]:.2f}")
    if without is not None:
        compared.append(f"none: {without:.2f}")
    rest = f": expected average precision {audit.expected_precision(kept):.2f}"
    rest += f" ({', '.join(compared)})." if compared else "."
    if ranking.is_size_given and curve.best != kept:
        rest += f" The best is {audit.expected_precision(curve.best):.2f}, with {curve.best:,}."
    elif curve.enough < kept:
        rest += f" With {curve.enough:,}, the loss is within the spread of the folds."
    return gist, rest


def _reliability(audit: Audit, ranking: Ranking) -> tuple[str, str]:
    if audit.is_no_better_than_chance:
        return "Not reliable", ": the evidence is not significant."
    tested = "" if audit.evidence_test is None else f" {_permutations(audit.evidence_test)}"
    stability = audit.stability
    if stability is None:
        if audit.command == "audit":
            return "No subsamples", f": too few rows have candidate labels.{tested}"
        return "Not tested on subsamples", f". Pass --stability 30 to draw some.{tested}"
    if ranking.n_kept == audit.dataset.n_columns:
        return "All columns are kept", f", so every subsample selects them.{tested}"
    frequency, together = stability.frequency[ranking.kept], stability.group_frequency[ranking.kept]
    n_reliable = int((frequency >= _RELIABLE).sum())
    n_swapped = int(((frequency < _RELIABLE) & (together >= _RELIABLE)).sum())
    rest = f" {'is' if n_reliable == 1 else 'are'} selected in at least {_RELIABLE:.0%} of {stability.n_resamples} "
    rest += "subsamples"
    if n_swapped:
        rest += f", and {n_swapped:,} more if substitutes count"
    return f"{n_reliable:,} of {ranking.n_kept:,}", f"{rest}.{tested}"


def _permutations(test: EvidenceTest) -> str:
    n_permutations = len(test.permuted)
    n_reached = round(test.p_value * (n_permutations + 1)) - 1
    count, give = (
        ("None", "gives") if n_reached < 1 else (f"{n_reached}", "gives" if n_reached == 1 else "give")
    )
    return f"{count} of {n_permutations} permutations of the labels {give} as much evidence."


def _labels(audit: Audit) -> tuple[str, str]:
    if audit.label_issues is None:
        return "Not computed", ". Pass --check-labels to find label issues."
    if audit.is_no_better_than_chance:
        return "Unknown", ": the evidence is not significant, so do not remove labels based on this order."
    issues, by_label = audit.label_issues.issues, audit.labels
    many = _counted(issues.n_labels, "candidate label")
    gist, rest = _flags(issues, many, by_label, "n_candidates")
    guarantee = describe_guarantees(issues)
    if guarantee:
        rest += f" {guarantee}"
    elif issues.share_wrong is not None:
        rest += f" {issues.caveat()}"
    elif gist != "None":
        rest += " This is a review order, not an error count."
    n_unpredicted = int((~by_label["is_predicted"]).sum()) if issues.shown_probability is None else 0
    if n_unpredicted == len(by_label):
        return "Unknown", f": your columns do not predict the labels, so none of {many} is flagged."
    if n_unpredicted:
        rest += (
            f" Your columns do not predict {n_unpredicted:,} of {len(by_label):,} labels, so nothing is flagged for "
            f"{'it' if n_unpredicted == 1 else 'them'}."
        )
    known = [record["wrong"] for record in audit.issue_records(20) if "wrong" in record]
    if known:
        noisy, truth = fill_unknown(audit.dataset.candidates), fill_unknown(audit.dataset.Y)  # type: ignore[arg-type]
        n_wrong = int(noisy.sum() - truth.sum())
        rest += f" The true labels are known: {sum(known)} of the first {len(known)} are wrong, {n_wrong:,} overall."
    return gist, rest


def _missing(audit: Audit, issues: LabelIssues) -> tuple[str, str]:
    if audit.is_no_better_than_chance:
        return "Unknown", ": the evidence is not significant, so do not add labels based on this order."
    many = _counted(issues.n_labels, "absent label")
    gist, rest = _flags(issues, many, issues.label_summary(), None)
    guarantee = describe_guarantees(issues)
    return gist, rest + (f" {guarantee}" if guarantee else "")


def _flags(issues: LabelIssues, many: str, by_label: DataFrame, total: str | None) -> tuple[str, str]:
    """Return the number of flagged labels, and which label is flagged most often."""
    n_flagged = by_label["n_flagged"].sum()
    if not n_flagged:
        return "None", f" of {many} is flagged."
    where = ""
    # A share of a few labels says little.
    by_label = by_label if total is None else by_label[by_label[total] >= _FEWEST_FOR_SHARE]
    if len(by_label) > 1 and by_label["n_flagged"].any():
        share = by_label["n_flagged"] / (1 if total is None else by_label[total])
        worst = by_label.loc[share.idxmax()]
        of = "" if total is None else f" of {worst[total]:,}"
        where = f", most often {short(worst['label'])} ({worst['n_flagged']:,}{of})"
    return f"{n_flagged:,} of {many}", f" {'is' if n_flagged == 1 else 'are'} flagged{where}."


def describe_guarantees(issues: LabelIssues, *, is_asked: bool = False) -> str:
    """Return what the reviewed labels say about the others: an interval, the progress, or why there is none.

    The text is empty if no label of this kind was reviewed, unless `is_asked`.
    """
    review, is_missing = issues.review, issues.which == "missing"
    of_kind = None if review is None else review.take(np.flatnonzero(review.is_missing == is_missing))
    if of_kind is None or not len(of_kind.rows):
        return issues.why_no_guarantee() if is_asked else ""
    try:
        exact, assisted = issues.error_interval(), issues.error_interval(method="assisted")
    except ValueError as error:
        return str(error)
    labels = "absent labels with the most support" if is_missing else "labels"
    text = exact.describe(issues.which, labels)
    text += f" With the help of the support: {assisted.n_low:,} to {assisted.n_high:,}."
    if is_missing:
        total = issues.total_interval()
        many = f"all {total.n_labels:,} absent labels"
        text += (
            f" At least {total.n_low:,} of {many} are missing; those outside the list were not reviewed."
            if total.n_reviewed == exact.n_reviewed
            else f" Between {total.n_low:,} and {total.n_high:,} of {many} are missing. The upper end says little, "
            "because missing labels are rare outside the list."
        )
    n_other = int((of_kind.is_decided & (of_kind.numbers == 0)).sum())
    return text + (
        f" {n_other} other verdicts are not from a random draw and do not count here." if n_other else ""
    )


def describe_correction(issues: LabelIssues, found: Correction) -> str:
    """Return how many labels can be corrected without review, and what to do if there are none."""
    verb, mistakes = ("removed", "right") if issues.which == "wrong" else ("added", "wrong")
    alpha = percent(found.alpha)
    if not len(found):
        text = f"No label can be {verb} at {alpha} with these {found.n_reviewed} reviews."
        if issues.which == "wrong" and found.n_attempts == 1:
            text += (
                " Draw 50 more from the least supported fifth (--draw 50 --least-supported 20%). A second attempt adds "
                f"its own {alpha}."
            )
        return text
    text = (
        f"{_counted(len(found), 'label')} without a verdict can be {verb}. On average over random draws, at most "
        f"{alpha} of them are {mistakes} ({found.n_reviewed} random reviews)."
    )
    if found.n_attempts > 1:
        text += f" You made {found.n_attempts} draws, and each adds its own {alpha}."
    if issues.which == "wrong" and any(draw.is_of_all for draw in issues.complete_draws()):
        share_right = 1 - issues.error_interval().share
        if found.alpha > share_right / 2:
            text += f" Only {share_right:.0%} of all labels are right, so this promises little. Use a smaller bound."
    return text


def arbitrary_note(ranking: Ranking, unit: str) -> str:
    """Return the number of selected columns that have no evidence, as a sentence."""
    many = f"{ranking.n_arbitrary} of the {ranking.n_kept} selected {unit}s"
    has = "has" if ranking.n_arbitrary == 1 else "have"
    if ranking.measure == "evidence":
        return f"{many} {has} no evidence above noise, so the choice is arbitrary."
    return f"{many} {has} {ranking.measure} 0, so the choice is arbitrary."


def stability_note(audit: Audit) -> str:
    """Return the number of stable columns, and the number expected by chance, as sentences."""
    stability, unit = audit.stability, audit.unit
    assert stability is not None
    many = f"1 {unit} is" if stability.n_stable == 1 else f"{stability.n_stable} {unit}s are"
    note = f"{many} selected in at least {STABLE:.0%} of the subsamples."
    if stability.expected_by_chance < stability.n_stable:
        # An upper bound is rounded up.
        most = math.ceil(10 * stability.expected_by_chance) / 10
        return f"{note} At most {most:.1f} of them are expected by chance."
    return (
        f"{note} The number expected by chance has no bound, because {stability.n_selected} of "
        f"{audit.dataset.n_columns} {unit}s are selected."
    )


def banner(audit: Audit) -> tuple[str, str] | None:
    """Return the warning that the evidence is not significant, as gist and rest, or None."""
    if audit.evidence_test is None or not audit.is_no_better_than_chance:
        return None
    return (
        "The evidence is not significant.",
        f"Permuted labels give as much evidence (permutation test, p = {audit.evidence_test.p_value:.2g}). Do not "
        "select columns or remove labels based on this result. Check that rows and labels are aligned and that the "
        "informative columns are in the table.",
    )


def warnings(audit: Audit) -> list[str]:
    """Return the banner, the warnings of the computation, and a note on columns without evidence."""
    ranking, top = audit.ranking, banner(audit)
    texts = [*([] if top is None else [" ".join(top)]), *audit.warnings]
    # If all scores are 0, the method itself warns.
    if ranking is not None and ranking.n_arbitrary and ranking.worth.max() > 0:
        enough = ranking.n_kept if audit.size_curve is None else audit.size_curve.enough
        example = f", e.g. -k {enough}" if enough < ranking.n_kept else ""
        advice = f" Select fewer{example}." if ranking.n_kept > 1 else ""
        texts.append(f"{arbitrary_note(ranking, audit.unit)}{advice}")
    return texts


def other_label(audit: Audit, reasons: Reasons, number: int) -> str | None:
    """Return the other label that is the strongest reason, e.g. "also has Horror", or None."""
    label = int(reasons.other_label[number])
    if label < 0:
        return None
    verb = "also has" if reasons.has_other_label[number] else "does not have"
    return f"{verb} {audit.dataset.label_names[label]}"


def assumption(explained: ExplainedIssues) -> str:
    """Say whether every row is assumed to have a right label, and how to change that."""
    if explained.has_one_label_per_row:
        return "Each row has one label, so the other labels of a row are not used."
    if explained.assumes_truth and explained.spares_single:
        return "Assumes a right label in every row with several labels (--rows-may-lack-truth changes this)."
    if explained.assumes_truth:
        return "Assumes a right label in every row (--rows-may-lack-truth changes this)."
    return "Does not assume a right label in every row (--each-row-has-truth changes this)."


def reason(audit: Audit, row: int, column: int, feature: int) -> tuple[str, str]:
    """Return a column and what it says in a row, e.g. "plot" and "contains haunted"; `feature` has most influence."""
    found, dataset = audit.ranked_columns[column], audit.dataset
    name = dataset.feature_names[feature]
    word = name.removeprefix(f"{found.name} contains ")
    if found.role == "text" and word != name:
        return found.name, f"{'contains' if dataset.X[row, feature] else 'lacks'} {word}"
    value = audit.cell(row, column)
    if found.role == "vector":
        return found.name, "(vector)"
    return found.name, "is missing" if value == "missing" else f"= {value}"


def leak_notes(audit: Audit) -> list[str]:
    """Return a sentence for every column that reproduces a label."""
    notes = []
    for column, label in audit.leaks:
        option = shlex.quote(column) if "Command" in audit.provenance else repr(column)
        remedy = f"--ignore {option}" if "Command" in audit.provenance else f"ignore={option}"
        notes.append(
            f"Column {short(column)} reproduces the label {short(label)}. Leave it out with {remedy}."
        )
    return notes


def headline(audit: Audit) -> str:
    """Return the name and the sizes of the table in one line, and columns that reproduce a label."""
    line = f"{printable(audit.dataset.name or 'table')}: {', '.join(facts(audit))}"
    return " ".join([line + "." if audit.leaks else line, *leak_notes(audit)])


def facts(audit: Audit) -> list[str]:
    """Return the sizes of the table and, for the command select, the method."""
    dataset, ranking = audit.dataset, audit.ranking
    n_features = len(dataset.feature_names)
    encoded = f" ({_counted(n_features, 'feature')})" if n_features > dataset.n_columns else ""
    texts = [
        _counted(dataset.X.shape[0], "row"),
        _counted(dataset.n_columns, "column") + encoded,
        _counted(len(dataset.label_names), "label"),
    ]
    if not dataset.is_lazy:
        texts.append(_counted(audit.n_candidates, "candidate label"))
    if audit.command == "select" and ranking is not None:
        end = f", {'' if ranking.converged else 'not '}converged" if ranking.is_iterative else ""
        rounds = "" if ranking.n_iter is None else f" in {_counted(ranking.n_iter, 'iteration')}"
        texts.append(f"{ranking.method}{end}{rounds}")
    return texts


def summary(audit: Audit) -> str:
    """Return a text summary that fits on one screen."""
    warning = banner(audit)
    lines = [headline(audit), "", *([] if warning is None else [" ".join(warning), ""])]
    for answer in answers(audit):
        lines += [answer.question, f"  {answer.plain}"]
    lines.append("")
    if audit.selected:
        lines.append("  top columns: " + ", ".join(map(short, audit.selected[:_SHOWN_COLUMNS])))
    records = audit.issue_records(_SHOWN_ROWS)
    first = [f"{short(record['row'])}/{short(record['label'])}" for record in records]
    if first:
        lines.append("  review first: " + ", ".join(first))
    if audit.label_issues is not None:
        lines += ["", audit.label_issues.issues.caveat()]
    return "\n".join(lines)


def notes(audit: Audit) -> Iterator[tuple[str, str]]:
    """Yield headings and texts on how to interpret the numbers and how the table was prepared."""
    issues = audit.label_issues
    if issues is not None:
        yield "Label issues need review", f"{issues.issues.caveat()} {assumption(issues)}"
    if audit.size_curve is not None:
        yield (
            "Precision is measured on candidate labels",
            "Average precision counts a wrong candidate as right, so it cannot reach 1. Use it to compare numbers of "
            "columns, not to judge a model.",
        )
    if audit.ranking is not None:
        yield (
            "Evidence measures correlation",
            "z² is the number of rows times the squared correlation of a column with a candidate label. It misses "
            "interactions and non-monotonic effects, and it does not show causes. Values below 4 count as noise.",
        )
        yield (
            "Substitutes are interchangeable",
            "If the correlation of two columns is 0.9 or more, one may be dropped although it is as good as the other.",
        )
    if audit.stability is not None:
        yield (
            "Stability is conservative",
            "Stability is the fraction of subsamples that select a column. Each subsample is a random half of the "
            "rows, so it holds less information than the table. The hollow dot counts subsamples that select the "
            "column or one of its substitutes.",
        )
    if issues is not None and issues.kernel is not None:
        yield "Reasons add up to the support", _REASONS[issues.kernel]
    if audit.controlled is not None:
        q_values = (
            f"The list of columns has those with a q-value of at most {audit.controlled.fdr:g}. The mark ≤ means that "
            "the q-value may be smaller. "
        )
        yield (
            "q-values bound the share of wrong columns",
            f"{q_values}{audit.controlled.promise} q-values do not say which columns predict best.",
        )
    yield (
        "Limits of this audit",
        "It does not find wrong values in a column, and it cannot tell if future data will resemble this table.",
    )
    remarks = _table_remarks(audit)
    if remarks:
        yield "Preparation of the table", " ".join(remarks)


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
        remarks.append(f"Missing values imputed in ranked columns: {n_missing:,}.")
    return remarks


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _join_names(names: Sequence[object]) -> str:
    """Join the first names in a sentence."""
    first = [short(name) for name in names[:_MAX_NAMES]]
    return first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"
