"""Valid and invalid configurations and the built-in profiles."""

import sys

import numpy as np
import pytest

from labelsieve import METHODS
from labelsieve.bench import RunError
from labelsieve.bench.config import PROFILES, build_experiment, load_experiment, parse_experiment
from labelsieve.bench.data import DatasetFacts
from labelsieve.bench.plan import plan, subset_sizes
from labelsieve.classify import MLkNN
from labelsieve.cli import main

MINIMAL = 'datasets = ["planted"]\nmethods = ["sum-f"]\n'


def parse(text):
    return parse_experiment(text, name="mine")


def facts(name, n_features=50, checksum="0"):
    return DatasetFacts(name, 100, n_features, 5, 2.0, checksum, "percent")


def facts_of(experiment):
    return {spec.name: facts(spec.name) for spec in experiment.datasets}


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_can_be_planned(name):
    experiment = load_experiment(name)
    cells = plan(experiment, facts_of(experiment))
    assert experiment.name == name
    assert experiment.title
    assert len(cells) >= len(experiment.datasets) * experiment.folds * len(experiment.all_methods())


def test_the_paper_profile_is_the_papers_experiment():
    paper = load_experiment("paper")
    assert (len(paper.datasets), len(paper.methods), paper.folds) == (8, 9, 10)
    assert paper.sizes.percent == tuple(range(1, 21))
    assert paper.sizes.counts == {"water_quality": tuple(range(1, 17))}
    assert [reference.name for reference in paper.references] == [
        "no-features",
        "all-features",
        "random-ranking",
        "evidence",
        "sum-f",
        "sum-mi",
        "rfs",
    ]
    lite = load_experiment("paper-lite")
    assert {d.name for d in lite.datasets} == {d.name for d in paper.datasets}
    assert lite.methods == paper.methods
    assert (lite.folds, len(lite.sizes.percent)) == (3, 5)


def test_the_field_is_paper_lite_with_every_method_of_the_package():
    field, lite = load_experiment("field"), load_experiment("paper-lite")
    named = {method.name for method in (*field.methods, *field.references)}
    assert named == {*METHODS, "no-features", "all-features"}
    changed = {name for name, value in field if value != getattr(lite, name)}
    assert changed == {"name", "title", "methods"}


#: Invalid addition to a configuration -> key or value in the error.
BAD = {
    "fold = 3": "fold: .* 'folds'",
    "[limits]\nsecond = 3": "limits.second: .* 'seconds'",
    'conventions = [{}, {tie = "index"}]': "conventions.1.tie: .* 'ties'",
    "folds = 1": "folds: .* 1",
    "noise = [{rate = 1.2}]": "noise.0: rate: .* 1.2",
    'noise = [{model = "count", rate = 1.5}]': "rate: .* 1.5",
    'noise = [{model = "flip"}]': "rate: .* 'flip'",
    'noise = [{model = "given", rate = 0.1}]': "rate: ",
    'metrics = ["f1"]': "metrics.0: .* 'f1'",
    "[sizes]\npercent = [10, 5]": "percent: ",
    "[sizes]\ncounts = {yeast = [1]}": "sizes.counts: 'yeast'",
    'references = ["rfs"]\ncontrol = "rfs"': "control: .* 'rfs'",
    'references = ["sum-f"]': "methods: .* 'sum-f'",
    'ablation = ["rfs"]': "ablation: ",
    'name = ".."': "name: ",
    "seeds = [-1]": "seeds.0: ",
    'name = "a/b"': "name: .* 'a/b'",
    '[[sweeps]]\nmethod = "sum-f"\nparameters = {}': "sweeps.0.parameters",
}


@pytest.mark.parametrize("addition", BAD)
def test_a_bad_configuration_is_one_error_that_names_the_key(addition):
    with pytest.raises(RunError, match=BAD[addition]) as caught:
        parse(MINIMAL + addition + "\n")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("datasets = [", "TOML"),
        ('methods = ["sum-f"]', "datasets: "),
        ('datasets = ["planted"]', "methods: "),
        ('datasets = ["planted"]\nmethods = ["*"]\nreferences = 3', "references: .* 3"),
        ('methods = ["sum-f"]\ndatasets = [{name = "x", labels = "y*"}]', "labels: "),
    ],
)
def test_a_configuration_needs_its_parts(text, key):
    with pytest.raises(RunError, match=key):
        parse(text)


def test_a_misspelt_profile_gets_a_suggestion(capsys):
    with pytest.raises(RunError, match="'paper-lite'"):
        load_experiment("papr-lite")
    assert main(["bench", "profiles", "tinny"]) == 2
    assert "'tiny'" in capsys.readouterr().err


def test_a_configuration_must_be_utf_8(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(RunError, match="UTF-8"):
        load_experiment(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ('"sum-g"', "'sum-f'"),
        ('"nowhere.at_all:Method"', "'nowhere.at_all:Method'"),
        ('"labelsieve:Nothing"', "'labelsieve:Nothing'"),
        ('"os:system"', "'os:system'"),  # not a class with fit
        ('{method = "sum-f", params = {alpha = 1}}', "n_features_to_select"),
    ],
)
def test_an_unknown_method_fails_before_anything_runs(method, named):
    experiment = parse(f'datasets = ["planted"]\nmethods = [{method}]\n')
    with pytest.raises(RunError, match=named):
        plan(experiment, facts_of(experiment))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("def (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("exit(0)", "SystemExit"),
        (
            "from sklearn.base import BaseEstimator\nclass Mine(BaseEstimator):\n"
            "    def __init__(self, alpha=1): ...\n    def fit(self, X, Y): ...\n",
            "AttributeError: .*alpha",  # of get_params
        ),
    ],
)
def test_a_module_with_an_error_fails_before_anything_runs(tmp_path, monkeypatch, content, error):
    (tmp_path / "unsound_methods.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "unsound_methods", raising=False)
    experiment = parse('datasets = ["planted"]\nmethods = ["unsound_methods:Mine"]\n')
    with pytest.raises(RunError, match=error):
        plan(experiment, facts_of(experiment))


def test_sizes_follow_the_protocol():
    experiment = parse(MINIMAL + "[sizes]\npercent = [1, 5, 7, 10, 20]\n")
    # 49 features: 0.49 -> at least one, 2.45 -> 2, 3.43 -> 3, 4.9 -> 5, 9.8 -> 10.
    assert subset_sizes(experiment, facts("planted", 49)) == ((1, 1), (5, 2), (7, 3), (10, 5), (20, 10))
    # In floating point, 7% of 100 is 7.000000000000001.
    assert dict(subset_sizes(experiment, facts("planted", 100)))[7.0] == 7
    floor = parse(MINIMAL + '[sizes]\npercent = [1, 5, 7, 10, 20]\nrounding = "floor"\n')
    assert subset_sizes(floor, facts("planted", 49)) == ((1, 1), (5, 2), (7, 3), (10, 4), (20, 9))
    up = parse(MINIMAL + '[sizes]\npercent = [1, 5, 7, 10, 20]\nrounding = "up"\n')
    assert subset_sizes(up, facts("planted", 49)) == ((1, 1), (5, 3), (7, 4), (10, 5), (20, 10))
    counts = parse(MINIMAL + "[sizes]\ncounts = {planted = [1, 4, 99]}\n")
    assert subset_sizes(counts, facts("planted", 49)) == ((1, 1), (4, 4))


def test_keys_depend_only_on_what_affects_the_result():
    def keys(text, checksum="0"):
        experiment = parse(text)
        known = {spec.name: facts(spec.name, checksum=checksum) for spec in experiment.datasets}
        cells = plan(experiment, known)
        return {
            (str(cell), judgement.judge.name): judgement.key
            for cell in cells
            for judgement in cell.judgements
        }

    base = keys(MINIMAL)
    assert len(set(base.values())) == len(base) == 10
    assert keys(MINIMAL + 'title = "other"\nreferences = ["rfs"]\n').items() >= base.items()
    assert keys('datasets = ["digits", "planted"]\nmethods = ["rfs", "sum-f"]\n').items() >= base.items()
    assert keys(MINIMAL + "[limits]\nseconds = 1\n") == base
    renamed = keys('datasets = ["planted"]\nmethods = [{name = "mine", method = "sum-f"}]\n')
    assert set(renamed.values()) == set(base.values())
    for change in (
        "folds = 9\n",
        "seeds = [1]\n",
        "noise = [{rate = 0.3}]\n",
        "[sizes]\npercent = [5, 10]\n",
        'metrics = ["coverage"]\n',
        'classifiers = ["ml-knn"]\n',
        '[conventions]\nempty_rows = "perfect"\n',
        '[conventions]\nfolds = "consecutive"\n',
    ):
        assert not set(keys(MINIMAL + change).values()) & set(base.values()), change
    assert not set(keys(MINIMAL, checksum="1").values()) & set(base.values())
    one_bin = keys('datasets = ["planted"]\nmethods = [{method = "sum-mi", params = {n_bins = 2}}]\n')
    other_bin = keys('datasets = ["planted"]\nmethods = [{method = "sum-mi", params = {n_bins = 4}}]\n')
    assert not set(one_bin.values()) & set(other_bin.values())


def test_a_new_classifier_revision_changes_judgement_keys_only(monkeypatch):
    def keys():
        experiment = parse(MINIMAL + 'classifiers = ["ml-knn"]\n')
        cells = plan(experiment, facts_of(experiment))
        return {cell.key for cell in cells}, {part.key for cell in cells for part in cell.judgements}

    rankings, judgements = keys()
    monkeypatch.setattr(MLkNN, "_revision", MLkNN._revision + 1)
    assert keys()[0] == rankings
    assert not keys()[1] & judgements


def test_explicit_defaults_give_the_same_keys():
    default = METHODS["pml-fsmir"]().alpha
    methods = f'["pml-fsmir", {{method = "pml-fsmir", params = {{alpha = {default}}}}}]'
    experiment = parse(f'datasets = ["planted"]\nmethods = {methods}\n')
    cells = plan(experiment, facts_of(experiment))
    assert len({cell.key for cell in cells}) == len(cells) / 2


def test_a_star_stands_for_all_methods_not_listed():
    experiment = parse('datasets = ["planted"]\nmethods = ["rfs", "*"]\nreferences = ["sum-f"]\n')
    names = [method.name for method in experiment.methods]
    assert names[0] == "rfs"
    assert sorted([*names, "sum-f"]) == sorted(METHODS)


def test_sweeps_become_every_combination():
    experiment = parse(
        'datasets = ["planted"]\n[[sweeps]]\nmethod = "rfs"\nparameters = {alpha = [0.1, 1.0], max_iter = [5, 9]}\n'
    )
    assert [method.name for method in experiment.all_methods()] == [
        "rfs alpha=0.1 max_iter=5",
        "rfs alpha=0.1 max_iter=9",
        "rfs alpha=1 max_iter=5",
        "rfs alpha=1 max_iter=9",
    ]
    assert {method.role for method in experiment.all_methods()} == {"sweep"}


def test_only_the_random_reference_has_several_draws():
    experiment = parse(
        MINIMAL + 'references = ["random-ranking", "no-features"]\nrandom_draws = 4\nfolds = 2\n'
    )
    names = [cell.method.name for cell in plan(experiment, facts_of(experiment))]
    counts = {name: names.count(name) for name in set(names)}
    assert counts == {"sum-f": 2, "random-ranking": 8, "no-features": 2}


def test_a_configuration_can_be_stored_and_loaded():

    for name in PROFILES:
        experiment = load_experiment(name)
        again = build_experiment(experiment.as_dict(), name)
        assert again == experiment
        known = facts_of(experiment)
        assert np.array_equal(
            [cell.key for cell in plan(again, known)], [cell.key for cell in plan(experiment, known)]
        )


def test_the_key_of_a_ranking_does_not_depend_on_judgements():
    def rankings(text):
        experiment = parse(MINIMAL + text)
        return {cell.key for cell in plan(experiment, facts_of(experiment))}

    base = rankings("")
    for change in (
        "[sizes]\npercent = [5, 10]\n",
        'metrics = ["coverage"]\n',
        'classifiers = ["ml-knn", "own-weights"]\n',
        'conventions = [{ties = "index"}, {coverage = "count"}]\n',
        "store_weights = false\n",
    ):
        assert rankings(change) == base, change
    for change in ("folds = 9\n", "noise = [{rate = 0.3}]\n", '[conventions]\nfolds = "consecutive"\n'):
        assert not rankings(change) & base, change
    with_noise = rankings('conventions = [{name = "a"}, {name = "b", noise = [{rate = 0.3}]}]\n')
    assert base < with_noise
    assert len(with_noise) == 2 * len(base)


def test_conventions_are_one_table_or_several():
    one = parse(MINIMAL + '[conventions]\nties = "index"\n')
    assert [(judge.name, judge.conventions.ties) for judge in one.judges()] == [("linear-svm", "index")]
    several = parse(
        MINIMAL + 'classifiers = ["linear-svm", "own-weights"]\nconventions = [{}, {ties = "index", '
        'test_labels = "noisy"}, {name = "kNN", classifiers = ["ml-knn"]}]\n'
    )
    assert [judge.name for judge in several.judges()] == [
        "defaults, linear-svm",
        "defaults, own-weights",
        "ties index, test labels noisy, linear-svm",
        "ties index, test labels noisy, own-weights",
        "kNN",
    ]
    with pytest.raises(RunError, match="'defaults'"):
        parse(MINIMAL + 'conventions = [{}, {coverage = "zero-based"}]\n')
    with pytest.raises(RunError, match=r"conventions\.0\.ties: "):
        parse(MINIMAL + '[conventions]\nties = "luck"\n')


def test_own_weights_require_methods_that_declare_them():
    experiment = parse(
        'datasets = ["planted"]\nfolds = 2\nclassifiers = ["own-weights"]\n'
        'methods = ["pml-fsmir", "sum-f", "rfs", {method = "mifs", params = {scale = "standard"}}]\n'
        'references = ["no-features", "every-label", "all-features"]\n'
    )
    found = {
        cell.method.name: bool(cell.judgements[0].obstacle) for cell in plan(experiment, facts_of(experiment))
    }
    assert found == {
        "pml-fsmir": False,
        "sum-f": True,
        "rfs": True,
        "mifs scale=standard": True,
        "no-features": False,
        "every-label": False,
        "all-features": True,
    }
