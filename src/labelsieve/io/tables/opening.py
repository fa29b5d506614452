"""Any file that pandas or the csv module opens, with its cells as they stand in it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._pandas import import_pandas
from labelsieve._text import printable
from labelsieve.io.errors import DatasetError
from labelsieve.io.readers.delimited import is_number, separator_of
from labelsieve.io.readers.parquet import reading_parquet
from labelsieve.io.readers.source import MAX_COLUMNS, Source
from labelsieve.io.reading import format_of
from labelsieve.io.tables.features import distinct

if TYPE_CHECKING:
    from pandas import DataFrame

#: Ending of a file -> its format.
FORMATS = {
    ".csv": "delimited", ".tsv": "delimited", ".txt": "delimited", ".tab": "delimited", "": "delimited",
    ".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather",
    ".xlsx": "excel", ".xlsm": "excel", ".jsonl": "json", ".ndjson": "json", ".json": "json",
}  # fmt: skip
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass(frozen=True)
class Dialect:
    """How a file of text is written, so that it can be written so again."""

    separator: str = ","
    encoding: str = "utf-8"
    newline: str = "\n"
    has_header: bool = True


@dataclass(frozen=True)
class Opened:
    """A table as it stands in a file.

    Attributes
    ----------
    kind : str
        Its format: a value of `FORMATS`, or "frame".
    path : Path or None
        The file.
    header : list of str
        Names as they are written.
    names : list of str
        Names that can be shown and all differ.
    columns : list of ndarray or Series
        The cells, column by column; texts where the file holds text.
    frame : DataFrame
        The same as one, named by `names`.
    dialect : Dialect
        How a file of text is written.
    raw : list of dict or None
        Of JSON lines, the text of every value by name.
    notes : list of str
        What a reader should know about the whole.
    """

    kind: str
    path: Path | None
    header: list[str]
    names: list[str]
    columns: Sequence[Any]
    frame: DataFrame
    dialect: Dialect = Dialect()
    raw: list[dict[str, str]] | None = None
    notes: list[str] = field(default_factory=list)


#: The package, or how to get it.
pandas = partial(import_pandas, "table", DatasetError)


def kind_of(path: Path) -> str | None:
    """Format of a file by its ending; None where it is no table."""
    endings = [part.lower() for part in path.suffixes]
    if endings and endings[-1] in (".gz", ".bz2", ".zip"):
        endings.pop()
    return FORMATS.get(endings[-1] if endings else "")


def is_table(path: Path) -> bool:
    """Whether a file is a table whose columns may hold anything; what cannot be opened is none."""
    kind = kind_of(path)
    if kind in ("excel", "feather", "json") or path.suffix.lower() == ".xls":
        return True
    try:
        source = Source(path)
        return (kind == "delimited" and _mark(source.head()) == "utf-16") or format_of(source) in (
            "delimited",
            "parquet",
        )
    except DatasetError:
        return False


def open_file(path: Path) -> Opened:
    """Read a file whose ending names a format of tables."""
    kind = kind_of(path)
    if kind is None:
        if path.suffix.lower() == ".xls":
            raise DatasetError(f"{path}: is an Excel file of the old kind; save it as .xlsx or .csv.")
        raise DatasetError(
            f"{path}: a table must end in one of {', '.join(filter(None, FORMATS))}, got {path.suffix!r}; convert it."
        )
    if kind == "delimited":
        return _open_delimited(Source(path))
    if kind == "json":
        return _open_json(Source(path))
    return _open_typed(path, kind)


def open_frame(frame: Any) -> Opened:
    """Take a pandas frame, or what pandas makes a frame of."""
    pd = pandas()
    if not isinstance(frame, pd.DataFrame):
        if not hasattr(frame, "to_pandas"):
            raise DatasetError(
                f"a table must be a path or a pandas DataFrame, got {type(frame).__name__}; convert it."
            )
        frame = frame.to_pandas()
    return _opened("frame", None, frame)


def _opened(kind: str, path: Path | None, frame: Any, **more: Any) -> Opened:
    """A table out of a typed frame."""
    header = [str(column) for column in frame.columns]
    names, notes = _named(header)
    frame = frame.set_axis(names, axis=1)
    columns = [frame.iloc[:, index] for index in range(frame.shape[1])]
    more["notes"] = [*more.get("notes", []), *notes]
    return Opened(kind, path, header, names, columns, frame, **more)


def _named(header: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names that can be shown and differ, and what had to be done for that."""
    shown = [printable(name.strip()) or f"column {place}" for place, name in enumerate(header, start=1)]
    names = distinct(shown)
    notes = []
    twice = [new for name, new in zip(shown, names, strict=True) if name != new]
    if twice:
        notes.append(
            f"names that stand twice were numbered: {', '.join(map(repr, twice[:3]))}"
            + " ..." * (len(twice) > 3)
        )
    unnamed = sum(not name.strip() for name in header)
    if unnamed:
        notes.append(f"{unnamed} columns without a name are called after their places")
    return names, notes


def read_cells(source: Source) -> tuple[list[str], list[list[str]], Dialect]:
    """Header and rows of a file of text, every cell as it stands there; a first row of numbers is no header."""
    text, encoding = _decoded(source)
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = "\t" if source.ending in (".tsv", ".tab") else separator_of(first)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    records: list[list[str]] = []
    try:
        for record in reader:
            if not record or (len(record) == 1 and not record[0].strip()):
                continue
            if records and len(record) != len(records[0]):
                raise source.error(
                    f"expected {len(records[0])} fields, got {len(record)}; correct the row",
                    line=reader.line_num,
                )
            records.append(record)
    except csv.Error as error:
        raise source.error(f"is no proper table ({error}); check its quotes and separators") from None
    if not records:
        raise source.error("has no rows; copy it again")
    if len(records[0]) > MAX_COLUMNS:
        raise source.error(f"has more than {MAX_COLUMNS} columns; check its separator")
    has_header = not all(is_number(cell) for cell in records[0])
    header = records.pop(0) if has_header else [f"x{index}" for index in range(len(records[0]))]
    if not records:
        raise source.error("has a header but no rows; copy it again")
    newline = "\r\n" if f"{first}\r\n" in text else "\n"
    return header, records, Dialect(separator, encoding, newline, has_header)


def _open_delimited(source: Source) -> Opened:
    """Cells as texts, however they are parted and encoded."""
    pd = pandas()
    header, records, dialect = read_cells(source)
    names, notes = _named(header)
    cells = np.array(records, dtype=object)
    columns = [cells[:, index] for index in range(len(names))]
    frame = pd.DataFrame(cells, columns=names)
    return Opened("delimited", source.path, header, names, columns, frame, dialect, notes=notes)


def _decoded(source: Source) -> tuple[str, str]:
    """The text of a file and its encoding: what a byte order mark says, else UTF-8, else Windows' own Latin."""
    content = source.content()
    encoding = _mark(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise source.error(f"is damaged {encoding} text ({error.reason}); save it as UTF-8") from None
        # Latin-1 reads every byte; the Windows page has the same letters and real quotes where Latin-1 has orders.
        encoding = "cp1252" if not re.search(rb"[\x81\x8d\x8f\x90\x9d]", content) else "latin-1"
        text = content.decode(encoding)
    if "\0" in text:
        raise source.error("holds a NUL byte, so it is no text table; save it as UTF-8 text")
    return text, encoding


def _mark(content: bytes) -> str:
    """The encoding that a byte order mark names; UTF-8 without one."""
    return next((name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), "utf-8")


def _open_json(source: Source) -> Opened:
    """Objects of one line each, or a list of objects."""
    pd = pandas()
    text, encoding = _decoded(source)
    records: list[dict[str, Any]] = []
    raw: list[dict[str, str]] = []
    try:
        for values, texts in _json_objects(text):
            records.append(values)
            raw.append(texts)
    except (ValueError, RecursionError) as error:
        raise source.error(f"is not one JSON object a row ({error}); write one object a line") from None
    names = list(dict.fromkeys(name for record in records for name in record))
    if not records or not names:
        raise source.error("has no rows or no columns; copy it again")
    if len(names) * len(records) > max(2**27, 64 * source.size):
        raise source.error("has other names in every row, so it is no table; write the same names in all")
    columns = {}
    for name in names:
        cells = np.empty(len(records), dtype=object)
        cells[:] = [record.get(name) for record in records]
        columns[name] = cells
    frame = pd.DataFrame(columns, columns=names)
    return _opened("json", source.path, frame, dialect=Dialect(encoding=encoding), raw=raw)


def _json_objects(text: str) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Every object as values and as the texts of its values, which may come in a list or one after the other."""
    decoder = json.JSONDecoder()
    space = re.compile(r"[\s,]*")

    def skip(at: int) -> int:
        found = space.match(text, at)
        assert found is not None  # it may be empty
        return found.end()

    at = skip(0)
    is_list = text[at : at + 1] == "["
    at = skip(at + is_list)
    while at < len(text) and not (is_list and text[at] == "]"):
        if text[at] != "{":
            raise ValueError(f"expected an object, got {text[at : at + 20]!r}")
        values: dict[str, Any] = {}
        texts: dict[str, str] = {}
        at = skip(at + 1)
        while text[at : at + 1] != "}":
            name, at = decoder.raw_decode(text, at)
            if not isinstance(name, str):
                raise ValueError(f"expected a name, got {name!r}")
            at = skip(at)
            if text[at : at + 1] != ":":
                raise ValueError(f"expected ':' after {name!r}")
            start = skip(at + 1)
            values[name], at = decoder.raw_decode(text, start)
            texts[name] = text[start:at]
            at = skip(at)
        yield values, texts
        at = skip(at + 1)


def _open_typed(path: Path, kind: str) -> Opened:
    """What pandas reads with the types of the file."""
    pd = pandas()
    source = Source(path)
    notes: list[str] = []
    if kind == "parquet":
        with reading_parquet(source) as (pa, pq):
            file = pq.ParquetFile(pa.BufferReader(source.content()))
            source.check_expanded(file.metadata.num_rows * file.metadata.num_columns * 8)
            frame = file.read().to_pandas(ignore_metadata=True)
    elif kind == "feather":
        with _reading(source, "Feather", "pyarrow"):
            import pyarrow.feather

            frame = pyarrow.feather.read_table(io.BytesIO(source.content())).to_pandas(ignore_metadata=True)
    else:
        with (
            _reading(source, "Excel", "openpyxl"),
            pd.ExcelFile(io.BytesIO(source.content()), engine="openpyxl") as book,
        ):
            sheet, *others = book.sheet_names
            # Words for missing values are ours to read: pandas' list of them is longer.
            frame = pd.read_excel(book, sheet_name=sheet, dtype=object, keep_default_na=False, na_values=[""])
        if others:
            notes.append(f"sheet {sheet!r} was read; {len(others)} others were not")
        frame.columns = ["" if str(name).startswith("Unnamed: ") else name for name in frame.columns]
    if not frame.shape[0] or not frame.shape[1]:
        raise source.error("has no rows or no columns; copy it again")
    return _opened(kind, path, frame, notes=notes)


@contextmanager
def _reading(source: Source, name: str, package: str) -> Iterator[None]:
    """What goes wrong while a package reads a file, in one sentence."""
    try:
        yield
    except DatasetError:
        raise
    except ImportError:
        raise source.error(f"is {name}, which needs {package}; pip install 'labelsieve[table]'") from None
    except Exception as error:  # damaged files raise whatever the package's own dependencies raise
        first_line = str(error).partition("\n")[0]
        raise source.error(f"cannot be read as {name} ({first_line}); save it again") from None
