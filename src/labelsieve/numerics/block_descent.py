"""Two-level extrapolated block descent for the factorisation of `factorization`.

For a fixed U, the factors V and W only see ``U'U``, ``U'X`` and ``U'T``. So one outer iteration is one U-step
and several cheap rounds on (V, W): two touches of X in all. Both levels extrapolate along their last step
and return to the best point when F would rise, after Ang and Gillis, "Accelerating nonnegative matrix
factorization algorithms using extrapolation", Neural Computation 31(2), 2019. The accepted F never rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from labelsieve.numerics.factorization import FactorizationProblem, Factors, Grams, multiplicative_sweep
from labelsieve.numerics.norms import row_norms
from labelsieve.numerics.products import BLOCK_ROWS, gram, inner, right_product

#: A coordinate with less curvature is left alone: its component is dead and may revive.
_FLAT = 1e-30
#: Work of one outer iteration: coordinate sweeps over U, rounds on (V, W), gradient steps on W in a round.
_U_SWEEPS = 4
_ROUNDS = 10
_W_STEPS = 3
#: A round that gains less than this share of the first one ends the rounds.
_WORTHWHILE = 0.05
#: Multiplicative sweeps that carry a rough start to where extrapolation is safe.
_WARM_UP = 20


@dataclass(frozen=True)
class Reach:
    """How far to extrapolate; adapts to whether it helped."""

    step: float
    limit: float = 1.0

    def grown(self, step_factor: float, limit_factor: float) -> Reach:
        """Reach further after a success."""
        return Reach(min(self.limit, step_factor * self.step), min(1.0, limit_factor * self.limit))

    def shrunk(self, divisor: float) -> Reach:
        """Reach less far, for good, after a failure."""
        return Reach(self.step / divisor, self.step / divisor)


@dataclass(frozen=True)
class DescentState:
    """The accepted point, its value, and where the next outer iteration starts from."""

    accepted: Factors
    value: float
    ahead: Factors
    last_V: np.ndarray
    last_W: np.ndarray
    reach: Reach


class BlockDescent:
    """The solver for one problem: `start` once, then `step` repeatedly."""

    def __init__(self, problem: FactorizationProblem) -> None:
        self.problem = problem
        self.label_curvature = problem.beta * _largest_eigenvalue(problem)

    def start(self, factors: Factors) -> DescentState:
        """Warm up from strictly positive factors."""
        for _ in range(_WARM_UP):
            factors, value = multiplicative_sweep(self.problem, factors)
        return DescentState(factors, value, factors, factors.V, factors.W, Reach(0.5))

    def step(self, state: DescentState) -> tuple[DescentState, float]:
        """Do one outer iteration; the accepted value is never above the last one. The state is used up."""
        ahead = state.ahead
        if ahead.U is state.accepted.U:
            ahead = ahead._replace(U=ahead.U.copy())
        U, value = self._u_step(ahead)
        # A plain step cannot rise but for the rounding of single precision.
        if value > state.value:
            accepted, value = state.accepted, state.value
            last_V, last_W = accepted.V, accepted.W
            U_ahead, momentum, reach = accepted.U, 0.0, state.reach.shrunk(1.5)
        else:
            accepted = Factors(U, state.ahead.V, state.ahead.W)
            last_V, last_W = state.last_V, state.last_W
            momentum, reach = state.reach.step, state.reach.grown(1.05, 1.01)
            U_ahead = _ahead(U, state.accepted.U, momentum)
        V, W = self._vw_rounds(self.problem.grams(U_ahead), accepted.V, accepted.W)
        ahead = Factors(U_ahead, _ahead(V, last_V, momentum), _ahead(W, last_W, momentum))
        return DescentState(accepted, value, ahead, V, W, reach), value

    def _u_step(self, ahead: Factors) -> tuple[np.ndarray, float]:
        """Exact coordinate descent on the columns of U, in place, and F at the result; one touch of X."""
        problem = self.problem
        U, V, W = ahead
        G = V @ W
        H = G @ G.T + problem.alpha * (V @ V.T)
        components, scale = _live_components(H)
        coupling, scale = (H * scale).astype(U.dtype), scale.astype(U.dtype)
        np.fill_diagonal(coupling, 0)
        linear = 0.0
        # In blocks of rows: the products with X and T are as large as U, and need not exist all at once.
        for first in range(0, len(U), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            C = right_product(problem.X[rows], V)
            C *= problem.alpha
            C += right_product(problem.T[rows], G)
            # One column of U is one contiguous row of the transposed block.
            block, target = np.ascontiguousarray(U[rows].T), np.ascontiguousarray(C.T)
            target *= scale
            for _ in range(_U_SWEEPS):
                for r in components:
                    np.maximum(target[r] - coupling[r] @ block, 0, out=block[r])
            U[rows] = block.T
            linear += inner(C, U[rows])
        return U, problem.constant - 2 * linear + inner(H, gram(U)) + problem.label_penalty(W)

    def _vw_rounds(self, grams: Grams, V: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Descend on (V, W) for fixed U; the result is never worse than the start."""
        WL = W @ self.problem.laplacian
        best = self.problem.objective(grams, V, W, V @ W, WL)
        components, scale = _live_components(grams.S)
        coupling = grams.S * scale
        ahead_V, ahead_W = V, W
        reach = Reach(0.5)
        first_gain = 0.0
        for _ in range(_ROUNDS):
            new_V = self._v_step(grams, ahead_V, ahead_W, components, scale, coupling)
            new_W, G = self._w_step(grams, new_V, ahead_W, W, WL)
            new_WL = new_W @ self.problem.laplacian
            value = self.problem.objective(grams, new_V, new_W, G, new_WL)
            if value > best:
                reach = reach.shrunk(2)
                ahead_V, ahead_W = V, W
                continue
            gain = best - value
            first_gain = first_gain or gain
            ahead_V, ahead_W = _ahead(new_V, V, reach.step), _ahead(new_W, W, reach.step)
            reach = reach.grown(1.1, 1.05)
            V, W, WL, best = new_V, new_W, new_WL, value
            if gain <= _WORTHWHILE * first_gain:
                break
        return V, W

    def _v_step(
        self,
        grams: Grams,
        V: np.ndarray,
        W: np.ndarray,
        components: np.ndarray,
        scale: np.ndarray,
        coupling: np.ndarray,
    ) -> np.ndarray:
        """One coordinate sweep over the rows of V, on a bound of F that is separable over the features."""
        alpha = self.problem.alpha
        # W W' is at most this diagonal because W >= 0 (weighted row sums, weights p = row norms).
        norms = row_norms(W)
        curvature = W @ (norms @ W) / np.maximum(norms, _FLAT) + alpha
        descent = (grams.UT - grams.S @ (V @ W)) @ W.T + alpha * (grams.UX - grams.S @ V)
        descent *= scale
        descent /= curvature
        change = np.zeros_like(V)
        for r in components:
            # Rows not yet visited have not changed, so the sum is over the visited ones.
            change[r] = np.maximum(descent[r] - coupling[r] @ change, -V[r])
        return V + change

    def _w_step(
        self, grams: Grams, V: np.ndarray, W: np.ndarray, centre: np.ndarray, centre_L: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerated proximal gradient steps from W with one step length per row; returns W and VW.

        The Laplacian term is bounded by a multiple of the identity around ``centre``, whose product with L
        is known: it is the dearest product for many labels.
        """
        problem = self.problem
        curvature = V.T @ (grams.S @ V.sum(axis=1)) + self.label_curvature
        step = np.where(curvature > _FLAT, 1 / np.maximum(curvature, _FLAT), 0)
        threshold = step * (problem.gamma / 2)
        fixed = V.T @ grams.UT - problem.beta * centre_L
        fixed += self.label_curvature * centre
        fixed *= step[:, None]
        kept = (1 - self.label_curvature * step)[:, None]
        pull = (V.T @ grams.S) * step[:, None]
        G = V @ W
        ahead_W, ahead_G, momentum = W, G, 1.0
        for _ in range(_W_STEPS):
            new_W = kept * ahead_W
            new_W -= pull @ ahead_G
            new_W += fixed
            np.maximum(new_W, 0, out=new_W)
            new_W *= np.maximum(1 - threshold / np.maximum(row_norms(new_W), _FLAT), 0)[:, None]
            new_G = V @ new_W
            following = (1 + sqrt(1 + 4 * momentum**2)) / 2
            factor = (momentum - 1) / following
            ahead_W, ahead_G = new_W + factor * (new_W - W), new_G + factor * (new_G - G)
            W, G, momentum = new_W, new_G, following
        return W, G


def _live_components(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Components with curvature, and the reciprocal of every curvature as a column."""
    diagonal = np.diag(gram)
    is_live = diagonal > _FLAT
    scale = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=is_live)
    return np.flatnonzero(is_live), scale[:, None]


def _ahead(new: np.ndarray, old: np.ndarray, momentum: float) -> np.ndarray:
    """Extrapolate from ``old`` through ``new``, staying non-negative."""
    if momentum == 0:
        return new
    ahead = new - old
    ahead *= momentum
    ahead += new
    return np.maximum(ahead, 0, out=ahead)


def _largest_eigenvalue(problem: FactorizationProblem) -> float:
    """Largest eigenvalue of the Laplacian, or Gershgorin's bound where an exact one would be slow."""
    if len(problem.degree) <= 1000:
        return max(0.0, float(np.linalg.eigvalsh(problem.laplacian)[-1]))
    return 2 * float((problem.degree - np.diag(problem.information)).max())
