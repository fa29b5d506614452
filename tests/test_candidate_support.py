import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from labelsieve.datasets import Dataset
from labelsieve.label_support import candidate_support
from labelsieve.numerics.batches import batches


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.random((40, 5))
    Y = (X[:, :2] > 0.5).astype(int)
    return Dataset(X, Y, np.maximum(Y, rng.random(Y.shape) < 0.2))


def test_support_is_what_regression_without_the_row_predicts(data):
    # The slow way: one regression a row, standardised as a whole like the fast way.
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    Y = data.Y_candidates.astype(float)
    n_samples = len(X)
    gram = np.linalg.inv(X.T @ X + 0.01 * n_samples * np.eye(5))
    expected = []
    for i, j in np.argwhere(Y):
        hat = X @ gram @ X.T + 1 / n_samples
        # Replacing y_i by its own prediction leaves it out: solve for the value that predicts itself.
        others = hat[i] @ Y[:, j] - hat[i, i] * Y[i, j]
        expected.append(others / (1 - hat[i, i]))
    found = candidate_support(data.X, sp.csr_array(data.Y_candidates))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_support_equals_ridge_regression_that_never_saw_the_row():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 3))
    Y = (X[:, :1] + 0.3 * rng.standard_normal((500, 1)) > 0).astype(int)
    support = candidate_support(X, sp.csr_array(Y))
    i = int(np.flatnonzero(Y[:, 0])[0])
    rest = np.arange(500) != i
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    predicted = Ridge(alpha=0.01 * 500).fit(Z[rest], Y[rest, 0]).predict(Z[i : i + 1])
    assert support[0] == pytest.approx(predicted[0], abs=1e-3)  # the penalty is not rescaled by n/(n-1)


def test_support_is_the_same_for_sparse_features(data):
    Y = sp.csr_array(data.Y_candidates)
    np.testing.assert_allclose(
        candidate_support(sp.csr_array(data.X), Y), candidate_support(data.X, Y), atol=1e-12
    )


def test_constant_and_duplicate_features_do_no_harm(data):
    Y = sp.csr_array(data.Y_candidates)
    X = np.column_stack([data.X, np.full(40, 1e9), data.X[:, 0], np.zeros(40)])
    assert np.isfinite(candidate_support(X, Y)).all()


def test_blocks_of_rows_change_nothing(data, monkeypatch):
    Y = sp.csr_array(data.Y_candidates)
    whole = candidate_support(data.X, Y)
    monkeypatch.setattr("labelsieve.label_support.batches", lambda length, width: batches(length, width, 21))
    np.testing.assert_allclose(candidate_support(data.X, Y), whole, rtol=1e-12)
