"""The documentation agrees with the code."""

import doctest
import re
import shlex
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import labelsieve
from labelsieve import METHODS
from labelsieve._base import TAKES_BLOCKS
from labelsieve.bench.config import build_experiment
from labelsieve.bench.results import read_results
from labelsieve.bench.store import database_path
from labelsieve.cli import main
from labelsieve.report.page import make_report
from labelsieve.report.summary import summarise

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_extensions"))
from write_outputs import PAGES, code_blocks, page_folder, with_outputs

import gallery_order
from api_pages import public_names

ROOT = Path(__file__).parents[2]


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def pages_with(language):
    return pytest.mark.parametrize(
        "page",
        [pytest.param(page, id=page.stem) for page in PAGES if blocks(page, language)],
    )


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem) for page in PAGES if any(code_blocks(page))]
)
def test_a_page_shows_the_output_of_its_code(page):
    expected = page.read_text(encoding="utf-8")
    assert with_outputs(page) == expected, f"run python docs/write_outputs.py {page.relative_to(ROOT)}"


def test_outputs_are_written_below_their_blocks(tmp_path):
    page = tmp_path / "page.md"
    marked = "\n<!-- output -->\n```text\n{}```\n"
    text = (
        "```python\nx = 1\nprint(x + 1)\n```\n" + marked + "\n```python\nprint('not shown')\n```\n"
        "\n<!-- not run: fails -->\n```python\n1 / 0\n```\n"
        "\n```bash\nlabelsieve --version\n```\n" + marked
    )
    page.write_text(text.format("stale\n", ""), encoding="utf-8")
    assert with_outputs(page) == text.format("2\n", f"labelsieve {labelsieve.__version__}\n")


@pages_with("toml")
def test_configurations_of_a_page_are_read(page):
    for block in blocks(page, "toml"):
        given = tomllib.loads(block)
        whole = {"datasets": ["digits"], "methods": ["sum-f", "rfs"], "folds": 2, "sizes": {"percent": [10]}}
        build_experiment({"name": "experiment", **whole, **given}, page.name)


def test_the_experiment_with_a_user_defined_method_runs(capsys, one_job_here):
    page = ROOT / "docs" / "guide" / "your_own.md"
    with page_folder():
        exec(blocks(page, "python")[0], {})
        Path("mine.toml").write_text(blocks(page, "toml")[0], encoding="utf-8")
        assert main(["bench", "run", "mine.toml", "--jobs", "1"]) == 0, capsys.readouterr().err
        found = make_report(summarise(read_results(database_path("mine"))))
    assert found.missing == ()
    assert "mine, the control, is number" in " ".join(found.findings)


def test_every_public_name_has_an_example_that_runs():
    lacking, runner = [], doctest.DocTestRunner(verbose=False)
    for found in public_names():
        if ">>>" not in found.docstring:
            lacking.append(found.dotted)
        if found.is_data:  # pytest runs the others
            names = dict(vars(import_module(found.home)))
            runner.run(doctest.DocTestParser().get_doctest(found.docstring, names, found.dotted, None, 0))
    assert lacking == []
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize(
    "name",
    [
        "api_pages",
        "repository_pages",
        "committed_results",
        "notebook_pages",
    ],
)
def test_examples_of_page_writers_run(name):
    results = doctest.testmod(import_module(name))
    assert results.attempted
    assert not results.failed


def test_the_gallery_is_in_an_order_for_learning():
    examples = [path.name for path in (ROOT / "examples").glob("*.py")]
    assert sorted(gallery_order.ORDER) == sorted(examples)
    assert len(examples) >= 12


def test_the_citation_states_the_current_version():
    assert f"version: {labelsieve.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"{{{labelsieve.__version__}}}" in (ROOT / "docs" / "project" / "cite.md").read_text(
        encoding="utf-8"
    )


def test_the_index_of_methods_lists_all():
    pytest.importorskip("numpydoc")
    table = import_module("method_pages").index_page()
    for slug, method in METHODS.items():
        assert f":doc:`{slug}`" in table
        assert f"`{method.__name__} </api/labelsieve.{method.__name__}>`" in table


def test_the_page_on_scale_lists_the_methods_that_take_blocks():
    text = (ROOT / "docs" / "guide" / "scale.md").read_text(encoding="utf-8")
    table = text.partition("## Methods and their passes")[2].partition("\n\n## ")[0]
    listed = [
        name
        for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    ]
    assert sorted(listed) == sorted(TAKES_BLOCKS)


@pages_with("bash")
def test_every_command_and_option_of_the_documents_exists(capsys, page):
    text = "\n".join(re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))
    commands = re.findall(r"(?:^|&& )labelsieve ([^#&\n]+)", text, flags=re.MULTILINE)
    for command in commands:
        words = shlex.split(command)
        named = words[: 2 if words[0] in ("bench", "datasets") else 1]
        assert main([*named, "--help"]) == 0, command
        options = capsys.readouterr().out.partition("Options:")[2].partition("Examples:")[0]
        documented = re.findall(r"(?<![\w-])--?[a-z][\w-]*", options)
        assert {word for word in words if word.startswith("-")} <= set(documented), command


@pytest.mark.parametrize(
    "document",
    [*PAGES, ROOT / "CHANGELOG.md", *ROOT.glob("benchmarks/*.md")],
    ids=lambda path: path.name,
)
def test_links_and_method_names_of_the_documents_exist(document):
    text = document.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)[^)]*\)", prose):
        if re.match(r"/|(\.\./)*(gallery|api|methods|notebooks/.+\.md|results/(?!README))", target):
            continue  # a generated page, checked by check_site.py
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
    for slug in re.findall(r"--method ([a-z-]+)", text):
        assert slug in METHODS


def test_functions_named_next_to_the_equations_exist():
    text = (ROOT / "docs" / "guide" / "pml_fsmir.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:_numerics|methods)(?:\.\w+)+)", text)
    assert named
    for dotted in named:
        place, rest = ROOT / "src" / "labelsieve", dotted.split(".")
        while place.is_dir():
            part = rest.pop(0)
            place = place / part if (place / part).is_dir() else place / f"{part}.py"
        assert re.search(rf"^(def|class) {rest[0]}\b", place.read_text("utf-8"), flags=re.MULTILINE), dotted
