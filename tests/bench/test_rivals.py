"""Selectors of other packages under the contract of this one."""

import importlib.util
import warnings

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import chi2, mutual_info_classif

from labelsieve.bench.rivals import RIVALS, Chi2, ExtraTrees, MutualInformation
from labelsieve.contract import check_selector
from labelsieve.datasets import make_pml
from labelsieve.methods import METHODS

needs_fastcan = pytest.mark.skipif(importlib.util.find_spec("fastcan") is None, reason="needs fastcan")
NAMES = [pytest.param(name, marks=needs_fastcan if name == "fastcan" else ()) for name in RIVALS]


@pytest.mark.parametrize("name", NAMES)
def test_rivals_meet_the_contract(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_selector(RIVALS[name]())


def test_rivals_are_not_methods_of_the_package():
    assert not set(RIVALS) & set(METHODS)


def test_scores_equal_those_of_scikit_learn_for_one_label():
    X, Y = make_pml(n_samples=60, n_features=8, n_labels=1, random_state=0)
    scaled, y = (X - X.min(axis=0)) / np.ptp(X, axis=0), Y[:, 0]
    np.testing.assert_allclose(Chi2().fit(X, Y).scores_, chi2(scaled, y)[0])
    seed = int(np.random.default_rng(3).integers(2**31 - 1))
    expected = mutual_info_classif(X, y, random_state=seed)
    np.testing.assert_allclose(MutualInformation(random_state=3).fit(X, Y).scores_, expected)
    trees = ExtraTreesClassifier(20, min_samples_leaf=5, random_state=seed).fit(X, y)
    found = ExtraTrees(n_estimators=20, random_state=3).fit(X, Y).scores_
    np.testing.assert_allclose(found, trees.feature_importances_)


@needs_fastcan
def test_fastcan_ranks_what_it_can_if_features_are_dependent():
    X, Y = make_pml(n_samples=60, n_features=8, random_state=0)
    X = np.column_stack([X, X, np.zeros(len(X))])
    selector = RIVALS["fastcan"]().fit(X, Y)
    n_ranked = np.count_nonzero(selector.scores_)
    assert 4 <= n_ranked <= 8
    first = np.argsort(selector.ranking_)[:n_ranked]
    assert np.linalg.matrix_rank(X[:, first]) == n_ranked
