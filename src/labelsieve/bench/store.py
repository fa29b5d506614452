"""SQLite file with the results of a run, with one transaction per cell and one checksum per row.

A row that does not match its checksum counts as missing. Readers skip and report it, and the next run recomputes it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelsieve._text import one_line
from labelsieve.bench import RunError
from labelsieve.bench.cells import CellResult, JudgementResult
from labelsieve.bench.plan import Cell, Planned

FILE_NAME = "results.sqlite"
# "labe" in ASCII. It protects databases of other programs.
_APPLICATION_ID = 0x6C616265
_FORMAT = 4
#: Table -> columns. The first is the primary key. A checksum column follows the last.
_TABLES: dict[str, tuple[str, ...]] = {
    # One row with the current configuration and plan.
    "experiment": ("id", "n_runs", "configuration", "datasets", "plan"),
    "runs": ("id", "started", "finished", "command", "configuration", "environment"),
    "rankings": (
        *("key", "run", "finished", "description", "params", "error", "traceback", "fit_seconds", "seconds"),
        *("peak_mib", "n_iter", "converged", "ranking", "objective", "notes"),
    ),
    # Weights are large and rarely needed, so they are read one at a time.
    "weights": ("key", "packed"),
    "judgements": (
        *("key", "ranking", "run", "finished", "description", "error", "traceback", "seconds", "notes"),
        "scores",
    ),
}
# Errors caused by the system, not by a damaged file.
_SYSTEM_ERRORS = tuple(
    f"SQLITE_{name}" for name in ("FULL", "IOERR", "READONLY", "CANTOPEN", "BUSY", "LOCKED", "PERM")
)


@dataclass(frozen=True)
class Contents:
    """Intact rows of a results file by key, in the order they were written."""

    runs: dict[str, sqlite3.Row]
    rankings: dict[str, sqlite3.Row]
    #: Only those with a stored ranking.
    judgements: dict[str, sqlite3.Row]
    #: Keys of the rankings whose weights are stored.
    weighted: set[str]
    #: Number of rows that do not match their checksums or are known to be lost.
    n_damaged: int
    #: Configuration of the last run, empty if it cannot be read.
    configuration: dict[str, Any] = field(default_factory=dict)
    #: Name of a dataset -> its properties.
    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: All judgements of the last run.
    plan: list[Planned] = field(default_factory=list)

    def outcomes(self, plan: Iterable[Planned]) -> dict[str, bool]:
        """Map finished judgements of a plan to True for success. A judgement also fails if its ranking failed."""
        failed = {key for key, row in self.rankings.items() if row["error"] is not None}
        judged = {key: row["error"] is None for key, row in self.judgements.items()}
        return {
            row.key: judged.get(row.key, False)
            for row in plan
            if row.obstacle is None and (row.key in judged or row.ranking in failed)
        }

    def count(self, plan: Sequence[Planned]) -> dict[str, int]:
        """Count the planned, done and failed judgements that can be made."""
        outcomes = self.outcomes(plan)
        states = [outcomes.get(row.key) for row in plan if row.obstacle is None]
        return {"planned": len(states), "done": states.count(True), "failed": states.count(False)}

    def finished_rankings(self) -> set[str]:
        """Return the keys of successful rankings."""
        return {key for key, row in self.rankings.items() if row["error"] is None}


class Store:
    """Results file of a run folder. A writer creates it if needed and locks it for other writers."""

    def __init__(self, path: Path, *, writer: bool = False) -> None:
        self.path = path
        self._lock: sqlite3.Connection | None = None
        with _translate_errors(path):
            if writer:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = _lock(path)
            try:
                self._open(writer)
            except BaseException:
                self.close()
                raise

    def _open(self, writer: bool) -> None:
        # After a power failure at the end of a run, SQLite must undo an incomplete change before it can read.
        reading = "rw" if self.path.with_name(f"{self.path.name}-journal").exists() else "ro"
        address = f"{self.path.absolute().as_uri()}?mode={'rwc' if writer else reading}"
        self._db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=10)
        self._db.row_factory = sqlite3.Row
        # Damaged text fails its checksum. It should not make the whole query fail.
        self._db.text_factory = lambda data: data.decode(errors="replace")
        mark = (self._pragma("application_id"), self._pragma("user_version"))
        is_empty = self._db.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        if writer and (is_empty or mark[0] == _APPLICATION_ID):
            self._db.execute("PRAGMA journal_mode = WAL")
            # Committed cells survive a power failure.
            self._db.execute("PRAGMA synchronous = FULL")
        if is_empty and mark == (0, 0):  # left by a run that was killed at its start
            if not writer:
                raise _no_results(self.path)
            self._create()
        elif mark != (_APPLICATION_ID, _FORMAT):
            raise RunError(
                f"{self.path}: expected a results file of this version of labelsieve, got something else or a damaged "
                "file. Choose another folder."
            )
        if writer and (problem := self._pragma("integrity_check(1)")) != "ok":
            raise sqlite3.DatabaseError(problem)

    def _create(self) -> None:
        with self._transaction():
            for name, (key, *columns) in _TABLES.items():
                self._db.execute(f"CREATE TABLE {name} ({key} PRIMARY KEY, {', '.join(columns)}, checksum)")
            self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {_FORMAT}")

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release its lock."""
        if hasattr(self, "_db"):
            if self._lock is not None:
                # Without WAL there is one file, which can be copied and read in a read-only folder.
                with suppress(sqlite3.Error):
                    self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- writing

    def begin_run(
        self,
        command: str,
        configuration: dict[str, Any],
        environment: dict[str, Any],
        plan: Sequence[Planned],
        datasets: Mapping[str, dict[str, Any]],
    ) -> str:
        """Record a new run, replace the plan, and return the id of the run."""
        run = uuid.uuid4().hex
        settings = json.dumps(configuration)
        with self._transaction():
            self._write("runs", (run, now(), None, _storable(command), settings, json.dumps(environment)))
            n_runs = self._db.execute("SELECT COUNT(*) FROM runs NOT INDEXED").fetchone()[0]
            packed = zlib.compress(json.dumps(plan).encode(), 1)
            self._write("experiment", (1, n_runs, settings, json.dumps(datasets), packed))
        return run

    def delete_damaged(self) -> None:
        """Delete the rows that do not match their checksums so that they are recomputed."""
        with self._transaction():
            for table in _TABLES:
                rows = self._select(table, "rowid, ")
                damaged = [(number,) for number, *row in rows if not _is_intact(table, row)]
                self._db.executemany(f"DELETE FROM {table} WHERE rowid = ?", damaged)

    def end_run(self, run: str) -> None:
        """Record the end of a run."""
        with self._transaction():
            row = self._db.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone()
            self._write("runs", tuple({**dict(row), "finished": now()}.values())[:-1])

    def record(
        self, run: str, cell: Cell, params: dict[str, Any], result: CellResult, *, keep_weights: bool = True
    ) -> None:
        """Store the result of a cell in one transaction."""
        names = {judgement.key: judgement.judge.name for judgement in cell.judgements}
        judgements, conflict = result.judgements, "REPLACE"
        with self._transaction():
            query = "SELECT 1 FROM rankings WHERE key = ? AND error IS NULL"
            has_ranking = self._db.execute(query, (cell.key,)).fetchone() is not None
            if result.error is not None and has_ranking:
                # Keep the finished ranking and its judgements.
                failed = JudgementResult(result.error, result.traceback, result.seconds)
                judgements, conflict = dict.fromkeys(names, failed), "IGNORE"
            elif cell.ranked is None:
                self._write_ranking(run, cell, params, result, keep_weights)
            for key, judged in judgements.items():
                values = (
                    *(key, cell.key, run, now(), f"{cell}, {names[key]}"),
                    *(_storable(judged.error), _storable(judged.traceback), judged.seconds),
                    *(json.dumps(judged.notes), json.dumps(judged.scores)),
                )
                self._write("judgements", values, conflict)

    def _write_ranking(
        self, run: str, cell: Cell, params: dict[str, Any], result: CellResult, keep_weights: bool
    ) -> None:
        order, weights = result.ranked
        converged = None if result.converged is None else int(result.converged)  # as SQLite returns it
        judging = sum(judged.seconds for judged in result.judgements.values())
        if self._db.execute("DELETE FROM rankings WHERE key = ?", (cell.key,)).rowcount:
            self._db.execute("DELETE FROM judgements WHERE ranking = ?", (cell.key,))
        values = (
            *(cell.key, run, now(), str(cell), json.dumps(params)),
            *(_storable(result.error), _storable(result.traceback)),
            *(result.fit_seconds, result.seconds - judging, result.peak_mib, result.n_iter, converged),
            *(_pack(order, "<i4"), _pack(result.objective, "<f8"), json.dumps(result.notes)),
        )
        self._write("rankings", values)
        packed = _pack(weights, "<f4")
        if packed is not None and keep_weights:
            self._write("weights", (cell.key, zlib.compress(packed, 1)))

    def copy(self, rows: Iterable[tuple[str, sqlite3.Row]], *, replace: bool) -> None:
        """Copy rows from other files, given as pairs of table and row.

        Rows with an existing key replace the stored row, or are ignored if `replace` is false.
        """
        with self._transaction():
            for table, row in rows:
                self._write(table, tuple(row)[:-1], "REPLACE" if replace else "IGNORE")

    def _write(self, table: str, values: Sequence[Any], conflict: str = "REPLACE") -> None:
        marks = ", ".join("?" * (len(values) + 1))
        self._db.execute(
            f"INSERT OR {conflict} INTO {table} VALUES ({marks})", (*values, _checksum(table, values))
        )

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        with _translate_errors(self.path):
            self._db.execute(f"BEGIN {kind}")
            try:
                yield
                self._db.execute("COMMIT")
            finally:
                # SQLite may already have rolled back if the disk is full.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    # -- reading

    def read(self) -> Contents:
        """Read all intact rows, but only the keys of weights."""
        n_damaged = 0
        tables: dict[str, dict[str, sqlite3.Row]] = {}
        weighted: set[str] = set()
        with self._transaction("DEFERRED"):  # a consistent snapshot, even while a run is writing
            for name in _TABLES:
                found = tables[name] = {}
                for row in self._select(name):
                    if not _is_intact(name, row):
                        n_damaged += 1
                    elif name == "weights":
                        weighted.add(row["key"])
                    else:
                        found[row[0]] = row
        described: dict[str, Any] = {}
        for row in tables["experiment"].values():
            described = {
                "configuration": json.loads(row["configuration"]),
                "datasets": json.loads(row["datasets"]),
                "plan": [Planned(*entry) for entry in json.loads(zlib.decompress(row["plan"]))],
            }
            n_damaged += max(0, row["n_runs"] - len(tables["runs"]))
        rankings = tables["rankings"]
        judgements = {key: row for key, row in tables["judgements"].items() if row["ranking"] in rankings}
        return Contents(tables["runs"], rankings, judgements, weighted, n_damaged, **described)

    def read_run(self) -> Contents:
        """Read a run, or raise an error if it has not started or its configuration is damaged."""
        contents = self.read()
        if contents.configuration and contents.runs:
            return contents
        if contents.n_damaged:
            raise RunError(
                f"{self.path}: the stored configuration is damaged. Run the experiment again. Finished cells are kept."
            )
        raise _no_results(self.path)

    def _select(self, table: str, first: str = "") -> sqlite3.Cursor:
        columns = ", ".join((*_TABLES[table], "checksum"))
        # The index has no checksums, so do not use it.
        return self._db.execute(f"SELECT {first}{columns} FROM {table} NOT INDEXED")

    def read_weights(self, keys: Iterable[str]) -> Iterator[sqlite3.Row]:
        """Yield the stored rows with the weights of rankings."""
        with _translate_errors(self.path):
            for key in keys:
                yield self._db.execute("SELECT * FROM weights WHERE key = ?", (key,)).fetchone()

    def weights(self, key: str, n_features: int) -> np.ndarray:
        """Read the weights of a ranking, of shape (n_labels, n_features)."""
        (row,) = self.read_weights([key])
        return np.frombuffer(zlib.decompress(row["packed"]), "<f4").reshape(-1, n_features)


def database_path(target: str | Path) -> Path:
    """Find the results file of a run, given its folder, its file or its name in ``runs``."""
    path = Path(target)
    candidates = (path, path / FILE_NAME, Path("runs") / path / FILE_NAME)
    # A copy may have another name. The suffix distinguishes damaged results files from data files.
    found = next(
        (file for file in candidates if file.suffix == Path(FILE_NAME).suffix and file.is_file()), None
    )
    if found is None:
        raise RunError(
            f"expected a run folder, its {FILE_NAME} or its name in runs/, got {str(target)!r}. To start a run: "
            "labelsieve bench run tiny"
        )
    return found


def _no_results(path: Path) -> RunError:
    return RunError(f"{path}: no results yet. To start a run: labelsieve bench run tiny")


def now() -> str:
    """Return the current time as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def unpack(data: bytes | None, dtype: str) -> np.ndarray | None:
    """Convert stored bytes to an array."""
    return None if data is None else np.frombuffer(data, dtype=dtype)


def _pack(values: np.ndarray | None, dtype: str) -> bytes | None:
    """Convert an array to little-endian bytes."""
    return None if values is None else np.ascontiguousarray(values, dtype=dtype).tobytes()


def _storable(text: str | None) -> str | None:
    """Escape surrogates, which occur in file names in other encodings."""
    return None if text is None else text.encode(errors="backslashreplace").decode()


def _checksum(table: str, values: Sequence[Any]) -> str:
    digest = hashlib.sha256(table.encode())
    for value in values:
        part = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(f"{len(part)} ".encode())
        digest.update(part)
    return digest.hexdigest()


def _is_intact(table: str, row: Sequence[Any] | sqlite3.Row) -> bool:
    *values, checksum = row
    return bool(checksum == _checksum(table, values))


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Convert disk and SQLite errors to a `RunError`."""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write to {path.parent} ({error}). Choose another folder.") from None
    except sqlite3.DatabaseError as error:
        if str(getattr(error, "sqlite_errorname", "")).startswith(_SYSTEM_ERRORS):
            raise RunError(
                f"{path}: {error}. Finished cells are stored. Check free space and permissions and repeat the command."
            ) from None
        raise RunError(
            f"{path}: the file is damaged ({one_line(error)}). Restore a copy, or delete it and run again."
        ) from None


def _lock(path: Path) -> sqlite3.Connection:
    """Lock a results file until the connection is closed or this process ends."""
    # SQLite locks work on all systems.
    connection = sqlite3.connect(path.with_name(f"{path.name}.lock"), isolation_level=None, timeout=0)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" not in str(error):
            raise
        raise RunError(
            f"{path.parent}: another run is writing here. Wait for it, stop it, or choose another folder with --out."
        ) from None
    return connection
