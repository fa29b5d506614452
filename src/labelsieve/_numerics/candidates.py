"""Checks and helpers for candidate labels that do not depend on the order of the columns."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import Matrix, is_sparse


def is_binary(values: np.ndarray, *, signed: bool = False) -> bool:
    """Return whether all values are numbers 0 or 1, or -1, 0 or 1 if ``signed``.

    Examples
    --------
    >>> is_binary(np.array([0.0, 1.0])), is_binary(np.array([True])), is_binary(np.array([-1, 1]))
    (True, True, False)
    >>> is_binary(np.array([-1, 1]), signed=True), is_binary(np.array(["1"]))
    (True, False)
    """
    if values.dtype.kind == "b":
        return True
    # Some versions of numpy cannot compare unsigned integers with -1.
    allowed = (-1, 0, 1) if signed and values.dtype.kind != "u" else (0, 1)
    return values.dtype.kind in "iuf" and bool(np.isin(values, allowed).all())


def confidence_on_candidates(M: np.ndarray, Y: Matrix) -> Matrix:
    """Clip approximate labels to [0, 1] and set non-candidates to 0. The result is sparse if ``Y`` is.

    Examples
    --------
    >>> confidence_on_candidates(np.array([[1.2, 0.5], [0.7, -0.1]]), np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([[1. , 0. ],
           [0.7, 0. ]])
    """
    confidence = np.clip(M, 0, 1)
    return Y.multiply(confidence).tocsr() if is_sparse(Y) else confidence * (Y != 0)


def label_order(Y: Matrix) -> np.ndarray:
    """Sort the columns of a 0/1 matrix by the rows in which they are 1.

    ``Y[:, label_order(Y)]`` is the same for every permutation of the columns. Random draws and decisions
    made in this order do not depend on the order of the labels.

    Examples
    --------
    >>> label_order(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    array([2, 1, 0])
    """
    columns = sp.csc_matrix(Y)
    columns.sort_indices()
    rows_of_label = np.split(columns.indices, columns.indptr[1:-1])
    return np.array(sorted(range(Y.shape[1]), key=lambda label: rows_of_label[label].tolist()))


def uniform_per_label(Y: Matrix, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Draw an (n_rows, n_labels) matrix from [0, 1) whose columns follow permutations of the labels.

    Examples
    --------
    >>> Y = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> draw = uniform_per_label(Y, 2, np.random.default_rng(0))
    >>> swapped = uniform_per_label(Y[:, ::-1], 2, np.random.default_rng(0))
    >>> bool((draw == swapped[:, ::-1]).all())
    True
    """
    draw = np.empty((n_rows, Y.shape[1]))
    draw[:, label_order(Y)] = rng.random((n_rows, Y.shape[1]))
    return draw
