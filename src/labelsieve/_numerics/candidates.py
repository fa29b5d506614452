"""Numbers that belong to candidate labels only."""

from __future__ import annotations

import numpy as np

from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix


def confidence_on_candidates(M: np.ndarray, Y: Matrix) -> Matrix:
    """Cut approximate labels to [0, 1] and to the candidates; sparse if ``Y`` is.

    Examples
    --------
    >>> confidence_on_candidates(np.array([[1.2, 0.5], [0.7, -0.1]]), np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([[1. , 0. ],
           [0.7, 0. ]])
    """
    confidence = np.clip(M, 0, 1)
    kept: Matrix = Y.multiply(confidence).tocsr() if is_sparse(Y) else confidence * (Y != 0)
    return kept
