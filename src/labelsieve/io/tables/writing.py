"""The user's own table with fewer columns or labels: in the format it came in, every other cell as it was read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from labelsieve.io.errors import DatasetError
from labelsieve.io.readers.source import Source
from labelsieve.io.tables.labels import label_value
from labelsieve.io.tables.opening import Opened, kind_of, open_file, read_cells
from labelsieve.io.tables.spellings import items_of, json_text
from labelsieve.io.tables.understanding import texts_of
from labelsieve.io.writing import replacing

if TYPE_CHECKING:
    from labelsieve.io.dataset import Dataset

__all__ = ["can_copy", "copy_columns", "header_of", "write_columns", "write_without"]

#: New cells, by row and position of the column.
Changes = Mapping[tuple[int, int], Any]


def can_copy(source: Path, target: Path) -> bool:
    """Whether the columns of a file can be copied to another as they are: the formats must be the same."""
    kind = kind_of(source)
    return kind is not None and kind == kind_of(target)


def header_of(path: Path) -> list[str]:
    """Names of the columns of a file of numbers, as its reader spells them."""
    source = Source(path)
    if kind_of(path) == "delimited":
        return [name.strip() for name in read_cells(source)[0]]
    import pyarrow.parquet

    return list(pyarrow.parquet.read_schema(io.BytesIO(source.content())).names)


def write_columns(table: Dataset, positions: Sequence[int], path: Path) -> None:
    """Write the columns at some positions of a table, in its order and under their names.

    Parameters
    ----------
    table : Dataset
        What `read_table` read.
    positions : sequence of int
        Which of its `columns` to keep.
    path : Path
        In the format that the table came in every cell is written as it was read; any table can become CSV.
    """
    opened = table._origin.opened
    assert opened is not None  # set by `read_table`
    kept = sorted(positions)
    if opened.path is not None and can_copy(opened.path, path):
        copy_columns(opened.path, kept, path, opened)
        return
    if kind_of(path) != "delimited":
        raise DatasetError(
            f"{path}: a table is written in the format it came in or as .csv, got {path.suffix!r}."
        )
    frame = opened.frame.iloc[:, kept].set_axis([opened.header[place] for place in kept], axis=1)
    for place in range(frame.shape[1]):
        cells = frame.iloc[:, place]
        if any(isinstance(cell, (list, tuple, dict, np.ndarray)) for cell in cells):
            frame.isetitem(place, [_as_json(cell) for cell in cells])
    text = frame.to_csv(index=False, sep=_separator(path, ","), lineterminator="\n")
    with replacing(path) as stream:
        stream.write(text.encode())


def write_without(table: Dataset, removed: Iterable[tuple[int, int]], path: Path) -> None:
    """Write a whole table but for some of its candidate labels, in the format it came in.

    Parameters
    ----------
    table : Dataset
        What `read_table` read from a file.
    removed : iterable of (row, label)
        Candidates to take away: a tag leaves its cell, a yes becomes the no of its column.
    path : Path
        Where to; the format must be that of the file.
    """
    opened = table._origin.opened
    assert opened is not None
    assert opened.path is not None
    tags_by_cell: dict[tuple[int, int], set[str | None]] = {}
    for row, label in removed:
        place = int(table.label_column_of[label])
        tags_by_cell.setdefault((row, place), set()).add(table._origin.tags[label])
    changes = {
        (row, place): _no_of(opened.columns[place])
        if None in tags
        else _without(opened.columns[place][row], tags, table._origin.separators[place])
        for (row, place), tags in tags_by_cell.items()
    }
    copy_columns(opened.path, range(len(opened.names)), path, opened, changes)


def _no_of(cells: Any) -> Any:
    """How a column of yes and no says no; nothing where it only says yes."""
    texts = texts_of(cells)
    return next(
        (
            cell
            for cell, text in zip(cells, texts, strict=True)
            if text is not None and label_value(text) is False
        ),
        None,
    )


def _without(cell: Any, tags: set[Any], separator: str | None) -> Any:
    """A cell of tags without some of them, written as before.

    Examples
    --------
    >>> _without("billing; bug;login", {"bug"}, ";"), _without('["a", "b"]', {"b"}, None), _without(3, {"3"}, None)
    ('billing;login', '["a"]', None)
    >>> _without("['a', 'b']", {"b"}, None), _without("['a' 'b' 'c']", {"b"}, None)
    ("['a']", "['a' 'c']")
    """
    write: Callable[[list[Any]], Any]
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        items, write = [*cell], list
    elif not isinstance(cell, str):  # a number, which is one tag
        items, write = [cell], lambda _: None
    elif (found := items_of(cell)) is not None:
        items, write = found
    else:
        items, write = cell.split(separator) if separator else [cell], (separator or "").join
    texts = [str(item).strip() for item in items]
    if not tags.issubset(texts):
        raise DatasetError(
            f"the cell {str(cell)[:80]!r} must hold the tags {', '.join(sorted(tags))[:80]!r} to be removed, and is "
            "written so that they are not found; remove them by hand."
        )
    return write([item for item, text in zip(items, texts, strict=True) if text not in tags])


def copy_columns(
    source: Path,
    positions: Sequence[int],
    path: Path,
    opened: Opened | None = None,
    changes: Changes | None = None,
) -> None:
    """Copy columns of a file to another of the same format, some cells changed.

    `opened` saves reading it again.
    """
    kind = kind_of(source)
    new = changes or {}
    with replacing(path) as stream:
        if kind == "delimited":
            _copy_text(Source(source), positions, path, stream, new)
        elif kind == "json":
            _copy_json(opened or open_file(source), positions, stream, new)
        elif kind == "excel":
            _copy_workbook(source, positions, stream, new)
        else:
            _copy_arrow(Source(source), kind, positions, stream, new)


def _separator(path: Path, own: str) -> str:
    """The separator that the ending of a file asks for, else its own."""
    return "\t" if path.suffix.lower() in (".tsv", ".tab") else own


def _copy_text(
    source: Source, positions: Sequence[int], path: Path, stream: IO[bytes], changes: Changes
) -> None:
    header, rows, dialect = read_cells(source)
    separator = dialect.separator
    if source.ending != path.suffix.lower():
        separator = _separator(path, "," if separator == "\t" else separator)
    for (row, place), cell in changes.items():
        rows[row][place] = "" if cell is None else cell
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=dialect.newline)
    if dialect.has_header:
        writer.writerow([header[place] for place in positions])
    writer.writerows([row[place] for place in positions] for row in rows)
    stream.write(text.getvalue().encode(dialect.encoding))


def _copy_json(opened: Opened, positions: Sequence[int], stream: IO[bytes], changes: Changes) -> None:
    assert opened.raw is not None  # set for this format
    names = {place: opened.header[place] for place in positions}
    lines = []
    for row, texts in enumerate(opened.raw):
        cells = {
            name: json.dumps(changes[row, place]) if (row, place) in changes else texts[name]
            for place, name in names.items()
            if name in texts
        }
        lines.append(", ".join(f"{json_text(name)}: {text}" for name, text in cells.items()))
    stream.write("".join(f"{{{line}}}\n" for line in lines).encode(opened.dialect.encoding))


def _copy_workbook(source: Path, positions: Sequence[int], stream: IO[bytes], changes: Changes) -> None:
    """Copy the first sheet, values and their formats; formulas become what they had computed."""
    import openpyxl

    old = openpyxl.load_workbook(io.BytesIO(source.read_bytes()), data_only=True)
    new = openpyxl.Workbook()
    sheet, copy = old.worksheets[0], new.active
    copy.title = sheet.title
    for number, row in enumerate(sheet.iter_rows(), start=-1):  # the header is no row
        for column, place in enumerate(positions, start=1):
            cell = row[place]
            value = changes.get((number, place), cell.value)
            if value is not None:
                written = copy.cell(row=cell.row, column=column, value=value)
                written.number_format = cell.number_format
    new.save(stream)


def _copy_arrow(
    source: Source, kind: str | None, positions: Sequence[int], stream: IO[bytes], changes: Changes
) -> None:
    """Copy columns with their types; what pandas noted about all of them is left out."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    content = pa.BufferReader(source.content())
    table = pa.parquet.read_table(content) if kind == "parquet" else pa.feather.read_table(content)
    for place in {place for _, place in changes}:
        cells = table.column(place).to_pylist()
        for (row, at), cell in changes.items():
            if at == place:
                cells[row] = cell
        changed = pa.array(cells, type=table.schema.field(place).type)
        table = table.set_column(place, table.schema.field(place), changed)
    chosen = table.select(list(positions)).replace_schema_metadata(None)
    if kind == "parquet":
        pa.parquet.write_table(chosen, stream)
    else:
        pa.feather.write_feather(chosen, stream)


def _as_json(cell: Any) -> Any:
    """A list as text."""
    if isinstance(cell, np.ndarray):
        cell = cell.tolist()
    return json.dumps(cell, default=str) if isinstance(cell, (list, tuple, dict)) else cell
