"""Odd tables are read and that is said, or refused in one sentence; none ends in a traceback."""

import re

import pytest

from conftest import fails, run
from labelsieve.io import DatasetError, read
from odd_tables import ODD

pytestmark = pytest.mark.usefixtures("plain_terminal")


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
    code, out, err = run(
        capsys, "select", f"odd{odd.ending}", *odd.options, "-k", "1", "--method", "sum-f", "--format", "csv"
    )
    assert code == 0, err
    assert out.count("\n") == 2


def test_there_are_sixty_of_them():
    assert len(ODD) >= 60
