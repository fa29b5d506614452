"""Data of charts, on the page and in figures."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.legend import Legend
from PIL import Image

from labelsieve._figures import ACCENT, FAINT, chart_style
from labelsieve.report.analysis import analyse
from labelsieve.report.cd_diagram import draw_cd_diagram, shorten
from labelsieve.report.charts import Chart, Menu, Panel, Series, charts_of, page_charts
from labelsieve.report.figures import draw_chart, draw_figures
from synthetic_runs import PAPER_DATASETS, PAPER_METHODS, PRINTED, make_summary, noisy, ranked

NAN = float("nan")
HOSTILE = ("$x_1$", "50%_&<b>", "</svg>", 'a"b', "$", "{{ 1 }}")


def made(run):
    """Return the charts of the page of a run."""
    analysis = analyse(run)
    return page_charts(analysis, charts_of(analysis))


# data


def test_a_chart_draws_the_numbers_of_its_run():
    run = make_summary(noisy(), references=("no-features",), classifiers=("linear-svm", "ml-knn"))
    found = made(run)
    assert [one["name"] for one in found["series"]] == ["a", "b", "no-features"]
    chart = found["charts"]["curves"]
    assert [choice["options"] for choice in chart["choices"]] == [
        ["Ranking loss ↓", "Average precision ↑"],
        ["one", "two"],
        ["linear-svm", "ml-knn"],
    ]
    assert chart["choices"][0]["better"] == ["lower", "higher"]
    assert len(chart["panels"]) == 2 * 2 * 2
    # Second metric, first dataset, second judge; second method.
    row = chart["panels"]["1,0,1"]["rows"][1]
    key = "dataset == 'one' and method == 'b' and classifier == 'ml-knn' and metric == 'average_precision'"
    curve = run.means.query(key)
    assert row["x"] == curve["n_features"].tolist()
    np.testing.assert_allclose(row["y"], curve["mean"], rtol=1e-3)
    np.testing.assert_allclose(row["e"], curve["fold_std"], rtol=1e-3)
    # A reference without sizes is a horizontal line.
    assert chart["panels"]["1,0,1"]["rows"][2]["x"] is None


def test_ranks_are_those_of_the_tables():
    run = make_summary(ranked(("b", "a", "c")), methods=("a", "b", "c"), datasets=("one", "two", "ten"))
    chart = made(run)["charts"]["ranks"]
    overall = chart["panels"]["0"]
    assert {place: row["main"] for place, row in overall["rows"].items()} == {1: 1.0, 0: 2.0, 2: 3.0}
    assert overall["items"] == ["Ranking loss ↓", "Average precision ↑"]
    assert chart["panels"]["1"]["rows"][2] == {"main": 3.0, "items": [3.0] * 3}
    assert chart["panels"]["1"]["items"] == ["one", "two", "ten"]
    assert chart["band"] == pytest.approx(analyse(run).main.nemenyi_cd, rel=1e-3)


def test_the_best_and_the_control_are_shown_initially():
    names = tuple("abcdefgh")
    references = ("no-features", "all-features", "sum-f", "sum-mi")
    run = make_summary(
        ranked((*names, *references)), methods=names, references=references, metrics=("ranking_loss",), control="h"
    )  # fmt: skip
    series = made(run)["series"]
    assert [one["name"] for one in series if one["first"]] == [*"abcdh", *references[:3]]
    assert [one["name"] for one in series if one["control"]] == ["h"]
    assert [one["name"] for one in series if one["reference"]] == list(references)


def test_our_values_and_the_papers_are_charted_for_each_judge():
    def value(method, metric, dataset, classifier, **_):
        return PRINTED[metric, dataset, method] + 0.5 * (classifier == "other")

    run = make_summary(
        value,
        datasets=PAPER_DATASETS,
        methods=PAPER_METHODS,
        metrics=("ranking_loss",),
        classifiers=("one", "other"),
        n_folds=1,
    )
    panels = made(run)["charts"]["paper"]["panels"]
    for key, shift in (("0,0", 0), ("0,1", 0.5)):
        row = panels[key]["rows"][3]
        np.testing.assert_allclose(np.array(row["y"]) - row["x"], shift, atol=1e-3)
    assert panels["0,0"]["items"] == list(PAPER_DATASETS)


def test_sweeps_of_one_and_of_two_parameters_are_lines():
    sweeps = {f"m alpha={value:g}": {"alpha": value} for value in (1.0, 0.1)}  # lines are sorted by x
    sweeps |= {
        f"m alpha={first:g} beta={second:g}": {"alpha": first, "beta": second}
        for first in (0.1, 1.0)
        for second in (1.0, 10.0)
    }

    def value(method, dataset, **_):
        numbers = [float(part.partition("=")[2]) for part in method.split()[1:]]
        return sum(numbers) / 100 + 0.1 * (dataset == "two")

    run = make_summary(value, methods=(), sweeps=sweeps, metrics=("ranking_loss",))
    charts = made(run)["charts"]
    single, double = charts["sensitivity"], charts["settings"]
    assert single["panels"]["0,0,0"]["rows"][1] == {"x": [0.1, 1.0], "y": [0.101, 0.11]}
    assert [one["name"] for one in double["series"]] == ["beta = 1", "beta = 10"]
    # Means over two datasets, the second of which has 0.1 more.
    assert double["panels"]["0,0,0"]["rows"][1] == {"x": [0.1, 1.0], "y": [0.151, 0.16]}


@pytest.fixture(scope="module")
def rich():
    """Analysis of a run with gaps, hostile names and data for most charts."""
    return analyse(
        make_summary(
            noisy(),
            datasets=("one", "\x1b[2J"),
            methods=("a", "</script>\u202e", "c"),
            ablation=("whole", "part"),
            sweeps={f"m alpha={value:g}": {"alpha": value} for value in (0.0, 1.0, 10.0)},
            noises=(("flip 0.2", 0.2), ("flip 0.4", 0.4)),
            references=("random-ranking", "no-features"),
            classifiers=("linear-svm", "ml-knn"),
            n_folds=1,  # no deviation over folds
            skip=lambda dataset, method, **_: (dataset, method) == ("one", "a"),
        )
    )


def test_charts_with_gaps_and_hostile_names_are_valid_json(rich):
    found = page_charts(rich, charts_of(rich))
    text = json.dumps(found, allow_nan=False)
    assert "\\u001b" not in text
    assert [one["name"] for one in found["series"]][1] == "</script>\\u202e"
    assert set(found["charts"]) >= {"curves", "noise", "ablation", "costs", "convergence"}
    first = found["charts"]["curves"]["panels"]["0,0,0"]["rows"]
    assert 0 not in first
    assert first[1]["e"] == [None, None]


def test_every_figure_has_a_unique_name(rich, tmp_path):
    drawn = list(draw_figures(rich, charts_of(rich)))
    names = [name for name, _ in drawn]
    assert len(set(names)) == len(names)
    # Curves are drawn for the first classifier only, ablations and sweeps for both.
    assert {"curves_ranking_loss", "noise_average_precision", "costs", "convergence"} <= set(names)
    assert {"ablation_ranking_loss", "ablation_ranking_loss_2", "sensitivity_ranking_loss_2"} <= set(names)
    assert "curves_ranking_loss_2" not in names
    for name, picture in drawn:
        (path,) = picture.save(tmp_path, name, ["svg"])
        ElementTree.parse(path)


# figures


def series(names):
    return tuple(Series(name, control=place == 0) for place, name in enumerate(names))


def chart(kind, names, rows, **options):
    panel = Panel(dict(enumerate(rows)), tuple(names[:2]))
    across = Menu("dataset", (names[0], "other"))
    metric = Menu("metric", (names[-1],), ("lower",), ("loss",))
    panels = {(0, 0): panel, (0, 1): panel}
    return Chart(kind, (metric, across), panels, series(names), across="dataset", **options)


def only(drawn):
    (((_, picture)),) = drawn
    return picture


def lines_chart(names, missing=False):
    y = [NAN] * 3 if missing else [0.2, 0.3, 0.4]
    return only(
        draw_chart("x", chart("lines", names, [{"x": [1, 20, 300], "y": y}] * len(names), log_x=True))
    )


def dots_chart(names, missing=False):
    rows = [{"main": 0.3, "items": [0.2, NAN if missing else 0.4]}] * len(names)
    return only(draw_chart("x", chart("dots", names, rows, value="median", log_x=True)))


def scatter_chart(names, missing=False):
    rows = [{"x": [0.1, 0.4], "y": [NAN, NAN] if missing else [0.2, 0.3]}] * len(names)
    return only(draw_chart("x", chart("scatter", names, rows, x="printed", y="ours")))


def ranks(names, missing):
    return {name: NAN if missing and place else 1.0 + place for place, name in enumerate(names)}


# Functions that draw every kind of figure, with or without missing values.
FIGURES = {
    "lines": lines_chart,
    "dots": dots_chart,
    "scatter": scatter_chart,
    "cd": lambda names, missing=False: draw_cd_diagram(ranks(names, missing), cd=2.0, title=names[0]),
    "control": lambda names, missing=False: draw_cd_diagram(
        ranks(names, missing), cd=2.0, control=names[0], title=names[0], around_control=True
    ),
}
every_figure = pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)


def svg(picture):
    with TemporaryDirectory() as folder:
        (path,) = picture.save(Path(folder), "figure", ["svg"])
        return path.read_text(encoding="utf-8")


def texts(picture):
    root = ElementTree.fromstring(svg(picture))
    return [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


@every_figure
def test_names_are_drawn_literally_for_any_matplotlib_settings(draw):
    drawn = texts(draw(HOSTILE))
    for name in HOSTILE:
        assert any(name in text for text in drawn), name
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 9, "axes.facecolor": "red", "axes.grid": True}):
        assert texts(draw(HOSTILE)) == drawn


@every_figure
def test_figures_can_have_missing_values(draw):
    assert texts(draw(["a", "b"], missing=True))


@every_figure
@pytest.mark.parametrize("n_names", [1, 16])
def test_long_names_are_not_cut_off(draw, n_names):
    names = [f"a method of an exceedingly long name and {i} parameters, alpha={i}" for i in range(n_names)]
    picture = draw(names)
    drawn = texts(picture)
    # The names differ at the end.
    for name in names:
        assert any(text.endswith(name[-7:]) for text in drawn), name
    figure = picture.figure
    for legend in figure.findobj(Legend):
        legend.set_in_layout(True)
    with chart_style():
        box = figure.get_tightbbox()
    assert box.x0 > -0.01
    assert box.y0 > -0.01
    assert box.x1 < figure.get_figwidth() + 0.01
    assert box.y1 < figure.get_figheight() + 0.01


def test_files_of_all_formats_are_valid_and_reproducible(tmp_path):
    first, second = (lines_chart(["mifs", "rfs"]).save(tmp_path / name, "x") for name in ("first", "second"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    pdf, vector, png = first
    assert pdf.read_bytes().startswith(b"%PDF")
    assert b"Date" not in pdf.read_bytes()
    assert ElementTree.parse(vector).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    with Image.open(png) as image:
        image.load()
        assert image.width > 600


def draw_one(kind, rows, names=("a", "b"), **options):
    one = Chart(
        kind, (Menu("metric", ("loss",), ("lower",), ("loss",)),), {(0,): Panel(rows)}, names, **options
    )
    ((stem, picture),) = draw_chart("x", one)
    assert stem == "x_loss"
    return picture.figure.axes[0]


def test_curves_show_the_data_with_gaps_and_levels():
    y = [0.3, NAN, 0.2, NAN, 0.4, 0.5, 0.6, 0.5, 0.4, 0.3, 0.2]
    names = (Series("m", control=True), Series("reference", reference=True), Series("level", reference=True))
    row = {"x": list(range(11)), "y": y}
    control, reference, level = draw_one("lines", {0: row, 1: row, 2: {"x": None, "y": [0.15]}}, names).lines
    for line in (control, reference):
        np.testing.assert_array_equal(line.get_xdata(), range(11))
        np.testing.assert_array_equal(line.get_ydata(), y)
    assert level.get_ydata() == [0.15, 0.15]
    assert (control.get_color(), level.get_color()) == (ACCENT, FAINT)
    assert control.get_linewidth() > level.get_linewidth()


def test_constant_curves_are_not_magnified():
    rows = {0: {"x": [1, 2], "y": [0.0, 0.0]}, 1: {"x": [1, 2], "y": [1e-17, 0.0]}}
    bottom, top = draw_one("lines", rows, series("ab")).get_ylim()
    assert top - bottom == pytest.approx(0.1)


def test_zero_is_drawn_left_of_the_other_parameter_values():
    rows = {0: {"x": [0, 0.01, 1], "y": [0.1, 0.2, 0.3]}}
    axes = draw_one("lines", rows, series("a"), log_x=True)
    places = axes.transData.transform([(0, 0), (0.01, 0), (1, 0)])[:, 0]
    assert (np.diff(places) > 0).all()


def test_a_row_of_dots_shows_range_items_and_main_value():
    axes = draw_one("dots", {0: {"main": 1.0, "items": [0.1, NAN, 10.0]}}, series("a"), log_x=True)
    drawn = [line.get_xdata() for line in axes.lines]
    assert [values if isinstance(values, list) else values.tolist() for values in drawn] == [
        [0.1, 10.0],
        [0.1, 10.0],
        [1.0],
    ]
    assert axes.get_xscale() == "log"


def test_scatter_plots_show_our_values_by_the_papers_and_the_diagonal():
    axes = draw_one(
        "scatter", {0: {"x": [0.1, 0.4], "y": [0.2, 0.3]}, 1: {"x": [0.6], "y": [0.5]}}, series("ab")
    )
    first, second, diagonal = axes.lines
    np.testing.assert_array_equal(first.get_xydata(), [[0.1, 0.2], [0.4, 0.3]])
    np.testing.assert_array_equal(second.get_xydata(), [[0.6, 0.5]])
    np.testing.assert_array_equal(diagonal.get_xydata(), np.column_stack([axes.get_xlim(), axes.get_ylim()]))


# names


def test_names_that_would_become_equal_are_not_cut():
    alike = ["a" * 30 + letter + "z" * 30 for letter in "xy"]
    assert list(shorten(alike, 20).values()) == alike
