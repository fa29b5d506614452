"""Run the cells that are missing, side by side, and store each as it finishes."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from sqlite3 import Row
from typing import Any

from labelsieve.bench import RunError, RunInterrupted
from labelsieve.bench.cells import CellResult, Ranked, Task
from labelsieve.bench.components import identify_method, use_folder
from labelsieve.bench.config import UNRANKED, DatasetSpec, Experiment, build_experiment, in_toml
from labelsieve.bench.data import DatasetFacts, describe, load_dataset, require_candidates, require_rows
from labelsieve.bench.earlier_format import is_earlier_key, present_keys
from labelsieve.bench.plan import Cell, Judgement, plan, require_sizes
from labelsieve.bench.results import read_ranking
from labelsieve.bench.results_file import FILE_NAME, damaged
from labelsieve.bench.seals import Contents
from labelsieve.bench.store import Store, unpack
from labelsieve.bench.workers import run_locally
from labelsieve.io.errors import DatasetError

__all__ = ["Observer", "Summary", "environment", "run"]

_PACKAGES = ("labelsieve", "numpy", "scipy", "scikit-learn", "joblib", "pydantic", "dask")


@dataclass(frozen=True)
class Summary:
    """What became of a plan: of the judgements, unless said otherwise."""

    n_planned: int
    n_done: int
    n_failed: int
    n_computed: int
    #: Rankings that were computed for them.
    n_ranked: int


class Observer:
    """Who wants to know how a run goes on; this one looks away."""

    def loading(self, spec: DatasetSpec) -> None:
        """Called before a data set is read."""

    def planned(self, cells: Sequence[Cell], outcomes: dict[str, bool], tasks: Sequence[Task]) -> None:
        """Called once, with all cells, what became of the judgements that are there, and what is to be done."""

    def finished(self, task: Task, result: CellResult) -> None:
        """Called after what became of a task was stored."""

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
    rankings: Path | None = None,
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
        Go on although finished cells are no longer part of the plan, or rankings have to be computed again.
    rankings : Path or None, default=None
        Results file of another run, whose rankings are taken over where they are those of this plan.
    command : str, default=""
        How the run was called, for the record.

    Returns
    -------
    Summary
        How many judgements are done, failed, and computed now.
    """
    observer = observer or Observer()
    use_folder(experiment)
    # Before any data is read: a second runner is told at once.
    with Store(folder / FILE_NAME, writer=True) as store, _lender(rankings, folder) as lender:
        facts = _facts(experiment, observer)
        cells = plan(experiment, facts)
        before = _read_intact(store, experiment, facts, observer)
        lent = {} if lender is None else _lent(lender, cells, before, store.weighted(), observer)
        _require_rankings(store.path, before.rankings, cells, facts)
        if lender is not None:
            _require_rankings(lender.path, lent.values(), cells, facts)
        if not accept_changes:
            _require_same_plan(folder, before, experiment, facts, cells)
            _require_weights(folder, _tasks(cells, before, store.weighted(), retry_failed), lent)
        number = store.begin_run(command, experiment.as_dict(), environment(), cells, facts.values())
        if lender is not None and lent:
            store.borrow(number, lender, lent.values())
            before = store.read()
        tasks = _tasks(cells, before, store.weighted(), retry_failed)
        redone = {judgement.key for task in tasks for judgement in task.cell.judgements}
        pairs = [(cell.key, judgement.key) for cell, judgement in _applicable(cells)]
        outcomes = before.outcomes(pairs)
        observer.planned(cells, {key: done for key, done in outcomes.items() if key not in redone}, tasks)
        n_computed = n_ranked = 0
        with (
            _stopped_by_user(pairs, store),
            closing(_results(experiment, _loaded(tasks, before, store), jobs, dask, observer)) as found,
        ):
            for task, result in found:
                keep = experiment.store_weights
                store.record(number, task, _params(task.cell.method), result, keep_weights=keep)
                done = {key: judged.error is None for key, judged in result.judgements.items()}
                if result.error is not None:
                    done = {judgement.key: False for judgement in task.at_stake}
                # Those that were there stay, if the ranking came out as it was.
                outcomes = {**dict.fromkeys(task.known.keys() - outcomes.keys(), True), **outcomes, **done}
                n_computed += len(done)
                n_ranked += task.ranked is None and task.cell.method.method not in UNRANKED
                observer.finished(task, result)
        store.end_run(number)
        return _summary(pairs, outcomes, n_computed, n_ranked)


@contextmanager
def _lender(path: Path | None, folder: Path) -> Iterator[Store | None]:
    """Open the file whose rankings are taken over."""
    if path is None:
        yield None
        return
    if path.resolve() == (folder / FILE_NAME).resolve():
        raise RunError(
            f"--rankings: another run than {folder} was expected; name the one to take rankings from."
        )
    with Store(path) as store:
        yield store


def _lent(
    lender: Store, cells: Sequence[Cell], before: Contents, weighted: set[str], observer: Observer
) -> dict[str, Row]:
    """Rankings that this run needs and another one has, with weights where they are needed."""
    done = {row["key"] for row in before.rankings if row["error"] is None}
    wanted = {
        cell.key: any(found.uses_weights and not found.obstacle for found in cell.judgements)
        for cell in cells
        if cell.method.method not in UNRANKED and not all(judgement.obstacle for judgement in cell.judgements)
    }
    wanted = {key: needs for key, needs in wanted.items() if key not in (done & weighted if needs else done)}
    theirs = lender.weighted()
    found = {
        row["key"]: row
        for row in lender.read().rankings
        if row["key"] in wanted and row["error"] is None and (row["key"] in theirs or not wanted[row["key"]])
    }
    if len(found) < len(wanted):
        observer.remark(
            f"{len(wanted) - len(found)} of {len(wanted)} rankings are not in {lender.path.parent}."
        )
    return found


def _read_intact(
    store: Store, experiment: Experiment, facts: dict[str, DatasetFacts], observer: Observer
) -> Contents:
    """Read what counts; cells that were altered are removed, those of an earlier format named as they are now."""
    found = store.read()
    if found.n_altered:
        observer.remark(f"{found.n_altered} stored cells were altered; they are computed again.")
        store.forget(found.altered)
    elif not any(is_earlier_key(row["key"]) for row in found.judgements):
        return found
    with suppress(ValueError, TypeError, IndexError, RecursionError):  # a configuration that cannot be read
        earlier = build_experiment(json.loads(found.runs[-1]["configuration"]), str(store.path))
        store.rename(present_keys(earlier, experiment, facts))
    return store.read()


def _applicable(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Judgement]]:
    for cell in cells:
        for judgement in cell.judgements:
            if not judgement.obstacle:
                yield cell, judgement


def _distinct(cells: Sequence[Cell]) -> list[Cell]:
    """Put together what stands in the plan under several names: the same ranking, perhaps judged at other sizes."""
    found: dict[str, Cell] = {}
    for cell in cells:
        first = found.setdefault(cell.key, cell)
        own = {judgement.key: judgement for judgement in (*first.judgements, *cell.judgements)}
        found[cell.key] = replace(first, judgements=tuple(own.values()))
    return list(found.values())


def _tasks(cells: Sequence[Cell], before: Contents, weighted: set[str], retry_failed: bool) -> list[Task]:
    """List what is to be done: rankings that are not there, and judgements of those that are.

    Parameters
    ----------
    cells : sequence of Cell
        The plan.
    before : Contents
        What is there.
    weighted : set of str
        Keys of rankings whose weights are there.
    retry_failed : bool
        Whether to try again what failed.
    """
    rankings = {row["key"]: row for row in before.rankings if not (retry_failed and row["error"])}
    judged = {row["key"]: row for row in before.judgements if not (retry_failed and row["error"])}
    known = {**before.known, **{key: row["basis"] for key, row in judged.items()}}
    tasks = []
    for cell in _distinct(cells):
        wanted = tuple(judgement for judgement in cell.judgements if not judgement.obstacle)
        missing = tuple(judgement for judgement in wanted if judgement.key not in judged)
        row = rankings.get(cell.key)
        if not missing or (row is not None and row["error"] is not None):
            continue
        lacks_weights = any(judgement.uses_weights for judgement in missing) and cell.key not in weighted
        if row is not None and not (lacks_weights and cell.method.method not in UNRANKED):
            ranked = Ranked(unpack(row["ranking"], "<i4"))
            tasks.append(Task(replace(cell, judgements=missing), ranked))
        else:
            own = {judgement.key: known[judgement.key] for judgement in wanted if judgement.key in known}
            tasks.append(Task(replace(cell, judgements=wanted), None, own, again=row is not None))
    return tasks


def _loaded(tasks: Sequence[Task], before: Contents, store: Store) -> Iterator[Task]:
    """Give tasks the weights they need, one by one: all together may not fit into memory."""
    rows = {row["key"]: row for row in before.rankings}
    for task in tasks:
        needs_weights = any(judgement.uses_weights for judgement in task.cell.judgements)
        if task.ranked is None or task.ranked.order is None or not needs_weights:
            yield task
            continue
        weights = store.weights(rows[task.key])
        if weights is None:  # damaged: they are computed again, with a ranking that was there
            yield replace(task, ranked=None, again=True)
        else:
            yield replace(task, ranked=task.ranked._replace(weights=weights))


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


def _params(method: Any) -> dict[str, Any]:
    return {} if method.method in UNRANKED else identify_method(method)["params"]


def _require_rankings(
    path: Path, rankings: Iterable[Row], cells: Sequence[Cell], facts: dict[str, DatasetFacts]
) -> None:
    """Notice a ranking that names other features than there are: checksums can be forged."""
    n_features = {cell.key: facts[cell.dataset.name].n_features for cell in cells}
    try:
        for row in rankings:
            if row["key"] in n_features:
                read_ranking(row["ranking"], n_features[row["key"]])
    except ValueError as error:
        raise damaged(path, error) from None


def _require_weights(folder: Path, tasks: Sequence[Task], lent: Mapping[str, Row]) -> None:
    """Notice that finished rankings would have to be computed again, as they were stored without weights."""
    again = [task for task in tasks if task.again and task.key not in lent]
    if again:
        raise RunError(
            f"{folder}: to judge by own weights, {len(again)} finished rankings have to be computed again, as they "
            "were stored without weights; leave own-weights out, choose another folder with --out, or go on with "
            "--accept-changes."
        )


def _require_same_plan(
    folder: Path,
    before: Contents,
    experiment: Experiment,
    facts: dict[str, DatasetFacts],
    cells: Sequence[Cell],
) -> None:
    """Notice a changed configuration or data file before finished work silently stops counting."""
    planned = [(row["ranking"], row["key"]) for row in before.plan if row["obstacle"] is None]
    done = {key for key, is_done in before.outcomes(planned).items() if is_done}
    lost = done - {judgement.key for _, judgement in _applicable(cells)}
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
            f"the configuration changed ({', '.join(keys)})"
            if keys
            else "a method or a classifier of the package changed"
        )
    raise RunError(
        f"{folder}: {what} since the last run, so {len(lost)} finished cells would no longer count; "
        "undo the change, choose another folder with --out, or go on with --accept-changes."
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
        # The file knows: the last cell may have been stored, and not yet noted here.
        summary = _summary(pairs, store.read().outcomes(pairs), 0, 0)
        raise RunInterrupted(
            f"stopped; {summary.n_done + summary.n_failed} of {summary.n_planned} cells are finished and stored"
        ) from stop


def _summary(
    pairs: Sequence[tuple[str, str]], outcomes: dict[str, bool], n_computed: int, n_ranked: int
) -> Summary:
    states = [outcomes.get(key) for _, key in pairs]
    return Summary(len(states), states.count(True), states.count(False), n_computed, n_ranked)


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
