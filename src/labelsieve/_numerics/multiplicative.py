"""The step shared by methods with non-negative factors."""

from __future__ import annotations

import numpy as np

from labelsieve._numerics.norms import EPSILON


def multiplicative_step(
    factor: np.ndarray, numerator: np.ndarray, denominator: np.ndarray, exponent: float = 1.0
) -> np.ndarray:
    """Return ``factor * (numerator / (denominator + epsilon)) ** exponent``, overwriting the two parts.

    Exponents above 1 go further in the same direction and need a check that the objective fell.
    Entries whose squares would be subnormal become 0: they no longer count, and products with subnormal
    numbers are many times slower.

    Examples
    --------
    >>> multiplicative_step(np.array([2.0, 0.0]), np.array([3.0, 1.0]), np.array([1.0, 0.0])).round(6)
    array([6., 0.])
    """
    denominator += denominator.dtype.type(EPSILON)
    numerator /= denominator
    if exponent != 1:
        np.power(numerator, numerator.dtype.type(exponent), out=numerator)
    numerator *= factor
    numerator[numerator < np.sqrt(np.finfo(numerator.dtype).tiny)] = 0
    return numerator
