"""Products that keep sparse matrices sparse and single precision from piling up rounding."""

from __future__ import annotations

import numpy as np

from labelsieve.numerics.batches import batches
from labelsieve.numerics.sparse import is_sparse
from labelsieve.numerics.typing import Matrix

#: Rows of U that are worked on together; a copy of them stays in the cache.
BLOCK_ROWS = 4096


def right_product(M: Matrix, V: np.ndarray) -> np.ndarray:
    """Return M V' as an ndarray in the dtype of M; sparse products want a contiguous right side."""
    right = V.T.astype(M.dtype, copy=False)
    product: np.ndarray = M @ (np.ascontiguousarray(right) if is_sparse(M) else right)
    return product


def left_product(U: np.ndarray, M: Matrix) -> np.ndarray:
    """Return U' M as a float64 ndarray. A sparse M is transposed as a view: a copy multiplies slower."""
    product = np.ascontiguousarray((M.T @ U).T) if is_sparse(M) else U.T @ M
    return product.astype(np.float64, copy=False)


def transposed_product(X: Matrix, P: np.ndarray) -> np.ndarray:
    """Return X'P in float64, without a copy of ``X`` in another precision."""
    return left_product(P.astype(X.dtype, copy=False), X).T


def gram(U: np.ndarray) -> np.ndarray:
    """Return U'U in float64; in float32 its rounding would drown the last steps of the descent."""
    total: np.ndarray
    if U.dtype == np.float64:
        total = U.T @ U
        return total
    total = np.zeros((U.shape[1], U.shape[1]))
    for rows in batches(len(U), width=1, budget=BLOCK_ROWS):
        block = U[rows].astype(np.float64)
        total += block.T @ block
    return total


def inner(A: np.ndarray, B: np.ndarray) -> float:
    """Sum of the elementwise product; in float32 the rows are added in float64."""
    if A.dtype == np.float64:
        return float(np.vdot(A, B))
    return float(np.einsum("ij,ij->i", A, B).sum(dtype=np.float64))


def squared_norm(M: Matrix) -> float:
    """Squared Frobenius norm, summed in float64."""
    values = M.data if is_sparse(M) else M.ravel(order="K")
    parts = (values[part].astype(np.float64, copy=False) for part in batches(len(values), width=1))
    return float(sum(np.vdot(part, part) for part in parts))
