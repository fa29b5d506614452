"""Judgements reuse stored rankings, with classifiers or with the weights of the method."""

import json
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

import bench_runs as bench
from labelsieve import METRICS
from labelsieve.bench import RunError
from labelsieve.bench.config import load_experiment, parse_experiment
from labelsieve.bench.data import DatasetFacts, describe, load_dataset, split_fold
from labelsieve.bench.plan import plan
from labelsieve.bench.results import read_results, read_status
from labelsieve.io import Dataset, write
from labelsieve.report.analysis import analyse
from labelsieve.report.summary import summarise

pytestmark = pytest.mark.usefixtures("one_job_here")

#: Method with weights that score labels. It records each fit in a file.
COUNTING = """
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator


class Counting(BaseEstimator):
    weights_score_labels = True

    def fit(self, X, Y):
        with open(Path(__file__).with_name("fits"), "a") as stream:
            stream.write(".")
        if Path(__file__).with_name("broken").exists():
            raise RuntimeError("no ranking today")
        self.coef_ = (Y - Y.mean(axis=0)).T @ X / len(X)
        self.scores_ = np.abs(self.coef_).sum(axis=0)
        return self
"""
BASE = """
folds = 3
datasets = [{ name = "small", path = "small.csv", labels = "label_*" }]
methods = ["counting_method:Counting"]
references = ["no-features", "all-features"]
"""
#: Configuration without conventions and classifiers.
PLAIN = BASE + "[sizes]\npercent = [20, 60]\n"


@pytest.fixture
def project(tmp_path):
    """An experiment and a function that counts the fits of its method since the last call."""
    (tmp_path / "counting_method.py").write_text(COUNTING)
    config = bench.make_project(tmp_path, PLAIN, "judged")
    record = tmp_path / "fits"

    def fits():
        found = len(record.read_text()) if record.exists() else 0
        record.unlink(missing_ok=True)
        return found

    return config, tmp_path / "runs" / "judged", fits


def counts(config, *arguments, code=0):
    """Return the counts of a run."""
    out, _ = bench.inside(config, "--jobs", 1, "--json", *arguments, code=code)
    return {key: json.loads(out)[key] for key in ("planned", "done", "computed", "ranked")}


def change(config, text):
    config.write_text(text)


# own weights


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_own_weights_follow_their_definition(tmp_path, storage):
    rng = np.random.default_rng(0)
    X = rng.random((60, 8)).round(2) * (rng.random((60, 8)) < 0.6) * 3
    Y = (X[:, :3] + 0.5 * rng.random((60, 3)) > 1).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    write(Dataset(sp.csr_array(X) if storage == "sparse" else X + 1.5, Y), tmp_path / "own.npz")
    experiment = parse_experiment(
        'datasets = [{name = "own", path = "own.npz"}]\nfolds = 3\nmethods = ["mifs"]\n'
        'classifiers = ["own-weights", {name = "low", classifier = "own-weights", params = {threshold = 0.1}}]\n'
        "[sizes]\npercent = [25, 50]\n",
        name="own",
        folder=tmp_path,
    )
    spec = experiment.datasets[0]
    cell = plan(experiment, {"own": describe(spec, load_dataset(spec, experiment.folder), experiment)})[0]
    found = bench.evaluate(experiment, cell)
    assert found.error is None, found.traceback
    part = split_fold(experiment, spec, experiment.noise[0], 0, 0)
    coef = found.ranked.weights
    assert coef.dtype == np.float32
    # Features are scaled by the minimum and maximum of the training rows, or by the largest value if sparse.
    scaler = MaxAbsScaler() if storage == "sparse" else MinMaxScaler()
    tested = scaler.fit(part.X_train).transform(part.X_test)
    tested = tested.toarray() if storage == "sparse" else tested
    for name, threshold in (("own-weights", 0.5), ("low", 0.1)):
        for size, count in ((25.0, 2), (50.0, 4)):
            kept = found.ranking[:count]
            scores = tested[:, kept] @ coef[:, kept].T.astype(float)
            # Rows with only zeros in the selected features tie exactly.
            outputs = {"scores": scores.round(12), "predictions": (scores >= threshold).astype(int)}
            values = {
                row.metric: row.value for row in found.scores if (row.classifier, row.size) == (name, size)
            }
            assert values == pytest.approx(
                {
                    metric: METRICS[metric].function(part.Y_test, outputs[METRICS[metric].needs])
                    for metric in values
                },
                abs=1e-9,
            )
            assert len(values) == 8


def test_every_label_scores_by_frequency_and_predicts_everything():
    experiment = parse_experiment(
        'datasets = ["planted"]\nfolds = 3\nreferences = ["every-label", "no-features"]\n'
        'classifiers = ["own-weights"]\n',
        name="mine",
    )
    spec = experiment.datasets[0]
    cells = plan(experiment, {"planted": describe(spec, load_dataset(spec, None), experiment)})[:2]
    every, none = (
        {row.metric: row.value for row in bench.evaluate(experiment, cell).scores} for cell in cells
    )
    part = split_fold(experiment, spec, experiment.noise[0], 0, 0)
    scores = np.tile(part.Y_train.mean(axis=0), (len(part.X_test), 1))
    for metric, value in every.items():
        said = scores if METRICS[metric].needs == "scores" else np.ones_like(part.Y_test)
        assert value == METRICS[metric].function(part.Y_test, said)
        assert value == none[metric] or METRICS[metric].needs == "predictions"
    assert every["micro_f1"] > none["micro_f1"]


def test_methods_without_weights_are_not_judged_by_own_weights(project):
    config, folder, _ = project
    change(
        config,
        'classifiers = ["linear-svm", "own-weights"]\n' + PLAIN.replace('Counting"]', 'Counting", "sum-f"]'),
    )
    # In three folds, four methods are judged by linear-svm and two by own-weights.
    assert counts(config) == {"planned": 18, "done": 18, "computed": 18, "ranked": 6}
    (remark,) = read_status(folder)["remarks"]
    assert "own-weights" in remark
    assert "sum-f, all-features" in remark
    facts = summarise(read_results(folder)).facts
    assert facts.coverage.complete
    assert facts.failures == ()
    assert analyse(summarise(read_results(folder))).main.classifier == "linear-svm"


# rank once, judge often


def test_new_judgements_of_a_finished_run_rank_nothing_again(project):
    config, folder, fits = project
    assert counts(config) == {"planned": 9, "done": 9, "computed": 9, "ranked": 3}
    assert fits() == 3
    known = bench.stored(folder)
    classifiers = 'classifiers = ["linear-svm", "ml-knn", "own-weights"]\n'
    change(config, classifiers + PLAIN)
    assert counts(config) == {"planned": 24, "done": 24, "computed": 15, "ranked": 0}
    conventions = 'conventions = [{ name = "linear-svm" }, { ties = "index" }]\n'
    change(config, conventions + PLAIN)
    # Judgements are found by key, whatever the name of their conventions.
    assert counts(config, "--accept-changes") == {"planned": 18, "done": 18, "computed": 9, "ranked": 0}
    change(config, 'metrics = ["coverage", "samples_f1"]\n' + PLAIN)
    assert re.search(r"\(metrics, conventions\).* 18 ", bench.fails(config))
    assert counts(config, "--accept-changes") == {"planned": 9, "done": 9, "computed": 9, "ranked": 0}
    change(config, PLAIN.replace("[20, 60]", "[10, 20, 60]"))
    # The references have no sizes, so their judgements are already there.
    assert counts(config, "--accept-changes") == {"planned": 9, "done": 9, "computed": 3, "ranked": 0}
    assert fits() == 0
    change(config, PLAIN)
    assert counts(config, "--accept-changes")["computed"] == 0
    after = bench.stored(folder)
    assert after["rankings"] == known["rankings"]
    assert set(known["cells"]) < set(after["cells"])


def test_later_judgements_equal_immediate_ones(project):
    config, folder, _ = project
    bench.inside(config, "--jobs", 1)
    change(config, 'classifiers = ["own-weights", "linear-svm", "ml-knn"]\n' + PLAIN)
    bench.inside(config, "--jobs", 1)
    bench.inside(config, "--jobs", 1, "--out", "at-once")
    assert bench.stored(folder) == bench.stored(config.parent / "at-once")


def test_rankings_of_another_run_are_reused(project):
    config, folder, fits = project
    bench.inside(config, "--jobs", 1)
    assert fits() == 3
    other = config.with_name("other.toml")
    other.write_text('classifiers = ["own-weights"]\n' + PLAIN.replace('"all-features"', '"every-label"'))
    assert counts(other, "--rankings", "judged") == {"planned": 9, "done": 9, "computed": 9, "ranked": 0}
    assert fits() == 0
    bench.inside(other, "--jobs", 1, "--out", "alone")
    assert bench.stored(config.parent / "runs" / "other") == bench.stored(config.parent / "alone")
    assert "--rankings" in bench.fails(config, "--rankings", folder)
    assert "'nowhere'" in bench.fails(config, "--rankings", "nowhere")


def test_rankings_without_stored_weights_are_recomputed_only_on_request(project):
    config, folder, fits = project
    change(config, "store_weights = false\n" + PLAIN)
    bench.inside(config, "--jobs", 1)
    known = bench.stored(folder)
    assert fits() == 3
    change(config, 'classifiers = ["linear-svm", "own-weights"]\n' + PLAIN)
    assert "--accept-changes" in bench.fails(config)
    assert fits() == 0
    assert counts(config, "--accept-changes") == {"planned": 15, "done": 15, "computed": 9, "ranked": 3}
    assert fits() == 3
    assert set(known["rankings"]) == set(bench.stored(folder)["rankings"])
    change(config, 'classifiers = ["own-weights"]\n' + BASE + "[sizes]\npercent = [50]\n")
    assert counts(config, "--accept-changes")["ranked"] == 0


def test_a_ranking_that_cannot_be_recomputed_keeps_its_judgements(project):
    config, folder, _ = project
    change(config, "store_weights = false\n" + PLAIN)
    bench.inside(config, "--jobs", 1)
    known = bench.stored(folder)
    broken = config.with_name("broken")
    broken.touch()
    change(config, 'classifiers = ["linear-svm", "own-weights"]\n' + PLAIN)
    result = counts(config, "--accept-changes", code=3)
    assert result == {"planned": 15, "done": 12, "computed": 9, "ranked": 3}
    after = bench.stored(folder)
    assert after["rankings"] == known["rankings"]
    assert set(known["cells"]) < set(after["cells"])
    broken.unlink()
    again = counts(config, "--retry-failed", "--accept-changes")
    assert again == {"planned": 15, "done": 15, "computed": 6, "ranked": 3}


@pytest.mark.parametrize("damage", ["UPDATE weights SET packed = zeroblob(30)", "DELETE FROM weights"])
def test_damaged_weights_are_recomputed_with_their_ranking(project, damage):
    config, folder, fits = project
    change(config, 'classifiers = ["own-weights"]\n' + PLAIN)
    bench.inside(config, "--jobs", 1)
    assert fits() == 3
    with closing(sqlite3.connect(folder / "results.sqlite")) as database, database:
        database.execute(damage)
    # The stored judgements are still valid.
    assert counts(config) == {"planned": 6, "done": 6, "computed": 0, "ranked": 0}
    change(config, 'classifiers = ["own-weights"]\nconventions = [{}, { ties = "index" }]\n' + PLAIN)
    assert "--accept-changes" in bench.fails(config)
    assert counts(config, "--accept-changes") == {"planned": 12, "done": 12, "computed": 9, "ranked": 3}
    assert fits() == 3
    bench.inside(config, "--jobs", 1, "--out", "again")
    scores, expected = (
        {key: scores for key, *_, scores in bench.stored(place)["cells"]}
        for place in (folder, config.parent / "again")
    )
    assert scores == expected


def test_conventions_can_round_sizes_differently(project):
    config, folder, _ = project
    ways = '[{ name = "up", rounding = "up" }, { name = "down", rounding = "floor" }]'
    change(config, f"conventions = {ways}\n{BASE}[sizes]\npercent = [25]\n")  # of ten features
    bench.inside(config, "--jobs", 1)
    summary = summarise(read_results(folder))
    counting = summary.means[summary.means["method"] == "counting_method:Counting"]
    kept = set(zip(counting["classifier"], counting["n_features"], strict=True))
    assert {n for _, n in kept} == {2, 3}
    assert len(kept) == 2
    (stability,) = (one for one in summary.facts.stability if one["method"] == "counting_method:Counting")
    assert stability["n_rankings"] == 3


def test_a_judgement_that_fails_leaves_the_ranking_and_the_others(project):
    config, folder, fits = project
    greedy = '{ name = "greedy", classifier = "ml-knn", params = { n_neighbors = 1000 } }'
    change(config, f'classifiers = ["linear-svm", {greedy}]\n' + PLAIN)
    _, err = bench.inside(config, "--jobs", 1, code=3)
    assert "fold 0, counting_method:Counting, greedy: ValueError" in err
    assert fits() == 3
    facts = summarise(read_results(folder)).facts
    assert (facts.coverage.n_planned, facts.coverage.n_done, facts.coverage.n_failed) == (18, 12, 6)
    assert facts.classifiers == ("linear-svm", "greedy")  # without features, all classifiers agree
    assert "small, flip 0.2, seed 0, fold 2, counting_method:Counting, greedy" in {
        cell for failure in facts.failures for cell in failure["cells"]
    }
    assert len(read_status(folder)["failures"]) == 6
    out, _ = bench.inside(folder, "--jobs", 1, "--trust", "--json", verb="retry-failed", code=3)
    assert (json.loads(out)["computed"], json.loads(out)["ranked"]) == (6, 0)
    assert fits() == 0


# profiles


def test_settings_that_do_not_fit_the_data_fail_before_the_first_cell(project):
    config, folder, fits = project
    change(config, PLAIN.replace("folds = 3", "folds = 81"))
    assert re.search("folds .* 80.* 81", bench.fails(config))
    change(config, 'noise = [{ rate = 0.2 }, { model = "given" }]\n' + PLAIN)
    assert "noise: " in bench.fails(config)
    change(config, BASE + "[sizes]\ncounts = { small = [11, 12] }\n")
    assert "11, 12" in bench.fails(config)
    assert fits() == 0
    with pytest.raises(RunError, match="labelsieve bench run"):
        read_results(folder)


def test_failed_cells_do_not_block_a_change_of_the_configuration(project):
    config, _, _ = project
    alone = PLAIN.replace('references = ["no-features", "all-features"]', "")
    change(config, alone)
    (config.parent / "broken").touch()
    assert counts(config, code=3)["done"] == 0
    (config.parent / "broken").unlink()
    change(config, alone.replace("folds = 3", "folds = 2"))
    assert counts(config)["done"] == 2
    change(config, alone)
    assert "2 finished cells" in bench.fails(config)


def test_the_rankings_of_the_paper_profile_serve_paper_weights():
    paper, weights = load_experiment("paper"), load_experiment("paper-weights")
    for name in ("datasets", "methods", "noise", "folds", "seeds", "sizes", "control"):
        assert getattr(weights, name) == getattr(paper, name)
    facts = {spec.name: DatasetFacts(spec.name, 100, 50, 5, 2.0, "0", "percent") for spec in paper.datasets}
    shared = {cell.key for cell in plan(paper, facts)}
    missing = {cell.method.name for cell in plan(weights, facts) if cell.key not in shared}
    assert missing == {"every-label"}
    assert not any(judgement.obstacle for cell in plan(weights, facts) for judgement in cell.judgements)
    for name in ("ablation", "sensitivity"):
        assert [judge.name for judge in load_experiment(name).judges()] == ["linear-svm", "own-weights"]
