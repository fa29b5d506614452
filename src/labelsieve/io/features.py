"""Make features of columns of every role: one for a number, several for a date, one per category, tag or word.

scikit-learn's transformers do the work. skrub's `TableVectorizer` brings its own inference of column types, names of
text features that say nothing, no indicator of missing values, and a dense result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder

from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve._text import printable
from labelsieve.io.column_choice import plain_name
from labelsieve.io.column_types import TypedColumn
from labelsieve.io.dataset import is_writable
from labelsieve.io.errors import Fail, Mention
from labelsieve.io.options import ReadOptions

#: At most so many features of one column, the most frequent categories, tags or words.
MOST_CATEGORIES, MOST_WORDS = 50, 300
# Where so many rows have no value, that itself may mean something.
_LEAST_MISSING = 5
# More values than this are not held as zeros.
_MOST_DENSE = 2**25
_MISSING, _OTHER = "(missing)", "(other)"
_DAY = 86_400


@dataclass(frozen=True)
class Features:
    """Features and the columns they come from, in the order of the columns.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Finite numbers.
    names : list of str
        Their names, all different.
    column_of : ndarray of int of shape (n_features,)
        Position of the column of each.
    nominal : tuple of str
        Names of the features that hold category codes.
    """

    X: Matrix
    names: list[str]
    column_of: np.ndarray
    nominal: tuple[str, ...] = ()


@dataclass
class _Blocks:
    """Features as they come, several at a time."""

    matrices: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    #: Whether each feature stays although it is constant.
    are_kept: list[bool] = field(default_factory=list)

    def add(
        self, matrix: Any, names: Iterable[str], positions: Iterable[int], *, is_kept: bool = False
    ) -> None:
        self.matrices.append(matrix)
        self.names += names
        self.positions += positions
        self.are_kept += [is_kept] * (len(self.names) - len(self.are_kept))


def encode(
    columns: Mapping[int, TypedColumn],
    names: Sequence[str],
    n_rows: int,
    options: ReadOptions,
    coded: Collection[int],
    fail: Fail,
) -> Features:
    """Make features of the columns at the given positions.

    Parameters
    ----------
    columns : mapping of int to TypedColumn
        Columns by position; those of a role without features are passed over.
    names : sequence of str
        Names of all columns.
    options : ReadOptions
        What becomes of text and missing values.
    coded : collection of int
        Categories that become one feature of codes instead of one feature per category.
    """
    by_role: dict[str, list[int]] = {}
    for position, column in columns.items():
        by_role.setdefault(column.role, []).append(position)
    missing = options.missing
    if missing == "error":
        _require_complete(columns, names, fail)
    blocks = _Blocks()
    _add_numbers(blocks, columns, names, by_role, missing)
    _add_truth(blocks, columns, names, by_role.get("boolean", []), missing)
    if missing is None:
        _add_missing(blocks, columns, names, by_role)
    categories = by_role.get("category", [])
    _add_categories(blocks, columns, names, [position for position in categories if position not in coded])
    nominal = [position for position in categories if position in coded]
    for position in nominal:
        codes = _codes(columns[position], missing)
        blocks.add(codes[:, None], [plain_name(names[position])], [position], is_kept=True)
    for position in by_role.get("tags", []):
        _add_tags(blocks, columns[position], names[position], position)
    if options.text == "tfidf":
        for position in by_role.get("text", []):
            _add_words(blocks, columns[position], names[position], position)
    return _assembled(blocks, n_rows, {plain_name(names[position]) for position in nominal})


def _require_complete(columns: Mapping[int, TypedColumn], names: Sequence[str], fail: Fail) -> None:
    """Raise if a value of a feature is missing."""
    for position, column in columns.items():
        if column.role in ("number", "date", "boolean", "category") and column.n_missing:
            raise fail(
                f"column {names[position]!r} has {column.n_missing} missing values; complete them, or read it with ",
                Mention("missing", "mean"),
                " or ",
                Mention("missing", "zero"),
            )


def _add_numbers(
    blocks: _Blocks,
    columns: Mapping[int, TypedColumn],
    names: Sequence[str],
    by_role: Mapping[str, list[int]],
    missing: str | None,
) -> None:
    """Add numbers and the parts of dates; a missing one becomes the median unless `missing` says otherwise."""
    numbers = by_role.get("number", [])
    strategy = missing or "median"
    if numbers:
        values = np.column_stack([columns[position].values for position in numbers])
        blocks.add(
            _imputed(values, strategy), (names[position] for position in numbers), numbers, is_kept=True
        )
    for position in by_role.get("date", []):
        parts = _date_parts(columns[position].values)
        values = np.column_stack([part for _, part in parts])
        shown = (f"{names[position]}: {part}" for part, _ in parts)
        blocks.add(_imputed(values, strategy), shown, [position] * len(parts))


def _imputed(values: np.ndarray, strategy: str) -> np.ndarray:
    if not np.isnan(values).any():
        return values
    if strategy == "zero":
        return np.nan_to_num(values, nan=0.0)
    # Means and medians of numbers near the largest ones overflow; such a column is scaled by its user or not at all.
    with np.errstate(over="ignore"):
        return np.asarray(SimpleImputer(strategy=strategy, keep_empty_features=True).fit_transform(values))


def _date_parts(moments: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Time itself, and where in the year, the week and the day it is; circles as two features.

    Examples
    --------
    >>> parts = dict(_date_parts(np.array(["1789-07-14T12:00", "NaT"], dtype="datetime64[s]")))
    >>> int(parts["weekday"][0]), round(parts["hour, cosine"][0])  # a Tuesday, at noon
    (1, -1)
    """
    missing = np.isnat(moments)
    seconds = moments.astype(np.int64)
    days = np.floor_divide(seconds, _DAY)
    months = moments.astype("datetime64[M]").astype(np.int64) % 12
    weekday = (days + 3) % 7  # the first of January 1970 was a Thursday, Monday is 0
    year_angle, day_angle = 2 * np.pi * months / 12, 2 * np.pi * (seconds - days * _DAY) / _DAY
    parts: dict[str, np.ndarray] = {
        "days since 1970": seconds / _DAY,
        "month, sine": np.sin(year_angle),
        "month, cosine": np.cos(year_angle),
        "weekday": weekday,
        "weekend": weekday >= 5,
        "hour, sine": np.sin(day_angle),
        "hour, cosine": np.cos(day_angle),
    }
    return [(part, np.where(missing, np.nan, values.astype(np.float64))) for part, values in parts.items()]


def _add_truth(
    blocks: _Blocks,
    columns: Mapping[int, TypedColumn],
    names: Sequence[str],
    positions: Sequence[int],
    missing: str | None,
) -> None:
    """Add yes and no as 1 and 0, the more frequent one if it is missing."""
    if positions:
        values = np.column_stack([columns[position].values for position in positions])
        filled = _imputed(values, "zero" if missing == "zero" else "most_frequent")
        blocks.add(filled, (names[position] for position in positions), positions, is_kept=True)


def _codes(column: TypedColumn, missing: str | None) -> np.ndarray:
    """Return the position of each category in the declared or alphabetical order."""
    known = column.categories or sorted({text for text in column.values if text is not None})
    code_of = {category: code for code, category in enumerate(known)}
    codes = [np.nan if text is None else code_of[text] for text in column.values]
    return _imputed(np.array(codes, float)[:, None], "zero" if missing == "zero" else "most_frequent").ravel()


def _add_missing(
    blocks: _Blocks,
    columns: Mapping[int, TypedColumn],
    names: Sequence[str],
    by_role: Mapping[str, list[int]],
) -> None:
    """Say where numbers, dates and truth values are missing, if that is often so."""
    for role in ("number", "date", "boolean"):
        for position in by_role.get(role, []):
            values = columns[position].values
            missing = np.isnat(values) if role == "date" else np.isnan(values)
            if _LEAST_MISSING <= missing.sum() <= len(missing) - _LEAST_MISSING:
                blocks.add(missing[:, None].astype(np.float64), [f"{names[position]}: missing"], [position])


def _least_frequency(n_rows: int) -> int:
    """How many rows must have a category for it to be a feature: what one row has says nothing about others."""
    return max(1, min(2, n_rows // 5), n_rows // 200)


def _add_categories(
    blocks: _Blocks, columns: Mapping[int, TypedColumn], names: Sequence[str], positions: Sequence[int]
) -> None:
    """One 0/1 feature a category, rare ones together; a single one where there are two categories."""
    if not positions:
        return
    cells = np.column_stack([columns[position].values for position in positions])
    cells[cells == None] = _MISSING  # noqa: E711  # element by element
    encoder = OneHotEncoder(
        drop="if_binary",
        min_frequency=_least_frequency(len(cells)),
        max_categories=MOST_CATEGORIES,
        handle_unknown="ignore",
        dtype=np.float64,
        # The position comes first, so that every feature says whose it is.
        feature_name_combiner=lambda position, category: f"{position}\t{category}",
    )
    matrix = encoder.fit_transform(cells)
    parted = (str(name).split("\t", 1) for name in encoder.get_feature_names_out([str(p) for p in positions]))
    owners = [(int(position), category) for position, category in parted]
    shown = (f"{names[at]}={_OTHER if kind == 'infrequent_sklearn' else kind}" for at, kind in owners)
    blocks.add(matrix, shown, (at for at, _ in owners))


def _add_tags(blocks: _Blocks, column: TypedColumn, name: str, position: int) -> None:
    """One 0/1 feature a tag that is frequent enough."""
    cells = [() if tags is None else tags for tags in column.values]
    counts = Counter(tag for tags in cells for tag in tags)
    least = _least_frequency(len(cells))
    kept = [tag for tag, count in counts.most_common(MOST_CATEGORIES) if count >= least]
    if kept:
        known = set(kept)
        binarizer = MultiLabelBinarizer(classes=kept, sparse_output=True)
        matrix = binarizer.fit_transform([[tag for tag in tags if tag in known] for tags in cells])
        blocks.add(matrix.astype(np.float64), (f"{name}={tag}" for tag in kept), [position] * len(kept))


def _add_words(blocks: _Blocks, column: TypedColumn, name: str, position: int) -> None:
    """One feature a word, weighed by how seldom it is."""
    texts = ["" if text is None else text for text in column.values]
    vectorizer = TfidfVectorizer(
        min_df=max(2, _least_frequency(len(texts))),
        max_features=MOST_WORDS,
        sublinear_tf=True,
        dtype=np.float64,
    )
    try:
        matrix = vectorizer.fit_transform(texts)
    except ValueError:  # no word comes twice
        return
    words = vectorizer.get_feature_names_out()
    blocks.add(matrix, (f"{name}: {word}" for word in words), [position] * len(words))


def _assembled(blocks: _Blocks, n_rows: int, nominal: set[str]) -> Features:
    """Put all features in the order of the columns; encoded ones must vary."""
    if not blocks.matrices:
        return Features(np.empty((n_rows, 0)), [], np.empty(0, dtype=np.intp))
    positions = np.array(blocks.positions, dtype=np.intp)
    if n_rows * len(positions) <= _MOST_DENSE:
        X: Any = np.hstack([dense(block) for block in blocks.matrices])
        varies = (X[:1] != X).any(axis=0)
    else:
        X = sp.csc_array(sp.hstack([sp.csc_array(block) for block in blocks.matrices], format="csc"))
        highest, lowest = (dense(end(axis=0)).ravel() for end in (X.max, X.min))
        varies = highest != lowest
    order = np.argsort(positions, kind="stable")
    order = order[(varies | blocks.are_kept)[order]]
    X = X[:, order]
    if is_sparse(X):
        dense_enough = X.nnz > 0.25 * X.shape[0] * X.shape[1]
        X = X.toarray() if dense_enough else sp.csr_array(X)
    names = distinct([writable_name(blocks.names[place]) for place in order])
    return Features(X, names, positions[order], tuple(name for name in names if name in nominal))


def writable_name(name: str) -> str:
    """Return a name with escapes for the letters that a `Dataset` does not take."""
    return name if is_writable(name) else printable(name)


def distinct(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Names of which the second and later of equal ones, or of those that are taken, have a number.

    Examples
    --------
    >>> distinct(["a", "b", "a"], taken=["b"])
    ['a', 'b (2)', 'a (2)']
    """
    seen = set(taken)
    reserved = seen.union(names)
    found = []
    for name in names:
        new, number = name, 2
        while new in seen or (new != name and new in reserved):
            new, number = f"{name} ({number})", number + 1
        seen.add(new)
        found.append(new)
    return found
