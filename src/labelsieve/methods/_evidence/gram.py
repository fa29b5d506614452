"""Where the columns of the Gram matrix Z'Z of standardised features come from: made on demand, or formed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from labelsieve._blocks.blocks import MemoryBlocks, RowBlocks
from labelsieve._numerics.batches import batches
from labelsieve._numerics.scaling import Scaling
from labelsieve.methods._evidence.passes import by_columns, gram_of_some, products_of_columns

__all__ = [
    "LARGEST_GRAM",
    "ColumnStore",
    "FormedGram",
    "Gram",
    "GramOnDemand",
    "is_gram_cheaper",
    "without_fold",
]

#: Most features for which all pairs are ever formed.
LARGEST_GRAM = 5000
#: How many operations of a matrix product take the time of one of a matrix-vector product, which waits for memory.
_MEMORY_BOUND = 8
#: Standard deviation in all rows over that in the kept rows from which on a difference of sums has lost too much.
_LARGEST_LOSS = 100
#: Columns that a pass over the rows fetches, of those that a search is likely to ask for next; one in memory.
_AHEAD = 64
#: Numbers in the columns that are kept: 128 MiB in memory, where another is soon made, else 512.
_KEPT_IN_MEMORY, _KEPT = 2**24, 2**26

#: Says which features a search may take next, likely ones first.
Likely: TypeAlias = Callable[[], np.ndarray]


class Gram(Protocol):
    """Z'Z, for whoever wants a column of it or blocks on the diagonal."""

    def column(self, feature: int, likely: Likely) -> np.ndarray:
        """One column; not to be changed."""
        ...

    def blocks(self, chosen: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Rows and columns of some features, several times."""
        ...


class FormedGram:
    """Z'Z as a matrix.

    Parameters
    ----------
    matrix : ndarray of shape (n_features, n_features)
        Symmetric.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def column(self, feature: int, likely: Likely) -> np.ndarray:
        """One column; not to be changed."""
        column: np.ndarray = self.matrix[feature]
        return column

    def blocks(self, chosen: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Rows and columns of some features, several times."""
        return (self.matrix[np.ix_(features, features)] for features in chosen)


class ColumnStore:
    """Products of single features with all features, in every inner fold: what all searches ask for.

    Those asked for last are kept. In memory a column is made when it is asked for; elsewhere a pass over the rows
    fetches it together with others that are likely to be asked for soon.

    Parameters
    ----------
    rows : RowBlocks
        With the columns ``X`` and ``fold``.
    n_folds : int
        Inner folds.
    scaling : Scaling
        What standardises the features over all rows.
    """

    def __init__(self, rows: RowBlocks, n_folds: int, scaling: Scaling) -> None:
        self.rows = rows
        self.n_folds = n_folds
        self.scaling = scaling
        is_here = isinstance(rows, MemoryBlocks) and len(rows.sizes) == 1
        room = (_KEPT_IN_MEMORY if is_here else _KEPT) // (n_folds * len(scaling.factor))
        self.most = max(1, room)
        self.n_ahead = 1 if is_here else min(_AHEAD, self.most)
        #: By feature, the one asked for last at the end: products (n_folds x n_features) and sums (n_folds).
        self._kept: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._is_ready = False

    def of(self, feature: int, likely: Likely) -> tuple[np.ndarray, np.ndarray]:
        """Products of a standardised feature with all features as they are, and its sums, in every fold."""
        if feature not in self._kept:
            self._fetch(feature, likely)
        self._kept[feature] = self._kept.pop(feature)
        return self._kept[feature]

    def fetch(self, features: np.ndarray, scaling: Scaling) -> tuple[np.ndarray, np.ndarray]:
        """Products of features scaled in another way; one pass over the rows."""
        if not self._is_ready:
            self.rows.derive(by_columns)
            self._is_ready = True
        products, sums = self.rows.fold(products_of_columns, self.n_folds, features, scaling.of(features))
        return products, sums

    def _fetch(self, feature: int, likely: Likely) -> None:
        wanted = [feature]
        if self.n_ahead > 1:
            others = (other for other in likely().tolist() if other not in self._kept and other != feature)
            wanted += [other for other, _ in zip(others, range(self.n_ahead - 1), strict=False)]
        for oldest in list(self._kept)[: max(0, len(self._kept) + len(wanted) - self.most)]:
            del self._kept[oldest]
        products, sums = self.fetch(np.array(wanted), self.scaling)
        for i, known in enumerate(wanted):
            # Copied, as one that stays would keep all that came with it.
            self._kept[known] = products[i].copy(), sums[i].copy()


class GramOnDemand:
    """Z'Z of the rows outside an inner fold, column by column.

    Parameters
    ----------
    store : ColumnStore
        Of all rows.
    scaling : Scaling
        What standardises the features over the rows that are seen.
    held_out : int or None
        The fold that is left out; None for none.
    """

    def __init__(self, store: ColumnStore, scaling: Scaling, held_out: int | None) -> None:
        self.store = store
        self.scaling = scaling
        self.held_out = held_out

    def column(self, feature: int, likely: Likely) -> np.ndarray:
        """One column; not to be changed."""
        factor, offset = self.scaling.factor, np.asarray(self.scaling.offset)
        if factor[feature] == 0:
            return np.zeros(len(factor))
        in_all = self.store.scaling.factor[feature]
        ratio = factor[feature] / in_all if in_all > 0 else np.inf
        if ratio > _LARGEST_LOSS:
            # Where it hardly varies, it is far from the mean of all rows: it is centred anew.
            products, sums = (part[0] for part in self.store.fetch(np.array([feature]), self.scaling))
            ratio = 1.0
        else:
            products, sums = self.store.of(feature, likely)
        seen = np.arange(self.store.n_folds) != (-1 if self.held_out is None else self.held_out)
        column: np.ndarray = products[seen].sum(axis=0)
        column -= offset * sums[seen].sum()
        column *= factor * ratio
        return column

    def blocks(self, chosen: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Rows and columns of some features, several times; one pass over the rows."""
        store = self.store
        return iter(store.rows.fold(gram_of_some, store.n_folds, self.held_out, self.scaling, list(chosen)))


def is_gram_cheaper(n_features: int, n_columns: float, n_folds: int, *, is_sparse: bool) -> bool:
    """Say whether to form Z'Z, given how many columns will be asked for.

    Parameters
    ----------
    n_features : int
        Features.
    n_columns : float
        Columns that all paths will need, each counted by the share of the rows that it sees.
    n_folds : int
        Inner folds; 0 for none. Their parts of Z'Z together cost as much as the whole.
    is_sparse : bool
        Whether the features are. A column of sparse ones is so cheap that their Z'Z is never formed.
    """
    if is_sparse or n_features > LARGEST_GRAM:
        return False
    # In units of n_samples * n_features; half of a symmetric matrix need not be computed.
    return n_features * (2 if n_folds else 1) < 2 * _MEMORY_BOUND * n_columns


def without_fold(
    gram: np.ndarray,
    part: np.ndarray,
    scaling: Scaling,
    kept: Scaling,
    n_kept: int,
    column: Callable[[int], np.ndarray],
) -> np.ndarray:
    """Z'Z of the rows outside a fold, from that of all rows.

    Parameters
    ----------
    gram : ndarray of shape (n_features, n_features)
        Z'Z of all rows.
    part : ndarray of shape (n_features, n_features)
        What the rows of the fold add to it.
    scaling : Scaling
        What standardises the features over all rows.
    kept : Scaling
        What standardises them over the other rows.
    n_kept : int
        How many these are.
    column : callable
        Computes a column of the result anew.
    """
    matrix: np.ndarray = gram - part
    # To the means and deviations of the kept rows.
    shift = (np.asarray(kept.offset) - np.asarray(scaling.offset)) * scaling.factor
    ratio = np.divide(kept.factor, scaling.factor, out=np.zeros_like(shift), where=scaling.factor > 0)
    for rows in batches(len(matrix), len(matrix)):
        matrix[rows] -= n_kept * np.outer(shift[rows], shift)
        matrix[rows] *= np.outer(ratio[rows], ratio)
    # A feature that hardly varies in the kept rows is a small difference of large sums: it is computed anew.
    for feature in np.flatnonzero(ratio > _LARGEST_LOSS).tolist():
        matrix[feature] = matrix[:, feature] = column(feature)
    return matrix
