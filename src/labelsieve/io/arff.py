"""ARFF, dense and sparse, in the dialects of Weka, Mulan and MEKA.

Dense rows of plain numbers are parsed by NumPy. Everything else is read line by line.
"""

from __future__ import annotations

import io
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
import pandas as pd
import scipy.sparse as sp

from labelsieve._numerics.sparse import Matrix
from labelsieve.io.column_choice import unknown_column_error
from labelsieve.io.matrices import Matrices
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source

_QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
# Possessive repeats (*+) keep matching linear in the length of a line.
_DECLARATION = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{}},%'\"][^\s{{}},]*)\s*(.*)", re.IGNORECASE)
_TYPE = re.compile(rf"([a-z]++)\s*+({_QUOTED})?\s*+(?:%.*)?", re.IGNORECASE)
# Categories of an attribute, fields of a dense row and entries of a sparse row. The groups are not possessive,
# because Python before 3.11.5 fails to backtrack after a partial match (python/cpython#100061).
_CATEGORY = rf"\s*+({_QUOTED}|[^,}}'\"\s][^,}}]*+|)"
_FIELD = rf"\s*+({_QUOTED}|[^,%'\"\s][^,%]*+|)\s*+"
_ENTRY = rf"\s*+(\d{{1,18}})\s++({_QUOTED}|[^,}}%'\"\s][^,}}%]*+)\s*+"
_CATEGORIES = re.compile(rf"{{({_CATEGORY}\s*+(?:,{_CATEGORY}\s*+)*)}}\s*+(?:%.*)?")
_DENSE_ROW = re.compile(rf"({_FIELD}(?:,{_FIELD})*)(?:%.*)?")
_SPARSE_ROW = re.compile(rf"{{((?:{_ENTRY}(?:,{_ENTRY})*)?\s*+)}}\s*+(?:%.*)?")
_DATA = re.compile(rb"^[^\S\n]*@data(?:[ \t%][^\n]*)?(?:\n|\Z)", re.IGNORECASE | re.MULTILINE)
# A line that contains one of these cannot simply be split at its separators.
_SPECIAL = re.compile(r"['\"%\\]")
# MEKA keeps its options in the relation name, which Weka's filters extend: "Music: -C 6-weka.filters...".
_MEKA_COUNT = re.compile(r"(?<![\w.])-C\s+(-?\d{1,9})(?!\d)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}
# Letters of Java's SimpleDateFormat, which ARFF uses -> codes of strptime.
_DATE_PARTS = {
    "yyyy": "%Y", "yy": "%y", "MMM": "%b", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d", "HH": "%H",
    "H": "%H", "hh": "%I", "h": "%I", "mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "SSS": "%f", "S": "%f",
    "a": "%p", "EEE": "%a", "E": "%a", "Z": "%z", "X": "%z", "XXX": "%z",
}  # fmt: skip


def read_arff(source: Source, options: ReadOptions) -> Matrices:
    """Read an ARFF file. Drop string attributes, and move the `id` column to `row_ids`."""
    text = source.text
    start = _DATA.search(text)
    if not start:
        raise source.error("must contain @data to be a complete ARFF file; copy it again")
    relation, attributes = _read_header(text[: start.start()], source)
    names = [attribute.name for attribute in attributes]
    rows = _Rows(attributes, text[start.end() :], text.count(b"\n", 0, start.end()) + 1, source)
    values = rows.values()
    row_ids = None
    if options.id is not None:
        if options.id not in names:
            raise unknown_column_error(options.id, names, source.error)
        position = names.index(options.id)
        row_ids = [_unquote(fields.get(position, "0")) for _, fields in rows]
    kept = [
        position
        for position, attribute in enumerate(attributes)
        if attribute.kind != "string" and attribute.name != options.id
    ]
    if not kept:
        raise source.error("must contain features, got only string attributes; convert them")
    return Matrices(
        values if len(kept) == len(names) else values[:, kept],
        feature_names=[names[position] for position in kept],
        categories={attribute.name: attribute.categories for attribute in attributes if attribute.categories},
        declared_labels=_meka_labels(relation, names),
        row_ids=row_ids,
    )


@dataclass(frozen=True)
class _Attribute:
    """One declared column. `kind` is numeric, nominal, string or date, and `read` converts a field to a number."""

    name: str
    kind: str
    read: Callable[[str], float]
    categories: tuple[str, ...] = ()


def _read_header(text: bytes, source: Source) -> tuple[str, list[_Attribute]]:
    """Read the name of the relation and the attributes."""
    relation = ""
    attributes: list[_Attribute] = []
    for number, line in _lines(text, 1):
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@attribute":
            attributes.append(_attribute(line, number, source))
        elif keyword == "@relation":
            name = line[len(keyword) :].strip()
            quoted = re.match(_QUOTED, name)
            relation = _unquote(quoted.group()) if quoted else name.partition("%")[0].strip()
        else:
            raise source.error(
                f"expected @relation, @attribute or @data, got {line[:40]!r}; correct the line", line=number
            )
    if not attributes:
        raise source.error("must declare an @attribute before @data; copy it again")
    name, times = Counter(attribute.name for attribute in attributes).most_common(1)[0]
    if times > 1:
        raise source.error(f"declares the attribute {name!r} {times} times; rename duplicates")
    return relation, attributes


def _lines(text: bytes, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield the numbers and texts of lines that are neither blank nor comments, in UTF-8 or else Latin-1."""
    for number, raw in enumerate(text.split(b"\n"), first_line):
        try:
            line = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            line = raw.decode("latin-1").strip()
        if line and not line.startswith("%"):
            yield number, line


def _meka_labels(relation: str, names: list[str]) -> list[str] | None:
    """Return the labels of MEKA's ``-C q`` (the first q) or ``-C -q`` (the last q).

    Return None without the option, and [] if q exceeds the number of attributes.
    """
    found = _MEKA_COUNT.search(relation.partition(":")[2]) or _MEKA_COUNT.search(relation)
    if not found:
        return None
    count = int(found.group(1))
    if not 0 < abs(count) < len(names):
        return []
    return names[:count] if count > 0 else names[count:]


def _unquote(token: str) -> str:
    """Remove quotes and escapes. Outside quotes a backslash is an ordinary character, as in Weka."""
    if len(token) < 2 or token[0] not in "'\"" or token[-1] != token[0]:
        return token
    return _ESCAPE.sub(
        lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else _CONTROL.get(m[1], m[1]), token[1:-1]
    )


def _attribute(line: str, line_number: int, source: Source) -> _Attribute:
    """Read one ``@attribute`` line."""
    declaration = _DECLARATION.fullmatch(line)
    if not declaration:
        raise source.error(
            f"expected '@attribute name type', got {line[:60]!r}; quote names with spaces", line=line_number
        )
    name, kind = _unquote(declaration.group(1)), declaration.group(2)
    parsed = _TYPE.fullmatch(kind)
    word = parsed.group(1).lower() if parsed else ""
    if word in ("numeric", "real", "integer"):
        return _Attribute(name, "numeric", _number)
    if word == "string":
        return _Attribute(name, "string", lambda _: 0.0)
    try:
        if kind.startswith("{"):
            return _Attribute(name, "nominal", *_categories(kind))
        if parsed and word == "date":
            pattern = _unquote(parsed.group(2)) if parsed.group(2) else "yyyy-MM-dd'T'HH:mm:ss"
            return _Attribute(name, "date", _date_reader(pattern))
    except ValueError as error:
        raise source.error(f"attribute {name!r}: {error}; correct the line", line=line_number) from None
    raise source.error(
        f"attribute {name!r} must be numeric, nominal, string or date, got {kind[:40]!r}; convert it",
        line=line_number,
    )


@lru_cache(maxsize=64)  # most files declare {0,1} for hundreds of attributes
def _categories(text: str) -> tuple[Callable[[str], float], tuple[str, ...]]:
    """Return a function from a category to its code, and the categories between braces."""
    found = _CATEGORIES.fullmatch(text)
    if not found:
        raise ValueError("categories must be separated by commas and enclosed in braces")
    tokens = re.findall(rf"(?:\A|,){_CATEGORY}", found[1])
    categories = [_unquote(token.strip()) for token in tokens if token]
    if len(set(categories)) < len(categories) or not categories:
        raise ValueError("categories must not be empty or repeat")
    codes = {category: float(code) for code, category in enumerate(categories)}
    numbers = _numbers(tuple(categories)) or {}

    def code(text: str) -> float:
        # "1.0" matches the category "1".
        return codes[text] if text in codes else numbers[_number(text)]

    return code, tuple(categories)


@lru_cache(maxsize=64)
def _numbers(categories: tuple[str, ...]) -> dict[float, float] | None:
    """Return number -> code of the categories, or None unless all are distinct numbers."""
    try:
        codes = {_number(category): float(code) for code, category in enumerate(categories)}
    except ValueError:
        return None
    return codes if len(codes) == len(categories) and np.isfinite([*codes]).all() else None


def _date_reader(pattern: str) -> Callable[[str], float]:
    """Return a function that converts a date to seconds since 1970, in UTC unless it has a time zone."""
    layout = ""
    for found in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']+", pattern):
        text = found.group()
        if text in _DATE_PARTS:
            layout += _DATE_PARTS[text]
        elif text[0].isalpha():
            raise ValueError(f"unknown part {text!r} in the date format {pattern!r}")
        else:
            layout += (text[1:-1] or "'" if text[0] == "'" else text).replace("%", "%%")

    def seconds(text: str) -> float:
        moment = datetime.strptime(text, layout)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    return seconds


@dataclass
class _Rows:
    """Lines after ``@data``. Iterating yields the number of each line and its fields by position."""

    attributes: list[_Attribute]
    text: bytes
    first_line: int
    source: Source

    def __iter__(self) -> Iterator[tuple[int, dict[int, str]]]:
        is_sparse: bool | None = None
        for number, line in _lines(self.text, self.first_line):
            if is_sparse is None:
                is_sparse = line.startswith("{")
            if is_sparse != line.startswith("{"):
                kinds = "dense row in a sparse" if is_sparse else "sparse row in a dense"
                raise self.source.error(f"got a {kinds} file; use one form in all rows", line=number)
            yield number, self._sparse_fields(line, number) if is_sparse else self._dense_fields(line, number)

    def values(self) -> Matrix:
        """Convert all rows to numbers, codes and dates, with NaN for missing values."""
        start = next(_lines(self.text, 1), None)
        if start is None:
            raise self.source.error("must contain rows after @data; copy it again")
        is_sparse = start[1].startswith("{")
        values = None if is_sparse else self._plain_numbers()
        if values is not None:
            return values
        entries, columns, ends = array("d"), array("i"), array("q", [0])
        readers = [attribute.read for attribute in self.attributes]
        for number, fields in self:
            columns.extend(fields)
            try:  # twice as fast for a row of plain values
                if "?" in fields.values():
                    raise ValueError("a missing value")
                entries.extend([readers[position](field) for position, field in fields.items()])
            except (ValueError, OverflowError, KeyError):
                entries.extend([self._value(position, field, number) for position, field in fields.items()])
            ends.append(len(columns))
        if not is_sparse:
            return np.array(entries).reshape(-1, len(self.attributes))
        shape = (len(ends) - 1, len(self.attributes))
        matrix = sp.csr_array((np.array(entries), np.array(columns), np.array(ends)), shape=shape)
        matrix.sort_indices()
        return matrix

    def _plain_numbers(self) -> np.ndarray | None:
        """Parse dense rows of numbers and question marks. Return None if they contain anything else."""
        nominal = {
            position: _numbers(attribute.categories)
            for position, attribute in enumerate(self.attributes)
            if attribute.categories
        }
        if None in nominal.values() or any(kind.kind in ("string", "date") for kind in self.attributes):
            return None
        text = io.StringIO(self.text.replace(b"?", b"nan").decode("latin-1"))
        try:
            values = np.loadtxt(text, delimiter=",", comments="%", ndmin=2)
        except ValueError:
            return None
        if values.shape[1] != len(self.attributes):
            return None
        for position, codes in nominal.items():
            coded = pd.Series(values[:, position]).map(codes).to_numpy()
            if not np.array_equal(np.isnan(coded), np.isnan(values[:, position])):
                return None
            values[:, position] = coded
        return values

    def _dense_fields(self, line: str, number: int) -> dict[int, str]:
        """Split a dense row into fields, with their quotes."""
        fields = line.split(",")
        if _SPECIAL.search(line):
            found = _DENSE_ROW.match(line)
            assert found is not None  # a field may be empty
            if rest := line[found.end() :]:
                raise self.source.error(f"cannot read {rest[:40]!r}; check its quotes", line=number)
            fields = re.findall(rf"(?:\A|,){_FIELD}", found[1])
        if len(fields) != len(self.attributes):
            raise self.source.error(
                f"expected {len(self.attributes)} values, one per attribute, got {len(fields)}; correct the row",
                line=number,
            )
        return {position: field.strip() for position, field in enumerate(fields)}

    def _sparse_fields(self, line: str, number: int) -> dict[int, str]:
        """Split a sparse row into fields."""
        found = _SPARSE_ROW.fullmatch(line)
        if not found:
            raise self.source.error(
                f"expected 'index value' pairs in braces, got {line[:40]!r}; correct the row", line=number
            )
        entries = re.findall(_ENTRY, found[1])
        row = {int(index): field.strip() for index, field in entries}
        if len(row) < len(entries) or max(row, default=0) >= len(self.attributes):
            got = ", ".join(index for index, _ in entries)
            raise self.source.error(
                f"attribute indices must be unique and below {len(self.attributes)}, got {got[:40]}; correct the row",
                line=number,
            )
        return row

    def _value(self, position: int, field: str, number: int) -> float:
        """Convert a field to a number, code or date."""
        if field == "?":
            return np.nan
        attribute = self.attributes[position]
        text = _unquote(field)
        try:
            return attribute.read(text)
        except (ValueError, OverflowError, KeyError):
            problem = f"is {attribute.kind}, got {text[:40]!r}; correct the value"
            if attribute.kind == "nominal":
                problem = f"has no category {text[:40]!r}; declare it in the header"
            raise self.source.error(f"attribute {attribute.name!r} {problem}", line=number) from None


def _number(text: str) -> float:
    """Parse a number, without the underscores that `float` accepts."""
    if "_" in text:
        raise ValueError(text)
    return float(text)
