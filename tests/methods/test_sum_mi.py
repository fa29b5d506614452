import numpy as np
import scipy.sparse as sp
from sklearn.metrics import mutual_info_score

from labelsieve.methods.sum_mi import SumMI


def candidates(seed, n_samples=100, n_labels=6):
    return (np.random.default_rng(seed).random((n_samples, n_labels)) < 0.3).astype(int)


def test_scores_of_discrete_features_match_mutual_info_score():
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 3, size=(100, 8)).astype(float), candidates(1)
    X[:, 0] = Y[:, 0]
    expected = [sum(mutual_info_score(x, y) for y in Y.T) / np.log(2) for x in X.T]
    # Three bins separate the values 1 and 2, so the symbols are the values themselves.
    np.testing.assert_allclose(SumMI(n_bins=3).fit(X, Y).scores_, expected, rtol=1e-10)


def test_score_of_a_copied_label_is_its_entropy():
    Y = np.repeat([[1], [0], [0], [0]], 5, axis=0)
    share = np.array([0.25, 0.75])
    entropy = -(share * np.log2(share)).sum()
    np.testing.assert_allclose(SumMI().fit(np.hstack([Y, 3 - Y]), Y).scores_, entropy, rtol=1e-12)


def test_uncorrelated_but_dependent_feature_ranks_first():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 5))
    Y = (np.abs(X[:, [3]]) > 1).astype(int)
    assert SumMI().fit(X, Y).ranking_[3] == 1


def test_monotone_transformations_do_not_matter():
    rng = np.random.default_rng(3)
    X, Y = rng.gamma(1.0, size=(100, 5)), candidates(4)
    np.testing.assert_array_equal(SumMI().fit(np.log1p(X), Y).scores_, SumMI().fit(X, Y).scores_)


def test_duplicate_sparse_entries_are_summed():
    X = np.array([[2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [0.0, 0.0]])
    Y = np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    whole = sp.csr_matrix(X)
    parts = sp.csr_matrix(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=X.shape
    )
    assert parts.nnz == 8
    np.testing.assert_array_equal(SumMI().fit(parts, Y).scores_, SumMI().fit(X, Y).scores_)
    assert parts.nnz == 8
