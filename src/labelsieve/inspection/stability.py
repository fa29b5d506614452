"""Stability of selections on subsamples, stability indices, and a permutation test of the evidence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from pandas import DataFrame
from scipy import stats
from scipy.spatial.distance import pdist
from sklearn.base import clone

from labelsieve._base import as_generator, check_count, check_problem, reject_lazy, take_rows
from labelsieve._numerics.batches import BUDGET
from labelsieve._numerics.candidate_precision import LabelScale
from labelsieve._numerics.candidates import fill_unknown, is_binary
from labelsieve._numerics.moments import correlated_groups
from labelsieve._numerics.row_groups import RowOrders, check_groups, draw_folds
from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.sparse import Matrix, as_rows, dense, is_sparse
from labelsieve._numerics.standardized import StandardizedFeatures
from labelsieve.methods._evidence.path import Criterion

__all__ = [
    "EvidenceTest",
    "SelectionStability",
    "evidence_test",
    "jaccard_stability",
    "kuncheva_stability",
    "nogueira_stability",
    "selection_stability",
]

#: Features with at least this selection frequency are stable.
STABLE = 0.6
#: Features with at least this absolute correlation are substitutes.
SUBSTITUTE = 0.9
#: Substitutes are searched among this many of the most frequent features.
_MOST_COMPARED = 5000
#: With fewer candidates per row and label, the labels are multiplied as a sparse matrix.
_RARE = 0.1
#: Above this p-value, labels may be no better than permuted ones.
SIGNIFICANT = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class SelectionStability:
    """Selections of one selector on subsamples, each a random half of the rows.

    Attributes
    ----------
    feature_names : ndarray of str of shape (n_features,)
        Names of the features, by default ``x0``, ``x1`` ...
    selected : ndarray of bool of shape (n_features,)
        Features selected on all rows.
    runs : ndarray of bool of shape (n_resamples, n_features)
        Features selected on each subsample; the two disjoint halves of a pair are next to each other.
    group : ndarray of int of shape (n_features,)
        Features of one group are substitutes: they are joined by absolute correlations of 0.9 or more. A feature that
        is never selected is a group of its own.
    places : ndarray of int of shape (n_resamples, n_features) or None
        Rank of every feature on each subsample, 1 is best; None if the selector does not rank.

    Examples
    --------
    The first two of three features are substitutes. Every subsample selects one of them.

    >>> runs = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]], dtype=bool)
    >>> found = SelectionStability(np.array(["a", "b", "c"]), runs[0], runs, np.array([0, 0, 1]))
    >>> found.frequency, found.group_frequency
    (array([0.75, 0.25, 0.  ]), array([1., 1., 0.]))
    >>> found.substitutes(0)
    array([1])
    """

    feature_names: np.ndarray
    selected: np.ndarray
    runs: np.ndarray
    group: np.ndarray
    places: np.ndarray | None = None

    @property
    def n_resamples(self) -> int:
        """Number of subsamples."""
        return len(self.runs)

    @property
    def n_selected(self) -> int:
        """Number of features selected on all rows."""
        return int(self.selected.sum())

    @cached_property
    def frequency(self) -> np.ndarray:
        """Share of the subsamples that select each feature."""
        shares: np.ndarray = self.runs.mean(axis=0)
        return shares

    @cached_property
    def interval(self) -> np.ndarray:
        """Wilson's 95 % interval of each frequency: lower and upper end, a row per feature."""
        return np.column_stack(wilson_interval(self.runs.sum(axis=0), len(self.runs)))

    @cached_property
    def group_frequency(self) -> np.ndarray:
        """Share of the subsamples that select each feature or one of its substitutes."""
        order = np.argsort(self.group, kind="stable")
        _, starts, members = np.unique(self.group[order], return_index=True, return_inverse=True)
        of_groups = np.logical_or.reduceat(self.runs[:, order], starts, axis=1).mean(axis=0)
        found = np.empty(len(order))
        found[order] = of_groups[members]
        return found

    def substitutes(self, feature: int) -> np.ndarray:
        """Return the indices of the substitutes of a feature."""
        others = np.flatnonzero(self.group == self.group[feature])
        members: np.ndarray = others[others != feature]
        return members

    @property
    def n_stable(self) -> int:
        """Number of features that at least 60 % of the subsamples select."""
        return int((self.frequency >= STABLE).sum())

    @property
    def expected_by_chance(self) -> float:
        """Upper bound on the mean number of stable features by chance alone.

        For ``k`` of ``d`` features, Meinshausen and Buehlmann give ``k^2 / ((2 pi - 1) d)`` with ``pi = 0.6``; see
        `selection_stability`. A bound as large as `n_stable` is not informative.
        """
        return self.n_selected**2 / ((2 * STABLE - 1) * len(self.selected))

    @cached_property
    def index(self) -> float:
        """Kuncheva's index of the subsamples: 1 for equal selections, about 0 for random ones."""
        return nogueira_stability(self.runs)

    def __repr__(self) -> str:
        stable = f"{self.n_stable} stable of {len(self.selected)} features"
        return f"SelectionStability({self.n_resamples} subsamples, {stable}, index {self.index:.2f})"

    def to_frame(self) -> Any:
        """Return a pandas table with a row per feature, most frequent first.

        The columns are ``feature``, ``selected`` (on all rows), ``frequency``, ``lower``, ``upper``, ``substitutes``
        (names, separated by commas) and ``frequency_with_substitutes``.
        """
        order = np.lexsort((~self.selected, -self.group_frequency, -self.frequency))
        sizes = np.bincount(self.group)
        return DataFrame(
            {
                "feature": self.feature_names[order],
                "selected": self.selected[order],
                "frequency": self.frequency[order],
                "lower": self.interval[order, 0],
                "upper": self.interval[order, 1],
                "substitutes": [
                    ", ".join(self.feature_names[self.substitutes(feature)])
                    if sizes[self.group[feature]] > 1
                    else ""
                    for feature in order
                ],
                "frequency_with_substitutes": self.group_frequency[order],
            }
        )


def selection_stability(
    selector: Any,
    X: Any,
    Y: Any,
    *,
    n_resamples: int = 30,
    row_groups: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SelectionStability:
    """Select features on subsamples of the rows and count how often each is selected.

    The selector is fitted to all rows first. Settings that it chose there, such as the number of features, are kept.
    Then it is fitted to pairs of disjoint halves of the rows [1]_ [2]_. Half of the rows say less than all of them, so
    the frequencies are conservative.

    Parameters
    ----------
    selector : object
        A selector of this package, or any with ``fit`` and ``get_support``. It is not changed. With a
        `labelsieve.ColumnSelector` the result is about columns, which are substitutes if their best features are.
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Features.
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
        Candidate labels, as for ``fit``.
    n_resamples : int, default=30
        Number of subsamples; an odd number leaves out the second half of the last pair.
    row_groups : array-like of shape (n_samples,) or None, default=None
        Group of every row. Subsamples keep the rows of a group together.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the subsamples. The selector keeps its own.
    n_jobs : int or None, default=None
        Number of parallel fits, as in joblib. The result does not depend on it.
    progress : callable or None, default=None
        Called after each fit with the number of finished fits and of all fits.

    Returns
    -------
    stability : SelectionStability
        Selection frequencies, intervals and substitutes.

    References
    ----------
    .. [1] Meinshausen and Buehlmann, "Stability selection", Journal of the Royal Statistical Society B 72, 2010.
    .. [2] Shah and Samworth, "Variable selection with error control: another look at stability selection",
       Journal of the Royal Statistical Society B 75, 2013.

    Examples
    --------
    >>> from labelsieve import SumF, selection_stability
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_samples=400, n_features=100, shuffle=False, random_state=0)
    >>> found = selection_stability(SumF(5), X, Y)
    >>> found.feature_names[found.frequency >= 0.6]
    array(['x0', 'x1', 'x2', 'x3', 'x4'], dtype=object)
    >>> round(found.expected_by_chance, 2)
    1.25
    """
    reject_lazy("selection_stability", X, Y)
    check_count(n_resamples, "n_resamples", minimum=2)
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_samples < 4:
        raise ValueError(
            f"X must have at least 4 rows, two for each half. Got {n_samples}. Collect more rows first."
        )
    X, Y = as_rows(X, "X"), as_rows(Y, "Y")
    whole = clone(selector).fit(X, Y)
    return resample(
        whole,
        X,
        Y,
        n_resamples=n_resamples,
        row_groups=row_groups,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )


def resample(
    whole: Any,
    X: Any,
    Y: Any,
    *,
    n_resamples: int,
    row_groups: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SelectionStability:
    """Run `selection_stability` for a selector `whole` that is fitted to all rows."""
    resolved = whole._resolved_params() if hasattr(whole, "_resolved_params") else {}
    asked = clone(whole).set_params(**resolved)
    features, candidates = check_problem(X, Y, takes_unknown=True)
    if hasattr(whole, "best_"):
        features = features[:, whole.best_]
    groups = check_groups(row_groups, features.shape[0])
    parts = list(subsamples(features.shape[0], n_resamples, as_generator(random_state), groups))
    if not have_candidates(candidates, parts):
        raise ValueError(
            "Y must have candidates in every subsample of the rows. Got a subsample with none. "
            "Leave out rows without candidates, or try another random_state."
        )
    finished = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_selected_on)(clone(asked), X, Y, rows) for rows in parts
    )
    selected = np.asarray(whole.get_support(), dtype=bool)
    runs = np.empty((n_resamples, len(selected)), dtype=bool)
    places = np.empty(runs.shape, dtype=np.int32) if hasattr(whole, "ranking_") else None
    messages: list[str] = []
    for number, (run, ranking, notes) in enumerate(finished):
        runs[number] = run
        if places is not None:
            places[number] = ranking
        messages += notes
        if progress is not None:
            progress(number + 1, n_resamples)
    if messages:
        warnings.warn(
            f"{len(messages)} of {n_resamples} fits to half of the rows warned, the first of them: {messages[0]}",
            UserWarning,
            stacklevel=3,
        )
    names = getattr(whole, "feature_names_in_", [f"x{j}" for j in range(len(selected))])
    frequency = runs.mean(axis=0)
    often = np.argsort(-frequency, kind="stable")[:_MOST_COMPARED]
    group = substitute_groups(features, np.sort(often[frequency[often] > 0]))
    return SelectionStability(np.asarray(names, dtype=object), selected, runs, group, places)


@dataclass(frozen=True, eq=False, repr=False)
class EvidenceTest:
    """Result of a permutation test of the evidence.

    Attributes
    ----------
    p_value : float
        Share of the permutations, the given order included, with at least as much evidence as the given order.
    total : float
        Evidence of all features together.
    permuted : ndarray of shape (n_permutations,)
        The same for permuted labels.

    Examples
    --------
    >>> from labelsieve import evidence_test
    >>> from labelsieve.datasets import make_pml
    >>> test = evidence_test(*make_pml(random_state=0), n_permutations=19)
    >>> test.p_value, bool(test.total > test.permuted.max())
    (0.05, True)
    """

    p_value: float
    total: float
    permuted: np.ndarray

    def __repr__(self) -> str:
        n_permutations = len(self.permuted)
        return (
            f"EvidenceTest(p_value={self.p_value:.3g}, total={self.total:.4g}, {n_permutations} permutations)"
        )


def evidence_test(
    X: Any,
    Y: Any,
    *,
    n_permutations: int = 199,
    row_groups: Any = None,
    random_state: Any = 0,
    threshold: float = 4.0,
) -> EvidenceTest:
    """Test whether the features are associated with the candidate labels.

    The evidence of a feature is ``sum_l max(z_l^2 - threshold, 0)``, plus a millionth of ``sum_l z_l^2``, where
    ``z_l^2`` is the number of rows times the squared correlation of the feature and candidate label ``l``. The sum over
    all features is compared with its values after permuting the rows of the labels, which keeps the correlations among
    features and among labels. A p-value above 0.05 gives a warning, because a selector ranks the features anyway.

    Parameters
    ----------
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Features; sparse ones stay sparse.
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
        Candidate labels, as for the ``fit`` of a selector.
    n_permutations : int, default=199
        Number of permutations; each costs one product of ``X`` and ``Y``.
    row_groups : array-like of shape (n_samples,) or None, default=None
        Group of every row. Permutations exchange whole groups of the same size.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the permutations.
    threshold : float, default=4.0
        Squared z values below it count as noise.

    Returns
    -------
    result : EvidenceTest
        The p-value and the sums behind it.

    Examples
    --------
    >>> from labelsieve import evidence_test
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(random_state=0)
    >>> evidence_test(X, Y).p_value  # no permutation has as much
    0.005
    """
    reject_lazy("evidence_test", X, Y)
    check_count(n_permutations, "n_permutations", minimum=1)
    if not threshold >= 0:  # also rejects nan
        raise ValueError(f"threshold must be at least 0. Got {threshold!r}. Use 4.0.")
    X, Y = check_problem(X, Y, takes_unknown=True)
    rng = as_generator(random_state)
    n_samples = X.shape[0]
    rows = RowOrders(n_samples, check_groups(row_groups, n_samples))
    rows.require()
    orders = (np.arange(n_samples) if i == 0 else rows.draw(rng) for i in range(n_permutations + 1))
    total, *others = _totals(X, Y, orders, threshold)
    permuted = np.array(others)
    # Sums of the same numbers in another order may round differently.
    n_as_large = int((permuted >= total * (1 - 1e-12)).sum())
    p_value = (1 + n_as_large) / (1 + len(permuted))
    if p_value > SIGNIFICANT:
        warnings.warn(
            f"The features say no more about these labels than about permuted ones (p = {p_value:.2g}, "
            f"{n_permutations} permutations); the ranking may be meaningless.",
            UserWarning,
            stacklevel=2,
        )
    return EvidenceTest(p_value, total, permuted)


def kuncheva_stability(selected: Any) -> float:
    """Compute the mean overlap of pairs of equally large feature sets, corrected for chance [1]_.

    Parameters
    ----------
    selected : boolean array-like of shape (n_runs, n_features)
        Which features each run selected; every run the same number.

    Returns
    -------
    stability : float
        1 for equal sets, about 0 for random ones, above -1. Sets of no or all features are equal.

    References
    ----------
    .. [1] Kuncheva, "A stability index for feature selection", IASTED AIA 2007.

    Examples
    --------
    >>> kuncheva_stability([[1, 1, 0, 0], [1, 0, 1, 0]])  # (1 * 4 - 2 * 2) / (2 * (4 - 2))
    0.0
    """
    sizes = _selections(selected).sum(axis=1)
    if (sizes != sizes[0]).any():
        raise ValueError(
            f"selected must hold sets of one size for Kuncheva's index, got sizes from {sizes.min():g} to "
            f"{sizes.max():g}. Use nogueira_stability."
        )
    return nogueira_stability(selected)  # which is the same for sets of one size


def nogueira_stability(selected: Any) -> float:
    """Compute how little the selection of each feature varies, corrected for chance; sizes may differ [1]_.

    Parameters
    ----------
    selected : boolean array-like of shape (n_runs, n_features)
        Which features each run selected.

    Returns
    -------
    stability : float
        1 for equal sets, about 0 for random ones; equals Kuncheva's index for sets of one size. Runs that all
        select nothing, or everything, are equal.

    References
    ----------
    .. [1] Nogueira, Sechidis and Brown, "On the stability of feature selection algorithms", Journal of Machine
       Learning Research 18, 2018.

    Examples
    --------
    >>> nogueira_stability([[1, 1, 0, 0], [1, 1, 0, 0]])
    1.0
    """
    runs = _selections(selected)
    share = runs.mean()
    if share in (0, 1):
        return 1.0
    return float(1 - runs.var(axis=0, ddof=1).mean() / (share * (1 - share)))


def jaccard_stability(selected: Any) -> float:
    """Compute the mean share of common features in pairs of feature sets, not corrected for chance.

    Parameters
    ----------
    selected : boolean array-like of shape (n_runs, n_features)
        Which features each run selected.

    Returns
    -------
    stability : float
        In [0, 1]; two empty sets are equal.

    Examples
    --------
    >>> jaccard_stability([[1, 1, 0, 0], [0, 1, 1, 1]])
    0.25
    """
    return float(1 - pdist(_selections(selected).astype(bool), "jaccard").mean())


def wilson_interval(n_hits: np.ndarray, n_runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of Wilson's 95 % intervals of shares."""
    z2 = stats.norm.ppf(0.975) ** 2
    centre = (n_hits + z2 / 2) / (n_runs + z2)
    half = np.sqrt(z2 * (n_hits * (n_runs - n_hits) / n_runs + z2 / 4)) / (n_runs + z2)
    # Exactly 0 and 1, without rounding.
    return np.where(n_hits == 0, 0.0, centre - half), np.where(n_hits == n_runs, 1.0, centre + half)


def subsamples(
    n_samples: int, n_subsamples: int, rng: np.random.Generator, groups: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """Yield the rows of disjoint halves, pair by pair; an odd number of rows leaves one out.

    Groups stay together, so that halves of groups may differ in size.
    """
    size = n_samples // 2
    order = np.arange(n_samples)
    for number in range(n_subsamples):
        if groups is not None:
            if number % 2 == 0:
                halves = draw_folds(n_samples, 2, rng, groups)
            yield np.flatnonzero(halves == number % 2)
            continue
        if number % 2 == 0:
            order = rng.permutation(n_samples)
        start = (number % 2) * size
        yield np.sort(order[start : start + size])


def have_candidates(Y: Matrix, parts: Iterable[np.ndarray]) -> bool:
    """Return True if every part has a row with candidates."""
    has_candidates = np.asarray(fill_unknown(Y).sum(axis=1)).ravel() > 0
    return all(has_candidates[rows].any() for rows in parts)


def _selected_on(
    selector: Any, X: Any, Y: Any, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Fit to some rows; return the selection, the ranking if there is one, and the first warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.fit(take_rows(X, rows), take_rows(Y, rows))
    notes = [" ".join(str(warning.message).split()) for warning in caught[:1]]
    return np.asarray(selector.get_support(), dtype=bool), getattr(selector, "ranking_", None), notes


def substitute_groups(X: Matrix, compared: np.ndarray) -> np.ndarray:
    """Number the groups of correlated features; only those at `compared`, ascending, are compared."""
    groups = np.arange(X.shape[1])
    if not len(compared):
        return groups
    # A group is numbered by its first feature.
    found = correlated_groups(within_range(X[:, compared]), SUBSTITUTE)
    _, firsts = np.unique(found, return_index=True)
    groups[compared] = compared[firsts[found]]
    return groups


def correlations(
    X: Matrix, best_feature: np.ndarray, column: int, others: np.ndarray
) -> tuple[tuple[int, float], ...]:
    """Return other columns with their correlations with a column, by best features, strongest first."""
    asked = X[:, best_feature[np.append(column, others)]]
    found = np.clip(
        StandardizedFeatures(within_range(asked)).gram(np.arange(asked.shape[1]))[0] / X.shape[0], -1, 1
    )
    order = np.argsort(-np.abs(found[1:]), kind="stable")
    return tuple((int(others[place]), float(found[1 + place])) for place in order)


def _totals(X: Matrix, Y: Matrix, orders: Iterable[np.ndarray], threshold: float) -> Iterator[float]:
    """Yield the total evidence for the labels with their rows in each of these orders."""
    features, labels = StandardizedFeatures(within_range(X)), LabelScale.learn(Y)
    criterion = Criterion(threshold, ridge=0.0)
    Y = fill_unknown(Y[:, labels.varying], labels.mean)
    for products in permuted_products(features, Y, orders):
        for part in np.moveaxis(products, 1, 0):
            yield float(criterion.alone(labels.scale_products(part), features.n_samples).sum())


def permuted_products(
    features: StandardizedFeatures, Y: Matrix, orders: Iterable[np.ndarray]
) -> Iterator[np.ndarray]:
    """Yield products of features and labels with the rows of the labels in these orders.

    Orders are processed in batches, of shape (n_features, n_orders, n_labels), so that each batch reads the features
    once. Labels are only read in rows where a sparse feature is not 0, so that few rare features cost little. Products
    of sparse features with rare labels are sparse.
    """
    X = features.X
    if is_sparse(X) and not is_sparse(Y) and np.count_nonzero(Y) <= _RARE * Y.size:
        Y = sp.csr_array(Y)
    used = np.arange(X.shape[0])
    if is_sparse(X):
        used = np.flatnonzero(np.diff(X.indptr))
        S, mean = features.scaling.split(X[used])
        assert mean is not None  # standardised features have an offset
        shift = np.outer(mean, Y.sum(axis=0))[:, None]
    n_together = max(1, BUDGET // (max(len(used), X.shape[1]) * max(1, Y.shape[1])))
    waiting = iter(orders)
    while together := [order[used] for order in islice(waiting, n_together)]:
        if is_sparse(Y):
            stacked = sp.hstack([Y[order] for order in together])
        else:
            stacked = Y[np.column_stack(together)].reshape(len(used), -1)
        shape = X.shape[1], len(together), Y.shape[1]
        if is_sparse(X):
            yield dense(S.T @ stacked).reshape(shape) - shift
        else:
            yield features.products(stacked).reshape(shape)


def _selections(selected: Any) -> np.ndarray:
    runs = np.asarray(selected, dtype=float)
    if runs.ndim != 2 or runs.shape[0] < 2 or runs.shape[1] < 1 or not is_binary(runs):
        raise ValueError(
            f"selected must be a 0/1 matrix of shape (n_runs, n_features) with two runs or more. "
            f"Got shape {runs.shape!r}. Give masks such as get_support(), not indices."
        )
    return runs
