"""Leaderboard in a real browser. Its script must compute what Python computes."""

import re

import pytest

from browser import chromium, open_tab  # noqa: F401  fixtures
from labelsieve.report.cd_diagram import groups_not_different
from labelsieve.report.leaderboard import render_leaderboard, studies
from synthetic_runs import make_summary, noisy

pytestmark = pytest.mark.slow

BASE = {
    "noises": (("flip 0.2", 0.2), ("flip 0.4", 0.4)),
    "classifiers": ("linear-svm", "ml-knn"),
}
ROWS = (
    "[...document.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
)


def coarse(**place):
    """Values with ties and small differences."""
    return round(noisy()(**place) * 6) / 6 + noisy(1)(**place) / 2000


@pytest.fixture(scope="module")
def found():
    """Two studies. One method and one dataset lack results."""
    datasets = ("one", "two", "ten")
    references = ("no-features", "random-ranking")
    return studies(
        [
            (
                "x",
                make_summary(
                    coarse, datasets=datasets, methods=("a", "b", "=c"), references=references, **BASE
                ),
            ),
            ("y", make_summary(coarse, datasets=datasets, methods=("evidence",), **BASE)),
            ("z", make_summary(coarse, datasets=("two",), methods=("mine",), **BASE)),
            ("new", make_summary(coarse, datasets=("new",), methods=("mine", "a"), **BASE)),
            ("other", make_summary(coarse, methods=("p", "q"), n_folds=3)),
        ]
    )


@pytest.fixture(scope="module")
def address(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(render_leaderboard(found), "utf-8")
    return path.as_uri()


@pytest.fixture
def tab(open_tab, address):  # noqa: F811
    return open_tab(address)


def choose(tab, level, option):
    tab.choose(f'[data-filter="{level}s"]', option)


def assert_shows(tab, study, opponent, **chosen):
    standing, duels = study.standing(**chosen), study.duels(opponent, **chosen)
    rows = {row[0]: row for row in tab.run(ROWS)}
    assert set(rows) == set(standing.ranks)
    shown = [float(row[1]) for row in rows.values()]
    assert shown == sorted(shown)
    for name, rank in standing.ranks.items():
        assert float(rows[name][1]) == pytest.approx(rank, abs=0.0051)  # 4.125 is rounded in two ways
        assert rows[name][5] == ("–" if name == opponent else " / ".join(map(str, duels[name])))
    status = tab.text("#status")
    assert f"ranked in {standing.n_cells} comparisons on {len(standing.datasets)} dataset" in status
    difference = re.search(r"differ by ([\d.]+) to", status)
    assert (difference is None) == (standing.cd is None)
    assert difference is None or float(difference[1]) == pytest.approx(standing.cd, abs=0.0051)
    for name in standing.left_out:
        assert name in tab.text("#left-out")
    assert bool(standing.left_out) == ("Not ranked" in tab.text("#left-out"))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_has_no_errors_or_requests_and_fits(open_tab, address, found, width, theme):  # noqa: F811
    tab = open_tab(address, width=width, theme=theme)
    assert_shows(tab, found[0], "evidence")
    assert tab.run("document.querySelector('#chart svg').getBoundingClientRect().width") > 200
    assert tab.count("#chart circle") == len(found[0].standing().ranks)
    assert tab.count(".findings:visible") == 1
    tab.assert_clean()


@pytest.mark.parametrize(
    "chosen",
    [
        {"classifier": "ml-knn"},
        {"dataset": "two"},
        {"dataset": "new", "noise": "flip 0.4"},
        {"noise": "flip 0.2", "classifier": "linear-svm"},
    ],
)
def test_filters_give_the_numbers_of_python(tab, found, chosen):
    for level, option in chosen.items():
        choose(tab, level, option)
    opponent = tab.text("#opponent option:checked")
    assert opponent == "evidence" or "evidence" in found[0].standing(**chosen).left_out
    assert_shows(tab, found[0], opponent, **chosen)
    tab.assert_clean()


def test_a_metric_changes_ranks_and_means(tab, found):
    study = found[0]
    before = tab.text("#mean-head")
    assert "verage precision" in before
    choose(tab, "metric", "Ranking loss ↓")
    assert "anking loss" in tab.text("#mean-head")
    assert_shows(tab, study, "evidence", metric="ranking_loss")
    values = study.values.xs("ranking_loss", level="metric")[
        study.is_common.xs("ranking_loss", level="metric")
    ]
    for row in tab.run(ROWS):
        assert row[2] == f"{values[row[0]].mean():.3f}"


def test_costs_are_those_of_the_chosen_datasets(tab, found):
    choose(tab, "dataset", "one")
    rows = {row[0]: row[3:5] for row in tab.run(ROWS)}
    assert rows["a"] == ["1", "11"]  # mean seconds and largest peak of two folds
    choose(tab, "dataset", "all")
    costs = [
        cost for cost in found[0].summary.facts.costs if cost["method"] == "a" and cost["dataset"] != "new"
    ]
    assert [float(cell) for cell in next(row[3:5] for row in tab.run(ROWS) if row[0] == "a")] == [
        sum(cost["seconds"] for cost in costs) / 3,
        max(cost["peak_mib"] for cost in costs),
    ]


def test_another_opponent_stays_chosen(tab, found):
    tab.choose("#opponent", "b")
    assert_shows(tab, found[0], "b")
    choose(tab, "classifier", "ml-knn")
    assert_shows(tab, found[0], "b", classifier="ml-knn")
    assert tab.count("#chart .dot.control") == 1


def test_the_order_of_a_sorted_table_survives_a_filter(tab):
    tab.click("thead th:nth-child(1) button")
    names = [row[0] for row in tab.run(ROWS)]
    assert names == sorted(names)
    choose(tab, "classifier", "ml-knn")
    assert [row[0] for row in tab.run(ROWS)] == names
    assert tab.attribute("thead th:nth-child(1)", "aria-sort") == "ascending"


def test_bars_join_methods_that_do_not_differ(tab, found):
    standing = found[0].standing()
    assert tab.count("#chart line.group") == len(
        groups_not_different(list(standing.ranks.values()), standing.cd)
    )
    assert len(standing.ranks) > 2


def test_a_dataset_of_few_methods_is_named(tab):
    assert "no results there: new" in tab.text("#left-out")


def test_another_study_has_its_own_findings_and_filters(tab, found):
    first = tab.texts(".findings:visible .first")
    tab.choose("#study", found[1].name)
    assert tab.texts(".findings:visible .first") != first
    rows = tab.run(ROWS)
    assert {row[0] for row in rows} == {"p", "q"}
    assert_shows(tab, found[1], rows[0][0])
    assert tab.texts("[data-filter=classifiers] option") == ["linear-svm"]
    tab.assert_clean()


def test_without_javascript_the_findings_of_all_studies_are_visible(open_tab, address):  # noqa: F811
    tab = open_tab(address, script=False)
    assert tab.count(".findings:visible") == 2
    assert tab.count("#ranks:visible") == 0
    assert tab.count("noscript p") == 1
