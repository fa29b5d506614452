"""SCMFS: multi-label feature selection with a shared common mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from labelsieve._base import (
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    BaseSelector,
    StrOptions,
    as_generator,
    nonnegative_scaling,
)
from labelsieve._numerics.candidates import confidence_on_candidates, uniform_per_label
from labelsieve._numerics.norms import (
    into_unit_ball,
    l21_weights,
    multiplicative_step,
    row_norms,
    smooth_l21_norm,
)
from labelsieve._numerics.products import inner, left_product, right_product, squared_norm, transposed_product
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix
from labelsieve._prediction import LinearLabelPredictor

#: Projected gradient steps on the loadings in every sweep.
_LOADING_STEPS = 3


@dataclass(eq=False, repr=False, kw_only=True)
class SCMFS(LinearLabelPredictor, BaseSelector):
    """Select features that read off the few modes which features and labels have in common.

    Descends over ``W, V, Q, B >= 0``, [1]_::

        |XW - V|^2 + alpha |X - VQ|^2 + beta |Y - VB|^2 + gamma |W|_21

    V is the common mode: the one factor of both X and Y, which W predicts from the features. Features rank by
    the squared norms of their rows of W. By default no row of ``[sqrt(alpha) Q, sqrt(beta) B]`` is longer than
    1, a bound that is ours: without it the objective has no minimiser, see Notes.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    alpha : float, default=0.01
        Weight of the feature factorisation. The term grows with the number of features; a large weight makes
        V a factorisation of X alone.
    beta : float, default=1.0
        Weight of the label factorisation.
    gamma : float, default=1.0
        Row-sparsity weight.
    n_components : int or None, default=None
        Number of modes; None for half as many as labels, but from 2 to 50.
    update : {"bounded", "published"}, default="bounded"
        Bounded loadings, or the published multiplicative updates of the unbounded objective, which depend on
        when they are stopped, see Notes.
    scale : {"minmax"} or None, default="minmax"
        Bring every feature to [0, 1], or use ``X >= 0`` as it is.
    max_iter : int, default=1000
        Sweep budget.
    tol : float, default=1e-5
        Relative change of the objective in one sweep that stops the loop.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start.
    verbose : int, default=0
        Log every sweep.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of W, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        The transpose of W B, for scaled features: it predicts the labels through the modes.
    intercept_ : ndarray of shape (n_labels,)
        Zeros.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        V B, cut to [0, 1] and to the candidates; sparse if ``y`` was.
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` sweeps; it never rises.

    Notes
    -----
    Cost: a sweep takes four products of X and two of Y with k components, and Gram matrices of
    ``k^2 (n_samples + n_features + n_labels)``. Sparse X and Y stay sparse.

    The published objective has no minimiser. Dividing V and W by a growing number and multiplying Q and B by
    it leaves the two factorisations as they are and lowers the rest, so W shrinks towards 0 and the order of
    the features ends in rounding noise: the published method is its early stop. ``update="bounded"``, a
    deviation, closes the escape. W and V take the published steps; Q and B together take projected gradient
    steps. Both forms never raise the objective above, in which the norms of the rows of W are smoothed by
    2e-16 under the root.

    ``label_confidence_``, ``coef_``, ``decision_function`` and ``predict``, which calls a label relevant from
    a decision value of 0.5, are conventions of this library. Only fewer modes than labels can remove noise.
    Non-negative factors cannot say that a *low* value of a feature speaks for a label. The random numbers of B
    belong to the labels, so the order of the labels does not matter.

    References
    ----------
    .. [1] Hu, Li, Gao, Zhang, Hu, "Multi-label feature selection with shared common mode", Pattern
       Recognition 104, 107344, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.scmfs import SCMFS
    >>> X = np.random.default_rng(0).random((60, 5))
    >>> Y = (X[:, [1, 3]] > 0.5).astype(int)
    >>> SCMFS(n_features_to_select=2, random_state=0).fit(X, Y).get_support(indices=True)
    array([1, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "scale": [StrOptions({"minmax"}), None],
        "alpha": NON_NEGATIVE,
        "beta": POSITIVE,
        "gamma": NON_NEGATIVE,
        "n_components": [*COUNT, None],
        "update": [StrOptions({"bounded", "published"})],
    }

    alpha: float = 0.01
    beta: float = 1.0
    gamma: float = 1.0
    n_components: int | None = None
    update: str = "bounded"
    scale: str | None = "minmax"
    max_iter: int = 1000
    tol: float = 1e-5
    random_state: Any = None
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        scaling = nonnegative_scaling(X, self.scale)
        X = scaling.apply(X)
        n_components = self.n_components or min(max(2, round(Y.shape[1] / 2)), 50)
        result = self._descend(X, Y, random_start(X, Y, n_components, as_generator(self.random_state)))
        return replace(result, extra={**result.extra, "scaling": scaling})

    def _descend(self, X: Matrix, Y: Matrix, start: Sequence[np.ndarray]) -> SolverResult:
        """Descend the objective for ``X >= 0`` from positive W, V, Q and B."""
        problem = SCMFSProblem(self, X, Y)
        W, V, Q, B = start
        Z = np.hstack([np.sqrt(self.alpha) * Q, np.sqrt(self.beta) * B])
        Z = into_unit_ball(Z) if self.update == "bounded" else Z
        state = problem.state(W, V, Z)
        value = problem.objective(state, problem.explained(state.V))
        state, history, converged = self._iterate(problem.sweep, state, value)
        W = state.W.astype(X.dtype, copy=False)
        B = state.Z[:, X.shape[1] :] / np.sqrt(self.beta)
        extra = {
            "coef": (state.W @ B).T.astype(X.dtype, copy=False),
            "intercept": np.zeros(Y.shape[1], dtype=X.dtype),
            "label_confidence": confidence_on_candidates(state.V @ B, Y),
        }
        return SolverResult(row_norms(W) ** 2, history, converged, extra=extra)


def random_start(X: Matrix, Y: Matrix, n_components: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Uniform W, V, Q and B; the columns of B move with the columns of ``Y``."""
    W = rng.random((X.shape[1], n_components))
    V = rng.random((X.shape[0], n_components))
    Q = rng.random((n_components, X.shape[1]))
    return W, V, Q, uniform_per_label(Y, n_components, rng)


class SCMFSState(NamedTuple):
    """W, V, the weighted loadings Z = [sqrt(alpha) Q, sqrt(beta) B], and P = X W."""

    W: np.ndarray
    V: np.ndarray
    Z: np.ndarray
    P: np.ndarray


@dataclass(frozen=True)
class SCMFSProblem:
    """Data; both factorisations are one, of T = [sqrt(alpha) X, sqrt(beta) Y], never formed.

    Only X may be single precision: the factors cannot afford it.
    """

    params: SCMFS
    X: Matrix
    Y: Matrix

    @cached_property
    def squared_norm_T(self) -> float:
        """|T|^2."""
        return self.params.alpha * squared_norm(self.X) + self.params.beta * squared_norm(self.Y)

    def state(self, W: np.ndarray, V: np.ndarray, Z: np.ndarray) -> SCMFSState:
        """Complete the factors by X W."""
        return SCMFSState(W, V, Z, right_product(self.X, W.T))

    def explained(self, V: np.ndarray) -> np.ndarray:
        """V'T."""
        features = np.sqrt(self.params.alpha) * transposed_product(self.X, V).T
        return np.hstack([features, np.sqrt(self.params.beta) * left_product(V, self.Y)])

    def target(self, Z: np.ndarray) -> np.ndarray:
        """T Z'."""
        n_features = self.X.shape[1]
        target: np.ndarray = np.sqrt(self.params.beta) * right_product(self.Y, Z[:, n_features:])
        target += np.sqrt(self.params.alpha) * right_product(self.X, Z[:, :n_features])
        return target

    def objective(self, state: SCMFSState, VtT: np.ndarray) -> float:
        """J, with ``VtT`` from `explained`."""
        W, V, Z, P = state
        factorisations = self.squared_norm_T - 2 * inner(VtT, Z) + inner(V.T @ V, Z @ Z.T)
        return squared_norm(P - V) + factorisations + self.params.gamma * smooth_l21_norm(W)

    def sweep(self, state: SCMFSState) -> tuple[SCMFSState, float]:
        """Update W, V and the loadings once."""
        W, V, Z, P = state
        sparsity = (self.params.gamma * l21_weights(W))[:, None] * W
        W = multiplicative_step(W, transposed_product(self.X, V), transposed_product(self.X, P) + sparsity)
        P = right_product(self.X, W.T)
        V = multiplicative_step(V, P + self.target(Z), V + V @ (Z @ Z.T))
        VtT = self.explained(V)
        if self.params.update == "bounded":
            Z = bounded_loadings(V.T @ V, VtT, Z)
        else:
            Z = multiplicative_step(Z, VtT.copy(), V.T @ V @ Z)
        state = SCMFSState(W, V, Z, P)
        return state, self.objective(state, VtT)


def bounded_loadings(VtV: np.ndarray, VtT: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Steps towards the non-negative Z with rows no longer than 1 that minimises |T - VZ|^2."""
    curvature = np.linalg.eigvalsh(VtV)[-1]
    if curvature > 0:
        for _ in range(_LOADING_STEPS):
            Z = into_unit_ball(np.maximum(Z - (VtV @ Z - VtT) / curvature, 0))
    return Z
