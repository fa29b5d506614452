import numpy as np
from scipy.stats import gmean
from sklearn.metrics import mutual_info_score

from labelsieve.methods.gmm import GMM
from labelsieve.methods.sum_mi import SumMI


def problem(seed, n_samples=200, n_labels=5):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n_samples, 6)).astype(float)
    Y = (X[:, [0]] + rng.normal(size=(n_samples, n_labels)) > 1).astype(int)
    return X, Y


def test_scores_equal_the_shifted_geometric_mean_everywhere():
    X, Y = problem(1)
    X[:, 5] = 1
    information = np.array([[mutual_info_score(x, y) for y in Y.T] for x in X.T]) / np.log(2)
    expected = gmean(information + 200**-2, axis=1) - 200**-2
    np.testing.assert_allclose(GMM(n_bins=3).fit(X, Y).scores_, expected, rtol=1e-8, atol=1e-15)


def test_a_feature_for_all_labels_beats_one_for_a_single_label():
    rng = np.random.default_rng(2)
    Y = (rng.random((400, 4)) < 0.5).astype(int)
    X = np.column_stack([Y[:, 0], Y.sum(axis=1) > 2]).astype(float)
    assert SumMI().fit(X, Y).ranking_[0] == 1
    assert GMM().fit(X, Y).ranking_[1] == 1


def test_a_label_without_information_does_not_erase_the_others():
    # Over all combinations of two bits, the bits are independent.
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    X = np.column_stack([bits[:, 0], np.ones(40)])
    scores = GMM().fit(X, bits).scores_
    np.testing.assert_allclose(scores[0], np.sqrt((1 + 1 / 1600) / 1600) - 1 / 1600, rtol=1e-10)
    assert scores[1] == 0
