import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import f_classif

from labelsieve._numerics.batches import batches
from labelsieve.methods.sum_f import SumF


def problem(seed, n_samples=60, n_features=7, n_labels=4, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) + offset
    Y = (rng.random((n_samples, n_labels)) < 0.3).astype(int)
    X[:, 0] += 2 * Y[:, 0]
    return X, Y


def direct(X, Y):
    return sum(f_classif(X, y)[0] for y in Y.T)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("seed", [0, 1])
def test_scores_match_the_summed_f_classif(seed, offset):
    X, Y = problem(seed, offset=offset)
    expected = direct(X - offset, Y)
    np.testing.assert_allclose(SumF().fit(X, Y).scores_, expected, rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3])
def test_constant_feature_has_score_zero(value):
    X, Y = problem(5)
    X[:, 3] = value
    assert SumF().fit(X, Y).scores_[3] == 0
    assert SumF().fit(sp.csr_matrix(X), Y).scores_[3] == 0


def test_perfect_separation_has_a_finite_score():
    _, Y = problem(6)
    X = np.column_stack([Y[:, 0], Y[:, 0] + 1e-3 * Y[:, 1], Y[:, 2], np.arange(len(Y))]).astype(float)
    scores = SumF().fit(X, Y).scores_
    assert np.isfinite(scores).all()
    assert scores[[0, 2]].min() > 1e4 * scores[3]
    others = direct(X[:, [0]], Y[:, 1:])
    np.testing.assert_allclose(scores[0], (len(Y) - 2) * 1e8 + others, rtol=1e-6)


def test_two_rows_give_a_ranking():
    scores = SumF().fit(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[1, 0], [0, 1]])).scores_
    assert scores[0] > scores[1] == 0


def test_blocks_do_not_change_the_scores(monkeypatch):
    X, Y = problem(7)
    expected = SumF().fit(X, Y).scores_
    monkeypatch.setattr(
        "labelsieve.methods.sum_f.batches", lambda length, width, *_: batches(length, width, 120)
    )
    np.testing.assert_allclose(SumF().fit(X, Y).scores_, expected, rtol=1e-12)
