"""Odd tables are read and that is said, or refused in one sentence; none ends in a traceback.

`ODD` holds the tables by name. One that is read names what must be said about it, in the report of its columns or in a
note; one that is refused, what the sentence must name.
"""

import json
import random
import re
from dataclasses import dataclass, field
from io import BytesIO

import pytest

from conftest import fails, run
from labelsieve.io import DatasetError, read

pytestmark = pytest.mark.usefixtures("plain_terminal")

HEAD = ["x", "colour", "y"]
N_ROWS = 40


@dataclass(frozen=True)
class Odd:
    """A file and what must become of it."""

    content: bytes
    #: Pattern of what is said; searched in one text of all that is printed.
    said: str
    is_read: bool = True
    options: tuple = ()
    ending: str = ".csv"
    #: Roles that some columns must get.
    roles: dict = field(default_factory=dict)


def rows(n=N_ROWS, seed=0):
    """Rows of a plain table: a number that the label follows, a category, the label."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        label = rng.random() < 0.5
        found.append([f"{label + rng.random():.3f}", rng.choice(["red", "blue", "green"]), str(int(label))])
    return found


def table(lines, head=HEAD, separator=",", newline="\n"):
    return newline.join(separator.join(map(str, line)) for line in [head, *lines]) + newline


def with_column(name, cells, at=0):
    """The plain table with one column more; cells may be a function of the row's number."""
    lines = rows()
    values = [cells(k) for k in range(N_ROWS)] if callable(cells) else cells
    more = [[*line[:at], _quoted(value), *line[at:]] for line, value in zip(lines, values, strict=True)]
    return table(more, [*HEAD[:at], _quoted(name), *HEAD[at:]])


def _quoted(text):
    text = str(text)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def accepted(content, said=".", *, options=("--labels", "y"), ending=".csv", **roles):
    raw = content if isinstance(content, bytes) else content.encode()
    return Odd(raw, said, True, tuple(options), ending, roles)


def refused(content, said, *, options=("--labels", "y"), ending=".csv"):
    raw = content if isinstance(content, bytes) else content.encode()
    return Odd(raw, said, False, tuple(options), ending)


def column(name, cells, said, role, **more):
    """The plain table with one odd column that is taken for something."""
    return accepted(with_column(name, cells), said, **{name: role, **more})


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
ODD = {
    # Mixed and broken cells
    "mixed types": column("m", cycle("1", "2.5", "red", "2020-01-01"), r"m +category", "category"),
    "numbers with a slip": column(
        "n", lambda k: "oops" if k == 7 else k * 0.5, "'oops'.*count as missing", "number"
    ),
    "numbers with many slips": column("n", cycle("1", "oops"), r"n +category", "category"),
    "infinite numbers": column("n", lambda k: "inf" if k == 3 else k * 0.5, "count as missing", "number"),
    "not a number": column("n", lambda k: "NaN" if k % 4 else k * 0.5, r"n +number +30", "number"),
    "huge numbers": column("n", lambda k: f"{k}e300", r"n +number", "number"),
    "numbers of 300 digits": column(
        "n", lambda k: "9" * 300 + str(k), r"n +(id|category|text|number)", "number"
    ),
    "all missing": column("n", lambda k: "", "all values are missing", "constant"),
    "nearly all missing": column("n", lambda k: 5 if k == 1 else "", "'5' or nothing", "category"),
    "one value or nothing": column("n", cycle("x", ""), "'x' or nothing", "category"),
    "words for missing": column("n", cycle("1.5", "N/A", "null", "?", "2.5"), r"n +number +24", "number"),
    "constant": column("n", lambda k: "DE", "always 'DE'", "constant"),
    "spaces around": column("n", lambda k: f"  {k * 0.5} ", r"n +number", "number"),
    "quotes and line breaks": column("n", cycle('say "hi"', "two\nlines", "a,b"), r"n +category", "category"),
    # Spellings of numbers and dates
    "comma decimals": column("n", lambda k: f"{k},25", "decimal commas", "number"),
    "thousands separators": column("n", lambda k: f"{k + 1},250", r"thousands: 1,250 is 1250", "number"),
    "both separators": column("n", lambda k: f"{k + 1}.250,75", "decimal commas", "number"),
    "spaces in thousands": column("n", lambda k: f"{k + 1}\u202f250", r"n +number", "number"),
    "currency": column("n", lambda k: f"€ {k}.50", r"n +number", "number"),
    "per cent": column("n", lambda k: f"{3 * k}%", "per cent", "number"),
    "leading zeros": column("zip", cycle("01234", "04567"), "leading zeros", "category"),
    "dates before 1900": column("d", lambda k: f"{1700 + 5 * k}-07-14", r"d +date", "date"),
    "dates before 1678": column(
        "d", lambda k: f"{1 + k:02d}.03.1517" if k < 28 else "", r"day\.month\.year", "date"
    ),
    "the year 9999": column("d", cycle("9999-12-31", "2020-01-01", "2021-05-05"), r"d +date", "date"),
    "days or months": column(
        "d", cycle("01/02/2020", "03/04/2021", "05/06/2020"), "which is a guess", "date"
    ),
    "impossible dates": column(
        "d", lambda k: "2020-02-31" if k == 5 else f"2020-03-{k % 28 + 1:02d}", "count as missing", "date"
    ),
    "dates with zones": column("d", lambda k: f"2020-01-{k % 28 + 1:02d}T12:00:00+05:30", r"d +date", "date"),
    "times alone": column("t", lambda k: f"{k % 24:02d}:{k:02d}", r"t +(category|id|text)", "id"),
    "truth in words": column("t", cycle("Yes", "no", "NO"), r"t +boolean", "boolean"),
    # Names
    "names twice": accepted(PLAIN.replace("x,colour", "x,x"), r"'x \(2\)'"),
    "names empty": accepted(PLAIN.replace("x,colour", ",colour"), "column 1"),
    "names of spaces": accepted(PLAIN.replace("x,colour", "  ,colour"), "column 1"),
    "emoji in names": accepted(PLAIN.replace("x,colour", "🌡️,colour"), "🌡"),
    "HTML in names": accepted(PLAIN.replace("x,colour", "<script>alert(1)</script>,colour"), "<script>"),
    "a formula in names": accepted(PLAIN.replace("x,colour", "=1+1,@colour"), "=1[+]1"),
    "markup in names": accepted(PLAIN.replace("x,colour", "[red]x,:bell:"), r"\[red\]x"),
    "escape sequences in names": accepted(PLAIN.replace("x,colour", "\x1b[31mx,colour"), r"\\x1b\[31mx"),
    "a name of 5000 letters": accepted(PLAIN.replace("x,colour", "x" * 5000 + ",colour"), "xxx"),
    "a name like a feature": column("colour=red", cycle("0", "1"), r"colour=red", "boolean"),
    "a name like an option": accepted(PLAIN.replace("x,colour", "--labels,colour"), "--labels"),
    # Sizes
    "one row": refused(table(rows(1)), "nothing to tell apart"),
    "no rows": refused(",".join(HEAD) + "\n", "has a header but no rows"),
    "nothing": refused("", "is empty"),
    "blank lines only": refused("\n\n  \n", "has no rows"),
    "one column": refused("y\n1\n0\n1\n0\n", "no column to learn|no feature|at least one feature"),
    "ten thousand columns": accepted(_wide(10_000), "10000 number"),
    "a row too short": refused(PLAIN + "1,red\n", "expected 3 fields, got 2; correct the row"),
    "a row too long": refused(PLAIN + "1,red,1,1\n", "expected 3 fields, got 4"),
    "an open quote": refused(PLAIN + '1,"red,1\n', "check its quotes"),
    "ids only": refused(
        table([[f"a{k}", k % 2] for k in range(20)], ["id", "y"]), "no column to learn from.*--role"
    ),
    # Files
    "semicolons": accepted(table(rows(), separator=";"), "colour +category"),
    "semicolons and commas": accepted(
        table([[line[0].replace(".", ","), *line[1:]] for line in rows()], separator=";"), "decimal commas"
    ),
    "tabs": accepted(table(rows(), separator="\t"), "colour +category", ending=".txt"),
    "bars": accepted(table(rows(), separator="|"), "colour +category"),
    "UTF-16": accepted(PLAIN.encode("utf-16"), "colour +category"),
    "UTF-16 without an end": refused(PLAIN.encode("utf-16")[:-1], "damaged utf-16.*UTF-8"),
    "a byte order mark": accepted(PLAIN.encode("utf-8-sig"), r"\bx +number"),
    "old Latin": accepted(PLAIN.replace("red", "rötlich").encode("latin-1"), "colour +category"),
    "Windows line ends": accepted(table(rows(), newline="\r\n"), "colour +category"),
    "NUL bytes": refused(PLAIN.replace("red", "r\0d"), "NUL"),
    "a picture": refused(
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "NUL|binary|no known format|labels", ending=".csv"
    ),
    "JSON lines": accepted(_json_lines(), "colour +category", ending=".jsonl"),
    "a JSON list": accepted(
        _json_lines(lambda lines: f"[{','.join(lines)}]"), "colour +category", ending=".json"
    ),
    "JSON cut off": refused(_json_lines()[:-20], "JSON", ending=".jsonl"),
    "JSON of something else": refused("[1, 2, 3]", "expected an object", ending=".json"),
    "a workbook": accepted(_workbook(), "colour +category", ending=".xlsx"),
    "a workbook of two sheets": accepted(_workbook(sheets=2), "sheet 'Sheet' was read", ending=".xlsx"),
    "a workbook cut off": refused(_workbook()[:800], "damaged or cut off|cannot be read", ending=".xlsx"),
    "an empty workbook": refused(_workbook([]), "no rows", ending=".xlsx"),
    "old Excel": refused(b"\xd0\xcf\x11\xe0" + bytes(100), "save it as .xlsx", ending=".xls"),
    "nested Parquet": accepted(
        _parquet(z=[{"a": k % 2} for k in range(40)]), "z +category", ending=".parquet"
    ),
    "bytes in Parquet": accepted(_parquet(z=[b"u", b"v"] * 20), "z +category", ending=".parquet"),
    # Labels
    "one class": refused(
        table([[*line[:2], 1] for line in rows()]), "every row has the same labels.*--labels"
    ),
    "no class": refused(
        table([[*line[:2], 0] for line in rows()]), "no row has a label|at least one candidate"
    ),
    "labels empty": refused(table([[*line[:2], ""] for line in rows()]), "missing values|holds nothing"),
    "labels with a hole": refused(PLAIN + "1,red,\n", "label 'y' has 1 missing values.*fill them in"),
    "labels of marks": accepted(
        table([[*line[:2], "x" if line[2] == "1" else ""] for line in rows()]), "empty cells mean no"
    ),
    "labels not 0/1": accepted(table([[*line[:2], 1 + int(line[2])] for line in rows()]), "2 tags"),
    "labels of fractions": refused(
        table([[*line[:2], line[0]] for line in rows()]), "got '.*'; threshold it"
    ),
    "labels of words": accepted(
        table([[*line[:2], "hot" if line[2] == "1" else "cold"] for line in rows()]), "2 tags"
    ),
    "labels with a slip": refused(PLAIN + "1,red,maybe\n", "got .maybe.*; correct it"),
    "labels that are texts": refused(
        table([[k % 7, "red", f"text {k} of many"] for k in range(250)]),
        "250 different labels in 250 rows.*--labels",
    ),
    "labels unnamed": refused(
        PLAIN.replace("y", "z", 1), "does not say which columns are labels; give --labels", options=()
    ),
    "labels misspelt": refused(
        PLAIN, "has no column 'yy'; the closest names are 'y'", options=("--labels", "yy")
    ),
    "tags unnamed": accepted(_tagged([_tags(k) for k in range(40)]), r"y +label.*3 tags", options=()),
    "tags with commas": accepted(_tagged([_tags(k).replace(";", ", ") for k in range(40)]), "3 tags"),
    "tags as JSON": accepted(_tagged([json.dumps(_tags(k).split(";")) for k in range(40)]), "3 tags"),
    "tags as Python": accepted(_tagged([repr(_tags(k).split(";")) for k in range(40)]), "3 tags"),
    "tags with an own mark": accepted(
        _tagged([_tags(k).replace(";", "+") for k in range(40)]),
        "3 tags",
        options=("--labels", "y", "--label-sep", "+"),
    ),
    "tags like features": accepted(_tagged([_tags(k).replace("a", "x") for k in range(40)]), "3 tags"),
    "a label that equals a feature": column("z", lambda k: rows()[k][2], "equals the label 'y'", "boolean"),
    "a label that a category tells": column(
        "z", lambda k: "hi" if rows()[k][2] == "1" else "lo", "equals the label 'y'", "category"
    ),
    # Columns that were said to be something
    "a role that cannot be": refused(
        PLAIN,
        "'colour' must hold a number.*--role",
        options=("--labels", "y", "--role", "colour=number"),
    ),
    "a role of no column": refused(
        PLAIN, "no column 'z', whose role was given", options=("--labels", "y", "--role", "z=number")
    ),
    "an id twice": refused(
        PLAIN, "'colour' must name every row once", options=("--labels", "y", "--id", "colour")
    ),
    "an ignored column of none": refused(PLAIN, "no column 'z'", options=("--labels", "y", "--ignore", "z")),
}


def arguments_of(odd):
    """Arguments of `read` for the options of the command line."""
    given = dict(zip(odd.options[::2], odd.options[1::2], strict=True))
    names = {"--labels": "labels", "--label-sep": "label_sep", "--id": "id", "--ignore": "ignore"}
    found = {names[option]: value for option, value in given.items() if option in names}
    if "--role" in given:
        found["roles"] = dict([given["--role"].split("=")])
    return found


@pytest.fixture
def odd(request):
    found = ODD[request.param]
    with open(f"odd{found.ending}", "wb") as stream:
        stream.write(found.content)
    return found


@pytest.mark.parametrize("odd", [name for name in ODD if ODD[name].is_read], indirect=True)
def test_an_odd_table_is_read_and_that_is_said(odd, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    table = read(f"odd{odd.ending}", **arguments_of(odd))
    assert {column.name: column.role for column in table.columns if column.name in odd.roles} == odd.roles
    assert [feature for column in table.columns for feature in column.features] == list(
        range(table.X.shape[1])
    )
    code, out, err = run(capsys, "datasets", "info", f"odd{odd.ending}", *odd.options)
    assert code == 0, err
    if odd.ending != ".csv" or "taken for" in out:
        assert re.search(odd.said, out), out
    assert "Traceback" not in out + err


@pytest.mark.parametrize("odd", [name for name in ODD if not ODD[name].is_read], indirect=True)
def test_what_cannot_be_read_is_refused_in_one_sentence(odd, capsys):
    with pytest.raises(DatasetError):
        read(f"odd{odd.ending}", **arguments_of(odd))
    assert re.search(odd.said, fails(capsys, 1, "datasets", "info", f"odd{odd.ending}", *odd.options))


@pytest.mark.parametrize(
    "odd", ["names twice", "UTF-16", "ten thousand columns", "HTML in names", "huge numbers"], indirect=True
)
def test_columns_of_odd_tables_are_selected(odd, capsys):
    options = (*odd.options, "-k", "1", "--method", "sum-f", "--json")
    code, out, err = run(capsys, "select", f"odd{odd.ending}", *options)
    assert code == 0, err
    assert len(json.loads(out)["columns"]) == 1
