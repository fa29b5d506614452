"""Named columns out of a file or several, text coded as categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve.io.errors import DatasetError, Fail
from labelsieve.io.readers.source import Source

# Files written by this package say in a column's name what it is, so reading them needs no arguments.
LABEL_PREFIX, CANDIDATE_PREFIX, NOMINAL_PREFIX = "label:", "candidate:", "nominal:"
MISSING = {"", "?", "na", "n/a", "nan", "null", "none"}
#: Words for yes and no, in small letters.
TRUE = frozenset({"1", "1.0", "true", "yes", "t", "y"})
FALSE = frozenset({"0", "0.0", "false", "no", "f", "n"})
_SIGNS = {"+1": True, "-1": False, "-1.0": False}
# A text column with more categories than this is an identifier or free text, not a feature.
MAX_CATEGORIES = 1000


@dataclass(frozen=True)
class Table:
    """The columns of one file; a nominal column holds the position of its category, a missing value is NaN.

    Attributes
    ----------
    names : list of str
        Column names in file order.
    values : ndarray or csr_array of shape (n_rows, n_columns)
        Values of all columns.
    categories : dict of int to tuple of str
        Categories of the nominal columns, by column position.
    declared_labels : list of str or None
        Labels the file itself declares.
    headless : bool
        Whether the names were made up.
    free_text : frozenset of int
        Columns of text with too many different values to be categories; their values are not kept.
    refused : dict of int to DatasetError
        What to say when one of these columns of text is to be a feature.
    """

    names: list[str]
    values: Matrix
    categories: dict[int, tuple[str, ...]] = field(default_factory=dict)
    declared_labels: list[str] | None = None
    headless: bool = False
    free_text: frozenset[int] = frozenset()
    refused: dict[int, DatasetError] = field(default_factory=dict)

    def keep(self, positions: Sequence[int]) -> Table:
        """The table of the columns at `positions`, in that order."""
        kept = {new: self.categories[old] for new, old in enumerate(positions) if old in self.categories}
        names = [self.names[old] for old in positions]
        text = frozenset(new for new, old in enumerate(positions) if old in self.free_text)
        refused = {new: self.refused[old] for new, old in enumerate(positions) if old in self.refused}
        return replace(
            self,
            names=names,
            values=self.values[:, list(positions)],
            categories=kept,
            free_text=text,
            refused=refused,
        )


def stack(parts: Sequence[Table], fail: Fail) -> Table:
    """Put the rows of several tables with the same columns under one another."""
    first = parts[0]
    if len(parts) == 1:
        return first
    recoded = [first]
    categories = dict(first.categories)
    for part in parts[1:]:
        if sorted(part.names) != sorted(first.names):
            odd = sorted(set(part.names) ^ set(first.names)) or [f"{len(part.names)} columns"]
            raise fail(
                f"all parts must have the same columns, but {odd[0]!r} is not in every part; check the files"
            )
        if part.names != first.names:
            position = {name: index for index, name in enumerate(part.names)}
            part = part.keep([position[name] for name in first.names])
        odd_columns = set(part.categories) ^ set(first.categories)
        odd_columns -= part.free_text | first.free_text
        if odd_columns:
            column = min(odd_columns)
            raise (
                part.refused.get(column)
                or first.refused.get(column)
                or fail(
                    f"column {first.names[column]!r} is nominal in one part and numeric in another; convert one"
                )
            )
        for column, own in part.categories.items():
            if own != categories.setdefault(column, own):
                part, categories[column] = _recode(part, column, categories[column])
        recoded.append(part)
    matrices: list[Any] = [part.values for part in recoded]
    if any(is_sparse(matrix) for matrix in matrices):
        values = sp.vstack([sp.csr_array(matrix) for matrix in matrices], format="csr")
    else:
        values = np.vstack(matrices)
    free_text = frozenset().union(*(part.free_text for part in recoded))
    refusals = {column: refusal for part in recoded for column, refusal in part.refused.items()}
    # What differs in every row of one short part may be categories over all.
    refused = {
        column: refusal
        for column, refusal in refusals.items()
        if column in free_text or all(column in part.refused for part in recoded)
    }
    return replace(first, values=values, categories=categories, free_text=free_text, refused=refused)


def _recode(part: Table, column: int, known: tuple[str, ...]) -> tuple[Table, tuple[str, ...]]:
    """Give a nominal column the codes of `known` categories, extended by its own new ones."""
    own = part.categories[column]
    merged = known + tuple(category for category in own if category not in known)
    position = {category: code for code, category in enumerate(merged)}
    new_codes = np.array([position[category] for category in own], dtype=np.float64)
    values = sp.lil_array(part.values) if is_sparse(part.values) else part.values.copy()
    codes = dense_column(part.values, column)
    present = ~np.isnan(codes)
    codes[present] = new_codes[codes[present].astype(int)]
    values[:, [column]] = codes[:, None]
    return replace(part, values=sp.csr_array(values) if is_sparse(values) else values), merged


def dense_column(values: Matrix, column: int) -> np.ndarray:
    """One column as a dense copy."""
    return dense(values[:, [column]]).ravel()


def check_names(names: list[str], source: Source, number: int | None = None) -> None:
    """Refuse names that are empty or stand twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen or not name:
            raise source.error(
                f"needs column names that all differ, got {name!r} twice or empty; rename it", line=number
            )
        seen.add(name)


def truth_value(word: str) -> bool | None:
    """What a word of a label says, or None if it is neither yes nor no.

    Examples
    --------
    >>> truth_value("Yes"), truth_value("-1"), truth_value("perhaps")
    (True, False, None)
    """
    word = word.strip().lower()
    return True if word in TRUE else False if word in FALSE else _SIGNS.get(word)


def column_place(names: Sequence[str], column: str, source: Source) -> int:
    """Position of a column that must be there."""
    if column not in names:
        listed = ", ".join(map(repr, [*names[:5], *("...",) * (len(names) > 5)]))
        raise source.error(f"has no column {column[:80]!r}; its columns are {listed}")
    return list(names).index(column)


def coded(column: Iterable[str], codes: dict[str, int]) -> list[float]:
    """Codes in order of appearance, extending `codes`; NaN for missing."""
    fields = (field.strip() for field in column)
    return [
        np.nan if field.lower() in MISSING else float(codes.setdefault(field, len(codes))) for field in fields
    ]


def in_order(values: np.ndarray, categories: dict[int, dict[str, int]]) -> dict[int, tuple[str, ...]]:
    """Recode the text columns so that codes follow alphabetical order, whatever the order of rows."""
    ordered = {}
    for index, codes in categories.items():
        ordered[index] = tuple(sorted(codes))
        new_code = np.empty(len(codes))
        for code, category in enumerate(ordered[index]):
            new_code[codes[category]] = code
        present = ~np.isnan(values[:, index])
        values[present, index] = new_code[values[present, index].astype(int)]
    return ordered
