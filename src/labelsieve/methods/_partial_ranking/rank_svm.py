"""A weighted linear rank-SVM: every relevant label of a row above every other label, by a margin of one.

Every pair of labels costs a hinge. Where rows have few relevant labels the pairs are listed, block by block.
Where they have many, sorting the scores of a row lets running sums give the loss and its gradient over all
pairs in O(q log q) time and O(q) memory, however many labels are relevant.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize

from labelsieve._numerics.batches import batches
from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.sparse import Matrix, is_sparse

#: Scores whose pairs are summed at once; the temporaries, of 256 KiB each, stay in the cache.
BLOCK_SIZE = 1 << 15
#: Up to this many relevant labels per row, listing pairs is faster than sorting.
LISTING_LIMIT = 4
#: Widths over which the kink of the hinge is rounded off, from easy to exact.
WIDTHS = (1.0, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4, 1e-4, 1e-5)
#: L-BFGS iterations per width.
MAX_ROUNDED_ITER = 300
#: Multiplications that may be spent on solving the last width more tightly than the tolerance asks, and the
#: L-BFGS iterations these must pay for to solve it to the end: the fewer they are, the larger the problem.
POLISHING_WORK = 2e9
ENOUGH_ITER = 200
#: Newton steps at the last width, and conjugate gradient steps per Newton step.
MAX_NEWTON_STEPS = 100
MAX_CONJUGATE_STEPS = 250
#: Share of the promised decrease that a step must bring, and the smallest part of a step that is tried.
ARMIJO = 1e-4
SMALLEST_PART = 1e-6


def pair_hinge(scores: np.ndarray, relevant: np.ndarray, *, squared: bool = False) -> np.ndarray:
    """Return the gradient, by the scores, of the summed hinge of all (relevant, irrelevant) pairs of each row.

    The loss of a row is ``sum max(0, s_l - s_k) ** p`` over relevant k and irrelevant l, with p = 2 if
    ``squared`` and 1 otherwise; the scores of relevant labels are lowered by the margin already. It is
    homogeneous of degree p, so its value is ``(scores * gradient).sum() / p``.
    """
    order = np.argsort(scores, axis=1)
    ascending = np.take_along_axis(scores, order, axis=1)
    flags = np.take_along_axis(relevant, order, axis=1)
    # Irrelevant labels meet the relevant ones below them, relevant labels the irrelevant ones above.
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
    """Loss and gradient per row of ``sum h(1 - F_k + F_l)`` over relevant k and irrelevant l.

    ``h`` is the hinge if ``width`` is 0, otherwise the hinge with its kink rounded off over ``width``:
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
    # Relevant labels make no pairs with each other: their slacks stay below 0.
    irrelevant = np.where(relevant, -np.inf, F)
    gradient, total = np.zeros_like(F), np.zeros(len(F))
    for rows, labels in _first_to_last(relevant):
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


def _first_to_last(relevant: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the first relevant label of every row that has one, then the second, and so on."""
    rows, labels = np.nonzero(relevant)
    # `rows` ascend, so the labels of one row lie together.
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    for number in range(place.max(initial=-1) + 1):
        at = place == number
        yield rows[at], labels[at]


class PairCurvature:
    """Second derivative, by the scores, of the ranking loss of some rows, as a linear map.

    A relevant and an irrelevant label are tied where their slack lies inside the rounding. Among the sorted
    labels of the other kind, those tied to one label lie side by side: running sums add them up. Only the ``rows``
    with ties have any curvature; the map leaves the others out.
    """

    def __init__(self, F: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float) -> None:
        # The labels in two groups, irrelevant and relevant ones, each by ascending scores.
        start, order, flags = _places_among_others(F - relevant, relevant)
        end, _, _ = _places_among_others(F - (1 - width) * relevant, relevant)
        grouped = np.take_along_axis(order, np.argsort(flags, axis=1, kind="stable"), axis=1)
        # Raised by the width, a relevant label passes more irrelevant ones, and these fewer relevant ones.
        first, last = np.minimum(start, end), np.maximum(start, end)
        self.rows = np.flatnonzero((first < last).any(axis=1))
        number, n_labels = np.arange(len(self.rows))[:, None], F.shape[1]
        self._grouped = grouped[self.rows] + n_labels * number
        self._first = first[self.rows] + (n_labels + 1) * number
        self._last = last[self.rows] + (n_labels + 1) * number
        self._scale = weight[self.rows, None] / width
        self.diagonal = (self._last - self._first) * self._scale

    def product(self, D: np.ndarray) -> np.ndarray:
        """Return the change of the gradient per change ``D`` of the scores, both of the rows with ties."""
        running = np.zeros((D.shape[0], D.shape[1] + 1))
        np.cumsum(D.take(self._grouped), axis=1, out=running[:, 1:])
        tied = running.take(self._last)
        tied -= running.take(self._first)
        tied *= self._scale
        return self.diagonal * D - tied


def _places_among_others(
    scores: np.ndarray, relevant: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many labels of the other group stand before each label, the irrelevant group first; the order; its flags."""
    order = np.argsort(scores, axis=1)
    flags = np.take_along_axis(relevant, order, axis=1)
    n_relevant = np.cumsum(flags, axis=1)
    n_irrelevant = np.arange(1, scores.shape[1] + 1) - n_relevant
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.where(flags, n_irrelevant, n_irrelevant[:, -1:] + n_relevant), axis=1)
    return places, order, flags


class RankSVM:
    """Linear scores ``F = (X - offset) W + b`` that rank the relevant labels of a row above the others.

    Minimises ``|W|^2 + bias_ridge |b|^2 + sum_i weight_i sum max(0, 1 - F_ik + F_il)``, the inner sum over
    the relevant labels k and the irrelevant labels l of row i. W and b travel as one matrix, b the last row. The
    offset is subtracted from every row of X without being formed, which keeps X sparse; the tiny ridge makes b
    unique, since the loss sees only differences of scores.
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
        self._polishing_iter = max(10, int(POLISHING_WORK / work))
        squares = squared_row_norms(X.T) / X.shape[0]
        if offset is not None:
            squares += offset * (offset - 2 * np.asarray(X.mean(axis=0)).ravel())
        self._mean_square = np.append(np.maximum(squares, 0), 1.0)[:, None]
        self.shape = (X.shape[1] + 1, n_labels)

    def scores(self, M: np.ndarray) -> np.ndarray:
        """Return the scores F of all rows."""
        return self._product(self._X, M)

    def objective(self, M: np.ndarray, relevant: np.ndarray, weight: np.ndarray) -> float:
        """Return the minimised function, with the exact hinge."""
        return self._penalty(M) + self._pair_loss(self.scores(M), relevant, weight, 0.0)[0]

    def solve(self, relevant: np.ndarray, weight: np.ndarray, M: np.ndarray, *, tol: float) -> np.ndarray:
        """Minimise from the start ``M``; the objective of the result is never above that of the start.

        The hinge is rounded off over ever smaller widths. Where the rounded problem is solved, the weights of
        its pairs are feasible for the dual problem, and the pairs inside the rounding are all that separates
        the two objectives: the widths stop shrinking when that gap is at most ``tol`` times the objective, or
        at the last of `WIDTHS`. Every row of the result sums to zero.
        """
        start, start_value = M, self.objective(M, relevant, weight)
        # The loss does not see a shift common to all labels, so taking it out can only lower the ridge.
        M = _centred(M)
        for width in WIDTHS[1:] if M.any() else WIDTHS:
            M = self._minimise_rounded(M, relevant, weight, width, tol, ftol=1e-2 * tol)
            value, gap = self._gap(M, relevant, weight, width)
            if gap <= tol * value:
                break
        # Within the work allowed, the answer shall depend on the data, no longer on rounding along the path.
        if self._polishing_iter < ENOUGH_ITER:
            M = self._minimise_rounded(M, relevant, weight, width, tol, max_iter=self._polishing_iter)
        else:
            M = self._polish(_centred(M), relevant, weight, width, tol)
        M = _centred(M)
        return M if self.objective(M, relevant, weight) <= start_value else start

    def _minimise_rounded(
        self,
        M: np.ndarray,
        relevant: np.ndarray,
        weight: np.ndarray,
        width: float,
        tol: float,
        *,
        ftol: float = 0.0,
        max_iter: int = MAX_ROUNDED_ITER,
    ) -> np.ndarray:
        """Come near the minimum: L-BFGS needs one pass over the pairs per step."""

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
        """Go on to the minimum: near it few pairs change sides, and Newton's method needs few steps."""
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
            part = 1.0
            while True:
                new_M, new_F = M + part * step, F + part * change
                loss, G, _ = self._pair_loss(new_F, relevant, weight, width)
                new_value = loss + self._penalty(new_M)
                if new_value <= value + ARMIJO * part * slope:
                    break
                if part < SMALLEST_PART:
                    return M  # rounding hides what is left to gain
                # The parabola through both values and the slope says where to try next.
                part *= np.clip(-part * slope / (2 * (new_value - value - part * slope)), 0.1, 0.5)
            M, F, value = new_M, new_F, new_value
        return M

    def _newton_step(self, gradient: np.ndarray, pairs: list[PairCurvature]) -> np.ndarray:
        """Solve ``H step = -gradient`` by preconditioned conjugate gradients, the better the smaller it is."""
        own = np.tile(2 * self._ridge, self.shape[1])
        # A label none of whose pairs is rounded has nothing but the tiny ridge to hold its intercept back: let
        # it move by no more than one, the margin.
        own[-1] += np.abs(gradient[-1])
        curvature = sum(pair.diagonal.sum(axis=0) for pair in pairs)
        diagonal = own + self._mean_square * curvature
        X = self._X[
            np.concatenate([pair.rows + rows.start for pair, rows in zip(pairs, self._blocks, strict=True)])
        ]
        ends = np.cumsum([len(pair.rows) for pair in pairs])

        def product(direction: np.ndarray) -> np.ndarray:
            D = self._product(X, direction)
            for pair, end in zip(pairs, ends, strict=True):
                rows = slice(end - len(pair.rows), end)
                D[rows] = pair.product(D[rows])
            return _centred(self._transposed_product(X, D) + own * direction)

        # The loss does not see a shift common to all labels; neither shall the step make one.
        def precondition(residual: np.ndarray) -> np.ndarray:
            return _centred(residual / diagonal)

        step, residual = np.zeros(self.shape), -gradient
        direction = precondition(residual)
        size = float(np.vdot(residual, direction))
        enough = min(0.1, float(np.sqrt(np.abs(gradient).max()))) ** 2 * size
        for _ in range(MAX_CONJUGATE_STEPS):
            H_direction = product(direction)
            length = size / float(np.vdot(direction, H_direction))
            step += length * direction
            residual -= length * H_direction
            scaled = precondition(residual)
            previous, size = size, float(np.vdot(residual, scaled))
            if size <= enough:
                break
            direction = scaled + size / previous * direction
        return step

    def _gap(
        self, M: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float
    ) -> tuple[float, float]:
        """Exact objective, and its distance to the dual value of the rounded hinge's pair weights."""
        F = self.scores(M)
        _, G, mass = self._pair_loss(F, relevant, weight, width)
        exact = self._pair_loss(F, relevant, weight, 0.0)[0]
        return exact + self._penalty(M), exact - mass - float(
            np.vdot(self._transposed_product(self._X, G), M)
        )

    def _pair_loss(
        self, F: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float
    ) -> tuple[float, np.ndarray, float]:
        """Weighted loss, its gradient by the scores, and the summed dual weights of the pairs."""
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
        """Return the scores of the rows X."""
        F: np.ndarray = X @ M[:-1]
        F += M[-1] if self._offset is None else M[-1] - self._offset @ M[:-1]
        return F

    def _transposed_product(self, X: Matrix, G: np.ndarray) -> np.ndarray:
        """Return the gradient by M of a loss of the rows X whose gradient by the scores is G."""
        gradient = np.empty(self.shape)
        gradient[:-1] = X.T @ G
        gradient[-1] = G.sum(axis=0)
        if self._offset is not None:
            gradient[:-1] -= np.outer(self._offset, gradient[-1])
        return gradient


def _gradient_tolerance(tol: float) -> float:
    """Largest entry of the gradient that is left; half its norm bounds |W - W*|, the ridge being 2-strongly convex."""
    return min(1e-6, 1e-2 * tol)


def _centred(M: np.ndarray) -> np.ndarray:
    """Shift every row to a sum of zero."""
    return M - M.mean(axis=1, keepdims=True)
