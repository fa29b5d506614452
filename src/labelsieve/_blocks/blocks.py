"""Rows in blocks, wherever they are: solvers see them through two operations, `fold` and `derive`.

A block holds *columns* that share their rows: ``X`` and ``Y``, later perhaps ``T`` and ``U``. A sum over the rows is a
fold over the blocks, so a solver written in folds runs in memory, out of core and on a cluster. In memory there is
one block.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

#: Columns of one block by name.
Columns: TypeAlias = dict[str, Any]

logger = logging.getLogger("labelsieve")


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

    The functions of `fold` and `derive` get the columns of one block that they need, then the values that all blocks
    share. The column ``rows`` is the slice of the block among all rows. Functions must be pure and deterministic,
    because they are called again if a worker is lost, and must modify neither columns nor shared values. Define them
    at the top of a module: clusters import them.

    Parameters
    ----------
    sizes : sequence of int
        Number of rows of every block.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = [int(size) for size in sizes]
        #: Columns that are stored, by block.
        self.blocks: list[Columns] = [
            {"rows": slice(a, b)} for a, b in pairwise([0, *np.cumsum(self.sizes).tolist()])
        ]

    @property
    def n_rows(self) -> int:
        """Number of rows of all blocks."""
        return sum(self.sizes)

    def fold(
        self,
        function: Callable[..., Any],
        needs: Sequence[str],
        *shared: Any,
        gives: str | None = None,
        combine: Callable[[Any, Any], Any] = add,
    ) -> Any:
        """Visit every block once, and return the combined parts.

        A part is what the function returns; its size must not grow with the number of rows. With ``gives`` the function
        returns a column of that name as well: ``(column, part)``. Columns are kept only after all blocks have been
        visited. The parts are combined in the order of the blocks, so the result depends on the block boundaries and
        on nothing else.

        Examples
        --------
        >>> rows = MemoryBlocks([{"X": np.ones((2, 3))}, {"X": np.ones((1, 3))}])
        >>> rows.fold(len, ["X"])
        3
        """
        given, total = [], None
        for index, columns in enumerate(self._read_blocks(needs)):
            try:
                result = function(*columns, *shared)
            except Exception as error:
                self.note_rows(error, index)
                raise
            del columns
            column, part = result if gives else (None, result)
            given.append(column)
            total = combine(total, part) if index else part
            if len(self.sizes) > 1:
                logger.debug("block %d of %d", index + 1, len(self.sizes), extra={"block": index + 1})
        if gives:
            for block, column in zip(self.blocks, given, strict=True):
                block[gives] = column
        return total

    @abstractmethod
    def derive(self, function: Callable[..., Any], needs: Sequence[str], *shared: Any, gives: str) -> None:
        """Add or replace the column that a function returns: it is stored, or computed whenever it is needed."""

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Rename stored columns, ``{new: old}``, all at once, and drop others."""
        for block in self.blocks:
            renamed = {new: block[old] for new, old in names.items()}
            for old in (*names.values(), *drop):
                block.pop(old, None)
            block.update(renamed)

    @abstractmethod
    def gather(self, name: str) -> Any:
        """Return a column of all rows: an array in memory, a lazy dask array otherwise."""

    def note_rows(self, error: BaseException, index: int) -> None:
        """Note on an error in which rows it came up, if there are several blocks."""
        if len(self.sizes) > 1:
            rows = self.blocks[index]["rows"]
            error.add_note(f"In rows {rows.start} to {rows.stop - 1}.")

    def _read_blocks(self, needs: Sequence[str]) -> Iterator[list[Any]]:
        """Yield some columns of every block."""
        for block in self.blocks:
            yield [block[name] for name in needs]


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
        for block, columns in zip(self.blocks, blocks, strict=True):
            block.update(columns)

    def derive(self, function: Callable[..., Any], needs: Sequence[str], *shared: Any, gives: str) -> None:
        """Add or replace columns."""
        for block, columns in zip(self.blocks, self._read_blocks(needs), strict=True):
            block[gives] = function(*columns, *shared)

    def gather(self, name: str) -> Any:
        """Return a column of all rows."""
        return stack([block[name] for block in self.blocks])


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
