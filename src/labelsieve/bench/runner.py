"""Run the cells that are missing, side by side, and store each as it finishes."""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from labelsieve.bench import RunError, RunInterrupted
from labelsieve.bench.cells import CellResult, evaluate
from labelsieve.bench.components import build_method, identify, use_folder
from labelsieve.bench.config import ALL_FEATURES, NO_FEATURES, Experiment
from labelsieve.bench.data import DatasetFacts, describe, load_dataset
from labelsieve.bench.plan import Cell, plan
from labelsieve.bench.store import FILE_NAME, Store
from labelsieve.datasets.dataset import DatasetError

__all__ = ["Observer", "Summary", "environment", "run"]

_PACKAGES = ("labelsieve", "numpy", "scipy", "scikit-learn", "joblib", "pydantic", "dask")


@dataclass(frozen=True)
class Summary:
    """What became of the cells of a plan."""

    n_planned: int
    n_done: int
    n_failed: int
    n_computed: int

    @property
    def n_missing(self) -> int:
        """Cells that are neither done nor failed."""
        return self.n_planned - self.n_done - self.n_failed


class Observer:
    """Who wants to know how a run goes on; this one looks away."""

    def loading(self, name: str) -> None:
        """Called before a data set is read."""

    def planned(self, cells: Sequence[Cell], outcomes: dict[str, bool]) -> None:
        """Called once, with all cells and what became of the stored ones."""

    def finished(self, cell: Cell, result: CellResult) -> None:
        """Called after a cell was stored."""

    def remark(self, text: str) -> None:
        """Called when something happened that the user should know."""


def run(
    experiment: Experiment,
    folder: Path,
    observer: Observer | None = None,
    *,
    jobs: int = 1,
    dask: str | None = None,
    retry_failed: bool = False,
    accept_changes: bool = False,
    command: str = "",
) -> Summary:
    """Run the missing cells of an experiment and store them in ``folder``.

    Parameters
    ----------
    experiment : Experiment
        The configuration.
    folder : Path
        The run folder; results that are there already are not computed again.
    observer : Observer or None, default=None
        Told about progress.
    jobs : int, default=1
        Cells at the same time; results do not depend on it.
    dask : str or None, default=None
        Address of a dask scheduler that runs the cells instead of this machine.
    retry_failed : bool, default=False
        Run failed cells again.
    accept_changes : bool, default=False
        Go on although finished cells are no longer part of the plan.
    command : str, default=""
        How the run was called, for the record.

    Returns
    -------
    Summary
        How many cells are done, failed, and computed now.
    """
    observer = observer or Observer()
    use_folder(experiment.folder)
    # Before any data is read: a second runner is told at once.
    with Store(folder / FILE_NAME, writer=True) as store:
        facts = _facts(experiment, observer)
        cells = plan(experiment, facts)
        altered = store.altered()
        if altered:
            observer.remark(f"{len(altered)} stored cells were altered and are computed again.")
            store.forget(altered)
        outcomes = store.outcomes()
        if not accept_changes:
            _require_same_plan(store, experiment, facts, cells, outcomes)
        number = store.begin_run(command, experiment.as_dict(), environment())
        store.set_plan(cells, facts.values())
        observer.planned(cells, outcomes)
        kept = {key for key, done in outcomes.items() if done or not retry_failed}
        # A cell may stand in the plan twice, under two names.
        missing = list({cell.key: cell for cell in cells if cell.key not in kept}.values())
        params = {method.name: _params(method) for method in experiment.all_methods()}
        with _stopped_by_user(store, cells):
            for cell, result in _results(experiment, missing, jobs, dask, observer):
                store.record(number, cell, params[cell.method.name], result)
                observer.finished(cell, result)
        store.end_run(number)
        return _summary(store, cells, len(missing))


def _facts(experiment: Experiment, observer: Observer) -> dict[str, DatasetFacts]:
    facts = {}
    for spec in experiment.datasets:
        observer.loading(spec.name)
        try:
            facts[spec.name] = describe(spec, load_dataset(spec, experiment.folder), experiment)
        except DatasetError as error:
            raise RunError(f"datasets: {spec.name}: {error}") from None
    return facts


def _params(method: Any) -> dict[str, Any]:
    return {} if method.method in (NO_FEATURES, ALL_FEATURES) else identify(build_method(method))["params"]


def _require_same_plan(
    store: Store,
    experiment: Experiment,
    facts: dict[str, DatasetFacts],
    cells: Sequence[Cell],
    outcomes: dict[str, bool],
) -> None:
    """Notice a changed configuration or data file before finished work silently stops counting."""
    lost = {row["key"] for row in store.rows("SELECT key FROM plan")} & set(outcomes)
    lost -= {cell.key for cell in cells}
    if not lost:
        return
    before = {row["name"]: row["facts"] for row in store.rows("SELECT name, facts FROM datasets")}
    changed = [name for name, fact in facts.items() if name in before and fact.checksum not in before[name]]
    if changed:
        what = f"the data of {', '.join(changed)} changed"
    else:
        last = json.loads(store.rows("SELECT configuration FROM runs ORDER BY number DESC LIMIT 1")[0][0])
        now = experiment.as_dict()
        keys = [key for key in now if now[key] != last.get(key)]
        what = (
            f"the configuration changed ({', '.join(keys)})" if keys else "the defaults of a method changed"
        )
    raise RunError(
        f"{store.path.parent}: {what} since the last run, so {len(lost)} finished cells would no longer count; "
        "undo the change, choose another folder with --out, or go on with --accept-changes."
    )


def _results(
    experiment: Experiment, missing: Sequence[Cell], jobs: int, dask: str | None, observer: Observer
) -> Iterator[tuple[Cell, CellResult]]:
    """Yield the cells as they finish; when a worker dies, go on with the rest."""
    left = {cell.key: cell for cell in missing}
    n_before = -1
    while left:
        if len(left) == n_before:
            # Two deaths in a row without a result between them: find the culprit.
            yield from _one_by_one(experiment, left)
        n_before = len(left)
        try:
            for key, result in _parallel(experiment, list(left.values()), jobs, dask):
                yield left.pop(key), result
        except _worker_deaths() as error:
            observer.remark(f"a worker died ({type(error).__name__}); going on with the rest.")


def _worker_deaths() -> tuple[type[BaseException], ...]:
    """What joblib raises when a process that ran cells is gone."""
    distributed = sys.modules.get("distributed")
    return (
        (TerminatedWorkerError,) if distributed is None else (TerminatedWorkerError, distributed.KilledWorker)
    )


def _parallel(
    experiment: Experiment, cells: Sequence[Cell], jobs: int, dask: str | None
) -> Iterator[tuple[str, CellResult]]:
    """Give the cells to joblib, one at a time, and yield them in the order they finish."""
    parent = os.getpid() if dask is None and jobs != 1 else None
    tasks = (delayed(_keyed)(experiment, cell, parent) for cell in cells)
    with _backend(jobs, dask) as options:
        results = Parallel(return_as="generator_unordered", batch_size=1, **options)(tasks)
        try:
            yield from results
        finally:
            results.close()


def _keyed(experiment: Experiment, cell: Cell, parent: int | None) -> tuple[str, CellResult]:
    return cell.key, evaluate(experiment, cell, parent)


@contextmanager
def _backend(jobs: int, dask: str | None) -> Iterator[dict[str, Any]]:
    if dask is None:
        with parallel_config(
            backend="loky", n_jobs=jobs, inner_max_num_threads=1, initializer=_ignore_interrupt
        ):
            yield {"n_jobs": jobs}
        return
    try:
        from distributed import Client
    except ImportError:
        raise RunError("--dask needs dask: pip install 'labelsieve[dask]'") from None
    try:
        client = Client(dask, timeout="10s")
    except (OSError, ValueError) as error:
        raise RunError(f"--dask: no scheduler answers at {dask!r} ({error}); check the address.") from None
    with client, parallel_config(backend="dask"):
        yield {}


def _ignore_interrupt() -> None:
    """Leave Ctrl-C to the process that stores results; it ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one_by_one(experiment: Experiment, left: dict[str, Cell]) -> Iterator[tuple[Cell, CellResult]]:
    """Run cells in a process of their own until one kills it, and record that as its failure."""
    for key, cell in list(left.items()):
        executor = get_reusable_executor(max_workers=1, reuse=False)
        try:
            result = executor.submit(evaluate, experiment, cell, os.getpid()).result()
        except TerminatedWorkerError as error:
            message = "the process that ran the cell died; out of memory, or a crash in compiled code"
            result = CellResult(error=f"WorkerDied: {message}", traceback=str(error))
        yield left.pop(key), result
        if result.error is not None:
            return


@contextmanager
def _stopped_by_user(store: Store, cells: Sequence[Cell]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        summary = _summary(store, cells, 0)
        get_reusable_executor(max_workers=1).shutdown(wait=False, kill_workers=True)
        raise RunInterrupted(
            f"stopped; {summary.n_done + summary.n_failed} of {summary.n_planned} cells are finished and stored"
        ) from None


def _summary(store: Store, cells: Sequence[Cell], n_computed: int) -> Summary:
    outcomes = store.outcomes()
    states = [outcomes.get(cell.key) for cell in cells]
    return Summary(len(states), states.count(True), states.count(False), n_computed)


def environment() -> dict[str, Any]:
    """Versions and machine, for the record."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "versions": {"python": platform.python_version(), **versions},
        "platform": platform.platform(),
        "processor": platform.machine(),
        "n_cpus": os.cpu_count(),
    }
