"""A weighted linear rank-SVM: every relevant label of a row above every other label, by a margin of one.

Every pair of labels costs a hinge. Where rows have few relevant labels the pairs are listed, block by block.
Where they have many, sorting the scores of a row lets running sums give the loss and its gradient over all
pairs in O(q log q) time and O(q) memory, however many labels are relevant.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize

from labelsieve.numerics.batches import batches
from labelsieve.numerics.sparse import is_sparse
from labelsieve.numerics.typing import Matrix

#: Scores whose pairs are summed at once; the temporaries, of 256 KiB each, stay in the cache.
BLOCK_SIZE = 1 << 15
#: Up to this many relevant labels per row, listing pairs is faster than sorting.
LISTING_LIMIT = 4
#: Widths over which the kink of the hinge is rounded off, from easy to exact.
WIDTHS = (1.0, 0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4, 1e-4, 1e-5)
#: L-BFGS iterations per width.
MAX_ROUNDED_ITER = 300
#: Multiplications that may be spent on solving the last width more tightly than the tolerance asks.
POLISHING_WORK = 2e9


def pair_hinge(scores: np.ndarray, relevant: np.ndarray, *, squared: bool = False) -> np.ndarray:
    """Gradient of the summed hinge of all (relevant, irrelevant) pairs of each row.

    The loss of a row is ``sum max(0, s_l - s_k) ** p`` over relevant k and irrelevant l, with p = 2 if
    ``squared`` and 1 otherwise. It is homogeneous of degree p, so its value is
    ``(scores * gradient).sum() / p``.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_labels)
        Scores, those of relevant labels already lowered by the margin.
    relevant : bool ndarray of shape (n_samples, n_labels)
        Which labels are relevant in which row.
    squared : bool, default=False
        Square the hinge.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Derivative of each row's loss by its scores.

    Examples
    --------
    >>> pair_hinge(np.array([[0.5, 0.0, 2.0]]), np.array([[True, False, False]]), squared=True)
    array([[-3.,  0.,  3.]])
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


class RankSVM:
    """Linear scores ``F = (X - offset) W + b`` that rank the relevant labels of a row above the others.

    Minimises ``|W|^2 + bias_ridge |b|^2 + sum_i weight_i sum max(0, 1 - F_ik + F_il)``, the inner sum over
    the relevant labels k and the irrelevant labels l of row i. W and b travel as one matrix, b the last row.

    Parameters
    ----------
    X : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        Features in float64.
    n_labels : int
        Number of labels.
    offset : ndarray of shape (n_features,) or None, default=None
        Subtracted from every row of X without being formed, which keeps X sparse.
    bias_ridge : float, default=1e-6
        Tiny weight that makes b unique; the loss sees only differences of scores.
    """

    def __init__(
        self, X: Matrix, n_labels: int, *, offset: np.ndarray | None = None, bias_ridge: float = 1e-6
    ) -> None:
        X = X.tocsr() if is_sparse(X) else X
        self._X = X
        self._blocks = list(batches(X.shape[0], width=n_labels, budget=BLOCK_SIZE))
        self._offset = offset
        n_stored = X.nnz if is_sparse(X) else X.size
        work = (n_stored + 10 * X.shape[0]) * n_labels
        self._polishing_iter = int(np.clip(POLISHING_WORK / work, 10, 1000))
        self._ridge = np.ones((X.shape[1] + 1, 1))
        self._ridge[-1] = bias_ridge
        self.shape = (X.shape[1] + 1, n_labels)

    def scores(self, M: np.ndarray) -> np.ndarray:
        """Return the scores F of all rows."""
        F: np.ndarray = self._X @ M[:-1]
        F += M[-1] if self._offset is None else M[-1] - self._offset @ M[:-1]
        return F

    def objective(self, M: np.ndarray, relevant: np.ndarray, weight: np.ndarray) -> float:
        """Return the minimised function, with the exact hinge."""
        return float((self._ridge * M * M).sum()) + self._loss(M, relevant, weight, 0.0)[0]

    def solve(self, relevant: np.ndarray, weight: np.ndarray, M: np.ndarray, *, tol: float) -> np.ndarray:
        """Minimise from the start ``M``; the objective of the result is never above that of the start.

        The hinge is rounded off over ever smaller widths. Where the rounded problem is solved, the weights of
        its pairs are feasible for the dual problem, and the pairs inside the rounding are all that separates
        the two objectives: the widths stop shrinking when that gap is at most ``tol`` times the objective, or
        at the last of `WIDTHS`.

        Parameters
        ----------
        relevant : bool ndarray of shape (n_samples, n_labels)
            Labels to rank above the rest of their row.
        weight : ndarray of shape (n_samples,)
            Weight of each row.
        M : ndarray of shape (n_features + 1, n_labels)
            Where to start.
        tol : float
            Relative duality gap.

        Returns
        -------
        ndarray of shape (n_features + 1, n_labels)
            W and, as the last row, b. Every row sums to zero.
        """
        start, start_value = M, self.objective(M, relevant, weight)
        for width in WIDTHS[1:] if M.any() else WIDTHS:
            M = self._minimise_rounded(M, relevant, weight, width, tol, ftol=1e-2 * tol)
            value, gap = self._gap(M, relevant, weight, width)
            if gap <= tol * value:
                break
        # Within the work allowed, the answer shall depend on the data, no longer on rounding along the path.
        M = self._minimise_rounded(M, relevant, weight, width, tol, max_iter=self._polishing_iter)
        # The loss does not see a shift common to all labels, so taking it out can only lower the ridge.
        M -= M.mean(axis=1, keepdims=True)
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
        def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
            M = flat.reshape(self.shape)
            loss, gradient, _ = self._loss(M, relevant, weight, width)
            shrunk = self._ridge * M
            return loss + float((shrunk * M).sum()), (gradient + 2 * shrunk).ravel()

        # |W - W*| is at most half the norm of the gradient, since the ridge is 2-strongly convex.
        gtol = min(1e-6, 1e-2 * tol)
        options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": ftol, "gtol": gtol}
        result = minimize(value_and_gradient, M.ravel(), jac=True, method="L-BFGS-B", options=options)
        minimiser: np.ndarray = result.x.reshape(self.shape)
        return minimiser

    def _gap(
        self, M: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float
    ) -> tuple[float, float]:
        """Exact objective, and its distance to the dual value of the rounded hinge's pair weights."""
        _, gradient, mass = self._loss(M, relevant, weight, width)
        exact = self._loss(M, relevant, weight, 0.0)[0]
        return exact + float((self._ridge * M * M).sum()), exact - mass - float((gradient * M).sum())

    def _loss(
        self, M: np.ndarray, relevant: np.ndarray, weight: np.ndarray, width: float
    ) -> tuple[float, np.ndarray, float]:
        """Weighted loss, its gradient by M, and the summed dual weights of the pairs."""
        loss, mass = 0.0, 0.0
        F = self.scores(M)
        for rows in self._blocks:
            row_loss, G = ranking_loss(F[rows], relevant[rows], width)
            G *= weight[rows, None]
            loss += float(row_loss @ weight[rows])
            mass -= float(G[relevant[rows]].sum())
            F[rows] = G  # the scores have served
        gradient = np.empty(self.shape)
        gradient[:-1] = self._X.T @ F
        gradient[-1] = F.sum(axis=0)
        if self._offset is not None:
            gradient[:-1] -= np.outer(self._offset, gradient[-1])
        return loss, gradient, mass
