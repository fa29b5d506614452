"""Tests of sets of tags instead of a candidate matrix."""

import numpy as np
import pytest

from labelsieve import (
    METHODS,
    LabelSupport,
    SumF,
    choose_size,
    draw_candidates,
    evidence_test,
    find_label_issues,
    selection_stability,
)
from labelsieve._candidates import binarize_tags
from labelsieve.classify import MLkNN
from labelsieve.datasets import make_pml

NAMES = ["billing", "bug", "login"]


@pytest.fixture
def problem():
    X, Y = make_pml(n_samples=60, n_features=8, n_labels=3, random_state=0)
    return X, Y, [{name for name, is_there in zip(NAMES, row, strict=True) if is_there} for row in Y]


FORMS = {
    "sets": list,
    "lists": lambda tags: [sorted(row) for row in tags],
    "tuples": lambda tags: tuple(tuple(row) for row in tags),
    "objects": lambda tags: np.array([*map(frozenset, tags), None], dtype=object)[:-1],
}


@pytest.mark.parametrize("form", FORMS)
def test_tags_are_equivalent_to_a_matrix(problem, form):
    X, Y, tags = problem
    found, expected = SumF().fit(X, FORMS[form](tags)), SumF().fit(X, Y)
    assert found.label_names_in_.tolist() == NAMES
    assert found.classes_ is None
    np.testing.assert_array_equal(found.scores_, expected.scores_)


def test_a_series_of_lists_contains_tags(problem):
    pd = pytest.importorskip("pandas")
    X, Y, tags = problem
    found = SumF().fit(X, pd.Series([sorted(row) for row in tags]))
    np.testing.assert_array_equal(found.scores_, SumF().fit(X, Y).scores_)


@pytest.mark.parametrize("slug", ["evidence", "rfs", "pml-fp", "mdmr"])
def test_methods_of_every_family_accept_tags(problem, slug):
    X, Y, tags = problem
    method = METHODS[slug]
    np.testing.assert_array_equal(method().fit(X, tags).ranking_, method().fit(X, Y).ranking_)


def test_everything_that_accepts_candidates_accepts_tags(problem):
    X, Y, tags = problem
    assert find_label_issues(X, tags).label_names == tuple(NAMES)
    np.testing.assert_array_equal(LabelSupport().fit(X, tags).support_, LabelSupport().fit(X, Y).support_)
    np.testing.assert_array_equal(choose_size(SumF(), X, tags).scores, choose_size(SumF(), X, Y).scores)
    assert evidence_test(X, tags).p_value == evidence_test(X, Y).p_value
    np.testing.assert_array_equal(
        selection_stability(SumF(2), X, tags).runs, selection_stability(SumF(2), X, Y).runs
    )
    np.testing.assert_array_equal(draw_candidates(tags, 5), draw_candidates(Y, 5))
    np.testing.assert_array_equal(MLkNN().fit(X, tags).predict(X), MLkNN().fit(X, Y).predict(X))


def test_lists_of_numbers_are_matrices(problem):
    X, Y, _ = problem
    found = SumF().fit(X, Y.astype(int).tolist())
    assert found.label_names_in_.tolist() == ["y0", "y1", "y2"]


def test_lists_of_strings_are_classes(problem):
    X, _, _ = problem
    found = SumF().fit(X, ["a", "b", "c"] * 20)
    assert found.label_names_in_.tolist() == found.classes_.tolist() == ["a", "b", "c"]


def test_numbers_in_sets_are_sorted_tags():
    matrix, names = binarize_tags([{10, 2}, {2}])
    assert names == ["2", "10"]
    assert matrix.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("odd", [None, "bug", 3.5])
def test_a_row_that_is_not_a_set_is_rejected(problem, odd):
    X, _, tags = problem
    with pytest.raises(ValueError, match="empty set"):
        SumF().fit(X, [*tags[:-1], odd])


def test_rows_without_any_tag_are_rejected(problem):
    X, _, _ = problem
    with pytest.raises(ValueError, match=r"at least one|a minimum of 1"):
        SumF().fit(X, [set()] * len(X))


def test_many_tags_give_a_sparse_matrix():
    from scipy.sparse import issparse

    matrix, names = binarize_tags([{number} for number in range(5000)])
    assert issparse(matrix)
    assert len(names) == 5000
