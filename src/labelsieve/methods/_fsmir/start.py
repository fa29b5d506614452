"""Where the factorisation starts: from the leading singular vectors made non-negative, or at random.

Boutsidis and Gallopoulos, "SVD based initialization: a head start for nonnegative matrix factorization",
Pattern Recognition 41(4), 2008.

U is put to the rows; V and W are returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from labelsieve._blocks.blocks import Columns, add, block_function
from labelsieve._numerics.batches import BUDGET
from labelsieve._numerics.sparse import is_sparse
from labelsieve._row_problem import RowProblem
from labelsieve.methods._fsmir.factorization import FactorizationProblem, Factors

__all__ = ["leading_singular_vectors", "nndsvd", "start_at_ones", "start_factors"]

#: Power iterations and extra directions of the subspace iteration; a start needs no more accuracy.
_POWER_ITERATIONS = 7
_OVERSAMPLING = 10


def start_factors(
    problem: FactorizationProblem, n_components: int, init: str, rng: np.random.Generator
) -> Factors:
    """Strictly positive start: U and V by ``init``, W constant so that UVW has the mean of T."""
    data = problem.data
    if init == "random":
        sums = data.rows.fold(_random_rows, n_components, rng.bit_generator, data.dtype)
        _skip(rng, data.rows.n_rows * n_components)
        V = rng.random((n_components, data.n_features))
    else:
        V, sums = nndsvd(data, n_components, fill=1.0 if init == "nndsvda" else 0.01)
    total = float(sums @ V.sum(axis=1)) * data.n_labels
    level = data.rows.fold(_sum_of_labels) / total if total > 0 else 0.0
    return Factors(V.astype(np.float64), np.full((data.n_features, data.n_labels), level))


def start_at_ones(problem: FactorizationProblem, n_components: int) -> None:
    """Let U be 1 everywhere."""
    problem.rows.fold(_ones, n_components, problem.data.dtype)


@block_function("T", gives=("U",))
def _ones(rows: Mapping[str, Any], n_components: int, dtype: np.dtype[Any]) -> tuple[Columns, int]:
    return {"U": np.ones((rows["T"].shape[0], n_components), dtype=dtype)}, 0


@block_function("T")
def _sum_of_labels(rows: Mapping[str, Any]) -> tuple[Columns, float]:
    return {}, float(rows["T"].sum())


# Random numbers


@block_function("T", gives=("U",))
def _random_rows(
    rows: Mapping[str, Any], n_components: int, bit_generator: np.random.BitGenerator, dtype: np.dtype[Any]
) -> tuple[Columns, np.ndarray]:
    """Draw the share of these rows in the one stream of numbers; returns the sum of every column."""
    rng = np.random.Generator(deepcopy(bit_generator))
    _skip(rng, rows["first_row"] * n_components)
    U = rng.random((rows["T"].shape[0], n_components)).astype(dtype)
    return {"U": U}, U.sum(axis=0)


def _skip(rng: np.random.Generator, n_numbers: int) -> None:
    """Wind a generator on by so many numbers of `Generator.random`."""
    if isinstance(rng.bit_generator, np.random.PCG64 | np.random.PCG64DXSM):
        rng.bit_generator.advance(n_numbers)
        return
    # Others cannot jump, or count otherwise.
    for _ in range(n_numbers // BUDGET):
        rng.random(BUDGET)
    rng.random(n_numbers % BUDGET)


# Singular vectors


def nndsvd(data: RowProblem, n_components: int, *, fill: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Find non-negative U and V with U V close to ``X``; returns V and the sum of every column of U.

    Parameters
    ----------
    data : RowProblem
        The column ``X`` is non-negative. The rows get the column ``U``.
    n_components : int
        At most the number of rows and of features.
    fill : float, default=1.0
        What replaces zeros, as a share of the mean of ``X``; 1 is the variant called NNDSVDa. Multiplicative
        updates never leave a zero.

    Examples
    --------
    >>> from labelsieve._row_problem import in_memory
    >>> data = in_memory(np.array([[1.0, 2.0], [2.0, 4.0]]), np.eye(2))
    >>> V, _ = nndsvd(data, 1)
    >>> (data.rows.gather("U") @ V).round(6)
    array([[1., 2.],
           [2., 4.]])
    """
    projection, values, right, total = leading_singular_vectors(data, n_components)
    sides: _Sides = data.rows.fold(_measure_sides, projection, combine=_merge_sides)
    taken = np.zeros((3, n_components), dtype=data.dtype)
    largest = data.dtype.type(0)
    for j in range(n_components):
        taken[:, j], right[j], highest = _positive_part(sides, values[j], right[j], j)
        largest = max(largest, highest)
    filling = fill * total / (data.shape[0] * data.shape[1])
    # What is next to nothing beside the largest entry is a zero with rounding.
    right[right < 1e-6 * right.max()] = filling
    sums: np.ndarray = data.rows.fold(_take_sides, projection, taken, 1e-6 * largest, filling)
    data.rows.rename({}, drop=("image",))
    return right, sums


def leading_singular_vectors(
    data: RowProblem, n_components: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Leading singular triplets of ``X`` by subspace iteration from a fixed start, without X'X or XX'.

    The rows get the column ``image``, which times the first result has the left vectors. The others are the
    values, the right vectors and the sum of all entries of X.
    """
    rows, dtype = data.rows, data.dtype
    width = min(n_components + _OVERSAMPLING, *data.shape)
    basis = np.random.default_rng(0).standard_normal((data.n_features, width)).astype(dtype)
    for _ in range(_POWER_ITERATIONS):
        basis, _ = np.linalg.qr(basis)
        basis = rows.fold(_there_and_back, basis)
    basis, _ = np.linalg.qr(basis)
    # The singular vectors of the tall image by way of its small Gram matrix, in float64 against the squaring.
    gram, total = rows.fold(_image, basis)
    squares, rotation = np.linalg.eigh(gram)
    leading = np.argsort(-squares, kind="stable")[:n_components]
    values = np.sqrt(np.maximum(squares[leading], 0))
    rotation = rotation[:, leading].astype(dtype)
    usable = values > np.finfo(dtype).eps * max(values[0], np.finfo(dtype).tiny) * max(data.shape)
    inverse = np.divide(1, values, out=np.zeros_like(values), where=usable)
    projection = rotation * inverse.astype(dtype)
    return projection, values.astype(dtype), (basis @ rotation).T.copy(), total


@block_function("X")
def _there_and_back(rows: Mapping[str, Any], basis: np.ndarray) -> tuple[Columns, np.ndarray]:
    X = rows["X"]
    return {}, np.asarray(X.T @ (X @ basis))


@block_function("X", gives=("image",))
def _image(rows: Mapping[str, Any], basis: np.ndarray) -> tuple[Columns, tuple[np.ndarray, float]]:
    X = rows["X"]
    image = np.asarray(X @ basis)
    total = float((X.data if is_sparse(X) else X).sum(dtype=np.float64))
    return {"image": image}, ((image.T @ image).astype(np.float64), total)


class _Sides(NamedTuple):
    """Squared norms and largest entries of the positive and of the negative parts of left vectors: 2 x n_components."""

    squares: np.ndarray
    largest: np.ndarray


@block_function("image")
def _measure_sides(rows: Mapping[str, Any], projection: np.ndarray) -> tuple[Columns, _Sides]:
    left = rows["image"] @ projection
    sides = [np.maximum(sign * left.T, 0, order="C") for sign in (1, -1)]
    return {}, _Sides(
        np.array([[column @ column for column in side] for side in sides]),
        np.array([side.max(axis=1, initial=0) for side in sides]),
    )


def _merge_sides(a: _Sides, b: _Sides) -> _Sides:
    return _Sides(add(a.squares, b.squares), np.maximum(a.largest, b.largest))


def _positive_part(
    sides: _Sides, value: np.floating, right: np.ndarray, j: int
) -> tuple[tuple[float, np.floating, np.floating], np.ndarray, np.floating]:
    """Keep the sign of a singular pair that carries more of it; the first pair has one sign already.

    Returns what makes the left vector, a sign (0 for both), a factor and a divisor; the right vector; and the largest
    entry of the left one.
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


@block_function("image", gives=("U",))
def _take_sides(
    rows: Mapping[str, Any], projection: np.ndarray, taken: np.ndarray, least: float, filling: float
) -> tuple[Columns, np.ndarray]:
    """Make U of the left vectors; returns the sum of every column."""
    U = rows["image"] @ projection
    for column, (sign, size, norm) in zip(U.T, taken.T, strict=True):
        column[:] = size * (np.maximum(sign * column, 0) if sign else np.abs(column)) / norm
    U[least > U] = filling
    return {"U": U}, U.sum(axis=0)
