"""Report page in a real browser."""

import json

import pytest

from browser import chromium, open_tab  # noqa: F401  fixtures
from labelsieve.report.page import make_report, render_report
from synthetic_runs import make_summary, noisy

pytestmark = pytest.mark.slow

TABLE = 'table[data-table="ranking_loss"]'
CURVES = "#curves"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Address of a page with charts."""
    run = make_summary(
        noisy(),
        datasets=("one", "two", "ten"),
        methods=("a", "b", "c"),
        references=("no-features", "random-ranking"),
        classifiers=("linear-svm", "ml-knn"),
        skip=lambda dataset, method, **_: (dataset, method) == ("two", "c"),
    )
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(render_report(make_report(run)), "utf-8")
    return path.as_uri()


@pytest.fixture
def tab(open_tab, address):  # noqa: F811
    return open_tab(address)


def column(tab, place):
    """Return the numbers of a column in row order, None for missing."""
    return tab.run(
        f"[...document.querySelector('{TABLE}').tBodies[0].rows].map((row) => row.cells[{place}].textContent)"
        ".map((text) => text.trim() === '–' ? null : parseFloat(text))"
    )


def head(place):
    return f"{TABLE} thead tr:nth-child(2) > :nth-child({place + 1})"


def select(section, place):
    return f"#{section} select >> nth={place}"


def drawn(tab):
    """Return the names at the ends of the curves."""
    return set(tab.texts(f"{CURVES} svg.lines .label"))


def tip(tab):
    """Return the lines of the tooltip, None if hidden."""
    return tab.texts("#tip > *") if tab.page.locator("#tip").is_visible() else None


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_shows_tables_and_figures_without_errors_or_requests(open_tab, address, width):  # noqa: F811
    tab = open_tab(address, width=width)
    assert tab.count(".findings .first") == 1
    assert tab.count("table.sortable") >= 8
    charts = tab.run("[...document.querySelectorAll('figure')].map((one) => one.dataset.chart)")
    assert charts == ["ranks", "curves", "costs", "convergence", "stability"]
    assert tab.run("[...document.querySelectorAll('.stage svg')].every((svg) => svg.getBBox().width > 100)")
    tab.assert_clean()


def test_a_click_or_a_key_sorts_and_another_reverses_the_order(tab):
    before = column(tab, 1)
    tab.click(f"{head(1)} button")
    assert column(tab, 1) == sorted(before)
    assert tab.attribute(head(1), "aria-sort") == "ascending"
    tab.key("Enter", f"{head(1)} button")
    assert column(tab, 1) == sorted(before, reverse=True)
    assert tab.attribute(head(1), "aria-sort") == "descending"
    for _ in range(2):
        tab.key("Space", f"{head(3)} button")
        assert [value is None for value in column(tab, 3)] == [False, False, True]  # gaps stay last
    assert tab.attribute(head(1), "aria-sort") == "none"
    tab.click(f"{head(0)} button")
    assert tab.texts(f"{TABLE} tbody tr > :first-child") == ["one", "ten", "two"]
    # The averages stay in the footer.
    assert tab.text(f"{TABLE} tfoot tr > *") == "average rank"
    tab.assert_clean()


def test_pointing_at_a_chart_shows_method_dataset_and_value(tab):
    tab.choose(select("curves", 1), "all datasets")
    tab.page.locator(f"{CURVES} svg.lines").nth(1).locator("circle.control").first.hover()
    name, where, value = tip(tab)
    # The control is the first method; the panel is the second dataset at the smaller of two sizes.
    assert (name, where) == ("a", "two, features kept: 2")
    mean, _, spread = value.partition(" ± ")
    assert 0 < float(mean) < 1
    assert spread.endswith(" over folds")
    # Its line is highlighted in every panel.
    assert tab.count(f"{CURVES} polyline.hot") == 3
    tab.page.locator("h1").hover()
    assert tip(tab) is None
    assert tab.count(f"{CURVES} .hot") == 0
    tab.assert_clean()


def test_the_legend_switches_methods_off_and_on(tab):
    everything = {"a", "b", "c", "no-features", "random-ranking"}
    button = f"{CURVES} .legend button >> nth=1"
    assert drawn(tab) == everything
    tab.click(button)
    assert drawn(tab) == everything - {"b"}
    assert tab.attribute(button, "aria-pressed") == "false"
    tab.key("Space", button)
    assert drawn(tab) == everything
    assert tab.attribute(button, "aria-pressed") == "true"


def test_choosing_a_metric_changes_all_charts_and_tables(tab):
    shown = (
        "[...document.querySelectorAll('#metrics .table')]"
        ".filter((e) => e.offsetParent).map((e) => e.dataset.metric)"
    )
    assert tab.run(shown) == ["Ranking loss ↓"]
    line = f"{CURVES} polyline.control"
    before = tab.attribute(line, "points")
    tab.choose(select("metrics", 0), "Average precision ↑")
    assert tab.run(shown) == ["Average precision ↑"]
    assert tab.attribute(line, "points") != before
    ranks = "document.querySelector('#ranks select').selectedOptions[0].text"
    assert tab.run(ranks) == "Average precision ↑"
    assert "higher is better" in tab.text(f"{CURVES} svg")
    # Another classifier or dataset gives other lines.
    for place, text in ((2, "ml-knn"), (1, "ten")):
        before = tab.attribute(line, "points")
        tab.choose(select("curves", place), text)
        assert tab.attribute(line, "points") != before
    tab.assert_clean()


def test_the_standard_deviation_in_tables_can_be_chosen(tab):
    seen = "[...document.querySelector('#metrics .table').querySelectorAll('small, p')].filter((e) => e.offsetParent)"
    kinds = f"[...new Set({seen}.map((e) => e.classList.contains('sizes') ? 'sizes' : 'folds'))]"
    assert tab.run(kinds) == ["folds"]
    tab.choose(select("metrics", 1), "over sizes")
    assert tab.run(kinds) == ["sizes"]
    tab.choose(select("metrics", 1), "hidden")
    assert tab.run(f"{seen}.filter((e) => e.tagName === 'SMALL').length") == 0


def test_arrow_keys_go_from_point_to_point(tab):
    tab.key("ArrowRight", f"{CURVES} svg.lines")
    assert tip(tab)[:2] == ["a", "one, features kept: 2"]
    tab.key("ArrowRight")
    assert tip(tab)[:2] == ["a", "one, features kept: 4"]
    assert tab.text(f"{CURVES} [aria-live]").startswith("a, one, features kept: 4: ")
    tab.key("ArrowLeft")
    # Up: the next larger value among the other lines at the same size, constant lines included.
    data = json.loads(tab.text("#data"))
    first = {place: row["y"][0] for place, row in data["charts"]["curves"]["panels"]["0,0,0"]["rows"].items()}
    above = [place for place in first if first[place] > first["0"]]
    assert above, "the test needs a line above the control's"
    tab.key("ArrowUp")
    assert tip(tab)[0] == data["series"][int(min(above, key=first.__getitem__))]["name"]
    tab.key("Escape")
    assert tip(tab) is None


def test_data_colors_are_the_same_in_dark_mode_and_print_is_light(tab):
    look = (
        "[getComputedStyle(document.body).backgroundColor,"
        "getComputedStyle(document.querySelector('#curves polyline.control')).stroke,"
        "getComputedStyle(document.querySelector('#curves .controls')).display,"
        "[...document.querySelectorAll('#metrics .table')].filter((e) => e.offsetParent).length]"
    )
    looks = []
    for theme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        tab.show(theme, media)
        looks.append(tab.run(look))
    white, blue = "rgb(255, 255, 255)", "rgb(31, 119, 180)"
    # In print, all metric tables are shown and there are no menus.
    assert looks == [
        [white, blue, "flex", 1],
        ["rgb(20, 23, 27)", blue, "flex", 1],
        [white, blue, "none", 2],
    ]


def test_without_javascript_texts_and_tables_are_visible(open_tab, address):  # noqa: F811
    tab = open_tab(address, script=False)
    assert tab.count("#metrics .table") == 2
    for selector in ("#metrics .table", ".findings p", "#ranks table", "#curves noscript p"):
        assert all(one.is_visible() for one in tab.page.locator(selector).all())
    assert [one.is_visible() for one in tab.page.locator("figure.chart").all()] == [False] * 5


def test_the_policy_blocks_network_and_other_scripts(tab):
    """Check that `assert_clean` would detect violations."""
    assert tab.run("fetch('http://127.0.0.1:9/').then(() => 'reached', () => 'rejected')") == "rejected"
    tab.run(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.injected = 1'}))"
    )
    assert tab.run("typeof window.injected") == "undefined"
    assert "Content Security Policy" in " ".join(tab.errors)
