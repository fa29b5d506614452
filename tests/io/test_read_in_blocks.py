"""Files read in blocks of rows hold what the same files hold when they are read whole."""

import json
import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve import SumF
from labelsieve.io import Dataset, DatasetError, read, write
from labelsieve.io.lazy.blocks import FileAtRest, dense_rows, sparse_rows

dask = pytest.importorskip("dask")

N_ROWS = 23


def dense(values):
    return values.toarray() if sp.issparse(values) else values


def computed(values):
    return values.compute(scheduler="synchronous")


def same(path, *, chunks=5, **options):
    """The lazy data set, once it was found to hold what `read` gives."""
    whole, lazy = read(path, **options), read(path, **options, chunks=chunks)
    assert lazy.X.dtype == whole.X.dtype
    for role in ("X", "Y", "Y_candidates"):
        expected, found = getattr(whole, role), getattr(lazy, role)
        assert (expected is None) == (found is None)
        if expected is not None:
            found = computed(found)
            assert sp.issparse(found) == sp.issparse(expected)
            np.testing.assert_array_equal(dense(found), dense(expected))
            assert found.dtype == expected.dtype
    for field in ("feature_names", "label_names", "nominal", "name"):
        assert getattr(lazy, field) == getattr(whole, field), field
    return lazy


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    Y = (rng.random((N_ROWS, 3)) < 0.4).astype(int)
    X = rng.normal(size=(N_ROWS, 4)).round(3) * (rng.random((N_ROWS, 4)) < 0.7)
    return Dataset(X, Y, np.maximum(Y, rng.random(Y.shape) < 0.2), "abcd", ["p", "q", "r"], "some")


@pytest.fixture
def sparse(data):
    return Dataset(
        sp.csr_array(data.X),
        None,
        sp.csr_array(data.Y_candidates),
        data.feature_names,
        data.label_names,
        "some",
    )


# Formats


@pytest.mark.parametrize("ending", ["csv", "tsv", "npz"])
def test_files_of_this_package_need_no_arguments(tmp_path, data, ending):
    path = tmp_path / f"some.{ending}"
    write(data, path)
    lazy = same(path)
    assert lazy.X.chunks[0] == (5, 5, 5, 5, 3)
    assert repr(lazy).endswith("(dense), 3 labels (true and candidate), 5 blocks of rows")


@pytest.mark.parametrize("ending", ["svm", "npz"])
def test_sparse_files_give_sparse_blocks(tmp_path, sparse, ending):
    path = tmp_path / f"some.{ending}"
    write(sparse, path)
    lazy = same(path)
    block = computed(lazy.X.blocks[1])
    assert block.format == "csr"
    assert block.has_canonical_format
    assert "(sparse), 3 labels (candidate), 5 blocks" in repr(lazy)


@pytest.mark.parametrize(
    "options", [{"labels": "l_*"}, {"labels": 2, "ignore": "id"}, {"labels": ["l_1"], "candidates": "l_2"}]
)
def test_labels_of_a_table_are_chosen_as_ever(tmp_path, options):
    path = tmp_path / "t.csv"
    rows = [f"{0.5 * i},{-i},{i},{i % 2},{i % 3 > 0:d}" for i in range(11)]
    path.write_text("\n".join(["x,id,z,l_1,l_2", *rows]))
    same(path, chunks=3, **options)


def test_ways_to_write_a_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf\r\n"a ";b;y\r\n1;2;0\r\n\r\n"3";;1\r\n  \r\n-5e-1;6;-1')
    same(path, chunks=2, labels="y", missing="zero")
    path.write_text("1,2,0\n3,4,1\n\n5,6,1\n")
    same(path, chunks=2, labels=1)


def test_columns_of_text_may_be_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,x,y\nu,1,0\nv,2,1\nw,3,1\n")
    same(path, chunks=2, labels="y", ignore="name")
    with pytest.raises(
        DatasetError, match=r"line 2: column 'name' must hold numbers .* got 'u'.*ignore='name'"
    ):
        computed(read(path, labels="y", chunks=2).X.blocks[0])


@pytest.mark.parametrize("first", ["", "5 6 4\n", "5 6 4\r\n"])
def test_dialects_of_svmlight(tmp_path, first):
    path = tmp_path / "t.txt"
    path.write_bytes((first + "1,3 0:1.5 2:2\n 1:4\n2 5:1e-3 3:0\n3\n1,1 4:1 # said\n").encode())
    same(path, chunks=2)


def test_lines_without_a_row_are_no_rows(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:1\n# only\n\n\n7 2:1\n\n\n\n3,7 5:2\n")
    lazy = same(path, chunks=2)
    assert lazy.X.chunks[0] == (1, 1, 1)
    path.write_text("2 6 4\n1 1:1\n\n\n\n")
    assert same(path, chunks=3).X.chunks[0] == (2,)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["f4", "i2", "?"])
def test_arrays_in_any_order_and_type(tmp_path, order, dtype):
    table = np.asarray(np.arange(60).reshape(12, 5) % 2, dtype=dtype, order=order)
    np.save(tmp_path / "t.npy", table)
    same(tmp_path / "t.npy", labels=2)
    np.savez(
        tmp_path / "t.npz", data=table, target=table[:, :2] * 2.0 - 1, feature_names=np.array([*"abcde"])
    )
    same(tmp_path / "t.npz", chunks="auto")


@pytest.mark.parametrize("ending", ["npy", "csv", "parquet"])
def test_labels_may_stand_in_a_second_file(tmp_path, data, ending):
    paths = [tmp_path / f"{name}.{ending}" for name in "XY"]
    for path, values in zip(paths, (data.X, data.Y), strict=True):
        if ending == "npy":
            np.save(path, values)
        else:
            pd = pytest.importorskip("pandas")
            frame = pd.DataFrame(values).rename(columns=lambda place, path=path: f"{path.stem}{place}")
            frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path, row_group_size=5)
    same(paths[0], labels=paths[1])


@pytest.fixture
def grouped(tmp_path, data):
    """A Parquet file of groups of three rows, with a column of text and one of truth values."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip("abcd", data.X.T, strict=True))
    columns |= {"a.b": data.X[:, 0], "text": ["t"] * N_ROWS, "p": data.Y[:, 0] == 1, "q": data.Y[:, 1]}
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=3)
    return path


def test_blocks_of_parquet_are_whole_row_groups(grouped):
    lazy = same(grouped, chunks=7, labels="p,q", ignore="text")
    assert lazy.X.chunks[0] == (6, 6, 6, 5)
    with pytest.raises(DatasetError, match=r"row groups of up to 3 rows.*row_group_size=2, or give chunks=3"):
        read(grouped, labels="p,q", ignore="text", chunks=2)
    for options in ({"labels": "p,q"}, {"labels": "text"}):
        with pytest.raises(DatasetError, match="column 'text' must hold numbers"):
            read(grouped, **options, chunks=7)


def test_a_folder_of_parquet_files_is_one_table(tmp_path, grouped):
    options = {"labels": "p,q", "ignore": "text"}
    folder = tmp_path / "all.parquet"
    folder.mkdir()
    for name in ("part-2.parquet", "part-1.parquet"):
        (folder / name).write_bytes(grouped.read_bytes())
    lazy, one = read(folder, **options, chunks=7), read(grouped, **options)
    assert (lazy.name, lazy.label_names) == ("all", one.label_names)
    np.testing.assert_array_equal(computed(lazy.X), np.vstack([one.X, one.X]))
    np.testing.assert_array_equal(computed(lazy.Y), np.vstack([one.Y, one.Y]))


@pytest.mark.parametrize("ending", ["csv", "svm"])
def test_several_files_are_parts_of_one_data_set(tmp_path, ending):
    content = {
        "csv": ["x,z,label:y\n1,2,0\n3,4,1\n", "x,z,label:y\n5,6,1\n"],
        "svm": ["4 1:1\n2 2:1\n", "4,9 7:1\n"],
    }[ending]
    paths = [tmp_path / f"part-{number}.{ending}" for number in range(2)]
    for path, text in zip(paths, content, strict=True):
        path.write_text(text)
    assert same(paths, chunks=2).X.chunks[0] == (2, 1)


# What is read when


def test_nothing_but_the_block_is_read(tmp_path):
    # A file with a hole: 160 MB of zeros that take no room on the disk.
    path = tmp_path / "large.npy"
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f8", "fortran_order": False, "shape": (200_000, 100)}
        )
        stream.truncate(stream.tell() + 8 * 200_000 * 100)
    tracemalloc.start()
    data = read(path, labels=1, chunks=1000)
    assert not computed(data.X.blocks[100]).any()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20


def test_labels_alone_do_not_read_the_features(grouped, monkeypatch):
    import pyarrow.parquet as pq

    asked = []
    original = pq.ParquetFile.read_row_groups

    def read_row_groups(self, groups, columns):
        asked.append((groups, columns))
        return original(self, groups, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", read_row_groups)
    data = read(grouped, labels="p,q", ignore="text", chunks=6)
    assert not asked
    computed(data.Y.blocks[1])
    assert asked == [([2, 3], ["p", "q"])]


@pytest.mark.parametrize("name", ["t.svm", "t.csv"])
def test_a_block_of_lines_is_read_once_for_features_and_labels(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_text("1 1:1\n" * 1000 if name == "t.svm" else "1,0,1\n" * 1000)
    data = read(path, labels=None if name == "t.svm" else 1, chunks=100)
    asked = []
    original = FileAtRest.read
    monkeypatch.setattr(
        FileAtRest, "read", lambda self, start, n: (asked.append((start, n)), original(self, start, n))[1]
    )
    dask.compute(data.X.blocks[3], data.Y.blocks[3], scheduler="synchronous")
    assert asked == [(1800, 600)]


def test_the_index_is_kept_beside_the_file_and_used(tmp_path, monkeypatch):
    path = tmp_path / "t.svm"
    path.write_text("1 1:1\n3 2:1\n1 9:2\n")
    first = read(path, chunks=2)
    index = tmp_path / "t.svm.index"
    assert json.loads(index.read_text())["notes"] == {"lowest": 1, "highest": 9, "labels": [1, 3]}
    with monkeypatch.context() as patch:
        patch.setattr("labelsieve.io.lazy.lines._whole_lines", lambda *_: pytest.fail("scanned again"))
        again = read(path, chunks=2)
    assert (again.label_names, again.X.chunks) == (first.label_names, first.X.chunks)
    assert sorted(os.listdir(tmp_path)) == ["t.svm", "t.svm.index"]
    for content in ("{", '{"key": 1}', "[]"):  # damaged: scanned again
        index.write_text(content)
        same(path, chunks=2)
    path.write_text("1 1:1\n3 2:1\n1 10:2\n")
    with pytest.raises(DatasetError, match=r"was changed since it was opened; read it again"):
        computed(first.X)
    assert same(path, chunks=2).X.shape == (3, 10)


def test_a_folder_that_may_not_be_written_to_gets_no_index(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError

    path = tmp_path / "t.svm"
    path.write_text("1 1:1\n3 2:1\n1 9:2\n")
    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    same(path, chunks=2)
    assert os.listdir(tmp_path) == ["t.svm"]


def test_an_index_that_lies_is_noticed(tmp_path):
    path, index = tmp_path / "t.svm", tmp_path / "t.svm.index"
    path.write_text("1 1:1\n3 2:1\n1 9:2\n")
    read(path, chunks=2)
    for place, value, complaint in ((3, 7, "index counted 7"), (1, 99, "shorter than its index says")):
        known = json.loads(index.read_text())
        known["spans"][0][place] = value
        index.write_text(json.dumps(known))
        with pytest.raises(DatasetError, match=complaint):
            computed(read(path, chunks=2).X.blocks[0])


@pytest.mark.parametrize("ending", ["csv", "svm"])
def test_lines_are_scanned_and_parsed_some_at_a_time(tmp_path, monkeypatch, data, sparse, ending):
    path = tmp_path / f"some.{ending}"
    write(sparse if ending == "svm" else data, path)
    monkeypatch.setattr("labelsieve.io.lazy.lines._PIECE_BYTES", 50)
    monkeypatch.setattr("labelsieve.io.lazy.lines.BLOCK_BYTES", 30)
    same(path, chunks=10)
    lines = path.read_text().splitlines()
    lines[17] = lines[17].replace("1", "oops")
    path.write_text("\n".join(lines))
    with pytest.raises(DatasetError, match=r", line 18: "):
        computed(read(path, chunks=10).X)


def test_a_good_size_of_blocks():
    assert dense_rows(1000) == 16 * 2**20 // 8000
    assert sparse_rows(1000, 50) == 32 * 2**20 // 600
    assert sparse_rows(10**6, 50) == 64 * 2**20 // 600
    assert 32 * 2**20 < 12 * 50 * sparse_rows(200_000, 50) < 64 * 2**20


# Fits


@pytest.mark.parametrize("ending", ["csv", "npz", "svm"])
def test_a_fit_of_blocks_is_that_of_the_whole(tmp_path, data, sparse, ending):
    path = tmp_path / f"some.{ending}"
    write(sparse if ending == "svm" else data, path)
    whole, lazy = read(path), read(path, chunks=4)
    expected = SumF().fit(whole.X, whole.candidates)
    found = SumF().fit(lazy.X, lazy.candidates)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-9)


@pytest.mark.parametrize("ending", ["csv", "npz", "svm"])
def test_a_lazy_data_set_can_be_sent_elsewhere(tmp_path, data, sparse, ending):
    path = tmp_path / f"some.{ending}"
    write(sparse if ending == "svm" else data, path)
    lazy = pickle.loads(pickle.dumps(read(path, chunks=4)))
    np.testing.assert_array_equal(dense(computed(lazy.X)), data.X)


# What is refused


@pytest.mark.parametrize("chunks", [0, -1, 2.5, True, "many"])
def test_chunks_are_a_number_of_rows_or_auto(tmp_path, chunks):
    with pytest.raises(DatasetError, match=r"a number of rows of 1 or more, or 'auto', was expected"):
        read(tmp_path / "t.csv", chunks=chunks)


@pytest.mark.parametrize(
    ("name", "content", "options", "complaint"),
    [
        ("t.csv", b"x,y\n1,0\n", {"labels": 1, "missing": "mean"}, "give missing='zero'"),
        (
            "t.csv",
            b"nominal:x,z,y\n1,0,1\n",
            {"labels": 1, "nominal": "onehot"},
            "leave out nominal='onehot'",
        ),
        ("t.csv", b"x,y\n", {"labels": 1}, "has a header but no rows"),
        ("t.csv", b"x,y\n1,0\n", {}, "does not say which columns are labels"),
        (
            "t.arff",
            b"@relation r\n@attribute a numeric\n@data\n1\n",
            {},
            "is arff, which cannot be read in blocks",
        ),
        ("t.svm", b"2 3 2\n", {}, "declares 2 samples but has 0"),
        ("t.svm", b"1 3 2\n0 1:1\n0 1:1\n", {}, "line 3: has more rows than its first line declares"),
        ("t.svm", b"1 1:1\n", {"labels": 1}, "means nothing"),
        ("t.svm", b"# said\n", {}, "has no rows"),
        ("t.svm", b" 1:1\n", {}, "has no labels in any row"),
        ("t.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", {"labels": 1}, "is compressed"),
    ],
)
def test_what_cannot_be_read_in_blocks_is_said_at_once(tmp_path, name, content, options, complaint):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=complaint):
        read(path, **options, chunks=2)


@pytest.mark.parametrize(
    ("name", "content", "options", "complaint"),
    [
        (
            "t.csv",
            "x,y\n1,0\n,1\n",
            {"labels": 1},
            "missing feature values, first in column 'x'.* missing='zero'",
        ),
        ("t.csv", "x,y\n1,0\n2,5\n", {"labels": 1}, "label columns must hold 0/1 or -1/\\+1, got 5"),
        ("t.csv", "x,y\n1,0\n1\n", {"labels": 1}, "line 3: expected 2 fields, got 1"),
        ("t.csv", 'x,y\n1,0\n"1\n",0\n', {"labels": 1}, "quotes, which must end in the line"),
        ("t.svm", "2 3 2\n0 1:1\n1 3:1\n", {}, "has feature indices 3 to 3 for 3 features"),
        ("t.svm", "2 3 2\n0 1:1\n2 1:1\n", {}, "has labels outside 0 to 1"),
        ("t.svm", "2 3 2\n0 1:1\n1 1:nan\n", {}, "missing feature values, first in column 'x1'"),
        ("t.svm", "2 3 2\n0 1:1\n1 1:a\n", {}, "line 3: expected a number after the colon, got 'a'"),
    ],
)
def test_what_is_wrong_with_values_is_said_when_they_are_read(tmp_path, name, content, options, complaint):
    path = tmp_path / name
    path.write_text(content)
    data = read(path, **options, chunks=1)
    computed(data.X.blocks[0])
    with pytest.raises(DatasetError, match=complaint):
        SumF().fit(data.X, data.candidates)


def test_compressed_arrays_say_how_to_save_them(tmp_path):
    np.savez_compressed(tmp_path / "t.npz", X=np.eye(3), Y=np.eye(3))
    with pytest.raises(DatasetError, match=r"'X.npy' compressed.*save it with numpy.savez instead"):
        read(tmp_path / "t.npz", chunks=2)


def test_arrays_that_are_cut_off_or_turned(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.eye(4))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DatasetError, match="is cut off; copy it again"):
        read(path, labels=1, chunks=2)
    np.savez(tmp_path / "t.npz", X=np.ones((3, 5)), Y=np.ones((2, 3)))
    with pytest.raises(DatasetError, match=r"got X \(3, 5\), Y \(2, 3\); transpose"):
        read(tmp_path / "t.npz", chunks=2)


def test_a_folder_without_parquet_is_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"is a folder without \.parquet files"):
        read(tmp_path, chunks=2)


def test_a_second_file_is_cut_as_the_first_one_is(tmp_path, monkeypatch):
    # A narrow file would have more rows in a block of good size.
    monkeypatch.setattr("labelsieve.io.lazy.blocks._DENSE_BYTES", 8 * 20 * 3)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.random((10, 20), dtype=np.float32))
    np.save(tmp_path / "Y.npy", rng.integers(0, 2, (10, 2)))
    options = {"labels": tmp_path / "Y.npy"}
    whole, lazy = read(tmp_path / "X.npy", **options), read(tmp_path / "X.npy", **options, chunks="auto")
    assert lazy.X.chunks[0] == lazy.Y.chunks[0] == (3, 3, 3, 1)
    np.testing.assert_array_equal(lazy.X.compute(), whole.X)
    np.testing.assert_array_equal(lazy.Y.compute(), whole.Y)


def test_second_files_must_have_the_same_rows(tmp_path):
    for name, n_rows in (("X", 4), ("Y", 3)):
        np.save(tmp_path / f"{name}.npy", np.ones((n_rows, 2)))
    with pytest.raises(DatasetError, match=r"has 4 rows but .*Y.npy has 3"):
        read(tmp_path / "X.npy", labels=tmp_path / "Y.npy", chunks=2)


def test_what_needs_all_rows_says_so(tmp_path, data):
    write(data, tmp_path / "some.npz")
    lazy = read(tmp_path / "some.npz", chunks=2)
    for action in (lazy.describe, lazy.to_pandas, lambda: write(lazy, tmp_path / "copy.csv")):
        with pytest.raises(
            DatasetError, match=r"needs all rows, which are read in blocks here; .* without chunks="
        ):
            action()
    with pytest.raises(DatasetError, match="must all be dask arrays or none"):
        Dataset(lazy.X, data.Y)
    assert not (tmp_path / "copy.csv").exists()


def test_without_dask_the_sentence_says_what_to_install(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,0\n")
    program = (
        "import sys; sys.modules['dask'] = None\n"
        "from labelsieve.io import read\n"
        "try: read(sys.argv[1], labels=1, chunks=2)\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "t.csv")], capture_output=True, text=True, check=True
    )
    assert "read in blocks with dask; pip install 'labelsieve[dask]'" in done.stdout
