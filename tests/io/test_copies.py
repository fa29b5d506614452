"""Tests of copies of tables: they keep format, quotes, encoding and file mode."""

import csv
import io
import json
import os
import stat
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelsieve.io import DatasetError, read
from labelsieve.io.copies import write_corrected, write_selected

COMMON = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
TAGS = ("bug", "billing", "login")
words = st.text(
    st.characters(whitelist_categories=("Lu", "Ll", "Nd"), max_codepoint=0xFF), min_size=1, max_size=6
)
texts = st.one_of(
    words, words.map(lambda word: f'{word}, "{word}"'), words.map(lambda word: f"={word}()"), st.just("")
)
cells = st.lists(
    st.tuples(
        st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), texts, st.lists(st.sampled_from(TAGS), unique=True)
    ),
    min_size=12,
    max_size=20,
)


def records_of(rows):
    """Generate rows of number, text and tags. The first ones ensure that labels vary and can be removed."""
    fixed = [
        (0.5, "a", ["bug", "billing"]),
        (1.5, "b", ["bug"]),
        (2.5, "a", []),
        (3.5, "b", ["login", "bug"]),
    ]
    return [{"number": x, "text": text, "tags": ";".join(tags)} for x, text, tags in [*fixed, *rows]]


def check_copies(path, rows):
    """Remove one tag of the first row, and select one column. Return the bytes of both copies."""
    data = read(path, labels="tags", label_sep=";", ignore="text")
    label = data.label_names.index("billing")
    clean, small = path.with_name(f"clean{path.suffix}"), path.with_name(f"small{path.suffix}")
    write_corrected(data, [(0, label)], [], clean)
    write_selected(data, [0], small)
    cleaned = read(clean, labels="tags", label_sep=";", ignore="text")
    expected = np.array(data.Y)
    expected[0, label] = 0
    np.testing.assert_array_equal(
        cleaned.Y, expected[:, [data.label_names.index(n) for n in cleaned.label_names]]
    )
    assert cleaned.frame["text"].tolist() == data.frame["text"].tolist()
    selected = read(small, labels="tags", label_sep=";").frame
    pd.testing.assert_frame_equal(selected, data.frame[["number", "tags"]])
    return clean.read_bytes(), small.read_bytes()


@COMMON
@given(
    cells,
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
def test_text_keeps_separator_quotes_encoding_and_line_endings(rows, separator, newline, encoding, quoting):
    records = records_of(rows)

    def text_of(names, changed=None):
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=separator, lineterminator=newline, quoting=quoting)
        writer.writerow(names)
        for place, record in enumerate(records):
            row = {**record, **(changed if changed and place == 0 else {})}
            row["number"] = f"{row['number']:.4f}"
            writer.writerow([row[name] for name in names])
        return stream.getvalue().encode(encoding)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_bytes(text_of(["number", "text", "tags"]))
        clean, small = check_copies(path, records)
    # A tag without separators keeps its quotes, although it does not need them.
    expected = text_of(["number", "text", "tags"], {"tags": "bug"})
    if quoting == csv.QUOTE_MINIMAL and separator == ";":
        unmarked = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(encoding, encoding)
        first, quoted = (f"{separator}{tag}{newline}".encode(unmarked) for tag in ("bug", '"bug"'))
        expected = expected.replace(first, quoted, 1)
    assert clean == expected
    assert small == text_of(["number", "tags"])


@COMMON
@given(cells, st.sampled_from([None, 1, 4]), st.booleans(), st.booleans())
def test_json_keeps_arrays_lines_and_indentation(rows, indent, is_array, ascii_only):
    records = [
        {**record, "tags": record["tags"].split(";") if record["tags"] else []} for record in records_of(rows)
    ]

    def text_of(kept):
        if is_array:
            text = json.dumps(kept, indent=indent, ensure_ascii=ascii_only)
        else:
            text = "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in kept)
        return text.replace('"number": 0.5,', '"number": 5.0e-1,')

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.json" if is_array else "t.jsonl")
        path.write_text(text_of(records), encoding="utf-8")
        clean, small = check_copies(path, records)
    assert clean.decode() == text_of([{**records[0], "tags": ["bug"]}, *records[1:]])
    assert small.decode() == text_of([{name: r[name] for name in ("number", "tags")} for r in records])


@COMMON
@given(cells)
def test_workbooks_keep_texts_that_look_like_formulas(rows):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["number", "text", "tags"])
    for place, record in enumerate(records_of(rows), start=2):
        book.active.append([record["number"], None, record["tags"] or None])
        for column, text in ((2, record["text"]), (3, record["tags"] or None)):
            cell = book.active.cell(place, column)
            cell.value = ('=HYPERLINK("http://a")', "=bug;billing")[column - 2] if place == 2 else text
            cell.data_type = "s"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.xlsx")
        book.save(path)
        clean, _ = check_copies(path, rows)
    sheet = openpyxl.load_workbook(io.BytesIO(clean)).active
    assert [(sheet[cell].value, sheet[cell].data_type) for cell in ("B2", "C2")] == [
        ('=HYPERLINK("http://a")', "s"),
        ("=bug", "s"),
    ]


@COMMON
@given(cells)
def test_parquet_keeps_types(rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(records_of(rows)).set_column(
        0, "number", pa.array([record["number"] for record in records_of(rows)], pa.float32())
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")
        pq.write_table(table, path)
        clean, small = check_copies(path, rows)
    assert pq.read_schema(io.BytesIO(clean)).equals(table.schema)
    assert pq.read_table(io.BytesIO(clean)).slice(1).equals(table.slice(1))
    assert pq.read_schema(io.BytesIO(small)).equals(table.select(["number", "tags"]).schema)


def test_parquet_keeps_index_and_compression(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    index = pd.RangeIndex(5, 25, name="key")
    frame = pd.DataFrame({"x": np.arange(20.0) % 7, "tags": ["a;b", "b"] * 10}, index=index[::-1])
    frame.to_parquet(tmp_path / "t.parquet", compression="zstd")
    data = read(tmp_path / "t.parquet", labels="tags")
    write_corrected(data, [(0, data.label_names.index("a"))], [], tmp_path / "out.parquet")
    pd.testing.assert_index_equal(pd.read_parquet(tmp_path / "out.parquet").index, frame.index)
    facts = parquet.ParquetFile(tmp_path / "out.parquet").metadata
    assert facts.row_group(0).column(0).compression == "ZSTD"


def test_selecting_columns_of_a_workbook_with_macros_is_rejected(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [
        ("x", "z", "tags"),
        *((place % 5, place % 3, ("a;b", "b")[place % 2]) for place in range(12)),
    ]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsm")
    with pytest.raises(DatasetError, match="macros"):
        write_selected(read(tmp_path / "t.xlsm", labels="tags"), [0], tmp_path / "small.xlsm")
    assert not (tmp_path / "small.xlsm").exists()


def test_a_note_tells_that_formulas_lose_their_values(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    for name, second in (("plain", 1), ("formulas", "=A2")):
        book = openpyxl.Workbook()
        for row in [
            ("x", "z", "tags"),
            *((place % 5, second, ("a;b", "b")[place % 2]) for place in range(12)),
        ]:
            book.active.append(row)
        book.save(tmp_path / f"{name}.xlsx")
        data = read(tmp_path / f"{name}.xlsx", labels="tags")
        note = write_corrected(data, [(0, 0)], [], tmp_path / "out.xlsx")
        assert (note is None) == (name == "plain")


def test_blank_lines_are_kept(tmp_path):
    path, target = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("x,tags\n" + '1,a;b\n\n""\n2,b\n' * 5)
    write_corrected(read(path, labels="tags"), [(1, 1)], [], target)
    assert target.read_text() == "x,tags\n" + '1,a;b\n\n""\n2,\n' + '1,a;b\n\n""\n2,b\n' * 4


def test_a_new_copy_has_the_mode_of_the_table(tmp_path):
    path, target = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("x,tags\n" + "1,a;b\n2,b\n" * 5)
    path.chmod(0o600)
    write_corrected(read(path, labels="tags"), [(0, 0)], [], target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_copies_keep_the_mode_of_the_file_they_replace_and_are_flushed(tmp_path, monkeypatch):
    path, target = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("x,tags\n" + "1,a;b\n2,b\n" * 5)
    target.write_text("old")
    target.chmod(0o640)
    flushed = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (flushed.append(number), real(number))[1])
    write_corrected(read(path, labels="tags"), [(0, 0)], [], target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert flushed
    assert target.read_text().startswith("x,tags\n1,b\n2,b\n1,a;b\n")


def test_a_copy_holds_what_was_read(tmp_path):
    path, target = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("x,tags\n" + "1,a;b\n2,b\n" * 5)
    data = read(path, labels="tags")
    path.write_text("x,tags\n1,a;b\n")
    write_corrected(data, [(8, 0)], [], target)
    assert target.read_text() == "x,tags\n" + "1,a;b\n2,b\n" * 4 + "1,b\n2,b\n"


@pytest.mark.parametrize(
    ("cells", "added", "expected"),
    [
        (["a; b", "b", "a"], [(1, "a")], ["a; b", "b;a", "a"]),
        (["a;b", "", "b"], [(1, "b")], ["a;b", "b", "b"]),
        (['["a", "b"]', "[]", '["b"]'], [(1, "a"), (1, "b")], ['["a", "b"]', '["a", "b"]', '["b"]']),
    ],
)
def test_tags_are_added_as_the_table_writes_them(tmp_path, cells, added, expected):
    path, target = tmp_path / "data.csv", tmp_path / "out.csv"
    pd.DataFrame({"x": [1, 2, 3], "tags": cells}).to_csv(path, index=False)
    data = read(path, labels="tags")
    places = [(row, data.label_names.index(tag)) for row, tag in added]
    write_corrected(data, [], places, target)
    found = pd.read_csv(target, keep_default_na=False)
    assert found["tags"].tolist() == expected
    assert read(target, labels="tags").candidates.sum() == data.candidates.sum() + len(added)


def test_a_no_becomes_a_yes_and_a_tag_changes_places(tmp_path):
    path, target = tmp_path / "data.csv", tmp_path / "out.csv"
    path.write_text("x,label:a,label:b\n1,yes,no\n2,no,no\n3,no,yes\n")
    write_corrected(read(path), [(0, 0)], [(0, 1), (1, 0)], target)
    assert target.read_text() == "x,label:a,label:b\n1,no,yes\n2,yes,no\n3,no,yes\n"
