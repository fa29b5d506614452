"""Columns that stand for one another: groups joined by strong correlations."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelsieve._numerics.batches import batches
from labelsieve._numerics.moments import column_moments
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix


def correlated_groups(X: Matrix, threshold: float) -> np.ndarray:
    """Number the groups of columns that are joined by absolute correlations of at least ``threshold``.

    Columns of a group need not all be correlated with each other: a chain joins its ends. A constant column is a
    group of its own. Correlations are computed in blocks, and only the strong ones are kept.

    Parameters
    ----------
    X : {ndarray, CSR, CSC} of shape (n_samples, n_columns)
        The columns; sparse ones are centred implicitly and never made dense.
    threshold : float
        Correlation in (0, 1].

    Returns
    -------
    groups : ndarray of int of shape (n_columns,)
        Number of the group of every column; groups are numbered in the order of their first columns.

    Examples
    --------
    >>> correlated_groups(np.array([[1.0, 5.0, -1.0], [2.0, 3.0, -2.0], [3.0, 6.0, -3.1]]), 0.9)
    array([0, 1, 0])
    """
    n_samples, n_columns = X.shape
    mean, deviation = column_moments(X)
    spread = np.sqrt(deviation)
    if is_sparse(X):
        X = X.tocsc().astype(np.float64)
    strong = []
    for block in batches(n_columns, max(n_samples, n_columns)):
        first = X[:, block]
        if is_sparse(X):
            taken_off = n_samples * np.outer(mean[block], mean)
            products = dense(first.T @ X) - taken_off
            # Beside means as large as this the difference is rounding.
            rounding = n_samples * np.finfo(np.float64).eps * np.abs(taken_off)
        else:
            # Centring one side is enough, twice: what rounding left of its means is multiplied by those of X.
            first = first - mean[block]
            first -= first.mean(axis=0)
            products = first.T @ X
            rounding = 0.0
        limits = threshold * np.outer(spread[block], spread)
        # Twins must not be parted by rounding.
        rows, columns = np.nonzero((np.abs(products) >= limits * (1 - 1e-12)) & (limits > rounding))
        strong.append(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=products.shape))
    _, groups = connected_components(sp.vstack(strong), directed=False)
    numbers: np.ndarray = groups.astype(np.intp)
    return numbers
