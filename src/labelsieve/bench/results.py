"""What a run holds, for reports: read from its file, never written."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any, NamedTuple

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.seals import Contents
from labelsieve.bench.store import Store, damaged, database_path, no_results, unpack

__all__ = ["CellRecord", "DatasetFacts", "Results", "RunRecord", "Score", "read_results"]


class Score(NamedTuple):
    """One number of a cell."""

    #: Index into `Results.cells`.
    cell: int
    classifier: str
    #: Configured size; None for the references without features and with all.
    size: float | None
    n_features: int
    metric: str
    value: float


@dataclass(frozen=True)
class CellRecord:
    """A cell of the plan that was run, done or failed."""

    key: str
    dataset: str
    noise: str
    noise_rate: float | None
    seed: int
    fold: int
    method: str
    role: str
    draw: int
    params: dict[str, Any]
    status: str
    error: str | None
    traceback: str | None
    fit_seconds: float | None
    seconds: float | None
    peak_mib: float | None
    n_iter: int | None
    converged: bool | None
    #: Features, best first.
    ranking: np.ndarray | None
    objective: np.ndarray | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RunRecord:
    """One call of the runner."""

    number: int
    started: str
    finished: str | None
    command: str
    environment: dict[str, Any]
    configuration: dict[str, Any]
    n_computed: int


@dataclass(frozen=True)
class Results:
    """Everything a run holds."""

    name: str
    experiment: Experiment
    datasets: dict[str, DatasetFacts]
    methods: tuple[str, ...]
    roles: dict[str, str]
    cells: tuple[CellRecord, ...]
    #: Data set, noise and method -> how many cells are planned there.
    planned: dict[tuple[str, str, str], int]
    scores: tuple[Score, ...]
    runs: tuple[RunRecord, ...]
    #: Stored cells that are not as they were written; they are left out.
    n_altered: int = 0


def read_results(target: str | Path) -> Results:
    """Read a run: its folder, its results file, or its name below ``runs``.

    Nothing is imported that the stored configuration names.
    """
    with Store(database_path(target)) as store:
        contents = store.read()
    if not contents.runs:
        raise no_results(store.path)
    try:
        return _read(contents, store.path)
    except RunError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as error:  # checksums can be forged
        raise damaged(store.path, error) from None


def _read(contents: Contents, path: Path) -> Results:
    computed = Counter(row["run"] for row in contents.cells)
    runs = tuple(
        RunRecord(
            number=row["number"],
            started=row["started"],
            finished=row["finished"],
            command=row["command"],
            environment=_mapping(row["environment"], "versions"),
            configuration=_mapping(row["configuration"]),
            n_computed=computed[row["number"]],
        )
        for row in contents.runs
    )
    experiment = build_experiment(runs[-1].configuration, str(path))
    facts = [DatasetFacts(**_mapping(row["facts"])) for row in contents.datasets]
    datasets = {fact.name: fact for fact in facts}
    methods = experiment.all_methods()
    roles: dict[str, str] = {method.name: method.role for method in methods}
    stored = {row["key"]: row for row in contents.cells}
    cells: list[CellRecord] = []
    # A cell may stand in the plan under two names, as a method and as the full variant of an ablation.
    places: dict[str, list[int]] = {}
    for planned in contents.plan:
        if planned["method"] not in roles:
            raise ValueError(f"the method {planned['method']!r} of the plan is not in the configuration")
        n_features = datasets[planned["dataset"]].n_features
        if planned["key"] in stored:
            places.setdefault(planned["key"], []).append(len(cells))
            cells.append(_cell(planned, stored[planned["key"]], n_features))
    scores = tuple(Score(place, *values) for key, *values in contents.scores for place in places.get(key, ()))
    return Results(
        name=experiment.name,
        experiment=experiment,
        datasets=datasets,
        methods=tuple(roles),
        roles=roles,
        cells=tuple(cells),
        planned=dict(Counter((row["dataset"], row["noise"], row["method"]) for row in contents.plan)),
        scores=scores,
        runs=runs,
        n_altered=contents.n_altered,
    )


_PLANNED = ("key", "dataset", "noise", "noise_rate", "seed", "fold", "method", "role", "draw")
_MEASURED = ("error", "traceback", "fit_seconds", "seconds", "peak_mib", "n_iter")


def _cell(planned: Row, row: Row, n_features: int) -> CellRecord:
    return CellRecord(
        **{name: planned[name] for name in _PLANNED},
        **{name: row[name] for name in _MEASURED},
        params=_mapping(row["params"]),
        status="done" if row["error"] is None else "failed",
        converged=None if row["converged"] is None else bool(row["converged"]),
        ranking=_ranking(row["ranking"], n_features),
        objective=unpack(row["objective"], "<f8"),
        notes=tuple(map(str, json.loads(row["notes"]))),
    )


def _mapping(text: str, *parts: str) -> dict[str, Any]:
    """Read an object of JSON, with these parts that are objects as well."""
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(found.get(part), dict) for part in parts):
        raise ValueError("an object of JSON is something else")
    return found


def _ranking(data: bytes | None, n_features: int) -> np.ndarray | None:
    """Features, best first: each of them once."""
    ranking = unpack(data, "<i4")
    if ranking is not None and not np.array_equal(np.sort(ranking), np.arange(n_features)):
        raise ValueError(f"a ranking of {n_features} features names others")
    return ranking
