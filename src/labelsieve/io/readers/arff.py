"""ARFF, dense and sparse, in the dialects of Weka, Mulan and MEKA.

Purely numeric blocks of lines are read in bulk; a block with quotes, comments, text or a mistake is read
again line by line, which either copes with it or names the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from labelsieve.io.readers import bulk
from labelsieve.io.readers.arff_header import QUOTED, Attribute, read_header, unquote
from labelsieve.io.readers.source import Source, decode
from labelsieve.io.readers.table import Table, column_place

# Possessive repeats (*+) keep matching linear in the length of a hostile line.
_FIELD = re.compile(rf"\s*+({QUOTED}|[^,%'\"\s][^,%]*+|)\s*+(,|%|$)", re.DOTALL)
_ENTRY = re.compile(rf"\s*+(\d{{1,18}})\s++({QUOTED}|[^,}}%'\"\s][^,}}%]*+)\s*+([,}}])", re.DOTALL)
_NEEDLESS_SPACE = re.compile(rb" *+([,{}\n]) *+")
_END_OF_ROW = re.compile(r"\s*}\s*(?:%.*)?", re.DOTALL)


def read_arff(source: Source) -> Table:
    """Read an ARFF file; string attributes are identifiers and left out."""
    header = read_header(source)
    reader = _Rows(header.attributes, source)
    values = reader.read(header.data)
    kept = [index for index, attribute in enumerate(header.attributes) if attribute.kind != "string"]
    if not kept:
        raise source.error("has string attributes only, so no features; convert them")
    table = Table(
        [attribute.name for attribute in header.attributes],
        values,
        {
            i: attribute.categories
            for i, attribute in enumerate(header.attributes)
            if attribute.kind == "nominal"
        },
        header.meka_labels(),
    )
    return table if len(kept) == len(table.names) else table.keep(kept)


def read_texts(source: Source, column: str) -> tuple[list[str], bool]:
    """One attribute as text, and whether `read_arff` leaves it out; what a sparse row does not hold is "0"."""
    header = read_header(source)
    place = column_place([attribute.name for attribute in header.attributes], column, source)
    texts = _Rows(header.attributes, source).texts(header.data, place)
    return texts, header.attributes[place].kind == "string"


class _Rows:
    """Turns the lines after ``@data`` into a matrix, given the attributes."""

    def __init__(self, attributes: list[Attribute], source: Source) -> None:
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
                rest = _chain((first_line, block), blocks)
                return self._sparse(rest) if start.group(1) == b"{" else self._dense(rest)
        raise self.source.error("has no rows after @data; copy it again")

    def texts(self, blocks: Iterator[tuple[int, bytes]], index: int) -> list[str]:
        """One attribute of all rows as it stands there."""
        lines = ((number, line) for start, block in blocks for number, line in _lines(start, block))
        return [
            unquote(self._sparse_fields(line, number).get(index, "0"))
            if line.startswith("{")
            else unquote(self._checked_fields(line, number)[index])
            for number, line in lines
        ]

    def _dense(self, blocks: Iterator[tuple[int, bytes]]) -> np.ndarray:
        parts = []
        for first_line, block in blocks:
            rows = self._dense_in_bulk(block) if self.bulk_dense and not _is_special(block) else None
            parts.append(self._dense_by_line(first_line, block) if rows is None else rows)
        return np.concatenate(parts)

    def _dense_in_bulk(self, block: bytes) -> np.ndarray | None:
        rows = bulk.table(block.replace(b"?", b"nan"), b",", len(self.attributes))
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
        found = bulk.pairs(text, b" ", b",")
        if found is None or not bulk.valid_indices(found[0], counts, len(self.attributes)):
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
        text = unquote(field)
        try:
            if attribute.kind == "numeric":
                return bulk.number(text)
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
                codes = self.of_numbers(np.array([bulk.number(text)]))
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
        numbers = np.array([bulk.number(category) for category in categories])
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


def _chain(first: tuple[int, bytes], rest: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    yield first
    yield from rest
