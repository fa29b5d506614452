"""What a run holds, for reports: read from its file, never written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.bench.data import DatasetFacts
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
    n_planned: int
    scores: tuple[Score, ...]
    runs: tuple[RunRecord, ...]
    #: Stored cells whose numbers are not those that were written.
    n_altered: int = 0


def read_results(target: str | Path) -> Results:
    """Read a run: its folder, its results file, or its name below ``runs``."""
    with Store(database_path(target)) as store:
        try:
            return _read(store)
        except json.JSONDecodeError as error:
            raise damaged(store.path, error) from None


def _read(store: Store) -> Results:
    runs = tuple(
        RunRecord(
            number=row["number"],
            started=row["started"],
            finished=row["finished"],
            command=row["command"],
            environment=json.loads(row["environment"]),
            configuration=json.loads(row["configuration"]),
            n_computed=row["n_computed"],
        )
        for row in store.rows(
            "SELECT runs.*, (SELECT COUNT(*) FROM cells WHERE run = number) AS n_computed FROM runs ORDER BY number"
        )
    )
    if not runs:
        raise no_results(store.path)
    experiment = build_experiment(runs[-1].configuration, str(store.path))
    facts = [
        DatasetFacts(**json.loads(row["facts"]))
        for row in store.rows("SELECT facts FROM datasets ORDER BY position")
    ]
    n_planned = store.rows("SELECT COUNT(*) FROM plan")[0][0]
    cells: list[CellRecord] = []
    # A cell may stand in the plan under two names, as a method and as the full variant of an ablation.
    places: dict[str, list[int]] = {}
    for row in store.rows(
        "SELECT plan.key AS key, dataset, noise, noise_rate, seed, fold, method, role, draw, cells.* "
        "FROM plan JOIN cells USING (key) ORDER BY position"
    ):
        places.setdefault(row["key"], []).append(len(cells))
        cells.append(_cell(row))
    scores = tuple(
        Score(place, *tuple(row)[1:])
        for row in store.rows("SELECT * FROM scores ORDER BY rowid")
        for place in places.get(row["key"], ())
    )
    methods = experiment.all_methods()
    return Results(
        name=experiment.name,
        experiment=experiment,
        datasets={fact.name: fact for fact in facts},
        methods=tuple(method.name for method in methods),
        roles={method.name: method.role for method in methods},
        cells=tuple(cells),
        n_planned=n_planned,
        scores=scores,
        runs=runs,
        n_altered=len(store.altered()),
    )


def _cell(row: Any) -> CellRecord:
    return CellRecord(
        **{
            name: row[name]
            for name in ("key", "dataset", "noise", "noise_rate", "seed", "fold", "method", "role", "draw")
        },
        **{
            name: row[name] for name in ("error", "traceback", "fit_seconds", "seconds", "peak_mib", "n_iter")
        },
        params=json.loads(row["params"]),
        status="done" if row["error"] is None else "failed",
        converged=None if row["converged"] is None else bool(row["converged"]),
        ranking=unpack(row["ranking"], "<i4"),
        objective=unpack(row["objective"], "<f8"),
        notes=tuple(json.loads(row["notes"])),
    )
