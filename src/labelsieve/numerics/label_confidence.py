"""Confidence in candidate labels, from estimates of any size."""

from __future__ import annotations

import numpy as np

from labelsieve.numerics.sparse import is_sparse
from labelsieve.numerics.typing import Matrix


def clipped_confidence(estimates: np.ndarray, Y: Matrix) -> Matrix:
    """Cut estimated labels to [0, 1] and to the candidates ``Y``; sparse if ``Y`` is.

    Examples
    --------
    >>> clipped_confidence(np.array([[0.4, 1.3, 0.2]]), np.array([[1.0, 1.0, 0.0]]))
    array([[0.4, 1. , 0. ]])
    """
    confidence = np.clip(estimates, 0, 1)
    kept: Matrix = Y.multiply(confidence).tocsr() if is_sparse(Y) else confidence * (Y != 0)
    return kept
