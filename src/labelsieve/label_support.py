"""How far the selected features support each candidate label.

A method's label confidences say how it weighed the candidates, which need not tell true from false ones:
those of PML-FSMIR measure agreement among the labels of a row and are higher in rows with more candidates.
Regression on the features it selected asks another witness, and does so for every method alike.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from labelsieve.numerics.batches import batches
from labelsieve.numerics.sparse import dense
from labelsieve.numerics.typing import Matrix

# Share of a standardised feature's variance that is added to it; keeps duplicate features harmless.
_RIDGE = 0.01


def candidate_support(X: Matrix, Y: sp.csr_array) -> np.ndarray:
    """Predict every candidate from the other rows by ridge regression on the features.

    The prediction leaves the row itself out (in closed form), so a candidate cannot support itself. Around 1
    the features speak for the candidate, around 0 or below against it.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        The features to ask, a hundred rather than thousands: all pairs of them are formed.
    Y : csr_array of shape (n_samples, n_labels)
        0/1 candidates.

    Returns
    -------
    ndarray of shape (number of candidates,)
        Support in the order of the entries of `Y`.

    Examples
    --------
    >>> X = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> Y = sp.csr_array(np.r_[1, np.zeros(49), np.ones(50)][:, None])  # the first candidate is odd
    >>> support = candidate_support(X, Y)
    >>> bool(support[0] < 0.01), bool(support[1:].min() > 0.98)
    (True, True)
    """
    n_samples = X.shape[0]
    mean = np.asarray(X.mean(axis=0)).ravel()
    covariance = dense(X.T @ X) / n_samples - np.outer(mean, mean)
    variance = np.diag(covariance).copy()
    # What cancellation leaves of a constant feature is not variance.
    variance[variance <= 1e-12 * mean**2] = 0
    deviation = np.sqrt(np.where(variance > 0, variance, 1))
    frequency = np.asarray(Y.mean(axis=0)).ravel()
    moments = dense(X.T @ Y.astype(float))
    moments = (moments - n_samples * np.outer(mean, frequency)) / deviation[:, None]
    correlation = covariance / np.outer(deviation, deviation)
    factor = la.cho_factor(n_samples * (correlation + _RIDGE * np.eye(len(mean))))
    weights = la.cho_solve(factor, moments)
    support = np.empty(Y.nnz)
    for block in batches(n_samples, Y.shape[1] + len(mean)):
        Z = (dense(X[block]) - mean) / deviation
        own = Y[block]
        rows = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
        predicted = (frequency + Z @ weights)[rows, own.indices]
        leverage = (1 / n_samples + np.einsum("ij,ji->i", Z, la.cho_solve(factor, Z.T)))[rows]
        # Leaving out a row whose label is 1 changes its prediction p to (p - h) / (1 - h).
        start = Y.indptr[block.start]
        support[start : start + own.nnz] = (predicted - leverage) / (1 - leverage)
    return support
