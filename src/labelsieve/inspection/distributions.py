"""Histograms of the values of a column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelsieve._numerics.sparse import dense
from labelsieve.io import Dataset
from labelsieve.io.dataset import Column, show_value

__all__ = ["Distribution", "distribution"]

#: Largest number of distinct values with a bar each, and number of bars of a range.
_MOST_VALUES, _N_BARS = 12, 14
#: Values beyond this quantile are counted in the last bar.
_TAIL = 0.99
#: Roles whose values have no order.
_UNORDERED = ("category", "boolean", "text", "tags")


@dataclass(frozen=True, eq=False)
class Distribution:
    """Bars, and the bar that each row belongs to.

    Attributes
    ----------
    is_discrete : bool
        Whether every bar is one value.
    texts : tuple of str
        A text for every bar, or for the two ends of the range.
    bars : ndarray of shape (n_samples,)
        Bar of every row; -1 for a row without a value.
    n_bins : int
        Number of bars.
    of : str
        The feature that is counted; "" for the column itself.
    """

    is_discrete: bool
    texts: tuple[str, ...]
    bars: np.ndarray
    n_bins: int
    of: str = ""

    def counts(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Count the rows in every bar, of some rows or of all."""
        bars = self.bars if rows is None else self.bars[rows]
        return np.bincount(bars[bars >= 0], minlength=self.n_bins)


def distribution(dataset: Dataset, column: Column, feature: int) -> Distribution:
    """Count the values of a column: its cells if they are names or numbers, else those of its best feature."""
    if dataset.frame is not None and column.role in _UNORDERED:
        return _of_names(dataset.frame[column.name])
    if dataset.values is not None and column.role == "number":
        return _of_numbers(dataset.values[column.name].to_numpy(dtype=float, na_value=np.nan))
    bars = _of_numbers(dense(dataset.X[:, [feature]]).ravel())
    name = dataset.feature_names[feature]
    return bars if name == column.name else replace(bars, of=name)


def _of_names(raw: Any) -> Distribution:
    """Count the most frequent values, and all others together."""
    texts = np.array(
        ["" if is_missing else show_value(value) for value, is_missing in zip(raw, raw.isna(), strict=True)]
    )
    names, which, counts = np.unique(texts, return_inverse=True, return_counts=True)
    order = [place for place in np.argsort(-counts, kind="stable") if names[place]]
    shown = order if len(order) <= _MOST_VALUES else order[: _MOST_VALUES - 1]
    bar_of = np.full(len(names), len(shown))
    bar_of[shown] = np.arange(len(shown))
    bar_of[names == ""] = -1
    listed = [str(names[place]) for place in shown]
    if len(shown) < len(order):
        listed.append(f"{len(order) - len(shown)} others")
    return Distribution(True, tuple(listed), bar_of[which], max(len(listed), 1))


def _of_numbers(values: np.ndarray) -> Distribution:
    bars = np.full(len(values), -1)
    known = np.isfinite(values)
    if not known.any():
        return Distribution(False, ("", ""), bars, 1)
    distinct = np.unique(values[known])
    if len(distinct) <= _MOST_VALUES:
        bars[known] = np.searchsorted(distinct, values[known])
        return Distribution(True, tuple(show_value(value) for value in distinct), bars, len(distinct))
    low, high = distinct[0], np.quantile(values[known], _TAIL)
    if not high > low:
        high = distinct[-1]
    edges = np.linspace(low, high, _N_BARS + 1)
    bars[known] = np.clip(np.searchsorted(edges, values[known], "right") - 1, 0, _N_BARS - 1)
    end = show_value(high) + (" and more" if high < distinct[-1] else "")
    return Distribution(False, (show_value(low), end), bars, _N_BARS)
