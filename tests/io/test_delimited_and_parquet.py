"""CSV, TSV and Parquet."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelsieve.io import DatasetError, read


@pytest.fixture
def csv_file(tmp_path):
    """A function that writes a file and returns its path."""

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


def test_text_columns_are_nominal_in_alphabetical_order(csv_file):
    text = 'id,colour,n,fly\n1,red,5,TRUE\n2," blue ",NA,FALSE\n3,,7,TRUE\n'
    data = read(csv_file(text), labels="fly", ignore="id", missing="mean")
    assert data.X.tolist() == [[1, 5], [0, 6], [0, 7]]
    assert data.nominal == ("colour",)
    assert data.Y.ravel().tolist() == [1, 0, 1]


def test_a_nominal_column_that_turns_to_text_late_is_text_throughout(csv_file):
    rows = [f"{index % 7},{index % 2}" for index in range(5000)]
    data = read(csv_file("\n".join(["nominal:code,y", *rows, "late,1"])), labels="y")
    assert data.nominal == ("code",)
    assert data.X[:8].ravel().tolist() == [0, 1, 2, 3, 4, 5, 6, 0]
    assert data.X[-1, 0] == 7


@pytest.mark.parametrize("slip", ["1.2x", "0.5%", "1,5", "1_000", "1.000,5", "unknown"])
@pytest.mark.parametrize("numbers", [["1", "2.5", "", "3"], [str(index / 7) for index in range(3000)]])
def test_text_among_numbers_is_refused_with_its_place(csv_file, slip, numbers):
    path = csv_file("\n".join(["x;size;y", *(f"1;{number};1" for number in numbers), f"1;{slip};1"]))
    message = (
        rf"table\.csv, line {len(numbers) + 2}: column 'size' holds numbers, got '{slip}'; write it like 1000\.5"
        r".*ignore='size', or call it 'nominal:size'"
    )
    with pytest.raises(DatasetError, match=message):
        read(path, labels="y")
    assert read(path, labels="y", ignore="size").feature_names == ("x",)


@pytest.mark.parametrize("fields", [["0,5", "1,5", "0,5"], ["5%", "6 %", "5%"], ["1_000", "1_000", "2_000"]])
def test_numbers_in_another_spelling_are_no_categories(csv_file, fields):
    with pytest.raises(DatasetError, match=f"line 2: column 'a' holds numbers, got {fields[0]!r}"):
        read(csv_file("\n".join(["a;y", *(f"{field};1" for field in fields)])), labels="y")


def test_categories_that_begin_with_digits_stay_categories(csv_file):
    data = read(csv_file("age,y\n18-25,1\n26-35,0\n18-25,1\n40,0\n"), labels="y")
    assert data.X.ravel().tolist() == [0, 1, 0, 2]


def test_an_identifier_is_no_feature_unless_ignored(csv_file):
    path = csv_file("who,a,y\n" + "".join(f"name{index},{index},1\n" for index in range(5)))
    with pytest.raises(DatasetError, match=r"column 'who' holds a different text .*with ignore='who'"):
        read(path, labels="y")
    assert read(path, labels="y", ignore="who").feature_names == ("a",)


def test_a_short_part_may_hold_every_category_once(csv_file):
    whole = csv_file("c,y\n" + "".join(f"{letter},1\n" for letter in "abcdeabcde"), "whole.csv")
    part = csv_file("c,y\n" + "".join(f"{letter},0\n" for letter in "edcba"), "part.csv")
    assert read([whole, part], labels="y").X[-5:].ravel().tolist() == [4, 3, 2, 1, 0]


def test_a_slip_in_one_part_is_told_as_such(csv_file):
    clean, slip = csv_file("a,y\n1,1\n2,1\n", "clean.csv"), csv_file("a,y\n1,1\n3,0\n2x,1\n", "slip.csv")
    with pytest.raises(DatasetError, match=r"slip\.csv, line 4: column 'a' holds numbers, got '2x'"):
        read([clean, slip], labels="y")


def test_numeric_files_larger_than_a_block_are_read_whole(csv_file):
    values = np.random.default_rng(0).random((20000, 3)).round(6)
    text = "a,b,c,y\n" + "".join(f"{a},{b},{c},1\n" for a, b, c in values)
    assert len(text) > 2**18
    np.testing.assert_array_equal(read(csv_file(text), labels="y").X, values)


def test_quoted_fields_may_hold_separators_quotes_and_line_ends(csv_file):
    path = csv_file('a,y\n"x, ""1""\nend",1\nplain,0\n')
    assert read(path, labels="y").X.ravel().tolist() == [1, 0]  # "plain" comes before "x, ..."
    with pytest.raises(DatasetError, match="feature names must be printable text"):
        read(path, labels="y", nominal="onehot")


def test_label_columns_by_pattern_and_candidates_beside_them(csv_file):
    path = csv_file("a,t_1,t_2,c_1,c_2\n5,1,0,1,1\n6,0,1,0,1\n")
    data = read(path, labels="t_*", candidates="c_*")
    assert data.label_names == ("t_1", "t_2")
    assert data.Y.tolist() == [[1, 0], [0, 1]]
    assert data.Y_candidates.tolist() == [[1, 1], [0, 1]]
    assert data.feature_names == ("a",)
    with pytest.raises(DatasetError, match="as many candidate columns as labels, got 1 for 2"):
        read(path, labels="t_*", candidates="c_1")
    only = read(path, candidates="c_*", ignore="t_*")
    assert only.Y is None
    assert only.label_names == ("c_1", "c_2")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,y\n1,0\n1\n", {"labels": "y"}, r"line 3: expected 2 fields, got 1"),
        ("a,a\n1,0\n", {"labels": 1}, r"line 1: needs column names that all differ, got 'a'"),
        ("a,y\n", {"labels": "y"}, "has a header but no rows"),
        ("\n\n", {"labels": "y"}, "has no rows"),
        ("a,y\n1,0\n", {}, "does not say which columns are labels; give labels="),
        ("a,y\n1,0\n", {"labels": ["a", "y"]}, "no feature columns left beside its labels"),
        ("a,y\n1,0\n", {"labels": []}, "empty list of label columns"),
        ("a,y\n1,0\n", {"labels": [3]}, "label names must be strings, got 3"),
        ('a,y\n"1,0\n', {"labels": "y"}, "is no proper table"),
        ("a,y\n1,\n", {"labels": "y"}, "missing values in its label columns"),
        ("a,y\n1,maybe\n", {"labels": "y"}, "label 'y' must be 0/1"),
        ("a,y\n1,0.5\n", {"labels": "y"}, "label columns must hold 0/1 or -1/"),
        (b"a,y\n1,\x000\n", {"labels": "y"}, "line 2: holds a NUL byte"),
        (b"\xff\xfea\0,\0", {"labels": "y"}, "is UTF-16 text; save it as UTF-8"),
    ],
)
def test_unusable_tables_are_refused(csv_file, text, options, message):
    path = csv_file(text)
    with pytest.raises(DatasetError, match=message) as caught:
        read(path, **options)
    assert str(path) in str(caught.value)


def test_free_text_is_no_feature_unless_ignored(csv_file):
    rows = "".join(f"name{index % 1200},{index},1\n" for index in range(1500))
    path = csv_file("who,a,y\n" + rows)
    with pytest.raises(
        DatasetError, match=r"column 'who' holds text with too many.*leave it out with ignore='who'"
    ):
        read(path, labels="y")
    assert read(path, labels="y", ignore="who").X.shape == (1500, 1)


def test_one_hot_coding_beyond_memory_is_refused(csv_file):
    rows = "".join(
        f"{','.join(f'v{(index * 7 + column) % 900}' for column in range(60))},1\n" for index in range(3000)
    )
    header = ",".join(f"c{column}" for column in range(60))
    with pytest.raises(DatasetError, match=r"too many categories for one-hot coding .* nominal='code'"):
        read(csv_file(f"{header},y\n{rows}"), labels="y", nominal="onehot")


@pytest.mark.parametrize("code", ["1000000000", "1e15"])
def test_a_huge_code_is_refused_before_it_costs_memory(csv_file, code):
    path = csv_file(f"nominal:a,y\n0,1\n{code},0\n,1\n")
    with pytest.raises(DatasetError, match=r"too many categories for one-hot coding \(1\d+ columns\)"):
        read(path, labels="y", nominal="onehot", missing="mean")
    assert read(path, labels="y", missing="mean").X[1, 0] == float(code)


@pytest.mark.parametrize("nominal", ["code", "onehot"])
@pytest.mark.parametrize("code", ["-1", "inf", "0.5"])
def test_what_is_no_code_is_refused_in_a_nominal_column(csv_file, nominal, code):
    message = rf"column 'nominal:a' must hold category codes 0, 1, 2, \.\.\., got {float(code)!r}"
    with pytest.raises(DatasetError, match=message):
        read(csv_file(f"nominal:a,y\n0,1\n{code},0\n"), labels="y", nominal=nominal)


def test_a_missing_code_becomes_the_most_frequent_one(csv_file):
    data = read(csv_file("nominal:a,y\n0,1\n3,1\n3,1\n,0\n"), labels="y", missing="mean")
    assert data.X.ravel().tolist() == [0, 3, 3, 3]


def test_unknown_options_are_refused(csv_file):
    path = csv_file("a,y\n1,0\n")
    with pytest.raises(ValueError, match="nominal must be one of code, onehot, got 'dummy'"):
        read(path, labels="y", nominal="dummy")
    with pytest.raises(ValueError, match="missing must be one of error, mean, zero, got 'drop'"):
        read(path, labels="y", missing="drop")


def test_parquet_types_become_numbers(tmp_path):
    table = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int32()),
            "f": pa.array([0.5, 1.5, 2.5], pa.float32()),
            "t": pa.array(["b", "a", "b"]),
            "d": pa.array(["u", "v", "u"]).dictionary_encode(),
            "when": pa.array([datetime.datetime(1970, 1, 2)] * 3, pa.timestamp("us")),
            "y": pa.array([True, False, True]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet", labels="y", missing="mean")
    assert data.X.tolist() == [[1, 0.5, 1, 0, 86400], [2, 1.5, 0, 1, 86400], [3, 2.5, 1, 0, 86400]]
    assert data.nominal == ("t", "d")
    assert data.Y.ravel().tolist() == [1, 0, 1]


def test_parquet_that_stands_for_too_many_rows_is_refused(tmp_path):
    zeros = pa.array(np.zeros(2 * 10**6, np.int8))
    pq.write_table(pa.table({f"c{index}": zeros for index in range(10)}), tmp_path / "t.parquet")
    with pytest.raises(DatasetError, match="expands to over 250 times its"):
        read(tmp_path / "t.parquet", labels=1)


def test_nested_parquet_columns_and_damage_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [[1, 2]], "y": [1]}), path)
    with pytest.raises(DatasetError, match="cannot be read as Parquet"):
        read(path, labels="y")
    pd.DataFrame({"a": range(100), "y": [1] * 100}).to_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="cannot be read as Parquet"):
        read(path, labels="y")
