"""Run the missing cells of an experiment side by side, and store each as it finishes."""

from __future__ import annotations

import os
import platform
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from sqlite3 import Row
from typing import Any, Protocol

from labelsieve.bench import RunError, RunInterrupted
from labelsieve.bench.cells import CellResult, Ranked, Task
from labelsieve.bench.components import identify_method, use_folder
from labelsieve.bench.config import UNRANKED, DatasetSpec, Experiment, MethodSpec, in_toml
from labelsieve.bench.data import DatasetFacts, describe, load_dataset, require_candidates, require_rows
from labelsieve.bench.plan import Cell, Judgement, plan, require_sizes
from labelsieve.bench.process import run_locally
from labelsieve.bench.store import FILE_NAME, Contents, Store, unpack
from labelsieve.io.errors import DatasetError

__all__ = ["Observer", "Summary", "environment", "run"]

_PACKAGES = ("labelsieve", "numpy", "scipy", "scikit-learn", "joblib", "pydantic", "dask")


@dataclass(frozen=True)
class Summary:
    """Counts of the judgements of a plan, unless said otherwise."""

    n_planned: int
    n_done: int
    n_failed: int
    #: Computed by this run.
    n_computed: int
    #: Rankings computed by this run.
    n_ranked: int


class Observer(Protocol):
    """Receiver of the progress of a run; a subclass overrides the calls that it needs."""

    def loading(self, spec: DatasetSpec) -> None:
        """Called before a dataset is read."""
        return

    def planned(self, cells: Sequence[Cell], outcomes: dict[str, bool], tasks: Sequence[Task]) -> None:
        """Called once with the plan, the judgements that are finished already, and the tasks to run."""
        return

    def finished(self, task: Task, result: CellResult) -> None:
        """Called after the result of a task was stored."""
        return

    def remark(self, text: str) -> None:
        """Called with something that the user should know."""
        return


class _Silent(Observer):
    """Observer that ignores everything."""


def run(
    experiment: Experiment,
    folder: Path,
    observer: Observer | None = None,
    *,
    jobs: int = 1,
    dask: str | None = None,
    retry_failed: bool = False,
    accept_changes: bool = False,
    rankings: Path | None = None,
    command: str = "",
) -> Summary:
    """Run the missing cells of an experiment and store them in ``folder``.

    Parameters
    ----------
    experiment : Experiment
        The configuration.
    folder : Path
        The run folder; stored results are not computed again.
    observer : Observer or None, default=None
        Receiver of the progress.
    jobs : int, default=1
        Cells at the same time; results do not depend on it.
    dask : str or None, default=None
        Address of a dask scheduler that runs the cells instead of this machine.
    retry_failed : bool, default=False
        Run failed cells again.
    accept_changes : bool, default=False
        Continue although finished cells are no longer part of the plan, or rankings have to be computed again.
    rankings : Path or None, default=None
        Results file of another run, whose rankings are reused if they are part of this plan.
    command : str, default=""
        How the run was called, for the record.

    Returns
    -------
    Summary
        Counts of finished and failed judgements.
    """
    observer = observer or _Silent()
    use_folder(experiment)
    with ExitStack() as stack:
        # Before any data is read, so that a second runner is rejected at once.
        store = stack.enter_context(Store(folder / FILE_NAME, writer=True))
        other = None if rankings is None else stack.enter_context(_open_other(rankings, folder))
        facts = _facts(experiment, observer)
        cells = plan(experiment, facts)
        before = store.read()
        if before.n_damaged:
            observer.remark(f"{before.n_damaged} stored rows are damaged; they are computed again.")
            store.forget_damaged()
        reused = {} if other is None else _reusable_rankings(other, cells, before, store.weighted(), observer)
        if not accept_changes:
            _require_same_plan(folder, before, experiment, facts, cells)
            _require_weights(folder, _tasks(cells, before, store.weighted(), retry_failed), reused)
        planned = [row for cell in cells for row in cell.rows()]
        datasets = {name: fact.as_dict() for name, fact in facts.items()}
        number = store.begin_run(command, experiment.as_dict(), environment(), planned, datasets)
        if other is not None and reused:
            store.copy(
                (("rankings", row) for row in reused.values()), other, reused.keys() & other.weighted()
            )
            before = store.read()
        tasks = _tasks(cells, before, store.weighted(), retry_failed)
        pairs = [(cell.key, judgement.key) for cell, judgement in _applicable(cells)]
        redone = {judgement.key for task in tasks for judgement in task.cell.judgements}
        settled = {key: done for key, done in before.outcomes(pairs).items() if key not in redone}
        observer.planned(cells, settled, tasks)
        n_computed = n_ranked = 0
        with (
            _stopped_by_user(pairs, store),
            closing(_results(experiment, _loaded(tasks, cells, store), jobs, dask, observer)) as found,
        ):
            for task, result in found:
                params = _params(task.cell.method)
                store.record(number, task, params, result, keep_weights=experiment.store_weights)
                n_computed += len(task.cell.judgements)
                n_ranked += task.ranked is None and task.cell.method.method not in UNRANKED
                observer.finished(task, result)
        store.end_run(number)
        return _summary(pairs, store, n_computed, n_ranked)


def _open_other(path: Path, folder: Path) -> Store:
    """Open the file whose rankings are reused."""
    if path.resolve() == (folder / FILE_NAME).resolve():
        raise RunError(f"--rankings: expected another run than {folder}.")
    return Store(path)


def _reusable_rankings(
    other: Store, cells: Sequence[Cell], before: Contents, weighted: set[str], observer: Observer
) -> dict[str, Row]:
    """Find the rankings that this run needs and another one has, with weights if they are needed."""
    done = {key for key, row in before.rankings.items() if row["error"] is None}
    needs_weights = {
        cell.key: any(found.uses_weights and not found.obstacle for found in cell.judgements)
        for cell in cells
        if cell.method.method not in UNRANKED and not all(judgement.obstacle for judgement in cell.judgements)
    }
    wanted = {key for key, needs in needs_weights.items() if key not in (done & weighted if needs else done)}
    theirs = other.weighted()
    found = {
        key: row
        for key, row in other.read().rankings.items()
        if key in wanted and row["error"] is None and (key in theirs or not needs_weights[key])
    }
    if len(found) < len(wanted):
        observer.remark(
            f"{len(wanted) - len(found)} of {len(wanted)} rankings are not in {other.path.parent}."
        )
    return found


def _applicable(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Judgement]]:
    for cell in cells:
        for judgement in cell.judgements:
            if not judgement.obstacle:
                yield cell, judgement


def _distinct(cells: Sequence[Cell]) -> dict[str, Cell]:
    """Join cells that are planned under several names: the same ranking, perhaps judged at other sizes."""
    found: dict[str, Cell] = {}
    for cell in cells:
        wanted = [judgement for judgement in cell.judgements if not judgement.obstacle]
        first = found.setdefault(cell.key, replace(cell, judgements=()))
        own = {judgement.key: judgement for judgement in (*first.judgements, *wanted)}
        found[cell.key] = replace(first, judgements=tuple(own.values()))
    return found


def _tasks(cells: Sequence[Cell], before: Contents, weighted: set[str], retry_failed: bool) -> list[Task]:
    """List the tasks to run: missing rankings with all their judgements, and missing judgements of the others.

    Parameters
    ----------
    cells : sequence of Cell
        The plan.
    before : Contents
        Stored results.
    weighted : set of str
        Keys of rankings whose weights are stored.
    retry_failed : bool
        Whether to run failed cells again.
    """
    rankings = {key: row for key, row in before.rankings.items() if not (retry_failed and row["error"])}
    judged = {key for key, row in before.judgements.items() if not (retry_failed and row["error"])}
    tasks = []
    for cell in _distinct(cells).values():
        missing = tuple(judgement for judgement in cell.judgements if judgement.key not in judged)
        row = rankings.get(cell.key)
        if row is None:
            if cell.judgements:
                tasks.append(Task(cell))
        elif missing and row["error"] is None:
            needs_weights = any(judgement.uses_weights for judgement in missing)
            if needs_weights and cell.key not in weighted and cell.method.method not in UNRANKED:
                tasks.append(Task(cell, again=True))
            else:
                tasks.append(Task(replace(cell, judgements=missing), Ranked(unpack(row["ranking"], "<i4"))))
    return tasks


def _loaded(tasks: Sequence[Task], cells: Sequence[Cell], store: Store) -> Iterator[Task]:
    """Add the weights that tasks need, one by one: all together may not fit into memory."""
    whole = _distinct(cells)
    for task in tasks:
        order = None if task.ranked is None else task.ranked.order
        if order is None or not any(judgement.uses_weights for judgement in task.cell.judgements):
            yield task
            continue
        weights = store.weights(task.key, len(order))
        # Damaged weights are computed again with their ranking.
        yield (
            Task(whole[task.key], again=True)
            if weights is None
            else replace(task, ranked=Ranked(order, weights))
        )


def _facts(experiment: Experiment, observer: Observer) -> dict[str, DatasetFacts]:
    facts = {}
    for spec in experiment.datasets:
        observer.loading(spec)
        try:
            dataset = load_dataset(spec, experiment.folder)
        except DatasetError as error:
            raise RunError(f"datasets: {spec.name}: {error.spelled(in_toml)}") from None
        require_rows(experiment.folds, spec.name, dataset.X.shape[0])
        if any(noise.model == "given" for noise in experiment.noises()):
            require_candidates(spec.name, dataset)
        facts[spec.name] = describe(spec, dataset, experiment)
        if any(method.method not in UNRANKED for method in experiment.all_methods()):
            require_sizes(experiment, facts[spec.name])
    return facts


def _params(method: MethodSpec) -> dict[str, Any]:
    return {} if method.method in UNRANKED else identify_method(method)["params"]


def _require_weights(folder: Path, tasks: Sequence[Task], reused: Mapping[str, Row]) -> None:
    """Raise an error if finished rankings would be computed again because they have no weights."""
    again = [task for task in tasks if task.again and task.key not in reused]
    if again:
        raise RunError(
            f"{folder}: own-weights needs weights, but {len(again)} finished rankings were stored without; leave "
            "own-weights out, choose another folder with --out, or compute them again with --accept-changes."
        )


def _require_same_plan(
    folder: Path,
    before: Contents,
    experiment: Experiment,
    facts: dict[str, DatasetFacts],
    cells: Sequence[Cell],
) -> None:
    """Raise an error if finished cells would no longer count because something changed."""
    done = {key for key, is_done in before.outcomes(before.applicable()).items() if is_done}
    lost = done - {judgement.key for _, judgement in _applicable(cells)}
    if not lost:
        return
    known = before.datasets
    changed = [
        name for name, fact in facts.items() if name in known and fact.checksum != known[name]["checksum"]
    ]
    now, last = experiment.as_dict(), before.configuration or {}
    keys = [key for key in now if now[key] != last.get(key)]
    if changed:
        what = f"the data of {', '.join(changed)} changed"
    elif keys:
        what = f"the configuration changed ({', '.join(keys)})"
    else:
        what = "a method or a classifier changed"
    raise RunError(
        f"{folder}: {what} since the last run, so {len(lost)} finished cells would no longer count; undo the change, "
        "choose another folder with --out, or continue with --accept-changes."
    )


def _results(
    experiment: Experiment, tasks: Iterator[Task], jobs: int, dask: str | None, observer: Observer
) -> Generator[tuple[Task, CellResult]]:
    """Yield the tasks as they finish."""
    if dask is None:
        return run_locally(experiment, tasks, jobs, observer.remark)
    try:
        from labelsieve.bench.cluster import run_on_dask
    except ImportError:
        raise RunError("--dask needs dask: pip install 'labelsieve[dask]'") from None
    return run_on_dask(experiment, tasks, dask, observer.remark)


@contextmanager
def _stopped_by_user(pairs: Sequence[tuple[str, str]], store: Store) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        summary = _summary(pairs, store, 0, 0)
        raise RunInterrupted(
            f"stopped; {summary.n_done + summary.n_failed} of {summary.n_planned} cells are finished and stored"
        ) from stop


def _summary(pairs: Sequence[tuple[str, str]], store: Store, n_computed: int, n_ranked: int) -> Summary:
    outcomes = store.read().outcomes(pairs)
    states = [outcomes.get(key) for _, key in pairs]
    return Summary(len(states), states.count(True), states.count(False), n_computed, n_ranked)


def environment() -> dict[str, Any]:
    """Return versions and machine, for the record."""
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
