"""Checksums over everything a results file holds: what is read is what was written, or it is told.

A ranking carries the checksum of its row, a judgement that of its row and its scores, and of the ranking it was made
of. A table carries a seal: how many rows it has, and the sum of their checksums. A sum does not depend on the order and
is kept up to date cell by cell; it tells a row that is gone as well as one that changed. All reading goes through
`check`, on rows that were taken from the tables themselves, never from an index. Weights are large and rarely looked
at: the row of their ranking has their checksum, which is compared when they are used.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "CELLS",
    "TABLES",
    "Contents",
    "Seal",
    "basis",
    "broken_seals",
    "cell_digest",
    "check",
    "scores_by_key",
    "sealed_rows",
]

Rows = list[sqlite3.Row]

#: The two kinds of cells.
CELLS = ("rankings", "judgements")
#: Tables with a seal. Scores are covered by the checksums of their judgements, weights by those of their rankings.
TABLES = ("runs", "datasets", "plan", *CELLS)
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
    runs, datasets, plan, rankings, judgements, scores : list of sqlite3.Row
        In the order they were written. Cells that were altered are left out, and judgements that were made of
        another ranking than the one that is there.
    known : dict of str to str
        Key of a finished judgement that is as it was written, of a ranking that is not there -> what it was made of.
    altered : dict of str to list of str
        Table -> keys of the cells, or of scores without a cell, that are not as they were written.
    n_altered : int
        How many cells are not as they were written, or no longer there.
    """

    runs: Rows
    datasets: Rows
    plan: Rows
    rankings: Rows
    judgements: Rows
    scores: Rows
    known: dict[str, str]
    altered: dict[str, list[str]]
    n_altered: int

    def outcomes(self, pairs: Iterable[tuple[str, str]]) -> dict[str, bool]:
        """Key of every judgement that is settled -> whether it is done; a judgement fails with its ranking.

        Pairs are keys of a ranking and of a judgement of it.
        """
        failed = {row["key"] for row in self.rankings if row["error"] is not None}
        judged = {row["key"]: row["error"] is None for row in self.judgements}
        return {key: judged.get(key, False) for ranking, key in pairs if key in judged or ranking in failed}


def cell_digest(values: Sequence[Any], scores: Iterable[Any] = ()) -> str:
    """Checksum of all that is stored of a cell, whatever the order of the scores."""
    lines = [repr(tuple(values)), *sorted(repr(tuple(row)) for row in scores)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def basis(order: bytes | None, weights: str | None = None) -> str:
    """Checksum of what a judgement is made of: the order of the features and, if it uses them, the weights."""
    return hashlib.sha256((order or b"") + (weights or "").encode()).hexdigest()


def sealed_rows(table: str, rows: Iterable[sqlite3.Row]) -> Iterable[Sequence[Any]]:
    """Take what a seal covers; of a cell its name and checksum, which covers the rest."""
    # The last are those of the earlier formats.
    return ((row["key"], row["digest"]) for row in rows) if table in (*CELLS, "cells") else rows


def broken_seals(tables: Mapping[str, Rows], seals: Mapping[str, Seal]) -> list[str]:
    """Tables that are not as their seals say."""
    return [
        name
        for name, seal in seals.items()
        if name not in tables or Seal().changed(sealed_rows(name, tables[name])) != seal
    ]


def check(tables: Mapping[str, Rows], seals: Mapping[str, Seal]) -> Contents:
    """Compare rows with their checksums; raises ValueError for what cannot be told cell by cell.

    Parameters
    ----------
    tables : mapping of str to list of sqlite3.Row
        All rows of every table.
    seals : mapping of str to Seal
        Those of the file.
    """
    altered = {"rankings": _altered(tables["rankings"], {})}
    by_key = scores_by_key(tables["scores"])
    altered["judgements"] = _altered(tables["judgements"], by_key)
    orphans = by_key.keys() - {row["key"] for row in tables["judgements"]}
    n_altered = 0
    broken = broken_seals(tables, {name: seals.get(name, Seal(-1)) for name in TABLES})
    for name in CELLS:
        n_written = seals[name].n_rows if name in seals else None
        # A damaged one may be anything.
        n_lost = max(0, n_written - len(tables[name])) if isinstance(n_written, int) else 0
        n_orphans = len(orphans) if name == "judgements" else 0
        n_altered += len(altered[name]) + max(n_orphans, n_lost)
        if name in broken and (altered[name] or n_lost):
            broken.remove(name)  # the cells in question are known, or computed again
    if broken:
        raise ValueError(f"the checksum of {' and '.join(broken)} is another")
    altered["judgements"] += orphans
    rankings = [row for row in tables["rankings"] if row["key"] not in set(altered["rankings"])]
    bases = {row["key"]: (basis(row["ranking"]), basis(row["ranking"], row["weights"])) for row in rankings}
    intact = [row for row in tables["judgements"] if row["key"] not in set(altered["judgements"])]
    judgements = [row for row in intact if row["basis"] in bases.get(row["ranking"], ())]
    counting = {row["key"] for row in judgements}
    return Contents(
        **{name: tables[name] for name in ("runs", "datasets", "plan")},
        rankings=rankings,
        judgements=judgements,
        scores=[row for row in tables["scores"] if row["key"] in counting],
        known={
            row["key"]: row["basis"] for row in intact if row["ranking"] not in bases and row["error"] is None
        },
        altered=altered,
        n_altered=n_altered,
    )


def scores_by_key(scores: Iterable[Sequence[Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """Key of a cell -> its scores, without the key."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in scores:
        key, *values = row
        found.setdefault(key, []).append(tuple(values))
    return found


def _altered(cells: Rows, scores: Mapping[str, list[tuple[Any, ...]]]) -> list[str]:
    """Keys of the cells that are not as they were written."""
    return [
        values[0] for *values, digest in cells if digest != cell_digest(values, scores.get(values[0], ()))
    ]
