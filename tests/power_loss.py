"""Replay the writes of a run up to each of them, as if the power had failed there.

``python tests/power_loss.py`` needs strace. It records the writes of a real run and replays every prefix, every prefix
with half of the next write, and prefixes of which a random part of the writes that were not synced is missing. No
acknowledged result may be lost, and no wrong one read.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import bench_runs as bench
from damage_results import DAMAGED
from labelsieve.bench import RunError
from labelsieve.bench.store import FILE_NAME, Store

_CALLS = ("pwrite64", "write", "ftruncate", "unlink", "fsync", "fdatasync", "rename")
_LINE = re.compile(r'(?:\d+ +)?(\w+)\((?:\d+<([^>]*)>(?:\(deleted\))?|"([^"]*)")(?:, (.*))?\) += (\d+)')
_ACKNOWLEDGED = "acknowledged"
# The lock and the shared memory say nothing after a restart.
_VOLATILE = ("-shm", ".lock", ".lock-journal")


def run_and_acknowledge(folder):
    """Run an experiment, and write a line to a file after each stored cell."""
    config = bench.make_project(folder, DAMAGED)
    runs = folder / "runs" / "small"
    runs.mkdir(parents=True)
    file = os.open(runs / _ACKNOWLEDGED, os.O_WRONLY | os.O_CREAT)
    record = Store.record

    def acknowledged(self, run, cell, *arguments, **options):
        record(self, run, cell, *arguments, **options)
        os.write(file, f"{cell.key}\n".encode())

    Store.record = acknowledged
    bench.here(config, code=3)


def record_writes(folder):
    """Run the experiment under strace; returns the operations on the files of its folder."""
    log = folder / "calls.txt"
    command = [
        "strace",
        "-f",
        "-y",
        "-xx",
        "-s",
        "100000000",
        "-o",
        str(log),
        "-e",
        f"trace={','.join(_CALLS)}",
    ]
    project = folder / "project"
    subprocess.run(
        [*command, sys.executable, __file__, "--record", str(project)], check=True, capture_output=True
    )
    return list(parse(log.read_text(), str(project / "runs" / "small")))


def parse(text, folder):
    """Yield (call, file name, content or size, offset) of the calls that concern files of a folder."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        call, *paths, arguments, result = found.groups()
        path = _unhex(next(filter(None, paths), "")).decode(errors="replace")
        name = os.path.basename(path)
        if os.path.dirname(path) != folder or name.endswith(_VOLATILE):
            continue
        words = (arguments or "").rsplit(", ", 2 if call == "pwrite64" else 1)
        if call in ("write", "pwrite64"):
            content = _unhex(words[0].strip('"'))[: int(result)]
            yield call, name, content, int(words[2]) if call == "pwrite64" else None
        else:
            yield call, name, int(words[0]) if call == "ftruncate" else None, None


def _unhex(text):
    return bytes.fromhex(text.replace("\\x", ""))


def apply(files, operation):
    """Apply an operation to the contents of files."""
    call, name, value, offset = operation
    content = files.setdefault(name, bytearray())
    if call in ("write", "pwrite64"):
        offset = len(content) if offset is None else offset
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(value)] = value
    elif call == "ftruncate":
        del content[value:]
        content.extend(bytes(value - len(content)))
    elif call == "unlink":
        del files[name]
    else:
        assert call in ("fsync", "fdatasync"), call


def states(operations, n_random, rng):
    """Yield the acknowledged keys and the files after a power loss, for every moment of a run."""
    for length in range(len(operations) + 1):
        done = operations[:length]
        keys = (
            b"".join(value for _, name, value, _ in done if name == _ACKNOWLEDGED and value).decode().split()
        )
        yield keys, replayed(done)
        if length < len(operations) and operations[length][0] in ("write", "pwrite64"):
            call, name, content, offset = operations[length]
            yield keys, replayed([*done, (call, name, content[: rng.randrange(len(content))], offset)])
        for _ in range(n_random):
            yield keys, replayed([operation for at, operation in enumerate(done) if is_kept(at, done, rng)])


def is_kept(at, done, rng):
    """Return True for synced writes, and at random for others."""
    call, name, *_ = done[at]
    is_synced = any(other[0] in ("fsync", "fdatasync") and other[1] == name for other in done[at:])
    return is_synced or call not in ("write", "pwrite64") or rng.random() < 0.5


def replayed(operations):
    files = {}
    for operation in operations:
        if operation[1] != _ACKNOWLEDGED:
            apply(files, operation)
    return files


def rows(contents):
    """Return the stored rows by table and key."""
    tables = {"rankings": contents.rankings, "judgements": contents.judgements}
    return {(name, key): tuple(row) for name, table in tables.items() for key, row in table.items()}


def check(folder, keys, files, truth):
    """Read the files as after a restart, for a report and for a resumed run."""
    outcomes = []
    for writer in (False, True):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        try:
            with Store(folder / FILE_NAME, writer=writer) as store:
                contents = store.read()
        except RunError as error:
            assert not keys, (writer, error)  # noqa: PT017 - also an outcome
            outcomes.append("nothing stored yet")
            continue
        found = rows(contents)
        assert found.items() <= truth.items(), "a wrong result"
        assert set(keys) <= set(contents.rankings), "a lost result"
        assert contents.n_damaged == 0
        outcomes.append("all acknowledged results, and no other")
    return outcomes


def main(n_random=3):
    rng = random.Random(0)
    outcomes = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        operations = record_writes(folder)
        with Store(folder / "project" / "runs" / "small" / FILE_NAME) as store:
            truth = rows(store.read())
        writes = Counter(call for call, name, *_ in operations if name != _ACKNOWLEDGED)
        assert writes["pwrite64"] > 20, writes
        n_states = 0
        for keys, files in states(operations, n_random, rng):
            outcomes.update(check(folder / "restarted", keys, files, truth))
            n_states += 1
    print(f"{dict(writes)}; {n_states} states: {dict(outcomes)}")
    return outcomes


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        run_and_acknowledge(Path(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:]))
