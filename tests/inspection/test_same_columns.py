"""`audit`, `select` and the library keep the same columns of the same table."""

import json

import numpy as np
import pandas as pd
import pytest

from labelsieve import ColumnSelector, EvidenceSelector, audit, choose_size
from labelsieve.cli import main
from labelsieve.io import read

CATEGORIES, TAGS = ["red", "green", "blue", "grey"], ["new", "sale", "gift", "rare"]


def make_table(seed):
    """Return a frame of numbers, categories, dates and tags, some of them missing, and labels that follow some."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(40, 120))
    numbers = rng.standard_normal((n_rows, int(rng.integers(1, 5))))
    category = rng.choice(CATEGORIES, n_rows)
    days = rng.integers(0, 700, n_rows)
    tags = rng.random((n_rows, len(TAGS))) < 0.3
    columns = {f"n{j}": numbers[:, j] for j in range(numbers.shape[1])}
    columns["colour"] = category
    columns["day"] = pd.Timestamp("2023-01-01") + pd.to_timedelta(days, unit="D")
    columns["kind"] = [";".join(np.array(TAGS)[row]) for row in tags]
    columns["shape"] = rng.choice(["round", "square"], n_rows)
    frame = pd.DataFrame(columns)
    score = np.column_stack(
        [numbers[:, 0], (category == "red") * 2.0, (days % 365 < 90) * 2.0, tags[:, 0] * 2.0, numbers[:, -1]]
    )
    noise = rng.normal(0, rng.choice([0.3, 1.0, 3.0]), (n_rows, 5))
    labels = pd.DataFrame((score + noise > 0.7).astype(int), columns=[f"label_{j}" for j in range(5)])
    labels.iloc[0], labels.iloc[1] = 0, 1  # every label varies
    if seed % 2:
        for name in frame.columns:
            frame.loc[rng.random(n_rows) < 0.1, name] = None
    order = rng.permutation(frame.shape[1])
    return pd.concat([frame.iloc[:, order], labels], axis=1)


def kept_by_the_library(table, n_columns):
    fitted = ColumnSelector(EvidenceSelector(), table.column_of, n_columns).fit(table.X, table.candidates)
    order = fitted.columns_[np.argsort(fitted.ranking_)]
    return [table.columns[position].name for position in order[: fitted.n_features_]]


@pytest.mark.parametrize("seed", range(50))
def test_the_library_keeps_the_same_columns(seed):
    frame = make_table(seed)
    table = read(frame, labels="label_*")
    n_columns = 1 + seed % (table.n_columns - 1)
    found = audit(frame, "label_*", n_columns=n_columns, fast=True)
    assert found.selected == kept_by_the_library(table, n_columns)
    # The selector itself: columns in the order of their best features.
    features = np.argsort(EvidenceSelector(n_columns).fit(table.X, table.candidates).ranking_)
    order = list(dict.fromkeys(table.column_of[features].tolist()))
    assert found.selected == [table.columns[position].name for position in order[:n_columns]]
    automatic = audit(frame, "label_*", fast=True)
    assert automatic.selected == kept_by_the_library(table, "auto")
    chosen = choose_size(ColumnSelector(EvidenceSelector(), table.column_of), table.X, table.candidates)
    np.testing.assert_array_equal(chosen.scores, automatic.size_curve.scores)
    assert automatic.n_kept == chosen.best


@pytest.mark.parametrize("n_columns", ["2", "auto", "50%"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_commands_keep_the_same_columns(capsys, tmp_path, seed, n_columns):
    path = tmp_path / "table.csv"
    make_table(seed).to_csv(path, index=False)
    wanted = [str(path), "--labels", "label_*", "-k", n_columns, "--json", "-q"]
    assert main(["audit", *wanted, "--fast"]) == 0
    audited = json.loads(capsys.readouterr().out)
    assert main(["select", *wanted]) == 0
    selected = json.loads(capsys.readouterr().out)
    kept = [column["column"] for column in audited["columns"] if column["kept"]]
    assert kept == [column["column"] for column in selected["columns"]]
    number = float(n_columns[:-1]) / 100 if n_columns.endswith("%") else n_columns
    number = int(number) if n_columns.isdigit() else number
    assert kept == kept_by_the_library(read(path, labels="label_*"), number)
