"""The results of a run: one SQLite file, one transaction per finished cell, one writer at a time."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelsieve._text import one_line
from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.plan import Cell
from labelsieve.bench.seals import TABLES, Contents, Seal, cell_digest, check, sealed_rows

__all__ = ["FILE_NAME", "Store", "damaged", "database_path", "no_results", "pack", "unpack"]

FILE_NAME = "results.sqlite"
# "labe" in ASCII: a file that is some other program's database is not touched.
_APPLICATION_ID = 0x6C616265
# Files of format 1 have no seals: they are read as they are, and sealed by the next writer.
_VERSION, UNSEALED = 2, 1
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
_SEALS = """
CREATE TABLE seals (name TEXT NOT NULL, n_rows INTEGER NOT NULL, total TEXT NOT NULL) STRICT;
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
        self._identity: tuple[int, int] | None = None
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
        names = {row["name"] for row in self._db.execute("SELECT name FROM sqlite_master")}
        # Killed at its very beginning, a run leaves a file with nothing in it.
        if not names and self._pragma("application_id") == 0:
            if not writer:
                raise no_results(self.path)
            self._create()
        self._recognise(names)
        if writer:
            if (problem := self._pragma("integrity_check(1)")) != "ok":
                raise sqlite3.DatabaseError(problem)
            if self._pragma("user_version") == UNSEALED:
                self._add_seals()
            self._identity = _identity(self.path)

    def _recognise(self, names: set[str]) -> None:
        """Refuse a file that is none of ours, or no longer as we made it."""
        if self._pragma("application_id") != _APPLICATION_ID:
            if {"cells", "scores"} <= names:
                raise sqlite3.DatabaseError("its mark is another")
            raise RunError(f"{self.path}: not a results file of labelsieve; choose another folder.")
        version = self._pragma("user_version")
        if version not in (UNSEALED, _VERSION):
            raise RunError(
                f"{self.path}: written by another version of labelsieve (format {version}, this one reads "
                f"{UNSEALED} and {_VERSION}), or damaged; use that version, or another folder, or save what can "
                f"be read with: {_repair_command(self.path)}"
            )
        if not _expected_statements(version).items() <= _statements(self._db).items():
            raise sqlite3.DatabaseError("its tables are others")

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _create(self) -> None:
        with self._transaction():
            for statement in _SCHEMA.split(";\n"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {UNSEALED}")

    def _add_seals(self) -> None:
        with self._transaction():
            self._db.execute(_SEALS)
            self._db.executemany("INSERT INTO seals (name, n_rows, total) VALUES (?, 0, '')", zip(TABLES))
            self._reseal(*TABLES)
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
                (_now(), _storable(command), json.dumps(configuration), json.dumps(environment)),
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
            self._reseal("runs", "datasets", "plan")
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def end_run(self, run: int) -> None:
        """Record that a run came to its end."""
        with _explained(self.path), self._transaction():
            self._db.execute("UPDATE runs SET finished = ? WHERE number = ?", (_now(), run))
            self._reseal("runs")
        self._require_in_place()

    def record(self, run: int, cell: Cell, params: dict[str, Any], result: CellResult) -> None:
        """Store a finished cell in one transaction; a failure of the same cell is replaced."""
        values = (
            cell.key,
            run,
            _now(),
            str(cell),
            json.dumps(params),
            _storable(result.error),
            _storable(result.traceback),
            result.fit_seconds,
            result.seconds,
            result.peak_mib,
            result.n_iter,
            None if result.converged is None else int(result.converged),
            None if result.ranking is None else pack(result.ranking, "<i4"),
            None if result.objective is None else pack(result.objective, "<f8"),
            json.dumps(result.notes),
        )
        digest = cell_digest(values, result.scores)
        with _explained(self.path), self._transaction():
            failed = "FROM cells WHERE key = ? AND error IS NOT NULL"
            replaced = self._db.execute(f"SELECT key, digest {failed}", (cell.key,)).fetchall()
            self._db.execute(f"DELETE {failed}", (cell.key,))
            self._insert("cells", (*values, digest))
            for row in result.scores:
                self._insert("scores", (cell.key, *row))
            self._set_seal("cells", self._seals()["cells"].changed([(cell.key, digest)], replaced))
        self._require_in_place()

    def forget(self, keys: Iterable[str]) -> None:
        """Remove cells so that they are computed again, and scores that belong to no cell."""
        with _explained(self.path), self._transaction():
            self._db.executemany("DELETE FROM cells WHERE key = ?", ((key,) for key in keys))
            self._db.execute("DELETE FROM scores WHERE key NOT IN (SELECT key FROM cells)")
            self._reseal("cells")

    def adopt(self, tables: dict[str, list[tuple[Any, ...]]]) -> int:
        """Take rows of another file over; of the cells, those with all their numbers. Returns how many."""
        self._db.execute("PRAGMA foreign_keys = OFF")
        with _explained(self.path), self._transaction():
            for name, rows in tables.items():
                for row in rows:
                    with suppress(sqlite3.Error):  # there twice, or no longer of its type or length
                        self._insert(name, row)
            self._reseal(*TABLES)
        self.forget(self.read().altered)
        return len(self.read().cells)

    def _insert(self, table: str, row: Sequence[Any]) -> None:
        self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def _reseal(self, *tables: str) -> None:
        for name in tables:
            self._set_seal(name, Seal().changed(sealed_rows(name, self._rows(name))))

    def _set_seal(self, table: str, seal: Seal) -> None:
        self._db.execute("UPDATE seals SET n_rows = ?, total = ? WHERE name = ?", (*seal, table))

    def _require_in_place(self) -> None:
        """Notice that the results go into a file that is no longer where everybody looks for it."""
        if self._identity is None or _identity(self.path) == self._identity:
            return
        place = _opened_at(self._identity)
        if place is not None:
            elsewhere = f", or go on with --out {shlex.quote(str(place.parent))}"
            raise RunError(
                f"{self.path}: the file was moved to {place} while the run went on; the finished cells are there. "
                f"Move it back{elsewhere if place.name == self.path.name else ', then run the same command again.'}"
            )
        raise RunError(
            f"{self.path}: the file was deleted while the run went on, and the finished cells with it; restore it "
            "if you can, then run the same command again."
        )

    # -- reading

    def read(self) -> Contents:
        """Take everything that is as it was written; whatever else is wrong with the file is told."""
        with _explained(self.path):
            writing = self._db.in_transaction
            if not writing:
                self._db.execute("BEGIN")  # one moment of the file, also while a run writes to it
            try:
                tables = {name: self._rows(name) for name in (*TABLES, "scores")}
                seals = None if self._pragma("user_version") == UNSEALED else self._seals()
            finally:
                if not writing:
                    self._db.execute("ROLLBACK")
        try:
            return check(tables, seals)
        except ValueError as error:
            raise damaged(self.path, error) from None

    def _rows(self, table: str) -> list[sqlite3.Row]:
        """All rows of a table, past its indexes."""
        return self._db.execute(f"SELECT * FROM {table} NOT INDEXED").fetchall()

    def _seals(self) -> dict[str, Seal]:
        return {name: Seal(*seal) for name, *seal in self._rows("seals")}

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
    except UnicodeDecodeError as error:  # SQLite shows what it cannot read, and Python cannot read that
        raise damaged(path, error) from None
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
        f"{path}: the file is damaged ({one_line(error)}); save what can be read with: {_repair_command(path)}"
    )


def _repair_command(path: Path) -> str:
    return f"labelsieve bench repair {shlex.quote(str(path.parent))}"


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


@lru_cache(maxsize=2)
def _expected_statements(version: int) -> dict[str, str | None]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(_SCHEMA if version == UNSEALED else _SCHEMA + _SEALS)
        return _statements(database)


def _statements(database: sqlite3.Connection) -> dict[str, str | None]:
    """Read how the tables of a database were made."""
    return dict(map(tuple, database.execute("SELECT name, sql FROM sqlite_master")))


def _storable(text: str | None) -> str | None:
    """Write out what is no text: half a letter, as in the name of a file in another encoding."""
    return None if text is None else text.encode(errors="backslashreplace").decode()


def _identity(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _opened_at(identity: tuple[int, int]) -> Path | None:
    """Where a file is now that this process has open; None if it is gone or the system does not tell."""
    with suppress(OSError):
        for link in Path("/proc/self/fd").iterdir():
            if _identity(link) == identity and _identity(place := Path(os.readlink(link))) == identity:
                return place
    return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
