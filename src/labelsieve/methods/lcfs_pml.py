"""LCFS-PML: feature selection for partial multi-label data by label confidence."""

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

#: Added under the root of a row's squared norm, so that a zero row has a finite weight.
SMOOTHING = 1e-12
#: The automatic weights, as shares of those that leave W or S empty.
BETA_SHARE, GAMMA_SHARE = 0.3, 0.5
#: Accelerated steps for S in every sweep.
_INNER_STEPS = 20
#: Share of the pairs of rows that are nearer than the width of the density kernel.
_NEAR_SHARE = 0.02
#: Densities that differ by less, relative to the largest, are equal but for rounding.
_SAME_DENSITY = 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class LCFSPML(LinearLabelPredictor, BaseSelector):
    """Select features by a regression on the candidate labels that lie among their like.

    Minimises over the map W and a sparse second map S, [1]_::

        |X(W + S) - Y|^2 + alpha |XW - T|^2 + beta |W|_21 + gamma |S|_1

    where T holds those of the candidates Y that are trusted: W explains them, S whatever else leads from the
    features to the candidates. A candidate is trusted if its row has close neighbours with the same label and is near
    a centre of them. Features are standardised, Y and T centred. Features rank by the norms of their rows of W.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    alpha : float, default=1.0
        Weight of the trusted labels.
    beta : float or "auto", default="auto"
        Row-sparsity weight of W; "auto" is 0.3 times the weight that leaves W empty if every candidate is trusted.
    gamma : float or "auto", default="auto"
        Sparsity weight of S; "auto" is 0.5 times the weight that leaves S empty next to an empty W.
    lam : float, default=1.0
        How much the distance to a centre counts next to the distance to the neighbours; lambda in [1]_.
    theta : float, default=0.4
        Least confidence of a trusted candidate, see ``threshold``.
    threshold : {"value", "quantile"}, default="value"
        Whether the confidence must exceed ``theta``, as published, or be at least the ``theta``-quantile of the
        confidences in the same label.
    n_neighbors : int, default=10
        Neighbours whose mean distance counts, at most all the others with the label.
    confidence : {"distance", "prediction"}, default="distance"
        What ``label_confidence_`` is: the confidence by distances that the method uses, or its predictions XW, which
        tell wrong candidates far better, see Notes.
    max_rounds : int, default=5
        How often, at most, the trusted labels are chosen again.
    max_iter : int, default=500
        Budget of sweeps in every round.
    tol : float, default=1e-4
        Relative change of the objective in one sweep that ends a round.
    verbose : int, default=0
        Log every sweep.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norms of the rows of W, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        The transpose of W, for standardised features.
    intercept_ : ndarray of shape (n_labels,)
        Means of the candidate labels.
    scaling_ : Scaling
        Mean and inverse standard deviation of every feature.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        Confidence in the candidates, 0 elsewhere; sparse if ``y`` was.
    beta_, gamma_ : float
        The sparsity weights that were used.
    n_rounds_ : int
        Number of rounds.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the last round, for the labels trusted in it: at its start and after every sweep. It never rises.
    n_iter_ : int
        Number of sweeps of the last round.

    Notes
    -----
    In every round the objective is convex. A sweep solves for W exactly, with the norm of each row replaced by the
    quadratic that touches it (smoothed as ``sqrt(|w|^2 + 1e-12)``, which is part of the recorded objective), then
    takes 20 accelerated proximal steps for S. After a round the distances are taken again over the better half of
    the features; rounds end when the same candidates are trusted again.

    Deviations from the authors' public program: its row weights are four times those of its objective, its S is not
    sparse, and it starts from random maps. The weights it was run with are unknown: ``beta``, ``gamma``, ``lam``,
    ``theta``, ``n_neighbors`` and the budget of rounds are conventions of this library. Rows at the same place
    count as neighbours here; a label of which no row is a centre takes its densest.

    On `make_pml` with 300 rows, 50 features, 8 labels and 40 % noise, the confidence by distances has an area under
    the ROC curve of 0.56 for true against false candidates, where the predictions XW reach 0.95. It lies between
    ``exp(-1) = 0.37`` and 1, mostly just above 0.37; "quantile" does without a number. S does not help there.

    Cost: a Cholesky factorisation of the smaller of rows and features and 20 products with X'X for every sweep;
    for every round the distances among the rows of one label after the other, of many rows in blocks.

    References
    ----------
    .. [1] Han et al., "Integrating label confidence-based feature selection for partial multi-label learning",
       Pattern Recognition, 2024.

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
            state, history, settled = self._iterate(problem.sweep, state, value)
            converged &= settled
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
        """Return the confidence in the candidates by some features, and which of them are trusted."""
        confidence = density_confidence(X, Y, n_neighbors=self.n_neighbors, lam=self.lam)
        return confidence, trusted_candidates(confidence, theta=self.theta, threshold=self.threshold)

    def _sparsity_weights(self, XtY: np.ndarray) -> tuple[float, float]:
        """Turn "auto" into a share of the weight at which W, or S, is empty while all candidates are trusted."""
        beta, gamma = self.beta, self.gamma
        if isinstance(beta, str):
            # Where features or labels do not vary, any weight leaves nothing.
            beta = BETA_SHARE * 2 * (1 + self.alpha) * float(row_norms(XtY).max()) or 1.0
        if isinstance(gamma, str):
            gamma = GAMMA_SHARE * 2 * float(np.abs(XtY).max()) or 1.0
        return float(beta), float(gamma)


class LCFSPMLState(NamedTuple):
    """The two maps, and their products with X'X."""

    W: np.ndarray
    S: np.ndarray
    XtXW: np.ndarray
    XtXS: np.ndarray


@dataclass(frozen=True)
class LCFSPMLProblem:
    """One round: features, candidates, trusted candidates, weights; twice X'X is at most ``curvature``."""

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
        """Complete the maps by their products."""
        return LCFSPMLState(W, S, self.ridge.normal_product(W), self.ridge.normal_product(S))

    def start(self) -> LCFSPMLState:
        """W from a ridge regression on candidates and trusted candidates, S from nothing."""
        W = self._solve_W(np.zeros_like(self._XtY), np.ones(len(self._XtY)))
        return self.state(W, np.zeros_like(W))

    def objective(self, state: LCFSPMLState) -> float:
        """J; the squares are written out, so that no product has as many rows as the data."""
        both, XtX_both = state.W + state.S, state.XtXW + state.XtXS
        return (
            self._constant
            + inner(both, XtX_both - 2 * self._XtY)
            + self.alpha * inner(state.W, state.XtXW - 2 * self._XtT)
            + self.beta * smooth_l21_norm(state.W, SMOOTHING)
            + self.gamma * float(np.abs(state.S).sum())
        )

    def sweep(self, state: LCFSPMLState) -> tuple[LCFSPMLState, float]:
        """Solve for W with the row-sparsity term bounded by a quadratic, then step towards the best S."""
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
        """Accelerated proximal steps on ``|XS - R|^2 + gamma |S|_1``; where it rose, go back and restart."""
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
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            share = (momentum - 1) / following
            ahead, XtX_ahead = new + share * (new - S), XtX_new + share * (XtX_new - XtXS)
            S, XtXS, momentum, best = new, XtX_new, following, reached
        return S, XtXS


def _best_half(W: np.ndarray) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the columns of the better half of the features, ascending."""
    order = np.argsort(-row_norms(W), kind="stable")
    return np.sort(order[: max(1, len(W) // 2)])


def density_confidence(X: Matrix, Y: Matrix, *, n_neighbors: int, lam: float) -> np.ndarray:
    """Return a confidence between exp(-1) and 1 for every candidate, 0 elsewhere.

    With a, the mean distance to the nearest other rows with the label, and c, the distance to the nearest
    density peak, each relative to the largest of its kind, ``t = exp(-(1 + lam) a c / (lam a + c))``.

    Distances are needed among the rows of one label only, and of many rows a block at a time.
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
    """Return the candidates whose confidence exceeds ``theta``, or reaches that quantile of its label, as 0/1."""
    if threshold == "value":
        trusted = confidence > theta
    else:
        # Confidences are positive, so 0 is not a candidate.
        among = np.where(confidence > 0, confidence, np.nan)
        among[:, ~(confidence > 0).any(axis=0)] = 1.0
        trusted = confidence >= np.nanquantile(among, theta, axis=0)
    return trusted.astype(np.float64)


def _confidence_among(points: Matrix, n_neighbors: int, lam: float) -> np.ndarray:
    """Return t of rows that have a label in common."""
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
        # The nearest of all is the row itself, or one at its place.
        spread[rows] = np.partition(block, n_neighbors, axis=1)[:, : n_neighbors + 1].sum(axis=1)
    peaks = _density_peaks(distances, density)
    away = distances.to(points[np.flatnonzero(peaks)]).min(axis=1)
    a, c = _relative(spread), _relative(away)
    harmonic = np.divide((1 + lam) * a * c, lam * a + c, out=np.zeros_like(a), where=a * c > 0)
    return np.exp(-harmonic)


class _Distances:
    """All distances between some points, by blocks of rows; one block is computed once and kept."""

    def __init__(self, points: Matrix) -> None:
        self.points = points
        self.n_points = points.shape[0]
        # Below it, a distance is the rounding of a repeated row.
        self.smallest = 2 * float(np.sqrt(squared_row_norms(points).max())) / DISTANCE_STEPS
        self._cuts = list(batches(self.n_points, self.n_points))
        self._kept = self._block(self._cuts[0]) if len(self._cuts) == 1 else None

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield some rows and their distances to all; the caller leaves them alone."""
        for rows in self._cuts:
            yield rows, self._block(rows) if self._kept is None else self._kept

    def to(self, others: Matrix) -> np.ndarray:
        """Return the distances from every point to some."""
        return self._cleaned(euclidean_distances(self.points, others))

    def _block(self, rows: slice) -> np.ndarray:
        return self._cleaned(euclidean_distances(self.points[rows], self.points))

    def _cleaned(self, distances: np.ndarray) -> np.ndarray:
        distances[distances < self.smallest] = 0
        return distances


def _kernel_width(distances: _Distances) -> float:
    """Return the distance below which 2 % of the pairs lie, exactly, in the memory of 2 % of the pairs."""
    n_points = distances.n_points
    place = int(_NEAR_SHARE * n_points * (n_points - 1)) + n_points
    nearest = np.empty(0)
    for _, block in distances.blocks():
        nearest = np.concatenate([nearest, block.ravel()])
        if len(nearest) > place:
            nearest = np.partition(nearest, place)[: place + 1]
    return float(nearest[place])


def _density_peaks(distances: _Distances, density: np.ndarray) -> np.ndarray:
    """Say which points are dense and far from any denser one; the densest if none is."""
    largest = density.max()
    margin = _SAME_DENSITY * largest
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
