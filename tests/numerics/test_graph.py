import numpy as np
import pytest
import scipy.sparse as sp

import graph_examples as example
from labelsieve._numerics.graph import label_graph, laplacian_product, nearest_rows, neighbor_graph

KINDS = [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array]


def plain_affinity(points, n_neighbors, width=1.0):
    """Compute the graph from its definition, with loops and an n x n matrix."""
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    affinity = np.eye(len(points))
    for node in range(len(points)):
        others = [other for other in np.argsort(squared[node], kind="stable") if other != node]
        for other in others[:n_neighbors]:
            affinity[node, other] = affinity[other, node] = np.exp(-squared[node, other] / (2 * width))
    return affinity


@pytest.mark.parametrize("kind", KINDS)
def test_row_and_feature_graphs_of_the_worked_example(kind):
    for points, name in ((example.X, "row"), (example.X.T, "feature")):
        graph = neighbor_graph(kind(points), example.N_NEIGHBORS)
        np.testing.assert_allclose(graph.affinity.toarray(), example.graph(name), rtol=1e-14)
        np.testing.assert_allclose(graph.degrees, example.graph(name).sum(axis=0), rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_label_graph_of_the_worked_example(kind):
    graph = label_graph(kind(example.Y), example.N_NEIGHBORS)
    np.testing.assert_allclose(graph.affinity.toarray(), example.graph("label"), rtol=1e-14)


@pytest.mark.parametrize("shape", [(60, 5), (60, 30), (8, 60)])
def test_ties_are_broken_equally_for_dense_and_sparse_points(shape):
    points = (np.random.default_rng(8).random(shape) < 0.3).astype(float)
    expected = plain_affinity(points, 4)
    for kind in KINDS:
        np.testing.assert_allclose(
            neighbor_graph(kind(points), 4).affinity.toarray(), expected, rtol=1e-14
        )  # fmt: skip


@pytest.mark.parametrize("shape", [(40, 3), (40, 30)])
def test_graph_equals_the_definition(shape):
    points = np.random.default_rng(0).random(shape)
    affinity = neighbor_graph(points, 4).affinity
    assert sp.issparse(affinity)
    np.testing.assert_allclose(affinity.toarray(), plain_affinity(points, 4), rtol=1e-12)


def test_median_bandwidth_makes_the_graph_scale_invariant():
    points = np.random.default_rng(1).random((30, 5))
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    width = np.median(np.sort(squared, axis=1)[:, 1:4])
    graph = neighbor_graph(points, 3, bandwidth="median").affinity.toarray()
    np.testing.assert_allclose(graph, plain_affinity(points, 3, width), rtol=1e-12)
    np.testing.assert_allclose(
        neighbor_graph(1e4 * points, 3, bandwidth="median").affinity.toarray(), graph, rtol=1e-9
    )


def test_bandwidth_is_a_number_or_the_mean_squared_length():
    points = np.array([[0.0], [1.0], [3.0]])
    # Distances to the nearest neighbour are 1, 1 and 2. The mean square is 2, so weights are exp(-d^2 / 2).
    graph = neighbor_graph(points, 1, bandwidth="mean").affinity.toarray()
    np.testing.assert_allclose(graph[[0, 1], [1, 2]], np.exp([-1 / 2, -4 / 2]))
    graph = neighbor_graph(points, 1, bandwidth=10.0).affinity.toarray()
    np.testing.assert_allclose(graph[[0, 1], [1, 2]], np.exp([-1 / 200, -4 / 200]))
    assert neighbor_graph(np.zeros((3, 1)), 1, bandwidth="mean").affinity.max() == 1


def test_unit_bandwidth_drops_edges_between_distant_points():
    points = 1000 * np.random.default_rng(2).random((20, 5))
    assert neighbor_graph(points, 3).affinity.nnz == 20  # self-loops only
    assert neighbor_graph(points, 3, bandwidth="median").affinity.nnz > 60


def test_number_of_neighbours_is_limited_to_the_other_nodes():
    points = np.random.default_rng(3).random((3, 2))
    np.testing.assert_allclose(neighbor_graph(points, 5).affinity.toarray(), plain_affinity(points, 2))
    np.testing.assert_array_equal(neighbor_graph(points[:1], 5).affinity.toarray(), [[1.0]])
    Y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(label_graph(Y, 5).affinity.toarray(), plain_affinity(Y.T, 1))
    np.testing.assert_array_equal(label_graph(Y[:, :1], 5).affinity.toarray(), [[1.0]])


@pytest.mark.parametrize("bandwidth", ["unit", "median"])
def test_edges_between_duplicate_points_have_weight_one(bandwidth):
    graph = neighbor_graph(np.zeros((4, 3)), 2, bandwidth=bandwidth)
    assert set(graph.affinity.data) == {1.0}
    np.testing.assert_array_equal(graph.affinity.diagonal(), 1.0)
    assert (graph.degrees >= 3).all()


def test_distances_of_nearly_equal_points_are_accurate():
    points = np.array([[1e8, 0.0], [1e8, 1e-3], [0.0, 0.0]])
    affinity = neighbor_graph(points, 1).affinity
    np.testing.assert_allclose(affinity[0, 1], np.exp(-0.5e-6), rtol=1e-15)


def test_label_graph_follows_permutations_of_labels_despite_ties():
    rng = np.random.default_rng(4)
    Y = (rng.random((12, 9)) < 0.4).astype(float)
    Y[:, 3] = Y[:, 5] = 0  # two labels without candidates
    order = rng.permutation(9)
    graph = label_graph(Y, 2).affinity.toarray()
    np.testing.assert_array_equal(label_graph(Y[:, order], 2).affinity.toarray(), graph[np.ix_(order, order)])


def test_laplacian_product_equals_the_dense_product_and_ignores_self_loops():
    rng = np.random.default_rng(5)
    graph = neighbor_graph(rng.random((15, 4)), 3)
    V = rng.normal(size=(15, 2))
    without_loops = graph.affinity.toarray() - np.eye(15)
    laplacian = np.diag(without_loops.sum(axis=0)) - without_loops
    np.testing.assert_allclose(laplacian_product(graph, V), laplacian @ V, atol=1e-14)
    np.testing.assert_allclose(laplacian_product(graph, np.ones((15, 1))), 0, atol=1e-14)


def test_edges_do_not_depend_on_blocks(monkeypatch):
    points = np.random.default_rng(6).random((50, 6))
    whole = neighbor_graph(points, 5).affinity.toarray()
    monkeypatch.setattr("labelsieve._numerics.graph._EDGE_BLOCK", 7)
    np.testing.assert_array_equal(neighbor_graph(points, 5).affinity.toarray(), whole)


def test_graph_keeps_single_precision():
    points = np.random.default_rng(7).random((20, 6))
    single = neighbor_graph(points.astype(np.float32), 3)
    assert single.affinity.dtype == single.degrees.dtype == np.float32
    np.testing.assert_allclose(
        single.affinity.toarray(), neighbor_graph(points, 3).affinity.toarray(), rtol=1e-5
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_ties_between_neighbours_are_broken_by_the_lower_index(kind):
    corners = kind(np.array([[0.3, 0.3], [0.3, 0.1], [0.1, 0.3], [0.5, 0.3], [0.3, 0.5]]))
    indices, distances = nearest_rows(corners, 3, queries=corners[:1])
    np.testing.assert_array_equal(indices, [[0, 1, 2]])
    np.testing.assert_allclose(distances, [[0, 0.2, 0.2]])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_distance_of_duplicate_rows_is_zero_despite_rounding(kind):
    rows = np.random.default_rng(0).random((60, 40)) * 1000
    indices, distances = nearest_rows(kind(rows), 1, queries=kind(rows.copy()))
    np.testing.assert_array_equal(indices.ravel(), np.arange(60))
    np.testing.assert_array_equal(distances, np.zeros((60, 1)))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_neighbours_do_not_depend_on_other_queries(kind):
    rng = np.random.default_rng(0)
    rows, queries = rng.random((50, 4)), rng.random((20, 4))
    expected, _ = nearest_rows(kind(rows), 5, queries=kind(queries))
    with_outlier, _ = nearest_rows(kind(rows), 5, queries=kind(np.vstack([queries, np.full(4, 1e12)])))
    np.testing.assert_array_equal(with_outlier[:-1], expected)


def test_number_of_neighbours_is_limited_to_the_rows():
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
