"""Run cells on a dask cluster.

Workers start a separate process for cells, as the runner does locally. Limits therefore apply there too, and a cell
that crashes does not kill a worker.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import Any

from distributed import Client, Future, KilledWorker
from distributed.comm.core import CommClosedError

from labelsieve._blocks.cluster import LostClusterError, connect, result_of, wait_for_any
from labelsieve._text import count
from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult
from labelsieve.bench.config import Experiment
from labelsieve.bench.plan import Cell
from labelsieve.bench.process import CellProcess, Death, retry_dead_cells

_SECONDS_TO_WAIT = 30


def run_on_dask(
    experiment: Experiment, cells: Iterable[Cell], address: str, remark: Callable[[str], None]
) -> Generator[tuple[Cell, CellResult]]:
    """Run cells on a dask cluster and yield them in the order they finish.

    The workers need the files of the experiment under the same paths. `remark` is called with a message when a process
    dies.
    """
    cells = list(cells)
    if not cells:
        return
    # Users see one error message instead of pages of dask logs.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with connect(address) as client:
            client.wait_for_workers(1, timeout=_SECONDS_TO_WAIT)

            def run(cells: Iterable[Cell]) -> Iterator[tuple[Cell, CellResult | Death]]:
                return _run_in_turn(client, experiment, cells)

            # dask blames every cell of a dead worker, so these cells run again, one at a time.
            yield from retry_dead_cells(run(cells), lambda cell: next(run([cell]))[1], remark)
    except LostClusterError as error:
        raise RunError(f"--dask: {error}") from None
    except TimeoutError:
        raise RunError(f"--dask: the scheduler at {address!r} has no workers. Start at least one.") from None
    except (asyncio.CancelledError, concurrent.futures.CancelledError, CommClosedError):
        raise RunError(
            f"--dask: lost the scheduler at {address!r}. Finished cells are stored. Restart it and repeat the command."
        ) from None


def _run_in_turn(
    client: Client, experiment: Experiment, cells: Iterable[Cell]
) -> Iterator[tuple[Cell, CellResult | Death]]:
    """Hand out cells as threads of the cluster become free, and yield them in the order they finish."""
    waiting = iter(cells)
    cell_of: dict[Future[Any], Cell] = {}
    while True:
        # The number of workers may change. One more cell per thread waits on a worker, so that none is idle.
        n_free = 2 * sum(client.nthreads().values()) - len(cell_of)
        for cell in islice(waiting, max(n_free, 0 if cell_of else 1)):
            cell_of[client.submit(_run_on_worker, experiment, cell, pure=False)] = cell
        if not cell_of:
            return
        for future in wait_for_any(client, list(cell_of)):
            yield cell_of.pop(future), _outcome(client, future)


def _outcome(client: Client, future: Future[Any]) -> CellResult | Death:
    try:
        outcome: CellResult | Death = result_of(client, future)
        return outcome
    except KilledWorker as error:
        return Death(f"{count(error.allowed_failures + 1, 'cluster worker')} died while running the cell")
    except CommClosedError:  # an OSError of the connection, not of the worker
        raise
    except (ImportError, OSError) as error:
        raise RunError(
            f"--dask: a worker cannot run cells ({error}). Install the same version of labelsieve on all workers."
        ) from None


_thread = threading.local()


def _run_on_worker(experiment: Experiment, cell: Cell) -> CellResult | Death:
    """Run a cell in the process that belongs to this thread of a worker."""
    if getattr(_thread, "experiment", None) != experiment:
        if hasattr(_thread, "process"):
            _thread.process.close()
        _thread.experiment, _thread.process = experiment, CellProcess(experiment)
    outcome: CellResult | Death = _thread.process.run(cell)
    return outcome
