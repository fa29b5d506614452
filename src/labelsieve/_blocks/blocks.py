"""Rows in blocks: what is asked of all rows is asked of one block after the other, wherever they lie.

A block holds *tall* columns that share their rows: ``X`` and ``Y``, later perhaps ``T`` and ``U``. A sum over the
rows is a fold over the blocks, and a solver that is written in folds runs in memory, out of core and on a
cluster. In memory there is one block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.fold_log import FoldLog

__all__ = ["BlockFunction", "Columns", "MemoryBlocks", "RowBlocks", "add", "block_function", "stack"]

#: Tall columns of one block by name.
Columns: TypeAlias = dict[str, Any]

_Result = TypeVar("_Result")


class BlockFunction:
    """A function of one block, with the names of the columns it needs and of those it gives.

    It takes the columns of a block (and ``first_row``, the number of the first of its rows) and what all blocks
    share, and returns new tall columns and a part: what it has to say of its rows, in a size that does not grow
    with them. It is pure and deterministic, since it may be called again where a worker was lost, and changes
    neither the columns nor what is shared; nobody else holds the part.

    Parameters
    ----------
    function : callable
        ``function(rows, *shared) -> (columns, part)``, at the top of a module.
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
        # Found by name where it is unpickled, as functions are.
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
    """Add two parts, tuples entry by entry; the first, which belongs to the fold, may be used up.

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
    """The rows of a problem in blocks.

    Parameters
    ----------
    sizes : sequence of int
        Rows of every block.
    """

    #: Where folds are recorded, so that another process can go on; None for nowhere.
    log: FoldLog | None = None

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = [int(size) for size in sizes]
        self.first_rows = [0, *np.cumsum(self.sizes)[:-1].tolist()]

    @property
    def n_rows(self) -> int:
        """Rows of all blocks."""
        return sum(self.sizes)

    @abstractmethod
    def fold(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any] = add) -> Any:
        """Visit every block once; return what the parts come to, and keep the columns that were given.

        The columns are kept when all blocks were visited, so a fold that failed may be repeated. The parts are
        combined in the order of the blocks, whoever visited them, so the result depends on how the rows are cut
        and on nothing else.
        """

    @abstractmethod
    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns by what a function makes of the rows; its part is not looked at.

        They are stored or made again whenever they are needed.
        """

    @abstractmethod
    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Give the columns that folds gave new names, ``{new: old}``, all at once, and forget others."""

    @abstractmethod
    def gather(self, name: str) -> Any:
        """Return a column of all rows: an array in memory, else a dask array that is computed when asked."""

    def look(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """Visit every block in a fold that is not recorded: it is done again where a fit goes on."""
        if self.log is None:
            return self.fold(function, *shared, combine=combine)
        with self.log.paused():
            return self.fold(function, *shared, combine=combine)

    def run(self, solve: Callable[[RowBlocks], _Result]) -> _Result:
        """Return what a deterministic solver makes of the rows, calling it again where they got lost meanwhile."""
        return solve(self)

    def close(self, *, is_done: bool = True) -> None:  # noqa: B027 - blocks in memory have nothing to give back
        """Give back files and memory; what another process needs to go on is kept if the work is not done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(is_done=kind is None)


class MemoryBlocks(RowBlocks):
    """Blocks that lie in this process; one of them is the ordinary case.

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
            with said_of_rows(self, index):
                columns, part = function({**block, "first_row": self.first_rows[index]}, *shared)
            given.append(columns)
            total = combine(total, part) if index else part
        for block, columns in zip(self.blocks, given, strict=True):
            block.update(columns)
        return total

    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns."""
        self.fold(function, *shared, combine=_nothing)

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Give columns new names."""
        for block in self.blocks:
            rename_columns(block, names, drop)

    def gather(self, name: str) -> Any:
        """Return a column of all rows."""
        return stack([block[name] for block in self.blocks])


def rename_columns(columns: Columns, names: Mapping[str, str], drop: Sequence[str]) -> None:
    """Rename and drop the columns of one block, in place."""
    renamed = {new: columns[old] for new, old in names.items()}
    for old in (*names.values(), *drop):
        columns.pop(old, None)
    columns.update(renamed)


def stack(parts: list[Any]) -> Any:
    """Put blocks of rows, dense or sparse, on top of each other; a single one is returned as it is.

    Dense ones are taken off the list as they are copied, so that they need not exist twice.
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


@contextmanager
def said_of_rows(rows: RowBlocks, index: int) -> Iterator[None]:
    """Note on an error in which rows it came up, if there is more than one block."""
    try:
        yield
    except Exception as error:
        note_rows(error, rows, index)
        raise


def note_rows(error: BaseException, rows: RowBlocks, index: int) -> None:
    """Add to an error which rows it is about, if there is more than one block and it does not say so itself."""
    first = rows.first_rows[index]
    note = f"In the rows {first} to {first + rows.sizes[index] - 1}."
    if len(rows.sizes) > 1 and note not in str(error):
        error.add_note(note)


def _nothing(_: Any, __: Any) -> None:
    """Combine parts that nobody looks at."""
