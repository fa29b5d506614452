"""Tests of the options of `read` and of errors that name them."""

import pandas as pd
import pytest

from conftest import run
from labelsieve.bench import RunError
from labelsieve.bench.config import parse_experiment
from labelsieve.bench.runner import run as run_experiment
from labelsieve.cli import in_options
from labelsieve.io import DatasetError, read

TABLE = "who,length,bird\n" + "".join(f"w{k},{k}.5,{k % 2}\n" for k in range(6))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "birds.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    "option", [{"nominal": "dummy"}, {"missing": "drop"}, {"text": "bert"}, {"roles": {"length": "colour"}}]
)
def test_every_reader_rejects_an_unknown_value(table, option):
    for source in (table, pd.read_csv(table)):
        with pytest.raises(ValueError, match=next(iter(option)).rstrip("s")):
            read(source, labels="bird", **option)


def test_an_error_names_options_of_python(table):
    with pytest.raises(DatasetError) as caught:
        read(table, roles={"length": "boolean"}, labels="bird")
    assert "roles={'length': 'category'}" in str(caught.value)
    assert "--role length=category" in in_options(str(caught.value))


def test_data_that_look_like_an_option_are_not_replaced(capsys, tmp_path, plain_terminal):
    path = tmp_path / "odd.csv"
    path.write_text("a,labels=\n1,1\n2,3\n")
    code, _, err = run(capsys, "select", str(path), "--labels", "labels=,ignore='x'")
    assert code == 1
    assert "has no column \"ignore='x'\"; the closest names are 'labels='" in err


def test_the_command_line_and_a_configuration_name_their_own_options(capsys, table, tmp_path, plain_terminal):
    table.write_text("who,length,bird\n" + "".join(f"w{k},{k}.5,1\n" for k in range(6)))
    code, _, err = run(capsys, "select", str(table), "--labels", "bird")
    assert code == 1
    assert "--labels" in err
    text = f'methods = ["sum-f"]\ndatasets = [{{name = "own", path = "{table.name}", labels = "bird"}}]\n'
    experiment = parse_experiment(text, name="mine", folder=tmp_path)
    with pytest.raises(RunError, match=r"datasets: own: .* check `labels`\."):
        run_experiment(experiment, tmp_path / "out")


def test_errors_of_a_configuration_name_the_option():
    text = 'methods = ["sum-f"]\ndatasets = [{name = "own", path = "a.csv", missing = "median"}]\n'
    with pytest.raises(RunError, match=r"missing.*'median'"):
        parse_experiment(text, name="mine")
