"""Convert a table with columns of any type to a `Dataset`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelsieve._numerics.candidates import fill_unknown, is_binary
from labelsieve._numerics.sparse import Matrix, by_columns, columns_of, dense
from labelsieve.io.column_choice import (
    NOMINAL_PREFIX,
    ColumnChoice,
    choose_columns,
    named_columns,
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

# Number of columns, and prefixes of their names, that are the numbers of an embedding.
_MIN_BLOCK = 8
_EMBEDDING = re.compile(
    r"(?:^|[^a-z])(?:emb|embed|embedding|embeddings|vec|vector|latent|bert|sbert|clip|glove|word2vec|w2v|doc2vec|ada|"
    r"openai|minilm|mpnet|resnet|vit|encoder)[^a-z]*$",
    re.IGNORECASE,
)


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
    blocks = _vector_blocks(raw, given, choice)
    typed = _type_columns(raw, options, given, choice, blocks, fail)
    if choice.labels is None:
        free = {position: column for position, column in typed.items() if position not in given}
        found = infer_labels(names, free, fail)
        choice = replace(choice, labels=found)
        typed = {position: column for position, column in typed.items() if position not in found}
    must_vary = not choice.is_declared
    merged = named_columns(names, options.merge, fail) if options.merge else ()
    truth, noisy = load_labels(
        choice,
        n_rows,
        lambda positions: read_labels(raw, positions, options, fail, must_vary=must_vary, merged=merged),
        read_file,
        fail,
    )
    labels = noisy or truth
    assert labels is not None  # `_choose` and `infer_labels` raise without labels
    features = encode(typed, names, options, fail, taken=labels.names)
    row_ids, id_column, id_note = _row_names(raw, typed, options.id)
    shown = named_columns(names, options.show, fail, "shown") if options.show else []
    if id_note and options.id is not None:
        shown = sorted({*shown, names.index(options.id)})
    groups, group_notes = _row_groups(raw, typed, options.group)
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
        columns=_columns(raw, typed, [part for part in (noisy, truth) if part], features, blocks),
        column_of=features.column_of,
        label_column_of=np.array([position for position, _ in labels.origins]),
        row_ids=row_ids,  # type: ignore[arg-type]  # None numbers the rows
        id_column=id_column,
        frame=raw.frame,
        values=pd.DataFrame({names[position]: column.values for position, column in typed.items()}),
        notes=(*raw.notes, *id_note, *group_notes),
        shown=tuple(shown),
        groups=groups,
        _origin=None if file is None else Origin(file, raw, labels),
    )


def _given_roles(names: Sequence[str], options: ReadOptions, fail: Fail) -> dict[int, str]:
    """Return the roles in `options` by position."""
    ids = {name: "id" for name in (options.id, options.group) if name is not None}
    given = {**(options.roles or {}), **ids}
    for name in given:
        if name not in names:
            raise unknown_column_error(name, names, fail)
    return {names.index(name): role for name, role in given.items()}


def _choose(names: Sequence[str], options: ReadOptions, given: Mapping[int, str], fail: Fail) -> ColumnChoice:
    """Choose label, candidate and ignored columns by options, roles and prefixes."""
    taken = [position for position, role in given.items() if role in ("id", "ignored")]
    label_positions = [position for position, role in given.items() if role == "label"]
    if options.merge:
        merged = named_columns(names, options.merge, fail)
        label_positions = sorted({*label_positions, *merged})
    if label_positions and options.labels is None:
        options = replace(options, labels=[names[position] for position in label_positions])
    choice = choose_columns(names, options, fail, taken=taken)
    return (
        choice
        if choice.labels is None
        else replace(choice, labels=sorted({*label_positions, *choice.labels}))
    )


def _vector_blocks(raw: RawTable, given: Mapping[int, str], choice: ColumnChoice) -> dict[int, list[int]]:
    """Find blocks of numbered columns that hold the numbers of one vector, by their first column.

    They have a common prefix and consecutive numbers. The prefix is that of an embedding, or all rows have the same
    norm.
    """
    taken = {*given, *(choice.labels or ()), *choice.candidates, *choice.ignored}
    found: dict[str, list[tuple[int, int]]] = {}
    if not raw.has_header or choice.is_declared:
        return {}
    for position, name in enumerate(raw.names):
        parts = re.fullmatch(r"(.*?\D)(\d{1,6})\]?", name)
        if parts is not None:
            found.setdefault(parts[1], []).append((int(parts[2]), position))
    blocks = {}
    for prefix, members in found.items():
        members.sort()
        numbers, positions = zip(*members, strict=True)
        is_consecutive = numbers == tuple(range(numbers[0], numbers[0] + len(members)))
        if len(members) < _MIN_BLOCK or not is_consecutive or not taken.isdisjoint(positions):
            continue
        columns = [plain_numbers(raw.cells(position)) for position in positions]
        vectors = [column for column in columns if column is not None]
        if len(vectors) < len(columns):
            continue
        norms = np.sqrt(sum(column**2 for column in vectors))
        has_one_norm = norms.min() > 0.99 * norms.max()
        is_whole = all((column == np.floor(column)).all() for column in vectors)
        if not is_whole and (has_one_norm or _EMBEDDING.search(prefix)):
            blocks[positions[0]] = list(positions)
    return blocks


def _type_columns(
    raw: RawTable,
    options: ReadOptions,
    given: Mapping[int, str],
    choice: ColumnChoice,
    blocks: Mapping[int, Sequence[int]],
    fail: Fail,
) -> dict[int, TypedColumn]:
    """Infer the types of all columns except labels. The first column of a block holds its vectors."""
    labels = {*(choice.labels or ()), *choice.candidates}
    block_of = {position: first for first, positions in blocks.items() for position in positions}
    is_european = raw.kind == "delimited" and raw.separator == ";"
    typed: dict[int, TypedColumn] = {}
    for position, name in enumerate(raw.names):
        if position in labels:
            continue
        if position in block_of:
            first, members = block_of[position], blocks[block_of[position]]
            note = f"vector of {len(members)} columns"
            if position == first:
                vectors = np.empty(len(raw.frame), dtype=object)
                vectors[:] = [*raw.frame.iloc[:, members].to_numpy(dtype=np.float64)]
                hint = f"(if not: `roles={ {name: 'number'} }`)"
                typed[position] = TypedColumn("vector", vectors, f"{note} {hint}")
            else:
                part = np.full(len(raw.frame), "", dtype=object)
                typed[position] = TypedColumn("ignored", part, f"part of the vector {raw.names[first]!r}")
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
    raw: RawTable, typed: Mapping[int, TypedColumn], id_column: str | None
) -> tuple[list[str] | None, str | None, tuple[str, ...]]:
    """Return the names of the rows from a column or the index of a frame, the name of the column, and a note."""
    note: tuple[str, ...] = ()
    for position, column in sorted(typed.items(), key=lambda item: (item[1].is_long_id, item[0])):
        name = raw.names[position]
        if column.role != "id" or id_column not in (None, name):
            continue
        ids = ["" if text is None else text for text in column.values]
        if "" not in ids and len(set(ids)) == len(ids):
            return ids, name, ()
        if id_column is not None:
            what = "has empty cells" if "" in ids else "repeats"
            note = (f"the id {name!r} {what}, so rows are numbered; it is shown next to them",)
    index = raw.frame.index
    is_named = index.is_unique and not isinstance(index, pd.RangeIndex) and not note
    return [*map(str, index)] if is_named else None, None, note


def _row_groups(
    raw: RawTable, typed: Mapping[int, TypedColumn], group: str | None
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return the group of every row, and notes. Rows of a group are joined, and so are repeated rows.

    Rows of a few categories are often equal by coincidence, which is ruled out if some column has a different value in
    at least half of the rows.
    """
    n_rows = len(raw.frame)
    notes = []
    keys = []
    if group is not None:
        cells = typed[raw.names.index(group)].values
        alone = np.array([text is None for text in cells])
        keys.append(np.where(alone, -1 - np.arange(n_rows), pd.factorize(cells)[0]))
        notes.append(f"splits keep the {len(np.unique(keys[0])):,} groups of {group!r} together")
    features = {
        at: column for at, column in typed.items() if column.role not in ("id", "constant", "ignored")
    }
    codes = [_codes(column.values) for column in features.values()]
    if any(2 * (code.max(initial=0) + 1) >= n_rows for code in codes):
        repeated = pd.DataFrame(np.column_stack(codes))
        n_repeated = int(repeated.duplicated().sum())
        if n_repeated:
            keys.append(repeated.groupby([*repeated.columns], sort=False).ngroup().to_numpy())
            many = "1 row repeats" if n_repeated == 1 else f"{n_repeated:,} rows repeat"
            notes.append(f"{many} the features of other rows; splits keep them together")
    if not keys:
        return None, tuple(notes)
    found = keys[0]
    for other in keys[1:]:
        found = _connected(found, other)
    return found, tuple(notes)


def _codes(values: np.ndarray) -> np.ndarray:
    """Number the different values of a column."""
    if values.dtype == object:
        values = np.array(
            [value.tobytes() if isinstance(value, np.ndarray) else repr(value) for value in values],
            dtype=object,
        )
    return pd.factorize(values, use_na_sentinel=False)[0]


def _connected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Number the groups of rows that are connected by equal values of `a` or `b`."""
    a, b = (np.unique(values, return_inverse=True)[1] for values in (a, b))
    n_rows, n_a, n_b = len(a), a.max() + 1, b.max() + 1
    edges = sp.coo_array((np.ones(n_rows), (a, n_a + b)), shape=(n_a + n_b, n_a + n_b))
    found: np.ndarray = connected_components(edges, directed=False)[1][a]
    return found


def _columns(
    raw: RawTable,
    typed: Mapping[int, TypedColumn],
    labels: Sequence[Labels],
    features: Features,
    blocks: Mapping[int, Sequence[int]],
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
        if column.role not in ("id", "constant", "ignored") and position not in members:
            notes.append("left out; no value is frequent enough")
        if position in equal_labels:
            leak = f"equals the label '{equal_labels[position]}'"
            notes.append(f"{leak} (if it leaks the label: `ignore={raw.names[position]!r}`)")
        name, block = raw.names[position], tuple(blocks.get(position, ()))
        if block:
            name = re.sub(r"\d+(\]?)$", r"*\1", name)
        encoded = tuple(members.get(position, ()))
        columns[position] = Column(name, column.role, column.n_missing, "; ".join(notes), encoded, block)
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
