"""Infer what the cells of a column are: numbers, dates, categories, texts, tags, or nothing to learn from."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np

from labelsieve._numerics.binary import is_binary
from labelsieve.io.errors import Fail, Mention
from labelsieve.io.spellings import (
    DASHES,
    MISSING,
    TAG_SEPARATORS,
    Reading,
    are_codes,
    read_dates,
    read_list,
    read_numbers,
    read_truth,
    split_tags,
    tags_of,
)

# So many of the cells must be numbers or dates for the others to count as slips.
_MOST = 0.9
# Fewer texts may all differ and be categories nevertheless.
_LEAST_IDENTIFIERS = 5
_LONGEST_IDENTIFIER = 64
_LONGEST_TAG = 40
# Digits that begin with zeros are postal codes and article numbers.
_CODE_LINE = re.compile(r"^\s*0\d+\s*$", re.MULTILINE)
_ID_NAME = re.compile(
    r"(?:^|[^a-z])(?:id|ids|uuid|guid|key|nr|no|number|identifier|index|row)$|^(?:id|uuid|guid|row|index)(?:[^a-z]|$)"
)


@dataclass(frozen=True)
class TypedColumn:
    """One column with a role, and values that fit it.

    Attributes
    ----------
    role : str
        One of `labelsieve.io.options.ROLES`.
    values : ndarray
        Numbers with NaN (number, boolean), moments with NaT (date), tuples of texts (tags) or texts, with None for
        what is missing.
    note : str
        What a reader should know.
    separator : str or None
        Separator of the tags of a text; None if a text is one tag, or a list.
    categories : tuple of str or None
        The declared order of the categories.
    """

    role: str
    values: np.ndarray
    note: str = ""
    separator: str | None = None
    categories: tuple[str, ...] | None = None

    @property
    def n_missing(self) -> int:
        """How many values are missing."""
        if self.values.dtype == object:
            return sum(value is None for value in self.values)
        return int((np.isnat if self.values.dtype.kind == "M" else np.isnan)(self.values).sum())


def texts_of(cells: Any) -> list[Any]:
    """Cells of any kind as stripped texts, lists as tuples of texts, and None for what is missing."""
    dtype = cells.dtype
    if dtype.kind in "iub" and isinstance(dtype, np.dtype):
        return [str(value) for value in cells.tolist()]
    if dtype.kind == "M" and isinstance(dtype, np.dtype):
        moments = np.datetime_as_string(np.asarray(cells, "datetime64[s]"))
        return [None if moment == "NaT" else moment for moment in moments.tolist()]
    return [_text(value) for value in cells]


def _text(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        return None if text.lower() in MISSING else text
    if value is None:
        return None
    if isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        return tags_of(sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)
    if isinstance(value, dict):
        return json.dumps(value, default=str)
    if isinstance(value, bytes):
        return _text(value.decode("utf-8", errors="replace"))
    if isinstance(value, date):  # datetimes and pandas' timestamps are dates too
        text = value.isoformat()
        return None if text == "NaT" else text
    if isinstance(value, timedelta):  # so are missing ones of pandas, which have no seconds
        return _text(str(value.total_seconds()))
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, Number):
        return None if value != value else str(value)
    return _text(str(value))  # pandas' own marks of missing values among others


def infer_column_type(
    cells: Any,
    name: str,
    fail: Fail,
    *,
    role: str | None = None,
    separator: str | None = None,
    is_continental: bool = False,
) -> TypedColumn:
    """Infer the role of a column, or convert it to a given one.

    Parameters
    ----------
    cells : ndarray or pandas Series
        The column as read.
    name : str
        Its name, which may speak of identifiers.
    fail : Fail
        Makes the error for a role that the cells cannot have.
    role : str or None
        The role that it is said to have.
    separator : str or None
        What parts tags; None to find out.
    is_continental : bool
        Whether commas in numbers are rather decimal, and days stand before months.
    """
    if role is None and cells.dtype.kind == "f" and isinstance(cells.dtype, np.dtype):
        return _number_column(np.asarray(cells, dtype=np.float64), name)
    numbers = plain_numbers(cells) if role is None else None
    if numbers is not None and numbers.min() < numbers.max():
        found = _number_column(numbers, name)
        return replace(found, values=_objects(texts_of(cells))) if found.role == "id" else found
    column = _Column(texts_of(cells), name, separator, is_continental)
    return column.inferred() if role is None else column.made(role, fail)


def plain_numbers(cells: Any) -> np.ndarray | None:
    """Convert cells that are all numbers as Python writes them; None if one of them is anything else.

    Examples
    --------
    >>> plain_numbers(np.array(["1.5", "-2"], dtype=object)), plain_numbers(np.array(["007", "2"], dtype=object))
    (array([ 1.5, -2. ]), None)
    """
    if cells.dtype.kind in "buif" and not isinstance(cells.dtype, np.dtype):  # pandas' own dtypes
        return None if cells.isna().any() else cells.to_numpy(dtype=np.float64)
    if cells.dtype.kind in "buif":
        return np.asarray(cells, dtype=np.float64)
    values = np.asarray(cells, dtype=object)
    if not all(type(value) is str for value in values):
        return None
    text = "\n".join(values)
    if "_" in text or _CODE_LINE.search(text):
        return None
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        return None
    return None if np.isnan(numbers).any() else numbers


def _number_column(values: np.ndarray, name: str) -> TypedColumn:
    """Numbers that may have no value at some places."""
    infinite = np.isinf(values)
    note = ""
    if infinite.any():
        values = np.where(infinite, np.nan, values)
        note = f"{int(infinite.sum())} infinite values count as missing"
    present = values[~np.isnan(values)]
    if not present.size:
        return TypedColumn("constant", np.full(len(values), None, dtype=object), "all values are missing")
    is_complete = present.size == values.size
    if present.min() == present.max():
        if is_complete:
            return TypedColumn("constant", values, note or f"always {present[0]:.15g}")
        return TypedColumn("boolean", np.where(np.isnan(values), 0.0, 1.0), f"{present[0]:.15g} or nothing")
    if is_binary(present):
        return TypedColumn("boolean", values, note)
    if is_complete and _names_rows(values, name):
        return TypedColumn(
            "id", np.array([f"{value:.15g}" for value in values], dtype=object), "another number in every row"
        )
    if _speaks_of_ids(name) and (present == np.floor(present)).all():
        texts = np.array([None if value != value else f"{value:.15g}" for value in values], dtype=object)
        return TypedColumn("category", texts, "numbers that name something")
    return TypedColumn("number", values, note)


def _speaks_of_ids(name: str) -> bool:
    """Whether a name is that of an identifier, such as ticket_id or ticketId.

    Examples
    --------
    >>> [_speaks_of_ids(name) for name in ("ID", "ticket_id", "ticketId", "humid", "paid")]
    [True, True, True, False, False]
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return bool(_ID_NAME.search(parted.lower()))


def _names_rows(values: np.ndarray, name: str) -> bool:
    """Whether whole numbers, none missing, name the rows: all different, and called so or counted through."""
    if len(values) < _LEAST_IDENTIFIERS or (values != np.floor(values)).any():
        return False
    if (np.diff(values) == 1).all():
        return True
    return _speaks_of_ids(name) and len(np.unique(values)) == len(values)


class _Column:
    """The texts of one column, counted."""

    def __init__(self, texts: list[Any], name: str, separator: str | None, is_continental: bool) -> None:
        self.texts, self.name, self.separator = texts, name, separator
        self.is_continental = is_continental
        self.n_lists = sum(isinstance(text, tuple) for text in texts)
        self.counts: Counter[Any] = Counter(text for text in texts if text is not None)
        self.n_present = self.counts.total()

    def inferred(self) -> TypedColumn:
        """The role that the cells suggest."""
        if not self.counts:
            return TypedColumn("constant", self.objects(), "all values are missing")
        is_complete = self.n_present == len(self.texts)
        if len(self.counts) == 1 and is_complete:
            return TypedColumn("constant", self.objects(), f"always {_quoted(next(iter(self.counts)))}")
        if self.n_lists or self._lists() is not None:
            return self.as_tags()
        truth = read_truth(self.counts)
        if truth is not None:
            return TypedColumn("boolean", truth.array(self.texts, np.nan, np.float64))
        if len(self.counts) == 1:
            return TypedColumn("category", self.objects(), f"{_quoted(next(iter(self.counts)))} or nothing")
        if are_codes(self.counts):
            codes = self._texts()
            return TypedColumn(codes.role, codes.values, "digits with leading zeros are no numbers")
        numbers = read_numbers(self.counts, commas_are_decimal=self.is_continental)
        is_dashed = bool(numbers.meaning) and self.counts.keys() - numbers.meaning.keys() <= DASHES
        if is_dashed or self.share(numbers) >= _MOST:
            return self.as_number(numbers)
        dates = read_dates(self.counts, days_first=self.is_continental)
        if self.share(dates) >= _MOST:
            return self.as_date(dates)
        if self._tag_separator() is not None:
            return self.as_tags()
        return self._texts()

    def made(self, role: str, fail: Fail) -> TypedColumn:
        """The role that somebody says it has."""
        if role == "number":
            numbers = read_numbers(self.counts, commas_are_decimal=self.is_continental)
            self._require(numbers, "a number", fail)
            return TypedColumn(
                "number", numbers.array(self.texts, np.nan, np.float64), self.noted(numbers, "number")
            )
        if role == "date":
            dates = read_dates(self.counts, days_first=self.is_continental)
            self._require(dates, "a date", fail)
            return self.as_date(dates)
        if role == "boolean":
            truth = read_truth(self.counts)
            if truth is None:
                raise fail(
                    f"column {self.name!r} cannot be a boolean, which is yes and no, true and false or 1 and 0, got "
                    f"{', '.join(_quoted(text) for text in [*self.counts][:3]) or 'nothing'}; make it a ",
                    Mention("roles", {self.name: "category"}),
                )
            return TypedColumn("boolean", truth.array(self.texts, np.nan, np.float64))
        if role == "tags":
            return self.as_tags()
        plain = [" ".join(text) if isinstance(text, tuple) else text for text in self.texts]
        return TypedColumn(role, _objects(plain))

    def _require(self, reading: Reading, what: str, fail: Fail) -> None:
        if not reading.meaning:
            first = _quoted(next(iter(self.counts))) if self.counts else "nothing"
            raise fail(
                f"column {self.name!r} holds not one cell that is {what}, got {first}; give it another ",
                Mention("roles"),
            )

    def share(self, reading: Reading) -> float:
        """Share of the cells that have a meaning."""
        return sum(self.counts[text] for text in reading.meaning) / self.n_present

    def noted(self, reading: Reading, what: str) -> str:
        """The note of a reading, and how many cells it leaves out."""
        odd = [text for text in self.counts if text not in reading.meaning]
        if not odd:
            return reading.note
        n_odd = sum(self.counts[text] for text in odd)
        slips = f"{n_odd} cells that are no {what} ({_quoted(odd[0])}) count as missing"
        return f"{reading.note}; {slips}" if reading.note else slips

    def as_number(self, reading: Reading) -> TypedColumn:
        """Numbers, which may be truth values or name the rows."""
        found = _number_column(reading.array(self.texts, np.nan, np.float64), self.name)
        values = self.objects() if found.role == "id" else found.values  # as they are written
        notes = [note for note in (self.noted(reading, "number"), found.note) if note]
        return TypedColumn(found.role, values, "; ".join(notes))

    def as_date(self, reading: Reading) -> TypedColumn:
        """Moments."""
        values = reading.array(self.texts, np.datetime64("NaT", "s"), "datetime64[s]")
        return TypedColumn("date", values, self.noted(reading, "date"))

    def as_tags(self) -> TypedColumn:
        """Tuples of tags."""
        separator = self.separator or self._tag_separator() or self._any_separator()
        lists = self._lists() or {}
        cells = [
            text
            if text is None or isinstance(text, tuple)
            else lists[text]
            if text in lists
            else split_tags(text, separator)
            for text in self.texts
        ]
        is_split = separator is not None and any(
            isinstance(text, str) and text not in lists and separator in text for text in self.counts
        )
        return TypedColumn("tags", _objects(cells), f"parted by {separator!r}" if is_split else "", separator)

    def objects(self) -> np.ndarray:
        """The texts, with None for what is missing."""
        return _objects(self.texts)

    def _lists(self) -> dict[str, tuple[str, ...]] | None:
        """The lists that cells are written as, if nearly all are."""
        texts = [text for text in self.counts if isinstance(text, str)]
        if not texts or sum(text[0] in "[({" for text in texts) < _MOST * len(texts):
            return None
        found = {text: items for text in texts if (items := read_list(text)) is not None}
        return found if len(found) >= _MOST * len(texts) else None

    def _tag_separator(self) -> str | None:
        """What parts the tags of a cell: short texts that come again and again in changing company."""
        texts = {text: count for text, count in self.counts.items() if isinstance(text, str)}
        for separator in TAG_SEPARATORS:
            parted = [count for text, count in texts.items() if separator in text]
            if len(parted) < 2 or sum(parted) < 0.05 * self.n_present:
                continue
            tags: Counter[str] = Counter()
            for text, count in texts.items():
                tags.update(dict.fromkeys(split_tags(text, separator), count))
            if not tags or max(map(len, tags)) > _LONGEST_TAG:
                continue
            n_words = sum(len(tag.split()) for tag in tags) / len(tags)
            if n_words <= (2 if separator == "," else 3) and tags.total() >= min(4, self.n_present / 5) * len(
                tags
            ):
                return separator
        return None

    def _any_separator(self) -> str | None:
        """What parts tags where it is known that these are tags."""
        texts = [text for text in self.counts if isinstance(text, str)]
        return next((mark for mark in TAG_SEPARATORS if any(mark in text for text in texts)), None)

    def _texts(self) -> TypedColumn:
        """Texts that name rows, are free or are categories."""
        values = self.objects()
        n_different = len(self.counts)
        n_words = sum(len(text.split()) for text in self.counts) / n_different
        length = sum(map(len, self.counts)) / n_different
        if (
            n_different == len(self.texts) >= _LEAST_IDENTIFIERS
            and max(map(len, self.counts)) <= _LONGEST_IDENTIFIER
            and (_speaks_of_ids(self.name) or n_words < 1.2)
        ):
            return TypedColumn("id", values, "another text in every row")
        if n_different >= _LEAST_IDENTIFIERS and (
            length >= 60
            or (n_words >= 3 and 2 * n_different > self.n_present)
            or n_different > 0.8 * self.n_present
        ):
            return TypedColumn("text", values)
        return TypedColumn("category", values)


def _objects(cells: Sequence[Any]) -> np.ndarray:
    """An array of objects that may be tuples."""
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return values


def _quoted(text: Any) -> str:
    shown = "; ".join(text) if isinstance(text, tuple) else str(text)
    return repr(shown if len(shown) <= 40 else shown[:37] + "...")
