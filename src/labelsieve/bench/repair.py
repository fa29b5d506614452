"""Save what can still be read of a damaged results file."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelsieve.bench import RunError, earlier_format
from labelsieve.bench.results import read_results
from labelsieve.bench.results_file import JOURNALS, beside
from labelsieve.bench.seals import TABLES, Seal, cell_digest, scores_by_key
from labelsieve.bench.status import read_status
from labelsieve.bench.store import Store

__all__ = ["Repaired", "repair"]

_SMALLEST_ROW = 16  # bytes
# The latter when SQLite shows in its message what it cannot read.
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)


@dataclass(frozen=True)
class Repaired:
    """What became of a damaged file."""

    path: Path
    damaged: Path
    n_cells: int


def repair(path: Path) -> Repaired | None:
    """Copy every cell that is readable and unaltered into a new file that takes the place of the old one.

    Cells that are lost count as missing: the next run computes them again. A file with nothing wrong stays as it is,
    and None is returned.
    """
    with Store.locked(path), beside(path) as fresh:
        if _is_sound(path):
            return None
        tables = _intact(path)
        if not tables["rankings"]:
            raise RunError(f"{path}: no cell can be read; move the file away and run again.")
        with Store(fresh, writer=True) as store:
            n_cells = store.adopt(tables)
        damaged = next(
            candidate
            for number in itertools.count(1)
            if not (candidate := path.with_name(f"{path.name}.damaged-{number}")).exists()
        )
        journals = _files(path)[1:]
        for file in (path, *journals):
            shutil.copy2(file, damaged.with_name(file.name.replace(path.name, damaged.name, 1)))
        for file in journals:  # they must not meet the new file
            file.unlink()
        os.replace(fresh, path)
    return Repaired(path, damaged, n_cells)


def _is_sound(path: Path) -> bool:
    """Whether everything in a file can be read, means something and is as it was written."""
    try:
        with closing(_open(path)) as database:
            if database.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                return False
        with Store(path) as store:
            is_written = store.is_as_written()
        read_results(path)
        read_status(path)
    except Exception:  # whatever it is: saving what can be read does no harm
        return False
    return is_written


def _intact(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Read every table; one without a checksum per row is taken as a whole or not at all."""
    is_earlier = bool(_readable(path, "cells")) and not _readable(path, "rankings")
    names = earlier_format.TABLES if is_earlier else (*TABLES, "scores", "weights")
    tables = {name: _readable(path, name) for name in names}
    if is_earlier and not _is_sealed(path):
        tables["runs"] = [row for row in tables["runs"] if all(map(_is_json, row[-2:]))]
        tables["datasets"] = [row for row in tables["datasets"] if _is_json(row[-1])]
    else:
        seals = {name: Seal(*seal) for name, *seal in _readable(path, "seals")}
        for name in ("runs", "datasets", "plan"):
            if Seal().changed(tables[name]) != seals.get(name):
                tables[name] = []
    if not is_earlier:
        return tables
    scores = scores_by_key(tables["scores"])
    tables["cells"] = [
        row for row in tables["cells"] if row[-1] == cell_digest(row[:-1], scores.get(row[0], ()))
    ]
    return earlier_format.convert(tables)


def _is_json(text: Any) -> bool:
    try:
        json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _is_sealed(path: Path) -> bool:
    with closing(_open(path)) as database, suppress(*_UNREADABLE):
        return bool(database.execute("PRAGMA user_version").fetchone() != (earlier_format.UNSEALED,))
    return True


def _files(path: Path) -> list[Path]:
    """List a database and its journals."""
    files = [path.with_name(path.name + suffix) for suffix in ("", *JOURNALS)]
    return [file for file in files if file.exists()]


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _readable(path: Path, table: str) -> list[tuple[Any, ...]]:
    """Read the rows of a table one by one, past those that cannot be read."""
    with closing(_open(path)) as database:
        # Otherwise SQLite reads nothing of a file that is shorter than it was.
        database.execute("PRAGMA writable_schema = ON")
        # No row is smaller; the damaged number of a row may be anything.
        last = sum(file.stat().st_size for file in _files(path)) // _SMALLEST_ROW
        with suppress(*_UNREADABLE):
            last = min(last, database.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()[0] or 0)
        rows = []
        for rowid in range(1, last + 1):
            with suppress(*_UNREADABLE):
                rows += database.execute(f"SELECT * FROM {table} WHERE rowid = ?", (rowid,)).fetchall()
        return rows
