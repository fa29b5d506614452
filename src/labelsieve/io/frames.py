"""Open CSV, TSV, JSON, Excel and Parquet files and data frames with the cells as written."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from labelsieve._text import install_command
from labelsieve.io.errors import Fail
from labelsieve.io.features import deduplicate_names, writable_name
from labelsieve.io.source import CELL_BYTES, Source, ending_of
from labelsieve.io.spellings import MISSING

#: File extension -> format.
TABLE_FORMATS = {
    ".csv": "delimited", ".tsv": "delimited", ".txt": "delimited", ".tab": "delimited", "": "delimited",
    ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel", ".xlsm": "excel",
    ".jsonl": "json", ".ndjson": "json", ".json": "json",
}  # fmt: skip
_PARQUET_ROWS = 1024
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip


@dataclass(frozen=True)
class RawTable:
    """Table with its cells as written."""

    #: Format of the table: a value of `TABLE_FORMATS`, or "frame".
    kind: str
    #: Cells, as strings for text files. Column names are unique and printable.
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    #: True if the file contains the column names.
    has_header: bool = True
    #: Separator of a text file.
    separator: str = ","

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    def cells(self, position: int) -> Any:
        """Return one column, as an array if its type is object."""
        column = self.frame.iloc[:, position]
        return column.to_numpy() if column.dtype == object else column


def table_format(path: Path) -> str | None:
    """Return the format of a table by its extension, or None if it is not a table."""
    return TABLE_FORMATS.get(ending_of(path))


def open_table(source: Source, kind: str) -> RawTable:
    """Read a file in one of the `TABLE_FORMATS`."""
    openers = {
        "delimited": _open_delimited, "json": _open_json, "parquet": _open_parquet, "excel": _open_excel,
    }  # fmt: skip
    return openers[kind](source)


def open_frame(frame: Any) -> RawTable:
    """Open a pandas frame, or a frame with a `to_pandas` method."""
    if not isinstance(frame, pd.DataFrame):
        frame = frame.to_pandas()
    return _raw_table("frame", [*map(str, frame.columns)], frame)


def stack_tables(parts: Sequence[RawTable], fail: Fail) -> RawTable:
    """Concatenate the rows of tables with the same columns."""
    first = parts[0]
    unmatched = {name for part in parts for name in set(part.names) ^ set(first.names)}
    if unmatched:
        raise fail(
            f"all parts must have the same columns, but {min(unmatched)!r} is not in every part; check the files"
        )
    if len(parts) == 1:
        return first
    return replace(first, frame=pd.concat([part.frame[first.names] for part in parts], ignore_index=True))


def _raw_table(kind: str, header: Sequence[str], cells: Any, notes: Sequence[str] = ()) -> RawTable:
    """Build a table with printable, unique column names."""
    shown = [
        writable_name(name.strip()) or f"column {position}" for position, name in enumerate(header, start=1)
    ]
    names = deduplicate_names(shown)
    renamed = [repr(new) for name, new in zip(shown, names, strict=True) if name != new]
    notes = [*notes]
    if renamed:
        notes.append(f"numbered duplicate names: {', '.join(renamed[:3])}" + " ..." * (len(renamed) > 3))
    unnamed = sum(not name.strip() for name in header)
    if unnamed:
        notes.append(f"named {unnamed} columns without a name by their position")
    frame = cells if isinstance(cells, pd.DataFrame) else pd.DataFrame(cells, dtype=object)
    return RawTable(kind, frame.set_axis(names, axis=1), tuple(notes))


def read_records(source: Source) -> tuple[list[tuple[int, list[str]]], str]:
    """Read the records of a text table that are not blank, with line numbers. Return them and the separator."""
    text = decode_table(source)[0]
    separator = detect_separator(
        next((line for line in text.splitlines() if line.strip()), ""), source.ending
    )
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # cells may contain long texts
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        records = [(reader.line_num, record) for record in reader if not is_blank(record)]
    except csv.Error as error:
        raise source.error(
            f"must be valid CSV, got an error ({error}); check quotes and separators"
        ) from None
    if not records:
        raise source.error("must contain rows; copy it again")
    return records, separator


def _open_delimited(source: Source) -> RawTable:
    """Read CSV or TSV. A first row of numbers is not a header."""
    records, separator = read_records(source)  # pandas would silently complete short rows
    width = len(records[0][1])
    for line, record in records:
        if len(record) != width:
            raise source.error(f"expected {width} fields, got {len(record)}; correct the row", line=line)
    rows = [record for _, record in records]
    has_header = not has_numbers(rows[0])
    header = rows.pop(0) if has_header else [f"x{position}" for position in range(width)]
    if not rows:
        raise source.error("must contain rows, got only a header; copy it again")
    raw = _raw_table("delimited", header, np.array(rows, dtype=object))
    return replace(raw, separator=separator, has_header=has_header)


def is_blank(record: Sequence[str]) -> bool:
    """Return True for a blank record of a text table."""
    return not record or (len(record) == 1 and not record[0].strip())


def has_numbers(record: Sequence[str]) -> bool:
    """Return True if all cells of a record are numbers or missing, so that it is not a header."""
    try:
        for cell in record:
            if cell.strip().lower() not in MISSING:
                float(cell)
    except ValueError:
        return False
    return not any("_" in cell for cell in record)


def detect_separator(line: str, ending: str) -> str:
    """Return a tab for TSV files, and otherwise the most frequent separator outside quotes in a line."""
    if ending in (".tsv", ".tab"):
        return "\t"
    line = re.sub(r'"[^"]*+"', "", line)
    return max("\t;,|", key=lambda mark: (line.count(mark), mark == ","))


def decode_table(source: Source) -> tuple[str, str, bytes]:
    """Decode a file as UTF-8 or UTF-16, or else as Windows-1252. Return text, encoding and byte order mark."""
    content = source.content
    mark = next((mark for mark in _BYTE_ORDER_MARKS if content.startswith(mark)), b"")
    encoding = _BYTE_ORDER_MARKS.get(mark, "utf-8")
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        if mark:
            raise source.error(f"must be valid {encoding} text ({error.reason}); save it as UTF-8") from None
        # Windows-1252 has quotes where Latin-1 has control characters, but leaves five bytes undefined.
        encoding = "cp1252" if not re.search(rb"[\x81\x8d\x8f\x90\x9d]", content) else "latin-1"
        text = content.decode(encoding)
    if "\0" in text:
        raise source.error("must be a text table, got a NUL byte; save it as UTF-8 text")
    return text, encoding, mark


def _open_json(source: Source) -> RawTable:
    """Read JSON with one object per line, or a list of objects."""
    text = decode_table(source)[0]
    try:
        records = [values for _, _, values in json_objects(text)]
    except (ValueError, RecursionError) as error:
        raise source.error(
            f"must contain one JSON object per row ({error}); write one object per line"
        ) from None
    names = list(dict.fromkeys(name for record in records for name in record))
    if not names:
        raise source.error("must contain rows and columns; copy it again")
    source.check_cells(len(names) * len(records))
    cells = {name: pd.Series([record.get(name) for record in records], dtype=object) for name in names}
    return _raw_table("json", names, pd.DataFrame(cells))


class Member(NamedTuple):
    """Position of a name and its value in the text of a JSON object."""

    name: str
    start: int
    value_start: int
    end: int


def json_objects(text: str) -> Iterator[tuple[int, list[Member], dict[str, Any]]]:
    """Parse a list of objects, or one object per line. Yield the end position, members and values of each."""
    decoder = json.JSONDecoder()
    space = re.compile(r"[\s,]*")

    def skip(at: int) -> int:
        found = space.match(text, at)
        assert found is not None  # the pattern matches an empty string
        return found.end()

    at = skip(0)
    is_list = text[at : at + 1] == "["
    at = skip(at + is_list)
    while at < len(text) and not (is_list and text[at] == "]"):
        if text[at] != "{":
            raise ValueError(f"expected an object, got {text[at : at + 20]!r}")
        values: dict[str, Any] = {}
        members: list[Member] = []
        at = skip(at + 1)
        while text[at : at + 1] != "}":
            start = at
            name, at = decoder.raw_decode(text, at)
            if not isinstance(name, str):
                raise ValueError(f"expected a name, got {name!r}")
            at = skip(at)
            if text[at : at + 1] != ":":
                raise ValueError(f"expected ':' after {name!r}")
            value_start = skip(at + 1)
            values[name], end = decoder.raw_decode(text, value_start)
            members.append(Member(name, start, value_start, end))
            at = skip(end)
        yield at, members, values
        at = skip(at + 1)


def import_pyarrow(source: Source) -> tuple[Any, Any]:
    """Import pyarrow and its Parquet module, or raise."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise source.error(
            f"is a Parquet file, which needs pyarrow; install it: {install_command('pyarrow')}"
        ) from None
    return pa, pq


def _open_parquet(source: Source) -> RawTable:
    pa, pq = import_pyarrow(source)
    file = pq.ParquetFile(pa.BufferReader(source.content))
    source.check_cells(file.metadata.num_rows * file.metadata.num_columns)
    if not file.metadata.num_rows or not file.metadata.num_columns:
        raise source.error("must contain rows and columns; copy it again")
    parts, n_bytes = [], 0
    # Dictionaries and lists can expand beyond the number of cells, so decode only a few rows at a time.
    for part in file.iter_batches(_PARQUET_ROWS):
        is_coded = (pa.types.is_dictionary(column.type) for column in part.columns)
        n_bytes += sum(
            (column.dictionary_decode() if coded else column).nbytes
            for column, coded in zip(part.columns, is_coded, strict=True)
        )
        source.check_cells(n_bytes // CELL_BYTES)
        parts.append(part)
    frame = pa.Table.from_batches(parts).to_pandas(ignore_metadata=True)
    return _raw_table("parquet", [*map(str, frame.columns)], frame)


def _open_excel(source: Source) -> RawTable:
    """Read the first sheet of a workbook, with the saved values of formulas."""
    book = open_workbook(source, read_only=True, data_only=True)
    sheet, *others = book.worksheets
    rows = [[*row] for _, row in sheet_rows(sheet, source)]
    notes = [f"read only sheet {sheet.title!r} of {1 + len(others)}"] if others else []
    book.close()
    if len(rows) < 2:
        raise source.error("must contain a header and rows; copy it again")
    width = max(map(len, rows))
    source.check_cells(width * len(rows))
    cells = np.empty((len(rows), width), dtype=object)
    for position, row in enumerate(rows):
        cells[position, : len(row)] = row
    header = ["" if name is None else str(name) for name in cells[0]]
    return _raw_table("excel", header, cells[1:], notes)


def open_workbook(source: Source, **options: bool) -> Any:
    """Open a workbook with openpyxl, which rejects dangerous XML if defusedxml is installed."""
    try:
        import defusedxml  # noqa: F401
        import openpyxl
    except ImportError:
        raise source.error(
            f"is an Excel file, which needs openpyxl and defusedxml; install them: "
            f"{install_command('openpyxl', 'defusedxml')}"
        ) from None
    if not source.is_workbook:
        raise source.error("must be an Excel workbook; save it as .xlsx or .csv")
    return openpyxl.load_workbook(io.BytesIO(source.raw), **options)


def sheet_rows(sheet: Any, source: Source) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the numbers and values of rows that are not empty, whatever size the sheet declares."""
    if hasattr(sheet, "reset_dimensions"):
        sheet.reset_dimensions()
    n_cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        n_cells += len(row) + 1
        source.check_cells(n_cells)
        if any(value is not None for value in row):
            yield number, row
