"""``labelsieve methods``: the list and the explanations."""

import inspect
import json
import re

import pytest

from conftest import fails, run
from labelsieve import METHODS
from labelsieve.cli.methods import explain

pytestmark = pytest.mark.usefixtures("plain_terminal")


def test_every_method_is_listed_as_table_and_json(capsys):
    code, out, err = run(capsys, "methods")
    assert (code, err) == (0, "")
    for slug, method in METHODS.items():
        assert re.search(rf"^{slug} +{method.__name__} ", out, re.MULTILINE)
    listed = json.loads(run(capsys, "methods", "--json")[1])
    assert [entry["method"] for entry in listed] == list(METHODS)
    assert all(entry["summary"].endswith(".") for entry in listed)


@pytest.mark.parametrize("slug", METHODS)
def test_every_method_is_explained_with_all_that_its_docstring_says(capsys, slug):
    method = METHODS[slug]
    defaults = {entry["parameter"]: entry["default"] for entry in explain(slug, method)["parameters"]}
    assert defaults == method().get_params()
    code, out, err = run(capsys, "methods", slug)
    assert (code, err) == (0, "")
    assert out.startswith(f"{slug}  {method.__name__}\n")
    for name, default in defaults.items():
        assert re.search(rf"^  {name} = {re.escape(repr(default))}(  |$)", out, re.MULTILINE)
    shown = " ".join(out.split()).lower()
    # Nothing is lost: every run of plain words of the docstring is there.
    said = " ".join(inspect.getdoc(method).partition("Examples\n---")[0].split())
    for words in re.findall(r"[A-Za-z][a-z]+(?: [a-z]+){3,}", re.sub(r"[`*]", "", said)):
        assert words.lower() in shown
    assert not re.search(r"``|\[\d\]_|^ *-{3,}$| :?$", out, re.MULTILINE)
    record = json.loads(run(capsys, "methods", slug, "--json")[1])
    assert record["cost"], f"add a paragraph 'Cost: ...' to the Notes of {record['class']}"


def test_an_explanation_for_programs_is_one_object(capsys):
    record = json.loads(run(capsys, "methods", "drmfs", "--json")[1])
    assert (record["method"], record["class"], record["reconstruction"]) == ("drmfs", "DRMFS", False)
    assert len(record["references"]) == 1
    assert record["references"][0].startswith("[1] Hu, Li, Gao, Zhang")
    parameters = {entry["parameter"]: entry for entry in record["parameters"]}
    assert parameters["bandwidth"]["choices"] == ["unit", "median"]
    assert parameters["scale"]["choices"] == ["minmax", None]
    assert (parameters["alpha"]["type"], parameters["alpha"]["default"]) == ("float", 1.0)
    assert "coef_" in [entry["attribute"] for entry in record["attributes"]]
    assert "Cost" not in record["notes"]


def test_explanations_fit_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for arguments in (("methods",), ("methods", "pml-fsmir"), ("methods", "rfs")):
        assert max(map(len, run(capsys, *arguments)[1].splitlines())) <= 40
    # A formula that is wrapped keeps its indentation.
    monkeypatch.setenv("COLUMNS", "60")
    shown = run(capsys, "methods", "pml3er")[1].partition("Then minimises")[2].partition("Paper")[0]
    formula = shown.split("\n\n")[1].splitlines()
    assert len(formula) > 1
    assert all(re.match(r" {6}\S", line) for line in formula)


def test_bad_usage(capsys):
    assert "did you mean 'pml-fsmir'?" in fails(capsys, 2, "methods", "PML-FSMIR")
