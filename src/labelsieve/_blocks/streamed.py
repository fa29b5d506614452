"""Blocks of dask arrays that are recomputed in every fold, for data larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from uuid import uuid4

from labelsieve._blocks.blocks import Columns, RowBlocks


class Derivation(NamedTuple):
    """Column that a function computes from other columns and from values that all blocks share."""

    function: Callable[..., Any]
    needs: Sequence[str]
    shared: tuple[Any, ...]
    gives: str


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

    def derive(self, function: Callable[..., Any], needs: Sequence[str], *shared: Any, gives: str) -> None:
        """Add or replace a column, which is recomputed whenever it is needed."""
        self.derived.append(Derivation(function, needs, shared, gives))

    def gather(self, name: str) -> Any:
        """Return a column of all rows as a lazy dask array."""
        from dask.delayed import delayed

        sources, steps = self._plan((name,))
        shared_steps = delayed(steps, traverse=False)
        parts = [
            delayed(_derive_columns)(
                {source: self.lazy[source][index] for source in sources}, shared_steps, block["rows"]
            )[name]
            for index, block in enumerate(self.blocks)
        ]
        return lazy_rows(parts, self.sizes, parts[0][:0].compute())

    def _plan(self, needs: Sequence[str]) -> tuple[list[str], list[Derivation]]:
        """Return the sources that the given columns need (``X``, ``Y`` or both), and the derivations to apply."""
        steps, wanted = [], set(needs)
        for step in reversed(self.derived):
            if step.gives in wanted:
                wanted = wanted.difference([step.gives]).union(step.needs)
                steps.append(step)
        return [name for name in self.lazy if name in wanted], steps[::-1]


class StreamedBlocks(LazyBlocks):
    """Blocks that are read on demand. The next block is read while the current one is processed.

    Columns returned by folds stay in memory.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]], sizes: Sequence[int]) -> None:
        super().__init__(columns, sizes)
        self.graphs = {name: _separate_graphs(parts) for name, parts in self.lazy.items()}

    def _read_blocks(self, needs: Sequence[str]) -> Iterator[list[Any]]:
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._read_block, 0, needs)
            for index in range(len(self.sizes)):
                columns = ahead.result()
                if index + 1 < len(self.sizes):
                    ahead = reader.submit(self._read_block, index + 1, needs)
                yield columns
                del columns

    def _read_block(self, index: int, needs: Sequence[str]) -> list[Any]:
        """Read the sources of a block, and return the needed columns."""
        from dask.local import get_sync

        sources, steps = self._plan(needs)
        graphs = [self.graphs[name][index] for name in sources]
        tasks = {key: task for graph, _ in graphs for key, task in graph.items()}
        values = get_sync(tasks, [key for _, key in graphs])
        stored = self.blocks[index]
        block = _derive_columns(dict(zip(sources, values, strict=True)), steps, stored["rows"]) | stored
        return [block[name] for name in needs]


def lazy_rows(parts: Sequence[Any], sizes: Sequence[int], empty: Any) -> Any:
    """Combine delayed blocks of rows into one dask array. ``empty`` is a block without rows.

    All tasks are in one layer of the graph. With one layer per block, as in concatenated arrays, dask would
    compare all pairs of blocks whenever it optimizes the graph.
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
    """Return the tasks of every block, and the key of its last task.

    All blocks share one graph, which is too large to search in every fold for every block.
    """
    from dask.optimization import cull

    shared = dict(parts[0].__dask_graph__())
    return [(cull(shared, [part.key])[0], part.key) for part in parts]


def _derive_columns(columns: Columns, steps: Sequence[Derivation], rows: slice) -> Columns:
    """Apply derivations to the columns of one block."""
    block = {**columns, "rows": rows}
    for function, needs, shared, gives in steps:
        block[gives] = function(*(block[name] for name in needs), *shared)
    return block
