"""Nearest neighbours, and sparse neighbourhood graphs with heat-kernel weights.

scikit-learn computes the distances in blocks, so no n_samples x n_samples matrix is ever stored. Ties
are broken by the lower index, so dense and sparse features have the same neighbours.

Every node of a graph is connected to itself and to its nearest neighbours. The weight of an edge is
``exp(-distance^2 / (2 t^2))``, and 1 for a self-loop. Two nodes are connected if either is a neighbour
of the other. The self-loops cancel in the Laplacian. We keep them because multiplicative updates use the
affinity and the degrees separately.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances_chunked

from labelsieve._numerics.batches import batches
from labelsieve._numerics.information import cooccurrence
from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.sparse import Matrix, is_sparse

#: Distances are rounded to this many steps between 0 and an upper bound. Rounding errors differ between
#: dense and sparse products and would otherwise break ties.
DISTANCE_STEPS = 2**24


def nearest_rows(
    X: Matrix, n_neighbors: int, *, queries: Matrix | None = None, exclude_self: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest rows of ``X``, nearest first. Ties are broken by the lower index.

    ``queries`` are the rows whose neighbours are needed, or None for the rows of ``X``. In that case
    ``exclude_self`` removes each row from its own neighbours. Returns row indices and Euclidean distances
    of shape (n_queries, n_neighbors), with fewer columns if there are fewer rows.

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
    # Every query has its own grid, so its neighbours do not depend on the other queries.
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
        # Distances that round to zero on the grid are duplicate rows. The product formula gives about 1e-8.
        same = np.take_along_axis(grid, nearest, axis=1) == 0
        return nearest, np.where(same, 0.0, np.take_along_axis(block, nearest, axis=1))

    blocks = pairwise_distances_chunked(
        X if queries is None else queries, None if queries is None else X, reduce_func=pick, working_memory=32
    )
    indices, distances = zip(*blocks, strict=True)
    return np.vstack(indices), np.vstack(distances)


#: Number of edges whose end points are in memory at once.
_EDGE_BLOCK = 4096


class Graph(NamedTuple):
    """Symmetric affinity matrix in CSR format, and its column sums."""

    affinity: sp.csr_matrix
    degrees: np.ndarray


def neighbor_graph(points: Matrix, n_neighbors: int = 5, *, bandwidth: str | float = "unit") -> Graph:
    """Connect every row of ``points`` to its nearest rows.

    Pass the transpose to connect columns. ``bandwidth`` is ``t``, or "unit" for 1. With "median", ``t^2``
    is the median squared length of the edges to neighbours. With "mean", ``2 t^2`` is the mean. Affinity and
    degrees have the dtype of ``points``.

    Examples
    --------
    >>> graph = neighbor_graph(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> graph.affinity.toarray().round(3)
    array([[1.   , 0.607, 0.   ],
           [0.607, 1.   , 0.135],
           [0.   , 0.135, 1.   ]])
    """
    n_nodes = points.shape[0]
    points = points.tocsr() if is_sparse(points) else points
    neighbors, _ = nearest_rows(points, n_neighbors, exclude_self=True)
    sources, targets = np.repeat(np.arange(n_nodes), neighbors.shape[1]), neighbors.ravel()
    return _heat_graph(
        sources, targets, _squared_lengths(points, sources, targets), n_nodes, bandwidth, points.dtype
    )


def label_graph(Y: Matrix, n_neighbors: int = 5, *, bandwidth: str = "unit") -> Graph:
    """Connect every column of a 0/1 matrix to its nearest columns.

    Squared distances between 0/1 columns are integers and often equal. All columns as near as the last
    neighbour are kept, so the graph does not depend on the order of the labels.

    Examples
    --------
    >>> graph = label_graph(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]), 1)
    >>> graph.affinity.toarray().round(3)
    array([[1.   , 0.368, 0.368],
           [0.368, 1.   , 1.   ],
           [0.368, 1.   , 1.   ]])
    """
    n_labels = Y.shape[1]
    n_neighbors = min(n_neighbors, n_labels - 1)
    if n_neighbors < 1:
        nothing = np.empty(0, dtype=np.intp)
        return _heat_graph(nothing, nothing, np.empty(0), n_labels, bandwidth, Y.dtype)
    together = cooccurrence(Y)
    counts = np.diag(together)
    squared = counts[:, None] + counts - 2 * together
    np.fill_diagonal(squared, np.inf)
    reach = np.partition(squared, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    sources, targets = np.nonzero(squared <= reach[:, None])
    return _heat_graph(sources, targets, squared[sources, targets], n_labels, bandwidth, Y.dtype)


def laplacian_product(graph: Graph, V: np.ndarray) -> np.ndarray:
    """Return L V for the Laplacian L = diag(degrees) - affinity."""
    return graph.degrees[:, None] * V - graph.affinity @ V


def _heat_graph(
    sources: np.ndarray,
    targets: np.ndarray,
    squared: np.ndarray,
    n_nodes: int,
    bandwidth: str | float,
    dtype: np.dtype,
) -> Graph:
    """Weight the edges, make them symmetric and add the self-loops."""
    width = 1.0 if isinstance(bandwidth, str) else float(bandwidth) ** 2
    if bandwidth == "median" and squared.any():
        # Duplicate points carry no information about the scale of the data.
        width = float(np.median(squared[squared > 0]))
    elif bandwidth == "mean" and squared.any():
        width = float(squared.mean()) / 2
    weights = np.exp(squared / (-2 * width)).astype(dtype)
    # Subnormal weights are negligible, but slow.
    weights[weights < np.finfo(dtype).tiny] = 0
    affinity = sp.csr_matrix((weights, (sources, targets)), shape=(n_nodes, n_nodes))
    affinity = (affinity.maximum(affinity.T) + sp.identity(n_nodes, dtype=dtype, format="csr")).tocsr()
    affinity.eliminate_zeros()
    return Graph(affinity, np.asarray(affinity.sum(axis=0)).ravel().astype(dtype, copy=False))


def _squared_lengths(points: Matrix, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Compute squared edge lengths from differences, which is accurate for nearly equal points."""
    squared = np.empty(len(sources))
    for block in batches(len(sources), width=1, budget=_EDGE_BLOCK):
        difference = (points[sources[block]] - points[targets[block]]).astype(np.float64, copy=False)
        squared[block] = squared_row_norms(difference)
    return squared
