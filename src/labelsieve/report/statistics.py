"""Is the difference real? Rank tests of methods over data sets.

Tables of results have a row per data set and a column per method. Rows must be independent: give means over
folds, never single folds. The tests are those of Demsar [1]_.

References
----------
.. [1] Demsar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine Learning
   Research 7, 2006.
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
    """A test statistic and the probability of one at least as large when all methods are equal.

    Examples
    --------
    >>> friedman([[1, 2], [1, 2], [1, 2], [1, 2]]).statistic  # four data sets agree
    4.0
    """

    statistic: float
    p_value: float


class WinTieLoss(NamedTuple):
    """On how many data sets the first method is better, equal or worse, and Wilcoxon's p-value.

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
    """Rank the methods on each data set; 1 is best and equal results share the mean of their ranks.

    Parameters
    ----------
    results : array-like of shape (n_datasets, n_methods)
        One metric.
    direction : {"higher", "lower"}, default="higher"
        Which values are better.

    Returns
    -------
    ranks : ndarray of shape (n_datasets, n_methods)
        Ranks; every row sums to the same.

    Examples
    --------
    >>> rank_methods([[0.9, 0.7, 0.7]])
    array([[1. , 2.5, 2.5]])
    """
    table = _table(results, "results")
    ranks: np.ndarray = stats.rankdata(_cost(table, direction), axis=1)
    return ranks


def average_ranks(results: Any, direction: Literal["higher", "lower"] = "higher") -> np.ndarray:
    """Average the ranks of each method over the data sets; see `rank_methods`.

    Examples
    --------
    >>> average_ranks([[0.9, 0.7], [0.5, 0.5]])
    array([1.25, 1.75])
    """
    means: np.ndarray = rank_methods(results, direction).mean(axis=0)
    return means


def friedman(ranks: Any, *, correct_ties: bool = True) -> RankTest:
    """Test whether the methods differ at all, by Friedman's chi-square.

    Parameters
    ----------
    ranks : array-like of shape (n_datasets, n_methods)
        From `rank_methods`.
    correct_ties : bool, default=True
        Divide by the variance that ranks with ties have, as scipy and R do. Demsar's formula, which most
        papers of the field print, does not.

    Returns
    -------
    result : RankTest
        With n_methods - 1 degrees of freedom. If every row is one tie, the statistic is 0.

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
    """Test whether the methods differ at all, by the less conservative F form of Friedman's statistic.

    Parameters
    ----------
    ranks : array-like of shape (n_datasets, n_methods)
        From `rank_methods`.
    correct_ties : bool, default=True
        As in `friedman`.

    Returns
    -------
    result : RankTest
        With n_methods - 1 and (n_methods - 1)(n_datasets - 1) degrees of freedom. If all data sets agree on
        one order, the statistic is infinite and the p-value the exact probability of that, ``k!^(1 - N)`` for k
        methods and N data sets: the F distribution would say 0 however few they are.

    Examples
    --------
    >>> iman_davenport([[1, 2, 3], [1, 2, 3], [1, 3, 2], [1, 2, 3]]).statistic  # 3 * 6.5 / (4 * 2 - 6.5)
    13.0
    """
    n_datasets, n_methods = _checked_ranks(ranks).shape
    if n_datasets < 2:
        raise ValueError(f"ranks must cover two data sets or more. Got {n_datasets!r}.")
    chi_square = friedman(ranks, correct_ties=correct_ties).statistic
    room = n_datasets * (n_methods - 1) - chi_square
    # Perfect agreement leaves no room but for rounding.
    is_perfect = room <= 1e-12 * n_datasets * n_methods
    statistic = float("inf") if is_perfect else (n_datasets - 1) * chi_square / room
    if is_perfect:
        return RankTest(statistic, math.exp((1 - n_datasets) * math.lgamma(n_methods + 1)))
    degrees = n_methods - 1, (n_methods - 1) * (n_datasets - 1)
    return RankTest(statistic, float(stats.f.sf(statistic, *degrees)))


def nemenyi_cd(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Critical difference of average ranks when every method is compared with every other (Nemenyi).

    Parameters
    ----------
    n_methods, n_datasets : int
        Size of the table.
    alpha : float, default=0.05
        Chance of calling any difference significant when there is none.

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
    """P-values of all differences of average ranks, adjusted for comparing all pairs (Nemenyi).

    Parameters
    ----------
    ranks : array-like of shape (n_datasets, n_methods)
        From `rank_methods`.

    Returns
    -------
    p_values : ndarray of shape (n_methods, n_methods)
        Symmetric, 1 on the diagonal.

    Examples
    --------
    Four data sets agree: the average ranks lie 1 apart, which is two standard errors.

    >>> nemenyi_p_values([[1, 2]] * 4).round(4)
    array([[1.    , 0.0455],
           [0.0455, 1.    ]])
    """
    table = _checked_ranks(ranks)
    means = table.mean(axis=0)
    distances = np.abs(means[:, None] - means) / _standard_error(table.shape[1], table.shape[0]) * np.sqrt(2)
    p_values = np.ones(distances.shape)
    above = np.triu_indices_from(distances, k=1)
    # Rounding of the integral may leave the unit interval by a little.
    p_values[above] = np.clip(stats.studentized_range.sf(distances[above], table.shape[1], np.inf), 0, 1)
    return np.minimum(p_values, p_values.T)


def bonferroni_dunn_cd(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Critical difference of average ranks when all methods are compared with one control.

    Parameters
    ----------
    n_methods, n_datasets : int
        Size of the table; the control is one of the methods.
    alpha : float, default=0.05
        Chance of calling any difference significant when there is none.

    Returns
    -------
    cd : float
        Methods whose average rank differs from the control's by at least this much are different.

    Examples
    --------
    >>> round(bonferroni_dunn_cd(n_methods=9, n_datasets=8), 2)
    3.74
    """
    error = _standard_error(n_methods, n_datasets)
    return float(stats.norm.isf(alpha / (2 * (n_methods - 1))) * error)


def holm(p_values: Any) -> np.ndarray:
    """Adjust p-values for their number, step by step from the smallest (Holm).

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        P-values of single tests.

    Returns
    -------
    adjusted : ndarray of shape (n_tests,)
        At most alpha exactly where Holm's procedure rejects at level alpha.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p_values must be a vector of numbers in [0, 1]. Got {p_values!r}.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1)


def win_tie_loss(first: Any, second: Any, direction: Literal["higher", "lower"] = "higher") -> WinTieLoss:
    """Compare two methods over data sets: how often each wins, and Wilcoxon's signed-rank test.

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
        One metric of two methods.
    direction : {"higher", "lower"}, default="higher"
        Which values are better.

    Returns
    -------
    comparison : WinTieLoss
        Seen from the first method. The p-value is two-sided, with differences of 0 left out; it is 1 if
        nothing else is there.

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
    """Turn results into numbers of which the smallest is best."""
    if direction not in ("higher", "lower"):
        raise ValueError(f'direction must be "higher" or "lower". Got {direction!r}.')
    return -table if direction == "higher" else table


def _table(values: Any, name: str) -> np.ndarray:
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(
            f"{name} must have a row per data set and a column per method, two methods or more. "
            f"Got shape {table.shape!r}."
        )
    if np.isnan(table).any():
        raise ValueError(f"{name} must be complete. Got NaN. Leave out the data sets or methods that failed.")
    return table


def _checked_ranks(ranks: Any) -> np.ndarray:
    table = _table(ranks, "ranks")
    n_methods = table.shape[1]
    if not np.allclose(table.sum(axis=1), n_methods * (n_methods + 1) / 2):
        raise ValueError(
            f"ranks must be places from 1 to {n_methods} in every row. Got {table[0].tolist()!r} in the first. "
            f"Use rank_methods on results."
        )
    return table


def _standard_error(n_methods: int, n_datasets: int) -> float:
    """Return the standard error of a difference of two average ranks."""
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(
            f"Ranks need two methods and a data set. Got {n_methods!r} methods and {n_datasets!r} data sets."
        )
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))
