"""Selection of table columns with any method that ranks their encoded features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from labelsieve._base import check_problem, count_selected
from labelsieve.methods._evidence.choice import FEWEST_ROWS, ColumnIndex
from labelsieve.methods.evidence import EvidenceSelector, evaluate_sizes, find_features

__all__ = ["ColumnSelector"]


class ColumnSelector(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Rank the columns of a table by their best encoded feature.

    The method is fitted to the features and selects as many features as there are columns to keep.
    Columns are ranked in the order of their best features. If `EvidenceSelector` keeps a feature, its
    column is selected.

    Parameters
    ----------
    selector : BaseSelector
        Method that ranks the features. It is cloned before fitting.
    column_of : array-like of int of shape (n_features,)
        Column of every feature, as in `labelsieve.io.Dataset`. Columns without features are not
        ranked.
    n_features_to_select : int, float, "auto" or None, default=None
        Number of columns to keep: an integer, a fraction in (0, 1], or None for half of them. "auto"
        requires `EvidenceSelector` and cross-validates the number of columns.

    Attributes
    ----------
    columns_ : ndarray of int of shape (n_columns,)
        Ranked columns: the distinct values of `column_of` in ascending order. The arrays below are
        in the same order.
    ranking_ : ndarray of int of shape (n_columns,)
        Rank of every column (1 is best).
    best_ : ndarray of int of shape (n_columns,)
        Best feature of every column.
    scores_ : ndarray of shape (n_columns,)
        Score of the best feature of every column. `evidence_` and `criterion_` are set likewise if
        the method has them.
    n_features_ : int
        Number of selected columns.
    selector_ : BaseSelector
        Method fitted to the features.
    size_curve_ : SizeCurve
        Average precision by number of columns. Only set with "auto".

    Examples
    --------
    >>> from labelsieve import ColumnSelector, SumF
    >>> from labelsieve.datasets import make_pml
    >>> X, Y = make_pml(n_features=6, n_informative=2, shuffle=False, random_state=0)
    >>> found = ColumnSelector(SumF(), column_of=[0, 2, 2, 2, 3, 3], n_features_to_select=2).fit(X, Y)
    >>> found.columns_[found.get_support()].tolist(), found.best_.tolist()[:2]
    ([0, 2], [0, 1])
    """

    def __init__(
        self, selector: Any, column_of: Any, n_features_to_select: int | float | str | None = None
    ) -> None:
        self.selector = selector
        self.column_of = column_of
        self.n_features_to_select = n_features_to_select

    @property
    def ranking_depends_on_size(self) -> bool:
        """True if the order of the columns depends on the number of columns to keep."""
        return bool(getattr(self.selector, "ranking_depends_on_size", False))

    def fit(self, X: Any, y: Any, row_groups: Any = None) -> Self:
        """Rank the columns. `X` and `y` are passed to the method, and so is `row_groups` to `EvidenceSelector`."""
        X = X if hasattr(X, "shape") else np.asarray(X)
        column_of = np.asarray(self.column_of)
        self.columns_, group = np.unique(column_of, return_inverse=True)
        n_columns = len(self.columns_)
        if len(column_of) != X.shape[1]:
            raise ValueError(
                f"column_of must have one entry per feature ({X.shape[1]}), got {len(column_of)} entries. "
                f"Take both from the same table."
            )
        method = clone(self.selector)
        n_extra = n_kept = 0
        if isinstance(method, EvidenceSelector) and len(method.keep):
            kept = find_features(method.keep, getattr(X, "columns", ()), X.shape[1])
            n_kept = len(np.unique(group[list(kept)]))
            n_extra = len(kept) - n_kept
            method.set_params(keep=kept)
        if hasattr(self, "size_curve_"):  # set by an earlier fit
            delattr(self, "size_curve_")
        if self._is_automatic() and X.shape[0] >= FEWEST_ROWS:
            checked = check_problem(X, y, takes_unknown=True)
            chosen = evaluate_sizes(method, *checked, column_of=group, row_groups=row_groups)
            self.n_features_, self.size_curve_ = chosen.n_selected, chosen.curve
            method.set_params(redundancy=chosen.redundancy)
        else:
            wanted = self.n_features_to_select
            wanted = None if isinstance(wanted, str) else wanted
            self.n_features_ = count_selected(wanted, n_columns, "columns that can be ranked")
        if self.n_features_ < n_kept:
            raise ValueError(
                f"n_features_to_select must be at least the number of columns in keep ({n_kept}), got "
                f"{self.n_features_}."
            )
        kept_together = {"row_groups": row_groups} if isinstance(method, EvidenceSelector) else {}
        # All features of a kept column are selected.
        method.set_params(n_features_to_select=self.n_features_ + n_extra)
        self.selector_ = method.fit(X, y, **kept_together)
        order = np.argsort(self.selector_.ranking_, kind="stable")
        columns = ColumnIndex(group).order(order)
        self.ranking_ = np.empty(n_columns, dtype=np.intp)
        self.ranking_[columns] = np.arange(1, n_columns + 1)
        self.best_ = order[np.unique(group[order], return_index=True)[1]]
        for name in ("scores_", "evidence_", "criterion_"):
            if hasattr(self.selector_, name):
                setattr(self, name, getattr(self.selector_, name)[self.best_])
        return self

    def _is_automatic(self) -> bool:
        if not isinstance(self.n_features_to_select, str):
            return False
        if self.n_features_to_select != "auto" or not isinstance(self.selector, EvidenceSelector):
            raise ValueError(
                f"n_features_to_select must be a number, or 'auto' with EvidenceSelector, got "
                f"{self.n_features_to_select!r} with {type(self.selector).__name__}. Call choose_size "
                f"for other methods."
            )
        return True

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Return a mask of the selected columns, or their positions in `columns_`."""
        mask: np.ndarray = self.ranking_ <= self.n_features_
        return np.flatnonzero(mask) if indices else mask

    def feature_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all features, best column first, and the cumulative number of features by column."""
        place = self.ranking_[np.searchsorted(self.columns_, np.asarray(self.column_of))]
        order = np.lexsort((self.selector_.ranking_, place))
        return order, np.cumsum(np.bincount(place - 1))

    def _resolved_params(self) -> dict[str, Any]:
        """Return parameters that make another fit repeat the choices of this one."""
        resolved = {
            name: value
            for name, value in self.selector_._resolved_params().items()
            if name != "n_features_to_select"
        }
        return {
            "n_features_to_select": self.n_features_,
            "selector": clone(self.selector).set_params(**resolved),
        }
