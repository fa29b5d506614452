"""What a page shows: the parts that were computed, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve.inspection.auditing.doubts import Doubts
from labelsieve.inspection.auditing.ranking import ColumnOrder
from labelsieve.inspection.auditing.steadiness import Steadiness
from labelsieve.inspection.auditing.subject import Subject
from labelsieve.inspection.auditing.wording import Answer
from labelsieve.size_curve import SizeCurve

__all__ = ["Columns", "Contents", "Sizes"]


@dataclass(frozen=True, eq=False)
class Sizes:
    """How well the first columns predict, by their number.

    Attributes
    ----------
    curve : SizeCurve
        Average precision on held-out rows.
    random : ndarray of shape (n_orders, n_sizes) or None
        The same for columns in random orders, where they were asked.
    without : float or None
        The same without any column, where that was asked.
    """

    curve: SizeCurve
    random: np.ndarray | None = None
    without: float | None = None


@dataclass(frozen=True, eq=False)
class Columns:
    """The ranked columns of a page.

    Attributes
    ----------
    ranking : ColumnOrder
        Their order, and what they say about the labels.
    n_kept : int
        How many are kept.
    steadiness : Steadiness
        Their places on halves of the rows, if there were any, and their substitutes.
    measure : str
        The number by which the method judges a column.
    worth : ndarray of shape (n_columns,)
        That number.
    halves_for : int or None
        The number of columns that the halves were asked for, where their places say nothing about any other.
    sizes : Sizes or None
        The size curve, where it was asked for.
    """

    ranking: ColumnOrder
    n_kept: int
    steadiness: Steadiness
    measure: str
    worth: np.ndarray
    halves_for: int | None = None
    sizes: Sizes | None = None


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything on a page. What is None was not computed, and has no section.

    Attributes
    ----------
    command : {"audit", "select", "issues"}
        What it was made by.
    subject : Subject
        The table.
    facts : sequence of str
        Its sizes, and what was done.
    answers : sequence of Answer
        What was found, in words.
    notes : sequence of (str, str)
        What the numbers can and cannot say: headings and sentences.
    provenance : mapping of str to str
        How this was made.
    columns : Columns or None
        The ranked columns.
    doubts : Doubts or None
        The candidate labels in order.
    banner : (str, str) or None
        A warning that stands above everything: its gist and the rest.
    pictures : sequence of (str, str)
        Pictures of the data: their addresses, which hold them whole, and what they show.
    """

    command: str
    subject: Subject
    facts: Sequence[str]
    answers: Sequence[Answer]
    notes: Sequence[tuple[str, str]]
    provenance: Mapping[str, str]
    columns: Columns | None = None
    doubts: Doubts | None = None
    banner: tuple[str, str] | None = None
    pictures: Sequence[tuple[str, str]] = ()
