"""How steady the places of the columns are when half of the rows decide, and which columns can stand for others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelsieve._numerics.scaling import within_range
from labelsieve._numerics.standardized import standardize
from labelsieve._numerics.typing import Matrix
from labelsieve.inspection.stability import SUBSTITUTE, wilson_interval

__all__ = ["Steadiness", "correlations", "substitutes"]

#: Columns that are compared with one another at most, those of the best places.
_MOST_COMPARED = 2000


@dataclass(frozen=True, eq=False)
class Steadiness:
    """Places of the columns in every resample.

    Attributes
    ----------
    places : ndarray of int of shape (n_resamples, n_columns)
        Place of every column on each half of the rows, 1 is best; the halves of a pair stand one after the other.
    substitutes : tuple of tuple of (int, float)
        For every column the columns whose best features correlate with its own by 0.9 or more, the closest first, with
        the correlations.
    """

    places: np.ndarray
    substitutes: tuple[tuple[tuple[int, float], ...], ...]

    @property
    def n_resamples(self) -> int:
        """How many halves there were time for."""
        return len(self.places)

    def frequency(self, n_kept: int) -> np.ndarray:
        """Share of the halves in which each column is among the first."""
        shares: np.ndarray = (self.places <= n_kept).mean(axis=0)
        return shares

    def interval(self, n_kept: int) -> np.ndarray:
        """Wilson's 95 % interval of each frequency: a row per column, its lower and its upper end."""
        hits = (self.places <= n_kept).sum(axis=0)
        return np.column_stack(wilson_interval(hits, self.n_resamples))

    def group_frequency(self, n_kept: int) -> np.ndarray:
        """Share of the halves in which each column or one of its substitutes is among the first."""
        among = self.places <= n_kept
        return np.array(
            [
                among[:, [column, *(other for other, _ in others)]].any(axis=1).mean()
                for column, others in enumerate(self.substitutes)
            ]
        )


def substitutes(
    X: Matrix, best_feature: np.ndarray, order: np.ndarray
) -> tuple[tuple[tuple[int, float], ...], ...]:
    """For every column those whose best features correlate by 0.9 or more, the closest first.

    The first 2000 of the order are compared.
    """
    found: list[tuple[tuple[int, float], ...]] = [()] * len(best_feature)
    compared = order[:_MOST_COMPARED]
    n_samples = X.shape[0]
    correlation = standardize(within_range(X)).gram(best_feature[compared]) / n_samples
    np.fill_diagonal(correlation, 0)
    close = np.abs(correlation) >= SUBSTITUTE * (1 - 1e-12)  # rounding must not part twins
    for place in np.flatnonzero(close.any(axis=1)):
        others = np.flatnonzero(close[place])
        others = others[np.argsort(-np.abs(correlation[place, others]), kind="stable")]
        found[compared[place]] = tuple(
            (int(compared[other]), float(np.clip(correlation[place, other], -1, 1))) for other in others
        )
    return tuple(found)


def correlations(
    X: Matrix, best_feature: np.ndarray, column: int, others: np.ndarray
) -> tuple[tuple[int, float], ...]:
    """Other columns with the correlations of their best features with that of a column, the closest first."""
    if not len(others):
        return ()
    asked = X[:, best_feature[np.append(column, others)]]
    found = np.clip(standardize(within_range(asked)).gram(np.arange(asked.shape[1]))[0] / X.shape[0], -1, 1)
    order = np.argsort(-np.abs(found[1:]), kind="stable")
    return tuple((int(others[place]), float(found[1 + place])) for place in order)
