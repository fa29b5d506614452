"""Copy pages from outside this folder, and adapt links to them.

In the repository a link leads to a file. On the site it must lead to the page of that file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from written import write_page

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
#: File of the repository -> page of the site.
PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "benchmarks/results.md": "project/measured.md",
    "benchmarks/results-full.md": "project/measured_large.md",
    "benchmarks/guarantees.md": "project/measured_promises.md",
}
_TITLES = {"benchmarks/results-full.md": "Measured on large problems", "CHANGELOG.md": "Release notes"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Copy the pages, and adapt the links of all others when Sphinx reads them."""
    app.connect("builder-inited", _copy_pages, priority=100)
    app.connect("source-read", _adapt_page)
    return {"parallel_read_safe": True}


def _copy_pages(app: Sphinx) -> None:
    for file, page in PAGES.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        if file in _TITLES:
            text = re.sub(r"\A# .*", f"# {_TITLES[file]}", text)
        write_page(app.srcdir / page, with_site_links(text, Path(file).parent))


def _adapt_page(app: Sphinx, name: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(name))
    if path.suffix == ".md" and path.relative_to(app.srcdir).as_posix() not in PAGES.values():
        source[0] = with_site_links(source[0], path.parent.relative_to(ROOT))


def with_site_links(text: str, folder: Path) -> str:
    """Replace links to files by links to pages. `folder` contains the file, relative to the root.

    Examples
    --------
    >>> with_site_links("[how](../CONTRIBUTING.md#set-up)", Path("docs"))
    '[how](/project/contributing.md#set-up)'
    >>> with_site_links("[drawn](docs/project/architecture.md)", Path("."))
    '[drawn](/project/architecture.md)'
    """

    def replace(link: re.Match[str]) -> str:
        target, hash_sign, heading = link[2].partition("#")
        file = Path(os.path.normpath(folder / target)).as_posix()
        if not target or not (ROOT / file).exists():
            return link[0]
        if file in PAGES:
            target = f"/{PAGES[file]}"
        elif file.startswith("docs/"):
            target = "/" + file.removeprefix("docs/")
        return f"{link[1]}{target}{hash_sign}{heading})"

    return re.sub(r"(\]\()(?![a-z]+:)([^)\s]+)\)", replace, text)
