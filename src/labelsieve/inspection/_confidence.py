"""From support to a number in [0, 1], and what "every row has a right candidate" adds."""

from __future__ import annotations

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.sparse import dense
from labelsieve._numerics.typing import Matrix

_QUANTILE = 0.25
_LEAST_RATE, _LARGEST_RATE = 0.01, 0.6
# The statement about rows is only as good as the doubts it is weighed against: fewer wrong candidates are not assumed.
_LEAST_RATE_OF_STATEMENT = 0.2


def common_rate(support: np.ndarray) -> float:
    """Rate at which wrong candidates appear, if it is one rate: the lower quartile of the support, within bounds."""
    return float(np.clip(np.quantile(support, _QUANTILE), _LEAST_RATE, _LARGEST_RATE))


def confidence_at(support: np.ndarray, rate: float) -> np.ndarray:
    """Chance that a candidate is right, if wrong ones appear at one rate r: f / (f + r (1 - f)).

    ``f = (support - r) / (1 - r)``, within [0.005, 0.995], is the chance that the label applies.

    Examples
    --------
    >>> confidence_at(np.array([0.0, 0.6, 1.0]), 0.2).round(3)
    array([0.025, 0.833, 0.999])
    """
    f = np.clip((support - rate) / (1 - rate), 0.005, 0.995)
    confidence: np.ndarray = f / (f + rate * (1 - f))
    return confidence


def candidate_confidence(support: np.ndarray, Y: Matrix, rate: float) -> np.ndarray:
    """Confidence of every candidate, 0 elsewhere."""
    confidence = np.empty_like(support)
    for block in batches(*support.shape):
        confidence[block] = np.where(dense(Y[block]) > 0, confidence_at(support[block], rate), 0)
    return confidence


def state_that_rows_have_truth(support: np.ndarray, confidence: np.ndarray, Y: Matrix, rate: float) -> None:
    """Raise, in place, what is known once every row is said to have a right candidate.

    If the candidates of a row were right independently with chances c, all of them would be wrong with
    ``none = prod(1 - c)``; given that one is right, the chances are ``c' = c / (1 - none)``. The support J moves as
    far towards 1 as the doubt shrinks: ``J + (1 - (1 - c') / (1 - c)) max(1 - J, 0)``.
    """
    rate = max(rate, _LEAST_RATE_OF_STATEMENT)
    for block in batches(*support.shape):
        is_candidate, J = dense(Y[block]) > 0, support[block]
        chance = np.where(is_candidate, confidence_at(J, rate), 0)
        doubt_left = (1 - _given_one_right(chance)) / np.maximum(1 - chance, 1e-9)
        support[block] = np.where(is_candidate, J + (1 - doubt_left) * np.maximum(1 - J, 0), J)
        confidence[block] = np.minimum(_given_one_right(confidence[block]), 1)


def _given_one_right(chance: np.ndarray) -> np.ndarray:
    """Chances of the candidates of each row, given that at least one is right; others have the chance 0."""
    none = np.exp(np.log1p(-np.minimum(chance, 1 - 1e-9)).sum(axis=1, keepdims=True))
    given: np.ndarray = chance / np.maximum(1 - none, 1e-9)
    return given
