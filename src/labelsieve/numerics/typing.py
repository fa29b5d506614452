"""Names for the array types that pass between the layers."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeAlias

import numpy as np


class SparseMatrix(Protocol):
    """What is asked of scipy's CSR and CSC matrices and arrays; scipy itself has no types to offer."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    format: str
    nnz: int
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    has_canonical_format: bool

    @property
    def T(self) -> Self: ...  # noqa: D102
    def __getitem__(self, key: Any) -> Any: ...
    def __matmul__(self, other: Any) -> Any: ...
    def __rmatmul__(self, other: Any) -> Any: ...
    def __ne__(self, other: object) -> Any: ...
    def __abs__(self) -> Any: ...
    def astype(self, dtype: Any, *, copy: bool = ...) -> Self: ...  # noqa: D102
    def copy(self) -> Self: ...  # noqa: D102
    def eliminate_zeros(self) -> None: ...  # noqa: D102
    def max(self, axis: int) -> Any: ...  # noqa: D102
    def mean(self, axis: int | None = ..., *, dtype: Any = ...) -> Any: ...  # noqa: D102
    def min(self, axis: int) -> Any: ...  # noqa: D102
    def multiply(self, other: Any) -> Any: ...  # noqa: D102
    def sum(self, axis: int | None = ..., *, dtype: Any = ...) -> Any: ...  # noqa: D102
    def sum_duplicates(self) -> None: ...  # noqa: D102
    def toarray(self) -> np.ndarray: ...  # noqa: D102
    def tocsc(self) -> SparseMatrix: ...  # noqa: D102
    def tocsr(self) -> SparseMatrix: ...  # noqa: D102


#: A dense ndarray, or a scipy CSR or CSC matrix. `labelsieve.numerics.sparse.is_sparse` tells them apart.
Matrix: TypeAlias = np.ndarray | SparseMatrix
