"""Helpers for code that takes both dense and sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class SparseMatrix(Protocol):
    """Interface of the CSR and CSC matrices and arrays of scipy, which has no type annotations."""

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
    """Return whether ``M`` is a scipy sparse matrix or array."""
    return bool(sp.issparse(M))


def dense(M: Matrix) -> np.ndarray:
    """Convert a sparse matrix to an ndarray. A dense matrix is returned unchanged.

    Examples
    --------
    >>> dense(sp.csr_matrix([[0, 2], [1, 0]]))
    array([[0, 2],
           [1, 0]])
    """
    return M.toarray() if is_sparse(M) else M


def by_columns(M: Matrix) -> Matrix:
    """Convert a sparse matrix to CSC. A dense matrix is returned unchanged."""
    return M.tocsc() if is_sparse(M) else M


def columns_of(M: Matrix, columns: slice) -> Matrix:
    """Return a slice of columns, or the matrix itself, without a copy, if the slice has all columns.

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
    """Return the values at the given rows and columns, including zeros.

    Examples
    --------
    >>> entries(sp.csr_matrix([[0, 2], [1, 0]]), np.array([0, 0]), np.array([0, 1]))
    array([0, 2])
    """
    return np.asarray(dense(M[rows, columns])).ravel()


def canonical(M: Matrix) -> Matrix:
    """Return ``M`` with duplicate entries summed. The input does not change.

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
    """Convert the indices of a CSR or CSC matrix to 32 bits, which compiled libraries need, if possible.

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
    """Reject masked values, and a sparse matrix whose indices are inconsistent with its shape.

    Compiled code does not check indices, so an index out of bounds can crash the process. scipy checks
    little when a matrix is created and nothing when its arrays are changed later.

    Examples
    --------
    >>> M = sp.csr_matrix([[0, 2], [1, 0]])
    >>> check_structure(M, "X")
    >>> M.indices[0] = 7
    >>> check_structure(M, "X")
    Traceback (most recent call last):
    ...
    ValueError: X must be a valid sparse matrix. Got CSR of shape (2, 2): ...
    """
    if np.ma.is_masked(M):
        raise ValueError(
            f"{name} must not have masked values, got {int(M.mask.sum())}. Fill them in with {name}.filled(value)."
        )
    if not sp.issparse(M):
        return
    try:
        if M.format in ("csr", "csc", "bsr"):
            M.check_format(full_check=True)
        elif M.format == "coo":
            sp.coo_matrix((M.data, (M.row, M.col)), shape=(1, *M.shape)[-2:])
    except ValueError as error:
        raise ValueError(
            f"{name} must be a valid sparse matrix. Got {M.format.upper()} of shape {M.shape!r}: {error}. "
            f"Rebuild it from rows, columns and values, for example with scipy.sparse.coo_array."
        ) from None


def as_rows(M: Any, name: str) -> Any:
    """Convert a sparse matrix of any format to CSR. Other objects are returned unchanged.

    Invalid matrices are rejected first because the conversion would follow their indices.

    Examples
    --------
    >>> as_rows(sp.coo_matrix([[0, 2], [1, 0]]), "X")[[1]].toarray()
    array([[1, 0]])
    """
    check_structure(M, name)
    return M.tocsr() if is_sparse(M) else M
