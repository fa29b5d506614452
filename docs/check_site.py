"""Check a built site: ``python docs/check_site.py docs/_build/html``.

Internal links must lead to an existing page and heading. Images, scripts and styles must exist and come
from the site itself. The search index must contain the pages.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Element that a browser loads without a click -> attribute with the address.
_LOADED = {
    "img": "src",
    "script": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
}
_LOADING_RELATIONS = {
    "stylesheet",
    "icon",
    "shortcut",
    "preload",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
}


@dataclass
class Page(HTMLParser):
    """Links, loaded files and anchors of a page."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the link, loaded file and anchors of an element."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and _LOADING_RELATIONS & set(values.get("rel", "").split()):
            self.loaded.append(values.get("href", ""))
        elif _LOADED.get(tag, "") in values:
            self.loaded.append(values[_LOADED[tag]])


def read_pages(site: Path) -> dict[Path, Page]:
    """Read all pages of the site, without the templates of the theme."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        if "_static" in path.relative_to(site).parts:
            continue
        pages[path] = read_page(path)
    return pages


def read_page(path: Path) -> Page:
    """Read one page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def find_faults(site: Path) -> list[str]:
    """List the faults of the site, one sentence each."""
    site = site.resolve()
    pages = read_pages(site)
    faults = [] if pages else [f"{site} has no pages"]
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.loaded:
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                faults.append(f"{name} loads from another server: {address}")
            elif not address.startswith("data:") and not _target(path, address, site).is_file():
                faults.append(f"{name} lacks {address}")
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = _target(path, address, site)
            if not target.is_file():
                faults.append(f"{name} links to {address}, which does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                faults.append(f"{name} links to {address}, but that page has no such heading")
    return faults + _search_faults(site, pages)


def _target(page: Path, address: str, site: Path) -> Path:
    path = unquote(urlsplit(address).path)
    if not path:
        return page
    target = (site / path.lstrip("/")) if path.startswith("/") else (page.parent / path)
    return target.resolve() / "index.html" if target.is_dir() else target.resolve()


def _search_faults(site: Path, pages: dict[Path, Page]) -> list[str]:
    """List pages of the search index that do not exist, and common words that it misses."""
    index = site / "searchindex.js"
    if not index.is_file():
        return ["the search index is missing"]
    text = index.read_text(encoding="utf-8")
    entries = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    faults = [
        f"the search index contains {name}, which does not exist"
        for name in entries["docnames"]
        if site / f"{name}.html" not in pages
    ]
    faults += [
        f"the search finds no page with {word!r}"
        for word in ("candid", "evid")
        if word not in entries["terms"]
    ]
    return faults


if __name__ == "__main__":
    found = find_faults(Path(sys.argv[1]))
    print("\n".join(found) or f"{len(read_pages(Path(sys.argv[1])))} pages without faults", file=sys.stderr)
    sys.exit(bool(found))
