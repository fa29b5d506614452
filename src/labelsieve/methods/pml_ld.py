"""PML-LD: partial multi-label learning with label distributions, in a linear reading."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from labelsieve._base import COUNT, NON_NEGATIVE, POSITIVE, Integral, Options, StrOptions, as_generator
from labelsieve._numerics.candidates import label_order
from labelsieve._numerics.graph import Graph, laplacian_product, neighbor_graph
from labelsieve._numerics.norms import row_norms, squared_row_norms
from labelsieve._numerics.products import inner, squared_norm
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.ridge import Shifted, WeightedRidge, conjugate_gradient
from labelsieve._numerics.sparse import Matrix
from labelsieve.methods._label_regressor import LabelRegressor

Rows: TypeAlias = slice | np.ndarray

#: Ridge of the intercepts in the second stage, part of its objective, so that its systems can be solved.
_RIDGE = 1e-8
#: Times a step of the second stage is cut to a tenth at most.
_MAX_CUTS = 30


@dataclass(eq=False, repr=False, kw_only=True)
class PMLLD(LabelRegressor):
    """Select features by the weights that turn them into label distributions (PML-LD with linear features).

    Stage 1, label enhancement, minimises over ``D = XT + 1t'``, linear in the features and a constant, and over
    the label correlations ``S_g`` of groups of rows::

        |D - Y|^2 + lambda1 tr(D' G D) + lambda2 sum_g tr(S_g D_g' D_g) + n rho (|T|^2 + |t|^2)

    with the Laplacian G of a graph of neighbouring rows, every ``S_g`` positive semidefinite with diagonal 1.
    The distribution of a row is the softmax of its row of D. Stage 2 minimises over ``F = XW + 1b'``::

        1/2 |W|^2 + C1 / 2 sum_i max(0, |softmax(d_i) - f_i| - epsilon)^2 - C2 sum_ik Z_ik F_ik

    where ``Z_ik`` is 1 / c_i for the c_i candidates of row i and -1 / (q - c_i) for its other labels. Features
    rank by the norms of their rows of T, or of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    stage : {1, 2}, default=1
        Whose weights count: those of the label enhancement, or those of the regression on the distributions,
        which hides features that all labels have in common. See Notes.
    lambda1, lambda2 : float, default=0.01
        Weights of the graph and of the label correlations.
    rho : float, default=0.1
        Weight of the squared norm in stage 1, per row of the data. [1]_ has none, and stops early instead.
    n_groups : int, default=1
        Number of groups of rows, found by k-means; the program of [1]_ makes 100.
    n_neighbors : int, default=10
        Neighbours of a row in the graph, at most all the others.
    bandwidth : float or {"median"}, default=10.0
        Width t of the heat kernel ``exp(-distance^2 / (2 t^2))``, 10 as published, or the median length of
        an edge.
    C1, C2 : float, default=0.03
        Weights of the distance to the distributions and of the candidates, in stage 2. The C2 of 50 of the
        program of [1]_ switches the distributions off, see Notes.
    epsilon : float, default=0.01
        Distance to a distribution that costs nothing, in stage 2.
    scale : {"standard", "minmax"} or None, default="standard"
        Bring every feature to mean 0 and variance 1, or to [0, 1]; sparse features are not shifted by
        "minmax".
    max_iter : int, default=100
        Iteration budget of each stage.
    tol : float, default=1e-5
        Relative change of the objective in one iteration that stops a stage.
    random_state : int, RandomState, Generator or None, default=None
        Seed of k-means; a single group needs none.
    verbose : int, default=0
        Log every iteration.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norms of the rows of T or, with ``stage=2``, of W, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        The transpose of the same, for scaled features.
    intercept_ : ndarray of shape (n_labels,)
        t or b.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        The distributions on the candidates, 0 elsewhere; rows sum to less than 1. Sparse if ``y`` was.
    threshold_ : float
        Decision value from which `predict` calls a label relevant: 0.5 or, after stage 2, 1 / q.
    scaling_ : Scaling
        Offset (or None) and factor of every feature; ``decision_function`` is
        ``scaling_.apply(X) @ coef_.T + intercept_``.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the stage at its start and after every iteration; it never rises.
    n_iter_ : int
        Number of iterations of the stage.

    Notes
    -----
    Cost: both stages take ``n d q`` for every conjugate gradient iteration with n rows, d features and q labels,
    stage 1 ``q^3`` a round and group besides; once ``n^2 d`` for the neighbours, in blocks, and the inverse of the
    Gram matrix of the features or of the rows, the smaller.

    The objectives are those of the authors' program. There, the features are a kernel matrix, so that no
    feature has a weight: the linear reading is ours, and so are ``rho``, without which stage 1 repeats Y where
    there are as many features as rows, the scores, and the threshold. Every round solves for T and t, then
    improves every ``S_g`` label by label, exactly. At ``lambda1`` and ``lambda2`` of 0.01 stage 1 is a ridge
    regression on the candidates to within some per cent; they begin to act at about 1.

    **C2 = 50 switches the label distributions off.** Distributions are at most 1, but the last term asks for
    shifts of ``C2 / c_i``. With the program's ``C1=1, C2=50, epsilon=0.1``, its regression on the distribution of
    the *true* labels and that on a *random* one correlate by 0.9998 (300 rows, 50 features, 8 labels, noise
    0.4). With ``C1=10, C2=1``, which stands in a comment of the program, by 0.18.

    **Distributions hide common features.** Their rows sum to 1, so stage 2 does not see a feature that raises
    all labels together. Stage 1 does. A row without candidates counts as one of which all labels are wrong.
    Computations are in float64.

    References
    ----------
    .. [1] Xu, Liu, Geng, "Partial multi-label learning with label distribution", AAAI 2020, pp. 6510-6517.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pml_ld import PMLLD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> Y = (X[:, :3] + 0.3 * rng.normal(size=(100, 3)) > 0).astype(int)
    >>> PMLLD(n_features_to_select=3).fit(X, Y).get_support(indices=True)
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LabelRegressor._parameter_constraints,
        "stage": [Options(Integral, {1, 2})],
        "lambda1": NON_NEGATIVE,
        "lambda2": NON_NEGATIVE,
        "rho": POSITIVE,
        "n_groups": COUNT,
        "bandwidth": [*POSITIVE, StrOptions({"median"})],
        "C1": POSITIVE,
        "C2": NON_NEGATIVE,
        "epsilon": NON_NEGATIVE,
    }

    stage: int = 1
    lambda1: float = 0.01
    lambda2: float = 0.01
    rho: float = 0.1
    n_groups: int = 1
    n_neighbors: int = 10
    bandwidth: float | str = 10.0
    C1: float = 0.03
    C2: float = 0.03
    epsilon: float = 0.01
    scale: str | None = "standard"
    max_iter: int = 100
    tol: float = 1e-5
    random_state: Any = None
    verbose: int = 0

    def _regress(self, X: Shifted, Y: np.ndarray) -> SolverResult:
        # Distances, and so neighbours and groups, do not depend on the offset.
        graph = neighbor_graph(X.X, self.n_neighbors, bandwidth=self.bandwidth)
        groups = group_rows(X.X, self.n_groups, as_generator(self.random_state))
        X = X.with_constant()
        state, history, converged = Enhancement(self, X, Y, graph, groups).solve()
        weights, distribution = state.weights, softmax(state.D, axis=1)
        if self.stage == 2:
            weights, history, is_final = Regression(self, X, distribution, margins(Y)).solve()
            converged = converged and is_final
        extra = {
            "coef": weights[:-1].T,
            "intercept": weights[-1],
            "label_confidence": distribution * Y,
            "threshold": 0.5 if self.stage == 1 else 1 / Y.shape[1],
        }
        return SolverResult(row_norms(weights[:-1]), history, converged, extra=extra)


def group_rows(X: Matrix, n_groups: int, rng: np.random.Generator) -> list[Rows]:
    """The rows of every group that k-means finds, at most as many as asked for."""
    if n_groups == 1:
        return [slice(None)]
    from sklearn.cluster import KMeans  # here, for most fits do not need it

    kmeans = KMeans(min(n_groups, X.shape[0]), n_init=1, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # Equal rows make fewer groups, which is not an error.
        warnings.simplefilter("ignore", ConvergenceWarning)
        groups = kmeans.fit_predict(X)
    return [np.flatnonzero(groups == group) for group in np.unique(groups)]


class EnhancementState(NamedTuple):
    """The weights, D, and of every group unit rows Z whose inner products are S."""

    weights: np.ndarray
    D: np.ndarray
    Z: list[np.ndarray]


@dataclass(frozen=True)
class Enhancement:
    """Stage 1: features and a last constant, candidates, graph and groups."""

    params: PMLLD
    X: Shifted
    Y: np.ndarray
    graph: Graph
    groups: list[Rows]

    @cached_property
    def rho(self) -> float:
        """Weight of the squared norm for all rows."""
        return self.X.shape[0] * self.params.rho

    def solve(self, start: np.ndarray | None = None) -> tuple[EnhancementState, np.ndarray, bool]:
        """Alternate from some weights, by default 0, and S = I; returns what `iterate` does."""
        n_labels = self.Y.shape[1]
        weights = np.zeros((self.X.shape[1], n_labels)) if start is None else start
        state = EnhancementState(weights, self.X.times(weights), [np.eye(n_labels) for _ in self.groups])
        # Labels take turns in an order that belongs to them, so that the order of the columns is irrelevant.
        step = partial(self.round, label_order(self.Y))
        value = self.objective(state)
        return self.params._iterate(step, state, value)

    def objective(self, state: EnhancementState) -> float:
        """J of stage 1."""
        D = state.D
        correlations = sum(squared_norm(D[rows] @ Z) for rows, Z in zip(self.groups, state.Z, strict=True))
        return (
            squared_norm(D - self.Y)
            + self.params.lambda1 * inner(D, laplacian_product(self.graph, D))
            + self.params.lambda2 * correlations
            + self.rho * squared_norm(state.weights)
        )

    def round(self, order: np.ndarray, state: EnhancementState) -> tuple[EnhancementState, float]:
        """Solve for the weights, then improve the correlations once."""
        weights = self.solve_weights(state)
        D = self.X.times(weights)
        Z = [improve_correlation(D[rows], Z, order) for rows, Z in zip(self.groups, state.Z, strict=True)]
        state = EnhancementState(weights, D, Z)
        return state, self.objective(state)

    def solve_weights(self, state: EnhancementState) -> np.ndarray:
        """The best weights for the correlations of a state, which tie the labels together."""
        shape = state.weights.shape
        S = [self.params.lambda2 * (Z @ Z.T) for Z in state.Z]

        def operator(column: np.ndarray) -> np.ndarray:
            weights = column.reshape(shape)
            D = self.X.times(weights)
            R = D + self.params.lambda1 * laplacian_product(self.graph, D)
            for rows, S_group in zip(self.groups, S, strict=True):
                R[rows] += D[rows] @ S_group
            return (self.X.transposed_times(R) + self.rho * weights).reshape(-1, 1)

        target = self.X.transposed_times(self.Y).reshape(-1, 1)
        start = state.weights.reshape(-1, 1)
        return conjugate_gradient(operator, target, start, preconditioner=self._precondition).reshape(shape)

    def _precondition(self, column: np.ndarray) -> np.ndarray:
        # Exact without graph and correlations, which change little at weights of ordinary size.
        return self._invert(column.reshape(self.X.shape[1], -1)).reshape(-1, 1)

    @cached_property
    def _invert(self) -> Callable[[np.ndarray], np.ndarray]:
        return WeightedRidge(self.X).inverse(np.full(self.X.shape[1], self.rho))


def improve_correlation(D: np.ndarray, Z: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Lower ``tr(ZZ' D'D)`` over unit rows of Z, label by label, each to its minimum."""
    M, Z = D.T @ D, Z.copy()
    for label in order:
        direction = M[label, label] * Z[label] - M[label] @ Z
        length = np.linalg.norm(direction)
        if length > 0:
            Z[label] = direction / length
    return Z


def margins(Y: np.ndarray) -> np.ndarray:
    """Return 1 / c for the c candidates of a row, -1 / (q - c) for its other labels."""
    n_candidates = Y.sum(axis=1, keepdims=True)
    n_others = Y.shape[1] - n_candidates
    return np.where(Y > 0, 1 / np.maximum(n_candidates, 1), -1 / np.maximum(n_others, 1))


@dataclass(frozen=True)
class Regression:
    """Stage 2: features and a last constant, distributions and margins."""

    params: PMLLD
    X: Shifted
    distribution: np.ndarray
    Z: np.ndarray

    def solve(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Reweight from 0; returns the weights, the constant's last, the objectives and whether they converged."""
        weights = np.zeros((self.X.shape[1], self.Z.shape[1]))
        value = self.objective(weights)
        (weights, _), history, converged = self.params._iterate(self.round, (weights, value), value)
        return weights, history, converged

    def objective(self, weights: np.ndarray) -> float:
        """J of stage 2, and the ridge of the intercepts."""
        F = self.X.times(weights)
        excess = np.maximum(row_norms(self.distribution - F) - self.params.epsilon, 0)
        norms = float(self._ridge @ squared_row_norms(weights))
        return norms / 2 + self.params.C1 / 2 * float(excess @ excess) - self.params.C2 * inner(self.Z, F)

    def round(self, state: tuple[np.ndarray, float]) -> tuple[tuple[np.ndarray, float], float]:
        """Go to the minimum of the reweighted problem, less far where J would rise."""
        weights, value = state
        direction = self.reweighted_minimum(weights) - weights
        for _ in range(_MAX_CUTS):
            moved = weights + direction
            moved_value = self.objective(moved)
            if moved_value <= value:
                return (moved, moved_value), moved_value
            direction /= 10
        return state, value

    def reweighted_minimum(self, weights: np.ndarray) -> np.ndarray:
        """Minimum with the loss of every row replaced by the quadratic of the same slope."""
        distances = row_norms(self.distribution - self.X.times(weights))
        # A row within epsilon weighs nothing, and distances of 0 are within.
        outside = distances > self.params.epsilon
        excess = np.divide(
            distances - self.params.epsilon, distances, out=np.zeros_like(distances), where=outside
        )
        row_weights = self.params.C1 * excess[:, None]

        def operator(column: np.ndarray) -> np.ndarray:
            product: np.ndarray = self.X.transposed_times(row_weights * self.X.times(column))
            return product + self._ridge[:, None] * column

        target = self.X.transposed_times(row_weights * self.distribution + self.params.C2 * self.Z)
        return conjugate_gradient(operator, target, weights, preconditioner=self._invert)

    @cached_property
    def _ridge(self) -> np.ndarray:
        return np.append(np.ones(self.X.shape[1] - 1), _RIDGE)

    @cached_property
    def _invert(self) -> Callable[[np.ndarray], np.ndarray]:
        # As if all rows weighed C1, as those do that are far from their distributions.
        return WeightedRidge(self.X).inverse(self._ridge / self.params.C1)
