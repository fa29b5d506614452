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

#: Number of entries of U that are updated at once.
BLOCK_SIZE = 1 << 15


@dataclass(eq=False, repr=False, kw_only=True)
class PMLFSSO(BaseSelector):
    """Rank features by a factorisation in which features and labels share a latent space.

    Minimises over ``U, V, M >= 0`` with ``W = M'V`` [1]_::

        |XW - Y|^2 + alpha |Y - UV|^2 + beta |X - UM|^2 + gamma tr(U' L U) + theta |W|_21

    where L is the Laplacian of a neighbour graph of the rows of X. Features are ranked by the
    squared norms of their rows of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    alpha, beta, gamma, theta : float, default=1.0
        Weights of the label factorisation, the feature factorisation, the row graph and the row
        sparsity.
    n_components : int or float, default=0.8
        Size of the latent space: an integer, or a fraction of the number of features, rounded up.
        The published value is 0.8.
    n_neighbors : int, default=5
        Number of neighbours of each row in the graph, capped by the number of other rows.
    bandwidth : {"unit", "median"}, default="unit"
        Width t of the heat kernel ``exp(-distance^2 / (2 t^2))``. "unit" is 1 as published.
        "median" is the median edge length.
    update : {"exact", "coded"}, default="exact"
        "exact" runs multiplicative updates of the objective above. "coded" runs those of the
        authors' code, see Notes.
    scale : {"minmax"} or None, default="minmax"
        Scale every feature to [0, 1], or use ``X >= 0`` as it is.
    max_iter : int, default=400
        Maximum number of sweeps. The authors use 1000.
    tol : float, default=1e-3
        Stop when the relative change of the objective is at most this, over ten sweeps with
        ``update="exact"`` and over one sweep with "coded", as in the authors' code.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random start.
    verbose : int, default=0
        Log every sweep if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of W, and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Transpose of W.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` sweeps. It never increases with
        ``update="exact"``. With "coded" it is the value that the authors' code reports, which may
        increase.

    Notes
    -----
    The authors' code differs from the multiplicative updates of its objective. The gradient of the
    sparsity term is doubled, and the M step uses W from before the V step. The code starts from
    uniform random factors whose X W is hundreds of times too large. From there, exact updates never
    fit the labels. "exact" is the default because it minimises the stated objective. It scales the
    random start by three numbers so that U V, U M and X W have the means of the matrices they
    approximate.

    Exact updates are over-relaxed: their ratios are raised to a power that grows while the
    objective decreases. A sweep that would increase the objective is undone. This halves the number
    of sweeps.

    The random numbers of V are tied to the labels, so the order of the labels does not matter, but
    rankings vary with the seed. A latent space larger than the number of labels, as published, can
    reproduce the candidate labels exactly and then removes no noise.

    Cost: ``O(n_samples k^2 + n_features k^2)`` per sweep for k components.

    References
    ----------
    .. [1] Hao, Hu, Gao, "Partial multi-label feature selection via subspace optimization",
       Information Sciences 648, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pml_fsso import PMLFSSO
    >>> X = np.random.default_rng(0).random((60, 5))
    >>> Y = (X[:, [1, 3]] > 0.5).astype(int)
    >>> selector = PMLFSSO(n_features_to_select=2, tol=1e-3, random_state=0).fit(X, Y)
    >>> selector.get_support(indices=True)
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
        """Minimise the objective for ``X >= 0``, starting at positive factors."""
        if is_sparse(X) and X.nnz > 0.05 * X.shape[0] * X.shape[1] and X.shape[1] <= 2 * start[0].shape[1]:
            X = X.toarray()  # not much larger than the dense U, and several times faster
        # Y can be dense: it is as large as X W, which every sweep forms.
        problem = PMLFSSOProblem(
            self, X, dense(Y), neighbor_graph(X, self.n_neighbors, bandwidth=self.bandwidth)
        )
        state = problem.state(start)
        value = problem.objective(state, transposed_product(X, state.U).T)
        if self.update == "coded":
            state, history, converged = self._iterate(problem.sweep, state, value, min_iter=3)
        else:
            # The updates pass through plateaus, so compare the objective over ten sweeps.
            (state, _, _), history, converged = self._iterate(
                problem.relaxed_sweep, (state, value, 1.0), value, window=10
            )
        W = state.W.astype(X.dtype, copy=False)
        scores, coef = row_norms(W) ** 2, W.T
        return SolverResult(scores=scores, objective=history, converged=converged, extra={"coef": coef})


#: Factors U, V and M: Y is close to U V, X is close to U M, and W is M'V.
Factors: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


def random_start(X: Matrix, Y: Matrix, n_components: int, rng: np.random.Generator) -> Factors:
    """Draw uniform factors. Permuting the labels permutes the columns of V."""
    U = rng.random((X.shape[0], n_components))
    V = uniform_per_label(Y, n_components, rng)
    M = rng.random((n_components, X.shape[1]))
    return U, V, M


def balanced_start(X: Matrix, Y: Matrix, factors: Factors) -> Factors:
    """Scale the factors so that U V, U M and X M'V have the means of Y, X and Y."""
    U, V, M = factors
    sums_X = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
    if not sums_X.any():
        return factors  # all features are 0
    labels = U.sum(axis=0) @ V.sum(axis=1) / Y.sum()
    features = U.sum(axis=0) @ M.sum(axis=1) / sums_X.sum()
    prediction = sums_X @ M.T @ V.sum(axis=1) / Y.sum()
    scale = np.sqrt(prediction / (labels * features))
    return U * scale, V / (labels * scale), M / (features * scale)


class PMLFSSOState(NamedTuple):
    """Factors and the products that consecutive sweeps share."""

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
    """Parameters, data and graph. X may be single precision; the factors must be double."""

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
        """Return the state with these factors."""
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
        """Return the objective. ``weights`` D replace |W|_21 by the authors' 2 tr(W'DW)."""
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
        """Sweep with an exponent that grows by 10%. If the objective rises, reset it to 1."""
        state, value, exponent = point
        new_state, new_value = self.sweep(state, exponent)
        if exponent > 1 and not new_value <= value:
            return (state, value, 1.0), value
        return (new_state, new_value, 1.1 * exponent), new_value

    def sweep(self, state: PMLFSSOState, exponent: float = 1.0) -> tuple[PMLFSSOState, float]:
        """Update V, U and M once by the ratio of the two parts of the gradient."""
        alpha, beta, gamma = self.params.alpha, self.params.beta, self.params.gamma
        X, Y, XtY, is_coded = self.X, self.Y, self.XtY, self.params.update == "coded"
        U, V, M, W = state.U, state.V, state.M, state.W
        # The authors differentiate 2 tr(W'DW) with D held fixed, which doubles the gradient.
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
        # The remaining operations are elementwise. Blocks of rows stay in the cache.
        for rows in batches(len(U), width=U.shape[1], budget=BLOCK_SIZE):
            numerator = alpha * (Y[rows] @ V.T)
            numerator += beta * state.XMt[rows]
            numerator += gamma * state.SU[rows]
            denominator[rows] += (gamma * self.graph.degrees[rows])[:, None] * U[rows]
            new_U[rows] = multiplicative_step(U[rows], numerator, denominator[rows], exponent)
        U = new_U

        new_weights = weights
        if not is_coded:
            W = M.T @ V
            new_weights = l21_weights(W)
            XtXW = transposed_product(X, right_product(X, W.T))
        UtU = U.T @ U
        UtX = transposed_product(X, U).T
        denominator = V @ XtXW.T
        denominator += beta * (UtU @ M)
        denominator += (V @ (V.T @ M)) * (theta * new_weights)
        M = multiplicative_step(M, V @ XtY.T + beta * UtX, denominator, exponent)

        state = self.state((U, V, M), UtU)
        return state, self.objective(state, UtX, weights if is_coded else None)
