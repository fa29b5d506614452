"""Copies of the user's data with fewer columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labelsieve._text import printable
from labelsieve.cli.opening import Data
from labelsieve.cli.target import told_if_unwritable
from labelsieve.io import write
from labelsieve.io.errors import DatasetError
from labelsieve.io.labelling import named_columns
from labelsieve.io.options import ReadOptions
from labelsieve.io.tables.opening import kind_of
from labelsieve.io.tables.writing import can_copy, copy_columns, header_of, write_columns


def write_selected(
    data: Data, kept: Sequence[int], files: Sequence[str], options: ReadOptions, path: Path
) -> str:
    """Write the data with what was selected, as the user's own columns where the format allows it.

    Parameters
    ----------
    kept : sequence of int
        What was selected: features, or places among the ranked columns of a table.

    Returns
    -------
    str
        A note for the user; often nothing.
    """
    source = Path(files[0])
    if data.table is not None:
        table = data.table
        chosen = [table.ranked[place] for place in kept]
        if kind_of(path) is not None:
            named = [at for at, column in enumerate(table.columns) if column.role in ("id", "label")]
            with told_if_unwritable(path):
                write_columns(table, [*named, *chosen], path)
            return ""
        features = [feature for at in chosen for feature in table.columns[at].features]
        write(data.dataset.keep_features(features), path)
        return f"note: {printable(path)} holds the features made of the columns; {source.suffix} holds the columns."
    if data.is_own_table and can_copy(source, path):
        selected = {data.dataset.feature_names[place] for place in kept}
        with told_if_unwritable(path):
            copy_columns(source, _own_places(source, data, options, selected), path)
        return ""
    write(data.dataset.keep_features(kept), path)
    return ""


def _own_places(source: Path, data: Data, options: ReadOptions, selected: set[str]) -> list[int]:
    """Columns of a file of numbers that stay: what was selected, the labels and the names of the rows."""
    names = header_of(source)

    def fail(*parts: object) -> DatasetError:
        return DatasetError(f"{source}: ", *map(str, parts), ".")

    ignored = set() if options.ignore is None else set(named_columns(names, options.ignore, fail))
    dropped = set(data.dataset.feature_names) - selected
    column = None if data.ids is None else data.ids.column
    return [
        place
        for place, name in enumerate(names)
        if name == column or (place not in ignored and name not in dropped)
    ]
