"""Checks and helpers for candidate labels that do not depend on the order of the columns."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import Matrix, is_sparse


def has_unknown(Y: Matrix) -> bool:
    """Return whether some labels are NaN, which means unknown."""
    stored = Y.data if is_sparse(Y) else Y
    # The minimum is NaN if any entry is.
    return stored.dtype.kind == "f" and bool(np.isnan(stored.min(initial=0.0)))


def fill_unknown(Y: Matrix, values: float | np.ndarray = 0.0) -> Matrix:
    """Replace NaN by one value for all labels or one per label. ``Y``, dense or CSR, does not change.

    Examples
    --------
    >>> fill_unknown(np.array([[1.0, np.nan], [np.nan, 0.0]]), np.array([0.5, 0.2]))
    array([[1. , 0.2],
           [0.5, 0. ]])
    """
    if not has_unknown(Y):
        return Y
    values = np.broadcast_to(values, Y.shape[1:])
    if not is_sparse(Y):
        return np.where(np.isnan(Y), values, Y)
    filled = Y.copy()
    holes = np.isnan(filled.data)
    filled.data[holes] = values[filled.indices[holes]]
    filled.eliminate_zeros()
    return filled


def known_entries(Y: Matrix) -> np.ndarray | None:
    """Return a dense mask of the labels that are not NaN, or None if no label is.

    Examples
    --------
    >>> known_entries(sp.csr_array([[1.0, np.nan], [0.0, 1.0]])).tolist()
    [[True, False], [True, True]]
    """
    if not has_unknown(Y):
        return None
    if not is_sparse(Y):
        return ~np.isnan(Y)
    known = np.ones(Y.shape, dtype=bool)
    holes = np.isnan(Y.data)
    known[np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))[holes], Y.indices[holes]] = False
    return known


def count_labels(Y: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of candidates and of known entries of every label.

    Examples
    --------
    >>> count_labels(np.array([[1.0, np.nan], [0.0, 1.0]]))
    (array([1., 1.]), array([2., 1.]))
    """
    n_known = np.full(Y.shape[1], float(Y.shape[0]))
    if has_unknown(Y):
        n_known -= (
            np.bincount(Y.indices[np.isnan(Y.data)], minlength=Y.shape[1])
            if is_sparse(Y)
            else np.isnan(Y).sum(axis=0)
        )
    return np.asarray(fill_unknown(Y).sum(axis=0)).ravel(), n_known


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
