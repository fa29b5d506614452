"""Scaling of dense and sparse features, with and without centring."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve._numerics.scaling import Scaling


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_minmax_scale_maps_to_the_unit_interval_and_copies(container):
    X = container(np.array([[0.0, 2.0, 0.0], [4.0, 0.0, 0.0], [2.0, 1.0, 0.0]]))
    scaled = Scaling.learn(X, "minmax").apply(X)
    dense = scaled if isinstance(scaled, np.ndarray) else scaled.toarray()
    np.testing.assert_array_equal(dense, [[0, 1, 0], [1, 0, 0], [0.5, 0.5, 0]])
    assert X.max() == 4


@pytest.mark.parametrize("scale", ["minmax", "standard"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_constant_columns_are_scaled_to_zero(container, dtype, scale):
    """Otherwise a constant would become a column of ones, or its rounding errors would be magnified."""
    X = np.random.default_rng(0).random((1000, 3))
    X[:, 0], X[:, 2] = 0.1, 0.7
    factor = Scaling.learn(container(X.astype(dtype)), scale).factor
    assert factor.dtype == dtype
    assert list(factor > 0) == [False, True, False]


def test_scaling_is_learned_once_and_does_not_change_the_input():
    X = np.array([[1.0, -2.0, 5.0], [3.0, 2.0, 5.0], [2.0, 0.0, 5.0]])
    before = X.copy()
    scaling = Scaling.learn(X, "minmax")
    np.testing.assert_allclose(scaling.apply(X), [[0, 0, 0], [1, 1, 0], [0.5, 0.5, 0]])
    np.testing.assert_allclose(scaling.apply(X[:1] + 2), [[1, 0.5, 0]])
    np.testing.assert_array_equal(Scaling.learn(X, None).apply(X), X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_sparse_features_are_not_shifted(kind):
    X = np.array([[0.0, -2.0, 0.0], [4.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    scaled = Scaling.learn(kind(X), "minmax").apply(kind(X))
    assert sp.issparse(scaled)
    np.testing.assert_allclose(scaled.toarray(), [[0, -1, 0], [1, 0, 0], [0, -0.5, 0]])
    standard = Scaling.learn(kind(X), "standard").apply(kind(X)).toarray()
    np.testing.assert_allclose(standard.std(axis=0), [1, 1, 0])


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_array])
def test_centring_is_equal_for_dense_sparse_and_split_features(kind, dtype, scale):
    rng = np.random.default_rng(0)
    X = (rng.normal(1, 3, (40, 4)) * (rng.random((40, 4)) < 0.5)).astype(dtype)
    X[:, 2] = 7
    wide = X.astype(np.float64)
    spread = {"minmax": np.ptp(wide, axis=0), "standard": wide.std(axis=0), None: np.ones(4)}[scale]
    expected = (wide - wide.mean(axis=0)) / np.where(wide.std(axis=0) > 0, spread, np.inf)
    scaling = Scaling.learn(kind(X), scale, centre=True)
    np.testing.assert_allclose(scaling.apply(kind(X)), expected, atol=1e-6)
    scaled, rest = scaling.split(kind(X))
    assert scaled.dtype == np.float64
    assert sp.issparse(scaled) == (rest is not None) == sp.issparse(kind(X))
    parts = scaled.toarray() - rest if sp.issparse(scaled) else scaled
    np.testing.assert_allclose(parts, expected, atol=1e-6)


def test_scaling_learned_from_dense_features_applies_to_sparse_ones():
    X = np.array([[1.0, -2.0], [3.0, 2.0], [2.0, 0.0]])
    scaling = Scaling.learn(X, "minmax")
    np.testing.assert_array_equal(scaling.apply(sp.csr_matrix(X)), scaling.apply(X))


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_unscaled_model_gives_equal_predictions(scale):
    rng = np.random.default_rng(0)
    X, coef, intercept = rng.normal(5, 2, (20, 4)), rng.normal(size=(3, 4)), rng.normal(size=3)
    scaling = Scaling.learn(X, scale)
    W, constant = scaling.unscaled_model(coef, intercept)
    np.testing.assert_allclose(X @ W + constant, scaling.apply(X) @ coef.T + intercept, atol=1e-12)
