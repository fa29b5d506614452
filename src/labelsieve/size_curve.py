"""How well rankings do at every size, so that one can be chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["SizeCurve"]

#: Means that differ by less are equal: rounding must not choose a size.
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class SizeCurve:
    """Scores of the first features of a ranking, by how many of them and by fold.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of features, ascending.
    scores : ndarray of shape (n_folds, n_sizes)
        Mean average precision against the candidates of the held-out rows of a fold; higher is better.

    Examples
    --------
    >>> curve = SizeCurve(np.array([1, 2, 5]), np.array([[0.5, 0.8, 0.7], [0.5, 0.6, 0.7]]))
    >>> curve.mean
    array([0.5, 0.7, 0.7])
    >>> curve.best, curve.enough
    (2, 2)
    """

    sizes: np.ndarray
    scores: np.ndarray

    def __repr__(self) -> str:
        n_folds, n_sizes = self.scores.shape
        return f"SizeCurve({n_sizes} sizes, {n_folds} folds, best {self.best}, enough {self.enough})"

    @property
    def mean(self) -> np.ndarray:
        """Mean over the folds, by size."""
        mean: np.ndarray = self.scores.mean(axis=0)
        return mean

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation over the folds, by size."""
        spread: np.ndarray = self.scores.std(axis=0)
        return spread

    @property
    def best(self) -> int:
        """The size with the highest mean; of equally good ones the smallest."""
        mean = self.mean
        return int(self.sizes[np.argmax(mean >= mean.max() - _EQUAL)])

    @property
    def enough(self) -> int:
        """The smallest size whose mean lies within the spread over the folds of the best: hardly worse."""
        best = np.searchsorted(self.sizes, self.best)
        least = self.mean[best] - self.spread[best] - _EQUAL
        return int(self.sizes[np.argmax(self.mean >= least)])
