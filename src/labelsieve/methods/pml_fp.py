"""PML-FP: partial multi-label learning with feature prototypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labelsieve._base import POSITIVE
from labelsieve._numerics.norms import row_norms
from labelsieve._numerics.sparse import Matrix, is_sparse
from labelsieve.methods._partial_ranking.base import PartialRanker


@dataclass(eq=False, repr=False, kw_only=True)
class PMLFP(PartialRanker):
    """Rank features by the weights of a label ranker that trusts candidates near their prototype.

    Minimises over linear scores ``F = X W + b`` and confidences P::

        |W|^2 + C1 sum_i (1 / gamma_i) sum_kl max(0, P_ik - P_il) max(0, 1 - F_ik + F_il)
        + C3 sum_ik P_ik |x_i - q_k|

    subject to ``0 <= P <= Y`` and ``sum_k P_ik >= 1`` (Eq. 7 of [1]_). Row i has ``c_i`` of the q
    labels as candidates, and ``gamma_i = c_i (q - c_i) + c_i^2 / 2``. The prototype ``q_k`` is the
    mean of the rows with candidate k. The score of a feature is the norm of its weights over all
    labels.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    C1 : float, default=1.0
        Weight of the ranking loss.
    C3 : float, default=1.0
        Weight of the distances to the prototypes; [1]_ tries 1, 10 and 100. Rows trust fewer labels
        if it is larger. Distances depend on ``scale``.
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
    A row of P is uniform on some of its candidates and sums to one. It shows which labels are
    trusted, not how probable they are. A label that no row trusts has weights of about zero. The
    true labels are unknown, so prototypes are means over candidates, computed once as in [1]_.

    P is optimal. The linear program of a row looks for the subset of its candidates with the
    smallest ratio of a submodular cost to the size of the subset. With up to 12 candidates, all
    subsets are tried. With more, Wolfe's minimum-norm algorithm finds a certified optimum.

    Start, solver and prediction are the same as in :class:`PMLLC`.

    Cost: that of :class:`PMLLC`, plus the distances of the rows to the prototypes, once.

    References
    ----------
    .. [1] Xie and Huang, "Partial multi-label learning", AAAI 2018, pp. 4302-4309.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.pml_fp import PMLFP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> Y = (X[:, :3] + 0.3 * rng.normal(size=(100, 3)) > 0).astype(int)
    >>> selector = PMLFP(n_features_to_select=3).fit(X, Y)
    >>> selector.get_support(indices=True)
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PartialRanker._parameter_constraints,
        "C3": POSITIVE,
    }

    C3: float = 1.0

    def _confidence_terms(self, X: Matrix, candidates: np.ndarray) -> tuple[np.ndarray, None]:
        return self.C3 * prototype_distances(X, candidates), None


def prototype_distances(X: Matrix, candidates: np.ndarray) -> np.ndarray:
    """Return the distance of every row to the prototypes of its candidates, 0 for other labels."""
    # Column k is the prototype of label k, or zero if k is never a candidate.
    prototypes = X.T @ candidates.astype(np.float64) / np.maximum(candidates.sum(axis=0), 1)
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if is_sparse(X) else row_norms(X) ** 2
    squared = squares[:, None] - 2 * (X @ prototypes) + (prototypes**2).sum(axis=0)
    return np.sqrt(np.maximum(squared, 0)) * candidates
