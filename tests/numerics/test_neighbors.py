"""Nearest rows: ties, repeated rows, blocks, dense beside sparse."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve._numerics.graph import nearest_rows

KINDS = [np.asarray, sp.csr_matrix]


@pytest.mark.parametrize("kind", KINDS)
def test_the_lower_row_comes_first_among_equally_far_neighbours(kind):
    corners = kind(np.array([[0.3, 0.3], [0.3, 0.1], [0.1, 0.3], [0.5, 0.3], [0.3, 0.5]]))
    indices, distances = nearest_rows(corners, 3, queries=corners[:1])
    np.testing.assert_array_equal(indices, [[0, 1, 2]])
    np.testing.assert_allclose(distances, [[0, 0.2, 0.2]])


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_rows_are_at_distance_zero_in_spite_of_rounding(kind):
    rows = np.random.default_rng(0).random((60, 40)) * 1000
    indices, distances = nearest_rows(kind(rows), 1, queries=kind(rows.copy()))
    np.testing.assert_array_equal(indices.ravel(), np.arange(60))
    np.testing.assert_array_equal(distances, np.zeros((60, 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_of_a_row_do_not_depend_on_which_others_are_asked_about(kind):
    rng = np.random.default_rng(0)
    rows, queries = rng.random((50, 4)), rng.random((20, 4))
    alone, _ = nearest_rows(kind(rows), 5, queries=kind(queries))
    beside_an_outlier, _ = nearest_rows(kind(rows), 5, queries=kind(np.vstack([queries, np.full(4, 1e12)])))
    np.testing.assert_array_equal(beside_an_outlier[:-1], alone)


def test_neighbours_are_clamped_to_the_rows_there_are():
    rows = np.random.default_rng(0).random((6, 3))
    indices, _ = nearest_rows(rows, 10, exclude_self=True)
    assert indices.shape == (6, 5)
    indices, _ = nearest_rows(rows[:1], 10, exclude_self=True)
    assert indices.shape == (1, 0)


def test_neighbours_in_blocks_equal_sorted_distances():
    rows = np.random.default_rng(1).random((3000, 3))
    indices, distances = nearest_rows(rows, 4, exclude_self=True)
    for i in (0, 1500, 2999):
        all_distances = np.linalg.norm(rows - rows[i], axis=1)
        np.testing.assert_array_equal(indices[i], np.argsort(all_distances)[1:5])
        np.testing.assert_allclose(distances[i], np.sort(all_distances)[1:5])
