"""Validated features and candidate labels in blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from labelsieve._blocks.blocks import MemoryBlocks, RowBlocks
from labelsieve._candidates import require_binary, require_candidates, require_known
from labelsieve._numerics.sparse import Matrix, canonical, check_structure, is_sparse


@dataclass(frozen=True)
class RowProblem:
    """Blocks with the columns ``X`` and ``Y``, and their shapes and dtype.

    Parameters
    ----------
    rows : RowBlocks
        ``X`` is float32 or float64 and dense or CSR (in memory also CSC). ``Y`` is 0/1 and dense or CSR.
    n_features, n_labels : int
        Number of columns of ``X`` and of ``Y``.
    dtype : dtype
        Dtype of the features.
    is_sparse : bool
        True if the features are sparse.
    """

    rows: RowBlocks
    n_features: int
    n_labels: int
    dtype: np.dtype[Any]
    is_sparse: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of features."""
        return self.rows.n_rows, self.n_features


def in_memory(X: Matrix, Y: Matrix) -> RowProblem:
    """Wrap validated arrays as a problem with a single block."""
    return RowProblem(MemoryBlocks([{"X": X, "Y": Y}]), X.shape[1], Y.shape[1], X.dtype, is_sparse(X))


def check_rows(rows: RowBlocks) -> RowProblem:
    """Check every block once, and convert all blocks to the same type."""
    if rows.n_rows < 2:
        raise ValueError(f"X must have at least 2 rows, got {rows.n_rows}.")
    (n_features, n_labels), dtype, kinds, n_candidates = rows.fold(
        _check_block, ["X", "Y", "rows"], combine=_agree
    )
    require_candidates(n_candidates)
    if len(kinds) > 1:
        raise ValueError(
            "The blocks of X must be all dense or all sparse, got both. "
            "Convert them first, for example with X = X.map_blocks(scipy.sparse.csr_matrix)."
        )
    rows.derive(_uniform, ["X"], dtype, gives="X")
    rows.derive(_uniform, ["Y"], np.dtype(np.float64), gives="Y")
    return RowProblem(rows, n_features, n_labels, dtype, kinds == {"sparse"})


def _check_block(X: Any, Y: Any, rows: slice) -> tuple[Any, ...]:
    """Check one block in the same way as `fit` checks arrays."""
    try:
        check_structure(X, "X")
        check_structure(Y, "y")
        X = check_array(
            X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=0, input_name="X"
        )
        require_known(Y)
        Y = check_array(Y, accept_sparse="csr", dtype=None, ensure_min_samples=0, input_name="y")
        require_binary(np.asarray(canonical(Y).data) if is_sparse(Y) else Y)
        if X.shape[0] != Y.shape[0]:
            raise ValueError(
                f"X and y must have equal numbers of rows in every block, got {X.shape[0]} and {Y.shape[0]}."
            )
    except ValueError as error:
        message = str(error).partition("\n")[0]
        raise ValueError(f"{message} (In rows {rows.start} to {rows.stop - 1}.)") from None
    n_candidates = int(np.count_nonzero(Y.data if is_sparse(Y) else Y))
    kind = "sparse" if is_sparse(X) else "dense"
    return (X.shape[1], Y.shape[1]), X.dtype, {kind}, n_candidates


def _agree(a: Any, b: Any) -> Any:
    """Merge the properties of two blocks."""
    if a[0] != b[0]:
        raise ValueError(
            f"All blocks must have the same numbers of features and labels, got {a[0]} and {b[0]}."
        )
    return a[0], np.result_type(a[1], b[1]), a[2] | b[2], a[3] + b[3]


def _uniform(M: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a matrix to a dtype, and a sparse one to canonical CSR."""
    if not sp.issparse(M):
        return np.asarray(M).astype(dtype, copy=False)
    return canonical(sp.csr_matrix(M)).astype(dtype, copy=False)
