"""`read_table`: a user's table, as it is, in one line."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve.io.dataset import Column, Dataset
from labelsieve.io.errors import DatasetError, Fail, Mention
from labelsieve.io.labelling import named_columns
from labelsieve.io.readers.table import CANDIDATE_PREFIX, LABEL_PREFIX
from labelsieve.io.reading import require_naming
from labelsieve.io.tables.features import Features, distinct, encode
from labelsieve.io.tables.labels import Labels, declared_labels, likely_labels, named_labels, read_labels
from labelsieve.io.tables.opening import Opened, open_file, open_frame, pandas
from labelsieve.io.tables.understanding import Understood, check_roles, texts_of, understand

__all__ = ["TEXTS", "read_table"]

#: What becomes of free text; the first is the default.
TEXTS = ("drop", "tfidf")
_LEAST_ROWS = 2


@dataclass(frozen=True)
class Origin:
    """How a table is written: the file, the tag of every label, and the separators of tags by column."""

    opened: Opened
    tags: tuple[str | None, ...]
    separators: Mapping[int, str | None]


def read_table(
    table: Any,
    *,
    labels: int | str | Sequence[str] | None = None,
    label_sep: str | None = None,
    id: str | None = None,
    ignore: str | Sequence[str] = (),
    text: str = "drop",
    roles: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Dataset:
    r"""Turn a table of anything into features, candidate labels and names of the rows.

    What every column is taken for is guessed, said (`Dataset.columns`) and can be overruled. A number or a truth value
    is one feature; a date becomes time, month, weekday and hour; a category, or a list of tags, one 0/1 feature for
    each that is frequent enough. Missing numbers become the median of the column, missing truth values the more
    frequent one, and a missing category is one of its own; where five rows or more miss a value, a feature says so.
    Columns that name the rows or never change are left out.

    Parameters
    ----------
    table : path or DataFrame
        CSV or TSV (any of the usual separators and encodings), Parquet, Feather, Excel, JSON lines, or a frame.
    labels : int, str, sequence of str or None, default=None
        Columns of labels: names, patterns such as ``"label_*"``, or the number of last columns (negative: first).
        They hold yes and no in some spelling, or tags: ``billing;bug``, lists as JSON or Python write them, or lists
        of a typed file. None takes columns called ``label:...``, or the one column that holds tags.
    label_sep : str or None, default=None
        What parts the tags of a cell; None finds out.
    id : str or None, default=None
        The column that names the rows; None takes the first that does, else the index of a frame.
    ignore : str or sequence of str, default=()
        Names or patterns of columns to leave out.
    text : {"drop", "tfidf"}, default="drop"
        Whether free text is left out, or becomes one feature for each of its most frequent words.
    roles : mapping of str to str or None, default=None
        Columns that are something else than guessed, such as ``{"zip": "category"}``.
    name : str or None, default=None
        What to call the table; None takes the file name.

    Returns
    -------
    Dataset
        Features and labels, and what became of every column.

    Raises
    ------
    DatasetError
        There is nothing to learn from, or a question that only the user can answer.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelsieve.io.tables import read_table
    >>> frame = pd.DataFrame({
    ...     "ticket": ["T1", "T2", "T3", "T4", "T5"],
    ...     "opened": ["2024-01-01", "2024-02-03", None, "2024-02-05", "2024-03-01"],
    ...     "channel": ["mail", "phone", "mail", "phone", "mail"],
    ...     "tags": ["billing;bug", "bug", "billing", "bug", ""],
    ... })
    >>> table = read_table(frame)
    >>> [(column.name, column.role) for column in table.columns]
    [('ticket', 'id'), ('opened', 'date'), ('channel', 'category'), ('tags', 'label')]
    >>> table.label_names, table.row_ids[:2], table.feature_names[-1]
    (('billing', 'bug'), ('T1', 'T2'), 'channel=phone')
    """
    is_path = isinstance(table, (str, os.PathLike))
    opened = open_file(Path(table)) if is_path else open_frame(table)
    source = str(table) if is_path else ""

    def fail(*parts: str | Mention) -> DatasetError:
        return DatasetError(f"{source}: " if is_path else "the table ", *parts, ".")

    if text not in TEXTS:
        raise fail(f"free text is one of {', '.join(TEXTS)}, got {text!r}; correct ", Mention("text"))
    require_rows(len(opened.frame), fail)
    given = _given_roles(opened.names, roles or {}, ignore, id, fail)
    understood, label_places = _understand(opened, labels, given, fail)
    found = read_labels(opened.columns, opened.names, label_places, label_sep, fail)
    names, id_place = opened.names, _naming_column(opened, understood, id, fail)
    features = encode(understood, names, len(opened.frame), text=text)
    if not features.names:
        raise fail(
            "has no column left to learn from beside labels, identifiers and what never changes; check ",
            Mention("labels"),
            " and ",
            Mention("role"),
        )
    feature_names = distinct(features.names, taken=found.names)
    columns = _columns(opened, understood, label_places, found, features, text)
    return Dataset(
        X=features.X,
        Y=found.Y,
        feature_names=tuple(feature_names),
        label_names=tuple(found.names),
        columns=columns,
        column_of=features.column_of,
        label_column_of=np.array(found.owners, dtype=np.intp),
        row_ids=_row_ids(opened, id_place),  # type: ignore[arg-type]  # None numbers the rows
        frame=opened.frame,
        values=_values(opened, understood, label_places),
        name=_name(opened) if name is None else name,
        source=source,
        id_column=None if id_place is None else names[id_place],
        notes=tuple(opened.notes),
        _origin=Origin(opened, tuple(found.tags), found.separators),
    )


def require_rows(n_rows: int, fail: Fail) -> None:
    """Refuse what is too little to learn anything from."""
    if n_rows < _LEAST_ROWS:
        raise fail(f"has {n_rows} row, and nothing can be learnt from fewer than {_LEAST_ROWS}; add rows")


def _given_roles(
    names: Sequence[str], roles: Mapping[str, str], ignore: str | Sequence[str], id: str | None, fail: Fail
) -> dict[int, str]:
    """The roles that somebody gave, by position."""
    given = {**roles, **({} if id is None else {id: "id"})}
    check_roles(given, names, fail)
    found = {names.index(name): role for name, role in given.items()}
    if ignore:
        found |= dict.fromkeys(named_columns(names, ignore, fail, "ignored"), "ignored")
    return found


def _understand(
    opened: Opened, labels: Any, roles: Mapping[int, str], fail: Fail
) -> tuple[dict[int, Understood], list[int]]:
    """Every column but labels with its role, and the positions of the labels."""
    names = opened.names
    said = [place for place, role in roles.items() if role == "label"]
    taken = {place for place, role in roles.items() if role in ("ignored", "id")}
    known = said or None
    if labels is not None:
        known = sorted({*said, *named_labels(names, labels, taken, fail)})
    elif not said:
        known = [place for place in declared_labels(names) if place not in taken] or None
    is_continental = opened.kind == "delimited" and opened.dialect.separator == ";"
    columns: dict[int, Understood] = {}
    for place, cells in enumerate(opened.columns):
        if known is not None and place in known:
            continue
        role = roles.get(place)
        if known is not None and names[place].startswith((LABEL_PREFIX, CANDIDATE_PREFIX)) and role is None:
            role = "ignored"  # the truth beside candidates, or the other way round
        columns[place] = understand(cells, names[place], fail, role=role, is_continental=is_continental)
    if known is None:
        free = {place: column for place, column in columns.items() if place not in roles}
        known = likely_labels(names, free, fail)
        for place in known:
            del columns[place]
    if not known:
        raise fail("got an empty list of label columns; name at least one")
    return columns, known


def _naming_column(
    opened: Opened, columns: Mapping[int, Understood], id: str | None, fail: Fail
) -> int | None:
    """The column that names the rows; one that was said must do so."""
    place = opened.names.index(id) if id is not None else _first_id(columns)
    if place is not None and id is not None:
        require_naming(_id_texts(opened.columns[place]), id, fail)
    return place


def _first_id(columns: Mapping[int, Understood]) -> int | None:
    for place, column in columns.items():
        if column.role == "id" and column.n_missing == 0 and len(set(column.values)) == len(column.values):
            return place
    return None


def _id_texts(cells: Any) -> list[str]:
    return [
        "" if text is None else ";".join(text) if isinstance(text, tuple) else text
        for text in texts_of(cells)
    ]


def _row_ids(opened: Opened, place: int | None) -> Sequence[Hashable] | None:
    """What the rows are called: by a column, by the index of a frame if that names them, else numbers."""
    if place is not None:
        return _id_texts(opened.columns[place])
    index = opened.frame.index
    is_default = isinstance(index, pandas().RangeIndex)
    return [*map(str, index)] if opened.kind == "frame" and index.is_unique and not is_default else None


def _columns(
    opened: Opened,
    understood: Mapping[int, Understood],
    label_places: Iterable[int],
    labels: Labels,
    features: Features,
    text: str,
) -> tuple[Column, ...]:
    """What became of every column, in the order of the table."""
    members: dict[int, list[int]] = {}
    for feature, place in enumerate(features.column_of.tolist()):
        members.setdefault(place, []).append(feature)
    twins = _equal_to_labels(features, labels)
    columns = {
        place: Column(opened.names[place], "label", labels.n_missing[place], labels.notes[place])
        for place in label_places
    }
    for place, column in understood.items():
        notes = [column.note] if column.note else []
        if column.role == "text" and text == "drop":
            notes.append("left out; text 'tfidf' makes features of its words")
        elif column.role not in ("id", "constant", "ignored") and place not in members:
            notes.append("nothing in it is frequent enough to be a feature")
        if place in twins:
            notes.append(f"equals the label '{twins[place]}': leave it out if it was made from it")
        columns[place] = Column(
            opened.names[place],
            column.role,
            column.n_missing,
            "; ".join(notes),
            tuple(members.get(place, ())),
        )
    return tuple(columns[place] for place in range(len(opened.names)))


def _equal_to_labels(features: Features, labels: Labels) -> dict[int, str]:
    """Columns with a feature that is the same as a label, or its opposite: the label they equal, by position."""
    known: dict[bytes, str] = {}
    for label, column in zip(labels.names, _by_column(labels.Y), strict=True):
        is_there = column != 0
        known.setdefault(np.packbits(is_there).tobytes(), label)
        known.setdefault(np.packbits(~is_there).tobytes(), label)
    found: dict[int, str] = {}
    for place, column in zip(features.column_of.tolist(), _by_column(features.X), strict=True):
        low = column.min()
        if ((column == low) | (column == column.max())).all():
            name = known.get(np.packbits(column != low).tobytes())
            if name is not None:
                found.setdefault(place, name)
    return found


def _by_column(matrix: Matrix) -> Iterable[np.ndarray]:
    if not is_sparse(matrix):
        return iter(np.asarray(matrix).T)
    columns = matrix.tocsc()
    return (columns[:, [index]].toarray().ravel() for index in range(columns.shape[1]))


def _values(opened: Opened, understood: Mapping[int, Understood], label_places: Iterable[int]) -> Any:
    """The table as understood."""
    columns = {place: column.values for place, column in understood.items()}
    for place in label_places:
        values = np.empty(len(opened.frame), dtype=object)
        values[:] = texts_of(opened.columns[place])
        columns[place] = values
    named = {name: columns[place] for place, name in enumerate(opened.names)}
    return pandas().DataFrame(named)


def _name(opened: Opened) -> str:
    return "" if opened.path is None else opened.path.name.partition(".")[0]
