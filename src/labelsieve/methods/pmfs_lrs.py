"""PMFS-LRS: partial multi-label feature selection by a low-rank and sparse split of the labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from labelsieve._base import NON_NEGATIVE, POSITIVE, BaseSelector, StrOptions
from labelsieve._numerics.candidates import confidence_on_candidates
from labelsieve._numerics.graph import Graph, laplacian_product, neighbor_graph
from labelsieve._numerics.moments import centre_columns
from labelsieve._numerics.norms import (
    l21_weights,
    row_norms,
    smooth_l21_norm,
    soft_threshold,
    squared_row_norms,
)
from labelsieve._numerics.products import inner, squared_norm
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.ridge import Shifted, WeightedRidge, largest_eigenvalue
from labelsieve._numerics.scaling import standard_scaling
from labelsieve._numerics.sparse import Matrix, dense
from labelsieve._prediction import LinearLabelPredictor

#: Added under the root of a row's squared norm, so that a zero row has a finite weight.
SMOOTHING = 1e-12
#: The automatic row sparsity: times the number of rows, and at most this share of one that leaves nothing.
_USUAL, _LARGEST_SHARE = 0.1, 0.5
#: Steps of F and N for every W.
_INNER_STEPS = 5


@dataclass(eq=False, repr=False, kw_only=True)
class PMFSLRS(LinearLabelPredictor, BaseSelector):
    """Select features by a regression on labels that are split into a low-rank and a sparse part.

    Minimises over the map W, the low-rank labels F and the sparse noise N, [1]_::

        |H(XW - F)|^2 + eta tr(F' L F) + alpha |F|_* + beta |N|_1 + lam |W|_21 + (mu / 2) |Y - F - N|^2

    where H subtracts the means of columns, L is the Laplacian of a graph over the rows of X, ``|F|_*`` sums the
    singular values, and Y holds the candidate labels. Features are standardised and rank by the squared norms of their
    rows of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    alpha : float, default=1.0
        Weight of the low rank.
    beta : float, default=0.4
        Weight of the sparse noise; entries of ``Y - F`` up to ``beta / mu`` are no noise.
    lam : float or "auto", default="auto"
        Row-sparsity weight; lambda in [1]_. "auto" is ``0.1 n_samples``, but no more than half the weight that leaves
        out all features of a regression on the candidates.
    mu : float, default=1.0
        Weight of the split; [1]_ takes 1e8, see Notes.
    eta : float, default=0.01
        Weight of the graph; 1 in [1]_, see Notes.
    n_neighbors : int, default=20
        Neighbours of a row in the graph, at most all the others.
    bandwidth : {"unit", "median"}, default="median"
        Width t of the heat kernel ``exp(-distance^2 / (2 t^2))``: 1 as published, which leaves most data
        without a graph, or the median length of an edge.
    solver : {"exact", "authors"}, default="exact"
        Descend the objective above, or solve what the published setting of the authors' program amounts to: the
        regression ``|H(XW - Y)|^2 + lam |W|_21``, without a split of the labels.
    max_iter : int, default=200
        Sweep budget.
    tol : float, default=1e-5
        Relative change of the objective in one sweep that stops the loop.
    verbose : int, default=0
        Log every sweep.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of W, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        The transpose of W, for standardised features.
    intercept_ : ndarray of shape (n_labels,)
        Means of F.
    scaling_ : Scaling
        Mean and inverse standard deviation of every feature.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        F, cut to [0, 1] and to the candidates; sparse if ``y`` was.
    lam_ : float
        The row-sparsity weight that was used.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start (F = Y and a ridge regression) and after each of the ``n_iter_`` sweeps; it never rises.

    Notes
    -----
    The problem is convex. A sweep solves for W exactly, with the norm of each row replaced by the quadratic that
    touches it (smoothed as ``sqrt(|w|^2 + 1e-12)``, which is part of the recorded objective), then takes five turns of
    a proximal step for F and the exact N.

    **The published setting switches the split off.** The authors' public program takes ``mu = 1e8``,
    ``alpha = 1e4``, ``beta = 1e6``, ``lam = 100`` and divides its steps by a Frobenius norm where the spectral norm
    belongs. On 300 rows, 50 features and 8 labels at 40 % noise its F then differs from Y by 1.1e-5 at most, its N is
    0, and its W is that of the regression on the candidates to 2e-6. ``solver="authors"`` is that row-sparse
    regression, a strong selector; the default descends the model of the paper, with weights that are conventions of
    this library.

    A graph that weighs much pulls F to constants and W to 0. On the data above, ``eta=1`` leaves every row of W
    below 1e-4, ``eta=0.01`` the eight informative rows.

    Cost: a Cholesky factorisation of the smaller of rows and features for every sweep, and for every step of F
    O(n_samples n_labels^2) and a product with the sparse graph.

    References
    ----------
    .. [1] Sun, Chen, Liu et al., "Partial multi-label feature selection via low-rank and sparse factorization
       with manifold learning", Knowledge-Based Systems 296, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pmfs_lrs import PMFSLRS
    >>> X = np.random.default_rng(0).random((60, 5))
    >>> Y = (X[:, [1, 3]] > 0.5).astype(int)
    >>> PMFSLRS(n_features_to_select=2).fit(X, Y).get_support(indices=True)
    array([1, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "alpha": NON_NEGATIVE,
        "beta": NON_NEGATIVE,
        "lam": [StrOptions({"auto"}), *POSITIVE],
        "mu": POSITIVE,
        "eta": NON_NEGATIVE,
        "solver": [StrOptions({"exact", "authors"})],
        "bandwidth": [StrOptions({"unit", "median"})],
    }

    alpha: float = 1.0
    beta: float = 0.4
    lam: float | str = "auto"
    mu: float = 1.0
    eta: float = 0.01
    n_neighbors: int = 20
    bandwidth: str = "median"
    solver: str = "exact"
    max_iter: int = 200
    tol: float = 1e-5
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaling = standard_scaling(X)
        features, labels = Shifted(*scaling.split(X)), dense(Y)
        lam = _automatic_sparsity(features, labels) if isinstance(self.lam, str) else float(self.lam)
        solve = self._solve_row_sparse if self.solver == "authors" else self._solve_split
        W, F, history, converged = solve(features, labels, lam)
        extra = {
            "coef": W.T.astype(X.dtype),
            "intercept": F.mean(axis=0).astype(X.dtype),
            "scaling": scaling,
            "label_confidence": confidence_on_candidates(F, Y),
            "lam": lam,
        }
        return SolverResult(squared_row_norms(W).astype(X.dtype), history, converged, extra=extra)

    def _solve_split(
        self, features: Shifted, Y: np.ndarray, lam: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """Split the labels and regress on them, from ``F = Y`` and a ridge regression."""
        # Distances do not change with the centre.
        graph = neighbor_graph(features.X, self.n_neighbors, bandwidth=self.bandwidth)
        problem = PMFSLRSProblem(self, WeightedRidge(features), Y, graph, lam)
        W = problem.ridge.solver(np.full(features.shape[1], lam))(Y)
        state = problem.state(W, Y, np.zeros_like(Y))
        state, history, converged = self._iterate(problem.sweep, state, problem.objective(state))
        return state.W, state.F, history, converged

    def _solve_row_sparse(
        self, features: Shifted, Y: np.ndarray, lam: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """Minimise ``|H(XW - Y)|^2 + lam |W|_21``, which is what the published setting amounts to."""
        ridge = WeightedRidge(features)
        centred = centre_columns(Y)

        def with_objective(W: np.ndarray) -> tuple[np.ndarray, float]:
            return W, squared_norm(features.times(W) - centred) + lam * smooth_l21_norm(W, SMOOTHING)

        def step(W: np.ndarray) -> tuple[np.ndarray, float]:
            return with_objective(ridge.solver(lam * l21_weights(W, SMOOTHING))(Y))

        start, value = with_objective(ridge.solver(np.full(features.shape[1], lam))(Y))
        W, history, converged = self._iterate(step, start, value)
        return W, Y, history, converged


class PMFSLRSState(NamedTuple):
    """The unknowns, the predictions P = XW, and the nuclear norm of F."""

    W: np.ndarray
    F: np.ndarray
    N: np.ndarray
    P: np.ndarray
    nuclear_norm: float


@dataclass(frozen=True)
class PMFSLRSProblem:
    """Features, candidates, graph and the row sparsity, which may be automatic."""

    params: PMFSLRS
    ridge: WeightedRidge
    Y: np.ndarray
    graph: Graph
    lam: float

    @cached_property
    def curvature(self) -> float:
        """Largest curvature of the smooth terms in F."""
        largest = largest_eigenvalue(lambda V: laplacian_product(self.graph, V), len(self.Y))
        return 2 + 2 * self.params.eta * largest + self.params.mu

    def state(self, W: np.ndarray, F: np.ndarray, N: np.ndarray) -> PMFSLRSState:
        """Complete the unknowns."""
        return PMFSLRSState(W, F, N, self.ridge.X.times(W), float(np.linalg.svd(F, compute_uv=False).sum()))

    def objective(self, state: PMFSLRSState) -> float:
        """J at the unknowns."""
        return (
            squared_norm(centre_columns(state.P - state.F))
            + self.params.eta * inner(state.F, laplacian_product(self.graph, state.F))
            + self.params.alpha * state.nuclear_norm
            + self.params.beta * float(np.abs(state.N).sum())
            + self.lam * smooth_l21_norm(state.W, SMOOTHING)
            + self.params.mu / 2 * squared_norm(self.Y - state.F - state.N)
        )

    def gradient_F(self, F: np.ndarray, N: np.ndarray, P: np.ndarray) -> np.ndarray:
        """Gradient of the smooth terms in F."""
        return (
            2 * centre_columns(F - P)
            + 2 * self.params.eta * laplacian_product(self.graph, F)
            + self.params.mu * (F + N - self.Y)
        )

    def sweep(self, state: PMFSLRSState, inner_steps: int = _INNER_STEPS) -> tuple[PMFSLRSState, float]:
        """Solve for W with its norm bounded by a quadratic, then take turns with F and N."""
        W = self.ridge.solver(self.lam * l21_weights(state.W, SMOOTHING))(state.F)
        P, F, N = self.ridge.X.times(W), state.F, state.N
        nuclear_norm = state.nuclear_norm
        for _ in range(inner_steps):
            target = F - self.gradient_F(F, N, P) / self.curvature
            F, nuclear_norm = shrink_singular_values(target, self.params.alpha / self.curvature)
            N = soft_threshold(self.Y - F, self.params.beta / self.params.mu)
        state = PMFSLRSState(W, F, N, P, nuclear_norm)
        return state, self.objective(state)


def shrink_singular_values(M: np.ndarray, threshold: float) -> tuple[np.ndarray, float]:
    """Lower every singular value by ``threshold``, to 0 at least; returns the matrix and its nuclear norm.

    Goes through the products of all pairs of the shorter side, whose eigenvalues are the squares, unless squares
    of the size of the threshold would be lost in rounding.
    """
    if M.shape[0] < M.shape[1]:
        shrunk, norm = shrink_singular_values(M.T, threshold)
        return shrunk.T, norm
    squares, vectors = np.linalg.eigh(M.T @ M)
    if threshold**2 < len(squares) * np.finfo(np.float64).eps * squares[-1]:
        left_vectors, values, right_vectors = np.linalg.svd(M, full_matrices=False)
        left = np.maximum(values - threshold, 0)
        return (left_vectors * left) @ right_vectors, float(left.sum())
    values = np.sqrt(np.maximum(squares, 0))
    left = np.maximum(values - threshold, 0)
    share = np.divide(left, values, out=np.zeros_like(values), where=values > 0)
    return M @ ((vectors * share) @ vectors.T), float(left.sum())


def _automatic_sparsity(features: Shifted, Y: np.ndarray) -> float:
    """A tenth of the rows, or a share of what would leave every feature out of a regression on Y."""
    usual = _USUAL * len(Y)
    vanishing = 2 * float(row_norms(features.transposed_times(centre_columns(Y))).max())
    # Where features or labels do not vary, there is nothing to keep below.
    return min(usual, _LARGEST_SHARE * vanishing) if vanishing > 0 else usual
