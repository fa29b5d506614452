"""DRMFS: robust multi-label feature selection with dual-graph regularisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from labelsieve._base import NON_NEGATIVE, BaseSelector, StrOptions, nonnegative_features
from labelsieve._numerics.graph import Graph, label_graph, laplacian_product, neighbor_graph
from labelsieve._numerics.norms import l21_weights, multiplicative_step, row_norms, smooth_l21_norm
from labelsieve._numerics.products import inner
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix, dense


@dataclass(eq=False, repr=False, kw_only=True)
class DRMFS(BaseSelector):
    """Select features by a robust non-negative regression that is smooth on two graphs.

    Minimises over ``W >= 0``, [1]_::

        |XW - Y|_21 + alpha tr(W' L_X W) + beta tr(W L_Y W') + gamma |W|_21

    with the Laplacians of a graph over the features and of one over the labels. The loss is the distance of a
    row, not its square, so single mislabelled rows weigh less. Features rank by the squared norms of their
    rows of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    alpha, beta, gamma : float, default=1.0
        Weights of the feature graph, of the label graph and of the row sparsity.
    n_neighbors : int, default=5
        Neighbours of a node in both graphs, at most all the others.
    bandwidth : {"unit", "median"}, default="unit"
        Width t of the heat kernel ``exp(-distance^2 / (2 t^2))``: 1 as published, or the median length of
        an edge. With "unit" most edges weigh practically nothing, see Notes.
    solver : {"accelerated", "multiplicative"}, default="accelerated"
        Accelerated proximal steps, or the published multiplicative updates. Both descend to the same optimum.
    scale : {"minmax"} or None, default="minmax"
        Bring every feature to [0, 1], or use ``X >= 0`` as it is.
    max_iter : int, default=2000
        Iteration budget.
    tol : float, default=1e-7
        Relative change of the objective that stops the loop: over ten iterations of the accelerated solver,
        in one of the multiplicative solver, from the third on, as published with 1e-3.
    verbose : int, default=0
        Log every iteration.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of W, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        The transpose of W.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations; it never rises.

    Notes
    -----
    The problem is convex, so the default solves it tightly from a constant matrix. The published stop, a
    relative change of 1e-3, often ends far from the optimum and makes the ranking depend on the start.

    With the published width of 1, columns of n rows are so far apart that ``alpha`` and ``beta`` change almost
    nothing; ``bandwidth="median"``, a deviation, gives the graphs an effect. Labels at equal distance are all
    neighbours, so the order of the labels does not matter. Candidate labels are taken as they are.

    Cost: two products of X with as many columns as there are labels for every iteration; once a search for
    the nearest features, ``O(n_samples n_features^2)``.

    References
    ----------
    .. [1] Hu, Li, Gao, Zhang, "Robust multi-label feature selection with dual-graph regularization",
       Knowledge-Based Systems 203, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.drmfs import DRMFS
    >>> X = np.random.default_rng(0).random((60, 5))
    >>> Y = (X[:, [1, 3]] > 0.5).astype(int)
    >>> DRMFS(n_features_to_select=2).fit(X, Y).get_support(indices=True)
    array([1, 3])
    """

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "scale": [StrOptions({"minmax"}), None],
        "alpha": NON_NEGATIVE,
        "beta": NON_NEGATIVE,
        "gamma": NON_NEGATIVE,
        "solver": [StrOptions({"accelerated", "multiplicative"})],
        "bandwidth": [StrOptions({"unit", "median"})],
    }

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    n_neighbors: int = 5
    bandwidth: str = "unit"
    solver: str = "accelerated"
    scale: str | None = "minmax"
    max_iter: int = 2000
    tol: float = 1e-7
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        return self._descend(nonnegative_features(X, self.scale), Y)

    def _descend(self, X: Matrix, Y: Matrix, start: np.ndarray | None = None) -> SolverResult:
        """Solve for ``X >= 0`` from a positive W, by default the constant that fits the mean of Y."""
        Y = dense(Y).astype(X.dtype, copy=False)
        problem = DRMFSProblem(
            self,
            X,
            Y,
            neighbor_graph(X.T, self.n_neighbors, bandwidth=self.bandwidth),
            label_graph(Y, self.n_neighbors, bandwidth=self.bandwidth),
        )
        W = _constant_start(X, Y) if start is None else start
        P = X @ W
        value = problem.objective(W, P)
        # An accelerated step can stand still once.
        step, window = (_accelerated_step, 10) if self.solver == "accelerated" else (_multiplicative_step, 1)
        state, history, converged = self._iterate(
            partial(step, problem), DRMFSState(W, P, W, P, 1.0, value), value, window=window, min_iter=3
        )
        scores, coef = row_norms(state.W) ** 2, state.W.T
        return SolverResult(scores=scores, objective=history, converged=converged, extra={"coef": coef})


@dataclass(frozen=True)
class DRMFSProblem:
    """Data and graphs, all in the dtype of ``X``."""

    params: DRMFS
    X: Matrix
    Y: np.ndarray
    feature_graph: Graph
    label_graph: Graph

    def objective(self, W: np.ndarray, P: np.ndarray) -> float:
        """J at W with P = X W."""
        return (
            smooth_l21_norm(P - self.Y)
            + self.params.alpha * inner(W, laplacian_product(self.feature_graph, W))
            + self.params.beta * inner(W.T, laplacian_product(self.label_graph, W.T))
            + self.params.gamma * smooth_l21_norm(W)
        )

    def half_gradient(self, W: np.ndarray, R: np.ndarray, row_weights: np.ndarray) -> np.ndarray:
        """Half the gradient of all but the sparsity term, at the residual R = X W - Y."""
        return (
            self.X.T @ (row_weights[:, None] * R)
            + self.params.alpha * laplacian_product(self.feature_graph, W)
            + self.params.beta * laplacian_product(self.label_graph, W.T).T
        )

    def curvature(self, row_weights: np.ndarray) -> np.ndarray:
        """Diagonal that bounds half the Hessian of the reweighted problem, one number per feature.

        Row sums bound a matrix without negative entries, twice the degrees bound a Laplacian. A node's edge
        to itself is not part of the Laplacian, so it does not count.
        """
        row_sums = self.X @ np.ones(self.X.shape[1], dtype=self.X.dtype)
        return (
            self.X.T @ (row_weights * row_sums)
            + 2 * self.params.alpha * (self.feature_graph.degrees - 1)
            + 2 * self.params.beta * (self.label_graph.degrees - 1).max()
        )


class DRMFSState(NamedTuple):
    """The accepted W with P = X W, the point ahead of it from which to step, and the momentum."""

    W: np.ndarray
    P: np.ndarray
    W_ahead: np.ndarray
    P_ahead: np.ndarray
    momentum: float
    value: float


def _accelerated_step(problem: DRMFSProblem, state: DRMFSState) -> tuple[DRMFSState, float]:
    """Minimise a separable bound of J around the point ahead; go back and drop the momentum where J rose.

    The bound replaces every row's loss by the quadratic that touches it and the Hessian by a diagonal, so
    without momentum a step cannot rise. The sparsity term and the sign are kept exactly: clip, then shrink
    the row.
    """
    R = state.P_ahead - problem.Y
    row_weights = l21_weights(R)
    curvature = problem.curvature(row_weights)[:, None]
    # Without curvature a feature is constant and appears in no term: its weight is 0.
    inverse = np.divide(1, curvature, out=np.zeros_like(curvature), where=curvature > 0)
    W = state.W_ahead - inverse * problem.half_gradient(state.W_ahead, R, row_weights)
    np.maximum(W, 0, out=W)
    lengths = row_norms(W)[:, None]
    threshold = problem.params.gamma / 2 * inverse
    W *= np.divide(lengths - threshold, lengths, out=np.zeros_like(lengths), where=lengths > threshold)
    W[inverse[:, 0] == 0] = 0

    P = problem.X @ W
    value = problem.objective(W, P)
    if value > state.value:
        return DRMFSState(state.W, state.P, state.W, state.P, 1.0, state.value), state.value
    momentum = (1 + np.sqrt(1 + 4 * state.momentum**2)) / 2
    ahead = W.dtype.type((state.momentum - 1) / momentum)
    return DRMFSState(W, P, W + ahead * (W - state.W), P + ahead * (P - state.P), momentum, value), value


def _multiplicative_step(problem: DRMFSProblem, state: DRMFSState) -> tuple[DRMFSState, float]:
    """Multiply W by the ratio of the negative and the positive part of the gradient, as published."""
    W, P = state.W, state.P
    row_weights = l21_weights(P - problem.Y)[:, None]
    numerator = (
        problem.X.T @ (row_weights * problem.Y)
        + problem.params.alpha * (problem.feature_graph.affinity @ W)
        + problem.params.beta * (problem.label_graph.affinity @ W.T).T
    )
    denominator = problem.X.T @ (row_weights * P) + W * (
        problem.params.alpha * problem.feature_graph.degrees[:, None]
        + problem.params.beta * problem.label_graph.degrees
        + (problem.params.gamma * l21_weights(W))[:, None]
    )
    W = multiplicative_step(W, numerator, denominator)
    P = problem.X @ W
    value = problem.objective(W, P)
    return DRMFSState(W, P, W, P, 1.0, value), value


def _constant_start(X: Matrix, Y: np.ndarray) -> np.ndarray:
    """The constant W for which X W has the mean of Y: positive, and blind to the order of the labels."""
    mean_row_sum = X.sum(dtype=np.float64) / X.shape[0]
    level = Y.mean(dtype=np.float64) / mean_row_sum if mean_row_sum > 0 else 1.0
    return np.full((X.shape[1], Y.shape[1]), level, dtype=X.dtype)
