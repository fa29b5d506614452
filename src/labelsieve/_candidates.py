"""Candidate labels as they are given: 0/1 matrices, or classes that become such a matrix."""

from __future__ import annotations

from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import type_of_target

from labelsieve.numerics.binary import is_binary
from labelsieve.numerics.sparse import is_sparse
from labelsieve.numerics.typing import Matrix

__all__ = ["check_candidates", "require_binary", "require_candidates"]


def check_candidates(y: Matrix) -> tuple[Matrix, list[str] | None]:
    """Return a float64 0/1 candidate matrix, and the class names if ``y`` held classes.

    Two-dimensional input must be 0/1 already, dense or sparse. A single column with other discrete values,
    and one-dimensional input, are classes and become one column each.

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
    return Y, names


def require_candidates(n_candidates: int) -> None:
    """Refuse labels of which none is a candidate anywhere."""
    if n_candidates == 0:
        raise ValueError(
            "y must contain at least one candidate label. Got only zeros. Check the label columns and "
            "that 1 means candidate."
        )


def require_binary(values: np.ndarray) -> None:
    """Refuse anything but 0 and 1, with the remedy that fits what came."""
    if is_binary(values):
        return
    expected = "y must be 0/1 candidate labels of shape (n_samples, n_labels)."
    if values.dtype.kind not in "iuf":
        sample = values.ravel()[:1].tolist()[0]
        raise ValueError(
            f"{expected} Got {sample!r}. Convert first, for example (y == {sample!r}).astype(int)."
        )
    found = np.unique(values)
    if np.isin(found, (-1, 0, 1)).all():
        raise ValueError(f"{expected} Got -1/+1 values. Convert first: (y > 0).astype(int).")
    if (found != np.round(found)).any():
        raise ValueError(
            f"{expected} Got continuous values. Threshold them first, for example (y > 0.5).astype(int)."
        )
    listed = ", ".join(f"{value:g}" for value in found[:4])
    raise ValueError(
        f"{expected} Got the values {listed}{', ...' if len(found) > 4 else ''}. One-hot encode them first."
    )


def _one_hot(y: np.ndarray) -> tuple[np.ndarray, list[str]]:
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"y must be 0/1 candidate labels of shape (n_samples, n_labels) or (n_samples,) classes. "
            f"Unknown label type: got {kind} values. Bin or threshold them first."
        )
    classes, codes = np.unique(y, return_inverse=True)
    return np.eye(len(classes))[codes], [str(value) for value in classes]
