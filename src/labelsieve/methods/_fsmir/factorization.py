"""The non-negative factorisation of PML-FSMIR and its multiplicative updates.

    F(U, V, W) = |UVW - T|^2 + alpha |X - UV|^2 + beta tr(W L W') + gamma |W|_21

with U, V, W >= 0 and L the Laplacian of the label information. Only ``X V'`` and ``U'X`` touch the features;
every other product has a side of ``n_components`` or ``n_labels``. Nothing of the size of ``X`` is formed.

X, T and U share a dtype; V, W and all that is small stay in float64, so that float32 data lose no accuracy
where it costs nothing to keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from labelsieve.numerics.batches import batches
from labelsieve.numerics.norms import EPSILON, l21_norm, l21_weights
from labelsieve.numerics.products import gram, inner, left_product, right_product, squared_norm
from labelsieve.numerics.typing import Matrix

#: Rows that are visited together. Every block adds a product with all features, which many rows are to be worth.
_BLOCK_ROWS = 2**15


class Factors(NamedTuple):
    """The unknowns: X is approximated by U V, and T by U V W."""

    U: np.ndarray
    V: np.ndarray
    W: np.ndarray


class Grams(NamedTuple):
    """All that the (V, W) part of the problem needs to know of U, X and T."""

    S: np.ndarray
    UX: np.ndarray
    UT: np.ndarray


@dataclass(frozen=True)
class FactorizationProblem:
    """Data and weights of one factorisation; ``T`` has the dtype of ``X``."""

    X: Matrix
    T: Matrix
    information: np.ndarray
    alpha: float
    beta: float
    gamma: float

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
        return squared_norm(self.T) + self.alpha * squared_norm(self.X)

    def row_blocks(self) -> Iterator[tuple[slice, Matrix, Matrix]]:
        """Cut X and T into blocks of rows: products as long as U need not exist all at once."""
        n_samples = self.X.shape[0]
        if n_samples <= _BLOCK_ROWS:  # the slice of a sparse matrix would be a copy
            yield slice(0, n_samples), self.X, self.T
            return
        for rows in batches(n_samples, width=1, budget=_BLOCK_ROWS):
            yield rows, self.X[rows], self.T[rows]

    def sample(self, n_rows: int) -> FactorizationProblem:
        """Draw so many rows, with the penalties that belong to them; the problem itself if it has no more."""
        n_samples = self.X.shape[0]
        if n_samples <= n_rows:
            return self
        rows = np.sort(np.random.default_rng(0).choice(n_samples, n_rows, replace=False))
        share = n_rows / n_samples
        return replace(self, X=self.X[rows], T=self.T[rows], beta=share * self.beta, gamma=share * self.gamma)

    def grams(self, U: np.ndarray) -> Grams:
        """Compress U, X and T to what V and W see of them; one touch of X."""
        return Grams(gram(U), left_product(U, self.X), left_product(U, self.T))

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
    Laplacian became the identity. Returns the factors and F.
    """
    factors, grams = multiplicative_update(problem, factors, printed=printed)
    return factors, problem.objective(grams, factors.V, factors.W, factors.V @ factors.W)


def multiplicative_update(
    problem: FactorizationProblem, factors: Factors, *, printed: bool = False
) -> tuple[Factors, Grams]:
    """Do the sweep without the value; returns the factors and what V and W saw of U."""
    U, V, W = factors
    alpha, beta, gamma = problem.alpha, problem.beta, problem.gamma

    G = V @ W
    H = (G @ G.T + alpha * (V @ V.T)).astype(U.dtype)
    old_U, U = U, np.empty_like(U)
    for rows, X, T in problem.row_blocks():
        numerator = attraction(X, T, V, G, alpha)
        denominator = old_U[rows] @ H
        denominator += EPSILON
        numerator /= denominator
        np.multiply(old_U[rows], numerator, out=U[rows])

    grams = problem.grams(U)
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
    return Factors(U, V, W), grams
