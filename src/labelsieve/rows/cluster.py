"""Blocks on the workers of a dask cluster: tall columns stay there, only small parts travel.

A tall column is a function of files: of the data, of the last checkpoint, and of what the folds since then shared.
So the scheduler itself computes again what a worker that died had held. Nothing is scattered and nothing is an
actor: both lose what they hold with their worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from distributed import Client, Future, KilledWorker, wait

from labelsieve.rows.blocks import BlockFunction, Columns, RowBlocks, add, rename_columns
from labelsieve.rows.fold_log import FoldLog, write_whole

__all__ = ["ClusterBlocks", "LostWorkError"]

#: Parts that one task adds up.
_FAN_IN = 8
#: Folds that give columns, after which these are saved and the way they came about is forgotten.
_EVERY = 10
#: How often a fold is begun before it is given up.
_ATTEMPTS = 3


class LostWorkError(RuntimeError):
    """A cluster lost its workers again and again."""


class ClusterBlocks(RowBlocks):
    """Blocks whose columns are futures on a cluster.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    columns : mapping of str to sequence of Delayed
        ``X`` and ``Y``, a lazy block for every block of rows.
    sizes : sequence of int
        Rows of every block.
    log : FoldLog
        A folder that all workers see. With it another client can go on where this one died.
    every : int, default=10
        Folds that give columns between two checkpoints.
    """

    def __init__(
        self,
        client: Client,
        columns: Mapping[str, Sequence[Any]],
        sizes: Sequence[int],
        *,
        log: FoldLog,
        every: int = _EVERY,
    ) -> None:
        super().__init__(sizes)
        self.client = client
        self.log = log
        self.every = every
        self._since_checkpoint = 0
        self._numbers = count()
        self._run = f"labelsieve-{uuid4().hex[:8]}"
        #: What tasks since the last checkpoint shared: files that a lost column is computed from again.
        self._shared_files: list[Path] = []
        _check_folder(client, log.folder)
        self.blocks: list[Columns] = [{} for _ in self.sizes]
        #: Columns that are no results of folds; these come from the data again.
        self._sources = set(columns)
        for name, parts in columns.items():
            for index, (block, part) in enumerate(zip(self.blocks, parts, strict=True)):
                block[name] = client.compute(part, workers=[self._home(index)], allow_other_workers=True)

    def fold(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any] = add) -> Any:
        """Visit every block where it lies; what is given stays there."""
        if self.log.is_replaying:
            return self._replay(function)
        for attempt in range(1, _ATTEMPTS + 1):
            shared_file, results = self._visit(function, shared)
            try:
                total = self._total(results, combine).result()
                break
            except (KilledWorker, CancelledError) as error:
                shared_file.unlink(missing_ok=True)
                if attempt == _ATTEMPTS:
                    raise LostWorkError(
                        f"The cluster lost its workers {_ATTEMPTS} times in the same pass over the rows ({error}). "
                        f"Give it more memory or other workers, then fit with checkpoint={str(self.log.folder)!r} "
                        f"again: it goes on from there."
                    ) from None
        for name in function.gives:
            for block, future in zip(self.blocks, self._map(_given, results, name=name), strict=True):
                block[name] = future
        self.log.record(function.name, total)
        if not function.gives:
            shared_file.unlink()
            return total
        self._shared_files.append(shared_file)
        self._since_checkpoint += 1
        if self._since_checkpoint >= self.every:
            self._checkpoint()
        return total

    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns; they stay with the workers."""
        # Its file stays as long as the blocks do: the columns are made of it again if they get lost.
        _, results = self._visit(function, shared)
        self._sources.update(function.gives)
        for name in function.gives:
            for block, future in zip(self.blocks, self._map(_given, results, name=name), strict=True):
                block[name] = future

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Give columns new names."""
        for block in self.blocks:
            rename_columns(block, names, drop)

    def gather(self, name: str) -> Any:
        """Return a column of all rows as a dask array whose blocks stay with the workers."""
        from labelsieve.rows.collections import lazy_rows

        futures = [block[name] for block in self.blocks]
        return lazy_rows(futures, self.sizes, self.client.submit(_without_rows, futures[0]).result())

    def close(self) -> None:
        """Forget the columns and delete the files."""
        self.blocks = [{} for _ in self.sizes]
        self.log.remove()

    def _home(self, index: int) -> str:
        """Neighbouring blocks share a worker, so that their parts are added where they are."""
        workers = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        return str(workers[index * len(workers) // len(self.sizes)])

    def _map(
        self, function: Callable[..., Any], *arguments: Sequence[Any], **options: Any
    ) -> list[Future[Any]]:
        key = f"{self._run}-{function.__name__.strip('_')}-{next(self._numbers)}"
        futures: list[Future[Any]] = self.client.map(function, *arguments, key=key, pure=False, **options)
        return futures

    def _visit(self, function: BlockFunction, shared: tuple[Any, ...]) -> tuple[Path, list[Future[Any]]]:
        """Begin to visit all blocks; returns the file of what they share."""
        path = self.log.folder / f"shared-{self._run}-{next(self._numbers)}.pickle"
        write_whole(path, pickle.dumps(shared, protocol=5))
        loaded = self.client.submit(_load, str(path), key=f"{self._run}-load-{next(self._numbers)}")
        names = [name for name in function.needs if name in self.blocks[0]]
        columns = [[block[name] for block in self.blocks] for name in names]
        options = {"function": function, "shared": loaded, "names": names}
        return path, self._map(_visit_block, self.first_rows, *columns, **options)

    def _total(self, results: list[Future[Any]], combine: Callable[[Any, Any], Any]) -> Future[Any]:
        """Combine the parts by a tree whose shape depends on the number of blocks alone."""
        level = self._map(_part, results)
        while len(level) > 1:
            key = f"{self._run}-sum-{next(self._numbers)}"
            level = [
                self.client.submit(_combine, combine, *level[i : i + _FAN_IN], key=f"{key}-{i}", pure=False)
                for i in range(0, len(level), _FAN_IN)
            ]
        return level[0]

    def _checkpoint(self) -> None:
        """Save the columns that folds gave, and forget how they came about."""
        number = next(self._numbers)
        files: dict[str, list[str]] = {}
        for name in self.blocks[0]:
            if name not in self._sources:
                files[name] = [
                    f"{name}-{index:05d}-{self._run}-{number}.npy" for index in range(len(self.sizes))
                ]
        saved = [
            future
            for name, paths in files.items()
            for future in self._map(
                _save, [str(self.log.folder / path) for path in paths], [block[name] for block in self.blocks]
            )
        ]
        for future in saved:
            future.result()
        self._load_saved(files)
        wait([block[name] for block in self.blocks for name in files])
        self.log.save(files)
        for path in self._shared_files:
            path.unlink(missing_ok=True)
        self._shared_files, self._since_checkpoint = [], 0

    def _load_saved(self, files: Mapping[str, Sequence[str]]) -> None:
        for name, paths in files.items():
            futures = self._map(_load_column, [str(self.log.folder / path) for path in paths])
            for block, future in zip(self.blocks, futures, strict=True):
                block[name] = future

    def _replay(self, function: BlockFunction) -> Any:
        """Take the part of a fold that an earlier client was given, and the columns at the last of them."""
        part = self.log.replay(function.name)
        for block in self.blocks:
            block.update(dict.fromkeys(function.gives))
        if not self.log.is_replaying:
            for index, block in enumerate(self.blocks):
                self.blocks[index] = {name: block[name] for name in block if name in self._sources}
            self._load_saved(self.log.columns)
        return part


def _check_folder(client: Client, folder: Path) -> None:
    """See that all workers find the folder."""
    token = folder / f"seen-{uuid4().hex}"
    token.write_text("")
    seen = client.run(token.exists)
    token.unlink()
    if not seen:
        raise ValueError(
            "The cluster must have workers. Got none. Start some, for example with `dask worker`."
        )
    blind = [address for address, is_seen in seen.items() if not is_seen]
    if blind:
        raise ValueError(
            f"All workers must see the folder {folder}, where a fit keeps what it needs to bear the loss of a "
            f"worker. Got {len(blind)} of {len(seen)} that do not, {blind[0]} for example. Pass checkpoint= with a "
            f"folder of a shared file system."
        )


def _visit_block(
    first_row: int, *columns: Any, names: list[str], function: BlockFunction, shared: Any
) -> Any:
    return function({**dict(zip(names, columns, strict=True)), "first_row": first_row}, *shared)


def _part(result: tuple[Columns, Any]) -> Any:
    return result[1]


def _given(result: tuple[Columns, Any], *, name: str) -> Any:
    return result[0][name]


def _combine(combine: Callable[[Any, Any], Any], *parts: Any) -> Any:
    # Parts are results of other tasks, which may be asked for again: the first addition must not change one.
    total = (
        parts[0] if len(parts) == 1 else combine(pickle.loads(pickle.dumps(parts[0], protocol=5)), parts[1])
    )
    for part in parts[2:]:
        total = combine(total, part)
    return total


def _without_rows(column: Any) -> Any:
    return column[:0]


def _load(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


def _load_column(path: str) -> np.ndarray:
    column: np.ndarray = np.load(path)
    return column


def _save(path: str, column: np.ndarray) -> None:
    partial = Path(path + ".partial.npy")
    np.save(partial, column)
    partial.replace(path)
