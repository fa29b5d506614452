"""Audit page in a real browser: slider, search, filters, dark mode, export, keyboard, phone, hostile names."""

import csv
import io
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from browser import chromium, open_tab  # noqa: F401  fixtures
from labelsieve import audit
from labelsieve.cli import main
from labelsieve.datasets import load_digits_attributes, make_pml
from labelsieve.io import Dataset, write

pytestmark = pytest.mark.slow

HOSTILE = "</script><img src=x onerror=alert(1)>"
N_COLUMNS = 40


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Addresses of pages and the audit of the first one."""
    folder = tmp_path_factory.mktemp("audit")
    X, Y = make_pml(n_samples=300, n_features=N_COLUMNS - 1, n_labels=6, random_state=0)
    X = np.column_stack([X, X[:, 0] + 1e-3])  # a twin
    names = [f"column {j}" for j in range(N_COLUMNS)]
    names[1], names[2] = HOSTILE, "long " * 60
    labels = ("=1+1", "<b>bold</b>", "ünïcode 🙈", "d", "e", "f" * 200)
    hostile = Dataset(
        X,
        Y_candidates=Y,
        feature_names=names,
        label_names=labels,
        name=HOSTILE,
        row_ids=[f"=row{row}" for row in range(300)],
    )
    found = audit(hostile)
    found.to_html(folder / "audit.html")
    shuffled = Y[np.random.default_rng(5).permutation(len(Y))]
    audit(X[:, :12], shuffled, name="shuffled").to_html(folder / "chance.html")
    only = np.random.default_rng(0).random((30, 1)).round(3)
    audit(only, (only > 0.5).astype(int), name="least").to_html(folder / "least.html")
    digits = load_digits_attributes()
    with chdir(folder):
        write(digits, Path("digits.csv"))
        for name, options in (("select", "-k 12 -m sum-f --stability 4"), ("auto", "-k auto")):
            command = f"select digits.csv {options} --check-labels --html {name}.html -q"
            assert main(command.split()) == 0
        assert main(["issues", "digits.csv", "--html", "issues.html", "-q"]) == 0
    return {path.stem: path.as_uri() for path in folder.glob("*.html")} | {"found": found}


@pytest.fixture
def open_page(open_tab):  # noqa: F811
    """Open an audit page and wait until its script has drawn it."""

    def open_(address, **options):
        tab = open_tab(address, **options)
        tab.page.wait_for_selector('html[data-ready="1"]')
        return tab

    return open_


@pytest.fixture
def page(open_page, pages):
    return open_page(pages["audit"])


def test_the_slider_changes_the_kept_columns_and_texts(page, pages):
    best = pages["found"].size_curve.best
    assert page.text("#keptwords").startswith(f"{best} of {N_COLUMNS} ")
    page.key("ArrowRight", "#kept")
    assert page.text("#keptwords").startswith(f"{best + 1} of {N_COLUMNS} ")
    page.key("Home")
    assert page.text("#columnwords").startswith(f"1 of {N_COLUMNS} ")
    assert page.count("#columnrows tr:not(.out)") == 1
    assert page.attribute("#kept", "aria-valuetext").startswith(f"1 of {N_COLUMNS}")
    page.key("End")
    assert page.count("#columnrows tr.out") == 0
    for size in (1, 7, N_COLUMNS):
        page.type("#exact", str(size))
        # The thumb is aligned with the line on the curve.
        gap = page.run(
            "(() => { const slider = document.querySelector('#kept'), box = slider.getBoundingClientRect(),"
            "line = document.querySelector('#curve .cross').getBoundingClientRect();"
            "return box.left + 9 + (box.width - 18) * slider.value / 1000 - (line.left + line.width / 2); })()"
        )
        assert abs(gap) < 1.5
        curve = pages["found"].size_curve
        expected = np.interp(np.log(size), np.log(curve.sizes), curve.mean)
        assert abs(float(page.text("#precision")) - expected) < 0.006
    page.click("#best")
    assert page.text("#keptwords").startswith(f"{best} of {N_COLUMNS} ")
    page.assert_clean()


def test_columns_are_searched_sorted_and_paged(page, pages):
    found = pages["found"]
    assert page.texts("#columnrows .fname bdi")[:3] == list(found.columns.column[:3])
    page.type("#columnsearch", "onerror")
    assert page.texts("#columnrows .fname bdi") == [HOSTILE]
    page.type("#columnsearch", "no such column")
    assert not page.run("document.querySelector('#nocolumn').hidden")
    page.type("#columnsearch", "")
    page.click("#columntable th[data-sort=stability] button")
    assert page.attribute("#columntable th[data-sort=stability]", "aria-sort") == "descending"
    shares = [int(text.split("/")[0]) for text in page.texts("#columnrows .c-q .num")]
    assert shares == sorted(shares, reverse=True)
    page.click("#columnpager button:nth-child(2)")
    assert page.text("#columnpager span").startswith("21–40 of 40")
    assert page.run("document.activeElement.getAttribute('aria-label')") == "previous page"
    page.assert_clean()


def test_a_label_filters_the_whole_page_and_is_cleared(page, pages):
    issues = pages["found"].label_issues
    page.click("#maptable th.l:nth-child(4) button")
    assert page.run("document.querySelector('#label').value") == "2"
    assert "ünïcode" in page.text("#columnwords")
    assert set(page.texts("#issuerows .d-l")) <= {"ünïcode 🙈"}
    pile = (issues.issues.labels[issues.listed[: issues.n_flagged]] == 2).sum()
    assert page.text("#say").startswith(f"{pile} of ")
    page.click("#clear")
    assert page.run("document.querySelector('#label').value") == "-1"
    assert page.text("#say").startswith(f"{issues.n_flagged} of ")
    assert page.run("document.activeElement.id") == "label"
    page.assert_clean()


def test_a_label_to_review_lists_the_stated_number(page):
    number = page.text("#labelrows .l-r .link").split()[-1]
    page.click("#labelrows .l-r .link")
    assert page.text("#say").startswith(f"{number} of ")
    assert f" {number} " in page.text("#export")
    page.assert_clean()


def test_the_export_has_the_listed_rows_and_no_formulas(page, pages):
    page.key("Home", "#cut")
    for _ in range(3):
        page.key("ArrowRight", "#cut")
    assert page.text("#cutwords") == "4"
    # Intercept the download.
    page.run("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }; 0")
    page.click("#export")
    rows = list(csv.reader(io.StringIO(page.run("window.saved.text()"))))
    assert len(rows) == 5
    expected = pages["found"].flagged.head(4)
    assert [row[0] for row in rows[1:]] == [f"'{name}" for name in expected.row]
    np.testing.assert_allclose([float(row[2]) for row in rows[1:]], expected.support, atol=6e-4)
    assert all(cell[:1] not in "=+@" or not cell for row in rows[1:] for cell in row)
    page.assert_clean()


def test_drawers_show_details_that_add_up(page):
    page.click("#issuerows .fname")
    assert page.run("document.querySelector('#drawer').open")
    parts = [float(text.replace("−", "-")) for text in page.texts("#parts .num")]
    total = float(page.text(".part.sum .num").replace("−", "-"))
    assert abs(sum(parts) - total) <= 0.005 * (len(parts) + 1)
    page.key("Escape")
    assert not page.run("document.querySelector('#drawer').open")
    page.key("ArrowDown", '#maptable td[tabindex="0"]')
    page.key("ArrowRight")
    assert not page.run("document.querySelector('#tip').hidden")
    page.key("Enter")
    assert page.run("document.querySelector('#drawer').open")
    page.click("#drawer .serve:nth-child(2)")
    assert page.run("document.activeElement.classList.contains('serve')")
    page.key("Escape")
    assert page.run("document.activeElement.closest('#maptable') !== null")
    page.assert_clean()


def test_dark_mode_keeps_the_data_colors(page):
    colours = (
        "[getComputedStyle(document.body).backgroundColor,"
        "getComputedStyle(document.querySelector('#columnrows .bf')).fill,"
        "getComputedStyle(document.querySelector('#maptable td.on')).backgroundColor]"
    )
    light = page.run(colours)
    page.show("dark")
    dark = page.run(colours)
    assert (light[0], dark[0]) == ("rgb(255, 255, 255)", "rgb(20, 23, 27)")
    assert light[1:] == dark[1:]
    page.click("#theme")
    assert page.run(colours) == light
    page.click("#theme")
    assert page.run(colours) == dark
    page.assert_clean()


def test_a_phone_shows_everything_without_scrolling_sideways(open_page, pages):
    page = open_page(pages["audit"], width=320)
    assert page.count("#columnrows tr") == 10
    page.key("ArrowLeft", "#kept")
    page.page.locator("#label").select_option(value="1")
    page.click("#columnrows .fname")
    assert page.run("document.querySelector('#drawer').getBoundingClientRect().width") <= 320
    page.key("Escape")
    page.assert_clean()


def test_hostile_names_are_text_and_the_policy_blocks_scripts(page):
    assert page.text("h1") == HOSTILE
    assert page.count("img, iframe, b[onclick]") == 0
    assert page.count("script") == 2
    page.assert_clean()
    page.run(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.injected = 1'})); 0"
    )
    assert page.run("typeof window.injected") == "undefined"
    page.run("document.body.insertAdjacentHTML('beforeend', '<p id=styled style=\"color: red\">x</p>')")
    assert page.run("getComputedStyle(document.querySelector('#styled')).color") != "rgb(255, 0, 0)"


def test_printing_shows_the_kept_columns_on_white_paper(page):
    page.show("dark", media="print")
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('#bar')).display") == "none"
    assert page.count("#issuerows tr") <= 30
    page.run("dispatchEvent(new Event('afterprint'))")
    page.show()


@pytest.mark.parametrize("kind", ["chance", "least"])
def test_unusual_tables_have_pages(open_page, pages, kind):
    page = open_page(pages[kind])
    assert (page.count(".banner") > 0) == (kind == "chance")
    for selector in ("#columnrows .fname", "#issuerows .fname"):
        page.click(selector)
        page.key("Escape")
    assert "NaN" not in page.run("document.body.innerText")
    assert "undefined" not in page.run("document.body.innerText")
    page.assert_clean()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["select", "auto", "issues"])
def test_pages_of_other_commands_show_their_results(open_page, pages, kind, width):
    page = open_page(pages[kind], width=width)
    sections = {
        "#columns": kind != "issues",
        "#map": kind != "issues",
        "#kept": kind == "auto",
        "#issues": True,
    }
    assert {selector: page.count(selector) > 0 for selector in sections} == sections
    links = page.run("[...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href'))")
    assert all(page.count(link) == 1 for link in links)
    page.click("#labelrows .lname")
    assert page.run("document.querySelector('#label').value") != "-1"
    chosen = page.text('#labelrows .lname[aria-pressed="true"]')
    assert set(page.texts("#issuerows .d-l")) == {chosen}
    page.click("#clear")
    page.click("#issuerows .fname")
    assert page.count("#parts .part") >= 3
    page.key("Escape")
    if kind != "issues":
        page.click("#columnrows .fname")
        assert page.run("document.querySelector('#drawer').open")
        page.key("Escape")
    if kind == "auto":
        page.key("Home", "#kept")
        assert page.text("#columnwords").startswith("1 of 64 ")
    if kind == "select":
        assert page.text("#columnwords").startswith("12 of 64 ")
        scores = [float(text) for text in page.texts("#columnrows .c-e .num")]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > 0
    page.type("#issuesearch", "no such row")
    assert " 0 " in page.text("#export")
    page.run("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))")
    assert not {"NaN", "undefined"} & set(page.run("document.body.innerText").split())
    page.assert_clean()


def test_without_javascript_the_answers_are_visible(open_tab, pages):  # noqa: F811
    tab = open_tab(pages["audit"], script=False)
    assert tab.page.get_by_text("How many should you keep?").first.is_visible()
