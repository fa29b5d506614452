"""Chosen columns of a table become features and labels: 0/1 labels, filled and coded features."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.binary import is_binary
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve.io.errors import Fail, Mention
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.matrices import Matrices, signs_to_binary
from labelsieve.io.readers.table import (
    CANDIDATE_PREFIX,
    LABEL_PREFIX,
    NOMINAL_PREFIX,
    Table,
    dense_column,
    truth_value,
)

# Filling in or one-hot coding beyond this many values needs more memory than the file can account for.
MAX_FILLED = 2**27
# Every indicator costs a name, and one forged code implies as many as it likes.
_MAX_INDICATORS = 2**18


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are: positions of features, labels and candidate labels, and the labels' names."""

    features: list[int]
    labels: list[int]
    candidates: list[int]
    label_names: tuple[str, ...]


def assign_roles(
    table: Table, labels: Sequence[int], candidates: Sequence[int], ignored: Sequence[int], fail: Fail
) -> Roles:
    """Say what every column of a table is, whether it has rows or not.

    Parameters
    ----------
    labels, candidates, ignored : sequences of int
        Columns of true labels, of candidate labels (in the same order) and columns to leave out.
    """
    used = {*labels, *candidates, *ignored}
    features = [index for index in range(len(table.names)) if index not in used]
    if not features:
        raise fail("has no feature columns left beside its labels; check ", Mention("labels"))
    if labels and candidates and len(labels) != len(candidates):
        raise fail(
            f"needs as many candidate columns as labels, got {len(candidates)} for {len(labels)}; check ",
            Mention("candidates"),
        )
    for index in features:
        if index in table.refused:
            raise table.refused[index]
    for index in sorted(table.free_text.difference(ignored)):
        raise fail(
            f"column {table.names[index]!r} holds text with too many different values to be categories; "
            "leave it out with ",
            Mention("ignore", table.names[index]),
        )
    plain = [_without_prefix(table.names[index]) for index in (labels or candidates)]
    if labels and candidates:
        candidates = _paired(table, plain, candidates)
    names = [f"label{index}" for index in range(len(plain))] if table.headless else plain
    return Roles(features, list(labels), list(candidates), tuple(names))


def split_columns(table: Table, roles: Roles, options: ReadOptions, fail: Fail) -> Matrices:
    """Split a table into features and labels."""
    X, feature_names, nominal = feature_matrix(table.keep(roles.features), options, fail)
    return Matrices(
        X,
        label_matrix(table.keep(roles.labels), fail) if roles.labels else None,
        label_matrix(table.keep(roles.candidates), fail) if roles.candidates else None,
        tuple(feature_names),
        roles.label_names,
        tuple(nominal),
    )


def _without_prefix(name: str) -> str:
    for prefix in (LABEL_PREFIX, CANDIDATE_PREFIX, NOMINAL_PREFIX):
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def _paired(table: Table, labels: list[str], candidates: Sequence[int]) -> Sequence[int]:
    """Candidate columns in label order where their names say so; otherwise as given."""
    by_label = {_without_prefix(table.names[index]): index for index in candidates}
    return [by_label[label] for label in labels] if set(by_label) == set(labels) else candidates


def label_matrix(table: Table, fail: Fail) -> Matrix:
    """The 0/1 matrix of label columns, whatever words the file uses for yes and no."""
    values = table.values
    stored = values.data if is_sparse(values) else values
    if np.isnan(stored).any():
        raise fail("has missing values in its label columns; remove those rows or complete them")
    flipped: list[int] = []
    values = values.copy()
    for column, categories in table.categories.items():
        meaning = [truth_value(category) for category in categories]
        if None in meaning or len(categories) > 2:
            raise fail(
                f"label {table.names[column]!r} must be 0/1, -1/+1, no/yes or false/true, "
                f"got the categories {', '.join(categories[:5])!r}; recode it or check ",
                Mention("labels"),
            )
        if meaning == [True, False]:
            flipped.append(column)
        elif len(meaning) == 1 or meaning[0] == meaning[1]:
            values = _constant_column(values, column, meaning, fail)
    if flipped:
        values = _flip(values, flipped, fail)
    numbers = values.data if is_sparse(values) else values
    if not is_binary(numbers, signed=True):
        bad = float(numbers[~np.isin(numbers, (-1, 0, 1))].flat[0])
        raise fail(
            f"label columns must hold 0/1 or -1/+1, got {bad!r}; check ",
            Mention("labels"),
            " or threshold the values",
        )
    return signs_to_binary(values)


def _constant_column(values: Matrix, column: int, meaning: list[bool | None], fail: Fail) -> Matrix:
    """A label whose declared categories all mean the same."""
    if is_sparse(values):
        values.data[values.indices == column] = 0
        return _flip(values, [column], fail) if meaning[0] else values
    values[:, column] = float(bool(meaning[0]))
    return values


def _flip(values: Matrix, columns: list[int], fail: Fail) -> Matrix:
    """Exchange 0 and 1 in columns whose first declared category is the positive one."""
    if not is_sparse(values):
        values[:, columns] = 1.0 - values[:, columns]
        return values
    n_rows, n_columns = values.shape
    if len(columns) * n_rows > MAX_FILLED:
        raise fail(
            "declares its positive category first in so many labels that they do not fit; declare {0,1}"
        )
    rest = np.ones(n_columns)
    rest[columns] = 0.0
    flipped = sp.csr_array(1 - values[:, columns].astype(np.int8).toarray())
    indices = np.asarray(columns)[flipped.indices]
    placed = sp.csr_array((flipped.data.astype(np.float64), indices, flipped.indptr), shape=values.shape)
    exchanged: Matrix = sp.csr_array(values @ sp.diags_array(rest, format="csr") + placed)
    return exchanged


def feature_matrix(table: Table, options: ReadOptions, fail: Fail) -> tuple[Matrix, list[str], list[str]]:
    """Feature matrix, names, and the names of nominal features."""
    names = [_without_prefix(name) if name.startswith(NOMINAL_PREFIX) else name for name in table.names]
    marked = {index for index, name in enumerate(table.names) if name.startswith(NOMINAL_PREFIX)}
    for index in sorted(marked.difference(table.categories)):
        _check_codes(dense_column(table.values, index), table.names[index], fail)
    coded = sorted({*table.categories, *marked})
    values = fill_missing(table.values, options.missing, fail, names=table.names, coded=coded)
    if options.nominal == "code" or not coded:
        return values, names, [names[index] for index in coded]
    return _one_hot(table, values, names, coded, fail)


def _check_codes(values: np.ndarray, name: str, fail: Fail) -> None:
    """Refuse what is no category code in a column that is marked as one of codes."""
    wrong = values[~(np.isnan(values) | ((values >= 0) & (values < np.inf) & (values == np.floor(values))))]
    if wrong.size:
        raise fail(
            f"column {name!r} must hold category codes 0, 1, 2, ..., got {float(wrong[0])!r}; "
            f"correct it, or take {NOMINAL_PREFIX!r} off its name"
        )


def has_missing(values: np.ndarray) -> bool:
    """Whether any value is NaN, found without a mask of all of them."""
    return bool(np.isnan(values.min(initial=0.0)))


def fill_missing(
    values: Matrix,
    missing: str,
    fail: Fail,
    *,
    names: Sequence[str] | None = None,
    coded: Collection[int] = (),
) -> Matrix:
    """Values with the missing ones filled in, or refused.

    Parameters
    ----------
    missing : {"error", "mean", "zero"}
        As in `read`.
    names : sequence of str or None, default=None
        Names of the columns, for the refusal; those without one have the default name.
    coded : collection of int
        Columns of category codes, which get the most frequent code instead of the mean.
    """
    stored = values.data if is_sparse(values) else values
    if stored.dtype.kind != "f" or not has_missing(stored):
        return values
    holes = np.isnan(stored)
    where = values.indices if is_sparse(values) else np.broadcast_to(np.arange(values.shape[1]), values.shape)
    columns = np.unique(where[holes])
    if missing == "error":
        first = names[columns[0]] if names and columns[0] < len(names) else f"x{columns[0]}"
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
    table: Table, values: Matrix, names: list[str], coded: list[int], fail: Fail
) -> tuple[Matrix, list[str], list[str]]:
    """Replace every nominal column by one 0/1 column a category, in place and named ``column=category``."""
    n_rows = values.shape[0]
    # Counted before any name is made: one forged code must not cost the memory of as many names.
    sizes = {
        column: len(table.categories.get(column, ())) or int(dense_column(values, column).max(initial=0)) + 1
        for column in coded
    }
    width = len(names) - len(coded) + sum(sizes.values())
    if (
        width > _MAX_INDICATORS + len(names)
        or n_rows * (len(coded) if is_sparse(values) else width) > MAX_FILLED
    ):
        raise fail(
            f"has too many categories for one-hot coding ({width} columns); read it with ",
            Mention("nominal", "code"),
        )
    categories = {
        column: table.categories.get(column) or tuple(map(str, range(size))) for column, size in sizes.items()
    }
    by_column = sp.csc_array(values)
    blocks, new_names, indicators = [], [], []
    done = 0
    for column in [*coded, len(names)]:
        blocks.append(by_column[:, done:column])
        new_names += names[done:column]
        done = column + 1
        if column < len(names):
            codes = dense_column(values, column).astype(int)
            shape = (n_rows, len(categories[column]))
            blocks.append(sp.csc_array((np.ones(n_rows), (np.arange(n_rows), codes)), shape=shape))
            own = [f"{names[column]}={category}" for category in categories[column]]
            new_names += own
            indicators += own
    X = sp.csr_array(sp.hstack([block for block in blocks if block.shape[1]], format="csr"))
    return (X if is_sparse(values) else X.toarray()), new_names, indicators
