from functools import cache

import numpy as np
import pytest

from labelsieve.methods.lsmfs import LSMFS
from labelsieve.methods.sum_mi import SumMI
from oracles import bits, conditional_bits


def problem(seed, n_samples=70, n_features=7, n_labels=4):
    """Make features whose values 0, 1 and 2 equal their symbols with three bins."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n_samples, n_features)).astype(float)
    Y = (rng.random((n_samples, n_labels)) < 0.3).astype(int)
    Y[:, 0] |= X[:, 2] > 1
    Y[:, 1] ^= X[:, 5] > 1
    Y[:, 2] = Y[:, 1] ^ (X[:, 3] > 0)  # supplements: feature 3 tells about 2 once 1 is known
    return X, Y


def tables(X, Y):
    """Compute I(f; y_i) and I(f; y_i | y_j) one by one."""
    plain = np.array([[bits(x, y) for y in Y.T] for x in X.T])
    conditional = np.array([[[conditional_bits(x, y, z) for z in Y.T] for y in Y.T] for x in X.T])
    return plain, conditional


@cache
def tables_of(seed):
    return tables(*problem(seed))


def relevance(seed, criterion, average):
    """Compute the relevance from its definition."""
    plain, conditional = tables_of(seed)
    n_labels = plain.shape[1]
    pairs = [(i, j) for i in range(n_labels) for j in range(n_labels) if i != j]
    if criterion == "max":
        return np.array(
            [
                sum(max(C[i, j] for j in range(n_labels) if j != i) for i in range(n_labels))
                for C in conditional
            ]
        )
    gains = [
        sum(max(0, C[i, j] - R[i]) for i, j in pairs) for C, R in zip(conditional, plain, strict=True)
    ]  # fmt: skip
    return plain.sum(axis=1) + np.array(gains) / (n_labels - 1 if average else 1)


@pytest.mark.parametrize(("criterion", "average"), [("sum", True), ("sum", False), ("max", True)])
def test_relevance_equals_the_direct_computation(criterion, average):
    X, Y = problem(0)
    # With one feature to select, no redundancy is subtracted from the criteria of the others.
    selector = LSMFS(1, criterion=criterion, average=average).fit(X, Y)
    np.testing.assert_allclose(selector.criterion_, relevance(0, criterion, average), atol=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_selection_and_criterion_equal_the_direct_computation(seed):
    X, Y = problem(seed)
    rel = relevance(seed, "sum", True)
    selected, reached = [], rel.copy()
    for _ in range(4):
        waiting = [f for f in range(X.shape[1]) if f not in selected]
        for f in waiting:
            reached[f] = rel[f] - (np.mean([bits(X[:, f], X[:, s]) for s in selected]) if selected else 0)
        selected.append(max(waiting, key=lambda f: reached[f]))
    selector = LSMFS(4).fit(X, Y)
    np.testing.assert_array_equal(np.argsort(selector.ranking_)[:4], selected)
    np.testing.assert_allclose(selector.criterion_, reached, atol=1e-12)
    np.testing.assert_array_equal(selector.scores_, 8 - selector.ranking_)


#: Worked example: relevance, order of selection, and criterion at selection.
EXAMPLE = {
    "sum": (
        {},
        [2.08822084, 2.08822084, 2.08822084, 2.25162917],
        [3, 0, 2, 1],
        [2.25162917, 1.16992500, 1.33659167, 1.05881389],
    ),
    "plain sum": (
        {"average": False},
        [2.84310834, 2.84310834, 2.84310834, 2.50325833],
        [0, 2, 1, 3],
        [2.84310834, 2.25814584, 1.75814584, 1.58496250],
    ),
    "max": (
        {"criterion": "max"},
        [2.08822084, 2.08822084, 2.08822084, 2.42155417],
        [3, 0, 2, 1],
        [2.42155417, 1.16992500, 1.33659167, 1.05881389],
    ),
}


@pytest.mark.parametrize("name", EXAMPLE)
def test_worked_example(name, tiny):
    options, rel, order, reached = EXAMPLE[name]
    np.testing.assert_allclose(LSMFS(1, **options).fit(*tiny).criterion_, rel, atol=5e-9)
    selector = LSMFS(4, **options).fit(*tiny)
    np.testing.assert_array_equal(np.argsort(selector.ranking_), order)
    np.testing.assert_allclose(selector.criterion_[order], reached, atol=5e-9)


def test_a_feature_that_is_informative_only_given_another_label_comes_first():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (400, 2))
    X = np.column_stack([rng.integers(0, 2, (400, 3)), Y[:, 0] ^ Y[:, 1]])
    assert SumMI(1).fit(X, Y).scores_[3] < 0.02
    assert LSMFS(1).fit(X, Y).ranking_[3] == 1
    assert LSMFS(1, criterion="max").fit(X, Y).criterion_[3] == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize("criterion", ["sum", "max"])
def test_a_single_label_gives_its_information(criterion):
    X, Y = problem(3)
    selector = LSMFS(1, criterion=criterion).fit(X, Y[:, :1])
    np.testing.assert_allclose(selector.criterion_, [bits(x, Y[:, 0]) for x in X.T], atol=1e-12)
