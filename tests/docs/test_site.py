"""Tests of the site checker, and of the built site in a real browser, if it exists."""

import sys
from pathlib import Path

import pytest

from browser import chromium, open_tab  # noqa: F401  fixtures

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import check_site

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"

INDEX = 'Search.setIndex({"docnames": ["index"], "terms": {"candid": 0, "evid": 0}})'


def make_site(folder, body, index=INDEX):
    """Write a page with this body, an image, an empty page and a search index."""
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    (folder / "other.html").write_text("<h1 id='top'>Other</h1>", encoding="utf-8")
    (folder / "picture.png").write_bytes(b"")
    (folder / "searchindex.js").write_text(index, encoding="utf-8")
    return folder


def test_a_site_without_faults_has_none(tmp_path):
    body = "<a href='other.html#top'>x</a> <a href='https://elsewhere.org'>x</a> <img src='picture.png?v=1'>"
    assert check_site.find_faults(make_site(tmp_path, body)) == []


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<a href='gone.html'>x</a>", "links to gone.html, which does not exist"),
        ("<a href='other.html#gone'>x</a>", "but that page has no such heading"),
        ("<a href='#gone'>x</a>", "but that page has no such heading"),
        ("<img src='gone.png'>", "lacks gone.png"),
        ("<script src='https://elsewhere.org/x.js'></script>", "loads from another server"),
        ("<link rel='stylesheet' href='//elsewhere.org/x.css'>", "loads from another server"),
    ],
)
def test_a_fault_is_reported(tmp_path, body, fault):
    faults = check_site.find_faults(make_site(tmp_path, body))
    assert len(faults) == 1
    assert fault in faults[0]


@pytest.mark.parametrize(
    ("index", "fault"),
    [
        (INDEX.replace('["index"]', '["index", "gone"]'), "the search index contains gone"),
        (INDEX.replace('"evid": 0', '"other": 0'), "the search finds no page with 'evid'"),
    ],
)
def test_a_wrong_search_index_is_reported(tmp_path, index, fault):
    assert fault in " ".join(check_site.find_faults(make_site(tmp_path, "", index)))


built = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="no site; run make docs")

CODE = ".highlight-python pre, .highlight-Python pre, .highlight-bash pre, .highlight-toml pre"

#: Question of a newcomer -> page that answers it.
ANSWERS = {
    "which method": "guide/choosing_a_method.html",
    "how many features": "guide/how_many.html",
    "which labels are wrong": "guide/label_issues.html",
    "can I trust it": "guide/stability.html",
    "how do I compare my method": "guide/your_own.html",
}


@built
@pytest.mark.parametrize("question", ANSWERS)
def test_answers_for_newcomers_are_one_click_from_the_first_page(question):
    assert ANSWERS[question] in check_site.read_page(SITE / "index.html").links


@built
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "page",
    [
        "index",
        "get_started",
        "glossary",
        "guide/choosing_a_method",
        "guide/experiments",
        "guide/validation",
        "methods/index",
        "results/index",
        "results/leaderboard",
        "gallery/digits",
        "notebooks/tour",
        "api/labelsieve.BaseSelector",
    ],
)
def test_a_page_requests_nothing_and_fits_its_window(open_tab, page, width):  # noqa: F811
    tab = open_tab((SITE / f"{page}.html").as_uri(), width=width)
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
    assert tab.run("document.documentElement.scrollWidth") <= width
    if width == 1280:
        assert tab.run(
            f"[...document.querySelectorAll('{CODE}')].every((e) => e.scrollWidth <= e.clientWidth)"
        )
    tab.run("[...document.images].forEach((image) => (image.loading = 'eager'))")
    tab.page.wait_for_function(
        "[...document.images].every((image) => image.complete && image.naturalWidth > 0)"
    )


@built
@pytest.mark.slow
def test_the_search_finds_pages(open_tab):  # noqa: F811
    tab = open_tab((SITE / "search.html").as_uri() + "?q=stability")
    tab.page.locator("#search-results li a").nth(2).wait_for()
    assert [url for url in tab.requests if not url.startswith("file:")] == []


@built
@pytest.mark.slow
def test_formulas_are_drawn_without_a_script(open_tab):  # noqa: F811
    tab = open_tab((SITE / "guide" / "how_many.html").as_uri(), script=False)
    assert tab.page.locator("math").first.bounding_box()["width"] > 5


@built
@pytest.mark.slow
def test_a_dark_page_is_dark(open_tab):  # noqa: F811
    tab = open_tab((SITE / "index.html").as_uri(), theme="dark")
    color = tab.run("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, color.removeprefix("rgb(").rstrip(")").split(","))) < 150
