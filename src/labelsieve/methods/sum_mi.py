"""SumMI: mutual information of binned features with the labels, summed over the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labelsieve._base import BlockSelector, Integral, Interval, RowProblem
from labelsieve._numerics.information import count_in_rows, information_of_counts
from labelsieve._numerics.result import SolverResult


@dataclass(eq=False, repr=False, kw_only=True)
class SumMI(BlockSelector):
    """Rank features by their mutual information with the candidate labels, summed over the labels.

    The score of feature ``x`` is ``sum_l I(b(x); y_l)`` in bits, where ``b`` bins the feature.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.
    n_bins : int, default=3
        Number of quantile bins for the non-zero values of a feature. Zero is always a separate
        symbol. More bins capture finer dependence, but overestimate the information of an
        uninformative feature by about ``0.72 (n_symbols - 1) / n_samples`` bits per label. On
        synthetic data with a few hundred rows, 2 and 3 bins found the most informative features.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Summed mutual information in bits, and the rank of every feature (1 is best).

    Notes
    -----
    Sparse and dense features have the same scores. Bins are quantiles, so the scores do not change
    if an increasing function is applied to the non-zero values of a feature.

    Cost: counting the joint occurrences of all feature symbols and labels once.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.sum_mi import SumMI
    >>> X = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
    >>> Y = np.array([[0, 0], [0, 0], [1, 0], [1, 1]])
    >>> SumMI(n_features_to_select=1).fit(X, Y).scores_.round(2)
    array([1.31, 0.31])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BlockSelector._parameter_constraints,
        "n_bins": [Interval(Integral, 2, None, closed="left")],
    }

    n_bins: int = 3

    def _solve_rows(self, problem: RowProblem) -> SolverResult:
        scores = np.zeros(problem.n_features)
        for counts, offsets in count_in_rows(problem.rows, problem.n_features, problem.n_labels, self.n_bins):
            for information in information_of_counts(counts, offsets):
                scores += information.sum(axis=1)
        return SolverResult(scores=scores.astype(problem.dtype))
