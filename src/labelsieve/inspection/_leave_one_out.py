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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from labelsieve._candidates import split_unknown
from labelsieve._numerics.batches import batches
from labelsieve._numerics.scaling import Scaling
from labelsieve._numerics.sparse import Matrix, dense
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

    U is ``rows(slice) @ turn``, or ``rows(slice)`` if `turn` is None.
    """

    strength: np.ndarray
    rows: Callable[[slice], np.ndarray]
    turn: np.ndarray | None
    penalties: np.ndarray

    def turned(self, rows: np.ndarray) -> np.ndarray:
        """Return rows of U from rows of F."""
        return rows if self.turn is None else rows @ self.turn


def linear_directions(X: Matrix) -> Directions:
    """Compute the directions of the standardised features from the smaller of Z'Z and ZZ'."""
    n_samples, n_features = X.shape
    Z, penalties = StandardizedFeatures(X), n_samples * _LINEAR_PENALTIES
    if n_features <= n_samples:
        strength, vectors = _eigenpairs(Z.gram(slice(None)), n_samples)
        return Directions(strength, Z.take, vectors / np.sqrt(strength), penalties)
    strength, vectors = _eigenpairs(Z.row_products(), n_samples)
    return Directions(strength, vectors.__getitem__, None, penalties)


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
    by the mean of the label, and their residuals do not count.
    """

    def __init__(self, directions: Directions, Y: Matrix) -> None:
        Y, self._known = split_unknown(Y)
        self._directions, self._Y = directions, Y
        self._mean = np.asarray(Y.mean(axis=0)).ravel()
        self._deviation = np.sqrt(self._mean * (1 - self._mean))
        if self._known is not None:
            self._deviation *= np.sqrt(self._known.mean(axis=0))
        n_samples, n_labels = Y.shape
        self._projected = self._project()
        strength, penalties = directions.strength[:, None], directions.penalties
        shares = strength / (strength + penalties)
        freedoms = np.empty((n_samples, len(penalties)))
        totals = np.zeros(len(penalties))
        for block in self._blocks():
            U, T = directions.turned(directions.rows(block)), self._labels(block)
            freedoms[block] = 1 - 1 / n_samples - (U * U) @ shares
            for place in range(len(penalties)):
                errors = T - U @ (shares[:, [place]] * self._projected)
                errors /= freedoms[block, place, None]
                if self._known is not None:
                    errors *= self._known[block]
                totals[place] += np.vdot(errors, errors)
        best = int(totals.argmin())
        self._weights: np.ndarray | None = None
        self._standardized: StandardizedFeatures | None = None
        self.penalty = float(penalties[best])
        self.press = float(totals[best] / (n_samples * n_labels))
        self._shares, self._freedom = shares[:, [best]], freedoms[:, [best]].copy()

    def residuals(self) -> np.ndarray:
        """Return Y, the mean if unknown, minus its prediction from the other rows, of shape (n_samples, n_labels)."""
        weights = self._shares * self._projected
        if self._directions.turn is not None:
            weights = self._directions.turn @ weights
        residuals = np.empty(self._Y.shape)
        for block in self._blocks():
            errors = self._labels(block) - self._directions.rows(block) @ weights
            residuals[block] = errors * self._deviation / self._freedom[block]
        return residuals

    def effects(self, X: Matrix, rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute what each feature adds to the prediction of some rows and labels from the other rows.

        `X` is what `linear_directions` was given. Returns a base, the share of the other rows that have the label, and
        effects of shape (n_places, n_features): they add up to Y minus the residual.
        """
        n_samples, directions = X.shape[0], self._directions
        weights = self.weights(X)
        Z = self.features(X)
        distinct, place = np.unique(rows, return_inverse=True)
        standardized = dense(Z.scaling.apply(X[distinct]))
        shares, strength = self._shares, directions.strength[:, None]
        if directions.turn is not None:
            U = standardized @ directions.turn
            own = directions.turn @ (shares * U.T)
        else:
            every = directions.rows(slice(None))
            U = every[distinct]
            own = Z.products(every @ (shares / strength * U.T))
        wanted = self._labels(distinct)[place, labels]
        projected = np.einsum("ij,ji->i", U[place], (shares * self._projected)[:, labels])
        left_out = (wanted - projected) / self._freedom[rows, 0]
        deviation = self._deviation[labels]
        effects = weights.T[labels] - own.T[place] * left_out[:, None]
        effects *= standardized[place]
        effects *= deviation[:, None]
        return self._mean[labels] - deviation * left_out / n_samples, effects

    def weights(self, X: Matrix) -> np.ndarray:
        """Return the weights of the features for the labels; `X` is what `linear_directions` was given."""
        if self._weights is None:
            directions = self._directions
            if directions.turn is not None:
                self._weights = directions.turn @ (self._shares * self._projected)
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
        parts = (self._directions.rows(block).T @ self._labels(block) for block in self._blocks())
        total: np.ndarray = sum(parts, start=np.zeros(()))
        return total if self._directions.turn is None else self._directions.turn.T @ total

    def _blocks(self) -> list[slice]:
        turn = self._directions.turn
        width = len(self._directions.strength) if turn is None else sum(turn.shape)
        return list(batches(self._Y.shape[0], width + self._Y.shape[1]))

    def _labels(self, block: slice | np.ndarray) -> np.ndarray:
        """Return some rows of T, the standardised labels."""
        labels: np.ndarray = (dense(self._Y[block]) - self._mean) / self._deviation
        return labels


def explain_by_other_labels(R: np.ndarray, known: np.ndarray | None = None) -> float | None:
    """Replace residuals, in place, by the part that the residuals of the other labels do not explain.

    The columns of R are standardised to Z with correlations ``S = Z'Z/n = V diag(w) V'``. Ridge regression of each
    column on all others, with penalty c, follows from the precision matrix: with ``i = 1 / (w + c)``,
    ``D = Z V i V'`` and ``t = diag(V i V')``, the residual is ``D / t``, its leverage
    ``H = 1/n + ((ZV)^2 i - D^2 / t) / n``, and the residual without the row ``(D / t) / max(1 - H, 0.05)``.

    Returns the penalty with the least squared error, or None, with R unchanged, if the mean predicts as well. The error
    is that of the residuals of `known` labels; those of others should be 0.
    """
    n_samples, n_labels = R.shape
    scaling = Scaling.learn(R, "standard", centre=True)
    assert scaling.offset is not None  # learned with centre=True

    def blocks() -> Iterator[tuple[slice, np.ndarray]]:
        for block in batches(n_samples, 4 * n_labels):
            yield block, (R[block] - scaling.offset) * scaling.factor

    correlation = np.zeros((n_labels, n_labels))
    total_alone = 0.0

    def squared_error(block: slice, errors: np.ndarray) -> float:
        errors = errors if known is None else errors * known[block]
        return float(np.vdot(errors, errors))

    for block, Z in blocks():
        correlation += Z.T @ Z / n_samples
        total_alone += squared_error(block, Z)
    total_alone *= (n_samples / (n_samples - 1)) ** 2
    values, V = np.linalg.eigh(correlation)
    totals = np.zeros(len(_LABEL_PENALTIES))
    for block, Z in blocks():
        turned = Z @ V
        for place, penalty in enumerate(_LABEL_PENALTIES):
            left = _left_out(turned, V, 1 / (values + penalty), n_samples)
            totals[place] += squared_error(block, left)
    best = int(totals.argmin())
    if not totals[best] < total_alone:
        return None
    deviation = np.divide(1, scaling.factor, out=np.ones(n_labels), where=scaling.factor > 0)
    for block, Z in blocks():
        R[block] = _left_out(Z @ V, V, 1 / (values + _LABEL_PENALTIES[best]), n_samples) * deviation
    return _LABEL_PENALTIES[best]


def _left_out(turned: np.ndarray, V: np.ndarray, inverse: np.ndarray, n_samples: int) -> np.ndarray:
    """Return the residuals of some rows, each label regressed on the others without the row; `turned` is Z V."""
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
