"""The nearest distribution over the allowed places of a row."""

from __future__ import annotations

import numpy as np


def project_rows_on_simplex(M: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return, for every row, the nearest numbers >= 0 that sum to 1 and are 0 where not allowed.

    A row in which nothing is allowed becomes 0.

    Parameters
    ----------
    M : ndarray of shape (n_rows, n_columns)
        Any numbers.
    allowed : bool ndarray of shape (n_rows, n_columns)
        Where a row may be positive.

    Returns
    -------
    projected : ndarray of shape (n_rows, n_columns)
        One new matrix.

    Notes
    -----
    The projection lowers all allowed entries by one number and cuts at 0. Of the sorted entries
    ``v_1 >= v_2 >= ...`` those stay positive whose ``v_r`` exceeds ``(v_1 + ... + v_r - 1) / r``.

    Examples
    --------
    >>> M = np.array([[0.9, 0.5, 3.0], [0.1, 0.2, 0.3]])
    >>> project_rows_on_simplex(M, np.array([[True, True, False], [False, False, False]]))
    array([[0.7, 0.3, 0. ],
           [0. , 0. , 0. ]])
    """
    ordered = np.where(allowed, M, -np.inf)
    ordered.sort(axis=1)
    ordered = ordered[:, ::-1]
    ranks = np.arange(1, M.shape[1] + 1)
    levels = (np.cumsum(ordered, axis=1) - 1) / ranks
    n_positive = np.count_nonzero(ordered > levels, axis=1)
    # A row without allowed places has no level; infinity leaves nothing of it.
    level = np.where(n_positive > 0, levels[np.arange(len(M)), n_positive - 1], np.inf)
    projected: np.ndarray = np.maximum(M - level[:, None], 0)
    projected *= allowed
    return projected
