"""How a run stands, without its numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any

from labelsieve.bench.results_file import damaged, database_path
from labelsieve.bench.seals import Contents
from labelsieve.bench.store import Store

__all__ = ["Failure", "Status", "read_status"]


@dataclass(frozen=True)
class DatasetStatus:
    """Cells of one data set."""

    name: str
    planned: int
    done: int
    failed: int
    seconds: float

    @property
    def missing(self) -> int:
        """Cells that were not run yet."""
        return self.planned - self.done - self.failed


@dataclass(frozen=True)
class Failure:
    """A cell that failed."""

    cell: str
    error: str
    traceback: str


@dataclass(frozen=True)
class Status:
    """How a run stands."""

    path: str
    datasets: tuple[DatasetStatus, ...]
    failures: tuple[Failure, ...]
    remarks: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        rows = [{**asdict(row), "missing": row.missing} for row in self.datasets]
        return {**asdict(self), "datasets": rows}


def read_status(target: str | Path) -> Status:
    """Count the cells of a run: its folder, its results file, or its name below ``runs``."""
    with Store(database_path(target)) as store:
        contents = store.read()
    planned = [row for row in contents.plan if row["obstacle"] is None]
    stored = {row["key"]: row for row in (*contents.rankings, *contents.judgements)}
    outcomes = contents.outcomes((row["ranking"], row["key"]) for row in planned)
    try:
        remarks = tuple(_remarks(contents))
        datasets = tuple(
            _count(name, [row for row in planned if row["dataset"] == name], outcomes, stored)
            for name in dict.fromkeys(row["dataset"] for row in contents.plan)
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise damaged(store.path, error) from None
    return Status(
        path=str(store.path),
        datasets=datasets,
        failures=tuple(
            Failure(row["description"], row["error"], row["traceback"] or "")
            for key in dict.fromkeys(key for row in planned for key in (row["ranking"], row["key"]))
            if (row := stored.get(key)) is not None and row["error"] is not None
        ),
        remarks=remarks,
    )


def _count(name: str, rows: list[Row], outcomes: dict[str, bool], stored: dict[str, Row]) -> DatasetStatus:
    states = [outcomes.get(row["key"]) for row in rows]
    keys = {key for row in rows for key in (row["ranking"], row["key"])}
    seconds = sum(stored[key]["seconds"] for key in keys if key in stored)
    if not math.isfinite(seconds):
        raise ValueError("the time of a cell has no end")
    return DatasetStatus(name, len(rows), states.count(True), states.count(False), seconds)


def _remarks(contents: Contents) -> Iterator[str]:
    runs = {row["run"] for row in (*contents.rankings, *contents.judgements)}
    environments = [json.loads(row["environment"]) for row in contents.runs if row["number"] in runs]
    versions = list(dict.fromkeys(str(entry["versions"].get("labelsieve")) for entry in environments))
    if len(versions) > 1:
        yield f"cells were computed by several versions of labelsieve: {', '.join(versions)}"
    planned = {row["key"] for row in contents.plan}
    outside = sum(row["key"] not in planned for row in contents.judgements)
    if outside and not planned:
        yield f"{outside} cells are stored, but the plan was lost; go on with labelsieve bench run"
    elif outside:
        yield f"{outside} cells belong to an earlier configuration and do not count"
    obstacles: dict[str, dict[str, None]] = {}
    for row in contents.plan:
        if row["obstacle"] is not None:
            obstacles.setdefault(f"by {row['judge']}: {row['obstacle']}", {})[row["method"]] = None
    for obstacle, methods in obstacles.items():
        yield f"{', '.join(methods)} cannot be judged {obstacle}"
    if contents.n_altered:
        yield (
            f"{contents.n_altered} stored cells were altered and do not count; labelsieve bench run computes them "
            "again"
        )
