"""Run the cells that are missing, side by side, and store each as it finishes."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from labelsieve.bench import RunError, RunInterrupted
from labelsieve.bench.cells import CellResult
from labelsieve.bench.components import build_method, identify, use_folder
from labelsieve.bench.config import ALL_FEATURES, NO_FEATURES, DatasetSpec, Experiment, in_toml
from labelsieve.bench.data import DatasetFacts, describe, load_dataset
from labelsieve.bench.plan import Cell, plan
from labelsieve.bench.seals import Contents
from labelsieve.bench.store import FILE_NAME, Store
from labelsieve.bench.workers import run_locally
from labelsieve.datasets.errors import DatasetError

__all__ = ["Observer", "Summary", "environment", "run"]

_PACKAGES = ("labelsieve", "numpy", "scipy", "scikit-learn", "joblib", "pydantic", "dask")


@dataclass(frozen=True)
class Summary:
    """What became of the cells of a plan."""

    n_planned: int
    n_done: int
    n_failed: int
    n_computed: int


class Observer:
    """Who wants to know how a run goes on; this one looks away."""

    def loading(self, spec: DatasetSpec) -> None:
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
    use_folder(experiment)
    # Before any data is read: a second runner is told at once.
    with Store(folder / FILE_NAME, writer=True) as store:
        facts = _facts(experiment, observer)
        cells = plan(experiment, facts)
        before = store.read()
        if before.n_altered:
            observer.remark(f"{before.n_altered} stored cells were altered; they are computed again.")
            store.forget(before.altered)
        outcomes = before.outcomes()
        if not accept_changes:
            _require_same_plan(folder, before, experiment, facts, cells)
        number = store.begin_run(command, experiment.as_dict(), environment(), cells, facts.values())
        kept = {key: done for key, done in outcomes.items() if done or not retry_failed}
        observer.planned(cells, kept)
        # A cell may stand in the plan twice, under two names.
        missing = list({cell.key: cell for cell in cells if cell.key not in kept}.values())
        params = {cell.key: _params(cell.method) for cell in missing}
        with (
            _stopped_by_user(cells, store),
            closing(_results(experiment, missing, jobs, dask, observer)) as found,
        ):
            for cell, result in found:
                store.record(number, cell, params[cell.key], result)
                outcomes[cell.key] = result.error is None
                observer.finished(cell, result)
        store.end_run(number)
        return _summary(cells, outcomes, len(missing))


def _facts(experiment: Experiment, observer: Observer) -> dict[str, DatasetFacts]:
    facts = {}
    for spec in experiment.datasets:
        observer.loading(spec)
        try:
            facts[spec.name] = describe(spec, load_dataset(spec, experiment.folder), experiment)
        except DatasetError as error:
            raise RunError(f"datasets: {spec.name}: {error.spelled(in_toml)}") from None
    return facts


def _params(method: Any) -> dict[str, Any]:
    return {} if method.method in (NO_FEATURES, ALL_FEATURES) else identify(build_method(method))["params"]


def _require_same_plan(
    folder: Path,
    before: Contents,
    experiment: Experiment,
    facts: dict[str, DatasetFacts],
    cells: Sequence[Cell],
) -> None:
    """Notice a changed configuration or data file before finished work silently stops counting."""
    lost = {row["key"] for row in before.plan} & set(before.outcomes())
    lost -= {cell.key for cell in cells}
    if not lost:
        return
    known = {row["name"]: row["facts"] for row in before.datasets}
    changed = [name for name, fact in facts.items() if name in known and fact.checksum not in known[name]]
    if changed:
        what = f"the data of {', '.join(changed)} changed"
    else:
        last: dict[str, Any] = {}
        with suppress(ValueError, TypeError, IndexError, RecursionError):  # none that can be read
            last = dict(json.loads(before.runs[-1]["configuration"]))
        now = experiment.as_dict()
        keys = [key for key in now if now[key] != last.get(key)]
        what = (
            f"the configuration changed ({', '.join(keys)})" if keys else "the defaults of a method changed"
        )
    raise RunError(
        f"{folder}: {what} since the last run, so {len(lost)} finished cells would no longer count; "
        "undo the change, choose another folder with --out, or go on with --accept-changes."
    )


def _results(
    experiment: Experiment, missing: Sequence[Cell], jobs: int, dask: str | None, observer: Observer
) -> Generator[tuple[Cell, CellResult]]:
    """Yield the cells as they finish."""
    if dask is None:
        return run_locally(experiment, missing, jobs, observer.remark)
    try:
        from labelsieve.bench.cluster import run_on_dask
    except ImportError:
        raise RunError("--dask needs dask: pip install 'labelsieve[dask]'") from None
    return run_on_dask(experiment, missing, dask, observer.remark)


@contextmanager
def _stopped_by_user(cells: Sequence[Cell], store: Store) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        # The file knows: the last cell may have been stored, and not yet noted here.
        summary = _summary(cells, store.read().outcomes(), 0)
        raise RunInterrupted(
            f"stopped; {summary.n_done + summary.n_failed} of {summary.n_planned} cells are finished and stored"
        ) from stop


def _summary(cells: Sequence[Cell], outcomes: dict[str, bool], n_computed: int) -> Summary:
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
        "platform": " ".join((platform.system(), platform.machine(), *platform.libc_ver())).strip(),
        "n_cpus": os.cpu_count(),
    }
