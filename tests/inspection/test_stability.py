"""Stability indices against their definitions over pairs of sets, and against each other."""

from itertools import combinations

import numpy as np
import pytest

from labelsieve.inspection.stability import jaccard_stability, kuncheva_stability, nogueira_stability

INDICES = [jaccard_stability, kuncheva_stability, nogueira_stability]


def masks(sizes, n_features=12, seed=0):
    rng = np.random.default_rng(seed)
    selected = np.zeros((len(sizes), n_features), dtype=bool)
    for run, size in enumerate(sizes):
        selected[run, rng.choice(n_features, size, replace=False)] = True
    return selected


def sets(selected):
    return [set(np.flatnonzero(run)) for run in selected]


def test_kuncheva_equals_its_definition():
    selected = masks([4] * 5)
    pairs = [(len(a & b) * 12 - 4**2) / (4 * (12 - 4)) for a, b in combinations(sets(selected), 2)]
    assert kuncheva_stability(selected) == pytest.approx(np.mean(pairs))


def test_jaccard_equals_its_definition():
    selected = masks([1, 4, 7, 12])
    pairs = [len(a & b) / len(a | b) for a, b in combinations(sets(selected), 2)]
    assert jaccard_stability(selected) == pytest.approx(np.mean(pairs))


def test_nogueira_equals_its_definition():
    selected = masks([1, 4, 7, 5])
    n_runs, n_features = selected.shape
    variances = []
    for feature in selected.T:
        share = feature.sum() / n_runs
        variances.append(n_runs / (n_runs - 1) * share * (1 - share))
    mean_size = selected.sum() / n_runs
    chance = mean_size / n_features * (1 - mean_size / n_features)
    assert nogueira_stability(selected) == pytest.approx(1 - np.mean(variances) / chance)


@pytest.mark.parametrize("seed", range(5))
def test_nogueira_equals_kuncheva_for_sets_of_one_size(seed):
    selected = masks([5] * 6, seed=seed)
    assert nogueira_stability(selected) == pytest.approx(kuncheva_stability(selected))


@pytest.mark.parametrize("index", INDICES)
def test_equal_sets_are_perfectly_stable(index):
    assert index(np.tile(masks([4]), (3, 1))) == pytest.approx(1)
    assert index(np.zeros((3, 5))) == 1
    assert index(np.ones((3, 5))) == 1


@pytest.mark.parametrize("index", [kuncheva_stability, nogueira_stability])
def test_random_sets_are_near_zero_once_chance_is_corrected(index):
    selected = masks([20] * 60, n_features=40)
    # The standard deviation of one pair's index is about 1 / sqrt(39).
    assert abs(index(selected)) < 0.05
    assert jaccard_stability(selected) > 0.3


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("selected", [[[0, 2, 5], [1, 2, 3]], [[1, 0, 1]], [0, 1]])
def test_invalid_masks_raise(index, selected):
    with pytest.raises(ValueError, match="Give masks"):
        index(selected)


def test_kuncheva_needs_sets_of_one_size():
    with pytest.raises(ValueError, match=r"sizes from 3 to 5\. Use nogueira_stability"):
        kuncheva_stability(masks([3, 5]))
