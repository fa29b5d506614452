"""Checksums over everything a results file holds: what is read is what was written, or it is told.

A cell carries the checksum of its row and its scores. A table carries a seal: how many rows it has, and the sum of
their checksums. A sum does not depend on the order and is kept up to date cell by cell; it tells a row that is
gone as well as one that changed. All reading goes through `check`, on rows that were taken from the tables
themselves, never from an index.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["TABLES", "Contents", "Seal", "cell_digest", "check", "sealed_rows"]

Rows = list[sqlite3.Row]

#: Tables with a seal. Scores are covered by the checksums of their cells.
TABLES = ("runs", "datasets", "plan", "cells")
_MODULUS = 2**256


class Seal(NamedTuple):
    """How many rows there are, and the sum of their checksums."""

    n_rows: int = 0
    total: str = f"{0:064x}"

    def changed(self, added: Iterable[Sequence[Any]], removed: Iterable[Sequence[Any]] = ()) -> Seal:
        """Seal of the rows after some came and some went."""
        n_rows, total = self.n_rows, int(self.total, 16)
        for sign, rows in ((1, added), (-1, removed)):
            for row in rows:
                n_rows += sign
                total += sign * int(hashlib.sha256(repr(tuple(row)).encode()).hexdigest(), 16)
        return Seal(n_rows, f"{total % _MODULUS:064x}")


@dataclass(frozen=True)
class Contents:
    """The rows of a results file that are as they were written.

    Attributes
    ----------
    runs, datasets, plan, cells, scores : list of sqlite3.Row
        In the order they were written; cells that were altered are left out, and their scores.
    altered : tuple of str
        Keys of the cells, or of scores without a cell, that are not as they were written.
    n_altered : int
        How many cells are not as they were written, or no longer there.
    """

    runs: Rows
    datasets: Rows
    plan: Rows
    cells: Rows
    scores: Rows
    altered: tuple[str, ...]
    n_altered: int

    def outcomes(self) -> dict[str, bool]:
        """Key of every stored cell -> whether it is done, not failed."""
        return {row["key"]: row["error"] is None for row in self.cells}


def cell_digest(values: Sequence[Any], scores: Iterable[Any]) -> str:
    """Checksum of all that is stored of a cell, whatever the order of the scores."""
    lines = [repr(tuple(values)), *sorted(repr(tuple(row)) for row in scores)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def sealed_rows(table: str, rows: Iterable[sqlite3.Row]) -> Iterable[Sequence[Any]]:
    """Take what a seal covers; of a cell its name and checksum, which covers the rest."""
    return ((row["key"], row["digest"]) for row in rows) if table == "cells" else rows


def check(tables: Mapping[str, Rows], seals: Mapping[str, Seal] | None) -> Contents:
    """Compare rows with their checksums; raises ValueError for what cannot be told cell by cell.

    Parameters
    ----------
    tables : mapping of str to list of sqlite3.Row
        All rows of every table.
    seals : mapping of str to Seal or None
        Those of the file; None if it is of the format that had none.
    """
    altered, orphans = _altered(tables["cells"], tables["scores"])
    n_lost = 0
    if seals is not None:
        broken = [
            name for name in TABLES if Seal().changed(sealed_rows(name, tables[name])) != seals.get(name)
        ]
        n_written = seals["cells"].n_rows if "cells" in seals else None
        if isinstance(n_written, int):  # a damaged one may be anything
            n_lost = max(0, n_written - len(tables["cells"]))
        if "cells" in broken and (altered or n_lost):
            broken.remove("cells")  # the cells in question are known, or computed again
        if broken:
            raise ValueError(f"the checksum of {' and '.join(broken)} is another")
    bad = {*altered, *orphans}
    return Contents(
        **{name: tables[name] for name in ("runs", "datasets", "plan")},
        cells=[row for row in tables["cells"] if row["key"] not in bad],
        scores=[row for row in tables["scores"] if row["key"] not in bad],
        altered=(*altered, *orphans),
        n_altered=len(altered) + max(len(orphans), n_lost),
    )


def _altered(cells: Rows, scores: Rows) -> tuple[list[str], list[str]]:
    """Keys of the cells that are not as they were written, and of scores that belong to none."""
    rest: dict[str, list[tuple[Any, ...]]] = {}
    for row in scores:
        key, *values = row
        rest.setdefault(key, []).append(tuple(values))
    altered = []
    for *values, digest in cells:
        if digest != cell_digest(values, rest.pop(values[0], [])):
            altered.append(values[0])
    return altered, list(rest)
