"""Tests of CSV, TSV and Parquet files."""

import builtins
import datetime
import hashlib
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelsieve.io import DatasetError, read, write


@pytest.fixture
def csv_file(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoted", [False, True])
def test_separators_are_recognised(csv_file, separator, quoted):
    rows = [["a,;b", "c|d", "y"], ["1.5", "-2e3", "1"], ["3", "4", "0"]]
    if not quoted:
        rows[0] = ["a", "b", "y"]
    mark = '"' if quoted else ""
    text = "\n".join(separator.join(f"{mark}{field}{mark}" for field in row) for row in rows)
    data = read(csv_file(text), labels="y")
    assert data.feature_names == tuple(rows[0][:2])
    assert data.X.tolist() == [[1.5, -2000], [3, 4]]


def test_a_file_without_header_gets_names(csv_file):
    data = read(csv_file("1,2,0,1\n3,4,1,1\n"), labels=2)
    assert data.feature_names == ("x0", "x1")
    assert data.label_names == ("label0", "label1")
    assert data.Y.tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize("ending", ["csv", "npz", "svm"])
def test_a_file_is_opened_once_and_its_checksum_is_stored(csv_file, monkeypatch, ending):
    path = csv_file(
        "id,colour,when,y\n"
        + "".join(f"k{row},{'ab'[row % 2]},2024-01-0{row % 9 + 1},{row % 2}\n" for row in range(30))
    )
    if ending != "csv":
        data, path = read(path, labels="y"), path.with_suffix(f".{ending}")
        write(data, path)
    opened = []

    def counting(real):
        return lambda file, *args, **options: (opened.append(str(file)), real(file, *args, **options))[1]

    monkeypatch.setattr(pathlib.Path, "open", counting(pathlib.Path.open))
    monkeypatch.setattr(builtins, "open", counting(builtins.open))
    checksum = read(path, labels="y" if ending == "csv" else None).checksum
    assert opened.count(str(path)) == 1
    assert checksum == hashlib.sha256(path.read_bytes()).hexdigest()


def test_fields_may_be_long(csv_file):
    path = csv_file("n,text,y\n" + "".join(f"{row % 3},{'w ' * 10**5},{row % 2}\n" for row in range(6)))
    assert read(path, labels="y").X.ravel().tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("nominal", "names", "X"),
    [
        ("code", ("colour", "n"), [[1, 5], [0, 6], [0, 7]]),
        (
            "onehot",
            ("colour is missing", "colour=blue", "colour=red", "n"),
            [[0, 0, 1, 5], [0, 1, 0, 6], [1, 0, 0, 7]],
        ),
    ],
)
def test_categories_become_codes_or_indicators(csv_file, nominal, names, X):
    text = 'id,colour,n,fly\n1,red,5,TRUE\n2," blue ",NA,FALSE\n3,,7,TRUE\n'
    data = read(csv_file(text), labels="fly", ignore="id", missing="mean", nominal=nominal)
    assert data.feature_names == names
    assert data.X.tolist() == X
    assert data.nominal == (("colour",) if nominal == "code" else ())
    assert data.Y.ravel().tolist() == [1, 0, 1]


def test_missing_values_are_filled_in_or_rejected(csv_file):
    path = csv_file("a,y\n1,1\n,0\n6,1\n8,0\n")
    assert read(path, labels="y").X.ravel().tolist() == [1, 6, 6, 8]
    assert read(path, labels="y", missing="mean").X.ravel().tolist() == [1, 5, 6, 8]
    assert read(path, labels="y", missing="zero").X.ravel().tolist() == [1, 0, 6, 8]
    with pytest.raises(DatasetError, match="'a'"):
        read(path, labels="y", missing="error")


def test_a_declared_nominal_column_keeps_its_codes(csv_file):
    data = read(csv_file("nominal:a,label:y\n0,1\n3,1\n3,1\n,0\n"))
    assert data.X.ravel().tolist() == [0, 3, 3, 3]
    assert data.nominal == data.feature_names == ("a",)


def test_parts_are_concatenated(csv_file):
    whole = csv_file("c,y\n" + "".join(f"{letter},1\n" for letter in "abcdeabcde"), "whole.csv")
    part = csv_file("y,c\n" + "".join(f"0,{letter}\n" for letter in "edcba"), "part.csv")
    data = read([whole, part], labels="y", nominal="code")
    assert data.X[-5:].ravel().tolist() == [4, 3, 2, 1, 0]
    assert data.name == "whole"
    with pytest.raises(DatasetError, match="'d'"):
        read([whole, csv_file("c,d\n1,0\n", "other.csv")], labels="y")


def test_quoted_fields_may_hold_separators_quotes_and_line_ends(csv_file):
    path = csv_file('a,y\n"x, ""1""\nend",1\nplain,0\n')
    assert read(path, labels="y", nominal="code").X.ravel().tolist() == [1, 0]


def test_label_columns_by_pattern_and_candidates_next_to_them(csv_file):
    path = csv_file("a,t_1,t_2,c_1,c_2\n5,1,0,1,1\n6,0,1,0,1\n")
    data = read(path, labels="t_*", candidates="c_*")
    assert data.label_names == ("t_1", "t_2")
    assert data.Y.tolist() == [[1, 0], [0, 1]]
    assert data.Y_candidates.tolist() == [[1, 1], [0, 1]]
    assert data.feature_names == ("a",)
    with pytest.raises(DatasetError, match="got 1 for 2"):
        read(path, labels="t_*", candidates="c_1")
    only = read(path, candidates="c_*", ignore="t_*")
    assert only.Y is None
    assert only.label_names == ("c_1", "c_2")


def test_true_and_candidate_tags_have_the_same_labels(csv_file):
    path = csv_file("a,truth,tags\n1,x,x;y\n2,y,y\n3,,z\n4,x;y,x;y\n")
    data = read(path, labels="truth", candidates="tags")
    assert data.label_names == ("x", "y", "z")
    assert data.Y.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]]
    assert data.Y_candidates.toarray().tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,y\n1,0\n0,1\n", {"labels": ["a", "y"]}, "`labels`"),
        ("a,y\n1,0\n", {"labels": []}, "label"),
        ("a,y\n1,0\n", {"labels": [3]}, "got 3"),
        ("a,y\n1,0\n", {"labels": "y", "id": "z"}, "'z'"),
    ],
)
def test_unusable_tables_are_rejected(csv_file, text, options, message):
    path = csv_file(text)
    with pytest.raises(DatasetError, match=message) as caught:
        read(path, **options)
    assert str(path) in str(caught.value)


def test_parquet_types_become_numbers(tmp_path):
    table = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int32()),
            "f": pa.array([0.5, 1.5, 2.5], pa.float32()),
            "t": pa.array(["b", "a", "b"]),
            "d": pa.array(["u", "v", "u"]).dictionary_encode(),
            "when": pa.array([datetime.datetime(1970, 1, day) for day in (1, 2, 3)], pa.timestamp("us")),
            "y": pa.array([True, False, True]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet", labels="y", missing="mean", nominal="code")
    assert data.X[:, :4].tolist() == [[1, 0.5, 1, 0], [2, 1.5, 0, 1], [3, 2.5, 1, 0]]
    assert data.X[:, data.feature_names.index("when: days since 1970")].tolist() == [0, 1, 2]
    assert data.nominal == ("t", "d")
    assert data.Y.ravel().tolist() == [1, 0, 1]
