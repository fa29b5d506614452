"""SumF: the sum over labels of the F statistic of a one-way analysis of variance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelsieve._base import BlockSelector, RowProblem
from labelsieve._numerics.batches import batches
from labelsieve._numerics.moments import column_moments, merge_moments
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix, columns_of, dense, is_sparse

#: Largest share of a feature's variance that a label may explain. One that explains all of it has an infinite
#: F, and beyond this share the within-class variance is mostly rounding.
_LARGEST_SHARE = 1 - 1e-8
#: Sums over the rows of labels that are held at once, of all features: 256 MiB.
_LARGEST_EXCESS = 2**25


class SumF(BlockSelector):
    """Score every feature by its F statistics, summed over the candidate labels.

    The score of feature ``x`` is ``sum_l F(x; y_l)``, where ``F`` compares the variance of the class means
    with the variance inside the two classes of label ``l``: ``F = (n - 2) r2 / (1 - r2)`` with ``r2`` the
    squared correlation of ``x`` and ``y_l``. It equals the sum of :func:`sklearn.feature_selection.f_classif`
    over the labels.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        How many features to keep: a number, a share in (0, 1], or None for half of them.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Sum of the F statistics, and the place of every feature, 1 is best.

    Notes
    -----
    All features and labels are handled by one matrix product; sparse features are centred implicitly.
    A label that is a candidate of every row or of none adds nothing, and a constant feature scores 0. A
    feature that separates the classes of a label perfectly has an infinite F; here ``r2`` is limited to
    ``1 - 1e-8``, so that several such features can still be told apart by the other labels.

    Cost: one product of X with Y.

    Examples
    --------
    >>> import numpy as np
    >>> from labelsieve.methods.sum_f import SumF
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 2.0], [5.0, 0.0]])
    >>> Y = np.array([[0, 1], [0, 1], [1, 1], [1, 1]])
    >>> SumF(n_features_to_select=1).fit(X, Y).scores_.round(2)
    array([32. ,  0.2])
    """

    def _solve_rows(self, problem: RowProblem) -> SolverResult:
        # One pass over the rows, more for very many labels.
        scores = np.zeros(problem.n_features)
        for labels in batches(problem.n_labels, problem.n_features, _LARGEST_EXCESS):
            scores += _sum_of_statistics(
                problem.rows.fold(_class_moments, ["X", "Y"], labels, combine=_merge)
            )
        return SolverResult(scores=scores.astype(problem.dtype))


class _ClassMoments(NamedTuple):
    """What the F statistics need to know of some rows."""

    n_samples: int
    mean: np.ndarray
    deviation: np.ndarray
    #: Rows of every label, and how much the features of these exceed the mean, summed: n_features x n_labels.
    n_positive: np.ndarray
    excess: np.ndarray


def _sum_of_statistics(moments: _ClassMoments) -> np.ndarray:
    n_samples, _, deviation, n_positive, excess = moments
    varies = (n_positive > 0) & (n_positive < n_samples)
    n_positive = n_positive[varies]
    balance = n_samples / (n_positive * (n_samples - n_positive))
    sums = np.zeros(len(excess))
    for block in batches(*excess.shape):
        share = np.divide(
            excess[block][:, varies] ** 2 * balance,
            deviation[block, None],
            out=np.zeros((block.stop - block.start, len(balance))),
            where=deviation[block, None] > 0,
        )
        share = np.minimum(share, _LARGEST_SHARE)
        # Two rows leave no degree of freedom; the factor is the same for all features and must not be 0.
        sums[block] = max(n_samples - 2, 1) * (share / (1 - share)).sum(axis=1)
    return sums


def _class_moments(X: Matrix, Y: Matrix, labels: slice) -> _ClassMoments:
    Y = columns_of(Y, labels)
    X = X.tocsr() if is_sparse(X) else X
    n_samples, n_features = X.shape
    mean, deviation = column_moments(X)
    n_positive = np.asarray(Y.sum(axis=0)).ravel()
    excess = np.zeros((n_features, Y.shape[1]))
    if is_sparse(X):
        # Label by label over the rows: what is added to has the length of a row, and stays in the cache.
        for block in batches(n_samples, width=X.nnz // n_samples):
            excess += dense(Y[block].T @ X[block].astype(np.float64)).T
        excess -= np.outer(mean, n_positive)
    else:
        for block in batches(n_features, max(n_samples, Y.shape[1])):
            excess[block] = (X[:, block].astype(np.float64) - mean[block]).T @ Y
    return _ClassMoments(n_samples, mean, deviation, n_positive, excess)


def _merge(a: _ClassMoments, b: _ClassMoments) -> _ClassMoments:
    mean, deviation = merge_moments(*a[:3], *b[:3])
    excess = a.excess + b.excess
    for part in (a, b):
        excess += np.outer(part.mean - mean, part.n_positive)
    return _ClassMoments(a.n_samples + b.n_samples, mean, deviation, a.n_positive + b.n_positive, excess)
