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
    """Select features by the weights of a label ranker that trusts candidates with a near prototype.

    Minimises, over linear scores ``F = X W + b`` and confidences P, ::

        |W|^2 + C1 sum_i (1 / gamma_i) sum_kl max(0, P_ik - P_il) max(0, 1 - F_ik + F_il)
        + C3 sum_ik P_ik |x_i - q_k|

    with ``0 <= P <= Y`` and ``sum_k P_ik >= 1``, Eq. 7 of [1]_. Row i has ``c_i`` candidates,
    ``gamma_i = c_i (q - c_i) + c_i^2 / 2``, and the prototype ``q_k`` is the mean of the rows with candidate
    k. The score of a feature is the norm of its weights over all labels.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.
    C1 : float, default=1.0
        Weight of the ranking loss.
    C3 : float, default=1.0
        Weight of the distances to the prototypes; [1]_ tries 1, 10 and 100. The larger, the fewer labels a
        row trusts. Distances depend on ``scale``.
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
    A row of P is uniform on some of its candidates and sums to one: it says which labels to trust, not with what
    probability each holds. A label that no row trusts has weights of about zero. The true labels are unknown, so
    prototypes are means over candidates, computed once as in [1]_. P is optimal: the linear program of a row asks
    for the subset T of its candidates with the smallest ratio of a submodular cost to its size, found by trying all
    subsets of up to 12 candidates, and beyond by Wolfe's minimum-norm algorithm with a certificate.

    Start, solver and prediction are those of :class:`PMLLC`.

    Cost: that of :class:`PMLLC`, and once the distances of the rows to the prototypes.

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
    """Return the distance of every row to the mean row of each of its candidates; 0 for the other labels."""
    # Column k of the prototypes is the mean for label k; a label that is never a candidate has none.
    prototypes = X.T @ candidates.astype(np.float64) / np.maximum(candidates.sum(axis=0), 1)
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() if is_sparse(X) else row_norms(X) ** 2
    squared = squares[:, None] - 2 * (X @ prototypes) + (prototypes**2).sum(axis=0)
    return np.sqrt(np.maximum(squared, 0)) * candidates
