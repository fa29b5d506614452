"""Stage 1 of PML-FSMIR: confidences of the candidates, and the information the labels have on each other.

The rows get the column ``confidence``: ``T = R / max R`` with ``R = (Y Z) o Y`` (Eq. 1-3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.blocks import Columns, MemoryBlocks, RowBlocks, block_function
from labelsieve._numerics.batches import batches
from labelsieve._numerics.information import cooccurrence, information_of_pairs
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix

__all__ = ["derive_confidence", "derive_target", "label_confidence", "label_counts"]

#: Confidences are made dense from this share of candidates on: dense products are faster there.
_CROWDED = 0.1


def label_confidence(Y: Matrix) -> Matrix:
    """Turn candidates into confidences.

    Examples
    --------
    >>> label_confidence(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    rows = MemoryBlocks([{"Y": Y}])
    derive_confidence(rows, information_of_pairs(label_counts(rows), rows.n_rows))
    confidence: Matrix = rows.gather("confidence")
    return confidence


def label_counts(rows: RowBlocks) -> np.ndarray:
    """Count, for every pair of labels, the rows of which both are candidates; one pass over the labels."""
    counts: np.ndarray = rows.fold(_count_block)
    return counts


@block_function("Y")
def _count_block(rows: Mapping[str, Any]) -> tuple[Columns, np.ndarray]:
    return {}, cooccurrence(rows["Y"])


def derive_confidence(rows: RowBlocks, information: np.ndarray | None) -> None:
    """Weigh the candidates by their information on each other, or, without it, all alike."""
    if information is None:
        rows.derive(_take_candidates)
        return
    rows.derive(_support_block, information)
    largest = rows.fold(_largest_support, combine=max)
    # Where every label is constant, there is no information either.
    if largest > 0:
        rows.derive(_divide_support, largest)
    else:
        rows.derive(_take_candidates)
    rows.rename({}, drop=("support",))


@block_function("Y", gives=("confidence",))
def _take_candidates(rows: Mapping[str, Any]) -> tuple[Columns, None]:
    return {"confidence": rows["Y"]}, None


@block_function("Y", gives=("support",))
def _support_block(rows: Mapping[str, Any], information: np.ndarray) -> tuple[Columns, None]:
    return {"support": _support(rows["Y"], information)}, None


@block_function("support")
def _largest_support(rows: Mapping[str, Any]) -> tuple[Columns, float]:
    support = rows["support"]
    return {}, float((support.data if is_sparse(support) else support).max(initial=0))


@block_function("support", gives=("confidence",))
def _divide_support(rows: Mapping[str, Any], largest: float) -> tuple[Columns, None]:
    confidence = rows["support"].copy()
    # A sparse matrix would be multiplied by the reciprocal, and its largest entry not be 1.
    values = confidence.data if is_sparse(confidence) else confidence
    values /= largest
    return {"confidence": confidence}, None


def _support(Y: Matrix, information: np.ndarray) -> Matrix:
    """Return ``(Y Z) o Y``.

    The candidates of a row are added in the order of the labels. A dense product may add them in another order,
    depending on where the row stands in its block, and equal confidences would become two symbols.
    """
    if not is_sparse(Y):
        support: np.ndarray = sp.csr_matrix(Y) @ information
        support *= Y
        return support
    result = Y.copy()
    for rows in batches(*Y.shape):
        block = Y[rows]
        row_of = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        first = Y.indptr[rows.start]
        result.data[first : first + block.nnz] = (block @ information)[row_of, block.indices]
    return result


def derive_target(rows: RowBlocks, n_candidates: float, n_labels: int, dtype: np.dtype[Any]) -> None:
    """Let the rows have ``T`` as the factorisation wants it: in the dtype of the features, dense if crowded."""
    rows.derive(_target_block, n_candidates > _CROWDED * rows.n_rows * n_labels, dtype)


@block_function("confidence", gives=("T",))
def _target_block(rows: Mapping[str, Any], is_crowded: bool, dtype: np.dtype[Any]) -> tuple[Columns, None]:
    T = rows["confidence"]
    return {"T": (dense(T) if is_crowded else T).astype(dtype, copy=False)}, None
