"""Infer the role of a column from its cells: number, vector, date, category, text, tags, identifier or constant."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
from pandas.api.types import infer_dtype

from labelsieve._numerics.candidates import is_binary
from labelsieve.io.errors import Fail
from labelsieve.io.quantities import read_quantities
from labelsieve.io.spellings import DASHES, MISSING, read_booleans, read_dates, read_numbers
from labelsieve.io.tags import clean_tags, guess_separator, object_tags, read_list, read_object, split_tags

# If at least this fraction of the cells are numbers or dates, the others count as invalid.
_MIN_FRACTION = 0.9
# With fewer rows, unique values may still be categories.
_MIN_IDENTIFIERS = 5
_MAX_IDENTIFIER_LENGTH = 64
# Single words with more different values than this share of the rows are identifiers, and several words are text.
_MOSTLY_DIFFERENT = 0.8
# Shorter lists of whole numbers may be codes.
_MIN_VECTOR_LENGTH, _MIN_WHOLE_VECTOR_LENGTH = 3, 16
# Digits with leading zeros are codes, such as postal codes.
_LEADING_ZERO = re.compile(r"^\s*0\d+(?:\.\d+)?\s*$", re.MULTILINE)
_ID_NAME = re.compile(
    r"(?:^|[^a-z])(?:id|ids|uuid|guid|key|nr|no|number|identifier|index|row)$|^(?:id|uuid|guid|row|index)(?:[^a-z]|$)|"
    r"(?:app|user|member|author|artist|movie|film|show|video|song|track|book|game|item|product|article|paper|post|tweet|"
    r"comment|parent|link|page|doc|document|file|image|img|photo|case|patient|subject|sample|study|order|customer|client|"
    r"account|session|device|event|job|task|ticket|issue|question|answer|review|recipe|hotel|store|listing|host|imdb|"
    r"tmdb|record|object|entity|node|gene|new|worker|rater|annotator|show)ids?$"
)
# Identifiers that are recognized by their form, and their names.
_ENDINGS = (
    "jpe?g|png|gif|bmp|tiff?|webp|svg|pdf|docx?|xlsx?|pptx?|csv|tsv|txt|json|xml|html?|zip|gz|tar|mp[34]|wav|flac|"
    "avi|mov|mkv|py|js|java|cpp|exe|apk|dcm|nii|npy|npz|parquet|ipynb"
)
_ID_FORMS = {
    "web addresses": re.compile(r"(?:https?|ftp|s3)://\S+|www\.\S+\.\S+", re.IGNORECASE),
    "e-mail addresses": re.compile(r"[^\s@]+@[^\s@]+\.[a-z]{2,}", re.IGNORECASE),
    "hashes": re.compile(
        r"(?=.*\d)(?=.*[a-f])[0-9a-f]{16,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
    ),
    "file names": re.compile(
        rf"[^\n]*[^\s.]\.(?:{_ENDINGS})|(?:[a-z]:\\|\.{{0,2}}/)\S*[/\\]\S+", re.IGNORECASE
    ),
    "phone numbers": re.compile(r"[+(0][\d\s().-]{6,20}|\d{2,4}(?:[\s-]\d{2,4}){2,4}"),
}
_SEVERAL = re.compile(r"\s*[\r\n,;|]+\s*")
# Scripts without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True)
class TypedColumn:
    """Column with a role and converted values.

    Values are numbers with NaN (number, boolean), timestamps with NaT (date), arrays of numbers (vector), or tuples of
    strings (tags) and strings with None for missing values.
    """

    role: str
    values: np.ndarray
    note: str = ""
    #: Separator between tags. None if a cell is a single tag or a list.
    separator: str | None = None
    #: Categories in their declared order.
    categories: tuple[str, ...] | None = None
    #: Unit of each number, if units differ that cannot be converted.
    units: np.ndarray | None = None
    #: True for identifiers such as web addresses, which are poor names of rows.
    is_long_id: bool = False

    @property
    def n_missing(self) -> int:
        """Number of missing values."""
        if self.values.dtype == object:
            return sum(value is None for value in self.values)
        return int((np.isnat if self.values.dtype.kind == "M" else np.isnan)(self.values).sum())


def cell_strings(cells: Any) -> list[Any]:
    """Convert cells of any type to stripped strings, lists to tuples of strings, and missing values to None."""
    dtype = cells.dtype
    if hasattr(cells, "cat"):  # convert each category only once
        texts = [*map(_cell_text, cells.cat.categories), None]
        return [texts[code] for code in cells.cat.codes]
    if dtype.kind in "iub" and isinstance(dtype, np.dtype):
        return [str(value) for value in cells.tolist()]
    if dtype.kind == "M" and isinstance(dtype, np.dtype):
        dates = np.datetime_as_string(np.asarray(cells, "datetime64[s]"))
        return [None if date == "NaT" else date for date in dates.tolist()]
    return [_cell_text(value) for value in cells]


def _cell_text(value: Any) -> Any:
    """Convert one cell to a string, a tuple of strings or None."""
    if isinstance(value, str):
        text = value.strip()
        found = read_object(text)
        if found is not None:
            return object_tags(found) or text
        return None if text.lower() in MISSING else text
    if isinstance(value, (list, tuple, np.ndarray)):
        return clean_tags(value)
    if isinstance(value, (set, frozenset)):
        return clean_tags(sorted(value, key=str))
    if isinstance(value, dict):
        named = object_tags(value)
        return json.dumps(value, default=str) if named is None else named
    if isinstance(value, bytes):
        return _cell_text(value.decode("utf-8", errors="replace"))
    if isinstance(value, date):  # includes datetimes and timestamps of pandas
        return _cell_text(value.isoformat())
    if isinstance(value, timedelta):
        return _cell_text(str(value.total_seconds()))
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (float, np.floating)) and value.is_integer() and abs(float(value)) < 1e15:
        return str(int(value))
    return _cell_text(str(value))  # also converts missing values of Python, NumPy and pandas to None


def read_vectors(cells: Any) -> np.ndarray | None:
    """Convert cells to arrays of numbers of one length, and missing values to None. Return None if others occur."""
    if cells.dtype != object:
        return None
    vectors: list[np.ndarray | None] = []
    for cell in cells:
        if cell is None or (isinstance(cell, (float, str)) and (cell != cell or not cell)):
            vectors.append(None)
            continue
        vector = _read_vector(cell)
        if vector is None:
            return None
        vectors.append(vector)
    found = [vector for vector in vectors if vector is not None]
    if not found or len({len(vector) for vector in found}) > 1 or len(found[0]) < _MIN_VECTOR_LENGTH:
        return None
    is_whole = all((vector == np.floor(vector)).all() for vector in found)
    return None if is_whole and len(found[0]) < _MIN_WHOLE_VECTOR_LENGTH else _object_array(vectors)


def _read_vector(cell: Any) -> np.ndarray | None:
    """Convert a list of finite numbers to an array, or return None."""
    if isinstance(cell, str):
        if cell[:1] + cell[-1:] not in ("[]", "()"):
            return None
        cell = cell[1:-1].replace(",", " ").split()
    if not isinstance(cell, (list, tuple, np.ndarray)) or not len(cell):
        return None
    try:
        vector = np.array(cell, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return vector if vector.ndim == 1 and np.isfinite(vector).all() else None


def infer_column_type(
    cells: Any,
    name: str,
    fail: Fail,
    *,
    role: str | None = None,
    separator: str | None = None,
    is_european: bool = False,
) -> TypedColumn:
    """Infer the role of a column, or convert it to a given one.

    With `is_european`, ambiguous commas are decimal commas, and ambiguous dates start with the day.
    """
    if role is None and cells.dtype.kind == "f" and isinstance(cells.dtype, np.dtype):
        return _number_column(np.asarray(cells, dtype=np.float64), name)
    vectors = read_vectors(cells) if role in (None, "vector") else None
    if vectors is not None:
        return TypedColumn("vector", vectors)
    if role == "vector":
        raise fail(
            f"column {name!r} must contain lists of numbers of one length for the role 'vector'; check `roles`"
        )
    numbers = plain_numbers(cells) if role is None else None
    if numbers is not None and numbers.min() < numbers.max():
        found = _number_column(numbers, name)
        return replace(found, values=_object_array(cell_strings(cells))) if found.role == "id" else found
    column = _Column(cell_strings(cells), name, separator, is_european)
    return column.infer() if role is None else column.convert(role, fail)


def plain_numbers(cells: Any) -> np.ndarray | None:
    """Convert cells to numbers. Return None unless all are numbers in Python's notation."""
    if cells.dtype.kind in "buif" and not isinstance(cells.dtype, np.dtype):  # extension types of pandas
        return None if cells.isna().any() else cells.to_numpy(dtype=np.float64)
    if cells.dtype.kind in "buif":
        return np.asarray(cells, dtype=np.float64)
    values = np.asarray(cells, dtype=object)
    if infer_dtype(values, skipna=False) != "string":
        return None
    text = "\n".join(values)
    if "_" in text or _LEADING_ZERO.search(text):
        return None
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        return None
    return None if np.isnan(numbers).any() else numbers


def _number_column(values: np.ndarray, name: str) -> TypedColumn:
    """Infer the role of a column of numbers and missing values."""
    infinite = np.isinf(values)
    note = f"{int(infinite.sum())} infinite values treated as missing" if infinite.any() else ""
    values = np.where(infinite, np.nan, values)
    present = values[~np.isnan(values)]
    if not present.size:
        return TypedColumn("constant", np.full(len(values), None, dtype=object), "all values are missing")
    is_complete = present.size == values.size
    if present.min() == present.max():
        if is_complete:
            return TypedColumn("constant", values, f"always {present[0]:.15g}")
        return TypedColumn("boolean", np.where(np.isnan(values), 0.0, 1.0), f"{present[0]:.15g} or missing")
    if is_binary(present):
        return TypedColumn("boolean", values, note)
    is_whole = (present == np.floor(present)).all()
    if is_complete and len(values) >= _MIN_IDENTIFIERS:
        is_count = is_whole and (np.diff(values) == 1).all()
        is_called_id = (is_whole and _is_id_name(name)) or name.lower() == "id"
        if is_count or (is_called_id and len(np.unique(values)) == len(values)):
            return TypedColumn(
                "id", _format_numbers(values), _doubt("a different number in every row", name, "number")
            )
    if is_whole and _is_id_name(name):
        return TypedColumn(
            "category", _format_numbers(values), _doubt("numeric identifiers that repeat", name, "number")
        )
    return TypedColumn("number", values, note)


def _is_id_name(name: str) -> bool:
    """Return True for the name of an identifier, such as ticket_id or ticketId.

    Examples
    --------
    >>> [_is_id_name(name) for name in ("ID", "ticket_id", "ticketId", "appid", "humid", "paid")]
    [True, True, True, True, False, False]
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return bool(_ID_NAME.search(split.lower()))


class _Column:
    """Cells of one column with their counts."""

    def __init__(self, texts: list[Any], name: str, separator: str | None, is_european: bool) -> None:
        self.texts, self.name, self.separator = texts, name, separator
        self.is_european = is_european
        self.strings = _object_array(texts)
        self.counts: Counter[Any] = Counter(text for text in texts if text is not None)
        self.n_present = self.counts.total()
        #: Counts of the cells that are not lists.
        self.words: dict[str, int] = {text: n for text, n in self.counts.items() if isinstance(text, str)}
        #: Units of the words, if they differ.
        self.units: dict[str, str] = {}

    def infer(self) -> TypedColumn:
        """Convert the column to the role that its cells suggest."""
        if not self.counts:
            return TypedColumn("constant", self.strings, "all values are missing")
        if len(self.counts) == 1 and self.n_present == len(self.texts):
            return TypedColumn("constant", self.strings, f"always {_shorten(next(iter(self.counts)))}")
        if len(self.words) < len(self.counts) or self._holds_lists():
            return self._as_tags()
        truth, _ = self._read("boolean")
        if truth:
            return self._typed("boolean", truth)
        if len(self.words) == 1:
            return TypedColumn("category", self.strings, f"{_shorten(next(iter(self.words)))} or missing")
        if any(map(_LEADING_ZERO.fullmatch, self.words)):
            note = self._doubt("digits with leading zeros treated as text", "number")
            return replace(self._as_words(), note=note)
        numbers, note = self._read("number")
        has_dashes = bool(numbers) and self.words.keys() - numbers.keys() <= DASHES
        if has_dashes or self._fraction(numbers) >= _MIN_FRACTION:
            column = self._typed("number", numbers, note)
            found = _number_column(column.values, self.name)
            notes = "; ".join(filter(None, (column.note, found.note)))
            # Keep identifiers as written.
            return replace(
                column,
                role=found.role,
                note=notes,
                values=self.strings if found.role == "id" else found.values,
            )
        dates, note = self._read("date")
        if self._fraction(dates) >= _MIN_FRACTION:
            return self._typed("date", dates, note)
        form = self._identifier_form()
        if form is not None:
            return TypedColumn("id", self.strings, self._doubt(form, "text"), is_long_id=True)
        if self._holds_objects():
            return TypedColumn("ignored", self.strings, "objects without a name")
        return self._as_words() if guess_separator(self.words) is None else self._as_tags()

    def convert(self, role: str, fail: Fail) -> TypedColumn:
        """Convert the column to a given role."""
        if role == "tags":
            return self._as_tags()
        if role not in ("number", "date", "boolean"):
            plain = [" ".join(text) if isinstance(text, tuple) else text for text in self.texts]
            return TypedColumn(role, _object_array(plain))
        meaning, note = self._read(role)
        if not meaning:
            first = _shorten(next(iter(self.counts))) if self.counts else "no values"
            kind = "yes and no, true and false or 1 and 0" if role == "boolean" else f"{role}s"
            raise fail(
                f"column {self.name!r} must contain {kind} for the role {role!r}, got {first}; read it with "
                f"`roles={ {self.name: 'category'} }`"
            )
        column = self._typed(role, meaning, note, is_given=True)
        if role == "number":
            column.values[np.isinf(column.values)] = np.nan
        return column

    def _doubt(self, note: str, other_role: str) -> str:
        return _doubt(note, self.name, other_role)

    def _read(self, role: str) -> tuple[dict[str, Any], str]:
        """Parse the words as numbers, dates or booleans. Return the values and a note about their format."""
        if role == "number":
            numbers, note = read_numbers(self.words, commas_are_decimal=self.is_european)
            if self._fraction(numbers) >= _MIN_FRACTION:
                return numbers, note
            quantities, units, other = read_quantities(self.words, commas_are_decimal=self.is_european)
            if len(quantities) <= len(numbers):
                return numbers, note
            self.units = units
            return quantities, other
        if role == "date":
            return read_dates(self.words, days_first=self.is_european)
        return read_booleans(self.words), ""

    def _fraction(self, meaning: dict[str, Any]) -> float:
        """Return the fraction of the cells that were parsed."""
        return sum(self.words[text] for text in meaning) / self.n_present

    def _typed(
        self, role: str, meaning: dict[str, Any], note: str = "", *, is_given: bool = False
    ) -> TypedColumn:
        """Build a column of numbers, dates or booleans, with a note about their format and invalid cells."""
        missing, dtype = (
            (np.datetime64("NaT", "s"), "datetime64[s]") if role == "date" else (np.nan, "float64")
        )
        values = np.array([meaning.get(text, missing) for text in self.texts], dtype)
        invalid = {text: count for text, count in self.counts.items() if text not in meaning}
        invalid_note = ""
        if invalid:
            example = _shorten(next(iter(invalid)))
            invalid_note = f"{sum(invalid.values())} invalid cells ({example}) treated as missing"
        note = "; ".join(filter(None, (note, invalid_note)))
        if note and not is_given:
            note = self._doubt(note, "category")
        units = None
        if role == "number" and len(set(self.units.values())) > 1:
            units = _object_array([self.units.get(text) if text in meaning else None for text in self.texts])
        return TypedColumn(role, values, note, units=units)

    def _as_tags(self) -> TypedColumn:
        """Convert the cells to tuples of tags."""
        separator = self.separator or guess_separator(self.words, is_label=True)
        meaning: dict[Any, Any] = {text: split_tags(text, separator) for text in self.words}
        is_split = separator is not None and any(
            separator in text and read_list(text) is None for text in self.words
        )
        values = _object_array([meaning.get(text, text) for text in self.texts])
        return TypedColumn("tags", values, f"split by {separator!r}" if is_split else "", separator)

    def _holds_lists(self) -> bool:
        """Return True if nearly all cells are written as lists."""
        least = _MIN_FRACTION * len(self.words)
        if sum(text[0] in "[({<" for text in self.words) < least:
            return False
        return sum(read_list(text) is not None for text in self.words) >= least

    def _holds_objects(self) -> bool:
        """Return True if nearly all cells are different JSON objects."""
        return 2 * len(self.words) >= self.n_present and all(read_object(text) for text in self.words)

    def _identifier_form(self) -> str | None:
        """Return the kind of identifiers that nearly all cells hold by their form, such as web addresses."""
        for kind, form in _ID_FORMS.items():
            n_matched = sum(
                count
                for text, count in self.words.items()
                if form.fullmatch(text) or all(map(form.fullmatch, _SEVERAL.split(text)))
            )
            if n_matched >= _MIN_FRACTION * self.n_present:
                return kind
        return None

    def _as_words(self) -> TypedColumn:
        """Convert the cells to identifiers, free text or categories."""
        n_different = len(self.words)
        n_words = (
            sum(len(text.split()) + len(_UNSPACED.findall(text)) // 2 for text in self.words) / n_different
        )
        length = sum(map(len, self.words)) / n_different
        is_different = n_different > _MOSTLY_DIFFERENT * self.n_present and n_different >= _MIN_IDENTIFIERS
        is_unique = n_different == len(self.texts)
        if (
            is_different
            and max(map(len, self.words)) <= _MAX_IDENTIFIER_LENGTH
            and (n_words < 1.2 or (is_unique and _is_id_name(self.name)))
        ):
            note = f"a different text in {'every row' if is_unique else 'most rows'}"
            return TypedColumn("id", self.strings, self._doubt(note, "text"))
        if n_different >= _MIN_IDENTIFIERS and (
            length >= 60 or (n_words >= 3 and 2 * n_different > self.n_present) or is_different
        ):
            return TypedColumn("text", self.strings)
        return TypedColumn("category", self.strings)


def _doubt(note: str, name: str, other_role: str) -> str:
    """Add the option that changes a role to a note about it."""
    return f"{note} (if not: `roles={ {name: other_role} }`)"


def _object_array(cells: Sequence[Any]) -> np.ndarray:
    """Convert cells, which may be tuples, to an array of objects."""
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    return values


def _format_numbers(numbers: np.ndarray) -> np.ndarray:
    """Convert numbers to strings, and NaN to None."""
    return _object_array([None if number != number else f"{number:.15g}" for number in numbers])


def _shorten(text: Any) -> str:
    shown = "; ".join(text) if isinstance(text, tuple) else str(text)
    return repr(shown if len(shown) <= 40 else shown[:37] + "...")
