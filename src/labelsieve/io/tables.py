"""Convert a table with columns of any type to a `Dataset`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from labelsieve._numerics.candidates import fill_unknown, is_binary
from labelsieve._numerics.sparse import Matrix, by_columns, columns_of, dense
from labelsieve.io.column_choice import (
    NOMINAL_PREFIX,
    ColumnChoice,
    choose_columns,
    require_unique,
    unknown_column_error,
)
from labelsieve.io.column_types import TypedColumn, cell_strings, infer_column_type, plain_numbers
from labelsieve.io.dataset import Column, Dataset
from labelsieve.io.errors import Fail
from labelsieve.io.features import Features, encode
from labelsieve.io.frames import RawTable
from labelsieve.io.labels import Labels, ReadLabelFile, infer_labels, load_labels, read_labels
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source


@dataclass(frozen=True)
class Origin:
    """File of a table and its format, needed to copy it."""

    source: Source
    table: RawTable
    labels: Labels


def dataset_from_table(
    raw: RawTable,
    options: ReadOptions,
    fail: Fail,
    *,
    read_file: ReadLabelFile,
    file: Source | None,
    name: str,
    source: str,
) -> Dataset:
    """Convert a table to a dataset. `file` is the file it comes from, or None if it cannot be copied."""
    names, n_rows = raw.names, len(raw.frame)
    given = _given_roles(names, options, fail)
    choice = _choose(names, options, given, fail)
    typed = _type_columns(raw, options, given, choice, fail)
    if choice.labels is None:
        free = {position: column for position, column in typed.items() if position not in given}
        found = infer_labels(names, free, fail)
        choice = replace(choice, labels=found)
        typed = {position: column for position, column in typed.items() if position not in found}
    must_vary = not choice.is_declared
    truth, noisy = load_labels(
        choice,
        n_rows,
        lambda positions: read_labels(
            raw, positions, options.label_sep, fail, must_vary=must_vary, unknown=options.unknown
        ),
        read_file,
        fail,
    )
    labels = noisy or truth
    assert labels is not None  # `_choose` and `infer_labels` raise without labels
    features = encode(typed, names, options, fail, taken=labels.names)
    row_ids, id_column = _row_names(raw, typed, options.id, fail)
    is_sparse_frame = any(hasattr(dtype, "fill_value") for dtype in raw.frame.dtypes)
    return Dataset(
        sp.csr_array(features.X) if is_sparse_frame else features.X,
        None if truth is None else truth.Y,
        None if noisy is None else noisy.Y,
        feature_names=tuple(features.names),
        label_names=tuple(labels.names),
        name=name,
        source=source,
        nominal=features.nominal,
        columns=_columns(raw, typed, [part for part in (noisy, truth) if part], features, options),
        column_of=features.column_of,
        label_column_of=np.array([position for position, _ in labels.origins]),
        row_ids=row_ids,  # type: ignore[arg-type]  # None numbers the rows
        id_column=id_column,
        frame=raw.frame,
        values=pd.DataFrame({names[position]: column.values for position, column in typed.items()}),
        notes=raw.notes,
        _origin=None if file is None else Origin(file, raw, labels),
    )


def _given_roles(names: Sequence[str], options: ReadOptions, fail: Fail) -> dict[int, str]:
    """Return the roles in `options` by position."""
    given = {**(options.roles or {}), **({} if options.id is None else {options.id: "id"})}
    for name in given:
        if name not in names:
            raise unknown_column_error(name, names, fail)
    return {names.index(name): role for name, role in given.items()}


def _choose(names: Sequence[str], options: ReadOptions, given: Mapping[int, str], fail: Fail) -> ColumnChoice:
    """Choose label, candidate and ignored columns by options, roles and prefixes."""
    taken = [position for position, role in given.items() if role in ("id", "ignored")]
    label_positions = [position for position, role in given.items() if role == "label"]
    if label_positions and options.labels is None:
        options = replace(options, labels=[names[position] for position in label_positions])
    choice = choose_columns(names, options, fail, taken=taken)
    return (
        choice
        if choice.labels is None
        else replace(choice, labels=sorted({*label_positions, *choice.labels}))
    )


def _type_columns(
    raw: RawTable, options: ReadOptions, given: Mapping[int, str], choice: ColumnChoice, fail: Fail
) -> dict[int, TypedColumn]:
    """Infer the types of all columns except labels."""
    labels = {*(choice.labels or ()), *choice.candidates}
    is_european = raw.kind == "delimited" and raw.separator == ";"
    typed: dict[int, TypedColumn] = {}
    for position, name in enumerate(raw.names):
        if position in labels:
            continue
        cells = raw.cells(position)
        role = given.get(position, "ignored" if position in choice.ignored else None)
        is_nominal = name.startswith(NOMINAL_PREFIX) or hasattr(cells, "cat")
        is_declared = choice.is_declared and role is None and not is_nominal
        numbers = plain_numbers(cells) if is_declared else None
        if numbers is not None:  # keep all features of a file from `write`
            typed[position] = TypedColumn("boolean" if is_binary(numbers) else "number", numbers)
        elif role is None and is_nominal:
            typed[position] = _declared_categories(cells, name, fail)
            if options.nominal is None and not choice.is_declared:
                typed[position] = replace(typed[position], categories=None)
        else:
            typed[position] = infer_column_type(cells, name, fail, role=role, is_european=is_european)
    return typed


def _declared_categories(cells: Any, name: str, fail: Fail) -> TypedColumn:
    """Convert a column that is declared as categorical, with its categories in order."""
    column = infer_column_type(cells, name, fail, role="category")
    if hasattr(cells, "cat"):
        return replace(column, categories=tuple(cell_strings(cells.cat.categories)))
    texts = {text for text in column.values if text is not None}
    codes = {int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 7}
    if len(codes) < len(texts):
        return column
    return replace(column, categories=tuple(map(str, range(max(codes, default=0) + 1))))


def _row_names(
    raw: RawTable, typed: Mapping[int, TypedColumn], id_column: str | None, fail: Fail
) -> tuple[list[str] | None, str | None]:
    """Return the names of the rows from a column or the index of a frame, and the name of the column."""
    for position, column in typed.items():
        name = raw.names[position]
        if column.role != "id" or id_column not in (None, name):
            continue
        ids = ["" if text is None else text for text in column.values]
        if id_column is not None:
            require_unique(ids, id_column, fail)
        if "" not in ids and len(set(ids)) == len(ids):
            return ids, name
    index = raw.frame.index
    is_named = index.is_unique and not isinstance(index, pd.RangeIndex)
    return [*map(str, index)] if is_named else None, None


def _columns(
    raw: RawTable,
    typed: Mapping[int, TypedColumn],
    labels: Sequence[Labels],
    features: Features,
    options: ReadOptions,
) -> tuple[Column, ...]:
    """Describe every column, in the order of the table."""
    members: dict[int, list[int]] = {}
    for feature, position in enumerate(features.column_of.tolist()):
        members.setdefault(position, []).append(feature)
    equal_labels = _labels_equal_to(features, labels[0])
    columns: dict[int, Column] = {}
    for found in labels:
        columns |= found.columns
    for position, column in typed.items():
        notes = [column.note] if column.note else []
        if column.role == "text" and options.text != "tfidf":
            notes.append("left out; the text option 'tfidf' encodes its words")
        elif column.role not in ("id", "constant", "ignored") and position not in members:
            notes.append("left out; no value is frequent enough")
        if position in equal_labels:
            notes.append(
                f"equals the label '{equal_labels[position]}'; ignore the column if it leaks the label"
            )
        encoded = tuple(members.get(position, ()))
        columns[position] = Column(
            raw.names[position], column.role, column.n_missing, "; ".join(notes), encoded
        )
    return tuple(columns[position] for position in range(len(raw.names)))


def _labels_equal_to(features: Features, labels: Labels) -> dict[int, str]:
    """Return column position -> label for columns with a feature that equals a label or its complement."""
    known: dict[bytes, str] = {}
    for label, column in zip(labels.names, _by_column(fill_unknown(labels.Y)), strict=True):
        for mask in (column != 0, column == 0):
            known.setdefault(np.packbits(mask).tobytes(), label)
    found: dict[int, str] = {}
    for position, column in zip(features.column_of.tolist(), _by_column(features.X), strict=True):
        low, high = column.min(), column.max()
        if low < high and ((column == low) | (column == high)).all():
            name = known.get(np.packbits(column != low).tobytes())
            if name is not None:
                found.setdefault(position, name)
    return found


def _by_column(matrix: Matrix) -> Iterator[np.ndarray]:
    """Yield the columns of a matrix as dense vectors."""
    columns = by_columns(matrix)
    return (dense(columns_of(columns, slice(at, at + 1))).ravel() for at in range(matrix.shape[1]))
