"""Warnings about extreme values that hide the evidence of a column."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve import audit
from labelsieve.inspection.extreme_values import columns_with_hidden_evidence
from labelsieve.io import Dataset


def problem(n_samples=200):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 4))
    Y = (X[:, :2] + 0.5 * rng.standard_normal((n_samples, 2)) > 0).astype(int)
    return X, Y


def test_two_extreme_values_that_hide_a_column_are_reported():
    X, Y = problem()
    X[[3, 90], 0] = 1e6, -2e6
    (found,) = columns_with_hidden_evidence(Dataset(X, Y))
    assert (found.name, found.n_extreme) == ("x0", 2)
    assert found.clipped > 80 > 5 > found.evidence
    with pytest.warns(UserWarning, match="'x0'"):
        result = audit(X, Y, fast=True)
    assert any("'x0'" in text for text in result.warnings)


@pytest.mark.parametrize("scale", [1, 1e-8, 1e8])
def test_the_scale_of_a_column_does_not_matter(scale):
    X, Y = problem()
    X[[3, 90], 0] = 1e6, -2e6
    assert [column.name for column in columns_with_hidden_evidence(Dataset(scale * X, Y))] == ["x0"]


def test_harmless_columns_are_not_reported():
    X, Y = problem()
    heavy = np.column_stack([X, np.exp(2 * X[:, 0]), X[:, 0] > 2.2, np.ones(len(X))])
    heavy[5, 3] = 1e9  # extreme, but the column has no evidence without it either
    assert columns_with_hidden_evidence(Dataset(heavy, Y)) == []
    assert columns_with_hidden_evidence(Dataset(sp.csr_array(X), Y)) == []
    assert columns_with_hidden_evidence(Dataset(X[:5], Y[:5])) == []
