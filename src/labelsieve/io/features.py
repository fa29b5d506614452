"""Encode columns as features: one for a number, several for a date, one per category, tag or word.

This uses transformers of scikit-learn. skrub's `TableVectorizer` would infer column types again, has opaque
names for text features and no indicators of missing values, and returns dense features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MultiLabelBinarizer, OneHotEncoder

from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve._text import printable
from labelsieve.io.column_choice import plain_name
from labelsieve.io.column_types import TypedColumn
from labelsieve.io.dataset import is_writable
from labelsieve.io.errors import Fail
from labelsieve.io.options import ReadOptions

#: Maximum number of features per column. The most frequent categories, tags or words are kept.
MAX_CATEGORIES, MAX_WORDS = 50, 1000
# Words of long texts are counted up to this length, and pairs of words unless there is more text than this.
_MAX_TEXT_LENGTH, _MAX_PAIRED_LENGTH = 20_000, 20_000_000
# Minimum number of missing values for an indicator feature.
_MIN_MISSING = 5
# Larger tables, and those with free text, are assembled as sparse matrices.
_MAX_DENSE_CELLS = 2**25
_MAX_SPARSE_DENSITY = 0.25
# A mean of this many standard deviations is far from 0.
_FAR = 100
_DAY = 86_400


@dataclass(frozen=True)
class Features:
    """Finite features in column order, with the position of the column that each one encodes."""

    X: Matrix
    names: list[str]
    column_of: np.ndarray
    #: Names of the features that contain category codes.
    nominal: tuple[str, ...]


class _Encoded(NamedTuple):
    """Features that encode one column, or part of it."""

    matrix: Any
    names: Sequence[str]
    #: True if constant features are kept.
    is_kept: bool = False
    is_nominal: bool = False


def encode(
    columns: Mapping[int, TypedColumn],
    names: Sequence[str],
    options: ReadOptions,
    fail: Fail,
    taken: Iterable[str] = (),
) -> Features:
    """Encode columns as features. `columns` are keyed by position, and `names` are the names of all columns.

    Features are renamed if their name is `taken`.
    """
    found = [
        (position, part)
        for position in sorted(columns)
        for part in _encode_column(columns[position], names[position], options, fail)
    ]
    owners = [(position, part, name) for position, part in found for name in part.names]
    nothing = "must contain features, got only labels, identifiers and constants; check `labels` and `roles`"
    if not owners:
        raise fail(nothing)
    n_rows = found[0][1].matrix.shape[0]
    has_text = any(columns[position].role == "text" for position, _ in found)
    if n_rows * len(owners) <= _MAX_DENSE_CELLS and not has_text:
        X: Any = np.hstack([dense(part.matrix) for _, part in found])
        varies = (X[:1] != X).any(axis=0)
    else:
        X = sp.csc_array(sp.hstack([sp.csc_array(_near_zero(part.matrix)) for _, part in found], format="csc"))
        varies = np.not_equal(*(dense(end(axis=0)).ravel() for end in (X.max, X.min)))
    kept = np.flatnonzero(varies | [part.is_kept for _, part, _ in owners])
    if not kept.size:
        raise fail(nothing)
    X = X[:, kept]
    if is_sparse(X):
        is_dense = X.nnz > _MAX_SPARSE_DENSITY * X.shape[0] * X.shape[1]
        X = X.toarray() if is_dense else sp.csr_array(X)
    owners = [owners[position] for position in kept]
    new = deduplicate_names([writable_name(name) for *_, name in owners], taken)
    nominal = tuple(name for name, (_, part, _) in zip(new, owners, strict=True) if part.is_nominal)
    return Features(X, new, np.array([position for position, *_ in owners], dtype=np.intp), nominal)


def _near_zero(matrix: Any) -> Any:
    """Shift numbers that hardly differ, such as points in time, to mean 0. Sparse features are not centred later."""
    if is_sparse(matrix):
        return matrix
    mean, deviation = matrix.mean(axis=0), matrix.std(axis=0)
    return matrix - np.where(np.abs(mean) > _FAR * deviation, mean, 0.0)


def _encode_column(column: TypedColumn, name: str, options: ReadOptions, fail: Fail) -> Iterator[_Encoded]:
    """Yield the features of one column, if its role has any."""
    role, values, missing, n_missing = column.role, column.values, options.missing, column.n_missing
    if missing == "error" and n_missing and role in ("number", "date", "boolean", "category"):
        raise fail(
            f"column {name!r} has {n_missing} missing values; fill them in, or read it with `missing='mean'` or "
            "`missing='zero'`"
        )
    strategy = missing or "median"
    if role in ("boolean", "category"):
        strategy = "zero" if missing == "zero" else "most_frequent"
    if role == "number" and column.units is not None:
        yield from _encode_units(values, column.units, name, strategy)
    elif role in ("number", "boolean"):
        yield _Encoded(impute(values[:, None], strategy), [name], is_kept=True)
    elif role == "vector":
        yield _encode_vectors(values, name)
    elif role == "date":
        parts = _date_parts(values)
        matrix = impute(np.column_stack([*parts.values()]), strategy)
        yield _Encoded(matrix, [f"{name}: {part}" for part in parts])
    elif role == "category" and (
        options.nominal == "code" or (options.nominal is None and column.categories is not None)
    ):
        known = column.categories or sorted({text for text in values if text is not None})
        code_of = {None: np.nan, **{category: code for code, category in enumerate(known)}}
        codes = np.array([code_of[text] for text in values], float)[:, None]
        yield _Encoded(impute(codes, strategy), [plain_name(name)], is_kept=True, is_nominal=True)
    elif role == "category":
        yield _encode_categories(values, name)
    elif role == "tags":
        yield from _encode_tags(values, name)
    elif role == "text" and options.text != "drop":
        yield from _encode_words(values, name)
    is_often_missing = _MIN_MISSING <= n_missing <= len(values) - _MIN_MISSING
    if (
        role in ("number", "date", "boolean", "tags", "text", "vector")
        and missing is None
        and is_often_missing
    ):
        if role == "text" and options.text == "drop":
            return
        yield _Encoded(pd.isna(values)[:, None].astype(np.float64), [f"{name} is missing"])


def impute(values: Any, strategy: str) -> Any:
    """Fill in missing values with the strategy "zero", "mean", "median" or "most_frequent"."""
    if not np.isnan(values.data if is_sparse(values) else values).any():
        return values
    if strategy == "zero":
        strategy = "constant"
    imputer = SimpleImputer(strategy=strategy, fill_value=0.0, keep_empty_features=True)
    # Means and medians of huge numbers may overflow. The result is then rejected as not finite.
    with np.errstate(over="ignore"):
        return imputer.fit_transform(values)


def _encode_units(values: np.ndarray, units: np.ndarray, name: str, strategy: str) -> Iterator[_Encoded]:
    """Encode numbers with different units: one feature per unit, and 0/1 features for the units."""
    for unit in dict.fromkeys(unit for unit in units if unit is not None):
        has_unit = units == unit
        yield _Encoded(impute(np.where(has_unit, values, np.nan)[:, None], strategy), [f"{name} in {unit}"])
        yield _Encoded(has_unit[:, None].astype(np.float64), [f"{name} is in {unit}"])


def _encode_vectors(values: np.ndarray, name: str) -> _Encoded:
    """Encode lists of numbers as one feature per number. A missing list has the mean of the others."""
    known = np.array([vector is not None for vector in values])
    matrix = np.full((len(values), len(values[known.argmax()])), np.nan)
    matrix[known] = np.stack(values[known])
    return _Encoded(impute(matrix, "mean"), [f"{name}[{number}]" for number in range(matrix.shape[1])])


def _date_parts(dates: np.ndarray) -> dict[str, np.ndarray]:
    """Split dates into time, month, weekday and hour. Month and hour are encoded as sine and cosine."""
    seconds = dates.astype(np.int64)
    days = np.floor_divide(seconds, _DAY)
    months = dates.astype("datetime64[M]").astype(np.int64) % 12
    weekday = (days + 3) % 7  # 1 January 1970 was a Thursday, and Monday is 0
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
    return {part: np.where(np.isnat(dates), np.nan, values * 1.0) for part, values in parts.items()}


def _min_frequency(n_rows: int) -> int:
    """Return the minimum number of rows with a category for it to become a feature."""
    return max(1, min(2, n_rows // 5), n_rows // 200)


def _encode_categories(values: np.ndarray, name: str) -> _Encoded:
    """Encode categories as 0/1 features. Two categories give one feature, and rare ones share a feature."""
    encoder = OneHotEncoder(
        drop="if_binary",
        min_frequency=_min_frequency(len(values)),
        max_categories=MAX_CATEGORIES,
        handle_unknown="ignore",
        dtype=np.float64,
        feature_name_combiner=lambda _, category: str(category),
    )
    matrix = encoder.fit_transform(np.where(values == None, "(missing)", values)[:, None])  # noqa: E711
    shown = {"infrequent_sklearn": f"{name}=(other)", "(missing)": f"{name} is missing"}
    return _Encoded(matrix, [shown.get(kind, f"{name}={kind}") for kind in encoder.get_feature_names_out()])


def _encode_tags(values: np.ndarray, name: str) -> Iterator[_Encoded]:
    """Encode frequent tags as 0/1 features."""
    cells = [tags or () for tags in values]
    counts = Counter(tag for tags in cells for tag in tags)
    least = _min_frequency(len(cells))
    kept = {tag: None for tag, count in counts.most_common(MAX_CATEGORIES) if count >= least}
    if kept:
        binarizer = MultiLabelBinarizer(classes=[*kept], sparse_output=True)
        matrix = binarizer.fit_transform([[tag for tag in tags if tag in kept] for tags in cells])
        yield _Encoded(matrix.astype(np.float64), [f"{name}={tag}" for tag in kept])


def _encode_words(values: np.ndarray, name: str) -> Iterator[_Encoded]:
    """Encode frequent words and pairs of words as TF-IDF features."""
    texts = [(text or "")[:_MAX_TEXT_LENGTH] for text in values]
    is_paired = sum(map(len, texts)) <= _MAX_PAIRED_LENGTH
    vectorizer = TfidfVectorizer(
        ngram_range=(1, 2 if is_paired else 1),
        min_df=_min_frequency_of_words(len(texts)),
        max_features=MAX_WORDS,
        sublinear_tf=True,
        dtype=np.float64,
    )
    try:
        matrix = vectorizer.fit_transform(texts)
    except ValueError:  # no word is frequent enough
        return
    yield _Encoded(matrix, [f"{name} contains {word}" for word in vectorizer.get_feature_names_out()])


def _min_frequency_of_words(n_rows: int) -> int:
    """Return the minimum number of texts with a word for it to become a feature."""
    return min(5, max(2, n_rows // 100))


def writable_name(name: str) -> str:
    """Escape characters that a `Dataset` does not allow in names."""
    return name if is_writable(name) else printable(name)


def deduplicate_names(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Number names that are `taken` or repeat an earlier one, e.g. ``colour (2)``."""
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
