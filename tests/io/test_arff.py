"""Tests of ARFF files in the dialects of Weka, Mulan and MEKA."""

import arff
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelsieve.io import DatasetError, read

HEADER = "@relation toy\n@attribute a numeric\n@attribute b numeric\n@attribute y {0,1}\n@data\n"


@pytest.fixture
def arff_file(tmp_path):
    """Return a function that writes an ARFF file, with an XML file for the given labels, and returns its path."""

    def write(text, xml=None, name="toy.arff"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if xml is not None:
            (tmp_path / "toy.xml").write_text(xml)
        return path

    return write


def test_quoted_names_escapes_comments_and_any_case(arff_file):
    text = """% first line
@RELATION 'a "quoted" relation' % comment

@Attribute 'it\\'s 100%' NUMERIC % why not
@ATTRIBUTE "say \\"hi\\"" Real
@attribute\tplain\tINTEGER
@attribute 'back\\\\slash' numeric
@attribute y {0,1} % label
  % indented comment
@DATA
% comment between rows
1, 2.5 ,3,4,1 % trailing comment

-1e3,'2',"3",4,0
"""
    data = read(arff_file(text), labels="y")
    assert data.feature_names == ("it's 100%", 'say "hi"', "plain", "back\\slash")
    assert data.X.tolist() == [[1, 2.5, 3, 4], [-1000, 2, 3, 4]]
    assert data.Y.ravel().tolist() == [1, 0]


def test_nominal_features_are_coded_by_the_order_of_the_header(arff_file):
    header = "@relation t\n@attribute c {red, 'light blue', green}\n@attribute n {10,2}\n"
    text = header + "@attribute y {no,yes}\n@data\n"
    path = arff_file(text + "green,2,yes\n'light blue',10.0,no\n?,2,no\n")
    with pytest.raises(DatasetError, match="'c'"):
        read(path, labels="y")
    data = read(path, labels="y", missing="zero")
    assert data.X.tolist() == [[2, 1], [1, 0], [0, 1]]
    assert data.nominal == ("c", "n")
    hot = read(path, labels="y", missing="mean", nominal="onehot")
    assert hot.feature_names == ("c=red", "c=light blue", "c=green", "n=10", "n=2")
    assert hot.X.tolist() == [[0, 0, 1, 0, 1], [0, 1, 0, 1, 0], [0, 1, 0, 0, 1]]
    assert hot.nominal == hot.feature_names


def test_string_ids_and_dates_in_seconds(arff_file):
    text = """@relation t
@attribute protein string
@attribute day date "dd.MM.yyyy HH:mm"
@attribute default date
@attribute y {0,1}
@data
'PDOC, 1',"02.01.1970 00:01","1970-01-01T00:00:05",1
"""
    data = read(arff_file(text), labels="y")
    assert data.feature_names == ("day", "default")
    assert data.X.tolist() == [[86460, 5]]


def test_sparse_rows_with_quotes_spaces_missing_and_text_categories(arff_file):
    text = """@relation t
@attribute a numeric
@attribute c {none,some,'a lot'}
@attribute s string
@attribute y {0,1}
@attribute z {1,0}
@data
{0 1.5, 1 'a lot' ,2 'x, }', 3 1}
{}
{ 1\tsome,0 ? , 4 0 } % comment
"""
    data = read(arff_file(text), labels="y,z", missing="mean")
    assert sp.issparse(data.X)
    assert sp.issparse(data.Y)
    # The mean of column a includes the 0 in the middle row.
    np.testing.assert_array_equal(data.X.toarray(), [[1.5, 2], [0, 0], [0.75, 1]])
    # Weka omits the first category, which is the positive one for z.
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 1], [0, 1], [0, 0]])


@pytest.mark.parametrize(
    ("relation", "labels"),
    [
        ("'Slashdot: -C 2 -split-number 9' %50", ("a", "b")),
        ("'x: -C -1'", ("y",)),
        ('"Music: -C 1-weka.filters.unsupervised.attribute.Remove-V"', ("a",)),
        ("'weka.filters.Copy-C3-V: -t f -C -2 -x'", ("b", "y")),
    ],
)
def test_meka_declares_labels_in_the_relation_name(arff_file, relation, labels):
    attributes = "".join(f"@attribute {name} {{0,1}}\n" for name in "aby")
    text = f"@relation {relation}\n{attributes}@data\n1,0,1\n"
    assert read(arff_file(text)).label_names == labels


def test_meka_counts_beyond_the_attributes_are_rejected(arff_file):
    with pytest.raises(DatasetError, match="`labels`"):
        read(arff_file(HEADER.replace("toy", "'toy: -C 3'") + "1,2,1\n"))


def test_a_backslash_outside_quotes_is_an_ordinary_character(arff_file):
    # As in the dataset `delicious`. Inside quotes it starts an escape.
    text = (
        "@relation delicious\n@attribute 'it\\'s' {0,1}\n@attribute TAG_dise\\~no {0,1}\n"
        "@attribute TAG_web {0,1}\n@data\n{1 1}\n{0 1,2 1}\n"
    )
    xml = '<labels><label name="TAG_dise\\~no"></label><label name="TAG_web"></label></labels>'
    data = read(arff_file(text, xml))
    assert data.label_names == ("TAG_dise\\~no", "TAG_web")
    assert data.feature_names == ("it's",)
    assert data.Y.toarray().tolist() == [[1, 0], [0, 1]]


def test_labels_from_nested_xml_keep_the_column_order(arff_file):
    text = "@relation t\n@attribute y2 {0,1}\n@attribute x numeric\n@attribute y1 {0,1}\n@data\n1,5,0\n"
    namespace = "http://mulan.sourceforge.net/labels"
    xml = f'<labels xmlns="{namespace}"><label name="y1"><label name="y2"/></label></labels>'
    data = read(arff_file(text, xml))
    assert data.label_names == ("y2", "y1")
    assert data.Y.tolist() == [[1, 0]]


@pytest.mark.parametrize("name", ["toy.arff", "toy-train.arff", "toy_sparse.arff", "TOY-a-b.ARFF"])
def test_an_xml_file_next_to_the_data_is_found(arff_file, name):
    path = arff_file(HEADER + "1,2,1\n", '<labels><label name="y"/></labels>', name)
    assert read(path).label_names == ("y",)


def test_parts_may_differ_in_column_order(arff_file):
    head = "@relation t\n@attribute c {u,v,w}\n@attribute y {0,1}\n@data\n"
    first = arff_file(head + "v,1\n", name="t-train.arff")
    turned = "@relation t\n@attribute y {0,1}\n@attribute c {u,v,w}\n@data\n"
    second = arff_file(turned + "0,w\n1,u\n", name="t-test.arff")
    data = read([first, second], labels="y")
    assert data.X.ravel().tolist() == [1, 2, 0]
    assert data.Y.ravel().tolist() == [1, 0, 1]
    assert data.name == "t"
    assert data.source == f"{first} + {second}"
    other = arff_file(HEADER + "1,2,1\n", name="other.arff")
    with pytest.raises(DatasetError):
        read([first, other], labels="y")
    recoded = arff_file(head.replace("u,v,w", "v,u") + "v,1\n", name="recoded.arff")
    with pytest.raises(DatasetError):
        read([first, recoded], labels="y")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (1, ("y",)),
        ("2", ("b", "y")),
        (-1, ("a",)),
        ("y", ("y",)),
        (["y", "b"], ("b", "y")),
        ("b, y", ("b", "y")),
        ("[by]", ("b", "y")),
    ],
)
def test_labels_are_chosen_by_count_name_or_pattern(arff_file, labels, expected):
    assert read(arff_file(HEADER + "1,1,1\n0,0,0\n"), labels=labels).label_names == expected


def test_labels_come_from_a_second_file_or_an_xml_path(arff_file, tmp_path):
    path = arff_file(HEADER + "1,2,1\n3,4,0\n")
    (tmp_path / "truth.csv").write_text("0,1\n1,1\n")
    data = read(path, labels=tmp_path / "truth.csv", ignore="y")
    assert data.label_names == ("label0", "label1")
    assert data.Y.tolist() == [[0, 1], [1, 1]]
    (tmp_path / "short.csv").write_text("0,1\n")
    with pytest.raises(DatasetError, match=r"short\.csv"):
        read(path, labels=str(tmp_path / "short.csv"))
    (tmp_path / "list.xml").write_text('<labels><label name="y"/></labels>')
    (tmp_path / "candidates.csv").write_text("1\n1\n")
    both = read(path, labels=str(tmp_path / "list.xml"), candidates=tmp_path / "candidates.csv")
    assert both.label_names == ("y",)
    assert both.Y.ravel().tolist() == [1, 0]
    assert both.Y_candidates.ravel().tolist() == [1, 1]


HEADERS = {
    2: [
        ("a numeric", "a relational"),
        ("a numeric", "a date 'QQ'"),
        ("@attribute a", "attribute a"),
        ("a numeric", "'a numeric"),
    ],
    4: [("{0,1}", "{0,1"), ("{0,1}", "{0,0}"), ("{0,1}", "{0,1} x"), ("{0,1}", "{'0,1}")],
}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        *((HEADER.replace(*change), line) for line, changes in HEADERS.items() for change in changes),
        (HEADER + "1,2\n", 6),
        (HEADER + "1,2,0\n1,x,0\n", 7),
        (HEADER + "1,2,0\n% c\n1,1_0,0\n", 8),
        (HEADER + "1,2,5\n", 6),
        (HEADER + "1,2,0\n{0 1}\n", 7),
        (HEADER + "{0 1}\n1,2,0\n", 7),
        (HEADER + "{0 1,0 2}\n", 6),
        (HEADER + "{1000000000 1}\n", 6),
        (HEADER + "{-1 1}\n", 6),
        (HEADER + "{0 1 2}\n", 6),
        (HEADER + "{0 1\n", 6),
        (HEADER + "{0 1}, {5}\n", 6),
        (HEADER + "1,'2,0\n", 6),
        (HEADER + "1,2,0\n1,\0,0\n", 7),
    ],
)
def test_errors_name_the_line(arff_file, text, line):
    path = arff_file(text)
    with pytest.raises(DatasetError) as caught:
        read(path, labels="y")
    assert str(caught.value).startswith(f"{path}, line {line}: ")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (HEADER, "rows"),
        (HEADER.replace("@data\n", ""), "@data"),
        ("@relation t\n@data\n1\n", "@attribute"),
        (HEADER.replace("b numeric", "a numeric") + "1,2,0\n", "'a' 2 times"),
        (HEADER + "1,2,?\n", "missing"),
        (HEADER + "1,1e999,0\n", "finite"),
        (HEADER.replace("{0,1}", "{0,1,2}") + "1,1,2\n", "'y'"),
        (HEADER.replace("{0,1}", "numeric") + "1,1,2\n", r"2\.0"),
        ("@relation t\n@attribute y string\n@data\nx\n", "string"),
    ],
)
def test_unusable_files_are_rejected(arff_file, text, key):
    path = arff_file(text)
    with pytest.raises(DatasetError, match=key) as caught:
        read(path, labels="y")
    assert str(path) in str(caught.value)


def test_xml_that_contradicts_the_header_is_rejected(arff_file):
    path = arff_file(HEADER + "1,2,0\n", '<labels><label name="y"/><label name="z"/></labels>')
    with pytest.raises(DatasetError, match=r"'z'.*toy\.xml"):
        read(path)


def test_errors_about_unknown_labels_suggest_close_names(arff_file):
    path = arff_file(HEADER.replace("@attribute y", "@attribute mountain") + "1,2,0\n")
    with pytest.raises(DatasetError, match=r"'montain'.* 'mountain'"):
        read(path, labels="montain")
    with pytest.raises(DatasetError, match="labels=3`"):
        read(path, labels=3)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_any_line_ending_byte_order_mark_and_latin_1_are_read(arff_file, newline):
    text = b"\xef\xbb\xbf" + HEADER.encode() + b"1,2,0\n3,4,1\n"
    data = read(arff_file(text.replace(b"\n", newline)), labels="y")
    assert data.X.tolist() == [[1, 2], [3, 4]]
    latin = HEADER.replace("@attribute a", "@attribute caf\xe9").encode("latin-1") + b"1,2,0\n"
    assert read(arff_file(latin), labels="y").feature_names[0] == "café"


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000)
SAFE_NAMES = st.text("abcXYZ _-%,{}", min_size=1, max_size=8).filter(lambda name: name.strip() == name)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), sparse=st.booleans())
def test_files_of_liac_arff_are_read_as_liac_arff_does(data, sparse, tmp_path):
    names = data.draw(st.lists(SAFE_NAMES, min_size=2, max_size=5, unique=True))
    columns = [data.draw(st.sampled_from(["NUMERIC", "REAL", ["p", "q r", "s"]])) for _ in names]
    values = [NUMBERS if isinstance(kind, str) else st.sampled_from(kind) for kind in columns]
    rows = data.draw(st.lists(st.tuples(*values), min_size=1, max_size=5))
    attributes = [*zip(names, columns, strict=True), ("label", ["0", "1"])]
    labels = [data.draw(st.sampled_from("01")) for _ in rows]
    table = [[*row, label] for row, label in zip(rows, labels, strict=True)]
    if sparse:
        table = [dict(enumerate(row)) for row in table]
    text = arff.dumps({"relation": "t", "attributes": attributes, "data": table})
    path = tmp_path / "liac.arff"
    path.write_text(text)
    got = read(path, labels="label")
    theirs = arff.loads(text, encode_nominal=True, return_type=arff.LOD if sparse else arff.DENSE)["data"]
    expected = [[row.get(i, 0) for i in range(len(names))] if sparse else row[:-1] for row in theirs]
    X = got.X.toarray() if sp.issparse(got.X) else got.X
    np.testing.assert_array_equal(X, np.array(expected, dtype=float))
    assert sp.issparse(got.X) == sparse
    assert got.feature_names == tuple(names)
    Y = got.Y.toarray() if sp.issparse(got.Y) else got.Y
    assert Y.ravel().tolist() == [int(label) for label in labels]
