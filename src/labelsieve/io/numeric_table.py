"""Columns of numbers and category codes, as ARFF declares them, and the features and labels made from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.binary import is_binary
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve.io.errors import Fail, Mention
from labelsieve.io.spellings import truth_value

# Larger matrices are not filled in or one-hot encoded.
_MOST_FILLED = 2**27
# Every one-hot feature costs a name.
_MOST_INDICATORS = 2**18


@dataclass(frozen=True)
class NumericTable:
    """The columns of a file; a nominal column holds the position of its category, a missing value is NaN.

    Attributes
    ----------
    names : list of str
        Column names in file order.
    values : ndarray or csr_array of shape (n_rows, n_columns)
        Values of all columns.
    categories : dict of int to tuple of str
        Categories of the nominal columns, by position.
    declared_labels : list of str or None
        Labels the file itself declares.
    row_ids : list of str or None
        Names of the rows.
    is_headless : bool
        Whether the names were made up.
    """

    names: list[str]
    values: Matrix
    categories: dict[int, tuple[str, ...]] = field(default_factory=dict)
    declared_labels: list[str] | None = None
    row_ids: list[str] | None = None
    is_headless: bool = False

    def keep(self, positions: Sequence[int]) -> NumericTable:
        """Return the columns at `positions`, in that order."""
        categories = {
            new: self.categories[old] for new, old in enumerate(positions) if old in self.categories
        }
        names = [self.names[old] for old in positions]
        return replace(self, names=names, values=self.values[:, list(positions)], categories=categories)


def stack(parts: Sequence[NumericTable], fail: Fail) -> NumericTable:
    """Put the rows of tables with the same columns below one another."""
    first = parts[0]
    if len(parts) == 1:
        return first
    categories = dict(first.categories)
    matrices: list[Any] = []
    for part in parts:
        if sorted(part.names) != sorted(first.names):
            odd = sorted(set(part.names) ^ set(first.names)) or [f"{len(part.names)} columns"]
            raise fail(
                f"all parts must have the same columns, but {odd[0]!r} is not in every part; check the files"
            )
        if part.names != first.names:
            part = part.keep([part.names.index(name) for name in first.names])
        if part.categories.keys() != first.categories.keys():
            column = min(part.categories.keys() ^ first.categories.keys())
            raise fail(
                f"column {first.names[column]!r} is nominal in one part and numeric in another; convert one"
            )
        for column, own in part.categories.items():
            if own != categories[column]:
                part, categories[column] = _recode(part, column, categories[column])
        matrices.append(part.values)
    if any(map(is_sparse, matrices)):
        values: Matrix = sp.csr_array(sp.vstack([sp.csr_array(matrix) for matrix in matrices], format="csr"))
    else:
        values = np.vstack(matrices)
    row_ids = None if first.row_ids is None else [name for part in parts for name in part.row_ids or ()]
    return replace(first, values=values, categories=categories, row_ids=row_ids)


def _recode(part: NumericTable, column: int, known: tuple[str, ...]) -> tuple[NumericTable, tuple[str, ...]]:
    """Give a nominal column the codes of `known` categories, extended by its own new ones."""
    own = part.categories[column]
    merged = known + tuple(category for category in own if category not in known)
    new_codes = np.array([merged.index(category) for category in own], dtype=np.float64)
    values = sp.lil_array(part.values) if is_sparse(part.values) else part.values.copy()
    codes = dense_column(part.values, column)
    present = ~np.isnan(codes)
    codes[present] = new_codes[codes[present].astype(int)]
    values[:, [column]] = codes[:, None]
    return replace(part, values=sp.csr_array(values) if is_sparse(values) else values), merged


def dense_column(values: Matrix, column: int) -> np.ndarray:
    """Return one column as a dense copy."""
    return dense(values[:, [column]]).ravel()


def label_matrix(table: NumericTable, fail: Fail) -> Matrix:
    """Return the 0/1 matrix of a table of labels, whatever words the file uses for yes and no."""
    values = table.values
    stored = values.data if is_sparse(values) else values
    if np.isnan(stored).any():
        raise fail("has missing values in its label columns; remove those rows or complete them")
    meanings = {}
    for column, categories in table.categories.items():
        meaning = [truth_value(category) for category in categories]
        if None in meaning:
            raise fail(
                f"label {table.names[column]!r} must be 0/1, -1/+1, no/yes or false/true, "
                f"got the categories {', '.join(categories[:5])!r}; recode it or check ",
                Mention("labels"),
            )
        if meaning != [False, True]:
            meanings[column] = np.array(meaning, dtype=np.float64)
    if meanings:
        if values.shape[0] * values.shape[1] > _MOST_FILLED:
            raise fail("declares labels other than {0,1}, which do not fit into memory; declare {0,1}")
        decoded = np.array(dense(values))
        for column, meaning_of in meanings.items():
            decoded[:, column] = meaning_of[decoded[:, column].astype(int)]
        values = sp.csr_array(decoded) if is_sparse(values) else decoded
    numbers = values.data if is_sparse(values) else values
    if not is_binary(numbers, signed=True):
        bad = float(numbers[~np.isin(numbers, (-1, 0, 1))].flat[0])
        raise fail(
            f"label columns must hold 0/1 or -1/+1, got {bad!r}; check ",
            Mention("labels"),
            " or threshold the values",
        )
    return signs_to_binary(values)


def signs_to_binary(matrix: Any) -> Matrix:
    """Return positive values as 1 and all others as 0."""
    positive: Matrix = sp.csr_array(matrix > 0) if sp.issparse(matrix) else matrix > 0
    return positive.astype(np.uint8)


def feature_matrix(
    table: NumericTable, nominal: str | None, missing: str | None, fail: Fail
) -> tuple[Matrix, list[str], list[str]]:
    """Return the feature matrix, the names, and the names of nominal features."""
    coded = sorted(table.categories)
    values = fill_missing(table.values, missing, fail, names=table.names, coded=coded)
    if nominal != "onehot" or not coded:
        return values, table.names, [table.names[place] for place in coded]
    return _one_hot(table, values, coded, fail)


def fill_missing(
    values: Matrix,
    missing: str | None,
    fail: Fail,
    *,
    names: Sequence[str] | None = None,
    coded: Collection[int] = (),
) -> Matrix:
    """Return the values with missing ones filled in, or raise.

    Parameters
    ----------
    missing : {"error", "mean", "zero"} or None
        As in `read`; None raises like "error".
    names : sequence of str or None, default=None
        Names of the columns.
    coded : collection of int
        Columns of category codes, which get the most frequent code instead of the mean.
    """
    stored = values.data if is_sparse(values) else values
    # The minimum is NaN if any value is, and needs no mask of all of them.
    if stored.dtype.kind != "f" or not np.isnan(stored.min(initial=0.0)):
        return values
    holes = np.isnan(stored)
    where = values.indices if is_sparse(values) else np.broadcast_to(np.arange(values.shape[1]), values.shape)
    columns = np.unique(where[holes])
    if missing in (None, "error"):
        first = names[columns[0]] if names else f"x{columns[0]}"
        raise fail(
            f"has {int(holes.sum())} missing feature values, first in column {first!r}; read it with ",
            Mention("missing", "mean"),
            " (most frequent category for nominal features) or ",
            Mention("missing", "zero"),
        )
    values = values.copy()
    stored = values.data if is_sparse(values) else values
    fill = np.zeros(values.shape[1])
    if missing == "mean":
        for column in columns:
            known = dense_column(values, column)
            known = known[~np.isnan(known)]
            if known.size and column in coded:
                codes, counts = np.unique(known, return_counts=True)
                fill[column] = codes[counts.argmax()]
            elif known.size:
                fill[column] = known.mean()
    stored[holes] = fill[where[holes]]
    return values


def _one_hot(
    table: NumericTable, values: Matrix, coded: list[int], fail: Fail
) -> tuple[Matrix, list[str], list[str]]:
    """Replace every nominal column by one 0/1 column per category, in place and named ``column=category``."""
    n_rows = values.shape[0]
    n_indicators = sum(map(len, table.categories.values()))
    width = len(table.names) - len(coded) + n_indicators
    if n_indicators > _MOST_INDICATORS or (not is_sparse(values) and n_rows * width > _MOST_FILLED):
        raise fail(
            f"has too many categories for one-hot encoding ({width} columns); read it with ",
            Mention("nominal", "code"),
        )
    by_column = sp.csc_array(values)
    blocks, names, indicators = [], [], []
    for place, name in enumerate(table.names):
        if place not in table.categories:
            blocks.append(by_column[:, [place]])
            names.append(name)
            continue
        codes = dense_column(values, place).astype(int)
        shape = (n_rows, len(table.categories[place]))
        blocks.append(sp.csc_array((np.ones(n_rows), (np.arange(n_rows), codes)), shape=shape))
        own = [f"{name}={category}" for category in table.categories[place]]
        names += own
        indicators += own
    X = sp.csr_array(sp.hstack(blocks, format="csr"))
    return (X if is_sparse(values) else X.toarray()), names, indicators
