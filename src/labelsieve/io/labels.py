"""The labels of a table: columns of yes and no, or columns of tags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._candidates import binarize_tags
from labelsieve._numerics.typing import Matrix
from labelsieve._text import printable
from labelsieve.io.column_choice import no_labels_said, plain_name
from labelsieve.io.column_types import TypedColumn, infer_column_type, texts_of
from labelsieve.io.errors import Fail, Mention
from labelsieve.io.features import distinct, writable_name
from labelsieve.io.frames import RawTable
from labelsieve.io.spellings import read_numbers, truth_value

_MARKS = {"x": True, "✓": True, "✔": True, "✗": False, "✘": False}
_TAG_NAME = re.compile(
    r"(?:^|[^a-z])(?:tags?|labels?|targets?|genres?|topics?|symptoms?|categories|classes)$"
)
_SINGLE_NAME = re.compile(r"^(?:tags?|labels?|targets?|class(?:es)?|y)$")
_PREFIXED = re.compile(r"^(?:label|tag|target|y)[_:. ]", re.IGNORECASE)
# More different tags than this, and than half of the rows, are no labels.
_MOST_TAGS = 100
# More different whole numbers than this measure something.
_MOST_CLASSES = 20
_MOST_DENSE = 2**24
# Of tags that differ only in case.
_ALIKE_SHOWN, _LONGEST_SHOWN = 3, 40


@dataclass(frozen=True)
class Labels:
    """Candidate labels, and what each of their columns was read as.

    Attributes
    ----------
    Y : ndarray of uint8 or csr_array of shape (n_rows, n_labels)
        1 where a label is a candidate of a row.
    names : list of str
        Names of the labels.
    owners : list of int
        Position of the column of every label.
    tags : list of str or None
        The tag of every label in its column; None where the column is one of yes and no.
    separators : dict of int to str or None
        What parts the tags of the columns, by position.
    notes : dict of int to str
        What should be said about the columns, by position.
    n_missing : dict of int to int
        Empty cells of the columns, by position.
    """

    Y: Matrix
    names: list[str]
    owners: list[int]
    tags: list[str | None]
    separators: dict[int, str | None]
    notes: dict[int, str]
    n_missing: dict[int, int]

    @classmethod
    def of_matrix(cls, Y: Matrix, names: Sequence[str]) -> Labels:
        """Take labels that are not columns of the table."""
        return cls(Y, list(names), [-1] * len(names), [None] * len(names), {}, {}, {})

    def numbered(self) -> Labels:
        """Return the labels of a table without names."""
        return replace(self, names=[f"label{place}" for place in range(len(self.names))])

    def reindexed(self, names: Sequence[str]) -> Labels:
        """Return the labels with these names, in this order; a new one is a label of no row."""
        places = {name: place for place, name in enumerate(self.names)}
        Y = sp.csc_array(self.Y)
        empty = sp.csc_array((Y.shape[0], 1), dtype=np.uint8)
        blocks = [Y[:, [places[name]]] if name in places else empty for name in names]
        return replace(
            self,
            Y=sp.csr_array(sp.hstack(blocks, format="csr")),
            names=list(names),
            owners=[self.owners[places[name]] if name in places else -1 for name in names],
            tags=[self.tags[places[name]] if name in places else None for name in names],
        )


def likely_labels(names: Sequence[str], columns: Mapping[int, TypedColumn], fail: Fail) -> list[int]:
    """Positions of the columns that are labels by what they hold and how they are called; refuses to toss a coin."""
    lists = [place for place, column in columns.items() if column.role == "tags"]
    called = [place for place in lists if _TAG_NAME.search(names[place].lower())]
    single = [place for place in columns if _SINGLE_NAME.match(names[place].lower())]
    prefixed = [
        place
        for place, column in columns.items()
        if column.role == "boolean" and _PREFIXED.match(names[place])
    ]
    for found in (lists, called):
        if len(found) == 1:
            return found
    if not lists and (prefixed or len(single) == 1):
        return prefixed or single
    raise no_labels_said([names[place] for place in lists], fail)


def read_labels(
    table: RawTable, positions: Sequence[int], separator: str | None, fail: Fail, *, must_vary: bool = True
) -> Labels:
    """Make one label matrix of all label columns; with `must_vary`, some rows must differ in their labels."""
    blocks: list[Any] = []
    found_names: list[str] = []
    owners: list[int] = []
    known_tags: list[str | None] = []
    separators: dict[int, str | None] = {}
    notes: dict[int, str] = {}
    n_missing: dict[int, int] = {}
    for position in positions:
        name, cells = table.names[position], table.cells(position)
        texts = texts_of(cells)
        n_missing[position] = sum(text is None for text in texts)
        own = _truth(texts, name, fail, is_alone=len(positions) == 1)
        if own is not None:
            values, notes[position] = own
            blocks.append(sp.csr_array(values[:, None]))
            found_names.append(plain_name(name))
            owners.append(position)
            known_tags.append(None)
            continue
        matrix, tags, separators[position] = _tags(cells, texts, name, separator, fail)
        blocks.append(sp.csr_array(matrix))
        # Tags of one column speak for themselves; of several, the same word may mean different things.
        found_names += tags if len(positions) == 1 else [f"{name}={tag}" for tag in tags]
        owners += [position] * len(tags)
        known_tags += tags
        notes[position] = f"{len(tags)} tags"
        if n_missing[position]:
            notes[position] += f"; {n_missing[position]} rows have none"
        alike = _differing_in_case(tags)
        if alike:
            notes[position] += (
                f"; tags that differ only in case are different labels: {alike}; make them one in the table if they "
                "are one"
            )
    Y: Any = sp.csr_array(sp.hstack(blocks, format="csr", dtype=np.uint8))
    if Y.shape[0] * Y.shape[1] <= _MOST_DENSE:
        Y = Y.toarray()
    if must_vary and Y.shape[0] < 2:
        raise fail("has 1 row, and nothing can be learnt from fewer than 2; add rows")
    sums = np.asarray(Y.sum(axis=0, dtype=np.int64)).ravel()
    if must_vary and not ((sums > 0) & (sums < Y.shape[0])).any():
        said = "every row has the same labels" if sums.any() else "no row has a label"
        raise fail(f"{said}, so there is nothing to tell apart; check ", Mention("labels"))
    names_shown = distinct([writable_name(name) for name in found_names])
    return Labels(Y, names_shown, owners, known_tags, separators, notes, n_missing)


def _differing_in_case(tags: Sequence[str]) -> str:
    """Name the tags that are the same in small letters, the first few of them; nothing if there are none.

    Examples
    --------
    >>> _differing_in_case(["JAZZ", "Rock", "jazz", "pop", "rock"])
    'JAZZ, jazz; Rock, rock'
    """
    alike: dict[str, list[str]] = {}
    for tag in tags:
        alike.setdefault(tag.casefold(), []).append(printable(tag)[:_LONGEST_SHOWN])
    groups = [", ".join(group) for group in alike.values() if len(group) > 1]
    return "; ".join([*groups[:_ALIKE_SHOWN], *("...",) * (len(groups) > _ALIKE_SHOWN)])


def _truth(texts: Sequence[Any], name: str, fail: Fail, *, is_alone: bool) -> tuple[np.ndarray, str] | None:
    """0/1 of a column of yes and no in any of the usual words; None if it holds tags."""
    if any(isinstance(text, tuple) for text in texts):
        return None
    meaning: dict[str | None, bool] = {}
    odd = []
    for text in dict.fromkeys(text for text in texts if text is not None):
        truth = label_value(text)
        if truth is None:
            odd.append(text)
        else:
            meaning[text] = truth
    if odd:
        if not meaning or (is_alone and len(set(meaning.values())) < 2):
            return None
        raise fail(
            f"label {name!r} must hold 0 and 1, yes and no or tags, got {odd[0][:40]!r} beside "
            f"{next(iter(meaning))!r}; correct it, or check ",
            Mention("labels"),
        )
    missing = sum(text is None for text in texts)
    values = np.array([meaning.get(text, False) for text in texts], dtype=np.uint8)
    if not missing:
        return values, ""
    if set(meaning.values()) == {True}:
        return values, f"{missing} empty cells mean no"
    raise fail(
        f"label {name!r} has {missing} missing values, which are neither yes nor no; fill them in, or remove those rows"
    )


def label_value(text: str) -> bool | None:
    """What a word or mark of a label column says, or None if it is neither yes nor no."""
    known = _MARKS.get(text.lower(), truth_value(text))
    if known is not None:
        return known
    try:
        # 1.000000000000000000e+00 is what numpy.savetxt writes.
        return {0.0: False, 1.0: True}.get(float(text))
    except ValueError:
        return None


def _tags(
    cells: Any, texts: Sequence[Any], name: str, separator: str | None, fail: Fail
) -> tuple[Matrix, list[str], str | None]:
    """One 0/1 column a tag, in the order of the alphabet, the tags, and what parts them."""
    numbers = read_numbers(dict.fromkeys(text for text in texts if isinstance(text, str)))
    fraction = next((text for text, number in numbers.meaning.items() if not number.is_integer()), None)
    if fraction is not None or len(numbers.meaning) > _MOST_CLASSES:
        shown = fraction or next(iter(numbers.meaning))
        raise fail(
            f"label {name!r} must hold 0 and 1, yes and no or tags, got {shown!r}; threshold it, or check ",
            Mention("labels"),
        )
    column = infer_column_type(cells, name, fail, role="tags", separator=separator)
    rows = [() if tags is None else tags for tags in column.values]
    n_different = len({tag for tags in rows for tag in tags})
    if not n_different:
        raise fail(f"label column {name!r} holds nothing; check ", Mention("labels"))
    if n_different > max(_MOST_TAGS, len(rows) // 2):
        raise fail(
            f"column {name!r} holds {n_different} different labels in {len(rows)} rows, too many to learn from; check ",
            Mention("labels"),
            " or ",
            Mention("label_sep"),
        )
    matrix, known = binarize_tags(rows)
    assert known is not None  # there are some
    return matrix, known, column.separator
