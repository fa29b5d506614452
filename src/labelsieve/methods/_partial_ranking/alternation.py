"""Alternate between a rank-SVM and the confidences it ranks by: the loop of PML-LC and PML-FP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.result import SolverResult, iterate
from labelsieve._numerics.typing import Matrix
from labelsieve.methods._partial_ranking.confidence import update_confidence
from labelsieve.methods._partial_ranking.rank_svm import RankSVM


class _State(NamedTuple):
    M: np.ndarray
    trusted: np.ndarray
    level: np.ndarray
    value: float
    is_fixed_point: bool


def rank_partial_labels(
    X: Matrix,
    candidates: np.ndarray,
    *,
    C1: float,
    max_iter: int,
    tol: float,
    cost: np.ndarray | None = None,
    affinity: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    bias_ridge: float = 1e-6,
) -> SolverResult:
    """Minimise over W, b and the confidences P, from ``P = candidates`` and ``W = 0``.

    The objective, with ``F = (X - offset) W + b``, ``c_i`` candidates in row i and
    ``gamma_i = c_i (q - c_i) + c_i^2 / 2``, is ::

        |W|^2 + bias_ridge |b|^2 + C1 sum_i (1 / gamma_i) sum_kl max(0, P_ik - P_il) max(0, 1 - F_ik + F_il)
        + sum(cost * P) - sum_i P_i affinity P_i'

    subject to ``0 <= P <= candidates`` and ``sum_k P_ik >= 1`` in rows with candidates. Each half step
    accepts only what does not raise it, so the history, taken with the exact hinge, never rises.

    Parameters
    ----------
    X : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        Features in float64.
    candidates : bool ndarray of shape (n_samples, n_labels)
        Candidate labels.
    C1 : float
        Weight of the ranking loss.
    max_iter, tol : int, float
        Budget of alternations; relative change that stops them and relative accuracy of each rank-SVM.
    cost, affinity : ndarray or None
        See `update_confidence`.
    offset, bias_ridge : ndarray or None, float
        See `RankSVM`.

    Returns
    -------
    SolverResult
        With ``coef``, ``intercept`` (that of F above) and ``label_confidence`` in ``extra``.
    """
    n_labels = candidates.shape[1]
    n_candidates = candidates.sum(axis=1)
    gamma = n_candidates * (n_labels - n_candidates) + n_candidates**2 / 2
    # A row without candidates has no pairs and gamma 0: it takes no part.
    weight = np.divide(C1, gamma, out=np.zeros(len(gamma)), where=n_candidates > 0)
    svm = RankSVM(X, n_labels, offset=offset, bias_ridge=bias_ridge)

    def objective(M: np.ndarray, trusted: np.ndarray, level: np.ndarray) -> float:
        value = svm.objective(M, trusted, weight * level)
        if cost is not None:
            value += float((cost * trusted).sum(axis=1) @ level)
        if affinity is not None:
            value -= float(((trusted @ affinity) * trusted).sum(axis=1) @ level**2)
        return value

    def step(state: _State) -> tuple[_State, float]:
        if state.is_fixed_point:
            return state, state.value
        M = svm.solve(state.trusted, weight * state.level, state.M, tol=tol)
        trusted, level = update_confidence(
            svm.scores(M), candidates, weight, state.trusted, state.level, cost=cost, affinity=affinity
        )
        unchanged = np.array_equal(trusted, state.trusted) and np.array_equal(level, state.level)
        value = objective(M, trusted, level)
        return _State(M, trusted, level, value, unchanged), value

    M, level = np.zeros(svm.shape), (n_candidates > 0).astype(np.float64)
    value = objective(M, candidates, level)
    # The affinity can outweigh the loss by far; a second step must confirm that the confidences stand still.
    start = _State(M, candidates, level, value, False)
    state, history, converged = iterate(step, start, value, max_iter=max_iter, tol=tol, min_iter=2)
    return SolverResult(
        scores=row_norms(state.M[:-1]),
        objective=history,
        converged=converged,
        extra={
            "coef": state.M[:-1].T,
            "intercept": state.M[-1],
            "label_confidence": state.trusted * state.level[:, None],
        },
    )
