"""Run the missing cells of an experiment and store each result as it finishes."""

from __future__ import annotations

import os
import platform
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from labelsieve._text import count, install_command
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
    """Observer of the progress of a run. Subclasses override the methods they need."""

    def loading(self, spec: DatasetSpec) -> None:
        """Handle the start of loading a dataset."""

    def planned(self, cells: Sequence[Cell], outcomes: dict[str, bool]) -> None:
        """Handle the plan and the outcomes of finished judgements."""

    def finished(self, cell: Cell, result: CellResult) -> None:
        """Handle a result that has been stored."""

    def remark(self, text: str) -> None:
        """Handle a message for the user."""


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

    Cells run in `jobs` local processes, or on the `dask` scheduler at this address. With `accept_changes`, the run
    continues even if finished cells are no longer part of the plan or rankings have to be recomputed. `rankings` is the
    results file of another run to take rankings from.

    Returns the numbers of ``planned``, ``done`` and ``failed`` judgements, and of the judgements (``computed``) and
    rankings (``ranked``) of this run.
    """
    observer = observer or Observer()
    use_folder(experiment)
    if rankings is not None and rankings.resolve() == (folder / FILE_NAME).resolve():
        raise RunError(f"--rankings must be a different run, got {folder}.")
    # Opening the store first rejects a second runner before any data are read.
    with Store(folder / FILE_NAME, writer=True) as store:
        facts = _load_facts(experiment, observer)
        cells = plan(experiment, facts)
        planned = [row for cell in cells for row in cell.rows()]
        before = store.read()
        if before.n_damaged:
            observer.remark(f"recomputing {count(before.n_damaged, 'damaged row')}.")
            store.delete_damaged()
        if not accept_changes:
            _require_same_plan(folder, before, experiment, facts, planned)
        if rankings is not None:
            _copy_rankings(rankings, store, _unfinished(cells, before, retry_failed=True), observer)
            before = store.read()
        todo = _unfinished(cells, before, retry_failed)
        again = [cell for cell in todo if cell.must_rank and cell.key in before.finished_rankings()]
        if again and not accept_changes:
            raise RunError(
                f"{folder}: own-weights needs weights, which {count(len(again), 'finished ranking')} do not have. "
                "Remove own-weights, choose another folder with --out, or recompute with --accept-changes."
            )
        datasets = {name: asdict(fact) for name, fact in facts.items()}
        number = store.begin_run(command, experiment.as_dict(), environment(), planned, datasets)
        redone = {judgement.key for cell in todo for judgement in cell.judgements}
        finished = {key: done for key, done in before.outcomes(planned).items() if key not in redone}
        observer.planned(cells, finished)
        n_computed = n_ranked = 0
        # Weights are read one at a time because all of them may not fit into memory.
        loaded = (_with_weights(cell, store) for cell in todo)
        try:
            with closing(_run_cells(experiment, loaded, jobs, dask, observer)) as found:
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
                f"stopped: {n_finished} of {counts['planned']} cells are finished and stored"
            ) from stop
        store.end_run(number)
        return {**store.read().count(planned), "computed": n_computed, "ranked": n_ranked}


def _copy_rankings(path: Path, store: Store, cells: Sequence[Cell], observer: Observer) -> None:
    """Copy rankings from another run, with weights if the cells need them."""
    wanted = [cell for cell in cells if cell.must_rank]
    with Store(path) as other:
        theirs = other.read()
        usable = {False: theirs.finished_rankings(), True: theirs.finished_rankings() & theirs.weighted}
        keys = [cell.key for cell in wanted if cell.key in usable[cell.uses_weights]]
        weights = other.read_weights(key for key in keys if key in theirs.weighted)
        store.copy((("rankings", theirs.rankings[key]) for key in keys), replace=True)
        store.copy((("weights", row) for row in weights), replace=True)
    if len(keys) < len(wanted):
        observer.remark(f"{len(wanted) - len(keys)} of {len(wanted)} rankings not found in {path.parent}.")


def _merge_duplicates(cells: Sequence[Cell]) -> dict[str, Cell]:
    """Merge cells with the same ranking, which may be planned under several names or for several sizes."""
    found: dict[str, Cell] = {}
    for cell in cells:
        wanted = [judgement for judgement in cell.judgements if not judgement.obstacle]
        first = found.setdefault(cell.key, replace(cell, judgements=()))
        distinct = {judgement.key: judgement for judgement in (*first.judgements, *wanted)}
        found[cell.key] = replace(first, judgements=tuple(distinct.values()))
    return found


def _unfinished(cells: Sequence[Cell], before: Contents, retry_failed: bool) -> list[Cell]:
    """List the cells to run: missing rankings with all their judgements, and missing judgements of stored rankings.

    A ranking also counts as missing if a judgement needs its weights and they are not stored. With `retry_failed`,
    failed cells count as missing.
    """
    rankings = {key: row for key, row in before.rankings.items() if not (retry_failed and row["error"])}
    judged = {key for key, row in before.judgements.items() if not (retry_failed and row["error"])}
    found = []
    for cell in _merge_duplicates(cells).values():
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
    """Load the weights of a stored ranking if its judgements need them."""
    order = None if cell.ranked is None else cell.ranked.order
    if order is None or not cell.uses_weights:
        return cell
    return replace(cell, ranked=Ranked(order, store.weights(cell.key, len(order))))


def _load_facts(experiment: Experiment, observer: Observer) -> dict[str, DatasetFacts]:
    """Load all datasets and check that the experiment can run on them."""
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
                f"folds must be at most {found.n_samples}, the number of rows of {spec.name}, got {experiment.folds}."
            )
        if takes_given and dataset.Y_candidates is None:
            raise RunError(
                f'noise: model = "given" needs candidate labels, but {spec.name} has none. Choose another model.'
            )
        if ranks and not subset_sizes(experiment, found):
            raise RunError(
                f"sizes must be at most {found.n_features}, the number of features of {spec.name}, got "
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
    """Raise if a change would make finished cells obsolete."""
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
        change = f"the data of {', '.join(changed)} changed"
    elif keys:
        change = f"the configuration changed ({', '.join(keys)})"
    else:
        change = "a method or a classifier changed"
    raise RunError(
        f"{folder}: {change} since the last run. {count(len(lost), 'finished cell')} would become obsolete. Undo the "
        "change, choose another folder with --out, or continue with --accept-changes."
    )


def _run_cells(
    experiment: Experiment, cells: Iterator[Cell], jobs: int, dask: str | None, observer: Observer
) -> Generator[tuple[Cell, CellResult]]:
    """Run cells and yield them in the order they finish."""
    if dask is None:
        return run_locally(experiment, cells, jobs, observer.remark)
    try:
        from labelsieve.bench.cluster import run_on_dask
    except ImportError:
        command = install_command("dask", "distributed")
        raise RunError(f"--dask needs dask. Install it: {command}") from None
    return run_on_dask(experiment, cells, dask, observer.remark)


def environment() -> dict[str, Any]:
    """Describe package versions and the machine."""
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
