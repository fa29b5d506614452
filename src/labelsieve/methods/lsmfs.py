"""LSMFS-style: greedy selection by information on the labels, label supplementation and redundancy."""

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
    """Select features that say more about a label once another label is known (LSMFS-style).

    One feature after the other is added to the selection ``S``, each time the one with the largest ::

        J(f) = Rel(f) - 1/|S| sum_{s in S} I(f; s)

    A label ``j`` supplements label ``i`` for a feature if knowing it makes the feature tell more:
    ``G_ij(f) = I(f; y_i | y_j) - I(f; y_i) > 0``. Negative gains are redundancy, zero is independence. Over
    ``q`` labels, the relevance with ``criterion="sum"`` is ::

        Rel(f) = sum_i I(f; y_i) + 1/(q-1) sum_i sum_{j != i} max(0, G_ij(f))

    and with ``criterion="max"``, known as MLSMFS, ``Rel(f) = sum_i max_{j != i} I(f; y_i | y_j)``.

    A reconstruction: of [1]_ are the three relations between labels, the ingredients relevance,
    supplementation and redundancy, and the greedy search. The formulas that put them together are ours, as is
    the factor ``1/(q-1)``; ``average=False`` leaves it out.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them. The greedy search
        goes as far as this.
    criterion : {"sum", "max"}, default="sum"
        Which relevance: all supplementing labels, or the best one for every label.
    average : bool, default=True
        Whether the supplementation of a label by the others is averaged or summed; see Notes.
        ``criterion="max"`` does not use it.
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
    Cost: time grows with ``n_samples n_features n_labels^2``, for sparse features with their non-zero entries
    instead; memory with ``n_labels^2``. Besides, one pass over the data per selected feature.

    The gain is symmetric in the two labels, for it is also ``I(y_i; y_j | f) - I(y_i; y_j)``. Counted information
    is too large by about ``0.72 (number of symbols - 1) / n_samples`` bits a term. Summed over all pairs of labels
    that drowns what a feature tells: with ``average=False`` the selection is much worse on few rows and many
    labels. ``criterion="max"`` takes the pair with the largest such error, often one with a rare label.

    The program of this name in the package PyIT-MLFS adds ``max(0, -G_ij)`` instead, so it rewards the
    redundant pairs and drops the supplementing ones.

    References
    ----------
    .. [1] Zhang, Liu, Gao, Song, "Multi-label feature selection considering label supplementation", Pattern
       Recognition 120, 108137, 2021.

    Examples
    --------
    Neither feature tells anything about a label alone; the second does, once the other label is known.

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
                    # I(f; y_i | y_j) is I(f; y_i) plus the gain, and the first does not depend on j.
                    relevance[feature] += gain.max(axis=1, where=others, initial=-np.inf).sum()
                else:
                    relevance[feature] += weight * np.maximum(gain, 0).sum(where=others)
        return select_greedily(
            relevance, partial(feature_information, binned), self._n_selected(X.shape[1]), X.dtype
        )


def supplementation(binned: BinnedFeatures, Y: Matrix) -> Iterator[np.ndarray]:
    """Yield, feature by feature, what knowing it adds to the information of every two labels on one another.

    This is ``I(y_i; y_j | f) - I(y_i; y_j) = I(f; y_i | y_j) - I(f; y_i)`` in bits, n_labels x n_labels; the
    diagonal means nothing.
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
        # What is left are the rows where the feature is zero.
        conditional += _information_sum(both_at_zero, n_zero, table)
        yield conditional / n_samples


def _information_sum(both: np.ndarray, n_samples: int, table: np.ndarray) -> np.ndarray:
    """Information of every pair of labels in some rows, times their number, from the counts of both being 1."""
    ones = np.diag(both)
    zeros = n_samples - ones
    only_row = table[ones[:, None] - both]
    cells = table[both] + (only_row + only_row.T) + table[zeros[:, None] - ones + both]
    margin = table[ones] + table[zeros] - table[n_samples] / 2
    return cells - (margin[:, None] + margin)
