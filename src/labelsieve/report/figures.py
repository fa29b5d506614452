"""Matplotlib figures of a report, drawn from the data of its charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._figures import ACCENT, FAINT, INK, PageFigure, chart_style
from labelsieve.report.analysis import Analysis
from labelsieve.report.cd_diagram import WIDTH, draw_cd_diagram, shorten, text_width
from labelsieve.report.charts import Chart, Panel, Series
from labelsieve.report.tables import listed, metric_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 2
# Maximum lengths of the titles of panels and figures.
_PANEL_LETTERS, _TITLE_LETTERS = 30, 60
# More markers would hide the lines.
_FEW_POINTS, _MARKERS_PER_CURVE = 7, 3
# Smaller differences are rounding errors.
_ROUNDING = 1e-12
# Blue, orange and green are from Okabe and Ito, "Color universal design" (2008). With the other colours, the accent and
# the grey, all pairs differ by at least 10 in CIE Lab under simulated colour blindness (Machado et al. 2009).
# All are visible on white and black.
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#d98cc0", "#33bbcc", "#a0522d", "#bb99ff", "#bb9955")
_MARKERS = "s^DvPX<>phd*8H"
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.2)), (0, (1.5, 1)))
_REFERENCE_DASHES: tuple[Any, ...] = tuple(
    (0, pattern)
    for pattern in ((6, 2), (1.2, 1.6), (6, 2, 1.2, 2), (3, 3), (10, 3), (4, 1.5, 1, 1.5, 1, 1.5))
)


def draw_figures(analysis: Analysis, charts: Mapping[str, Chart]) -> Iterator[tuple[str, PageFigure]]:
    """Yield all figures with their file names."""
    yield from _rank_figures(analysis)
    for name, chart in charts.items():
        # Critical difference diagrams show the ranks.
        if name != "ranks":
            yield from draw_chart(name, chart)


def _rank_figures(analysis: Analysis) -> Iterator[tuple[str, PageFigure]]:
    main = analysis.main
    if main.nemenyi_cd is None:
        return
    control = main.control if main.has_control else None
    yield "cd", draw_cd_diagram(main.overall, main.nemenyi_cd, title="all metrics", control=control)
    for metric, averages in main.average_ranks.items():
        ranks, title = averages.to_dict(), metric_words(str(metric))
        yield f"cd_{metric}", draw_cd_diagram(ranks, main.nemenyi_cd, title=title, control=control)
        if main.bonferroni_dunn_cd is not None:
            critical = main.bonferroni_dunn_cd
            figure = draw_cd_diagram(ranks, critical, title=title, control=main.control, around_control=True)
            yield f"control_{metric}", figure


def draw_chart(name: str, chart: Chart) -> Iterator[tuple[str, PageFigure]]:
    """Draw a chart as one figure per combination of choices, with the options of `across` as panels."""
    figures: dict[tuple[str, str], dict[str, Panel]] = {}
    names = [choice.name for choice in chart.choices]
    for key, panel in sorted(chart.panels.items()):
        if chart.first_judge and dict(zip(names, key, strict=True)).get("judged by"):
            continue
        stem, across, titles = name, "", []
        for choice, option in zip(chart.choices, key, strict=True):
            if choice.name == chart.across:
                across = choice.options[option]
                continue
            # File names contain metrics and the numbers of other options except the first.
            stem += f"_{choice.files[option]}" if choice.files else f"_{option + 1}" if option else ""
            titles += [choice.options[option]] if choice.files or len(choice.options) > 1 else []
        figures.setdefault((stem, ", ".join(titles) or name), {})[across] = panel
    for (stem, title), panels in figures.items():
        yield stem, _draw(chart, panels, title)


@chart_style()
def _draw(chart: Chart, panels: Mapping[str, Panel], title: str) -> PageFigure:
    names = [one.name for one in chart.series]
    looks = styles(chart.series)
    shown = [names[place] for place in sorted({place for panel in panels.values() for place in panel.rows})]
    if chart.kind == "dots":
        figure = _draw_dots(chart, panels, looks)
    else:
        figure, handles = _draw_grid(chart, panels, looks)
        _legend(figure, handles, shown)
    figure.suptitle(shorten([title], _TITLE_LETTERS)[title], x=0.012, ha="left")
    where = f" by {listed(panels)}" if list(panels) != [""] else ""
    return PageFigure(figure, f"{title}{where}: {listed(shown)}.")


def styles(series: Iterable[Series]) -> list[dict[str, Any]]:
    """Return matplotlib line styles, consistent across all figures of a report.

    Methods have colours and markers, and also dashes from the ninth on. References are grey and dashed. The control is
    thick and on top.
    """
    looks: list[dict[str, Any]] = []
    methods, references = count(), count()
    for one in series:
        if one.reference:
            dashes = _REFERENCE_DASHES[next(references) % len(_REFERENCE_DASHES)]
            looks.append({"color": FAINT, "linestyle": dashes, "linewidth": 1.2, "zorder": 2})
        elif one.control:
            looks.append({"color": ACCENT, "marker": "o", "markersize": 5, "linewidth": 2.3, "zorder": 4})
        else:
            place = next(methods)
            color, marker = _COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)]
            dashes = _DASHES[place // len(_COLORS) % len(_DASHES)]
            # Crosses and stars look smaller.
            shape = {"marker": marker, "markersize": 5.5 if marker in "PX*" else 4.2}
            looks.append({"color": color, "linestyle": dashes, "linewidth": 1.4, "zorder": 3, **shape})
    return looks


def _draw_grid(
    chart: Chart, panels: Mapping[str, Panel], looks: Sequence[dict[str, Any]]
) -> tuple[Figure, dict[str, Any]]:
    """Draw lines or points with two panels per row and return the figure and the legend handles."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    is_scatter = chart.kind == "scatter"
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    height = rows * (2.75 if is_scatter else 2.15 if len(panels) > 1 else 2.7) + 0.4
    figure = Figure(figsize=(WIDTH if columns > 1 else 0.75 * WIDTH, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    handles = {}
    for place, (axes, (title, panel)) in enumerate(zip(grid, panels.items(), strict=False)):
        for position, row in sorted(panel.rows.items()):
            name = chart.series[position].name
            look = looks[position]
            if is_scatter:
                look = {"marker": ".", **look, "linestyle": "none", "alpha": 0.85}
            handles[name] = Line2D([], [], **look)
            style = {**look, "clip_on": False}
            if is_scatter:
                axes.plot(_numbers(row["x"]), _numbers(row["y"]), **style)
            else:
                _draw_line(axes, row, position, style)
        axes.set_title(shorten([title], _PANEL_LETTERS)[title])
        if place >= len(panels) - columns:
            axes.set_xlabel(chart.x)
        if is_scatter:
            _make_square(axes, panel)
        else:
            _finish_lines(axes, chart, panel)
        if place % columns == 0:
            axes.set_ylabel(chart.y)
    return figure, handles


def _numbers(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=float)


def _draw_line(axes: Axes, row: Mapping[str, Any], position: int, style: dict[str, Any]) -> None:
    """Draw a curve, or a horizontal line if there is no x."""
    if row["x"] is None:
        style.pop("marker", None)
        axes.axhline(float(row["y"][0]), **style)
        return
    n_points = len(row["x"])
    # Shift the markers so that those of different curves do not overlap.
    step = 1 if n_points <= _FEW_POINTS else round(n_points / _MARKERS_PER_CURVE)
    axes.plot(_numbers(row["x"]), _numbers(row["y"]), markevery=(position % step, step), **style)


def _finish_lines(axes: Axes, chart: Chart, panel: Panel) -> None:
    x = np.unique([value for row in panel.rows.values() for value in row["x"] or ()])
    y = np.concatenate([_numbers(row["y"]) for row in panel.rows.values()])
    y = y[np.isfinite(y)]
    if y.size and np.ptp(y) < _ROUNDING:
        # Autoscaling would magnify rounding errors of constant lines.
        axes.set_ylim(y[0] - 0.05, y[0] + 0.05)
    elif chart.log_y and y.size and y.min() > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if chart.log_x:
        _log_scale(axes, x)
    elif 0 < len(x) <= _FEW_POINTS:
        axes.set_xticks(x, [f"{value:g}" for value in x])
    axes.grid(axis="y", clip_on=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", which="both", left=False)
    axes.margins(x=0.03)


def _log_scale(axes: Axes, values: Iterable[float]) -> None:
    """Make the x axis logarithmic, linear near 0, or linear if there are negative values."""
    from matplotlib.ticker import NullLocator

    numbers = _numbers(list(values))
    positive = numbers[numbers > 0]
    if not positive.size or (numbers < 0).any():
        return
    if positive.size == numbers.size:
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=positive.min())
    if np.log10(positive.max() / positive.min()) < 1.5:
        axes.set_xticks(np.unique([numbers.min(), np.median(numbers), numbers.max()]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())


def _make_square(axes: Axes, panel: Panel) -> None:
    """Give both axes the same range and draw the diagonal."""
    values = np.concatenate([_numbers(row[axis]) for row in panel.rows.values() for axis in "xy"])
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    room = 0.06 * (high - low) or 0.05 * (abs(high) or 1)
    limits = (low - room, high + room)
    axes.plot(limits, limits, color=INK, linewidth=0.9, zorder=1)
    axes.set(xlim=limits, ylim=limits)
    axes.set_box_aspect(1)
    axes.locator_params(nbins=5)
    axes.grid()


def _draw_dots(chart: Chart, panels: Mapping[str, Panel], looks: Sequence[dict[str, Any]]) -> Figure:
    """Draw panels in one row, with a row for each series: a dot, and a ring for each item."""
    from matplotlib.figure import Figure

    positions = sorted({position for panel in panels.values() for position in panel.rows})
    figure = Figure(figsize=(WIDTH, 0.24 * len(positions) + 0.95), layout="constrained")
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    _name_rows(grid[0], [chart.series[position] for position in positions])
    for axes, (title, panel) in zip(grid, panels.items(), strict=True):
        for line, position in enumerate(positions):
            row = panel.rows.get(position)
            if row is None:
                continue
            items = _numbers(row["items"])
            items = items[np.isfinite(items)]
            color = looks[position]["color"]
            axes.plot([items.min(), items.max()], [line] * 2, color=color, linewidth=1, alpha=0.4)
            ring = {"markersize": 4, "mew": 0.8, "markeredgecolor": color, "markerfacecolor": "none"}
            axes.plot(items, [line] * len(items), "o", **ring)
            axes.plot([row["main"]], [line], "o", markersize=7, color=color, zorder=3)
        if chart.log_x:
            _log_scale(axes, [value for row in panel.rows.values() for value in row["items"] if value > 0])
        axes.grid(axis="x")
        axes.tick_params(axis="y", left=False)
        axes.set_title(shorten([title], _PANEL_LETTERS)[title])
        axes.set_xlabel(f"dot: {chart.value}; rings: datasets", fontsize=8)
    return figure


def _name_rows(axes: Axes, series: Sequence[Series]) -> None:
    """Label the rows of a panel from the top, with the control in colour and references in grey."""
    short = shorten([one.name for one in series], 30)
    axes.set_yticks(range(len(series)), [short[one.name] for one in series])
    for label, one in zip(axes.get_yticklabels(), series, strict=True):
        color = ACCENT if one.control else FAINT if one.reference else INK
        label.set(color=color, fontweight="bold" if one.control else "normal")
    axes.set_ylim(len(series) - 0.4, -0.6)
    axes.tick_params(axis="y", left=False)


def _legend(figure: Figure, handles: Mapping[str, Any], names: Sequence[str]) -> None:
    """Add one legend below all panels."""
    if not names:
        return
    short = shorten(names, 34)
    texts = [short[name] for name in names]
    width = max(text_width(text, 8.5) for text in texts) + 0.7
    columns = max(1, min(len(texts), int((figure.get_figwidth() - 0.1) / width)))
    rows = -(-len(texts) // columns)
    figure.set_figheight(figure.get_figheight() + 0.18 * rows + 0.05)
    figure.legend(
        [handles[name] for name in names],
        texts,
        loc="outside lower center",
        ncols=-(-len(texts) // rows),
        borderaxespad=0.2,
        columnspacing=1.4,
        labelspacing=0.35,
        handletextpad=0.6,
    )
