"""fPML-style feature-induced partial multi-label learning by joint factorisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve

from labelsieve._base import (
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    BaseSelector,
    Integral,
    Interval,
    RealNotInt,
    StrOptions,
)
from labelsieve._numerics.candidates import confidence_on_candidates, label_order
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.products import inner, left_product, right_product, squared_norm
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.ridge import WeightedRidge, with_constant
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense
from labelsieve._prediction import LinearLabelPredictor

#: Ridge on factors without regularisation, which makes their linear systems solvable.
_RIDGE = 1e-8


@dataclass(eq=False, repr=False, kw_only=True)
class FPML(LinearLabelPredictor, BaseSelector):
    """Rank features by a joint factorisation of features and candidate labels (fPML-style).

    Minimises over the shared factor S, the label factor G, the feature factor F and the classifier W::

        |Y - SG|^2 + lambda1 |X - SF|^2 + lambda2 |SG - XW|^2 + lambda3 |W|^2

    The low-rank product SG holds the label confidences. Features are ranked by the norms of their rows of
    W. The equations of [1]_ are not public, so the objective follows its description.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    lambda1, lambda2 : float, default=1.0
        Weights of the feature factorisation and of the classifier's fit to the confidences.
    lambda3 : float, default=10.0
        Weight of the classifier's squared norm.
    n_components : int or float, default=0.6
        Rank of the factorisation: an integer, or a fraction of the number of labels, which is rounded.
        Capped by the numbers of rows, features and labels.
    reg_all : bool, default=False
        If True, ``lambda3`` also penalises the squared norms of S, G and F.
    fit_intercept : bool, default=True
        Add a constant feature, which is neither scored nor part of ``coef_``.
    scale : {"minmax", "standard"} or None, default="minmax"
        Scale every feature to [0, 1], or to mean 0 and variance 1. Sparse features are scaled but not
        shifted.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when the relative change of the objective in one iteration is at most this.
    verbose : int, default=0
        Log every iteration if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norms of the rows of W, and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Transpose of W, for scaled features.
    intercept_ : ndarray of shape (n_labels,)
        Coefficients of the constant feature, or zeros without an intercept.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        SG, clipped to [0, 1] and 0 for non-candidates; sparse if ``y`` was.
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations. It never increases.

    Notes
    -----
    The solver is exact alternating least squares, started at the truncated singular value decomposition
    of Y, so nothing is random. Without ``reg_all``, a ridge of 1e-8 on S, G and F, which is part of the
    objective, makes their systems solvable. The rank, start, stopping rule, intercept and ``predict``
    are conventions of this library.

    A rank equal to the number of labels removes no noise. With "standard" scaling, ``|X - SF|^2`` can
    dominate the labels. Decrease ``lambda1`` in that case.

    Cost: products of X with ``n_components`` and with ``n_labels`` columns per iteration, plus one
    Cholesky factorisation of size ``min(n_samples, n_features)``.

    References
    ----------
    .. [1] Yu, Chen, Domeniconi, Wang, Li, Zhang, Wu, "Feature-induced partial multi-label learning", ICDM
       2018, pp. 1398-1403.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.fpml import FPML
    >>> X = np.random.default_rng(0).random((60, 5))
    >>> Y = (X[:, [1, 3]] > 0.5).astype(int)
    >>> model = FPML(n_features_to_select=2, lambda3=0.1, n_components=2).fit(X, Y)
    >>> model.get_support(indices=True)
    array([1, 3])
    >>> bool((model.predict(X) == Y).mean() > 0.8)
    True
    """

    weights_score_labels = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "lambda1": NON_NEGATIVE,
        "lambda2": POSITIVE,
        "lambda3": POSITIVE,
        "n_components": [*COUNT, Interval(RealNotInt, 0, 1, closed="right")],
        "reg_all": ["boolean"],
        "fit_intercept": ["boolean"],
        "scale": [StrOptions({"minmax", "standard"}), None],
    }

    lambda1: float = 1.0
    lambda2: float = 1.0
    lambda3: float = 10.0
    n_components: int | float = 0.6
    reg_all: bool = False
    fit_intercept: bool = True
    scale: str | None = "minmax"
    max_iter: int = 200
    tol: float = 1e-6
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaling = Scaling.learn(X, self.scale)
        X = scaling.apply(X)
        n_features, n_labels = X.shape[1], Y.shape[1]
        # The dense Y is as large as SG, which every iteration forms.
        problem = FPMLProblem(
            self, with_constant(X) if self.fit_intercept else X, dense(Y).astype(X.dtype, copy=False)
        )
        rank = self.n_components
        if not isinstance(rank, Integral):
            rank = max(1, round(rank * n_labels))
        state = problem.start(min(rank, *X.shape, n_labels))
        state, history, converged = self._iterate(problem.round, state, problem.objective(state))
        W = state.W[:n_features]
        extra = {
            "coef": W.T,
            "intercept": state.W[n_features] if self.fit_intercept else np.zeros(n_labels, dtype=X.dtype),
            "label_confidence": confidence_on_candidates(state.SG, Y),
            "scaling": scaling,
        }
        return SolverResult(row_norms(W), history, converged, extra=extra)


class FPMLState(NamedTuple):
    """Unknowns, and products that several steps share."""

    S: np.ndarray
    G: np.ndarray
    F: np.ndarray
    W: np.ndarray
    SG: np.ndarray
    P: np.ndarray
    StS: np.ndarray
    StX: np.ndarray


@dataclass(frozen=True)
class FPMLProblem:
    """Data in the dtype of ``X``."""

    params: FPML
    X: Matrix
    Y: np.ndarray

    @cached_property
    def squared_norm_X(self) -> float:
        """Squared norm of X."""
        return squared_norm(self.X)

    @cached_property
    def ridge(self) -> float:
        """Weight of the squared norms of S, G and F."""
        return self.params.lambda3 if self.params.reg_all else _RIDGE

    @cached_property
    def solve_W(self) -> Callable[[np.ndarray], np.ndarray]:
        """Function that maps SG to the optimal W."""
        weights = np.full(self.X.shape[1], self.params.lambda3 / self.params.lambda2, dtype=self.X.dtype)
        return WeightedRidge(self.X).solver(weights)

    def start(self, n_components: int) -> FPMLState:
        """Start S and G at the largest singular vectors of Y, and solve for F and W."""
        # If singular values are equal, the vectors depend on the order of the labels, so fix that order.
        order = label_order(self.Y)
        ordered = self.Y[:, order]
        _, vectors = np.linalg.eigh(ordered.T @ ordered)
        G = np.empty((n_components, len(order)), dtype=self.X.dtype)
        G[:, order] = vectors[:, : -n_components - 1 : -1].T
        S = self.Y @ G.T
        F = self._solve_F(S.T @ S, left_product(S, self.X))
        return self._complete(S, G, F)

    def round(self, state: FPMLState) -> tuple[FPMLState, float]:
        """Solve for F, G, S and W in turn."""
        l1, l2, X, Y = self.params.lambda1, self.params.lambda2, self.X, self.Y
        F = self._solve_F(state.StS, state.StX)
        G = _solve((1 + l2) * state.StS, state.S.T @ (Y + l2 * state.P), self.ridge)
        target = Y @ G.T + l1 * right_product(X, F) + l2 * (state.P @ G.T)
        S = _solve((1 + l2) * (G @ G.T) + l1 * (F @ F.T), target.T, self.ridge).T
        state = self._complete(S, G, F)
        return state, self.objective(state)

    def _solve_F(self, StS: np.ndarray, StX: np.ndarray) -> np.ndarray:
        lambda1 = self.params.lambda1
        return _solve(lambda1 * StS, lambda1 * StX, self.ridge)

    def _complete(self, S: np.ndarray, G: np.ndarray, F: np.ndarray) -> FPMLState:
        """Solve for W and compute the shared products."""
        SG = S @ G
        W = self.solve_W(SG)
        return FPMLState(S, G, F, W, SG, self.X @ W, S.T @ S, left_product(S, self.X))

    def objective(self, state: FPMLState) -> float:
        """Compute the objective including the ridge terms."""
        factors = squared_norm(state.S) + squared_norm(state.G) + squared_norm(state.F)
        features = self.squared_norm_X - 2 * inner(state.StX, state.F) + inner(state.StS @ state.F, state.F)
        return (
            squared_norm(self.Y - state.SG)
            + self.params.lambda1 * features
            + self.params.lambda2 * squared_norm(state.SG - state.P)
            + self.params.lambda3 * squared_norm(state.W)
            + self.ridge * factors
        )


def _solve(A: np.ndarray, B: np.ndarray, ridge: float) -> np.ndarray:
    """Solve ``(A + ridge I) Z = B`` for a positive semidefinite A."""
    A = A.copy()
    # In single precision, the rounding error of a singular A exceeds the ridge.
    A[np.diag_indices_from(A)] += max(ridge, np.finfo(A.dtype).eps * np.trace(A))
    return solve(A, B, assume_a="pos")
