"""Tests of files that are read in blocks of rows."""

import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from labelsieve import SumF
from labelsieve.io import Dataset, DatasetError, read, write
from labelsieve.io.blocks import DelimitedTable

dask = pytest.importorskip("dask")

N_ROWS = 23


def computed(values):
    return values.compute(scheduler="synchronous")


def same(path, *, chunks=5, **options):
    """Return the lazy dataset after checking that it equals the result of `read` without blocks."""
    whole, lazy = read(path, **options), read(path, **options, chunks=chunks)
    for role in ("X", "Y", "Y_candidates"):
        expected, found = getattr(whole, role), getattr(lazy, role)
        assert (expected is None) == (found is None)
        if expected is not None:
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(computed(found), expected)
    for field in ("feature_names", "label_names", "nominal", "name"):
        assert getattr(lazy, field) == getattr(whole, field), field
    return lazy


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    Y = (rng.random((N_ROWS, 3)) < 0.4).astype(int)
    X = rng.normal(size=(N_ROWS, 4)) * (rng.random((N_ROWS, 4)) < 0.7)
    return Dataset(X, Y, np.maximum(Y, rng.random(Y.shape) < 0.2), "abcd", ["p", "q", "r"], "some")


def save(path, values, names):
    """Write a table of numbers. Parquet gets row groups of five rows."""
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".csv":
        pd.DataFrame(values, columns=names).to_csv(path, index=False)
    else:
        pd.DataFrame(values, columns=names).to_parquet(path, row_group_size=5)


# Formats


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_files_from_write_need_no_arguments(tmp_path, data, ending):
    path = tmp_path / f"some.{ending}"
    write(data, path)
    lazy = same(path)
    assert lazy.X.chunks[0] == (5, 5, 5, 5, 3)
    assert repr(lazy).endswith("(dense), 3 labels (true and candidate), 5 blocks of rows")


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
def test_a_fit_of_blocks_equals_that_of_the_whole(tmp_path, data, ending):
    path = tmp_path / f"some.{ending}"
    save(path, np.hstack([data.X, data.Y]), [*"abcd", *"pqr"])
    lazy = same(path, labels=3)
    found = SumF().fit(lazy.X, lazy.candidates)
    np.testing.assert_allclose(SumF().fit(data.X, data.Y).scores_, found.scores_, rtol=1e-9)
    sent = pickle.loads(pickle.dumps(lazy))
    np.testing.assert_array_equal(computed(sent.X), data.X)


def test_variants_of_delimited_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf\r\n"a ";b;y\r\n1;2;0\r\n\r\n"3";;1\r\n  \r\n-5e-1;6;-1')
    same(path, chunks=2, labels="y", missing="zero")
    path.write_text("1,2,0\n3,4,1\n\n5,6,1\n")
    same(path, chunks=2, labels=1)


def test_columns_of_text_may_be_ignored(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('name,x,y\n"u,v",1,0\nv,2,1\nw,3,1\n')
    same(path, chunks=2, labels="y", ignore="name")
    with pytest.raises(DatasetError, match=r"'name'.*'u,v' in row 1.*ignore='name'"):
        computed(read(path, labels="y", chunks=2).X.blocks[0])


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["f4", "i2", "?"])
def test_arrays_in_any_order_and_type(tmp_path, order, dtype):
    np.save(tmp_path / "t.npy", np.asarray(np.arange(60).reshape(12, 5) % 2, dtype=dtype, order=order))
    same(tmp_path / "t.npy", labels=2)
    same(tmp_path / "t.npy", labels=-2, chunks="auto")


@pytest.mark.parametrize("ending", ["npy", "csv", "parquet"])
def test_labels_may_be_in_a_second_file(tmp_path, data, ending):
    paths = [tmp_path / f"{name}.{ending}" for name in "XY"]
    for path, values in zip(paths, (data.X, data.Y), strict=True):
        save(path, values, [f"{path.stem}{place}" for place in range(values.shape[1])])
    same(paths[0], labels=paths[1])


def test_a_second_file_uses_the_blocks_of_the_first(tmp_path, monkeypatch):
    # The second file is narrower, so "auto" alone would take more rows.
    monkeypatch.setattr("labelsieve.io.blocks._BLOCK_BYTES", 8 * 20 * 3)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.random((10, 20), dtype=np.float32))
    np.save(tmp_path / "Y.npy", rng.integers(0, 2, (10, 2)))
    lazy = same(tmp_path / "X.npy", labels=tmp_path / "Y.npy", chunks="auto")
    assert lazy.X.chunks[0] == lazy.Y.chunks[0] == (3, 3, 3, 1)


@pytest.fixture
def grouped(tmp_path, data):
    """Parquet file with groups of three rows, a column of text and a column of booleans."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip("abcd", data.X.T, strict=True))
    columns |= {"a.b": data.X[:, 0], "text": ["t"] * N_ROWS, "p": data.Y[:, 0] == 1, "q": data.Y[:, 1]}
    path = tmp_path / "some.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=3)
    return path


def test_blocks_of_parquet_are_whole_row_groups(grouped):
    lazy = same(grouped, chunks=7, labels="p,q", ignore="text")
    assert lazy.X.chunks[0] == (6, 6, 6, 5)
    with pytest.raises(DatasetError, match=r"row_group_size=2.*chunks=3"):
        read(grouped, labels="p,q", ignore="text", chunks=2)
    for labels in ("p,q", "text"):
        with pytest.raises(DatasetError, match="'text'"):
            read(grouped, labels=labels, chunks=7)


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
    with pytest.raises(DatasetError):
        read(tmp_path, chunks=2)  # no .parquet file besides the folder itself is named


def test_several_files_are_parts_of_one_dataset(tmp_path):
    paths = [tmp_path / f"part-{number}.csv" for number in range(2)]
    for path, text in zip(paths, ("1,2,0\n3,4,1\n", "5,6,1\n"), strict=True):
        path.write_text("x,z,label:y\n" + text)
    assert same(paths, chunks=2).X.chunks[0] == (2, 1)
    paths[1].write_text("x,label:y\n1,1\n")
    with pytest.raises(DatasetError, match="same columns"):
        read(paths, chunks=2)


# Reads


def test_only_the_block_is_read(tmp_path):
    # A sparse file: 160 MB of zeros that use no disk space.
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


def test_lines_are_parsed_once_for_features_and_labels(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("1,0,1\n2,1,0\n" * 10)
    asked = []
    original = DelimitedTable.values
    monkeypatch.setattr(
        DelimitedTable,
        "values",
        lambda self, index, columns: asked.append(index) or original(self, index, columns),
    )
    data = read(path, labels=1, chunks=5)
    SumF().fit(data.X, data.candidates)
    assert asked == 2 * [0, 1, 2, 3], "one pass that checks, one that fits"


# Errors


@pytest.mark.parametrize("chunks", [0, -1, 2.5, True, "many"])
def test_chunks_are_a_number_of_rows_or_auto(tmp_path, chunks):
    with pytest.raises(DatasetError, match=f"chunks={chunks!r}"):
        read(tmp_path / "t.csv", chunks=chunks)


@pytest.mark.parametrize(
    ("name", "content", "options", "key"),
    [
        ("t.csv", b"x,y\n1,0\n", {"labels": 1, "missing": "mean"}, "missing='mean'"),
        ("t.csv", b"nominal:x,z,y\n1,0,1\n", {"labels": 1, "nominal": "onehot"}, "nominal='onehot'"),
        ("t.csv", b"x,y\n", {"labels": 1}, "header"),
        ("t.csv", b"x,y\n1,0\n", {}, "`labels`"),
        ("t.csv", b"x,y\n1,0\n1\n", {"labels": 1}, "line 3: .*2 fields, got 1"),
        ("t.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", {"labels": 1}, "TSV, Parquet"),
        ("t.arff", b"@relation r\n@attribute a numeric\n@data\n1\n", {"labels": 1}, "CSV, TSV, Parquet or NPY"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read_in_blocks_are_rejected_at_once(tmp_path, name, content, options, key):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=key):
        read(path, **options, chunks=2)


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ("x,y\n1,0\n,1\n", "'x'.*missing='zero'"),
        ("x,y\n1,0\n2,5\n", r"5\.0"),
        ("x,y\n1,0\n2,\n", "'y'"),
        ('x,y\n1,0\n"1\n",0\n', "quotes|cannot be parsed|fields"),
    ],
)
def test_wrong_values_are_rejected_when_they_are_read(tmp_path, content, key):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(DatasetError, match=key):
        data = read(path, labels=1, chunks=1)
        SumF().fit(data.X, data.candidates)


def test_truncated_arrays_are_rejected(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.eye(4))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DatasetError, match=r"t\.npy"):
        read(path, labels=1, chunks=2)


def test_second_files_must_have_the_same_rows(tmp_path):
    for name, n_rows in (("X", 4), ("Y", 3)):
        np.save(tmp_path / f"{name}.npy", np.ones((n_rows, 2)))
    with pytest.raises(DatasetError, match=r"Y\.npy"):
        read(tmp_path / "X.npy", labels=tmp_path / "Y.npy", chunks=2)


def test_functions_that_need_all_rows_raise(tmp_path, data):
    write(data, tmp_path / "some.csv")
    lazy = read(tmp_path / "some.csv", chunks=2)
    for action in (lazy.describe, lazy.to_pandas, lambda: write(lazy, tmp_path / "copy.csv")):
        with pytest.raises(DatasetError, match="`chunks`"):
            action()
    with pytest.raises(DatasetError, match="dask"):
        Dataset(lazy.X, data.Y)
    assert not (tmp_path / "copy.csv").exists()


def test_without_dask_the_error_names_the_extra(tmp_path):
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
    assert "-m pip install dask" in done.stdout
