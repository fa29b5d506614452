"""Means and spreads of columns, without centring a sparse matrix."""

from __future__ import annotations

import numpy as np

from labelsieve.numerics.batches import batches
from labelsieve.numerics.sparse import is_sparse
from labelsieve.numerics.typing import Matrix


def centre_columns(M: np.ndarray) -> np.ndarray:
    """Subtract the mean of every column.

    Examples
    --------
    >>> centre_columns(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    centred: np.ndarray = M - M.mean(axis=0)
    return centred


def column_moments(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squared deviations of every column, both in float64.

    The deviations are taken from the mean, not from the difference of two large sums, and are exactly 0
    where they are no more than the rounding of a constant column.

    Parameters
    ----------
    X : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        Sparse matrices must not hold an entry twice.

    Returns
    -------
    mean : ndarray of shape (n_features,)
        Mean of every column.
    deviation : ndarray of shape (n_features,)
        Sum of the squared deviations from it.

    Examples
    --------
    >>> column_moments(np.array([[1.0, 0.1], [3.0, 0.1]]))
    (array([2. , 0.1]), array([2., 0.]))
    """
    n_samples, n_features = X.shape
    if is_sparse(X):
        columns = X.indices if X.format == "csr" else np.repeat(np.arange(n_features), np.diff(X.indptr))
        # Counting adds in float64; a sparse sum would add float32 entries in float32.
        mean = np.bincount(columns, weights=X.data, minlength=n_features) / n_samples
        n_stored = np.bincount(columns, minlength=n_features)
        deviation = np.bincount(columns, weights=(X.data - mean[columns]) ** 2, minlength=n_features)
        # Not in place: counting nothing at all gives integers, whatever the weights.
        deviation = deviation + (n_samples - n_stored) * mean**2
    else:
        mean = X.mean(axis=0, dtype=np.float64)
        deviation = np.empty(n_features, dtype=np.float64)
        for block in batches(n_features, n_samples):
            centred = X[:, block] - mean[block]
            deviation[block] = np.einsum("ij,ij->j", centred, centred)
    rounding = n_samples * np.finfo(np.float64).eps * np.abs(mean)
    deviation[deviation <= n_samples * rounding**2] = 0.0
    return mean, deviation
