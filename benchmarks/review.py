"""What does a review cost, and what does the live order save? Run ``python -m benchmarks.review``.

    python -m benchmarks.review            seconds and memory
    python -m benchmarks.review --order    verdicts needed to find half of the wrong labels

The first card is counted from the start of the command to the answer with the card. A verdict is sent to the running
command as the page does, and counted until the answer with the next card. Memory is the largest resident size of the
command. Processor time is that of the command, and varies less on a busy machine.

Orders are compared on datasets whose true labels are known, with flip noise and correct verdicts. The live order is
that of the queue "most suspicious". It is updated after each of the first 200 verdicts and at least 200 times later.
The fixed order is that of the support before the review. "With draw" starts with the random draw of 50. The random
order is the expected number. cleanlab's scores are adjusted ones of out-of-fold probabilities.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.label_noise import cleanlab_scores
from benchmarks.table import print_table
from labelsieve import draw_candidates
from labelsieve.datasets import add_candidates, load
from labelsieve.inspection._reviews import Review
from labelsieve.inspection.explanations import ExplainedSupport
from labelsieve.inspection.label_issues import rank_labels
from labelsieve.review_app.live_order import LiveOrder

DATASETS = ("birds", "yeast", "chd_49")
NOISE_RATES = (0.05, 0.2)
N_DRAWN, N_UPDATES = 50, 200
N_VERDICTS = 200


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--order", action="store_true", help="compare orders instead")
    parser.add_argument("--datasets", nargs="+", default=DATASETS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.order:
        compare_orders(options.datasets, options.seeds)
    else:
        measure_costs()


# Costs


def measure_costs() -> None:
    tables = {
        "2,000 rows, 200 numbers": (write_numbers, 2000, 200, 20, []),
        "20,000 rows of short text": (write_texts, 20_000, 0, 20, ["--text", "tfidf"]),
        "20,000 rows, 100 numbers": (write_numbers, 20_000, 100, 50, []),
    }
    rows = []
    for title, (write_table, n_rows, n_columns, n_labels, options) in tables.items():
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "table.csv")
            n_candidates = write_table(table, n_rows, n_columns, n_labels)
            found = measure_command(table, options)
        rows.append((title, f"{n_candidates:,}", *found))
        print(*rows[-1], file=sys.stderr, flush=True)
    headings = ["first card, s", "processor s", "verdict, ms", "worst", "processor ms", "memory, MB"]
    print_table(["table", "candidates", *headings], rows)


def measure_command(table: Path, options: list[str]) -> list[str]:
    """Return the seconds to the first card, the milliseconds of verdicts, and the megabytes of a review."""
    command = [sys.executable, "-m", "labelsieve", "review", str(table), "--labels", "tags", "-q", *options]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    state = post(address, "view")
    first, first_processor = time.perf_counter() - start, processor_seconds(process.pid)
    rng, seconds = np.random.default_rng(0), []
    for number in range(N_VERDICTS):
        queue = "draw" if number < N_DRAWN else "suspicious"
        state = post(address, "view", queue=queue)
        verdict = str(rng.choice(["right", "wrong"]))
        before = time.perf_counter()
        post(address, "verdict", queue=queue, cards=[[state["card"]["key"], ""]], verdict=verdict)
        seconds.append(time.perf_counter() - before)
    # Half of the requests are verdicts; the others only ask for the card.
    each = (processor_seconds(process.pid) - first_processor) / N_VERDICTS
    status = Path(f"/proc/{process.pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    process.send_signal(signal.SIGINT)
    process.communicate()
    times = 1000 * np.median(seconds), 1000 * max(seconds), 1000 * each, memory / 1000
    return [f"{first:.1f}", f"{first_processor:.1f}", *(f"{value:.0f}" for value in times)]


def processor_seconds(process: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def post(address: str, action: str, **body: object) -> dict:
    request = urllib.request.Request(
        address + action, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def write_numbers(path: Path, n_rows: int, n_columns: int, n_labels: int) -> int:
    """Write a table of numbers in which a row has five tags on average."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    scores = X @ rng.normal(size=(n_columns, n_labels)) / np.sqrt(n_columns)
    scores += rng.normal(size=scores.shape)
    has = scores > np.quantile(scores, 1 - 5 / n_labels)
    frame = pd.DataFrame(X.round(3), columns=[f"x{column}" for column in range(n_columns)])
    return write_tags(frame, has, path)


def write_texts(path: Path, n_rows: int, _: int, n_labels: int) -> int:
    """Write a table of texts of 12 words, of which some go with tags."""
    rng = np.random.default_rng(0)
    topics = rng.integers(n_labels, size=(n_rows, 2))
    words = rng.integers(3000, size=(n_rows, 12))
    words[:, :4] = 10 * np.repeat(topics, 2, axis=1) + rng.integers(10, size=(n_rows, 4))
    has = np.zeros((n_rows, n_labels), dtype=bool)
    has[np.arange(n_rows)[:, None], topics] = True
    has |= rng.random(has.shape) < 0.03
    frame = pd.DataFrame({"text": [" ".join(f"word{word}" for word in row) for row in words]})
    return write_tags(frame, has, path)


def write_tags(frame: pd.DataFrame, has: np.ndarray, path: Path) -> int:
    names = np.array([f"tag{label}" for label in range(has.shape[1])])
    frame["tags"] = [";".join(names[row]) for row in has]
    frame.to_csv(path, index=False)
    return int(has.sum())


# Orders


def compare_orders(names: list[str], n_seeds: int) -> None:
    rows = []
    for name in names:
        for rate in NOISE_RATES:
            found = [needed_verdicts(name, rate, seed) for seed in range(n_seeds)]
            means = {heading: np.mean([run[heading] for run in found]) for heading in found[0]}
            rows.append((name, f"{rate:.0%}", *(f"{value:,.0f}" for value in means.values())))
            print(*rows[-1], file=sys.stderr, flush=True)
    print_table(["dataset", "noise", *means], rows)


def needed_verdicts(name: str, rate: float, seed: int) -> dict[str, float]:
    """Return the numbers of verdicts after which half of the wrong candidates are found."""
    data = load(name)
    noisy = np.asarray(add_candidates(data.Y, "flip", rate=rate, random_state=seed)) > 0
    is_wrong = noisy & ~(np.asarray(data.Y) > 0)
    n, n_wrong = int(noisy.sum()), int(is_wrong.sum())
    half = -(-n_wrong // 2)
    model = ExplainedSupport().fit(data.X, noisy.astype(int))
    drawn = draw_candidates(noisy.astype(int), N_DRAWN, random_state=seed)
    nothing = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    _, adjusted = cleanlab_scores(data.X, noisy.astype(int))
    by_cleanlab = is_wrong[noisy][np.argsort(adjusted[noisy], kind="stable")]
    return {
        "candidates": n,
        "wrong": n_wrong,
        "live, with draw": follow(model, is_wrong, half, drawn, is_live=True),
        "fixed, with draw": follow(model, is_wrong, half, drawn, is_live=False),
        "live": follow(model, is_wrong, half, nothing, is_live=True),
        "fixed": follow(model, is_wrong, half, nothing, is_live=False),
        "random": half * (n + 1) / (n_wrong + 1),
        "cleanlab": int(np.searchsorted(np.cumsum(by_cleanlab), half)) + 1,
    }


def follow(
    model: ExplainedSupport,
    is_wrong: np.ndarray,
    half: int,
    drawn: tuple[np.ndarray, np.ndarray],
    *,
    is_live: bool,
) -> int:
    """Return how many labels are reviewed, the drawn ones first, until `half` wrong ones are found."""
    n_rows, n_labels = is_wrong.shape
    issues = rank_labels(model, label_names=range(n_labels), row_ids=range(n_rows))
    order = LiveOrder(model, issues)
    rows, labels = (part.tolist() for part in drawn)
    for row, label in zip(rows, labels, strict=True):
        order.is_open[order.position(row * n_labels + label)] = False
    n_found, step = int(is_wrong[rows, labels].sum()), max(1, half // N_UPDATES)
    while n_found < half:
        n = len(rows)
        if is_live and n and (n <= N_UPDATES or n % step == 0):
            reviewed = np.array(rows), np.array(labels)
            order.update(Review.of_draw(*reviewed, (~is_wrong[reviewed]).astype(np.int8)))
        (place,) = order.first(n=1)
        order.is_open[place] = False
        rows.append(int(order.rows[place]))
        labels.append(int(order.labels[place]))
        n_found += int(is_wrong[rows[-1], labels[-1]])
    return len(rows)


if __name__ == "__main__":
    main()
