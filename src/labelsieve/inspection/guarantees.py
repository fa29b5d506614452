"""Numbers of wrong labels with confidence intervals, and corrections with a bound on their error rate.

An error is a wrong candidate label or a missing label. All functions assume that the reviewed labels are a random draw
from a population that was fixed before the review, without replacement, and that the verdicts are correct.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import betaincinv, stdtrit

from labelsieve._text import percent

__all__ = ["Correction", "ErrorInterval", "ListAudit"]

FEWEST_REVIEWS = 10
_SMALLEST_VARIANCE = 1e-12
_LARGEST_WEIGHT = 2.0


@dataclass(frozen=True)
class ErrorInterval:
    """Number of errors among some labels, with a confidence interval.

    Attributes
    ----------
    share : float
        Estimated share of errors.
    low, high : float
        Ends of the interval for the share.
    n_low, n_high : int
        Ends of the interval for the number of errors.
    n_labels : int
        Number of labels that the draw is from, including those reviewed.
    n_reviewed, n_errors, n_unsure : int
        Number of reviewed labels, and of those with an error or with the verdict "unsure". Unsure verdicts count as
        right for the lower end and as wrong for the upper end.
    level : float
        Confidence level.
    method : {"exact", "assisted"}
        Method of the interval.
    """

    share: float
    low: float
    high: float
    n_low: int
    n_high: int
    n_labels: int
    n_reviewed: int
    n_errors: int
    n_unsure: int
    level: float
    method: str

    def describe(self, error: str, labels: str = "labels") -> str:
        """Return the interval as a sentence; `error` is "wrong" or "missing", `labels` what the draw is from."""
        reviewed = f"{self.n_reviewed} reviewed at random, {self.n_errors} {error}"
        reviewed += f", {self.n_unsure} unsure" if self.n_unsure else ""
        return (
            f"Between {self.n_low:,} and {self.n_high:,} of {self.n_labels:,} {labels} are {error} "
            f"({percent(self.level)} confidence; {reviewed})."
        )


@dataclass(frozen=True, eq=False)
class Correction:
    """Labels that can be corrected without review, with a bound on the share of mistakes among them.

    Attributes
    ----------
    rows, labels : ndarray of int
        Row and label indices, clearest errors first. They are not reviewed.
    estimate : float or None
        Estimated share of mistakes among the corrections; None if there are none.
    alpha : float
        Bound on the expected share of mistakes.
    n_reviewed : int
        Number of reviewed labels that calibrate the bound.
    n_listed : int
        Number of labels that the draw is from.
    n_attempts : int
        Number of completed draws so far. Each attempt adds its own `alpha`.
    """

    rows: np.ndarray
    labels: np.ndarray
    estimate: float | None
    alpha: float
    n_reviewed: int
    n_listed: int
    n_attempts: int

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class ListAudit:
    """Statement with confidence about the labels of a list that were not reviewed.

    Attributes
    ----------
    passes : bool
        True if at most `alpha` of these labels are right, with confidence ``1 - delta``.
    n_right : int
        Number of reviewed labels that are right or unsure.
    most_right : int
        Largest number with which the list passes; -1 if there are too few reviews.
    n_listed, n_reviewed : int
        Number of labels in the list, and number of those reviewed.
    alpha, delta : float
        Largest share of right labels, and risk that the statement is wrong.
    """

    passes: bool
    n_right: int
    most_right: int
    n_listed: int
    n_reviewed: int
    alpha: float
    delta: float


def hypergeometric_interval(n_errors: int, n_reviewed: int, n_labels: int, level: float) -> tuple[int, int]:
    """Return the exact interval of the number of errors among all labels."""
    tail = (1 - level) / 2

    def first(low: int, high: int, is_reached: Callable[[int], bool]) -> int:
        """Return the smallest number from `low` to `high` that is reached; the last one always is."""
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if is_reached(middle) else (middle + 1, high)
        return low

    fewest, most = n_errors, n_labels - (n_reviewed - n_errors)
    lower = first(fewest, most, lambda k: stats.hypergeom.sf(n_errors - 1, n_labels, k, n_reviewed) > tail)
    beyond = first(fewest, most + 1, lambda k: stats.hypergeom.cdf(n_errors, n_labels, k, n_reviewed) <= tail)
    return lower, max(beyond - 1, lower)


def exact_interval(
    n_errors: int, n_unsure: int, n_reviewed: int, n_labels: int, level: float
) -> ErrorInterval:
    """Return the exact interval; unsure verdicts widen it."""
    n_low, _ = hypergeometric_interval(n_errors, n_reviewed, n_labels, level)
    _, n_high = hypergeometric_interval(n_errors + n_unsure, n_reviewed, n_labels, level)
    return _interval(n_errors, n_unsure, n_reviewed, n_labels, n_low, n_high, level, "exact")


def sum_intervals(level: float, listed: ErrorInterval, others: ErrorInterval) -> ErrorInterval:
    """Return the interval of the number of errors among two sets of labels."""
    n_labels = listed.n_labels + others.n_labels
    share = np.nan
    if others.n_reviewed:
        share = (listed.share * listed.n_labels + others.share * others.n_labels) / n_labels
    n_low, n_high, n_reviewed, n_errors, n_unsure = (
        getattr(listed, name) + getattr(others, name)
        for name in ("n_low", "n_high", "n_reviewed", "n_errors", "n_unsure")
    )
    found = _interval(n_errors, n_unsure, n_reviewed, n_labels, n_low, n_high, level, "exact")
    return replace(found, share=share)


def assisted_interval(
    is_error: np.ndarray, is_unsure: np.ndarray, guess: np.ndarray, reviewed: np.ndarray, level: float
) -> ErrorInterval:
    """Return an interval that is narrower if `guess` predicts the errors.

    `guess` has an entry for each label, larger for those that are more likely errors. `reviewed` holds the positions
    of the reviewed labels, `is_error` and `is_unsure` their verdicts.
    """
    n_errors, n_unsure, m, n = int(is_error.sum()), int(is_unsure.sum()), len(reviewed), len(guess)
    _, low, _ = assisted_share(is_error, guess[reviewed], guess, level)
    share, _, high = assisted_share(is_error | is_unsure, guess[reviewed], guess, level)
    if n_unsure:
        share, _, _ = assisted_share(is_error[~is_unsure], guess[reviewed[~is_unsure]], guess, level)
    # The reviewed labels are known, so the interval cannot exceed these bounds.
    low, high = max(low, n_errors / n), min(high, 1 - (m - n_errors - n_unsure) / n)
    n_low, n_high = int(np.ceil(low * n - 1e-9)), int(np.floor(high * n + 1e-9))
    found = _interval(n_errors, n_unsure, m, n, n_low, max(n_high, n_low), level, "assisted")
    return replace(found, share=share, low=low, high=high)


def _interval(
    n_errors: int,
    n_unsure: int,
    n_reviewed: int,
    n_labels: int,
    n_low: int,
    n_high: int,
    level: float,
    method: str,
) -> ErrorInterval:
    share = n_errors / max(n_reviewed - n_unsure, 1)
    return ErrorInterval(
        share, n_low / n_labels, n_high / n_labels, n_low, n_high, n_labels, n_reviewed, n_errors, n_unsure, level,
        method,
    )  # fmt: skip


def assisted_share(
    is_error: np.ndarray, guess_reviewed: np.ndarray, guess: np.ndarray, level: float
) -> tuple[float, float, float]:
    """Return share, lower and upper end of a difference estimator (PPI++) with the limits of Korn and Graubard."""
    m, y = len(is_error), is_error.astype(float)
    weight = guess_weight(y, guess_reviewed)
    rest = y - weight * guess_reviewed
    share = float(np.clip(weight * guess.mean() + rest.mean(), 0, 1))
    smoothed = (y.sum() + 0.5) / (m + 1)
    ratio = rest.var() / y.var() if y.var() > 0 else 1.0
    variance = ratio * smoothed * (1 - smoothed) / (m - 1) * (1 - m / len(guess))
    return share, *korn_graubard(share, variance, m, m - 2, level)


def guess_weight(y: np.ndarray, guess: np.ndarray) -> float:
    """Return the weight of the guess: its regression coefficient, clipped to [0, 2]."""
    variance = guess.var(ddof=1)
    if variance < _SMALLEST_VARIANCE:
        return 0.0
    return float(np.clip(np.cov(y, guess)[0, 1] / variance, 0, _LARGEST_WEIGHT))


def korn_graubard(share: float, variance: float, m: int, n_free: int, level: float) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson at the effective number of reviews."""
    effective = float(m)
    if 0 < share < 1:
        effective = max(share * (1 - share), _SMALLEST_VARIANCE) / max(variance, _SMALLEST_VARIANCE)
    quantile = 0.5 + level / 2
    effective *= (stdtrit(m - 1, quantile) / stdtrit(max(n_free, 1), quantile)) ** 2
    effective = min(effective, 2.0 * m)
    return clopper_pearson(share * effective, effective, level)


def clopper_pearson(n_errors: float, m: float, level: float) -> tuple[float, float]:
    """Return the binomial interval; the numbers need not be integers."""
    tail = (1 - level) / 2
    low = 0.0 if n_errors <= 0 else betaincinv(n_errors, m - n_errors + 1, tail)
    high = 1.0 if n_errors >= m else betaincinv(n_errors + 1, m - n_errors, 1 - tail)
    return float(low), float(high)


def correctable(
    score_open: np.ndarray, score_reviewed: np.ndarray, is_right: np.ndarray, alpha: float
) -> tuple[np.ndarray, float | None]:
    """Return a mask of the open labels to correct, and the estimated share of right ones among them.

    Low scores look like errors. With r(s) right labels among the m reviewed, and R(s) of n open labels, that have a
    score of at most s, the largest cut s with ``(1 + r(s)) / (m + 1) * n / R(s) <= alpha`` is taken. This is conformal
    selection (Jin and Candes, "Selection by prediction with conformal p-values", JMLR 24, 2023).
    """
    right, m, n = np.sort(score_reviewed[is_right]), len(score_reviewed), len(score_open)
    order = np.argsort(score_open, kind="stable")
    scores = score_open[order]
    n_right = np.searchsorted(right, scores, side="right")
    n_below = np.searchsorted(scores, scores, side="right")  # ties are corrected together
    is_allowed = (1 + n_right) * n <= alpha * (m + 1) * n_below * (1 + 1e-12)
    chosen = np.zeros(n, dtype=bool)
    if not is_allowed.any():
        return chosen, None
    last = np.flatnonzero(is_allowed)[-1]
    chosen[order[: n_below[last]]] = True
    return chosen, float((1 + n_right[last]) / (m + 1) * n / n_below[last])


def audit_list(n_right: int, n_reviewed: int, n_listed: int, alpha: float, delta: float) -> ListAudit:
    """Test whether at most `alpha` of the labels of a list that were not reviewed are right."""

    def is_passed(r: int) -> bool:
        too_many = r + int(np.floor(alpha * (n_listed - n_reviewed) + 1e-9)) + 1
        return bool(stats.hypergeom.cdf(r, n_listed, too_many, n_reviewed) <= delta)

    most_right = -1
    while most_right + 1 < n_reviewed and is_passed(most_right + 1):
        most_right += 1
    return ListAudit(n_right <= most_right, n_right, most_right, n_listed, n_reviewed, alpha, delta)
