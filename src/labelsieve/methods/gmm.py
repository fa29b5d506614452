"""GMM: geometric mean, over the labels, of the mutual information between a feature and a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labelsieve._base import BlockSelector, Integral, Interval, RowProblem
from labelsieve._numerics.information import count_in_rows, information_of_counts
from labelsieve._numerics.result import SolverResult


@dataclass(eq=False, repr=False, kw_only=True)
class GMM(BlockSelector):
    """Rank features by the geometric mean of their mutual information with the candidate labels.

    Geometric mean maximisation [1]_ prefers features that are somewhat informative about all labels to
    features that are very informative about a few. The score of feature ``x`` is
    ``(prod_l I(b(x); y_l))^(1/q)`` over the ``q`` labels that vary, where ``b`` bins the feature.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    n_bins : int, default=3
        Number of quantile bins for the non-zero values of a feature. Zero is always a separate symbol.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Shifted geometric mean of the mutual information in bits, and the rank of every feature (1 is
        best).

    Notes
    -----
    Two conventions prevent a single zero from dominating the score. First, a label that is a candidate of
    every row or of none is ignored, because no feature is informative about it. Second, the mean is the
    shifted geometric mean ``exp(mean_l log(I_l + s)) - s`` with ``s = 1 / n_samples^2`` bits. The shift is
    far below the estimation error, which is of order ``1 / n_samples``, so typical scores do not change. A
    feature without information about one label loses some score instead of all of it, and a feature
    without any information scores exactly 0.

    Cost: counting the joint occurrences of all feature symbols and labels once.

    References
    ----------
    .. [1] J. Gonzalez-Lopez, S. Ventura, A. Cano, "Distributed multi-label feature selection using
       individual mutual information measures", Knowledge-Based Systems 188, 105052, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.gmm import GMM
    >>> X = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
    >>> Y = np.array([[0, 0], [0, 0], [1, 0], [1, 1]])
    >>> GMM(n_features_to_select=1).fit(X, Y).scores_.round(2)
    array([0.57, 0.09])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BlockSelector._parameter_constraints,
        "n_bins": [Interval(Integral, 2, None, closed="left")],
    }

    n_bins: int = 3

    def _solve_rows(self, problem: RowProblem) -> SolverResult:
        n_samples = problem.shape[0]
        shift = 1.0 / n_samples**2
        log_sum, n_varying = np.zeros(problem.n_features), 0
        for counts, offsets in count_in_rows(problem.rows, problem.n_features, problem.n_labels, self.n_bins):
            n_varying += int(((counts.of_labels > 0) & (counts.of_labels < n_samples)).sum())
            # Labels that do not vary add nothing, because all their information values are 0.
            for information in information_of_counts(counts, offsets):
                log_sum += np.log1p(information / shift).sum(axis=1)
        scores = shift * np.expm1(log_sum / max(1, n_varying))
        return SolverResult(scores=scores.astype(problem.dtype))
