"""Neighbourhood graphs with heat-kernel weights, always sparse.

Every node keeps itself and its nearest others; the weight of an edge is ``exp(-distance^2 / (2 t^2))``, an
edge found from either end counts, and a node's edge to itself weighs 1. These self-loops cancel in the
Laplacian; they stay because multiplicative updates see the affinity and the degrees separately.

Neighbours are those of `nearest_rows`: the lower index first among equally far nodes, so that dense and
sparse points have the same graph, and distances in blocks instead of an n x n matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.batches import batches
from labelsieve._numerics.information import cooccurrence
from labelsieve._numerics.neighbors import nearest_rows
from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix

#: Edges whose end points are held in memory at once when distances are computed.
_EDGE_BLOCK = 4096


class Graph(NamedTuple):
    """A symmetric affinity in CSR form and its column sums."""

    affinity: sp.csr_matrix
    degrees: np.ndarray


def neighbor_graph(points: Matrix, n_neighbors: int = 5, *, bandwidth: str | float = "unit") -> Graph:
    """Connect every row of ``points`` with its nearest rows.

    Parameters
    ----------
    points : ndarray or sparse matrix of shape (n_nodes, n_dimensions)
        One node per row; pass the transpose to connect columns.
    n_neighbors : int, default=5
        Neighbours per node, at most all the others.
    bandwidth : {"unit", "median", "mean"} or float, default="unit"
        ``t`` itself; "unit" is 1. With "median", ``t^2`` is the median squared length of the edges to
        neighbours, with "mean", ``2 t^2`` is their mean.

    Returns
    -------
    Graph
        Affinity and degrees in the dtype of ``points``.

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
    """Connect every column of a 0/1 matrix with its nearest columns.

    Distances between 0/1 columns are whole numbers and often equal. All columns as near as the last neighbour
    are kept, so that the graph does not depend on the order of the labels.

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
    product: np.ndarray = graph.degrees[:, None] * V - graph.affinity @ V
    return product


def _heat_graph(
    sources: np.ndarray,
    targets: np.ndarray,
    squared: np.ndarray,
    n_nodes: int,
    bandwidth: str | float,
    dtype: np.dtype,
) -> Graph:
    """Weigh the edges, take each in both directions and add the self-loops."""
    width = 1.0 if isinstance(bandwidth, str) else float(bandwidth) ** 2
    if bandwidth == "median" and squared.any():
        # Coinciding points say nothing about the scale of the data.
        width = float(np.median(squared[squared > 0]))
    elif bandwidth == "mean" and squared.any():
        width = float(squared.mean()) / 2
    weights = np.exp(squared / (-2 * width)).astype(dtype)
    # Subnormal weights act like zeros, only slowly.
    weights[weights < np.finfo(dtype).tiny] = 0
    affinity = sp.csr_matrix((weights, (sources, targets)), shape=(n_nodes, n_nodes))
    affinity = (affinity.maximum(affinity.T) + sp.identity(n_nodes, dtype=dtype, format="csr")).tocsr()
    affinity.eliminate_zeros()
    return Graph(affinity, np.asarray(affinity.sum(axis=0)).ravel().astype(dtype, copy=False))


def _squared_lengths(points: Matrix, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Squared edge lengths, from differences: the search's own lose digits where points nearly coincide."""
    squared = np.empty(len(sources))
    for block in batches(len(sources), width=1, budget=_EDGE_BLOCK):
        difference = (points[sources[block]] - points[targets[block]]).astype(np.float64, copy=False)
        squared[block] = squared_row_norms(difference)
    return squared
