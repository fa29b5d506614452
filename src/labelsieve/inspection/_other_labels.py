"""What the other labels of a row say about a label, beyond the features.

The columns of the residuals R are standardised to Z with correlations ``S = Z'Z/n = V diag(w) V'``. Ridge regression of
each column on all others, for a penalty c, comes from the precision matrix: with ``i = 1 / (w + c)``,
``D = Z V i V'`` and ``t = diag(V i V')``, the residual is ``D / t``, its leverage
``H = 1/n + ((ZV)^2 i - D^2 / t) / n``, and the residual of a regression without the row itself
``L = (D / t) / max(1 - H, 0.05)``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelsieve._numerics.batches import batches
from labelsieve._numerics.scaling import Scaling

_PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_LEAST_FREEDOM = 0.05


def explain_by_other_labels(R: np.ndarray) -> float | None:
    """Replace residuals, in place, by what the residuals of the other labels leave of them.

    Parameters
    ----------
    R : ndarray of shape (n_samples, n_labels)
        Residuals of the labels; changed where the other labels help.

    Returns
    -------
    penalty : float or None
        The penalty of least squared error; None, and R as it was, where the mean predicts no worse than the
        other labels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal((100, 1))
    >>> R = common + 0.1 * rng.standard_normal((100, 3))
    >>> explain_by_other_labels(R)
    0.003
    >>> float((R**2).mean().round(2))
    0.02
    """
    n_samples, n_labels = R.shape
    scaling = Scaling.learn(R, "standard", centre=True)
    assert scaling.offset is not None  # learned with centre=True

    def blocks() -> Iterator[tuple[slice, np.ndarray]]:
        for block in batches(n_samples, 4 * n_labels):
            yield block, (R[block] - scaling.offset) * scaling.factor

    correlation = np.zeros((n_labels, n_labels))
    total_alone = 0.0
    for _, Z in blocks():
        correlation += Z.T @ Z / n_samples
        total_alone += np.vdot(Z, Z)
    total_alone *= (n_samples / (n_samples - 1)) ** 2
    values, V = np.linalg.eigh(correlation)
    totals = np.zeros(len(_PENALTIES))
    for _, Z in blocks():
        turned = Z @ V
        for place, penalty in enumerate(_PENALTIES):
            left = _left_out(turned, V, 1 / (values + penalty), n_samples)
            totals[place] += np.vdot(left, left)
    best = int(totals.argmin())
    if not totals[best] < total_alone:
        return None
    deviation = np.divide(1, scaling.factor, out=np.ones(n_labels), where=scaling.factor > 0)
    for block, Z in blocks():
        R[block] = _left_out(Z @ V, V, 1 / (values + _PENALTIES[best]), n_samples) * deviation
    return _PENALTIES[best]


def _left_out(turned: np.ndarray, V: np.ndarray, inverse: np.ndarray, n_samples: int) -> np.ndarray:
    """Residual of every label in some rows, regressed on the others without the row; `turned` is Z V."""
    D: np.ndarray = (turned * inverse) @ V.T
    precision = (V * V) @ inverse
    leverage = (turned * turned) @ inverse
    freedom = D * D
    freedom /= precision
    freedom -= leverage[:, None]
    freedom += n_samples - 1  # n (1 - H)
    np.maximum(freedom, n_samples * _LEAST_FREEDOM, out=freedom)
    D *= n_samples / precision
    D /= freedom
    return D
