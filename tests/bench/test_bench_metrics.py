"""User-defined metrics in configurations, cells, reports and files."""

import hashlib
import json

import numpy as np
import pytest

import bench_runs as bench
from conftest import run
from labelsieve.bench import RunError
from labelsieve.bench.components import use_folder
from labelsieve.bench.config import load_experiment, parse_experiment
from labelsieve.bench.data import DatasetFacts, describe, load_dataset
from labelsieve.bench.plan import plan
from labelsieve.bench.results import read_results
from labelsieve.report.analysis import analyse
from labelsieve.report.summary import summarise
from labelsieve.report.summary_file import read_summary, write_summary

OWN_METRICS = """
import functools

import numpy as np


def hits(Y_true, scores):
    '''Share of rows whose best score is at a true label.'''
    return np.mean([Y_true[row, scores[row].argmax()] for row in range(len(Y_true))])


def misses(Y_true, scores):
    return 1 - hits(Y_true, scores)


def sparseness(Y_true, predictions):
    assert set(np.unique(predictions)) <= {0, 1} and predictions.dtype == int
    return int((predictions == 0).sum())


def greedy(Y_true, scores):
    Y_true[:] = 1
    scores[:] = 0
    return 0.5


def nothing(Y_true, scores):
    return float("nan")


def everything(Y_true, scores):
    return scores


def leaving(Y_true, scores):
    raise SystemExit(3)


number = 3
partly = functools.partial(lambda factor, Y_true, scores: factor, 0.25)
"""
PLAIN = """
folds = 2
datasets = [{ name = "small", path = "small.csv", labels = "label_*" }]
methods = ["sum-f", "sum-mi"]
references = ["no-features"]
metrics = ["one_error", METRICS]
[sizes]
percent = [20, 60]
"""
HITS = '{ metric = "own_metrics:hits", direction = "higher", needs = "scores" }'
MISSES = '{ name = "bad", metric = "own_metrics:misses", direction = "lower", needs = "scores" }'


def own(name, needs="scores"):
    return f'{{ metric = "own_metrics:{name}", direction = "higher", needs = "{needs}" }}'


def with_metrics(*metrics):
    return PLAIN.replace("METRICS", ", ".join(metrics))


@pytest.fixture(autouse=True)
def own_modules():
    with bench.fresh_modules():
        yield


@pytest.fixture
def project(tmp_path):
    """Function that writes an experiment with some metrics and returns its configuration."""
    (tmp_path / "own_metrics.py").write_text(OWN_METRICS)

    def write(*metrics):
        return bench.make_project(tmp_path, with_metrics(*metrics), "measured")

    return write


def cells_of(config):
    experiment = load_experiment(config)
    spec = experiment.datasets[0]
    facts = {spec.name: describe(spec, load_dataset(spec, experiment.folder), experiment)}
    use_folder(experiment)
    return experiment, plan(experiment, facts)


def test_a_user_defined_metric_is_added_without_new_rankings(project):
    config = project()
    bench.here(config)
    options = ("--jobs", 1, "--json", "--accept-changes")
    out, _ = bench.inside(project(HITS, MISSES, own("sparseness", "predictions")), *options)
    counts = json.loads(out)
    assert (counts["computed"], counts["ranked"], counts["failed"]) == (6, 0, 0)
    scores = read_results(config.parent / "runs" / "measured").scores.fillna({"size": 0})
    found = {
        (score.cell, score.size, score.metric): score.value
        for score in scores.itertuples()
        if score.metric != "sparseness"
    }
    places = {place[:2] for place in found}
    assert len(places) == 2 * (2 * 2 + 1)
    for place in places:
        # With a single best score, one-error is the fraction of rows where that label is wrong. It leaves out
        # rows without true labels, which count as misses here.
        assert found[*place, "hits"] == pytest.approx(1 - found[*place, "bad"])
        assert found[*place, "hits"] <= 1 - found[*place, "one_error"] + 1e-12
    assert scores["value"].dtype == float


def test_a_metric_cannot_change_the_data_in_place(project):
    experiment, cells = cells_of(project(own("greedy"), HITS))
    alone = cells_of(project(HITS))
    found, expected = (
        {(score.size, score.metric): score.value for score in bench.evaluate(known, planned[0]).scores}
        for known, planned in ((experiment, cells), alone)
    )
    assert {found.pop((size, "greedy")) for size in (20.0, 60.0)} == {0.5}
    assert found == expected


@pytest.mark.parametrize(
    ("name", "error"),
    [("nothing", "ValueError: "), ("everything", "TypeError: "), ("leaving", "SystemExit: 3")],
)
def test_a_failing_metric_gives_one_error_in_its_cell(project, name, error):
    experiment, cells = cells_of(project(own(name)))
    found = bench.evaluate(experiment, cells[0])
    assert found.error.startswith(error)
    assert not found.scores
    assert found.ranking is not None


@pytest.mark.parametrize("name", ["number", "absent"])
def test_an_invalid_metric_fails_before_anything_runs(project, name):
    config = project(own(name))
    assert f"'own_metrics:{name}'" in bench.fails(config, "--jobs", 1)
    assert not bench.finished(config.parent / "runs" / "measured")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ('"own_metrics:hits"', r"metrics\.1: "),
        ('{ metric = "own_metrics:hits", needs = "scores" }', r"metrics\.1\.direction: "),
        (own("hits", "labels"), r"metrics\.1\.needs: "),
        (HITS.replace("own_metrics:hits", "hits"), r"metrics\.1"),
        (MISSES.replace('"bad"', '"coverage"'), "name: 'coverage'"),
        (MISSES.replace('"bad"', '"../bad"'), r"metrics\.1\.name: "),
        ('"coverge"', "'coverage'"),
        (f"{HITS}, {HITS}", "metrics: .* 'hits'"),
    ],
)
def test_a_misconfigured_metric_gives_one_error(metric, message):
    with pytest.raises(RunError, match=message) as caught:
        parse_experiment(with_metrics(metric), name="mine")
    assert "\n" not in str(caught.value)


def test_keys_of_judgements_with_built_in_metrics_do_not_change():
    experiment = parse_experiment(
        'datasets = ["planted"]\nmethods = ["sum-f"]\nmetrics = ["coverage", "macro_f1"]\n'
        "[sizes]\npercent = [10]\n",
        name="mine",
    )
    cell = plan(experiment, {"planted": DatasetFacts("planted", 100, 50, 5, 2.0, "0", "percent")})[0]
    # The format from before user-defined metrics.
    text = (
        '{"classifier": {"class": "labelsieve.classify:LabelwiseSVM", "params": {"C": 1.0, "gamma": "scale", '
        '"kernel": "linear", "max_iter": 100000, "one_class": "lowest", "scale": "minmax"}}, "conventions": {}, '
        '"metrics": ["coverage", "macro_f1"], "ranking": "' + cell.key + '", "sizes": [[10.0, 5]]}'
    )
    assert cell.judgements[0].key == hashlib.sha256(text.encode()).hexdigest()[:32]
    assert experiment.as_dict()["metrics"] == ["coverage", "macro_f1"]


def test_the_key_of_a_judgement_depends_on_the_source_of_metrics_but_not_their_direction(project, tmp_path):
    def keys(*metrics):
        return {judgement.key for cell in cells_of(project(*metrics))[1] for judgement in cell.judgements}

    base = keys(HITS)
    assert keys(HITS.replace("higher", "lower")) == base
    assert keys(HITS.replace("{ ", '{ name = "hits", ')) == base
    others = [keys(own("hits", "predictions")), keys(MISSES), keys(own("partly")), keys()]
    module = tmp_path / "own_metrics.py"
    module.write_text(OWN_METRICS + "\n# another\n")
    others += [keys(HITS), keys(own("partly"))]
    assert len(set.union(base, *others)) == len(base) * 7
    module.write_text(OWN_METRICS)
    assert keys(HITS) == base


def test_a_metric_can_be_a_function_of_an_installed_package(project):
    config = project('{ metric = "sklearn.metrics:ndcg_score", direction = "higher", needs = "scores" }')
    experiment, cells = cells_of(config)
    values = [
        score.value for score in bench.evaluate(experiment, cells[0]).scores if score.metric == "ndcg_score"
    ]
    assert len(values) == 2
    assert all(0 < value <= 1 for value in values)


@pytest.mark.usefixtures("plain_terminal")
def test_the_report_ranks_by_the_configured_direction(project, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # draw in this process
    config = project(HITS, MISSES, own("sparseness", "predictions"))
    bench.here(config)
    folder = tmp_path / "runs" / "measured"
    summary = summarise(read_results(folder))
    path = tmp_path / "measured.csv.gz"
    write_summary(summary, path)
    for found in (summary, read_summary(path)):
        main = analyse(found).main
        np.testing.assert_allclose(main.table("hits"), 1 - main.table("bad"))
        directions = [found.direction(name) for name in ("one_error", "hits", "bad")]
        assert directions == ["lower", "higher", "lower"]
        np.testing.assert_array_equal(main.ranks["hits"], main.ranks["bad"])
        means = main.table("hits").iloc[0, :2].tolist()
        assert means[0] != means[1]
        assert main.ranks["hits"].iloc[0].tolist() == ([1, 2] if means[0] > means[1] else [2, 1])
    code, _, _ = run(capsys, "report", str(path), "--out", str(tmp_path / "page"), "--figures", "svg")
    assert code == 0
    page = (tmp_path / "page" / "index.html").read_text("utf-8")
    assert "Hits ↑" in page
    assert "Bad ↓" in page
    names = {file.name for file in (tmp_path / "page").rglob("*.*")}
    assert {"metric_hits.csv", "metric_bad.tex", "curves_hits.svg", "curves_bad.svg"} <= names
