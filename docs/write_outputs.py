"""Run the code of Markdown pages and write its output below it.

    python docs/write_outputs.py [PAGE...]

A line `<!-- output -->` and a text block hold the standard output of the Python or shell block
above them. All blocks of a page run in order, in one folder with the files that the pages use,
except those below a line `<!-- not run: REASON -->`. In shell blocks only the labelsieve commands run.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from unittest.mock import patch

import pandas as pd

from labelsieve.cli import main
from labelsieve.datasets import load_animals, make_pml
from labelsieve.datasets.animals import ANIMALS_CSV

ROOT = Path(__file__).parents[1]
#: Pages written by hand. The site has others, built from these, the code and the results.
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *(ROOT / "docs" / "project" / name for name in ("index.md", "architecture.md", "cite.md")),
    ROOT / "docs" / "results" / "README.md",
]
_BLOCK = re.compile(
    r"^(?P<head>(?P<skip><!-- not run: [^>]+ -->\n)?```(?P<language>python|bash)\n(?P<code>.*?)^```\n)"
    r"(?P<output>\n<!-- output -->\n```text\n.*?^```\n)?",
    re.DOTALL | re.MULTILINE,
)
_COMMAND = re.compile(r"(?:^|&& )labelsieve ([^&\n]+)", re.MULTILINE)


def code_blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the language and the code of each block that runs."""
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if not block["skip"]:
            yield block["language"], block["code"]


def with_outputs(page: Path) -> str:
    """Run the blocks of a page and return its text with their output."""
    module = ModuleType("page")  # lets classes that a page defines be pickled

    def run(block: re.Match[str]) -> str:
        if block["skip"]:
            return block[0]
        lines = _run_block(block["language"], block["code"], module, page).splitlines()
        if block["output"] is None:
            return block[0]
        output = "".join(f"{line.rstrip()}\n" for line in lines).strip("\n")
        return f"{block['head']}\n<!-- output -->\n```text\n{output}\n```\n"

    text = page.read_text(encoding="utf-8")
    sys.modules["page"] = module  # not with patch.dict, which would unload what the page imports
    try:
        with page_folder():
            return _BLOCK.sub(run, text)
    finally:
        del sys.modules["page"]


@contextmanager
def page_folder() -> Iterator[None]:
    """Work in a temporary folder with the files of the pages, on a terminal of 100 columns."""
    terminal = {"COLUMNS": "100", "NO_COLOR": "1"}
    with TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ, terminal):
        shutil.copy(ANIMALS_CSV, "animals.csv")
        Path("docs/results").mkdir(parents=True)
        shutil.copy(ROOT / "docs" / "results" / "paper-lite.csv.gz", "docs/results")
        X, Y = make_pml(60, 600, random_state=0)
        columns = {f"x{j}": X[:, j] for j in range(600)} | {f"label_{j}": Y[:, j] for j in range(5)}
        pd.DataFrame(columns).to_parquet("large.parquet")
        yield


def _run_block(language: str, code: str, module: ModuleType, page: Path) -> str:
    output = io.StringIO()
    with redirect_stdout(output):
        if language == "python":
            exec(compile(code, page.name, "exec"), vars(module))
        else:
            for command in _COMMAND.findall(code):
                _run_command(shlex.split(command, comments=True))
    return output.getvalue()


def _run_command(words: list[str]) -> None:
    notes = io.StringIO()
    with redirect_stderr(notes):
        code = main(words)
    if code:
        raise RuntimeError(f"labelsieve {shlex.join(words)} failed: {notes.getvalue()}")
    if "--draw" in words and "--format" not in words:
        _review(Path(words[words.index("-o") + 1]))


def _review(path: Path) -> None:
    """Fill in verdicts from the true tags of the animals."""
    animals = load_animals()
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        for row in rows:
            is_true = animals.Y[int(row["sample"]), animals.label_names.index(row["label"])]
            writer.writerow({**row, "verdict": "right" if is_true else "wrong"})


if __name__ == "__main__":
    for page in [Path(argument).resolve() for argument in sys.argv[1:]] or PAGES:
        text = with_outputs(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"wrote {page}")
