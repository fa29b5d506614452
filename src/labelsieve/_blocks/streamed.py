"""Blocks of dask arrays: computed again in every fold, for data larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias
from uuid import uuid4

from labelsieve._blocks.blocks import BlockFunction, Columns, RowBlocks, add, rename_columns

__all__ = ["LazyBlocks", "StreamedBlocks", "lazy_rows"]

#: A function that makes columns of others, and the values that its blocks share.
Derivation: TypeAlias = tuple[BlockFunction, tuple[Any, ...]]


class LazyBlocks(RowBlocks):
    """Blocks whose columns ``X`` and ``Y`` are dask objects.

    Parameters
    ----------
    columns : mapping of str to sequence of Delayed
        ``X`` and ``Y``, with one delayed array for every block.
    sizes : sequence of int
        Number of rows of every block.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]], sizes: Sequence[int]) -> None:
        super().__init__(sizes)
        self.lazy = {name: list(parts) for name, parts in columns.items()}
        self.derived: list[Derivation] = []

    def gather(self, name: str) -> Any:
        """Return a column of all rows as a dask array, which is computed from the data on request."""
        from dask.delayed import delayed

        sources, steps = self._plan((name,))
        shared_steps = delayed(steps, traverse=False)
        parts = [
            delayed(_derive_column)(
                {source: self.lazy[source][index] for source in sources}, shared_steps, first_row, name
            )
            for index, first_row in enumerate(self.first_rows)
        ]
        return lazy_rows(parts, self.sizes, self._empty(name))

    def _empty(self, name: str) -> Any:
        """Return a column of the first block without its rows."""
        raise NotImplementedError

    def _plan(self, needs: Sequence[str]) -> tuple[list[str], list[Derivation]]:
        """Return which of ``X`` and ``Y`` must be read for some columns, and the derivations to apply."""
        steps, wanted = [], set(needs)
        for function, shared in reversed(self.derived):
            if wanted.intersection(function.gives):
                wanted = wanted.difference(function.gives).union(function.needs)
                steps.append((function, shared))
        return [name for name in self.lazy if name in wanted], steps[::-1]


class StreamedBlocks(LazyBlocks):
    """Blocks that are read when they are visited, each while the one before is processed.

    Columns that folds give stay in memory.

    Parameters
    ----------
    columns, sizes
        As in `LazyBlocks`.
    on_block : callable or None, default=None
        Called with the number of blocks visited in this fold, and of all blocks.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        sizes: Sequence[int],
        *,
        on_block: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(columns, sizes)
        self.on_block = on_block
        self.graphs = {name: _separate_graphs(parts) for name, parts in self.lazy.items()}
        #: Columns that folds gave, by block.
        self.kept: list[Columns] = [{} for _ in self.sizes]

    def fold(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any] = add) -> Any:
        """Visit every block once, reading the columns that the function needs."""
        given, total = [], None
        for index, block in enumerate(self._read_blocks(function.needs)):
            try:
                columns, part = function(block, *shared)
            except Exception as error:
                self.note_rows(error, index)
                raise
            del block
            given.append(columns)
            total = combine(total, part) if index else part
            if self.on_block:
                self.on_block(index + 1, len(self.sizes))
        for kept, columns in zip(self.kept, given, strict=True):
            kept.update(columns)
        return total

    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns; they are computed again whenever they are needed."""
        self.derived.append((function, shared))

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Rename columns."""
        for kept in self.kept:
            rename_columns(kept, names, drop)

    def _empty(self, name: str) -> Any:
        return self._read_block(0, (name,))[name][:0]

    def _read_blocks(self, needs: Sequence[str]) -> Iterator[Columns]:
        """Read one block after the other, each while the one before is processed."""
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._read_block, 0, needs)
            for index in range(len(self.sizes)):
                block = ahead.result()
                if index + 1 < len(self.sizes):
                    ahead = reader.submit(self._read_block, index + 1, needs)
                yield block
                del block

    def _read_block(self, index: int, needs: Sequence[str]) -> Columns:
        """Read the columns of a block that are needed, and derive the others."""
        from dask.local import get_sync

        sources, steps = self._plan(needs)
        graphs = [self.graphs[name][index] for name in sources]
        tasks = {key: task for graph, _ in graphs for key, task in graph.items()}
        values = get_sync(tasks, [key for _, key in graphs])
        block = _derive_columns(dict(zip(sources, values, strict=True)), steps, self.first_rows[index])
        return block | {name: value for name, value in self.kept[index].items() if name in needs}


def lazy_rows(parts: Sequence[Any], sizes: Sequence[int], empty: Any) -> Any:
    """Make one dask array of delayed blocks of rows; ``empty`` is such a block without rows.

    All tasks are in one layer of the graph. With one layer per block, as in concatenated arrays, dask compares all
    blocks with all others whenever it optimizes the graph.
    """
    import dask.array as da
    from dask.utils import ensure_dict

    name = f"rows-{uuid4().hex}"
    tasks: dict[Any, Any] = {}
    for index, part in enumerate(parts):
        tasks.update(ensure_dict(part.__dask_graph__()))
        tasks[name, index, 0] = part.key
    return da.Array(tasks, name, (tuple(sizes), (empty.shape[1],)), meta=empty)


def _separate_graphs(parts: Sequence[Any]) -> list[tuple[dict[Any, Any], Any]]:
    """Return the tasks of every block, and the key of the last one.

    All blocks share one graph, which is too large to search for every block of every fold.
    """
    from dask.optimization import cull

    shared = dict(parts[0].__dask_graph__())
    return [(cull(shared, [part.key])[0], part.key) for part in parts]


def _derive_columns(columns: Columns, steps: Sequence[Derivation], first_row: int) -> Columns:
    """Apply derivations to the columns of one block."""
    block = {**columns, "first_row": first_row}
    for function, shared in steps:
        block.update(function(block, *shared)[0])
    return block


def _derive_column(columns: Columns, steps: Sequence[Derivation], first_row: int, name: str) -> Any:
    """Derive one column of a block."""
    return _derive_columns(columns, steps, first_row)[name]
