"""Two-level extrapolated block descent for the problem in `factorization`.

For a fixed U, the factors V and W depend on the data only through ``U'U``, ``U'X`` and ``U'T``. One outer
iteration is therefore one U-step and several cheap rounds on (V, W), with two products with X in one pass
over the rows. Both levels extrapolate along their last step and return to the best point if F would
increase, following Ang and Gillis, "Accelerating nonnegative matrix factorization algorithms using
extrapolation", Neural Computation 31(2), 2019. The accepted F never increases.

Steps use the precision of the features because they take most of the time. Objective values are computed
in double precision because the last steps gain less than single precision can resolve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from labelsieve._blocks.blocks import add
from labelsieve._numerics.batches import batches
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.products import gram, inner
from labelsieve._numerics.sparse import Matrix
from labelsieve.methods._fsmir.factorization import (
    FactorizationProblem,
    Factors,
    Grams,
    attraction,
    grams_of,
    multiplicative_sweep,
    multiplicative_update,
    row_pieces,
    start_at_ones,
    start_factors,
)

#: Coordinates with less curvature are not updated. Their component is zero and may become active again.
_FLAT = 1e-30
#: Sweeps over U and maximum number of rounds on (V, W) per outer iteration. Both are lower for many sparse
#: rows, where they take longer than the products with X and gain less.
_U_SWEEPS = 4
_ROUNDS = 5
_U_SWEEPS_OF_MANY = 2
_ROUNDS_OF_MANY = 2
#: Maximum number of sweeps over V and over W per round.
_V_SWEEPS = 2
_W_SWEEPS = 10
#: The rounds end when one gains less than this fraction of the first.
_MIN_RELATIVE_GAIN = 0.05
#: The sweeps over V or W end when the squared change is at most this fraction of that of the first sweep.
_MAX_RELATIVE_MOVE = 0.8
#: Number of rows of U that are updated together. A copy of them fits in the cache. The number is not a
#: power of two, because the columns of a transposed copy would then evict each other.
_BLOCK_ROWS = 5000
#: Number of rows that are updated by one product in a coordinate sweep, times the bytes of a number. Single
#: precision uses more rows, because a product copies everything that it reads.
_GROUP_BYTES = 64
#: Number of entries of W that are updated together, small enough for the cache.
_W_BLOCK = 8192
#: Minimum number of rows of W in a block. Products with one or two rows are slow.
_MIN_ROWS = 8
#: Number of multiplicative sweeps before the extrapolated descent, for which a rough start is unsafe.
WARM_UP = 20
#: With more rows, the start is computed on a sample of this size and extended to all rows with
#: ``_EXTENSION`` sweeps.
_MANY_ROWS = 2**14
_EXTENSION = 2


@dataclass(frozen=True)
class Momentum:
    """Adaptive extrapolation factor with an upper limit."""

    step: float
    limit: float = 1.0

    def grown(self, step_factor: float, limit_factor: float) -> Momentum:
        """Increase the factor after an accepted step."""
        return Momentum(min(self.limit, step_factor * self.step), min(1.0, limit_factor * self.limit))

    def shrunk(self, divisor: float) -> Momentum:
        """Decrease the factor and its limit after a rejected step."""
        return Momentum(self.step / divisor, self.step / divisor)


class RowSums(NamedTuple):
    """Sums over rows that an outer iteration needs, which add up over blocks.

    ``linear`` is <C, U> and ``square`` is U'U at the new U. The Grams are those of the extrapolated U of
    the next iteration, valid if the step is accepted.
    """

    linear: float
    square: np.ndarray
    grams: Grams


class _RowStep(NamedTuple):
    """Arguments of a U-step: V, G = VW, the curvature H = GG' + alpha VV', and the step settings."""

    V: np.ndarray
    G: np.ndarray
    H: np.ndarray
    alpha: float
    n_sweeps: int
    momentum: float
    next_momentum: float


@dataclass(frozen=True)
class DescentState:
    """Accepted point, its value, and the start of the next outer iteration.

    The accepted U and the one before it are stored with the rows, as ``U`` and ``before``. The next
    iteration starts at their extrapolation by ``momentum``, which is formed for a few rows at a time and
    never stored. V and W of the next start are in ``ahead``.
    """

    accepted: Factors
    value: float
    momentum: float
    ahead: Factors
    last: Factors
    next_momentum: Momentum


class BlockDescent:
    """Solver of one problem. Call `start` once, then `step` repeatedly."""

    def __init__(self, problem: FactorizationProblem) -> None:
        self.problem = problem
        self.label_curvature = problem.beta * _largest_eigenvalue(problem)
        is_many = problem.rows.n_rows > _MANY_ROWS and problem.data.is_sparse
        self.u_sweeps = _U_SWEEPS_OF_MANY if is_many else _U_SWEEPS
        self.rounds = _ROUNDS_OF_MANY if is_many else _ROUNDS
        self.block_rows = max(_MIN_ROWS, _W_BLOCK // len(problem.degree))

    def start(self, n_components: int, init: str, rng: np.random.Generator) -> DescentState:
        """Compute the start and warm up, on a sample if there are many rows.

        Singular vectors and warm-up take dozens of products with X. For many rows, V and W are therefore
        computed on a sample and then extended to all rows.
        """
        sample = self.problem.sample(max(_MANY_ROWS, n_components))
        factors = start_factors(sample, n_components, init, rng)
        if sample is self.problem:
            return self.warm_up(factors, WARM_UP)
        V, W = BlockDescent(sample).warm_up(factors, WARM_UP).ahead
        del sample  # free its memory for all rows
        start_at_ones(self.problem, n_components)
        return self.warm_up(Factors(V, W), _EXTENSION)

    def warm_up(self, factors: Factors, n_sweeps: int) -> DescentState:
        """Run multiplicative sweeps from strictly positive factors."""
        for _ in range(n_sweeps - 1):
            factors, _ = multiplicative_update(self.problem, factors)
        (V, W), value = multiplicative_sweep(self.problem, factors)
        dtype = self.problem.data.dtype
        factors = Factors(V.astype(dtype, copy=False), W.astype(dtype, copy=False))
        return DescentState(factors, value, 0.0, factors, factors, Momentum(0.5))

    def step(self, state: DescentState) -> tuple[DescentState, float]:
        """Run one outer iteration. The accepted value never increases, and the old state becomes invalid."""
        problem = self.problem
        V, W = map(_in_double, state.ahead)
        WL = W @ problem.laplacian
        G = V @ W
        H = G @ G.T + problem.alpha * (V @ V.T)
        row_step = _RowStep(
            state.ahead.V, G, H, problem.alpha, self.u_sweeps, state.momentum, state.next_momentum.step
        )
        # Without momentum, as in the first iteration, there is no "before".
        needs = ["X", "T", "U", "before" if state.momentum else "U"]
        sums: RowSums = problem.rows.fold(_step_rows, needs, row_step, gives="new")
        value = problem.constant - 2 * sums.linear + inner(H, sums.square) + problem.label_penalty(W, WL)
        # Without momentum, only the rounding of single precision can increase the value.
        if value > state.value:
            problem.rows.rename({}, drop=("new",))
            accepted, value, last = state.accepted, state.value, state.accepted
            momentum, next_momentum = 0.0, state.next_momentum.shrunk(1.5)
            grams, WL = problem.grams(), _in_double(accepted.W) @ problem.laplacian
        else:
            problem.rows.rename({"before": "U", "U": "new"})
            accepted, last = state.ahead, state.last
            momentum, next_momentum = state.next_momentum.step, state.next_momentum.grown(1.05, 1.01)
            grams = sums.grams
        V, W = self._vw_rounds(grams, accepted.V, accepted.W, WL)
        ahead = Factors(_extrapolate(V, last.V, momentum), _extrapolate(W, last.W, momentum))
        return DescentState(accepted, value, momentum, ahead, Factors(V, W), next_momentum), value

    def _vw_rounds(
        self, grams: Grams, V: np.ndarray, W: np.ndarray, WL: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Descend on (V, W) for fixed U. The result is never worse than the start."""
        exact_V, exact_W = _in_double(V), _in_double(W)
        best = self.problem.objective(grams, exact_V, exact_W, exact_V @ exact_W, WL)
        scale = _reciprocals(grams.S)
        scaled = _rounded(Grams(grams.S * scale, grams.UX * scale, grams.UT * scale), V.dtype)
        rounded = _rounded(grams, V.dtype)
        ahead_V, ahead_W = V, W
        momentum = Momentum(0.5)
        first_gain = 0.0
        for _ in range(self.rounds):
            new_V = self._v_step(scaled, ahead_V, ahead_W)
            exact_V = _in_double(new_V)
            SV = grams.S @ exact_V
            new_W = self._w_step(rounded, new_V, SV.astype(V.dtype, copy=False), ahead_W, W, WL)
            exact_W = _in_double(new_W)
            new_WL = exact_W @ self.problem.laplacian
            value = self.problem.objective(grams, exact_V, exact_W, exact_V @ exact_W, new_WL, SV)
            if value > best:
                momentum = momentum.shrunk(2)
                ahead_V, ahead_W = V, W
                continue
            gain = best - value
            first_gain = first_gain or gain
            ahead_V, ahead_W = (
                _extrapolate(new, old, momentum.step) for new, old in ((new_V, V), (new_W, W))
            )
            momentum = momentum.grown(1.1, 1.05)
            V, W, WL, best = new_V, new_W, new_WL, value
            if gain <= _MIN_RELATIVE_GAIN * first_gain:
                break
        return V, W

    def _v_step(self, scaled: Grams, V: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Run coordinate sweeps over the rows of V, on a bound of F that is separable over the features.

        ``scaled`` are the Grams with each row divided by the curvature of its component.
        """
        alpha = self.problem.alpha
        # Because W >= 0, this diagonal (row sums weighted by row norms) is an upper bound of W W'.
        norms = row_norms(W)
        curvature = W @ (norms @ W) / np.maximum(norms, _FLAT) + alpha
        first_move = 0.0
        for _ in range(_V_SWEEPS):
            steps = (scaled.UT - scaled.S @ (V @ W)) @ W.T
            steps += alpha * (scaled.UX - scaled.S @ V)
            steps /= curvature
            change = _coordinate_changes(V, steps, scaled.S)
            V = V + change
            move = inner(change, change)
            first_move = first_move or move
            if move <= _MAX_RELATIVE_MOVE * first_move:
                break
        return V

    def _w_step(
        self,
        grams: Grams,
        V: np.ndarray,
        SV: np.ndarray,
        W: np.ndarray,
        centre: np.ndarray,
        centre_L: np.ndarray,
    ) -> np.ndarray:
        """Run accelerated proximal gradient sweeps over blocks of rows of W, with one step length per row.

        ``SV`` is U'U V. The product with the Laplacian is the most expensive one for many labels, so the
        Laplacian term is bounded by a quadratic around ``centre``, whose product ``centre_L`` is known.
        """
        firsts = range(0, len(W), self.block_rows)
        # Because V >= 0, row sums bound V'SV within a block. Small blocks allow long steps.
        block_sums = np.repeat(np.add.reduceat(SV, firsts, axis=1), self.block_rows, axis=1)[:, : len(W)]
        curvature = np.einsum("ij,ij->j", V, block_sums)
        step = 1 / np.maximum(curvature + self.label_curvature, _FLAT)
        threshold = step * (self.problem.gamma / 2)
        curvature = curvature[:, None]
        pull = self.label_curvature * centre
        pull -= (self.problem.beta * centre_L).astype(W.dtype, copy=False)
        # np.maximum is several times faster with an array than with a number.
        zero = np.zeros(W.shape[1], W.dtype)
        last_W, residual = W, grams.UT - grams.S @ (V @ W)
        last_residual = residual
        first_move = 0.0
        for sweep in range(_W_SWEEPS):
            new_W: np.ndarray = W * curvature
            for first in firsts:
                rows = slice(first, first + self.block_rows)
                block = new_W[rows]
                block += V[:, rows].T @ residual
                block += pull[rows]
                np.maximum(block, zero, out=block)
                block *= np.maximum(step[rows] - threshold[rows] / (row_norms(block) + _FLAT), 0)[:, None]
                residual = residual - SV[:, rows] @ (block - W[rows])
            change = new_W - last_W
            move = inner(change, change)
            first_move = first_move or move
            if move <= _MAX_RELATIVE_MOVE * first_move:
                break
            # The residual is linear in W, so it is extrapolated like W.
            factor = sweep / (sweep + 3)
            W, last_W = new_W + factor * change, new_W
            residual, last_residual = residual + factor * (residual - last_residual), residual
        return new_W


def _step_rows(
    X: Matrix, T: Matrix, U: np.ndarray, before: np.ndarray, step: _RowStep
) -> tuple[np.ndarray, RowSums]:
    """Take a U-step from the extrapolated point.

    The Grams of the next extrapolated U are computed at once, assuming that the step is accepted, which
    saves a second pass over the rows.
    """
    new = np.empty_like(U)
    sums = (
        _step_piece(X_piece, T_piece, U[piece], before[piece], new[piece], step)
        for piece, X_piece, T_piece in row_pieces(X, T)
    )
    return new, reduce(add, sums)


def _step_piece(
    X: Matrix, T: Matrix, U: np.ndarray, before: np.ndarray, new: np.ndarray, step: _RowStep
) -> RowSums:
    """Take a U-step for some rows, and write their new U into ``new``."""
    C = attraction(X, T, step.V, step.G, step.alpha)
    scale = _reciprocals(step.H)
    coupling, scale = (step.H * scale).astype(U.dtype), scale.astype(U.dtype)
    linear = 0.0
    for rows in batches(len(U), width=1, budget=_BLOCK_ROWS):
        # Transpose, so that the columns of U are contiguous.
        block = np.array(_extrapolate(U[rows], before[rows], step.momentum).T, order="C")
        # Copy, because C is still needed and its transpose is already contiguous for one component.
        target = np.multiply(C[rows].T, scale, order="C")
        for _ in range(step.n_sweeps):
            _coordinate_sweep(block, target, coupling)
        new[rows] = block.T
        linear += inner(C[rows], new[rows])
        C[rows] = _extrapolate(new[rows], U[rows], step.next_momentum)
    return RowSums(linear, gram(new), grams_of(C, X, T))


def _coordinate_sweep(M: np.ndarray, target: np.ndarray, coupling: np.ndarray) -> None:
    """Update the rows m of M in turn, in place, to ``max(0, m + target - coupling M)``."""
    for rows in _groups(M):
        group = target[rows] - coupling[rows] @ M
        _couple_steps(group, -M[rows], coupling[rows, rows])
        M[rows] += group


def _coordinate_changes(M: np.ndarray, steps: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """Turn independent steps of the rows of M, in place, into the steps of one coordinate sweep."""
    lowest = -M
    for rows in _groups(M):
        if rows.start:
            steps[rows] -= coupling[rows, : rows.start] @ steps[: rows.start]
        _couple_steps(steps[rows], lowest[rows], coupling[rows, rows])
    return steps


def _groups(M: np.ndarray) -> Iterator[slice]:
    """Split the rows of M into groups that are updated by one product."""
    return batches(len(M), width=M.itemsize, budget=_GROUP_BYTES)


def _couple_steps(steps: np.ndarray, lowest: np.ndarray, coupling: np.ndarray) -> None:
    """Adjust each row of ``steps`` for the rows before it, in place, with the lower bound ``lowest``."""
    for r, row in enumerate(steps):
        if r:
            row -= coupling[r, :r] @ steps[:r]
        np.maximum(row, lowest[r], out=row)


def _in_double(M: np.ndarray) -> np.ndarray:
    return M.astype(np.float64, copy=False)


def _rounded(grams: Grams, dtype: np.dtype[Any]) -> Grams:
    return Grams(*(part.astype(dtype, copy=False) for part in grams))


def _reciprocals(gram: np.ndarray) -> np.ndarray:
    """Return the reciprocal curvatures as a column, 0 for components that are zero."""
    diagonal = np.diag(gram)
    return np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal > _FLAT)[:, None]


def _extrapolate(new: np.ndarray, old: np.ndarray, momentum: float) -> np.ndarray:
    """Extrapolate from ``old`` through ``new``, and clip to non-negative values."""
    if momentum == 0:
        return new
    ahead: np.ndarray = new - old
    ahead *= momentum
    ahead += new
    np.maximum(ahead, np.zeros(ahead.shape[1], ahead.dtype), out=ahead)
    return ahead


def _largest_eigenvalue(problem: FactorizationProblem) -> float:
    """Return the largest eigenvalue of the Laplacian, or Gershgorin's bound if there are many labels."""
    if len(problem.degree) <= 1000:
        return max(0.0, float(np.linalg.eigvalsh(problem.laplacian)[-1]))
    return 2 * float((problem.degree - np.diag(problem.information)).max())
