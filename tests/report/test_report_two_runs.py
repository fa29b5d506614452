"""Comparison of two runs."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import bench_runs as bench
from conftest import fails, run
from labelsieve.cli import main
from labelsieve.report.two_runs import compare_runs
from synthetic_runs import make_summary


def base(metric, fold, method, size, **_):
    return 0.5 + 0.1 * fold + 0.001 * size + (method == "b") * 0.2


def test_differences_are_those_of_means_over_shared_sizes_and_datasets():
    shifts = {"one": 0.1, "two": 0.3}
    first = make_summary(base)
    second = make_summary(
        lambda dataset, **place: base(**place) + shifts[dataset] * (place["method"] == "a"),
        sizes=(20.0, 40.0),
    )
    found = compare_runs(first, second)
    by_name = found["differences"].set_index(["method", "metric"])
    assert len(by_name) == 4
    for metric, better in (("ranking_loss", "first"), ("average_precision", "second")):
        changed = by_name.loc["a", metric]
        # At the shared size 20, the folds have 0.52 and 0.62.
        np.testing.assert_allclose(changed[["first", "second", "difference"]].tolist(), [0.57, 0.77, 0.2])
        assert changed["fold_std"] == pytest.approx(np.std([0.52, 0.62], ddof=1), rel=1e-5)
        assert (changed["better"], changed["n_shared"]) == (better, 2)
        same = by_name.loc["b", metric]
        assert (same["difference"], same["better"]) == (0, "")
    apart = (
        found["by_dataset"]
        .query("metric == 'ranking_loss'")
        .set_index(["dataset", "noise", "method"])["difference"]
    )
    assert apart.to_dict() == pytest.approx(
        {
            ("one", "flip 0.2", "a"): 0.1,
            ("one", "flip 0.2", "b"): 0,
            ("two", "flip 0.2", "a"): 0.3,
            ("two", "flip 0.2", "b"): 0,
        }
    )
    assert found["settings"] == ["sizes"]


def test_rounding_errors_are_not_differences():
    found = compare_runs(make_summary(base), make_summary(lambda **place: base(**place) + 1e-15))
    assert (found["differences"]["difference"] == 0).all()
    assert (found["differences"]["better"] == "").all()


def test_results_of_only_one_run_are_listed():
    first = make_summary(base, datasets=("one", "two"), methods=("a", "b"), metrics=("ranking_loss",))
    second = make_summary(
        base,
        datasets=("two", "three"),
        methods=("b", "c"),
        classifiers=("linear-svm", "ml-knn"),
        noises=(("flip 0.2", 0.2), ("flip 0.4", 0.4)),
    )
    found = compare_runs(first, second)
    assert found["differences"][["method", "metric"]].to_numpy().tolist() == [["b", "ranking_loss"]]
    assert found["by_dataset"][["dataset", "noise"]].to_numpy().tolist() == [["two", "flip 0.2"]]
    empty = {"noises": (), "classifiers": (), "metrics": ()}
    assert found["only_first"] == {**empty, "datasets": ("one",), "methods": ("a",)}
    assert found["only_second"] == {
        "datasets": ("three",),
        "noises": ("flip 0.4",),
        "methods": ("c",),
        "classifiers": ("ml-knn",),
        "metrics": ("average_precision",),
    }


def test_different_data_with_the_same_name_are_listed():
    first, second = make_summary(base), make_summary(base)
    second.__dict__["datasets"] = {**second.datasets, "two": SimpleNamespace(checksum="another")}
    assert compare_runs(first, second)["other_data"] == ["two"]


def test_only_complete_shared_results_are_compared():
    half = make_summary(base, skip=lambda method, fold, **_: method == "a" and fold == 1)
    found = compare_runs(make_summary(base), half)
    assert set(found["differences"]["method"]) == {"b"}
    assert found["only_first"]["methods"] == ("a",)
    none = make_summary(base, skip=lambda **_: True)
    assert compare_runs(make_summary(base), none)["differences"].empty
    assert compare_runs(none, make_summary(base))["only_second"]["datasets"] == ("one", "two")


SMALL = (
    'folds = 2\ndatasets = ["planted"]\nmethods = ["sum-f", "sum-mi"]\nmetrics = ["coverage", "macro_f1"]\n'
)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Folder with two runs, the second with another seed and one more method, and the summary of the second."""
    folder = tmp_path_factory.mktemp("two")
    for name, text in (("a", SMALL), ("b", SMALL.replace('"sum-mi"', '"sum-mi", "gmm"') + "seeds = [1]\n")):
        (folder / f"{name}.toml").write_text(text)
        bench.here(folder / f"{name}.toml", "--out", name)
    out = ("--out", str(folder / "page"), "--summary", str(folder / "b.csv.gz"))
    assert main(["report", str(folder / "b"), *out]) == 0
    return folder


@pytest.mark.usefixtures("plain_terminal")
@pytest.mark.parametrize("second", ["b", "b.csv.gz"])
def test_two_runs_or_summaries_are_compared_on_the_terminal(capsys, two, second):
    code, out, err = run(capsys, "report", str(two / "a"), str(two / second))
    assert (code, err) == (0, "")
    assert "gmm" in out
    assert "seeds" in out
    rows = [line for line in out.splitlines() if line.startswith("sum-")]
    assert len(rows) == 4
    assert all(("↓" in row) == ("Coverage" in row) for row in rows)
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.usefixtures("plain_terminal")
def test_json_has_all_differences(capsys, two):
    code, out, _ = run(capsys, "report", str(two / "a"), str(two / "b"), "--json")
    assert code == 0
    found = json.loads(out)
    assert found["first"] == str(two / "a")
    assert len(found["differences"]) == len(found["by_dataset"]) == 4
    for one in found["differences"]:
        assert one["difference"] == pytest.approx(one["second"] - one["first"], abs=1e-11)
        lower = one["direction"] == "lower"
        assert one["better"] == ("second" if (one["difference"] < 0) == lower else "first")
    assert found["only_second"]["methods"] == ["gmm"]


@pytest.mark.usefixtures("plain_terminal")
@pytest.mark.parametrize(
    ("more", "named"), [(("--out", "x"), "--out"), (("--figures", "pdf"), "--figures"), (("again",), "got 3")]
)
def test_options_for_one_run_are_rejected_for_two(capsys, two, more, named):
    assert named in fails(capsys, 2, "report", str(two / "a"), str(two / "b"), *more)


@pytest.mark.usefixtures("plain_terminal")
def test_runs_without_shared_results_give_one_error(capsys, two, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(SMALL.replace("planted", "digits") + "[sizes]\npercent = [5]\n")
    bench.here(config, "--out", "c")
    fails(capsys, 1, "report", str(two / "a"), str(tmp_path / "c"))
