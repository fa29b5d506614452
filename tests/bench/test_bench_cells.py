"""Cells against an independent implementation of the protocol; conventions; user-defined code and data."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from bench_runs import evaluate, write_data
from conftest import fails
from labelsieve import METHODS, METRICS, RFS, RandomRanking, SumF
from labelsieve.bench import RunError
from labelsieve.bench.cells import choose_metrics
from labelsieve.bench.components import feature_order, use_folder
from labelsieve.bench.config import PROFILES, load_experiment, parse_experiment
from labelsieve.bench.data import derive_seed, describe, load_dataset, split_fold
from labelsieve.bench.plan import plan
from labelsieve.classify import LabelFrequency, LabelwiseSVM, MLkNN
from labelsieve.datasets import add_candidates
from labelsieve.io import Dataset, write
from labelsieve.metrics import PROTOCOL_METRICS

BASE = 'datasets = ["planted"]\nfolds = 3\n'


def parse(text, folder=None):
    return parse_experiment(text, name="mine", folder=folder)


def cells_of(experiment):
    use_folder(experiment)
    facts = {
        spec.name: describe(spec, load_dataset(spec, experiment.folder), experiment)
        for spec in experiment.datasets
    }
    return plan(experiment, facts)


def values(result, **wanted):
    """Return {(size, metric): value} of the judgements with these attributes."""
    assert result.error is None, result.traceback
    return {
        (row.size, row.metric): row.value
        for row in result.scores
        if all(getattr(row, name) == value for name, value in wanted.items())
    }


def planted():
    return load_dataset(parse(BASE + 'methods = ["sum-f"]\n').datasets[0], None)


def first_fold(seed=0):
    data = planted()
    folds = KFold(3, shuffle=True, random_state=derive_seed(seed, "folds", "planted")).split(data.X)
    train, test = next(folds)
    noise = derive_seed(seed, "noise", "planted", 0)
    return data, train, test, add_candidates(data.Y[train], rate=0.2, random_state=noise)


@pytest.mark.parametrize(("slug", "selector"), [("sum-f", SumF()), ("rfs", RFS())])
def test_a_cell_is_the_protocol_step_by_step(slug, selector):
    experiment = parse(BASE + f'methods = ["{slug}"]\n[sizes]\npercent = [5, 20]\n')
    result = evaluate(experiment, cells_of(experiment)[0])
    data, train, test, candidates = first_fold()
    order = np.argsort(-selector.fit(data.X[train], candidates).scores_, kind="stable")
    np.testing.assert_array_equal(result.ranking, order)
    expected = {}
    for percent, count in ((5.0, 3), (20.0, 12)):  # of 60 features
        machine = LabelwiseSVM().fit(data.X[train][:, order[:count]], candidates)
        X_test = data.X[test][:, order[:count]]
        outputs = {"scores": machine.decision_function(X_test), "predictions": machine.predict(X_test)}
        for name in PROTOCOL_METRICS:
            metric = METRICS[name]
            expected[percent, name] = metric.function(data.Y[test], outputs[metric.needs])
    assert values(result) == expected
    assert {(row.size, row.n_features) for row in result.scores} == {(5.0, 3), (20.0, 12)}


def test_a_cell_records_time_memory_and_iterations():
    experiment = parse(BASE + 'methods = ["pml-fsmir", {method = "rfs", params = {max_iter = 1}}]\n')
    full, cut = (evaluate(experiment, cell) for cell in cells_of(experiment)[:2])
    assert 0 < full.fit_seconds < full.seconds
    assert full.converged is True
    assert full.n_iter == len(full.objective) - 1
    assert (np.diff(full.objective) <= 1e-9 * full.objective[0]).all()
    assert cut.converged is False
    assert any("did not converge" in note for note in cut.notes)


def test_references_without_a_ranking():
    experiment = parse(
        BASE + 'references = ["no-features", "all-features"]\nclassifiers = ["linear-svm", "ml-knn"]\n'
    )
    none, everything = (evaluate(experiment, cell) for cell in cells_of(experiment)[:2])
    data, train, test, candidates = first_fold()
    frequency = LabelFrequency().fit(data.X[train], candidates)
    loss = METRICS["ranking_loss"].function(data.Y[test], frequency.decision_function(data.X[test]))
    for classifier, machine in (("linear-svm", LabelwiseSVM()), ("ml-knn", MLkNN())):
        assert values(none, classifier=classifier)[None, "ranking_loss"] == loss
        scores = machine.fit(data.X[train], candidates).decision_function(data.X[test])
        expected = METRICS["ranking_loss"].function(data.Y[test], scores)
        assert values(everything, classifier=classifier)[None, "ranking_loss"] == expected
    assert {row.n_features for row in none.scores} == {0}
    assert {row.n_features for row in everything.scores} == {60}


def test_random_draws_differ_and_are_reproducible():
    experiment = parse(BASE + 'references = ["random-ranking"]\nrandom_draws = 2\n')
    first, second = cells_of(experiment)[:2]
    seed = derive_seed(0, "method", "planted", 0, 0)
    data, train, _, candidates = first_fold()
    expected = RandomRanking(random_state=seed).fit(data.X[train], candidates)
    np.testing.assert_array_equal(evaluate(experiment, first).ranking, np.argsort(expected.ranking_))
    assert not np.array_equal(evaluate(experiment, first).ranking, evaluate(experiment, second).ranking)


def test_only_training_labels_are_noisy_and_seeds_change_the_folds():
    experiment = parse(BASE + 'methods = ["sum-f"]\nseeds = [0, 1]\n')
    spec, noise = experiment.datasets[0], experiment.noise[0]
    data = planted()
    truth = {tuple(x): tuple(y) for x, y in zip(data.X, data.Y.tolist(), strict=True)}
    for seed in (0, 1):
        parts = [split_fold(experiment, spec, noise, seed, fold) for fold in range(3)]
        assert sorted(map(tuple, np.vstack([part.X_test for part in parts]))) == sorted(truth)
        for part in parts:
            assert [truth[tuple(x)] for x in part.X_test] == list(map(tuple, part.Y_test))
            assert (part.Y_train >= part.Y_clean).all()
            assert 0.15 < part.Y_train[part.Y_clean == 0].mean() < 0.25
    first = split_fold(experiment, spec, noise, 0, 0)
    assert not np.array_equal(first.X_test, split_fold(experiment, spec, noise, 1, 0).X_test)


def outputs_by_hand(taught):
    """Return outputs for the test rows of the first fold, given the best six features and training labels."""
    data, train, test, candidates = first_fold()
    order = np.argsort(-SumF().fit(data.X[train], candidates).scores_, kind="stable")[:6]
    machine = LabelwiseSVM().fit(data.X[train][:, order], taught)
    X_test = data.X[test][:, order]
    return {"scores": machine.decision_function(X_test), "predictions": machine.predict(X_test)}


def judged_by_hand(taught, tested, f1_tested=None):
    outputs = outputs_by_hand(taught)
    return {
        name: METRICS[name].function(
            f1_tested if name.endswith("f1") and f1_tested is not None else tested,
            outputs[METRICS[name].needs],
        )
        for name in PROTOCOL_METRICS
    }


def judged_by(convention):
    experiment = parse(BASE + f'methods = ["sum-f"]\n[sizes]\npercent = [10]\n[conventions]\n{convention}\n')
    found = values(evaluate(experiment, cells_of(experiment)[0]))
    return {metric: value for (_, metric), value in found.items()}


def test_conventions_for_training_and_test_labels():
    data, train, test, candidates = first_fold()
    seed = derive_seed(0, "test noise", "planted", 0)
    noisy = add_candidates(data.Y[test], rate=0.2, random_state=seed)
    assert judged_by("") == judged_by_hand(candidates, data.Y[test])
    assert judged_by('train_labels = "clean"') == judged_by_hand(data.Y[train], data.Y[test])
    assert judged_by('test_labels = "noisy"') == judged_by_hand(candidates, noisy)
    assert judged_by('test_labels = "noisy-f1"') == judged_by_hand(candidates, data.Y[test], noisy)


def test_labels_without_a_training_positive_can_be_left_out(tmp_path):
    data = planted()
    _, train, test, _ = first_fold()
    Y = data.Y.copy()
    Y[train, 2] = 0
    Y[test, 2] = 1
    write(Dataset(data.X, Y), tmp_path / "own.npz")
    expected = None
    for choice in ("keep", "skip"):
        experiment = parse(
            'datasets = [{name = "planted", path = "own.npz"}]\nfolds = 3\nmethods = ["sum-f"]\n'
            "noise = [{rate = 0.0}]\n[sizes]\npercent = [10]\n[conventions]\n"
            f'absent_labels = "{choice}"\n',
            folder=tmp_path,
        )
        found = values(evaluate(experiment, cells_of(experiment)[0]))
        order = np.argsort(-SumF().fit(data.X[train], Y[train]).scores_, kind="stable")[:6]
        machine = LabelwiseSVM().fit(data.X[train][:, order], Y[train])
        kept = [label for label in range(Y.shape[1]) if choice == "keep" or Y[train, label].any()]
        assert len(kept) == Y.shape[1] - (choice == "skip")
        scores = machine.decision_function(data.X[test][:, order])[:, kept]
        loss = METRICS["ranking_loss"].function(Y[test][:, kept], scores)
        assert found[10.0, "ranking_loss"] == loss != expected
        expected = loss


def test_consecutive_folds_keep_the_row_order():
    experiment = parse(BASE + 'methods = ["sum-f"]\n[conventions]\nfolds = "consecutive"\n')
    cells = cells_of(experiment)
    assert {cell.split for cell in cells} == {"consecutive"}
    X = planted().X
    for cell in cells:
        part = split_fold(experiment, cell.dataset, cell.noise, 0, cell.fold, split=cell.split)
        rows = np.arange(100 * cell.fold, 100 * (cell.fold + 1))
        np.testing.assert_array_equal(part.X_test, X[rows])
        np.testing.assert_array_equal(part.X_train, np.delete(X, rows, axis=0))


def test_conventions_are_passed_to_the_metrics():
    data, _, test, candidates = first_fold()
    outputs = outputs_by_hand(candidates)
    for convention, name, options in (
        ('coverage = "count"', "coverage", {"unit": "count"}),
        ('f1_undefined = "skip"', "macro_f1", {"undefined": "skip"}),
        ('empty_rows = "perfect"', "one_error", {"empty_rows": "perfect"}),
    ):
        metric = METRICS[name].with_options(**options)
        assert judged_by(convention)[name] == metric.function(data.Y[test], outputs[metric.needs])
    hard = judged_by('ranking_scores = "hard"')
    assert hard["ranking_loss"] == METRICS["ranking_loss"].function(data.Y[test], outputs["predictions"])
    assert hard["macro_f1"] == judged_by("")["macro_f1"]
    tied = judged_by('ranking_scores = "hard"\nties = "index"')["coverage"]
    by_index = METRICS["coverage"].with_options(ties="index")
    assert tied == by_index.function(data.Y[test], outputs["predictions"]) < hard["coverage"]
    named = parse(BASE + 'methods = ["sum-f"]\nmetrics = ["samples_f1"]\n[conventions]\nf1_undefined = 1\n')
    assert choose_metrics(named.metrics, named.conventions[0])["samples_f1"].function([[0]], [[0]]) == 1


def test_stratified_folds_spread_every_label_evenly():
    experiment = parse(BASE + 'methods = ["sum-f"]\n[conventions]\nfolds = "stratified"\n')
    parts = [
        split_fold(experiment, cell.dataset, cell.noise, 0, cell.fold, split=cell.split)
        for cell in cells_of(experiment)
    ]
    counts = np.array([part.Y_test.sum(axis=0) for part in parts])
    assert np.ptp(counts, axis=0).max() <= 3
    assert sum(len(part.X_test) for part in parts) == 300


def test_user_defined_data_method_and_classifier(tmp_path, planted):
    write(Dataset(planted.X, planted.Y, planted.Y_candidates, name="own"), tmp_path / "own.npz")
    (tmp_path / "my_method_for_cells.py").write_text(
        "import numpy as np\n"
        "from sklearn.base import BaseEstimator\n"
        "class ByVariance(BaseEstimator):\n"
        "    def fit(self, X, Y):\n"
        "        self.scores_ = X.var(axis=0)\n"
        "        self.candidates_ = Y\n"
        "        return self\n"
    )
    experiment = parse(
        'datasets = [{name = "own", path = "own.npz"}]\nnoise = [{model = "given"}]\nfolds = 2\n'
        'methods = [{name = "variance", method = "my_method_for_cells:ByVariance"}]\n'
        'classifiers = [{name = "tree", classifier = "sklearn.tree:DecisionTreeClassifier", '
        "params = {random_state = 0}}]\n[sizes]\npercent = [40]\n",
        folder=tmp_path,
    )
    cell = cells_of(experiment)[0]
    result = evaluate(experiment, cell)
    part = split_fold(experiment, experiment.datasets[0], experiment.noise[0], 0, 0)
    np.testing.assert_array_equal(
        result.ranking[:2], np.argsort(-part.X_train.var(axis=0), kind="stable")[:2]
    )
    assert values(result, classifier="tree")[40.0, "average_precision"] > 0.9
    rows = {tuple(x): tuple(y) for x, y in zip(planted.X, planted.Y_candidates, strict=True)}
    assert all(rows[tuple(x)] == tuple(y) for x, y in zip(part.X_train, part.Y_train, strict=True))


def test_data_without_true_labels_cannot_be_judged(tmp_path, planted):
    write(Dataset(planted.X, Y_candidates=planted.Y_candidates), tmp_path / "only.npz")
    experiment = parse(
        'datasets = [{name = "only", path = "only.npz"}]\nmethods = ["sum-f"]\n', folder=tmp_path
    )
    with pytest.raises(RunError, match="only"):
        load_dataset(experiment.datasets[0], experiment.folder)


def test_label_names_come_from_files_next_to_the_configuration_or_a_long_list(tmp_path):
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (20, 40))
    names = [f"a_rather_long_name_{j}" for j in range(40)]
    for file, columns, values in (
        ("x", ["x0", "x1"], rng.normal(size=(20, 2))),
        ("y", names, Y),
        ("noisy", names, np.ones_like(Y)),
        ("both", ["x0", *names], np.hstack([rng.normal(size=(20, 1)), Y])),
    ):
        head = ",".join(columns)
        np.savetxt(tmp_path / f"{file}.csv", values, fmt="%g", delimiter=",", header=head, comments="")
    experiment = parse(
        'datasets = [{name = "apart", path = "x.csv", labels = "y.csv", candidates = "noisy.csv"}, '
        f'{{name = "together", path = "both.csv", labels = "{",".join(names)}"}}]\nmethods = ["sum-f"]\n',
        folder=tmp_path,
    )
    apart, together = (load_dataset(spec, experiment.folder) for spec in experiment.datasets)
    np.testing.assert_array_equal(apart.Y, Y)
    assert apart.Y_candidates.all()
    np.testing.assert_array_equal(together.Y, Y)


def test_a_failing_method_is_a_result_with_a_traceback(tmp_path):
    (tmp_path / "my_broken_method.py").write_text(
        "from sklearn.base import BaseEstimator\n"
        "class Broken(BaseEstimator):\n"
        "    def fit(self, X, Y):\n"
        "        raise ZeroDivisionError('one\\nover nothing')\n"
        "class Silent(BaseEstimator):\n"
        "    def fit(self, X, Y):\n"
        "        return self\n"
    )
    methods = '["my_broken_method:Broken", "my_broken_method:Silent"]'
    experiment = parse(BASE + f"methods = {methods}\n", folder=tmp_path)
    broken, silent = (evaluate(experiment, cell) for cell in cells_of(experiment)[:2])
    assert broken.error == "ZeroDivisionError: one over nothing"
    assert "my_broken_method.py" in broken.traceback
    assert broken.scores == []
    assert silent.error.startswith("TypeError: Silent")


GREEDY = """
import numpy as np
from labelsieve.classify import LabelwiseSVM

def spoil(*matrices):
    for matrix in matrices:
        values = matrix.data if hasattr(matrix, "indptr") else matrix
        values[...] = 0

class Plain:
    def fit(self, X, Y):
        self.scores_ = np.arange(X.shape[1])

class Greedy(Plain):
    def fit(self, X, Y):
        super().fit(X, Y)
        spoil(X, Y)

class GreedyClassifier(LabelwiseSVM):
    def fit(self, X, Y):
        super().fit(X, Y)
        spoil(X, Y)
        return self
    def predict(self, X):
        found = super().predict(X)
        spoil(X)
        return found
"""


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_user_defined_code_cannot_change_the_data_in_place(tmp_path, storage):
    import scipy.sparse as sp

    (tmp_path / "greedy_methods.py").write_text(GREEDY)
    data = planted()
    X = sp.csr_array(np.where(data.X > 0.5, data.X, 0)) if storage == "sparse" else data.X
    write(Dataset(X, data.Y), tmp_path / "own.npz")

    def judged(method, *classifiers):
        names = ", ".join(f'"{name}"' for name in classifiers)
        experiment = parse(
            f'datasets = [{{name = "own", path = "own.npz"}}]\nfolds = 3\nmethods = ["greedy_methods:{method}"]\n'
            f"classifiers = [{names}]\n[sizes]\npercent = [20]\n",
            folder=tmp_path,
        )
        return values(evaluate(experiment, cells_of(experiment)[0]), classifier=classifiers[-1])

    expected = judged("Plain", "linear-svm")
    assert judged("Greedy", "linear-svm") == expected

    assert judged("Plain", "greedy_methods:GreedyClassifier") == expected
    # It runs first, and the same data are passed again later.
    assert judged("Plain", "greedy_methods:GreedyClassifier", "linear-svm") == expected


@pytest.mark.parametrize(
    ("attribute", "values", "is_valid"),
    [
        ("ranking_", [2, 1, 2], True),  # ties, as in scikit-learn's RFE
        ("scores_", np.array([1, 3, 2], dtype=np.uint8), True),
        ("scores_", [0, float("inf"), 1], True),
        ("feature_importances_", [False, True, False], True),
        ("ranking_", [2, 0, 1], False),
        ("ranking_", [1, 1.5, 2], False),
        ("scores_", [1, 2], False),
        ("scores_", [1, 2, float("nan")], False),
    ],
)
def test_rankings_and_scores_order_features(attribute, values, is_valid):
    selector = type("Mine", (), {attribute: values})()
    if is_valid:
        assert feature_order(selector, 3)[0] == 1
    else:
        with pytest.raises(ValueError, match=attribute):
            feature_order(selector, 3)


def test_data_that_changed_since_the_plan_fails_the_cell(tmp_path, planted):
    write(planted, tmp_path / "own.npz")
    text = 'datasets = [{name = "own", path = "own.npz"}]\nmethods = ["sum-f"]\nfolds = 2\n'
    experiment = parse(text, folder=tmp_path)
    cell = cells_of(experiment)[0]
    write(Dataset(planted.X + 1, planted.Y), tmp_path / "own.npz")
    assert cells_of(experiment)[0].key != cell.key
    assert evaluate(experiment, cell).error.startswith("RunError: own")


def test_a_random_classifier_is_reproducible():
    forest = '{name = "forest", classifier = "sklearn.ensemble:RandomForestClassifier", params = {n_estimators = 3}}'
    experiment = parse(BASE + f'methods = ["sum-f"]\nclassifiers = [{forest}]\n[sizes]\npercent = [20]\n')
    first, second = cells_of(experiment)[:2]
    assert values(evaluate(experiment, first)) == values(evaluate(experiment, first))
    assert values(evaluate(experiment, first)) != values(evaluate(experiment, second))


def test_a_plain_class_is_a_method_and_editing_it_changes_the_keys(tmp_path):
    module = tmp_path / "my_plain_method.py"
    plain = "class Plain:\n    def fit(self, X, Y):\n        self.scores_ = X.{}(axis=0)\n"
    module.write_text(plain.format("var"))
    experiment = parse(BASE + 'methods = ["my_plain_method:Plain"]\n', folder=tmp_path)
    before = cells_of(experiment)[0]
    result = evaluate(experiment, before)
    part = split_fold(experiment, experiment.datasets[0], experiment.noise[0], 0, 0)
    np.testing.assert_array_equal(result.ranking, np.argsort(-part.X_train.var(axis=0), kind="stable"))
    module.write_text(plain.format("mean"))
    assert cells_of(experiment)[0].key != before.key


def test_sparse_data_gives_what_dense_data_gives(tmp_path):
    import scipy.sparse as sp

    data = planted()
    X = np.where(data.X > 0.5, data.X, 0)
    for name, part in (("dense", X), ("sparse", sp.csr_array(X))):
        write(Dataset(part, data.Y), tmp_path / f"{name}.npz")
    found = []
    for name in ("dense", "sparse"):
        # Folds and noise depend on the name.
        experiment = parse(
            f'datasets = [{{name = "own", path = "{name}.npz"}}]\nmethods = ["sum-f"]\nfolds = 3\n',
            folder=tmp_path,
        )
        found.append(evaluate(experiment, cells_of(experiment)[0]))
    np.testing.assert_array_equal(found[0].ranking, found[1].ranking)


def test_tiny_needs_no_download(monkeypatch, tmp_path):
    monkeypatch.delenv("LABELSIEVE_DATA", raising=False)
    monkeypatch.setenv("LABELSIEVE_CACHE", str(tmp_path))
    monkeypatch.setenv("LABELSIEVE_OFFLINE", "1")
    experiment = load_experiment("tiny")
    assert {load_dataset(spec, None).X.shape for spec in experiment.datasets} == {(1797, 64), (300, 60)}


def test_every_method_of_tiny_is_ranked_and_judged_in_a_cell(tmp_path):
    write_data(tmp_path)
    embedded, small = '["digits", "planted"]', '[{ name = "small", path = "small.csv", labels = "label_*" }]'
    profile = PROFILES["tiny"].read_text("utf-8")
    assert embedded in profile
    experiment = parse(profile.replace(embedded, small), folder=tmp_path)
    found = {cell.method.name: evaluate(experiment, cell) for cell in cells_of(experiment) if cell.fold == 0}
    assert found.keys() == {*METHODS, "no-features", "all-features"}
    for name, outcome in found.items():
        assert outcome.error is None, name
        assert np.isfinite([row.value for row in outcome.scores]).all(), name


def test_a_data_file_is_not_taken_for_a_damaged_run(capsys, plain_terminal, table):
    for command in (("report",), ("bench", "status")):
        assert "'data.csv'" in fails(capsys, 1, *command, table)


def test_a_classifier_without_scores_can_rank_by_its_predictions(tmp_path):
    (tmp_path / "my_blunt_classifier.py").write_text(
        "from labelsieve.classify import LabelwiseSVM\n"
        "class Blunt:\n"
        "    def fit(self, X, Y):\n"
        "        self.machine = LabelwiseSVM().fit(X, Y)\n"
        "        return self\n"
        "    def predict(self, X):\n"
        "        return self.machine.predict(X)\n"
    )
    text = BASE + 'methods = ["sum-f"]\nclassifiers = ["my_blunt_classifier:Blunt"]\n'
    blunt = parse(text + '[conventions]\nranking_scores = "hard"\n', folder=tmp_path)
    plain = parse(BASE + 'methods = ["sum-f"]\n[conventions]\nranking_scores = "hard"\n')
    found, expected = (values(evaluate(experiment, cells_of(experiment)[0])) for experiment in (blunt, plain))
    assert found == expected
    rejected = parse(text, folder=tmp_path)
    assert "predict_proba" in evaluate(rejected, cells_of(rejected)[0]).error
