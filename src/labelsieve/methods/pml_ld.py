"""PML-LD: partial multi-label learning with label distributions and linear features."""

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

#: Ridge on the intercepts in stage 2, which makes its linear systems solvable.
_RIDGE = 1e-8
#: Maximum number of times that a step of stage 2 is divided by 10.
_MAX_CUTS = 30


@dataclass(eq=False, repr=False, kw_only=True)
class PMLLD(LabelRegressor):
    """Rank features by a linear regression on label distributions (PML-LD with linear features).

    Stage 1, label enhancement, minimises over ``D = XT + 1t'``, which is linear in the features,
    and over the label correlations ``S_g`` of groups of rows::

        |D - Y|^2 + lambda1 tr(D' G D) + lambda2 sum_g tr(S_g D_g' D_g) + n rho (|T|^2 + |t|^2)

    where G is the Laplacian of a neighbour graph of the rows, n is the number of rows, and every
    ``S_g`` is positive semidefinite with diagonal 1. The label distribution of a row is the softmax
    of its row of D. Stage 2 minimises over ``F = XW + 1b'``::

        1/2 |W|^2 + C1 / 2 sum_i max(0, |softmax(d_i) - f_i| - epsilon)^2 - C2 sum_ik Z_ik F_ik

    where ``Z_ik`` is 1 / c_i for the c_i candidates of row i and -1 / (q - c_i) for its other
    labels. Features are ranked by the norms of their rows of T or W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    stage : {1, 2}, default=1
        Stage whose weights are used: 1 for the label enhancement, or 2 for the regression on the
        distributions, which misses features that all labels have in common. See Notes.
    lambda1, lambda2 : float, default=0.01
        Weights of the graph and of the label correlations.
    rho : float, default=0.1
        Weight of the squared norm in stage 1, per row of X. [1]_ has no such term and stops early
        instead.
    n_groups : int, default=1
        Number of groups of rows, found by k-means. The code of [1]_ uses 100.
    n_neighbors : int, default=10
        Number of neighbours of each row in the graph, capped by the number of other rows.
    bandwidth : float or {"median"}, default=10.0
        Width t of the heat kernel ``exp(-distance^2 / (2 t^2))``: 10 as published, or the median
        edge length.
    C1, C2 : float, default=0.03
        Weights in stage 2 of the distance to the distributions and of the candidates. The code of
        [1]_ uses C2 = 50, which disables the distributions, see Notes.
    epsilon : float, default=0.01
        Distance to a distribution that is not penalised in stage 2.
    scale : {"standard", "minmax"} or None, default="standard"
        Scale every feature to mean 0 and variance 1, or to [0, 1]. "minmax" does not shift sparse
        features.
    max_iter : int, default=100
        Maximum number of iterations of each stage.
    tol : float, default=1e-5
        A stage stops when the relative change of its objective in one iteration is at most this.
    random_state : int, RandomState, Generator or None, default=None
        Seed of k-means. Not used with a single group.
    verbose : int, default=0
        Log every iteration if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norms of the rows of T (of W with ``stage=2``), and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Transpose of T or W, for scaled features.
    intercept_ : ndarray of shape (n_labels,)
        t or b.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        Label distributions, set to 0 for non-candidates, so rows can sum to less than 1. Sparse if
        ``y`` was.
    threshold_ : float
        Decision value from which `predict` returns a label: 0.5, or 1 / q with ``stage=2``.
    scaling_ : Scaling
        Offset (or None) and factor of every feature; ``decision_function`` is
        ``scaling_.apply(X) @ coef_.T + intercept_``.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the stage at the start and after each iteration. It never increases.
    n_iter_ : int
        Number of iterations of the stage.

    Notes
    -----
    Cost: ``n d q`` per conjugate gradient iteration of both stages for n rows, d features and q
    labels, plus ``q^3`` per round and group in stage 1. In addition, once, ``n^2 d`` for the
    neighbours, in blocks, and the inverse of the smaller Gram matrix of features or rows.

    The objectives are those of the authors' code, in which the features are a kernel matrix, so
    that no feature has a weight of its own. We use linear features instead. We also added the
    scores, the threshold and ``rho``. Without ``rho``, stage 1 reproduces Y if there are as many
    features as rows. Each round solves for T and t, then updates every ``S_g`` label by label,
    exactly. With ``lambda1`` and ``lambda2`` at 0.01, stage 1 is a ridge regression on the
    candidates to within a few per cent. They take effect at about 1.

    **C2 = 50 disables the label distributions.** Distributions are at most 1, but the last term
    rewards shifts of ``C2 / c_i``. With the published ``C1=1, C2=50, epsilon=0.1``, a regression on
    the distribution of the *true* labels and one on a *random* distribution have a correlation of
    0.9998 (300 rows, 50 features, 8 labels, noise 0.4). With ``C1=10, C2=1``, found in a comment in
    the code, the correlation is 0.18.

    **Distributions hide common features.** Their rows sum to 1, so stage 2 misses a feature that
    raises all labels together. Stage 1 finds it. In a row without candidates, all labels are
    treated as irrelevant. All computations use float64.

    References
    ----------
    .. [1] Xu, Liu, Geng, "Partial multi-label learning with label distribution", AAAI 2020,
       pp. 6510-6517.

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
        # The offset does not change distances, neighbours and groups.
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
    """Return the rows of every group that k-means finds, at most ``n_groups``."""
    if n_groups == 1:
        return [slice(None)]
    from sklearn.cluster import KMeans  # imported here because most fits do not need it

    kmeans = KMeans(min(n_groups, X.shape[0]), n_init=1, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # Duplicate rows can lead to fewer groups, which is not an error.
        warnings.simplefilter("ignore", ConvergenceWarning)
        groups = kmeans.fit_predict(X)
    return [np.flatnonzero(groups == group) for group in np.unique(groups)]


class EnhancementState(NamedTuple):
    """Weights, D, and one matrix Z per group. Its rows have unit norm, and Z Z' is S."""

    weights: np.ndarray
    D: np.ndarray
    Z: list[np.ndarray]


@dataclass(frozen=True)
class Enhancement:
    """Stage 1. The last column of ``X`` is constant."""

    params: PMLLD
    X: Shifted
    Y: np.ndarray
    graph: Graph
    groups: list[Rows]

    @cached_property
    def rho(self) -> float:
        """Weight of the squared norm, summed over the rows."""
        return self.X.shape[0] * self.params.rho

    def solve(self, start: np.ndarray | None = None) -> tuple[EnhancementState, np.ndarray, bool]:
        """Alternate, starting at the given weights or 0 and S = I. Return the result of `iterate`."""
        n_labels = self.Y.shape[1]
        weights = np.zeros((self.X.shape[1], n_labels)) if start is None else start
        state = EnhancementState(weights, self.X.times(weights), [np.eye(n_labels) for _ in self.groups])
        # Update the labels in an order that does not depend on the order of the columns.
        step = partial(self.round, label_order(self.Y))
        value = self.objective(state)
        return self.params._iterate(step, state, value)

    def objective(self, state: EnhancementState) -> float:
        """Return the objective of stage 1."""
        D = state.D
        correlations = sum(squared_norm(D[rows] @ Z) for rows, Z in zip(self.groups, state.Z, strict=True))
        return (
            squared_norm(D - self.Y)
            + self.params.lambda1 * inner(D, laplacian_product(self.graph, D))
            + self.params.lambda2 * correlations
            + self.rho * squared_norm(state.weights)
        )

    def round(self, order: np.ndarray, state: EnhancementState) -> tuple[EnhancementState, float]:
        """Solve for the weights, then update the correlations once."""
        weights = self.solve_weights(state)
        D = self.X.times(weights)
        Z = [improve_correlation(D[rows], Z, order) for rows, Z in zip(self.groups, state.Z, strict=True)]
        state = EnhancementState(weights, D, Z)
        return state, self.objective(state)

    def solve_weights(self, state: EnhancementState) -> np.ndarray:
        """Return the optimal weights of all labels for the correlations of a state."""
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
        # Exact without graph and correlations, which have little effect at typical weights.
        return self._invert(column.reshape(self.X.shape[1], -1)).reshape(-1, 1)

    @cached_property
    def _invert(self) -> Callable[[np.ndarray], np.ndarray]:
        return WeightedRidge(self.X).inverse(np.full(self.X.shape[1], self.rho))


def improve_correlation(D: np.ndarray, Z: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Minimise ``tr(ZZ' D'D)`` over each row of Z in turn, subject to unit norm."""
    M, Z = D.T @ D, Z.copy()
    for label in order:
        direction = M[label, label] * Z[label] - M[label] @ Z
        length = np.linalg.norm(direction)
        if length > 0:
            Z[label] = direction / length
    return Z


def margins(Y: np.ndarray) -> np.ndarray:
    """Return 1 / c for the c candidates of a row and -1 / (q - c) for its other labels."""
    n_candidates = Y.sum(axis=1, keepdims=True)
    n_others = Y.shape[1] - n_candidates
    return np.where(Y > 0, 1 / np.maximum(n_candidates, 1), -1 / np.maximum(n_others, 1))


@dataclass(frozen=True)
class Regression:
    """Stage 2. The last column of ``X`` is constant."""

    params: PMLLD
    X: Shifted
    distribution: np.ndarray
    Z: np.ndarray

    def solve(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Solve by reweighting from 0. Return weights, objective history and convergence."""
        weights = np.zeros((self.X.shape[1], self.Z.shape[1]))
        value = self.objective(weights)
        (weights, _), history, converged = self.params._iterate(self.round, (weights, value), value)
        return weights, history, converged

    def objective(self, weights: np.ndarray) -> float:
        """Return the objective of stage 2, including the ridge of the intercepts."""
        F = self.X.times(weights)
        excess = np.maximum(row_norms(self.distribution - F) - self.params.epsilon, 0)
        norms = float(self._ridge @ squared_row_norms(weights))
        return norms / 2 + self.params.C1 / 2 * float(excess @ excess) - self.params.C2 * inner(self.Z, F)

    def round(self, state: tuple[np.ndarray, float]) -> tuple[tuple[np.ndarray, float], float]:
        """Step to the minimum of the reweighted problem, or less far if the objective would increase."""
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
        """Minimise with the loss of every row replaced by a quadratic of the same slope."""
        distances = row_norms(self.distribution - self.X.times(weights))
        # A row within epsilon has weight 0. This also covers distances of 0.
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
        # Exact if all rows have weight C1, like those far from their distributions.
        return WeightedRidge(self.X).inverse(self._ridge / self.params.C1)
