"""Merged runs of parts of an experiment equal a run of the whole experiment."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import bench_runs as bench
from labelsieve.bench import RunError
from labelsieve.bench.config import load_experiment, restrict
from labelsieve.bench.merge import merge
from labelsieve.bench.results import read_results, read_status
from labelsieve.bench.store import Store
from labelsieve.cli import main
from labelsieve.report.summary import summarise
from labelsieve.report.summary_file import read_summary

WHOLE = """
folds = 2
datasets = [
    { name = "small", path = "small.csv", labels = "label_*" },
    { name = "twin", path = "small.csv", labels = "label_*", ignore = ["x0", "x9"] },
    { name = "third", path = "small.csv", labels = "label_*", ignore = "x1, x2" },
]
methods = ["mifs", "own_methods:Broken"]
references = ["no-features"]
control = "mifs"
[sizes]
percent = [20, 60]
counts = { twin = [1, 3] }
"""
N_CELLS = 2 * 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder with an experiment, two parts and the whole. Its method succeeds if the file "fixed" exists."""
    folder = tmp_path_factory.mktemp("parts")
    config = bench.make_project(folder, WHOLE, "whole")
    (folder / "fixed").touch()
    for name, datasets in (("a", ["small"]), ("b", ["twin"]), ("all", ["small", "twin"])):
        chosen = [word for dataset in datasets for word in ("--datasets", dataset)]
        bench.here(config, *chosen, "--out", f"runs/{name}")
    return folder


@pytest.fixture
def parts(made, tmp_path):
    """Copy of the folder."""
    shutil.copytree(made, tmp_path / "parts")
    return tmp_path / "parts"


def file(folder, name):
    return folder / "runs" / name / "results.sqlite"


def merged(folder, *names, out="merged"):
    return merge([file(folder, name) for name in names], folder / "runs" / out)


def rejected(folder, *names, out="merged"):
    """Return the error of a merge and check that it leaves no files behind."""
    before = sorted((folder / "runs").rglob("*"))
    with pytest.raises(RunError) as caught:
        merged(folder, *names, out=out)
    assert "\n" not in str(caught.value)
    assert sorted((folder / "runs").rglob("*")) == before
    return str(caught.value)


def without_order(results):
    return {**results, "plan": sorted(results["plan"])}


def test_merged_parts_equal_the_whole(parts):
    found = merged(parts, "a", "b")
    assert (found["planned"], found["done"], found["failed"]) == (2 * N_CELLS, 2 * N_CELLS, 0)
    assert (found["rankings"], found["judgements"], found["damaged"]) == (2 * N_CELLS, 2 * N_CELLS, 0)
    assert without_order(bench.stored(parts / "runs" / "merged")) == without_order(
        bench.stored(parts / "runs" / "all")
    )
    whole, joined = (summarise(read_results(file(parts, name))) for name in ("all", "merged"))
    assert joined.experiment == whole.experiment
    assert joined.facts.datasets == whole.facts.datasets
    assert joined.facts.coverage == whole.facts.coverage
    pd.testing.assert_frame_equal(joined.means, whole.means, check_exact=True)
    assert [run.n_computed for run in joined.facts.runs] == [N_CELLS, N_CELLS, 0]
    assert read_status(file(parts, "merged"))["remarks"] == []
    assert [path.name for path in (parts / "runs" / "merged").iterdir()] == ["results.sqlite"]


def test_the_experiment_continues_in_the_merged_run(parts):
    merged(parts, "b", "a")
    known = bench.finished(parts / "runs" / "merged")
    out, _ = bench.here(parts / "whole.toml", "--json", "--out", "runs/merged")
    counts = json.loads(out)
    assert (counts["planned"], counts["done"], counts["computed"]) == (3 * N_CELLS, 3 * N_CELLS, N_CELLS)
    assert known.items() <= bench.finished(parts / "runs" / "merged").items()


def test_weights_are_merged(parts):
    merged(parts, "a", "b")
    config = parts / "whole.toml"
    config.write_text(WHOLE.replace("[sizes]", 'classifiers = ["linear-svm", "own-weights"]\n[sizes]'))
    chosen = ("--datasets", "small", "--datasets", "twin")
    out, _ = bench.here(config, "--json", *chosen, "--out", "runs/merged")
    assert json.loads(out)["ranked"] == 0
    # mifs and the reference on two datasets in two folds.
    assert json.loads(out)["computed"] == 2 * 2 * 2


def test_shared_cells_are_merged_once(parts):
    found = merged(parts, "a", "all", "b")
    assert (found["rankings"], found["planned"]) == (2 * N_CELLS, 2 * N_CELLS)
    assert without_order(bench.stored(parts / "runs" / "merged")) == without_order(
        bench.stored(parts / "runs" / "all")
    )


def test_a_successful_cell_replaces_a_failed_one(parts):
    (parts / "fixed").unlink()
    bench.here(parts / "whole.toml", "--datasets", "small", "--out", "runs/failed", code=3)
    for out, names in (("x", ("failed", "a")), ("y", ("a", "failed"))):
        assert merged(parts, *names, out=out)["failed"] == 0
    both = merged(parts, "failed", "b", out="z")
    assert (both["failed"], both["done"]) == (2, 2 * N_CELLS - 2)


def test_parts_can_have_other_methods_seeds_and_noise(parts):
    config = parts / "whole.toml"
    base = WHOLE.replace('methods = ["mifs", "own_methods:Broken"]', 'methods = ["METHOD"]')
    base = base.replace('control = "mifs"\n', "")
    for name, method, more in (
        ("one", "mifs", "seeds = [0]\n"),
        ("two", "sum-f", "seeds = [0, 1]\nnoise = [{ rate = 0.3 }]\n"),
    ):
        config.write_text(more + base.replace("METHOD", method))
        bench.here(config, "--datasets", "small", "--out", f"runs/{name}")
    found = merged(parts, "one", "two")
    assert found["done"] == found["planned"] == 2 * 2 + 2 * 2 * 2
    results = read_results(file(parts, "merged"))
    assert [method.name for method in results.experiment.methods] == ["mifs", "sum-f"]
    assert results.experiment.seeds == (0, 1)
    assert [noise.label for noise in results.experiment.noise] == ["flip 0.2", "flip 0.3"]


# contradictions


def test_runs_of_other_experiments_are_rejected(parts):
    config = parts / "whole.toml"
    config.write_text(WHOLE.replace("folds = 2", "folds = 3").replace("20, 60", "20, 50"))
    bench.here(config, "--datasets", "twin", "--out", "runs/other")
    assert "folds, sizes" in rejected(parts, "a", "other")


def test_different_methods_with_the_same_name_are_rejected(parts):
    config = parts / "whole.toml"
    config.write_text(WHOLE.replace('"mifs", "own', '{ name = "mifs", method = "sum-f" }, "own'))
    bench.here(config, "--datasets", "twin", "--out", "runs/other")
    assert "'mifs'" in rejected(parts, "a", "other")


def test_different_data_or_code_are_rejected(parts):
    config = parts / "whole.toml"
    with open(parts / "own_methods.py", "a") as stream:
        stream.write("\n# another\n")
    bench.here(config, "--datasets", "small", "--out", "runs/code")
    assert "own_methods:Broken" in rejected(parts, "a", "code")
    bench.write_data(parts, seed=1)
    bench.here(config, "--datasets", "small", "--out", "runs/data")
    assert "'small'" in rejected(parts, "a", "data")


# faults


def test_damaged_rows_are_left_out_with_a_warning(parts, capsys):
    with closing(sqlite3.connect(file(parts, "a"))) as database, database:
        database.execute("UPDATE weights SET packed = x'00' WHERE rowid = 1")
        database.execute("UPDATE judgements SET scores = '[]' WHERE rowid = 1")
    runs = [str(parts / "runs" / name) for name in ("a", "b")]
    assert main(["bench", "merge", *runs, "--out", str(parts / "new"), "--json"]) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out)
    assert figures["damaged"] == 2
    assert figures["judgements"] == figures["done"] == 2 * N_CELLS - 1
    assert "2 damaged rows" in err
    with Store(parts / "new" / "results.sqlite") as store:
        n_weights = len(store.read().weighted)
    with Store(file(parts, "all")) as store:
        assert n_weights == len(store.read().weighted) - 1


def test_an_unreadable_source_leaves_no_files(parts):
    path = file(parts, "b")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert str(path) in rejected(parts, "a", "b")
    path.write_bytes(b"")
    assert str(path) in rejected(parts, "a", "b")


def test_existing_results_are_not_replaced(parts):
    before = file(parts, "all").read_bytes()
    rejected(parts, "a", "b", out="all")
    assert file(parts, "all").read_bytes() == before


def test_merging_imports_no_user_code(parts):
    sprung = parts / "sprung"
    (parts / "own_methods.py").write_text(f"open({str(sprung)!r}, 'w').close()")
    merged(parts, "a", "b")
    assert not sprung.exists()


# summary files


@pytest.fixture
def means(parts, monkeypatch, capsys):
    """Folder with a summary file instead of the run of the first part."""
    monkeypatch.chdir(parts)
    assert main(["report", "a", "--summary", "a.csv.gz"]) == 0
    shutil.rmtree("runs/a")
    capsys.readouterr()
    return parts


def test_merged_means_give_the_report_of_the_whole(means, capsys):
    assert main(["bench", "merge", "a.csv.gz", "b", "--out", "both.csv.gz", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"file": "both.csv.gz", "datasets": 2, "planned": 12, "done": 12, "failed": 0}
    assert "12 of 12" in err
    whole, joined = summarise(read_results(file(means, "all"))), read_summary(Path("both.csv.gz"))
    assert joined.experiment == whole.experiment
    # The measured costs of the two runs differ.
    assert replace(joined.facts, costs=(), runs=()) == replace(whole.facts, costs=(), runs=())
    pd.testing.assert_frame_equal(joined.means, whole.means, check_exact=True)
    assert [(run.number, run.n_computed) for run in joined.facts.runs] == [(1, 6), (2, 6), (3, 0)]
    reports = []
    for source in ("all", "both.csv.gz"):
        assert main(["report", source, "--out", "page"]) == 0
        reports.append(capsys.readouterr().out)
    assert reports[0] == reports[1]


def test_means_of_the_same_results_are_merged_once(means):
    assert main(["bench", "merge", "a.csv.gz", "all", "--out", "both.csv.gz"]) == 0
    whole, joined = summarise(read_results(file(means, "all"))), read_summary(Path("both.csv.gz"))
    pd.testing.assert_frame_equal(joined.means, whole.means, check_exact=True)
    assert joined.facts.coverage.complete


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("a.csv.gz", "b", "--out", "a.csv.gz"), 1, "a.csv.gz"),
        (("a.csv.gz", "b", "--out", "both"), 2, "a.csv.gz"),
        (("a.csv.gz", "b", "--out", "no/both.csv.gz"), 1, "no/both.csv.gz: "),
    ],
)
def test_means_that_cannot_be_merged_are_rejected(means, capsys, arguments, code, problem):
    before = sorted(means.rglob("*"))
    assert main(["bench", "merge", *arguments]) == code
    assert problem in " ".join(capsys.readouterr().err.split())
    assert sorted(means.rglob("*")) == before


# parts


def test_an_experiment_can_be_restricted_to_some_of_its_datasets(parts):
    experiment = load_experiment("paper")
    part = restrict(experiment, ["yeast", "birds"])
    assert [dataset.name for dataset in part.datasets] == ["birds", "yeast"]
    assert part.sizes.counts == {}
    assert restrict(experiment, ["water_quality"]).sizes.counts == experiment.sizes.counts
    assert "'twin'" in bench.fails(parts / "whole.toml", "--datasets", "twinn")
