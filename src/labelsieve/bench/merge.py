"""Put runs together that are parts of one experiment: other data sets, seeds, noises or methods of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any

from labelsieve.bench import RunError
from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.bench.earlier_format import is_earlier_key
from labelsieve.bench.results_file import (
    FILE_NAME,
    beside,
    damaged,
    explained,
    lock_path,
    no_results,
    repair_command,
)
from labelsieve.bench.runner import environment
from labelsieve.bench.seals import CELLS, Contents, cell_digest, scores_by_key
from labelsieve.bench.store import Store, now

__all__ = ["AXES", "Merged", "common_experiment", "merge"]

#: What parts may have more or less of; their entries are put together.
AXES = ("datasets", "seeds", "noise", "methods", "ablation", "sweeps", "references")
#: What changes no result; that of the first part is kept.
_FREE = ("name", "title", "folder", "limits", "store_weights", "control")


@dataclass(frozen=True)
class Merged:
    """What became of the parts."""

    path: Path
    n_rankings: int
    n_judgements: int
    #: Of the judgements that the parts planned.
    n_planned: int
    n_done: int
    n_failed: int
    #: Rankings whose weights were damaged; they are there without.
    n_weights_lost: int


@dataclass(frozen=True)
class _Part:
    store: Store
    contents: Contents
    configuration: dict[str, Any]
    scores: dict[str, list[tuple[Any, ...]]]
    weighted: set[str]
    #: What is added to the numbers of its runs.
    shift: int

    def __str__(self) -> str:
        return str(self.store.path.parent)


#: Key of a cell -> the part it is taken from, and its row.
_Cells = dict[str, tuple[_Part, Row]]


def merge(sources: Sequence[Path], folder: Path, *, command: str = "") -> Merged:
    """Write the cells of several results files into a new one, whole or not at all.

    Parameters
    ----------
    sources : sequence of Path
        Results files. Their configurations may differ in data sets, seeds, noises, methods and references.
    folder : Path
        Run folder of the new file; an experiment that has all the parts goes on there.
    command : str, default=""
        How this was called, for the record.

    Raises
    ------
    RunError
        A source is damaged, there is a results file already, or two sources contradict each other.
    """
    path = folder / FILE_NAME
    with ExitStack() as stack:
        stack.enter_context(_new(path))
        parts: list[_Part] = []
        for source in sources:
            store = stack.enter_context(Store(source))
            parts.append(_read(store, _last_run(parts[-1]) if parts else 0))
        experiment = common_experiment([(str(part), part.configuration) for part in parts])
        datasets = _datasets(parts)
        plan = _plan(parts)
        cells = {table: _cells(table, parts) for table in CELLS}
        lost: list[str] = []
        with beside(path) as fresh:
            with Store(fresh, writer=True) as store:
                store.fill(_rows(parts, experiment, datasets, plan, cells, command, lost))
                found = store.read()
            os.replace(fresh, path)
    outcomes = found.outcomes((row["ranking"], row["key"]) for row in found.plan if row["obstacle"] is None)
    states = [outcomes.get(row["key"]) for row in found.plan if row["obstacle"] is None]
    return Merged(
        path,
        len(found.rankings),
        len(found.judgements),
        len(states),
        states.count(True),
        states.count(False),
        len(lost),
    )


@contextmanager
def _new(path: Path) -> Iterator[None]:
    """Make the folder of a file that is not there yet; if anything fails, it is gone again."""
    folder, is_new = path.parent, not path.parent.exists()
    try:
        with explained(path):
            folder.mkdir(parents=True, exist_ok=True)
        with Store.locked(path):
            if path.exists():
                raise RunError(f"{path}: is there already; choose another folder with --out.")
            yield
    finally:
        if is_new and not path.exists():
            lock_path(path).unlink(missing_ok=True)
            with suppress(OSError):
                folder.rmdir()


def _read(store: Store, shift: int) -> _Part:
    """Take a part; one that is not whole is told, for what is missing would look as if it was never there."""
    contents = store.read()
    if not contents.runs:
        raise no_results(store.path)
    if contents.n_altered:
        raise RunError(
            f"{store.path}: {contents.n_altered} stored cells were altered; run it again, or save the others with: "
            f"{repair_command(store.path)}"
        )
    if any(is_earlier_key(row["key"]) for row in contents.judgements):
        raise RunError(
            f"{store.path}: of an earlier format; run it again once, which turns it into the present one."
        )
    try:
        configuration = json.loads(contents.runs[-1]["configuration"])
        experiment = build_experiment(configuration, str(store.path))
    except (ValueError, TypeError, RecursionError) as error:
        raise error if isinstance(error, RunError) else damaged(store.path, error) from None
    return _Part(
        store, contents, experiment.as_dict(), scores_by_key(contents.scores), store.weighted(), shift
    )


def _last_run(part: _Part) -> int:
    """The number of the last run of a part, as it is in the new file; a repaired file may have lost some."""
    numbers = [row["number"] for row in part.contents.runs]
    numbers += [row["run"] for row in (*part.contents.rankings, *part.contents.judgements)]
    return part.shift + int(max(numbers))


def common_experiment(
    parts: Sequence[tuple[str, Mapping[str, Any]]], axes: Sequence[str] = AXES
) -> Experiment:
    """The experiment that runs are parts of.

    Parameters
    ----------
    parts : sequence of (str, mapping)
        Name of a run, for errors, and its whole configuration.
    axes : sequence of str, default=AXES
        What they may have more or less of.
    """
    (first_name, first), *others = parts
    for name, configuration in others:
        own = _alike(configuration, axes)
        differing = [key for key, value in _alike(first, axes).items() if value != own[key]]
        if differing:
            raise RunError(
                f"{first_name} and {name} are no parts of one experiment, as {', '.join(differing)} differ; merge runs "
                f"that differ in {', '.join(axes)} alone."
            )
    merged = {key: list(_union(key, parts).values()) for key in axes}
    counts: dict[str, Any] = {}
    for _, configuration in parts:
        counts.update(configuration["sizes"]["counts"])
    control = next((given["control"] for _, given in parts if given["control"]), "")
    given = {**first, **merged, "sizes": {**first["sizes"], "counts": counts}, "control": control}
    return build_experiment(given, " and ".join(name for name, _ in parts))


def _alike(configuration: Mapping[str, Any], axes: Sequence[str]) -> dict[str, Any]:
    """What all parts must have alike; numbers of features belong to data sets."""
    kept = {key: value for key, value in configuration.items() if key not in (*axes, *_FREE)}
    return {**kept, "sizes": {**kept["sizes"], "counts": {}}}


def _union(key: str, parts: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Entries of a list by name, those of the first part first."""
    found: dict[str, tuple[str, Any]] = {}
    for part, configuration in parts:
        for entry in configuration[key]:
            name = entry["name"] if isinstance(entry, dict) and "name" in entry else json.dumps(entry)
            other, known = found.setdefault(name, (part, entry))
            if known != entry:
                raise RunError(
                    f"{other} and {part} contradict each other: {name!r} of {key} is not the same; rename one."
                )
    return {name: entry for name, (_, entry) in found.items()}


def _datasets(parts: Sequence[_Part]) -> dict[str, str]:
    """Data set -> its facts."""
    found: dict[str, tuple[_Part, str]] = {}
    for part in parts:
        for row in part.contents.datasets:
            other, facts = found.setdefault(row["name"], (part, row["facts"]))
            if facts != row["facts"]:
                raise RunError(
                    f"{other} and {part} contradict each other: the data of {row['name']!r}, or its sizes, are not "
                    "the same; run one of them again with the data of the other."
                )
    return {name: facts for name, (_, facts) in found.items()}


def _plan(parts: Sequence[_Part]) -> list[tuple[Any, ...]]:
    """What any part planned, each once, without its position."""
    rows: dict[tuple[Any, ...], None] = {}
    settled: dict[tuple[Any, ...], tuple[_Part, set[tuple[str, str]]]] = {}
    for part in parts:
        places: dict[tuple[Any, ...], set[tuple[str, str]]] = {}
        for row in part.contents.plan:
            place = tuple(
                row[name] for name in ("dataset", "noise", "seed", "fold", "method", "draw", "judge")
            )
            places.setdefault(place, set()).add((row["ranking"], row["key"]))
            rows[tuple(row)[1:]] = None
        for place, keys in places.items():
            other, known = settled.setdefault(place, (part, keys))
            if known != keys:
                same_method = {ranking for ranking, _ in known} == {ranking for ranking, _ in keys}
                what = f"what judges, {place[-1]!r}," if same_method else f"the method {place[4]!r}"
                raise RunError(
                    f"{other} and {part} contradict each other: {what} is not the same; its code or its defaults "
                    "changed, so run one of them again."
                )
    return list(rows)


def _cells(table: str, parts: Sequence[_Part]) -> _Cells:
    """Take every cell once: one that is done rather than one that failed, with its weights if anybody has them."""
    found: _Cells = {}
    for part in parts:
        for row in getattr(part.contents, table):
            other, known = found.setdefault(row["key"], (part, row))
            if other is part:
                continue
            if (
                row["error"] is None
                and known["error"] is None
                and _contradicts(table, part, row, other, known)
            ):
                raise RunError(
                    f"{other} and {part} contradict each other: {row['description']} came out differently; leave one "
                    "of them out, and run again what is missing then."
                )
            if _worth(table, part, row) > _worth(table, other, known):
                found[row["key"]] = part, row
    return found


def _contradicts(table: str, part: _Part, row: Row, other: _Part, known: Row) -> bool:
    if table == "rankings":
        both = row["weights"] is not None and known["weights"] is not None
        return bool(row["ranking"] != known["ranking"] or (both and row["weights"] != known["weights"]))
    scores = (sorted(map(repr, found.scores.get(row["key"], ()))) for found in (part, other))
    return bool(row["basis"] != known["basis"] or next(scores) != next(scores))


def _worth(table: str, part: _Part, row: Row) -> tuple[bool, ...]:
    weights = (row["key"] in part.weighted, row["weights"] is not None) if table == "rankings" else ()
    return (row["error"] is None, *weights)


def _rows(
    parts: Sequence[_Part],
    experiment: Experiment,
    datasets: Mapping[str, str],
    plan: Sequence[tuple[Any, ...]],
    cells: Mapping[str, _Cells],
    command: str,
    lost: list[str],
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield table and row, weights one by one; keys of rankings whose weights are damaged go to `lost`."""
    for part in parts:
        for number, *rest in part.contents.runs:
            yield "runs", (number + part.shift, *rest)
    last = json.dumps(experiment.as_dict()), json.dumps(environment())
    yield "runs", (_last_run(parts[-1]) + 1, now(), now(), command, *last)
    yield from (("datasets", (position, *row)) for position, row in enumerate(datasets.items(), start=1))
    yield from (("plan", (position, *row)) for position, row in enumerate(plan, start=1))
    for table, found in cells.items():
        for key, (part, row) in found.items():
            *values, _ = {**dict(row), "run": row["run"] + part.shift}.values()
            scores = part.scores.get(key, []) if table == "judgements" else []
            yield table, (*values, cell_digest(values, scores))
            yield from (("scores", (key, *score)) for score in scores)
            if table == "rankings" and key in part.weighted:
                weights = part.store.stored_weights(row)
                if weights is None:
                    lost.append(key)
                else:
                    yield "weights", weights
