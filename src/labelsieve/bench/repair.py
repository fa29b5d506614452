"""Save what can still be read of a damaged results file."""

from __future__ import annotations

import itertools
import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelsieve.bench import RunError
from labelsieve.bench.store import Store, lock_path

__all__ = ["Repaired", "repair"]

_TABLES = ("runs", "datasets", "plan", "cells", "scores")


@dataclass(frozen=True)
class Repaired:
    """What became of a damaged file."""

    path: Path
    damaged: Path
    n_cells: int


def repair(path: Path) -> Repaired:
    """Copy every cell that is readable and unaltered into a new file that takes the place of the old one.

    Cells that are lost count as missing: the next run computes them again.
    """
    with Store.locked(path):
        fresh = path.with_name(f"{path.name}.new")
        fresh.unlink(missing_ok=True)
        try:
            with Store(fresh, writer=True) as store:
                n_cells = store.adopt({name: _readable(path, name) for name in _TABLES})
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        finally:
            lock_path(fresh).unlink(missing_ok=True)
        damaged = next(
            candidate
            for number in itertools.count(1)
            if not (candidate := path.with_name(f"{path.name}.damaged-{number}")).exists()
        )
        os.replace(path, damaged)
        for suffix in ("-wal", "-shm"):  # they belong to the damaged file and must not meet the new one
            journal = path.with_name(path.name + suffix)
            if journal.exists():
                os.replace(journal, damaged.with_name(damaged.name + suffix))
        os.replace(fresh, path)
    return Repaired(path, damaged, n_cells)


def _readable(path: Path, table: str) -> list[tuple[Any, ...]]:
    """Read the rows of a table one by one, past those that cannot be read."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        try:
            last = database.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()[0] or 0
        except sqlite3.DatabaseError as error:
            raise RunError(f"{path}: nothing can be read ({error}); move it away and run again.") from None
        rows = []
        for rowid in range(1, last + 1):
            with suppress(sqlite3.DatabaseError):
                rows += database.execute(f"SELECT * FROM {table} WHERE rowid = ?", (rowid,)).fetchall()
        return rows
