"""Blocks that are read anew in every fold, for data larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np

from labelsieve._blocks.blocks import BlockFunction, Columns, RowBlocks, add, rename_columns, said_of_rows
from labelsieve._blocks.derivations import Derivation, derived_column, make_columns, plan
from labelsieve._blocks.fold_log import FoldLog
from labelsieve._blocks.lazy_columns import lazy_rows

__all__ = ["Loader", "StreamedBlocks"]

#: Reads some of the columns ``X`` and ``Y`` of one block.
Loader: TypeAlias = Callable[[Sequence[str]], Columns]


class StreamedBlocks(RowBlocks):
    """Blocks that are read when they are visited, the next one by a thread while one is worked on.

    Columns that folds give stay in memory, or lie in the folder of the log if there is one.

    Parameters
    ----------
    loaders : sequence of callable
        ``load(names)`` reads the columns ``X`` and ``Y``, as far as they are named, of one block.
    sizes : sequence of int
        Rows of every block.
    log : FoldLog or None, default=None
        Where folds are recorded, so that another process can go on.
    on_block : callable or None, default=None
        Called with the number of blocks visited in this fold, and of all blocks.
    """

    def __init__(
        self,
        loaders: Sequence[Loader],
        sizes: Sequence[int],
        *,
        log: FoldLog | None = None,
        on_block: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(sizes)
        self.loaders = list(loaders)
        self.log = log
        self.on_block = on_block
        self.derived: list[Derivation] = []
        #: Columns that folds gave, by block: arrays, or names of files in the folder of the log.
        self.kept: list[Columns] = [{} for _ in self.loaders]

    def fold(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any] = add) -> Any:
        """Visit every block once, reading what the function needs."""
        if self.log is not None and self.log.is_replaying:
            return self._replay(function, self.log)
        given, total = [], None
        for index, block in enumerate(self._blocks(function.needs)):
            with said_of_rows(self, index):
                columns, part = function(block, *shared)
            del block
            given.append(self._store(index, columns))
            total = combine(total, part) if index else part
            if self.on_block:
                self.on_block(index + 1, len(self.loaders))
        for kept, columns in zip(self.kept, given, strict=True):
            kept.update(columns)
        if self.log is not None:
            self.log.record(function.name, total)
            self.log.save({name: [kept[name] for kept in self.kept] for name in self.kept[0]})
        return total

    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns; they are made again whenever they are needed."""
        self.derived.append((function, shared))

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Give columns new names."""
        for kept in self.kept:
            rename_columns(kept, names, drop)

    def gather(self, name: str) -> Any:
        """Return a column of all rows as a dask array, which is made of the data when it is asked for."""
        from dask.delayed import delayed

        sources, steps = plan(self.derived, (name,))
        steps = delayed(steps, traverse=False)
        parts = [
            delayed(derived_column)(delayed(load)(sources), steps, first, name)
            for load, first in zip(self.loaders, self.first_rows, strict=True)
        ]
        return lazy_rows(parts, self.sizes, self._load(0, (name,))[name][:0])

    def close(self, *, is_done: bool = True) -> None:
        """Forget the columns; delete the files unless another process shall go on."""
        self.kept = [{} for _ in self.loaders]
        if self.log is not None:
            self.log.close(is_done=is_done)

    def _blocks(self, needs: Sequence[str]) -> Iterator[Columns]:
        """Read one block after the other, each while the one before is worked on."""
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._load, 0, needs)
            for index in range(len(self.loaders)):
                block = ahead.result()
                if index + 1 < len(self.loaders):
                    ahead = reader.submit(self._load, index + 1, needs)
                yield block
                del block

    def _load(self, index: int, needs: Sequence[str]) -> Columns:
        """Read what is needed of a block, and make what is derived of it."""
        kept = {
            name: np.load(self.log.folder / value) if self.log else value
            for name, value in self.kept[index].items()
            if name in needs
        }
        sources, steps = plan(self.derived, needs)
        return make_columns(self.loaders[index](sources), steps, self.first_rows[index]) | kept

    def _store(self, index: int, columns: Columns) -> Columns:
        """Keep columns in memory, or as files of their own, since those of the last fold are still good."""
        if self.log is None:
            return columns
        stored: Columns = {}
        for name, value in columns.items():
            stored[name] = f"{name}-{index:05d}-{self.log.n_folds:06d}.npy"
            np.save(self.log.folder / stored[name], value)
        return stored

    def _replay(self, function: BlockFunction, log: FoldLog) -> Any:
        """Take the part of a fold that was done by an earlier process, and its columns at the last of them."""
        part = log.replay(function.name)
        for index, kept in enumerate(self.kept):
            kept.update(dict.fromkeys(function.gives))
            if not log.is_replaying:
                self.kept[index] = {name: files[index] for name, files in log.columns.items()}
        return part
