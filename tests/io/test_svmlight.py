"""Tests of svmlight, LIBSVM multi-label and extreme classification files."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from labelsieve.io import Dataset, DatasetError, read, write


@pytest.fixture
def text_file(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write_text(text, name="data.svm"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_text


def test_libsvm_rows_count_from_one_and_labels_are_those_that_occur(text_file):
    data = read(text_file("# comment\n3,10 1:0.5 4:1e-5 # tail\n\n\t2:1\n3 1:0\n"))
    assert data.label_names == ("3", "10")
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 1], [0, 0], [1, 0]])
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 0, 1e-5], [0, 1, 0, 0], [0, 0, 0, 0]])
    assert data.X.nnz == 3


def test_an_index_of_zero_means_counting_from_zero(text_file):
    assert read(text_file("1 0:1 2:3\n")).X.toarray().tolist() == [[1, 0, 3]]


def test_extreme_classification_files_declare_their_size(text_file):
    data = read(text_file("4 6 3\n0,2 0:0.5 5:1\n 1:2\n\n1\n\n\n", "Bibtex_data.txt"))
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0]])
    assert data.X.shape == (4, 6)
    assert data.X.sum() == 3.5


def test_files_without_a_known_ending_are_recognised(text_file):
    for text in ("1,2 1:0.5\n", "0:1 3:2 \n1 2:1\n", "1 2 3\r\n0 1:1\r\n"):
        assert read(text_file(text, "data.txt")).X.shape[1] in (1, 4, 2)


def test_parts_share_their_labels_and_width(text_file):
    first, second = text_file("1 1:1\n", "a.svm"), text_file("2 3:1\n", "b.svm")
    data = read([first, second])
    assert data.label_names == ("1", "2")
    assert data.X.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]


def test_scikit_learn_reads_what_is_written_and_the_other_way_round(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.normal(size=(30, 8)) * (rng.random((30, 8)) < 0.4))
    Y = (rng.random((30, 4)) < 0.4).astype(int)
    Y[:, 0] |= Y.sum(axis=1) == 0  # scikit-learn skips rows without labels and features
    write(Dataset(X, Y), tmp_path / "ours.svm")
    theirs, labels = load_svmlight_file(tmp_path / "ours.svm", n_features=8, multilabel=True)
    np.testing.assert_array_equal(theirs.toarray(), X.toarray())
    assert [tuple(np.flatnonzero(row)) for row in Y] == labels
    dump_svmlight_file(X, Y, str(tmp_path / "theirs.svm"), multilabel=True, zero_based=False)
    got = read(tmp_path / "theirs.svm")
    np.testing.assert_array_equal(got.Y.toarray(), Y)
    np.testing.assert_allclose(got.X.toarray(), X.toarray(), rtol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "1 1:1\n1 1:x\n",
        "1 1:1\na 1:1\n",
        "1 1:1 1:2\n",
        "1 1000000000:1\n",
        "1 -1:1\n",
        "1 1.5:1\n",
        "1 1:2:3\n",
        " 1:1\n",
        "# nothing\n",
        "1 1:nan\n",
        "3 5 2\n0 1:1\n",
        "1 5 2\n0 1:1\n0 1:1\n",
        "1 5 2\n0 5:1\n",
        "1 5 2\n2 0:1\n",
        "1 99999999999 2\n0 0:1\n",
        "1 1:1\n2 4194304:1\n",
        "2 9 4194303\n0 1:1\n1 2:3\n",
        '# labelsieve {"n_features": 1e9}\n1 1:1\n',
        f"# labelsieve {'[' * 100000}\n1 1:1\n",
    ],
)
def test_invalid_files_give_an_error_that_names_the_file(text_file, text):
    path = text_file(text)
    with pytest.raises(DatasetError) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_labels_cannot_be_chosen(text_file):
    with pytest.raises(DatasetError, match="labels=2"):
        read(text_file("1 1:1\n"), labels=2)
