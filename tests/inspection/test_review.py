import csv
import io

import numpy as np
import pytest
import scipy.sparse as sp

from labelsieve import find_label_issues
from labelsieve.inspection._reviews import Draw, Review
from labelsieve.inspection.cleaning import (
    corrected,
    depends_on_columns,
    is_cleaned,
    provenance_file,
    provenance_text,
)
from labelsieve.inspection.review import (
    id_column,
    issues_to_csv,
    n_verdicts,
    read_review,
    review_to_csv,
)
from labelsieve.io import Dataset, DatasetError, read, write

#: Names that spreadsheets would compute, that separators would cut, that steer a terminal.
LABELS = (
    "=1+1",
    "+b",
    "a;b",
    "x, y",
    'with "quotes"',
    "@sum",
    "'apostrophe",
    "naïve 東京",
    " spaced ",
    "right\u202eleft",
)
Y = np.eye(12, 10, dtype=int)
Y[:, 0] = 1


def data_of(candidates=Y, labels=LABELS, names=None):
    """Reviewed data; the features do not matter."""
    column = None if names is None else "patient no."
    X = np.zeros((candidates.shape[0], 1))
    return Dataset(X, Y_candidates=candidates, label_names=labels, row_ids=names, id_column=column)


@pytest.fixture
def ids():
    names = ["=cmd", "-1", "007", "a\tb", "tab;le", "é", "x'", "\x1b[31m", *(f"row {k}" for k in range(4))]
    return tuple(names)


def saved(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def with_verdicts(text, verdicts):
    """Fill in the verdicts of a random draw, and make them the last column."""
    rows = [[*row[:-3], *row[-2:], row[-3]] for row in csv.reader(io.StringIO(text))]
    return [rows[0], *([*row[:-1], verdict] for row, verdict in zip(rows[1:], verdicts, strict=True))]


def candidates_to_csv(rows, labels, data):
    """The file of a random draw."""
    return review_to_csv(Review.of_draw(rows, labels), data)


def verdicts_of(review):
    """Rows, labels and answers with a verdict."""
    decided = np.flatnonzero(review.answers >= 0)
    return review.rows[decided], review.labels[decided], review.answers[decided]


def as_csv(rows, **dialect):
    stream = io.StringIO(newline="")
    csv.writer(stream, **dialect).writerows(rows)
    return stream.getvalue()


@pytest.mark.parametrize("named", [True, False])
def test_a_review_file_reads_back_exactly(tmp_path, ids, named):
    rows, labels = np.nonzero(Y)
    names = ids if named else None
    text = candidates_to_csv(rows, labels, data_of(names=names))
    assert not any(
        cell.startswith(("=", "+", "-", "@")) for row in csv.reader(io.StringIO(text)) for cell in row
    )
    assert "\x1b" not in text
    path = saved(tmp_path / "review.csv", text)
    assert id_column(path) == ("patient no." if named else None)
    review = read_review(path, data_of(names=names))
    np.testing.assert_array_equal(review.rows, rows)
    np.testing.assert_array_equal(review.labels, labels)
    assert (review.answers == -1).all()
    assert review.draws == (Draw(1, len(rows)),)
    assert not review.is_complete(review.draws[0])


@pytest.mark.parametrize(
    "resave",
    [
        lambda rows: "\ufeff" + as_csv(rows, delimiter=";", lineterminator="\r\n"),
        lambda rows: as_csv(rows, delimiter="\t", lineterminator="\r\n"),
        lambda rows: as_csv(rows, quoting=csv.QUOTE_ALL, lineterminator="\n"),
        lambda rows: as_csv([[*row, "", ""] for row in rows], delimiter=";"),
        lambda rows: as_csv([rows[0], *([*row[:-1]] if not row[-1] else row for row in rows[1:])]),
        lambda rows: as_csv([*rows, [""] * len(rows[0])]),
        lambda rows: as_csv([[*row[::-1]] for row in rows]),
        lambda rows: as_csv(rows).rstrip("\n"),
    ],
    ids=["excel", "tab", "quoted", "wider", "shorter", "blank line", "columns moved", "no last newline"],
)
def test_what_spreadsheets_save_is_read(tmp_path, ids, resave):
    rows, labels = np.nonzero(Y)
    verdicts = ["Right", " WRONG ", "", "right", *[""] * (len(rows) - 4)]
    table = with_verdicts(candidates_to_csv(rows, labels, data_of(names=ids)), verdicts)
    path = saved(tmp_path / "review.csv", resave(table))
    review = read_review(path, data_of(sp.csr_array(Y), names=ids))
    np.testing.assert_array_equal(verdicts_of(review), (rows[[0, 1, 3]], labels[[0, 1, 3]], [1, 0, 1]))
    assert n_verdicts(path) == 3


def test_a_file_in_the_encoding_of_older_spreadsheets_is_read(tmp_path):
    data = data_of(np.ones((1, 1)), ("naïve",))
    text = candidates_to_csv(np.array([0]), np.array([0]), data)
    path = saved(tmp_path / "review.csv", text.encode("latin-1"))
    assert read_review(path, data).rows.tolist() == [0]


def test_a_missing_apostrophe_is_accepted(tmp_path):
    text = "sample,label,verdict\n0,=1+1,right\n"
    assert read_review(saved(tmp_path / "review.csv", text), data_of()).answers.tolist() == [1]


def test_the_list_of_issues_holds_ranks_and_verdicts(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    candidates = (X[:, :2] + 0.5 * rng.standard_normal((80, 2)) > 0).astype(int)
    rows, labels = (places[:50] for places in np.nonzero(candidates))
    data = Dataset(X, Y_candidates=candidates)
    issues = find_label_issues(
        X, candidates, label_names=data.label_names, checked=(rows, labels, np.arange(50) % 2)
    )
    table = list(csv.DictReader(io.StringIO(issues_to_csv(issues, data))))
    assert list(table[0]) == [
        "sample",
        "label",
        "issue",
        "rank",
        "support",
        "probability",
        "other labels",
        "verdict",
        "draw",
        "planned",
    ]
    assert len(table) == candidates.sum()
    assert [int(line["rank"]) for line in table] == [*range(1, len(table) + 1)]
    path = saved(tmp_path / "review.csv", issues_to_csv(issues, data))
    review = read_review(path, data)
    np.testing.assert_array_equal(np.sort(verdicts_of(review)[0]), np.sort(rows))
    few = list(csv.DictReader(io.StringIO(issues_to_csv(issues, data, 3))))
    assert sum(not line["verdict"] for line in few) == 3
    assert sum(bool(line["verdict"]) for line in few) == 50
    assert [line for line in table if line in few] == few
    plain = find_label_issues(X, candidates)
    assert "probability" not in issues_to_csv(plain, data)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["12,=1+1,right"], "line 2: .*'12'"),
        (["-1,=1+1,right"], "line 2: .*'-1'"),
        (["one,=1+1,right"], "line 2: .*'one'"),
        (["0,+b,"], "line 2: .*'[+]b'"),
        (["0,=1+1,", "0,purple,"], "line 3: .*'purple'"),
        (["0,=1+1,maybe"], "line 2: .*'maybe'"),
        (["0,=1+1,right,and more"], "line 2: expected 3 fields, got 4"),
        (['0,"=1+1,right'], "quotes"),
        (["0"], "line 2: .*''"),
    ],
)
def test_invalid_lines_are_rejected_with_their_number(tmp_path, lines, said):
    path = saved(tmp_path / "review.csv", "\n".join(["sample,label,verdict", *lines]))
    with pytest.raises(DatasetError, match=f"review.csv.*{said}"):
        read_review(path, data_of())


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("label,verdict", "sample"),
        ("sample,label", "verdict"),
        ("sample,verdict", "label"),
        ("sample,label,verdict,verdict", "verdict"),
    ],
)
def test_other_files_are_rejected(tmp_path, header, missing):
    path = saved(tmp_path / "review.csv", header + "\n")
    with pytest.raises(DatasetError, match=f"one column '{missing}'"):
        read_review(path, data_of())


def test_unknown_ids_raise_with_a_hint_about_spreadsheets(tmp_path, ids):
    path = saved(tmp_path / "review.csv", "id:patient no.,label,verdict\n7,=1+1,right\n")
    with pytest.raises(DatasetError, match=r"line 2: .*007.*'7'"):
        read_review(path, data_of(names=ids))


def test_ambiguous_names_raise():
    with pytest.raises(DatasetError, match="'=x' and \"'=x\" look the same in a review file"):
        candidates_to_csv(np.array([0]), np.array([0]), data_of(np.ones((1, 2)), ("=x", "'=x")))


def test_files_without_verdicts_have_none(tmp_path):
    assert n_verdicts(saved(tmp_path / "a.csv", "x,y\n1,2\n")) == 0
    assert n_verdicts(saved(tmp_path / "b.csv", b"\x00\x01\x02")) == 0
    assert n_verdicts(saved(tmp_path / "c.csv", "")) == 0


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_only_wrong_candidates_are_removed_and_true_labels_stay(container):
    X = np.arange(24.0).reshape(12, 2)
    review = Review.of_draw(np.array([0, 3, 5]), np.array([0, 3, 0]), np.array([0, 1, -1]))
    cleaned = corrected(Dataset(X, container(np.eye(12, 10)), container(Y)), review)
    expected = Y.copy()
    expected[0, 0] = 0
    np.testing.assert_array_equal(np.asarray(sp.csr_array(cleaned.Y_candidates).toarray()), expected)
    np.testing.assert_array_equal(sp.csr_array(cleaned.Y).toarray(), np.eye(12, 10))
    labels_only = corrected(Dataset(X, container(Y)), review)
    np.testing.assert_array_equal(sp.csr_array(labels_only.Y).toarray(), expected)
    assert labels_only.Y_candidates is None


# The column that names the rows.


def test_row_names_are_read_unchanged(tmp_path):
    file = saved(tmp_path / "data.csv", 'x,name,label:a\n1,007,1\n2, a b ,0\n\n3,"q,r",1\n')
    assert read(file, id="name").row_ids == ("007", "a b", "q,r")
    second = saved(tmp_path / "more.csv", "x,name,label:a\n1,8,1\n")
    assert read([file, second], id="name").row_ids == ("007", "a b", "q,r", "8")


@pytest.mark.parametrize(
    ("kind", "rows", "names"),
    [
        ("string", "1,'it\\'s',1\n2,plain,0", ("it's", "plain")),
        ("numeric", "1,10,1\n2,20,0", ("10", "20")),
        ("string", "{0 1, 1 'a, b', 2 1}\n{1 c}", ("a, b", "c")),
    ],
)
def test_names_of_rows_are_read_from_arff(tmp_path, kind, rows, names):
    header = f"@relation r\n@attribute x numeric\n@attribute name {kind}\n@attribute a {{0,1}}\n@data\n"
    data = read(saved(tmp_path / "d.arff", header + rows + "\n"), labels="a", id="name")
    assert (data.row_ids, data.id_column, data.feature_names) == (names, "name", ("x",))


def test_names_of_rows_are_read_from_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for given, names in ((["a", "007"], ("a", "007")), ([12, 13], ("12", "13"))):
        table = pa.table({"name": given, "x": [1.0, 2.0], "y": [0, 1]})
        parquet.write_table(table, tmp_path / "d.parquet")
        assert read(tmp_path / "d.parquet", labels="y", id="name").row_ids == names


def test_an_unknown_column_of_names_is_rejected(tmp_path):
    with pytest.raises(DatasetError, match="no column 'name'"):
        read(saved(tmp_path / "data.csv", "x,y\n1,1\n2,0\n"), labels="y", id="name")


def test_matrices_have_no_column_of_names(tmp_path):
    write(Dataset([[1.0], [2.0]], [[1], [0]]), tmp_path / "data.npz")
    with pytest.raises(DatasetError, match="id="):
        read(tmp_path / "data.npz", id="name")


def test_names_of_rows_are_written_and_read_back(tmp_path, ids):
    data = Dataset(np.arange(12.0)[:, None], Y)
    names = [name.strip() for name in ids]
    for ending in (".csv", ".tsv"):
        path = tmp_path / f"data{ending}"
        write(data, path, row_names=("who", names))
        again = read(path, ignore="who")
        np.testing.assert_array_equal(again.X, data.X)
        np.testing.assert_array_equal(again.Y, Y)
        assert list(read(path, id="who").row_ids) == names
    with pytest.raises(DatasetError, match=r"row_names.*\.npz"):
        write(data, tmp_path / "data.npz", row_names=("who", names))
    with pytest.raises(ValueError, match="zip"):
        write(data, tmp_path / "short.csv", row_names=("who", names[:3]))
    assert not (tmp_path / "short.csv").exists()


# Draws, missing labels and provenance


def review_of_many():
    """A complete draw, an incomplete one with a missing label, and a label reviewed outside any draw."""
    return Review(
        rows=np.array([0, 3, 5, 2, 4]),
        labels=np.array([0, 3, 0, 5, 0]),
        answers=np.array([1, 0, 2, 1, 0], dtype=np.int8),
        is_missing=np.array([False, False, False, True, False]),
        numbers=np.array([1, 1, 2, 3, 0]),
        draws=(Draw(1, 2), Draw(2, 4, share=0.2), Draw(3, 1, n_suggested=500)),
    )


def test_draws_survive_a_file_in_any_order(tmp_path):
    review = review_of_many()
    lines = review_to_csv(review, data_of()).splitlines()
    path = saved(tmp_path / "review.csv", "\n".join([lines[0], *sorted(lines[1:], reverse=True)]))
    found = read_review(path, data_of())
    assert found.draws == review.draws
    assert [found.is_complete(draw) for draw in found.draws] == [True, False, True]
    assert [found.n_answered(draw) for draw in found.draws] == [2, 1, 1]
    order = np.lexsort((found.labels, found.rows))
    expected = np.lexsort((review.labels, review.rows))
    for name in ("rows", "labels", "answers", "is_missing", "numbers"):
        np.testing.assert_array_equal(getattr(found, name)[order], getattr(review, name)[expected])


@pytest.mark.parametrize(
    "draw",
    [
        Draw(1, 50),
        Draw(2, 7, share=0.125),
        Draw(3, 50, n_suggested=500),
        Draw(4, 9, n_suggested=88, is_unlisted=True),
    ],
)
def test_an_id_names_its_draw(draw):
    assert Draw.parse(draw.id, draw.size) == draw


def test_a_draw_with_a_deleted_line_is_incomplete(tmp_path):
    lines = review_to_csv(review_of_many(), data_of()).splitlines()
    found = read_review(saved(tmp_path / "review.csv", "\n".join([lines[0], *lines[2:]])), data_of())
    assert not found.is_complete(found.draws[0])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0,=1+1,wrong,right,first,50", "'first'"),
        ("0,=1+1,wrong,right,1:all,", "'1:all'"),
        ("0,=1+1,wrong,right,1:least-0%,5", "least"),
        ("0,=1+1,other,right,,", "'other'"),
        ("0,=1+1,missing,right,,", "not missing"),
        ("0,x,missing,right,,", "'x'"),
    ],
)
def test_odd_draws_and_issues_are_rejected(tmp_path, line, said):
    path = saved(tmp_path / "review.csv", f"sample,label,issue,verdict,draw,planned\n{line}\n")
    with pytest.raises(DatasetError, match=rf"line 2.*{said}"):
        read_review(path, data_of())


def test_two_sizes_of_one_draw_are_rejected(tmp_path):
    text = "sample,label,verdict,draw,planned\n0,=1+1,right,1:all,2\n1,=1+1,right,1:all,3\n"
    with pytest.raises(DatasetError, match=r"line 2.*planned"):
        read_review(saved(tmp_path / "review.csv", text), data_of())


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_missing_labels_are_added_and_wrong_ones_removed(container):
    expected = Y.copy()
    expected[3, 3] = expected[4, 0] = 0
    expected[2, 5] = 1
    cleaned = corrected(Dataset(np.zeros((12, 1)), container(Y)), review_of_many())
    np.testing.assert_array_equal(sp.csr_array(cleaned.Y).toarray(), expected)


def test_only_random_draws_from_all_leave_the_labels_independent_of_the_columns():
    review = review_of_many()
    assert depends_on_columns(review)
    assert not depends_on_columns(review.take(np.array([0, 1, 2])))
    assert depends_on_columns(review.take(np.array([3])))


def test_a_corrected_copy_is_recognised_until_it_changes(tmp_path):
    path = tmp_path / "clean.csv"
    path.write_text("a,b,label:x\n1,2,1\n2,1,0\n3,3,1\n")
    assert not is_cleaned(read(path))
    saved(provenance_file(path), provenance_text(read(path).checksum, 1, 0))
    assert is_cleaned(read(path))
    path.write_text("a,b,label:x\n1,2,1\n2,1,0\n3,4,1\n")
    assert not is_cleaned(read(path))


def test_proposals_are_those_without_a_verdict(tmp_path):
    text = "sample,label,verdict,proposed\n0,=1+1,,remove\n1,=1+1,right,remove\n2,=1+1,,\n"
    path = saved(tmp_path / "review.csv", text)
    assert read_review(path, data_of()).answers.tolist() == [-1, 1, -1]
    assert read_review(path, data_of(), proposed=True).answers.tolist() == [0, 1, -1]
    path = saved(tmp_path / "other.csv", "sample,label,verdict\n0,=1+1,\n")
    with pytest.raises(DatasetError, match="--remove-at"):
        read_review(path, data_of(), proposed=True)


def test_the_last_line_of_a_label_counts(tmp_path):
    lines = [
        "sample,label,verdict,draw,planned,proposed",
        "2,=1+1,,1:all,2,",
        "0,=1+1,,1:all,2,",
        "1,=1+1,right,,,",
        "0,=1+1,right,1:all,2,",
        "1,=1+1,,,,",
        "0,=1+1,wrong,1:all,2,",
        "2,=1+1,,1:all,2,remove",
    ]
    path = saved(tmp_path / "review.csv", "\n".join(lines))
    review = read_review(path, data_of())
    assert review.rows.tolist() == [2, 0, 1]  # in the order of the first lines
    assert review.answers.tolist() == [-1, 0, -1]
    assert review.numbers.tolist() == [1, 1, 0]
    assert n_verdicts(path) == 1
    accepted = read_review(path, data_of(), proposed=True)
    assert accepted.answers.tolist() == [0, 0, -1]
    assert accepted.numbers.tolist() == [0, 1, 0]


@pytest.mark.parametrize("end", ["", "1,", "1,=1+1,wro", "1,naïve 東"])
def test_a_line_that_was_not_written_completely_does_not_count(tmp_path, end):
    text = f"sample,label,verdict,data:{16 * '0'}\n0,=1+1,right,\n{end}"
    path = saved(tmp_path / "review.csv", text.encode()[: -1 if end.endswith("東") else None])
    review = read_review(path, data_of())
    assert (review.rows.tolist(), review.answers.tolist()) == ([0], [1])
