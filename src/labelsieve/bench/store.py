"""The results of a run: one SQLite file, one transaction per finished cell, one writer at a time."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult, ScoreRow
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.plan import Cell

__all__ = ["FILE_NAME", "Store", "database_path", "pack", "unpack"]

FILE_NAME = "results.sqlite"
# "labe" in ASCII: a file that is some other program's database is not touched.
_APPLICATION_ID = 0x6C616265
_VERSION = 1

_SCHEMA = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT, command TEXT NOT NULL,
    configuration TEXT NOT NULL, environment TEXT NOT NULL
) STRICT;
CREATE TABLE datasets (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL) STRICT;
CREATE TABLE plan (
    position INTEGER PRIMARY KEY, key TEXT NOT NULL, dataset TEXT NOT NULL, noise TEXT NOT NULL, noise_rate REAL,
    seed INTEGER NOT NULL, fold INTEGER NOT NULL, method TEXT NOT NULL, role TEXT NOT NULL, draw INTEGER NOT NULL
) STRICT;
CREATE TABLE cells (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (number), finished TEXT NOT NULL,
    description TEXT NOT NULL, params TEXT NOT NULL, error TEXT, traceback TEXT,
    fit_seconds REAL, seconds REAL NOT NULL, peak_mib REAL,
    n_iter INTEGER, converged INTEGER, ranking BLOB, objective BLOB, notes TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;
CREATE TABLE scores (
    key TEXT NOT NULL REFERENCES cells (key) ON DELETE CASCADE, classifier TEXT NOT NULL, size REAL,
    n_features INTEGER NOT NULL, metric TEXT NOT NULL, value REAL NOT NULL,
    UNIQUE (key, classifier, size, metric)
) STRICT;
"""


def database_path(target: str | Path) -> Path:
    """Find the results a user means: a run folder, its results file, or a name below ``runs``."""
    path = Path(target)
    candidates = (path, path / FILE_NAME, Path("runs") / path / FILE_NAME)
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    if found is None:
        raise RunError(
            f"a run folder, its {FILE_NAME} or a name below runs/ was expected, got {str(target)!r}; "
            "start a run with: labelsieve bench run tiny"
        )
    return found


class Store:
    """The results file of a run folder.

    Parameters
    ----------
    path : Path
        The SQLite file.
    writer : bool, default=False
        Create what is missing and keep all other writers out until `close`.
    """

    def __init__(self, path: Path, *, writer: bool = False) -> None:
        self.path = path
        self._lock: sqlite3.Connection | None = None
        with self._explained():
            if writer:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = _exclusive(lock_path(path), path)
            try:
                self._connect(writer)
            except BaseException:
                self.close()
                raise

    def _connect(self, writer: bool) -> None:
        is_new = not self.path.exists() or self.path.stat().st_size == 0
        if not writer and is_new:
            raise RunError(f"{self.path}: no results in it yet; start with: labelsieve bench run")
        mode = "rwc" if writer else "ro"
        self._db = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=10
        )
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA foreign_keys = ON")
        if writer:
            self._db.execute("PRAGMA journal_mode = WAL")
        if is_new:
            with self._transaction():
                for statement in _SCHEMA.split(";\n"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION_ID:
            raise RunError(f"{self.path}: not a results file of labelsieve; choose another folder.")
        if version != _VERSION:
            raise RunError(
                f"{self.path}: written by another version of labelsieve (format {version}, this one reads "
                f"{_VERSION}); use that version, or another folder."
            )
        if writer:
            problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise sqlite3.DatabaseError(problem)
            # A commit is on the disk before the next cell begins, even if the power fails.
            self._db.execute("PRAGMA synchronous = FULL")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let other writers in."""
        if hasattr(self, "_db"):
            if self._lock is not None:
                # A file on its own can be copied, archived and read from a folder without write permission.
                with suppress(sqlite3.Error):
                    self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @staticmethod
    @contextmanager
    def locked(path: Path) -> Iterator[None]:
        """Keep all writers of a results file out."""
        lock = _exclusive(lock_path(path), path)
        try:
            yield
        finally:
            lock.close()

    # -- writing

    def begin_run(self, command: str, configuration: dict[str, Any], environment: dict[str, Any]) -> int:
        """Record that a run begins; returns its number."""
        with self._explained(), self._transaction():
            cursor = self._db.execute(
                "INSERT INTO runs (started, command, configuration, environment) VALUES (?, ?, ?, ?)",
                (_now(), command, json.dumps(configuration), json.dumps(environment)),
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def end_run(self, run: int) -> None:
        """Record that a run came to its end."""
        with self._explained(), self._transaction():
            self._db.execute("UPDATE runs SET finished = ? WHERE number = ?", (_now(), run))

    def set_plan(self, cells: Iterable[Cell], facts: Iterable[DatasetFacts]) -> None:
        """Replace the plan: what reports read, and what counts as missing."""
        rows = (
            (
                cell.key,
                cell.dataset.name,
                cell.noise.label,
                cell.noise.rate,
                cell.seed,
                cell.fold,
                cell.method.name,
                cell.method.role,
                cell.draw,
            )
            for cell in cells
        )
        with self._explained(), self._transaction():
            self._db.execute("DELETE FROM plan")
            self._db.execute("DELETE FROM datasets")
            self._db.executemany(
                "INSERT INTO plan (key, dataset, noise, noise_rate, seed, fold, method, role, draw) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            self._db.executemany(
                "INSERT INTO datasets (name, facts) VALUES (?, ?)",
                ((fact.name, json.dumps(fact.as_dict())) for fact in facts),
            )

    def record(self, run: int, cell: Cell, params: dict[str, Any], result: CellResult) -> None:
        """Store a finished cell in one transaction; a failure of the same cell is replaced."""
        ranking = None if result.ranking is None else pack(result.ranking, "<i4")
        objective = None if result.objective is None else pack(result.objective, "<f8")
        with self._explained(), self._transaction():
            self._db.execute("DELETE FROM cells WHERE key = ? AND error IS NOT NULL", (cell.key,))
            self._db.execute(
                "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    cell.key,
                    run,
                    _now(),
                    str(cell),
                    json.dumps(params),
                    result.error,
                    result.traceback,
                    result.fit_seconds,
                    result.seconds,
                    result.peak_mib,
                    result.n_iter,
                    None if result.converged is None else int(result.converged),
                    ranking,
                    objective,
                    json.dumps(result.notes),
                    _digest(ranking, result.scores),
                ),
            )
            self._db.executemany(
                "INSERT INTO scores VALUES (?, ?, ?, ?, ?, ?)", ((cell.key, *row) for row in result.scores)
            )

    def forget(self, keys: Iterable[str]) -> None:
        """Remove cells so that they are computed again."""
        with self._explained(), self._transaction():
            self._db.executemany("DELETE FROM cells WHERE key = ?", ((key,) for key in keys))

    def adopt(self, tables: dict[str, list[tuple[Any, ...]]]) -> int:
        """Take rows of another file over; of the cells, those with all their numbers. Returns how many."""
        self._db.execute("PRAGMA foreign_keys = OFF")
        with self._explained(), self._transaction():
            for name, rows in tables.items():
                for row in rows:
                    self._db.execute(
                        f"INSERT OR IGNORE INTO {name} VALUES ({', '.join('?' * len(row))})", row
                    )
            self._db.executemany("DELETE FROM cells WHERE key = ?", ((key,) for key in self.altered()))
            self._db.execute("DELETE FROM scores WHERE key NOT IN (SELECT key FROM cells)")
        return len(self.outcomes())

    # -- reading

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Answer a query."""
        with self._explained():
            return self._db.execute(query, values).fetchall()

    def outcomes(self) -> dict[str, bool]:
        """Key of every stored cell -> whether it is done, not failed."""
        return {row["key"]: row["error"] is None for row in self.rows("SELECT key, error FROM cells")}

    def altered(self) -> list[str]:
        """Keys of the cells whose numbers are not those that were written."""
        scores: dict[str, list[ScoreRow]] = {}
        for row in self.rows("SELECT * FROM scores"):
            scores.setdefault(row["key"], []).append(ScoreRow(*tuple(row)[1:]))
        return [
            row["key"]
            for row in self.rows("SELECT key, ranking, digest FROM cells")
            if _digest(row["ranking"], scores.get(row["key"], [])) != row["digest"]
        ]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # A full disk may have rolled back already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the disk or the file refuses into one sentence."""
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self.path.parent}: cannot be written ({error}); choose another folder."
            ) from None
        except sqlite3.OperationalError as error:
            raise RunError(
                f"{self.path}: {error}; finished cells are safe. Check free space and permissions, then run "
                "the same command again."
            ) from None
        except sqlite3.IntegrityError:
            raise  # a mistake in this program, not in the file
        except sqlite3.DatabaseError as error:
            raise RunError(
                f"{self.path}: the file is damaged ({error}); save what can be read with: "
                f"labelsieve bench repair {self.path.parent}"
            ) from None


def pack(values: np.ndarray, dtype: str) -> bytes:
    """Array to bytes, little-endian whatever the machine."""
    return np.ascontiguousarray(values, dtype=dtype).tobytes()


def unpack(data: bytes | None, dtype: str) -> np.ndarray | None:
    """Bytes to array."""
    return None if data is None else np.frombuffer(data, dtype=dtype)


def lock_path(path: Path) -> Path:
    """Name the file that a writer locks."""
    return path.with_name(f"{path.name}.lock")


def _exclusive(lock: Path, path: Path) -> sqlite3.Connection:
    """Hold a lock that ends with this process, however it ends."""
    # SQLite's own file locks work on every system, and nothing else uses this file.
    connection = sqlite3.connect(lock, isolation_level=None, timeout=0)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" not in str(error):
            raise
        raise RunError(
            f"{path.parent}: another run is writing there; wait for it, stop it, or choose another folder with --out."
        ) from None
    return connection


def _digest(ranking: bytes | None, scores: Iterable[Any]) -> str:
    """Checksum of what a cell found, whatever the order of the rows."""
    lines = sorted(repr(tuple(row)) for row in scores)
    return hashlib.sha256((ranking or b"") + "\n".join(lines).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
