"""Tests that every format restores what was written."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelsieve.io import Dataset, DatasetError, read, write

ENDINGS = ("arff", "csv", "tsv", "npz", "svm")
LETTERS = st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")
NAMES = st.text(LETTERS, min_size=1, max_size=6).filter(
    lambda name: name == name.strip() and not name.startswith(("label:", "candidate:", "nominal:"))
)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 5e-324, 1.7976931348623157e308, 1 / 3]),
    st.integers(-(2**53), 2**53).map(float),
)


def dense(matrix):
    return None if matrix is None else matrix.toarray() if sp.issparse(matrix) else matrix


def assert_same(got, expected):
    for role in ("X", "Y", "Y_candidates"):
        np.testing.assert_array_equal(dense(getattr(got, role)), dense(getattr(expected, role)), err_msg=role)
    assert got.feature_names == expected.feature_names
    assert got.label_names == expected.label_names
    assert set(got.nominal) == set(expected.nominal)


@st.composite
def datasets(draw, both=True):
    n_samples, n_features, n_labels = (draw(st.integers(1, 4)) for _ in range(3))
    names = draw(st.lists(NAMES, min_size=n_features + n_labels, max_size=n_features + n_labels, unique=True))
    values = draw(st.lists(NUMBERS, min_size=n_samples * n_features, max_size=n_samples * n_features))
    X = np.array(values).reshape(n_samples, n_features)
    n_nominal = draw(st.integers(0, n_features))
    for column in range(n_nominal):
        X[:, column] = draw(st.lists(st.integers(0, 5), min_size=n_samples, max_size=n_samples))
    labels = st.lists(st.integers(0, 1), min_size=n_samples * n_labels, max_size=n_samples * n_labels)
    kinds = ["true", "candidate", "both"] if both else ["true", "candidate"]
    kind = draw(st.sampled_from(kinds))
    Y = None if kind == "candidate" else np.array(draw(labels)).reshape(n_samples, n_labels)
    candidates = None if kind == "true" else np.array(draw(labels)).reshape(n_samples, n_labels)
    if draw(st.booleans()):
        X = sp.csr_array(X)
        Y, candidates = (None if labels is None else sp.csr_array(labels) for labels in (Y, candidates))
    features = names[:n_features]
    return Dataset(X, Y, candidates, features, names[n_features:], nominal=features[:n_nominal])


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_writing_then_reading_gives_the_same_dataset(ending, data, tmp_path):
    expected = data.draw(datasets(both=ending != "svm"))
    path = tmp_path / f"data.{ending}"
    write(expected, path)
    got = read(path)
    assert_same(got, expected)
    if ending in ("arff", "npz"):
        assert sp.issparse(got.X) == sp.issparse(expected.X)


@settings(max_examples=60, deadline=None)
@given(datasets())
def test_pandas_round_trip(expected):
    got = read(expected.to_pandas())
    assert_same(got, expected)
    assert sp.issparse(got.X) == sp.issparse(expected.X)


def test_name_and_roles_survive_in_npz_and_svmlight(tmp_path):
    data = Dataset([[1.0, 0], [0, 2]], None, [[1, 0], [0, 1]], ["a", "b"], ["s", "t"], name="two words")
    for ending in ("npz", "svm"):
        write(data, tmp_path / f"other.{ending}")
        assert read(tmp_path / f"other.{ending}").name == "two words"
        assert read(tmp_path / f"other.{ending}").Y is None
        assert read(tmp_path / f"other.{ending}", name="mine").name == "mine"


def test_svmlight_rejects_truth_next_to_candidates(tmp_path):
    data = Dataset([[1.0]], [[1]], [[1]])
    with pytest.raises(DatasetError, match="npz"):
        write(data, tmp_path / "data.svm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["arff", "csv"])
def test_names_that_look_like_roles_are_rejected(ending, tmp_path):
    with pytest.raises(DatasetError, match="'label:a'"):
        write(Dataset([[1.0]], [[1]], feature_names=["label:a"]), tmp_path / f"data.{ending}")


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "data.csv"
    write(Dataset([[1.0]], [[1]]), path)
    before = path.read_bytes()
    with pytest.raises(DatasetError, match="' a'"):
        write(Dataset([[1.0]], [[1]], feature_names=[" a"]), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]


def test_unknown_endings_and_missing_folders_are_rejected(tmp_path):
    data = Dataset([[1.0]], [[1]])
    with pytest.raises(DatasetError, match="xlsx'"):
        write(data, tmp_path / "data.xlsx")
    with pytest.raises(DatasetError, match="folder"):
        write(data, tmp_path / "no" / "folder" / "data.npz")


# Targets


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    write(Dataset([[1.0], [2.0]], [[1], [0]]), link)
    assert link.is_symlink()
    assert read(real).X.ravel().tolist() == [1, 2]
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "link.csv"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(Dataset([[1.5]], [[1]]), pipe)
        assert os.read(reader, 1000) == b'"x0","label:label0"\n1.5,1\n'
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("folder", ["data.arff", "data.xml"])
def test_an_arff_file_comes_with_its_labels_or_not_at_all(tmp_path, folder):
    (tmp_path / folder).mkdir()
    with pytest.raises(DatasetError, match=r"data\.arff"):
        write(Dataset([[1.0]], [[1]]), tmp_path / "data.arff")
    assert os.listdir(tmp_path) == [folder]


@pytest.mark.parametrize("path", [None, 3, [None], ["a.csv", 3]])
def test_only_paths_are_accepted(path):
    with pytest.raises(DatasetError):
        read(path)


def test_only_datasets_are_written(tmp_path):
    with pytest.raises(DatasetError, match="int"):
        write(3, tmp_path / "data.csv")
