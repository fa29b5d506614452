"""Read the results and the status of a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any

import pandas as pd

from labelsieve._text import count
from labelsieve.bench.config import Experiment, build_experiment
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.plan import Planned
from labelsieve.bench.store import Contents, Store, database_path, unpack

_PLANNED = ("dataset", "noise", "noise_rate", "seed", "fold", "method", "role", "draw")
_STORED = ("key", "error", "traceback", "fit_seconds", "peak_mib", "n_iter")
#: Columns of cells, judgements and scores, and those that identify a place in the plan.
CELL = [*_PLANNED, *_STORED, "params", "converged", "ranking", "objective", "notes"]
JUDGEMENT = ["cell", "classifier", "description", "error", "traceback", "notes"]
SCORE = ["cell", "classifier", "size", "n_features", "metric", "value"]
PLACE = ["dataset", "noise", "method", "classifier"]


@dataclass(frozen=True)
class RunRecord:
    """Record of one call of the runner."""

    number: int
    started: str
    finished: str | None
    command: str
    environment: dict[str, Any]
    configuration: dict[str, Any]
    n_computed: int


@dataclass(frozen=True)
class Results:
    """Results of a run.

    Successful rankings and judgements have no error. Classifiers are names from `Experiment.judges`, which contain the
    conventions if there are several sets of them.
    """

    experiment: Experiment
    datasets: dict[str, DatasetFacts]
    #: Finished and failed rankings with their place in the plan, `params`, `error` and properties of the fit, such as
    #: `ranking` (features, best first).
    cells: pd.DataFrame
    #: Finished and failed judgements with `cell` (index of `cells`), `classifier`, `description`, `error`, `traceback`
    #: and `notes`. The judgements of a failed ranking have failed too.
    judgements: pd.DataFrame
    #: Values by `cell`, `classifier`, `size` (NaN for references with all or no features), `n_features` and `metric`.
    scores: pd.DataFrame
    #: Number of `planned` judgements that can be made, by dataset, noise, method and classifier.
    planned: pd.DataFrame
    runs: tuple[RunRecord, ...]
    #: Number of damaged rows, which are left out.
    n_altered: int = 0


def read_results(target: str | Path) -> Results:
    """Read a run from its folder, its results file, or its name in ``runs``.

    User-defined code in the stored configuration is not imported.
    """
    with Store(database_path(target)) as store:
        path, contents = store.path, store.read_run()
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

    experiment = build_experiment(contents.configuration, str(path))
    cells: list[dict[str, Any]] = []
    judgements: list[tuple[Any, ...]] = []
    scores: list[tuple[Any, ...]] = []
    # A ranking may be planned twice, as a method and as the full variant of an ablation.
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
            scores += ((index, planned.judge, *entry) for entry in json.loads(judged["scores"]))
        elif row["error"] is not None:
            judged = row
        if judged is not None:
            notes = json.loads(judged["notes"])
            texts = (judged["description"], judged["error"], judged["traceback"])
            judgements.append((index, planned.judge, *texts, notes))
    plan = pd.DataFrame(contents.plan, columns=Planned._fields).rename(columns={"judge": "classifier"})
    possible = plan[plan["obstacle"].isna()].groupby(PLACE, sort=False)
    return Results(
        experiment=experiment,
        datasets={name: DatasetFacts(**facts) for name, facts in contents.datasets.items()},
        cells=pd.DataFrame(cells, columns=CELL),
        judgements=pd.DataFrame(judgements, columns=JUDGEMENT),
        scores=pd.DataFrame(scores, columns=SCORE).astype({"size": float}),
        planned=possible.size().reset_index(name="planned"),
        runs=runs,
        n_altered=contents.n_damaged,
    )


def _cell(planned: Planned, row: Row) -> dict[str, Any]:
    return {
        **{name: getattr(planned, name) for name in _PLANNED},
        **{name: row[name] for name in _STORED},
        "params": json.loads(row["params"]),
        "converged": None if row["converged"] is None else bool(row["converged"]),
        "ranking": unpack(row["ranking"], "<i4"),
        "objective": unpack(row["objective"], "<f8"),
        "notes": json.loads(row["notes"]),
    }


def read_status(target: str | Path) -> dict[str, Any]:
    """Count the cells of a run and list its failures as JSON-compatible values."""
    with Store(database_path(target)) as store:
        path, contents = store.path, store.read_run()
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
        yield f"Several versions of labelsieve computed the cells: {', '.join(versions)}."
    planned = {row.key for row in contents.plan}
    outside = sum(key not in planned for key in contents.judgements)
    if outside:
        yield f"Not counted: {count(outside, 'cell')} of an earlier configuration."
    obstacles: dict[str, dict[str, None]] = {}
    for row in contents.plan:
        if row.obstacle is not None:
            obstacles.setdefault(f"by {row.judge} ({row.obstacle})", {})[row.method] = None
    for obstacle, methods in obstacles.items():
        yield f"Not judged {obstacle}: {', '.join(methods)}."
    if contents.n_damaged:
        yield f"Not counted: {count(contents.n_damaged, 'damaged row')}. To recompute, repeat: labelsieve bench run"
