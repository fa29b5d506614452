"""What a run holds, for reports: read from its file, never written."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any, NamedTuple

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.results_file import damaged, database_path, no_results
from labelsieve.bench.seals import Contents
from labelsieve.bench.store import Store, unpack

__all__ = [
    "CellRecord",
    "DatasetFacts",
    "JudgementRecord",
    "Results",
    "RunRecord",
    "Score",
    "read_ranking",
    "read_results",
]


class Score(NamedTuple):
    """One number of a ranking."""

    #: Index into `Results.cells`.
    cell: int
    #: The classifier and, where there are several, the conventions: a name of `Experiment.judges`.
    judge: str
    #: Configured size; None for the references without features and with all.
    size: float | None
    n_features: int
    metric: str
    value: float


@dataclass(frozen=True)
class CellRecord:
    """A ranking of the plan that was made, or failed."""

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
    peak_mib: float | None
    n_iter: int | None
    converged: bool | None
    #: Features, best first.
    ranking: np.ndarray | None
    objective: np.ndarray | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class JudgementRecord:
    """A judgement of a ranking, done or failed; it fails with its ranking."""

    #: Index into `Results.cells`.
    cell: int
    judge: str
    status: str
    error: str | None
    traceback: str | None
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
    cells: tuple[CellRecord, ...]
    judgements: tuple[JudgementRecord, ...]
    #: Data set, noise, method and judge -> how many judgements are planned there; none where they cannot be made.
    planned: dict[tuple[str, str, str, str], int]
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
    computed = Counter(row["run"] for row in contents.judgements)
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
    facts = [_facts(row["facts"]) for row in contents.datasets]
    datasets = {fact.name: fact for fact in facts}
    methods = {method.name for method in experiment.all_methods()}
    rankings = {row["key"]: row for row in contents.rankings}
    judged = {row["key"]: row for row in contents.judgements}
    names = {judge.name for judge in experiment.judges()}
    cells: list[CellRecord] = []
    judgements: list[JudgementRecord] = []
    # A cell may stand in the plan under two names, as a method and as the full variant of an ablation.
    indices: dict[tuple[str, str], int] = {}
    places: dict[str, list[tuple[int, str]]] = {}
    for planned in contents.plan:
        if planned["method"] not in methods or planned["judge"] not in names:
            raise ValueError(f"{planned['method']!r} by {planned['judge']!r} is not in the configuration")
        n_features = datasets[planned["dataset"]].n_features
        if planned["ranking"] not in rankings:
            continue
        row = rankings[planned["ranking"]]
        index = indices.setdefault((row["key"], planned["method"]), len(cells))
        if index == len(cells):
            cells.append(_cell(planned, row, n_features))
        if planned["obstacle"] is None:
            places.setdefault(planned["key"], []).append((index, planned["judge"]))
            found = judged.get(planned["key"], row if row["error"] is not None else None)
            if found is not None:
                judgements.append(_judgement(index, planned["judge"], found))
    scores = tuple(
        Score(index, judge, *values)
        for key, *values in contents.scores
        for index, judge in places.get(key, ())
    )
    return Results(
        name=experiment.name,
        experiment=experiment,
        datasets=datasets,
        cells=tuple(cells),
        judgements=tuple(judgements),
        planned=dict(
            Counter(
                (row["dataset"], row["noise"], row["method"], row["judge"])
                for row in contents.plan
                if row["obstacle"] is None
            )
        ),
        scores=scores,
        runs=runs,
        n_altered=contents.n_altered,
    )


_PLANNED = ("dataset", "noise", "noise_rate", "seed", "fold", "method", "role", "draw")
_MEASURED = ("error", "traceback", "fit_seconds", "peak_mib", "n_iter")


def _facts(text: str) -> DatasetFacts:
    found = DatasetFacts(**_mapping(text))
    for number in (found.n_samples, found.n_features, found.n_labels, found.cardinality):
        if not isinstance(number, int | float) or not math.isfinite(number):
            raise ValueError(f"the facts of a data set have {number!r} for a number")
    return found


def _cell(planned: Row, row: Row, n_features: int) -> CellRecord:
    return CellRecord(
        key=row["key"],
        **{name: planned[name] for name in _PLANNED},
        **{name: row[name] for name in _MEASURED},
        params=_mapping(row["params"]),
        status=_status(row),
        converged=None if row["converged"] is None else bool(row["converged"]),
        ranking=read_ranking(row["ranking"], n_features),
        objective=unpack(row["objective"], "<f8"),
        notes=_notes(row),
    )


def _judgement(cell: int, judge: str, row: Row) -> JudgementRecord:
    return JudgementRecord(cell, judge, _status(row), row["error"], row["traceback"], _notes(row))


def _status(row: Row) -> str:
    return "done" if row["error"] is None else "failed"


def _notes(row: Row) -> tuple[str, ...]:
    return tuple(map(str, json.loads(row["notes"])))


def _mapping(text: str, *parts: str) -> dict[str, Any]:
    """Read an object of JSON, with these parts that are objects as well."""
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(found.get(part), dict) for part in parts):
        raise ValueError("an object of JSON is something else")
    return found


def read_ranking(data: bytes | None, n_features: int) -> np.ndarray | None:
    """Features, best first: each of them once."""
    ranking = unpack(data, "<i4")
    if ranking is not None and not np.array_equal(np.sort(ranking), np.arange(n_features)):
        raise ValueError(f"a ranking of {n_features} features names others")
    return ranking
