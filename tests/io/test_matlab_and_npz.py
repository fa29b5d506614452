"""Tests of matrices in MATLAB and NumPy files."""

import io
import json
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from labelsieve.io import Dataset, DatasetError, read, write

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3))
Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]])
CANDIDATES = np.maximum(Y, [[0, 1], [0, 0], [0, 0], [1, 0], [0, 0]])


def mat_file(tmp_path, variables, **options):
    path = tmp_path / "data.mat"
    scipy.io.savemat(path, variables, **options)
    return path


@pytest.mark.parametrize("options", [{}, {"do_compression": True}, {"format": "4"}])
@pytest.mark.parametrize(
    "names", [("data", "target", "partial_labels"), ("X", "Y", "PL"), ("fea", "labels", "candidate_labels")]
)
def test_common_names_and_all_versions_are_read(tmp_path, options, names):
    variables = dict(zip(names, (X, Y.T * 2.0 - 1, CANDIDATES.T * 1.0), strict=True))
    data = read(mat_file(tmp_path, variables, **options))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y, Y)
    np.testing.assert_array_equal(data.Y_candidates, CANDIDATES)
    assert data.feature_names == ("x0", "x1", "x2")


@pytest.mark.parametrize("format", ["4", "5"])
def test_sparse_matrices_stay_sparse(tmp_path, format):
    sparse_x = sp.csc_array(np.where(np.abs(X) > 0.5, X, 0))
    data = read(mat_file(tmp_path, {"data": sparse_x, "target": sp.csc_array(Y.T * 1.0)}, format=format))
    assert sp.issparse(data.X)
    np.testing.assert_array_equal(data.X.toarray(), sparse_x.toarray())
    np.testing.assert_array_equal(data.Y.toarray(), Y)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "int32", "float32", "bool", "int64"])
def test_every_number_type_is_read_as_scipy_reads_it(tmp_path, dtype):
    values = np.array([[0, 1], [1, 1]]).astype(dtype)
    path = mat_file(tmp_path, {"data": values, "target": np.array([[1, 0]])})
    np.testing.assert_array_equal(read(path).X, scipy.io.loadmat(path)["data"])


def test_a_part_without_candidates_uses_its_true_labels(tmp_path):
    variables = {
        "train_data": X[:3],
        "train_target": Y[:3].T,
        "train_p_target": CANDIDATES[:3].T,
        "test_data": X[3:],
        "test_target": Y[3:].T,
    }
    data = read(mat_file(tmp_path, variables))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y, Y)
    np.testing.assert_array_equal(data.Y_candidates, np.vstack([CANDIDATES[:3], Y[3:]]))
    del variables["train_target"]
    with pytest.raises(DatasetError, match=r"data\.mat"):
        read(mat_file(tmp_path, variables))


def test_orientation_follows_the_number_of_samples(tmp_path):
    for labels in (Y, Y.T):
        np.testing.assert_array_equal(read(mat_file(tmp_path, {"data": X, "target": labels})).Y, Y)
    np.testing.assert_array_equal(read(mat_file(tmp_path, {"data": X.T, "target": Y.T})).X, X)
    square = np.array([[1, 1], [0, 0]])
    assert read(mat_file(tmp_path, {"data": X[:2], "target": square})).Y.tolist() == square.T.tolist()


def test_two_files_are_joined_and_matrices_chosen_by_name(tmp_path):
    first = mat_file(
        tmp_path, {"data": X[:2], "one": Y[:2].T, "two": CANDIDATES[:2].T, "note": "text", "c": [[{}]]}
    )
    second = tmp_path / "data2.mat"
    scipy.io.savemat(second, {"data": X[2:], "one": Y[2:].T, "two": CANDIDATES[2:].T})
    data = read([first, second], labels="one", candidates="two")
    np.testing.assert_array_equal(data.Y, Y)
    np.testing.assert_array_equal(data.Y_candidates, CANDIDATES)
    with pytest.raises(DatasetError, match=r"'three'.*data 2x3, one 2x2"):
        read(first, labels="three")


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({"data": X}, "`labels`"),
        ({"target": Y}, "'data'.*target 5x2"),
        ({"data": X, "target": Y[:4]}, r"\(4, 2\)"),
        ({"data": X, "target": Y * 3}, "3"),
        ({"data": X, "target": Y, "candidates": CANDIDATES[:, :1]}, r"\(5, 1\)"),
        ({"data": X * 1j, "target": Y}, "'data'"),
        ({"data": np.array([[object()]], dtype=object)[:0], "target": Y}, "'data'"),
        ({"data": np.where(X > 0, X, np.nan), "target": Y}, r"'x\d'.*missing='mean'"),
    ],
)
def test_unusable_matrices_are_rejected(tmp_path, variables, key):
    path = mat_file(tmp_path, variables)
    with pytest.raises(DatasetError, match=key) as caught:
        read(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("ending", ["mat", "npz", "svm"])
def test_missing_values_are_filled_in_over_all_parts(tmp_path, ending):
    for part, rows in (("a", [[1.0, np.nan], [2.0, 4.0]]), ("b", [[3.0, 1.0], [3.0, 1.0]])):
        path = tmp_path / f"{part}.{ending}"
        if ending == "mat":
            scipy.io.savemat(path, {"data": rows, "target": [[1, 0]]})
        elif ending == "npz":
            np.savez(path, X=rows, Y=[[1], [0]])
        else:
            path.write_text("".join(f"{label} 1:{x} 2:{z}\n" for label, (x, z) in enumerate(rows)))
    paths = [tmp_path / f"{part}.{ending}" for part in "ab"]
    assert read(paths, missing="mean").X[0, 1] == 2  # of 4, 1 and 1
    assert read(paths, missing="zero").X[0, 1] == 0
    with pytest.raises(DatasetError, match="'x1'"):
        read(paths)
    with pytest.raises(DatasetError, match=r"nominal='onehot'"):
        read(paths, nominal="onehot")


def test_version_7_3_is_rejected(tmp_path):
    for content in (b"MATLAB 7.3 MAT-file" + bytes(600), b"\x89HDF\r\n\x1a\n" + bytes(600)):
        (tmp_path / "new.mat").write_bytes(content)
        with pytest.raises(DatasetError, match="-v7"):
            read(tmp_path / "new.mat")


def test_npz_files_with_common_names_are_read(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=X, y=Y, feature_names=np.array(["a", "b", "c"]), other=np.arange(3))
    data = read(path)
    assert data.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(data.Y, Y)


def test_npz_parts_need_the_same_names(tmp_path):
    for name, features in (("a", ["u", "v"]), ("b", ["u", "w"])):
        write(Dataset(X[:2, :2], Y[:2], feature_names=features), tmp_path / f"{name}.npz")
    assert read([tmp_path / "a.npz"] * 2).X.shape == (4, 2)
    with pytest.raises(DatasetError, match=r"a\.npz"):
        read([tmp_path / "a.npz", tmp_path / "b.npz"])


def _npz_with(tmp_path, name, content):
    path = tmp_path / "bad.npz"
    np.savez(path, X=X, Y=Y)
    members = {}
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, old in {**members, name: content}.items():
            archive.writestr(member, content if member == name else old)
    return path


def test_pickles_are_never_loaded(tmp_path):
    class Boom:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was executed",))

    stream = io.BytesIO()
    np.save(stream, np.array([[Boom()]], dtype=object), allow_pickle=True)
    with pytest.raises(DatasetError, match="allow_pickle"):
        read(_npz_with(tmp_path, "X.npy", stream.getvalue()))


def test_huge_shapes_and_bombs_in_npz_are_rejected(tmp_path):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
    )
    with pytest.raises(DatasetError):
        read(_npz_with(tmp_path, "X.npy", stream.getvalue()))
    stream = io.BytesIO()
    np.save(stream, np.zeros((20 * 2**17, 8)))
    with pytest.raises(DatasetError, match="expands"):
        read(_npz_with(tmp_path, "X.npy", stream.getvalue()))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("X_indices", np.full(15, 10**6, np.int32)),
        ("X_indptr", np.array([0, 9, 3, 12, 15, 15], np.int32)),
        ("X_shape", np.array([10**9, 3])),
        ("X_shape", np.array([5, 2**23])),
        ("labelsieve", np.frombuffer(b"[" * 5000, np.uint8)),
        ("labelsieve", np.frombuffer(json.dumps({"feature_names": [None] * 3}).encode(), np.uint8)),
    ],
)
def test_forged_archives_are_rejected(tmp_path, part, value):
    path = tmp_path / "data.npz"
    write(Dataset(sp.csr_array(X), Y), path)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **{**arrays, part: value})
    with pytest.raises(DatasetError, match=r"data\.npz"):
        read(path)


@pytest.mark.parametrize("key", ["feature_names", "label_names"])
def test_names_in_npz_files_must_be_text_and_match_the_columns(tmp_path, key):
    path = tmp_path / "data.npz"
    for names, match in ((np.arange(3), "int64"), (np.array(["x"]), "got 1")):
        np.savez(path, X=X, Y=Y, **{key: names})
        with pytest.raises(DatasetError, match=match):
            read(path)
