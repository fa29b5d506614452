"""Tests of hostile, damaged and unsuitable files: one clear error, quickly and in little memory."""

import bz2
import gzip
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from fuzz_readers import CRASHING, fuzz, read_damaged, seeds
from labelsieve.io import DatasetError, read

ARFF = b"@relation 't: -C -1'\n@attribute a numeric\n@attribute y {0,1}\n@data\n"
ROWS = b"1.5,0\n2,1\n"
XML = b'<labels><label name="y"/></labels>'


@pytest.fixture
def arff_with(tmp_path):
    """Return a function that writes an XML file next to a valid ARFF file."""

    def write(xml):
        (tmp_path / "t.arff").write_bytes(ARFF + ROWS)
        (tmp_path / "t.xml").write_bytes(xml)
        return tmp_path / "t.arff"

    return write


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_compressed_files_are_recognised_by_content(tmp_path, pack):
    for name in ("t.arff.gz", "t.arff"):
        (tmp_path / name).write_bytes(pack(ARFF + ROWS))
        data = read(tmp_path / name)
        assert data.X.ravel().tolist() == [1.5, 2]
        assert data.name == "t"


def test_a_zip_archive_may_contain_data_and_xml(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("folder/t.arff", ARFF + ROWS)
        archive.writestr("folder/t.xml", XML)
        archive.writestr("__MACOSX/._t.arff", "junk")
    assert read(tmp_path / "t.zip").label_names == ("y",)


def test_an_archive_of_two_data_files_is_rejected(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        for name in ("a.arff", "b.arff"):
            archive.writestr(name, ARFF)
    with pytest.raises(DatasetError, match=r"a\.arff, b\.arff"):
        read(tmp_path / "t.zip")


@pytest.mark.parametrize("ending", ["gz", "bz2", "zip"])
def test_compression_bombs_stop_early(tmp_path, ending):
    path = tmp_path / f"bomb.arff.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.arff", ARFF + b"0" * (140 * 2**20))
    else:
        pack = {"gz": gzip.compress, "bz2": bz2.compress}[ending]
        path.write_bytes(pack(ARFF) + pack(b"0" * 2**20) * 140)
    with pytest.raises(DatasetError, match="expands to"):
        read(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_truncated_archives_are_rejected_at_any_length(tmp_path, pack):
    whole = pack(ARFF + b"1.5,0\n2,1\n" * 50)
    for length in range(3, len(whole) - 1, 5):
        (tmp_path / "t.arff").write_bytes(whole[:length])
        with pytest.raises(DatasetError, match=r"t\.arff"):
            read(tmp_path / "t.arff")


def test_entity_bombs_are_not_expanded(arff_with):
    layers = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 12))
    bomb = b'<!DOCTYPE labels [<!ENTITY l0 "lol">' + layers + b']><labels><label name="&l11;"/></labels>'
    tracemalloc.start()
    with pytest.raises(DatasetError, match=r"t\.xml"):
        read(arff_with(bomb))
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


@pytest.mark.parametrize(
    "xml",
    [
        b"<labels><label name='y'></labels>",
        b"<html><label name='y'/></html>",
        b"<labels/>",
        b"<labels>\n<label/></labels>",
        b"<labels><label name='y'/><label name='y'/></labels>",
        b"<?xml version='1.0' encoding='klingon'?><labels><label name='y'/></labels>",
        b"",
    ],
)
def test_damaged_xml_is_rejected(arff_with, xml):
    with pytest.raises(DatasetError, match=r"t\.xml"):
        read(arff_with(xml))


def test_the_error_for_xml_as_data_file_suggests_labels(tmp_path):
    (tmp_path / "t.xml").write_bytes(XML)
    with pytest.raises(DatasetError, match="`labels`"):
        read(tmp_path / "t.xml")


def test_paths_that_are_not_files_are_rejected(tmp_path):
    os.mkfifo(tmp_path / "pipe.arff")
    (tmp_path / "empty.arff").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    for path in (
        tmp_path,
        *(tmp_path / name for name in ("nothing.arff", "pipe.arff", "empty.arff", "binary")),
    ):
        with pytest.raises(DatasetError, match=path.name):
            read(path)
    with pytest.raises(DatasetError):
        read("a\0b.arff")
    with pytest.raises(DatasetError, match="empty list"):
        read([])


@pytest.mark.parametrize(
    "line",
    [
        b" " * 200_000 + b"'",
        b"'" + b"\\" * 200_000,
        b"{" + b" " * 200_000,
        b"{0 " + b"a " * 100_000,
        b"," * 200_000,
        b"{" * 200_000,
        b'"' * 200_001,
    ],
)
def test_parsing_time_is_linear_in_the_line_length(tmp_path, line):
    (tmp_path / "t.arff").write_bytes(ARFF + ROWS + line + b"\n")
    with pytest.raises(DatasetError, match="line 7"):
        read(tmp_path / "t.arff")
    (tmp_path / "h.arff").write_bytes(b"@relation t\n@attribute a {" + line + b"\n@data\n")
    with pytest.raises(DatasetError, match=r"h\.arff"):
        read(tmp_path / "h.arff", labels=1)


@pytest.mark.parametrize("ending", ["arff", "csv", "svm", "txt", "mat", "npz", "parquet"])
@pytest.mark.parametrize("content", [b"\xef\xbb\xbf", b"\n\n \r\n", b"%\n"])
def test_files_without_data_are_rejected(tmp_path, ending, content):
    (tmp_path / f"t.{ending}").write_bytes(content)
    with pytest.raises(DatasetError, match=rf"t\.{ending}"):
        read(tmp_path / f"t.{ending}")


def test_a_long_line_of_digits_is_recognised_quickly(tmp_path):
    (tmp_path / "digits").write_bytes(b"1" * 65_000)
    with pytest.raises(DatasetError, match="`labels`"):
        read(tmp_path / "digits")


def test_memory_is_proportional_to_the_entries(tmp_path):
    rows = b"".join(b"{%d 1,%d 2.5,1000 1}\n" % (index % 500, 500 + index % 499) for index in range(40_000))
    header = b"".join(b"@attribute w%d numeric\n" % index for index in range(1000))
    path = tmp_path / "t.arff"
    path.write_bytes(b"@relation 't: -C -1'\n" + header + b"@attribute y {0,1}\n@data\n" + rows)
    tracemalloc.start()
    read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 120_000 + 8 * 2**20  # dense, it would be 320 MB


@pytest.mark.parametrize("name", seeds())
def test_damaged_files_give_a_dataset_or_one_clear_error(name, tmp_path):
    ending, content = seeds()[name]
    assert read_damaged(tmp_path, name, ending, content) == "Dataset"
    # Read in a child process, because some parsers can end their process.
    outcomes = fuzz(name, range(120), "suite", tmp_path / "failures")
    assert outcomes.total() == 120
    assert set(outcomes) <= {"Dataset", "DatasetError"} | ({"crash"} if name in CRASHING else set())


def replace_member(path, name, change):
    """Change one file inside a zip archive."""
    with zipfile.ZipFile(path) as archive:
        members = {item.filename: archive.read(item) for item in archive.infolist()}
    members[name] = change(members[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)


@pytest.fixture
def workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["x", "a"], [0.5, 1], [1.5, 0], [3.5, 1]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def test_chained_entities_of_a_workbook_are_rejected(workbook):
    levels = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<!DOCTYPE worksheet [<!ENTITY e0 "lol">{levels}]>'.encode()

    def change(xml):
        declaration, end, rest = xml.partition(b"?>") if xml.startswith(b"<?xml") else (b"", b"", xml)
        return declaration + end + bomb + rest.replace(b"<v>0.5</v>", b"<v>&e11;</v>")

    replace_member(workbook, "xl/worksheets/sheet1.xml", change)
    with pytest.raises(DatasetError):
        read(workbook, labels=1)


def test_files_that_expand_to_many_cells_are_rejected(tmp_path, workbook, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr("labelsieve.io.source._MIN_CELL_LIMIT", 20_000)
    monkeypatch.setattr("labelsieve.io.source._CELLS_PER_BYTE", 1)
    far = "".join(f'<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>' for row in range(5, 9))
    replace_member(
        workbook,
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(b"</sheetData>", far.encode() + b"</sheetData>"),
    )
    zeros = pa.array(np.zeros(20_000, dtype=np.int8))
    parquet.write_table(pa.table({"x": zeros, "a": zeros}), tmp_path / "t.parquet")
    long = pa.array(["y" * 1000] * 1000)
    for name, column in (
        ("coded", long.dictionary_encode()),
        ("lists", pa.array([np.zeros(1000, np.int8)] * 1000)),
    ):
        parquet.write_table(pa.table({"x": column, "a": zeros[:1000]}), tmp_path / f"{name}.parquet")
    for path in (workbook, *(tmp_path / f"{name}.parquet" for name in ("t", "coded", "lists"))):
        assert path.stat().st_size < 10_000
        with pytest.raises(DatasetError, match="cells"):
            read(path, labels=1)
