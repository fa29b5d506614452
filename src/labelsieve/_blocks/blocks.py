"""Rows in blocks, wherever they are: solvers see them through two operations, `fold` and `derive`.

A block holds *columns* that share their rows: ``X`` and ``Y``, later perhaps ``T`` and ``U``. A sum over the rows is a
fold over the blocks, so a solver written in folds runs in memory, out of core and on a cluster. In memory there is
one block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

__all__ = ["BlockFunction", "Columns", "MemoryBlocks", "RowBlocks", "add", "block_function", "stack"]

#: Columns of one block by name.
Columns: TypeAlias = dict[str, Any]


class BlockFunction:
    """Function of one block, with the names of the columns it needs and of those it gives.

    It takes the columns of a block (and ``first_row``, the number of its first row) and values that all blocks share.
    It returns new columns and a part: a result whose size does not grow with the number of rows. It must be pure
    and deterministic, because it is called again if a worker is lost, and must modify neither the columns nor the
    shared values.

    Parameters
    ----------
    function : callable
        ``function(rows, *shared) -> (columns, part)``, defined at the top of a module.
    needs : tuple of str
        Columns it reads. Others need not be loaded.
    gives : tuple of str
        Columns it returns.
    """

    def __init__(self, function: Callable[..., Any], needs: tuple[str, ...], gives: tuple[str, ...]) -> None:
        self.function = function
        self.name = function.__name__
        self.needs = needs
        self.gives = gives
        update_wrapper(self, function)

    def __call__(self, rows: Mapping[str, Any], *shared: Any) -> tuple[Columns, Any]:
        """Visit one block."""
        columns, part = self.function(rows, *shared)
        return columns, part

    def __reduce__(self) -> str:
        # Unpickled by name, as functions are.
        return self.function.__qualname__


def block_function(*needs: str, gives: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], BlockFunction]:
    """Declare a function of a block and the columns it reads and returns.

    Examples
    --------
    >>> @block_function("X")
    ... def column_sums(rows):
    ...     return {}, rows["X"].sum(axis=0)
    >>> rows = MemoryBlocks([{"X": np.ones((2, 3))}, {"X": np.ones((1, 3))}])
    >>> rows.fold(column_sums)
    array([3., 3., 3.])
    """
    return lambda function: BlockFunction(function, needs, gives)


def add(a: Any, b: Any) -> Any:
    """Add two parts, tuples entry by entry; the first one may be overwritten.

    Examples
    --------
    >>> add((np.ones(2), 1), (np.ones(2), 2))
    (array([2., 2.]), 3)
    """
    if isinstance(a, tuple):
        sums = [add(left, right) for left, right in zip(a, b, strict=True)]
        return type(a)(*sums) if hasattr(a, "_fields") else tuple(sums)
    if isinstance(a, np.ndarray) and a.ndim and a.dtype == np.result_type(a, b):
        a += b
        return a
    return a + b


class RowBlocks(ABC):
    """Rows of a problem in blocks.

    Parameters
    ----------
    sizes : sequence of int
        Number of rows of every block.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = [int(size) for size in sizes]
        self.first_rows = [0, *np.cumsum(self.sizes)[:-1].tolist()]

    @property
    def n_rows(self) -> int:
        """Number of rows of all blocks."""
        return sum(self.sizes)

    @abstractmethod
    def fold(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any] = add) -> Any:
        """Visit every block once, keep the columns that the function gives, and return the combined parts.

        The columns are kept only after all blocks have been visited. The parts are combined in the order of the
        blocks, so the result depends on the block boundaries and on nothing else.
        """

    @abstractmethod
    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns that are computed row by row, and ignore the part.

        They are stored, or computed again whenever they are needed.
        """

    @abstractmethod
    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Rename columns that folds gave, ``{new: old}``, all at once, and drop others."""

    @abstractmethod
    def gather(self, name: str) -> Any:
        """Return a column of all rows: an array in memory, a lazy dask array otherwise."""

    def note_rows(self, error: BaseException, index: int) -> None:
        """Note on an error in which rows it came up, if there are several blocks."""
        if len(self.sizes) > 1:
            first = self.first_rows[index]
            error.add_note(f"In rows {first} to {first + self.sizes[index] - 1}.")


class MemoryBlocks(RowBlocks):
    """Blocks in the memory of this process, usually one.

    Examples
    --------
    >>> rows = MemoryBlocks([{"X": np.eye(2)}, {"X": np.ones((1, 2))}])
    >>> rows.n_rows
    3
    >>> rows.gather("X")
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """

    def __init__(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        super().__init__([next(iter(block.values())).shape[0] for block in blocks])
        self.blocks: list[Columns] = [dict(block) for block in blocks]

    def fold(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any] = add) -> Any:
        """Visit every block once."""
        given, total = [], None
        for index, block in enumerate(self.blocks):
            try:
                columns, part = function({**block, "first_row": self.first_rows[index]}, *shared)
            except Exception as error:
                self.note_rows(error, index)
                raise
            given.append(columns)
            total = combine(total, part) if index else part
        for block, columns in zip(self.blocks, given, strict=True):
            block.update(columns)
        return total

    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns."""
        self.fold(function, *shared, combine=lambda *_: None)

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Rename columns."""
        for block in self.blocks:
            rename_columns(block, names, drop)

    def gather(self, name: str) -> Any:
        """Return a column of all rows."""
        return stack([block[name] for block in self.blocks])


def rename_columns(columns: Columns, names: Mapping[str, str], drop: Sequence[str]) -> None:
    """Rename and drop columns of one block, in place."""
    renamed = {new: columns[old] for new, old in names.items()}
    for old in (*names.values(), *drop):
        columns.pop(old, None)
    columns.update(renamed)


def stack(parts: list[Any]) -> Any:
    """Stack blocks of rows, dense or sparse; a single one is returned as it is.

    Dense blocks are removed from the list as they are copied, so that they do not exist twice.
    """
    if len(parts) == 1:
        return parts[0]
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    whole = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), np.result_type(*parts))
    stop = len(whole)
    while parts:
        part = parts.pop()
        whole[stop - len(part) : stop] = part
        stop -= len(part)
    return whole
