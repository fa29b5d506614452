"""The label matrices that metrics take."""

from __future__ import annotations

import numpy as np

from labelsieve._numerics.binary import is_binary
from labelsieve._numerics.sparse import check_structure, dense
from labelsieve._numerics.typing import Matrix


def as_labels(Y: Matrix, name: str) -> np.ndarray:
    """Return a boolean label matrix, the smallest thing that all metrics can work on."""
    check_structure(Y, name)
    Y = np.asarray(dense(Y))
    if Y.ndim != 2 or Y.size == 0:
        raise ValueError(
            f"{name} must be a 0/1 matrix of shape (n_samples, n_labels) with rows and labels. "
            f"Got shape {Y.shape!r}."
        )
    if not is_binary(Y):
        raise ValueError(
            f"{name} must hold 0 and 1 only. Got other values, of dtype {Y.dtype.name!r}. "
            f"Threshold first, for example ({name} > 0).astype(int)."
        )
    return Y == 1


def require_same_shape(true: np.ndarray, other: np.ndarray, name: str) -> None:
    if true.shape != other.shape:
        raise ValueError(
            f"{name} must have the shape of Y_true, {true.shape!r}. Got {other.shape!r}. "
            f"Check that rows are samples and columns are labels."
        )
