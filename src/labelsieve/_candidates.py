"""Validation of candidate labels, and conversion of classes and tags to 0/1 matrices."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils.multiclass import type_of_target

from labelsieve._numerics.candidates import count_labels, fill_unknown, has_unknown, is_binary, known_entries
from labelsieve._numerics.sparse import Matrix, is_sparse

_SETS = (set, frozenset)
_LISTS = (list, tuple, np.ndarray)
# Tag matrices with more entries than this are sparse.
_MAX_DENSE = 2**24
#: Classes and functions that take labels that are NaN, listed in the errors of all others.
TAKES_UNKNOWN = (
    "EvidenceSelector, SumF, LabelSupport, find_label_issues, draw_candidates, selection_stability, evidence_test, "
    "controlled_selection and audit"
)


def binarize_tags(y: Any) -> tuple[Any, list[str] | None]:
    """Convert a sequence of tag sets to a 0/1 matrix and its column names. Return other ``y`` and None.

    Sets always hold tags. Lists, tuples and arrays hold tags if they contain strings, because lists of
    numbers are the rows of a matrix.

    Examples
    --------
    >>> matrix, names = binarize_tags([{"bug"}, ["billing", "bug"], []])
    >>> matrix.tolist(), names
    ([[0, 1], [1, 1], [0, 0]], ['billing', 'bug'])
    >>> binarize_tags([[0, 1], [1, 1]])
    ([[0, 1], [1, 1]], None)
    """
    if not _holds_tags(y):
        return y, None
    rows = list(y)
    for row in rows:
        if not isinstance(row, (*_SETS, *_LISTS)):
            raise ValueError(
                f"Every row of y must be a set or a list of tags, got {row!r}. "
                f"Use an empty set for a row without tags."
            )
    items = {item for row in rows for item in row}
    try:
        ordered = sorted(items)
    except TypeError:  # numbers and strings
        ordered = sorted(items, key=str)
    encoder = MultiLabelBinarizer(classes=ordered, sparse_output=True)
    matrix = encoder.fit_transform(rows).astype(np.int8)
    is_small = len(rows) * len(ordered) <= _MAX_DENSE
    return (matrix.toarray() if is_small else matrix), [*map(str, ordered)]


def split_unknown(Y: Matrix) -> tuple[Matrix, np.ndarray | None]:
    """Replace unknown labels (NaN) by the mean of the known ones, so that they do not correlate with anything.

    Return ``Y``, dense or CSR, and a dense mask of the known labels, or None if all are known. A label that
    is unknown in all rows becomes 0.

    Examples
    --------
    >>> split_unknown(np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, 1.0]]))
    (array([[1. , 0. ],
           [0. , 1. ],
           [0.5, 1. ]]), array([[ True,  True],
           [ True,  True],
           [False,  True]]))
    """
    known = known_entries(Y)
    if known is None:
        return Y, None
    counts, n_known = count_labels(Y)
    return fill_unknown(Y, counts / np.maximum(n_known, 1)), known


def take_unknown(y: Any) -> tuple[Any, Matrix | None]:
    """Replace unknown labels by 0. Return the labels, and NaN at the unknown ones and 0 elsewhere, or None.

    The sum of both is the label matrix. One-dimensional ``y`` holds classes and is returned unchanged.

    Examples
    --------
    >>> take_unknown([[1, None], [0, 1]])
    (array([[1, 0],
           [0, 1]], dtype=object), array([[ 0., nan],
           [ 0.,  0.]]))
    """
    if is_sparse(y):
        Y = sp.csr_matrix(y, copy=True)
        Y.sum_duplicates()
        if not has_unknown(Y):
            return y, None
        unknown = Y.astype(np.float64)
        unknown.data[~np.isnan(unknown.data)] = 0
        unknown.eliminate_zeros()
        return fill_unknown(Y), unknown
    values = np.asarray(y)
    if values.ndim != 2 or values.dtype.kind not in "fO":
        return y, None
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    else:
        from pandas import isna

        missing = isna(values)
    if not missing.any():
        return y, None
    return np.where(missing, 0, values), np.where(missing, np.nan, 0.0)


def require_known(y: Any, name: str = "y") -> None:
    """Raise if labels are unknown. The error names what takes them."""
    if take_unknown(y)[1] is not None:
        raise ValueError(
            f"{name} must not have unknown labels (NaN) here. Only {TAKES_UNKNOWN} take them, with all rows in memory. "
            "Fill them in, or remove those rows or labels."
        )


def _holds_tags(y: Any) -> bool:
    """Return True if the first non-empty row holds tags."""
    is_list = isinstance(y, (list, tuple))
    is_column = getattr(y, "ndim", 0) == 1 and getattr(getattr(y, "dtype", None), "kind", "") == "O"
    if not (is_list or is_column):
        return False
    for row in y:
        if isinstance(row, _SETS):
            return True
        if not isinstance(row, _LISTS):
            return False
        if len(row):
            return any(isinstance(item, str) for item in row)
    return False


def check_candidates(y: Matrix, unknown: Matrix | None = None) -> tuple[Matrix, list[str] | None]:
    """Return a float64 0/1 candidate matrix, and the class names if ``y`` holds classes.

    The matrix is NaN where ``unknown`` is, the second result of `take_unknown`.

    Two-dimensional ``y`` must be 0/1, dense or sparse. One-dimensional ``y``, or a single column with other
    discrete values, holds classes and is one-hot encoded.

    Examples
    --------
    >>> check_candidates(np.array(["red", "blue", "red"]))
    (array([[0., 1.],
           [1., 0.],
           [0., 1.]]), ['blue', 'red'])
    """
    if is_sparse(y):
        Y = sp.csr_matrix(y, dtype=np.float64, copy=True)
        Y.sum_duplicates()
        Y.eliminate_zeros()
        require_binary(Y.data)
        n_candidates = Y.nnz
        names = None
    else:
        y = np.asarray(y)
        if y.dtype == object and y.ndim == 2 and all(isinstance(value, Real) for value in y.flat):
            y = y.astype(np.float64)
        is_classes = y.ndim == 1 or (y.shape[1] == 1 and not is_binary(y))
        if is_classes:
            Y, names = _one_hot(y.ravel())
        else:
            require_binary(y)
            Y, names = y.astype(np.float64), None
        n_candidates = np.count_nonzero(Y)
    require_candidates(n_candidates)
    if unknown is None:
        return Y, names
    if names is not None:
        raise ValueError(
            "y must have a class in every row, got rows without one. Remove them, or one-hot encode y."
        )
    return Y + unknown, None


def require_candidates(n_candidates: int) -> None:
    """Raise if there are no candidates at all."""
    if n_candidates == 0:
        raise ValueError(
            "y must contain at least one candidate label, got only zeros. Check the label columns, and that "
            "candidates are encoded as 1."
        )


def require_binary(values: np.ndarray) -> None:
    """Raise if there are values other than 0 and 1."""
    if not is_binary(values):
        shown = values.ravel()[:1] if values.dtype.kind == "O" else np.unique(values)[:4]
        raise ValueError(
            "y must be 0/1 candidate labels of shape (n_samples, n_labels), "
            f"got values such as {', '.join(map(repr, shown.tolist()))}. "
            "Convert them first, for example with (y > 0).astype(int), or one-hot encode classes."
        )


def _one_hot(y: np.ndarray) -> tuple[np.ndarray, list[str]]:
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"y must be 0/1 candidate labels of shape (n_samples, n_labels) or classes of shape "
            f"(n_samples,). Unknown label type: {kind}. Bin or threshold the values first."
        )
    classes, codes = np.unique(y, return_inverse=True)
    return np.eye(len(classes))[codes], [str(value) for value in classes]
