"""What a fit will compute. It is known beforehand, so that operations and bytes can be counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelsieve.methods._evidence.gram import LARGEST_GRAM

__all__ = ["REDUNDANCIES", "Plan", "plan_fit", "size_grid"]

#: What "auto" chooses from, steadiest first: a filter, half and half, forward selection.
REDUNDANCIES = (np.inf, 1.0, 0.0)
#: Fewer rows are not divided into folds.
_FEWEST_ROWS = 6
#: Folds that choose the number of features, at least.
_SIZE_FOLDS = 5
#: Sizes on the grid beside all features, and the largest of them as a share of the features.
_N_SIZES = 12
_LARGEST_SHARE = 0.6


@dataclass(frozen=True)
class Plan:
    """The searches of one fit.

    Parameters
    ----------
    redundancies : tuple of float
        The redundancies to try, steadiest first; the one to use if there is one.
    sizes : ndarray of int
        The numbers of features to try, ascending.
    n_folds : int
        Inner folds; 0 if there is nothing to choose, or too little to choose by.
    inner_steps : int
        Greedy steps of a search in an inner fold.
    most_steps : int
        Greedy steps of the search in all rows, at most.
    """

    redundancies: tuple[float, ...]
    sizes: np.ndarray
    n_folds: int
    inner_steps: int
    most_steps: int

    @property
    def n_columns(self) -> int:
        """Columns of Z'Z that all searches need; one of an inner fold counts by its share of the rows."""
        n_greedy = np.count_nonzero(np.isfinite(self.redundancies))
        return int(self.most_steps + n_greedy * self.inner_steps * max(self.n_folds - 1, 0))

    def n_bytes(self, n_features: int, n_labels: int) -> int:
        """Bytes of what grows with the features: their products with the labels, and the greedy steps."""
        # The products of all rows, those of a fold, and those that change along a search.
        n_products = 1 + (self.n_folds > 0) + (self.most_steps > 0)
        return 8 * n_features * (n_products * n_labels + self.most_steps)


def plan_fit(
    shape: tuple[int, int],
    *,
    n_selected: int | None,
    redundancy: float | None,
    n_folds: int,
    max_steps: int,
) -> Plan:
    """Plan the fit to features of a shape; None for the number of features or the redundancy has it chosen."""
    n_samples, n_features = shape
    redundancies = REDUNDANCIES if redundancy is None else (redundancy,)
    if n_selected is None:
        sizes = size_grid(n_features, max_steps)
        n_folds = min(max(n_folds, _SIZE_FOLDS), n_samples // 2)
        has_choice = True
    else:
        sizes = np.array([n_selected if n_features <= LARGEST_GRAM else min(n_selected, max_steps)])
        has_choice = redundancy is None and n_selected < n_features and n_samples >= 2 * n_folds
    if not has_choice or n_samples < _FEWEST_ROWS:
        n_folds = 0
    most_steps = 0 if redundancy == np.inf else min(n_selected or n_features, max_steps)
    # All features are the same features in any order, so nobody searches for them in a fold.
    inner_steps = min(max(sizes[sizes < n_features], default=0), max_steps)
    return Plan(redundancies, sizes, n_folds, int(inner_steps), most_steps)


def size_grid(n_features: int, max_steps: int) -> np.ndarray:
    """Sizes to try: twelve in geometric steps up to 0.6 of the features, and all of them.

    Of more than 5000 features neither all nor more than `max_steps` are tried.

    Examples
    --------
    >>> size_grid(100, max_steps=1000)
    array([  1,   2,   3,   4,   6,   9,  14,  20,  29,  41,  60, 100])
    """
    largest = _LARGEST_SHARE * n_features
    is_wide = n_features > LARGEST_GRAM
    if is_wide:
        largest = min(largest, max_steps)
    grid = np.round(np.geomspace(1, max(largest, 1), _N_SIZES)).astype(np.intp)
    return np.unique(grid if is_wide else np.append(grid, n_features))
