"""Criterion of the evidence selector, and the greedy search that maximises it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.result import logger
from labelsieve.methods._evidence.problem import Problem

#: Weight of the evidence below the threshold. It orders features without any evidence above it.
_TIE_BREAK = 1e-6
#: Lower bound of a feature's unexplained variance.
_SMALLEST_REST = 1e-10
#: Number of entries that are processed together, small enough to stay in the cache.
_BLOCK = 2**15
#: Precision in bits at which criteria are compared, about ten digits.
_BITS = 33


@dataclass(frozen=True)
class Criterion:
    """Settings of the search: noise ``threshold``, ``ridge``, and features to select first (``kept``)."""

    threshold: float
    ridge: float
    kept: tuple[int, ...] = ()

    def alone(self, products: np.ndarray, n_samples: int) -> np.ndarray:
        """Compute the evidence of every feature alone.

        It is ``sum_l max(z2 - threshold, 0)`` with ``z2 = n correlation^2``, plus a millionth of
        ``sum_l z2`` to order the features without evidence above the threshold. ``products`` are the
        products of standardised features and labels.
        """
        weight = np.full(len(products), 1 / n_samples)
        return _thresholded(products, weight, self.threshold)


def rank_features(
    problem: Problem, redundancy: float, criterion: Criterion, n_steps: int, *, log_steps: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Rank all features. Return their order, best first, and their criteria.

    The first ``n_steps`` features are selected one by one. The others follow in the order of their
    criteria after the last step. The criterion of a selected feature is its value at selection.
    """
    alone = criterion.alone(problem.products, problem.n_samples)
    is_kept = np.isin(np.arange(len(alone)), criterion.kept)
    by_evidence = np.lexsort((-_rounded(alone), ~is_kept))
    if np.isinf(redundancy):
        return by_evidence, alone
    path = GreedyPath(problem, redundancy * alone, criterion, n_steps)
    for step in range(1, n_steps + 1):
        best = int(by_evidence[step - 1]) if step <= len(criterion.kept) else path.best()
        if log_steps:
            logger.info(
                "feature %d of %d: column %d, criterion %.6g", step, n_steps, best, path.reached[best]
            )
        path.take(best, problem.gram.column(best, path.likely))
    return path.order(), path.reached


class GreedyPath:
    """Evidence that the selected features leave unexplained.

    Given the selected set S, ``a_j`` is the unexplained variance of feature j, times n and plus the
    ridge, and ``c_jl`` is the unexplained product with label l. Both are updated with the Cholesky factor
    of ``Z'Z + ridge n I``, which grows by one row per selected feature. ``head_start`` is added to the
    unexplained evidence of a feature at every step.
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
        #: Unexplained evidence plus the head start. For selected features, the value at selection.
        self.reached = self._left() + head_start

    def best(self) -> int:
        """Return the first free feature with the largest criterion."""
        return int(np.argmax(np.where(self.is_free, _rounded(self.reached), -np.inf)))

    def likely(self) -> np.ndarray:
        """Return the free features sorted by their current criterion."""
        return np.flatnonzero(self.is_free)[np.argsort(-self.reached[self.is_free], kind="stable")]

    def take(self, feature: int, gram_column: np.ndarray) -> None:
        """Select a feature, given its column of Z'Z, and remove what it explains from the others."""
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
        """Return all features: selected ones in order of selection, then the others by criterion."""
        free = np.flatnonzero(self.is_free)
        rest = free[np.argsort(-_rounded(self.reached[free]), kind="stable")]
        return np.concatenate([np.array(self.taken, dtype=np.intp), rest])

    def _left(self, removed: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
        """Compute the unexplained evidence after subtracting ``u v'`` from the products."""
        np.maximum(self.a, _SMALLEST_REST, out=self.a)
        weight = (1 + self.criterion.ridge) / self.a
        return _thresholded(self.c, weight, self.criterion.threshold, removed)


def _thresholded(
    c: np.ndarray,
    weight: np.ndarray,
    threshold: float,
    removed: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Sum ``max(weight_j c_jl^2 - threshold, 0)`` over the labels, plus the tie break.

    If ``removed = (u, v)`` is given, first subtract ``u v'`` from ``c`` in place.
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
    """Round to about ten digits, so that rounding errors cannot decide between equal features."""
    mantissa, exponent = np.frexp(values)
    rounded: np.ndarray = np.ldexp(np.round(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return rounded
