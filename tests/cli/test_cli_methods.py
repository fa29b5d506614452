"""Tests of `labelsieve methods`."""

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
def test_explanations_contain_the_whole_docstring(capsys, slug):
    method = METHODS[slug]
    defaults = {entry["parameter"]: entry["default"] for entry in explain(slug, method)["parameters"]}
    assert defaults == method().get_params()
    code, out, err = run(capsys, "methods", slug)
    assert (code, err) == (0, "")
    assert out.startswith(f"{slug}  {method.__name__}\n")
    assert all(re.search(rf"^(.*, )?{name}(,.*)? : ", out, re.MULTILINE) for name in defaults)
    assert not re.search(r"``|\[\d\]_", out)
    record = json.loads(run(capsys, "methods", slug, "--json")[1])
    assert record["cost"], f"add a paragraph 'Cost: ...' to the Notes of {record['class']}"


def test_the_json_explanation_is_one_object(capsys):
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


def test_usage_errors(capsys):
    assert "'pml-fsmir'" in fails(capsys, 2, "methods", "PML-FSMIR")
