"""Damage copies of a real results file and count what reading them says.

``python tests/damage_results.py 2000 500 500`` flips 2000 single bits, overwrites 500 pages and cuts 500 files.
"""

import re
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import asdict, astuple, replace
from pathlib import Path

import numpy as np

import bench_runs as bench
from labelsieve.bench import RunError
from labelsieve.bench.results import read_results
from labelsieve.bench.seals import TABLES, Seal, cell_digest, sealed_rows
from labelsieve.bench.status import read_status

#: An experiment with cells that are done and cells that failed.
DAMAGED = """
folds = 4
datasets = [{ name = "small", path = "small.csv", labels = "label_*" }]
methods = ["own_methods:Slow", "own_methods:Broken", "mifs", { method = "rfs", params = { max_iter = 1 } }]
references = ["no-features", "all-features"]
[sizes]
percent = [20, 60]
"""


def make_results(folder):
    """Run an experiment; returns its results file."""
    config = bench.make_project(folder, DAMAGED)
    bench.here(config, code=3)
    return folder / "runs" / "small" / "results.sqlite"


def _plain(value):
    """Nested plain values, arrays to the last bit."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    return value.hex() if isinstance(value, float) else value


def forge(path, statement, *values):
    """Change a file and all its checksums, as somebody might who means harm."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)
        database.row_factory = sqlite3.Row
        scores = database.execute("SELECT * FROM scores").fetchall()
        for name in ("rankings", "judgements"):
            for *row, _ in database.execute(f"SELECT * FROM {name}").fetchall():
                own = [tuple(score)[1:] for score in scores if score["key"] == row[0]]
                digest = cell_digest(row, own if name == "judgements" else ())
                database.execute(f"UPDATE {name} SET digest = ? WHERE key = ?", (digest, row[0]))
        for name in TABLES:
            table = database.execute(f"SELECT * FROM {name}").fetchall()
            seal = Seal().changed(sealed_rows(name, table))
            database.execute("UPDATE seals SET n_rows = ?, total = ? WHERE name = ?", (*seal, name))


class Truth:
    """What an undamaged file says, and the verdict on a damaged one."""

    def __init__(self, path):
        self._results, self._status = read_results(path), read_status(path)
        self._cells = {cell.key: repr(_plain(asdict(cell))) for cell in self._results.cells}
        self._scores = Counter(self._score(self._results, score) for score in self._results.scores)
        self._judgements = self._judged(self._results)

    @classmethod
    def _judged(cls, results):
        return Counter(cls._score(results, astuple(judgement)) for judgement in results.judgements)

    @staticmethod
    def _score(results, score):
        place, *rest = score
        return repr((results.cells[place].key, *_plain(rest)))

    def verdict(self, path):
        """One of: equal, altered (said so, and left the cells out), damaged (names the repair), refused, silent."""
        verdicts = {self._ask(read_results, self._judge_results, path)}
        verdicts.add(self._ask(read_status, self._judge_status, path))
        return next(name for name in ("silent", "refused", "damaged", "altered", "equal") if name in verdicts)

    def _ask(self, read, judge, path):
        try:
            return judge(read(path))
        except RunError as error:
            return "damaged" if "labelsieve bench repair" in str(error) else "refused"

    def _judge_results(self, found):
        cells = {cell.key: repr(_plain(asdict(cell))) for cell in found.cells}
        scores = Counter(self._score(found, score) for score in found.scores)
        rest = [
            _plain(asdict(replace(results, cells=(), judgements=(), scores=(), n_altered=0)))
            for results in (found, self._results)
        ]
        if found.n_altered:  # how many each run computed follows from the cells
            for entry in (run for results in rest for run in results["runs"]):
                entry.pop("n_computed")
        if repr(rest[0]) != repr(rest[1]):
            return "silent"
        judged = self._judged(found)
        if (cells, scores, judged) == (self._cells, self._scores, self._judgements):
            return "altered" if found.n_altered else "equal"
        intact = (
            cells.items() <= self._cells.items() and scores <= self._scores and judged <= self._judgements
        )
        return "altered" if found.n_altered and intact else "silent"

    def _judge_status(self, found):
        told = any("stored cells were altered" in remark for remark in found.remarks)
        if repr(replace(found, path="")) == repr(replace(self._status, path="")):
            return "equal"
        intact = {row.name: row.planned for row in found.datasets} == {
            row.name: row.planned for row in self._status.datasets
        } and set(found.failures) <= set(self._status.failures)
        return "altered" if told and intact else "silent"


# -- where things are in the file


def _varint(data, at):
    value = 0
    for length in range(8):
        value = value << 7 | data[at + length] & 0x7F
        if data[at + length] < 0x80:
            return value, at + length + 1
    return value << 8 | data[at + 8], at + 9


def _size(kind):
    return (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind] if kind < 12 else (kind - 12) // 2


def _leaves(data, page_size, page, leaf, interior):
    """Leaves of a tree: where they begin, and where their header is."""
    begin = (page - 1) * page_size
    header = begin + (100 if page == 1 else 0)
    kind, n_cells = data[header], int.from_bytes(data[header + 3 : header + 5])
    if kind == leaf:
        yield begin, header
        return
    assert kind == interior
    pointers = [
        begin + int.from_bytes(data[at : at + 2]) for at in range(header + 12, header + 12 + 2 * n_cells, 2)
    ]
    for at in (*pointers, header + 8):
        yield from _leaves(data, page_size, int.from_bytes(data[at : at + 4]), leaf, interior)


def places(path):
    """Name of a region -> offsets of bytes in it: every column of every table, headers, trees, indexes."""
    data = path.read_bytes()
    page_size = int.from_bytes(data[16:18])
    with closing(sqlite3.connect(path)) as database:
        roots = database.execute("SELECT type, name, rootpage FROM sqlite_master").fetchall()
        columns = {
            name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
            for kind, name, _ in roots
            if kind == "table"
        }
    found = {f"file header {at}": [at] for at in range(100)}
    roots.append(("table", "sqlite_master", 1))
    columns["sqlite_master"] = ["type", "name", "tbl_name", "rootpage", "sql"]
    for kind, name, root in roots:
        begin = (root - 1) * page_size + (100 if root == 1 else 0)
        for at in range(12):
            found[f"{name}: header of its first page {at}"] = [begin + at]
        leaves = list(_leaves(data, page_size, root, *((13, 5) if kind == "table" else (10, 2))))
        for begin, header in leaves:
            n_cells = int.from_bytes(data[header + 3 : header + 5])
            pointers = range(header + 8, header + 8 + 2 * n_cells, 2)
            found.setdefault(f"{name}: pointers", []).extend(pointers)
            for pointer in pointers:
                at = begin + int.from_bytes(data[pointer : pointer + 2])
                found.setdefault(f"{name}: sizes", []).append(at)
                if kind != "table":
                    found.setdefault(f"{name}: content", []).extend(range(at + 4, at + 12))
                    continue
                _, at = _varint(data, at)
                _, start = _varint(data, at)
                length, at = _varint(data, start)
                value = start + length
                for column in columns[name]:
                    found.setdefault(f"{name}.{column}: type", []).append(at)
                    serial, at = _varint(data, at)
                    if _size(serial):
                        last = min(value + _size(serial), begin + page_size) - 1
                        found.setdefault(f"{name}.{column}: value", []).extend(
                            {value, (value + last) // 2, last}
                        )
                    value += _size(serial)
    return found


# -- damage


def flip(data, place, bit):
    data[place] ^= 1 << bit


def overwrite(data, rng):
    """Fill a page with noise, zeros or another page."""
    page_size = int.from_bytes(data[16:18])
    page, other = (page_size * int(rng.integers(len(data) // page_size)) for _ in range(2))
    noise = (rng.bytes(page_size), bytes(page_size), data[other : other + page_size])
    data[page : page + page_size] = noise[int(rng.integers(3))]


def cut(data, rng):
    del data[int(rng.integers(len(data))) :]


def survey(path, folder, damages):
    """Count the verdicts on copies of a file, each damaged in one of the given ways."""
    truth, pristine = Truth(path), path.read_bytes()
    copy = folder / path.name
    counts, odd = Counter(), []
    for name, damage in damages:
        for journal in folder.glob(f"{path.name}-*"):
            journal.unlink()
        data = bytearray(pristine)
        damage(data)
        copy.write_bytes(data)
        try:
            verdict = truth.verdict(copy) if bytes(data) != pristine else "equal"
        except Exception as error:
            verdict = f"crash {type(error).__name__}: {error}"
        counts[re.match(r"\w+", verdict)[0]] += 1
        if verdict.startswith(("crash", "silent", "refused")):
            odd.append((name, verdict))
    return counts, odd


def main(n_flips, n_pages, n_cuts):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        path = make_results(folder / "project")
        rng = np.random.default_rng(0)
        size = path.stat().st_size
        flips = [
            (f"bit {bit} of byte {place}", lambda data, place=place, bit=bit: flip(data, place, bit))
            for place, bit in zip(
                rng.integers(size, size=n_flips), rng.integers(8, size=n_flips), strict=True
            )
        ]
        kinds = {
            "single bits flipped": flips,
            "pages overwritten": [(f"page {n}", lambda data: overwrite(data, rng)) for n in range(n_pages)],
            "files cut": [(f"cut {n}", lambda data: cut(data, rng)) for n in range(n_cuts)],
        }
        print(f"{size} bytes, {size // 4096} pages of 4096")
        bad = 0
        for kind, damages in kinds.items():
            shutil.rmtree(folder / "copy", ignore_errors=True)
            (folder / "copy").mkdir()
            counts, odd = survey(path, folder / "copy", damages)
            print(f"{kind}: {dict(sorted(counts.items()))}")
            for name, verdict in odd[:20]:
                print(f"  {name}: {verdict}")
            bad += counts["silent"] + counts["crash"]
    return bad


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
