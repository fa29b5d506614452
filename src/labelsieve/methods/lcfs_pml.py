"""LCFS-PML: feature selection for partial multi-label data with label confidences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from labelsieve._base import COUNT, NON_NEGATIVE, POSITIVE, BaseSelector, Interval, Real, StrOptions
from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import confidence_on_candidates
from labelsieve._numerics.graph import DISTANCE_STEPS
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
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve._prediction import LinearLabelPredictor

#: Added to the squared norm of a row under the root, so that a zero row has a finite weight.
SMOOTHING = 1e-12
#: The automatic weights, as fractions of the weights that make W or S zero.
BETA_FRACTION, GAMMA_FRACTION = 0.3, 0.5
#: Number of accelerated steps for S per sweep.
_INNER_STEPS = 20
#: Fraction of the pairs of rows that are closer than the width of the density kernel.
_NEAR_FRACTION = 0.02
#: Relative tolerance below which densities are equal.
_DENSITY_TOLERANCE = 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class LCFSPML(LinearLabelPredictor, BaseSelector):
    """Rank features by a regression that puts extra weight on trusted candidate labels.

    Minimises over the weights W and the sparse weights S [1]_::

        |X(W + S) - Y|^2 + alpha |XW - T|^2 + beta |W|_21 + gamma |S|_1

    where T holds the trusted candidates among the candidates Y. W explains the trusted candidates, and S
    explains any other relation between features and candidates. A candidate is trusted if its row is close
    to other rows with the same label and to a density peak of these rows. Features are standardised, and Y
    and T are centred. Features are ranked by the norms of their rows of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    alpha : float, default=1.0
        Weight of the trusted labels.
    beta : float or "auto", default="auto"
        Row-sparsity weight of W. "auto" is 0.3 times the weight that makes W zero if all candidates are
        trusted.
    gamma : float or "auto", default="auto"
        Sparsity weight of S. "auto" is 0.5 times the weight that makes S zero if W is zero.
    lam : float, default=1.0
        Weight of the distance to a density peak, relative to the distance to the neighbours; lambda in
        [1]_.
    theta : float, default=0.4
        Minimum confidence of a trusted candidate, see ``threshold``.
    threshold : {"value", "quantile"}, default="value"
        With "value", the confidence must exceed ``theta``, as published. With "quantile", it must reach
        the ``theta``-quantile of the confidences of the same label.
    n_neighbors : int, default=10
        Number of neighbours for the mean distance, capped by the number of other rows with the label.
    confidence : {"distance", "prediction"}, default="distance"
        Content of ``label_confidence_``: the distance-based confidences of the method, or its predictions
        XW, which detect wrong candidates much better (see Notes).
    max_rounds : int, default=5
        Maximum number of rounds. Each round uses a new choice of trusted labels.
    max_iter : int, default=500
        Maximum number of sweeps per round.
    tol : float, default=1e-4
        End a round when the relative change of the objective in one sweep is at most this.
    verbose : int, default=0
        Log every sweep if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norms of the rows of W, and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Transpose of W, for standardised features.
    intercept_ : ndarray of shape (n_labels,)
        Means of the candidate labels.
    scaling_ : Scaling
        Mean and inverse standard deviation of every feature.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        Confidences of the candidates, and 0 for non-candidates; sparse if ``y`` was.
    beta_, gamma_ : float
        Sparsity weights that were used.
    n_rounds_ : int
        Number of rounds.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the last round, with the labels trusted in it, at the start of the round and after
        each sweep. It never increases.
    n_iter_ : int
        Number of sweeps in the last round.

    Notes
    -----
    The objective of each round is convex. A sweep first solves for W exactly, with the row norms replaced
    by quadratic bounds, then takes 20 accelerated proximal steps for S. The norms are smoothed as
    ``sqrt(|w|^2 + 1e-12)``, which is part of the recorded objective. After each round, the distances are
    recomputed on the better half of the features. The rounds end when the trusted candidates do not
    change.

    This differs in several ways from the authors' public code. Its row weights are four times those of
    its objective, its S is not sparse, and it starts from random weights. The parameters of its
    experiments are unknown, so ``beta``, ``gamma``, ``lam``, ``theta``, ``n_neighbors`` and ``max_rounds``
    are conventions of this library. Here, identical rows count as neighbours. If a label has no density
    peak, its densest rows are used.

    On `make_pml` with 300 rows, 50 features, 8 labels and 40% noise, the area under the ROC curve for true
    against false candidates is 0.56 for the distance-based confidence and 0.95 for the predictions XW. The
    confidence lies between ``exp(-1) = 0.37`` and 1, mostly just above 0.37, so a suitable ``theta`` is
    hard to guess with "value". S does not help on these data.

    Cost: per sweep, a Cholesky factorisation of size ``min(n_samples, n_features)`` and 20 products with
    X'X. Per round, all distances between rows with a label in common, in blocks if there are many rows.

    References
    ----------
    .. [1] Han et al., "Integrating label confidence-based feature selection for partial multi-label
       learning", Pattern Recognition, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.lcfs_pml import LCFSPML
    >>> X = np.random.default_rng(0).random((60, 5))
    >>> Y = (X[:, [1, 3]] > 0.5).astype(int)
    >>> LCFSPML(n_features_to_select=2).fit(X, Y).get_support(indices=True)
    array([1, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "alpha": NON_NEGATIVE,
        "beta": [StrOptions({"auto"}), *POSITIVE],
        "gamma": [StrOptions({"auto"}), *NON_NEGATIVE],
        "lam": NON_NEGATIVE,
        "theta": [Interval(Real, 0, 1, closed="both")],
        "threshold": [StrOptions({"value", "quantile"})],
        "confidence": [StrOptions({"distance", "prediction"})],
        "max_rounds": COUNT,
    }

    alpha: float = 1.0
    beta: float | str = "auto"
    gamma: float | str = "auto"
    lam: float = 1.0
    theta: float = 0.4
    threshold: str = "value"
    n_neighbors: int = 10
    confidence: str = "distance"
    max_rounds: int = 5
    max_iter: int = 500
    tol: float = 1e-4
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaling = standard_scaling(X)
        features, labels = Shifted(*scaling.split(X)), dense(Y)
        centred, ridge = centre_columns(labels), WeightedRidge(features)
        curvature = 2 * largest_eigenvalue(ridge.normal_product, features.shape[1])
        beta, gamma = self._sparsity_weights(features.transposed_times(centred))
        confidence, trusted = self._trust(features.X, labels)
        problem = LCFSPMLProblem(ridge, curvature, centred, centre_columns(trusted), self.alpha, beta, gamma)
        state, converged = problem.start(), True
        for n_rounds in range(1, self.max_rounds + 1):
            value = problem.objective(state)
            state, history, round_converged = self._iterate(problem.sweep, state, value)
            converged &= round_converged
            if n_rounds == self.max_rounds:
                break
            before = trusted
            confidence, trusted = self._trust(features.X[:, _best_half(state.W)], labels)
            if (trusted == before).all():
                break
            problem = replace(problem, trusted=centre_columns(trusted))
        intercept = labels.mean(axis=0)
        if self.confidence == "prediction":
            confidence = features.times(state.W) + intercept
        extra = {
            "coef": state.W.T.astype(X.dtype),
            "intercept": intercept.astype(X.dtype),
            "scaling": scaling,
            "label_confidence": confidence_on_candidates(confidence, Y),
            "beta": problem.beta,
            "gamma": problem.gamma,
            "n_rounds": n_rounds,
        }
        return SolverResult(row_norms(state.W).astype(X.dtype), history, converged, extra=extra)

    def _trust(self, X: Matrix, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the confidences of the candidates for the given features, and the trusted candidates."""
        confidence = density_confidence(X, Y, n_neighbors=self.n_neighbors, lam=self.lam)
        return confidence, trusted_candidates(confidence, theta=self.theta, threshold=self.threshold)

    def _sparsity_weights(self, XtY: np.ndarray) -> tuple[float, float]:
        """Replace "auto" with a fraction of the weight that makes W or S zero if all candidates are trusted."""
        beta, gamma = self.beta, self.gamma
        if isinstance(beta, str):
            # If no feature or no label varies, W is zero with any weight.
            beta = BETA_FRACTION * 2 * (1 + self.alpha) * float(row_norms(XtY).max()) or 1.0
        if isinstance(gamma, str):
            gamma = GAMMA_FRACTION * 2 * float(np.abs(XtY).max()) or 1.0
        return float(beta), float(gamma)


class LCFSPMLState(NamedTuple):
    """Weights W and S, and their products with X'X."""

    W: np.ndarray
    S: np.ndarray
    XtXW: np.ndarray
    XtXS: np.ndarray


@dataclass(frozen=True)
class LCFSPMLProblem:
    """Data and weights of one round. ``curvature`` is an upper bound of the eigenvalues of 2 X'X."""

    ridge: WeightedRidge
    curvature: float
    Y: np.ndarray
    trusted: np.ndarray
    alpha: float
    beta: float
    gamma: float

    @cached_property
    def _XtY(self) -> np.ndarray:
        return self.ridge.X.transposed_times(self.Y)

    @cached_property
    def _XtT(self) -> np.ndarray:
        return self.ridge.X.transposed_times(self.trusted)

    @cached_property
    def _constant(self) -> float:
        return squared_norm(self.Y) + self.alpha * squared_norm(self.trusted)

    def state(self, W: np.ndarray, S: np.ndarray) -> LCFSPMLState:
        """Return the state of W and S."""
        return LCFSPMLState(W, S, self.ridge.normal_product(W), self.ridge.normal_product(S))

    def start(self) -> LCFSPMLState:
        """Start with W from a ridge regression on all and on trusted candidates, and S = 0."""
        W = self._solve_W(np.zeros_like(self._XtY), np.ones(len(self._XtY)))
        return self.state(W, np.zeros_like(W))

    def objective(self, state: LCFSPMLState) -> float:
        """Compute the objective. The squares are expanded, so that no product has n_samples rows."""
        both, XtX_both = state.W + state.S, state.XtXW + state.XtXS
        return (
            self._constant
            + inner(both, XtX_both - 2 * self._XtY)
            + self.alpha * inner(state.W, state.XtXW - 2 * self._XtT)
            + self.beta * smooth_l21_norm(state.W, SMOOTHING)
            + self.gamma * float(np.abs(state.S).sum())
        )

    def sweep(self, state: LCFSPMLState) -> tuple[LCFSPMLState, float]:
        """Solve for W with a quadratic bound of the row-sparsity term, then take steps for S."""
        W = self._solve_W(state.S, l21_weights(state.W, SMOOTHING))
        XtXW = self.ridge.normal_product(W)
        S, XtXS = self._step_S(state, self._XtY - XtXW)
        state = LCFSPMLState(W, S, XtXW, XtXS)
        return state, self.objective(state)

    def _solve_W(self, S: np.ndarray, row_weights: np.ndarray) -> np.ndarray:
        weight = 1 + self.alpha
        target = (self.Y - self.ridge.X.times(S) + self.alpha * self.trusted) / weight
        return self.ridge.solver(self.beta / weight * row_weights)(target)

    def _step_S(self, state: LCFSPMLState, XtR: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take accelerated proximal steps on ``|XS - R|^2 + gamma |S|_1``, with restarts if it increases."""
        S, XtXS = state.S, state.XtXS
        if self.curvature == 0:
            return S, XtXS

        def value(S: np.ndarray, XtXS: np.ndarray) -> float:
            return inner(S, XtXS - 2 * XtR) + self.gamma * float(np.abs(S).sum())

        ahead, XtX_ahead, momentum, best = S, XtXS, 1.0, value(S, XtXS)
        for _ in range(_INNER_STEPS):
            downhill = ahead - 2 / self.curvature * (XtX_ahead - XtR)
            new = soft_threshold(downhill, self.gamma / self.curvature)
            XtX_new = self.ridge.normal_product(new)
            reached = value(new, XtX_new)
            if reached > best:
                ahead, XtX_ahead, momentum = S, XtXS, 1.0
                continue
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            factor = (momentum - 1) / next_momentum
            ahead, XtX_ahead = new + factor * (new - S), XtX_new + factor * (XtX_new - XtXS)
            S, XtXS, momentum, best = new, XtX_new, next_momentum, reached
        return S, XtXS


def _best_half(W: np.ndarray) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the indices of the better half of the features in ascending order."""
    order = np.argsort(-row_norms(W), kind="stable")
    return np.sort(order[: max(1, len(W) // 2)])


def density_confidence(X: Matrix, Y: Matrix, *, n_neighbors: int, lam: float) -> np.ndarray:
    """Return a confidence between exp(-1) and 1 for every candidate, and 0 for non-candidates.

    The confidence is ``t = exp(-(1 + lam) a c / (lam a + c))``, where a is the mean distance to the nearest
    other rows with the label and c is the distance to the nearest density peak, each relative to its
    maximum. Only distances between rows with the same label are computed, in blocks if there are many rows.
    """
    X = X.tocsr() if is_sparse(X) else X
    candidates = sp.csc_matrix(Y)
    confidence = np.zeros(Y.shape)
    for label in range(Y.shape[1]):
        rows = candidates.indices[candidates.indptr[label] : candidates.indptr[label + 1]]
        if len(rows):
            confidence[rows, label] = _confidence_among(X[rows], n_neighbors, lam)
    return confidence


def trusted_candidates(confidence: np.ndarray, *, theta: float, threshold: str) -> np.ndarray:
    """Return a 0/1 matrix of the candidates whose confidence exceeds ``theta``, or reaches that quantile."""
    if threshold == "value":
        trusted = confidence > theta
    else:
        # The confidence of a candidate is positive, so 0 marks non-candidates.
        among = np.where(confidence > 0, confidence, np.nan)
        among[:, ~(confidence > 0).any(axis=0)] = 1.0
        trusted = confidence >= np.nanquantile(among, theta, axis=0)
    return trusted.astype(np.float64)


def _confidence_among(points: Matrix, n_neighbors: int, lam: float) -> np.ndarray:
    """Compute the confidences of rows with a label in common."""
    if points.shape[0] == 1:
        return np.ones(1)
    distances = _Distances(points)
    width = _kernel_width(distances)
    n_neighbors = min(n_neighbors, points.shape[0] - 1)
    density, spread = np.empty((2, points.shape[0]))
    for rows, block in distances.blocks():
        if width > 0:
            density[rows] = np.exp(-((block / width) ** 2)).sum(axis=1)
        else:
            density[rows] = (block == 0).sum(axis=1)
        # Includes the distance of 0 from the row to itself.
        spread[rows] = np.partition(block, n_neighbors, axis=1)[:, : n_neighbors + 1].sum(axis=1)
    peaks = _density_peaks(distances, density)
    away = distances.to(points[np.flatnonzero(peaks)]).min(axis=1)
    a, c = _relative(spread), _relative(away)
    harmonic = np.divide((1 + lam) * a * c, lam * a + c, out=np.zeros_like(a), where=a * c > 0)
    return np.exp(-harmonic)


class _Distances:
    """Distances between all points, in blocks of rows. A single block is cached."""

    def __init__(self, points: Matrix) -> None:
        self.points = points
        self.n_points = points.shape[0]
        # Smaller distances are rounding errors of identical rows.
        self.smallest = 2 * float(np.sqrt(squared_row_norms(points).max())) / DISTANCE_STEPS
        self._cuts = list(batches(self.n_points, self.n_points))
        self._kept = self._block(self._cuts[0]) if len(self._cuts) == 1 else None

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of rows and their distances to all points, which must not be modified."""
        for rows in self._cuts:
            yield rows, self._block(rows) if self._kept is None else self._kept

    def to(self, others: Matrix) -> np.ndarray:
        """Return the distances from all points to some others."""
        return self._zero_smallest(euclidean_distances(self.points, others))

    def _block(self, rows: slice) -> np.ndarray:
        return self._zero_smallest(euclidean_distances(self.points[rows], self.points))

    def _zero_smallest(self, distances: np.ndarray) -> np.ndarray:
        distances[distances < self.smallest] = 0
        return distances


def _kernel_width(distances: _Distances) -> float:
    """Compute the exact 2% quantile of the pairwise distances, keeping only 2% of them in memory."""
    n_points = distances.n_points
    place = int(_NEAR_FRACTION * n_points * (n_points - 1)) + n_points
    nearest = np.empty(0)
    for _, block in distances.blocks():
        nearest = np.concatenate([nearest, block.ravel()])
        if len(nearest) > place:
            nearest = np.partition(nearest, place)[: place + 1]
    return float(nearest[place])


def _density_peaks(distances: _Distances, density: np.ndarray) -> np.ndarray:
    """Return a mask of points that are dense and far from denser ones, or of the densest without any."""
    largest = density.max()
    margin = _DENSITY_TOLERANCE * largest
    to_denser = np.empty(distances.n_points)
    for rows, block in distances.blocks():
        is_denser = density > density[rows, None] + margin
        to_denser[rows] = np.where(is_denser, block, np.inf).min(axis=1)
    densest = np.isinf(to_denser)
    to_denser[densest] = to_denser[~densest].max(initial=0.0)
    is_dense = density + margin >= (largest + density.min()) / 2
    peaks: np.ndarray = is_dense & (to_denser > (to_denser.max() + to_denser.min()) / 2)
    return peaks if peaks.any() else densest


def _relative(values: np.ndarray) -> np.ndarray:
    largest = values.max()
    return values / largest if largest > 0 else values
