"""Products with a shifted matrix, ridge regression, and conjugate gradients.

Sparse features stay sparse. A shift is applied to their products instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from labelsieve._numerics.moments import column_moments
from labelsieve._numerics.norms import squared_row_norms
from labelsieve._numerics.scaling import scale_columns
from labelsieve._numerics.sparse import Matrix, dense, is_sparse


def conjugate_gradient(
    operator: Callable[[np.ndarray], np.ndarray],
    B: np.ndarray,
    start: np.ndarray | None = None,
    *,
    preconditioner: Callable[[np.ndarray], np.ndarray] | None = None,
    rtol: float = 1e-10,
    max_iter: int = 500,
) -> np.ndarray:
    """Solve ``operator(X) = B`` for all columns at once, starting from ``start`` or from 0.

    ``operator`` must multiply every column by a symmetric positive definite matrix, which may differ
    between columns. The same holds for ``preconditioner``, which should approximate the inverse. Every
    iteration lowers the quadratic objective, so stopping early still gives a descent step.

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> conjugate_gradient(lambda X: A @ X, np.array([[3.0], [4.0]])).round(6)
    array([[1.],
           [1.]])
    """
    X, R = (np.zeros_like(B), B.copy()) if start is None else (start.copy(), B - operator(start))
    # Single precision cannot reach the tolerance of double precision.
    goal = max(rtol, 10 * np.finfo(B.dtype).eps) ** 2 * np.einsum("ij,ij->j", B, B)
    direction = np.zeros_like(B)
    energy = np.ones(B.shape[1], dtype=B.dtype)
    for _ in range(max_iter):
        active = np.einsum("ij,ij->j", R, R) > goal
        if not active.any():
            break
        Z = R if preconditioner is None else preconditioner(R)
        previous, energy = energy, np.einsum("ij,ij->j", R, Z)
        ratio = np.divide(energy, previous, out=np.zeros_like(energy), where=active & (previous > 0))
        direction = Z + ratio * direction
        image = operator(direction)
        curvature = np.einsum("ij,ij->j", direction, image)
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=active & (curvature > 0))
        X += step * direction
        R -= step * image
    return X


#: Maximum size of a matrix that is formed and decomposed. Larger ones are only multiplied.
_SMALL = 64
#: Relative accuracy of the iteration. The result is increased by it to be an upper bound.
_ACCURACY = 1e-6


def largest_eigenvalue(product: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    """Compute a tight upper bound of the largest eigenvalue of a positive semidefinite matrix.

    ``product`` multiplies the matrix by a matrix with ``size`` rows.

    Examples
    --------
    >>> A = np.diag([1.0, 3.0])
    >>> largest_eigenvalue(lambda V: A @ V, 2)
    3.0
    """
    if size <= _SMALL:
        return float(max(0.0, eigvalsh(product(np.eye(size)))[-1]))
    start = np.random.default_rng(0).normal(size=size)
    if not product(start[:, None]).any():
        return 0.0
    operator = LinearOperator(
        (size, size), matvec=lambda v: product(v.reshape(-1, 1)).ravel(), dtype=np.float64
    )
    found = eigsh(operator, k=1, which="LA", v0=start, tol=_ACCURACY, return_eigenvectors=False)
    return float(found[0]) * (1 + _ACCURACY)


@dataclass(frozen=True)
class Shifted:
    """Matrix ``X - 1 offset'`` that is never formed. No offset is subtracted if it is None.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> features = Shifted(sp.csr_matrix([[0.0, 2.0], [4.0, 0.0]])).centred()
    >>> features.times(np.eye(2))
    array([[-2.,  1.],
           [ 2., -1.]])
    """

    X: Matrix
    offset: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        n_samples, n_features = self.X.shape
        return n_samples, n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the stored matrix."""
        return self.X.dtype

    def astype(self, dtype: Any) -> Shifted:
        """Convert to another dtype without an unnecessary copy."""
        return Shifted(self.X.astype(dtype, copy=False), self.offset)

    def mean_row(self) -> np.ndarray:
        """Return the mean of every column."""
        mean = np.asarray(self.X.mean(axis=0)).ravel()
        return mean if self.offset is None else mean - self.offset

    def centred(self) -> Shifted:
        """Subtract the mean of every column."""
        mean = np.asarray(self.X.mean(axis=0)).ravel()
        return Shifted(self.X, mean) if is_sparse(self.X) else Shifted(self.X - mean)

    def with_constant(self) -> Shifted:
        """Append a column of ones."""
        offset = None if self.offset is None else np.append(self.offset, 0)
        return Shifted(with_constant(self.X), offset)

    def scaled(self, factor: np.ndarray) -> Shifted:
        """Multiply column j by ``factor[j]``."""
        offset = None if self.offset is None else self.offset * factor
        return Shifted(scale_columns(self.X, factor), offset)

    def take(self, rows: Any) -> Shifted:
        """Select rows."""
        return Shifted(self.X[rows], self.offset)

    def times(self, W: np.ndarray) -> np.ndarray:
        """Multiply by a matrix that has one row per feature."""
        product: np.ndarray = self.X @ W
        if self.offset is not None:
            product -= self.offset @ W
        return product

    def transposed_times(self, R: np.ndarray) -> np.ndarray:
        """Multiply the transpose by a matrix with the same number of rows."""
        product: np.ndarray = self.X.T @ R
        if self.offset is not None:
            product -= np.outer(self.offset, R.sum(axis=0))
        return product

    def gram(self) -> np.ndarray:
        """Return the inner products of the features."""
        products = dense(self.X.T @ self.X)
        if self.offset is not None:
            cross = np.outer(np.asarray(self.X.sum(axis=0)).ravel(), self.offset)
            products -= cross + cross.T - self.X.shape[0] * np.outer(self.offset, self.offset)
        return products

    def row_gram(self) -> np.ndarray:
        """Return the inner products of the rows."""
        return self.row_products(slice(None))

    def row_products(self, rows: slice) -> np.ndarray:
        """Return the inner products of the given rows with all rows."""
        products = dense(self.X[rows] @ self.X.T)
        if self.offset is not None:
            shift = self.X @ self.offset
            products -= shift[rows, None] + shift - self.offset @ self.offset
        return products

    def squared_column_norms(self) -> np.ndarray:
        """Return the squared Euclidean norm of every column."""
        _, deviation = column_moments(self.X)
        return deviation + self.shape[0] * self.mean_row() ** 2

    def squared_row_norms(self) -> np.ndarray:
        """Return the squared Euclidean norm of every row."""
        squares = squared_row_norms(self.X)
        if self.offset is not None:
            squares = squares - 2 * (self.X @ self.offset) + self.offset @ self.offset
        return np.maximum(squares, 0)


def with_constant(X: Matrix) -> Matrix:
    """Append a column of ones."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    return sp.hstack([X, sp.csr_matrix(ones)], format="csr") if is_sparse(X) else np.hstack([X, ones])


#: Maximum size of a matrix that is factorised. Larger systems are solved by conjugate gradients.
_LARGEST_FACTOR = 6000


class WeightedRidge:
    """Solver of ``min_W |X W - T|^2 + sum_j weights_j |w_j|^2``.

    Factorises a system in X'X, which is formed once, or in X X', whichever is smaller. If both are too large,
    it uses conjugate gradients. Sparse features stay sparse.
    """

    def __init__(self, X: Matrix | Shifted) -> None:
        self.X = X if isinstance(X, Shifted) else Shifted(X)
        self.direct = min(X.shape) <= _LARGEST_FACTOR
        self.gram = None
        if self.direct and X.shape[1] <= X.shape[0]:
            # X'X may lose definiteness in single precision.
            self.gram = self.X.astype(np.float64).gram()

    def normal_product(self, W: np.ndarray) -> np.ndarray:
        """Return X'X W."""
        return self.X.transposed_times(self.X.times(W)) if self.gram is None else self.gram @ W

    def solver(self, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that maps T to W for positive ``weights``.

        Examples
        --------
        >>> solve = WeightedRidge(np.array([[1.0, 0.0], [0.0, 2.0]])).solver(np.array([1.0, 4.0]))
        >>> solve(np.array([[2.0], [4.0]]))
        array([[1.],
               [1.]])
        """
        X = self.X
        # In units of 1 / sqrt(weight) the penalty is the identity, even if the weights differ widely.
        unit = 1 / np.sqrt(weights)[:, None]
        if not self.direct:

            def solve(T: np.ndarray) -> np.ndarray:
                target = unit * X.transposed_times(T)
                start = np.zeros_like(target)
                Z = conjugate_gradient(
                    lambda Z: unit * X.transposed_times(X.times(unit * Z)) + Z, target, start
                )
                return unit * Z

        elif self.gram is not None:
            factor = cho_factor(_plus_identity(unit * self.gram * unit.T), overwrite_a=True)

            def solve(T: np.ndarray) -> np.ndarray:
                W: np.ndarray = unit * cho_solve(factor, unit * X.transposed_times(T))
                return W.astype(X.dtype, copy=False)

        else:
            scaled = X.astype(np.float64).scaled(unit[:, 0])
            factor = cho_factor(_plus_identity(scaled.row_gram()), overwrite_a=True)

            def solve(T: np.ndarray) -> np.ndarray:
                W: np.ndarray = unit * scaled.transposed_times(cho_solve(factor, T))
                return W.astype(X.dtype, copy=False)

        return solve

    def inverse(self, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that maps V to ``(X'X + diag(weights))^-1 V``, in float64.

        If both systems are too large to factorise, only the diagonal is inverted. The function is still
        useful as a preconditioner.

        Examples
        --------
        >>> invert = WeightedRidge(np.array([[1.0, 0.0], [0.0, 2.0]])).inverse(np.array([1.0, 4.0]))
        >>> invert(np.array([[2.0], [8.0]]))
        array([[1.],
               [1.]])
        """
        unit = 1 / np.sqrt(weights)[:, None]
        if self.gram is not None:
            factor = cho_factor(_plus_identity(unit * self.gram * unit.T), overwrite_a=True)
            return lambda V: unit * cho_solve(factor, unit * V)
        scaled = self.X.astype(np.float64).scaled(unit[:, 0])
        if not self.direct:
            diagonal = 1 + scaled.squared_column_norms()[:, None]
            return lambda V: unit**2 * V / diagonal
        factor = cho_factor(_plus_identity(scaled.row_gram()), overwrite_a=True)

        def invert(V: np.ndarray) -> np.ndarray:
            Z = unit * V
            return unit * (Z - scaled.transposed_times(cho_solve(factor, scaled.times(Z))))

        return invert


def _plus_identity(A: np.ndarray) -> np.ndarray:
    A[np.diag_indices_from(A)] += 1
    return A
