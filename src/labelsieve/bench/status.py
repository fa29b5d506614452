"""How a run stands, without reading its numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labelsieve.bench.store import Store, database_path

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
        counts = store.rows(
            "SELECT plan.dataset AS name, COUNT(*) AS planned, COUNT(cells.key) AS stored, "
            "COUNT(cells.error) AS failed, TOTAL(cells.seconds) AS seconds "
            "FROM plan LEFT JOIN cells USING (key) GROUP BY plan.dataset ORDER BY MIN(plan.position)"
        )
        failures = store.rows(
            "SELECT DISTINCT description, error, traceback FROM plan JOIN cells USING (key) "
            "WHERE error IS NOT NULL ORDER BY position"
        )
        versions = store.rows(
            "SELECT DISTINCT json_extract(environment, '$.versions.labelsieve') AS version "
            "FROM runs JOIN cells ON run = number"
        )
        outside = store.rows("SELECT COUNT(*) FROM cells WHERE key NOT IN (SELECT key FROM plan)")[0][0]
    remarks = []
    if len(versions) > 1:
        listed = ", ".join(row["version"] for row in versions)
        remarks.append(f"cells were computed by several versions of labelsieve: {listed}")
    if outside:
        remarks.append(f"{outside} cells belong to an earlier configuration and do not count")
    return Status(
        path=str(store.path),
        datasets=tuple(
            DatasetStatus(
                row["name"], row["planned"], row["stored"] - row["failed"], row["failed"], row["seconds"]
            )
            for row in counts
        ),
        failures=tuple(Failure(*row) for row in failures),
        remarks=tuple(remarks),
    )
