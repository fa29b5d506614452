"""Ridge regressions that leave out the row they predict, for many labels and penalties at once.

With U and w the eigenvectors and eigenvalues of the products of rows (of standardised features, or a centred
kernel), T the standardised labels, p the penalty and ``s = w / (w + p)``, leaving out the predicted row has a closed
form::

    h = 1/n + (U o U) s            leverage of every row; 1 - h is its freedom
    E = (T - U s U'T) / (1 - h)    residual of the prediction from the other rows

The rows are standardised once, with all of them. The penalty with the least PRESS, the sum of squares of E, is taken.
Rows of U come in blocks, and no matrix is larger than the square of the smaller side of the features.

Linear weights can leave the row out too: with A = Z'Z + p I and W = A^-1 Z'T, those without row i are
``W - A^-1 z_i E_i``. So every feature has an effect on the prediction of a row, and the effects add up.

Rows that belong together are left out together. For the rows g of a group, E is the solution of
``(I - 1/n - U_g s U_g') E_g = T_g - U_g s U'T``, and the weights are ``W - A^-1 Z_g' E_g``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._candidates import split_unknown
from labelsieve._numerics.batches import batches
from labelsieve._numerics.row_groups import blocks_by_size
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve._numerics.standardized import StandardizedFeatures

# Penalties per row for linear features, as shares of the trace of a kernel, and for the other labels.
_LINEAR_PENALTIES = np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100])
_KERNEL_PENALTIES = np.array([3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3])
_LABEL_PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_LEAST_FREEDOM = 0.05
# Landmarks approximate the kernel of more rows; very many rows have fewer landmarks, to save memory.
_MOST_EXACT_ROWS = 1000
_N_LANDMARKS, _LEAST_LANDMARKS = 500, 50
_MOST_KERNEL_VALUES = 2**26


@dataclass(frozen=True)
class Directions:
    """Orthonormal directions U in which the rows differ, with their eigenvalues, and penalties to choose from.

    With the rows ``F = rows(block) - offset``, U is ``F @ turn``, or F if `turn` is None. Rows may be sparse.
    """

    strength: np.ndarray
    rows: Callable[[Any], Matrix]
    turn: np.ndarray | None
    penalties: np.ndarray
    offset: np.ndarray | None = None

    def weights(self, weights: np.ndarray) -> np.ndarray:
        """Convert weights of U to weights of F."""
        return weights if self.turn is None else self.turn @ weights

    def times(self, block: Any, weights: np.ndarray) -> np.ndarray:
        """Return the products of some rows of F with weights."""
        product: np.ndarray = self.rows(block) @ weights
        return product if self.offset is None else product - self.offset @ weights

    def turned(self, block: Any) -> np.ndarray:
        """Return some rows of U."""
        return dense(self.rows(block)) if self.turn is None else self.times(block, self.turn)

    def products(self, block: Any, labels: np.ndarray) -> np.ndarray:
        """Return the products of some rows of F, transposed, with labels."""
        product: np.ndarray = self.rows(block).T @ labels
        return product if self.offset is None else product - np.outer(self.offset, labels.sum(axis=0))


def linear_directions(X: Matrix) -> Directions:
    """Compute the directions of the standardised features from the smaller of Z'Z and ZZ'."""
    n_samples, n_features = X.shape
    Z, penalties = StandardizedFeatures(X), n_samples * _LINEAR_PENALTIES
    if n_features > n_samples:
        strength, vectors = _eigenpairs(Z.row_products(), n_samples)
        return Directions(strength, vectors.__getitem__, None, penalties)
    strength, vectors = _eigenpairs(Z.gram(slice(None)), n_samples)
    turn = vectors / np.sqrt(strength)
    if not is_sparse(Z.X):
        return Directions(strength, Z.take, turn, penalties)
    scaled, mean = Z.scaling.split(Z.X)
    return Directions(strength, sp.csr_array(scaled).__getitem__, turn, penalties, mean)


def rbf_directions(X: Matrix) -> Directions:
    """Compute the directions of the centred kernel exp(-distance / median distance), of squared distances.

    Beyond 1000 rows, 500 landmark rows approximate it (Nystroem's method): with K the kernel of the landmarks and C
    that of all rows and the landmarks, the features are C K^-1/2. Landmarks are drawn with a fixed seed.
    """
    n_samples = X.shape[0]
    Z = StandardizedFeatures(X)
    if n_samples <= _MOST_EXACT_ROWS:
        distances = _squared_distances(Z, X)
        kernel = np.exp(distances / -_scale(distances))
        means = kernel.mean(axis=0)
        kernel += means.mean() - means - means[:, None]
        strength, vectors = _eigenpairs(kernel, n_samples)
        return Directions(strength, vectors.__getitem__, None, strength.sum() * _KERNEL_PENALTIES)
    n_landmarks = min(_N_LANDMARKS, max(_LEAST_LANDMARKS, _MOST_KERNEL_VALUES // n_samples))
    landmarks = np.sort(np.random.default_rng(0).permutation(n_samples)[:n_landmarks])
    distances = _squared_distances(Z, X, landmarks)
    distances /= -_scale(distances[landmarks])
    features = np.exp(distances, out=distances)
    strength, vectors = _eigenpairs(features[landmarks], n_landmarks)
    features = features @ (vectors / np.sqrt(strength))
    features -= features.mean(axis=0)
    strength, vectors = _eigenpairs(features.T @ features, n_samples)
    return Directions(
        strength,
        features.__getitem__,
        vectors / np.sqrt(strength),
        np.vdot(features, features) * _KERNEL_PENALTIES,
    )


def _squared_distances(Z: StandardizedFeatures, X: Matrix, others: np.ndarray | None = None) -> np.ndarray:
    """Compute squared distances of all standardised rows from some of them, or from all."""
    if others is None:
        distances = Z.row_products()
        norms = own = distances.diagonal().copy()
    else:
        landmarks = dense(Z.scaling.apply(X[others]))
        distances, norms = np.empty((X.shape[0], len(others))), np.empty(X.shape[0])
        own = np.einsum("ij,ij->i", landmarks, landmarks)
        for block in batches(X.shape[0], X.shape[1] + len(others)):
            rows = Z.take(block)
            distances[block] = rows @ landmarks.T
            norms[block] = np.einsum("ij,ij->i", rows, rows)
    distances *= -2
    distances += norms[:, None]
    distances += own
    # Equal rows have distance 0, not a rounding error.
    distances[distances <= 1e-12 * norms.max()] = 0
    return distances


def _scale(distances: np.ndarray) -> float:
    """Return the median distance of different rows, given a square matrix of distances."""
    pairs = distances[np.tri(len(distances), k=-1, dtype=bool).T]
    # The median is 0 if most rows are equal; the mean is not.
    return float(np.median(pairs) or pairs.mean() or 1.0)


def _eigenpairs(products: np.ndarray, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues that are more than rounding, and their vectors."""
    values, vectors = np.linalg.eigh(products)
    # The second bound is for constant features: others have an eigenvalue near n.
    kept = (values > 1e-9 * values[-1]) & (values > 1e-12 * n_samples)
    return values[kept], vectors[:, kept]


class LeaveOneOut:
    """Regression of 0/1 labels that vary on directions, with the penalty of least PRESS.

    `press` is the mean square of the left-out residuals of the standardised labels. Unknown labels (NaN) are replaced
    by the mean of the label, and their residuals do not count. Rows with the same number in `groups` are left out
    together.
    """

    def __init__(self, directions: Directions, Y: Matrix, groups: np.ndarray | None = None) -> None:
        Y, self._known = split_unknown(Y)
        self._directions, self._Y = directions, Y
        self._groups = groups
        self._mean = np.asarray(Y.mean(axis=0)).ravel()
        self._deviation = np.sqrt(self._mean * (1 - self._mean))
        if self._known is not None:
            self._deviation *= np.sqrt(self._known.mean(axis=0))
        n_samples, n_labels = Y.shape
        self._projected = self._project()
        strength, penalties = directions.strength[:, None], directions.penalties
        shares = strength / (strength + penalties)
        totals = np.zeros(len(penalties))
        freedoms = np.empty((n_samples, len(penalties)))
        weights = [
            directions.weights(shares[:, [place]] * self._projected) for place in range(len(penalties))
        ]
        for rows, size in self._blocks():
            freedom = self._freedom_of(rows, size, shares)
            if size == 1:
                freedoms[rows] = np.concatenate(freedom, axis=1)
            T = self._labels(rows)
            for place in range(len(penalties)):
                errors = _left_out_of(freedom[place], T - directions.times(rows, weights[place]))
                if self._known is not None:
                    errors *= self._known[rows]
                totals[place] += np.vdot(errors, errors)
        best = int(totals.argmin())
        self._weights: np.ndarray | None = None
        self._standardized: StandardizedFeatures | None = None
        self.penalty = float(penalties[best])
        self.press = float(totals[best] / (n_samples * n_labels))
        self._shares, self._row_weights = shares[:, [best]], weights[best]
        self._freedom = freedoms[:, [best]].copy()  # of the rows that are left out alone

    def residuals(self) -> np.ndarray:
        """Return Y, the mean if unknown, minus its prediction from the other rows, of shape (n_samples, n_labels)."""
        residuals = np.empty(self._Y.shape)
        for rows, size in self._blocks():
            residuals[rows] = self._left_out(rows, size) * self._deviation
        return residuals

    def effects(self, X: Matrix, rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute what each feature adds to the prediction of some rows and labels from the other rows.

        `X` is what `linear_directions` was given. Returns a base, the share of the other rows that have the label, and
        effects of shape (n_places, n_features): they add up to Y minus the residual.
        """
        n_samples = X.shape[0]
        weights = self.weights(X)
        Z = self.features(X)
        distinct, place = np.unique(rows, return_inverse=True)
        standardized = dense(Z.scaling.apply(X[distinct]))
        effects = weights.T[labels]
        left_out_of = np.zeros(len(rows))
        # The rows that are left out with each row; most often it is alone.
        groups = np.arange(n_samples) if self._groups is None else self._groups
        asked, group_of = np.unique(groups[distinct], return_inverse=True)
        by_group = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[by_group], [asked, asked + 1])
        sizes = starts[1] - starts[0]
        for size in np.unique(sizes):
            of_size = np.flatnonzero(sizes == size)
            for block in batches(len(of_size), int(size) * X.shape[1]):
                members = by_group[starts[0][of_size[block]][:, None] + np.arange(size)]
                own = self._solved(Z, members.ravel()).reshape(*members.shape, -1)
                errors = self._left_out(members.ravel(), int(size)).reshape(*members.shape, -1)
                number = np.full(len(asked), -1)
                number[of_size[block]] = np.arange(len(members))
                at = np.flatnonzero(number[group_of[place]] >= 0)
                of_group = errors[number[group_of[place[at]]], :, labels[at]]
                effects[at] -= np.einsum("pm,pmj->pj", of_group, own[number[group_of[place[at]]]])
                left_out_of[at] = of_group.sum(axis=1)
        effects *= standardized[place]
        deviation = self._deviation[labels]
        effects *= deviation[:, None]
        return self._mean[labels] - deviation * left_out_of / n_samples, effects

    def _solved(self, Z: StandardizedFeatures, rows: np.ndarray) -> np.ndarray:
        """Return A^-1 z of some rows z of Z, one row each."""
        directions, U = self._directions, self._directions.turned(rows)
        if directions.turn is not None:
            own: np.ndarray = (U * self._shares.T) @ directions.turn.T
            return own
        every = directions.rows(slice(None)) @ (self._shares / directions.strength[:, None] * U.T)
        return Z.products(every).T

    def weights(self, X: Matrix) -> np.ndarray:
        """Return the weights of the features for the labels; `X` is what `linear_directions` was given."""
        if self._weights is None:
            directions = self._directions
            if directions.turn is not None:
                self._weights = self._row_weights
            else:
                scaled = self._shares / directions.strength[:, None] * self._projected
                self._weights = self.features(X).products(directions.rows(slice(None)) @ scaled)
        return self._weights

    def features(self, X: Matrix) -> StandardizedFeatures:
        """Return the standardised features; `X` is what `linear_directions` was given."""
        if self._standardized is None:
            self._standardized = StandardizedFeatures(X)
        return self._standardized

    def _project(self) -> np.ndarray:
        """Compute U'T, a row for every direction."""
        directions = self._directions
        parts = (directions.products(rows, self._labels(rows)) for rows, _ in self._blocks())
        total: np.ndarray = sum(parts, start=np.zeros(()))
        return total if directions.turn is None else directions.turn.T @ total

    def _left_out(self, rows: Any, size: int) -> np.ndarray:
        """Return the standardised residuals of some rows, of which each `size` are left out together."""
        freedom = self._freedom[rows] if size == 1 else self._freedom_of(rows, size, self._shares)[0]
        return _left_out_of(freedom, self._labels(rows) - self._directions.times(rows, self._row_weights))

    def _freedom_of(self, rows: Any, size: int, shares: np.ndarray) -> list[np.ndarray]:
        """Return I - 1/n - U s U' for every penalty: a column for single rows, or a matrix for every group."""
        n_samples, U = self._Y.shape[0], self._directions.turned(rows)
        if size == 1:
            return list((1 - 1 / n_samples - (U * U) @ shares).T[:, :, None])
        grouped = U.reshape(-1, size, U.shape[1])
        own = np.eye(size) - 1 / n_samples
        return [own - (grouped * share) @ grouped.transpose(0, 2, 1) for share in shares.T]

    def _blocks(self) -> Iterator[tuple[Any, int]]:
        """Yield batches of rows, with the number of neighbouring rows that are left out together."""
        turn = self._directions.turn
        width = len(self._directions.strength) if turn is None else sum(turn.shape)
        width += self._Y.shape[1]
        if self._groups is None:
            for block in batches(self._Y.shape[0], width):
                yield block, 1
            return
        for members in blocks_by_size(self._groups):
            size = members.shape[1]
            for block in batches(len(members), size * (width + size)):
                yield members[block].ravel(), size

    def _labels(self, rows: Any) -> np.ndarray:
        """Return some rows of T, the standardised labels."""
        labels: np.ndarray = (dense(self._Y[rows]) - self._mean) / self._deviation
        return labels


def _left_out_of(freedom: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return residuals without the own rows, given the freedom of single rows or of groups."""
    if freedom.ndim == 2:
        errors /= freedom
        return errors
    grouped = errors.reshape(len(freedom), freedom.shape[1], -1)
    return np.linalg.solve(freedom, grouped).reshape(errors.shape)


def explain_by_other_labels(
    R: np.ndarray, known: np.ndarray | None = None, groups: np.ndarray | None = None
) -> float | None:
    """Replace residuals, in place, by the part that the residuals of the other labels do not explain.

    The columns of R are standardised to Z with correlations ``S = Z'Z/n = V diag(w) V'``. Ridge regression of each
    column on all others, with penalty c, follows from the precision matrix: with ``i = 1 / (w + c)``,
    ``D = Z V i V'`` and ``t = diag(V i V')``, the residual is ``D / t``, its leverage
    ``H = 1/n + ((ZV)^2 i - D^2 / t) / n``, and the residual without the row ``(D / t) / max(1 - H, 0.05)``.

    Rows with the same number in `groups` are left out together. With ``K = ZV i V'Z'`` of a group and
    ``B = (I - 1/n - K/n)^-1``, the residual of label l is ``n B d / (n t + d' B d)``, where d are the group's rows of
    ``D_l``.

    Returns the penalty with the least squared error, or None, with R unchanged, if the mean predicts as well. The error
    is that of the residuals of `known` labels; those of others should be 0.
    """
    n_samples, n_labels = R.shape
    scaling = Scaling.learn(R, "standard", centre=True)
    assert scaling.offset is not None  # learned with centre=True

    def blocks() -> Iterator[tuple[Any, int, np.ndarray]]:
        if groups is None:
            for block in batches(n_samples, 4 * n_labels):
                yield block, 1, (R[block] - scaling.offset) * scaling.factor
            return
        for members in blocks_by_size(groups):
            size = members.shape[1]
            for block in batches(len(members), size * (4 * n_labels + size)):
                rows = members[block].ravel()
                yield rows, size, (R[rows] - scaling.offset) * scaling.factor

    correlation = np.zeros((n_labels, n_labels))
    total_alone = 0.0

    def squared_error(rows: Any, errors: np.ndarray) -> float:
        errors = errors if known is None else errors * known[rows]
        return float(np.vdot(errors, errors))

    for rows, size, Z in blocks():
        correlation += Z.T @ Z / n_samples
        # The mean without the own rows.
        alone = Z + Z.reshape(-1, size, n_labels).sum(axis=1).repeat(size, axis=0) / (n_samples - size)
        total_alone += squared_error(rows, alone)
    values, V = np.linalg.eigh(correlation)
    totals = np.zeros(len(_LABEL_PENALTIES))
    for rows, size, Z in blocks():
        turned = Z @ V
        for place, penalty in enumerate(_LABEL_PENALTIES):
            left = _left_out(turned, V, 1 / (values + penalty), n_samples, size)
            totals[place] += squared_error(rows, left)
    best = int(totals.argmin())
    if not totals[best] < total_alone:
        return None
    deviation = np.divide(1, scaling.factor, out=np.ones(n_labels), where=scaling.factor > 0)
    for rows, size, Z in blocks():
        left = _left_out(Z @ V, V, 1 / (values + _LABEL_PENALTIES[best]), n_samples, size)
        R[rows] = left * deviation
    return _LABEL_PENALTIES[best]


def _left_out(
    turned: np.ndarray, V: np.ndarray, inverse: np.ndarray, n_samples: int, size: int
) -> np.ndarray:
    """Return the residuals of some rows, each label regressed on the others without the row; `turned` is Z V.

    Each `size` neighbouring rows are left out together.
    """
    D: np.ndarray = (turned * inverse) @ V.T
    precision = (V * V) @ inverse
    if size > 1:
        grouped, d = turned.reshape(-1, size, len(V)), D.reshape(-1, size, len(V))
        freedom = np.eye(size) - (1 + (grouped * inverse) @ grouped.transpose(0, 2, 1)) / n_samples
        solved = np.linalg.solve(freedom, d)
        solved *= n_samples / (n_samples * precision + (d * solved).sum(axis=1, keepdims=True))
        return solved.reshape(D.shape)
    leverage = (turned * turned) @ inverse
    freedom = D * D
    freedom /= precision
    freedom -= leverage[:, None]
    freedom += n_samples - 1  # n (1 - H)
    np.maximum(freedom, n_samples * _LEAST_FREEDOM, out=freedom)
    D *= n_samples / precision
    D /= freedom
    return D
