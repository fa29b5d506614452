"""What the documents say is what the code does."""

import csv
import doctest
import inspect
import re
import shlex
import shutil
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pyarrow.parquet
import pytest

from labelsieve import METHODS
from labelsieve._base import TAKES_BLOCKS
from labelsieve.bench.config import build_experiment
from labelsieve.bench.results import read_results
from labelsieve.bench.store import database_path
from labelsieve.cli import main
from labelsieve.datasets import make_pml
from labelsieve.report.page import make_report
from labelsieve.report.summary import summarise

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_extensions"))
import gallery_order
from api_pages import public_names

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

#: Pages that people write; the site has others, which are made of these, of the code and of the results.
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/guide/*.md")),
    *(ROOT / "docs" / name for name in ("project/index.md", "project/cite.md", "results/README.md")),
]


def blocks(page, language):
    """Code of a page in that language, but not what the page says nobody runs, and why."""
    text = re.sub(
        r"<!-- not run: [^>]+ -->\n```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def pages_with(language):
    return pytest.mark.parametrize(
        "page",
        [pytest.param(page, id=page.stem) for page in PAGES if blocks(page, language)],
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    X, Y, _, _ = make_pml(120, 24, n_informative=6, return_truth=True, random_state=0)
    features, labels = [f"f{j}" for j in range(24)], [f"tag_{j}" for j in range(5)]
    for name in ("mydata.csv", "table.csv"):
        with open(name, "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["name", *features, *labels])
            rows.writerows([f"row{i}", *X[i], *Y[i]] for i in range(len(X)))
    tags = ["|".join(label for label, has in zip(labels, row, strict=True) if has) for row in Y]
    with open("tickets.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([*features, "tags"])
        rows.writerows([*X[i], tags[i]] for i in range(len(X)))
    Path("docs/results").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "results" / "paper-lite.csv.gz", "docs/results")
    wide, few = make_pml(60, 600, random_state=0)
    columns = {f"x{j}": wide[:, j] for j in range(600)} | {f"label_{j}": few[:, j] for j in range(5)}
    pyarrow.parquet.write_table(pyarrow.table(columns), "large.parquet")


@pages_with("python")
def test_python_blocks_of_a_page_run_one_after_the_other(page, files, capsys, monkeypatch):
    module = ModuleType("page")  # classes of a page can be pickled, as in a file or a notebook
    monkeypatch.setitem(sys.modules, "page", module)
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), vars(module))


@pages_with("bash")
def test_commands_of_a_page_run(page, files, capsys):
    for block in blocks(page, "bash"):
        for command in re.findall(r"(?:^|&& )labelsieve ([^#&\n]+)", block, flags=re.MULTILINE):
            words = shlex.split(command)
            if not _can_run(words):
                continue
            assert main(words) == 0, (command, capsys.readouterr().err)
            if "--draw" in words:
                _answer(Path("review.csv"))


#: Commands that are not run here, and why; all others are.
LEFT_OUT = {
    "bench run": "takes minutes; the tests of experiments run them, small ones",
    "bench status": "of such a run",
    "bench export": "of such a run",
    "bench merge": "of such runs",
}


def _can_run(words):
    of_a_run = words[0] == "report" and not words[1].startswith("docs/results/")
    return " ".join(words[:2]) not in LEFT_OUT and not of_a_run


def _answer(path):
    """Be the person who checks."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        for number, row in enumerate(rows):
            writer.writerow({**row, "verdict": "keep" if number % 3 else "remove"})


@pages_with("toml")
def test_configurations_of_a_page_are_read(page):
    for block in blocks(page, "toml"):
        given = tomllib.loads(block)
        whole = {"datasets": ["digits"], "methods": ["sum-f", "rfs"], "folds": 2, "sizes": {"percent": [10]}}
        build_experiment({"name": "experiment", **whole, **given}, page.name)


def test_the_experiment_with_a_method_of_ones_own_runs(files, capsys, one_job_here):
    page = ROOT / "docs" / "guide" / "your_own.md"
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
def test_examples_of_what_writes_pages_run(name):
    results = doctest.testmod(import_module(name))
    assert results.attempted
    assert not results.failed


def test_the_gallery_is_in_an_order_for_learning():
    examples = [path.name for path in (ROOT / "examples").glob("*.py")]
    assert sorted(gallery_order.ORDER) == sorted(examples)
    assert len(examples) >= 12


def test_the_citation_names_the_version_there_is():
    from labelsieve import __version__

    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"{{{__version__}}}" in (ROOT / "docs" / "project" / "cite.md").read_text(encoding="utf-8")


def test_readme_lists_the_methods_there_are():
    lines = ["| method | class | what it does |", "| --- | --- | --- |"]
    for slug, method in METHODS.items():
        summary = inspect.getdoc(method).partition("\n")[0].replace("|", "\\|")
        lines.append(f"| `{slug}` | `{method.__name__}` | {summary} |")
    table = "\n".join(lines)
    assert f"<!-- methods -->\n{table}\n<!-- end of methods -->" in README, (
        f"put this between the markers of README.md:\n{table}"
    )


def test_the_page_on_scale_lists_the_methods_that_take_blocks():
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
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
        told = re.findall(r"(?<![\w-])--?[a-z][\w-]*", options)
        assert {word for word in words if word.startswith("-")} <= set(told), command


@pytest.mark.parametrize(
    "document",
    [*PAGES, ROOT / "CHANGELOG.md", *ROOT.glob("benchmarks/*.md")],
    ids=lambda path: path.name,
)
def test_links_and_names_of_the_documents_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)[^)]*\)", prose):
        if re.match(r"/|(\.\./)*(gallery|api|methods|notebooks/.+\.md|results/(?!README))", target):
            continue  # a page that the site makes; its own check follows the link
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
    for slug in re.findall(r"--method ([a-z-]+)", text):
        assert slug in METHODS


def test_functions_named_beside_the_equations_exist():
    text = (ROOT / "docs" / "pml_fsmir.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:_numerics|methods)(?:\.\w+)+)", text)
    assert named
    for dotted in named:
        place, rest = ROOT / "src" / "labelsieve", dotted.split(".")
        while place.is_dir():
            part = rest.pop(0)
            place = place / part if (place / part).is_dir() else place / f"{part}.py"
        assert re.search(rf"^(def|class) {rest[0]}\b", place.read_text("utf-8"), flags=re.MULTILINE), dotted
