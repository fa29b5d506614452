"""Where the columns of the Gram matrix Z'Z of standardised features come from: made on demand, or formed once."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from labelsieve.numerics.batches import BUDGET, batches
from labelsieve.numerics.scaling import Scaling
from labelsieve.numerics.sparse import is_sparse
from labelsieve.numerics.standardized import StandardizedFeatures, second_moments
from labelsieve.numerics.typing import Matrix

__all__ = ["LARGEST_GRAM", "FormedGram", "Gram", "GramOnDemand", "gram_without_rows", "is_gram_cheaper"]

#: Most features for which all pairs are ever formed.
LARGEST_GRAM = 5000
#: How many operations of a matrix product take the time of one of a matrix-vector product, which waits for memory.
_MEMORY_BOUND = 8
#: Standard deviation in all rows over that in the kept rows from which on a difference of sums has lost too much.
_LARGEST_LOSS = 100


class Gram(Protocol):
    """Z'Z, for whoever wants a column of it or a block on the diagonal."""

    def column(self, feature: int) -> np.ndarray:
        """One column; not to be changed."""
        ...

    def block(self, features: np.ndarray) -> np.ndarray:
        """Rows and columns of some features."""
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

    def column(self, feature: int) -> np.ndarray:
        """One column; not to be changed."""
        column: np.ndarray = self.matrix[feature]
        return column

    def block(self, features: np.ndarray) -> np.ndarray:
        """Rows and columns of some features."""
        block: np.ndarray = self.matrix[np.ix_(features, features)]
        return block


class GramOnDemand:
    """Z'Z column by column. The first ones are kept: several paths over the same rows ask for them.

    Parameters
    ----------
    features : StandardizedFeatures
        Z.
    """

    def __init__(self, features: StandardizedFeatures) -> None:
        self.features = features
        self._kept: dict[int, np.ndarray] = {}

    def column(self, feature: int) -> np.ndarray:
        """One column; not to be changed."""
        if feature in self._kept:
            return self._kept[feature]
        column = self.features.gram_column(feature)
        if (len(self._kept) + 1) * len(column) <= BUDGET:
            self._kept[feature] = column
        return column

    def block(self, features: np.ndarray) -> np.ndarray:
        """Rows and columns of some features."""
        return self.features.gram(features)


def is_gram_cheaper(X: Matrix, n_columns: float, n_folds: int) -> bool:
    """Say whether to form Z'Z, given how many columns will be asked for.

    Parameters
    ----------
    X : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        Features. A column of sparse ones is so cheap that their Z'Z is never formed.
    n_columns : float
        Columns that all paths will need, each counted by the share of the rows that it sees.
    n_folds : int
        Inner folds; 0 for none. Their parts of Z'Z together cost as much as the whole.
    """
    n_features = X.shape[1]
    if is_sparse(X) or n_features > LARGEST_GRAM:
        return False
    # In units of n_samples * n_features; half of a symmetric matrix need not be computed.
    return n_features * (2 if n_folds else 1) < 2 * _MEMORY_BOUND * n_columns


def gram_without_rows(
    gram: np.ndarray, scaling: Scaling, X: np.ndarray, held_out: np.ndarray, kept: StandardizedFeatures
) -> np.ndarray:
    """Z'Z of the rows that are not held out, from that of all rows.

    Parameters
    ----------
    gram : ndarray of shape (n_features, n_features)
        Z'Z of all rows.
    scaling : Scaling
        What standardises the features over all rows.
    X : ndarray of shape (n_samples, n_features)
        All rows.
    held_out : ndarray of bool of shape (n_samples,)
        The rows to leave out.
    kept : StandardizedFeatures
        The other rows, with means and deviations of their own.
    """
    matrix = gram - second_moments(X[held_out], scaling)
    # To the means and deviations of the kept rows.
    shift = (np.asarray(kept.scaling.offset) - np.asarray(scaling.offset)) * scaling.factor
    ratio = np.divide(kept.scaling.factor, scaling.factor, out=np.zeros_like(shift), where=scaling.factor > 0)
    for rows in batches(len(matrix), len(matrix)):
        matrix[rows] -= kept.n_samples * np.outer(shift[rows], shift)
        matrix[rows] *= np.outer(ratio[rows], ratio)
    # A feature that hardly varies in the kept rows is a small difference of large sums: it is computed anew.
    for feature in np.flatnonzero(ratio > _LARGEST_LOSS).tolist():
        matrix[feature] = matrix[:, feature] = kept.gram_column(feature)
    return matrix
