"""Numbers and category codes, as ARFF, MATLAB, NPZ, NPY and svmlight files declare them, as a `Dataset`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import OneHotEncoder

from labelsieve._blocks.collections import is_lazy
from labelsieve._numerics.candidates import is_binary
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve.io.column_choice import choose_columns, no_labels_said, plain_name, require_unique
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import Fail
from labelsieve.io.features import impute
from labelsieve.io.labels import Labels
from labelsieve.io.options import ReadOptions
from labelsieve.io.spellings import truth_value

# More one-hot cells are not made.
_MOST_CELLS = 2**27


@dataclass(frozen=True)
class Matrices:
    """Features, labels as samples x labels in 0/1, and their names; None for what the file does not hold."""

    X: Matrix
    Y: Matrix | None = None
    Y_candidates: Matrix | None = None
    feature_names: Sequence[str] | None = None
    label_names: Sequence[str] | None = None
    nominal: Sequence[str] = ()
    name: str | None = None
    #: Categories of the nominal features, if the file declares them.
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    row_ids: Sequence[str] | None = None

    def to_dataset(self, options: ReadOptions, fail: Fail, *, name: str, source: str) -> Dataset:
        """Fill in missing values, encode categories and check everything."""
        X, names, nominal = self.X, self.feature_names, self.nominal
        coded = [place for place, feature in enumerate(names or ()) if feature in set(nominal)]
        if not is_lazy(X):
            X = _complete(X, options.missing, names, coded, fail)
        if options.nominal == "onehot" and self.categories and coded:
            X, names, nominal = _one_hot(X, names or (), coded, self.categories, fail)
        return Dataset(
            X,
            self.Y,
            self.Y_candidates,
            names,  # type: ignore[arg-type]  # None stands for default names
            self.label_names,  # type: ignore[arg-type]
            name,
            source,
            tuple(nominal),
            row_ids=self.row_ids,  # type: ignore[arg-type]
            id_column=options.id,
        )


@dataclass(frozen=True)
class NumericTable:
    """The columns of a file; a nominal column holds the position of its category, a missing value is NaN."""

    names: list[str]
    values: Matrix
    #: Categories of the nominal columns.
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Labels the file itself declares.
    declared_labels: list[str] | None = None
    row_ids: list[str] | None = None
    #: Whether the names were made up.
    is_headless: bool = False

    def split(self, options: ReadOptions, fail: Fail, second_file: Callable[[Path, int], Labels]) -> Matrices:
        """Divide the columns into features and labels."""
        if self.declared_labels == [] and options.labels is None:
            raise fail(
                "declares with -C in its relation name more labels than it has attributes; give `labels`"
            )
        choice = choose_columns(self.names, options, fail, declared=self.declared_labels)
        found: list[Matrix | None] = []
        label_names: Sequence[str] = ()
        for file, places in (
            (choice.candidate_file, choice.candidates),
            (choice.label_file, choice.labels or []),
        ):
            if file is not None:
                labels = second_file(file, self.values.shape[0])
                found.append(labels.Y)
                label_names = labels.names
                continue
            found.append(self.labels(places, fail) if places else None)
            if places:
                label_names = self.label_names(places)
        if not label_names:
            raise no_labels_said((), fail)
        features = choice.features(len(self.names))
        if not features:
            raise fail("has no feature columns left besides its labels; check `labels`")
        if self.row_ids is not None:
            require_unique(self.row_ids, str(options.id), fail)
        names = [self.names[place] for place in features]
        return Matrices(
            self.values[:, features],
            found[1],
            found[0],
            names,
            label_names,
            [name for name in names if name in self.categories],
            categories=self.categories,
            row_ids=self.row_ids,
        )

    def label_names(self, places: Sequence[int]) -> list[str]:
        """Return the names of label columns."""
        return [
            f"label{number}" if self.is_headless else plain_name(self.names[place])
            for number, place in enumerate(places)
        ]

    def labels(self, places: Sequence[int], fail: Fail) -> Matrix:
        """Return label columns as 0/1, whatever words the file uses for yes and no."""
        values = self.values[:, list(places)]
        if np.isnan(_stored(values)).any():
            raise fail("has missing values in its label columns; remove those rows or complete them")
        for column, place in enumerate(places):
            categories = self.categories.get(self.names[place], ("0", "1"))
            meaning = [truth_value(category) for category in categories]
            if None in meaning:
                raise fail(
                    f"label {self.names[place]!r} must be 0/1, -1/+1, no/yes or false/true, got the categories "
                    f"{', '.join(categories[:5])!r}; recode it or check `labels`"
                )
            if meaning != [False, True]:
                values = sp.lil_array(values) if is_sparse(values) else values
                codes = dense(values[:, [column]]).astype(int)
                values[:, [column]] = np.array(meaning, dtype=np.float64)[codes]
        return labels_to_binary(sp.csr_array(values) if is_sparse(values) else values, fail)


def stack(parts: Sequence[NumericTable], fail: Fail) -> NumericTable:
    """Put the rows of tables with the same columns below one another."""
    first = parts[0]
    for part in parts:
        if sorted(part.names) != sorted(first.names) or part.categories != first.categories:
            raise fail("all parts must have the same columns with the same categories; check the headers")
    ordered = [
        part.values if part.names == first.names else part.values[:, [*map(part.names.index, first.names)]]
        for part in parts
    ]
    row_ids = None if first.row_ids is None else [name for part in parts for name in part.row_ids or ()]
    return replace(first, values=stacked(ordered), row_ids=row_ids)


def stacked(matrices: Sequence[Any]) -> Matrix:
    """Return matrices of the same width below one another."""
    if len(matrices) == 1:
        return matrices[0]
    if any(map(is_sparse, matrices)):
        return sp.csr_array(sp.vstack([sp.csr_array(matrix) for matrix in matrices], format="csr"))
    return np.vstack(matrices)


def labels_to_binary(matrix: Any, fail: Fail) -> Matrix:
    """Return 0/1 for labels written as 0/1 or -1/+1."""
    numbers = _stored(matrix)
    if not is_binary(numbers, signed=True):
        bad = numbers[~np.isin(numbers, (-1, 0, 1))].flat[0]
        raise fail(f"labels must be 0/1 or -1/+1, got {bad!s}; check `labels` or threshold the values")
    positive: Matrix = sp.csr_array(matrix > 0) if sp.issparse(matrix) else matrix > 0
    return positive.astype(np.uint8)


def _stored(values: Matrix) -> np.ndarray:
    stored: np.ndarray = values.data if is_sparse(values) else values
    return stored


def _complete(
    values: Matrix, missing: str | None, names: Sequence[str] | None, coded: Sequence[int], fail: Fail
) -> Matrix:
    """Fill in missing values, those of category codes by the most frequent one, or raise."""
    stored = _stored(values)
    # The minimum is NaN if any value is, and needs no mask of all of them.
    if stored.dtype.kind != "f" or not np.isnan(stored.min(initial=0.0)):
        return values
    if missing in (None, "error"):
        holes = np.isnan(stored)
        column = (values.indices[holes] if is_sparse(values) else np.nonzero(holes)[1]).min()
        raise fail(
            f"has {int(holes.sum())} missing feature values, first in column "
            f"{names[column] if names else f'x{column}'!r}; read it with `missing='mean'` (most frequent category "
            "for nominal features) or `missing='zero'`"
        )
    if missing == "zero" or not coded:
        return impute(values, str(missing))
    plain = np.setdiff1d(np.arange(values.shape[1]), coded)
    filled = [impute(values[:, plain], "mean"), impute(values[:, list(coded)], "most_frequent")]
    return _side_by_side(filled, [*plain, *coded])


def _side_by_side(blocks: Sequence[Any], places: Sequence[int]) -> Matrix:
    """Join blocks of columns and put the columns in the order of their places."""
    order = np.argsort(places, kind="stable")
    if not any(map(is_sparse, blocks)):
        return np.hstack(blocks)[:, order]
    return sp.csr_array(sp.hstack([sp.csc_array(block) for block in blocks], format="csc")[:, order])


def _one_hot(
    values: Matrix,
    names: Sequence[str],
    coded: Sequence[int],
    categories: Mapping[str, tuple[str, ...]],
    fail: Fail,
) -> tuple[Matrix, list[str], list[str]]:
    """Replace every nominal column by one 0/1 column per category, in place and named ``column=category``."""
    known = {place: categories[names[place]] for place in coded}
    indicators = [f"{names[place]}={category}" for place in coded for category in known[place]]
    width = len(names) - len(coded) + len(indicators)
    if values.shape[0] * (len(coded) if is_sparse(values) else width) > _MOST_CELLS:
        raise fail(
            f"has too many categories for one-hot encoding ({width} columns); read it with `nominal='code'`"
        )
    encoder = OneHotEncoder(
        categories=[np.arange(float(len(own))) for own in known.values()], sparse_output=is_sparse(values)
    )
    plain = [place for place in range(len(names)) if place not in known]
    places = [*plain, *(place for place in coded for _ in known[place])]
    X = _side_by_side([values[:, plain], encoder.fit_transform(dense(values[:, list(coded)]))], places)
    all_names = [*(names[place] for place in plain), *indicators]
    return X, [all_names[at] for at in np.argsort(places, kind="stable")], indicators
