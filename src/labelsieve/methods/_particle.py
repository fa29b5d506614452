"""Base class of PARTICLE-VLS and PARTICLE-MAP: shared parameters and the choice of credible labels.

Candidates are propagated between neighbours, and the neighbours of held-out rows then vote on their
candidates. No n_samples x n_samples matrix is formed.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from labelsieve._base import POSITIVE, BaseSelector, Integral, Interval, Real, StrOptions, as_generator
from labelsieve._numerics.batches import batches
from labelsieve._numerics.graph import nearest_rows
from labelsieve._numerics.result import SolverResult, logger
from labelsieve._numerics.scaling import Scaling, minmax_rows
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve._prediction import LabelPredictor

#: Gradients below this fraction of the largest diagonal entry are treated as zero. For columns that
#: depend linearly on the chosen ones, the gradient is a rounding error.
GRADIENT_TOLERANCE = 1e-10


@dataclass(eq=False, repr=False, kw_only=True)
class BaseParticle(LabelPredictor, BaseSelector):
    """Base class of both methods. Subclasses score features, score labels and choose labels."""

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "weights": [StrOptions({"mean", "stacked"})],
        "alpha": [Interval(Real, 0, 1, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="right")],
        "C": POSITIVE,
        "exclude_self": ["boolean"],
        "fallback": [StrOptions({"candidate", "labels"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "shuffle": ["boolean"],
        "scale": [StrOptions({"minmax", "standard"}), None],
    }

    weights: str = "mean"
    n_neighbors: int = 10
    alpha: float = 0.95
    threshold: float = 0.9
    C: float = 1.0
    exclude_self: bool = True
    fallback: str = "candidate"
    cv: int = 10
    shuffle: bool = True
    scale: str | None = "minmax"
    max_iter: int = 1000
    tol: float = 1e-5
    random_state: Any = 0
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaling = Scaling.learn(X, self.scale)
        rows, candidates = as_double_rows(scaling.apply(X)), dense(Y)
        credible = self._elicit(rows, candidates, self._folds(X.shape[0]))
        scores, coef, extra = self._score_features(rows, candidates, credible.labels)
        kind = sp.csr_matrix if is_sparse(Y) else np.asarray
        return SolverResult(
            scores=scores.astype(X.dtype, copy=False),
            converged=credible.converged,
            extra={
                "coef": coef.astype(X.dtype, copy=False),
                "label_confidence": kind(credible.vote * candidates),
                "credible_labels": kind(credible.labels),
                "n_iter": credible.n_iter,
                "scaling": scaling,
                **extra,
            },
        )

    @abstractmethod
    def _score_features(
        self, X: Matrix, candidates: np.ndarray, credible: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return scores, coefficients and further results, including ``classifiers``, of scaled features."""

    def _scaled_rows(self, X: Matrix) -> Matrix:
        """Scale new rows as in training."""
        return as_double_rows(self.scaling_.apply(X))

    def _folds(self, n_samples: int) -> list[np.ndarray]:
        """Split the rows into contiguous folds, after shuffling them if requested."""
        rows = np.arange(n_samples)
        if self.shuffle:
            rows = as_generator(self.random_state).permutation(n_samples)
        return np.array_split(rows, min(self.cv, n_samples))

    def _elicit(self, X: Matrix, Y: np.ndarray, folds: list[np.ndarray]) -> CredibleLabels:
        """Choose the credible labels of every row by a vote of neighbours in the other folds.

        Labels are propagated outside a fold. Candidates in the fold are credible if their vote reaches the
        threshold. A row without candidates has no credible label.
        """
        vote = np.empty(Y.shape)
        n_iter, converged = 0, True
        for number, held_out in enumerate(folds, start=1):
            rest = np.setdiff1d(np.arange(len(Y)), held_out)
            X_rest, Y_rest = X[rest], Y[rest]
            result = self._propagate(X_rest, Y_rest)
            confidence = balance_confidence(result.confidence, Y_rest)
            indices, distances = nearest_rows(X_rest, self.n_neighbors, queries=X[held_out])
            vote[held_out] = neighbor_vote(confidence, indices, distances)
            n_iter, converged = max(n_iter, result.n_iter), converged and result.converged
            logger.info(
                "fold %d of %d: labels propagated in %d iterations", number, len(folds), result.n_iter
            )
        labels = _credible(vote, Y > 0, self.threshold, self.fallback)
        return CredibleLabels(labels, vote, n_iter, converged)

    def _propagate(self, X: Matrix, Y: np.ndarray) -> Propagation:
        """Propagate the candidates of all rows over the neighbour graph."""
        neighbors, _ = nearest_rows(X, self.n_neighbors, exclude_self=self.exclude_self)
        graph = reconstruction_graph(X, neighbors)
        return propagate_labels(graph, Y, alpha=self.alpha, max_iter=self.max_iter, tol=self.tol)

    def _ridge_weights(self, X: Matrix, Y: np.ndarray) -> np.ndarray:
        """Regress the propagated confidences on the features, for data without trainable classifiers."""
        P = self._propagate(X, Y).confidence
        ridge = Ridge(alpha=1.0, fit_intercept=False, solver="sparse_cg", tol=1e-10).fit(X, P)
        return ridge.coef_.reshape(P.shape[1], X.shape[1])


def as_double_rows(X: Matrix) -> Matrix:
    """Convert ``X`` to float64 and, if sparse, to CSR."""
    X = X.astype(np.float64, copy=False)
    return X.tocsr() if is_sparse(X) else X


class Propagation(NamedTuple):
    """Confidences after label propagation, which sum to 1 over the candidates of a row."""

    confidence: np.ndarray
    n_iter: int
    converged: bool


class CredibleLabels(NamedTuple):
    """Mask of credible candidates, and the votes in [0, 1] of neighbours in the other folds."""

    labels: np.ndarray
    vote: np.ndarray
    n_iter: int
    converged: bool


def reconstruction_graph(X: Matrix, neighbors: np.ndarray) -> sp.csr_matrix:
    """Approximate every row by a non-negative combination of its neighbours, with weights that sum to 1.

    If no neighbour helps to reconstruct a row, its weights are zero.
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
    """Propagate the candidates over the graph.

    Repeats ``P <- alpha T P + (1 - alpha) Y``, restricted to the candidates and with rows divided by their
    sums, until the spectral norm of the change is below ``tol``. This is a fixed-point iteration and
    descends no objective.
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
    """Rescale every label to sum to its number of candidates, then every row to [0, 1]."""
    return minmax_rows(P * _divide(Y.sum(axis=0, dtype=np.float64), P.sum(axis=0)))


def neighbor_vote(C: np.ndarray, indices: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Average the confidences of the neighbours, weighted by closeness, and rescale every row to [0, 1].

    The weight of a neighbour is 1 minus its fraction of the summed distances, or 1 if that is undefined.
    """
    weights = 1.0 - _divide(distances, distances.sum(axis=1, keepdims=True))
    if indices.shape[1] == 1:
        weights = np.ones_like(weights)
    n_queries, n_neighbors = indices.shape
    starts = np.arange(0, n_queries * n_neighbors + 1, n_neighbors)
    return minmax_rows(
        sp.csr_matrix((weights.ravel(), indices.ravel(), starts), shape=(n_queries, len(C))) @ C
    )


def _credible(vote: np.ndarray, candidate: np.ndarray, threshold: float, fallback: str) -> np.ndarray:
    supported = vote >= threshold
    credible: np.ndarray = supported & candidate
    empty = candidate.any(axis=1) & ~credible.any(axis=1)
    if fallback == "labels":
        credible[empty] = supported[empty]
    else:
        on_candidates = np.where(candidate[empty], vote[empty], -np.inf)
        # Keep all ties, so that the result does not depend on the order of the labels.
        credible[empty] = on_candidates >= on_candidates.max(axis=1, keepdims=True) - 1e-12
    return credible


def _gram_stack(X: Matrix, rows: np.ndarray) -> np.ndarray:
    """Compute inner products within groups of rows: (n_groups, size) -> (n_groups, size, size)."""
    if not is_sparse(X):
        groups = X[rows]
        return np.asarray(groups @ groups.transpose(0, 2, 1))
    first, second = np.triu_indices(rows.shape[1])
    products = X[rows[:, first].ravel()].multiply(X[rows[:, second].ravel()]).sum(axis=1)
    gram = np.empty((len(rows), rows.shape[1], rows.shape[1]))
    gram[:, first, second] = gram[:, second, first] = np.asarray(products).reshape(len(rows), -1)
    return gram


def _spectral_norm_below(change: np.ndarray, tol: float) -> bool:
    """Test ``|change|_2 < tol``, with cheap bounds if they suffice."""
    squares = np.einsum("ij,ij->j", change, change)
    if squares.sum() < tol**2:
        return True
    if squares.max() >= tol**2:
        return False
    return bool(np.linalg.norm(change, 2) < tol)


def _divide(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Divide with ``0 / 0 = 0``."""
    return values / np.where(by > 0, by, 1.0)


def solve_nnls(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Minimise ``t' G t - 2 c' t`` over ``t >= 0`` for a stack of problems.

    Runs the active-set method of Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23, on
    all problems at once. In every round, each unsolved problem adds the variable with the largest gradient,
    or shortens its step if a variable would become negative. Columns that depend linearly on others never
    enter.
    """
    n_variables = target.shape[1]
    weights = np.zeros(target.shape)
    chosen = np.zeros(target.shape, dtype=bool)
    scale = np.einsum("ijj->ij", gram).max(axis=1, initial=0.0)
    problems = np.flatnonzero(scale > 0)
    is_optimal = np.ones(len(problems), dtype=bool)
    # Every round changes the chosen set of every unsolved problem. The limit stops cycles due to rounding.
    for _ in range(10 * n_variables):
        # A problem that is optimal on its chosen variables adds another one, or is solved.
        gradient = target[problems] - np.einsum("ijk,ik->ij", gram[problems], weights[problems])
        gradient[chosen[problems]] = -np.inf
        steepest = gradient.argmax(axis=1)
        enters = is_optimal & (gradient.max(axis=1) > GRADIENT_TOLERANCE * scale[problems])
        chosen[problems[enters], steepest[enters]] = True
        problems = problems[enters | ~is_optimal]
        if not len(problems):
            break
        t, free = weights[problems], chosen[problems]
        solution = _solve_on(free, gram[problems], target[problems], scale[problems])
        blocking = free & (solution <= 0)
        ratio = np.divide(t, t - solution, out=np.full(t.shape, np.inf), where=blocking)
        step = np.minimum(ratio.min(axis=1, keepdims=True), 1.0)
        t += step * (solution - t)
        # The variable that limited the step must leave, even if rounding keeps it above zero.
        leaving = blocking & ((t <= 0) | (ratio <= step))
        t[leaving] = 0.0
        weights[problems] = t
        chosen[problems] = free & ~leaving
        is_optimal = ~blocking.any(axis=1)
    return weights


def _solve_on(free: np.ndarray, gram: np.ndarray, target: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Solve the least-squares problems with the variables outside ``free`` fixed at zero."""
    n_variables = free.shape[1]
    system = np.where(free[:, :, None] & free[:, None, :], gram, 0.0)
    # Fixed variables get the equation t_j = 0. The others get a tiny ridge, so that a degenerate problem
    # cannot fail the whole stack.
    diagonal = np.where(free, 1e-14 * scale[:, None], 1.0)
    system[:, np.arange(n_variables), np.arange(n_variables)] += diagonal
    return np.linalg.solve(system, np.where(free, target, 0.0)[:, :, None])[:, :, 0]
