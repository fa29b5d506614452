"""Run cells on a dask cluster; its workers run them in processes of their own, as the runner does locally.

So limits hold there too, and a cell that crashes does not take a worker of the cluster with it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any

from distributed import Future, KilledWorker, as_completed

from labelsieve._blocks.cluster import LostClusterError, connect
from labelsieve._text import count
from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult
from labelsieve.bench.config import Experiment
from labelsieve.bench.plan import Cell
from labelsieve.bench.process import CellProcess, Death, settle

_SECONDS_TO_WAIT = 30


def run_on_dask(
    experiment: Experiment, cells: Iterable[Cell], address: str, remark: Callable[[str], None]
) -> Generator[tuple[Cell, CellResult]]:
    """Run cells on the cluster of a scheduler and yield them in the order they finish.

    The workers must find the files of the experiment under the same paths. `remark` is called with a sentence when a
    process dies.
    """
    cells = list(cells)
    if not cells:
        return
    # Errors become one sentence; dask would add pages to it.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with connect(address) as client:
            client.wait_for_workers(1, timeout=_SECONDS_TO_WAIT)

            def submit(cell: Cell) -> Future[Any]:
                return client.submit(_run_here, experiment, cell, pure=False)

            cell_of = {submit(cell): cell for cell in cells}
            finished = ((cell_of.pop(future), _outcome(future)) for future in as_completed(list(cell_of)))
            # dask blames every cell that a dying worker had, so these run again, one at a time.
            yield from settle(finished, lambda cell: _outcome(submit(cell)), remark)
    except LostClusterError as error:
        raise RunError(f"--dask: {error}") from None
    except TimeoutError:
        raise RunError(f"--dask: the scheduler at {address!r} has no workers; start some.") from None
    except (asyncio.CancelledError, concurrent.futures.CancelledError):
        raise RunError(
            f"--dask: the scheduler at {address!r} is gone; finished cells are stored. Start it again, then run "
            "the same command."
        ) from None


def _outcome(future: Future[Any]) -> CellResult | Death:
    try:
        outcome: CellResult | Death = future.result()
        return outcome
    except KilledWorker as error:
        return Death(f"{count(error.allowed_failures + 1, 'worker')} of the cluster died with the cell")
    except (ImportError, OSError) as error:
        raise RunError(
            f"--dask: a worker cannot run cells ({error}); it needs the labelsieve that is installed here."
        ) from None


_here = threading.local()


def _run_here(experiment: Experiment, cell: Cell) -> CellResult | Death:
    """Run a cell in a process that this thread of a worker keeps for the next one."""
    if getattr(_here, "experiment", None) != experiment:
        if hasattr(_here, "process"):
            _here.process.close()
        _here.experiment, _here.process = experiment, CellProcess(experiment)
    outcome: CellResult | Death = _here.process.run(cell)
    return outcome
