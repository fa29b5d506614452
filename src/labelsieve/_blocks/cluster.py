"""Blocks on the workers of a dask cluster: columns stay there, only small parts travel.

Every column is a task that depends on the data and on what the folds so far shared, so dask computes again what a lost
worker held. Shared values travel inside the task graph: scattered data and actors are lost with their worker.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import deepcopy
from itertools import count
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future, KilledWorker, wait
from distributed.comm.core import CommClosedError

from labelsieve._blocks.blocks import BlockFunction, Columns, add, rename_columns
from labelsieve._blocks.streamed import LazyBlocks

__all__ = ["ClusterBlocks", "LostClusterError"]

#: Number of parts that one task adds up.
_FAN_IN = 8
#: Seconds between two checks that there are workers, and how long a fit waits for one.
_CHECK_SECONDS, _PATIENCE_SECONDS = 2.0, 40.0


class LostClusterError(RuntimeError):
    """A cluster that lost its scheduler, all of its workers, or several workers during the same task."""


class ClusterBlocks(LazyBlocks):
    """Blocks whose columns are futures on a cluster.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    columns, sizes
        As in `LazyBlocks`.
    """

    def __init__(self, client: Client, columns: Mapping[str, Sequence[Any]], sizes: Sequence[int]) -> None:
        super().__init__(columns, sizes)
        self.client = client
        self._address = client.scheduler_info()["address"]
        self._run = uuid4().hex[:8]
        self._numbers = count()
        self.blocks: list[Columns] = [{} for _ in self.sizes]
        with self._reporting_losses():
            # One column after the other: dask then spreads the large one, X, evenly.
            for name, parts in self.lazy.items():
                self._keep(name, client.compute(parts))

    def fold(self, function: BlockFunction, *shared: Any, combine: Callable[[Any, Any], Any] = add) -> Any:
        """Visit every block where it is."""
        with self._reporting_losses():
            results = self._visit(function, shared)
            level = self._map("part", _part, results) if function.gives else results
            # The shape of the tree depends on the number of blocks alone.
            while len(level) > 1:
                groups = [level[start : start + _FAN_IN] for start in range(0, len(level), _FAN_IN)]
                level = self._map(f"sum_{function.name}", _combine, groups, combine=combine)
            try:
                total = self._wait_for(level[0])
            except Exception as error:
                failed = [index for index, result in enumerate(results) if result.status == "error"]
                if failed and not isinstance(error, KilledWorker):
                    self.note_rows(error, failed[0])
                raise
            self._keep_given(function, results)
        return total

    def derive(self, function: BlockFunction, *shared: Any) -> None:
        """Add or replace columns; they stay with the workers."""
        with self._reporting_losses():
            self._keep_given(function, self._visit(function, shared))
        self.derived.append((function, shared))

    def rename(self, names: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Rename columns."""
        for block in self.blocks:
            rename_columns(block, names, drop)

    def _empty(self, name: str) -> Any:
        with self._reporting_losses():
            return self._wait_for(self._map("empty", _without_rows, [self.blocks[0][name]])[0])

    def _visit(self, function: BlockFunction, shared: tuple[Any, ...]) -> list[Future[Any]]:
        """Start to visit all blocks."""
        # As bytes, which dask neither searches for tasks nor unpacks at the scheduler.
        shared_values = self._map("share", pickle.loads, [pickle.dumps(shared, protocol=5)])[0]
        names = [name for name in function.needs if name in self.blocks[0]]
        columns = [[block[name] for block in self.blocks] for name in names]
        options = {"function": function, "shared": shared_values, "names": names}
        return self._map(function.name, _visit_block, self.first_rows, *columns, **options)

    def _map(
        self, name: str, task: Callable[..., Any], /, *arguments: Sequence[Any], **options: Any
    ) -> list[Future[Any]]:
        """Submit a task for every block. Its key starts with a name from which dask learns how long it takes."""
        key = f"{name.strip('_')}-{self._run}-{next(self._numbers)}"
        futures: list[Future[Any]] = self.client.map(task, *arguments, key=key, pure=False, **options)
        return futures

    def _keep_given(self, function: BlockFunction, results: list[Future[Any]]) -> None:
        for name in function.gives:
            self._keep(name, self._map(f"take_{name}", _given, results, column=name))

    def _keep(self, name: str, futures: Sequence[Future[Any]]) -> None:
        for block, future in zip(self.blocks, futures, strict=True):
            block[name] = future

    def _wait_for(self, future: Future[Any]) -> Any:
        """Return the result of a task, or raise if there is no worker for too long."""
        last_seen = time.monotonic()
        while not future.done():
            try:
                wait([future], timeout=_CHECK_SECONDS)
            except TimeoutError:
                if self._has_able_worker():
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > _PATIENCE_SECONDS:
                    raise LostClusterError(
                        f"The cluster must have a worker that takes tasks. Got none for {_PATIENCE_SECONDS:.0f} "
                        f"seconds: all were lost, or paused for lack of memory. Start workers, then fit again."
                    ) from None
        return future.result()

    def _has_able_worker(self) -> bool:
        """Return whether a worker can take tasks, or is at work on one."""
        info = self.client.scheduler_info(n_workers=-1) if self.client.status == "running" else {}
        if "workers" not in info:
            raise CommClosedError
        # A paused worker, which is short of memory, finishes what it has begun but takes nothing new.
        return any(
            worker["status"] == "running" or worker["metrics"].get("task_counts", {}).get("executing")
            for worker in info["workers"].values()
        )

    @contextmanager
    def _reporting_losses(self) -> Iterator[None]:
        """Turn what dask raises for lost processes into one kind of error."""
        try:
            # The warning advises to scatter large values, but these are lost with a worker.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                yield
        except KilledWorker as error:
            raise LostClusterError(
                f"Workers of the cluster died again and again during the same task ({error.task}), perhaps for lack of "
                f"memory. Give them more memory or smaller blocks, then fit again."
            ) from None
        except (CommClosedError, CancelledError):
            raise LostClusterError(
                f"The connection to the scheduler at {self._address} was lost. Check that it runs, "
                f"connect again, then fit again."
            ) from None


def _visit_block(
    first_row: int, *columns: Any, names: list[str], function: BlockFunction, shared: tuple[Any, ...]
) -> Any:
    """Return the columns and the part of a block, or the part alone if the function gives no columns."""
    given, part = function({**dict(zip(names, columns, strict=True)), "first_row": first_row}, *shared)
    return (given, part) if function.gives else part


def _part(result: tuple[Columns, Any]) -> Any:
    return result[1]


def _given(result: tuple[Columns, Any], *, column: str) -> Any:
    return result[0][column]


def _combine(parts: Sequence[Any], *, combine: Callable[[Any, Any], Any]) -> Any:
    # Parts are results of other tasks, which additions must not change.
    total = deepcopy(parts[0]) if len(parts) > 1 else parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total


def _without_rows(column: Any) -> Any:
    return column[:0]
