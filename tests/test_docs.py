"""What the documents say is what the code does."""

import re
import shlex
from pathlib import Path

import pytest

from labelsieve import METHODS
from labelsieve._base import TAKES_BLOCKS
from labelsieve.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
def test_python_blocks_of_the_readme_run(block, capsys):
    exec(compile(block, "README.md", "exec"), {})


def test_readme_lists_the_methods_there_are(capsys):
    assert main(["methods", "--markdown"]) == 0
    table = capsys.readouterr().out.strip()
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


@pytest.mark.parametrize("document", ["README.md", "docs/evidence.md", "docs/scale.md"])
def test_every_command_and_option_of_the_documents_exists(capsys, document):
    text = (ROOT / document).read_text(encoding="utf-8")
    commands = re.findall(r"(?:^|&& )labelsieve ([^#&\n]+)", text, flags=re.MULTILINE)
    assert commands
    for command in commands:
        words = shlex.split(command)
        named = words[: 2 if words[0] in ("bench", "datasets") else 1]
        assert main([*named, "--help"]) == 0, command
        options = capsys.readouterr().out.partition("Options:")[2].partition("Examples:")[0]
        told = re.findall(r"(?<![\w-])--?[a-z][\w-]*", options)
        assert {word for word in words if word.startswith("-")} <= set(told), command


@pytest.mark.parametrize(
    "document",
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")],
    ids=lambda path: path.name,
)
def test_links_and_names_of_the_documents_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
    for slug in re.findall(r"--method ([a-z-]+)", text):
        assert slug in METHODS


def test_functions_named_beside_the_equations_exist():
    text = (ROOT / "docs" / "pml_fsmir.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:numerics|methods)(?:\.\w+)+)", text)
    assert named
    for dotted in named:
        place, rest = ROOT / "src" / "labelsieve", dotted.split(".")
        while place.is_dir():
            part = rest.pop(0)
            place = place / part if (place / part).is_dir() else place / f"{part}.py"
        assert re.search(rf"^(def|class) {rest[0]}\b", place.read_text("utf-8"), flags=re.MULTILINE), dotted
