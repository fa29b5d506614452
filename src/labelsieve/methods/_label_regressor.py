"""Base class of PML-LD, PML-LFC and PML3er, which regress label confidences on scaled features."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from labelsieve._base import BaseSelector, StrOptions
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.ridge import Shifted
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve._prediction import LinearLabelPredictor


class LabelRegressor(LinearLabelPredictor, BaseSelector):
    """Selector based on a linear regression of confidences in [0, 1]. Subclasses define ``_regress``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "scale": [StrOptions({"minmax", "standard"}), None],
    }

    scale: str | None
    threshold_: float

    def _choose_labels(self, scores: np.ndarray) -> np.ndarray:
        return scores >= self.threshold_

    @abstractmethod
    def _regress(self, X: Shifted, Y: np.ndarray) -> SolverResult:
        """Solve for scaled float64 features and dense labels."""

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        rows = X.tocsr() if is_sparse(X) else X
        rows = rows.astype(np.float64, copy=False)
        # Standardising also centres sparse features, implicitly.
        scaling = Scaling.learn(rows, self.scale, centre=self.scale == "standard")
        result = self._regress(Shifted(*scaling.split(rows)), dense(Y))
        confidence = result.extra["label_confidence"]
        extra = {
            # Halfway between zero and the mean confidence of a candidate.
            "threshold": float(confidence.sum() / Y.sum()) / 2,
            **result.extra,
            "coef": result.extra["coef"].astype(X.dtype),
            "intercept": result.extra["intercept"].astype(X.dtype),
            "label_confidence": sp.csr_matrix(confidence) if is_sparse(Y) else confidence,
            "scaling": scaling,
        }
        return replace(result, scores=result.scores.astype(X.dtype), extra=extra)
