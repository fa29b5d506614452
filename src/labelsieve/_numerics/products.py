"""Matrix products that keep sparse matrices sparse and limit rounding errors of single precision."""

from __future__ import annotations

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.sparse import Matrix, is_sparse

#: Number of rows whose float64 copy fits into the cache.
_CACHED_ROWS = 4096


def right_product(M: Matrix, V: np.ndarray) -> np.ndarray:
    """Return M V' as an ndarray in the dtype of M."""
    right = V.T.astype(M.dtype, copy=False)
    if not is_sparse(M):
        return np.asarray(M @ right)
    # Sparse products are faster if the right side is contiguous.
    return np.asarray(M @ np.ascontiguousarray(right))


def left_product(U: np.ndarray, M: Matrix) -> np.ndarray:
    """Return U' M as a float64 ndarray."""
    if not is_sparse(M):
        return np.asarray(U.T @ M, dtype=np.float64)
    # The transpose of M must stay a view, since products with a copy are slower.
    return np.ascontiguousarray((M.T @ np.ascontiguousarray(U)).T, dtype=np.float64)


def transposed_product(X: Matrix, P: np.ndarray) -> np.ndarray:
    """Return X'P in float64, without a copy of ``X`` in another precision."""
    return left_product(P.astype(X.dtype, copy=False), X).T


def gram(U: np.ndarray) -> np.ndarray:
    """Return U'U in float64, because rounding in float32 would exceed the last steps of a descent."""
    total: np.ndarray
    if U.dtype == np.float64:
        total = U.T @ U
        return total
    total = np.zeros((U.shape[1], U.shape[1]))
    for rows in batches(len(U), width=1, budget=_CACHED_ROWS):
        block = U[rows].astype(np.float64)
        total += block.T @ block
    return total


def inner(A: np.ndarray, B: np.ndarray) -> float:
    """Return the sum of the elementwise product. The row sums of float32 arrays are added in float64."""
    if A.dtype == np.float64:
        return float(A.ravel() @ B.ravel())
    return float(np.einsum("ij,ij->i", A, B).sum(dtype=np.float64))


def squared_norm(M: Matrix) -> float:
    """Return the squared Frobenius norm, summed in float64.

    `numpy.vdot` would pass unaligned arrays, such as those received over a network, to BLAS, which crashes
    on some processors.
    """
    values = M.data if is_sparse(M) else M.ravel(order="K")
    parts = (values[part].astype(np.float64, copy=False) for part in batches(len(values), width=1))
    return float(sum(part @ part for part in parts))
