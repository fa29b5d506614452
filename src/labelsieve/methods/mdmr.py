"""MDMR: greedy selection by maximal dependency on the labels and minimal redundancy among the features."""

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
    """Select features that depend on the candidate labels and repeat one another little.

    One feature after the other is added to the selection ``S``, each time the one with the largest

    ``J(f) = sum_l I(f; y_l) - 1/|S| sum_{s in S} ( I(f; s) - sum_l I(f; y_l | s) )``,

    that is dependency minus mean redundancy, where what ``f`` tells about the labels beyond ``s`` is not
    redundant [1]_. The first feature has the largest dependency alone.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them. The greedy search
        goes as far as this.
    n_bins : int, default=3
        Bins for the values of a feature other than zero; zero is always a symbol of its own. The bins hold
        about equally many rows.
    verbose : int, default=0
        Log every selected feature if positive.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        How many features stand behind this one, plus one: ``n_features`` for the first. All 0 if no feature
        tells anything about any label.
    ranking_ : ndarray of shape (n_features,)
        Place of every feature, 1 is best: in the order of selection, then the features that were not
        selected by their last value of ``J``.
    criterion_ : ndarray of shape (n_features,)
        ``J`` in bits when the feature was selected, or when the search ended. It need not fall along the
        ranking, which is why it is not the score.

    Notes
    -----
    The features are binned and the information is computed from counts, in bits. Of features that are equally
    good, the first column is taken. Selecting more features never changes the order of those selected before.
    ``J`` is the form in which the criterion is usually quoted; PyIT-MLFS takes the interaction information of
    ``f``, ``s`` and every label as redundancy, and its sum over ``S`` instead of the mean.

    Cost: one pass over the data for every selected feature, for all other features and all labels together.

    References
    ----------
    .. [1] Y. Lin, Q. Hu, J. Liu, J. Duan, "Multi-label feature selection based on max-dependency and
       min-redundancy", Neurocomputing 168, 92-103, 2015.

    Examples
    --------
    The second feature repeats the first; the third is worth more next to it.

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
