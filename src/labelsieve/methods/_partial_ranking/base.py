"""PML-LC and PML-FP as estimators: scaling, scores of new rows, and the labels they choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from labelsieve._base import LOOP_CONSTRAINTS, POSITIVE, BaseSelector, StrOptions
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve._prediction import LinearLabelPredictor

WEIGHT = POSITIVE


class PartialRanker(LinearLabelPredictor, BaseSelector):
    """A selector that is a linear label ranker trained on candidate labels."""

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        **LOOP_CONSTRAINTS,
        "C1": WEIGHT,
        "scale": [StrOptions({"minmax", "standard"}), None],
    }

    scale: str | None
    n_labels_predicted_: int

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        order = np.argsort(-scores, axis=1, kind="stable")
        chosen = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(chosen, order[:, : self.n_labels_predicted_], True, axis=1)
        return chosen

    def _solve_scaled(self, X: Matrix, Y: Matrix, solve: Callable[..., SolverResult]) -> SolverResult:
        """Run ``solve`` on centred and scaled features; return what it found in terms of X itself."""
        scaling = Scaling.learn(X, self.scale, centre=True)
        scaled, offset = scaling.split(X)
        result = solve(scaled, Y, offset=offset)
        coef, confidence = result.extra["coef"], result.extra["label_confidence"]
        n_trusted = np.count_nonzero(confidence, axis=1)
        extra = {
            "coef": coef.astype(X.dtype),
            # The intercept takes the centre in, so that no row need ever be shifted.
            "intercept": (result.extra["intercept"] - coef @ (scaling.offset * scaling.factor)).astype(
                X.dtype
            ),
            "scaling": Scaling(None, scaling.factor.astype(X.dtype)),
            "label_confidence": sp.csr_matrix(confidence) if is_sparse(Y) else confidence,
            "n_labels_predicted": max(1, round(float(n_trusted[n_trusted > 0].mean()))),
        }
        return replace(result, scores=result.scores.astype(X.dtype), extra=extra)


def candidate_mask(Y: Matrix) -> np.ndarray:
    """Return the candidates as a dense boolean matrix."""
    return dense(Y) > 0
