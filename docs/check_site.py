"""Check a built site: ``python docs/check_site.py docs/_build/html``.

Every link inside it must lead somewhere, also to a heading; every picture, script and style must be there and be the
site's own; the search index must know the pages.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser fetches by itself, and the attribute that says where from.
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
    """What a page is made of."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where an element leads, what it loads and what it is called."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and _LOADING_RELATIONS & set(values.get("rel", "").split()):
            self.loaded.append(values.get("href", ""))
        elif _LOADED.get(tag, "") in values:
            self.loaded.append(values[_LOADED[tag]])


def read_pages(site: Path) -> dict[Path, Page]:
    """Every page of the site; what the theme keeps among its styles are templates, not pages."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        if "_static" in path.relative_to(site).parts:
            continue
        pages[path] = read_page(path)
    return pages


def read_page(path: Path) -> Page:
    """One of them."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def find_faults(site: Path) -> list[str]:
    """What is wrong, in sentences; nothing if all is well."""
    site = site.resolve()
    pages = read_pages(site)
    faults = [] if pages else [f"{site} has no pages"]
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.loaded:
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                faults.append(f"{name} asks another server: {address}")
            elif not address.startswith("data:") and not _target(path, address, site).is_file():
                faults.append(f"{name} lacks {address}")
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = _target(path, address, site)
            if not target.is_file():
                faults.append(f"{name} links to {address}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                faults.append(f"{name} links to {address}, but that page has no such place")
    return faults + _search_faults(site, pages)


def _target(page: Path, address: str, site: Path) -> Path:
    path = unquote(urlsplit(address).path)
    if not path:
        return page
    target = (site / path.lstrip("/")) if path.startswith("/") else (page.parent / path)
    return target.resolve() / "index.html" if target.is_dir() else target.resolve()


def _search_faults(site: Path, pages: dict[Path, Page]) -> list[str]:
    """The index must name pages that are there, and find words that surely are."""
    index = site / "searchindex.js"
    if not index.is_file():
        return ["there is no search index"]
    text = index.read_text(encoding="utf-8")
    entries = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    faults = [
        f"the search index names {name}, which is not there"
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
    print("\n".join(found) or f"{len(read_pages(Path(sys.argv[1])))} pages, no fault found", file=sys.stderr)
    sys.exit(bool(found))
