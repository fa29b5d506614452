from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.legend import Legend
from PIL import Image
from scipy.spatial.distance import pdist

from labelsieve._figures import ACCENT, FAINT, chart_style
from labelsieve.report.charts.against_paper import draw_against_paper
from labelsieve.report.charts.bars import draw_ablation, draw_costs, draw_stability, draw_win_tie_loss
from labelsieve.report.charts.cd_diagram import draw_cd_diagram, draw_control_diagram
from labelsieve.report.charts.curves import (
    Curve,
    draw_noise_curves,
    draw_objectives,
    draw_sensitivity_curves,
    draw_size_curves,
)
from labelsieve.report.charts.heatmap import draw_sensitivity_surface
from labelsieve.report.charts.method_styles import MethodStyles, shorten

NAN = float("nan")
HOSTILE = ("$x_1$", "50%_&<b>", "</svg>", 'a"b', "$", "{{ 1 }}")


def curves(names, x=(1, 2, 3, 4), missing=False):
    y = np.full(len(x), NAN) if missing else np.linspace(0.2, 0.4, len(x))
    return {name: Curve(x, y + place) for place, name in enumerate(names)}


def surface(names, missing=False):
    value = NAN if missing else 0.25
    return draw_sensitivity_surface(
        np.full((len(names), 1), value),
        rows=range(1, len(names) + 1),
        columns=[0.1],
        row_name=names[0],
        column_name=names[-1],
        title=names[0],
        direction="lower",
    )


# Every drawing function, for any names, with values that are there or all missing.
FIGURES = {
    "size": lambda names, **kind: draw_size_curves(
        {names[0]: curves(names, **kind), "other": curves(names[:1], x=(1,), **kind)},
        title=names[0],
        direction="lower",
        styles=MethodStyles(tuple(names), control=names[0]),
    ),
    "noise": lambda names, **kind: draw_noise_curves(
        {names[0]: curves(names, **kind)}, title=names[-1], direction={names[0]: "higher"}
    ),
    "sensitivity": lambda names, **kind: draw_sensitivity_curves(
        {names[0]: curves(names, x=(0.001, 1, 1000), **kind)}, title=names[0], direction="higher"
    ),
    "surface": surface,
    "objectives": lambda names, missing=False: draw_objectives(
        {names[0]: {name: [NAN, NAN] if missing else [8.0, 4.0, 2.0] for name in names}}
    ),
    "win-tie-loss": lambda names, missing=False: draw_win_tie_loss(
        dict.fromkeys(names, (NAN,) * 4 if missing else (5, 1, 2, 0.01)), control=names[0], title=names[0]
    ),
    "costs": lambda names, missing=False: draw_costs(
        {"time (s)": {name: {names[0]: NAN if missing else 0.5, "yeast": NAN} for name in names}},
        title=names[0],
    ),
    "stability": lambda names, missing=False: draw_stability(
        {measure: {name: NAN if missing else [0.2, 0.4] for name in names} for measure in ("A", names[0])}
    ),
    "ablation": lambda names, missing=False: draw_ablation(
        {data: dict.fromkeys(names, NAN if missing else (0.3, 0.1)) for data in (names[0], "x")},
        title=names[0],
        direction="higher",
    ),
    "paper": lambda names, missing=False: draw_against_paper(
        {names[0]: {name: (NAN, 0.2) if missing else ([0.1, 0.5], [0.2, 0.3]) for name in names}},
        notes={names[0]: names[-1]},
    ),
    "cd": lambda names, missing=False: draw_cd_diagram(
        {name: NAN if missing and place else 1.0 + place for place, name in enumerate(names)},
        cd=2.0,
        title=names[0],
    ),
    "control": lambda names, missing=False: draw_control_diagram(
        {name: NAN if missing and place else 1.0 + place for place, name in enumerate(names)},
        cd=2.0,
        control=names[0],
        title=names[0],
    ),
}
every_figure = pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)


def svg(picture):
    with TemporaryDirectory() as folder:
        (path,) = picture.save(Path(folder), "figure", ["svg"])
        return path.read_text(encoding="utf-8")


def texts(picture):
    return texts_of(svg(picture))


def texts_of(written):
    root = ElementTree.fromstring(written)
    return [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def lines(picture, panel=0):
    return picture.figure.axes[panel].lines


@every_figure
def test_names_are_drawn_letter_by_letter_whatever_matplotlib_is_set_to(draw):
    written = svg(draw(HOSTILE))
    drawn = texts_of(written)
    # Titles and remarks may surround a name.
    named = HOSTILE if draw is not surface else (HOSTILE[0], HOSTILE[-1])
    for name in named:
        assert any(name in text for text in drawn), name
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 9, "axes.facecolor": "red", "axes.grid": True}):
        assert svg(draw(HOSTILE)) == written


@every_figure
def test_missing_values_leave_a_figure(draw):
    assert texts(draw(["a", "b"], missing=True))


@every_figure
@pytest.mark.parametrize("n_names", [1, 16])
def test_nothing_is_cut_off_however_long_the_names(draw, n_names):
    names = [f"a method of an exceedingly long name and {i} parameters, alpha={i}" for i in range(n_names)]
    picture = draw(names)
    drawn = texts(picture)
    # The end of a name is what tells it from the others.
    for name in names if draw is not surface else names[:1]:
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


def test_names_of_other_scripts_are_drawn_and_unprintable_letters_escaped(tmp_path):
    picture = draw_costs(
        {"time (s)": {"\u540d\u524d": {"birds": 1.0}, "a\x00b\n": {"birds": 2.0}, "\uffff": {"birds": 1.0}}}
    )
    assert {"\u540d\u524d", r"a\x00b"} <= set(texts(picture))
    picture.save(tmp_path, "figure")


def test_files_are_the_same_byte_by_byte(tmp_path):
    def write(folder):
        return [path.read_bytes() for path in FIGURES["cd"](["a", "b"]).save(folder, "figure")]

    assert write(tmp_path / "first") == write(tmp_path / "second")


def test_files_of_all_formats_open_and_hold_no_date(tmp_path):
    pdf, svg, png = FIGURES["costs"](["mifs", "rfs"]).save(tmp_path, "costs")
    assert sorted(tmp_path.iterdir()) == sorted([pdf, svg, png])
    assert pdf.read_bytes().startswith(b"%PDF")
    assert b"Date" not in pdf.read_bytes()
    assert ElementTree.parse(svg).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert "date>" not in svg.read_text(encoding="utf-8")
    with Image.open(png) as image:
        image.load()
        assert image.width > 600


def test_a_figure_is_written_into_its_folder_only(tmp_path):
    picture = FIGURES["costs"](["mifs"])
    with pytest.raises(ValueError, match=r"stem must be a file name without folders. Got '\.\./up'"):
        picture.save(tmp_path, "../up")


def test_a_figure_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("os.replace", lambda *args: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        FIGURES["costs"](["mifs"]).save(tmp_path, "costs")
    assert list(tmp_path.iterdir()) == []


def test_curves_show_the_data_with_gaps_and_lonely_points_marked():
    y = [0.3, NAN, 0.2, NAN, 0.4, 0.5, 0.6, 0.5, 0.4, 0.3, 0.2]
    styles = MethodStyles(("method",), ("reference",))
    panels = {"birds": {name: Curve(range(11), y) for name in styles.names}}
    picture = draw_size_curves(panels, title="loss", direction="lower", styles=styles)
    for line in lines(picture):
        np.testing.assert_array_equal(line.get_xdata(), range(11))
        np.testing.assert_array_equal(line.get_ydata(), y)
        assert {0, 2} <= set(line.get_markevery())
    assert lines(picture)[1].get_markevery() == [0, 2]


def test_a_value_without_a_place_is_a_level():
    panels = {"birds": {"m": Curve([5, 10], [0.1, 0.2]), "all-features": Curve(None, 0.15)}}
    styles = MethodStyles(("m",), ("all-features",), control="m")
    picture = draw_size_curves(panels, title="loss", direction="lower", styles=styles)
    control, level = lines(picture)
    np.testing.assert_array_equal(level.get_ydata(), [0.15, 0.15])
    assert (control.get_color(), level.get_color()) == (ACCENT, FAINT)
    assert control.get_linewidth() > level.get_linewidth()
    assert level.get_linestyle() == "--"


def test_level_curves_are_not_magnified_until_their_rounding_shows():
    flat = {"a": Curve((1, 2), (0.0, 0.0)), "b": Curve((1, 2), (1e-17, 0.0))}
    picture = draw_size_curves({"data": flat}, title="t", direction="higher")
    bottom, top = picture.figure.axes[0].get_ylim()
    assert top - bottom == pytest.approx(0.1)


def test_directions_stand_in_the_title_of_all_panels_or_of_each():
    panels = {"loss": curves("a"), "precision": curves("a")}
    shared = texts(draw_noise_curves(panels, title="loss", direction="lower"))
    assert "loss   ↓ lower is better" in shared
    own = draw_noise_curves(panels, title="birds", direction={"loss": "lower", "precision": "higher"})
    assert {"birds", "↓ lower is better", "↑ higher is better"} <= set(texts(own))
    with pytest.raises(ValueError, match=r"direction must be .* Got 'up'"):
        draw_noise_curves(panels, title="loss", direction="up")


def test_axes_say_their_units_where_they_differ():
    # Water quality stands below birds, and nothing below yeast.
    panels = dict.fromkeys(("birds", "yeast", "water_quality"), curves("a"))
    units = {"birds": "percent", "yeast": "percent", "water_quality": "count"}
    picture = draw_size_curves(panels, title="loss", direction="lower", unit=units)
    share = "share of features (%)"
    assert [axes.get_xlabel() for axes in picture.figure.axes[:3]] == [share, share, "number of features"]
    same = draw_size_curves(panels, title="loss", direction="lower")
    assert [axes.get_xlabel() for axes in same.figure.axes[:3]] == ["", share, share]


def test_curves_of_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match=r"x and y of a curve must be equally long. Got 2 and 1"):
        draw_noise_curves({"birds": {"a": Curve([1, 2], [1])}}, title="loss", direction="lower")


def test_a_figure_of_nothing_is_refused():
    for draw in (
        lambda: draw_noise_curves({}, title="loss", direction="lower"),
        lambda: draw_win_tie_loss({}, control="a"),
        lambda: draw_ablation({}, title="loss", direction="lower"),
        lambda: draw_cd_diagram({"a": NAN}, cd=1),
    ):
        with pytest.raises(ValueError, match=r"A figure needs something to show. Got nothing"):
            draw()


def test_a_parameter_of_zero_has_a_place_left_of_the_others():
    picture = draw_sensitivity_curves(
        {"alpha": {"birds": Curve([0, 0.01, 1], [0.1, 0.2, 0.3])}}, title="loss", direction="lower"
    )
    (axes,) = picture.figure.axes
    places = axes.transData.transform([(0, 0), (0.01, 0), (1, 0)])[:, 0]
    assert (np.diff(places) > 0).all()
    assert {"0", "0.01", "1"} <= set(texts(picture))


def test_objectives_start_at_one_and_a_negative_one_at_minus_one():
    picture = draw_objectives({"m": {"a": [4.0, 2.0], "b": [-2.0, -3.0], "c": [0.0, -1.0]}})
    np.testing.assert_array_equal(
        [line.get_ydata() for line in lines(picture)], [[1, 0.5], [-1, -1.5], [0, -1]]
    )


def test_every_method_looks_different_and_the_same_in_every_figure():
    names = tuple(f"m{i}" for i in range(16))
    styles = MethodStyles(names, ("r1", "r2"), control="m3")
    looks = [{**styles.line(name), "zorder": 0} for name in styles.names]
    assert len({str((look["color"], look.get("linestyle"))) for look in looks}) == len(looks)
    few = draw_noise_curves({"x": curves(["m5", "m9"])}, title="loss", direction="lower", styles=styles)
    assert [line.get_color() for line in lines(few)] == [styles.color("m5"), styles.color("m9")]


def test_colours_are_apart_for_every_colour_vision():
    # Machado et al., "A physiologically-based model for simulation of color vision deficiency", IEEE TVCG
    # 2009: what remains of linear red, green and blue without one kind of cone.
    visions = {
        "normal": np.eye(3),
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ],
        "tritanopia": [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.3039],
        ],
    }
    names = tuple("abcdefgh")
    styles = MethodStyles((*names, "control"), ("reference",), control="control")
    rgb = np.array([mpl.colors.to_rgb(styles.color(name)) for name in styles.names])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    for vision, matrix in visions.items():
        xyz = np.clip(linear @ np.transpose(matrix), 0, 1) @ to_xyz.T / to_xyz.sum(axis=1)
        root = np.cbrt(xyz)  # no colour here is so dark that CIE Lab would be linear
        lab = np.column_stack(
            [116 * root[:, 1], 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])]
        )
        assert pdist(lab).min() > 10, vision


def test_a_name_without_a_style_is_refused():
    with pytest.raises(ValueError, match=r"Every name must be one of \['a'\]. Got 'b'"):
        draw_noise_curves({"x": curves("ab")}, title="loss", direction="lower", styles=MethodStyles(("a",)))
    with pytest.raises(ValueError, match=r"control must be one of \['a'\]. Got 'b'"):
        MethodStyles(("a",), control="b")


def test_names_that_would_become_equal_stay_whole():
    alike = ["a" * 30 + letter + "z" * 30 for letter in "xy"]
    assert list(shorten(alike, 20).values()) == alike


def test_bars_of_wins_ties_and_losses_are_as_long_as_their_counts():
    picture = draw_win_tie_loss(
        {"a": (5, 1, 2, 0.0004), "b": (0, 0, 8, 0.2), "c": (4, 0, 4, NAN)}, control="m", alpha=0.05
    )
    bars = [(bar.get_x(), bar.get_width()) for bar in picture.figure.axes[0].patches]
    # All wins, then all ties, then all losses.
    assert bars == [(0, 5), (0, 0), (0, 4), (5, 1), (0, 0), (4, 0), (6, 2), (0, 8), (4, 4)]
    drawn = texts(picture)
    assert {"p < 0.001 *", "p = 0.200", "no p-value"} <= set(drawn)
    assert "0" not in drawn


def test_costs_have_a_dot_for_each_data_set_and_a_stroke_at_the_median():
    values = {"birds": 0.1, "cal500": 10.0, "yeast": 1.0}
    picture = draw_costs({"time (s)": {"a": values, "b": {"birds": 5.0}}})
    drawn = [line.get_xdata() for line in lines(picture)]
    np.testing.assert_array_equal(np.concatenate(drawn), [1.0, 1.0, 0.1, 10.0, 1.0, 5.0, 5.0, 5.0])
    assert picture.figure.axes[0].get_xscale() == "log"


def test_stability_is_the_mean_with_a_line_over_the_range():
    picture = draw_stability({"Kuncheva": {"a": [0.2, NAN, 0.6]}, "Jaccard": {"a": 0.5}})
    ends, mean, single = (line.get_xdata().tolist() for line in lines(picture)[:3])
    assert ends == [0.2, 0.6]
    assert mean == [pytest.approx(0.4)]
    assert single == [0.5]


def test_ablation_has_a_bar_and_an_error_bar_for_each_variant():
    picture = draw_ablation(
        {"birds": {"whole": (0.3, 0.1), "part": 0.2}, "yeast": {"whole": (0.4, 0.1)}},
        title="loss",
        direction="lower",
    )
    (axes,) = picture.figure.axes
    heights = np.array([bar.get_height() for bar in axes.patches])
    np.testing.assert_array_equal(heights, [0.3, 0.4, 0.2, NAN])
    ends = [segment[:, 1] for bars in axes.collections for segment in bars.get_segments()]
    np.testing.assert_allclose(ends, [[0.2, 0.4], [0.3, 0.5]])


def test_the_surface_says_every_value_and_frames_the_best():
    picture = draw_sensitivity_surface(
        [[0.3, 0.1], [NAN, 0.2]],
        rows=[0.1, 1e-5],
        columns=[1, 1e6],
        row_name="alpha",
        column_name="beta",
        title="loss",
        direction="lower",
    )
    assert {"0.300", "0.100", "0.200", "–", "10⁻⁵", "10⁶"} <= set(texts(picture))
    (frame,) = picture.figure.axes[0].patches
    assert (int(frame.get_x()), int(frame.get_y())) == (1, 0)
    with pytest.raises(
        ValueError, match=r"values must have the shape of the parameters \(1, 2\).* Got \(1, 1\)"
    ):
        draw_sensitivity_surface(
            [[1]], rows=[1], columns=[1, 2], row_name="a", column_name="b", title="", direction="lower"
        )


def test_points_lie_at_published_and_ours_and_the_diagonal_crosses_both_axes():
    picture = draw_against_paper(
        {"loss": {"a": ([0.1, 0.4, NAN], [0.2, 0.3, 0.5]), "b": (0.6, 0.5)}}, notes={"loss": "τ = 0.50"}
    )
    first, second, diagonal = lines(picture)
    np.testing.assert_array_equal(first.get_xydata(), [[0.1, 0.2], [0.4, 0.3]])
    np.testing.assert_array_equal(second.get_xydata(), [[0.6, 0.5]])
    axes = picture.figure.axes[0]
    np.testing.assert_array_equal(diagonal.get_xydata(), np.column_stack([axes.get_xlim(), axes.get_ylim()]))
    assert "τ = 0.50" in texts(picture)
