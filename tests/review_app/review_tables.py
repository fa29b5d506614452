"""A small table with planted wrong labels, and a session on it."""

import numpy as np
import pandas as pd

from labelsieve.io import read
from labelsieve.review_app.session import ReviewSession

N_ROWS, LABELS = 120, ("tall", "old", "loud", "rare")


def make_table(folder, n_rows=N_ROWS, rate=0.15, seed=0):
    """Write a table whose labels follow from its columns, and return the file and the true labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    truth = X[:, :4] + 0.2 * rng.normal(size=(n_rows, 4)) > [0.0, 0.2, -0.2, 1.2]
    noisy = truth | (rng.random(truth.shape) < rate)
    noisy[:, 0] |= ~noisy.any(axis=1)
    frame = pd.DataFrame(X.round(3), columns=[f"size {k}" for k in range(6)])
    frame.insert(0, "name", [f"thing {row}" for row in range(n_rows)])
    frame["note"] = ["A long text about this thing, with words that say nothing about labels. " * 2] * n_rows
    frame["tags"] = [";".join(np.array(LABELS)[row]) for row in noisy]
    path = folder / "things.csv"
    frame.to_csv(path, index=False)
    return path, truth


def open_session(path, **options):
    """Open a session with files next to the table."""
    dataset = read(path, "tags", id="name")
    file, copy = path.with_name("things.review.csv"), path.with_name("things.clean.csv")
    return ReviewSession(dataset, options.pop("file", file), copy, **{"n_drawn": 20, **options})


def judge_truly(session, truth, request, n=1):
    """Give `n` right verdicts on the cards that a request shows; return their keys."""
    keys = []
    for _ in range(n):
        card = session.view(request)["card"]
        row, label = map(int, card["key"].split("-"))
        position = LABELS.index(session.dataset.label_names[label])
        session.judge([(card["key"], card["verdict"])], "right" if truth[row, position] else "wrong")
        keys.append(card["key"])
    return keys
