"""Whole columns selected by any method that ranks their features."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from labelsieve._base import share_of

__all__ = ["ColumnSelector"]


class ColumnSelector(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Rank the columns of a table by the best of the features that each is made of.

    The method is fitted to the features and told to select as many of them as columns are asked for. A column's place
    is that of its best feature among those of the other columns.

    Parameters
    ----------
    selector : BaseSelector
        A method of this package; it is not changed.
    column_of : array-like of int of shape (n_features,)
        The column of every feature, as in `Table`. Columns without features are not ranked.
    n_features_to_select : int, float or None, default=None
        How many columns to keep: a number, a share in (0, 1], or None for half of them.

    Attributes
    ----------
    columns_ : ndarray of int of shape (n_columns,)
        The columns that are ranked: the different values of `column_of`, ascending. The following are in this order.
    ranking_ : ndarray of int of shape (n_columns,)
        Place of every column, 1 is best.
    best_ : ndarray of int of shape (n_columns,)
        The best feature of every column.
    scores_ : ndarray of shape (n_columns,)
        Score of the best feature; `evidence_` and `criterion_` likewise where the method has them.
    n_features_ : int
        Number of selected columns.
    selector_ : BaseSelector
        The method, fitted to the features.

    Examples
    --------
    >>> from labelsieve import SumF
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
        """Whether asking for another number of columns changes their order."""
        return bool(getattr(self.selector, "ranking_depends_on_size", False))

    def fit(self, X: Any, y: Any) -> Self:
        """Rank the columns; `X` and `y` are those of the method."""
        column_of = np.asarray(self.column_of)
        self.columns_, group = np.unique(column_of, return_inverse=True)
        n_columns = len(self.columns_)
        if len(column_of) != X.shape[1]:
            raise ValueError(
                f"column_of must name the column of each of the {X.shape[1]} features. Got {len(column_of)} columns. "
                f"Take both from one table."
            )
        self.n_features_ = self._n_selected(n_columns)
        method = clone(self.selector)
        self.selector_ = method.set_params(n_features_to_select=self.n_features_).fit(X, y)
        order = np.argsort(self.selector_.ranking_, kind="stable")
        _, first = np.unique(group[order], return_index=True)
        self.best_ = order[first]
        self.ranking_ = np.empty(n_columns, dtype=np.intp)
        self.ranking_[np.argsort(first)] = np.arange(1, n_columns + 1)
        for name in ("scores_", "evidence_", "criterion_"):
            if hasattr(self.selector_, name):
                setattr(self, name, getattr(self.selector_, name)[self.best_])
        return self

    def _n_selected(self, n_columns: int) -> int:
        wanted = self.n_features_to_select
        if wanted is None:
            return max(1, n_columns // 2)
        if isinstance(wanted, Integral):
            if not 1 <= wanted <= n_columns:
                raise ValueError(
                    f"n_features_to_select must be at most the number of columns that can be ranked ({n_columns}). "
                    f"Got {wanted!r}. Ask for fewer, or for a share such as 0.2."
                )
            return int(wanted)
        assert isinstance(wanted, float)
        return share_of(n_columns, wanted)

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Which of the ranked columns are selected: a mask, or their places in `columns_`."""
        mask: np.ndarray = self.ranking_ <= self.n_features_
        return np.flatnonzero(mask) if indices else mask

    def feature_order(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all features, column after column and the best first, and how many the first columns have together."""
        place = self.ranking_[np.searchsorted(self.columns_, np.asarray(self.column_of))]
        order = np.lexsort((self.selector_.ranking_, place))
        return order, np.cumsum(np.bincount(place - 1))

    def _settled_params(self) -> dict[str, Any]:
        """Parameters with which another fit makes the choices again that this one made by itself."""
        settled = {
            name: value
            for name, value in self.selector_._settled_params().items()
            if name != "n_features_to_select"
        }
        return {
            "n_features_to_select": self.n_features_,
            "selector": clone(self.selector).set_params(**settled),
        }
