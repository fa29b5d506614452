"""What `select` and `issues` found, as the page of an audit without the parts that nobody asked for. Needs jinja2."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

import numpy as np

from labelsieve._base import BaseSelector
from labelsieve._figures import Picture
from labelsieve.inspection.auditing.contents import Columns, Contents, Sizes
from labelsieve.inspection.auditing.doubts import Doubts
from labelsieve.inspection.auditing.page import render_page
from labelsieve.inspection.auditing.provenance import provenance, support_said
from labelsieve.inspection.auditing.ranking import ColumnOrder
from labelsieve.inspection.auditing.steadiness import Steadiness, correlations, substitutes
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.auditing.wording import (
    CHANCE,
    LABELS_UNTOLD,
    NOT_TRUSTED,
    QUESTIONS,
    Answer,
    counted,
    facts,
    labels_said,
    listed,
    none_stands_out,
    notes,
    shuffles_said,
    trust_said,
)
from labelsieve.inspection.selection import Selection
from labelsieve.methods._columns import ColumnSelector

__all__ = ["page_of_issues", "page_of_selection"]


def page_of_selection(
    found: Selection,
    selector: BaseSelector | ColumnSelector,
    subject: Subject,
    *,
    command: str = "",
    pictures: Sequence[Picture] = (),
) -> str:
    """Return the page about a selection.

    Parameters
    ----------
    found : Selection
        What `summarise` made of the fitted `selector` and the same `subject`.
    command : str, default=""
        What the user typed.
    pictures : sequence of Picture
        Pictures of the data.
    """
    doubts, chance = found.doubts, found.chance
    end = "" if found.objective is None else f", {'' if found.converged else 'not '}converged"
    rounds = "" if found.n_iter is None else f" in {counted(found.n_iter, 'iteration')}"
    columns = _columns(found, selector, subject)
    answers = _by_chance(found) if found.is_no_better_than_chance else _answers(found, subject)
    return render_page(
        Contents(
            command="select",
            subject=subject,
            facts=[*facts(subject, found.n_candidates), f"{found.method}{end}{rounds}"],
            answers=[Answer(question, *answer) for question, answer in zip(QUESTIONS, answers, strict=True)],
            notes=notes(
                subject,
                doubts,
                has_columns=True,
                has_sizes=found.curve is not None,
                has_halves=found.stability is not None,
            ),
            provenance=provenance(
                subject.source,
                command,
                {
                    "Method": found.class_name,
                    **{name: str(value) for name, value in found.parameters.items()},
                    **({} if doubts is None else {"Support": support_said(doubts)}),
                },
            ),
            columns=columns,
            doubts=doubts,
            banner=(CHANCE[0], CHANCE[1].format(p=chance.p_value))
            if chance is not None and found.is_no_better_than_chance
            else None,
            pictures=[(_embedded(picture), picture.description) for picture in pictures],
        )
    )


def page_of_issues(subject: Subject, doubts: Doubts, *, advice: str, command: str = "") -> str:
    """Return the page about doubtful labels; `advice` is a sentence on how to check some."""
    gist, _, rest = doubts.issues.caveat(advice).partition(". ")
    return render_page(
        Contents(
            command="issues",
            subject=subject,
            facts=facts(subject, doubts.issues.n_candidates),
            answers=[
                Answer(QUESTIONS[-1], *labels_said(doubts.issues)),
                Answer("How far to trust that?", f"{gist.rstrip('.')}.", f" {rest}" if rest else ""),
            ],
            notes=notes(subject, doubts, has_columns=False, has_sizes=False, has_halves=False),
            provenance=provenance(subject.source, command, {"Support": support_said(doubts)}),
            doubts=doubts,
        )
    )


def _columns(found: Selection, selector: BaseSelector | ColumnSelector, subject: Subject) -> Columns:
    """The ranked columns, with what was asked about them."""
    order = np.argsort(selector.ranking_, kind="stable")
    best = selector.best_ if isinstance(selector, ColumnSelector) else np.arange(len(order))
    stability, n_selected = found.stability, len(found.selected)
    if stability is None:
        places = np.empty((0, len(order)), dtype=np.int32)
        others = substitutes(subject.X, best, order)
    else:
        # Only who is chosen is known, not the places.
        places = np.where(stability.runs, 1, n_selected + 1)
        others = tuple(
            correlations(subject.X, best, column, stability.substitutes(column))
            for column in range(len(order))
        )
    return Columns(
        ranking=ColumnOrder.of(subject.X, subject.Y, subject.column_of, order=order, best_feature=best),
        n_kept=n_selected,
        steadiness=Steadiness(places, others),
        measure=found.measure_names[0],
        worth=found.leading_by_column,
        halves_for=None if stability is None else n_selected,
        sizes=None if found.curve is None else Sizes(found.curve),
    )


def _answers(found: Selection, subject: Subject) -> Iterable[tuple[str, str]]:
    """The four answers: of what was not asked, how to ask it."""
    n_selected, chance = len(found.selected), found.chance
    selected = [subject.columns[feature.column].name for feature in found.selected]
    rest = f" selected by {found.method}; the ranking opens with {listed(selected)}."
    if found.n_arbitrary:
        rest += f" {found.arbitrary_note}"
    yield f"{n_selected:,} of {counted(len(found.features), 'column')}", rest
    if found.curve is not None:
        is_best = found.curve.best == n_selected
        yield (
            f"Keep {n_selected:,}." if is_best else f"{n_selected:,} are kept.",
            f" {found.size_note}",
        )
    else:
        yield f"{n_selected:,} are kept", ": -k auto tries numbers of them on held-out rows."
    said = "" if chance is None else shuffles_said(chance)
    if found.stability is None:
        yield "Not resampled", f": --stability 30 asks halves of the rows; {said}".rstrip("; ")
    else:
        assert chance is not None
        kept = [feature.column for feature in found.selected]
        shares = found.stability.frequency[kept], found.stability.group_frequency[kept]
        yield trust_said(*shares, found.stability.n_resamples, chance)
    yield _labels(found)


def _by_chance(found: Selection) -> Iterable[tuple[str, str]]:
    yield none_stands_out(len(found.features))
    yield "No number can be recommended", f": {len(found.selected):,} are kept here."
    yield NOT_TRUSTED
    yield LABELS_UNTOLD if found.doubts is not None else _labels(found)


def _labels(found: Selection) -> tuple[str, str]:
    if found.doubts is None:
        return "Not checked", ": --check-labels predicts every candidate label from the other rows."
    gist, rest = labels_said(found.doubts.issues)
    if found.n_wrong is not None:
        share = found.n_wrong / found.n_candidates
        rest += (
            f" The truth is known here: of the first {len(found.suspects)}, {found.listed_wrong} are wrong, of all "
            f"{share:.0%}."
        )
    return gist, rest


def _embedded(picture: Picture) -> str:
    """An address that holds the picture itself. Its colours are those of the data, whatever the page's."""
    return f"data:image/png;base64,{base64.b64encode(picture.png()).decode()}"
