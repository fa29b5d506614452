"""Tests of `Dataset` and its description."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelsieve.io import Dataset, DatasetError, read

X = np.array([[1.0, 0, 5, 0], [2, 0, 5, 0], [3, 0, 5, -0.0]])
Y = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize("form", [np.array, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_the_description_is_the_same_dense_and_sparse(form):
    candidates = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    figures = Dataset(form(X), form(Y), form(candidates), name="toy", nominal=["x0"]).describe()
    assert (figures.n_samples, figures.n_features, figures.n_labels) == (3, 4, 3)
    assert figures.sparse == (form is not np.array)
    assert figures.cardinality == 3 / 3
    assert figures.density == 3 / 9
    assert figures.candidate_cardinality == 5 / 3
    assert figures.feature_density == 6 / 12
    assert figures.n_distinct_label_sets == 3
    assert figures.n_without_labels == 1
    assert figures.constant_features == ("x1", "x2", "x3")
    assert figures.duplicate_features == ("x3",)
    assert figures.labels_without_positives == ("label2",)
    assert figures.label_counts == {"label0": 2, "label1": 1, "label2": 0}
    assert figures.imbalance == {"label0": 1.0, "label1": 2.0, "label2": None}


def test_a_dataset_without_any_positive_label_is_described_without_nan():
    figures = Dataset(X, np.zeros((3, 2), int)).describe()
    assert figures.cardinality == 0
    assert set(figures.imbalance.values()) == {None}
    assert "NaN" not in json.dumps(figures.as_dict())
    assert "imbalance" in str(figures)


def test_describing_wide_sparse_features_does_not_densify_them():
    wide = sp.csr_array(([1.0], ([0], [10**4])), shape=(10**5, 10**5))  # 80 GB if dense
    figures = Dataset(wide, sp.csr_array(([1], ([0], [0])), shape=(10**5, 1))).describe()
    assert len(figures.constant_features) == 10**5 - 1
    assert len(figures.duplicate_features) == 10**5 - 2


def test_candidates_are_the_labels_to_fit_on():
    assert Dataset(X, Y).candidates.tolist() == Y.tolist()
    assert Dataset(X, Y, np.ones((3, 3))).candidates.tolist() == np.ones((3, 3)).tolist()


def test_features_are_float64_and_labels_uint8():
    data = Dataset(sp.csc_matrix(X), Y.astype(bool))
    assert isinstance(data.X, sp.csr_array)
    assert (data.X.dtype, data.Y.dtype, data.X.indices.dtype) == (np.float64, np.uint8, np.int32)


@pytest.mark.parametrize("role", ["X", "Y", "Y_candidates"])
def test_a_sparse_matrix_that_points_outside_itself_is_rejected(role):
    broken = sp.csr_array(np.eye(3))
    broken.indices[1] = 2**30
    parts = {"X": np.eye(3), "Y": np.eye(3), role: broken}
    with pytest.raises(DatasetError, match=f"{role} "):
        Dataset(**parts)


def test_the_callers_sparse_matrix_is_not_changed():
    untidy = sp.csr_array((np.array([1.0, 0.0, 2.0]), np.array([1, 0, 0]), np.array([0, 3])), shape=(1, 2))
    data = Dataset(untidy, [[1]])
    assert untidy.data.tolist() == [1.0, 0.0, 2.0]
    assert data.X.toarray().tolist() == [[2.0, 1.0]]
    assert data.X.nnz == 2


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        ({"X": X}, "neither"),
        ({"X": X, "Y": Y[:2]}, r"\(2, 3\)"),
        ({"X": X, "Y": Y, "Y_candidates": Y[:, :2]}, r"\(3, 2\)"),
        ({"X": X, "Y": Y * 2}, "^Y "),
        ({"X": X, "Y": [["a", "b"], ["c", "d"], ["e", "f"]]}, "^Y "),
        ({"X": X, "Y": [[1], [1, 0], [0]]}, "^Y "),
        ({"X": X, "Y": [1, 0, 1]}, r"\(3,\)"),
        ({"X": [["a"], ["b"], ["c"]], "Y": Y}, "^X "),
        ({"X": X[:0], "Y": Y[:0]}, "at least one sample"),
        ({"X": np.where(X == 3, np.nan, X), "Y": Y}, "NaN"),
        ({"X": sp.csr_array(np.where(X == 3, np.inf, X)), "Y": Y}, "infinity"),
        ({"X": X, "Y": Y, "feature_names": ["a"]}, "got 1"),
        ({"X": X, "Y": Y, "feature_names": ["a", "b", "a", "c"]}, "'a' 2 times"),
        ({"X": X, "Y": Y, "label_names": ["x0", "b", "c"]}, "'x0' 2 times"),
        ({"X": X, "Y": Y, "label_names": ["", "b", "c"]}, "''"),
        ({"X": X, "Y": Y, "label_names": ["a\n", "b", "c"]}, r"'a\\n'"),
        ({"X": X, "Y": Y, "nominal": ["x9"]}, "'x9'"),
        ({"X": X - 2, "Y": Y, "nominal": ["x0"]}, "nominal"),
        ({"X": X, "Y": Y, "columns": []}, "column_of"),
        ({"X": X, "Y": Y, "row_ids": ["a"]}, "row_ids"),
    ],
)
def test_inconsistent_parts_are_rejected(parts, key):
    with pytest.raises(DatasetError, match=key):
        Dataset(**parts)


def test_large_values_count_as_finite():
    assert Dataset([[1e308], [1e308]], [[1], [0]]).X.max() == 1e308


def test_frames_with_columns_of_every_type_are_read():
    frame = pd.DataFrame(
        {
            "length": [1.0, None, 3.0],
            "colour": pd.Series(["red", "blue", "red"], dtype="str"),
            "size": pd.Categorical(["S", "L", None], categories=["S", "M", "L"]),
            "seen": pd.to_datetime(["1970-01-01 00:00:00", "1970-01-02 00:00:00", "1970-01-01 00:00:01"]),
            "id": ["p", "q", "r"],
            "bird": [True, False, True],
            "fish": ["no", "yes", "no"],
        }
    )
    data = read(frame, labels="bird,fish", ignore="id", missing="mean", nominal="code")
    assert data.X[:, :4].tolist() == [[1, 1, 0, 0], [2, 0, 2, 1], [3, 1, 0, 1 / 86400]]
    assert data.nominal == ("colour", "size")
    assert data.Y.tolist() == [[1, 0], [0, 1], [1, 0]]
    hot = read(frame, labels=2, ignore=["id"], missing="zero")
    assert hot.feature_names[:5] == ("length", "colour=red", "size is missing", "size=L", "size=S")


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pd.DataFrame({"a": [1.0]}), {}, "`labels`"),
        (pd.DataFrame({"a": [1.0], "b": [1]}), {"labels": "c"}, "'c'"),
        (pd.DataFrame({"a": []}), {"labels": 1}, r"\(0, 1\)"),
        (pd.DataFrame({"a": [None, 1.0, 2.0], "b": [1, 0, 1]}), {"labels": "b", "missing": "error"}, "'a'"),
    ],
)
def test_ambiguous_frames_are_rejected(frame, options, message):
    with pytest.raises(DatasetError, match=message):
        read(frame, **options)
