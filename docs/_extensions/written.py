"""Helpers for extensions that write pages."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def write_page(path: Path, text: str) -> None:
    """Write a page if it changed, so that Sphinx does not read unchanged pages again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def remove_others(folder: Path, kept: Iterable[str]) -> None:
    """Delete pages of an earlier build."""
    names = set(kept)
    for path in folder.iterdir():
        if path.is_file() and path.name not in names:
            path.unlink()


def underlined(title: str, mark: str = "=") -> str:
    """Return a reStructuredText heading."""
    return f"{title}\n{mark * len(title)}\n"


def list_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a reStructuredText table whose first row is the heading."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (titles, *rows):
        lines += [f"   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(row)]
    return "\n".join([*lines, ""])


def examples_that_use(name: str) -> str:
    """Return a list of the gallery examples that use a public name."""
    return f".. minigallery:: {name}\n   :add-heading: In the gallery\n   :heading-level: -\n"
