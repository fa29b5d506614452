import json
import os
import re

import pytest

from conftest import run
from labelsieve.datasets.catalog import CATALOG

pytestmark = pytest.mark.usefixtures("plain_terminal")
NEEDS_DATA = pytest.mark.skipif(
    not os.environ.get("LABELSIEVE_DATA"), reason="LABELSIEVE_DATA names no folder with the benchmark files"
)

CSV = "length,width,bird,[red]fish\n1.5,2,1,0\n2.5,1,1,1\n0.5,3,0,0\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "birds.csv"
    path.write_text(CSV)
    return path


@pytest.mark.parametrize("arguments", [("datasets",), ("datasets", "list")])
def test_the_catalogue_is_listed_with_sizes_and_places(capsys, monkeypatch, arguments):
    monkeypatch.delenv("LABELSIEVE_DATA", raising=False)
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert re.search(r"yeast +\W +2417 \W +103 \W +14 \W +4.237 \W download", out)
    assert re.search(r"yeast_cc +\W +- \W +- \W +50 \W +- \W download", out)
    lines = out.splitlines()
    assert {len(line) for line in lines} == {len(lines[0])}
    assert len(lines[0]) <= 80


def test_the_list_for_programs_holds_every_entry(capsys, monkeypatch):
    monkeypatch.delenv("LABELSIEVE_DATA", raising=False)
    code, out, _ = run(capsys, "datasets", "list", "--json")
    assert code == 0
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert set(entries) == set(CATALOG)
    assert entries["yeast"]["n_features"] == 103
    assert entries["yeast"]["files"]["yeast.xml"]["sha256"] == CATALOG["yeast"].labels.sha256


def test_a_file_is_described_with_its_label_frequencies(capsys, table):
    code, out, err = run(capsys, "datasets", "info", str(table), "--labels", "2")
    assert (code, err) == (0, "")
    assert re.search(r"samples +3$", out, re.MULTILINE)
    # Two of three rows have the first label, one the second: a full bar and half a bar.
    assert re.search(r"^bird +█{30} +2 +66.7%$", out, re.MULTILINE)
    assert re.search(r"^\[red\]fish +█{15} +1 +33.3%$", out, re.MULTILINE)


def test_names_of_the_data_are_never_taken_for_markup(capsys, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("x,[bold]same[/bold],[/]close,:bell: \\\n1,5,1,1\n2,5,0,1\n")
    code, out, _ = run(capsys, "datasets", "info", str(path), "--labels", "2")
    assert code == 0
    for name in ("[bold]same[/bold]", "[/]close", ":bell: \\"):
        assert name in out


def test_the_description_for_programs_is_json(capsys, table):
    code, out, _ = run(capsys, "datasets", "info", str(table), "--labels", "2", "--json")
    assert code == 0
    figures = json.loads(out)
    assert (figures["n_samples"], figures["n_features"], figures["n_labels"]) == (3, 2, 2)
    assert figures["label_counts"] == {"bird": 2, "[red]fish": 1}


def test_bars_need_nothing_but_ascii_where_there_is_nothing_else(capsys, table, monkeypatch):
    monkeypatch.setattr("rich.console.ConsoleOptions.ascii_only", property(lambda self: True))
    out = run(capsys, "datasets", "info", str(table), "--labels", "2")[1]
    assert "#" * 30 in out
    assert out.isascii()


def test_of_many_labels_the_most_frequent_are_drawn(capsys, tmp_path):
    path = tmp_path / "many.csv"
    names = ["x"] + [f"label{k}" for k in range(40)]
    rows = [[1] + [int(row >= k) for k in range(40)] for row in range(40)]
    path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    out = run(capsys, "datasets", "info", str(path), "--labels", "40")[1]
    assert out.count("█ ") == 15
    assert "and 25 rarer labels, the rarest with 1 of 40 samples" in out


@NEEDS_DATA
def test_a_benchmark_is_described_with_its_citation(capsys):
    code, out, err = run(capsys, "datasets", "info", "yeast")
    assert (code, err) == (0, "")
    assert "4.237" in out
    assert "Elisseeff and Weston, NIPS 2001" in out
    assert "1816" in out  # rows of the most frequent label, Class12
    code, out, _ = run(capsys, "datasets", "info", "yeast", "--json")
    assert json.loads(out)["catalogue"]["from"] == "local"


@NEEDS_DATA
def test_a_folder_called_like_a_data_set_does_not_hide_it(capsys, monkeypatch, tmp_path):
    (tmp_path / "chd_49").mkdir()
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "datasets", "info", "chd_49")
    assert code == 0
    assert "2.580" in out


@pytest.mark.parametrize(("name", "figures"), [("digits", "1797 .* 64 .* 9"), ("planted", "300 .* 60 .* 8")])
def test_what_is_built_in_is_listed_described_and_needs_no_download(capsys, name, figures):
    code, out, _ = run(capsys, "datasets", "list")
    assert code == 0
    assert re.search(rf"{name} .* {figures} .* built in", out)
    code, out, err = run(capsys, "datasets", "info", name)
    assert (code, err) == (0, "")
    assert f"cardinality               {CATALOG[name].cardinality:.3f}" in out
    assert CATALOG[name].citation in out
    code, out, err = run(capsys, "datasets", "fetch", name)
    assert (code, out) == (0, "")
    assert err == f"note: {name} is built in; there is nothing to download.\n"


def test_a_file_called_like_a_data_set_goes_before_it_and_a_folder_does_not(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted").mkdir()
    (tmp_path / "digits").write_text(CSV)
    assert re.search(r"samples +300\n", run(capsys, "datasets", "info", "planted")[1])
    assert re.search(r"samples +3\n", run(capsys, "datasets", "info", "digits", "--labels", "2")[1])


def test_names_cannot_steer_the_terminal(capsys, tmp_path):
    path = tmp_path / "odd\x1b[31m.csv"
    path.write_text("x,\u202esame,la\u202ebel\n1,5,1\n2,5,0\n", encoding="utf-8")
    code, out, _ = run(capsys, "datasets", "info", str(path), "--labels", "1")
    assert code == 0
    assert "odd\\x1b[31m" in out
    assert "la\\u202ebel" in out
    assert "1 (\\u202esame)" in out
    code, out, err = run(
        capsys, "select", str(path), "--labels", "1", "-k", "1", "--method", "sum-f", "-o", "o\x07.csv"
    )
    assert code == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(out + err)


@NEEDS_DATA
def test_fetching_what_is_here_says_where_it_is(capsys):
    code, out, err = run(capsys, "datasets", "fetch", "yeast", "birds")
    folder = os.environ["LABELSIEVE_DATA"]
    assert (code, out) == (0, f"yeast\t{folder}/yeast\nbirds\t{folder}/birds\n")
    assert err.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("info", "yaest"), "got 'yaest'; did you mean yeast"),
        (
            ("info", "missing.arff"),
            "existing file or a name of the catalogue was expected, got 'missing.arff'",
        ),
        (("fetch", "emotions"), "emotions.arff of 'emotions' is not here and LABELSIEVE_OFFLINE"),
        (("fetch", "emotions", "nosuch"), "got 'nosuch'"),
    ],
)
def test_bad_data_is_one_line_and_exit_code_one(capsys, arguments, complaint):
    code, out, err = run(capsys, "datasets", *arguments)
    assert (code, out) == (1, "")
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("info",),
        ("fetch",),
        ("nonsense",),
        ("info", "yeast", "--labels", "3"),
        ("info", "birds.csv", "--missing", "median"),
        ("list", "--nonsense"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(capsys, arguments):
    code, out, err = run(capsys, "datasets", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_help_shows_examples(capsys):
    for command in ("list", "info", "fetch"):
        code, out, _ = run(capsys, "datasets", command, "--help")
        assert code == 0
        assert f"labelsieve datasets {command}" in out
