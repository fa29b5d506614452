"""PML-FSLA: partial multi-label feature selection by latent space alignment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelsieve._base import (
    LOOP_CONSTRAINTS,
    RANDOM_CONSTRAINTS,
    SCALE_CONSTRAINTS,
    BaseSelector,
    Integral,
    Interval,
    Real,
    StrOptions,
    as_generator,
    nonnegative_features,
)
from labelsieve.numerics.label_order import uniform_per_label
from labelsieve.numerics.multiplicative import multiplicative_step
from labelsieve.numerics.norms import l21_weights, row_norms, smooth_l21_norm
from labelsieve.numerics.products import inner, right_product, squared_norm, transposed_product
from labelsieve.numerics.result import SolverResult, iterate
from labelsieve.numerics.simplex import project_rows_on_simplex
from labelsieve.numerics.sparse import dense, is_sparse
from labelsieve.numerics.typing import Matrix


class PMLFSLA(BaseSelector):
    """Select features by aligning a latent space of the features with one of the cleaned labels.

    Descends over ``Q, L, P, M, T >= 0``, where T is 0 outside the candidates and its rows sum to 1, [1]_::

        |X - LQ'|^2 + alpha |T - PM|^2 + beta |L - P|^2 + gamma |QM|_21
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        **LOOP_CONSTRAINTS,
        **RANDOM_CONSTRAINTS,
        **SCALE_CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"optics"}), None],
        "score": [StrOptions({"qm", "q"})],
        "update": [StrOptions({"bounded", "exact", "coded"})],
    }

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        alpha: float = 100.0,
        beta: float = 100.0,
        gamma: float = 1.0,
        n_components: int | str | None = None,
        score: str = "qm",
        update: str = "bounded",
        scale: str | None = "minmax",
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(n_features_to_select)
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.n_components = n_components
        self.score = score
        self.update = update
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        X = nonnegative_features(X, self.scale)
        if self.n_components is None:
            n_components = max(2, round(Y.shape[1] / 2))
        else:
            n_components = number_of_clusters(X) if self.n_components == "optics" else int(self.n_components)
        return solve_pml_fsla(
            X,
            Y,
            start=random_start(X, Y, n_components, as_generator(self.random_state)),
            alpha=self.alpha,
            beta=self.beta,
            gamma=self.gamma,
            score=self.score,
            update=self.update,
            max_iter=self.max_iter,
            tol=self.tol,
        )


class Factors(NamedTuple):
    """The unknowns besides T: X is approximated by L Q', T by P M, and L by P."""

    Q: np.ndarray
    L: np.ndarray
    P: np.ndarray
    M: np.ndarray


def random_start(X: Matrix, Y: Matrix, n_components: int, rng: np.random.Generator) -> Factors:
    """Uniform factors; the columns of M move with the columns of ``Y``."""
    Q = rng.random((X.shape[1], n_components))
    L = rng.random((X.shape[0], n_components))
    P = rng.random((X.shape[0], n_components))
    return Factors(Q, L, P, uniform_per_label(Y, n_components, rng))


def number_of_clusters(X: Matrix) -> int:
    """Count the clusters that OPTICS finds among the rows, with the authors' settings; at least 1."""
    from sklearn.cluster import OPTICS

    found = OPTICS(min_samples=min(5, X.shape[0]), xi=0.05, min_cluster_size=0.01).fit(X).labels_
    return max(1, len(np.unique(found[found >= 0])))


def solve_pml_fsla(
    X: Matrix,
    Y: Matrix,
    *,
    start: Factors,
    alpha: float,
    beta: float,
    gamma: float,
    score: str,
    update: str,
    max_iter: int,
    tol: float,
) -> SolverResult:
    """Descend the objective of PML-FSLA for ``X >= 0`` from positive factors."""
    # Dense, as T and P M are.
    candidates = dense(Y)
    problem = Problem(X, candidates != 0, squared_norm(X), alpha, beta, gamma)
    T = candidates if update == "coded" else _into_distributions(candidates)
    state = State(start, T, start.P @ start.M, start.Q @ start.M)
    value = problem.objective(state, right_product(X, start.Q.T))
    state, history, converged = iterate(
        partial(sweep, problem, update=update), state, value, max_iter=max_iter, tol=tol
    )
    coef = state.R.T.astype(X.dtype)
    ranked_by = coef.T if score == "qm" else state.factors.Q.astype(X.dtype)
    return SolverResult(
        scores=row_norms(ranked_by) ** 2,
        objective=history,
        converged=converged,
        extra={"coef": coef, "label_confidence": sp.csr_matrix(state.T) if is_sparse(Y) else state.T},
    )


class State(NamedTuple):
    """The factors, the cleaned labels T, the product P M that approximates them, and R = Q M."""

    factors: Factors
    T: np.ndarray
    PM: np.ndarray
    R: np.ndarray


@dataclass(frozen=True)
class Problem:
    """Data and weights. Only X may be single precision: the factors cannot afford it."""

    X: Matrix
    is_candidate: np.ndarray
    squared_norm_X: float
    alpha: float
    beta: float
    gamma: float

    def objective(self, state: State, XQ: np.ndarray) -> float:
        """J, the feature term from products of the size of the latent space."""
        Q, L, P, _ = state.factors
        features = self.squared_norm_X - 2 * inner(L, XQ) + inner(L.T @ L, Q.T @ Q)
        return (
            features
            + self.alpha * squared_norm(state.T - state.PM)
            + self.beta * squared_norm(L - P)
            + self.gamma * smooth_l21_norm(state.R)
        )


def sweep(problem: Problem, state: State, *, update: str) -> tuple[State, float]:
    """Update Q, L, T, P and M once."""
    alpha, beta, gamma = problem.alpha, problem.beta, problem.gamma
    (Q, L, P, M), coded = state.factors, update == "coded"
    # The separable bound that a step minimises has its minimum on [0, 1] where the step is cut.
    largest = 1.0 if update == "bounded" else np.inf

    weighted_R = l21_weights(state.R)[:, None] * state.R
    Q = multiplicative_step(
        Q, transposed_product(problem.X, L), Q @ (L.T @ L) + gamma * (weighted_R @ M.T)
    )
    XQ = right_product(problem.X, Q.T)
    L = np.minimum(multiplicative_step(L, XQ + beta * P, L @ (Q.T @ Q) + beta * L), largest)

    if coded:
        T = _into_distributions(problem.is_candidate * state.PM)
    else:
        T = project_rows_on_simplex(state.PM, problem.is_candidate)
    # Deviates from the gradient when coded: alpha is missing in the denominator of P and in M.
    P = np.minimum(
        multiplicative_step(
            P, alpha * (T @ M.T) + beta * L, (1.0 if coded else alpha) * (P @ (M @ M.T)) + beta * P
        ),
        largest,
    )
    if not coded:
        R = Q @ M
        weighted_R = l21_weights(R)[:, None] * R
    label_weight = 1.0 if coded else alpha
    M = multiplicative_step(
        M, label_weight * (P.T @ T), label_weight * (P.T @ P @ M) + gamma * (Q.T @ weighted_R)
    )
    state = State(Factors(Q, L, P, M), T, P @ M, Q @ M)
    return state, problem.objective(state, XQ)


def _into_distributions(M: np.ndarray) -> np.ndarray:
    """Divide every row by its sum, where it has one."""
    sums = M.sum(axis=1, keepdims=True)
    return np.divide(M, sums, out=np.zeros_like(M), where=sums > 0)
