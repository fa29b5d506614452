"""Products that keep sparse matrices sparse and single precision from piling up rounding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsieve.numerics.batches import batches
from labelsieve.numerics.sparse import is_sparse
from labelsieve.numerics.typing import Matrix

#: Rows of U that are worked on together; a copy of them stays in the cache.
BLOCK_ROWS = 4096
#: Bytes beside a sparse matrix that a product with it should stay within, and fewest columns worth a pass.
_CACHED = 5 * 2**19
_FEWEST = 8


def right_product(M: Matrix, V: np.ndarray) -> np.ndarray:
    """Return M V' as an ndarray in the dtype of M; sparse products want a contiguous right side."""
    right = V.T.astype(M.dtype, copy=False)
    if not is_sparse(M):
        return np.asarray(M @ right)
    product = np.empty((M.shape[0], len(V)), M.dtype)
    for panel in _panels(M, len(V)):
        product[:, panel] = M @ np.ascontiguousarray(right[:, panel])
    return product


def left_product(U: np.ndarray, M: Matrix) -> np.ndarray:
    """Return U' M as a float64 ndarray. A sparse M is transposed as a view: a copy multiplies slower."""
    if not is_sparse(M):
        return np.asarray(U.T @ M, dtype=np.float64)
    product = np.empty((U.shape[1], M.shape[1]))
    for panel in _panels(M, U.shape[1]):
        product[panel] = (M.T @ np.ascontiguousarray(U[:, panel])).T
    return product


def _panels(M: Matrix, n_components: int) -> Iterator[slice]:
    """Cut the components so that some of them for every column of the sparse M stay in the cache.

    Entries lie anywhere in a row: without the cut, each one waits for memory.
    """
    return batches(n_components, width=1, budget=max(_FEWEST, _CACHED // (M.shape[1] * M.dtype.itemsize)))


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
