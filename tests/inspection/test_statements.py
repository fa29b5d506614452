"""Statements of an audit never contradict each other, whatever the table."""

import warnings

import numpy as np
import pandas as pd
import pytest

from labelsieve import audit
from labelsieve.inspection import wording

KINDS = (
    "nothing to find",
    "everything kept",
    "one label",
    "rare labels",
    "a leak",
    "all text",
    "one label per row",
)


def table(kind, seed):
    """A table of each kind, as features or a frame with a column of tags."""
    rng = np.random.default_rng(seed)
    n_samples = 120
    X = rng.standard_normal((n_samples, 5))
    Y = (X[:, :3] + 0.5 * rng.standard_normal((n_samples, 3)) > 0.3).astype(int)
    if kind == "nothing to find":
        X = rng.standard_normal(X.shape)
    elif kind == "everything kept":
        Y = np.column_stack([X[:, j] > 0.2 for j in range(5)]).astype(int)
    elif kind == "one label":
        Y = Y[:, :1]
    elif kind == "rare labels":
        Y = np.column_stack([Y, np.eye(n_samples, 4, dtype=int)])
    elif kind == "a leak":
        X[:, 4] = Y[:, 0]
    elif kind == "one label per row":
        Y = np.eye(3, dtype=int)[(X[:, 0] > 0).astype(int) + (X[:, 0] > 1)]
    elif kind == "all text":
        words = np.array(["late", "invoice", "refund", "login", "crash", "slow"])
        texts = [
            " ".join(
                rng.permutation([*words[:3][row > 0], *words[3:][rng.random(3) < 0.5], "please", "help"])
            )
            for row in Y
        ]
        tags = [";".join(np.array(["a", "b", "c"])[row > 0]) or "d" for row in Y]
        return pd.DataFrame(
            {"message": [f"{text} ticket {number}" for number, text in enumerate(texts)], "tags": tags}
        )
    return X, Y


def audited(kind, seed):
    data = table(kind, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(data, pd.DataFrame):
            return audit(data, "tags", fast=True)
        return audit(*data, fast=True)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_the_statements_agree(kind, seed):
    found = audited(kind, seed)
    matter, size, reliable, wrong, missing = wording.answers(found)
    n_related, kept = int(found.controlled.selected.sum()), found.n_kept
    if found.is_no_better_than_chance:
        # No part recommends anything.
        assert matter.gist.startswith("None")
        assert size.gist.startswith("No ")
        assert wrong.gist == missing.gist == "Unknown"
        return
    # A number of related columns is that of the q-values.
    assert matter.gist.startswith(f"{n_related:,} of") == (n_related > 0)
    # A recommended number predicts better than none.
    if size.gist.startswith("Keep"):
        assert round(found.expected_precision(kept), 2) >= round(found.baseline_precision, 2)
    # Stability says something only if some columns are dropped.
    assert (kept == found.dataset.n_columns) == reliable.gist.startswith("All columns")
    # The counts of labels are those of the frames.
    n_flagged = found.labels["n_flagged"].sum()
    assert wrong.gist.startswith(f"{n_flagged:,} of" if n_flagged else "None")
    # The label that is named most often is not a rare one.
    for name, number in zip(found.labels["label"], found.labels["n_candidates"], strict=True):
        assert number >= 10 or f"most often {name} " not in wrong.plain
    # Everything that is said is a number or a word.
    for answer in (matter, size, reliable, wrong, missing):
        assert "nan" not in answer.plain
        assert answer.plain.endswith(".")
