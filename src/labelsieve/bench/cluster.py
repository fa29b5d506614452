"""Cells on a dask cluster, through joblib."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from distributed import Client, KilledWorker
from joblib import Parallel, delayed, parallel_config
from joblib._dask import DaskDistributedBackend

from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult, evaluate
from labelsieve.bench.config import Experiment
from labelsieve.bench.plan import Cell
from labelsieve.bench.workers import died

__all__ = ["run_on_dask"]

_SECONDS_TO_CONNECT = 10


def run_on_dask(
    experiment: Experiment, cells: Sequence[Cell], address: str, remark: Callable[[str], None]
) -> Generator[tuple[Cell, CellResult]]:
    """Run cells on the cluster of a scheduler and yield them in the order they finish.

    Parameters
    ----------
    experiment : Experiment
        The configuration; the workers must find its files under the same paths.
    cells : sequence of Cell
        What to run.
    address : str
        Of the scheduler, for example ``tcp://10.0.0.1:8786``.
    remark : callable
        Told what the user should know about the cluster.
    """
    if not cells:
        return
    # What goes wrong is said in one sentence; dask would add pages to it.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise RunError(f"--dask: no scheduler answers at {address!r} ({error}); check the address.") from None
    tasks = (delayed(_run)(experiment, cell) for cell in cells)
    with client:
        if max(client.nthreads().values(), default=1) > 1:
            remark("a worker runs one cell at a time; start workers with --nthreads 1 to use all cores.")
        n_finished = 0
        try:
            with parallel_config(backend=_Backend(client=client)):
                results = Parallel(return_as="generator_unordered", batch_size=1)(tasks)
            with closing(results):
                for n_finished, found in enumerate(results, start=1):  # noqa: B007
                    yield found
        except TimeoutError:
            raise RunError(f"--dask: the scheduler at {address!r} has no workers; start some.") from None
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            pass
        if n_finished < len(cells):  # joblib may also just end
            raise RunError(
                f"--dask: the scheduler at {address!r} is gone; finished cells are stored. Start it again, then run "
                "the same command."
            )


def _run(experiment: Experiment, cell: Cell) -> tuple[Cell, CellResult]:
    return cell, evaluate(experiment, cell)


class _Lost(NamedTuple):
    """A cell that brought no result."""

    cell: Cell
    error: BaseException


class _Backend(DaskDistributedBackend):
    """joblib's backend, which alone would wait forever for a task that brings no result."""

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        # For a single one, joblib would run the cells in this process.
        return max(2, super().effective_n_jobs(n_jobs))

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Any:
        (_, (_, cell), _), *_ = func.items

        def tell(future: Any) -> None:
            if callback is not None and future.exception() is not None:
                callback(_Lost(cell, future.exception()))

        future = super().submit(func, callback)
        future.add_done_callback(tell)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        if isinstance(out, BaseException):  # cancelled
            raise out
        if not isinstance(out, _Lost):
            return super().retrieve_result_callback(out)
        if not isinstance(out.error, KilledWorker):
            raise out.error
        n_workers = out.error.allowed_failures + 1
        return [(out.cell, died(f"{n_workers} workers died while they ran the cell"))]
