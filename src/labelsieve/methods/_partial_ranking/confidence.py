"""Label confidences for the candidates of each row, given the scores of a rank-SVM.

For a row with candidates A, the confidences p solve

    min_p  linear . p + sum_{k,l in A} B_kl max(0, p_k - p_l) - p' S p
    s.t.   sum p >= 1, 0 <= p <= 1

with B >= 0. The first two terms are the Lovász extension of
``h(T) = linear(T) + sum_{k in T, l not in T} B_kl``. Without S the problem is a linear program, and
some optimum is ``1_T`` or ``1_T / |T|`` for a subset T. If S is positive semidefinite, the
objective is concave wherever the entries of p keep their order, and these regions have the same
vertices. The confidences of a row are therefore a set of trusted labels that share one level.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve.methods._partial_ranking.rank_svm import pair_hinge

#: Rows with at most this many candidates are solved by trying every subset.
ENUMERATION_LIMIT = 12
#: Maximum number of entries of a temporary array.
BLOCK_SIZE = 1 << 20
#: Relative tolerances: smaller differences are ties, and a smaller duality gap proves optimality.
TIE = 1e-12
CERTIFIED = 1e-10
MAX_CORRECTIONS = 1000
MAX_LINEARISATIONS = 50


def update_confidence(
    F: np.ndarray,
    candidates: np.ndarray,
    weight: np.ndarray,
    trusted: np.ndarray,
    level: np.ndarray,
    *,
    cost: np.ndarray | None = None,
    affinity: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Update the trusted labels and the level of every row without raising its objective.

    ``weight`` multiplies the slacks ``max(0, 1 - F_k + F_l)`` of each row. The current confidences
    are ``level`` on the ``trusted`` labels. ``cost`` is an additional linear cost, and ``affinity``
    is the symmetric, non-negative matrix S above.

    Without an affinity the result is optimal. With an affinity it is optimal for rows where
    trusting every candidate is optimal and, if S is positive semidefinite, for rows with at most
    `ENUMERATION_LIMIT` candidates. The other rows are improved by linearising S.
    """
    trusted, level = trusted.copy(), level.copy()
    # The derivative of the squared hinge by a candidate's score is -2 times its slacks.
    linear = pair_hinge(F - candidates, candidates, squared=True)
    linear *= -weight[:, None] / 2
    if cost is not None:
        linear += cost
    open_rows = np.asarray(candidates.any(axis=1))
    if affinity is not None:
        # For p in [0, 1], 1'S1 - p'Sp >= (1 - p)'S1. If linear <= S1, trusting all is optimal.
        settled = ((linear <= candidates @ affinity) | ~candidates).all(axis=1) & open_rows
        trusted[settled], level[settled] = candidates[settled], 1.0
        open_rows = open_rows & ~settled
    for rows, columns in _groups_of_equal_size(candidates, open_rows):
        at = (rows[:, None], columns)
        f = F[at]
        B = weight[rows, None, None] * np.maximum(0, 1 - f[:, :, None] + f[:, None, :])
        B[:, np.arange(f.shape[1]), np.arange(f.shape[1])] = 0
        S = None if affinity is None else affinity[columns[:, :, None], columns[:, None, :]]
        trusted[at], level[rows] = _choose(linear[at], B, S, trusted[at], level[rows])
    return trusted, level


def minimise_lovasz(linear: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve the problem without S for a batch of rows, to a certified accuracy of 1e-10.

    A base of h is a vector x with ``x(T) <= h(T)`` for all T and equality for T = A. It bounds the
    optimum from below, and the sets of its smallest entries bound the optimum from above. Wolfe's
    algorithm moves x towards the base of smallest norm, where the two bounds meet (Fujishige,
    "Submodular functions and optimization", 2nd ed., 2005, sections 7.1 and 9).

    Returns the set T of each row and its level: 1 if h(T) is negative, else ``1 / |T|``.
    """
    balanced = linear + (B.sum(axis=2) - B.sum(axis=1)) / 2
    x = _greedy_base(np.argsort(balanced, axis=1), linear, B)
    trusted, value = _best_prefix(x, linear, B)
    scale = np.abs(x).max(axis=1) + B.sum(axis=2).max(axis=1)
    for row in np.flatnonzero(value - _lower_bound(x) > CERTIFIED * scale):
        trusted[row] = _wolfe(x[row], linear[row], B[row], CERTIFIED * scale[row])
    return trusted, np.where(set_cost(trusted, linear, B) < 0, 1.0, 1 / trusted.sum(axis=1))


def set_cost(trusted: np.ndarray, linear: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return h(T) of every row: the linear costs of T plus the costs of all pairs it separates."""
    inside = trusted.astype(linear.dtype)
    return ((linear + np.einsum("rkl,rl->rk", B, 1 - inside)) * inside).sum(axis=1)


def confidence_value(
    trusted: np.ndarray, level: np.ndarray, linear: np.ndarray, B: np.ndarray, S: np.ndarray | None
) -> np.ndarray:
    """Return the objective of every row at its confidences."""
    value: np.ndarray = level * set_cost(trusted, linear, B)
    if S is not None:
        value -= level**2 * np.einsum("rk,rkl,rl->r", trusted, S, trusted)
    return value


def _choose(
    linear: np.ndarray, B: np.ndarray, S: np.ndarray | None, trusted: np.ndarray, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best confidences found for a batch, or the current ones if they are better."""
    if linear.shape[1] <= ENUMERATION_LIMIT:
        proposals = [_enumerate(linear, B, S)]
    elif S is None:
        proposals = [minimise_lovasz(linear, B)]
    else:
        proposals = [
            _linearise(linear, B, S, trusted, level),
            _linearise(linear, B, S, np.ones_like(trusted), np.ones_like(level)),
        ]
    value = confidence_value(trusted, level, linear, B, S)
    for new_trusted, new_level in proposals:
        new_value = confidence_value(new_trusted, new_level, linear, B, S)
        better = new_value <= value
        trusted = np.where(better[:, None], new_trusted, trusted)
        level, value = np.where(better, new_level, level), np.where(better, new_value, value)
    return trusted, level


def _enumerate(linear: np.ndarray, B: np.ndarray, S: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the best of all 1_T and 1_T / |T|.

    Ties go to the smaller set, then to the lexicographically first.
    """
    masks, terms, first, second = _subsets(linear.shape[1])
    size = masks.sum(axis=1)
    # Row sums of B also count the pairs inside T, which T does not separate. Subtract them.
    inner = B + B.transpose(0, 2, 1)
    theta = np.hstack([linear + B.sum(axis=2), -inner[:, first, second]])
    cost = theta @ terms.T
    values = np.stack([cost / size, cost], axis=2)
    if S is not None:
        diagonal = np.einsum("rkk->rk", S)
        earned = np.hstack([diagonal, 2 * S[:, first, second]]) @ terms.T
        values -= np.stack([earned / size**2, earned], axis=2)
    values = values.reshape(len(linear), -1)
    tie = TIE * np.abs(theta).sum(axis=1, keepdims=True)
    index, full = np.divmod((values <= values.min(axis=1, keepdims=True) + tie).argmax(axis=1), 2)
    return masks[index], np.where(full, 1.0, 1 / size[index])


@lru_cache(maxsize=ENUMERATION_LIMIT)
def _subsets(n_members: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """List all non-empty subsets by size, then lexicographically.

    Returns their masks, their members and pairs as 0/1 columns, and the index arrays of the pairs.
    """
    members = range(n_members)
    subsets = [T for size in range(1, n_members + 1) for T in combinations(members, size)]
    masks = np.zeros((len(subsets), n_members), dtype=bool)
    for row, subset in zip(masks, subsets, strict=True):
        row[list(subset)] = True
    first, second = np.triu_indices(n_members, 1)
    terms = np.hstack([masks, masks[:, first] & masks[:, second]]).astype(np.float64)
    return masks, terms, first, second


def _linearise(
    linear: np.ndarray, B: np.ndarray, S: np.ndarray, trusted: np.ndarray, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Replace -p'Sp with its tangent and solve, repeatedly, while any row improves.

    This is the DC algorithm if S is positive semidefinite.
    """
    value = confidence_value(trusted, level, linear, B, S)
    active = np.ones(len(linear), dtype=bool)
    trusted, level = trusted.copy(), level.copy()
    for _ in range(MAX_LINEARISATIONS):
        slope = level[active, None] * np.einsum("rkl,rl->rk", S[active], trusted[active])
        new_trusted, new_level = minimise_lovasz(linear[active] - 2 * slope, B[active])
        new_value = confidence_value(new_trusted, new_level, linear[active], B[active], S[active])
        better = new_value < value[active] - TIE * np.abs(value[active])
        active[active] = better
        if not better.any():
            break
        trusted[active], level[active] = new_trusted[better], new_level[better]
        value[active] = new_value[better]
    return trusted, level


def _greedy_base(order: np.ndarray, linear: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the base of h whose partial sums along ``order`` are the costs of the prefixes."""
    later = np.triu(B[np.arange(len(B))[:, None, None], order[:, :, None], order[:, None, :]], 1)
    increments = np.take_along_axis(linear, order, axis=1) + later.sum(axis=2) - later.sum(axis=1)
    base: np.ndarray = np.empty_like(increments)
    np.put_along_axis(base, order, increments, axis=1)
    return base


def _best_prefix(x: np.ndarray, linear: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the best set of smallest entries of x, and its value."""
    order = np.argsort(x, axis=1, kind="stable")
    cost = np.cumsum(np.take_along_axis(_greedy_base(order, linear, B), order, axis=1), axis=1)
    value = np.where(cost < 0, cost, cost / np.arange(1, x.shape[1] + 1))
    last = value.argmin(axis=1)[:, None]
    trusted = np.empty(x.shape, dtype=bool)
    np.put_along_axis(trusted, order, np.arange(x.shape[1]) <= last, axis=1)
    return trusted, np.take_along_axis(value, last, axis=1)[:, 0]


def _lower_bound(x: np.ndarray) -> np.ndarray:
    """Return the minimum of ``x . p`` over the feasible confidences."""
    smallest = x.min(axis=-1)
    return np.where(smallest < 0, np.minimum(x, 0).sum(axis=-1), smallest)


def _wolfe(x: np.ndarray, linear: np.ndarray, B: np.ndarray, tolerance: float) -> np.ndarray:
    """Move the base x of one row towards the smallest norm until a set is proven optimal."""
    corral, weights = x[None, :], np.ones(1)
    best, best_value = np.ones(len(x), dtype=bool), np.inf
    for _ in range(MAX_CORRECTIONS):
        (candidate,), (value,) = _best_prefix(x[None], linear[None], B[None])
        if value < best_value:
            best, best_value = candidate, value
        if best_value - _lower_bound(x) <= tolerance:
            break
        vertex = _greedy_base(np.argsort(x)[None], linear[None], B[None])[0]
        corral, weights = np.vstack([corral, vertex]), np.append(weights, 0.0)
        corral, weights = _nearest_in_hull(corral, weights)
        x = weights @ corral
    return best


def _nearest_in_hull(corral: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop points until the affine hull's point of smallest norm lies in the convex hull."""
    while True:
        # All bases have the same sum. Removing it makes the Gram matrix far better conditioned.
        centred = corral - corral.mean(axis=1, keepdims=True)
        gram = centred @ centred.T
        scale = np.trace(gram) / len(gram) or 1.0
        gram += scale * (1 + 1e-15 * np.eye(len(gram)))
        affine = np.linalg.solve(gram, np.ones(len(gram)))
        affine /= affine.sum()
        outside = affine <= TIE
        if not outside.any():
            return corral, affine
        step = np.min(weights[outside] / np.maximum(weights[outside] - affine[outside], np.finfo(float).tiny))
        weights = weights + step * (affine - weights)
        keep = weights > TIE
        if keep.all():
            keep[np.argmin(weights)] = False
        corral, weights = corral[keep], weights[keep] / weights[keep].sum()


def _groups_of_equal_size(
    candidates: np.ndarray, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield blocks of rows with the same number of candidates, and the columns of these."""
    n_candidates = candidates.sum(axis=1)
    for size in np.unique(n_candidates[rows]):
        group = np.flatnonzero(rows & (n_candidates == size))
        per_row = max(size**2, 2**size if size <= ENUMERATION_LIMIT else 0)
        for part in batches(len(group), width=per_row, budget=BLOCK_SIZE):
            block = group[part]
            yield block, np.nonzero(candidates[block])[1].reshape(len(block), size)
