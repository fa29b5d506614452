"""MDMR: greedy selection by maximal dependency on the labels and minimal redundancy of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labelsieve._base import BaseSelector, Integral, Interval
from labelsieve._numerics.discretize import bin_features
from labelsieve._numerics.information import (
    conditional_label_information,
    feature_information,
    label_information,
    select_greedily,
)
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix


@dataclass(eq=False, repr=False, kw_only=True)
class MDMR(BaseSelector):
    """Select features that depend on the candidate labels and are not redundant.

    Features are added to the selection ``S`` one by one. Each step adds the feature with the largest

    ``J(f) = sum_l I(f; y_l) - 1/|S| sum_{s in S} ( I(f; s) - sum_l I(f; y_l | s) )``,

    the dependency minus the mean redundancy [1]_. Information of ``f`` about the labels that ``s`` does
    not have is not redundant. The first feature is the one with the largest dependency.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them. The greedy
        search stops at this number.
    n_bins : int, default=3
        Number of quantile bins for the non-zero values of a feature. Zero is always a separate symbol.
    verbose : int, default=0
        Log every selected feature if nonzero.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        ``n_features - rank + 1``, or all 0 if no feature is informative about any label.
    ranking_ : ndarray of shape (n_features,)
        Rank of every feature (1 is best). Selected features are ranked in the order of selection, the
        others by their last value of ``J``.
    criterion_ : ndarray of shape (n_features,)
        ``J`` in bits when the feature was selected, or at the end of the search. It can increase along the
        ranking, so it is not used as the score.

    Notes
    -----
    Features are binned, and the information is computed from counts. Ties go to the first column.
    Selecting more features never changes the order of those selected before. ``J`` is the usual form of
    the criterion. PyIT-MLFS instead defines redundancy as the interaction information of ``f``, ``s`` and
    every label, summed over ``S`` instead of averaged.

    Cost: one pass over the data per selected feature, for all other features and labels together.

    References
    ----------
    .. [1] Y. Lin, Q. Hu, J. Liu, J. Duan, "Multi-label feature selection based on max-dependency and
       min-redundancy", Neurocomputing 168, 92-103, 2015.

    Examples
    --------
    The second feature is a copy of the first, so the third is selected next.

    >>> import numpy as np
    >>> from labelsieve.methods.mdmr import MDMR
    >>> X = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    >>> Y = np.array([[0, 0], [0, 0], [1, 0], [1, 1]])
    >>> MDMR(n_features_to_select=2).fit(X, Y).ranking_
    array([1, 3, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "n_bins": [Interval(Integral, 2, None, closed="left")],
    }

    ranking_depends_on_size: ClassVar[bool] = True

    n_bins: int = 3
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        Y = Y.astype(np.int32)
        binned = bin_features(X, self.n_bins)
        dependency = sum(information.sum(axis=1) for information in label_information(binned, Y))

        def redundancy_with(feature: int) -> np.ndarray:
            return np.asarray(
                feature_information(binned, feature) - conditional_label_information(binned, Y, feature)
            )

        return select_greedily(dependency, redundancy_with, self._n_selected(X.shape[1]), X.dtype)
