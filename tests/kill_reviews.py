"""Kill a review again and again, and check that no acknowledged verdict is lost.

``python tests/kill_reviews.py 200`` spreads 200 kill -9 over a review.
"""

import csv
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "review_app"))
import review_tables

from labelsieve.inspection.review import read_review
from labelsieve.io import read

_VERDICTS = ("right", "wrong", "unsure")


def start(table, *arguments, quiet=True):
    """Start the command in a process; return it and the address of the page."""
    command = [sys.executable, "-m", "labelsieve", "review", str(table), "--labels", "tags", *arguments]
    command += ["-q"] if quiet else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:"), process.communicate()[1]
    return process, address


def post(address, action, **body):
    """Send a request as the page does, and return the state."""
    request = urllib.request.Request(
        address + action, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def verdicts_in(table):
    """Return the verdicts in the review file by key."""
    review = read_review(table.with_name("things.review.csv"), read(table, "tags"))
    words = {1: "right", 0: "wrong", 2: "unsure"}
    return {
        f"{row}-{label}": words[int(answer)]
        for row, label, answer in zip(review.rows, review.labels, review.answers, strict=True)
        if answer >= 0
    }


def kill_and_resume(folder, n_kills, seed=0):
    """Review, kill -9 at random moments, resume; return the number of acknowledged verdicts."""
    rng = random.Random(seed)
    table, _ = review_tables.make_table(folder, n_rows=400)
    known, missing, draw = {}, set(), None
    for number in range(n_kills):
        process, address = start(table)
        state = post(address, "view")
        counts = state["counts"]
        assert counts["wrong"] == sum(known[key] == "wrong" for key in known if key not in missing)
        # The kill comes while requests are under way. One verdict may be saved without an answer.
        deadline = time.monotonic() + rng.uniform(0.0, 0.5)
        killer = subprocess.Popen([sys.executable, "-c", _KILLER, str(process.pid), str(deadline)])
        asked = None
        try:
            while True:
                queue = rng.choice(["draw", "suspicious", "missing"])
                card = post(address, "view", queue=queue)["card"]
                if card is None:
                    continue
                missing |= {card["key"]} if card["kind"] == "missing" else set()
                verdict = rng.choice(_VERDICTS)
                asked = card["key"], verdict
                state = post(address, "verdict", cards=[[card["key"], ""]], verdict=verdict)
                known[card["key"]] = verdict
                asked = None
                if rng.random() < 0.2:
                    asked = card["key"], None
                    post(address, "undo", last=state["last"]["number"])
                    del known[card["key"]]
                    asked = None
        except (OSError, HTTPException):  # the process is gone
            pass
        killer.wait()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        assert process.returncode == -9
        found = verdicts_in(table)
        if asked is not None and found.get(asked[0]) == asked[1]:
            known.pop(asked[0], None)
            known.update({asked[0]: asked[1]} if asked[1] is not None else {})
        assert found == known, f"kill {number}"
        with open(table.with_name("things.review.csv"), newline="") as file:
            lines = [(row["sample"], row["label"]) for row in csv.DictReader(file) if row["draw"]][:50]
        draw = draw or lines
        assert draw == lines
    return len(known)


_KILLER = """
import os, signal, sys, time
time.sleep(max(0, float(sys.argv[2]) - time.monotonic()))
os.kill(int(sys.argv[1]), signal.SIGKILL)
"""


def main(n_kills):
    with tempfile.TemporaryDirectory() as name:
        n_verdicts = kill_and_resume(Path(name), n_kills)
    print(f"{n_kills} kills: all {n_verdicts} acknowledged verdicts are in the review file")


if __name__ == "__main__":
    main(int(sys.argv[1]))
