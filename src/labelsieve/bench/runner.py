"""Run the missing cells of an experiment side by side, and store each as it finishes."""

from __future__ import annotations

import os
import platform
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from labelsieve.bench import RunError, RunInterrupted
from labelsieve.bench.cells import CellResult
from labelsieve.bench.components import identify_method, use_folder
from labelsieve.bench.config import UNRANKED, DatasetSpec, Experiment
from labelsieve.bench.data import DatasetFacts, describe, load_dataset
from labelsieve.bench.plan import Cell, Planned, Ranked, plan, subset_sizes
from labelsieve.bench.process import run_locally
from labelsieve.bench.store import FILE_NAME, Contents, Store, unpack
from labelsieve.io.errors import DatasetError

_PACKAGES = ("labelsieve", "numpy", "scipy", "scikit-learn", "joblib", "pydantic", "dask")


class Observer:
    """Receiver of the progress of a run; a subclass overrides the calls that it needs."""

    def loading(self, spec: DatasetSpec) -> None:
        """Called before a dataset is read."""

    def planned(self, cells: Sequence[Cell], outcomes: dict[str, bool]) -> None:
        """Called once with the plan and the judgements that are finished already."""

    def finished(self, cell: Cell, result: CellResult) -> None:
        """Called after the result of a cell was stored."""

    def remark(self, text: str) -> None:
        """Called with something that the user should know."""


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
) -> dict[str, int]:
    """Run the missing cells of an experiment and store them in a run folder.

    `jobs` cells run at the same time, or those that the `dask` scheduler at this address has room for. `accept_changes`
    continues although finished cells are no longer part of the plan, or rankings have to be computed again. `rankings`
    is the results file of another run whose rankings are reused.

    Returns the numbers of judgements that are ``planned``, ``done`` and ``failed``, and of those and the rankings that
    this run made: ``computed`` and ``ranked``.
    """
    observer = observer or Observer()
    use_folder(experiment)
    if rankings is not None and rankings.resolve() == (folder / FILE_NAME).resolve():
        raise RunError(f"--rankings: expected another run than {folder}.")
    # Opened before any data is read, so that a second runner is rejected at once.
    with Store(folder / FILE_NAME, writer=True) as store:
        facts = _facts(experiment, observer)
        cells = plan(experiment, facts)
        planned = [row for cell in cells for row in cell.rows()]
        before = store.read()
        if before.n_damaged:
            observer.remark(f"{before.n_damaged} stored rows are damaged; they are computed again.")
            store.forget_damaged()
        if not accept_changes:
            _require_same_plan(folder, before, experiment, facts, planned)
        if rankings is not None:
            _copy_rankings(rankings, store, _unfinished(cells, before, retry_failed=True), observer)
            before = store.read()
        todo = _unfinished(cells, before, retry_failed)
        again = [cell for cell in todo if cell.must_rank and cell.key in before.finished_rankings()]
        if again and not accept_changes:
            raise RunError(
                f"{folder}: own-weights needs weights, but {len(again)} finished rankings were stored without; leave "
                "own-weights out, choose another folder with --out, or compute them again with --accept-changes."
            )
        datasets = {name: asdict(fact) for name, fact in facts.items()}
        number = store.begin_run(command, experiment.as_dict(), environment(), planned, datasets)
        redone = {judgement.key for cell in todo for judgement in cell.judgements}
        settled = {key: done for key, done in before.outcomes(planned).items() if key not in redone}
        observer.planned(cells, settled)
        n_computed = n_ranked = 0
        # Weights are read one by one: all together may not fit into memory.
        loaded = (_with_weights(cell, store) for cell in todo)
        try:
            with closing(_results(experiment, loaded, jobs, dask, observer)) as found:
                for cell, result in found:
                    params = identify_method(cell.method).get("params", {})
                    store.record(number, cell, params, result, keep_weights=experiment.store_weights)
                    n_computed += len(cell.judgements)
                    n_ranked += cell.must_rank
                    observer.finished(cell, result)
        except KeyboardInterrupt as stop:
            counts = store.read().count(planned)
            n_finished = counts["done"] + counts["failed"]
            raise RunInterrupted(
                f"stopped; {n_finished} of {counts['planned']} cells are finished and stored"
            ) from stop
        store.end_run(number)
        return {**store.read().count(planned), "computed": n_computed, "ranked": n_ranked}


def _copy_rankings(path: Path, store: Store, cells: Sequence[Cell], observer: Observer) -> None:
    """Copy the rankings that cells need and another run has, with weights if they are needed."""
    wanted = [cell for cell in cells if cell.must_rank]
    with Store(path) as other:
        theirs = other.read()
        usable = {False: theirs.finished_rankings(), True: theirs.finished_rankings() & theirs.weighted}
        keys = [cell.key for cell in wanted if cell.key in usable[cell.uses_weights]]
        weights = other.read_weights(key for key in keys if key in theirs.weighted)
        store.copy((("rankings", theirs.rankings[key]) for key in keys), replace=True)
        store.copy((("weights", row) for row in weights), replace=True)
    if len(keys) < len(wanted):
        observer.remark(f"{len(wanted) - len(keys)} of {len(wanted)} rankings are not in {path.parent}.")


def _distinct(cells: Sequence[Cell]) -> dict[str, Cell]:
    """Join cells that are planned under several names: the same ranking, perhaps judged at other sizes."""
    found: dict[str, Cell] = {}
    for cell in cells:
        wanted = [judgement for judgement in cell.judgements if not judgement.obstacle]
        first = found.setdefault(cell.key, replace(cell, judgements=()))
        own = {judgement.key: judgement for judgement in (*first.judgements, *wanted)}
        found[cell.key] = replace(first, judgements=tuple(own.values()))
    return found


def _unfinished(cells: Sequence[Cell], before: Contents, retry_failed: bool) -> list[Cell]:
    """List the cells to run: missing rankings with all their judgements, and missing judgements of the others.

    A ranking that lacks the weights that a judgement needs is missing. Failed cells are if `retry_failed`.
    """
    rankings = {key: row for key, row in before.rankings.items() if not (retry_failed and row["error"])}
    judged = {key for key, row in before.judgements.items() if not (retry_failed and row["error"])}
    found = []
    for cell in _distinct(cells).values():
        missing = tuple(judgement for judgement in cell.judgements if judgement.key not in judged)
        row = rankings.get(cell.key)
        if row is None:
            if cell.judgements:
                found.append(cell)
        elif missing and row["error"] is None:
            rest = replace(cell, judgements=missing, ranked=Ranked(unpack(row["ranking"], "<i4")))
            is_ranked = cell.method.method in UNRANKED or cell.key in before.weighted
            found.append(rest if is_ranked or not rest.uses_weights else cell)
    return found


def _with_weights(cell: Cell, store: Store) -> Cell:
    """Add the weights that the judgements of a stored ranking need."""
    order = None if cell.ranked is None else cell.ranked.order
    if order is None or not cell.uses_weights:
        return cell
    return replace(cell, ranked=Ranked(order, store.weights(cell.key, len(order))))


def _facts(experiment: Experiment, observer: Observer) -> dict[str, DatasetFacts]:
    """Load every dataset; raises an error if the experiment cannot be run on it."""
    facts = {}
    takes_given = any(noise.model == "given" for noise in experiment.noises())
    ranks = any(method.method not in UNRANKED for method in experiment.all_methods())
    for spec in experiment.datasets:
        observer.loading(spec)
        try:
            dataset = load_dataset(spec, experiment.folder)
        except DatasetError as error:
            raise RunError(f"datasets: {spec.name}: {error}") from None
        found = facts[spec.name] = describe(spec, dataset, experiment)
        if experiment.folds > found.n_samples:
            raise RunError(
                f"folds: {experiment.folds} folds of {spec.name} need as many rows, got {found.n_samples}."
            )
        if takes_given and dataset.Y_candidates is None:
            raise RunError(
                f'noise: model = "given" needs candidates in the data, {spec.name} has none; choose another '
                "model."
            )
        if ranks and not subset_sizes(experiment, found):
            raise RunError(
                f"sizes: expected numbers up to the {found.n_features} features of {spec.name}, got "
                f"{', '.join(map(str, experiment.sizes.counts[spec.name]))}."
            )
    return facts


def _require_same_plan(
    folder: Path,
    before: Contents,
    experiment: Experiment,
    facts: dict[str, DatasetFacts],
    planned: Sequence[Planned],
) -> None:
    """Raise an error if finished cells would no longer count because something changed."""
    done = {key for key, is_done in before.outcomes(before.plan).items() if is_done}
    lost = done - {row.key for row in planned if row.obstacle is None}
    if not lost:
        return
    known = before.datasets
    changed = [
        name for name, fact in facts.items() if name in known and fact.checksum != known[name]["checksum"]
    ]
    now, last = experiment.as_dict(), before.configuration
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
    experiment: Experiment, cells: Iterator[Cell], jobs: int, dask: str | None, observer: Observer
) -> Generator[tuple[Cell, CellResult]]:
    """Yield the cells as they finish."""
    if dask is None:
        return run_locally(experiment, cells, jobs, observer.remark)
    try:
        from labelsieve.bench.cluster import run_on_dask
    except ImportError:
        raise RunError("--dask needs dask: pip install 'labelsieve[dask]'") from None
    return run_on_dask(experiment, cells, dask, observer.remark)


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
