"""Export of the results of a run to one table."""

import json
import os
import re
import shlex

import numpy as np
import pandas as pd
import pytest

import bench_runs as bench
from conftest import fails, run
from labelsieve.bench import export as exporting
from labelsieve.bench.config import PROFILES
from labelsieve.bench.results import read_results
from labelsieve.cli import bench as bench_command

TWO_WAYS = r"""
folds = 2
datasets = [{ name = "small", path = "small.csv", labels = "label_*" }]
methods = ["mifs", { name = "=1+1\u001b", method = "sum-mi", params = { n_bins = 3 } }]
references = ["no-features", "random-ranking"]
random_draws = 2
metrics = ["coverage", { metric = "own_metric:three", direction = "higher", needs = "scores" }]
classifiers = ["linear-svm", "ml-knn"]
conventions = [{ name = "usual" }, { name = "hard", ranking_scores = "hard" }]
[sizes]
percent = [20, 60]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of a run with several classifiers, conventions and draws, and a user-defined metric."""
    project = tmp_path_factory.mktemp("exported")
    (project / "own_metric.py").write_text("def three(Y_true, scores):\n    return 3\n")
    bench.here(bench.make_project(project, TWO_WAYS, "two"), "-q")
    return project / "runs" / "two"


def read_csv(path):
    """Read a table with exact numbers, which the default parser of pandas may change in the last digits."""
    floats = ["noise_rate", "size", "value", "fit_seconds", "peak_mib"]
    return pd.read_csv(path, converters=dict.fromkeys(floats, lambda text: float(text or "nan")))


@pytest.mark.usefixtures("plain_terminal")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_pandas_reads_all_results(capsys, folder, form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    code, out, err = run(capsys, "bench", "export", str(folder), "--to", form, "--out", "table")
    assert (code, err) == (0, "")
    table = read_csv("table") if form == "csv" else pd.read_parquet("table")
    assert out == f"wrote {len(table)} rows to table\n"
    assert list(table) == list(exporting.COLUMNS)
    # Two rankings and two draws at two sizes, and the reference, with four judges, two metrics and two folds.
    assert len(table) == (4 * 2 + 1) * 4 * 2 * 2
    assert not table.duplicated(list(exporting.COLUMNS)[:15]).any()
    stored = read_results(folder).scores.sort_values("cell", kind="stable")
    assert table["value"].tolist() == stored["value"].tolist()
    assert set(table["classifier"]) == {"linear-svm", "ml-knn"}
    assert set(table["conventions"]) == {"usual", "hard"}
    assert dict(zip(table["metric"], table["direction"], strict=True)) == {
        "coverage": "lower",
        "three": "higher",
    }
    named = table[table["method"] == ("'=1+1\\x1b" if form == "csv" else "=1+1\x1b")]
    assert len(named) == 2 * 4 * 2 * 2
    assert {json.loads(text)["n_bins"] for text in named["params"]} == {3}
    mifs = table[table["method"] == "mifs"]
    assert mifs["n_iter"].notna().all()
    assert mifs["converged"].isin([True, False]).all()
    assert (mifs["fit_seconds"] > 0).all()
    reference = table[table["method"] == "no-features"]
    assert reference[["size", "n_iter", "converged", "fit_seconds"]].isna().all(axis=None)
    assert (reference["n_features"] == 0).all()
    assert set(table["size_unit"]) == {"percent"}
    assert sorted(os.listdir()) == ["table"]


@pytest.mark.usefixtures("plain_terminal")
def test_the_suffix_sets_the_format_and_the_run_folder_is_the_default(capsys, folder):
    pytest.importorskip("pyarrow")
    assert run(capsys, "bench", "export", str(folder), "--out", "a.parquet")[0] == 0
    assert len(pd.read_parquet("a.parquet"))
    assert run(capsys, "bench", "export", str(folder))[1].endswith(f"rows to {folder / 'results.csv'}\n")
    (folder / "results.csv").unlink()


@pytest.mark.usefixtures("plain_terminal")
@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        (2, ("--to", "excel"), "'excel'"),
        (2, ("--out", "a.xls"), "'xls'"),
        (1, ("--out", "nowhere/a.csv"), "nowhere/a.csv: .* --out"),
    ],
)
def test_bad_requests_give_one_error(capsys, folder, code, arguments, message):
    assert re.search(message, fails(capsys, code, "bench", "export", str(folder), *arguments))


@pytest.mark.usefixtures("plain_terminal", "one_job_here")
def test_the_examples_in_the_help_work(capsys, monkeypatch, tmp_path):
    pytest.importorskip("pyarrow")
    # One method is enough because another test runs all of them.
    profile = PROFILES["tiny"].read_text("utf-8")
    assert 'methods = ["pml-fsmir", "*"]' in profile
    (tmp_path / "tiny.toml").write_text(profile.replace('"*"', '"mifs"'), "utf-8")
    monkeypatch.setitem(PROFILES, "tiny", tmp_path / "tiny.toml")
    texts = f"{bench_command.MERGE_EPILOG}{bench_command.EXPORT_EPILOG.replace('tiny', 'both')}"
    examples = [line for line in texts.splitlines() if line.startswith("  labelsieve ")]
    assert len(examples) == 7
    for example in examples:
        if "first.csv.gz" in example:
            assert run(capsys, "report", "planted", "--summary", "first.csv.gz")[0] == 0
        words = shlex.split(example)[1:]
        assert run(capsys, *words, *(["-q", "--jobs", "1"] if words[1] == "run" else []))[0] == 0, example
    assert np.isfinite(pd.read_csv("both.csv")["value"]).all()
