"""Interrupt, terminate and hang up commands at random moments: files are complete or missing, and the end is quiet.

``python tests/send_signals.py 200`` sends 200 signals.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from labelsieve.datasets import load_animals
from labelsieve.datasets.animals import ANIMALS_CSV

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_COMMON = ("animals.csv", "--labels", "tags")
#: Commands with the files that they write.
COMMANDS = {
    ("select", *_COMMON, "-k", "4", "-o", "r.csv", "--write-data", "c.csv"): ("r.csv", "c.csv"),
    ("select", "animals.parquet", "--labels", "tags", "-k", "4", "--write-data", "c.parquet"): ("c.parquet",),
    ("issues", *_COMMON, "-o", "i.csv"): ("i.csv",),
    ("datasets", "info", *_COMMON): (),
}


def start(folder, arguments):
    """Start a command in a folder with the table."""
    (folder / "animals.csv").write_bytes(ANIMALS_CSV.read_bytes())
    load_animals().frame.to_parquet(folder / "animals.parquet")
    return subprocess.Popen(
        [sys.executable, "-m", "labelsieve", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(folder, arguments, number, delay, expected):
    """Send a signal after a delay; returns the kind of outcome."""
    process = start(folder, arguments)
    time.sleep(delay)
    process.send_signal(number)
    err = process.communicate(timeout=120)[1]
    written = {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith("animals.")
    }
    assert written.items() <= expected.items(), sorted(written)
    if process.returncode == 0:
        assert written == expected
        return "finished before"
    if process.returncode == -number or "site.py" in err or "runpy" in err or not err:
        assert not written
        return "ended while Python started"
    assert process.returncode == 128 + number, (process.returncode, err)
    assert "Traceback" not in err, err
    assert err.splitlines()[-1].startswith("error: "), err
    return "one error and the right exit code"


def main(n_signals, seed=0):
    rng, outcomes = random.Random(seed), Counter()
    undisturbed = {}
    for arguments in COMMANDS:
        with tempfile.TemporaryDirectory() as name:
            begin, process = time.monotonic(), start(Path(name), arguments)
            assert process.wait() == 0, process.stderr.read()
            files = {file: Path(name, file).read_bytes() for file in COMMANDS[arguments]}
            undisturbed[arguments] = files, time.monotonic() - begin
            process.stderr.close()
    for _ in range(n_signals):
        arguments, number = rng.choice(list(COMMANDS)), rng.choice(SIGNALS)
        expected, seconds = undisturbed[arguments]
        with tempfile.TemporaryDirectory() as name:
            delay = rng.uniform(0, 1.1 * seconds)
            outcome = interrupt(Path(name), arguments, number, delay, expected)
        outcomes[f"{signal.Signals(number).name}: {outcome}"] += 1
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:4} {outcome}")


if __name__ == "__main__":
    os.environ["NO_COLOR"] = "1"
    main(int(sys.argv[1]))
