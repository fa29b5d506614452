"""The nearest rows of a matrix, the same ones however it is stored.

Distances come from scikit-learn in blocks, so nothing is ever n_samples x n_samples.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import pairwise_distances_chunked

from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.typing import Matrix

#: Distances from a row are compared on a grid of this many steps up to the largest there can be, so that
#: rounding, which differs between dense and sparse products, does not order rows that are equally far.
DISTANCE_STEPS = 2**24


def nearest_rows(
    X: Matrix, n_neighbors: int, *, queries: Matrix | None = None, exclude_self: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest rows of ``X``, nearest first, the lower index first among equally far ones.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        Rows to choose from.
    n_neighbors : int
        How many; no more than there are.
    queries : matrix of the kind of X or None, default=None
        Rows to find neighbours for; None for the rows of ``X`` themselves.
    exclude_self : bool, default=False
        Without ``queries``: whether a row is kept out of its own neighbours.

    Returns
    -------
    indices, distances : ndarrays of shape (n_queries, min(n_neighbors, available rows))
        Row numbers and Euclidean distances.

    Examples
    --------
    >>> indices, distances = nearest_rows(np.array([[0.0], [1.0], [3.0]]), 1, exclude_self=True)
    >>> indices.ravel(), distances.ravel()
    (array([1, 0, 1]), array([1., 1., 2.]))
    """
    n_rows = X.shape[0]
    n_neighbors = min(n_neighbors, n_rows - exclude_self)
    if n_neighbors < 1:
        shape = ((n_rows if queries is None else queries.shape[0]), 0)
        return np.empty(shape, dtype=np.intp), np.empty(shape)
    largest = np.sqrt(squared_row_norms(X).max())
    # A query has a grid of its own, so that its neighbours do not depend on which others are asked about.
    norms = np.full(n_rows, largest) if queries is None else np.sqrt(squared_row_norms(queries))
    reach = largest + norms
    steps = DISTANCE_STEPS / np.where(reach > 0, reach, np.inf)
    columns = np.arange(n_rows)

    def pick(block: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
        grid = np.rint(block * steps[start : start + len(block), None]).astype(np.int64)
        if exclude_self:
            grid[np.arange(len(block)), start + np.arange(len(block))] = 2 * DISTANCE_STEPS
        keys = grid * n_rows + columns
        keys.partition(n_neighbors - 1, axis=1)
        nearest = np.sort(keys[:, :n_neighbors], axis=1) % n_rows
        # What rounds to zero on the grid is a repeated row; the product formula leaves it at 1e-8 or so.
        same = np.take_along_axis(grid, nearest, axis=1) == 0
        return nearest, np.where(same, 0.0, np.take_along_axis(block, nearest, axis=1))

    blocks = pairwise_distances_chunked(
        X if queries is None else queries, None if queries is None else X, reduce_func=pick, working_memory=32
    )
    indices, distances = zip(*blocks, strict=True)
    return np.vstack(indices), np.vstack(distances)
