"""Rank tests of methods across datasets.

Tables of results have one row per dataset and one column per method. Rows must be independent, so pass means over folds
instead of single folds. The tests are described by Demsar [1]_.

References
----------
.. [1] Demsar, "Statistical comparisons of classifiers over multiple data
   sets", Journal of Machine Learning Research 7, 2006.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

__all__ = [
    "RankTest",
    "WinTieLoss",
    "average_ranks",
    "bonferroni_dunn_cd",
    "friedman",
    "holm",
    "iman_davenport",
    "nemenyi_cd",
    "nemenyi_p_values",
    "rank_methods",
    "win_tie_loss",
]


class RankTest(NamedTuple):
    """Test statistic and p-value.

    Examples
    --------
    >>> friedman([[1, 2], [1, 2], [1, 2], [1, 2]]).statistic  # four datasets agree
    4.0
    """

    statistic: float
    p_value: float


class WinTieLoss(NamedTuple):
    """Numbers of datasets where the first method is better, equal or worse, and the Wilcoxon p-value.

    Examples
    --------
    >>> counts = win_tie_loss([0.9, 0.8, 0.7], [0.8, 0.8, 0.9])
    >>> counts.wins, counts.ties, counts.losses
    (1, 1, 1)
    """

    wins: int
    ties: int
    losses: int
    p_value: float


def rank_methods(results: Any, direction: Literal["higher", "lower"] = "higher") -> np.ndarray:
    """Rank the methods on each dataset. 1 is best, and ties get their mean rank.

    Parameters
    ----------
    results : array-like of shape (n_datasets, n_methods)
        Values of one metric.
    direction : {"higher", "lower"}, default="higher"
        Direction of better values.

    Returns
    -------
    ranks : ndarray of shape (n_datasets, n_methods)
        Ranks. All rows have the same sum.

    Examples
    --------
    >>> rank_methods([[0.9, 0.7, 0.7]])
    array([[1. , 2.5, 2.5]])
    """
    table = _table(results, "results")
    ranks: np.ndarray = stats.rankdata(_cost(table, direction), axis=1)
    return ranks


def average_ranks(results: Any, direction: Literal["higher", "lower"] = "higher") -> np.ndarray:
    """Average the ranks of each method over the datasets. See `rank_methods`.

    Examples
    --------
    >>> average_ranks([[0.9, 0.7], [0.5, 0.5]])
    array([1.25, 1.75])
    """
    means: np.ndarray = rank_methods(results, direction).mean(axis=0)
    return means


def friedman(ranks: Any, *, correct_ties: bool = True) -> RankTest:
    """Test for differences between methods with Friedman's chi-square.

    Parameters
    ----------
    ranks : array-like of shape (n_datasets, n_methods)
        From `rank_methods`.
    correct_ties : bool, default=True
        If True, correct the variance for ties, as scipy and R do. The formula in most papers does not.

    Returns
    -------
    result : RankTest
        Test with n_methods - 1 degrees of freedom. The statistic is 0 if all ranks are tied.

    Examples
    --------
    >>> friedman([[1, 2, 3], [1, 2, 3], [1, 3, 2], [1, 2, 3]]).statistic
    6.5
    """
    table = _checked_ranks(ranks)
    n_datasets, n_methods = table.shape
    squares = n_datasets * ((table.mean(axis=0) - (n_methods + 1) / 2) ** 2).sum()
    variance = table.var(axis=1, ddof=1).mean() if correct_ties else n_methods * (n_methods + 1) / 12
    statistic = float(squares / variance) if variance > 0 else 0.0
    return RankTest(statistic, float(stats.chi2.sf(statistic, n_methods - 1)))


def iman_davenport(ranks: Any, *, correct_ties: bool = True) -> RankTest:
    """Test for differences between methods with the less conservative F form of Friedman's statistic.

    Parameters
    ----------
    ranks : array-like of shape (n_datasets, n_methods)
        From `rank_methods`.
    correct_ties : bool, default=True
        As in `friedman`.

    Returns
    -------
    result : RankTest
        Test with n_methods - 1 and (n_methods - 1)(n_datasets - 1) degrees of freedom. If all datasets agree on one
        order, the statistic is infinite and the p-value is the exact probability ``k!^(1 - N)`` for k methods and N
        datasets. The F distribution would give 0 for any N.

    Examples
    --------
    >>> iman_davenport([[1, 2, 3], [1, 2, 3], [1, 3, 2], [1, 2, 3]]).statistic  # 3 * 6.5 / (4 * 2 - 6.5)
    13.0
    """
    n_datasets, n_methods = _checked_ranks(ranks).shape
    if n_datasets < 2:
        raise ValueError(f"ranks must have at least 2 rows (datasets), got {n_datasets}.")
    chi_square = friedman(ranks, correct_ties=correct_ties).statistic
    denominator = n_datasets * (n_methods - 1) - chi_square
    # Perfect agreement gives 0 except for rounding.
    is_perfect = denominator <= 1e-12 * n_datasets * n_methods
    statistic = float("inf") if is_perfect else (n_datasets - 1) * chi_square / denominator
    if is_perfect:
        return RankTest(statistic, math.exp((1 - n_datasets) * math.lgamma(n_methods + 1)))
    degrees = n_methods - 1, (n_methods - 1) * (n_datasets - 1)
    return RankTest(statistic, float(stats.f.sf(statistic, *degrees)))


def nemenyi_cd(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Compute the critical difference of average ranks for all pairs of methods (Nemenyi).

    Parameters
    ----------
    n_methods, n_datasets : int
        Numbers of methods and datasets.
    alpha : float, default=0.05
        Probability of any false positive.

    Returns
    -------
    cd : float
        Average ranks that differ by at least this much are significantly different.

    Examples
    --------
    >>> round(nemenyi_cd(n_methods=9, n_datasets=8), 2)
    4.25
    """
    error = _standard_error(n_methods, n_datasets)
    return float(stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2) * error)


def nemenyi_p_values(ranks: Any) -> np.ndarray:
    """Compute p-values of all differences of average ranks, adjusted for all pairs (Nemenyi).

    Parameters
    ----------
    ranks : array-like of shape (n_datasets, n_methods)
        From `rank_methods`.

    Returns
    -------
    p_values : ndarray of shape (n_methods, n_methods)
        Symmetric matrix with 1 on the diagonal.

    Examples
    --------
    Four datasets agree, so the average ranks differ by 1, which is two standard errors.

    >>> nemenyi_p_values([[1, 2]] * 4).round(4)
    array([[1.    , 0.0455],
           [0.0455, 1.    ]])
    """
    table = _checked_ranks(ranks)
    means = table.mean(axis=0)
    distances = np.abs(means[:, None] - means) / _standard_error(table.shape[1], table.shape[0]) * np.sqrt(2)
    p_values = np.ones(distances.shape)
    above = np.triu_indices_from(distances, k=1)
    # Rounding can give values slightly outside [0, 1].
    p_values[above] = np.clip(stats.studentized_range.sf(distances[above], table.shape[1], np.inf), 0, 1)
    return np.minimum(p_values, p_values.T)


def bonferroni_dunn_cd(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Compute the critical difference of average ranks from a control (Bonferroni–Dunn).

    Parameters
    ----------
    n_methods, n_datasets : int
        Numbers of methods, including the control, and datasets.
    alpha : float, default=0.05
        Probability of any false positive.

    Returns
    -------
    cd : float
        Methods whose average rank differs from that of the control by at least this much are significantly different.

    Examples
    --------
    >>> round(bonferroni_dunn_cd(n_methods=9, n_datasets=8), 2)
    3.74
    """
    error = _standard_error(n_methods, n_datasets)
    return float(stats.norm.isf(alpha / (2 * (n_methods - 1))) * error)


def holm(p_values: Any) -> np.ndarray:
    """Adjust p-values for multiple tests with Holm's step-down procedure.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        P-values of individual tests.

    Returns
    -------
    adjusted : ndarray of shape (n_tests,)
        Adjusted p-values. They are at most alpha where Holm's procedure rejects at level alpha.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p_values must be a 1D array of numbers in [0, 1], got {p_values!r}.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1)


def win_tie_loss(first: Any, second: Any, direction: Literal["higher", "lower"] = "higher") -> WinTieLoss:
    """Compare two methods across datasets by wins and Wilcoxon's signed-rank test.

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
        Values of one metric for two methods.
    direction : {"higher", "lower"}, default="higher"
        Direction of better values.

    Returns
    -------
    comparison : WinTieLoss
        Counts for the first method. The p-value is two-sided and ignores ties. It is 1 if there are only ties.

    Examples
    --------
    >>> win_tie_loss([0.9, 0.8, 0.7, 0.6], [0.7, 0.8, 0.6, 0.65])
    WinTieLoss(wins=2, ties=1, losses=1, p_value=0.5)
    """
    pair = _table(np.column_stack([first, second]), "first and second")
    difference = np.diff(_cost(pair, direction), axis=1).ravel()
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    p_value = float(stats.wilcoxon(difference[difference != 0]).pvalue) if wins + losses else 1.0
    return WinTieLoss(wins, len(difference) - wins - losses, losses, p_value)


def _cost(table: np.ndarray, direction: str) -> np.ndarray:
    """Convert results to costs, where lower is better."""
    if direction not in ("higher", "lower"):
        raise ValueError(f'direction must be "higher" or "lower", got {direction!r}.')
    return -table if direction == "higher" else table


def _table(values: Any, name: str) -> np.ndarray:
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(
            f"{name} must have one row per dataset and at least 2 columns (methods), got shape {table.shape!r}."
        )
    if np.isnan(table).any():
        raise ValueError(f"{name} must not contain NaN. Leave out datasets or methods with missing results.")
    return table


def _checked_ranks(ranks: Any) -> np.ndarray:
    table = _table(ranks, "ranks")
    n_methods = table.shape[1]
    if not np.allclose(table.sum(axis=1), n_methods * (n_methods + 1) / 2):
        raise ValueError(
            f"ranks must be from 1 to {n_methods} in every row, got {table[0].tolist()!r} in the first row. "
            "To rank results, use rank_methods."
        )
    return table


def _standard_error(n_methods: int, n_datasets: int) -> float:
    """Return the standard error of a difference of two average ranks."""
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(
            f"n_methods must be at least 2 and n_datasets at least 1, got {n_methods} and {n_datasets}."
        )
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))
