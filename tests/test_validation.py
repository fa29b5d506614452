"""Cross-validation that fits on candidates and scores on true labels, without leakage."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from broken_sparse import broken
from labelsieve import METRICS, SumF, pml_cross_validate
from labelsieve.classify import LabelFrequency, LabelwiseSVM
from labelsieve.datasets import add_candidates, make_pml


class Recorder(LabelFrequency):
    """Classifier that records its inputs."""

    def fit(self, X, y):
        self.given_ = [("fit", X, y)]
        return super().fit(X, y)

    def predict(self, X):
        self.given_.append(("predict", X))
        return super().predict(X)

    def decision_function(self, X):
        self.given_.append(("decision_function", X))
        return super().decision_function(X)


class RecordingSplitter(KFold):
    """Splitter that records its labels."""

    def split(self, X, y=None, groups=None):
        self.labels_ = y
        return super().split(X, y, groups)


class NameKeeper(LabelFrequency):
    """Classifier that records the feature names."""

    def fit(self, X, y):
        self.names_ = X.columns
        return super().fit(X, y)


class OnlyPredicts(BaseEstimator):
    """Classifier without scores."""

    def fit(self, X, y):
        self.n_labels_ = y.shape[1]
        return self

    def predict(self, X):
        return np.ones((X.shape[0], self.n_labels_), dtype=int)


@pytest.fixture
def problem():
    X, Y_true = make_pml(n_samples=90, noise=0.0, random_state=0)
    return X, add_candidates(Y_true, rate=0.3, random_state=0), Y_true


def test_results_equal_those_of_an_explicit_loop(problem):
    X, Y_candidates, Y_true = problem
    model = make_pipeline(SumF(4), LabelwiseSVM())
    results = pml_cross_validate(model, X, Y_candidates, Y_true, cv=3, random_state=7)
    assert set(results) == {"fit_time", "score_time", *(f"test_{name}" for name in METRICS)}
    folds = KFold(3, shuffle=True, random_state=7).split(X)
    for fold, (train, test) in enumerate(folds):
        fitted = clone(model).fit(X[train], Y_candidates[train])
        for name, metric in METRICS.items():
            method = fitted.decision_function if metric.needs == "scores" else fitted.predict
            assert results[f"test_{name}"][fold] == metric.function(Y_true[test], method(X[test]))


def test_estimator_and_splitter_never_get_true_labels(problem):
    X, Y_candidates, Y_true = problem
    splitter = RecordingSplitter(3)
    results = pml_cross_validate(Recorder(), X, Y_candidates, Y_true, cv=splitter, return_estimator=True)
    assert splitter.labels_ is Y_candidates
    for estimator, (train, test) in zip(results["estimator"], KFold(3).split(X), strict=True):
        (method, X_fit, Y_fit), *later = estimator.given_
        assert method == "fit"
        np.testing.assert_array_equal(X_fit, X[train])
        np.testing.assert_array_equal(Y_fit, Y_candidates[train])
        assert {name for name, _ in later} == {"predict", "decision_function"}
        for _, X_later in later:
            np.testing.assert_array_equal(X_later, X[test])


def test_scores_do_not_depend_on_candidates_of_the_test_rows(problem):
    X, Y_candidates, Y_true = problem
    folds = [(np.arange(60), np.arange(60, 90))]
    other = Y_candidates.copy()
    other[60:] = 1
    first, second = (
        pml_cross_validate(LabelwiseSVM(), X, Y, Y_true, cv=folds) for Y in (Y_candidates, other)
    )
    for name in METRICS:
        assert first[f"test_{name}"] == second[f"test_{name}"]


def test_folds_depend_only_on_the_seed(problem):
    def run(seed):
        return pml_cross_validate(LabelwiseSVM(), *problem, cv=3, random_state=seed)["test_ranking_loss"]

    np.testing.assert_array_equal(run(0), run(0))
    assert not np.array_equal(run(0), run(1))


def test_default_is_ten_folds_and_all_metrics(problem):
    results = pml_cross_validate(LabelFrequency(), *problem)
    assert [len(results[f"test_{name}"]) for name in METRICS] == [10] * len(METRICS)


def test_sparse_matrices_dataframes_and_lists_give_equal_results(problem):
    X, Y_candidates, Y_true = problem
    plain = pml_cross_validate(LabelFrequency(), X, Y_candidates, Y_true, cv=3, random_state=0)
    as_frames = [pd.DataFrame(part).add_prefix("c") for part in (X, Y_candidates, Y_true)]
    as_sparse = [sp.csc_matrix(part) for part in (X, Y_candidates, Y_true)]
    as_lists = [part.tolist() for part in (X, Y_candidates, Y_true)]
    for parts in (as_frames, as_sparse, as_lists):
        results = pml_cross_validate(LabelFrequency(), *parts, cv=3, random_state=0)
        np.testing.assert_array_equal(results["test_coverage"], plain["test_coverage"])
    results = pml_cross_validate(NameKeeper(), *as_frames, cv=3, return_estimator=True)
    assert list(results["estimator"][0].names_) == [f"c{j}" for j in range(X.shape[1])]


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "lil"])
def test_sparse_formats_give_equal_results(problem, form):
    model = make_pipeline(SumF(5), LabelwiseSVM())
    expected, results = (
        pml_cross_validate(
            model, *(getattr(sp, f"{kind}_matrix")(part) for part in problem), cv=3, random_state=0
        )
        for kind in ("csr", form)
    )
    for name in METRICS:
        np.testing.assert_array_equal(results[f"test_{name}"], expected[f"test_{name}"])


def test_invalid_sparse_matrices_raise_before_splitting(problem):
    splitter = RecordingSplitter(2)
    for position, name in enumerate(("X", "Y_candidates", "Y_true")):
        parts = [*problem]
        parts[position] = broken(parts[position], "index too large")
        with pytest.raises(ValueError, match=f"^{name} .*sparse"):
            pml_cross_validate(LabelFrequency(), *parts, cv=splitter)
    assert not hasattr(splitter, "labels_")


def test_splitters_and_single_metrics_are_accepted(problem):
    splitter = ShuffleSplit(2, test_size=0.3, random_state=0)
    results = pml_cross_validate(LabelFrequency(), *problem, cv=splitter, scoring="one_error")
    assert [name for name in results if name.startswith("test_")] == ["test_one_error"]
    assert len(results["test_one_error"]) == 2


def test_metrics_with_other_conventions_are_accepted(problem):
    lenient = METRICS["coverage"].with_options(unit="count")
    results = pml_cross_validate(
        LabelFrequency(),
        *problem,
        cv=3,
        random_state=0,
        scoring={"ours": METRICS["coverage"], "depth": lenient},
    )
    np.testing.assert_allclose(results["test_depth"], results["test_ours"] * problem[2].shape[1] + 1)


def test_listed_probabilities_become_scores_even_with_one_class(problem):
    X, Y_candidates, _ = problem
    Y_candidates[:, 0], Y_candidates[:, 1] = 0, 1
    never, always = np.zeros_like(Y_candidates), np.zeros_like(Y_candidates)
    never[:, 0] = always[:, 1] = 1
    model = RandomForestClassifier(3, random_state=0)
    # The label that never occurs scores 0, the lowest score. The label that always occurs scores 1.
    last = pml_cross_validate(model, X, Y_candidates, never, cv=2, scoring="coverage")
    np.testing.assert_allclose(last["test_coverage"], 4 / 5)
    strict_order = METRICS["coverage"].with_options(unit="count")
    first = pml_cross_validate(
        model, X, Y_candidates[:, :2], always[:, :2], cv=2, scoring={"d": strict_order}
    )
    np.testing.assert_allclose(first["test_d"], 1)


def test_single_label_is_a_column(problem):
    X, Y_candidates, Y_true = problem
    results = pml_cross_validate(
        DecisionTreeClassifier(random_state=0), X, Y_candidates[:, :1], Y_true[:, :1], cv=3
    )
    assert (results["test_micro_f1"] > 0).all()


def test_invalid_input_raises(problem):
    X, Y_candidates, Y_true = problem
    with pytest.raises(ValueError, match="'accuracy'"):
        pml_cross_validate(LabelFrequency(), X, Y_candidates, Y_true, scoring=["accuracy"])
    with pytest.raises(ValueError, match=r"\(89, 5\)"):
        pml_cross_validate(LabelFrequency(), X, Y_candidates, Y_true[1:])
    with pytest.raises(ValueError, match="cv"):
        pml_cross_validate(LabelFrequency(), X, Y_candidates, Y_true, cv=None)
    with pytest.raises(TypeError, match="SumF"):
        pml_cross_validate(SumF(), X, Y_candidates, Y_true)
    with pytest.raises(TypeError, match="OnlyPredicts"):
        pml_cross_validate(OnlyPredicts(), X, Y_candidates, Y_true, scoring="coverage")


def test_counting_metrics_need_only_predictions(problem):
    results = pml_cross_validate(OnlyPredicts(), *problem, cv=3, scoring=["hamming_loss"])
    assert np.mean(results["test_hamming_loss"]) == pytest.approx(1 - problem[2].mean())
