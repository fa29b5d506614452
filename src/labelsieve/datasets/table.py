"""Named columns out of a file, and how they become features and labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from labelsieve.datasets.columns import CANDIDATE_PREFIX, LABEL_PREFIX, NOMINAL_PREFIX, truth_value
from labelsieve.datasets.dataset import Dataset, DatasetError, Matrix
from labelsieve.datasets.source import MAX_COLUMNS

# Filling in or one-hot coding beyond this many values needs more memory than the file can account for.
MAX_FILLED = 2**27

Fail = Callable[[str], DatasetError]


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
    matrices = [part.values for part in recoded]
    if any(sp.issparse(matrix) for matrix in matrices):
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
    values = sp.lil_array(part.values) if sp.issparse(part.values) else part.values.copy()
    codes = _column(part.values, column)
    present = ~np.isnan(codes)
    codes[present] = new_codes[codes[present].astype(int)]
    values[:, [column]] = codes[:, None]
    return replace(part, values=sp.csr_array(values) if sp.issparse(values) else values), merged


def _column(values: Matrix, column: int) -> np.ndarray:
    """One column as a dense copy."""
    return values[:, [column]].toarray().ravel() if sp.issparse(values) else values[:, column].copy()


def to_dataset(
    table: Table,
    labels: Sequence[int],
    candidates: Sequence[int],
    fail: Fail,
    *,
    ignored: Sequence[int] = (),
    nominal: str = "code",
    missing: str = "error",
    name: str = "",
    source: str = "",
) -> Dataset:
    """Split a table into features and labels.

    Parameters
    ----------
    labels, candidates, ignored : sequences of int
        Columns of true labels, of candidate labels (in the same order) and columns to leave out.
    """
    used = {*labels, *candidates, *ignored}
    features = [index for index in range(len(table.names)) if index not in used]
    if not features:
        raise fail("has no feature columns left beside its labels; check labels=")
    if labels and candidates and len(labels) != len(candidates):
        raise fail(
            f"needs as many candidate columns as labels, got {len(candidates)} for {len(labels)}; "
            "check candidates="
        )
    for index in features:
        if index in table.refused:
            raise table.refused[index]
    for index in sorted(table.free_text.difference(ignored)):
        raise fail(
            f"column {table.names[index]!r} holds text with too many different values to be categories; "
            f"leave it out with ignore={table.names[index]!r}"
        )
    X, feature_names, nominal_names = _features(table.keep(features), nominal, missing, fail)
    plain = [_without_prefix(table.names[index]) for index in (labels or candidates)]
    if labels and candidates:
        candidates = _paired(table, plain, candidates)
    return Dataset(
        X,
        _labels(table.keep(labels), fail) if labels else None,
        _labels(table.keep(candidates), fail) if candidates else None,
        tuple(feature_names),
        tuple(f"label{index}" for index in range(len(plain))) if table.headless else tuple(plain),
        name,
        source,
        tuple(nominal_names),
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


def _labels(table: Table, fail: Fail) -> Matrix:
    """The 0/1 matrix of label columns, whatever words the file uses for yes and no."""
    values = table.values
    stored = values.data if sp.issparse(values) else values
    if np.isnan(stored).any():
        raise fail("has missing values in its label columns; remove those rows or complete them")
    flipped: list[int] = []
    values = values.copy()
    for column, categories in table.categories.items():
        meaning = [truth_value(category) for category in categories]
        if None in meaning or len(categories) > 2:
            raise fail(
                f"label {table.names[column]!r} must be 0/1, -1/+1, no/yes or false/true, "
                f"got the categories {', '.join(categories[:5])!r}; recode it or check labels="
            )
        if meaning == [True, False]:
            flipped.append(column)
        elif len(meaning) == 1 or meaning[0] == meaning[1]:
            values = _constant_column(values, column, meaning, fail)
    if flipped:
        values = _flip(values, flipped, fail)
    numbers = values.data if sp.issparse(values) else values
    if not np.isin(numbers, (-1, 0, 1)).all():
        bad = float(numbers[~np.isin(numbers, (-1, 0, 1))].flat[0])
        raise fail(
            f"label columns must hold 0/1 or -1/+1, got {bad!r}; check labels= or threshold the values"
        )
    if sp.issparse(values):
        return sp.csr_array(values > 0).astype(np.uint8)
    return (values > 0).astype(np.uint8)


def _constant_column(values: Matrix, column: int, meaning: list[bool | None], fail: Fail) -> Matrix:
    """A label whose declared categories all mean the same."""
    if sp.issparse(values):
        values.data[values.indices == column] = 0
        return _flip(values, [column], fail) if meaning[0] else values
    values[:, column] = float(bool(meaning[0]))
    return values


def _flip(values: Matrix, columns: list[int], fail: Fail) -> Matrix:
    """Exchange 0 and 1 in columns whose first declared category is the positive one."""
    if not sp.issparse(values):
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
    return sp.csr_array(values @ sp.diags_array(rest, format="csr") + placed)


def _features(table: Table, nominal: str, missing: str, fail: Fail) -> tuple[Matrix, list[str], list[str]]:
    """Feature matrix, names, and the names of nominal features."""
    names = [_without_prefix(name) if name.startswith(NOMINAL_PREFIX) else name for name in table.names]
    marked = {index for index, name in enumerate(table.names) if name.startswith(NOMINAL_PREFIX)}
    for index in sorted(marked.difference(table.categories)):
        _check_codes(_column(table.values, index), table.names[index], fail)
    coded = sorted({*table.categories, *marked})
    values = fill_missing(table.values, missing, fail, names=table.names, coded=coded)
    if nominal == "code" or not coded:
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
    stored = values.data if sp.issparse(values) else values
    if stored.dtype.kind != "f":
        return values
    holes = np.isnan(stored)
    if not holes.any():
        return values
    where = (
        values.indices if sp.issparse(values) else np.broadcast_to(np.arange(values.shape[1]), values.shape)
    )
    columns = np.unique(where[holes])
    if missing == "error":
        first = names[columns[0]] if names and columns[0] < len(names) else f"x{columns[0]}"
        raise fail(
            f"has {int(holes.sum())} missing feature values, first in column {first!r}; "
            'read it with missing="mean" (most frequent category for nominal features) or missing="zero"'
        )
    values = values.copy()
    stored = values.data if sp.issparse(values) else values
    fill = np.zeros(values.shape[1])
    if missing == "mean":
        for column in columns:
            known = _column(values, column)
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
        column: len(table.categories.get(column, ())) or int(_column(values, column).max(initial=0)) + 1
        for column in coded
    }
    width = len(names) - len(coded) + sum(sizes.values())
    if width > MAX_COLUMNS or n_rows * (len(coded) if sp.issparse(values) else width) > MAX_FILLED:
        raise fail(
            f'has too many categories for one-hot coding ({width} columns); read it with nominal="code"'
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
            codes = _column(values, column).astype(int)
            shape = (n_rows, len(categories[column]))
            blocks.append(sp.csc_array((np.ones(n_rows), (np.arange(n_rows), codes)), shape=shape))
            own = [f"{names[column]}={category}" for category in categories[column]]
            new_names += own
            indicators += own
    X = sp.csr_array(sp.hstack([block for block in blocks if block.shape[1]], format="csr"))
    return (X if sp.issparse(values) else X.toarray()), new_names, indicators
