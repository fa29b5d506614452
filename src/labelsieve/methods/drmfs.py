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
    """Rank features by a robust non-negative regression that is smooth on two graphs.

    Minimises over ``W >= 0`` [1]_::

        |XW - Y|_21 + alpha tr(W' L_X W) + beta tr(W L_Y W') + gamma |W|_21

    where ``L_X`` and ``L_Y`` are the Laplacians of a graph of the features and a graph of the labels.
    The residual norms of the rows are not squared, so mislabelled rows have less influence. Features are
    ranked by the squared norms of their rows of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    alpha, beta, gamma : float, default=1.0
        Weights of the feature graph, the label graph and the row sparsity.
    n_neighbors : int, default=5
        Number of neighbours of each node in both graphs, capped by the number of other nodes.
    bandwidth : {"unit", "median"}, default="unit"
        Width t of the heat kernel ``exp(-distance^2 / (2 t^2))``. "unit" is 1 as published, which makes
        most edge weights negligible (see Notes). "median" is the median edge length.
    solver : {"accelerated", "multiplicative"}, default="accelerated"
        Accelerated proximal steps, or the published multiplicative updates. Both reach the same optimum.
    scale : {"minmax"} or None, default="minmax"
        Scale every feature to [0, 1], or use ``X >= 0`` as it is.
    max_iter : int, default=2000
        Maximum number of iterations.
    tol : float, default=1e-7
        Stop when the relative change of the objective is at most this, over ten iterations of the
        accelerated solver or one iteration of the multiplicative solver. At least three iterations are
        run. The paper uses 1e-3.
    verbose : int, default=0
        Log every iteration if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of W, and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Transpose of W.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations. It never increases.

    Notes
    -----
    The problem is convex, and by default it is solved to high accuracy from a constant matrix. The
    published stopping rule, a relative change of 1e-3, often ends far from the optimum and makes the
    ranking depend on the start.

    With the published width of 1, columns of n rows are so far apart that ``alpha`` and ``beta`` have
    almost no effect. ``bandwidth="median"``, a deviation, makes the graphs effective. All labels at equal
    distance are neighbours, so the order of the labels does not matter. Candidate labels are used as they
    are.

    Cost: two products of X with ``n_labels`` columns per iteration, plus one search for the nearest
    features in ``O(n_samples n_features^2)``.

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
        """Solve for ``X >= 0``, starting from a positive W or a constant that fits the mean of Y."""
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
        # A rejected accelerated step leaves the objective unchanged, hence the window.
        step, window = (_accelerated_step, 10) if self.solver == "accelerated" else (_multiplicative_step, 1)
        state, history, converged = self._iterate(
            partial(step, problem), DRMFSState(W, P, W, P, 1.0, value), value, window=window, min_iter=3
        )
        scores, coef = row_norms(state.W) ** 2, state.W.T
        return SolverResult(scores=scores, objective=history, converged=converged, extra={"coef": coef})


@dataclass(frozen=True)
class DRMFSProblem:
    """Data and graphs in the dtype of ``X``."""

    params: DRMFS
    X: Matrix
    Y: np.ndarray
    feature_graph: Graph
    label_graph: Graph

    def objective(self, W: np.ndarray, P: np.ndarray) -> float:
        """Compute the objective at W with P = X W."""
        return (
            smooth_l21_norm(P - self.Y)
            + self.params.alpha * inner(W, laplacian_product(self.feature_graph, W))
            + self.params.beta * inner(W.T, laplacian_product(self.label_graph, W.T))
            + self.params.gamma * smooth_l21_norm(W)
        )

    def half_gradient(self, W: np.ndarray, R: np.ndarray, row_weights: np.ndarray) -> np.ndarray:
        """Compute half the gradient without the sparsity term, at the residual R = X W - Y."""
        return (
            self.X.T @ (row_weights[:, None] * R)
            + self.params.alpha * laplacian_product(self.feature_graph, W)
            + self.params.beta * laplacian_product(self.label_graph, W.T).T
        )

    def curvature(self, row_weights: np.ndarray) -> np.ndarray:
        """Return a diagonal bound of half the Hessian of the reweighted problem, one number per feature.

        Row sums bound a non-negative matrix, and twice the degrees bound a Laplacian. Self-loops cancel in
        the Laplacian, so they do not count.
        """
        row_sums = self.X @ np.ones(self.X.shape[1], dtype=self.X.dtype)
        return (
            self.X.T @ (row_weights * row_sums)
            + 2 * self.params.alpha * (self.feature_graph.degrees - 1)
            + 2 * self.params.beta * (self.label_graph.degrees - 1).max()
        )


class DRMFSState(NamedTuple):
    """Accepted W with P = X W, the extrapolated point of the next step, and the momentum."""

    W: np.ndarray
    P: np.ndarray
    W_ahead: np.ndarray
    P_ahead: np.ndarray
    momentum: float
    value: float


def _accelerated_step(problem: DRMFSProblem, state: DRMFSState) -> tuple[DRMFSState, float]:
    """Minimise a separable bound at the extrapolated point. Restart without momentum if J increases.

    The bound replaces the loss of every row with a quadratic majoriser and the Hessian with a diagonal, so a
    step without momentum cannot increase J. The sparsity term and the sign constraint stay exact: clip,
    then shrink the row.
    """
    R = state.P_ahead - problem.Y
    row_weights = l21_weights(R)
    curvature = problem.curvature(row_weights)[:, None]
    # A feature without curvature appears in no term, so its weight is 0.
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
    """Multiply W by the ratio of the negative and positive parts of the gradient, as published."""
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
    """Return the positive constant W for which X W has the mean of Y."""
    mean_row_sum = X.sum(dtype=np.float64) / X.shape[0]
    level = Y.mean(dtype=np.float64) / mean_row_sum if mean_row_sum > 0 else 1.0
    return np.full((X.shape[1], Y.shape[1]), level, dtype=X.dtype)
