"""Tests of `labelsieve datasets`."""

import json
import os
import re

import pytest

from conftest import fails, run
from labelsieve.datasets.catalog import CATALOG

pytestmark = pytest.mark.usefixtures("plain_terminal")
NEEDS_DATA = pytest.mark.skipif(
    not os.environ.get("LABELSIEVE_DATA"), reason="LABELSIEVE_DATA names no folder with the benchmark files"
)

CSV = "length,width,bird,[red]fish\n1.5,2,1,0\n2.5,1,1,1\n0.5,3,0,0\n"


@pytest.fixture
def birds():
    with open("birds.csv", "w") as stream:
        stream.write(CSV)
    return "birds.csv"


@pytest.mark.parametrize("arguments", [("datasets",), ("datasets", "list")])
def test_the_catalogue_is_listed_with_sizes_and_locations(capsys, monkeypatch, arguments):
    monkeypatch.delenv("LABELSIEVE_DATA", raising=False)
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert re.search(r"yeast +\W +2417 \W +103 \W +14 \W +4.237 \W download", out)
    assert re.search(r"yeast_cc +\W +- \W +- \W +50 \W +- \W download", out)
    assert re.search(r"digits .* 1797 .* 64 .* 9 .* built in", out)
    assert max(map(len, out.splitlines())) <= 80


def test_the_json_list_contains_every_entry(capsys, monkeypatch):
    monkeypatch.delenv("LABELSIEVE_DATA", raising=False)
    entries = {entry["name"]: entry for entry in json.loads(run(capsys, "datasets", "list", "--json")[1])}
    assert set(entries) == set(CATALOG)
    assert entries["yeast"]["n_features"] == 103
    assert entries["yeast"]["files"]["yeast.xml"]["sha256"] == CATALOG["yeast"].files[1].sha256


def test_a_file_is_described_with_its_label_frequencies(capsys, birds):
    code, out, err = run(capsys, "datasets", "info", birds, "--labels", "2")
    assert (code, err) == (0, "")
    assert re.search(r"samples +3$", out, re.MULTILINE)
    # Two of three rows have the first label and one has the second, so the bars are full and half.
    assert re.search(r"^bird +2 +66.7% +█{20}$", out, re.MULTILINE)
    assert re.search(r"^\[red\]fish +1 +33.3% +█{10} *$", out, re.MULTILINE)
    figures = json.loads(run(capsys, "datasets", "info", birds, "--labels", "2", "--json")[1])
    assert (figures["n_samples"], figures["n_features"], figures["n_labels"]) == (3, 2, 2)
    assert figures["label_counts"] == {"bird": 2, "[red]fish": 1}
    assert [column["role"] for column in figures["columns"]] == ["number", "number", "label", "label"]


def test_bars_work_with_ascii_only(capsys, birds, monkeypatch):
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda self: True))
    out = run(capsys, "datasets", "info", birds, "--labels", "2")[1]
    assert "#" * 20 in out
    assert out.isascii()


def test_only_the_most_frequent_of_many_labels_are_drawn(capsys):
    names = ["x"] + [f"label{k}" for k in range(40)]
    rows = [[row] + [int(row >= k) for k in range(40)] for row in range(40)]
    with open("many.csv", "w") as stream:
        stream.write("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    options = ("--labels", "40", "--role", "x=number")
    out = run(capsys, "datasets", "info", "many.csv", *options)[1]
    assert len(re.findall("█ *$", out, re.MULTILINE)) == 15
    assert "and 25 rarer labels" in out


@NEEDS_DATA
def test_a_benchmark_is_described_with_its_citation(capsys, tmp_path):
    os.mkdir("yeast")  # a folder with its name does not hide it
    code, out, err = run(capsys, "datasets", "info", "yeast")
    assert (code, err) == (0, "")
    assert "4.237" in out
    assert "Elisseeff and Weston, NIPS 2001" in out
    assert json.loads(run(capsys, "datasets", "info", "yeast", "--json")[1])["catalogue"]["from"] == "local"


def test_built_in_data_are_described_and_need_no_download(capsys):
    code, out, err = run(capsys, "datasets", "info", "planted")
    assert (code, err) == (0, "")
    assert f"cardinality               {CATALOG['planted'].cardinality:.3f}" in out
    assert CATALOG["planted"].citation in out
    code, out, err = run(capsys, "datasets", "fetch", "planted")
    assert (code, out) == (0, "")
    assert "planted" in err


def test_a_file_takes_precedence_over_a_dataset_but_a_folder_does_not(capsys):
    os.mkdir("planted")
    with open("digits", "w") as stream:
        stream.write(CSV)
    assert re.search(r"samples +300\n", run(capsys, "datasets", "info", "planted")[1])
    assert re.search(r"samples +3\n", run(capsys, "datasets", "info", "digits", "--labels", "2")[1])


@NEEDS_DATA
def test_fetching_local_files_prints_their_folders(capsys):
    code, out, err = run(capsys, "datasets", "fetch", "yeast", "birds")
    folder = os.environ["LABELSIEVE_DATA"]
    assert (code, out) == (0, f"yeast\t{folder}/yeast\nbirds\t{folder}/birds\n")
    assert err.strip() == ""


@pytest.mark.parametrize(
    ("code", "arguments", "named"),
    [
        (1, ("info", "yaest"), "yeast"),
        (1, ("info", "missing.arff"), "'missing.arff'"),
        (1, ("fetch", "emotions"), "LABELSIEVE_OFFLINE"),
        (1, ("fetch", "emotions", "nosuch"), "'nosuch'"),
        (2, ("fetch",), "NAME"),
        (2, ("info", "yeast", "--labels", "3"), "--labels"),
    ],
)
def test_errors_are_one_line(capsys, code, arguments, named):
    assert named in fails(capsys, code, "datasets", *arguments)
