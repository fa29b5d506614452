"""PARTICLE as an estimator: the parameters of both methods, scaling, and what a fit leaves behind."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from labelsieve._base import (
    COUNT,
    LOOP_CONSTRAINTS,
    POSITIVE,
    RANDOM_CONSTRAINTS,
    BaseSelector,
    Integral,
    Interval,
    Real,
    StrOptions,
    as_generator,
)
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import dense, is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve._prediction import LabelPredictor
from labelsieve.methods._particle.pairwise_svm import PairwiseClassifiers
from labelsieve.methods._particle.propagation import CredibleLabels, Elicitation, propagate_over_neighbors


class BaseParticle(LabelPredictor, BaseSelector):
    """Base of the two methods; a subclass solves, scores labels and chooses among them."""

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        **LOOP_CONSTRAINTS,
        **RANDOM_CONSTRAINTS,
        "weights": [StrOptions({"mean", "stacked"})],
        "n_neighbors": COUNT,
        "alpha": [Interval(Real, 0, 1, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="right")],
        "C": POSITIVE,
        "exclude_self": ["boolean"],
        "fallback": [StrOptions({"candidate", "labels"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "shuffle": ["boolean"],
        "scale": [StrOptions({"minmax", "standard"}), None],
    }

    classifiers_: PairwiseClassifiers
    scaling_: Scaling

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        weights: str = "mean",
        n_neighbors: int = 10,
        alpha: float = 0.95,
        threshold: float = 0.9,
        C: float = 1.0,
        exclude_self: bool = True,
        fallback: str = "candidate",
        cv: int = 10,
        shuffle: bool = True,
        scale: str | None = "minmax",
        max_iter: int = 1000,
        tol: float = 1e-5,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(n_features_to_select)
        self.weights = weights
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.threshold = threshold
        self.C = C
        self.exclude_self = exclude_self
        self.fallback = fallback
        self.cv = cv
        self.shuffle = shuffle
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaling = Scaling.learn(X, self.scale)
        result = self._solve_scaled(scaling.apply(X), Y)
        return replace(result, extra={**result.extra, "scaling": scaling})

    @abstractmethod
    def _solve_scaled(self, X: Matrix, Y: Matrix) -> SolverResult:
        """Score scaled features."""

    def _scaled_rows(self, X: Matrix) -> Matrix:
        """Bring new rows to the form in which the classifiers learnt."""
        return as_double_rows(self.scaling_.apply(X))

    def _options(self, n_samples: int) -> dict[str, Any]:
        """Keywords of the solvers; the folds are contiguous, of shuffled rows if so asked."""
        rows = (
            as_generator(self.random_state).permutation(n_samples) if self.shuffle else np.arange(n_samples)
        )
        elicitation = Elicitation(
            n_neighbors=self.n_neighbors,
            alpha=self.alpha,
            threshold=self.threshold,
            exclude_self=self.exclude_self,
            fallback=self.fallback,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        folds = np.array_split(rows, min(self.cv, n_samples))
        return {"folds": folds, "elicitation": elicitation, "C": self.C, "weights": self.weights}


def as_double_rows(X: Matrix) -> Matrix:
    """Return ``X`` in float64 and, if sparse, by rows: distances and margins need both."""
    X = X.astype(np.float64, copy=False)
    return X.tocsr() if is_sparse(X) else X


def ridge_weights(X: Matrix, Y: np.ndarray, options: Elicitation) -> np.ndarray:
    """Regress the propagated confidences on the features, for data on which no classifier can be trained."""
    P = propagate_over_neighbors(X, Y, options).confidence
    ridge = Ridge(alpha=1.0, fit_intercept=False, solver="sparse_cg", tol=1e-10).fit(X, P)
    weights: np.ndarray = ridge.coef_.reshape(P.shape[1], X.shape[1])
    return weights


def particle_result(
    scores: np.ndarray,
    coef: np.ndarray,
    classifiers: PairwiseClassifiers,
    credible: CredibleLabels,
    *,
    like: tuple[Matrix, Matrix],
    extra: dict[str, np.ndarray] | None = None,
) -> SolverResult:
    """Collect what both methods return, in the dtype of X and the kind of Y that ``like`` holds."""
    X, Y = like
    kind = sp.csr_matrix if is_sparse(Y) else np.asarray
    return SolverResult(
        scores=scores.astype(X.dtype, copy=False),
        converged=credible.converged,
        extra={
            "coef": coef.astype(X.dtype, copy=False),
            "label_confidence": kind(credible.vote * dense(Y)),
            "credible_labels": kind(credible.labels),
            "classifiers": classifiers,
            "n_iter": credible.n_iter,
            **(extra or {}),
        },
    )
