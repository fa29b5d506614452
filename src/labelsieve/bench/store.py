"""The results of a run: one SQLite file, one transaction per finished task, one writer at a time."""

from __future__ import annotations

import json
import shlex
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelsieve.bench import RunError, earlier_format
from labelsieve.bench.cells import CellResult, JudgementResult, Ranked, Task
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.plan import Cell
from labelsieve.bench.results_file import (
    damaged,
    exclusive,
    explained,
    identity_of,
    no_results,
    opened_at,
    repair_command,
)
from labelsieve.bench.seals import CELLS, TABLES, Contents, Seal, basis, cell_digest, check, sealed_rows

__all__ = ["Store", "now", "unpack"]

# "labe" in ASCII: a file that is some other program's database is not touched.
_APPLICATION_ID = 0x6C616265
_VERSION = 3
_SCHEMA = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT, command TEXT NOT NULL,
    configuration TEXT NOT NULL, environment TEXT NOT NULL
) STRICT;
CREATE TABLE datasets (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL) STRICT;
CREATE TABLE plan (
    position INTEGER PRIMARY KEY, ranking TEXT NOT NULL, key TEXT NOT NULL, dataset TEXT NOT NULL,
    noise TEXT NOT NULL, noise_rate REAL, seed INTEGER NOT NULL, fold INTEGER NOT NULL, method TEXT NOT NULL,
    role TEXT NOT NULL, draw INTEGER NOT NULL, judge TEXT NOT NULL, obstacle TEXT
) STRICT;
CREATE TABLE rankings (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (number), finished TEXT NOT NULL,
    description TEXT NOT NULL, params TEXT NOT NULL, error TEXT, traceback TEXT,
    fit_seconds REAL, seconds REAL NOT NULL, peak_mib REAL,
    n_iter INTEGER, converged INTEGER, ranking BLOB, objective BLOB, notes TEXT NOT NULL, weights TEXT,
    digest TEXT NOT NULL
) STRICT;
CREATE TABLE weights (key TEXT PRIMARY KEY, n_labels INTEGER NOT NULL, packed BLOB NOT NULL) STRICT;
CREATE TABLE judgements (
    key TEXT PRIMARY KEY, ranking TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs (number),
    finished TEXT NOT NULL, description TEXT NOT NULL, error TEXT, traceback TEXT, seconds REAL NOT NULL,
    notes TEXT NOT NULL, basis TEXT NOT NULL, digest TEXT NOT NULL
) STRICT;
CREATE TABLE scores (
    key TEXT NOT NULL REFERENCES judgements (key) ON DELETE CASCADE, size REAL, n_features INTEGER NOT NULL,
    metric TEXT NOT NULL, value REAL NOT NULL, UNIQUE (key, size, metric)
) STRICT;
CREATE TABLE seals (name TEXT NOT NULL, n_rows INTEGER NOT NULL, total TEXT NOT NULL) STRICT;
"""


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
        with explained(path):
            if writer:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = exclusive(path)
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
            with self._transaction():
                self._create()
        version = self._recognise(names)
        if writer and (problem := self._pragma("integrity_check(1)")) != "ok":
            raise sqlite3.DatabaseError(problem)
        if version != _VERSION:
            self._take_over(version, writer)
        if writer:
            self._identity = identity_of(self.path)

    def _recognise(self, names: set[str]) -> int:
        """Refuse a file that is none of ours, or no longer as we made it; returns its format."""
        if self._pragma("application_id") != _APPLICATION_ID:
            if "scores" in names and names & {"cells", "rankings"}:
                raise sqlite3.DatabaseError("its mark is another")
            raise RunError(f"{self.path}: not a results file of labelsieve; choose another folder.")
        version: int = self._pragma("user_version")
        if version not in (*earlier_format.FORMATS, _VERSION):
            raise RunError(
                f"{self.path}: written by another version of labelsieve (format {version}, this one reads "
                f"{earlier_format.FORMATS[0]} to {_VERSION}), or damaged; use that version, or another folder, or "
                f"save what can be read with: {repair_command(self.path)}"
            )
        if not _expected_statements(version).items() <= _statements(self._db).items():
            raise sqlite3.DatabaseError("its tables are others")
        return version

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _create(self) -> None:
        for statement in _SCHEMA.split(";\n"):
            self._db.execute(statement)
        self._db.executemany("INSERT INTO seals (name, n_rows, total) VALUES (?, 0, '')", zip(TABLES))
        self._reseal(*TABLES)
        self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def _take_over(self, version: int, writer: bool) -> None:
        """Turn a file of an earlier format into one of this, or for a reader a copy of it in memory."""
        with self._without_references(), self._transaction("IMMEDIATE" if writer else ""):
            tables = earlier_format.read_tables(self._db)
            seals = self._seals() if version == earlier_format.SEALED else None
            try:
                tables["cells"], n_altered = earlier_format.readable(tables, seals)
                found = earlier_format.convert(tables)
            except (ValueError, TypeError) as error:
                raise sqlite3.DatabaseError(error) from None
            if writer:
                for name in ("scores", "cells", "plan", "datasets", "runs", "seals"):
                    self._db.execute(f"DROP TABLE IF EXISTS {name}")
                self._convert(found, n_altered)
        if not writer:
            self._db.close()
            self._db = sqlite3.connect(":memory:", isolation_level=None)
            self._db.row_factory = sqlite3.Row
            self._convert(found, n_altered)

    def _convert(self, tables: Mapping[str, list[tuple[Any, ...]]], n_altered: int) -> None:
        self._create()
        self._fill((name, row) for name, rows in tables.items() for row in rows)
        # Their seal tells that there were more.
        self._db.execute("UPDATE seals SET n_rows = n_rows + ? WHERE name = 'rankings'", (n_altered,))

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
        with explained(path):
            lock = exclusive(path)
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
                judgement.key,
                cell.dataset.name,
                cell.noise.label,
                cell.noise.rate,
                cell.seed,
                cell.fold,
                cell.method.name,
                cell.method.role,
                cell.draw,
                judgement.judge.name,
                judgement.obstacle or None,
            )
            for cell in cells
            for judgement in cell.judgements
        )
        with explained(self.path), self._transaction():
            cursor = self._db.execute(
                # Above those of cells whose run was lost in a damaged file.
                "INSERT INTO runs (number, started, command, configuration, environment) "
                "SELECT 1 + MAX((SELECT IFNULL(MAX(number), 0) FROM runs), (SELECT IFNULL(MAX(run), 0) FROM rankings), "
                "(SELECT IFNULL(MAX(run), 0) FROM judgements)), ?, ?, ?, ?",
                (now(), _storable(command), json.dumps(configuration), json.dumps(environment)),
            )
            self._db.execute("DELETE FROM plan")
            self._db.execute("DELETE FROM datasets")
            self._db.executemany(
                "INSERT INTO plan (ranking, key, dataset, noise, noise_rate, seed, fold, method, role, draw, judge, "
                "obstacle) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        with explained(self.path), self._transaction():
            self._db.execute("UPDATE runs SET finished = ? WHERE number = ?", (now(), run))
            self._reseal("runs")
        self._require_in_place()

    def record(
        self, run: int, task: Task, params: dict[str, Any], result: CellResult, *, keep_weights: bool = True
    ) -> None:
        """Store what became of a task in one transaction; what was there of the same cells is replaced."""
        judgements = result.judgements
        has_ranking = task.ranked is not None or (task.again and result.error is not None)
        with explained(self.path), self._transaction():
            if not has_ranking:
                self._record_ranking(run, task.cell, params, result, keep_weights)
            elif result.error is not None:
                # Nobody knows which of them it was.
                (order,) = self._db.execute(
                    "SELECT ranking FROM rankings WHERE key = ?", (task.key,)
                ).fetchone()
                failed = JudgementResult(basis(order), result.error, result.traceback, result.seconds)
                judgements = {judgement.key: failed for judgement in task.at_stake}
            names = {judgement.key: judgement.judge.name for judgement in task.cell.judgements}
            for key, judged in judgements.items():
                values = (
                    *(key, task.key, run, now(), f"{task}, {names[key]}"),
                    *(_storable(judged.error), _storable(judged.traceback), judged.seconds),
                    *(json.dumps(judged.notes), judged.basis),
                )
                self._replace("judgements", values, judged.scores)
        self._require_in_place()

    def _record_ranking(
        self, run: int, cell: Cell, params: dict[str, Any], result: CellResult, keep_weights: bool
    ) -> None:
        weights = result.ranked.weights
        values = (
            cell.key,
            run,
            now(),
            str(cell),
            json.dumps(params),
            _storable(result.error),
            _storable(result.traceback),
            result.fit_seconds,
            result.seconds - sum(judged.seconds for judged in result.judgements.values()),
            result.peak_mib,
            result.n_iter,
            None if result.converged is None else int(result.converged),
            result.ranked.order_bytes,
            None if result.objective is None else pack(result.objective, "<f8"),
            json.dumps(result.notes),
            result.ranked.weights_digest,
        )
        self._replace("rankings", values)
        self._db.execute("DELETE FROM weights WHERE key = ?", (cell.key,))
        if weights is not None and keep_weights:
            self._insert("weights", (cell.key, len(weights), zlib.compress(pack(weights, "<f4"), 1)))

    def _replace(self, table: str, values: Sequence[Any], scores: Sequence[Any] = ()) -> None:
        """Write a cell in place of what was there under its name."""
        key, digest = values[0], cell_digest(values, scores)
        replaced = self._db.execute(f"SELECT key, digest FROM {table} WHERE key = ?", (key,)).fetchall()
        self._db.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
        self._insert(table, (*values, digest))
        for row in scores:
            self._insert("scores", (key, *row))
        self._set_seal(table, self._seals()[table].changed([(key, digest)], replaced))

    def forget(self, altered: Mapping[str, Iterable[str]]) -> None:
        """Remove cells of some tables so that they are computed again, and what belongs to no cell."""
        with explained(self.path), self._transaction():
            for table, keys in altered.items():
                self._db.executemany(f"DELETE FROM {table} WHERE key = ?", ((key,) for key in keys))
            self._db.execute("DELETE FROM scores WHERE key NOT IN (SELECT key FROM judgements)")
            self._db.execute("DELETE FROM weights WHERE key NOT IN (SELECT key FROM rankings)")
            self._reseal(*CELLS)

    def fill(self, rows: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """Write rows of tables into a file that has none yet, in one transaction."""
        with explained(self.path), self._without_references(), self._transaction():
            self._fill(rows)

    def _fill(self, rows: Iterable[tuple[str, Sequence[Any]]]) -> None:
        for table, row in rows:
            self._insert(table, row)
        self._reseal(*TABLES)

    def adopt(self, tables: Mapping[str, list[tuple[Any, ...]]]) -> int:
        """Take rows of another file over; of the cells, those with all their numbers.

        Returns how many judgements there are.
        """
        with explained(self.path), self._without_references(), self._transaction():
            for name, rows in tables.items():
                for row in rows:
                    with suppress(sqlite3.Error):  # there twice, or no longer of its type or length
                        self._insert(name, row)
            self._reseal(*TABLES)
        self.forget(self.read().altered)
        return len(self.read().judgements)

    def rename(self, keys: Mapping[str, str]) -> None:
        """Give cells other names, where such cells are, and there is none of that name."""
        with explained(self.path), self._without_references(), self._transaction():
            for table in CELLS:
                for row in self._rows(table):
                    values = {**dict(row), "key": keys.get(row["key"], row["key"])}
                    if table == "judgements":  # it follows its ranking, also if it keeps its own name
                        values["ranking"] = keys.get(row["ranking"], row["ranking"])
                    is_taken = values["key"] != row["key"] and self._has(table, values["key"])
                    if is_taken or values == dict(row):
                        continue
                    scores = self._db.execute("SELECT * FROM scores WHERE key = ?", (row["key"],)).fetchall()
                    self._db.execute(f"DELETE FROM {table} WHERE key = ?", (row["key"],))
                    if table == "judgements":
                        self._db.execute(
                            "UPDATE scores SET key = ? WHERE key = ?", (values["key"], row["key"])
                        )
                    *content, _ = values.values()
                    rest = [tuple(score)[1:] for score in scores] if table == "judgements" else []
                    self._insert(table, (*content, cell_digest(content, rest)))
            for row in self._rows("plan"):
                names = (keys.get(row["ranking"], row["ranking"]), keys.get(row["key"], row["key"]))
                self._db.execute(
                    "UPDATE plan SET ranking = ?, key = ? WHERE position = ?", (*names, row["position"])
                )
            self._reseal(*TABLES)

    def _has(self, table: str, key: str) -> bool:
        return self._db.execute(f"SELECT 1 FROM {table} WHERE key = ?", (key,)).fetchone() is not None

    def weighted(self) -> set[str]:
        """Keys of the rankings whose weights are there."""
        with explained(self.path):
            return {key for (key,) in self._db.execute("SELECT key FROM weights")}

    def borrow(self, run: int, lender: Store, rankings: Iterable[sqlite3.Row]) -> None:
        """Copy rankings of another file, with their weights."""
        with explained(self.path), self._transaction():
            for row in rankings:
                *values, _ = {**dict(row), "run": run}.values()
                self._replace("rankings", values)
                self._db.execute("DELETE FROM weights WHERE key = ?", (row["key"],))
                weights = lender.stored_weights(row)
                if weights is not None:
                    self._insert("weights", weights)

    def weights(self, row: sqlite3.Row) -> np.ndarray | None:
        """Weights of a ranking; None where there are none, or not as they were written."""
        if row["weights"] is None:
            return None
        with explained(self.path):
            found = self._db.execute(
                "SELECT n_labels, packed FROM weights WHERE key = ?", (row["key"],)
            ).fetchone()
        with suppress(zlib.error, ValueError, TypeError):
            flat = unpack(zlib.decompress(found["packed"]), "<f4")
            assert flat is not None
            ranked = Ranked(weights=flat.reshape(found["n_labels"], -1))
            return ranked.weights if ranked.weights_digest == row["weights"] else None
        return None

    def is_as_written(self) -> bool:
        """Whether every cell is, with its weights."""
        found, weighted = self.read(), self.weighted()
        has_lost = any(row["key"] in weighted and self.weights(row) is None for row in found.rankings)
        return not found.n_altered and not has_lost

    def stored_weights(self, row: sqlite3.Row) -> tuple[Any, ...] | None:
        """Weights of a ranking as they are stored; None as above."""
        if self.weights(row) is None:
            return None
        return tuple(self._db.execute("SELECT * FROM weights WHERE key = ?", (row["key"],)).fetchone())

    def _insert(self, table: str, row: Sequence[Any]) -> None:
        self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def _reseal(self, *tables: str) -> None:
        for name in tables:
            self._set_seal(name, Seal().changed(sealed_rows(name, self._rows(name))))

    def _set_seal(self, table: str, seal: Seal) -> None:
        self._db.execute("UPDATE seals SET n_rows = ?, total = ? WHERE name = ?", (*seal, table))

    def _require_in_place(self) -> None:
        """Notice that the results go into a file that is no longer where everybody looks for it."""
        if self._identity is None or identity_of(self.path) == self._identity:
            return
        place = opened_at(self._identity)
        if place is not None:
            elsewhere = f", or go on with --out {shlex.quote(str(place.parent))}"
            raise RunError(
                f"{self.path}: the file was moved to {place} while the run went on; the finished cells are there. "
                f"Move it back{elsewhere if place.name == self.path.name else ', then run the same command again.'}"
            )
        if identity_of(self.path) is not None:
            raise RunError(
                f"{self.path}: another file was put in the place of this one while the run went on, and the finished "
                "cells are gone with it; restore it if you can, or choose another folder with --out."
            )
        raise RunError(
            f"{self.path}: the file was deleted while the run went on, and the finished cells with it; restore it "
            "if you can, then run the same command again."
        )

    # -- reading

    def read(self) -> Contents:
        """Take everything that is as it was written; whatever else is wrong with the file is told."""
        with explained(self.path):
            writing = self._db.in_transaction
            if not writing:
                self._db.execute("BEGIN")  # one moment of the file, also while a run writes to it
            try:
                tables = {name: self._rows(name) for name in (*TABLES, "scores")}
                seals = self._seals()
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
    def _without_references(self) -> Iterator[None]:
        """Take cells of unknown runs: a file that was repaired may have lost its runs."""
        self._db.execute("PRAGMA foreign_keys = OFF")
        try:
            yield
        finally:
            self._db.execute("PRAGMA foreign_keys = ON")

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        self._db.execute(f"BEGIN {kind}")
        try:
            yield
        except BaseException:
            # A full disk may have rolled back already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def pack(values: np.ndarray, dtype: str) -> bytes:
    """Array to bytes, little-endian whatever the machine."""
    return np.ascontiguousarray(values, dtype=dtype).tobytes()


def unpack(data: bytes | None, dtype: str) -> np.ndarray | None:
    """Bytes to array."""
    return None if data is None else np.frombuffer(data, dtype=dtype)


@lru_cache(maxsize=3)
def _expected_statements(version: int) -> dict[str, str | None]:
    with closing(sqlite3.connect(":memory:")) as database:
        earlier = earlier_format.SCHEMA + (earlier_format.SEALS if version == earlier_format.SEALED else "")
        database.executescript(_SCHEMA if version == _VERSION else earlier)
        return _statements(database)


def _statements(database: sqlite3.Connection) -> dict[str, str | None]:
    """Read how the tables of a database were made."""
    return dict(map(tuple, database.execute("SELECT name, sql FROM sqlite_master")))


def _storable(text: str | None) -> str | None:
    """Write out what is no text: half a letter, as in the name of a file in another encoding."""
    return None if text is None else text.encode(errors="backslashreplace").decode()


def now() -> str:
    """The time, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
