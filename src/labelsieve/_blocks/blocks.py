"""Blocks of rows, which solvers access through two operations, `fold` and `derive`.

A block holds *columns* with the same rows: ``X``, ``Y``, and arrays that a solver derives from them. A sum
over the rows is a fold over the blocks, so a solver that uses folds runs in memory, out of core and on a
cluster. Data in memory is usually a single block.
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
    """Add two parts, and tuples entry by entry. May overwrite the first part.

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

    The functions passed to `fold` and `derive` take the columns of one block that they need, followed by
    the values that all blocks share. The column ``rows`` is the slice of the block among all rows.
    Functions must be pure and deterministic because they are called again if a worker is lost. They must
    not modify columns or shared values. Define them at module level so that clusters can import them.

    Parameters
    ----------
    sizes : sequence of int
        Number of rows of every block.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = [int(size) for size in sizes]
        #: Stored columns of every block.
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
        """Apply a function to every block, and combine the results.

        The result for a block is a part, whose size must not grow with the number of rows. With ``gives``,
        the function returns ``(column, part)``, and the column is stored under that name after all blocks
        have been visited. The parts are combined in the order of the blocks, so the result depends only on
        the block boundaries.

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
        """Add or replace a column that a function computes. It may be stored or computed when needed."""

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Rename stored columns by a mapping from new to old names, and drop others."""
        for block in self.blocks:
            renamed = {new: block[old] for new, old in names.items()}
            for old in (*names.values(), *drop):
                block.pop(old, None)
            block.update(renamed)

    @abstractmethod
    def gather(self, name: str) -> Any:
        """Return a column of all rows, as an array or as a lazy dask array."""

    def note_rows(self, error: BaseException, index: int) -> None:
        """Add the rows of the block to an error, if there are several blocks."""
        if len(self.sizes) > 1:
            rows = self.blocks[index]["rows"]
            error.add_note(f"In rows {rows.start} to {rows.stop - 1}.")

    def _read_blocks(self, needs: Sequence[str]) -> Iterator[list[Any]]:
        """Yield the given columns of every block."""
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
        """Add or replace a column."""
        for block, columns in zip(self.blocks, self._read_blocks(needs), strict=True):
            block[gives] = function(*columns, *shared)

    def gather(self, name: str) -> Any:
        """Return a column of all rows."""
        return stack([block[name] for block in self.blocks])


def stack(parts: list[Any]) -> Any:
    """Stack dense or sparse blocks of rows. A single block is returned without a copy.

    Dense blocks are removed from the list once they are copied, which halves the peak memory.
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
