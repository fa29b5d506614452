"""Alternatives equal experiments with that convention, and nothing is computed twice."""

import json
import re
import tomllib

import numpy as np
import pytest

from bench_runs import evaluate
from conftest import fails, run
from labelsieve.bench import RunError
from labelsieve.bench.components import use_folder
from labelsieve.bench.config import DatasetSpec, Experiment
from labelsieve.bench.data import describe, load_dataset
from labelsieve.bench.doctor import Effect, diagnose
from labelsieve.bench.plan import plan
from labelsieve.io import Dataset, write
from labelsieve.metrics import PROTOCOL_METRICS
from quick_cells import one_job_here

FOLDS, PERCENT = 3, (10, 30)

#: Alternative -> equivalent configuration of an experiment, independent of the doctor.
#: Of 17 features, 30% are 5.1, where round and floor agree, and 10% are 1.7, where they differ.
EXPECTED = {
    "noise model, relative 0.2": {"noise": [{"model": "relative", "rate": 0.2}]},
    # Of six labels, two or three are true, so flipping adds about 0.2 * 3.5.
    "noise model, count 1": {"noise": [{"model": "count", "rate": 1}]},
    "noise model, given": {"noise": [{"model": "given"}]},
    "test labels, noisy": {"conventions": {"test_labels": "noisy"}},
    "test labels, noisy for F1": {"conventions": {"test_labels": "noisy-f1"}},
    "training labels, clean": {"conventions": {"train_labels": "clean"}},
    "classifier, RBF SVM": {"classifiers": ["rbf-svm"]},
    "classifier, ML-kNN": {"classifiers": ["ml-knn"]},
    "classifier, own weights": {"classifiers": ["own-weights"]},
    "one-class labels, constant": {"conventions": {"one_class": "constant"}},
    "one-class labels, constant (clean)": {"conventions": {"train_labels": "clean", "one_class": "constant"}},
    "absent labels, left out": {"conventions": {"absent_labels": "skip"}},
    "absent labels, left out (clean)": {"conventions": {"train_labels": "clean", "absent_labels": "skip"}},
    "ranking scores, hard": {"conventions": {"ranking_scores": "hard"}},
    "empty rows, perfect": {"conventions": {"empty_rows": "perfect"}},
    "ties, by index": {"conventions": {"ties": "index"}},
    "ties, by index (hard)": {"conventions": {"ties": "index", "ranking_scores": "hard"}},
    "coverage, count": {"conventions": {"coverage": "count"}},
    "coverage, one-based": {"conventions": {"coverage": "one-based"}},
    "coverage, excess": {"conventions": {"coverage": "excess"}},
    "folds, stratified": {"conventions": {"folds": "stratified"}},
    "folds, consecutive": {"conventions": {"folds": "consecutive"}},
    "undefined F1, 1": {"conventions": {"f1_undefined": 1}},
    "undefined F1, left out": {"conventions": {"f1_undefined": "skip"}},
    "undefined F1, 1 (clean)": {"conventions": {"train_labels": "clean", "f1_undefined": 1}},
    "rounding of sizes, floor": {"sizes": {"percent": PERCENT, "rounding": "floor"}},
    "rounding of sizes, up": {"sizes": {"percent": PERCENT, "rounding": "up"}},
}
#: The filter has no weights, with noise every label has a positive, and decision values have no ties.
WITHOUT_EFFECT = ["classifier, own weights", "absent labels, left out", "ties, by index"]


def awkward():
    """Make data on which every convention matters: empty rows, a rare label, given candidates."""
    rng = np.random.default_rng(3)
    X = rng.random((90, 17)).round(3)
    Y = np.zeros((90, 6), dtype=int)
    Y[:, :4] = X[:, :4] + 0.3 * rng.random((90, 4)) > 0.75
    Y[:20] = 0
    Y[40, 4] = 1  # one fold has no training row with this label
    Y[1:, 5] = 1  # one fold has no training row without this label, even with noise
    candidates = np.maximum(Y, rng.random(Y.shape) < 0.3)
    return Dataset(X, Y, candidates, name="awkward")


@pytest.fixture(autouse=True)
def in_empty_folder(plain_terminal, one_job_here):
    """Run in an empty folder without extra processes."""


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "awkward.npz"
    write(awkward(), path)
    return DatasetSpec(name="awkward", path=str(path))


@pytest.fixture(scope="module")
def found(spec):
    with one_job_here():
        return diagnose(spec, "sum-f", folds=FOLDS, percent=PERCENT)


def by_hand(spec, changes):
    """Compute the mean over the sizes by metric and fold from the cells of an experiment."""
    settings = {"folds": FOLDS, "sizes": {"percent": PERCENT}, "methods": ["sum-f"], **changes}
    experiment = Experiment(name="by-hand", datasets=[spec], **settings)
    cells = plan(experiment, {spec.name: describe(spec, load_dataset(spec, None), experiment)})
    results = [evaluate(experiment, cell) for cell in cells]
    assert [result.error for result in results] == [None] * FOLDS
    return {
        metric: [
            float(np.mean([row.value for row in result.scores if row.metric == metric])) for result in results
        ]
        for metric in PROTOCOL_METRICS
    }


def as_lists(values):
    return {metric: list(entries) for metric, entries in values.items()}


def test_the_baseline_is_the_experiment_with_defaults(found, spec):
    assert as_lists(found.values) == by_hand(spec, {})


def test_all_alternatives_of_the_protocol_are_there(found):
    assert [str(finding) for finding in found.findings] == list(EXPECTED)


@pytest.mark.parametrize("choice", EXPECTED)
def test_an_alternative_is_the_experiment_with_that_convention(choice, found, spec):
    finding = next(finding for finding in found.findings if str(finding) == choice)
    expected = {} if choice == "classifier, own weights" else by_hand(spec, EXPECTED[choice])
    assert as_lists(finding.values) == expected


def test_every_convention_matters_somewhere(found):
    """Make sure that the comparison above is not trivial."""
    unchanged = [str(finding) for finding in found.findings if not finding.changes_something]
    assert unchanged == WITHOUT_EFFECT


def test_settings_are_what_a_configuration_file_takes(found):
    for finding in found.findings:
        expected = EXPECTED[str(finding)]
        if "sizes" in expected:
            expected = {"sizes": {"rounding": expected["sizes"]["rounding"]}}
        assert tomllib.loads(finding.setting) == expected


def test_differences_are_paired_if_the_folds_are_the_same(found):
    findings = {str(finding): finding for finding in found.findings}
    before = found.values["macro_f1"]
    for name in ("classifier, ML-kNN", "folds, stratified"):
        after = findings[name].values["macro_f1"]
        paired = name != "folds, stratified"
        variance = (after - before).var(ddof=1) if paired else after.var(ddof=1) + before.var(ddof=1)
        expected = (after.mean(), after.mean() - before.mean(), np.sqrt(variance / FOLDS))
        assert findings[name].effects["macro_f1"] == pytest.approx(expected, rel=1e-12)
        assert findings[name].paired == paired
    constant, clean = findings["one-class labels, constant (clean)"], findings["training labels, clean"]
    difference = constant.values["coverage"].mean() - clean.values["coverage"].mean()
    assert constant.effects["coverage"].difference == difference != 0


@pytest.mark.parametrize(
    ("difference", "standard_error", "expected"),
    [(0.1, 0.04, True), (-0.1, 0.04, True), (0.1, 0.06, False), (0.0, 0.0, False), (0.1, 0.0, True)],
)
def test_a_difference_stands_out_beyond_two_standard_errors(difference, standard_error, expected):
    assert Effect(0.5, difference, standard_error).stands_out is expected


def test_a_change_of_unit_is_not_a_large_effect(found):
    coverage = next(finding for finding in found.findings if str(finding) == "coverage, count")
    assert coverage.effects["coverage"].stands_out
    assert coverage not in [finding for finding, _ in found.largest(100)]


def test_the_largest_effects_come_first(found):
    sizes = [abs(finding.effects[metric].difference) for finding, metric in found.largest(100)]
    assert len(sizes) > 3
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == max(size for finding in found.findings for size in finding.outstanding.values())


COUNTING = """
from pathlib import Path
from labelsieve import SumF
from labelsieve.classify import LabelwiseSVM

def count(kind):
    with open(Path(__file__).with_name(kind), "a") as stream:
        stream.write(".")

class Selector(SumF):
    def fit(self, X, y):
        count("selectors")
        return super().fit(X, y)

class Classifier(LabelwiseSVM):
    def fit(self, X, y):
        count("classifiers")
        return super().fit(X, y)

class Failing(SumF):
    def fit(self, X, y):
        count("failures")
        raise ValueError("no ranking\\ntoday")
"""


@pytest.fixture
def own_module(tmp_path):
    """Write a user-defined module under a name that no other test imports."""
    name = f"counting_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(COUNTING)
    return name


def test_features_are_ranked_again_only_for_other_noise_and_other_folds(own_module, spec, tmp_path):
    diagnose(spec, f"{own_module}:Selector", folds=2, folder=str(tmp_path))
    # Rankings: the defaults, three other noise models, stratified and consecutive folds.
    assert len((tmp_path / "selectors").read_text()) == 6 * 2


def test_classifiers_are_fitted_again_only_for_other_labels_and_sizes(own_module, spec, tmp_path):
    experiment = Experiment(
        name="x",
        datasets=[spec],
        methods=["sum-f"],
        folds=2,
        sizes={"percent": PERCENT},
        classifiers=[f"{own_module}:Classifier"],
        conventions=[
            {},
            {"empty_rows": "perfect"},
            {"ranking_scores": "hard"},
            {"test_labels": "noisy"},
            {"folds": "stratified"},
            {"train_labels": "clean"},
            {"name": "floor", "rounding": "floor"},
        ],
        folder=str(tmp_path),
    )
    use_folder(experiment)
    for cell in plan(experiment, {spec.name: describe(spec, load_dataset(spec, None), experiment)}):
        assert evaluate(experiment, cell).error is None
    # In two folds: defaults, stratified and clean at two sizes each, and one feature with floor.
    assert len((tmp_path / "classifiers").read_text()) == 2 * (3 * 2 + 1)


def test_a_failing_method_runs_once_per_fold_and_gives_one_error(own_module, tmp_path):
    with pytest.raises(RunError, match="no ranking today"):
        diagnose("planted", f"{own_module}:Failing", folds=2, folder=str(tmp_path))
    assert len((tmp_path / "failures").read_text()) == 5 * 2


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes(found, spec):
    again = diagnose(spec, "sum-f", folds=FOLDS, percent=PERCENT, jobs=2)
    assert again.as_dict() == found.as_dict()


def test_a_failing_alternative_does_not_affect_the_others():
    """ML-kNN needs ten neighbours, but there are nine training rows."""
    data = awkward()
    small = Dataset(data.X[20:38], data.Y[20:38], name="small")
    write(small, "small.npz")
    found = diagnose(DatasetSpec(name="small", path="small.npz"), "sum-f", folds=2)
    findings = {str(finding): finding for finding in found.findings}
    assert findings["classifier, ML-kNN"].effects == {}
    assert "n_neighbors" in findings["classifier, ML-kNN"].note
    assert findings["classifier, RBF SVM"].effects


def test_the_command_prints_a_summary_and_tables(capsys):
    code, out, err = run(capsys, "bench", "doctor", "planted", "--method", "sum-f", "--folds", "2", "-j", "1")
    assert (code, err) == (0, "")
    assert re.match("planted, sum-f: 6 of 60 .* 2 folds", out)
    assert max(len(line) for line in out.splitlines() if not line.startswith("- ")) <= 80
    # At 80 columns, the metrics need two tables.
    assert out.count("protocol defaults  ") == 2


def test_json_has_all_values(capsys, spec, found):
    arguments = ["--size", "30%", "--size", "10%", "--folds", str(FOLDS), "-j", "1", "--json"]
    code, out, err = run(capsys, "bench", "doctor", spec.path[0], "-m", "sum-f", *arguments)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["dataset"]["n_samples"] == 90
    assert answer["sizes"] == [{"size": 10.0, "n_features": 2}, {"size": 30.0, "n_features": 5}]
    assert answer == found.as_dict()


def test_a_user_table_with_numbers_of_features(capsys, table):
    code, out, _ = run(
        capsys,
        *("bench", "doctor", table, "--labels", "2", "-m", "sum-f"),
        *("--folds", "2", "--size", "2", "--size", "1", "-j", "1"),
    )
    assert code == 0
    assert out.startswith("data, sum-f: 1, 2 of 5 features")


@pytest.mark.parametrize(
    ("code", "arguments", "expected"),
    [
        (1, ["nowhere.csv"], "nowhere.csv"),
        (1, ["planted", "-m", "all-features"], "'all-features'"),
        (1, ["planted", "-m", "sum-f", "--folds", "301"], "301"),
        (1, ["planted", "-m", "sum-f", "--size", "61"], "61"),
        (2, ["planted", "--folds", "1"], "--folds"),
        (2, ["planted", "--size", "120%"], "--size"),
        (2, ["planted", "--size", "5", "--size", "10%"], "--size"),
        (2, ["planted", "--labels", "2"], "planted"),
    ],
)
def test_bad_input_gives_one_error(capsys, code, arguments, expected):
    assert expected in fails(capsys, code, "bench", "doctor", *arguments, "--jobs", "1")
