"""The non-negative factorisation of PML-FSMIR and its multiplicative updates.

    F(U, V, W) = |UVW - T|^2 + alpha |X - UV|^2 + beta tr(W L W') + gamma |W|_21

with U, V, W >= 0 and L the Laplacian of the label information. Only ``X V'`` and ``U'X`` touch the features;
every other product has a side of ``n_components`` or ``n_labels``. Nothing of the size of ``X`` is formed.
The rows of X, T and U come in blocks, of which only sums are asked.

X, T and U share a dtype; all that is small is in float64, and in the multiplicative updates V and W are too, so that
float32 data lose no accuracy where it costs nothing to keep it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelsieve._blocks.blocks import Columns, MemoryBlocks, RowBlocks, block_function, stack
from labelsieve._numerics.batches import batches
from labelsieve._numerics.norms import EPSILON, l21_norm, l21_weights
from labelsieve._numerics.products import gram, inner, left_product, right_product, squared_norm
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve._row_problem import RowProblem

#: Rows that are visited together. Every block adds a product with all features, which many rows are to be worth.
_BLOCK_ROWS = 2**15


class Factors(NamedTuple):
    """The small unknowns. X is approximated by U V, and T by U V W, where U lies with the rows."""

    V: np.ndarray
    W: np.ndarray


class Grams(NamedTuple):
    """All that the (V, W) part of the problem needs to know of U, X and T."""

    S: np.ndarray
    UX: np.ndarray
    UT: np.ndarray


@dataclass(frozen=True)
class FactorizationProblem:
    """Data and weights of one factorisation.

    Parameters
    ----------
    data : RowProblem
        The rows have the columns ``X`` and ``T``, of one dtype, and get ``U`` from a start.
    information : ndarray of shape (n_labels, n_labels)
        Z', the mutual information of the labels.
    alpha, beta, gamma : float
        Weights in F.
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
        """Return the problem of rows in memory."""
        rows = MemoryBlocks([{"X": X, "T": T}])
        data = RowProblem(rows, X.shape[1], T.shape[1], X.dtype, is_sparse(X))
        return cls(data, information, alpha, beta, gamma)

    @property
    def rows(self) -> RowBlocks:
        """Blocks of X, T and U."""
        return self.data.rows

    @cached_property
    def degree(self) -> np.ndarray:
        """Row sums of the label information: the diagonal of A in L = A - Z'."""
        return np.asarray(self.information.sum(axis=1))

    @cached_property
    def laplacian(self) -> np.ndarray:
        """L = A - Z'."""
        laplacian: np.ndarray = np.diag(self.degree) - self.information
        return laplacian

    @cached_property
    def constant(self) -> float:
        """The part of F that does not depend on the factors: |T|^2 + alpha |X|^2."""
        of_labels, of_features = self.rows.fold(_squared_norms)
        return float(of_labels + self.alpha * of_features)

    def sample(self, n_rows: int) -> FactorizationProblem:
        """Draw so many rows, into memory, with the penalties that belong to them; of no more, the problem itself."""
        n_samples = self.rows.n_rows
        if n_samples <= n_rows:
            return self
        places = np.sort(np.random.default_rng(0).choice(n_samples, n_rows, replace=False))
        drawn = [list(parts) for parts in zip(*self.rows.fold(_draw_rows, places), strict=True)]
        X, T = (stack(parts) for parts in drawn)
        share = n_rows / n_samples
        return self.of_arrays(X, T, self.information, self.alpha, share * self.beta, share * self.gamma)

    def grams(self) -> Grams:
        """Compress U, X and T to what V and W see of them; one touch of X."""
        grams: Grams = self.rows.fold(_grams_of_rows)
        return grams

    def label_penalty(self, W: np.ndarray, WL: np.ndarray | None = None) -> float:
        """Return beta tr(W L W') + gamma |W|_21; ``WL`` is W L where it is known."""
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
        """F at the U behind ``grams``; ``G`` is V W, and where they are known ``WL`` is W L, ``SV`` U'U V.

        No touch of X.
        """
        fit_labels = inner(grams.S @ G, G) - 2 * inner(grams.UT, G)
        fit_features = inner(grams.S @ V if SV is None else SV, V) - 2 * inner(grams.UX, V)
        return self.constant + fit_labels + self.alpha * fit_features + self.label_penalty(W, WL)


def grams_of(U: np.ndarray, X: Matrix, T: Matrix) -> Grams:
    """Compress some rows."""
    return Grams(gram(U), left_product(U, X), left_product(U, T))


def row_pieces(X: Matrix, T: Matrix) -> Iterator[tuple[slice, Matrix, Matrix]]:
    """Cut the rows of a large block: products as long as U need not exist all at once."""
    n_samples = X.shape[0]
    if n_samples <= _BLOCK_ROWS:  # the slice of a sparse matrix would be a copy
        yield slice(0, n_samples), X, T
        return
    for piece in batches(n_samples, width=1, budget=_BLOCK_ROWS):
        yield piece, X[piece], T[piece]


def attraction(X: Matrix, T: Matrix, V: np.ndarray, G: np.ndarray, alpha: float) -> np.ndarray:
    """Return C = alpha X V' + T G', which draws some rows of U to the data; one touch of X."""
    C = right_product(X, V)
    C *= alpha
    C += right_product(T, G)
    return C


def multiplicative_sweep(
    problem: FactorizationProblem, factors: Factors, *, printed: bool = False
) -> tuple[Factors, float]:
    """Update U, V and W once by the ratio of the gradient's negative and positive parts.

    F never rises, unless ``printed`` replaces the W step by Eq. 10 as the paper prints it, in which the
    Laplacian became the identity. The rows get the new U; returned are the other factors and F.
    """
    factors, grams = multiplicative_update(problem, factors, printed=printed)
    return factors, problem.objective(grams, factors.V, factors.W, factors.V @ factors.W)


def multiplicative_update(
    problem: FactorizationProblem, factors: Factors, *, printed: bool = False
) -> tuple[Factors, Grams]:
    """Do the sweep without the value; returns the factors and what V and W saw of U."""
    V, W = factors
    alpha, beta, gamma = problem.alpha, problem.beta, problem.gamma

    G = V @ W
    grams: Grams = problem.rows.fold(_multiply_rows, V, G, G @ G.T + alpha * (V @ V.T), alpha)
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


@block_function("X", "T", "U", gives=("U",))
def _multiply_rows(
    rows: Mapping[str, Any], V: np.ndarray, G: np.ndarray, H: np.ndarray, alpha: float
) -> tuple[Columns, Grams]:
    """Update U, and take its Grams while the rows are at hand."""
    old_U = rows["U"]
    H = H.astype(old_U.dtype)
    U = np.empty_like(old_U)
    for piece, X, T in row_pieces(rows["X"], rows["T"]):
        numerator = attraction(X, T, V, G, alpha)
        denominator = old_U[piece] @ H
        denominator += EPSILON
        numerator /= denominator
        np.multiply(old_U[piece], numerator, out=U[piece])
    return {"U": U}, grams_of(U, rows["X"], rows["T"])


@block_function("X", "T", "U")
def _grams_of_rows(rows: Mapping[str, Any]) -> tuple[Columns, Grams]:
    return {}, grams_of(rows["U"], rows["X"], rows["T"])


@block_function("X", "T")
def _squared_norms(rows: Mapping[str, Any]) -> tuple[Columns, tuple[float, float]]:
    return {}, (squared_norm(rows["T"]), squared_norm(rows["X"]))


@block_function("X", "T")
def _draw_rows(rows: Mapping[str, Any], places: np.ndarray) -> tuple[Columns, list[tuple[Matrix, Matrix]]]:
    """Return the rows that stand at some of the ascending places among all."""
    first, n_rows = rows["first_row"], rows["T"].shape[0]
    own = places[slice(*np.searchsorted(places, (first, first + n_rows)))] - first
    return {}, [(rows["X"][own], rows["T"][own])]
