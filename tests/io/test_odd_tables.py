"""Tests of odd tables: they are read with a note, or rejected with one clear error."""

import json
import random
import re
from io import BytesIO

import pytest

from conftest import fails, run
from labelsieve.io import DatasetError, read

pytestmark = pytest.mark.usefixtures("plain_terminal")

HEAD = ["x", "colour", "y"]
N_ROWS = 40


def rows(n=N_ROWS, seed=0):
    """Return rows of a plain table: a number that predicts the label, a category, and the label."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        label = rng.random() < 0.5
        found.append([f"{label + rng.random():.3f}", rng.choice(["red", "blue", "green"]), str(int(label))])
    return found


def table(lines, head=HEAD, separator=",", newline="\n"):
    return newline.join(separator.join(map(str, line)) for line in [head, *lines]) + newline


def with_column(name, cells, at=0):
    """Add a column to the plain table. `cells` may be a function of the row number."""
    lines = rows()
    values = [cells(k) for k in range(N_ROWS)] if callable(cells) else cells
    more = [[*line[:at], _quoted(value), *line[at:]] for line, value in zip(lines, values, strict=True)]
    return table(more, [*HEAD[:at], _quoted(name), *HEAD[at:]])


def _quoted(text):
    text = str(text)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def cycle(*cells):
    return lambda k: cells[k % len(cells)]


def _tagged(cells):
    return table([[*line[:2], _quoted(cell)] for line, cell in zip(rows(), cells, strict=True)])


def _tags(k):
    return ["a;b", "b", "a", "", "b;c"][k % 5]


def _json_lines(wrap=lambda lines: "\n".join(lines)):
    return wrap(
        [json.dumps({"x": float(a), "colour": b, "y": ["hot"] if c == "1" else []}) for a, b, c in rows()]
    )


def _workbook(lines=None, sheets=1):
    import openpyxl

    book = openpyxl.Workbook()
    for line in [HEAD, *(rows() if lines is None else lines)]:
        book.active.append(line)
    for number in range(1, sheets):
        book.create_sheet(f"more {number}")
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()


def _parquet(**columns):
    import pyarrow as pa
    import pyarrow.parquet

    lines = rows()
    data = {"x": [float(line[0]) for line in lines], "y": [int(line[2]) for line in lines], **columns}
    stream = pa.BufferOutputStream()
    frame = pa.table(data)
    pa.parquet.write_table(frame, stream)
    return stream.getvalue().to_pybytes()


def _wide(n_columns):
    rng = random.Random(1)
    lines = [
        [*(f"{rng.random():.2f}" for _ in range(n_columns)), "m" if k % 3 else "", k % 2] for k in range(20)
    ]
    return table(lines, [*(f"c{number}" for number in range(n_columns)), "unit", "y"])


PLAIN = table(rows())

#: Kind of column -> cells, inferred role, and a pattern of its note.
COLUMNS = {
    "mixed types": (cycle("1", "2.5", "red", "2020-01-01"), "category", ""),
    "numbers with an invalid cell": (lambda k: "oops" if k == 7 else k * 0.5, "number", "'oops'"),
    "numbers with many invalid cells": (cycle("1", "oops"), "category", ""),
    "infinite numbers": (lambda k: "inf" if k == 3 else k * 0.5, "number", "1"),
    "huge numbers": (lambda k: f"{k}e300", "number", ""),
    "all missing": (lambda k: "", "constant", ""),
    "one value or missing": (cycle("x", ""), "category", "'x'"),
    "words for missing": (cycle("1.5", "N/A", "null", "?", "NaN", "2.5"), "number", ""),
    "constant": (lambda k: "DE", "constant", "'DE'"),
    "quotes and line breaks": (cycle('say "hi"', "two\nlines", "a,b"), "category", ""),
    "decimal commas": (lambda k: f"{k},25", "number", "comma"),
    "thousands separators": (lambda k: f"{k + 1},250", "number", "1,250 is 1250"),
    "spaces in thousands": (lambda k: f"{k + 1}\u202f250", "number", ""),
    "currency": (lambda k: f"€ {k}.50", "number", ""),
    "percentages": (lambda k: f"{3 * k}%", "number", "percent"),
    "leading zeros": (cycle("01234", "04567"), "category", "zeros"),
    "dates before 1678": (lambda k: f"{1 + k:02d}.03.1517" if k < 28 else "", "date", r"day\.month\.year"),
    "the year 9999": (cycle("9999-12-31", "2020-01-01", "2021-05-05"), "date", ""),
    "ambiguous dates": (cycle("01/02/2020", "03/04/2021", "05/06/2020"), "date", "ambiguous"),
    "impossible dates": (
        lambda k: "2020-02-31" if k == 5 else f"2020-03-{k % 28 + 1:02d}", "date", "2020-02-31"
    ),
    "dates with time zones": (lambda k: f"2020-01-{k % 28 + 1:02d}T12:00:00+05:30", "date", ""),
    "times without dates": (lambda k: f"{k % 24:02d}:{k:02d}", "number", "min"),
    "yes and no": (cycle("Yes", "no", "NO"), "boolean", ""),
    "a feature equal to a label": (lambda k: rows()[k][2], "boolean", "'y'"),
    "a category equal to a label": (lambda k: "hi" if rows()[k][2] == "1" else "lo", "category", "'y'"),
}  # fmt: skip

#: Kind of table -> content, a pattern of its description, and options if not `labels="y"`.
ACCEPTED = {
    "names twice": (PLAIN.replace("x,colour", "x,x"), r"'x \(2\)'"),
    "names empty": (PLAIN.replace("x,colour", "  ,colour"), "column 1"),
    "emoji in names": (PLAIN.replace("x,colour", "🌡️,colour"), "🌡"),
    "HTML in names": (PLAIN.replace("x,colour", "<script>alert(1)</script>,colour"), "<script>"),
    "escape sequences in names": (PLAIN.replace("x,colour", "\x1b[31mx,colour"), r"\\x1b\[31mx"),
    "a name like a feature": (with_column("colour=red", cycle("0", "1")), "colour=red boolean"),
    "ten thousand columns": (_wide(10_000), "c9999 number"),
    "semicolons": (table(rows(), separator=";"), "colour category"),
    "semicolons and commas": (
        table([[line[0].replace(".", ","), *line[1:]] for line in rows()], separator=";"), "x number .*comma"
    ),
    "tabs.txt": (table(rows(), separator="\t"), "colour category"),
    "UTF-16": (PLAIN.encode("utf-16"), "colour category"),
    "a byte order mark": (PLAIN.encode("utf-8-sig"), "^x number"),
    "old Latin": (PLAIN.replace("red", "rötlich").encode("latin-1"), "colour category"),
    "Windows line endings": (table(rows(), newline="\r\n"), "colour category"),
    "JSON lines.jsonl": (_json_lines(), "colour category"),
    "a JSON list.json": (_json_lines(lambda lines: f"[{','.join(lines)}]"), "colour category"),
    "a workbook of two sheets.xlsx": (_workbook(sheets=2), "colour category.*'Sheet'"),
    "nested.parquet": (_parquet(z=[{"a": k % 2} for k in range(40)]), "z category"),
    "bytes.parquet": (_parquet(z=[b"u", b"v"] * 20), "z category"),
    "labels of marks": (
        table([[*line[:2], "x" if line[2] == "1" else ""] for line in rows()]), "y label .*no"
    ),
    "labels not 0 and 1": (table([[*line[:2], 1 + int(line[2])] for line in rows()]), "2 tags"),
    "labels of words": (
        table([[*line[:2], "hot" if line[2] == "1" else "cold"] for line in rows()]), "2 tags"
    ),
    "tags unnamed": (_tagged([_tags(k) for k in range(40)]), "y label.*3 tags", ()),
    "tags with commas": (_tagged([_tags(k).replace(";", ", ") for k in range(40)]), "3 tags"),
    "tags as JSON": (_tagged([json.dumps(_tags(k).split(";")) for k in range(40)]), "3 tags"),
    "tags as Python": (_tagged([repr(_tags(k).split(";")) for k in range(40)]), "3 tags"),
    "tags with another separator": (
        _tagged([_tags(k).replace(";", "+") for k in range(40)]), "3 tags", ("--labels", "y", "--label-sep", "+")
    ),
    "tags like features": (_tagged([_tags(k).replace("a", "x") for k in range(40)]), "3 tags"),
}  # fmt: skip

#: Kind of table -> content, a pattern of the error, and options if not `labels="y"`.
REJECTED = {
    "one row": (table(rows(1)), "labels"),
    "no rows": (",".join(HEAD) + "\n", "header"),
    "nothing": ("", "empty"),
    "blank lines only": ("\n\n  \n", "rows"),
    "one column": ("y\n1\n0\n1\n0\n", "feature"),
    "a row too short": (PLAIN + "1,red\n", "3 fields, got 2"),
    "a row too long": (PLAIN + "1,red,1,1\n", "3 fields, got 4"),
    "an open quote": (PLAIN + '1,"red,1\n', "quotes"),
    "ids only": (table([[f"a{k}", k % 2] for k in range(20)], ["id", "y"]), "--role"),
    "truncated UTF-16": (PLAIN.encode("utf-16")[:-1], "UTF-8"),
    "NUL bytes": (PLAIN.replace("red", "r\0d"), "NUL"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "NUL|binary"),
    "truncated JSON.jsonl": (_json_lines()[:-20], "JSON"),
    "JSON of something else.json": ("[1, 2, 3]", "object"),
    "a truncated workbook.xlsx": (_workbook()[:800], r"odd\.xlsx"),
    "an empty workbook.xlsx": (_workbook([]), "rows"),
    "old Excel.xls": (b"\xd0\xcf\x11\xe0" + bytes(100), "xlsx"),
    "one class": (table([[*line[:2], 1] for line in rows()]), "--labels"),
    "no class": (table([[*line[:2], 0] for line in rows()]), "--labels"),
    "labels empty": (table([[*line[:2], ""] for line in rows()]), "'y'"),
    "labels with a missing value": (PLAIN + "1,red,\n", "'y' has 1 missing"),
    "fractions as labels": (table([[*line[:2], line[0]] for line in rows()]), "threshold"),
    "labels with an invalid value": (PLAIN + "1,red,maybe\n", "maybe"),
    "labels that are texts": (
        table([[k % 7, "red", f"text {k} of many"] for k in range(250)]),
        "250.*--labels",
    ),
    "labels unnamed": (PLAIN.replace("y", "z", 1), "--labels", ()),
    "labels misspelt": (PLAIN, "'yy'.*'y'", ("--labels", "yy")),
    "an impossible role": (PLAIN, "'colour'.*--role", ("--labels", "y", "--role", "colour=number")),
    "a role of an unknown column": (PLAIN, "'z'", ("--labels", "y", "--role", "z=number")),
    "an unknown ignored column": (PLAIN, "'z'", ("--labels", "y", "--ignore", "z")),
}


def written(name, content):
    """Write a table to a file with the extension in `name`, and return its path."""
    path = f"odd{re.search(r'[.]?[a-z]*$', name)[0] if '.' in name else '.csv'}"
    with open(path, "wb") as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())
    return path


def arguments_of(options):
    """Convert command-line options to arguments of `read`."""
    given = {
        name.strip("-").replace("-", "_"): value
        for name, value in zip(options[::2], options[1::2], strict=True)
    }
    if "role" in given:
        given["roles"] = dict([given.pop("role").split("=")])
    return given


@pytest.mark.parametrize("name", COLUMNS)
def test_the_role_of_an_odd_column_is_inferred(name):
    cells, role, note = COLUMNS[name]
    found = {column.name: column for column in read(written("", with_column("n", cells)), labels="y").columns}
    assert found["n"].role == role
    assert re.search(note, found["n"].note)


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_odd_table_is_read_and_described(name, capsys):
    content, pattern, *options = ACCEPTED[name]
    path = written(name, content)
    (options,) = options or [("--labels", "y")]
    data = read(path, **arguments_of(options))
    description = " ".join(
        [*(f"{column.name} {column.role} {column.note}" for column in data.columns), *data.notes]
    )
    assert re.search(pattern, description)
    assert [feature for column in data.columns for feature in column.features] == [*range(data.X.shape[1])]
    code, out, err = run(capsys, "select", path, *options, "-k", "1", "--method", "sum-f", "--json")
    assert code == 0, err
    assert len(json.loads(out)["columns"]) == 1


@pytest.mark.parametrize("name", REJECTED)
def test_an_invalid_table_is_rejected_with_one_error(name, capsys):
    content, pattern, *options = REJECTED[name]
    path = written(name, content)
    (options,) = options or [("--labels", "y")]
    with pytest.raises(DatasetError):
        read(path, **arguments_of(options))
    assert re.search(pattern, fails(capsys, 1, "datasets", "info", path, *options))
