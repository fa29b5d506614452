"""PML-LC: partial multi-label learning with label correlations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labelsieve._base import POSITIVE
from labelsieve._numerics.sparse import Matrix
from labelsieve.methods._partial_ranking.base import PartialRanker


@dataclass(eq=False, repr=False, kw_only=True)
class PMLLC(PartialRanker):
    """Select features by the weights of a label ranker that trusts candidates occurring together.

    Minimises, over linear scores ``F = X W + b`` and confidences P, ::

        |W|^2 + C1 sum_i (1 / gamma_i) sum_kl max(0, P_ik - P_il) max(0, 1 - F_ik + F_il)
        - C2 sum_i sum_kl S_kl P_ik P_il

    with ``0 <= P <= Y`` and ``sum_k P_ik >= 1``, Eq. 5 of [1]_. Row i has ``c_i`` candidates,
    ``gamma_i = c_i (q - c_i) + c_i^2 / 2``, and S holds the co-occurrence rates of the candidate labels.
    The score of a feature is the norm of its weights over all labels.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    C1 : float, default=1.0
        Weight of the ranking loss.
    C2 : float, default=1.0
        Weight of the label correlations; [1]_ tries 1 to 10. See Notes for what that does.
    scale : {"minmax", "standard"} or None, default="minmax"
        Divide every feature by its range or its standard deviation, so that weights are comparable.
    max_iter : int, default=50
        Budget of alternations between W and P.
    tol : float, default=1e-4
        Relative objective change that stops the alternation, and relative accuracy of every W.
    verbose : int, default=0
        Log every iteration if positive.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norm of each feature's weights, and the place of every feature, 1 is best.
    coef_ : ndarray of shape (n_labels, n_features)
        W transposed, for scaled features. Its columns sum to zero.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts for features that are scaled but not centred.
    scaling_ : Scaling
        Factor of each feature, 0 for a constant one; ``decision_function`` is
        ``scaling_.apply(X) @ coef_.T + intercept_``.
    label_confidence_ : {ndarray, CSR} of shape (n_samples, n_labels)
        P; sparse if Y was.
    n_labels_predicted_ : int
        Average number of labels with positive confidence, the number `predict` gives to a row.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        The objective above at the start and after each of the ``n_iter_`` iterations. It never rises.

    Notes
    -----
    With the published weights, C2 of at least 1, the correlations outweigh the loss so far that P = Y is optimal
    unless slacks are extreme. PML-LC is then a rank-SVM with all candidates relevant, whatever C2. Confidences
    begin to move at C2 of about 0.1 and below, which is outside the published range. S is not defined in [1]_:
    here ``S_kl`` is the share of the rows with candidate k that also have candidate l. P comes from trying all
    subsets of up to 12 candidates, which is exact for positive semidefinite S, and beyond by repeated
    linearisation of the last term, a heuristic.

    P starts at Y, which [1]_ leaves open, and slacks are clipped at 0 in the update of P as in the objective.
    Features are centred, implicitly if sparse, which changes only the intercepts. A ridge of 1e-6 on these, part of
    the recorded objective, makes the solution unique. Computations are in float64. W comes from L-BFGS on a
    rounded hinge whose duality gap is at most ``tol``; unless the data are large, Newton's method solves that
    problem to the end. A step that would raise the objective is not made.

    [1]_ predicts the average number of relevant labels, which candidates do not tell. ``n_labels_predicted_`` is
    our reading of it: the average number of labels that the rows trust, rounded, at least 1. Only differences of
    labels count: a row with no candidate or with every label a candidate teaches nothing about features.

    Cost: an L-BFGS for W in every alternation, each step of which takes two products of X with ``n_labels``
    columns and ``O(n_labels log n_labels)`` for a row; then a search among the subsets of the candidates of
    every row.

    References
    ----------
    .. [1] Xie and Huang, "Partial multi-label learning", AAAI 2018, pp. 4302-4309.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pml_lc import PMLLC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> Y = (X[:, :3] + 0.3 * rng.normal(size=(100, 3)) > 0).astype(int)
    >>> selector = PMLLC(n_features_to_select=3).fit(X, Y)
    >>> selector.get_support(indices=True)
    array([0, 1, 2])
    >>> selector.predict(X[:2]).sum(axis=1)
    array([2, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialRanker._parameter_constraints,
        "C2": POSITIVE,
    }

    C2: float = 1.0

    def _confidence_terms(self, X: Matrix, candidates: np.ndarray) -> tuple[None, np.ndarray]:
        S = cooccurrence_rates(candidates)
        return None, self.C2 * (S + S.T) / 2


def cooccurrence_rates(candidates: np.ndarray) -> np.ndarray:
    """Return the share of the rows with label k that have label l too; a zero row for a label that never occurs."""
    Y = candidates.astype(np.float64)
    together = Y.T @ Y
    count = np.diag(together)[:, None]
    return np.divide(together, count, out=np.zeros_like(together), where=count > 0)
