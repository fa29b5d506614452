"""The results of a run: one SQLite file, one transaction per finished cell, one writer at a time."""

from __future__ import annotations

import hashlib
import json
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult, ScoreRow
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.plan import Cell

__all__ = ["FILE_NAME", "Store", "damaged", "database_path", "no_results", "pack", "unpack"]

FILE_NAME = "results.sqlite"
# "labe" in ASCII: a file that is some other program's database is not touched.
_APPLICATION_ID = 0x6C616265
_VERSION = 1
# What the system refuses, as opposed to a file that is damaged.
_REFUSALS = (
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_PERM",
)

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
    ending = Path(FILE_NAME).suffix  # a copy may have another name, but data files are no damaged results
    found = next((place for place in candidates if place.suffix == ending and place.is_file()), None)
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
        with _explained(path):
            if writer:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = _exclusive(lock_path(path), path)
            try:
                self._connect(writer)
            except BaseException:
                self.close()
                raise

    def _connect(self, writer: bool) -> None:
        mode = "rwc" if writer else "ro"
        self._db = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=10
        )
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA foreign_keys = ON")
        if writer:
            self._db.execute("PRAGMA journal_mode = WAL")
            # A commit is on the disk before the next cell begins, even if the power fails.
            self._db.execute("PRAGMA synchronous = FULL")
        application = self._pragma("application_id")
        # Killed at its very beginning, a run leaves a file with nothing in it.
        if application == 0 and not self._db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            if not writer:
                raise no_results(self.path)
            self._create()
        elif application != _APPLICATION_ID:
            raise RunError(f"{self.path}: not a results file of labelsieve; choose another folder.")
        if (version := self._pragma("user_version")) != _VERSION:
            raise RunError(
                f"{self.path}: written by another version of labelsieve (format {version}, this one reads "
                f"{_VERSION}); use that version, or another folder."
            )
        if writer and (problem := self._pragma("integrity_check(1)")) != "ok":
            raise sqlite3.DatabaseError(problem)

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _create(self) -> None:
        with self._transaction():
            for statement in _SCHEMA.split(";\n"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {_VERSION}")

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
        with _explained(path):
            lock = _exclusive(lock_path(path), path)
        try:
            yield
        finally:
            lock.close()

    # -- writing

    def begin_run(
        self,
        command: str,
        configuration: dict[str, Any],
        environment: dict[str, Any],
        cells: Iterable[Cell],
        facts: Iterable[DatasetFacts],
    ) -> int:
        """Record that a run begins, and what it plans: that is what counts from now on. Returns its number."""
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
        with _explained(self.path), self._transaction():
            cursor = self._db.execute(
                # Above those of cells whose run was lost in a damaged file.
                "INSERT INTO runs (number, started, command, configuration, environment) "
                "SELECT 1 + MAX((SELECT IFNULL(MAX(number), 0) FROM runs), "
                "(SELECT IFNULL(MAX(run), 0) FROM cells)), ?, ?, ?, ?",
                (_now(), command, json.dumps(configuration), json.dumps(environment)),
            )
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
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def end_run(self, run: int) -> None:
        """Record that a run came to its end."""
        with _explained(self.path), self._transaction():
            self._db.execute("UPDATE runs SET finished = ? WHERE number = ?", (_now(), run))

    def record(self, run: int, cell: Cell, params: dict[str, Any], result: CellResult) -> None:
        """Store a finished cell in one transaction; a failure of the same cell is replaced."""
        values = (
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
            None if result.ranking is None else pack(result.ranking, "<i4"),
            None if result.objective is None else pack(result.objective, "<f8"),
            json.dumps(result.notes),
        )
        with _explained(self.path), self._transaction():
            self._db.execute("DELETE FROM cells WHERE key = ? AND error IS NOT NULL", (cell.key,))
            self._insert("cells", (*values, _digest(values, result.scores)))
            for row in result.scores:
                self._insert("scores", (cell.key, *row))

    def forget(self, keys: Iterable[str]) -> None:
        """Remove cells so that they are computed again, and scores that belong to no cell."""
        with _explained(self.path), self._transaction():
            self._db.executemany("DELETE FROM cells WHERE key = ?", ((key,) for key in keys))
            self._db.execute("DELETE FROM scores WHERE key NOT IN (SELECT key FROM cells)")

    def adopt(self, tables: dict[str, list[tuple[Any, ...]]]) -> int:
        """Take rows of another file over; of the cells, those with all their numbers. Returns how many."""
        self._db.execute("PRAGMA foreign_keys = OFF")
        with _explained(self.path), self._transaction():
            for name, rows in tables.items():
                for row in rows:
                    with suppress(sqlite3.IntegrityError):  # there twice, or no longer of its type
                        self._insert(name, row)
            self._db.execute(
                "DELETE FROM runs WHERE NOT (json_valid(configuration) AND json_valid(environment))"
            )
            self._db.execute("DELETE FROM datasets WHERE NOT json_valid(facts)")
        self.forget(self.altered())
        return len(self.outcomes())

    def _insert(self, table: str, row: Sequence[Any]) -> None:
        self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    # -- reading

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Answer a query."""
        with _explained(self.path):
            return self._db.execute(query, values).fetchall()

    def last_configuration(self) -> dict[str, Any]:
        """Configuration of the last run; empty if there is none that can be read."""
        last = self.rows("SELECT configuration FROM runs ORDER BY number DESC LIMIT 1")
        with suppress(ValueError):
            return json.loads(last[0][0]) if last else {}
        return {}

    def outcomes(self) -> dict[str, bool]:
        """Key of every stored cell -> whether it is done, not failed."""
        return {row["key"]: row["error"] is None for row in self.rows("SELECT key, error FROM cells")}

    def altered(self) -> list[str]:
        """Keys of the cells whose numbers are not those that were written."""
        scores: dict[str, list[ScoreRow]] = {}
        for row in self.rows("SELECT * FROM scores"):
            scores.setdefault(row["key"], []).append(ScoreRow(*tuple(row)[1:]))
        keys = []
        for *values, digest in self.rows("SELECT * FROM cells"):
            own = scores.pop(values[0], [])
            if digest != _digest(values, own):
                keys.append(values[0])
        # Scores without a cell are cleared away under the key they have.
        return keys + list(scores)

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
def _explained(path: Path) -> Iterator[None]:
    """Turn what the disk or the file refuses into one sentence."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path.parent}: cannot be written ({error}); choose another folder.") from None
    except sqlite3.IntegrityError:
        raise  # a mistake in this program, not in the file
    except sqlite3.DatabaseError as error:
        if str(getattr(error, "sqlite_errorname", "")).startswith(_REFUSALS):
            raise RunError(
                f"{path}: {error}; finished cells are safe. Check free space and permissions, then run "
                "the same command again."
            ) from None
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> RunError:
    """Say that a file cannot be read, and the remedy."""
    return RunError(
        f"{path}: the file is damaged ({error}); save what can be read with: "
        f"labelsieve bench repair {shlex.quote(str(path.parent))}"
    )


def no_results(path: Path) -> RunError:
    """Say that a run has not begun."""
    return RunError(f"{path}: no results in it yet; start with: labelsieve bench run")


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


def _digest(values: Sequence[Any], scores: Iterable[Any]) -> str:
    """Checksum of all that is stored of a cell, whatever the order of the scores."""
    lines = [repr(tuple(values)), *sorted(repr(tuple(row)) for row in scores)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
