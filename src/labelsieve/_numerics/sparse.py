"""Sparse matrices next to dense ones: tell them apart, make them dense, reject invalid ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class SparseMatrix(Protocol):
    """What is asked of scipy's CSR and CSC matrices and arrays; scipy itself has no types to offer."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    format: str
    nnz: int
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    has_canonical_format: bool

    @property
    def T(self) -> Self: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __matmul__(self, other: Any) -> Any: ...
    def __rmatmul__(self, other: Any) -> Any: ...
    def __ne__(self, other: object) -> Any: ...
    def __abs__(self) -> Any: ...
    def astype(self, dtype: Any, *, copy: bool = ...) -> Self: ...
    def copy(self) -> Self: ...
    def eliminate_zeros(self) -> None: ...
    def max(self, axis: int) -> Any: ...
    def mean(self, axis: int | None = ..., *, dtype: Any = ...) -> Any: ...
    def min(self, axis: int) -> Any: ...
    def multiply(self, other: Any) -> Any: ...
    def sum(self, axis: int | None = ..., *, dtype: Any = ...) -> Any: ...
    def sum_duplicates(self) -> None: ...
    def toarray(self) -> np.ndarray: ...
    def tocsc(self) -> SparseMatrix: ...
    def tocsr(self) -> SparseMatrix: ...


#: A dense ndarray, or a scipy CSR or CSC matrix. `is_sparse` tells them apart.
Matrix: TypeAlias = np.ndarray | SparseMatrix


def is_sparse(M: Any) -> TypeIs[SparseMatrix]:
    """Say whether ``M`` is a scipy sparse matrix or array."""
    return bool(sp.issparse(M))


def dense(M: Matrix) -> np.ndarray:
    """Return ``M`` as an ndarray; a dense matrix is returned as it is.

    Examples
    --------
    >>> dense(sp.csr_matrix([[0, 2], [1, 0]]))
    array([[0, 2],
           [1, 0]])
    """
    return M.toarray() if is_sparse(M) else M


def by_columns(M: Matrix) -> Matrix:
    """Return a sparse matrix as CSC; a dense one is returned as it is."""
    return M.tocsc() if is_sparse(M) else M


def columns_of(M: Matrix, columns: slice) -> Matrix:
    """Return some columns; the matrix itself, which a sparse slice would copy, if these are all.

    Examples
    --------
    >>> M = sp.csr_matrix([[0, 2], [1, 0]])
    >>> columns_of(M, slice(0, 2)) is M
    True
    >>> columns_of(M, slice(1, 2)).toarray()
    array([[2],
           [0]])
    """
    return M if columns == slice(0, M.shape[1]) else M[:, columns]


def entries(M: Matrix, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the values at some places, zeros included.

    Examples
    --------
    >>> entries(sp.csr_matrix([[0, 2], [1, 0]]), np.array([0, 0]), np.array([0, 1]))
    array([0, 2])
    """
    return np.asarray(dense(M[rows, columns])).ravel()


def canonical(M: Matrix) -> Matrix:
    """Return ``M`` with every entry stored once, for code that looks at the values; the input is left alone.

    Examples
    --------
    >>> canonical(sp.csr_matrix(([1, 2], [0, 0], [0, 2]), shape=(1, 1))).data
    array([3])
    """
    if is_sparse(M) and not M.has_canonical_format:
        M = M.copy()
        M.sum_duplicates()
    return M


def with_short_indices(M: Matrix) -> Matrix:
    """Return a CSR or CSC matrix with the 32-bit indices that compiled libraries ask for, where they suffice.

    Examples
    --------
    >>> M = sp.csr_array([[0, 2], [1, 0]])
    >>> M.indices, M.indptr = M.indices.astype(np.int64), M.indptr.astype(np.int64)
    >>> with_short_indices(M).indices.dtype
    dtype('int32')
    """
    if not is_sparse(M) or M.indices.dtype == M.indptr.dtype == np.int32:
        return M
    if max(*M.shape, M.nnz) > np.iinfo(np.int32).max:
        return M
    matrix: Any = type(M)
    parts = (M.data, M.indices.astype(np.int32), M.indptr.astype(np.int32))
    return matrix(parts, shape=M.shape)


def check_structure(M: Any, name: str) -> None:
    """Refuse a sparse matrix whose index arrays contradict its shape; anything else passes.

    Compiled code follows the indices without looking, so one that points outside ends the process. scipy
    itself looks at little when a matrix is made and at nothing when its arrays are changed later.

    Examples
    --------
    >>> M = sp.csr_matrix([[0, 2], [1, 0]])
    >>> check_structure(M, "X")
    >>> M.indices[0] = 7
    >>> check_structure(M, "X")
    Traceback (most recent call last):
    ...
    ValueError: X must be a sound sparse matrix. Got CSR of shape (2, 2): ...
    """
    if not sp.issparse(M):
        return
    try:
        if M.format in ("csr", "csc", "bsr"):
            M.check_format(full_check=True)
        elif M.format == "coo":
            sp.coo_matrix((M.data, (M.row, M.col)), shape=(1, *M.shape)[-2:])
    except ValueError as error:
        raise ValueError(
            f"{name} must be a sound sparse matrix. Got {M.format.upper()} of shape {M.shape!r}: {error}. "
            f"Build it again from its rows, columns and values, for example with scipy.sparse.coo_array."
        ) from None


def as_rows(M: Any, name: str) -> Any:
    """Return a sparse matrix of any format as CSR, whose rows can be taken; anything else is returned as it is.

    An invalid matrix raises, since converting it would follow its indices.

    Examples
    --------
    >>> as_rows(sp.coo_matrix([[0, 2], [1, 0]]), "X")[[1]].toarray()
    array([[1, 0]])
    """
    check_structure(M, name)
    return M.tocsr() if is_sparse(M) else M
