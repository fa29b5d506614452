import gzip
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bench_runs as bench
from conftest import fails, run
from labelsieve.bench import RunError
from labelsieve.bench.results import read_results
from labelsieve.report.page import make_report
from labelsieve.report.summary import summarise
from labelsieve.report.summary_file import read_summary, write_summary
from synthetic_runs import make_results

PUBLISHED = sorted((Path(__file__).parents[2] / "docs" / "results").glob("*.csv.gz"))

# A run with all sections: methods, references, an ablation, a sweep, two noises, two classifiers, a failing method, and
# names with escape sequences and formulas.
CONFIGURATION = r"""
title = "Rich"
folds = 2
datasets = ["planted"]
noise = [{ model = "flip", rate = 0.2 }, { model = "flip", rate = 0.4 }]
methods = [
  "sum-f",
  "sum-mi",
  { name = "=bad\u001b[31m, \"#1\"", method = "rfs", params = { max_iter = 5 } },
  { name = "fails", method = "rfs", params = { max_iter = -1 } },
]
references = ["no-features", "all-features", "random-ranking"]
ablation = [{ name = "whole", method = "sum-f" }, { name = "part", method = "sum-mi" }]
metrics = ["ranking_loss", "macro_f1"]
classifiers = ["linear-svm", "ml-knn"]
random_draws = 2
[[sweeps]]
method = "rfs"
parameters = { alpha = [0.1, 1.0] }
params = { max_iter = 5 }
[sizes]
percent = [10, 20]
"""


@pytest.fixture(scope="module")
def rich_run(tmp_path_factory):
    """Folder of a run with all sections."""
    folder = tmp_path_factory.mktemp("rich")
    (folder / "rich.toml").write_text(CONFIGURATION)
    bench.here(folder / "rich.toml", "--out", folder / "run", code=3)  # some cells fail
    return folder / "run"


@pytest.fixture(scope="module")
def rich(rich_run):
    return summarise(read_results(rich_run))


@pytest.fixture
def file(rich, tmp_path):
    """File with the summary."""
    path = tmp_path / "rich.csv.gz"
    write_summary(rich, path)
    return path


def test_the_deviation_is_over_folds_and_seeds_of_means_over_draws():
    # Draws are 0.1 below and above the value of their fold, and folds are 0 and 0.4: std = sqrt(2 * 0.2^2).
    made = make_results(
        lambda fold, draw, **_: 0.4 * fold + (0.1 if draw else -0.1),
        datasets=("one",),
        references=("random-ranking",),
    )
    means = summarise(made).means
    means = means[means["method"] == "random-ranking"]
    np.testing.assert_allclose(means["mean"], 0.2)
    np.testing.assert_allclose(means["fold_std"], np.sqrt(0.08), rtol=1e-5)


def test_a_single_fold_has_no_deviation():
    assert summarise(make_results(lambda **_: 0.5, n_folds=1)).means["fold_std"].isna().all()


def test_a_summary_is_read_as_written(rich, file):
    found = read_summary(file)
    assert found.experiment == rich.experiment
    assert found.facts == rich.facts
    pd.testing.assert_frame_equal(found.means, rich.means, check_exact=True)


def test_the_same_summary_gives_the_same_bytes(rich, file, tmp_path):
    write_summary(read_summary(file), tmp_path / "again.csv.gz")
    assert (tmp_path / "again.csv.gz").read_bytes() == file.read_bytes()
    assert file.read_bytes()[4:8] == bytes(4)  # no timestamp


@pytest.mark.usefixtures("plain_terminal")
def test_the_bytes_do_not_depend_on_the_order_of_finished_cells(rich_run, file, tmp_path):
    results = read_results(rich_run)
    write_summary(summarise(replace(results, scores=results.scores[::-1])), tmp_path / "again.csv.gz")
    assert (tmp_path / "again.csv.gz").read_bytes() == file.read_bytes()


def test_neither_the_file_nor_the_page_contains_the_local_folder(capsys, rich_run, file, tmp_path):
    assert read_results(rich_run).experiment.folder == str(rich_run.parent.resolve())
    assert run(capsys, "report", str(rich_run), "--out", str(tmp_path / "report"))[0] == 0
    head = gzip.decompress(file.read_bytes()).decode().splitlines()[0]
    page = (tmp_path / "report" / "index.html").read_text()
    for text in (head, page):
        assert re.search(r'(&#34;|")folder(&#34;|"): ?null', text)


def test_the_report_of_the_file_is_the_report_of_the_run(capsys, rich_run, tmp_path):
    first, second, file = tmp_path / "first", tmp_path / "second", tmp_path / "rich.csv.gz"
    code, printed, _ = run(capsys, "report", str(rich_run), "--out", str(first), "--summary", str(file))
    assert code == 0
    assert printed.splitlines()[-2:] == [f"wrote {file}", f"wrote {first / 'index.html'}"]
    code, again, _ = run(capsys, "report", str(file), "--out", str(second))
    assert code == 0
    assert again.splitlines()[:-1] == printed.splitlines()[:-2]
    names = [path.relative_to(first) for path in sorted(first.rglob("*.*"))]
    assert names == [path.relative_to(second) for path in sorted(second.rglob("*.*"))]
    assert len(names) > 60
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_pandas_reads_the_table(rich, file):
    table = pd.read_csv(file, skiprows=1)
    assert set(table["role"]) == {"method", "ablation", "sweep", "reference"}
    numbers = ["size", "n_features", "mean", "fold_std"]
    pd.testing.assert_frame_equal(table[numbers], rich.means[numbers], rtol=1e-15)


def test_names_in_the_file_are_escaped(file):
    text = gzip.decompress(file.read_bytes()).decode()
    assert "\x1b" not in text
    assert re.search(r'^planted,flip 0.2,"\'=bad\\x1b\[31m, ""#1""",method,', text, re.MULTILINE)


def rewritten(change):
    """Return a function that changes the text of the file."""

    def damage(path):
        path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
        lambda path: path.write_text("a,b\n1,2\n"),
        lambda path: path.write_bytes(gzip.compress(b"\xff\xfe")),
        rewritten(lambda text: text.replace("summary 1", "summary 2", 1)),
        rewritten(lambda text: re.sub(r"\{.*\}", "{}", text, count=1)),
        rewritten(lambda text: text.replace("fold_std", "std", 1)),
        rewritten(lambda text: text.replace("\nplanted,", "\nother,")),
        rewritten(lambda text: text.replace('"metrics":["ranking_loss"', '"metrics":["../x"', 1)),
    ],
)
def test_an_invalid_summary_gives_one_error(capsys, plain_terminal, file, damage):
    damage(file)
    assert str(file) in fails(capsys, 1, "report", str(file))


@pytest.mark.usefixtures("plain_terminal")
@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("results.sqlite", 2, "'results.sqlite'"),
        ("/proc/none/x.csv.gz", 1, "/proc/none.* --summary"),
    ],
)
def test_invalid_paths_for_summaries_give_one_error(capsys, rich_run, tmp_path, target, code, message):
    outputs = ("--summary", target, "--out", str(tmp_path / "out"))
    assert re.search(message, fails(capsys, code, "report", str(rich_run), *outputs))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.name)
def test_published_results_are_small_and_have_a_report(path):
    assert os.path.getsize(path) <= 400_000
    report = make_report(read_summary(path))
    assert report.missing == ()
    assert len(report.sections) > 6


def test_a_summary_that_expands_too_much_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("labelsieve.report.summary_file._MOST_BYTES", 1000)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"# labelsieve summary 1 " + b"0" * 10**6))
    with pytest.raises(RunError, match="too large"):
        read_summary(tmp_path / "bomb.csv.gz")
