"""LSMFS-style greedy selection by relevance, label supplementation and redundancy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from labelsieve._base import BaseSelector, Integral, Interval, StrOptions
from labelsieve._numerics.discretize import BinnedFeatures, bin_features
from labelsieve._numerics.information import (
    cooccurrence,
    feature_information,
    label_information,
    plogp,
    select_greedily,
)
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix


@dataclass(eq=False, repr=False, kw_only=True)
class LSMFS(BaseSelector):
    """Select features that are more informative about a label given another label (LSMFS-style).

    Features are added to the selection ``S`` one by one. Each step adds the feature with the largest ::

        J(f) = Rel(f) - 1/|S| sum_{s in S} I(f; s)

    Label ``j`` supplements label ``i`` if the feature is more informative about ``i`` given ``j``:
    ``G_ij(f) = I(f; y_i | y_j) - I(f; y_i) > 0``. A negative gain is redundancy, and zero is independence.
    For ``q`` labels, the relevance with ``criterion="sum"`` is ::

        Rel(f) = sum_i I(f; y_i) + 1/(q-1) sum_i sum_{j != i} max(0, G_ij(f))

    and with ``criterion="max"``, known as MLSMFS, ``Rel(f) = sum_i max_{j != i} I(f; y_i | y_j)``.

    This is a reconstruction. From [1]_ we take the three relations between labels, the greedy search, and
    the terms relevance, supplementation and redundancy. The formulas that combine them are ours, and so is
    the factor ``1/(q-1)``, which ``average=False`` removes.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them. The greedy
        search stops at this number.
    criterion : {"sum", "max"}, default="sum"
        Relevance: use all supplementing labels, or the best one for every label.
    average : bool, default=True
        If True, average the supplementation of a label over the other labels, else sum it (see Notes).
        Ignored with ``criterion="max"``.
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
    Cost: ``O(n_samples n_features n_labels^2)`` time, or the number of non-zero entries times
    ``n_labels^2`` for sparse features, and ``O(n_labels^2)`` memory, plus one pass over the data per
    selected feature.

    The gain is symmetric in the two labels, as it equals ``I(y_i; y_j | f) - I(y_i; y_j)``. Information
    estimated from counts is too large by about ``0.72 (n_symbols - 1) / n_samples`` bits per term. Summed
    over all pairs of labels, this bias hides the signal, so with ``average=False`` the selection is much
    worse for few rows and many labels. ``criterion="max"`` selects the pair with the largest bias, often
    one with a rare label.

    The program of this name in the package PyIT-MLFS adds ``max(0, -G_ij)`` instead, so it rewards
    redundant pairs and ignores supplementing ones.

    References
    ----------
    .. [1] Zhang, Liu, Gao, Song, "Multi-label feature selection considering label supplementation", Pattern
       Recognition 120, 108137, 2021.

    Examples
    --------
    Neither feature is informative about one label alone. The second is, given the other label.

    >>> import numpy as np
    >>> from labelsieve.methods.lsmfs import LSMFS
    >>> Y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> X = np.column_stack([np.ones(4), Y[:, 0] ^ Y[:, 1]])
    >>> LSMFS(n_features_to_select=1).fit(X, Y).criterion_
    array([0., 2.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSelector._parameter_constraints,
        "criterion": [StrOptions({"sum", "max"})],
        "average": ["boolean"],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
    }

    ranking_depends_on_size: ClassVar[bool] = True

    criterion: str = "sum"
    average: bool = True
    n_bins: int = 3
    verbose: int = 0

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        binned = bin_features(X, self.n_bins)
        relevance = sum(information.sum(axis=1) for information in label_information(binned, Y))
        n_labels = Y.shape[1]
        if n_labels > 1:
            others = ~np.eye(n_labels, dtype=bool)
            weight = 1 / (n_labels - 1) if self.average else 1.0
            for feature, gain in enumerate(supplementation(binned, Y)):
                if self.criterion == "max":
                    # I(f; y_i | y_j) is I(f; y_i) plus the gain, and only the gain depends on j.
                    relevance[feature] += gain.max(axis=1, where=others, initial=-np.inf).sum()
                else:
                    relevance[feature] += weight * np.maximum(gain, 0).sum(where=others)
        return select_greedily(
            relevance, partial(feature_information, binned), self._n_selected(X.shape[1]), X.dtype
        )


def supplementation(binned: BinnedFeatures, Y: Matrix) -> Iterator[np.ndarray]:
    """Yield the gains of all pairs of labels, one (n_labels, n_labels) matrix per feature.

    The gain is ``I(y_i; y_j | f) - I(y_i; y_j) = I(f; y_i | y_j) - I(f; y_i)`` in bits. The diagonal is
    meaningless.
    """
    n_samples = Y.shape[0]
    table = plogp(np.arange(n_samples + 1, dtype=np.float64))
    both_anywhere = cooccurrence(Y).astype(np.intp)
    marginal = _information_sum(both_anywhere, n_samples, table)
    symbols = binned.indicators.tocsc()
    for first, last in zip(binned.offsets[:-1], binned.offsets[1:], strict=True):
        conditional, both_at_zero, n_zero = -marginal, both_anywhere, n_samples
        for symbol in range(first, last):
            rows = symbols.indices[symbols.indptr[symbol] : symbols.indptr[symbol + 1]]
            both = cooccurrence(Y[rows]).astype(np.intp)
            conditional += _information_sum(both, len(rows), table)
            both_at_zero, n_zero = both_at_zero - both, n_zero - len(rows)
        # The remaining rows are those where the feature is zero.
        conditional += _information_sum(both_at_zero, n_zero, table)
        yield conditional / n_samples


def _information_sum(both: np.ndarray, n_samples: int, table: np.ndarray) -> np.ndarray:
    """Compute the information of every pair of labels, times ``n_samples``, from co-occurrence counts."""
    ones = np.diag(both)
    zeros = n_samples - ones
    only_row = table[ones[:, None] - both]
    cells = table[both] + (only_row + only_row.T) + table[zeros[:, None] - ones + both]
    margin = table[ones] + table[zeros] - table[n_samples] / 2
    return cells - (margin[:, None] + margin)
