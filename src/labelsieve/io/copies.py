"""Copy a table without some of its columns or labels, and keep the format of everything else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from labelsieve._numerics.sparse import dense
from labelsieve.io.column_types import cell_strings
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import (
    decode_table,
    detect_separator,
    is_blank,
    json_objects,
    open_workbook,
    sheet_rows,
    table_format,
)
from labelsieve.io.labels import Labels
from labelsieve.io.spellings import MISSING, boolean_value
from labelsieve.io.tables import Origin
from labelsieve.io.tags import parse_list, split_tags, tag_text
from labelsieve.io.writing import replacing, write

__all__ = ["can_copy", "write_corrected", "write_selected"]

#: New cells by row and column position.
Changes = Mapping[tuple[int, int], Any]


def can_copy(source: Path, target: Path) -> bool:
    """Return True if both files have the same table format, so that cells can be copied as written."""
    kind = table_format(source)
    return kind is not None and kind == table_format(target)


def write_selected(dataset: Dataset, columns: Sequence[int], path: Path) -> bool:
    """Write the chosen columns with labels and row names. Return False if a table had to be written as features.

    In the format of the table, every cell is copied as written. Any table can be written as CSV. For other
    formats, and for data that are not a table, the encoded features are written.
    """
    origin: Origin | None = dataset._origin
    named = [position for position, column in enumerate(dataset.columns) if column.role in ("id", "label")]
    blocks = [part for position in columns for part in dataset.columns[position].block]
    kept = sorted({*named, *columns, *blocks})
    if origin is not None and can_copy(origin.source.path, path):
        _copy(origin, kept, path, {})
        return True
    if dataset.is_table and table_format(path) == "delimited":
        _write_frame(dataset, kept, path)
        return True
    features = [feature for position in sorted(columns) for feature in dataset.columns[position].features]
    names = [dataset.feature_names[feature] for feature in features]
    parts: dict[str, Any] = {
        "X": dataset.X[:, features],
        "feature_names": names,
        "nominal": [name for name in dataset.nominal if name in set(names)],
        **dict.fromkeys(("columns", "column_of", "label_column_of")),
    }
    write(replace(dataset, **parts), path)
    return not dataset.is_table


def _write_frame(dataset: Dataset, columns: Sequence[int], path: Path) -> None:
    """Write columns of any table as CSV, with lists as JSON."""
    assert dataset.frame is not None
    lists = (list, tuple, dict, np.ndarray)
    frame = dataset.frame.iloc[:, columns]
    for position in range(frame.shape[1]):
        cells = frame.iloc[:, position]
        if any(isinstance(cell, lists) for cell in cells):
            plain = (cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in cells)
            frame.isetitem(
                position,
                [json.dumps(cell, default=str) if isinstance(cell, lists) else cell for cell in plain],
            )
    separator = detect_separator("", path.suffix.lower())
    with replacing(path) as stream:
        stream.write(frame.to_csv(index=False, sep=separator, lineterminator="\n").encode())


def write_corrected(
    dataset: Dataset, removed: Iterable[tuple[int, int]], added: Iterable[tuple[int, int]], path: Path
) -> str | None:
    """Write a whole table with some candidate labels removed or added, given as (row, label), in its own format.

    A tag leaves or joins its cell, and a yes or no becomes the other value of its column. Returns a note about what the
    copy lacks, if anything.
    """
    origin: Origin = dataset._origin
    assert dataset.frame is not None
    # Removed and added tags by cell; the tag of a column of yes and no is None.
    tags_by_cell: dict[tuple[int, int], tuple[list[Any], list[Any]]] = {}
    for kind, entries in enumerate((removed, added)):
        for row, label in entries:
            position, tag = origin.labels.origins[label]
            if position in origin.labels.merged:
                position = _merged_cell(origin.labels, dataset.frame.iloc[row], tag, is_new=kind == 1)
            tags_by_cell.setdefault((row, position), ([], []))[kind].append(tag)
    changes = {}
    for (row, position), (gone, new) in tags_by_cell.items():
        cells = dataset.frame.iloc[:, position]
        if None in gone or None in new:
            Y = origin.labels.Y[:, [origin.labels.origins.index((position, None))]]
            changes[row, position] = _cell_that_says(cells[~np.isnan(dense(Y).ravel())], None in new)
            continue
        separator, cell = origin.labels.separators[position], cells.iat[row]
        if gone:
            cell = _remove_tags(cell, set(gone), separator)
        changes[row, position] = _add_tags(cell, new, separator, cells) if new else cell
    return _copy(origin, range(len(dataset.columns)), path, changes)


def _merged_cell(labels: Labels, cells: Any, tag: str | None, *, is_new: bool) -> int:
    """Return the position of the merged column that has a tag, or of one to add it to: an empty one, else the last."""
    for position in labels.merged:
        cell = cells.iloc[position]
        tags = (
            split_tags(str(cell), labels.separators[position])
            if isinstance(cell, str)
            else _items_of(cell)[1]
        )
        if _is_empty(cell) if is_new else tag in map(tag_text, tags):
            return position
    return labels.merged[-1]


def _cell_that_says(cells: Any, truth: bool) -> Any:
    """Return how a column spells yes or no; None for a no, and "1" for a yes, that it never spells."""
    said = (boolean_value(text) if text is not None else None for text in cell_strings(cells))
    found = (cell for cell, value in zip(cells, said, strict=True) if value is truth)
    return next(found, "1" if truth else None)


def _is_empty(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return cell is None or cell != cell  # nan


def _add_tags(cell: Any, tags: list[Any], separator: str | None, cells: Any) -> Any:
    """Return a cell of tags with more of them, written as before or, if it is blank, as the other cells.

    Examples
    --------
    >>> _add_tags("billing; bug", ["login"], ";", []), _add_tags('["a"]', ["b"], None, [])
    ('billing; bug; login', '["a", "b"]')
    >>> _add_tags(None, ["b"], None, [None, '["a"]']), _add_tags("", ["b", "c"], None, ["a"])
    ('["b"]', 'b;c')
    >>> _add_tags('[{"id": 1, "name": "a"}]', ["b"], None, ['[{"id": 2, "name": "b"}]'])
    '[{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]'
    """
    is_list, items, write_items = _items_of(cell)
    example = cell
    if not items and (is_list or _is_empty(cell)):
        example = next((other for other in cells if not _is_empty(other) and _items_of(other)[1]), cell)
        if _is_empty(example):
            example = next((other for other in cells if not _is_empty(other)), "")
    known = _items_of(example)[1]
    if _is_empty(cell):
        is_list, _, write_items = _items_of(example)
    if not is_list:
        if not isinstance(example, (str, int, float, np.integer, np.floating)):
            raise _uneditable(cell, tags)
        separator = separator or ";"
        gap = " " if f"{separator} " in str(cell) else ""
        return f"{separator}{gap}".join([*([] if _is_empty(cell) else [str(cell)]), *map(str, tags)])
    added: list[Any] = list(tags)
    if any(isinstance(item, dict) for item in known):
        objects: dict[Any, Any] = {tag_text(item): item for other in cells for item in _items_of(other)[1]}
        added = [objects.get(tag, {"name": tag}) for tag in tags]
    return write_items([*items, *added])


def _remove_tags(cell: Any, tags: set[Any], separator: str | None) -> Any:
    """Remove tags from a cell, and keep its notation.

    Examples
    --------
    >>> _remove_tags("billing; bug;login", {"bug"}, ";"), _remove_tags('["a", "b"]', {"b"}, None)
    ('billing;login', '["a"]')
    >>> _remove_tags("['a', 'b']", {"b"}, None), _remove_tags("['a' 'b' 'c']", {"b"}, None)
    ("['a']", "['a' 'c']")
    """
    is_list, items, write_items = _items_of(cell)
    if not is_list and isinstance(cell, str):
        items, write_items = cell.split(separator) if separator else [cell], (separator or "").join
    elif not is_list:  # a number is a single tag
        items, write_items = [cell], lambda _: None
    texts = [None if isinstance(item, bytes) else tag_text(item) for item in items]
    if not tags.issubset(texts):
        raise _uneditable(cell, tags)
    return write_items([item for item, text in zip(items, texts, strict=True) if text not in tags])


def _items_of(cell: Any) -> tuple[bool, list[Any], Callable[[list[Any]], Any]]:
    """Return True, the items and their writer if a cell holds a list, in any notation."""
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        return True, [*cell], list
    found = parse_list(cell) if isinstance(cell, str) else None
    return (False, [], list) if found is None else (True, *found)


def _uneditable(cell: Any, tags: Iterable[Any]) -> DatasetError:
    return DatasetError(
        f"the cell {str(cell)[:80]!r} must contain the tags {', '.join(sorted(map(str, tags)))[:80]!r} in a notation "
        "that can be edited; change it by hand."
    )


def _copy(origin: Origin, positions: Sequence[int], path: Path, changes: Changes) -> str | None:
    """Copy columns to a file of the same format, and change some cells. Return a note if the copy is incomplete."""
    is_whole = len(positions) == len(origin.table.names)
    if path.suffix.lower() == ".xlsm" and not (is_whole and origin.source.ending == ".xlsm"):
        raise DatasetError(
            f"{path}: columns of a workbook with macros cannot be selected; write .xlsx instead."
        )
    copiers: dict[str, Callable[..., str | None]] = {
        "delimited": _copy_text, "json": _copy_json, "excel": _copy_workbook, "parquet": _copy_parquet,
    }  # fmt: skip
    with replacing(path, mode_of=origin.source.path) as stream:
        return copiers[origin.table.kind](origin, list(positions), stream, changes)


def _copy_text(origin: Origin, positions: Sequence[int], stream: IO[bytes], changes: Changes) -> None:
    """Copy fields with their quotes and line endings."""
    text, encoding, mark = decode_table(origin.source)
    separator = origin.table.separator
    field = re.compile(
        rf'(?P<field>"(?:[^"]|"")*"|[^{re.escape(separator)}\r\n]*)(?P<end>{re.escape(separator)}|\r\n|\r|\n|\Z)'
    )
    pieces: list[str] = []
    at, row = 0, -1 if origin.table.has_header else 0
    while at < len(text):
        fields: list[str] = []
        end = separator
        while end == separator:
            found = field.match(text, at)
            assert found is not None  # a field may be empty
            fields.append(found["field"])
            end, at = found["end"], found.end()
        # A quoted empty field is blank too.
        if is_blank([field[1:-1] if field.startswith('"') else field for field in fields]):
            pieces.append("".join(fields) + end)
            continue
        for position in positions:
            if (row, position) in changes:
                fields[position] = _csv_field(changes[row, position], fields[position], separator)
        pieces.append(separator.join(fields[position] for position in positions) + end)
        row += 1
    stream.write(mark + "".join(pieces).encode(encoding))


def _csv_field(cell: Any, old: str, separator: str) -> str:
    """Format a cell, with quotes if the old field had them or the new one needs them."""
    text = "" if cell is None else str(cell)
    if old.startswith('"') or any(letter in text for letter in f'{separator}"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _copy_json(origin: Origin, positions: list[int], stream: IO[bytes], changes: Changes) -> None:
    """Copy members of JSON objects with brackets and indentation."""
    text, encoding, mark = decode_table(origin.source)
    objects = list(json_objects(text))
    names = list(dict.fromkeys(member.name for _, members, _ in objects for member in members))
    kept = {names[position]: position for position in positions}
    pieces: list[str] = []
    copied = 0
    for row, (end, members, _) in enumerate(objects):
        if not members:
            continue
        pieces.append(text[copied : members[0].start])
        is_first = True
        for before, member in zip([members[0], *members], members, strict=False):
            if member.name not in kept:
                continue
            if not is_first:
                pieces.append(text[before.end : member.start])
            is_first = False
            change = (row, kept[member.name])
            old = text[member.value_start : member.end]
            pieces.append(text[member.start : member.value_start])
            pieces.append(_json_value(old, changes[change]) if change in changes else old)
        pieces.append(text[members[-1].end : end])
        copied = end
    pieces.append(text[copied:])
    stream.write(mark + "".join(pieces).encode(encoding))


def _json_value(old: str, value: Any) -> str:
    r"""Format a value as JSON with the spaces, line breaks and escapes of an old one.

    Examples
    --------
    >>> _json_value('["a","b", "c"]', ["b", "c"]), _json_value('[ "\\u00e9", "x" ]', ["\u00e9"])
    ('["b","c"]', '[ "\\u00e9" ]')
    """
    is_ascii = old.isascii()
    if not isinstance(value, list) or not value or not old.startswith("["):
        return json.dumps(value, ensure_ascii=is_ascii)
    first = len(old) - len(old[1:].lstrip())
    _, end = json.JSONDecoder().raw_decode(old, first)
    gap = re.match(r"\s*,\s*|", old[end:])[0]  # type: ignore[index]  # the pattern matches an empty string
    last = len(old[:-1].rstrip())
    return old[:first] + gap.join(json.dumps(item, ensure_ascii=is_ascii) for item in value) + old[last:]


def _copy_workbook(origin: Origin, positions: list[int], stream: IO[bytes], changes: Changes) -> str | None:
    """Copy a workbook with changed cells, or selected columns to a new sheet with values instead of formulas."""
    import openpyxl

    source = origin.source
    book = open_workbook(source, data_only=False, keep_vba=source.ending == ".xlsm")
    sheet = book.worksheets[0]
    is_whole = len(positions) >= sheet.max_column
    if not is_whole:
        sheet = open_workbook(source, data_only=True).worksheets[0]
    numbers = [number for number, _ in sheet_rows(sheet, source)]
    if is_whole:
        for (row, position), value in changes.items():
            cell = sheet.cell(row=numbers[row + 1], column=position + 1, value=value)
            if isinstance(value, str):
                cell.data_type = "s"  # text that starts with '=' must not become a formula
        book.save(stream)
        has_formulas = any(cell.data_type == "f" for row in sheet.iter_rows() for cell in row)
        return (
            "open and save the copy in a spreadsheet program to compute its formulas"
            if has_formulas
            else None
        )
    new = openpyxl.Workbook()
    copy = new.active
    copy.title = sheet.title
    for number in numbers:
        for column, position in enumerate(positions, start=1):
            cell = sheet.cell(row=number, column=position + 1)
            if cell.value is not None:
                written = copy.cell(row=number, column=column, value=cell.value)
                written.number_format = cell.number_format
                written.data_type = cell.data_type
    new.save(stream)
    return None


def _copy_parquet(origin: Origin, positions: list[int], stream: IO[bytes], changes: Changes) -> None:
    """Copy columns with their types and compression. A subset loses the metadata of pandas, which lists all columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(origin.source.content))
    compression = file.metadata.row_group(0).column(0).compression
    table = file.read()
    for position in {position for _, position in changes}:
        cells = table.column(position).to_pylist()
        for (row, at), cell in changes.items():
            if at == position:
                cells[row] = cell
        changed = pa.array(cells, type=table.schema.field(position).type)
        table = table.set_column(position, table.schema.field(position), changed)
    if len(positions) < table.num_columns:
        table = table.select(positions).replace_schema_metadata(None)
    pq.write_table(table, stream, compression="none" if compression == "UNCOMPRESSED" else compression)
