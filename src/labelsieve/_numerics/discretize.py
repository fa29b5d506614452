"""Features as symbols: zero is one of its own, the other values are cut at their quantiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.blocks import MemoryBlocks
from labelsieve._numerics.cuts import Cuts, find_cuts, stored_values
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix, SparseMatrix


@dataclass(frozen=True)
class BinnedFeatures:
    """Discrete features as a sparse matrix of symbol indicators; the symbol zero is left implicit.

    Parameters
    ----------
    indicators : sparse matrix of shape (n_samples, n_symbols)
        Column ``s`` is 1 in the rows whose feature has symbol ``s``. The symbols of a feature are adjacent
        columns; a row in which none of them is set has the symbol zero.
    offsets : ndarray of shape (n_features + 1,)
        The symbols of feature ``j`` are the columns ``offsets[j]`` to ``offsets[j + 1]``.
    """

    indicators: SparseMatrix
    offsets: np.ndarray

    @cached_property
    def _by_row(self) -> SparseMatrix:
        return self.indicators.tocsr()

    def rows(self, chosen: np.ndarray) -> BinnedFeatures:
        """Keep the chosen rows; all symbols stay, even those that no longer occur."""
        return replace(self, indicators=self._by_row[chosen])

    def groups(self, feature: int) -> list[np.ndarray]:
        """Rows of every symbol of a feature that occurs, zero first."""
        symbols = self.indicators[:, self.offsets[feature] : self.offsets[feature + 1]].tocsc()
        is_zero = np.ones(symbols.shape[0], dtype=bool)
        is_zero[symbols.indices] = False
        groups = [np.flatnonzero(is_zero), *np.split(symbols.indices, symbols.indptr[1:-1])]
        return [rows for rows in groups if len(rows)]


def feature_sums(offsets: np.ndarray) -> SparseMatrix:
    """Return the 0/1 matrix (n_features, n_symbols) that sums over the symbols of every feature."""
    n_symbols = int(offsets[-1])
    sums: SparseMatrix = sp.csr_matrix(
        (np.ones(n_symbols, dtype=np.int32), np.arange(n_symbols), offsets),
        shape=(len(offsets) - 1, n_symbols),
    )
    return sums


def bin_features(X: Matrix, n_bins: int) -> BinnedFeatures:
    """Turn every feature into at most ``n_bins + 1`` symbols.

    Zero is always a symbol of its own, so a sparse matrix and the same matrix stored densely give the same
    symbols and 0/1 features are kept as they are. The other values of a feature are cut into ``n_bins`` bins
    of about equally many rows: a value goes where the middle of its run in the sorted column falls. Equal
    values therefore share a bin, two distinct values never do if they are the only ones, and the bins do not
    change under any increasing map of the non-zero values, such as a scaling or a logarithm.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Sparse matrices must not hold an entry twice.
    n_bins : int
        Bins for the values other than zero, at least 2.

    Returns
    -------
    binned : BinnedFeatures
        The indicators in CSC format.

    Examples
    --------
    >>> X = np.array([[0.0, 7.0], [0.0, -3.0], [1.0, 7.5], [1.0, 80.0]])
    >>> bin_features(X, n_bins=2).indicators.toarray()
    array([[0, 1, 0],
           [0, 1, 0],
           [1, 0, 1],
           [1, 0, 1]], dtype=int32)
    """
    X = X.tocsc() if is_sparse(X) else X
    return cut_features(X, find_cuts(MemoryBlocks([{"X": X}]), X.shape[1], n_bins))


def cut_features(X: Matrix, cuts: Cuts) -> BinnedFeatures:
    """Turn features into the symbols of cuts that were found on these rows or more."""
    members, sizes = [], []
    for feature, (rows, values) in enumerate(stored_values(X)):
        starts = cuts.of(feature)
        symbols = np.searchsorted(starts, values, side="right") - 1
        # Small integers are sorted by counting.
        symbols = symbols.astype(np.min_scalar_type(len(starts)))
        members.append(rows[np.argsort(symbols, kind="stable")])
        sizes.append(np.bincount(symbols, minlength=len(starts)))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    rows = np.concatenate(members)
    indicators = sp.csc_matrix(
        (np.ones(len(rows), dtype=np.int32), rows, starts), shape=(X.shape[0], len(starts) - 1)
    )
    return BinnedFeatures(indicators, cuts.offsets)
