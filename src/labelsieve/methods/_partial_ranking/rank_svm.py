"""Weighted linear rank-SVM: score each relevant label of a row above all others, with margin 1.

Each (relevant, irrelevant) pair of labels adds a hinge loss. If rows have few relevant labels, the
pairs are listed. Otherwise the scores of each row are sorted, and cumulative sums give the loss and
its gradient over all pairs in O(q log q) time and O(q) memory for q labels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize

from labelsieve._numerics.batches import batches
from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.sparse import Matrix, is_sparse

#: Number of scores per block. Temporary arrays of this size (256 KiB) fit in the CPU cache.
BLOCK_SIZE = 1 << 15
#: Mean number of relevant labels per row up to which listing the pairs is faster than sorting.
LISTING_LIMIT = 4
#: Widths of the smoothed part of the hinge, from easy to nearly exact.
WIDTHS = (1.0, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4, 1e-4, 1e-5)
#: L-BFGS iterations per width.
MAX_SMOOTHED_ITER = 300
#: Number of multiplications allowed for solving the last width more accurately than ``tol``. If
#: they pay for this many L-BFGS iterations, Newton's method solves it to full accuracy instead.
POLISHING_BUDGET = 2e9
MIN_ITER_FOR_NEWTON = 200
#: Newton steps at the last width, and conjugate gradient steps per Newton step.
MAX_NEWTON_STEPS = 100
MAX_CONJUGATE_STEPS = 250
#: Sufficient decrease (Armijo) constant and smallest step size of the line search.
ARMIJO = 1e-4
MIN_STEP_SIZE = 1e-6


def pair_hinge(scores: np.ndarray, relevant: np.ndarray, *, squared: bool = False) -> np.ndarray:
    """Return the gradient of each row's hinge loss with respect to the scores.

    The loss of a row is ``sum max(0, s_l - s_k) ** p`` over relevant k and irrelevant l, with p = 2
    if ``squared`` and 1 otherwise. The caller has already subtracted the margin from the scores of
    the relevant labels. The loss is homogeneous of degree p, so it equals
    ``(scores * gradient).sum() / p``.
    """
    order = np.argsort(scores, axis=1)
    ascending = np.take_along_axis(scores, order, axis=1)
    flags = np.take_along_axis(relevant, order, axis=1)
    # Pair irrelevant labels with the relevant ones below them, and vice versa.
    n_below = np.cumsum(flags, axis=1, dtype=scores.dtype)
    n_above = scores.shape[1] - n_below[:, -1:] - (np.arange(1, scores.shape[1] + 1) - n_below)
    if squared:
        below = np.cumsum(ascending * flags, axis=1)
        above = np.cumsum(ascending, axis=1) - below
        above = above[:, -1:] - above
        slope = np.where(flags, n_above * ascending - above, n_below * ascending - below)
        slope *= 2
    else:
        slope = np.where(flags, -n_above, n_below)
    gradient = np.empty_like(scores)
    np.put_along_axis(gradient, order, slope, axis=1)
    return gradient


def ranking_loss(F: np.ndarray, relevant: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return loss and gradient of ``sum h(1 - F_k + F_l)`` per row, relevant k, irrelevant l.

    ``h`` is the hinge if ``width`` is 0. Otherwise it is smoothed over ``width``:
    ``h(u) = (max(0, u)**2 - max(0, u - width)**2) / (2 width)``.
    """
    if np.count_nonzero(relevant) <= LISTING_LIMIT * len(relevant):
        return _listed_ranking_loss(F, relevant, width)
    return _sorted_ranking_loss(F, relevant, width)


def _sorted_ranking_loss(F: np.ndarray, relevant: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    lowered = F - relevant
    if width == 0:
        gradient = pair_hinge(lowered, relevant)
        return np.einsum("ij,ij->i", lowered, gradient), gradient
    gradient = pair_hinge(lowered, relevant, squared=True)
    value = np.einsum("ij,ij->i", lowered, gradient)
    lowered += width * relevant
    beyond = pair_hinge(lowered, relevant, squared=True)
    value -= np.einsum("ij,ij->i", lowered, beyond)
    gradient -= beyond
    return value / (4 * width), gradient / (2 * width)


def _listed_ranking_loss(F: np.ndarray, relevant: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    # Relevant labels form no pairs with each other, so set their slacks to -inf.
    irrelevant = np.where(relevant, -np.inf, F)
    gradient, total = np.zeros_like(F), np.zeros(len(F))
    for rows, labels in _relevant_label_batches(relevant):
        slack = irrelevant[rows] + (1 - F[rows, labels])[:, None]
        np.maximum(slack, 0, out=slack)
        if width == 0:
            slope = (slack > 0).astype(F.dtype)
        else:
            slope = slack / width
            np.minimum(slope, 1, out=slope)
            slack -= width / 2 * slope
        total[rows] += np.einsum("rj,rj->r", slope, slack)
        gradient[rows] += slope
        gradient[rows, labels] -= slope.sum(axis=1)
    return total, gradient


def _relevant_label_batches(relevant: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the first relevant label of each row that has one, then the second, and so on."""
    rows, labels = np.nonzero(relevant)
    # `rows` is sorted, so the labels of a row are adjacent.
    position = np.arange(len(rows)) - np.searchsorted(rows, rows)
    for number in range(position.max(initial=-1) + 1):
        at = position == number
        yield rows[at], labels[at]


class PairCurvature:
    """Hessian of the ranking loss with respect to the scores, as a linear map.

    A pair of labels is tied if its slack lies in the smoothed part of the hinge. The labels tied to
    a given label are adjacent in the sorted order of the other group, so cumulative sums add them
    up. Only the rows with ties have curvature. They are listed in ``rows``; the map skips the rest.
    """

    def __init__(self, F: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float) -> None:
        # `grouped` lists the irrelevant, then the relevant labels, each by ascending score.
        start, order, flags = _positions_in_other_group(F - relevant, relevant)
        end, _, _ = _positions_in_other_group(F - (1 - width) * relevant, relevant)
        grouped = np.take_along_axis(order, np.argsort(flags, axis=1, kind="stable"), axis=1)
        # Raising the relevant labels by `width` moves their positions up and the others down.
        first, last = np.minimum(start, end), np.maximum(start, end)
        self.rows = np.flatnonzero((first < last).any(axis=1))
        number, n_labels = np.arange(len(self.rows))[:, None], F.shape[1]
        self._grouped = grouped[self.rows] + n_labels * number
        self._first = first[self.rows] + (n_labels + 1) * number
        self._last = last[self.rows] + (n_labels + 1) * number
        self._scale = weight[self.rows, None] / width
        self.diagonal = (self._last - self._first) * self._scale

    def product(self, D: np.ndarray) -> np.ndarray:
        """Return the Hessian times ``D``, for the rows with ties."""
        cumulative = np.zeros((D.shape[0], D.shape[1] + 1))
        np.cumsum(D.take(self._grouped), axis=1, out=cumulative[:, 1:])
        tied = cumulative.take(self._last)
        tied -= cumulative.take(self._first)
        tied *= self._scale
        return self.diagonal * D - tied


def _positions_in_other_group(
    scores: np.ndarray, relevant: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the position of each label in the other group, the sort order and its flags.

    Positions count in the list of all irrelevant labels followed by all relevant labels, each group
    sorted by score. ``flags`` marks the relevant labels in the sort order of the whole row.
    """
    order = np.argsort(scores, axis=1)
    flags = np.take_along_axis(relevant, order, axis=1)
    n_relevant = np.cumsum(flags, axis=1)
    n_irrelevant = np.arange(1, scores.shape[1] + 1) - n_relevant
    positions = np.empty_like(order)
    in_order = np.where(flags, n_irrelevant, n_irrelevant[:, -1:] + n_relevant)
    np.put_along_axis(positions, order, in_order, axis=1)
    return positions, order, flags


class RankSVM:
    """Linear scores ``F = (X - offset) W + b`` that rank relevant labels above irrelevant ones.

    Minimises ``|W|^2 + bias_ridge |b|^2 + sum_i weight_i sum max(0, 1 - F_ik + F_il)``. The inner
    sum runs over the relevant labels k and the irrelevant labels l of row i. W and b are stored as
    one matrix M whose last row is b. ``X - offset`` is never formed, so X stays sparse. The loss
    depends only on differences of scores; the tiny ridge makes b unique.
    """

    def __init__(
        self, X: Matrix, n_labels: int, *, offset: np.ndarray | None = None, bias_ridge: float = 1e-6
    ) -> None:
        X = X.tocsr() if is_sparse(X) else X
        self._X = X
        self._blocks = list(batches(X.shape[0], width=n_labels, budget=BLOCK_SIZE))
        self._offset = offset
        self._ridge = np.ones((X.shape[1] + 1, 1))
        self._ridge[-1] = bias_ridge
        n_stored = X.nnz if is_sparse(X) else X.size
        work = (n_stored + 10 * X.shape[0]) * n_labels
        self._polishing_iter = max(10, int(POLISHING_BUDGET / work))
        squares = squared_row_norms(X.T) / X.shape[0]
        if offset is not None:
            squares += offset * (offset - 2 * np.asarray(X.mean(axis=0)).ravel())
        self._mean_square = np.append(np.maximum(squares, 0), 1.0)[:, None]
        self.shape = (X.shape[1] + 1, n_labels)

    def scores(self, M: np.ndarray) -> np.ndarray:
        """Return the scores F of all rows."""
        return self._product(self._X, M)

    def objective(self, M: np.ndarray, relevant: np.ndarray, weight: np.ndarray) -> float:
        """Return the objective with the exact hinge."""
        return self._penalty(M) + self._pair_loss(self.scores(M), relevant, weight, 0.0)[0]

    def solve(self, relevant: np.ndarray, weight: np.ndarray, M: np.ndarray, *, tol: float) -> np.ndarray:
        """Minimise the objective from the start ``M``. The result is never worse than the start.

        The hinge is smoothed over a decreasing sequence of widths. At the minimum of a smoothed
        problem, the pair weights are dual feasible, so the duality gap comes only from the pairs in
        the smoothed part. The sequence ends when the gap is at most ``tol`` times the objective, or
        at the last of `WIDTHS`. Each row of the result sums to zero unless the start was better.
        """
        start, start_value = M, self.objective(M, relevant, weight)
        # The loss ignores a shift common to all labels, so removing it can only lower the penalty.
        M = _centred(M)
        for width in WIDTHS[1:] if M.any() else WIDTHS:
            M = self._minimise_smoothed(M, relevant, weight, width, tol, ftol=1e-2 * tol)
            value, gap = self._gap(M, relevant, weight, width)
            if gap <= tol * value:
                break
        # Within the budget, solve accurately enough that rounding on the way does not matter.
        if self._polishing_iter < MIN_ITER_FOR_NEWTON:
            M = self._minimise_smoothed(M, relevant, weight, width, tol, max_iter=self._polishing_iter)
        else:
            M = self._polish(_centred(M), relevant, weight, width, tol)
        M = _centred(M)
        return M if self.objective(M, relevant, weight) <= start_value else start

    def _minimise_smoothed(
        self,
        M: np.ndarray,
        relevant: np.ndarray,
        weight: np.ndarray,
        width: float,
        tol: float,
        *,
        ftol: float = 0.0,
        max_iter: int = MAX_SMOOTHED_ITER,
    ) -> np.ndarray:
        """Approach the minimum with L-BFGS, which needs one pass over the pairs per step."""

        def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
            M = flat.reshape(self.shape)
            loss, G, _ = self._pair_loss(self.scores(M), relevant, weight, width)
            gradient = self._transposed_product(self._X, G) + 2 * self._ridge * M
            return loss + self._penalty(M), gradient.ravel()

        gtol = _gradient_tolerance(tol)
        options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": ftol, "gtol": gtol}
        result = minimize(value_and_gradient, M.ravel(), jac=True, method="L-BFGS-B", options=options)
        return result.x.reshape(self.shape)

    def _polish(
        self, M: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float, tol: float
    ) -> np.ndarray:
        """Refine the minimum with Newton's method, which needs few steps near the solution."""
        F = self.scores(M)
        loss, G, _ = self._pair_loss(F, relevant, weight, width)
        value = loss + self._penalty(M)
        for _ in range(MAX_NEWTON_STEPS):
            gradient = self._transposed_product(self._X, G) + 2 * self._ridge * M
            if np.abs(gradient).max() <= _gradient_tolerance(tol):
                break
            pairs = [PairCurvature(F[rows], relevant[rows], weight[rows], width) for rows in self._blocks]
            step = self._newton_step(gradient, pairs)
            slope = float(np.vdot(gradient, step))
            change = self.scores(step)
            step_size = 1.0
            while True:
                new_M, new_F = M + step_size * step, F + step_size * change
                loss, G, _ = self._pair_loss(new_F, relevant, weight, width)
                new_value = loss + self._penalty(new_M)
                if new_value <= value + ARMIJO * step_size * slope:
                    break
                if step_size < MIN_STEP_SIZE:
                    return M  # any further decrease is below rounding error
                # Try the minimum of the parabola through both values and the slope.
                excess = new_value - value - step_size * slope
                step_size *= np.clip(-step_size * slope / (2 * excess), 0.1, 0.5)
            M, F, value = new_M, new_F, new_value
        return M

    def _newton_step(self, gradient: np.ndarray, pairs: list[PairCurvature]) -> np.ndarray:
        """Solve ``H step = -gradient`` by preconditioned conjugate gradients.

        The accuracy increases as the gradient shrinks.
        """
        ridge = np.tile(2 * self._ridge, self.shape[1])
        # The intercept of a label without ties is held only by the tiny ridge. Limit its step to
        # the margin, 1.
        ridge[-1] += np.abs(gradient[-1])
        curvature = sum(pair.diagonal.sum(axis=0) for pair in pairs)
        diagonal = ridge + self._mean_square * curvature
        X = self._X[
            np.concatenate([pair.rows + rows.start for pair, rows in zip(pairs, self._blocks, strict=True)])
        ]
        ends = np.cumsum([len(pair.rows) for pair in pairs])

        def product(direction: np.ndarray) -> np.ndarray:
            D = self._product(X, direction)
            for pair, end in zip(pairs, ends, strict=True):
                rows = slice(end - len(pair.rows), end)
                D[rows] = pair.product(D[rows])
            return _centred(self._transposed_product(X, D) + ridge * direction)

        # The loss ignores a shift common to all labels, so the step must not contain one.
        def precondition(residual: np.ndarray) -> np.ndarray:
            return _centred(residual / diagonal)

        step, residual = np.zeros(self.shape), -gradient
        direction = precondition(residual)
        size = float(np.vdot(residual, direction))
        target_size = min(0.1, float(np.sqrt(np.abs(gradient).max()))) ** 2 * size
        for _ in range(MAX_CONJUGATE_STEPS):
            H_direction = product(direction)
            length = size / float(np.vdot(direction, H_direction))
            step += length * direction
            residual -= length * H_direction
            scaled = precondition(residual)
            previous, size = size, float(np.vdot(residual, scaled))
            if size <= target_size:
                break
            direction = scaled + size / previous * direction
        return step

    def _gap(
        self, M: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float
    ) -> tuple[float, float]:
        """Return the exact objective and the duality gap of the smoothed hinge's pair weights."""
        F = self.scores(M)
        _, G, mass = self._pair_loss(F, relevant, weight, width)
        exact = self._pair_loss(F, relevant, weight, 0.0)[0]
        return exact + self._penalty(M), exact - mass - float(
            np.vdot(self._transposed_product(self._X, G), M)
        )

    def _pair_loss(
        self, F: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float
    ) -> tuple[float, np.ndarray, float]:
        """Return the weighted loss, its gradient (by score) and the sum of the pair weights."""
        loss, mass = 0.0, 0.0
        gradient = np.empty_like(F)
        for rows in self._blocks:
            row_loss, G = ranking_loss(F[rows], relevant[rows], width)
            G *= weight[rows, None]
            loss += float(row_loss @ weight[rows])
            mass -= float(G[relevant[rows]].sum())
            gradient[rows] = G
        return loss, gradient, mass

    def _penalty(self, M: np.ndarray) -> float:
        return float(np.vdot(self._ridge * M, M))

    def _product(self, X: Matrix, M: np.ndarray) -> np.ndarray:
        """Return the scores of the rows of X."""
        F: np.ndarray = X @ M[:-1]
        F += M[-1] if self._offset is None else M[-1] - self._offset @ M[:-1]
        return F

    def _transposed_product(self, X: Matrix, G: np.ndarray) -> np.ndarray:
        """Map the gradient G with respect to the scores of X to the gradient with respect to M."""
        gradient = np.empty(self.shape)
        gradient[:-1] = X.T @ G
        gradient[-1] = G.sum(axis=0)
        if self._offset is not None:
            gradient[:-1] -= np.outer(self._offset, gradient[-1])
        return gradient


def _gradient_tolerance(tol: float) -> float:
    """Return the largest gradient entry allowed at convergence.

    Half the norm of the gradient bounds |W - W*|, since the penalty is 2-strongly convex.
    """
    return min(1e-6, 1e-2 * tol)


def _centred(M: np.ndarray) -> np.ndarray:
    """Shift every row to a sum of zero."""
    return M - M.mean(axis=1, keepdims=True)
