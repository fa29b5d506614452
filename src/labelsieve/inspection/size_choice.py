"""Cross-validated number of features, without true labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import check_cv

from labelsieve._base import as_generator, check_problem, reject_lazy
from labelsieve._numerics.candidate_precision import ridge_precision
from labelsieve._numerics.row_groups import check_groups, draw_folds
from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.sparse import Matrix, is_sparse
from labelsieve.methods._evidence.choice import FEWEST_ROWS, SizeCurve, size_grid
from labelsieve.methods.evidence import EvidenceSelector, evaluate_sizes, find_features

#: Largest size to try with more than 5000 features.
_MOST_OF_MANY = 1000


def choose_size(
    selector: Any,
    X: Any,
    Y: Any,
    *,
    sizes: Sequence[int] | None = None,
    cv: Any = 5,
    row_groups: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> SizeCurve:
    """Cross-validate how many features a selector should keep, on the candidate labels.

    In every fold a clone of the selector ranks the features on the training rows. A ridge regression on the first
    ``k`` of them predicts the candidates of the held-out rows, which are scored by average precision. If wrong
    candidates appear at one common rate, predictions that rank candidates well rank true labels well. Rows without
    candidates are not scored.

    `EvidenceSelector` evaluates all sizes with one search per fold: its curve is that of
    ``n_features_to_select="auto"``, with at most half as many folds as rows.

    Parameters
    ----------
    selector : BaseSelector
        Any method of this package. It is not changed. A method whose ranking depends on the number of features, such
        as `MDMR`, is fitted for every size. With a `labelsieve.ColumnSelector`, sizes count columns.
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Features.
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
        Candidate labels, as for ``fit``.
    sizes : sequence of int or None, default=None
        Numbers of features to try. None tries 12 sizes up to 60 % of the features, evenly on a logarithmic scale, and
        all features; with more than 5000 features, 12 sizes up to 1000.
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds, or a splitter. Folds without candidates on either side are left out.
    row_groups : array-like of shape (n_samples,) or None, default=None
        Group of every row. Folds keep the rows of a group together if ``cv`` is a number; a splitter gets the groups.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds if ``cv`` is a number. The selector keeps its own.
    n_jobs : int or None, default=None
        Number of parallel fits, as in joblib. The result does not depend on it.

    Returns
    -------
    curve : SizeCurve
        Average precision by fold and size; ``curve.best`` has the highest mean, ``curve.enough`` is the smallest size
        within its spread.

    Examples
    --------
    >>> from labelsieve import SumF, choose_size
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(random_state=0)
    >>> selector = SumF()
    >>> curve = choose_size(selector, X, Y)
    >>> selector.set_params(n_features_to_select=curve.best).fit(X, Y).n_features_ == curve.best
    True
    """
    reject_lazy("choose_size", X, Y)
    names = getattr(X, "columns", ())
    X, Y = check_problem(X, Y)
    X = within_range(X.tocsr() if is_sparse(X) else X)
    column_of = getattr(selector, "column_of", None)
    tried = _sizes(sizes, X.shape[1] if column_of is None else len(np.unique(column_of)))
    groups = check_groups(row_groups, X.shape[0])
    folds = list(_folds(Y, cv, random_state, groups))
    method = selector if column_of is None else selector.selector
    if isinstance(method, EvidenceSelector) and isinstance(cv, Integral) and X.shape[0] >= FEWEST_ROWS:
        group = None if column_of is None else np.unique(column_of, return_inverse=True)[1]
        keep = find_features(method.keep, names, X.shape[1])
        seeded = clone(method).set_params(random_state=random_state, keep=keep)
        return evaluate_sizes(
            seeded, X, Y, column_of=group, sizes=tried, n_folds=int(cv), row_groups=groups
        ).curve
    # One fit serves all sizes, unless the ranking depends on the size.
    depends = getattr(selector, "ranking_depends_on_size", False)
    parts = [tried[i : i + 1] for i in range(len(tried))] if depends else [tried]
    found = Parallel(n_jobs=n_jobs)(
        delayed(_score)(
            clone(selector).set_params(n_features_to_select=int(part[0])) if depends else clone(selector),
            X,
            Y,
            *fold,
            part,
        )
        for fold in folds
        for part in parts
    )
    scores = np.concatenate(found).reshape(len(folds), len(tried)) if found else np.empty((0, len(tried)))
    scores = scores[~np.isnan(scores).any(axis=1)]
    if not len(scores):
        raise ValueError(
            "Y must have a label that some training rows of a fold have and others do not, and that a test row has. "
            "Got no such fold. Use other folds, or collect more rows with candidates."
        )
    return SizeCurve(tried, scores)


def _score(
    selector: Any, X: Matrix, Y: Matrix, train: np.ndarray, test: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Rank on training rows; return the mean precision on test rows for every size, nan if none has candidates."""
    X_train, Y_train = X[train], Y[train]
    selector.fit(X_train, Y_train)
    if hasattr(selector, "feature_order"):  # it ranks columns of several features each
        order, ends = selector.feature_order()
        sizes = ends[sizes - 1]
    else:
        order = np.argsort(selector.ranking_, kind="stable")
    precision = ridge_precision(X_train, Y_train, X[test], Y[test], order, sizes)
    scored = ~np.isnan(precision).any(axis=1)
    return precision[scored].mean(axis=0) if scored.any() else np.full(len(sizes), np.nan)


def _sizes(given: Sequence[int] | None, n_features: int) -> np.ndarray:
    if given is None:
        return size_grid(n_features, _MOST_OF_MANY)
    found = np.unique(np.asarray(given))
    if not found.size or found.dtype.kind not in "iu" or found[0] < 1 or found[-1] > n_features:
        raise ValueError(
            f"sizes must be numbers of features from 1 to {n_features}. Got {given!r}. Leave it out for a grid."
        )
    return found


def _folds(
    Y: Matrix, cv: Any, random_state: Any, groups: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training and test rows of the folds with candidates to learn from."""
    n_samples = Y.shape[0]
    if isinstance(cv, Integral):
        n_folds = int(cv)
        if not 2 <= n_folds <= n_samples:
            raise ValueError(
                f"cv must be from 2 to the number of rows ({n_samples}). Got {cv!r}. Use fewer folds, or say yourself "
                f"how many features to keep."
            )
        number = draw_folds(n_samples, n_folds, as_generator(random_state), groups)
        folds = ((np.flatnonzero(number != fold), np.flatnonzero(number == fold)) for fold in range(n_folds))
    else:
        folds = check_cv(cv).split(np.zeros((n_samples, 1)), Y, groups)
    has_candidates = np.asarray(Y.sum(axis=1)).ravel() > 0
    yield from ((train, test) for train, test in folds if has_candidates[train].any())
