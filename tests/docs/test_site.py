"""The documentation site: what checks it notices faults, and the built site, where there is one, in a real browser."""

import sys
from pathlib import Path

import pytest
from test_browser import CHROMIUM, browser  # noqa: F401  # a fixture

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import check_site

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"

INDEX = 'Search.setIndex({"docnames": ["index"], "terms": {"candid": 0, "evid": 0}})'


def make_site(folder, body, index=INDEX):
    """A page with this body, beside a picture, an empty page and a search index."""
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    (folder / "other.html").write_text("<h1 id='top'>Other</h1>", encoding="utf-8")
    (folder / "picture.png").write_bytes(b"")
    (folder / "searchindex.js").write_text(index, encoding="utf-8")
    return folder


def test_a_site_without_faults_has_none(tmp_path):
    body = "<a href='other.html#top'>x</a> <a href='https://elsewhere.org'>x</a> <img src='picture.png?v=1'>"
    assert check_site.find_faults(make_site(tmp_path, body)) == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<a href='gone.html'>x</a>", "links to gone.html, which is not there"),
        ("<a href='other.html#gone'>x</a>", "but that page has no such place"),
        ("<a href='#gone'>x</a>", "but that page has no such place"),
        ("<img src='gone.png'>", "lacks gone.png"),
        ("<script src='https://elsewhere.org/x.js'></script>", "asks another server"),
        ("<link rel='stylesheet' href='//elsewhere.org/x.css'>", "asks another server"),
    ],
)
def test_a_fault_is_told(tmp_path, body, told):
    faults = check_site.find_faults(make_site(tmp_path, body))
    assert len(faults) == 1
    assert told in faults[0]


@pytest.mark.parametrize(
    ("index", "told"),
    [
        (INDEX.replace('["index"]', '["index", "gone"]'), "the search index names gone"),
        (INDEX.replace('"evid": 0', '"other": 0'), "the search finds no page with 'evid'"),
    ],
)
def test_a_search_index_that_does_not_fit_is_told(tmp_path, index, told):
    assert told in " ".join(check_site.find_faults(make_site(tmp_path, "", index)))


built = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="no site here; make docs builds it")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

#: What newcomers ask, and the page that answers.
ANSWERS = {
    "which method": "guide/choosing_a_method.html",
    "how many features": "guide/how_many.html",
    "which labels are wrong": "guide/label_issues.html",
    "can I trust it": "guide/stability.html",
    "how do I compare my method": "guide/your_own.html",
}


@built
@pytest.mark.parametrize("question", ANSWERS)
def test_what_newcomers_ask_is_one_click_from_the_first_page(question):
    assert ANSWERS[question] in check_site.read_page(SITE / "index.html").links


@built
@in_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "page",
    [
        "index",
        "get_started",
        "guide/choosing_a_method",
        "methods/index",
        "results/index",
        "gallery/digits",
        "notebooks/tour",
        "api/labelsieve.BaseSelector",
    ],
)
def test_a_page_asks_nobody_and_never_scrolls_sideways(browser, page, width):  # noqa: F811
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=True
    )
    try:
        browser.open((SITE / f"{page}.html").as_uri())
        assert browser.complaints() == []
        assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        shown = "[...document.images].every((image) => image.complete && image.naturalWidth > 0)"
        assert browser.evaluate("[...document.images].forEach((image) => (image.loading = 'eager')), true")
        assert browser.evaluate(f"new Promise((done) => setTimeout(() => done({shown}), 300))")
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


@built
@in_browser
@pytest.mark.slow
def test_the_search_finds_pages(browser):  # noqa: F811
    browser.open((SITE / "search.html").as_uri() + "?q=stability")
    found = "document.querySelectorAll('#search-results li a').length"
    assert browser.evaluate(f"new Promise((done) => setTimeout(() => done({found}), 3000))") >= 3
    assert [url for url in browser.requests() if not url.startswith("file:")] == []


@built
@in_browser
@pytest.mark.slow
def test_formulas_are_drawn_without_a_script(browser):  # noqa: F811
    browser.open((SITE / "guide" / "how_many.html").as_uri())
    assert browser.evaluate("document.querySelector('math').getBoundingClientRect().width") > 5


@built
@in_browser
@pytest.mark.slow
def test_a_dark_page_is_dark(browser):  # noqa: F811
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    try:
        browser.open((SITE / "index.html").as_uri())
        color = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert sum(map(int, color.removeprefix("rgb(").rstrip(")").split(","))) < 150
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])
