"""Non-negative factorisation of PML-FSMIR, with its start and its multiplicative updates.

    F(U, V, W) = |UVW - T|^2 + alpha |X - UV|^2 + beta tr(W L W') + gamma |W|_21

with U, V, W >= 0 and L the Laplacian of the label information. Only ``X V'`` and ``U'X`` use the features.
All other products are small, and nothing of the size of ``X`` is formed. The rows of X, T and U come in
blocks, and only sums over blocks are needed. U is stored with the rows, V and W are returned.

X, T and U share a dtype. Small arrays, and V and W in the multiplicative updates, are in float64, which
keeps accuracy for float32 data at no cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelsieve._blocks.blocks import MemoryBlocks, RowBlocks, add, stack
from labelsieve._numerics.batches import batches
from labelsieve._numerics.norms import EPSILON, l21_norm, l21_weights
from labelsieve._numerics.products import gram, inner, left_product, right_product, squared_norm
from labelsieve._numerics.sparse import Matrix, is_sparse
from labelsieve._row_problem import RowProblem

#: Number of rows that are processed together. Large blocks reduce the number of products with all features.
_BLOCK_ROWS = 2**15


class Factors(NamedTuple):
    """Small factors. X is approximated by U V, and T by U V W, where U is stored with the rows."""

    V: np.ndarray
    W: np.ndarray


class Grams(NamedTuple):
    """Products of U, X and T that determine the objective for V and W: U'U, U'X and U'T."""

    S: np.ndarray
    UX: np.ndarray
    UT: np.ndarray


@dataclass(frozen=True)
class FactorizationProblem:
    """Data and weights of one factorisation.

    The rows of ``data`` have the columns ``X`` and ``T`` of the same dtype, and a start adds ``U``.
    ``information`` is Z', the mutual information of the labels.
    """

    data: RowProblem
    information: np.ndarray
    alpha: float
    beta: float
    gamma: float

    @classmethod
    def of_arrays(
        cls, X: Matrix, T: Matrix, information: np.ndarray, alpha: float, beta: float, gamma: float
    ) -> FactorizationProblem:
        """Return the problem of arrays in memory."""
        rows = MemoryBlocks([{"X": X, "T": T}])
        data = RowProblem(rows, X.shape[1], T.shape[1], X.dtype, is_sparse(X))
        return cls(data, information, alpha, beta, gamma)

    @property
    def rows(self) -> RowBlocks:
        """Blocks of X, T and U."""
        return self.data.rows

    @cached_property
    def degree(self) -> np.ndarray:
        """Row sums of the label information, the diagonal of A in L = A - Z'."""
        return np.asarray(self.information.sum(axis=1))

    @cached_property
    def laplacian(self) -> np.ndarray:
        """Laplacian L = A - Z'."""
        return np.diag(self.degree) - self.information

    @cached_property
    def constant(self) -> float:
        """Part of F that does not depend on the factors: |T|^2 + alpha |X|^2."""
        of_labels, of_features = self.rows.fold(_squared_norms, ["X", "T"])
        return float(of_labels + self.alpha * of_features)

    def sample(self, n_rows: int) -> FactorizationProblem:
        """Draw ``n_rows`` rows into memory and rescale the penalties. Return self if there are no more."""
        n_samples = self.rows.n_rows
        if n_samples <= n_rows:
            return self
        places = np.sort(np.random.default_rng(0).choice(n_samples, n_rows, replace=False))
        drawn = [
            list(parts) for parts in zip(*self.rows.fold(_draw_rows, ["X", "T", "rows"], places), strict=True)
        ]
        X, T = (stack(parts) for parts in drawn)
        fraction = n_rows / n_samples
        return self.of_arrays(X, T, self.information, self.alpha, fraction * self.beta, fraction * self.gamma)

    def grams(self) -> Grams:
        """Compute the Grams, with one product with X."""
        return self.rows.fold(grams_of, ["U", "X", "T"])

    def label_penalty(self, W: np.ndarray, WL: np.ndarray | None = None) -> float:
        """Return beta tr(W L W') + gamma |W|_21. Pass ``WL`` if W L is known."""
        return self.beta * inner(W @ self.laplacian if WL is None else WL, W) + self.gamma * l21_norm(W)

    def objective(
        self,
        grams: Grams,
        V: np.ndarray,
        W: np.ndarray,
        G: np.ndarray,
        WL: np.ndarray | None = None,
        SV: np.ndarray | None = None,
    ) -> float:
        """Compute F at the U of ``grams``, with ``G`` = V W, without a product with X.

        Pass ``WL`` = W L and ``SV`` = U'U V if they are known.
        """
        fit_labels = inner(grams.S @ G, G) - 2 * inner(grams.UT, G)
        fit_features = inner(grams.S @ V if SV is None else SV, V) - 2 * inner(grams.UX, V)
        return self.constant + fit_labels + self.alpha * fit_features + self.label_penalty(W, WL)


def grams_of(U: np.ndarray, X: Matrix, T: Matrix) -> Grams:
    """Compute the Grams of some rows."""
    return Grams(gram(U), left_product(U, X), left_product(U, T))


def row_pieces(X: Matrix, T: Matrix) -> Iterator[tuple[slice, Matrix, Matrix]]:
    """Split the rows of a large block to limit the size of intermediate products."""
    n_samples = X.shape[0]
    if n_samples <= _BLOCK_ROWS:  # slicing a sparse matrix would copy it
        yield slice(0, n_samples), X, T
        return
    for piece in batches(n_samples, width=1, budget=_BLOCK_ROWS):
        yield piece, X[piece], T[piece]


def attraction(X: Matrix, T: Matrix, V: np.ndarray, G: np.ndarray, alpha: float) -> np.ndarray:
    """Compute C = alpha X V' + T G' for some rows, the attractive part of the gradient in U."""
    C = right_product(X, V)
    C *= alpha
    C += right_product(T, G)
    return C


def multiplicative_sweep(
    problem: FactorizationProblem, factors: Factors, *, printed: bool = False
) -> tuple[Factors, float]:
    """Update U, V and W once by the ratio of the gradient's negative and positive parts.

    Store the new U with the rows, and return V and W with the objective F. F never increases, unless
    ``printed`` replaces the W-step with Eq. 10 as printed in the paper, with the identity as Laplacian.
    """
    factors, grams = multiplicative_update(problem, factors, printed=printed)
    return factors, problem.objective(grams, factors.V, factors.W, factors.V @ factors.W)


def multiplicative_update(
    problem: FactorizationProblem, factors: Factors, *, printed: bool = False
) -> tuple[Factors, Grams]:
    """Run a multiplicative sweep without computing F. Return V and W with the Grams of U."""
    V, W = factors
    alpha, beta, gamma = problem.alpha, problem.beta, problem.gamma

    G = V @ W
    grams: Grams = problem.rows.fold(
        _multiply_rows, ["X", "T", "U"], V, G, G @ G.T + alpha * (V @ V.T), alpha, gives="U"
    )
    numerator = grams.UT @ W.T + alpha * grams.UX
    denominator = (grams.S @ G) @ W.T + alpha * (grams.S @ V) + EPSILON
    V = V * (numerator / denominator)

    G = V @ W
    numerator = V.T @ grams.UT
    denominator = V.T @ (grams.S @ G) + (gamma * l21_weights(W))[:, None] * W + EPSILON
    if printed:
        denominator += beta * W
    else:
        numerator += beta * (W @ problem.information)
        denominator += beta * (W * problem.degree)
    W = W * (numerator / denominator)
    return Factors(V, W), grams


def _multiply_rows(
    X: Matrix, T: Matrix, old_U: np.ndarray, V: np.ndarray, G: np.ndarray, H: np.ndarray, alpha: float
) -> tuple[np.ndarray, Grams]:
    """Update U of some rows, and compute their Grams in the same pass."""
    H = H.astype(old_U.dtype)
    U = np.empty_like(old_U)
    for piece, X_piece, T_piece in row_pieces(X, T):
        numerator = attraction(X_piece, T_piece, V, G, alpha)
        denominator = old_U[piece] @ H
        denominator += EPSILON
        numerator /= denominator
        np.multiply(old_U[piece], numerator, out=U[piece])
    return U, grams_of(U, X, T)


def _squared_norms(X: Matrix, T: Matrix) -> tuple[float, float]:
    return squared_norm(T), squared_norm(X)


def _draw_rows(X: Matrix, T: Matrix, rows: slice, places: np.ndarray) -> list[tuple[Matrix, Matrix]]:
    """Return the rows of a block at the given ascending positions among all rows."""
    own = places[slice(*np.searchsorted(places, (rows.start, rows.stop)))] - rows.start
    return [(X[own], T[own])]


#: Power iterations and extra directions of the subspace iteration. A start needs no more accuracy.
_POWER_ITERATIONS = 7
_OVERSAMPLING = 10


def start_factors(
    problem: FactorizationProblem, n_components: int, init: str, rng: np.random.Generator
) -> Factors:
    """Compute a strictly positive start: U and V by ``init``, and a constant W that fits the mean of T."""
    data = problem.data
    if init == "random":
        sums = data.rows.fold(_random_rows, ["rows"], n_components, rng.bit_generator, data.dtype, gives="U")
        _skip(rng, data.rows.n_rows * n_components)
        V = rng.random((n_components, data.n_features))
    else:
        V, sums = nndsvd(data, n_components, fill=1.0 if init == "nndsvda" else 0.01)
    total = float(sums @ V.sum(axis=1)) * data.n_labels
    level = data.rows.fold(_sum_of_entries, ["T"]) / total if total > 0 else 0.0
    return Factors(V.astype(np.float64), np.full((data.n_features, data.n_labels), level))


def start_at_ones(problem: FactorizationProblem, n_components: int) -> None:
    """Set U to 1 everywhere."""
    problem.rows.fold(_ones, ["rows"], n_components, problem.data.dtype, gives="U")


def _ones(rows: slice, n_components: int, dtype: np.dtype[Any]) -> tuple[np.ndarray, int]:
    return np.ones((rows.stop - rows.start, n_components), dtype=dtype), 0


def _sum_of_entries(T: Matrix) -> float:
    return float(T.sum())


def _random_rows(
    rows: slice, n_components: int, bit_generator: np.random.BitGenerator, dtype: np.dtype[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the numbers of these rows from the common random stream. Return them and their column sums."""
    rng = np.random.Generator(deepcopy(bit_generator))
    _skip(rng, rows.start * n_components)
    U = rng.random((rows.stop - rows.start, n_components)).astype(dtype)
    return U, U.sum(axis=0)


def _skip(rng: np.random.Generator, n_numbers: int) -> None:
    """Advance a generator by ``n_numbers`` draws of `Generator.random`."""
    if isinstance(rng.bit_generator, np.random.PCG64 | np.random.PCG64DXSM):
        rng.bit_generator.advance(n_numbers)
    else:  # other generators cannot jump, or count draws differently
        rng.random(n_numbers)


def nndsvd(data: RowProblem, n_components: int, *, fill: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Compute non-negative U and V with U V close to ``X >= 0``. Return V and the column sums of U.

    Boutsidis and Gallopoulos, "SVD based initialization: a head start for nonnegative matrix
    factorization", Pattern Recognition 41(4), 2008. Zeros are replaced by ``fill`` times the mean of ``X``,
    because multiplicative updates never leave zero. ``fill=1`` is the variant called NNDSVDa.
    """
    projection, values, right, total = leading_singular_vectors(data, n_components)
    sides: _Sides = data.rows.fold(_measure_sides, ["image"], projection, combine=_merge_sides)
    taken = np.zeros((3, n_components), dtype=data.dtype)
    largest = data.dtype.type(0)
    for j in range(n_components):
        taken[:, j], right[j], highest = _positive_part(sides, values[j], right[j], j)
        largest = max(largest, highest)
    filling = fill * total / (data.shape[0] * data.shape[1])
    # Entries that are tiny relative to the largest are rounding errors.
    right[right < 1e-6 * right.max()] = filling
    sums: np.ndarray = data.rows.fold(
        _take_sides, ["image"], projection, taken, 1e-6 * largest, filling, gives="U"
    )
    data.rows.rename({}, drop=("image",))
    return right, sums


def leading_singular_vectors(
    data: RowProblem, n_components: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Compute leading singular triplets of ``X`` by subspace iteration from a fixed start.

    Neither X'X nor XX' is formed. Adds the column ``image`` to the rows, and returns a matrix that maps the
    image to the left singular vectors, the singular values, the right vectors and the sum of all entries
    of X.
    """
    rows, dtype = data.rows, data.dtype
    width = min(n_components + _OVERSAMPLING, *data.shape)
    basis = np.random.default_rng(0).standard_normal((data.n_features, width)).astype(dtype)
    for _ in range(_POWER_ITERATIONS):
        basis, _ = np.linalg.qr(basis)
        basis = rows.fold(_there_and_back, ["X"], basis)
    basis, _ = np.linalg.qr(basis)
    # The small Gram matrix gives the singular vectors of the tall image. It is in float64 because squaring
    # loses half of the digits.
    gram, total = rows.fold(_image, ["X"], basis, gives="image")
    squares, rotation = np.linalg.eigh(gram)
    leading = np.argsort(-squares, kind="stable")[:n_components]
    values = np.sqrt(np.maximum(squares[leading], 0))
    rotation = rotation[:, leading].astype(dtype)
    usable = values > np.finfo(dtype).eps * max(values[0], np.finfo(dtype).tiny) * max(data.shape)
    inverse = np.divide(1, values, out=np.zeros_like(values), where=usable)
    projection = rotation * inverse.astype(dtype)
    return projection, values.astype(dtype), (basis @ rotation).T.copy(), total


def _there_and_back(X: Matrix, basis: np.ndarray) -> np.ndarray:
    return np.asarray(X.T @ (X @ basis))


def _image(X: Matrix, basis: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, float]]:
    image = np.asarray(X @ basis)
    total = float((X.data if is_sparse(X) else X).sum(dtype=np.float64))
    return image, ((image.T @ image).astype(np.float64), total)


class _Sides(NamedTuple):
    """Squared norms and largest entries of the positive and negative parts of left singular vectors.

    Both have shape (2, n_components).
    """

    squares: np.ndarray
    largest: np.ndarray


def _measure_sides(image: np.ndarray, projection: np.ndarray) -> _Sides:
    left = image @ projection
    sides = [np.maximum(sign * left.T, 0, order="C") for sign in (1, -1)]
    return _Sides(
        np.array([[column @ column for column in side] for side in sides]),
        np.array([side.max(axis=1, initial=0) for side in sides]),
    )


def _merge_sides(a: _Sides, b: _Sides) -> _Sides:
    return _Sides(add(a.squares, b.squares), np.maximum(a.largest, b.largest))


def _positive_part(
    sides: _Sides, value: np.floating, right: np.ndarray, j: int
) -> tuple[tuple[float, np.floating, np.floating], np.ndarray, np.floating]:
    """Keep the dominant sign of a pair of singular vectors. The first pair has only one sign.

    Return sign (0 for both), factor and divisor that make the left vector, the right vector, and the
    largest entry of the left vector.
    """
    one = value.dtype.type(1)
    if j == 0:
        size = np.sqrt(value)
        return (0, size, one), size * np.abs(right), size * sides.largest[:, 0].max()
    parts = [np.maximum(sign * right, 0) for sign in (1, -1)]
    norms = np.sqrt(sides.squares[:, j])
    weights = [norm * np.linalg.norm(part) for norm, part in zip(norms, parts, strict=True)]
    chosen = int(weights[1] > weights[0])
    part, norm, weight = parts[chosen], norms[chosen], weights[chosen]
    if weight == 0:
        return (1, 0 * one, one), np.zeros_like(right), 0 * one
    size = np.sqrt(value * weight)
    highest = size * sides.largest[chosen, j] / norm
    return ((1, -1)[chosen], size, norm), size * part / np.linalg.norm(part), highest


def _take_sides(
    image: np.ndarray, projection: np.ndarray, taken: np.ndarray, least: float, filling: float
) -> tuple[np.ndarray, np.ndarray]:
    """Compute U from the left singular vectors. Return it with its column sums."""
    U = image @ projection
    for column, (sign, size, norm) in zip(U.T, taken.T, strict=True):
        column[:] = size * (np.maximum(sign * column, 0) if sign else np.abs(column)) / norm
    U[least > U] = filling
    return U, U.sum(axis=0)
