"""Read the labels of a table from columns of yes and no, or from columns of tags."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._candidates import binarize_tags
from labelsieve._numerics.candidates import count_labels, fill_unknown, has_unknown
from labelsieve._numerics.sparse import Matrix
from labelsieve._text import printable
from labelsieve.io.column_choice import ColumnChoice, missing_labels_error, numbered_labels, plain_name
from labelsieve.io.column_types import TypedColumn, cell_strings, infer_column_type
from labelsieve.io.dataset import Column
from labelsieve.io.errors import Fail
from labelsieve.io.features import deduplicate_names, writable_name
from labelsieve.io.frames import RawTable
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source
from labelsieve.io.spellings import AMBIGUOUS, boolean_value, read_numbers, same_cell
from labelsieve.io.tags import guess_separator

_TAG_NAME = re.compile(
    r"(?:^|[^a-z])(?:tags?|labels?|targets?|genres?|topics?|symptoms?|categories|classes)$"
)
_SINGLE_NAME = re.compile(r"^(?:tags?|labels?|targets?|class(?:es)?|y)$")
_PREFIXED = re.compile(r"^(?:label|tag|target|y)[_:. ]", re.IGNORECASE)
# Maximum number of distinct tags, unless there are more than twice as many rows.
_MAX_TAGS = 100
# Columns with more distinct integers are measurements, not classes, unless each class has this many rows on average.
_MAX_CLASSES, _MANY_ROWS_PER_CLASS = 20, 20
# With more cells than this share that do not say yes or no, a column with 0 and 1 holds tags.
_MAX_INVALID = 0.1
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
    #: Positions of the columns whose tags form one set.
    merged: tuple[int, ...] = ()

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
    options: ReadOptions,
    fail: Fail,
    *,
    must_vary: bool = True,
    merged: Sequence[int] = (),
) -> Labels:
    """Read the label columns as one matrix. With `must_vary`, raise if all rows have the same labels.

    Unknown cells become NaN, and so do missing values of a column that says no in other rows. The tags of the `merged`
    columns form one set.
    """
    blocks: list[Any] = []
    names: list[str] = []
    origins: list[tuple[int, str | None]] = []
    separators: dict[int, str | None] = {}
    columns: dict[int, Column] = {}
    sets: list[tuple[int, Matrix, list[str]]] = []
    for position in positions:
        name, cells = table.names[position], table.cells(position)
        texts = cell_strings(cells)
        is_unknown = np.zeros(len(texts), dtype=bool)
        if options.unknown is not None:
            is_unknown = _unknown_cells(cells, texts, options.unknown)
        if is_unknown.any():
            cells = np.fromiter(cells, dtype=object, count=len(texts))
            cells[is_unknown] = None
            texts = cell_strings(cells)
        truth = None
        if position not in merged:
            truth = _boolean_labels(
                texts, name, fail, is_unknown, options.unknown, is_alone=len(positions) == 1
            )
        n_unknown = int(is_unknown.sum())
        n_missing = sum(text is None for text in texts) - n_unknown
        tags: list[Any] = [None]
        if truth is not None:
            matrix: Any = truth[:, None]
            new_names = [plain_name(name)]
            note = f"{n_missing} empty cells treated as no" if n_missing else ""
            note = "; ".join(filter(None, (_word_note(texts), note)))
        else:
            matrix, tags, separators[position], split = _tag_labels(cells, texts, name, options, fail)
            if n_unknown:
                holes = sp.csr_array(np.where(is_unknown, np.nan, 0.0)[:, None])
                matrix = sp.csr_array(matrix) + sp.kron(holes, np.ones((1, len(tags))), format="csr")
            # The same tag may mean different things in different columns.
            new_names = tags if len(positions) == 1 else [f"{name}={tag}" for tag in tags]
            note = f"{len(tags)} tags" + (f"; {n_missing} rows without tags" if n_missing else "")
            note += f"; {split} (if not: `label_sep`)" if split and options.label_sep is None else ""
            note += _case_note(tags)
        if n_unknown:
            note = "; ".join(filter(None, (note, f"{n_unknown} unknown")))
        columns[position] = Column(name, "label", n_missing, note)
        if position in merged:
            sets.append((position, matrix, tags))
            continue
        blocks.append(matrix)
        names += new_names
        origins += [(position, tag) for tag in tags]
    if sets:
        union, tags = _union_of_sets([(matrix, tags) for _, matrix, tags in sets])
        blocks.append(union)
        names += tags
        origins += [(sets[0][0], tag) for tag in tags]
    Y: Any = sp.hstack([sp.csr_array(block) for block in blocks], format="csr")
    Y = Y.astype(np.float64 if has_unknown(Y) else np.uint8)
    if Y.shape[0] * Y.shape[1] <= _MAX_DENSE_CELLS:
        Y = Y.toarray()
    sums, n_known = count_labels(Y)
    if must_vary and not ((sums > 0) & (sums < n_known)).any():
        got = "the same labels in every row" if sums.any() else "no labels in any row"
        raise fail(f"must contain rows with different labels, got {got}; check `labels`")
    if options.label_names is not None:
        names = _renamed(names, options.label_names, fail)
    names = deduplicate_names([writable_name(name) for name in names])
    if not table.has_header:
        names = numbered_labels(len(names))
    return Labels(Y, names, origins, separators, columns, tuple(merged))


def _union_of_sets(sets: Sequence[tuple[Matrix, list[str]]]) -> tuple[Matrix, list[str]]:
    """Join the tags of several columns. A tag is unknown in a row if it is unknown in a column and in no other."""
    union = sorted({tag for _, tags in sets for tag in tags})
    total: Any = sp.csr_array((sets[0][0].shape[0], len(union)))
    holes = total.copy()
    for matrix, tags in sets:
        place = sp.csr_array(
            (np.ones(len(tags)), (np.arange(len(tags)), np.searchsorted(union, tags))),
            (len(tags), len(union)),
        )
        matrix = sp.csr_array(matrix, dtype=np.float64)
        total += sp.csr_array(fill_unknown(matrix)) @ place
        matrix.data = np.isnan(matrix.data).astype(np.float64)
        holes += matrix @ place
    holes -= holes.multiply(total > 0)
    holes.eliminate_zeros()
    holes.data[:] = np.nan
    return sp.csr_array((total > 0).astype(np.float64) + holes), union


def _renamed(names: Sequence[str], given: Any, fail: Fail) -> list[str]:
    """Replace codes by names: those of a mapping, of a list in the order of the codes, or of a file with either."""
    new = _names_of_file(Source(given)) if isinstance(given, (str, os.PathLike)) else given
    if not isinstance(new, Mapping):
        words = list(map(str, new))
        numbers = {int(name) for name in names if name.isascii() and name.isdigit()}
        first = 1 if numbers and min(numbers) == 1 and max(numbers) == len(words) else 0
        new = {str(number): word for number, word in enumerate(words, start=first)}
    known = {str(code): str(word) for code, word in new.items()}
    if not known.keys() & set(names):
        raise fail(
            f"must have labels that `label_names` names, such as {next(iter(known), '')!r}, got {names[0]!r}; check "
            "both"
        )
    return [known.get(name, name) for name in names]


def _names_of_file(source: Source) -> Any:
    """Read names of labels: JSON, one name per line, or one code and name per line."""
    text = source.content.decode("utf-8-sig", errors="replace")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, (list, dict)) and found:
        return found
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = [re.fullmatch(r"(-?\d+)\s*[\t,;:= ]\s*(.+)", line) for line in lines]
    coded = [pair for pair in pairs if pair is not None]
    if len(coded) >= len(lines) - 1 and coded:  # the first line may be a header
        return {pair[1]: pair[2].strip("\"' ") for pair in coded}
    return lines


def _word_note(texts: Sequence[Any]) -> str:
    """Return a note about words for yes and no that may mean something else, such as t and y."""
    words = dict.fromkeys(text.strip().lower() for text in texts if text is not None)
    if not AMBIGUOUS.intersection(words):
        return ""
    return ", ".join(f"{printable(word)} is {'yes' if boolean_value(word) else 'no'}" for word in words)


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
    # Two words for yes and none for no, such as t and y, are tags.
    if len(known) == 1 and len({text.strip().lower() for text in found} & AMBIGUOUS) > 1:
        return None
    if odd:
        n_odd = sum(found.get(text, True) is None for text in texts)
        if not known or (is_alone and (len(known) < 2 or n_odd > _MAX_INVALID * len(texts))):
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
    cells: Any, texts: Sequence[Any], name: str, options: ReadOptions, fail: Fail
) -> tuple[Matrix, list[str], str | None, str]:
    """Convert a column of tags to one 0/1 column per tag. Return it with sorted tags, their separator and a note."""
    words = Counter(text for text in texts if isinstance(text, str))
    separator = options.label_sep or guess_separator(words, is_label=True)
    if not _holds_lists_of_codes(words, separator):
        numbers, _ = read_numbers(words)
        fraction = next((text for text, number in numbers.items() if not number.is_integer()), None)
        n_rows = sum(words[text] for text in numbers)
        is_measured = len(numbers) > max(_MAX_CLASSES, n_rows // _MANY_ROWS_PER_CLASS)
        if fraction is not None or (is_measured and options.label_names is None):
            shown = fraction or next(iter(numbers))
            raise fail(
                f"label {name!r} must contain 0 and 1, yes and no or tags, got {shown!r}; threshold it, or check "
                "`labels`",
            )
    column = infer_column_type(cells, name, fail, role="tags", separator=separator)
    rows = [tags or () for tags in column.values]
    counts = Counter(tag for tags in rows for tag in tags)
    if not counts:
        raise fail(f"label column {name!r} is empty; check `labels`")
    max_tags = max(_MAX_TAGS, len(rows) // 2)
    n_once = sum(count == 1 for count in counts.values())
    if (len(counts) > max_tags or n_once > max(_MAX_TAGS, len(counts) // 2)) and options.label_sep is None:
        once = next(tag for tag, count in counts.items() if count == 1 or len(counts) > max_tags)
        raise fail(
            f"label column {name!r} must contain labels that repeat, but {n_once:,} of its {len(counts):,} labels in "
            f"{len(rows):,} rows occur once, such as {once[:60]!r}; did you mean `label_sep`? Check `labels`, or pass "
            f"`label_sep={separator or ';'!r}` if both are right"
        )
    matrix, known = binarize_tags(rows)
    assert known is not None  # rows are tuples of tags
    return matrix, known, column.separator, column.note


def _holds_lists_of_codes(words: Mapping[str, int], separator: str | None) -> bool:
    """Return True if cells are lists of numbers rather than numbers with decimal commas."""
    if separator != ",":
        return separator is not None
    return {text.count(",") for text in words} != {1}
