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
from labelsieve.bench.cells import CellResult, Task
from labelsieve.bench.config import Experiment
from labelsieve.bench.process import CellProcess, Death, settle

__all__ = ["run_on_dask"]

_SECONDS_TO_WAIT = 30


def run_on_dask(
    experiment: Experiment, tasks: Iterable[Task], address: str, remark: Callable[[str], None]
) -> Generator[tuple[Task, CellResult]]:
    """Run cells on the cluster of a scheduler and yield them in the order they finish.

    Parameters
    ----------
    experiment : Experiment
        The configuration; the workers must find its files under the same paths.
    tasks : iterable of Task
        Cells to run.
    address : str
        Address of the scheduler, for example ``tcp://10.0.0.1:8786``.
    remark : callable
        Called with a sentence when a process dies.
    """
    tasks = list(tasks)
    if not tasks:
        return
    # Errors become one sentence; dask would add pages to it.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with connect(address) as client:
            client.wait_for_workers(1, timeout=_SECONDS_TO_WAIT)

            def submit(task: Task) -> Future[Any]:
                return client.submit(_run_here, experiment, task, pure=False)

            task_of = {submit(task): task for task in tasks}
            finished = ((task_of.pop(future), _outcome(future)) for future in as_completed(list(task_of)))
            # dask blames every cell that a dying worker had, so these run again, one at a time.
            yield from settle(finished, lambda task: _outcome(submit(task)), remark)
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


def _run_here(experiment: Experiment, task: Task) -> CellResult | Death:
    """Run a cell in a process that this thread of a worker keeps for the next one."""
    if getattr(_here, "experiment", None) != experiment:
        if hasattr(_here, "process"):
            _here.process.close()
        _here.experiment, _here.process = experiment, CellProcess(experiment)
    outcome: CellResult | Death = _here.process.run(task)
    return outcome
