"""The criterion, and the greedy path that takes one feature after the other by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.result import logger
from labelsieve.methods._evidence.problem import Problem

#: Weight of all evidence next to that above the threshold; it orders features that have none above it.
_TIE_BREAK = 1e-6
#: What is left of a feature's variance is never taken for less.
_SMALLEST_REST = 1e-10
#: Entries that are worked on together, so that they stay in the cache from one operation to the next.
_BLOCK = 2**15
#: Bits of a criterion that count when features are compared: about ten digits.
_BITS = 33


@dataclass(frozen=True)
class Criterion:
    """What counts as evidence: the noise ``threshold``, and the ``ridge`` of a greedy search."""

    threshold: float
    ridge: float

    def alone(self, products: np.ndarray, n_samples: int) -> np.ndarray:
        """Return the evidence of every feature alone: ``sum_l max(z2 - threshold, 0)`` with ``z2 = n correlation^2``.

        ``products`` are those of standardised features and labels. A millionth of ``sum_l z2`` is added, which orders
        the features without evidence above the threshold.
        """
        weight = np.full(len(products), 1 / n_samples)
        return _thresholded(products, weight, self.threshold)


def rank_features(
    problem: Problem, redundancy: float, criterion: Criterion, n_steps: int, *, log_steps: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Order all features, best first; returns the criterion of each when it was taken, or at the end, as well.

    ``n_steps`` features are taken one by one, the others follow in the order of the criterion at the end.
    """
    alone = criterion.alone(problem.products, problem.n_samples)
    if np.isinf(redundancy):
        return np.argsort(-_rounded(alone), kind="stable"), alone
    path = GreedyPath(problem, redundancy * alone, criterion, n_steps)
    for step in range(1, n_steps + 1):
        best = path.best()
        if log_steps:
            logger.info(
                "feature %d of %d: column %d, criterion %.6g", step, n_steps, best, path.reached[best]
            )
        path.take(best, problem.gram.column(best, path.likely))
    return path.order(), path.reached


class GreedyPath:
    """What the features taken so far leave unexplained.

    With the set S taken, ``a_j`` is what is left of the variance of feature j, times n and plus the ridge;
    ``c_jl`` is what is left of its product with label l. Both are kept up to date by the Cholesky factor of
    ``Z'Z + ridge n I``, to which every feature taken adds a row. ``head_start`` is added to the evidence that is
    left of a feature, at every step.
    """

    def __init__(self, problem: Problem, head_start: np.ndarray, criterion: Criterion, n_steps: int) -> None:
        self.head_start = head_start
        self.criterion = criterion
        self.penalty = criterion.ridge * problem.n_samples
        self.a = np.where(problem.features.factor > 0, float(problem.n_samples), 0.0) + self.penalty
        self.c = problem.products.copy()
        self.factor = np.empty((n_steps, len(self.c)))
        self.taken: list[int] = []
        self.is_free = np.ones(len(self.c), dtype=bool)
        #: Evidence that is left, plus the head start; of a taken feature, what it was then.
        self.reached = self._left() + head_start

    def best(self) -> int:
        """Return the free feature with the largest criterion, of equal ones the first."""
        return int(np.argmax(np.where(self.is_free, _rounded(self.reached), -np.inf)))

    def likely(self) -> np.ndarray:
        """Return the free features as they would be taken if none changed the criterion of another."""
        return np.flatnonzero(self.is_free)[np.argsort(-self.reached[self.is_free], kind="stable")]

    def take(self, feature: int, gram_column: np.ndarray) -> None:
        """Take a feature, given its column of Z'Z: what it explains is no longer left for the others."""
        known = self.factor[: len(self.taken)]
        row = gram_column - known[:, feature] @ known
        row[feature] += self.penalty
        root = np.sqrt(self.a[feature])
        row /= root
        self.factor[len(self.taken)] = row
        self.taken.append(feature)
        self.is_free[feature] = False
        explained = self.c[feature] / root
        self.a -= row * row
        left = self._left(removed=(row, explained))
        self.reached = np.where(self.is_free, left + self.head_start, self.reached)

    def order(self) -> np.ndarray:
        """Return all features: the taken ones in turn, then the others by their criterion."""
        free = np.flatnonzero(self.is_free)
        rest = free[np.argsort(-_rounded(self.reached[free]), kind="stable")]
        return np.concatenate([np.array(self.taken, dtype=np.intp), rest])

    def _left(self, removed: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Return the evidence that is left, after ``u v'`` is removed from the products."""
        np.maximum(self.a, _SMALLEST_REST, out=self.a)
        weight = (1 + self.criterion.ridge) / self.a
        return _thresholded(self.c, weight, self.criterion.threshold, removed)


def _thresholded(
    c: np.ndarray,
    weight: np.ndarray,
    threshold: float,
    removed: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Sum over the labels what ``weight_j c_jl^2`` has above the threshold, and a millionth of all of it.

    With ``removed = (u, v)``, ``u v'`` is first subtracted from ``c``, in place.
    """
    n_features, n_labels = c.shape
    total = np.zeros(n_features)
    for block in batches(n_features, n_labels, _BLOCK):
        left = c[block]
        if removed is not None:
            left -= removed[0][block, None] * removed[1]
        evidence = left * left
        evidence *= weight[block, None]
        total[block] = _TIE_BREAK * evidence.sum(axis=1)
        evidence -= threshold
        np.maximum(evidence, 0, out=evidence)
        total[block] += evidence.sum(axis=1)
    return total


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round to about ten digits, so that the last bits of a product cannot decide between equal features."""
    mantissa, exponent = np.frexp(values)
    rounded: np.ndarray = np.ldexp(np.round(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return rounded
