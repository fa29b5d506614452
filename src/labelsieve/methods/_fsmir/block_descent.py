"""Two-level extrapolated block descent for the factorisation of `factorization`.

For a fixed U, the factors V and W only see ``U'U``, ``U'X`` and ``U'T``. So one outer iteration is one U-step
and several cheap rounds on (V, W): two touches of X in all, in one visit to the rows. Both levels extrapolate
along their last step and return to the best point when F would rise, after Ang and Gillis, "Accelerating
nonnegative matrix factorization algorithms using extrapolation", Neural Computation 31(2), 2019. The accepted
F never rises.

Steps have the precision of the features, on which most of the time goes. Values, and what they are made of, have
double precision: the last steps gain less than single precision can tell.
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

#: A coordinate with less curvature is left alone: its component is dead and may revive.
_FLAT = 1e-30
#: Work of one outer iteration: coordinate sweeps over U and the most rounds on (V, W). Fewer of both for many
#: sparse rows, where they cost more than the products and gain no more in the same time.
_U_SWEEPS = 4
_ROUNDS = 5
_U_SWEEPS_OF_MANY = 2
_ROUNDS_OF_MANY = 2
#: Work of one round: the most sweeps over V, and over W.
_V_SWEEPS = 2
_W_SWEEPS = 10
#: A round that gains less than this share of the first one ends the rounds.
_WORTHWHILE = 0.05
#: A sweep over V or W whose squared change is at most this share of the first one's ends the sweeps.
_SETTLED = 0.8
#: Rows of U that are worked on together: a copy of them stays in the cache, where columns of a transposed copy would
#: displace each other if they lay a power of two apart.
_BLOCK_ROWS = 5000
#: Rows that one product couples with all earlier ones in a coordinate sweep, times the bytes of a number: a product
#: copies all that it reads, so in single precision it is worth more of them.
_GROUP_BYTES = 64
#: Entries of W that take their step together; they and what belongs to them stay in the cache.
_W_BLOCK = 8192
#: Fewest rows of W in a block, however many labels: a product with one or two rows is slow.
_FEWEST_ROWS = 8
#: Multiplicative sweeps that carry a rough start to where extrapolation is safe.
WARM_UP = 20
#: Of more rows than these, the start is found on a sample of this size, and the sweeps below carry it over to all.
_MANY_ROWS = 2**14
_EXTENSION = 2


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


class Visit(NamedTuple):
    """What an outer iteration learns from rows: nothing has a side of their number, and blocks of rows add up.

    For F at the new U ``linear`` is <C, U> and ``square`` is U'U; the Grams are those of the U that lies ahead
    of the new one, should it be accepted.
    """

    linear: float
    square: np.ndarray
    grams: Grams


class _RowStep(NamedTuple):
    """What travels to the rows: V, G = VW, the curvature H = GG' + alpha VV', and how to step."""

    V: np.ndarray
    G: np.ndarray
    H: np.ndarray
    alpha: float
    n_sweeps: int
    momentum: float
    next_momentum: float


@dataclass(frozen=True)
class DescentState:
    """The accepted point, its value, and where the next outer iteration starts from.

    The accepted U lies with the rows, and the one before it as ``before``. The U to start from is ``momentum``
    beyond it: it is never stored, but made of a few rows at a time. V and W to start from are in ``ahead``.
    """

    accepted: Factors
    value: float
    momentum: float
    ahead: Factors
    last: Factors
    reach: Reach


class BlockDescent:
    """The solver for one problem: `start` once, then `step` repeatedly."""

    def __init__(self, problem: FactorizationProblem) -> None:
        self.problem = problem
        self.label_curvature = problem.beta * _largest_eigenvalue(problem)
        is_many = problem.rows.n_rows > _MANY_ROWS and problem.data.is_sparse
        self.u_sweeps = _U_SWEEPS_OF_MANY if is_many else _U_SWEEPS
        self.rounds = _ROUNDS_OF_MANY if is_many else _ROUNDS
        self.block_rows = max(_FEWEST_ROWS, _W_BLOCK // len(problem.degree))

    def start(self, n_components: int, init: str, rng: np.random.Generator) -> DescentState:
        """Start as ``init`` says and warm up; of many rows, on a sample of them.

        Singular vectors and warm-up take dozens of touches of X, so V and W are found on some thousands of
        rows and then carried over to all.
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
        """Sweep multiplicatively from strictly positive factors."""
        for _ in range(n_sweeps - 1):
            factors, _ = multiplicative_update(self.problem, factors)
        (V, W), value = multiplicative_sweep(self.problem, factors)
        dtype = self.problem.data.dtype
        factors = Factors(V.astype(dtype, copy=False), W.astype(dtype, copy=False))
        return DescentState(factors, value, 0.0, factors, factors, Reach(0.5))

    def step(self, state: DescentState) -> tuple[DescentState, float]:
        """Do one outer iteration; the accepted value is never above the last one. The state is used up."""
        problem = self.problem
        V, W = map(_in_double, state.ahead)
        WL = W @ problem.laplacian
        G = V @ W
        H = G @ G.T + problem.alpha * (V @ V.T)
        row_step = _RowStep(
            state.ahead.V, G, H, problem.alpha, self.u_sweeps, state.momentum, state.reach.step
        )
        # Without momentum, which is how it starts, what was before does not matter.
        needs = ["X", "T", "U", "before" if state.momentum else "U"]
        visit: Visit = problem.rows.fold(_visit_rows, needs, row_step, gives="new")
        value = problem.constant - 2 * visit.linear + inner(H, visit.square) + problem.label_penalty(W, WL)
        # A plain step cannot rise but for the rounding of single precision.
        if value > state.value:
            problem.rows.rename({}, drop=("new",))
            accepted, value, last = state.accepted, state.value, state.accepted
            momentum, reach = 0.0, state.reach.shrunk(1.5)
            grams, WL = problem.grams(), _in_double(accepted.W) @ problem.laplacian
        else:
            problem.rows.rename({"before": "U", "U": "new"})
            accepted, last = state.ahead, state.last
            momentum, reach = state.reach.step, state.reach.grown(1.05, 1.01)
            grams = visit.grams
        V, W = self._vw_rounds(grams, accepted.V, accepted.W, WL)
        ahead = Factors(_ahead(V, last.V, momentum), _ahead(W, last.W, momentum))
        return DescentState(accepted, value, momentum, ahead, Factors(V, W), reach), value

    def _vw_rounds(
        self, grams: Grams, V: np.ndarray, W: np.ndarray, WL: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Descend on (V, W) for fixed U; the result is never worse than the start."""
        exact_V, exact_W = _in_double(V), _in_double(W)
        best = self.problem.objective(grams, exact_V, exact_W, exact_V @ exact_W, WL)
        scale = _reciprocals(grams.S)
        scaled = _rounded(Grams(grams.S * scale, grams.UX * scale, grams.UT * scale), V.dtype)
        rounded = _rounded(grams, V.dtype)
        ahead_V, ahead_W = V, W
        reach = Reach(0.5)
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

    def _v_step(self, scaled: Grams, V: np.ndarray, W: np.ndarray) -> np.ndarray:
        """Coordinate sweeps over the rows of V, on a bound of F that is separable over the features.

        The rows of ``scaled`` are the Grams divided by the curvature of their component.
        """
        alpha = self.problem.alpha
        # W W' is at most this diagonal because W >= 0 (weighted row sums, weights p = row norms).
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
            if move <= _SETTLED * first_move:
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
        """Accelerated proximal gradient sweeps from W over blocks of its rows, with one step length per row.

        ``SV`` is U'U V. The Laplacian term is bounded by a multiple of the identity around ``centre``, whose
        product with L is known: it is the most expensive product for many labels.
        """
        firsts = range(0, len(W), self.block_rows)
        # V'SV within a block is at most its row sums because V >= 0; small blocks allow long steps.
        block_sums = np.repeat(np.add.reduceat(SV, firsts, axis=1), self.block_rows, axis=1)[:, : len(W)]
        curvature = np.einsum("ij,ij->j", V, block_sums)
        step = 1 / np.maximum(curvature + self.label_curvature, _FLAT)
        threshold = step * (self.problem.gamma / 2)
        curvature = curvature[:, None]
        pull = self.label_curvature * centre
        pull -= (self.problem.beta * centre_L).astype(W.dtype, copy=False)
        # The maximum with an array is several times faster than with a number.
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
            if move <= _SETTLED * first_move:
                break
            # The residual is linear in W, so it moves ahead as W does.
            factor = sweep / (sweep + 3)
            W, last_W = new_W + factor * change, new_W
            residual, last_residual = residual + factor * (residual - last_residual), residual
        return new_W


def _visit_rows(
    X: Matrix, T: Matrix, U: np.ndarray, before: np.ndarray, step: _RowStep
) -> tuple[np.ndarray, Visit]:
    """Descend on the columns of U from ahead of it.

    Nothing is accepted yet, but the Grams ahead of the new U are taken as if it were: rows are visited once.
    """
    new = np.empty_like(U)
    visits = (
        _visit(X_piece, T_piece, U[piece], before[piece], new[piece], step)
        for piece, X_piece, T_piece in row_pieces(X, T)
    )
    return new, reduce(add, visits)


def _visit(X: Matrix, T: Matrix, U: np.ndarray, before: np.ndarray, new: np.ndarray, step: _RowStep) -> Visit:
    """Visit a few rows; their new U is written into ``new``."""
    C = attraction(X, T, step.V, step.G, step.alpha)
    scale = _reciprocals(step.H)
    coupling, scale = (step.H * scale).astype(U.dtype), scale.astype(U.dtype)
    linear = 0.0
    for rows in batches(len(U), width=1, budget=_BLOCK_ROWS):
        # One column of U is one contiguous row of the transposed block.
        block = np.array(_ahead(U[rows], before[rows], step.momentum).T, order="C")
        # Multiplied into a copy: of one component even the transposed block is contiguous, and C is still needed.
        target = np.multiply(C[rows].T, scale, order="C")
        for _ in range(step.n_sweeps):
            _coordinate_sweep(block, target, coupling)
        new[rows] = block.T
        linear += inner(C[rows], new[rows])
        C[rows] = _ahead(new[rows], U[rows], step.next_momentum)
    return Visit(linear, gram(new), grams_of(C, X, T))


def _coordinate_sweep(M: np.ndarray, target: np.ndarray, coupling: np.ndarray) -> None:
    """Bring one row of M after the other, in place, to ``max(0, m + target - coupling M)``."""
    for rows in _groups(M):
        group = target[rows] - coupling[rows] @ M
        _settle_group(group, -M[rows], coupling[rows, rows])
        M[rows] += group


def _coordinate_changes(M: np.ndarray, steps: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """Turn the free steps of the rows of M, in place, into one sweep in which each row sees those before it."""
    lowest = -M
    for rows in _groups(M):
        if rows.start:
            steps[rows] -= coupling[rows, : rows.start] @ steps[: rows.start]
        _settle_group(steps[rows], lowest[rows], coupling[rows, rows])
    return steps


def _groups(M: np.ndarray) -> Iterator[slice]:
    """Cut the rows of M into those that are coupled by one product."""
    return batches(len(M), width=M.itemsize, budget=_GROUP_BYTES)


def _settle_group(steps: np.ndarray, lowest: np.ndarray, coupling: np.ndarray) -> None:
    """Let each of a few rows of steps see those before it, in place, and none go below its lowest value."""
    for r, row in enumerate(steps):
        if r:
            row -= coupling[r, :r] @ steps[:r]
        np.maximum(row, lowest[r], out=row)


def _in_double(M: np.ndarray) -> np.ndarray:
    return M.astype(np.float64, copy=False)


def _rounded(grams: Grams, dtype: np.dtype[Any]) -> Grams:
    return Grams(*(part.astype(dtype, copy=False) for part in grams))


def _reciprocals(gram: np.ndarray) -> np.ndarray:
    """Reciprocal of every curvature as a column, 0 for a dead component."""
    diagonal = np.diag(gram)
    return np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal > _FLAT)[:, None]


def _ahead(new: np.ndarray, old: np.ndarray, momentum: float) -> np.ndarray:
    """Extrapolate from ``old`` through ``new``, staying non-negative."""
    if momentum == 0:
        return new
    ahead: np.ndarray = new - old
    ahead *= momentum
    ahead += new
    np.maximum(ahead, np.zeros(ahead.shape[1], ahead.dtype), out=ahead)
    return ahead


def _largest_eigenvalue(problem: FactorizationProblem) -> float:
    """Largest eigenvalue of the Laplacian, or Gershgorin's bound where an exact one would be slow."""
    if len(problem.degree) <= 1000:
        return max(0.0, float(np.linalg.eigvalsh(problem.laplacian)[-1]))
    return 2 * float((problem.degree - np.diag(problem.information)).max())
