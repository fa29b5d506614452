"""ARFF, dense and sparse, in the dialects of Weka, Mulan and MEKA.

Blocks of plain numbers are parsed by NumPy. A block with quotes, comments, text or a mistake is read again line by
line, which either copes with it or names the line.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain

import numpy as np
import scipy.sparse as sp

from labelsieve.io.numeric_table import NumericTable
from labelsieve.io.source import Source, decode, line_blocks

_QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
# Possessive repeats (*+) keep matching linear in the length of a line.
_DECLARATION = re.compile(
    rf"@attribute\s+({_QUOTED}|[^\s{{}},%'\"][^\s{{}},]*)\s*(.*)", re.IGNORECASE | re.DOTALL
)
_CATEGORY = re.compile(rf"\s*+({_QUOTED}|[^,}}'\"\s][^,}}]*+|)\s*+([,}}])", re.DOTALL)
_TYPE = re.compile(rf"([a-z]++)\s*+({_QUOTED})?\s*+(?:%.*)?", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(rf"\s*+({_QUOTED}|[^,%'\"\s][^,%]*+|)\s*+(,|%|$)", re.DOTALL)
_ENTRY = re.compile(rf"\s*+(\d{{1,18}})\s++({_QUOTED}|[^,}}%'\"\s][^,}}%]*+)\s*+([,}}])", re.DOTALL)
_NEEDLESS_SPACE = re.compile(rb" *+([,{}\n]) *+")
_END_OF_ROW = re.compile(r"\s*}\s*(?:%.*)?", re.DOTALL)
_DATA = re.compile(rb"^[^\S\n]*@data(?:[ \t%][^\n]*)?(?:\n|\Z)", re.IGNORECASE | re.MULTILINE)
# MEKA keeps its options in the relation name, which Weka's filters extend: "Music: -C 6-weka.filters...".
_MEKA_COUNT = re.compile(r"(?<![\w.])-C\s+(-?\d{1,9})(?!\d)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}
# Java's SimpleDateFormat letters, which ARFF uses, to those of strptime.
_DATE_PARTS = {
    "yyyy": "%Y", "yy": "%y", "MMM": "%b", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d", "HH": "%H",
    "H": "%H", "hh": "%I", "h": "%I", "mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "SSS": "%f", "S": "%f",
    "a": "%p", "EEE": "%a", "E": "%a", "Z": "%z", "X": "%z", "XXX": "%z",
}  # fmt: skip


def read_arff(source: Source, id_column: str | None = None) -> NumericTable:
    """Read an ARFF file. String attributes are left out, `id_column` becomes `row_ids`."""
    text = source.text
    start = _DATA.search(text)
    if not start:
        raise source.error("ends before @data, so it is not a complete ARFF file; copy it again")
    relation, attributes = _read_header(text[: start.start()], source)
    names = [attribute.name for attribute in attributes]
    reader = _Rows(attributes, source)
    rows, first_line = text[start.end() :], text.count(b"\n", 0, start.end()) + 1
    values = reader.read(line_blocks(rows, first_line))
    row_ids = None
    if id_column is not None:
        if id_column not in names:
            raise source.error(f"has no attribute {id_column[:80]!r} to name its rows; check the name")
        row_ids = reader.texts(line_blocks(rows, first_line), names.index(id_column))
    kept = [
        place
        for place, attribute in enumerate(attributes)
        if attribute.kind != "string" and attribute.name != id_column
    ]
    if not kept:
        raise source.error("has string attributes only, so no features; convert them")
    categories = {
        place: attribute.categories
        for place, attribute in enumerate(attributes)
        if attribute.kind == "nominal"
    }
    table = NumericTable(names, values, categories, _meka_labels(relation, names), row_ids=row_ids)
    return table if len(kept) == len(names) else table.keep(kept)


@dataclass(frozen=True)
class _Attribute:
    """One declared column: kind is numeric, nominal, string or date."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    seconds: Callable[[str], float] | None = None


def _read_header(text: bytes, source: Source) -> tuple[str, list[_Attribute]]:
    """Return the name of the relation and the attributes."""
    relation = ""
    attributes: list[_Attribute] = []
    for number, raw in enumerate(text.split(b"\n"), start=1):
        line = decode(raw).strip()
        if not line or line.startswith("%"):
            continue
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
        raise source.error("declares no @attribute before @data; copy it again")
    source.check_columns(len(attributes))
    name, times = Counter(attribute.name for attribute in attributes).most_common(1)[0]
    if times > 1:
        raise source.error(f"declares the attribute {name!r} twice; rename one")
    return relation, attributes


def _meka_labels(relation: str, names: list[str]) -> list[str] | None:
    """Return the labels of MEKA's ``-C q`` (the first q) or ``-C -q`` (the last q); [] if there are not so many."""
    found = _MEKA_COUNT.search(relation.partition(":")[2]) or _MEKA_COUNT.search(relation)
    if not found:
        return None
    count = int(found.group(1))
    if not 0 < abs(count) < len(names):
        return []
    return names[:count] if count > 0 else names[count:]


def _unquote(token: str) -> str:
    """A name or value without its quotes and escapes; without quotes a backslash is a letter, as in Weka."""
    if len(token) < 2 or token[0] not in "'\"" or token[-1] != token[0]:
        return token
    token = token[1:-1]
    if "\\" not in token:
        return token
    return _ESCAPE.sub(
        lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else _CONTROL.get(m[1], m[1]), token
    )


def _attribute(line: str, line_number: int, source: Source) -> _Attribute:
    """One ``@attribute`` line."""
    declaration = _DECLARATION.fullmatch(line)
    if not declaration:
        raise source.error(
            f"expected '@attribute name type', got {line[:60]!r}; quote the name", line=line_number
        )
    name, kind = _unquote(declaration.group(1)), declaration.group(2)
    parsed = _TYPE.fullmatch(kind)
    word = parsed.group(1).lower() if parsed else ""
    if word in ("numeric", "real", "integer"):
        return _Attribute(name, "numeric")
    if word == "string":
        return _Attribute(name, "string")
    try:
        if kind.startswith("{"):
            return _Attribute(name, "nominal", _categories(kind))
        if parsed and word == "date":
            pattern = _unquote(parsed.group(2)) if parsed.group(2) else "yyyy-MM-dd'T'HH:mm:ss"
            return _Attribute(name, "date", seconds=_date_reader(pattern))
    except ValueError as error:
        raise source.error(f"attribute {name!r} has {error}; correct the line", line=line_number) from None
    raise source.error(
        f"attribute {name!r} must be numeric, nominal, string or date, got {kind[:40]!r}; convert it",
        line=line_number,
    )


@lru_cache(maxsize=64)  # most files declare {0,1} for hundreds of attributes
def _categories(text: str) -> tuple[str, ...]:
    """The categories between braces."""
    categories: list[str] = []
    position, mark = 1, ","
    while mark == ",":
        token = _CATEGORY.match(text, position)
        if not token:
            raise ValueError("categories that do not end with a brace")
        if token.group(1):
            categories.append(_unquote(token.group(1).strip()))
        position, mark = token.end(), token.group(2)
    rest = text[position:].strip()
    if rest and not rest.startswith("%"):
        raise ValueError(f"something after its categories, {rest[:40]!r}")
    if len(set(categories)) < len(categories) or not categories:
        raise ValueError("no categories or one of them twice")
    return tuple(categories)


def _date_reader(pattern: str) -> Callable[[str], float]:
    """Function from a date as text to seconds since 1970 (UTC where no zone is given)."""
    texts = [found.group() for found in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']+", pattern)]
    directives = [_DATE_PARTS.get(text, text) for text in texts if text[0].isalpha()]
    if not directives or "".join(texts) != pattern or len(set(directives)) < len(directives):
        raise ValueError(f"a date format that cannot be read, {pattern!r}")
    layout = ""
    for text in texts:
        if text[0].isalpha():
            if text not in _DATE_PARTS:
                raise ValueError(f"the unknown part {text!r} in its date format {pattern!r}")
            layout += _DATE_PARTS[text]
        else:
            layout += (text[1:-1] or "'" if text[0] == "'" else text).replace("%", "%%")

    def seconds(text: str) -> float:
        moment = datetime.strptime(text, layout)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    return seconds


class _Rows:
    """Turns the lines after ``@data`` into a matrix, given the attributes."""

    def __init__(self, attributes: list[_Attribute], source: Source) -> None:
        self.attributes = attributes
        self.source = source
        self.codings = {
            index: _coding(attribute.categories)
            for index, attribute in enumerate(attributes)
            if attribute.kind == "nominal"
        }
        self.bulk_dense = all(attribute.kind in ("numeric", "nominal") for attribute in attributes) and all(
            coding.numbers is not None for coding in self.codings.values()
        )
        # Numbers below this are valid as they stand in a sparse row; -inf if all need a closer look.
        self.bulk_limit = np.array([np.inf if a.kind == "numeric" else -np.inf for a in attributes])
        for index, coding in self.codings.items():
            self.bulk_limit[index] = len(coding.codes) if coding.in_order else -np.inf

    def read(self, blocks: Iterator[tuple[int, bytes]]) -> np.ndarray | sp.csr_array:
        """Read all rows."""
        for first_line, block in blocks:
            start = re.search(rb"^[^\S\n]*([^\s%])", block, re.MULTILINE)
            if start:
                rest = chain([(first_line, block)], blocks)
                return self._sparse(rest) if start.group(1) == b"{" else self._dense(rest)
        raise self.source.error("has no rows after @data; copy it again")

    def texts(self, blocks: Iterator[tuple[int, bytes]], index: int) -> list[str]:
        """One attribute of all rows as it stands there."""
        lines = ((number, line) for start, block in blocks for number, line in _lines(start, block))
        return [
            _unquote(self._sparse_fields(line, number).get(index, "0"))
            if line.startswith("{")
            else _unquote(self._checked_fields(line, number)[index])
            for number, line in lines
        ]

    def _dense(self, blocks: Iterator[tuple[int, bytes]]) -> np.ndarray:
        parts = []
        for first_line, block in blocks:
            rows = self._dense_in_bulk(block) if self.bulk_dense and not _is_special(block) else None
            parts.append(self._dense_by_line(first_line, block) if rows is None else rows)
        return np.concatenate(parts)

    def _dense_in_bulk(self, block: bytes) -> np.ndarray | None:
        rows = _table(block.replace(b"?", b"nan"), len(self.attributes))
        if rows is None:
            return None
        for index, coding in self.codings.items():
            codes = coding.of_numbers(rows[:, index])
            if codes is None:
                return None
            rows[:, index] = codes
        return rows

    def _dense_by_line(self, first_line: int, block: bytes) -> np.ndarray:
        rows: list[list[float]] = []
        for number, line in _lines(first_line, block):
            if line.startswith("{"):
                raise self.source.error(
                    "got a sparse row in a dense file; use one form throughout", line=number
                )
            fields = self._checked_fields(line, number)
            rows.append([self._value(index, field, number) for index, field in enumerate(fields)])
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.attributes))

    def _checked_fields(self, line: str, number: int) -> list[str]:
        """The raw fields of a dense row, one an attribute."""
        fields = self._fields(line, number)
        if len(fields) != len(self.attributes):
            raise self.source.error(
                f"expected {len(self.attributes)} values, one an attribute, got {len(fields)}; correct the row",
                line=number,
            )
        return fields

    def _fields(self, line: str, number: int) -> list[str]:
        """The raw fields of a dense row, still quoted."""
        if not _is_special(line.encode()):
            return [field.strip() for field in line.split(",")]
        fields, position, mark = [], 0, ","
        while mark == ",":
            token = _FIELD.match(line, position)
            if not token:
                raise self.source.error(
                    f"cannot read {line[position : position + 40]!r}; check its quotes", line=number
                )
            fields.append(token.group(1).strip())
            position, mark = token.end(), token.group(2)
        return fields

    def _sparse(self, blocks: Iterator[tuple[int, bytes]]) -> sp.csr_array:
        counts, indices, values = [], [], []
        for first_line, block in blocks:
            rows = None if _is_special(block) else self._sparse_in_bulk(block)
            count, index, value = self._sparse_by_line(first_line, block) if rows is None else rows
            counts.append(count)
            indices.append(index)
            values.append(value)
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts), dtype=np.int64)])
        shape = (starts.size - 1, len(self.attributes))
        matrix = sp.csr_array((np.concatenate(values), np.concatenate(indices), starts), shape=shape)
        matrix.sort_indices()
        return matrix

    def _sparse_in_bulk(self, block: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        rows = self._tidy_sparse_rows(block[:-1].split(b"\n"))
        if rows is not None:
            return rows
        # Missing values, blank lines and stray spaces are common enough to deserve a second try.
        block = block.replace(b"\t", b" ").replace(b" ?", b" nan")
        block = _NEEDLESS_SPACE.sub(rb"\1", block)
        return self._tidy_sparse_rows([line for line in block.split(b"\n") if line])

    def _tidy_sparse_rows(self, lines: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Counts, indices and values of rows without a byte too much; None if there is one."""
        if not all(line[:1] == b"{" and line[-1:] == b"}" for line in lines):
            return None
        counts = np.array([line.count(b",") + (len(line) > 2) for line in lines], dtype=np.int64)
        text = b",".join([line[1:-1] for line in lines if len(line) > 2])
        if not text:
            return counts, np.empty(0, np.int32), np.empty(0)
        found = _pairs(text)
        if found is None or not _valid_indices(found[0], counts, len(self.attributes)):
            return None
        index, value = found[0].astype(np.int32), found[1]
        limit = self.bulk_limit[index]
        code = value[np.isfinite(limit)]
        if (value >= limit).any() or (code < 0).any() or (code != np.floor(code)).any():
            return None
        return counts, index, value

    def _sparse_by_line(self, first_line: int, block: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        counts: list[int] = []
        indices: list[int] = []
        values: list[float] = []
        for number, line in _lines(first_line, block):
            row = self._sparse_row(line, number)
            counts.append(len(row))
            indices.extend(row)
            values.extend(row.values())
        return (
            np.array(counts, dtype=np.int64),
            np.array(indices, dtype=np.int32),
            np.array(values, dtype=np.float64),
        )

    def _sparse_row(self, line: str, number: int) -> dict[int, float]:
        """Values of one ``{index value, ...}`` row by index."""
        fields = self._sparse_fields(line, number)
        return {index: self._value(index, field, number) for index, field in fields.items()}

    def _sparse_fields(self, line: str, number: int) -> dict[int, str]:
        """The raw fields of a sparse row by index."""
        if not line.startswith("{"):
            raise self.source.error("got a dense row in a sparse file; use one form throughout", line=number)
        row: dict[int, str] = {}
        position, mark = 1, ","
        if _END_OF_ROW.fullmatch(line, position):
            return row
        while mark == ",":
            entry = _ENTRY.match(line, position)
            if not entry:
                shown = line[position : position + 40]
                raise self.source.error(
                    f"expected 'index value' pairs in braces, got {shown!r}; correct it", line=number
                )
            index = int(entry.group(1))
            if index >= len(self.attributes) or index in row:
                problem = (
                    "stands twice in the row" if index in row else f"is not below {len(self.attributes)}"
                )
                raise self.source.error(f"attribute index {index} {problem}; correct the row", line=number)
            row[index] = entry.group(2).strip()
            position, mark = entry.end(), entry.group(3)
        rest = line[position:].strip()
        if rest and not rest.startswith("%"):
            raise self.source.error(
                f"expected nothing after the closing brace, got {rest[:40]!r}; remove it", line=number
            )
        return row

    def _value(self, index: int, field: str, number: int) -> float:
        """The number, code or date one field stands for; NaN if missing."""
        attribute = self.attributes[index]
        if field == "?":
            return np.nan
        if attribute.kind == "string":
            return 0.0
        text = _unquote(field)
        try:
            if attribute.kind == "numeric":
                return _number(text)
            if attribute.kind == "date":
                assert attribute.seconds is not None  # set for every date attribute
                return attribute.seconds(text)
        except (ValueError, OverflowError):
            raise self.source.error(
                f"attribute {attribute.name!r} is {attribute.kind}, got {text[:40]!r}; correct the value",
                line=number,
            ) from None
        code = self.codings[index].of_text(text)
        if code is None:
            raise self.source.error(
                f"attribute {attribute.name!r} has no category {text[:40]!r}; declare it in the header",
                line=number,
            )
        return code


@dataclass(frozen=True)
class _Coding:
    """Categories of a nominal attribute and their codes.

    Attributes
    ----------
    codes : dict of str to float
        Position of every category.
    numbers : tuple of (sorted numbers, their codes) or None
        The categories as numbers where all are different numbers, so that ``1.0`` is found as ``1``.
    in_order : bool
        Whether the categories are 0, 1, 2, ..., so that a number is its own code.
    """

    codes: dict[str, float]
    numbers: tuple[np.ndarray, np.ndarray] | None
    in_order: bool

    def of_numbers(self, values: np.ndarray) -> np.ndarray | None:
        """Codes of values given as numbers, NaN kept; None if one is not a category."""
        if self.numbers is None:
            return None
        known, codes = self.numbers
        place = np.minimum(np.searchsorted(known, values), known.size - 1)
        missing = np.isnan(values)
        if not (missing | (known[place] == values)).all():
            return None
        return np.where(missing, np.nan, codes[place])

    def of_text(self, text: str) -> float | None:
        """The code of one value; None if it is not a category."""
        code = self.codes.get(text)
        if code is None and self.numbers is not None:
            try:
                codes = self.of_numbers(np.array([_number(text)]))
            except ValueError:
                return None
            code = None if codes is None else float(codes[0])
        return code


@lru_cache(maxsize=64)  # most files declare {0,1} for hundreds of attributes
def _coding(categories: tuple[str, ...]) -> _Coding:
    """Prepare the categories of a nominal attribute."""
    codes = {category: float(code) for code, category in enumerate(categories)}
    in_order = all(category == str(code) for code, category in enumerate(categories))
    try:
        numbers = np.array([_number(category) for category in categories])
    except ValueError:
        return _Coding(codes, None, in_order)
    order = np.argsort(numbers)
    numbers = numbers[order]
    different = np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
    return _Coding(codes, (numbers, order.astype(np.float64)) if different else None, in_order)


def _is_special(text: bytes) -> bool:
    """Whether text has quotes, escapes or comments, so that separators alone do not part its fields."""
    return b"'" in text or b'"' in text or b"%" in text or b"\\" in text


def _lines(first_line: int, block: bytes) -> Iterator[tuple[int, str]]:
    """The lines that hold data, numbered."""
    for number, raw in enumerate(block.split(b"\n"), first_line):
        line = decode(raw).strip()
        if line and not line.startswith("%"):
            yield number, line


def _floats(text: bytes, separator: str = " ") -> np.ndarray | None:
    """Parse all numbers of a text; None if anything in it is not a number."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # older NumPy only warns about what it cannot read
            return np.fromstring(text, dtype=np.float64, sep=separator)
    except (ValueError, DeprecationWarning):
        return None


def _pairs(text: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """Parse ``index value,index value,...``; None if the text has any other form."""
    symbols = np.frombuffer(text, dtype=np.uint8)
    marks = symbols[(symbols == ord(" ")) | (symbols == ord(","))]
    # Strict alternation proves that the numbers, taken two by two, are the pairs of the text.
    if marks.size % 2 == 0 or (marks[0::2] != ord(" ")).any() or (marks[1::2] != ord(",")).any():
        return None
    numbers = _floats(text.replace(b",", b" "))
    if numbers is None or numbers.size != marks.size + 1:
        return None
    return numbers[0::2], numbers[1::2]


def _table(lines: bytes, n_columns: int) -> np.ndarray | None:
    """Rows of a purely numeric block of lines, or None if it is anything else."""
    while b"\n\n" in lines:
        lines = lines.replace(b"\n\n", b"\n")
    lines = lines.strip(b"\n") + b"\n"
    if lines == b"\n":
        return np.empty((0, n_columns))
    symbols = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(symbols == ord("\n"))
    fields = np.searchsorted(np.flatnonzero(symbols == ord(",")), ends)
    if (np.diff(fields, prepend=0) != n_columns - 1).any():
        return None
    numbers = _floats(lines[:-1].replace(b"\n", b","), ",")
    if numbers is None or numbers.size != ends.size * n_columns:
        return None
    return numbers.reshape(-1, n_columns)


def _valid_indices(index: np.ndarray, counts: np.ndarray, n_columns: int) -> bool:
    """Whether all indices are whole, in range and different within their row of `counts` entries each."""
    if not index.size:
        return True
    if not (index.min() >= 0 and index.max() < n_columns and (index == np.floor(index)).all()):
        return False
    steps = np.diff(index)
    starts = np.cumsum(counts)[:-1]
    starts = starts[(starts > 0) & (starts < index.size)] - 1
    steps[starts] = 1  # from the last entry of a row to the first of the next
    if (steps > 0).all():
        return True
    rows = np.repeat(np.arange(counts.size), counts)
    keys = np.sort(rows * float(n_columns) + index)
    return bool((np.diff(keys) > 0).all())


def _number(text: str) -> float:
    """The number a single field stands for; stricter than `float`, which reads 1_000."""
    if "_" in text:
        raise ValueError(text)
    return float(text)
