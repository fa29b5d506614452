"""Cells on a dask cluster, through joblib."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

from distributed import Client
from joblib import Parallel, delayed, parallel_config, register_parallel_backend
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
        Told what the user should know of the cluster.
    """
    # What goes wrong is said in one sentence; dask would add pages to it.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise RunError(f"--dask: no scheduler answers at {address!r} ({error}); check the address.") from None
    by_key = {cell.key: cell for cell in cells}
    tasks = (delayed(_keyed)(experiment, cell) for cell in cells)
    with client, parallel_config(backend=_NAME, client=client):
        ...
