"""Selection of columns with a bound on the false discovery rate, by exact permutation tests that stop early."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pandas import DataFrame, util
from scipy.stats import false_discovery_control

from labelsieve._base import as_generator, check_problem, reject_lazy
from labelsieve._blocks.collections import column_names
from labelsieve._candidates import split_unknown
from labelsieve._numerics.candidates import fill_unknown
from labelsieve._numerics.row_groups import RowOrders, check_groups
from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.sparse import Matrix, is_sparse
from labelsieve._numerics.standardized import StandardizedFeatures
from labelsieve._text import percent
from labelsieve.inspection.stability import permuted_products
from labelsieve.methods._evidence.path import Criterion

__all__ = ["ControlledSelection", "controlled_selection"]

_FEWEST_ROWS = 10
_THRESHOLD = 4.0
#: A column stops when this many permutations reached its evidence: more for small tables, where it costs little.
_EXCEEDANCES = ((1e7, 100), (1e8, 30), (np.inf, 10))
#: Permuted evidence counts as reached if it is smaller by rounding only. The second value is per feature and label,
#: because evidence at the threshold is a difference of nearly equal numbers.
_RELATIVE_ROUNDING, _ROUNDING = 1e-10, 1e-11
#: Factor on bounds, so that rounding cannot exclude a p-value that equals its bound.
_ROUNDED_UP = 1 + 1e-9
#: Cost of drawing a permutation, in columns.
_DRAWING = 5
#: Largest number of products for each of the permutations at which a column stops, at least and at a level of 1.
_BUDGET, _BUDGET_BY_LEVEL = 200, 20


@dataclass(frozen=True, eq=False, repr=False)
class ControlledSelection:
    """Columns selected by `controlled_selection`, with p-values and q-values.

    Attributes
    ----------
    names : ndarray of str of shape (n_columns,)
        Names of the columns.
    fdr : float
        Bound on the false discovery rate.
    dependence : {"positive", "any"}
        Dependence between columns that the bound allows for.
    p_values, q_values : ndarray of shape (n_columns,)
        Permutation p-values, and p-values adjusted for the number of columns.
    statistic : ndarray of shape (n_columns,)
        Evidence of each column.
    n_permutations : int
        Number of permutations of the labels.
    n_products : float
        Cost in products of all features with all labels.
    is_bound : ndarray of bool of shape (n_columns,)
        True if the p-value of a column is an upper bound, because the search ended before it was exact.
    is_settled : bool
        True if more permutations cannot change the list. A list that is not settled might grow. Its bound is proved for
        `dependence` "any" only.
    is_cleaned : bool, default=False
        True if the labels were corrected with the help of the features, so that there is no bound. `audit` and
        `labelsieve select` recognize such files.

    Examples
    --------
    >>> found = ControlledSelection(
    ...     np.array(["a", "b"]), 0.1, "positive", np.array([0.01, 0.5]), np.array([0.02, 0.5]), np.array([30.0, 1.0]),
    ...     1000, 400.0, np.array([True, False]), True,
    ... )
    >>> found.names[found.selected]
    array(['a'], dtype='<U1')
    """

    names: np.ndarray
    fdr: float
    dependence: str
    p_values: np.ndarray
    q_values: np.ndarray
    statistic: np.ndarray
    n_permutations: int
    n_products: float
    is_bound: np.ndarray
    is_settled: bool
    is_cleaned: bool = False

    @property
    def selected(self) -> np.ndarray:
        """Mask of the columns with a q-value of at most `fdr`."""
        mask: np.ndarray = self.q_values <= self.fdr * _ROUNDED_UP
        return mask

    def to_frame(self) -> DataFrame:
        """Return a DataFrame with one row per column, smallest p-value first."""
        order = np.lexsort((-self.statistic, self.p_values))
        columns = {
            "column": self.names,
            "selected": self.selected,
            "p_value": self.p_values,
            "q_value": self.q_values,
            "is_bound": self.is_bound,
            "evidence": self.statistic,
        }
        return DataFrame({name: values[order] for name, values in columns.items()})

    @property
    def promise(self) -> str:
        """Statement about the share of wrong columns, with its assumption."""
        if self.is_cleaned:
            return (
                "The labels were corrected with the help of the columns, so there is no bound on the share of wrong "
                "columns. Test the labels as they were collected."
            )
        text = (
            f"In lists like this one, at most {percent(self.fdr)} of the columns are wrong on average. This also holds "
            "for the true labels, unless the labeling errors depend on these columns."
        )
        if not self.is_settled:
            text += " More permutations might add columns."
            text += (
                ""
                if self.dependence == "any"
                else " Until then the bound is proved for dependence='any' only."
            )
        return text

    def summary(self) -> str:
        """Return the result in sentences."""
        n_selected, n_columns = int(self.selected.sum()), len(self.names)
        if not n_selected:
            more = "" if self.is_settled else " More permutations might add columns."
            rate = percent(self.fdr)
            return f"No column of {n_columns:,} can be listed at a false discovery rate of {rate}.{more}"
        verb = "is" if n_selected == 1 else "are"
        return f"{n_selected:,} of {n_columns:,} columns {verb} related to the labels. {self.promise}"

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"ControlledSelection({self.selected.sum()} of {len(self.names)} columns, fdr={self.fdr:g})"


def controlled_selection(
    X: Any,
    Y: Any,
    *,
    fdr: float = 0.1,
    groups: Any = None,
    row_groups: Any = None,
    dependence: str = "positive",
    random_state: Any = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ControlledSelection:
    """Select the columns that are related to the labels, with a bound on the false discovery rate.

    The evidence of each column (see `evidence_test`) is compared with its values after permuting the rows of the
    labels. A column stops after a fixed number of permutations that reach its evidence [1]_, the search when the list
    can no longer change [2]_. The p-values are exact for any distribution of the features. The list holds the columns
    with a q-value of at most `fdr`.

    Parameters
    ----------
    X : {array-like, dataframe, sparse matrix} of shape (n_samples, n_features)
        Features; sparse ones stay sparse.
    Y : {array-like, dataframe, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
        Candidate labels as they were collected, NaN if unknown. Do not pass labels that were cleaned with the help of
        `X`.
    fdr : float, default=0.1
        Bound on the expected fraction of wrong columns in the list, in (0, 1).
    groups : array-like of shape (n_features,) or None, default=None
        Column of each feature. The features of a column are tested together. By default, each feature is a column.
    row_groups : array-like of shape (n_samples,) or None, default=None
        Group of every row. Permutations exchange whole groups of the same size.
    dependence : {"positive", "any"}, default="positive"
        "positive" applies the procedure of Benjamini and Hochberg. Its bound is proved for positively dependent
        columns and held in all our simulations. "any" applies that of Benjamini and Yekutieli, which is proved for all
        columns and lists fewer.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the permutations.
    progress : callable or None, default=None
        Function of the number of products of features and labels so far, and of the largest possible number.

    Returns
    -------
    ControlledSelection
        Print it for a summary.

    Notes
    -----
    Labeling errors that do not depend on the features make true relations harder to find, but they do not create
    false ones. The bound then holds for the true labels too. It does not hold for rows that are not exchangeable, such
    as repeated rows, unless `row_groups` names them.

    References
    ----------
    .. [1] Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991.
    .. [2] Fischer and Ramdas, "Sequential Monte Carlo testing by betting", Journal of the Royal Statistical Society B,
       2024.

    Examples
    --------
    >>> from labelsieve import controlled_selection
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_samples=300, n_features=30, shuffle=False, random_state=0)
    >>> found = controlled_selection(X, Y)  # x0 to x4 are informative
    >>> found.names[found.selected]
    array(['x0', 'x1', 'x2', 'x3', 'x4'], dtype=object)
    """
    reject_lazy("controlled_selection", X, Y)
    if not 0 < fdr < 1:
        raise ValueError(f"fdr must be between 0 and 1, got {fdr!r}. Use 0.1.")
    if dependence not in ("positive", "any"):
        raise ValueError(f"dependence must be 'positive' or 'any', got {dependence!r}.")
    names = column_names(X)
    X, Y = check_problem(X, Y, takes_unknown=True)
    n_features = X.shape[1]
    if groups is None:
        keys, group = np.arange(n_features), np.arange(n_features)
        names = [f"x{j}" for j in keys] if names is None else names
    else:
        if len(groups) != n_features:
            raise ValueError(f"groups must have one entry per feature ({n_features}), got {len(groups)}.")
        keys, group = np.unique(np.asarray(groups), return_inverse=True)
        names = keys.tolist()
    if not can_be_tested(Y):
        raise ValueError(
            f"Y must have candidates in at least {_FEWEST_ROWS} rows to test columns, got fewer."
        )
    test = _Test.of(within_range(X), split_unknown(Y)[0], group)
    if not len(test.labels_scale):
        raise ValueError("Y must have a label that some but not all rows have, got none.")
    rows = RowOrders(X.shape[0], check_groups(row_groups, X.shape[0]))
    rows.require()
    n_repeated = 0 if row_groups is not None else _n_repeated(X)
    if n_repeated:
        warnings.warn(
            f"{n_repeated} rows of X repeat other rows. The bound on the false discovery rate does not hold for "
            "repeated rows. Remove them, or pass row_groups.",
            UserWarning,
            stacklevel=2,
        )
    n_columns = len(keys)
    penalty = float((1 / np.arange(1, n_columns + 1)).sum()) if dependence == "any" else 1.0
    found = test.run(fdr / penalty, as_generator(random_state), progress, rows)
    adjusted = false_discovery_control(found.p_values, method="by" if dependence == "any" else "bh")
    return ControlledSelection(
        np.asarray(names, dtype=object),
        fdr,
        dependence,
        found.p_values,
        adjusted,
        test.observed,
        found.n_permutations,
        found.n_products,
        found.is_bound,
        found.is_settled,
    )


def can_be_tested(Y: Matrix) -> bool:
    """Return True if enough rows have candidates."""
    return int(np.count_nonzero(np.asarray(fill_unknown(Y).sum(axis=1)))) >= _FEWEST_ROWS


@dataclass
class _Progress:
    """State of the search."""

    p_values: np.ndarray
    is_bound: np.ndarray
    n_permutations: int = 0
    n_products: float = 1.0
    is_settled: bool = False


@dataclass(frozen=True)
class _Test:
    """Permutation test of the columns of a table.

    `group` numbers the column of every feature. `labels_scale` holds the standard deviations of the labels `Y`, with
    denominator ``n - 1``, so that the squared z of a permuted label has mean 1.
    """

    X: Matrix
    Y: Matrix
    group: np.ndarray
    labels_scale: np.ndarray
    observed: np.ndarray

    @classmethod
    def of(cls, X: Matrix, Y: Matrix, group: np.ndarray) -> _Test:
        """Prepare the test. Constant labels are left out."""
        n_samples = X.shape[0]
        mean = np.asarray(Y.mean(axis=0)).ravel()
        square = np.asarray((Y.multiply(Y) if is_sparse(Y) else Y * Y).mean(axis=0)).ravel()
        variance = square - mean**2
        varies = variance > 1e-12
        scale = np.sqrt(variance[varies] * (n_samples / max(n_samples - 1, 1)))
        test = cls(X, Y[:, varies], group, scale, np.zeros(group.max() + 1))
        if len(scale):
            (observed,) = test.evidence(np.argsort(group, kind="stable"), [np.arange(n_samples)])
            test.observed[:] = observed
        return test

    def evidence(self, kept: np.ndarray, orders: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the evidence of the columns of some features, with the labels in these row orders.

        Each array has a row per order and a column per column of the table with a feature among the `kept`, which must
        be sorted by column.
        """
        features = StandardizedFeatures(self.X if len(kept) == self.X.shape[1] else self.X[:, kept])
        criterion = Criterion(_THRESHOLD, ridge=0.0)
        starts = np.flatnonzero(np.diff(self.group[kept], prepend=-1))
        for products in permuted_products(features, self.Y, orders):
            products /= self.labels_scale
            alone = criterion.alone(products.reshape(-1, products.shape[2]), features.n_samples)
            yield np.add.reduceat(alone.reshape(products.shape[:2]), starts, axis=0).T

    def run(
        self,
        level: float,
        rng: np.random.Generator,
        progress: Callable[[int, int], None] | None,
        rows: RowOrders | None = None,
    ) -> _Progress:
        """Permute the labels until the list of Benjamini and Hochberg at this level is settled."""
        rows = rows or RowOrders(self.X.shape[0], None)
        (n_samples, n_features), n_columns = self.X.shape, len(self.observed)
        size = n_samples * n_features * len(self.labels_scale)
        n_needed = next(number for most, number in _EXCEEDANCES if size <= most)
        max_products = round(n_needed * max(_BUDGET, _BUDGET_BY_LEVEL / level))
        n_pairs = np.bincount(self.group) * len(self.labels_scale)
        limit = self.observed * (1 - _RELATIVE_ROUNDING) - _ROUNDING * n_pairs
        state = _Progress(np.ones(n_columns), np.zeros(n_columns, dtype=bool))
        n_reached = np.zeros(n_columns, dtype=int)
        by_column = np.argsort(self.group, kind="stable")
        # A column without evidence does not vary; its p-value is 1.
        running = np.flatnonzero(self.observed > 0)
        ranks = np.arange(1, n_columns + 1)
        while len(running) and not state.is_settled and state.n_products < max_products:
            kept = by_column[np.isin(self.group[by_column], running)]
            cost = (len(kept) + _DRAWING) / (n_features + _DRAWING)
            n_affordable = int(np.ceil((max_products - state.n_products) / cost))
            # The list is checked after h, 2h, 4h, ... permutations.
            n_more = min(max(n_needed, state.n_permutations), n_affordable)
            orders = (rows.draw(rng) for _ in range(n_more))
            for evidence in self.evidence(kept, orders):
                reached = n_reached[running] + np.cumsum(evidence >= limit[running], axis=0)
                is_done = (reached[-1] >= n_needed) & (n_reached[running] < n_needed)
                n_permutations = state.n_permutations + 1 + np.argmax(reached >= n_needed, axis=0)
                state.p_values[running[is_done]] = n_needed / n_permutations[is_done]
                n_reached[running] = reached[-1]
                state.n_permutations += len(evidence)
            state.n_products += n_more * cost
            running = running[n_reached[running] < n_needed]
            # An upper bound of the final p-value: all further permutations reach the evidence.
            bound = n_needed / (state.n_permutations + n_needed - n_reached[running])
            state.p_values[running] = bound
            bounds = level * _ROUNDED_UP * ranks / n_columns
            is_below = np.sort(state.p_values) <= bounds
            cut = bounds[is_below][-1] if is_below.any() else 0
            state.is_settled = bool((state.p_values[running] <= cut).all())
            if progress is not None:
                progress(min(round(state.n_products), max_products), max_products)
        state.is_bound[running] = True
        state.is_settled |= not len(running)
        return state


def _n_repeated(X: Matrix) -> int:
    """Count rows that repeat another row and cannot be equal by coincidence.

    Rows of a few categories are often equal. A coincidence is ruled out if some feature has half as many values as
    there are different rows, or more.
    """
    if is_sparse(X):
        return 0
    n_repeated = int(util.hash_pandas_object(DataFrame(X), index=False).duplicated().sum())
    if not n_repeated:
        return 0
    is_coincidence = all(2 * len(np.unique(values)) < len(X) - n_repeated for values in X.T)
    return 0 if is_coincidence else n_repeated
