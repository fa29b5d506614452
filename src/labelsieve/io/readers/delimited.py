"""CSV and TSV: numbers in bulk, text columns as nominal."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from labelsieve.io.errors import DatasetError, Mention
from labelsieve.io.readers import bulk
from labelsieve.io.readers.source import MAX_COLUMNS, Source, decode
from labelsieve.io.readers.table import (
    MAX_CATEGORIES,
    MISSING,
    NOMINAL_PREFIX,
    Table,
    check_names,
    coded,
    column_place,
    in_order,
)

_BATCH_ROWS = 2048
# Fewer texts may all differ and be categories nevertheless.
_LEAST_IDENTIFIERS = 5
# 0.5%, 1,5 and 1_000: numbers in a spelling that is not read, since 1,500 may be 1.5 or 1500.
_LIKE_A_NUMBER = re.compile(r"[-+]?(\d+|\d{1,3}([_',. ]\d{3})+)?([.,]\d+)?(e[-+]?\d+)?\s?%?", re.IGNORECASE)
_LONGEST_NUMBER = 40


def read_delimited(source: Source) -> Table:
    """Read values separated by commas, semicolons, tabs or bars; a first row of numbers means no header."""
    heading = read_heading(source)
    try:
        skip = 0 if heading.headless else heading.n_lines
        values = _in_bulk(source, heading.separator, len(heading.names), skip)
        if values is not None:
            return Table(heading.names, values, headless=heading.headless)
        return _by_record(source, heading.separator, heading.names, heading.headless)
    except csv.Error as error:
        raise source.error(f"is no proper table ({error}); check its quotes and separators") from None


@dataclass(frozen=True)
class Heading:
    """What the first row says: names, which are made up where it holds numbers, and the line it ends in."""

    separator: str
    names: list[str]
    headless: bool
    n_lines: int


def read_heading(source: Source) -> Heading:
    """Look at the first row of a file."""
    separator = _separator(source)
    try:
        first_number, first = next(_records(source, separator), (0, None))
    except csv.Error as error:
        raise source.error(f"is no proper table ({error}); check its quotes and separators") from None
    if first is None:
        raise source.error("has no rows; copy it again")
    if len(first) > MAX_COLUMNS:
        raise source.error(f"has more than {MAX_COLUMNS} columns; check its separator", line=first_number)
    headless = all(is_number(field) for field in first)
    names = [f"x{index}" for index in range(len(first))] if headless else [field.strip() for field in first]
    check_names(names, source, first_number)
    return Heading(separator, names, headless, first_number)


def read_records(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Rows of fields as they stand, the header among them, each with its line number."""
    try:
        yield from _records(source, _separator(source))
    except csv.Error as error:
        raise source.error(f"is no proper table ({error}); check its quotes and separators") from None


def read_texts(source: Source, column: str) -> list[str]:
    """One column as text."""
    records = read_records(source)
    names = [field.strip() for _, record in islice(records, 1) for field in record]
    place = column_place(names, column, source)
    return [record[place].strip() if place < len(record) else "" for _, record in records]


def _separator(source: Source) -> str:
    """The separator of the first line that is not blank."""
    if source.ending == ".tsv":
        return "\t"
    for _, block in source.blocks():
        for raw in block.split(b"\n"):
            if raw.strip():
                return separator_of(decode(raw))
    return ","


def separator_of(line: str) -> str:
    """What most often stands between the fields of a line, outside of quotes."""
    line = re.sub(r'"[^"]*+"', "", line)
    return max("\t;,|", key=lambda mark: (line.count(mark), mark == ","))


def _records(source: Source, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of fields with their line number; quoted fields may span lines."""
    lines = (decode(raw) + "\n" for _, block in source.blocks() for raw in block[:-1].split(b"\n"))
    reader = csv.reader(lines, delimiter=separator, strict=True)
    for record in reader:
        if record and (len(record) > 1 or record[0].strip()):
            yield reader.line_num, record


def _in_bulk(source: Source, separator: str, width: int, skip: int) -> np.ndarray | None:
    """All rows of a file that is purely numeric after the first `skip` lines, or None."""
    parts = []
    for number, block in source.blocks():
        if number == 1 and skip:
            pieces = block.split(b"\n", skip)
            if len(pieces) <= skip:  # a header longer than a block
                return None
            block = pieces[skip]
        if b'"' in block:
            return None
        rows = bulk.table(block, separator.encode(), width)
        if rows is None:
            return None
        parts.append(rows)
    values = np.concatenate(parts)
    return values if len(values) else None


def _by_record(source: Source, separator: str, names: list[str], headless: bool) -> Table:
    """Two passes: find the text columns, then convert, so that memory stays that of the numbers."""
    tallies = [_Tally() for _ in names]
    for lines, rows in _batches(source, separator, len(names), headless):
        for tally, column in zip(tallies, zip(*rows, strict=True), strict=True):
            tally.add(lines, column)
    codes = {index: _Codes() for index, tally in enumerate(tallies) if tally.first_text is not None}
    parts = []
    for _, rows in _batches(source, separator, len(names), headless):
        columns = [
            codes[index].of(column) if index in codes else [field_number(field) for field in column]
            for index, column in enumerate(zip(*rows, strict=True))
        ]
        parts.append(np.array(columns, dtype=np.float64).T)
    if not parts:
        raise source.error("has a header but no rows; copy it again")
    values = np.concatenate(parts)
    free_text = [index for index, own in codes.items() if own.too_many]
    values[:, free_text] = 0.0
    refusals = {
        index: tallies[index].refusal(names[index], len(codes[index].known), source) for index in codes
    }
    return Table(
        names,
        values,
        in_order(values, {index: own.known for index, own in codes.items() if not own.too_many}),
        headless=headless,
        free_text=frozenset(free_text),
        refused={index: refusal for index, refusal in refusals.items() if refusal is not None},
    )


class _Codes:
    """Codes of one column of text, counted no further than categories go."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    @property
    def too_many(self) -> bool:
        """Whether the texts are too many to be categories."""
        return len(self.known) > MAX_CATEGORIES

    def of(self, column: Sequence[str]) -> list[float]:
        """Codes of some rows; zeros once there are too many."""
        return [0.0] * len(column) if self.too_many else coded(column, self.known)


class _Tally:
    """What one column holds, counted without its missing values."""

    def __init__(self) -> None:
        self.n_numbers = self.n_texts = self.n_like_numbers = 0
        self.first_text: tuple[int, str] | None = None

    def add(self, lines: Iterable[int], column: Iterable[str]) -> None:
        """Count some rows, which stand in `lines`."""
        for line, raw in zip(lines, column, strict=True):
            try:
                self.n_numbers += not math.isnan(field_number(raw))
            except ValueError:
                text = raw.strip()
                self.n_texts += 1
                self.first_text = self.first_text or (line, text)
                self.n_like_numbers += len(text) < _LONGEST_NUMBER and bool(_LIKE_A_NUMBER.fullmatch(text))

    def refusal(self, name: str, n_categories: int, source: Source) -> DatasetError | None:
        """What to say if this column of text is a feature: numbers with slips or an identifier, or None."""
        assert self.first_text is not None  # asked about columns of text only
        if name.startswith(NOMINAL_PREFIX):
            return None
        line, text = self.first_text
        n_present = self.n_numbers + self.n_texts
        if 2 * (self.n_numbers + self.n_like_numbers) > n_present:
            return source.error(
                f"column {name!r} holds numbers, got {text[:40]!r}; write it like 1000.5, or as nothing if it "
                "is missing, leave the column out with ",
                Mention("ignore", name),
                f", or call it '{NOMINAL_PREFIX}{name}' if these are categories",
                line=line,
            )
        if n_categories == n_present >= _LEAST_IDENTIFIERS:
            return source.error(
                f"column {name!r} holds a different text in every row, so it is an identifier and no feature; "
                "leave it out with ",
                Mention("ignore", name),
            )
        return None


def _batches(
    source: Source, separator: str, width: int, headless: bool
) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Line numbers and rows, some thousand at a time, each checked for its number of fields."""
    records = _records(source, separator)
    if not headless:
        next(records)
    while batch := list(islice(records, _BATCH_ROWS)):
        for number, record in batch:
            if len(record) != width:
                raise source.error(
                    f"expected {width} fields, got {len(record)}; correct the row", line=number
                )
        yield [number for number, _ in batch], [record for _, record in batch]


def field_number(field: str) -> float:
    """The number of a field, NaN for a missing one; ValueError for text."""
    field = field.strip()
    return np.nan if field.lower() in MISSING else bulk.number(field)


def is_number(field: str) -> bool:
    """Whether a field is a number or says that one is missing."""
    try:
        field_number(field)
    except ValueError:
        return False
    return True
