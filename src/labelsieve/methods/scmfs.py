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

#: Projected gradient steps for the loadings per sweep.
_LOADING_STEPS = 3


@dataclass(eq=False, repr=False, kw_only=True)
class SCMFS(LinearLabelPredictor, BaseSelector):
    """Rank features by a regression on a few factors that features and labels share.

    Minimises over ``W, V, Q, B >= 0`` [1]_::

        |XW - V|^2 + alpha |X - VQ|^2 + beta |Y - VB|^2 + gamma |W|_21

    V is the common mode of [1]_, a factor shared by X and Y that W predicts from the features.
    Features are ranked by the squared norms of their rows of W. By default, the rows of
    ``[sqrt(alpha) Q, sqrt(beta) B]`` have norms of at most 1. This bound is ours: without it the
    objective has no minimiser, see Notes.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    alpha : float, default=0.01
        Weight of the feature factorisation. The term grows with the number of features. With a
        large weight, V factorises X only.
    beta : float, default=1.0
        Weight of the label factorisation.
    gamma : float, default=1.0
        Row-sparsity weight.
    n_components : int or None, default=None
        Number of factors. None is half the number of labels, but at least 2 and at most 50.
    update : {"bounded", "published"}, default="bounded"
        "bounded" bounds the loadings Q and B. "published" runs the multiplicative updates of [1]_
        on the unbounded objective. Their result depends on when they stop, see Notes.
    scale : {"minmax"} or None, default="minmax"
        Scale every feature to [0, 1], or use ``X >= 0`` as it is.
    max_iter : int, default=1000
        Maximum number of sweeps.
    tol : float, default=1e-5
        Stop when the relative change of the objective in one sweep is at most this.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random start.
    verbose : int, default=0
        Log every sweep if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Squared norms of the rows of W, and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        Transpose of W B, for scaled features, which predicts the labels from the shared factors.
    intercept_ : ndarray of shape (n_labels,)
        Zeros.
    label_confidence_ : ndarray or sparse matrix of shape (n_samples, n_labels)
        V B, clipped to [0, 1] and 0 for non-candidates; sparse if ``y`` was.
    scaling_ : Scaling
        Offset (or None) and factor of every feature, learned in ``fit``.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` sweeps. It never increases.

    Notes
    -----
    Cost: per sweep, four products of X and two of Y with k components, plus Gram matrices that take
    ``k^2 (n_samples + n_features + n_labels)``. Sparse X and Y stay sparse.

    The published objective has no minimiser. Dividing V and W by a growing number and multiplying Q
    and B by it does not change the two factorisations but lowers the other terms. W shrinks towards
    0, and the ranking ends up in rounding noise, so the published method depends on stopping early.
    The default ``update="bounded"`` deviates from [1]_ to prevent this. W and V take the published
    steps, while Q and B together take projected gradient steps. Neither form ever increases the
    objective above, in which the norms of the rows of W are smoothed by 2e-16 under the root.

    ``label_confidence_``, ``coef_``, ``decision_function`` and ``predict``, which returns labels
    with a decision value of at least 0.5, are conventions of this library. Noise can be removed
    only if there are fewer factors than labels. Non-negative factors cannot represent that a *low*
    value of a feature indicates a label. The random numbers of B are tied to the labels, so the
    order of the labels does not matter.

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
        """Minimise the objective for ``X >= 0``, starting at positive W, V, Q and B."""
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
    """Draw uniform W, V, Q and B. Permuting the labels permutes the columns of B."""
    W = rng.random((X.shape[1], n_components))
    V = rng.random((X.shape[0], n_components))
    Q = rng.random((n_components, X.shape[1]))
    return W, V, Q, uniform_per_label(Y, n_components, rng)


class SCMFSState(NamedTuple):
    """Factors W and V, weighted loadings Z = [sqrt(alpha) Q, sqrt(beta) B], and P = X W."""

    W: np.ndarray
    V: np.ndarray
    Z: np.ndarray
    P: np.ndarray


@dataclass(frozen=True)
class SCMFSProblem:
    """Parameters and data. X may be single precision; the factors must be double.

    Both factorisations are treated as one of T = [sqrt(alpha) X, sqrt(beta) Y], never formed.
    """

    params: SCMFS
    X: Matrix
    Y: Matrix

    @cached_property
    def squared_norm_T(self) -> float:
        """|T|^2."""
        return self.params.alpha * squared_norm(self.X) + self.params.beta * squared_norm(self.Y)

    def state(self, W: np.ndarray, V: np.ndarray, Z: np.ndarray) -> SCMFSState:
        """Return the state with these factors."""
        return SCMFSState(W, V, Z, right_product(self.X, W.T))

    def explained(self, V: np.ndarray) -> np.ndarray:
        """Return V'T."""
        features = np.sqrt(self.params.alpha) * transposed_product(self.X, V).T
        return np.hstack([features, np.sqrt(self.params.beta) * left_product(V, self.Y)])

    def target(self, Z: np.ndarray) -> np.ndarray:
        """Return T Z'."""
        n_features = self.X.shape[1]
        target: np.ndarray = np.sqrt(self.params.beta) * right_product(self.Y, Z[:, n_features:])
        target += np.sqrt(self.params.alpha) * right_product(self.X, Z[:, :n_features])
        return target

    def objective(self, state: SCMFSState, VtT: np.ndarray) -> float:
        """Return the objective, with ``VtT`` from `explained`."""
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
    """Step towards the minimiser of |T - VZ|^2 over ``Z >= 0`` with rows in the unit ball."""
    curvature = np.linalg.eigvalsh(VtV)[-1]
    if curvature > 0:
        for _ in range(_LOADING_STEPS):
            Z = into_unit_ball(np.maximum(Z - (VtV @ Z - VtT) / curvature, 0))
    return Z
