"""Figures of a report, drawn from the same data as the charts of its page. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._figures import ACCENT, FAINT, INK, PageFigure, chart_style
from labelsieve.report.analysis import Analysis
from labelsieve.report.cd_diagram import WIDTH, draw_cd_diagram, draw_control_diagram
from labelsieve.report.charts import Chart, Panel, Series
from labelsieve.report.comparison import ALPHA
from labelsieve.report.styles import Styles, shorten, text_width
from labelsieve.report.tables import show
from labelsieve.report.wording import listed, metric_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_chart", "draw_figures", "draw_win_tie_loss"]

_COLUMNS = 2
# Letters that fit into the titles of a panel and of a figure.
_PANEL_LETTERS, _TITLE_LETTERS = 30, 60
# More markers hide the lines.
_FEW_POINTS, _MARKERS_PER_CURVE = 7, 3
# Values that differ by less are equal except for rounding.
_LEVEL = 1e-12
# Blue, grey and orange: apart for every colour vision, with a readable colour for numbers on them.
_OUTCOMES = (("wins", "#0072b2", "#ffffff"), ("ties", "#c4cad0", "#111111"), ("losses", "#e69f00", "#111111"))


def draw_figures(analysis: Analysis, charts: Mapping[str, Chart]) -> Iterator[tuple[str, PageFigure]]:
    """Draw all figures: their file names and pictures."""
    yield from _rank_figures(analysis)
    for name, chart in charts.items():
        # Critical-difference diagrams show the ranks.
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
            yield (
                f"control_{metric}",
                draw_control_diagram(ranks, critical, control=main.control, title=title),
            )
            duels = main.duels[main.duels["metric"] == metric].set_index("method")
            outcomes = duels[["wins", "ties", "losses", "adjusted"]].T.to_dict("list")
            yield f"win_tie_loss_{metric}", draw_win_tie_loss(outcomes, control=main.control, title=title)


def draw_chart(name: str, chart: Chart) -> Iterator[tuple[str, PageFigure]]:
    """Draw a chart: one figure per combination of its choices, except the one that its panels go across."""
    fixed = [choice for choice in chart.choices if choice.name != chart.across]
    place = next((n for n, choice in enumerate(chart.choices) if choice.name == chart.across), None)
    counts = [
        1 if chart.first_judge and choice.name == "judged by" else len(choice.options) for choice in fixed
    ]
    for options in product(*map(range, counts)):
        panels: dict[str, Panel] = {}
        for key, panel in sorted(chart.panels.items()):
            if key[:place] + (() if place is None else key[place + 1 :]) == options:
                panels["" if place is None else chart.choices[place].options[key[place]]] = panel
        if not panels:
            continue
        stem, titles = name, []
        for choice, option in zip(fixed, options, strict=True):
            # Metrics have names; of other choices, the first option goes without saying.
            stem += f"_{choice.files[option]}" if choice.files else f"_{option + 1}" if option else ""
            titles += [choice.options[option]] if choice.files or len(choice.options) > 1 else []
        yield stem, _draw(chart, panels, ", ".join(titles) or name)


@chart_style()
def _draw(chart: Chart, panels: Mapping[str, Panel], title: str) -> PageFigure:
    names = [one.name for one in chart.series]
    styles = Styles(
        tuple(one.name for one in chart.series if not one.reference),
        tuple(one.name for one in chart.series if one.reference),
        next((one.name for one in chart.series if one.control), None),
    )
    drawn = {place for panel in panels.values() for place in panel.rows}
    shown = [name for place, name in enumerate(names) if place in drawn]
    if chart.kind == "dots":
        figure = _draw_dots(chart, panels, styles)
    else:
        figure, handles = _draw_grid(chart, panels, styles)
        _legend(figure, handles, shown)
    figure.suptitle(shorten([title], _TITLE_LETTERS)[title], x=0.012, ha="left")
    where = f" by {listed(panels)}" if list(panels) != [""] else ""
    return PageFigure(figure, f"{title}{where}: {listed(shown)}.")


def _draw_grid(chart: Chart, panels: Mapping[str, Panel], styles: Styles) -> tuple[Figure, dict[str, Any]]:
    """Draw lines or points in panels two to a row; returns the figure and what its legend shows."""
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
            look = styles.line(name)
            if is_scatter:
                look = {"marker": ".", **look, "linestyle": "none", "alpha": 0.85}
            handles[name] = Line2D([], [], **look)
            (_draw_points if is_scatter else _draw_line)(axes, row, position, {**look, "clip_on": False})
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
    """Draw a curve with gaps or, for a value without a place, a level."""
    y = _numbers(row["y"])
    if row["x"] is None:
        style.pop("marker", None)
        axes.axhline(float(y[0]), **style)
        return
    is_there = np.isfinite(y)
    before, after = np.r_[False, is_there[:-1]], np.r_[is_there[1:], False]
    alone = np.flatnonzero(is_there & ~before & ~after)
    there = np.flatnonzero(is_there)
    if "marker" in style:
        # Markers of the curves start at different places, so that they do not cover one another.
        step = 1 if len(there) <= _FEW_POINTS else round(len(there) / _MARKERS_PER_CURVE)
        marked = np.union1d(there[position % step :: step], alone)
    else:
        # A point without neighbours would not be seen.
        style, marked = {**style, "marker": ".", "markersize": 5}, alone
    axes.plot(_numbers(row["x"]), y, markevery=marked.tolist(), **style)


def _draw_points(axes: Axes, row: Mapping[str, Any], position: int, style: dict[str, Any]) -> None:
    axes.plot(_numbers(row["x"]), _numbers(row["y"]), **style)


def _finish_lines(axes: Axes, chart: Chart, panel: Panel) -> None:
    x = np.unique([value for row in panel.rows.values() for value in row["x"] or ()])
    y = np.concatenate([_numbers(row["y"]) for row in panel.rows.values()])
    y = y[np.isfinite(y)]
    if y.size and np.ptp(y) < _LEVEL:
        # A level line would be magnified until its rounding shows.
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
    """Make the x axis logarithmic, with a linear piece for 0; negative values leave it linear."""
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
    """Give both axes one range and draw the line of equality."""
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


def _draw_dots(chart: Chart, panels: Mapping[str, Panel], styles: Styles) -> Figure:
    """Draw panels side by side with a row for each series: a dot, and a ring for each item."""
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
            color = styles.line(chart.series[position].name)["color"]
            axes.plot([items.min(), items.max()], [line] * 2, color=color, linewidth=1, alpha=0.4)
            axes.plot(
                items,
                [line] * len(items),
                "o",
                markersize=4,
                markeredgewidth=0.8,
                markeredgecolor=color,
                markerfacecolor="none",
            )
            axes.plot([row["main"]], [line], "o", markersize=7, color=color, zorder=3)
        if chart.log_x:
            _log_scale(axes, [value for row in panel.rows.values() for value in row["items"] if value > 0])
        axes.grid(axis="x")
        axes.tick_params(axis="y", left=False)
        axes.set_title(shorten([title], _PANEL_LETTERS)[title])
        axes.set_xlabel(f"dot: {chart.value}; rings: data sets", fontsize=8)
    return figure


def _name_rows(axes: Axes, series: Sequence[Series]) -> None:
    """Name the rows of a panel, the first on top: the control in colour, references in grey."""
    short = shorten([one.name for one in series], 30)
    axes.set_yticks(range(len(series)), [short[one.name] for one in series])
    for label, one in zip(axes.get_yticklabels(), series, strict=True):
        color = ACCENT if one.control else FAINT if one.reference else INK
        label.set(color=color, fontweight="bold" if one.control else "normal")
    axes.set_ylim(len(series) - 0.4, -0.6)
    axes.tick_params(axis="y", left=False)


def _legend(figure: Figure, handles: Mapping[str, Any], names: Sequence[str]) -> None:
    """Put one legend for all panels below them."""
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


@chart_style()
def draw_win_tie_loss(
    comparisons: Mapping[str, Sequence[float]], *, control: str, title: str = "", alpha: float = ALPHA
) -> PageFigure:
    """Draw on how many data sets a control wins, ties and loses against every other method.

    Parameters
    ----------
    comparisons : mapping of str to (wins, ties, losses, p_value)
        By opponent; p-values adjusted for their number (Holm).
    control : str
        Whose wins these are.
    title : str
        What was compared: the metric.
    alpha : float, default=0.05
        P-values below it are bold and carry a star.

    Examples
    --------
    >>> picture = draw_win_tie_loss({"mifs": (6, 1, 1, 0.03), "rfs": (2, 0, 6, 0.4)}, control="pml-fsmir")
    >>> picture.description
    'Wins, ties and losses of pml-fsmir: mifs 6, 1, 1 (p 0.030); rfs 2, 0, 6 (p 0.400).'
    """
    from matplotlib.figure import Figure

    names = list(comparisons)
    counts = np.array([comparisons[name][:3] for name in names], dtype=float)
    p_values = [float(comparisons[name][3]) for name in names]
    figure = Figure(figsize=(WIDTH, 0.24 * len(names) + 0.85), layout="constrained")
    axes = figure.subplots()
    _name_rows(axes, [Series(name) for name in names])
    starts = np.cumsum(counts, axis=1) - counts
    handles = {}
    for column, (outcome, color, ink) in enumerate(_OUTCOMES):
        widths, left = counts[:, column], starts[:, column]
        handles[outcome] = axes.barh(range(len(names)), widths, left=left, height=0.72, color=color)
        for row in np.flatnonzero(widths).tolist():
            middle = left[row] + widths[row] / 2
            axes.text(
                middle, row, f"{widths[row]:g}", ha="center", va="center_baseline", color=ink, fontsize=8.5
            )
    total = counts.sum(axis=1).max()
    for row, p_value in enumerate(p_values):
        is_different = p_value < alpha
        axes.text(
            1.02 * total,
            row,
            f"p {show(p_value, 'p')}{' *' if is_different else ''}",
            va="center_baseline",
            fontsize=8.5,
            fontweight="bold" if is_different else "normal",
        )
    axes.set_xlim(0, 1.28 * total)
    axes.xaxis.set_visible(False)
    axes.spines[:].set_visible(False)
    short = shorten([control], 30)[control]
    figure.suptitle(f"{title}: {short} against…" if title else f"{short} against…", x=0.012, ha="left")
    _legend(figure, handles, list(handles))
    outcomes = "; ".join(
        f"{name} {', '.join(f'{count:g}' for count in row)} (p {show(p_value, 'p')})"
        for name, row, p_value in zip(names, counts, p_values, strict=True)
    )
    return PageFigure(
        figure, f"{title + ': w' if title else 'W'}ins, ties and losses of {control}: {outcomes}."
    )
