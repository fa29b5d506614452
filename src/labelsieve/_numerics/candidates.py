"""Numbers that belong to candidate labels, whatever the order of their columns."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import Matrix, is_sparse


def is_binary(values: np.ndarray, *, signed: bool = False) -> bool:
    """Whether all values are 0 or 1, or with `signed` -1, 0 or 1; text, complex numbers and NaN are not.

    Examples
    --------
    >>> is_binary(np.array([0.0, 1.0])), is_binary(np.array([True])), is_binary(np.array([-1, 1]))
    (True, True, False)
    >>> is_binary(np.array([-1, 1]), signed=True), is_binary(np.array(["1"]))
    (True, False)
    """
    if values.dtype.kind == "b":
        return True
    # What has no sign is not compared with -1, which some numpy cannot do.
    allowed = (-1, 0, 1) if signed and values.dtype.kind != "u" else (0, 1)
    return values.dtype.kind in "iuf" and bool(np.isin(values, allowed).all())


def confidence_on_candidates(M: np.ndarray, Y: Matrix) -> Matrix:
    """Cut approximate labels to [0, 1] and to the candidates; sparse if ``Y`` is.

    Examples
    --------
    >>> confidence_on_candidates(np.array([[1.2, 0.5], [0.7, -0.1]]), np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([[1. , 0. ],
           [0.7, 0. ]])
    """
    confidence = np.clip(M, 0, 1)
    return Y.multiply(confidence).tocsr() if is_sparse(Y) else confidence * (Y != 0)


def label_order(Y: Matrix) -> np.ndarray:
    """Column numbers of a 0/1 matrix, sorted by the rows in which the columns are 1.

    ``Y[:, label_order(Y)]`` is the same for every permutation of the columns, so what is drawn or decided in
    that order belongs to the labels and not to their places.

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
    """Draw an (n_rows, n_labels) matrix from [0, 1) whose columns move with the columns of ``Y``.

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
