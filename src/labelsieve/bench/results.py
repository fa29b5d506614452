"""Read what a run holds: its results for reports, and how far it has come."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any, NamedTuple

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.plan import Planned
from labelsieve.bench.store import Contents, Store, database_path, no_results, unpack

__all__ = [
    "CellRecord",
    "DatasetFacts",
    "JudgementRecord",
    "Results",
    "RunRecord",
    "Score",
    "read_results",
    "read_status",
]


class Score(NamedTuple):
    """One number of a ranking."""

    #: Index into `Results.cells`.
    cell: int
    #: A name of `Experiment.judges`: the classifier and, if there are several, the conventions.
    judge: str
    #: Configured size; None for the references without features and with all.
    size: float | None
    n_features: int
    metric: str
    value: float


class CellRecord(NamedTuple):
    """A ranking of the plan, finished or failed."""

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


class JudgementRecord(NamedTuple):
    """A judgement of a ranking, finished or failed; it fails with its ranking."""

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

    experiment: Experiment
    datasets: dict[str, DatasetFacts]
    cells: tuple[CellRecord, ...]
    judgements: tuple[JudgementRecord, ...]
    #: Dataset, noise, method and judge -> number of planned judgements that can be made.
    planned: dict[tuple[str, str, str, str], int]
    scores: tuple[Score, ...]
    runs: tuple[RunRecord, ...]
    #: Damaged rows, which are left out.
    n_altered: int = 0


def read_results(target: str | Path) -> Results:
    """Read a run: its folder, its results file, or its name below ``runs``.

    Nothing is imported that the stored configuration names.
    """
    path, contents = _read(target)
    computed = Counter(row["run"] for row in contents.judgements.values())
    runs = tuple(
        RunRecord(
            number=number,
            started=row["started"],
            finished=row["finished"],
            command=row["command"],
            environment=json.loads(row["environment"]),
            configuration=json.loads(row["configuration"]),
            n_computed=computed[key],
        )
        for number, (key, row) in enumerate(contents.runs.items(), start=1)
    )
    assert contents.configuration is not None
    experiment = build_experiment(contents.configuration, str(path))
    cells: list[CellRecord] = []
    judgements: list[JudgementRecord] = []
    scores: list[Score] = []
    # A ranking may be planned under two names, as a method and as the full variant of an ablation.
    indices: dict[tuple[str, str], int] = {}
    for planned in contents.plan:
        row = contents.rankings.get(planned.ranking)
        if row is None:
            continue
        index = indices.setdefault((planned.ranking, planned.method), len(cells))
        if index == len(cells):
            cells.append(_cell(planned, row))
        if planned.obstacle is not None:
            continue
        judged = contents.judgements.get(planned.key)
        if judged is not None:
            scores += (Score(index, planned.judge, *entry) for entry in json.loads(judged["scores"]))
        elif row["error"] is not None:
            judged = row
        if judged is not None:
            shared = (_status(judged), judged["error"], judged["traceback"], _notes(judged))
            judgements.append(JudgementRecord(index, planned.judge, *shared))
    return Results(
        experiment=experiment,
        datasets={name: DatasetFacts(**facts) for name, facts in contents.datasets.items()},
        cells=tuple(cells),
        judgements=tuple(judgements),
        planned=dict(
            Counter(
                (row.dataset, row.noise, row.method, row.judge)
                for row in contents.plan
                if row.obstacle is None
            )
        ),
        scores=tuple(scores),
        runs=runs,
        n_altered=contents.n_damaged,
    )


def _read(target: str | Path) -> tuple[Path, Contents]:
    """Read a run that has begun."""
    with Store(database_path(target)) as store:
        contents = store.read()
    if contents.configuration is None or not contents.runs:
        if contents.n_damaged:
            raise RunError(
                f"{store.path}: the stored configuration is damaged; run the experiment again, which keeps the "
                "finished cells."
            )
        raise no_results(store.path)
    return store.path, contents


def _cell(planned: Planned, row: Row) -> CellRecord:
    return CellRecord(
        **{name: getattr(planned, name) for name in ("dataset", "noise", "noise_rate", "seed", "fold")},
        **{name: getattr(planned, name) for name in ("method", "role", "draw")},
        **{name: row[name] for name in ("key", "error", "traceback", "fit_seconds", "peak_mib", "n_iter")},
        params=json.loads(row["params"]),
        status=_status(row),
        converged=None if row["converged"] is None else bool(row["converged"]),
        ranking=unpack(row["ranking"], "<i4"),
        objective=unpack(row["objective"], "<f8"),
        notes=_notes(row),
    )


def _status(row: Row) -> str:
    return "done" if row["error"] is None else "failed"


def _notes(row: Row) -> tuple[str, ...]:
    return tuple(json.loads(row["notes"]))


def read_status(target: str | Path) -> dict[str, Any]:
    """Count the cells of a run and list its failures, in values that JSON can hold."""
    path, contents = _read(target)
    planned = [row for row in contents.plan if row.obstacle is None]
    stored = {**contents.rankings, **contents.judgements}
    datasets = []
    for name in dict.fromkeys(row.dataset for row in contents.plan):
        rows = [row for row in planned if row.dataset == name]
        keys = {key for row in rows for key in (row.ranking, row.key)}
        seconds = sum(stored[key]["seconds"] for key in sorted(keys) if key in stored)
        counts = contents.count(rows)
        missing = counts["planned"] - counts["done"] - counts["failed"]
        datasets.append({"name": name, **counts, "missing": missing, "seconds": seconds})
    found = (
        stored.get(key) for key in dict.fromkeys(key for row in planned for key in (row.ranking, row.key))
    )
    failures = [
        {"cell": row["description"], "error": row["error"], "traceback": row["traceback"] or ""}
        for row in found
        if row is not None and row["error"] is not None
    ]
    return {
        "path": str(path),
        "datasets": datasets,
        "failures": failures,
        "remarks": list(_remarks(contents)),
    }


def _remarks(contents: Contents) -> Iterator[str]:
    computing = {row["run"] for row in (*contents.rankings.values(), *contents.judgements.values())}
    environments = [json.loads(row["environment"]) for key, row in contents.runs.items() if key in computing]
    versions = list(dict.fromkeys(str(entry["versions"].get("labelsieve")) for entry in environments))
    if len(versions) > 1:
        yield f"cells were computed by several versions of labelsieve: {', '.join(versions)}"
    planned = {row.key for row in contents.plan}
    outside = sum(key not in planned for key in contents.judgements)
    if outside:
        yield f"{outside} cells belong to an earlier configuration and do not count"
    obstacles: dict[str, dict[str, None]] = {}
    for row in contents.plan:
        if row.obstacle is not None:
            obstacles.setdefault(f"by {row.judge}: {row.obstacle}", {})[row.method] = None
    for obstacle, methods in obstacles.items():
        yield f"{', '.join(methods)} cannot be judged {obstacle}"
    if contents.n_damaged:
        yield f"{contents.n_damaged} stored rows are damaged and do not count; labelsieve bench run computes them again"
