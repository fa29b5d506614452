from functools import cache

import numpy as np
import pytest

from labelsieve.methods.mdmr import MDMR
from labelsieve.methods.sum_mi import SumMI
from oracles import bits, conditional_bits


def problem(seed, n_samples=70, n_features=8, n_labels=4):
    """Make features whose values 0, 1 and 2 equal their symbols with three bins."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n_samples, n_features)).astype(float)
    Y = (rng.random((n_samples, n_labels)) < 0.3).astype(int)
    Y[:, 0] |= X[:, 2] > 1
    Y[:, 1] |= X[:, 5] + X[:, 1] > 3
    return X, Y


@cache
def greedy(seed, n_selected):
    """Run MDMR from its definition, with new criteria in every round."""
    X, Y = problem(seed)

    def criterion(f, selected):
        dependency = sum(bits(X[:, f], y) for y in Y.T)
        redundancy = [
            bits(X[:, f], X[:, s]) - sum(conditional_bits(X[:, f], y, X[:, s]) for y in Y.T) for s in selected
        ]
        return dependency - (np.mean(redundancy) if selected else 0)

    selected, reached = [], np.zeros(X.shape[1])
    for _ in range(n_selected):
        for f in set(range(X.shape[1])) - set(selected):
            reached[f] = criterion(f, selected)
        selected.append(max(set(range(X.shape[1])) - set(selected), key=lambda f: reached[f]))
    return selected, reached


@pytest.mark.parametrize("seed", [0, 1])
def test_selection_and_criterion_equal_the_direct_computation(seed):
    X, Y = problem(seed)
    selected, criterion = greedy(seed, 4)
    selector = MDMR(n_features_to_select=4, n_bins=3).fit(X, Y)
    np.testing.assert_array_equal(np.argsort(selector.ranking_)[:4], selected)
    np.testing.assert_allclose(selector.criterion_, criterion, atol=1e-12)


def test_unselected_features_are_ranked_by_the_last_criterion():
    X, Y = problem(2)
    selector = MDMR(n_features_to_select=3, n_bins=3).fit(X, Y)
    rest = np.argsort(selector.ranking_)[3:]
    assert (np.diff(selector.criterion_[rest]) <= 0).all()
    np.testing.assert_array_equal(selector.scores_, 9 - selector.ranking_)


def test_selecting_more_features_keeps_the_order_of_earlier_ones():
    X, Y = problem(3)
    few, all_ = (MDMR(n_features_to_select=k).fit(X, Y).ranking_ for k in (3, 8))
    np.testing.assert_array_equal(np.argsort(few)[:3], np.argsort(all_)[:3])


def test_a_copy_is_selected_later_than_without_redundancy():
    rng = np.random.default_rng(4)
    Y = (rng.random((500, 2)) < 0.5).astype(int)
    flips = rng.random((500, 2)) < [0.05, 0.1]
    good, other = (Y ^ flips).T
    X = np.column_stack([good, good, other])
    assert SumMI().fit(X, Y).ranking_.tolist() == [1, 2, 3]
    assert MDMR(n_features_to_select=2).fit(X, Y).ranking_.tolist() == [1, 3, 2]
