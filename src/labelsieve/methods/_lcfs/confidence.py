"""Confidence in a candidate label from where its row lies among all the rows with that label.

Rows that have close neighbours with the label and are near a centre of them are trusted. Distances are needed
among the rows of one label only, and of many rows a block at a time: nothing is n_samples x n_samples.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from labelsieve._numerics.batches import batches
from labelsieve._numerics.graph import DISTANCE_STEPS
from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix

#: Share of the pairs of rows that are nearer than the width of the density kernel.
_NEAR_SHARE = 0.02
#: Densities that differ by less, relative to the largest, are equal but for rounding.
_SAME_DENSITY = 1e-9


def density_confidence(X: Matrix, Y: Matrix, *, n_neighbors: int, lam: float) -> np.ndarray:
    """Return a confidence between exp(-1) and 1 for every candidate, 0 elsewhere.

    With a, the mean distance to the nearest other rows with the label, and c, the distance to the nearest
    density peak, each relative to the largest of its kind, ``t = exp(-(1 + lam) a c / (lam a + c))``.

    Parameters
    ----------
    X : {ndarray, CSR, CSC} of shape (n_samples, n_features)
        Features on a common scale, centred or not.
    Y : {ndarray, sparse matrix} of shape (n_samples, n_labels)
        0/1 candidates.
    n_neighbors : int
        Rows that a is the mean of, at most all the others.
    lam : float
        Weight of c in the harmonic mean: 0 for a alone.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> density_confidence(X, np.ones((4, 1)), n_neighbors=1, lam=1.0).ravel().round(3)
    array([0.875, 1.   , 0.875, 0.368])
    """
    X = X.tocsr() if is_sparse(X) else X
    candidates = sp.csc_matrix(Y)
    confidence = np.zeros(Y.shape)
    for label in range(Y.shape[1]):
        rows = candidates.indices[candidates.indptr[label] : candidates.indptr[label + 1]]
        if len(rows):
            confidence[rows, label] = _confidence_among(X[rows], n_neighbors, lam)
    return confidence


def trusted_candidates(confidence: np.ndarray, *, theta: float, threshold: str) -> np.ndarray:
    """Return the 0/1 matrix of the candidates whose confidence is large enough.

    With the threshold "value" it must exceed ``theta``; with "quantile" it must be no less than that quantile of
    the confidences in the same label.

    Examples
    --------
    >>> t = np.array([[0.4], [0.5], [0.6], [0.0]])
    >>> trusted_candidates(t, theta=0.5, threshold="value").ravel()
    array([0., 0., 1., 0.])
    >>> trusted_candidates(t, theta=0.5, threshold="quantile").ravel()
    array([0., 1., 1., 0.])
    """
    if threshold == "value":
        trusted = confidence > theta
    else:
        # Confidences are positive, so 0 is what is no candidate.
        among = np.where(confidence > 0, confidence, np.nan)
        among[:, ~(confidence > 0).any(axis=0)] = 1.0
        trusted = confidence >= np.nanquantile(among, theta, axis=0)
    return trusted.astype(np.float64)


def _confidence_among(points: Matrix, n_neighbors: int, lam: float) -> np.ndarray:
    """Return t of rows that have a label in common."""
    if points.shape[0] == 1:
        return np.ones(1)
    distances = _Distances(points)
    width = _kernel_width(distances)
    n_neighbors = min(n_neighbors, points.shape[0] - 1)
    density, spread = np.empty((2, points.shape[0]))
    for rows, block in distances.blocks():
        if width > 0:
            density[rows] = np.exp(-((block / width) ** 2)).sum(axis=1)
        else:
            density[rows] = (block == 0).sum(axis=1)
        # The nearest of all is the row itself, or one at its place.
        spread[rows] = np.partition(block, n_neighbors, axis=1)[:, : n_neighbors + 1].sum(axis=1)
    peaks = _density_peaks(distances, density)
    away = distances.to(points[np.flatnonzero(peaks)]).min(axis=1)
    a, c = _relative(spread), _relative(away)
    harmonic = np.divide((1 + lam) * a * c, lam * a + c, out=np.zeros_like(a), where=a * c > 0)
    confidence: np.ndarray = np.exp(-harmonic)
    return confidence


class _Distances:
    """All distances between some points, by blocks of rows; one block is computed once and kept."""

    def __init__(self, points: Matrix) -> None:
        self.points = points
        self.n_points = points.shape[0]
        # Below it, a distance is the rounding of a repeated row.
        self.smallest = 2 * float(np.sqrt(squared_row_norms(points).max())) / DISTANCE_STEPS
        self._cuts = list(batches(self.n_points, self.n_points))
        self._kept = self._block(self._cuts[0]) if len(self._cuts) == 1 else None

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield some rows and their distances to all; the caller leaves them alone."""
        for rows in self._cuts:
            yield rows, self._block(rows) if self._kept is None else self._kept

    def to(self, others: Matrix) -> np.ndarray:
        """Return the distances from every point to some."""
        return self._cleaned(euclidean_distances(self.points, others))

    def _block(self, rows: slice) -> np.ndarray:
        return self._cleaned(euclidean_distances(self.points[rows], self.points))

    def _cleaned(self, distances: np.ndarray) -> np.ndarray:
        distances[distances < self.smallest] = 0
        return distances


def _kernel_width(distances: _Distances) -> float:
    """Return the distance below which 2 % of the pairs lie, exactly, in the memory of 2 % of the pairs."""
    n_points = distances.n_points
    place = int(_NEAR_SHARE * n_points * (n_points - 1)) + n_points
    nearest = np.empty(0)
    for _, block in distances.blocks():
        nearest = np.concatenate([nearest, block.ravel()])
        if len(nearest) > place:
            nearest = np.partition(nearest, place)[: place + 1]
    return float(nearest[place])


def _density_peaks(distances: _Distances, density: np.ndarray) -> np.ndarray:
    """Say which points are dense and far from any denser one; the densest if none is."""
    largest = density.max()
    margin = _SAME_DENSITY * largest
    to_denser = np.empty(distances.n_points)
    for rows, block in distances.blocks():
        is_denser = density > density[rows, None] + margin
        to_denser[rows] = np.where(is_denser, block, np.inf).min(axis=1)
    densest = np.isinf(to_denser)
    to_denser[densest] = to_denser[~densest].max(initial=0.0)
    is_dense = density + margin >= (largest + density.min()) / 2
    peaks: np.ndarray = is_dense & (to_denser > (to_denser.max() + to_denser.min()) / 2)
    return peaks if peaks.any() else densest


def _relative(values: np.ndarray) -> np.ndarray:
    largest = values.max()
    return values / largest if largest > 0 else values
