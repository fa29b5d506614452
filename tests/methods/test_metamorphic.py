"""Changes of the data that must not change the answer of any method."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve import find_label_issues
from labelsieve.datasets import make_pml
from labelsieve.methods import METHODS

#: Why a method may depend on the order of rows or columns.
RANDOM = {
    "evidence": "assigns rows to inner folds",
    "mifs": "starts at random factors",
    "particle-map": "assigns rows to inner folds",
    "particle-vls": "assigns rows to inner folds",
    "pml-fsla": "starts at random factors",
    "pml-fsso": "starts at random factors",
    "random-ranking": "ranks at random",
    "scmfs": "starts at random factors",
}
#: Methods that scale negative sparse features differently because they do not shift them.
NOT_SHIFTED = {"fpml", "mifs", "particle-map", "particle-vls"}
#: Methods that factorise nonnegative features and reject negative sparse ones.
NONNEGATIVE = {"drmfs", "pml-fsla", "pml-fsmir", "pml-fsso", "scmfs"}


@pytest.fixture(scope="module")
def problem():
    X, Y = make_pml(n_samples=60, n_features=12, n_labels=5, random_state=0)
    X = np.maximum(
        X - np.median(X, axis=0), 0
    )  # zeros are the smallest values, so sparse features lose nothing
    return X, Y


def scores(slug, X, Y):
    selector = METHODS[slug]()
    names = selector.get_params()
    selector.set_params(
        **{name: value for name, value in {"random_state": 0, "max_iter": 30}.items() if name in names}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return selector.fit(X, Y).scores_


@pytest.mark.parametrize("exponent", [-1000, -510, 10, 510, 1000])
@pytest.mark.parametrize("slug", METHODS)
def test_the_unit_of_the_features_does_not_matter(slug, exponent, problem):
    X, Y = problem
    np.testing.assert_allclose(scores(slug, X * 2.0**exponent, Y), scores(slug, X, Y), rtol=1e-9)


@pytest.mark.parametrize("slug", METHODS)
def test_sparse_and_dense_features_agree(slug, problem):
    X, Y = problem
    expected = scores(slug, X, Y)
    np.testing.assert_allclose(
        scores(slug, sp.csr_matrix(X), Y), expected, rtol=1e-5, atol=1e-8 * expected.max()
    )


@pytest.mark.parametrize("slug", METHODS)
def test_negative_sparse_features_agree_or_raise(slug, problem):
    X, Y = problem
    X = X * np.where(np.arange(X.shape[1]) % 2, -1, 1)
    if slug in NONNEGATIVE:
        with pytest.raises(ValueError, match="negative"):
            scores(slug, sp.csr_matrix(X), Y)
        return
    expected = scores(slug, X, Y)
    is_equal = np.allclose(scores(slug, sp.csr_matrix(X), Y), expected, rtol=1e-5, atol=1e-8 * expected.max())
    assert is_equal != (slug in NOT_SHIFTED)


@pytest.mark.parametrize("axis", ["rows", "columns", "labels"])
@pytest.mark.parametrize("slug", METHODS)
def test_order_does_not_matter(slug, axis, problem):
    X, Y = problem
    if slug in RANDOM and axis != "labels":
        pytest.skip(f"{slug} {RANDOM[slug]}")
    rng = np.random.default_rng(1)
    expected = scores(slug, X, Y)
    if axis == "rows":
        order = rng.permutation(len(X))
        found = scores(slug, X[order], Y[order])
    elif axis == "columns":
        order = rng.permutation(X.shape[1])
        found, expected = scores(slug, X[:, order], Y), expected[order]
    else:
        found = scores(slug, X, Y[:, rng.permutation(Y.shape[1])])
    # Solvers that stop early amplify the rounding of sums in another order.
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_masked_values_raise(problem):
    X, Y = problem
    masked = np.ma.masked_greater(X, np.quantile(X, 0.9))
    for slug in METHODS:
        with pytest.raises(ValueError, match=r"^X must not have masked values"):
            scores(slug, masked, Y)
    with pytest.raises(ValueError, match=r"^y must not have masked values"):
        scores("sum-f", X, np.ma.masked_equal(Y, 1))
    with pytest.raises(ValueError, match="masked"):
        find_label_issues(X, np.ma.masked_equal(Y, 1))
    np.testing.assert_array_equal(scores("sum-f", np.ma.array(X), Y), scores("sum-f", X, Y))
