"""The chosen size against cross-validation written out with scikit-learn's ridge regression."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.model_selection import KFold

from labelsieve import MDMR, EvidenceSelector, RandomRanking, SumF, choose_size
from labelsieve.datasets import make_pml


@pytest.fixture(scope="module")
def problem():
    return make_pml(n_samples=90, n_features=30, n_informative=4, random_state=1)


def by_hand(rank, X, Y, folds, sizes):
    """Mean precision of ridge predictions from the first features; rows without candidates are left out."""
    scores = []
    for train, test in folds:
        varies = (Y[train].min(axis=0) == 0) & (Y[train].max(axis=0) == 1)
        test = test[Y[test][:, varies].any(axis=1)]
        Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
        labels = Y[train][:, varies]
        deviation = labels.std(axis=0)
        row = []
        for size in sizes:
            columns = np.argsort(rank(X[train], Y[train], size))[:size]
            ridge = Ridge(alpha=0.1 * len(train)).fit(Z[train][:, columns], labels / deviation)
            predicted = ridge.predict(Z[test][:, columns]) * deviation
            row.append(label_ranking_average_precision_score(Y[test][:, varies], predicted))
        scores.append(row)
    return np.array(scores)


def numbered_folds(n_samples, n_folds, seed):
    number = np.random.default_rng(seed).permutation(n_samples) % n_folds
    return [(np.flatnonzero(number != fold), np.flatnonzero(number == fold)) for fold in range(n_folds)]


def test_the_curve_is_cross_validation_written_out(problem):
    X, Y = problem
    curve = choose_size(SumF(), X, Y, sizes=[1, 3, 4, 10, 30], random_state=2)
    assert curve.sizes.tolist() == [1, 3, 4, 10, 30]
    expected = by_hand(
        lambda X, Y, size: SumF().fit(X, Y).ranking_, X, Y, numbered_folds(90, 5, 2), curve.sizes
    )
    np.testing.assert_allclose(curve.scores, expected, rtol=1e-9)
    assert curve.best == curve.sizes[expected.mean(axis=0).argmax()]


def test_a_ranking_that_depends_on_the_size_is_made_for_every_size(problem, monkeypatch):
    X, Y = problem
    asked = []
    fit = MDMR.fit
    monkeypatch.setattr(
        MDMR, "fit", lambda self, X, y: (asked.append(self.n_features_to_select), fit(self, X, y))[1]
    )
    curve = choose_size(MDMR(), X, Y, sizes=[1, 5, 12], cv=KFold(3))
    assert asked == [1, 5, 12] * 3
    expected = by_hand(
        lambda X, Y, size: MDMR(int(size)).fit(X, Y).ranking_, X, Y, list(KFold(3).split(X)), [1, 5, 12]
    )
    np.testing.assert_allclose(curve.scores, expected, rtol=1e-9)
    asked.clear()
    fits = []
    fit_f = SumF.fit
    monkeypatch.setattr(SumF, "fit", lambda self, X, y: (fits.append(1), fit_f(self, X, y))[1])
    choose_size(SumF(), X, Y, sizes=[1, 5, 12], cv=3)
    assert len(fits) == 3


def test_planted_features_are_about_as_many_as_chosen():
    X, Y = make_pml(n_samples=300, n_features=100, n_informative=8, random_state=0)
    curve = choose_size(SumF(), X, Y)
    assert 5 <= curve.best <= 20
    by_chance = choose_size(RandomRanking(random_state=0), X, Y)
    assert by_chance.mean[curve.sizes == curve.best] < curve.mean.max() - 0.05


def test_the_grid_is_geometric_and_ends_with_all_features(problem):
    sizes = choose_size(SumF(), *problem, cv=2).sizes
    assert sizes.tolist() == [*np.unique(np.geomspace(1, 18, 12).round().astype(int)), 30]


def test_features_may_be_sparse_or_named(problem):
    X, Y = problem
    X = np.maximum(X, 0)
    expected = choose_size(SumF(), X, Y, sizes=[2, 7])
    for features, labels in (
        (sp.csr_matrix(X), sp.csr_matrix(Y)),
        (pd.DataFrame(X).add_prefix("f"), pd.DataFrame(Y)),
    ):
        np.testing.assert_allclose(
            choose_size(SumF(), features, labels, sizes=[2, 7]).scores, expected.scores, rtol=1e-9
        )


def test_the_evidence_selector_finds_the_same_curve(problem):
    X, Y = problem
    chosen = EvidenceSelector("auto", redundancy=1.0, n_folds=5).fit(X, Y)
    curve = choose_size(EvidenceSelector(redundancy=1.0), X, Y)
    np.testing.assert_array_equal(curve.sizes, chosen.size_curve_.sizes)
    np.testing.assert_allclose(curve.scores, chosen.size_curve_.scores, rtol=1e-9)
    assert curve.best == chosen.n_features_


def test_the_selector_is_not_modified(problem):
    selector = MDMR()
    choose_size(selector, *problem, sizes=[2], cv=2)
    assert selector.n_features_to_select is None
    assert not hasattr(selector, "ranking_")


def test_rows_and_folds_without_candidates_are_not_scored(problem):
    X, Y = problem
    folds = [
        (np.arange(45), np.arange(45, 90)),
        (np.arange(45, 90), np.arange(45)),
        (np.arange(60), np.arange(60, 90)),
    ]
    Y = Y.copy()
    Y[60:] = 0
    curve = choose_size(SumF(), X, Y, sizes=[3, 9], cv=folds)
    expected = by_hand(lambda X, Y, size: SumF().fit(X, Y).ranking_, X, Y, folds[:2], [3, 9])
    np.testing.assert_allclose(curve.scores, expected, rtol=1e-9)
    with pytest.raises(
        ValueError, match="Y must have a label that some training rows of a fold have and others do not"
    ):
        choose_size(SumF(), X, Y, sizes=[3], cv=folds[2:])
    with pytest.raises(ValueError, match="Got no such fold"):
        choose_size(SumF(), X, Y, sizes=[3], cv=[(np.arange(60, 90), np.arange(60))])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": [0, 3]}, r"sizes must be numbers of features from 1 to 30. Got \[0, 3\]"),
        ({"sizes": [31]}, "sizes must be numbers of features from 1 to 30"),
        ({"sizes": [0.5]}, "sizes must be numbers of features from 1 to 30"),
        ({"sizes": []}, "sizes must be numbers of features from 1 to 30"),
        ({"cv": 1}, r"cv must be from 2 to the number of rows \(90\). Got 1"),
        ({"cv": 91}, "cv must be from 2"),
    ],
)
def test_bad_input_raises(problem, options, message):
    with pytest.raises(ValueError, match=message):
        choose_size(SumF(), *problem, **options)


@pytest.mark.parametrize("size", [2.0**-700, 2.0**700])
def test_features_whose_squares_overflow_or_vanish_have_the_same_curve(problem, size):
    X, Y = problem
    expected = choose_size(SumF(), X, Y, sizes=[1, 4])
    np.testing.assert_allclose(choose_size(SumF(), X * size, Y, sizes=[1, 4]).scores, expected.scores)
