"""Does the selection hold when the data change a little? Stability of selected features over runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelsieve.numerics.binary import is_binary

__all__ = ["jaccard_stability", "kuncheva_stability", "nogueira_stability"]


def kuncheva_stability(selected: Any) -> float:
    """Mean overlap of pairs of equally large feature sets, corrected for chance [1]_.

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
    overlaps, sizes, n_features = _overlaps(selected)
    size = sizes[0]
    if (sizes != size).any():
        raise ValueError(
            f"selected must hold sets of one size for Kuncheva's index. Got sizes from {sizes.min()} to "
            f"{sizes.max()}. Use nogueira_stability."
        )
    if size in (0, n_features):
        return 1.0
    return float(((overlaps * n_features - size**2) / (size * (n_features - size))).mean())


def nogueira_stability(selected: Any) -> float:
    """How little the selection of each feature varies, corrected for chance; sizes may differ [1]_.

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
    """Mean share of common features in pairs of feature sets; large sets overlap by chance alone.

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
    overlaps, sizes, _ = _overlaps(selected)
    first, second = np.triu_indices(len(sizes), k=1)
    unions = sizes[first] + sizes[second] - overlaps
    return float(np.divide(overlaps, unions, out=np.ones(len(unions)), where=unions > 0).mean())


def _overlaps(selected: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the overlap of each pair of runs, the sizes of the runs, and the number of features."""
    runs = _selections(selected)
    common = (runs @ runs.T).round().astype(int)
    return common[np.triu_indices(len(runs), k=1)], common.diagonal(), runs.shape[1]


def _selections(selected: Any) -> np.ndarray:
    runs = np.asarray(selected, dtype=float)
    if runs.ndim != 2 or runs.shape[0] < 2 or runs.shape[1] < 1 or not is_binary(runs):
        raise ValueError(
            f"selected must be a 0/1 matrix of shape (n_runs, n_features) with two runs or more. "
            f"Got shape {runs.shape!r}. Give masks such as get_support(), not indices."
        )
    return runs
