"""Credible labels: propagate candidates over neighbours, then let held-out rows ask their neighbours.

The first stage of the two PARTICLE methods. Nothing is ever n_samples x n_samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.batches import batches
from labelsieve._numerics.graph import nearest_rows
from labelsieve._numerics.result import logger
from labelsieve._numerics.scaling import minmax_rows
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve.methods._particle.nnls import solve_nnls


@dataclass(frozen=True)
class Elicitation:
    """How credible labels are found; the classes of the methods explain every option."""

    n_neighbors: int = 10
    alpha: float = 0.95
    threshold: float = 0.9
    exclude_self: bool = True
    fallback: str = "candidate"
    max_iter: int = 1000
    tol: float = 1e-5


@dataclass(frozen=True)
class Propagation:
    """Confidences after label propagation.

    Parameters
    ----------
    confidence : ndarray of shape (n_samples, n_labels)
        Rows that sum to one over the candidates, and are zero elsewhere.
    n_iter : int
        Iterations done.
    converged : bool
        Whether they stood still before the budget was spent.
    """

    confidence: np.ndarray
    n_iter: int
    converged: bool


def reconstruction_graph(X: Matrix, neighbors: np.ndarray) -> sp.csr_matrix:
    """Write every row as a non-negative combination of its neighbours, the weights scaled to sum to one.

    A row that no neighbour helps to reconstruct keeps a row of zeros.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 3.0]])
    >>> reconstruction_graph(X, np.array([[1, 2], [0, 2], [0, 1]])).toarray()
    array([[0.  , 0.  , 1.  ],
           [0.  , 0.  , 1.  ],
           [0.25, 0.75, 0.  ]])
    """
    n_rows, n_neighbors = neighbors.shape
    weights = np.zeros((n_rows, n_neighbors))
    if n_neighbors:
        for batch in batches(n_rows, width=(n_neighbors + 1) * max(X.shape[1], n_neighbors + 1)):
            rows = np.arange(batch.start, batch.stop)
            gram = _gram_stack(X, np.column_stack([rows, neighbors[rows]]))
            weights[rows] = solve_nnls(gram[:, 1:, 1:], gram[:, 0, 1:])
    weights = _divide(weights, weights.sum(axis=1, keepdims=True))
    starts = np.arange(0, n_rows * n_neighbors + 1, n_neighbors) if n_neighbors else np.zeros(n_rows + 1, int)
    graph = sp.csr_matrix((weights.ravel(), neighbors.ravel(), starts), shape=(n_rows, n_rows))
    graph.eliminate_zeros()
    return graph


def propagate_labels(
    graph: sp.csr_matrix, Y: np.ndarray, *, alpha: float, max_iter: int, tol: float
) -> Propagation:
    """Spread the candidates over the graph, back onto the candidates, rows summing to one.

    Repeats ``P <- alpha T P + (1 - alpha) Y``, restricted to the candidates and with rows divided by their
    sums, until the spectral norm of the change is below ``tol``. There is no objective that this descends,
    only a fixed point, so it has a loop of its own.

    Examples
    --------
    >>> swap, Y = sp.csr_matrix(np.array([[0.0, 1.0], [1.0, 0.0]])), np.array([[1.0, 1.0], [1.0, 0.0]])
    >>> propagate_labels(swap, Y, alpha=0.5, max_iter=99, tol=1e-6).confidence
    array([[0.66666667, 0.33333333],
           [1.        , 0.        ]])
    """
    P = Y
    for n_iter in range(1, max_iter + 1):
        previous = P
        P = graph @ P
        P *= alpha
        P += (1 - alpha) * Y
        P *= Y
        P = _divide(P, P.sum(axis=1, keepdims=True))
        if _spectral_norm_below(P - previous, tol):
            return Propagation(P, n_iter, True)
    return Propagation(P, max_iter, False)


def balance_confidence(P: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Give every label the mass of its candidates, then bring every row to [0, 1].

    A label without candidates has no mass and stays at zero.

    Examples
    --------
    >>> balance_confidence(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]), np.array([[1, 1, 0], [0, 1, 0]]))
    array([[1.        , 0.66666667, 0.        ],
           [0.        , 1.        , 0.        ]])
    """
    return minmax_rows(P * _divide(Y.sum(axis=0, dtype=np.float64), P.sum(axis=0)))


def neighbor_vote(C: np.ndarray, indices: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Average the neighbours' confidences, near ones a little heavier, and bring every row to [0, 1].

    The weight of a neighbour is one minus its share of the summed distances. It is one where that says
    nothing: all distances zero, or a single neighbour.
    """
    weights = 1.0 - _divide(distances, distances.sum(axis=1, keepdims=True))
    if indices.shape[1] == 1:
        weights = np.ones_like(weights)
    n_queries, n_neighbors = indices.shape
    starts = np.arange(0, n_queries * n_neighbors + 1, n_neighbors)
    return minmax_rows(
        sp.csr_matrix((weights.ravel(), indices.ravel(), starts), shape=(n_queries, len(C))) @ C
    )


@dataclass(frozen=True)
class CredibleLabels:
    """Which candidates to believe.

    Parameters
    ----------
    labels : boolean ndarray of shape (n_samples, n_labels)
        The credible labels.
    vote : ndarray of shape (n_samples, n_labels)
        What the neighbours in the other folds say, in [0, 1].
    n_iter : int
        Iterations of the longest propagation.
    converged : bool
        Whether all propagations stood still before the budget was spent.
    """

    labels: np.ndarray
    vote: np.ndarray
    n_iter: int
    converged: bool


def elicit_credible_labels(
    X: Matrix, Y: np.ndarray, folds: list[np.ndarray], options: Elicitation
) -> CredibleLabels:
    """Propagate labels without a fold, vote on the fold, and believe what reaches the threshold.

    Where the vote supports no candidate of a row, ``fallback="candidate"`` believes the candidates with the
    largest vote and ``fallback="labels"`` believes the supported labels although they are no candidates. A
    row without candidates has no credible label.
    """
    vote = np.empty(Y.shape)
    n_iter, converged = 0, True
    for number, held_out in enumerate(folds, start=1):
        rest = np.setdiff1d(np.arange(len(Y)), held_out)
        X_rest, Y_rest = X[rest], Y[rest]
        result = propagate_over_neighbors(X_rest, Y_rest, options)
        confidence = balance_confidence(result.confidence, Y_rest)
        indices, distances = nearest_rows(X_rest, options.n_neighbors, queries=X[held_out])
        vote[held_out] = neighbor_vote(confidence, indices, distances)
        n_iter, converged = max(n_iter, result.n_iter), converged and result.converged
        logger.info("fold %d of %d: labels propagated in %d iterations", number, len(folds), result.n_iter)
    labels = _credible(vote, Y > 0, options.threshold, options.fallback)
    return CredibleLabels(labels, vote, n_iter, converged)


def propagate_over_neighbors(X: Matrix, Y: np.ndarray, options: Elicitation) -> Propagation:
    """Propagate the candidates of all rows over the graph of their neighbours."""
    neighbors, _ = nearest_rows(X, options.n_neighbors, exclude_self=options.exclude_self)
    graph = reconstruction_graph(X, neighbors)
    return propagate_labels(graph, Y, alpha=options.alpha, max_iter=options.max_iter, tol=options.tol)


def _credible(vote: np.ndarray, candidate: np.ndarray, threshold: float, fallback: str) -> np.ndarray:
    supported = vote >= threshold
    credible: np.ndarray = supported & candidate
    empty = candidate.any(axis=1) & ~credible.any(axis=1)
    if fallback == "labels":
        credible[empty] = supported[empty]
    else:
        on_candidates = np.where(candidate[empty], vote[empty], -np.inf)
        # All candidates that share the largest vote, so that the order of the labels decides nothing.
        credible[empty] = on_candidates >= on_candidates.max(axis=1, keepdims=True) - 1e-12
    return credible


def _gram_stack(X: Matrix, rows: np.ndarray) -> np.ndarray:
    """Inner products within every group of rows: (n_groups, size) -> (n_groups, size, size)."""
    if not is_sparse(X):
        groups = X[rows]
        return np.asarray(groups @ groups.transpose(0, 2, 1))
    first, second = np.triu_indices(rows.shape[1])
    products = X[rows[:, first].ravel()].multiply(X[rows[:, second].ravel()]).sum(axis=1)
    gram = np.empty((len(rows), rows.shape[1], rows.shape[1]))
    gram[:, first, second] = gram[:, second, first] = np.asarray(products).reshape(len(rows), -1)
    return gram


def _spectral_norm_below(change: np.ndarray, tol: float) -> bool:
    """Decide ``|change|_2 < tol``, by its cheap bounds where they suffice."""
    squares = np.einsum("ij,ij->j", change, change)
    if squares.sum() < tol**2:
        return True
    if squares.max() >= tol**2:
        return False
    return bool(np.linalg.norm(change, 2) < tol)


def _divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Divide, with 0 / 0 := 0."""
    return values / np.where(by > 0, by, 1.0)
