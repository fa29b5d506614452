"""Read the labels of a table from columns of yes and no, or from columns of tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._candidates import binarize_tags
from labelsieve._numerics.candidates import count_labels, has_unknown
from labelsieve._numerics.sparse import Matrix
from labelsieve._text import printable
from labelsieve.io.column_choice import ColumnChoice, missing_labels_error, numbered_labels, plain_name
from labelsieve.io.column_types import TypedColumn, cell_strings, infer_column_type
from labelsieve.io.dataset import Column
from labelsieve.io.errors import Fail
from labelsieve.io.features import deduplicate_names, writable_name
from labelsieve.io.frames import RawTable
from labelsieve.io.spellings import boolean_value, read_numbers, same_cell

_TAG_NAME = re.compile(
    r"(?:^|[^a-z])(?:tags?|labels?|targets?|genres?|topics?|symptoms?|categories|classes)$"
)
_SINGLE_NAME = re.compile(r"^(?:tags?|labels?|targets?|class(?:es)?|y)$")
_PREFIXED = re.compile(r"^(?:label|tag|target|y)[_:. ]", re.IGNORECASE)
# Maximum number of distinct tags, unless there are more than twice as many rows.
_MAX_TAGS = 100
# Columns with more distinct integers are measurements, not classes.
_MAX_CLASSES = 20
_MAX_DENSE_CELLS = 2**24
# Number of groups and length of each tag in the note about case.
_GROUPS_SHOWN, _MAX_SHOWN = 3, 40


@dataclass(frozen=True)
class Labels:
    """Labels as a 0/1 matrix, NaN if unknown, with the columns they come from."""

    Y: Matrix
    names: list[str]
    #: Column position of every label (-1 for labels from elsewhere), and its tag, or None for yes and no.
    origins: list[tuple[int, str | None]]
    #: Separators between tags, by column position.
    separators: dict[int, str | None]
    columns: dict[int, Column]

    @classmethod
    def of_matrix(cls, Y: Matrix, names: Sequence[str]) -> Labels:
        """Wrap labels that are not columns of the table."""
        return cls(Y, list(names), [(-1, None)] * len(names), {}, {})

    def reindexed(self, names: Sequence[str]) -> Labels:
        """Reorder the labels by name. Names that do not exist give columns of zeros."""
        positions = {name: position for position, name in enumerate(self.names)}
        order = [
            positions.get(name, len(positions)) for name in names
        ]  # the last position is the column of zeros
        empty, origins = sp.csc_array((self.Y.shape[0], 1), dtype=np.uint8), [*self.origins, (-1, None)]
        return replace(
            self,
            Y=sp.csr_array(sp.hstack([self.Y, empty], format="csc")[:, order]),
            names=list(names),
            origins=[origins[position] for position in order],
        )


#: Function that reads labels from a second file, given its path and the number of rows.
ReadLabelFile = Callable[[Path, int], Labels]


def load_labels(
    choice: ColumnChoice,
    n_rows: int,
    of_columns: Callable[[Sequence[int]], Labels],
    read_file: ReadLabelFile,
    fail: Fail,
) -> tuple[Labels | None, Labels | None]:
    """Load true and candidate labels from columns or second files, with the same labels in the same order."""

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
                f"must have as many candidate columns as labels, got {len(noisy.names)} for {len(truth.names)}; check "
                "`candidates`"
            )
        return truth, replace(noisy, names=truth.names)
    names = [*truth.names, *(name for name in noisy.names if name not in set(truth.names))]
    return truth.reindexed(names), noisy.reindexed(names)


def infer_labels(names: Sequence[str], columns: Mapping[int, TypedColumn], fail: Fail) -> list[int]:
    """Infer the label columns from cells and names. Raise if the answer is ambiguous."""
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
    table: RawTable,
    positions: Sequence[int],
    separator: str | None,
    fail: Fail,
    *,
    must_vary: bool = True,
    unknown: str | None = None,
) -> Labels:
    """Read the label columns as one matrix. With `must_vary`, raise if all rows have the same labels.

    Cells with the text `unknown` become NaN, and so do missing values of a column that says no in other rows.
    """
    blocks: list[Any] = []
    names: list[str] = []
    origins: list[tuple[int, str | None]] = []
    separators: dict[int, str | None] = {}
    columns: dict[int, Column] = {}
    for position in positions:
        name, cells = table.names[position], table.cells(position)
        texts = cell_strings(cells)
        is_unknown = np.zeros(len(texts), dtype=bool)
        if unknown is not None:
            is_unknown = _unknown_cells(cells, texts, unknown)
        if is_unknown.any():
            cells = np.fromiter(cells, dtype=object, count=len(texts))
            cells[is_unknown] = None
            texts = cell_strings(cells)
        truth = _boolean_labels(texts, name, fail, is_unknown, unknown, is_alone=len(positions) == 1)
        n_unknown = int(is_unknown.sum())
        n_missing = sum(text is None for text in texts) - n_unknown
        tags: list[Any] = [None]
        if truth is not None:
            blocks.append(truth[:, None])
            names.append(plain_name(name))
            note = f"{n_missing} empty cells treated as no" if n_missing else ""
        else:
            matrix, tags, separators[position] = _tag_labels(cells, texts, name, separator, fail)
            if n_unknown:
                holes = sp.csr_array(np.where(is_unknown, np.nan, 0.0)[:, None])
                matrix = sp.csr_array(matrix) + sp.kron(holes, np.ones((1, len(tags))), format="csr")
            blocks.append(matrix)
            # The same tag may mean different things in different columns.
            names += tags if len(positions) == 1 else [f"{name}={tag}" for tag in tags]
            note = f"{len(tags)} tags" + (f"; {n_missing} rows without tags" if n_missing else "")
            note += _case_note(tags)
        if n_unknown:
            note = "; ".join(filter(None, (note, f"{n_unknown} unknown")))
        origins += [(position, tag) for tag in tags]
        columns[position] = Column(name, "label", n_missing, note)
    Y: Any = sp.hstack([sp.csr_array(block) for block in blocks], format="csr")
    Y = Y.astype(np.float64 if has_unknown(Y) else np.uint8)
    if Y.shape[0] * Y.shape[1] <= _MAX_DENSE_CELLS:
        Y = Y.toarray()
    sums, n_known = count_labels(Y)
    if must_vary and not ((sums > 0) & (sums < n_known)).any():
        got = "the same labels in every row" if sums.any() else "no labels in any row"
        raise fail(f"must contain rows with different labels, got {got}; check `labels`")
    names = deduplicate_names([writable_name(name) for name in names])
    if not table.has_header:
        names = numbered_labels(len(names))
    return Labels(Y, names, origins, separators, columns)


def _case_note(tags: Sequence[str]) -> str:
    """Return a note about tags that differ only in case."""
    alike: dict[str, list[str]] = {}
    for tag in tags:
        alike.setdefault(tag.casefold(), []).append(printable(tag)[:_MAX_SHOWN])
    groups = [", ".join(group) for group in alike.values() if len(group) > 1]
    if not groups:
        return ""
    shown = "; ".join([*groups[:_GROUPS_SHOWN], *("...",) * (len(groups) > _GROUPS_SHOWN)])
    return f"; tags that differ only in case ({shown}): edit the table if they mean the same"


def _unknown_cells(cells: Any, texts: Sequence[Any], unknown: str) -> np.ndarray:
    """Return a mask of the cells with the text `unknown`. A missing value that is not a text counts as empty."""
    pairs = zip(cells, texts, strict=True)
    written = (cell if isinstance(cell, str) else "" if text is None else text for cell, text in pairs)
    return np.array([same_cell(text, unknown) for text in written])


def _boolean_labels(
    texts: Sequence[Any],
    name: str,
    fail: Fail,
    is_unknown: np.ndarray,
    unknown: str | None,
    *,
    is_alone: bool,
) -> np.ndarray | None:
    """Convert a column of yes and no to 0/1, and NaN if unknown. Return None if it contains tags.

    With a text for `unknown`, missing values that do not mean no are unknown too, and are added to `is_unknown`.
    """
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
            f"label {name!r} must contain 0 and 1, yes and no or tags, got {odd[0][:40]!r} next to {example!r}; "
            "correct it, or check `labels`",
        )
    is_missing = np.array([text is None for text in texts])
    if is_missing.any() and known != {True}:
        if unknown is None:
            raise fail(
                f"label {name!r} has {int(is_missing.sum())} missing values; fill them in, remove those rows, or use "
                "`unknown=''` if they are unknown"
            )
        is_unknown |= is_missing
    values = np.array([found.get(text) or False for text in texts], dtype=np.uint8)
    return np.where(is_unknown, np.nan, values) if is_unknown.any() else values


def _tag_labels(
    cells: Any, texts: Sequence[Any], name: str, separator: str | None, fail: Fail
) -> tuple[Matrix, list[str], str | None]:
    """Convert a column of tags to one 0/1 column per tag. Return it with the sorted tags and their separator."""
    numbers, _ = read_numbers(dict.fromkeys(text for text in texts if isinstance(text, str)))
    fraction = next((text for text, number in numbers.items() if not number.is_integer()), None)
    if fraction is not None or len(numbers) > _MAX_CLASSES:
        shown = fraction or next(iter(numbers))
        raise fail(
            f"label {name!r} must contain 0 and 1, yes and no or tags, got {shown!r}; threshold it, or check `labels`",
        )
    column = infer_column_type(cells, name, fail, role="tags", separator=separator)
    rows = [tags or () for tags in column.values]
    n_distinct = len({tag for tags in rows for tag in tags})
    if not n_distinct:
        raise fail(f"label column {name!r} is empty; check `labels`")
    max_tags = max(_MAX_TAGS, len(rows) // 2)
    if n_distinct > max_tags:
        raise fail(
            f"label column {name!r} must contain at most {max_tags} distinct labels in {len(rows)} rows, "
            f"got {n_distinct}; check `labels` or `label_sep`"
        )
    matrix, known = binarize_tags(rows)
    assert known is not None  # rows are tuples of tags
    return matrix, known, column.separator
