"""Where the factorisation starts: from the leading singular vectors made non-negative, or at random.

Boutsidis and Gallopoulos, "SVD based initialization: a head start for nonnegative matrix factorization",
Pattern Recognition 41(4), 2008.
"""

from __future__ import annotations

import numpy as np

from labelsieve.methods._fsmir.factorization import FactorizationProblem, Factors
from labelsieve.numerics.typing import Matrix

#: Power iterations and extra directions of the subspace iteration; a start needs no more accuracy.
_POWER_ITERATIONS = 7
_OVERSAMPLING = 10


def start_factors(
    problem: FactorizationProblem, n_components: int, init: str, rng: np.random.Generator
) -> Factors:
    """Strictly positive start: U and V by ``init``, W constant so that UVW has the mean of T."""
    X, T = problem.X, problem.T
    (n_samples, n_features), n_labels = X.shape, T.shape[1]
    if init == "random":
        U = rng.random((n_samples, n_components)).astype(X.dtype)
        V = rng.random((n_components, n_features))
    else:
        U, V = nndsvd(X, n_components, fill=1.0 if init == "nndsvda" else 0.01)
    total = float(U.sum(axis=0) @ V.sum(axis=1)) * n_labels
    level = float(T.sum()) / total if total > 0 else 0.0
    return Factors(U, V.astype(np.float64), np.full((n_features, n_labels), level))


def nndsvd(X: Matrix, n_components: int, *, fill: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return non-negative U and V with U V close to ``X``.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Non-negative.
    n_components : int
        At most ``min(X.shape)``.
    fill : float, default=1.0
        What replaces zeros, as a share of the mean of ``X``; 1 is the variant called NNDSVDa. Multiplicative
        updates never leave a zero.

    Examples
    --------
    >>> U, V = nndsvd(np.array([[1.0, 2.0], [2.0, 4.0]]), 1)
    >>> (U @ V).round(6)
    array([[1., 2.],
           [2., 4.]])
    """
    left, values, right = leading_singular_vectors(X, n_components)
    for j in range(n_components):
        left[:, j], right[j] = _positive_part(left[:, j], values[j], right[j], is_first=j == 0)
    filling = fill * X.mean(dtype=np.float64)
    # What is next to nothing beside the largest entry is a zero with rounding.
    for factor in (left, right):
        factor[factor < 1e-6 * factor.max()] = filling
    return left, right


def leading_singular_vectors(X: Matrix, n_components: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leading singular triplets of ``X`` by subspace iteration from a fixed start, without X'X or XX'."""
    n_samples, n_features = X.shape
    width = min(n_components + _OVERSAMPLING, n_samples, n_features)
    basis = np.random.default_rng(0).standard_normal((n_features, width)).astype(X.dtype)
    for _ in range(_POWER_ITERATIONS):
        basis, _ = np.linalg.qr(basis)
        basis = np.asarray(X.T @ (X @ basis))
    basis, _ = np.linalg.qr(basis)
    image = np.asarray(X @ basis)
    # The singular vectors of the tall image by way of its small Gram matrix, in float64 against the squaring.
    squares, rotation = np.linalg.eigh((image.T @ image).astype(np.float64))
    leading = np.argsort(-squares, kind="stable")[:n_components]
    values = np.sqrt(np.maximum(squares[leading], 0))
    rotation = rotation[:, leading].astype(X.dtype)
    usable = values > np.finfo(X.dtype).eps * max(values[0], np.finfo(X.dtype).tiny) * max(X.shape)
    inverse = np.divide(1, values, out=np.zeros_like(values), where=usable)
    left = image @ (rotation * inverse.astype(X.dtype))
    return left, values.astype(X.dtype), (basis @ rotation).T.copy()


def _positive_part(
    left: np.ndarray, value: np.floating, right: np.ndarray, *, is_first: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Keep the sign of a singular pair that carries more of it; the first pair has one sign already."""
    if is_first:
        return np.sqrt(value) * np.abs(left), np.sqrt(value) * np.abs(right)
    pairs = [(np.maximum(sign * left, 0), np.maximum(sign * right, 0)) for sign in (1, -1)]
    weights = [np.linalg.norm(a) * np.linalg.norm(b) for a, b in pairs]
    chosen = int(weights[1] > weights[0])
    (a, b), weight = pairs[chosen], weights[chosen]
    if weight == 0:
        return np.zeros_like(left), np.zeros_like(right)
    size = np.sqrt(value * weight)
    return size * a / np.linalg.norm(a), size * b / np.linalg.norm(b)
