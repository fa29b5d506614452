"""Base class of PML-LC and PML-FP, which alternate between a rank-SVM and label confidences."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve._base import POSITIVE, BaseSelector, StrOptions
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve._prediction import LinearLabelPredictor
from labelsieve.methods._partial_ranking.confidence import update_confidence
from labelsieve.methods._partial_ranking.rank_svm import RankSVM


class RankerState(NamedTuple):
    M: np.ndarray
    trusted: np.ndarray
    level: np.ndarray
    value: float
    is_fixed_point: bool


@dataclass(eq=False, repr=False, kw_only=True)
class PartialRanker(LinearLabelPredictor, BaseSelector):
    """Linear label ranker trained on candidates. Subclasses implement ``_confidence_terms``."""

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "C1": POSITIVE,
        "scale": [StrOptions({"minmax", "standard"}), None],
    }

    C1: float = 1.0
    scale: str | None = "minmax"
    max_iter: int = 50
    tol: float = 1e-4
    verbose: int = 0

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        order = np.argsort(-scores, axis=1, kind="stable")
        chosen = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, : self.n_labels_predicted_], True, axis=1)
        return chosen

    @abstractmethod
    def _confidence_terms(
        self, X: Matrix, candidates: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the ``cost`` and ``affinity`` arguments of `update_confidence`."""

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaling = Scaling.learn(X, self.scale, centre=True)
        scaled, offset = scaling.split(X)
        result = self._alternate(scaled, dense(Y) > 0, offset=offset)
        coef, confidence = result.extra["coef"], result.extra["label_confidence"]
        # Centring is absorbed by the intercept, so the rows are never shifted.
        intercept = result.extra["intercept"] - coef @ (scaling.offset * scaling.factor)
        n_trusted = np.count_nonzero(confidence, axis=1)
        extra = {
            "coef": coef.astype(X.dtype),
            "intercept": intercept.astype(X.dtype),
            "scaling": Scaling(None, scaling.factor.astype(X.dtype)),
            "label_confidence": sp.csr_matrix(confidence) if is_sparse(Y) else confidence,
            "n_labels_predicted": max(1, round(float(n_trusted[n_trusted > 0].mean()))),
        }
        return replace(result, scores=result.scores.astype(X.dtype), extra=extra)

    def _alternate(
        self, X: Matrix, candidates: np.ndarray, *, offset: np.ndarray | None = None, bias_ridge: float = 1e-6
    ) -> SolverResult:
        """Minimise over W, b and the confidences P, starting at ``P = candidates`` and ``W = 0``.

        The objective adds ``bias_ridge |b|^2``, ``sum(cost * P)`` and ``-sum_i P_i affinity P_i'``
        to the ranking loss and ``|W|^2``, with scores ``F = (X - offset) W + b``. An update that
        would raise the objective is rejected.
        """
        cost, affinity = self._confidence_terms(X, candidates)
        n_labels = candidates.shape[1]
        n_candidates = candidates.sum(axis=1)
        gamma = n_candidates * (n_labels - n_candidates) + n_candidates**2 / 2
        # A row without candidates has no pairs and gamma 0, so it gets weight 0.
        weight = np.divide(self.C1, gamma, out=np.zeros(len(gamma)), where=n_candidates > 0)
        svm = RankSVM(X, n_labels, offset=offset, bias_ridge=bias_ridge)

        def objective(M: np.ndarray, trusted: np.ndarray, level: np.ndarray) -> float:
            value = svm.objective(M, trusted, weight * level)
            if cost is not None:
                value += float((cost * trusted).sum(axis=1) @ level)
            if affinity is not None:
                value -= float(((trusted @ affinity) * trusted).sum(axis=1) @ level**2)
            return value

        def step(state: RankerState) -> tuple[RankerState, float]:
            if state.is_fixed_point:
                return state, state.value
            M = svm.solve(state.trusted, weight * state.level, state.M, tol=self.tol)
            trusted, level = update_confidence(
                svm.scores(M), candidates, weight, state.trusted, state.level, cost=cost, affinity=affinity
            )
            unchanged = np.array_equal(trusted, state.trusted) and np.array_equal(level, state.level)
            value = objective(M, trusted, level)
            return RankerState(M, trusted, level, value, unchanged), value

        M, level = np.zeros(svm.shape), (n_candidates > 0).astype(np.float64)
        value = objective(M, candidates, level)
        # The affinity can dwarf the loss, so a small change of the objective is not enough to stop.
        # At least two steps are needed to confirm that the confidences no longer change.
        start = RankerState(M, candidates, level, value, False)
        state, history, converged = self._iterate(step, start, value, min_iter=2)
        extra = {
            "coef": state.M[:-1].T,
            "intercept": state.M[-1],
            "label_confidence": state.trusted * state.level[:, None],
        }
        return SolverResult(row_norms(state.M[:-1]), history, converged, extra=extra)
