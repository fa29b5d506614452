"""Ridge regression with a weight for every feature, for many solves with the same features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from labelsieve._numerics.conjugate_gradient import conjugate_gradient
from labelsieve._numerics.shifted import Shifted
from labelsieve._numerics.typing import Matrix

#: Largest side of a matrix that is factorised; beyond it, solves are iterative and need no matrix.
_LARGEST_FACTOR = 6000


class WeightedRidge:
    """Minimise ``|X W - T|^2 + sum_j weights_j |w_j|^2`` over W.

    Works in the smaller of the two sides of ``X``: with X'X, formed once, or with X X'. Where both are too
    large to factorise, by conjugate gradients.

    Parameters
    ----------
    X : ndarray, sparse matrix or Shifted of shape (n_samples, n_features)
        Features; sparse matrices stay sparse.
    """

    def __init__(self, X: Matrix | Shifted) -> None:
        self.X = X if isinstance(X, Shifted) else Shifted(X)
        self.direct = min(X.shape) <= _LARGEST_FACTOR
        self.gram = None
        if self.direct and X.shape[1] <= X.shape[0]:
            # In double precision always: single precision may round X'X until it is not definite any more.
            self.gram = self.X.astype(np.float64).gram()

    def normal_product(self, W: np.ndarray) -> np.ndarray:
        """Return X'X W, by X'X where it is formed."""
        product: np.ndarray = self.X.transposed_times(self.X.times(W)) if self.gram is None else self.gram @ W
        return product

    def solver(self, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function from T to W for positive ``weights``.

        Examples
        --------
        >>> solve = WeightedRidge(np.array([[1.0, 0.0], [0.0, 2.0]])).solver(np.array([1.0, 4.0]))
        >>> solve(np.array([[2.0], [4.0]]))
        array([[1.],
               [1.]])
        """
        X = self.X
        # In units of 1 / sqrt(weight) the penalty is the identity, however far apart the weights are.
        unit = 1 / np.sqrt(weights)[:, None]
        if not self.direct:

            def solve(T: np.ndarray) -> np.ndarray:
                target = unit * X.transposed_times(T)
                start = np.zeros_like(target)
                Z = conjugate_gradient(
                    lambda Z: unit * X.transposed_times(X.times(unit * Z)) + Z, target, start
                )
                W: np.ndarray = unit * Z
                return W

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
        """Return the function from V to ``(X'X + diag(weights))^-1 V``, in float64.

        Where both sides of ``X`` are too large to factorise, only the diagonal is inverted: as a
        preconditioner it still serves.

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
            inverse: np.ndarray = unit * (Z - scaled.transposed_times(cho_solve(factor, scaled.times(Z))))
            return inverse

        return invert


def _plus_identity(A: np.ndarray) -> np.ndarray:
    A[np.diag_indices_from(A)] += 1
    return A
