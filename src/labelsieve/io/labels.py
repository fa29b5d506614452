"""The labels of a table: columns of yes and no, or columns of tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._candidates import binarize_tags
from labelsieve._numerics.sparse import Matrix
from labelsieve._text import printable
from labelsieve.io.column_choice import ColumnChoice, missing_labels_error, numbered_labels, plain_name
from labelsieve.io.column_types import TypedColumn, infer_column_type, texts_of
from labelsieve.io.dataset import Column
from labelsieve.io.errors import Fail
from labelsieve.io.features import deduplicate, writable_name
from labelsieve.io.frames import RawTable
from labelsieve.io.spellings import boolean_value, read_numbers

_TAG_NAME = re.compile(
    r"(?:^|[^a-z])(?:tags?|labels?|targets?|genres?|topics?|symptoms?|categories|classes)$"
)
_SINGLE_NAME = re.compile(r"^(?:tags?|labels?|targets?|class(?:es)?|y)$")
_PREFIXED = re.compile(r"^(?:label|tag|target|y)[_:. ]", re.IGNORECASE)
# More different tags than this, and than half of the rows, are not labels.
_MAX_TAGS = 100
# More different whole numbers than this measure something.
_MAX_CLASSES = 20
_MAX_DENSE_CELLS = 2**24
# Of tags that differ only in case.
_GROUPS_SHOWN, _MAX_SHOWN = 3, 40


@dataclass(frozen=True)
class Labels:
    """A 0/1 matrix of labels and the columns they come from."""

    Y: Matrix
    names: list[str]
    #: Position of the column of every label, -1 if it is not one of the table, and its tag there; None for yes and no.
    origins: list[tuple[int, str | None]]
    #: Separators of the tags of a column, by its position.
    separators: dict[int, str | None]
    columns: dict[int, Column]

    @classmethod
    def of_matrix(cls, Y: Matrix, names: Sequence[str]) -> Labels:
        """Take labels that are not columns of the table."""
        return cls(Y, list(names), [(-1, None)] * len(names), {}, {})

    def reindexed(self, names: Sequence[str]) -> Labels:
        """Return the labels with these names, in this order; no row has a new one."""
        positions = {name: position for position, name in enumerate(self.names)}
        order = [positions.get(name, len(positions)) for name in names]  # the last one is a column of zeros
        empty, origins = sp.csc_array((self.Y.shape[0], 1), dtype=np.uint8), [*self.origins, (-1, None)]
        return replace(
            self,
            Y=sp.csr_array(sp.hstack([self.Y, empty], format="csc")[:, order]),
            names=list(names),
            origins=[origins[position] for position in order],
        )


#: Reads labels from a second file, given its path and the number of rows.
ReadLabelFile = Callable[[Path, int], Labels]


def load_labels(
    choice: ColumnChoice,
    n_rows: int,
    of_columns: Callable[[Sequence[int]], Labels],
    read_file: ReadLabelFile,
    fail: Fail,
) -> tuple[Labels | None, Labels | None]:
    """Return truth and candidates, from columns or second files, with the same labels in the same order."""

    def read(file: Path | None, positions: Sequence[int]) -> Labels | None:
        if file is not None:
            return read_file(file, n_rows)
        return of_columns(positions) if positions else None

    truth = read(choice.label_file, choice.labels or ())
    noisy = read(choice.candidate_file, choice.candidates)
    if truth is None or noisy is None or truth.names == noisy.names:
        return truth, noisy
    if not (truth.separators or noisy.separators):
        if len(truth.names) != len(noisy.names):
            raise fail(
                f"needs as many candidate columns as labels, got {len(noisy.names)} for {len(truth.names)}; check "
                "`candidates`"
            )
        return truth, replace(noisy, names=truth.names)
    names = [*truth.names, *(name for name in noisy.names if name not in set(truth.names))]
    return truth.reindexed(names), noisy.reindexed(names)


def infer_labels(names: Sequence[str], columns: Mapping[int, TypedColumn], fail: Fail) -> list[int]:
    """Return the columns that are labels by content and name; raise if several could be."""
    lists = [position for position, column in columns.items() if column.role == "tags"]
    called = [position for position in lists if _TAG_NAME.search(names[position].lower())]
    single = [position for position in columns if _SINGLE_NAME.match(names[position].lower())]
    prefixed = [
        position
        for position, column in columns.items()
        if column.role == "boolean" and _PREFIXED.match(names[position])
    ]
    for found in (lists, called):
        if len(found) == 1:
            return found
    if not lists and (prefixed or len(single) == 1):
        return prefixed or single
    raise missing_labels_error([names[position] for position in lists], fail)


def read_labels(
    table: RawTable, positions: Sequence[int], separator: str | None, fail: Fail, *, must_vary: bool = True
) -> Labels:
    """Make one label matrix of all label columns; with `must_vary`, some rows must differ in their labels."""
    blocks: list[Any] = []
    names: list[str] = []
    origins: list[tuple[int, str | None]] = []
    separators: dict[int, str | None] = {}
    columns: dict[int, Column] = {}
    for position in positions:
        name, cells = table.names[position], table.cells(position)
        texts = texts_of(cells)
        n_missing = sum(text is None for text in texts)
        truth = _boolean_labels(texts, name, fail, is_alone=len(positions) == 1)
        own_tags: list[Any] = [None]
        if truth is not None:
            blocks.append(truth[:, None])
            names.append(plain_name(name))
            note = f"{n_missing} empty cells mean no" if n_missing else ""
        else:
            matrix, own_tags, separators[position] = _tag_labels(cells, texts, name, separator, fail)
            blocks.append(matrix)
            # Tags of one column speak for themselves; of several, the same word may mean different things.
            names += own_tags if len(positions) == 1 else [f"{name}={tag}" for tag in own_tags]
            note = f"{len(own_tags)} tags" + (f"; {n_missing} rows have none" if n_missing else "")
            note += _case_note(own_tags)
        origins += [(position, tag) for tag in own_tags]
        columns[position] = Column(name, "label", n_missing, note)
    Y: Any = sp.hstack([sp.csr_array(block) for block in blocks], format="csr", dtype=np.uint8)
    if Y.shape[0] * Y.shape[1] <= _MAX_DENSE_CELLS:
        Y = Y.toarray()
    sums = np.asarray(Y.sum(axis=0, dtype=np.int64)).ravel()
    if must_vary and not ((sums > 0) & (sums < Y.shape[0])).any():
        said = "every row has the same labels" if sums.any() else "no row has a label"
        raise fail(f"{said}, so there is nothing to tell apart; check `labels`")
    names = deduplicate([writable_name(name) for name in names])
    if not table.has_header:
        names = numbered_labels(len(names))
    return Labels(Y, names, origins, separators, columns)


def _case_note(tags: Sequence[str]) -> str:
    """Return a note that lists the first tags that differ only in case."""
    alike: dict[str, list[str]] = {}
    for tag in tags:
        alike.setdefault(tag.casefold(), []).append(printable(tag)[:_MAX_SHOWN])
    groups = [", ".join(group) for group in alike.values() if len(group) > 1]
    if not groups:
        return ""
    shown = "; ".join([*groups[:_GROUPS_SHOWN], *("...",) * (len(groups) > _GROUPS_SHOWN)])
    return f"; tags that differ only in case are different labels: {shown}; make them one in the table if they are one"


def _boolean_labels(texts: Sequence[Any], name: str, fail: Fail, *, is_alone: bool) -> np.ndarray | None:
    """Return 0/1 for a column of yes and no; None if it holds tags."""
    if any(isinstance(text, tuple) for text in texts):
        return None
    found = {text: boolean_value(text) for text in dict.fromkeys(texts) if text is not None}
    odd = [text for text, truth in found.items() if truth is None]
    known = {truth for truth in found.values() if truth is not None}
    if odd:
        if not known or (is_alone and len(known) < 2):
            return None
        example = next(text for text, truth in found.items() if truth is not None)
        raise fail(
            f"label {name!r} must hold 0 and 1, yes and no or tags, got {odd[0][:40]!r} next to {example!r}; correct "
            "it, or check `labels`",
        )
    missing = sum(text is None for text in texts)
    if missing and known != {True}:
        raise fail(
            f"label {name!r} has {missing} missing values, which are neither yes nor no; fill them in, or remove those "
            "rows"
        )
    return np.array([found.get(text) or False for text in texts], dtype=np.uint8)


def _tag_labels(
    cells: Any, texts: Sequence[Any], name: str, separator: str | None, fail: Fail
) -> tuple[Matrix, list[str], str | None]:
    """Return one 0/1 column per tag, the tags in alphabetical order, and their separator."""
    numbers, _ = read_numbers(dict.fromkeys(text for text in texts if isinstance(text, str)))
    fraction = next((text for text, number in numbers.items() if not number.is_integer()), None)
    if fraction is not None or len(numbers) > _MAX_CLASSES:
        shown = fraction or next(iter(numbers))
        raise fail(
            f"label {name!r} must hold 0 and 1, yes and no or tags, got {shown!r}; threshold it, or check `labels`",
        )
    column = infer_column_type(cells, name, fail, role="tags", separator=separator)
    rows = [tags or () for tags in column.values]
    n_different = len({tag for tags in rows for tag in tags})
    if not n_different:
        raise fail(f"label column {name!r} holds nothing; check `labels`")
    if n_different > max(_MAX_TAGS, len(rows) // 2):
        raise fail(
            f"column {name!r} holds {n_different} different labels in {len(rows)} rows, too many to learn from; check "
            "`labels` or `label_sep`"
        )
    matrix, known = binarize_tags(rows)
    assert known is not None  # there are some
    return matrix, known, column.separator
