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
    """Rank features by the weights of a label ranker that trusts co-occurring candidates.

    Minimises over linear scores ``F = X W + b`` and confidences P::

        |W|^2 + C1 sum_i (1 / gamma_i) sum_kl max(0, P_ik - P_il) max(0, 1 - F_ik + F_il)
        - C2 sum_i sum_kl S_kl P_ik P_il

    subject to ``0 <= P <= Y`` and ``sum_k P_ik >= 1`` (Eq. 5 of [1]_). Row i has ``c_i`` of the q
    labels as candidates, and ``gamma_i = c_i (q - c_i) + c_i^2 / 2``. S holds the co-occurrence
    rates of the candidate labels. The score of a feature is the norm of its weights over all
    labels.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    C1 : float, default=1.0
        Weight of the ranking loss.
    C2 : float, default=1.0
        Weight of the label correlations; [1]_ tries 1 to 10. See Notes for the effect.
    scale : {"minmax", "standard"} or None, default="minmax"
        Divide every feature by its range or standard deviation, which makes weights comparable.
    max_iter : int, default=50
        Maximum number of alternations between W and P.
    tol : float, default=1e-4
        Stop when the relative change of the objective is at most this. Also the relative accuracy
        of each W.
    verbose : int, default=0
        Log every iteration if nonzero.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Norm of each feature's weights, and the rank of every feature (1 is best).
    coef_ : ndarray of shape (n_labels, n_features)
        W transposed, for scaled features. Its columns sum to zero.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts for features that are scaled but not centred.
    scaling_ : Scaling
        Factor of every feature, 0 for constant features; ``decision_function`` is
        ``scaling_.apply(X) @ coef_.T + intercept_``.
    label_confidence_ : {ndarray, CSR} of shape (n_samples, n_labels)
        P; sparse if Y was.
    n_labels_predicted_ : int
        Mean number of labels with positive confidence. `predict` returns this many labels per row.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective at the start and after each of the ``n_iter_`` iterations. It never increases.

    Notes
    -----
    With the published weights (C2 of at least 1), the correlations dominate the loss, and P = Y is
    optimal unless slacks are extreme. PML-LC is then a rank-SVM in which all candidates are
    relevant, regardless of C2. Confidences start to differ from Y at C2 of about 0.1 and below,
    outside the published range.

    [1]_ does not define S. Here ``S_kl`` is the fraction of the rows with candidate k that also
    have candidate l. With up to 12 candidates, P is found by trying all subsets, which is exact if
    S is positive semidefinite. With more, the last term is linearised repeatedly, a heuristic.

    P starts at Y, which [1]_ leaves open. Slacks are clipped at 0 in the update of P, as in the
    objective. Features are centred, implicitly if sparse, which changes only the intercepts. A
    ridge of 1e-6 on the intercepts makes the solution unique and is part of the recorded objective.
    W comes from L-BFGS on a smoothed hinge with a duality gap of at most ``tol``. Unless the
    dataset is large, Newton's method then solves the smoothed problem accurately. Steps that would
    increase the objective are rejected. All computations use float64.

    [1]_ predicts the mean number of relevant labels, which is unknown if only candidates are given.
    ``n_labels_predicted_`` is our interpretation: the mean number of labels that a row trusts,
    rounded, at least 1. Only differences between labels count, so a row contributes nothing if it
    has no candidates or if every label is a candidate.

    Cost: per alternation, an L-BFGS run for W, followed by a search over the subsets of the
    candidates of each row. Each L-BFGS step takes two products of X with ``n_labels`` columns and
    ``O(n_labels log n_labels)`` per row.

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
    """Return the fraction of the rows with label k that also have label l, 0 if k never occurs."""
    Y = candidates.astype(np.float64)
    together = Y.T @ Y
    count = np.diag(together)[:, None]
    return np.divide(together, count, out=np.zeros_like(together), where=count > 0)
