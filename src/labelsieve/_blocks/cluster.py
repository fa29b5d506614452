"""Blocks on the workers of a dask cluster: tall columns stay there, only small parts travel.

A tall column is a function of files: of the data, of the last checkpoint, and of what the folds since then shared.
So the scheduler itself computes again what a worker that died had held. Nothing is scattered and nothing is an
actor: both lose what they hold with their worker. Where the scheduler gives up, the solver begins again from the
last checkpoint, as it does when its own process died.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import count
from pathlib import Path
from traceback import clear_frames
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from dask.delayed import delayed
from distributed import Client, Future, KilledWorker, wait

from labelsieve._blocks.blocks import BlockFunction, Columns, RowBlocks, add, note_rows, rename_columns
from labelsieve._blocks.derivations import Derivation, derived_column, plan
from labelsieve._blocks.fold_log import FoldLog, write_whole
from labelsieve._blocks.lazy_columns import lazy_rows

__all__ = ["ClusterBlocks", "LostWorkError"]

#: Parts that one task adds up.
_FAN_IN = 8
#: Folds that give columns, after which these are saved and the way they came about is forgotten.
_EVERY = 10
#: How often the same piece of work is begun before it is given up.
_ATTEMPTS = 3
#: Seconds between two looks at whether anything is done for what is waited for.
_LOOK_SECONDS = 5.0
#: Seconds that a solver whose work got lost waits for a worker.
_PATIENCE_SECONDS = 300.0

_Result = TypeVar("_Result")


class _StrandedError(RuntimeError):
    """Tasks that no worker is given, or will ever be."""


#: What says that work got lost: a task whose workers died, a restart that forgot what was asked for, or no end.
_LOST = (KilledWorker, CancelledError, _StrandedError)


class LostWorkError(RuntimeError):
    """A cluster lost its workers again and again, or all of them for good."""


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

    log: FoldLog

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
        self.lazy = {name: list(parts) for name, parts in columns.items()}
        self._run = uuid4().hex[:8]
        self._numbers = count()
        #: Workers that blocks were dealt to, those that are gone among them.
        self._dealt_to: set[str] = set()
        try:
            _check_folder(client, log.folder)
        except BaseException:
            log.close(is_done=False)
            raise
        self._begin()

    def _begin(self) -> None:
        """Ask for the data; forget all that was made of them."""
        self.blocks: list[Columns] = [{} for _ in self.sizes]
        self.derived: list[Derivation] = []
        #: Columns that are no results of folds; these come from the data again.
        self._sources = set(self.lazy)
        #: What folds since the last checkpoint shared: files that a lost column is computed from again.
        self._shared_files: list[Path] = []
        self._since_checkpoint = 0
        self.log.rewind()
        # Neighbouring blocks share a worker, so that their parts are added where they are.
        for worker, indices in _homes(self._workers(), len(self.sizes)).items():
            self._dealt_to.add(worker)
            places = [(index, name) for index in indices for name in self.lazy]
            parts = [self.lazy[name][index] for index, name in places]
            futures = self.client.compute(parts, workers=[worker], allow_other_workers=True)
            for (index, name), future in zip(places, futures, strict=True):
                self.blocks[index][name] = future

    def run(self, solve: Callable[[RowBlocks], _Result]) -> _Result:
        """Return what a solver makes of the rows; it begins again, from the last checkpoint, if these got lost."""
        failures, n_saved = 0, -1
        while True:
            try:
                return solve(self)
            except _LOST as error:
                failures = failures + 1 if self.log.n_saved == n_saved else 1
                n_saved = self.log.n_saved
                if failures == _ATTEMPTS:
                    raise LostWorkError(
                        f"The cluster lost its workers {_ATTEMPTS} times over the same work "
                        f"({type(error).__name__}: {error}). Give them more memory or start others, {self._remedy()}"
                    ) from None
                # The scheduler must forget all futures, or what they stand for stays as it is: lost. Some are held by
                # the error, which the client keeps, and some by cycles of those that waited for them.
                clear_frames(error.__traceback__)
            gc.collect()
            self._begin()

    def _workers(self) -> list[str]:
        """Addresses of the workers; if all died, wait for others, which are started sooner or later."""
        while not (workers := sorted(self.client.nthreads())):
            try:
                self.client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
            except TimeoutError:
                raise LostWorkError(
                    f"The cluster lost all its workers, and none came within {_PATIENCE_SECONDS:.0f} seconds. Start "
                    f"some, {self._remedy()}"
                ) from None
        return workers

    def _remedy(self) -> str:
        if self.log.is_temporary:
            return "then fit again; with checkpoint= and a folder of a shared file system it goes on where it was."
        return f"then fit with checkpoint={str(self.log.folder)!r} again: it goes on where it was."

    def fold(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any] = add) -> Any:
        """Visit every block where it lies; what is given stays there."""
        if self.log.is_replaying:
            return self._replay(function)
        path, results = self._visit(function, shared)
        try:
            total = self._await(self._total(function, results, combine))
        except Exception as error:
            failed = [index for index, result in enumerate(results) if result.status == "error"]
            if failed and not isinstance(error, _LOST):
                note_rows(error, self, failed[0])
            raise
        self._take(function, results)
        self.log.record(function.name, total)
        if function.gives:
            self._shared_files.append(path)
            self._since_checkpoint += 1
        else:
            path.unlink()
        if not self._given_names():
            self.log.save({})
        elif self._since_checkpoint >= self.every:
            self._checkpoint()
        return total

    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns; they stay with the workers."""
        # The file stays as long as the blocks do: the columns are made of it again if they get lost.
        _, results = self._visit(function, shared)
        self._take(function, results)
        self._sources.update(function.gives)
        self.derived.append((function, shared))

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Give columns new names."""
        for block in self.blocks:
            rename_columns(block, names, drop)

    def gather(self, name: str) -> Any:
        """Return a column of all rows as a dask array, which is made of the data when it is asked for.

        It needs none of the files of the fit, and nothing of it stays with the workers.
        """
        sources, steps = plan(self.derived, (name,))
        shared_steps = delayed(steps, traverse=False)
        parts = [
            delayed(derived_column)(
                {source: self.lazy[source][index] for source in sources}, shared_steps, first_row, name
            )
            for index, first_row in enumerate(self.first_rows)
        ]
        empty = self._await(self.client.submit(_without_rows, self.blocks[0][name], pure=False))
        return lazy_rows(parts, self.sizes, empty)

    def close(self, *, is_done: bool = True) -> None:
        """Forget the columns; delete the files unless another client shall go on."""
        self.blocks = [{} for _ in self.sizes]
        self.log.close(is_done=is_done)

    def _given_names(self) -> list[str]:
        return [name for name in self.blocks[0] if name not in self._sources]

    def _key(self, name: str) -> str:
        """Name tasks by what they do, which is how the scheduler learns how long they take."""
        return f"{name.strip('_')}-{self._run}-{next(self._numbers)}"

    def _map(
        self, name: str, task: Callable[..., Any], /, *arguments: Sequence[Any], **options: Any
    ) -> list[Future[Any]]:
        futures: list[Future[Any]] = self.client.map(
            task, *arguments, key=self._key(name), pure=False, **options
        )
        return futures

    def _visit(self, function: BlockFunction, shared: tuple[Any, ...]) -> tuple[Path, list[Future[Any]]]:
        """Begin to visit all blocks; returns the file of what they share."""
        path = self.log.folder / f"shared-{self._run}-{next(self._numbers):06d}.pickle"
        write_whole(path, pickle.dumps(shared, protocol=5))
        loaded = self.client.submit(_load_shared, str(path), key=self._key("load_shared"))
        names = [name for name in function.needs if name in self.blocks[0]]
        columns = [[block[name] for block in self.blocks] for name in names]
        options = {"function": function, "shared": loaded, "names": names}
        return path, self._map(function.name, _visit_block, self.first_rows, *columns, **options)

    def _take(self, function: BlockFunction, results: list[Future[Any]]) -> None:
        """Keep the columns that a visit gave."""
        for name in function.gives:
            futures = self._map(f"take_{name}", _given, results, column=name)
            for block, future in zip(self.blocks, futures, strict=True):
                block[name] = future

    def _total(
        self, function: BlockFunction, results: list[Future[Any]], combine: Callable[[Any, Any], Any]
    ) -> Future[Any]:
        """Combine the parts by a tree whose shape depends on the number of blocks alone."""
        level = self._map("part", _part, results) if function.gives else results
        while len(level) > 1:
            key = self._key(f"sum_{function.name.strip('_')}")
            level = [
                self.client.submit(_combine, combine, *level[i : i + _FAN_IN], key=f"{key}-{i}")
                for i in range(0, len(level), _FAN_IN)
            ]
        return level[0]

    def _await(self, future: Future[Any]) -> Any:
        """Return a result once it is there.

        A task that had to wait because all workers were gone is given to none but the one that it was meant for, even
        if it may go elsewhere (distributed 2026.8). So if that one is gone and two looks find nobody at work, there is
        nothing to wait for.
        """
        was_stranded = False
        while True:
            with suppress(TimeoutError):
                wait([future], timeout=_LOOK_SECONDS)
            if future.done():
                return future.result()
            is_stranded = not self._dealt_to <= self.client.nthreads().keys() and not any(
                self.client.processing().values()
            )
            if is_stranded and was_stranded:
                raise _StrandedError("tasks that were meant for workers which are gone never began")
            was_stranded = is_stranded

    def _checkpoint(self) -> None:
        """Save the columns that folds gave, and forget how they came about."""
        number = next(self._numbers)
        files = {
            name: [f"{name}-{index:05d}-{self._run}-{number:06d}.npy" for index in range(len(self.sizes))]
            for name in self._given_names()
        }
        saved = []
        for name, paths in files.items():
            columns = [block[name] for block in self.blocks]
            saved += self._map("save", _save, [str(self.log.folder / path) for path in paths], columns)
        for future in saved:
            self._await(future)
        self.log.save(files)
        self._load(files)
        for path in self._shared_files:
            path.unlink()
        self._shared_files, self._since_checkpoint = [], 0

    def _load(self, files: Mapping[str, Sequence[str]]) -> None:
        """Let columns be what was saved of them."""
        for name, paths in files.items():
            futures = self._map("load", _load_column, [str(self.log.folder / path) for path in paths])
            for block, future in zip(self.blocks, futures, strict=True):
                block[name] = future

    def _replay(self, function: BlockFunction) -> Any:
        """Take the part of a fold that was done before, and the columns at the last of these."""
        part = self.log.replay(function.name)
        for block in self.blocks:
            block.update(dict.fromkeys(function.gives))
        if not self.log.is_replaying:
            self.rename({}, drop=self._given_names())
            self._load(self.log.columns)
        return part


def _homes(workers: Sequence[str], n_blocks: int) -> dict[str, list[int]]:
    """Deal neighbouring blocks to the same worker."""
    homes: dict[str, list[int]] = {}
    for index in range(n_blocks):
        homes.setdefault(workers[index * len(workers) // n_blocks], []).append(index)
    return homes


def _check_folder(client: Client, folder: Path) -> None:
    """See that there are workers, and that all of them find the folder."""
    token = folder / f"seen-{uuid4().hex}"
    token.write_text("")
    seen = client.run(token.exists)
    token.unlink()
    if not seen:
        raise ValueError(
            "The cluster must have workers. Got none. Start some, for example with `dask worker ADDRESS`."
        )
    blind = [address for address, is_seen in seen.items() if not is_seen]
    if blind:
        raise ValueError(
            f"All workers must see the folder {folder}, where a fit keeps what it needs to bear the loss of a "
            f"worker. Got {len(blind)} of {len(seen)} that do not, {blind[0]} for example. Pass checkpoint= with a "
            f"folder of a shared file system."
        )


def _visit_block(
    first_row: int, *columns: Any, names: list[str], function: BlockFunction, shared: tuple[Any, ...]
) -> Any:
    """Return the columns and the part, or, if no columns are given, what is left."""
    given, part = function({**dict(zip(names, columns, strict=True)), "first_row": first_row}, *shared)
    return (given, part) if function.gives else part


def _part(result: tuple[Columns, Any]) -> Any:
    return result[1]


def _given(result: tuple[Columns, Any], *, column: str) -> Any:
    return result[0][column]


def _combine(combine: Callable[[Any, Any], Any], first: Any, *others: Any) -> Any:
    # Parts are results of other tasks, which may be asked for again: additions must not change one.
    total = pickle.loads(pickle.dumps(first, protocol=5)) if others else first
    for part in others:
        total = combine(total, part)
    return total


def _without_rows(column: Any) -> Any:
    return column[:0]


def _load_shared(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


def _load_column(path: str) -> np.ndarray:
    column: np.ndarray = np.load(path)
    return column


def _save(path: str, column: np.ndarray) -> None:
    partial = Path(path + ".partial.npy")
    np.save(partial, column)
    partial.replace(path)
