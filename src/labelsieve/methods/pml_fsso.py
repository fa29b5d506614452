"""PML-FSSO: partial multi-label feature selection via subspace optimisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from labelsieve._base import (
    COUNT,
    NON_NEGATIVE,
    BaseSelector,
    Integral,
    Interval,
    RealNotInt,
    StrOptions,
    as_generator,
    nonnegative_features,
)
from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import uniform_per_label
from labelsieve._numerics.graph import Graph, neighbor_graph
from labelsieve._numerics.norms import (
    l21_norm,
    l21_weights,
    multiplicative_step,
    row_norms,
    squared_row_norms,
)
from labelsieve._numerics.products import inner, right_product, squared_norm, transposed_product
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix, dense, is_sparse

#: Entries of U that are updated at once.
BLOCK_SIZE = 1 << 15


@dataclass(eq=False, repr=False, kw_only=True)
class PMLFSSO(BaseSelector):
    """Select features through a latent space that labels and features share.

    Minimises over ``U, V, M >= 0`` with ``W = M'V``, [1]_::

        |XW - Y|^2 + alpha |Y - UV|^2 + beta |X - UM|^2 + gamma tr(U' L U) + theta |W|_21

    where L is the Laplacian of a graph over the rows of X. Features rank by the squared norms of their rows
    of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    alpha, beta, gamma, theta : float, default=1.0
        Weights of the label subspace, of the feature subspace, of the row graph and of the row sparsity.
    n_components : int or float, default=0.8
        Size of the latent space: a number, or a share of the features, rounded up; 0.8 as published.
    n_neighbors : int, default=5
        Neighbours of a row in the graph, at most all the others.
    bandwidth : {"unit", "median"}, default="unit"
        Width t of the heat kernel ``exp(-distance^2 / (2 t^2))``: 1 as published, or the median length of
        an edge.
    update : {"exact", "coded"}, default="exact"
        Multiplicative updates of the objective above, or those of the authors' program, see Notes.
    scale : {"minmax"} or None, default="minmax"
        Bring every feature to [0, 1], or use ``X >= 0`` as it is.
    max_iter : int, default=400
        Sweep budget; the authors allow 1000.
    tol : float, default=1e-3
        Relative change of the objective that stops the loop: over ten sweeps with ``update="exact"``, over
        one with "coded", as the authors do.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start.
    verbose : int, default=0
        Log every sweep.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of W, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        The transpose of W.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` sweeps. It never rises with ``update="exact"``;
        with "coded" it is the value which that program reports, and it may rise.

    Notes
    -----
    The authors' program differs from the multiplicative updates of its objective: the sparsity term pulls
    twice as hard, and the M step uses the W from before the V step. It starts from uniform random factors
    whose X W is hundreds of times too large, from where exact updates never fit the labels. So "exact", the
    default because it descends the stated objective, scales the random start with three numbers such that
    U V, U M and X W begin with the means of what they approximate.

    Exact updates are over-relaxed: their ratios are raised to a power that grows while the objective falls. A
    sweep that would raise it is taken back. That halves the number of sweeps.

    The random numbers of V belong to the labels, so the order of the labels does not matter. Rankings still
    vary with the seed. A latent space larger than the number of labels, as published, can repeat the candidate
    labels exactly and then removes no noise.

    Cost: ``O(n_samples k^2 + n_features k^2)`` for k components and every sweep.

    References
    ----------
    .. [1] Hao, Hu, Gao, "Partial multi-label feature selection via subspace optimization", Information
       Sciences 648, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pml_fsso import PMLFSSO
    >>> X = np.random.default_rng(0).random((60, 5))
    >>> Y = (X[:, [1, 3]] > 0.5).astype(int)
    >>> PMLFSSO(n_features_to_select=2, tol=1e-3, random_state=0).fit(X, Y).get_support(indices=True)
    array([1, 3])
    """

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "scale": [StrOptions({"minmax"}), None],
        "alpha": NON_NEGATIVE,
        "beta": NON_NEGATIVE,
        "gamma": NON_NEGATIVE,
        "theta": NON_NEGATIVE,
        "n_components": [*COUNT, Interval(RealNotInt, 0, 1, closed="right")],
        "update": [StrOptions({"exact", "coded"})],
        "bandwidth": [StrOptions({"unit", "median"})],
    }

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    theta: float = 1.0
    n_components: int | float = 0.8
    n_neighbors: int = 5
    bandwidth: str = "unit"
    update: str = "exact"
    scale: str | None = "minmax"
    max_iter: int = 400
    tol: float = 1e-3
    random_state: Any = None
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        X = nonnegative_features(X, self.scale)
        n_components = self.n_components
        if not isinstance(n_components, Integral):
            n_components = int(np.ceil(n_components * X.shape[1]))
        start = random_start(X, Y, n_components, as_generator(self.random_state))
        return self._descend(X, Y, balanced_start(X, Y, start) if self.update == "exact" else start)

    def _descend(self, X: Matrix, Y: Matrix, start: Factors) -> SolverResult:
        """Descend the objective for ``X >= 0`` from positive factors."""
        if is_sparse(X) and X.nnz > 0.05 * X.shape[0] * X.shape[1] and X.shape[1] <= 2 * start[0].shape[1]:
            X = X.toarray()  # not much larger than the dense U, and several times faster to multiply
        # The dense Y is as large as X W, which every sweep forms, and smaller than U.
        problem = PMLFSSOProblem(
            self, X, dense(Y), neighbor_graph(X, self.n_neighbors, bandwidth=self.bandwidth)
        )
        state = problem.state(start)
        value = problem.objective(state, transposed_product(X, state.U).T)
        if self.update == "coded":
            state, history, converged = self._iterate(problem.sweep, state, value, min_iter=3)
        else:
            # Over ten sweeps: the updates pass through plateaus which a single difference takes for the end.
            (state, _, _), history, converged = self._iterate(
                problem.relaxed_sweep, (state, value, 1.0), value, window=10
            )
        W = state.W.astype(X.dtype, copy=False)
        scores, coef = row_norms(W) ** 2, W.T
        return SolverResult(scores=scores, objective=history, converged=converged, extra={"coef": coef})


#: The factors: Y is approximated by U V, X by U M, and W is M'V.
Factors: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


def random_start(X: Matrix, Y: Matrix, n_components: int, rng: np.random.Generator) -> Factors:
    """Uniform factors; the columns of V move with the columns of ``Y``."""
    U = rng.random((X.shape[0], n_components))
    V = uniform_per_label(Y, n_components, rng)
    M = rng.random((n_components, X.shape[1]))
    return U, V, M


def balanced_start(X: Matrix, Y: Matrix, factors: Factors) -> Factors:
    """Scale the factors by three numbers such that U V, U M and X M'V have the means of Y, X and Y."""
    U, V, M = factors
    sums_X = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
    if not sums_X.any():
        return factors  # there is nothing to fit: all features are 0
    labels = U.sum(axis=0) @ V.sum(axis=1) / Y.sum()
    features = U.sum(axis=0) @ M.sum(axis=1) / sums_X.sum()
    prediction = sums_X @ M.T @ V.sum(axis=1) / Y.sum()
    scale = np.sqrt(prediction / (labels * features))
    return U * scale, V / (labels * scale), M / (features * scale)


class PMLFSSOState(NamedTuple):
    """The factors, and the products that the end of a sweep and the beginning of the next have in common."""

    U: np.ndarray
    V: np.ndarray
    M: np.ndarray
    W: np.ndarray
    P: np.ndarray
    UtU: np.ndarray
    MMt: np.ndarray
    XMt: np.ndarray
    SU: np.ndarray


@dataclass(frozen=True)
class PMLFSSOProblem:
    """Data and graph. Only X may be single precision: the factors cannot afford it."""

    params: PMLFSSO
    X: Matrix
    Y: np.ndarray
    graph: Graph

    @cached_property
    def XtY(self) -> np.ndarray:
        """X'Y."""
        return transposed_product(self.X, self.Y)

    @cached_property
    def squared_norm_X(self) -> float:
        """|X|^2."""
        return squared_norm(self.X)

    def state(self, factors: Factors, UtU: np.ndarray | None = None) -> PMLFSSOState:
        """Complete the factors by their products."""
        U, V, M = factors
        W = M.T @ V
        UtU = U.T @ U if UtU is None else UtU
        return PMLFSSOState(
            U,
            V,
            M,
            W,
            P=right_product(self.X, W.T),
            UtU=UtU,
            MMt=M @ M.T,
            XMt=right_product(self.X, M),
            SU=self.graph.affinity @ U,
        )

    def objective(self, state: PMLFSSOState, UtX: np.ndarray, weights: np.ndarray | None = None) -> float:
        """J; with ``weights`` D the sparsity term is the authors' 2 tr(W'DW) instead of |W|_21."""
        sparsity = l21_norm(state.W) if weights is None else 2 * float(weights @ row_norms(state.W) ** 2)
        smoothness = float(self.graph.degrees @ squared_row_norms(state.U)) - inner(state.U, state.SU)
        return (
            squared_norm(state.P - self.Y)
            + self.params.alpha * squared_norm(state.U @ state.V - self.Y)
            + self.params.beta * (self.squared_norm_X - 2 * inner(UtX, state.M) + inner(state.UtU, state.MMt))
            + self.params.gamma * smoothness
            + self.params.theta * sparsity
        )

    def relaxed_sweep(
        self, point: tuple[PMLFSSOState, float, float]
    ) -> tuple[tuple[PMLFSSOState, float, float], float]:
        """Sweep with an exponent that grows by a tenth; where J rose, keep the state and go back to 1."""
        state, value, exponent = point
        new_state, new_value = self.sweep(state, exponent)
        if exponent > 1 and not new_value <= value:
            return (state, value, 1.0), value
        return (new_state, new_value, 1.1 * exponent), new_value

    def sweep(self, state: PMLFSSOState, exponent: float = 1.0) -> tuple[PMLFSSOState, float]:
        """Update V, U and M once by the ratio of the gradient's negative and positive parts."""
        alpha, beta, gamma = self.params.alpha, self.params.beta, self.params.gamma
        X, Y, XtY, is_coded = self.X, self.Y, self.XtY, self.params.update == "coded"
        U, V, M, W = state.U, state.V, state.M, state.W
        # Deviates from the gradient when coded: the authors differentiate 2 tr(W'DW) with D held fixed.
        theta = 2 * self.params.theta if is_coded else self.params.theta

        weights = l21_weights(W)
        XtXW = transposed_product(X, state.P)
        V = multiplicative_step(
            V,
            M @ XtY + alpha * (U.T @ Y),
            M @ (XtXW + (theta * weights)[:, None] * W) + alpha * (state.UtU @ V),
            exponent,
        )

        denominator = U @ (alpha * (V @ V.T) + beta * state.MMt)
        new_U = np.empty_like(U)
        # All that is left goes through U entry by entry, in blocks that stay in the cache.
        for rows in batches(len(U), width=U.shape[1], budget=BLOCK_SIZE):
            numerator = alpha * (Y[rows] @ V.T)
            numerator += beta * state.XMt[rows]
            numerator += gamma * state.SU[rows]
            denominator[rows] += (gamma * self.graph.degrees[rows])[:, None] * U[rows]
            new_U[rows] = multiplicative_step(U[rows], numerator, denominator[rows], exponent)
        U = new_U

        fresh_weights = weights
        if not is_coded:
            W = M.T @ V
            fresh_weights = l21_weights(W)
            XtXW = transposed_product(X, right_product(X, W.T))
        UtU = U.T @ U
        UtX = transposed_product(X, U).T
        denominator = V @ XtXW.T
        denominator += beta * (UtU @ M)
        denominator += (V @ (V.T @ M)) * (theta * fresh_weights)
        M = multiplicative_step(M, V @ XtY.T + beta * UtX, denominator, exponent)

        state = self.state((U, V, M), UtU)
        return state, self.objective(state, UtX, weights if is_coded else None)
