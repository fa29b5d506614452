"""How a run stands, without its numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any

from labelsieve.bench.seals import Contents
from labelsieve.bench.store import Store, damaged, database_path

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
    stored = {row["key"]: row for row in contents.cells}
    by_dataset: dict[str, list[Row | None]] = {}
    for planned in contents.plan:
        by_dataset.setdefault(planned["dataset"], []).append(stored.get(planned["key"]))
    try:
        remarks = tuple(_remarks(contents))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise damaged(store.path, error) from None
    return Status(
        path=str(store.path),
        datasets=tuple(_count(name, rows) for name, rows in by_dataset.items()),
        failures=tuple(
            Failure(row["description"], row["error"], row["traceback"] or "")
            for key in dict.fromkeys(planned["key"] for planned in contents.plan)
            if (row := stored.get(key)) is not None and row["error"] is not None
        ),
        remarks=remarks,
    )


def _count(name: str, rows: list[Row | None]) -> DatasetStatus:
    there = [row for row in rows if row is not None]
    n_failed = sum(row["error"] is not None for row in there)
    seconds = sum(row["seconds"] for row in there)
    return DatasetStatus(name, len(rows), len(there) - n_failed, n_failed, seconds)


def _remarks(contents: Contents) -> Iterator[str]:
    runs = {row["run"] for row in contents.cells}
    environments = [json.loads(row["environment"]) for row in contents.runs if row["number"] in runs]
    versions = list(dict.fromkeys(str(entry["versions"].get("labelsieve")) for entry in environments))
    if len(versions) > 1:
        yield f"cells were computed by several versions of labelsieve: {', '.join(versions)}"
    planned = {row["key"] for row in contents.plan}
    outside = sum(row["key"] not in planned for row in contents.cells)
    if outside and not planned:
        yield f"{outside} cells are stored, but the plan was lost; go on with labelsieve bench run"
    elif outside:
        yield f"{outside} cells belong to an earlier configuration and do not count"
    if contents.n_altered:
        yield (
            f"{contents.n_altered} stored cells were altered and do not count; labelsieve bench run computes them "
            "again"
        )
