"""SumF: ANOVA F statistics, summed over the labels."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from labelsieve._base import BlockSelector, RowProblem
from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import fill_unknown, known_entries
from labelsieve._numerics.moments import column_moments, merge_moments
from labelsieve._numerics.result import SolverResult
from labelsieve._numerics.sparse import Matrix, by_columns, columns_of, dense, is_sparse

#: Cap of the explained fraction of a feature's variance. Beyond it, the within-class variance is
#: mostly rounding error, and F tends to infinity.
_MAX_R2 = 1 - 1e-8
#: Maximum number of entries of the (n_features, n_labels) sums: 256 MiB.
_MAX_SUMS = 2**25
#: Relative size of differences that are rounding errors.
_ROUNDING = 1e-12


class SumF(BlockSelector):
    """Rank features by their F statistics, summed over the candidate labels.

    The score of feature ``x`` is ``sum_l F(x; y_l)``, where ``F`` compares the variance between the
    two classes of label ``l`` with the variance within them: ``F = (n - 2) r2 / (1 - r2)`` with the
    squared correlation ``r2`` of ``x`` and ``y_l``. It equals the sum of
    :func:`sklearn.feature_selection.f_classif` over the labels.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number of features to keep: an integer, a fraction in (0, 1], or None for half of them.

    Attributes
    ----------
    scores_, ranking_ : ndarray of shape (n_features,)
        Sum of the F statistics, and the rank of every feature (1 is best).

    Notes
    -----
    All features and labels are computed in one matrix product. Sparse features are centred
    implicitly. A label that is a candidate in every row or in none is ignored, and a constant
    feature has score 0. The F statistic of a feature that separates the classes of a label
    perfectly is infinite. Here ``r2`` is capped at ``1 - 1e-8``, so that such features are still
    ranked by the other labels. If entries of a label are unknown (NaN), its F statistics are those of
    the rows in which it is known.

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

    takes_unknown_labels: ClassVar[bool] = True

    def _solve(self, X: Matrix, Y: Matrix) -> SolverResult:
        known = known_entries(Y)
        if known is None:
            return super()._solve(X, Y)
        is_complete = known.all(axis=0)
        scores = _sum_on_known_rows(X, dense(fill_unknown(Y[:, ~is_complete])), known[:, ~is_complete])
        if is_complete.any():
            scores += super()._solve(X, Y[:, is_complete]).scores
        return SolverResult(scores=scores.astype(X.dtype))

    def _solve_rows(self, problem: RowProblem) -> SolverResult:
        # One pass over the rows, or several if there are very many labels.
        scores = np.zeros(problem.n_features)
        for labels in batches(problem.n_labels, problem.n_features, _MAX_SUMS):
            scores += _sum_of_statistics(
                problem.rows.fold(_class_moments, ["X", "Y"], labels, combine=_merge)
            )
        return SolverResult(scores=scores.astype(problem.dtype))


class _ClassMoments(NamedTuple):
    """Statistics of some rows, sufficient for the F statistics."""

    n_samples: int
    mean: np.ndarray
    deviation: np.ndarray
    #: Number of rows per label, and sums of their deviations: (n_features, n_labels).
    n_positive: np.ndarray
    excess: np.ndarray


def _sum_of_statistics(moments: _ClassMoments) -> np.ndarray:
    n_samples, _, deviation, n_positive, excess = moments
    varies = (n_positive > 0) & (n_positive < n_samples)
    n_positive = n_positive[varies]
    balance = n_samples / (n_positive * (n_samples - n_positive))
    sums = np.zeros(len(excess))
    for block in batches(*excess.shape):
        ratio = _variance_ratio(excess[block][:, varies], balance, deviation[block, None])
        # With two rows, n - 2 is 0. The factor is the same for all features and must not be 0.
        sums[block] = max(n_samples - 2, 1) * ratio.sum(axis=1)
    return sums


def _variance_ratio(excess: np.ndarray, balance: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the variance between the classes divided by that within them, 0 for constant features."""
    r2 = np.divide(excess**2 * balance, deviation, out=np.zeros(excess.shape), where=deviation > 0)
    r2 = np.minimum(r2, _MAX_R2)
    return r2 / (1 - r2)


def _sum_on_known_rows(X: Matrix, Y: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Sum the F statistics of labels, each on the rows in which it is known. Y is 0 in the others."""
    n_known, n_positive = known.sum(axis=0), Y.sum(axis=0)
    # Two rows or fewer, or one class, say nothing.
    used = (n_known > 2) & (n_positive > 0) & (n_positive < n_known)
    Y, known, n_known, n_positive = Y[:, used], known[:, used].astype(float), n_known[used], n_positive[used]
    balance = n_known / (n_positive * (n_known - n_positive))
    X, (mean, _) = by_columns(X), column_moments(X)
    sums = np.zeros(X.shape[1])
    for block in batches(X.shape[1], max(X.shape[0], Y.shape[1])):
        Z = X[:, block].astype(np.float64)
        Z = Z if is_sparse(Z) else Z - mean[block]
        squares = Z.multiply(Z) if is_sparse(Z) else Z * Z
        totals, positives, squares = (np.asarray(A.T @ B) for A, B in ((Z, known), (Z, Y), (squares, known)))
        deviation = squares - totals**2 / n_known
        # Differences of rounding size are those of a feature that is constant in the known rows.
        deviation[deviation <= _ROUNDING * squares] = 0
        ratio = _variance_ratio(positives - totals * (n_positive / n_known), balance, deviation)
        sums[block] = ratio @ (n_known - 2)
    return sums


def _class_moments(X: Matrix, Y: Matrix, labels: slice) -> _ClassMoments:
    Y = columns_of(Y, labels)
    X = X.tocsr() if is_sparse(X) else X
    n_samples, n_features = X.shape
    mean, deviation = column_moments(X)
    n_positive = np.asarray(Y.sum(axis=0)).ravel()
    excess = np.zeros((n_features, Y.shape[1]))
    if is_sparse(X):
        # In Y.T @ X, each label accumulates into one row, which stays in the cache.
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
