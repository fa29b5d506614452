"""Merge runs that are parts of one experiment: other datasets, seeds, noises or methods of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from tempfile import TemporaryDirectory
from typing import Any

from labelsieve.bench import RunError
from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.bench.plan import Planned
from labelsieve.bench.runner import environment
from labelsieve.bench.store import FILE_NAME, Contents, Store, no_results

__all__ = ["AXES", "Merged", "common_experiment", "merge"]

#: Keys in which parts may differ; their entries are put together.
AXES = ("datasets", "seeds", "noise", "methods", "ablation", "sweeps", "references")
#: Keys that change no result; those of the first part are kept.
_FREE = ("name", "title", "folder", "limits", "store_weights", "control")


@dataclass(frozen=True)
class Merged:
    """Counts of what was merged."""

    n_rankings: int
    n_judgements: int
    #: Judgements that the parts planned.
    n_planned: int
    n_done: int
    n_failed: int
    #: Rows that are left out.
    n_damaged: int


@dataclass(frozen=True)
class _Part:
    store: Store
    contents: Contents
    configuration: dict[str, Any]

    def __str__(self) -> str:
        return str(self.store.path.parent)


def merge(sources: Sequence[Path], folder: Path, *, command: str = "") -> Merged:
    """Write the cells of several results files into a new one, whole or not at all.

    Parameters
    ----------
    sources : sequence of Path
        Results files. Their configurations may differ in `AXES`.
    folder : Path
        Run folder of the new file; an experiment that has all the parts can continue there.
    command : str, default=""
        How this was called, for the record.

    Raises
    ------
    RunError
        A source cannot be read, the new file exists already, or two sources contradict each other.
    """
    path = folder / FILE_NAME
    if path.exists():
        raise RunError(f"{path}: exists already; choose another folder with --out.")
    with ExitStack() as stack:
        parts = [_read(stack.enter_context(Store(source))) for source in sources]
        experiment = common_experiment([(str(part), part.configuration) for part in parts])
        datasets, plan = _datasets(parts), _plan(parts)
        chosen = {table: _choose(table, parts) for table in ("rankings", "judgements")}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.callback(_remove_if_empty, folder)
            temporary = (
                Path(stack.enter_context(TemporaryDirectory(dir=folder, prefix=".merge-"))) / FILE_NAME
            )
        except OSError as error:
            raise RunError(f"{folder}: cannot be written ({error}); choose another folder.") from None
        n_lost = 0
        with Store(temporary, writer=True) as store:
            for part in parts:
                rows = [("runs", row) for row in part.contents.runs.values()]
                rows += [
                    (table, row) for table in chosen for owner, row in chosen[table].values() if owner is part
                ]
                weighted = {key for key, (owner, _) in chosen["rankings"].items() if owner is part}
                n_lost += store.copy(rows, part.store, weighted & part.store.weighted())
            run = store.begin_run(command, experiment.as_dict(), environment(), plan, datasets)
            store.end_run(run)
            found = store.read()
        os.replace(temporary, path)
    outcomes = found.outcomes(found.applicable())
    states = [outcomes.get(key) for _, key in found.applicable()]
    return Merged(
        n_rankings=len(found.rankings),
        n_judgements=len(found.judgements),
        n_planned=len(states),
        n_done=states.count(True),
        n_failed=states.count(False),
        n_damaged=sum(part.contents.n_damaged for part in parts) + n_lost,
    )


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _read(store: Store) -> _Part:
    contents = store.read()
    if contents.configuration is None:
        raise no_results(store.path)
    return _Part(store, contents, build_experiment(contents.configuration, str(store.path)).as_dict())


def _contradiction(first: object, second: object, what: str) -> RunError:
    return RunError(f"{first} and {second} contradict each other: {what}")


def common_experiment(
    parts: Sequence[tuple[str, Mapping[str, Any]]], axes: Sequence[str] = AXES
) -> Experiment:
    """Return the experiment that all runs are parts of.

    Parameters
    ----------
    parts : sequence of (str, mapping)
        Name of a run, for errors, and its whole configuration.
    axes : sequence of str, default=AXES
        Keys in which the parts may differ.

    Raises
    ------
    RunError
        The parts differ in anything else, or use one name for two things.
    """
    (first_name, first), *others = parts
    for name, configuration in others:
        own = _alike(configuration, axes)
        differing = [key for key, value in _alike(first, axes).items() if value != own[key]]
        if differing:
            raise RunError(
                f"{first_name} and {name} are not parts of one experiment: {', '.join(differing)} differ; parts may "
                f"differ in {', '.join(axes)} only."
            )
    merged = {key: list(_union(key, parts).values()) for key in axes}
    counts: dict[str, Any] = {}
    for _, configuration in parts:
        counts.update(configuration["sizes"]["counts"])
    control = next((given["control"] for _, given in parts if given["control"]), "")
    given = {**first, **merged, "sizes": {**first["sizes"], "counts": counts}, "control": control}
    return build_experiment(given, " and ".join(name for name, _ in parts))


def _alike(configuration: Mapping[str, Any], axes: Sequence[str]) -> dict[str, Any]:
    """Select what must be the same in all parts; numbers of features belong to datasets."""
    kept = {key: value for key, value in configuration.items() if key not in (*axes, *_FREE)}
    return {**kept, "sizes": {**kept["sizes"], "counts": {}}}


def _union(key: str, parts: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Collect the entries of a list by name, those of the first part first."""
    found: dict[str, tuple[str, Any]] = {}
    for part, configuration in parts:
        for entry in configuration[key]:
            name = entry["name"] if isinstance(entry, dict) and "name" in entry else json.dumps(entry)
            other, known = found.setdefault(name, (part, entry))
            if known != entry:
                raise _contradiction(other, part, f"{name!r} of {key} is not the same; rename one.")
    return {name: entry for name, (_, entry) in found.items()}


def _datasets(parts: Sequence[_Part]) -> dict[str, dict[str, Any]]:
    """Collect the facts of all datasets."""
    found: dict[str, tuple[_Part, dict[str, Any]]] = {}
    for part in parts:
        for name, facts in part.contents.datasets.items():
            other, known = found.setdefault(name, (part, facts))
            if known != facts:
                raise _contradiction(
                    other,
                    part,
                    f"the data of {name!r}, or its sizes, are not the same; run one of them again.",
                )
    return {name: facts for name, (_, facts) in found.items()}


def _plan(parts: Sequence[_Part]) -> list[Planned]:
    """List what any part planned, each once."""
    rows: dict[Planned, None] = {}
    settled: dict[tuple[Any, ...], tuple[_Part, set[tuple[str, str]]]] = {}
    for part in parts:
        places: dict[tuple[Any, ...], set[tuple[str, str]]] = {}
        for row in part.contents.plan:
            place = (row.dataset, row.noise, row.seed, row.fold, row.draw, row.method, row.judge)
            places.setdefault(place, set()).add((row.ranking, row.key))
            rows[row] = None
        for place, keys in places.items():
            other, known = settled.setdefault(place, (part, keys))
            if known != keys:
                *_, method, judge = place
                what = f"{method!r} judged by {judge!r} is not the same; its code or defaults changed."
                raise _contradiction(other, part, what)
    return list(rows)


def _choose(table: str, parts: Sequence[_Part]) -> dict[str, tuple[_Part, Row]]:
    """Take every cell once: one that is done before one that failed, and one with weights before one without."""
    found: dict[str, tuple[_Part, Row]] = {}
    worth: dict[str, tuple[bool, bool]] = {}
    content = {"rankings": "ranking", "judgements": "scores"}[table]
    for part in parts:
        weighted = part.store.weighted()
        for key, row in getattr(part.contents, table).items():
            other, known = found.setdefault(key, (part, row))
            own = (row["error"] is None, key in weighted)
            if own[0] and known["error"] is None and row[content] != known[content]:
                what = f"{row['description']} came out differently; leave one of them out."
                raise _contradiction(other, part, what)
            if own > worth.setdefault(key, own):
                found[key], worth[key] = (part, row), own
    return found
