"""Pages that extensions write."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def write_page(path: Path, text: str) -> None:
    """Write a page unless it is there already: what is unchanged is not read again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def remove_others(folder: Path, kept: Iterable[str]) -> None:
    """Delete pages of an earlier build that nothing writes any more."""
    names = set(kept)
    for path in folder.iterdir():
        if path.is_file() and path.name not in names:
            path.unlink()


def underlined(title: str, mark: str = "=") -> str:
    """A heading of reStructuredText."""
    return f"{title}\n{mark * len(title)}\n"


def list_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of reStructuredText whose first row is the heading."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (titles, *rows):
        lines += [f"   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(row)]
    return "\n".join([*lines, ""])


def examples_that_use(name: str) -> str:
    """The examples of the gallery that use a public name, under a heading if there are any."""
    return f".. minigallery:: {name}\n   :add-heading: In the gallery\n   :heading-level: -\n"
