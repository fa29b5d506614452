"""MIFS: multi-label informed feature selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from labelsieve._base import COUNT, NON_NEGATIVE, BaseSelector, StrOptions, as_generator
from labelsieve._numerics.candidates import uniform_per_label
from labelsieve._numerics.graph import Graph, laplacian_product, neighbor_graph
from labelsieve._numerics.norms import into_unit_ball, l21_norm, l21_weights, row_norms
from labelsieve._numerics.products import inner, left_product, right_product, squared_norm
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.ridge import WeightedRidge, conjugate_gradient
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix


@dataclass(eq=False, repr=False, kw_only=True)
class MIFS(BaseSelector):
    """Select features by regression on few latent labels.

    Descends, [1]_::

        |XW - V|^2 + alpha |Y - VB|^2 + beta tr(V' L V) + gamma |W|_21

    over the latent labels V, their decoder B and the feature weights W, where L is the Laplacian of a graph
    over the rows of X. Features rank by the squared norms of their rows of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    alpha : float, default=0.4
        Weight of the label decomposition.
    beta : float, default=1.0
        Weight of the row graph.
    gamma : float, default=0.8
        Row-sparsity weight.
    n_components : int, default=10
        Number of latent labels, at most the number of labels.
    n_neighbors : int, default=5
        Neighbours of a row in the graph, at most all the others.
    bandwidth : {"unit", "median"}, default="unit"
        Width t of the heat kernel ``exp(-distance^2 / (2 t^2))``: 1, or the median length of an edge.
    update : {"gauss-seidel", "jacobi", "unit-ball"}, default="gauss-seidel"
        Gradient steps with backtracking on V, B and W, each gradient taken at the newest values or all three
        taken first; or the sound variant with the rows of B in the unit ball and exact steps, see Notes.
    init : {"balanced", "uniform"}, default="balanced"
        Uniform random start with W scaled such that X W begins as large as V; or unscaled, as published.
    scale : {"minmax", "standard"} or None, default="minmax"
        Bring every feature to [0, 1], or to mean 0 and variance 1; sparse matrices are scaled but not
        shifted.
    max_iter : int, default=300
        Iteration budget.
    tol : float, default=1e-3
        Relative change of the objective in one iteration that stops the loop.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start.
    verbose : int, default=0
        Log every iteration.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of W, and the place of every feature, 1 is best.
    latent_coef_ : ndarray of shape (n_components, n_features)
        The transpose of W: it predicts the latent labels.
    coef_ : ndarray of shape (n_labels, n_features)
        The transpose of W B: it predicts the labels.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations; it never rises.

    Notes
    -----
    The objective has no minimiser. Dividing V and W by a growing number and multiplying B by it lowers every
    term but the second, towards the limit W = 0 where no ranking is defined. The published method is
    therefore its early stop: gradient steps from a random start until the objective changes by less than 1e-3
    in a step, at most 300. That is the default, because it is what others compare with. After some hundreds of
    steps the result depends on single roundings.

    The published start, a W from [0, 1), makes X W many times too large, and the ranking keeps the random
    numbers. So ``init="balanced"``, a deviation, scales W. Of 5 informative among 20 features, the first 5 hold
    0.86 with "balanced" and 0.38 with "uniform" (``make_pml(200, 20)``, ten seeds).

    ``update="unit-ball"``, a deviation that finds 0.96 of them, closes the escape: no row of B is longer than 1,
    V and W are solved for exactly (W under the current reweighting), B row by row. Its rankings hardly depend
    on the seed, and a small ``tol`` makes sense. It factorises a matrix of the smaller side of X in every
    iteration.

    The step of a gradient is the first of 1, 0.1, 0.01, ... that keeps a tenth of the decrease promised by
    the slope. The random numbers of B belong to the labels, so the order of the labels does not matter. Rows
    of W whose feature is 0 everywhere start at 0. Candidate labels are taken as they are; only fewer latent
    labels than labels can remove noise.

    Cost: a few products of X with as many columns as there are latent labels for every iteration.

    References
    ----------
    .. [1] Jian, Li, Shu, Liu, "Multi-label informed feature selection", IJCAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.mifs import MIFS
    >>> X = np.random.default_rng(0).random((60, 5))
    >>> Y = (X[:, [1, 3]] > 0.5).astype(int)
    >>> MIFS(n_features_to_select=2, update="unit-ball", random_state=0).fit(X, Y).get_support(indices=True)
    array([1, 3])
    """

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "alpha": NON_NEGATIVE,
        "beta": NON_NEGATIVE,
        "gamma": NON_NEGATIVE,
        "n_components": COUNT,
        "update": [StrOptions({"gauss-seidel", "jacobi", "unit-ball"})],
        "init": [StrOptions({"uniform", "balanced"})],
        "bandwidth": [StrOptions({"unit", "median"})],
        "scale": [StrOptions({"minmax", "standard"}), None],
    }

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_containers_agree": "the published steps past zero multiply roundings; see Notes"
    }

    alpha: float = 0.4
    beta: float = 1.0
    gamma: float = 0.8
    n_components: int = 10
    n_neighbors: int = 5
    bandwidth: str = "unit"
    update: str = "gauss-seidel"
    init: str = "balanced"
    scale: str | None = "minmax"
    max_iter: int = 300
    tol: float = 1e-3
    random_state: Any = None
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        X = Scaling.learn(X, self.scale).apply(X)
        start = random_start(X, Y, min(self.n_components, Y.shape[1]), as_generator(self.random_state))
        return self._descend(X, Y, balanced_start(X, start) if self.init == "balanced" else start)

    def _descend(self, X: Matrix, Y: Matrix, state: MIFSState) -> SolverResult:
        """Descend the objective for scaled features."""
        problem = MIFSProblem(self, X, Y, neighbor_graph(X, self.n_neighbors, bandwidth=self.bandwidth))
        step: Callable[[MIFSState], tuple[MIFSState, float]]
        if self.update == "unit-ball":
            state = state._replace(B=into_unit_ball(state.B))
            step = partial(_exact_round, problem, WeightedRidge(X))
        else:
            step = partial(_gradient_round, problem)
        state, history, converged = self._iterate(step, state, problem.objective(state))
        W = state.W.astype(X.dtype, copy=False)
        coef = (state.W @ state.B).T.astype(X.dtype, copy=False)
        return SolverResult(row_norms(W) ** 2, history, converged, extra={"coef": coef, "latent_coef": W.T})


class MIFSState(NamedTuple):
    """The unknowns, latent labels V, decoder B and feature weights W, and P = X W."""

    V: np.ndarray
    B: np.ndarray
    W: np.ndarray
    P: np.ndarray


def random_start(X: Matrix, Y: Matrix, n_components: int, rng: np.random.Generator) -> MIFSState:
    """Uniform factors; the columns of B move with the columns of ``Y``, and features that are 0 weigh 0."""
    V = rng.random((X.shape[0], n_components))
    B = uniform_per_label(Y, n_components, rng)
    W = rng.random((X.shape[1], n_components))
    is_empty = np.asarray((X != 0).sum(axis=0)).ravel() == 0
    # Their weights appear in the sparsity term alone, which 0 minimises and a few steps do not.
    W[is_empty] = 0
    return MIFSState(V, B, W, right_product(X, W.T))


def balanced_start(X: Matrix, state: MIFSState) -> MIFSState:
    """Scale W such that X W is as large as V."""
    size = squared_norm(state.P)
    if size == 0:
        return state  # there is nothing to fit: all features are 0
    W = state.W * np.sqrt(squared_norm(state.V) / size)
    return state._replace(W=W, P=right_product(X, W.T))


@dataclass(frozen=True)
class MIFSProblem:
    """Data and graph, with the objective and its gradients; nothing of the size of Y is formed.

    Only X may be single precision: a step is chosen by differences that the factors could not show in it.
    """

    params: MIFS
    X: Matrix
    Y: Matrix
    graph: Graph

    @cached_property
    def squared_norm_Y(self) -> float:
        """|Y|^2."""
        return squared_norm(self.Y)

    def objective(self, state: MIFSState) -> float:
        """J, the label term from products of the size of the latent space."""
        V, B, W, P = state
        labels = self.squared_norm_Y - 2 * inner(left_product(V, self.Y), B) + inner(V.T @ V, B @ B.T)
        return (
            squared_norm(P - V)
            + self.params.alpha * labels
            + self.params.beta * inner(V, laplacian_product(self.graph, V))
            + self.params.gamma * l21_norm(W)
        )

    def gradient_V(self, state: MIFSState) -> np.ndarray:
        """Gradient with respect to the latent labels."""
        V, B, _, P = state
        labels = V @ (B @ B.T) - right_product(self.Y, B)
        return 2 * (V - P + self.params.alpha * labels + self.params.beta * laplacian_product(self.graph, V))

    def gradient_B(self, state: MIFSState) -> np.ndarray:
        """Gradient with respect to the decoder."""
        V, B, _, _ = state
        return 2 * self.params.alpha * ((V.T @ V) @ B - left_product(V, self.Y))

    def gradient_W(self, state: MIFSState) -> np.ndarray:
        """Gradient with respect to the feature weights."""
        V, _, W, P = state
        residual = (P - V).astype(self.X.dtype, copy=False)
        gradient: np.ndarray = (
            left_product(residual, self.X).T + (self.params.gamma * l21_weights(W))[:, None] * W
        )
        gradient *= 2
        return gradient


def _gradient_round(problem: MIFSProblem, state: MIFSState) -> tuple[MIFSState, float]:
    """Move V, B and W once against their gradients.

    The objective along a ray is a parabola, for W plus the row norms, so a trial step costs no product with X
    or Y.
    """
    alpha, beta, gamma = problem.params.alpha, problem.params.beta, problem.params.gamma
    directions = None
    if problem.params.update == "jacobi":
        directions = problem.gradient_V(state), problem.gradient_B(state), problem.gradient_W(state)

    V, B, W, P = state
    gradient = problem.gradient_V(state)
    D = directions[0] if directions else gradient
    bend = inner(D, D + alpha * (D @ (B @ B.T)) + beta * laplacian_product(problem.graph, D))
    V = V - backtrack(lambda s: s * (s * bend - inner(gradient, D)), inner(D, D)) * D
    state = state._replace(V=V)

    gradient = problem.gradient_B(state)
    D = directions[1] if directions else gradient
    bend = alpha * inner(D, (V.T @ V) @ D)
    B = B - backtrack(lambda s: s * (s * bend - inner(gradient, D)), inner(D, D)) * D
    state = state._replace(B=B)

    D = directions[2] if directions else problem.gradient_W(state)
    image = right_product(problem.X, D.T)
    slope, bend = 2 * inner(P - V, image), squared_norm(image)
    lengths, along, across = row_norms(W), np.einsum("ij,ij->i", W, D), np.einsum("ij,ij->i", D, D)

    def change_W(s: float) -> float:
        # Rounding can make the square of a length that vanishes negative.
        moved = np.sqrt(np.maximum(lengths**2 - 2 * s * along + s**2 * across, 0))
        return s * (s * bend - slope) + gamma * float((moved - lengths).sum())

    step = backtrack(change_W, inner(D, D))
    state = MIFSState(V, B, W - step * D, P - step * image)
    return state, problem.objective(state)


def backtrack(change: Callable[[float], float], slope: float) -> float:
    """Return the first step 1, 0.1, ... along a ray that keeps a tenth of the promised decrease, or 0.0.

    ``change`` is the objective at a step minus that at the start, ``slope`` the promised decrease per unit step.
    """
    step = 1.0
    for _ in range(20 if slope > 0 else 0):
        if change(step) <= -0.1 * step * slope:
            return step
        step *= 0.1
    return 0.0


def _exact_round(problem: MIFSProblem, ridge: WeightedRidge, state: MIFSState) -> tuple[MIFSState, float]:
    """Solve for V, for B row by row in the unit ball, and for W under the current reweighting."""
    V = solve_latent_labels(problem, state)
    B = _decode_in_unit_ball(V.T @ V, left_product(V, problem.Y), state.B)
    W = solve_feature_weights(problem, ridge, V, state.W)
    state = MIFSState(V, B, W, right_product(problem.X, W.T))
    return state, problem.objective(state)


def solve_latent_labels(problem: MIFSProblem, state: MIFSState) -> np.ndarray:
    """Minimise J over V: in the eigenbasis of B B' every column is one sparse system."""
    V, B, _, P = state
    eigenvalues, Q = np.linalg.eigh(B @ B.T)
    shifts = 1 + problem.params.alpha * np.maximum(eigenvalues, 0)
    target = (P + problem.params.alpha * right_product(problem.Y, B)) @ Q
    solution = conjugate_gradient(
        lambda Z: shifts * Z + problem.params.beta * laplacian_product(problem.graph, Z), target, V @ Q
    )
    return np.asarray(solution @ Q.T)


def solve_feature_weights(
    problem: MIFSProblem, ridge: WeightedRidge, V: np.ndarray, W: np.ndarray
) -> np.ndarray:
    """Minimise J over W with the sparsity term bounded by the quadratic that touches it at the current W."""
    weights = problem.params.gamma * l21_weights(W)
    # Without a sparsity term X'X alone may be singular.
    return ridge.solver(np.maximum(weights, weights.dtype.type(1e-10)))(V)


def _decode_in_unit_ball(VtV: np.ndarray, VtY: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Minimise |Y - VB|^2 over one row of B after the other: the nearest point of the ball is the minimum."""
    B = B.copy()
    for row in range(len(B)):
        if VtV[row, row] > 0:
            rest = VtY[row] - VtV[row] @ B + VtV[row, row] * B[row]
            B[row] = into_unit_ball(rest[None] / VtV[row, row])[0]
    return B
