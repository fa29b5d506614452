"""Blocks on the workers of a dask cluster. Columns stay on the workers and only small results are sent.

Every column is a task that depends on the data and on the shared values of earlier folds, so dask can
recompute the columns of a lost worker. Shared values are part of the task graph because scattered data and
actors are lost with their worker.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from copy import deepcopy
from itertools import count
from operator import itemgetter
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future, KilledWorker, wait
from distributed.comm.core import CommClosedError

from labelsieve._blocks.blocks import add
from labelsieve._blocks.streamed import LazyBlocks

#: Number of parts that one task combines.
_FAN_IN = 8
#: Seconds between two checks for workers, and seconds that a fit waits for a worker.
_CHECK_SECONDS, _PATIENCE_SECONDS = 2.0, 40.0
#: Seconds that the transfer of a result may take before its task counts as unfinished again.
_TRANSFER_SECONDS = 15.0


class LostClusterError(RuntimeError):
    """Error of a cluster that is unreachable, or lost its scheduler or too many workers."""


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """Connect to a scheduler, and run all fits inside the context on its cluster."""
    try:
        # A default client would remain the default of this process even if it cannot connect.
        client = Client(address, set_as_default=False)
    except OSError:
        patience = dask.config.get("distributed.comm.timeouts.connect")
        raise LostClusterError(
            f"No scheduler answered at {address!r} within {patience}. Check the address, or set "
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT to wait longer."
        ) from None
    except (ValueError, MemoryError):  # the response of another kind of server looks like a huge message
        raise LostClusterError(f"{address!r} is not the address of a dask scheduler.") from None
    with client, client.as_current():
        yield client


def wait_for_any(client: Client, futures: Sequence[Future[Any]]) -> set[Future[Any]]:
    """Wait until a task ends and return all that ended, or raise if there has been no worker for too long."""
    last_seen = time.monotonic()
    while True:
        try:
            done: set[Future[Any]] = wait(futures, _CHECK_SECONDS, "FIRST_COMPLETED").done
            return done
        except TimeoutError:
            if _has_able_worker(client):
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > _PATIENCE_SECONDS:
                raise LostClusterError(
                    f"The cluster had no running worker for {_PATIENCE_SECONDS:.0f} seconds. All workers were lost, "
                    "or paused because they ran out of memory. Start workers and try again."
                ) from None


def result_of(client: Client, future: Future[Any]) -> Any:
    """Return the result of a task, or raise if there has been no worker for too long."""
    while True:
        wait_for_any(client, [future])
        # A finished task runs again if its worker is lost before its result arrives.
        with suppress(TimeoutError):
            return future.result(_TRANSFER_SECONDS)


def _has_able_worker(client: Client) -> bool:
    """Return True if a worker accepts tasks or is executing one."""
    info = client.scheduler_info(n_workers=-1) if client.status == "running" else {}
    if "workers" not in info:
        raise CommClosedError
    # A worker that is paused for lack of memory finishes its tasks but accepts no new ones.
    return any(
        worker["status"] == "running" or worker["metrics"].get("task_counts", {}).get("executing")
        for worker in info["workers"].values()
    )


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
        with self._reporting_losses():
            # Submit one column at a time so that dask distributes the large X evenly.
            for name, parts in self.lazy.items():
                self._keep(name, client.compute(parts))

    def fold(
        self,
        function: Callable[..., Any],
        needs: Sequence[str],
        *shared: Any,
        gives: str | None = None,
        combine: Callable[[Any, Any], Any] = add,
    ) -> Any:
        """Apply a function to every block on its worker, and combine the results."""
        with self._reporting_losses():
            results = self._visit(function, needs, shared)
            level = self._map("part", itemgetter(1), results) if gives else results
            # The shape of the tree depends only on the number of blocks.
            while len(level) > 1:
                groups = [level[start : start + _FAN_IN] for start in range(0, len(level), _FAN_IN)]
                level = self._map(f"sum_{function.__name__}", _combine, groups, combine=combine)
            try:
                total = result_of(self.client, level[0])
            except Exception as error:
                failed = [index for index, result in enumerate(results) if result.status == "error"]
                if failed and not isinstance(error, KilledWorker):
                    self.note_rows(error, failed[0])
                raise
            if gives:
                self._keep(gives, self._map(f"take_{gives}", itemgetter(0), results))
        return total

    def derive(self, function: Callable[..., Any], needs: Sequence[str], *shared: Any, gives: str) -> None:
        """Add or replace a column, which stays on the workers."""
        super().derive(function, needs, *shared, gives=gives)
        with self._reporting_losses():
            self._keep(gives, self._visit(function, needs, shared))

    def _visit(
        self, function: Callable[..., Any], needs: Sequence[str], shared: tuple[Any, ...]
    ) -> list[Future[Any]]:
        """Submit a task for every block."""
        # Bytes are neither searched for tasks nor deserialised by the scheduler.
        shared_values = self._map("share", pickle.loads, [pickle.dumps(shared, protocol=5)])[0]
        columns = [[block[name] for block in self.blocks] for name in needs]
        return self._map(function.__name__, _call, *columns, function=function, shared=shared_values)

    def _map(
        self, name: str, task: Callable[..., Any], /, *arguments: Sequence[Any], **options: Any
    ) -> list[Future[Any]]:
        """Submit tasks under a name, by which dask estimates their duration."""
        key = f"{name.strip('_')}-{self._run}-{next(self._numbers)}"
        futures: list[Future[Any]] = self.client.map(task, *arguments, key=key, pure=False, **options)
        return futures

    def _keep(self, name: str, futures: Sequence[Future[Any]]) -> None:
        for block, future in zip(self.blocks, futures, strict=True):
            block[name] = future

    @contextmanager
    def _reporting_losses(self) -> Iterator[None]:
        """Convert errors that dask raises for lost processes to `LostClusterError`."""
        try:
            # The warning recommends scattering large values, but these would be lost with a worker.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                yield
        except KilledWorker as error:
            raise LostClusterError(
                f"Several workers died during the same task ({error.task}), perhaps because they ran out of memory. "
                f"Give them more memory or use smaller blocks, then fit again."
            ) from None
        except (CommClosedError, CancelledError):
            raise LostClusterError(
                f"The connection to the scheduler at {self._address} was lost. Check that it is running, "
                f"reconnect, then fit again."
            ) from None


def _call(*columns: Any, function: Callable[..., Any], shared: tuple[Any, ...]) -> Any:
    return function(*columns, *shared)


def _combine(parts: Sequence[Any], *, combine: Callable[[Any, Any], Any]) -> Any:
    # Parts are results of other tasks, which addition must not modify.
    total = deepcopy(parts[0]) if len(parts) > 1 else parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total
