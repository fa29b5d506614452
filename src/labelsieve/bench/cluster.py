"""Cells on a dask cluster: its workers run them in processes of their own, as the runner does on this machine.

So limits hold there too, and a cell that crashes does not take a worker of the cluster with it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from labelsieve._text import count
from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult, Task
from labelsieve.bench.config import Experiment
from labelsieve.bench.workers import Crew, Death, SecondChance

__all__ = ["run_on_dask"]

_SECONDS_TO_CONNECT = 10
_LATER = -1


def run_on_dask(
    experiment: Experiment, tasks: Iterable[Task], address: str, remark: Callable[[str], None]
) -> Generator[tuple[Task, CellResult]]:
    """Run cells on the cluster of a scheduler and yield them in the order they finish.

    Parameters
    ----------
    experiment : Experiment
        The configuration; the workers must find its files under the same paths.
    tasks : iterable of Task
        What to run.
    address : str
        Of the scheduler, for example ``tcp://10.0.0.1:8786``.
    remark : callable
        Told when a process dies.
    """
    tasks = list(tasks)
    if not tasks:
        return
    # What goes wrong is said in one sentence; dask would add pages to it.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise RunError(f"--dask: no scheduler answers at {address!r} ({error}); check the address.") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
        except TimeoutError:
            raise RunError(f"--dask: the scheduler at {address!r} has no workers; start some.") from None
        try:
            yield from _results(client, experiment, tasks, SecondChance(remark))
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            raise RunError(
                f"--dask: the scheduler at {address!r} is gone; finished cells are stored. Start it again, then run "
                "the same command."
            ) from None


def _results(
    client: Client, experiment: Experiment, tasks: Iterable[Task], chance: SecondChance
) -> Generator[tuple[Task, CellResult]]:
    task_of: dict[Any, Task] = {}

    def submit(task: Task, priority: int = 0) -> Future[Any]:
        future = client.submit(_run_here, experiment, task, pure=False, priority=priority)
        task_of[future.key] = task
        return future

    suspects: list[Task] = []
    finished = as_completed([submit(task) for task in tasks])
    for future in finished:
        task = task_of.pop(future.key)
        outcome = _outcome(future)
        result = chance.settle(task, outcome)
        if result is not None:
            yield task, result
        elif future.status == "error":
            suspects.append(task)
        else:
            finished.add(submit(task, _LATER))
    # dask suspects every cell that a dying worker had, also those that waited there: one at a time, it is sure.
    for task in suspects:
        result = None
        while result is None:
            result = chance.settle(task, _outcome(submit(task)))
        yield task, result


def _outcome(future: Future[Any]) -> CellResult | Death:
    try:
        outcome: CellResult | Death = future.result()
        return outcome
    except KilledWorker as error:
        n_workers = error.allowed_failures + 1
        return Death(f"{count(n_workers, 'worker')} of the cluster died with the cell")
    except (ImportError, OSError) as error:
        raise RunError(
            f"--dask: a worker cannot run cells ({error}); it needs the labelsieve that is installed here."
        ) from None


_here = threading.local()


def _run_here(experiment: Experiment, task: Task) -> CellResult | Death:
    """Run a cell in a process that the thread of a worker keeps for the next one."""
    if getattr(_here, "experiment", None) != experiment:
        if hasattr(_here, "crew"):
            _here.crew.close()
        _here.crew, _here.experiment = Crew(experiment), experiment
    crew: Crew = _here.crew
    try:
        crew.begin(task)
        return crew.next_outcome()[1]
    except BaseException:
        crew.close()
        raise
