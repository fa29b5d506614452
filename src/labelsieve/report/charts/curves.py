"""Curves of methods: against subset size, noise, parameters and iterations. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labelsieve._figures import Picture
from labelsieve.report.charts.method_styles import MethodStyles
from labelsieve.report.charts.panels import (
    COLUMNS,
    Direction,
    better,
    figure_title,
    grid,
    in_chart_style,
    legend,
    log_scale,
    numbers,
    panel_title,
    styles_of,
)
from labelsieve.report.wording import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE_LABELS = {"percent": "share of features (%)", "count": "number of features"}
# More markers hide the lines, and every one is a line of SVG.
_MARKERS_PER_CURVE = 3
_FEW_POINTS = 7
# Values that differ by less are equal but for rounding.
_LEVEL = 1e-12


class Curve(NamedTuple):
    """Points of one name in one panel; NaN leaves a gap."""

    #: Places from left to right; None for a value that belongs to no place and is drawn all across.
    x: Any
    y: Any


Panels = Mapping[str, Mapping[str, Curve]]


@in_chart_style
def draw_size_curves(
    panels: Panels,
    *,
    title: str,
    direction: Direction | Mapping[str, Direction],
    unit: str | Mapping[str, str] = "percent",
    styles: MethodStyles | None = None,
) -> Picture:
    """Draw a metric against the size of the subset of features.

    Parameters
    ----------
    panels : mapping of str to mapping of str to Curve
        For each panel, a data set or a metric, the curves by name.
    title : str
        What all panels show: the metric, or the data set.
    direction : {"higher", "lower"} or mapping of them by panel
        Which values are better; by panel if the panels are metrics.
    unit : {"percent", "count"} or mapping of them by panel, default="percent"
        What sizes are.
    styles : MethodStyles or None, default=None
        How names look; None takes all for methods, in the order they come.

    Examples
    --------
    >>> birds = {"mifs": Curve([1, 2, 3], [0.3, 0.2, 0.2]), "all-features": Curve(None, 0.25)}
    >>> styles = MethodStyles(("mifs",), ("all-features",))
    >>> picture = draw_size_curves({"birds": birds}, title="ranking loss", direction="lower", styles=styles)
    >>> picture.description
    'ranking loss against the size of the subset, on birds: curves of mifs and all-features. Lower is better.'
    """
    units = unit if isinstance(unit, Mapping) else dict.fromkeys(panels, unit)
    return _draw(
        panels,
        title=title,
        direction=direction,
        x_labels={panel: _SIZE_LABELS[units[panel]] for panel in panels},
        against="the size of the subset",
        styles=styles,
    )


@in_chart_style
def draw_noise_curves(
    panels: Panels,
    *,
    title: str,
    direction: Direction | Mapping[str, Direction],
    styles: MethodStyles | None = None,
) -> Picture:
    """Draw a metric against the rate of label noise; parameters as in `draw_size_curves`.

    Examples
    --------
    >>> curves = {"mifs": Curve([0, 0.1, 0.2], [0.2, 0.22, 0.3])}
    >>> draw_noise_curves({"birds": curves}, title="ranking loss", direction="lower").description
    'ranking loss against the rate of label noise, on birds: curves of mifs. Lower is better.'
    """
    return _draw(
        panels,
        title=title,
        direction=direction,
        x_labels=dict.fromkeys(panels, "noise rate"),
        against="the rate of label noise",
        styles=styles,
    )


@in_chart_style
def draw_sensitivity_curves(
    panels: Panels,
    *,
    title: str,
    direction: Direction,
    styles: MethodStyles | None = None,
) -> Picture:
    """Draw a metric against parameters, each on a logarithmic axis.

    Parameters
    ----------
    panels : mapping of str to mapping of str to Curve
        For each parameter, the curves by data set. A value of 0 has a place left of the others.
    title : str
        The metric.
    direction : {"higher", "lower"}
        Which values are better.
    styles : MethodStyles or None, default=None
        How names look; here they are data sets.

    Examples
    --------
    >>> curves = {"birds": Curve([0.01, 1, 100], [0.3, 0.2, 0.25])}
    >>> draw_sensitivity_curves({"alpha": curves}, title="ranking loss", direction="lower").description
    'ranking loss against the value of a parameter, on alpha: curves of birds. Lower is better.'
    """
    return _draw(
        panels,
        title=title,
        direction=direction,
        x_labels=dict.fromkeys(panels, "value of the parameter"),
        against="the value of a parameter",
        styles=styles,
        log_x=True,
    )


@in_chart_style
def draw_objectives(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    styles: MethodStyles | None = None,
) -> Picture:
    """Draw how objectives fall, each divided by its first value.

    Parameters
    ----------
    panels : mapping of str to mapping of str to sequence of float
        For each panel, say a method, the objective at the start and after every iteration, by the name of
        its line: a fold or a data set.
    styles : MethodStyles or None, default=None
        How lines look; here they are folds or data sets.

    Examples
    --------
    >>> picture = draw_objectives({"pml-fsmir": {"birds": [8.0, 4.0, 3.0]}})
    >>> picture.figure.axes[0].lines[0].get_ydata()
    array([1.   , 0.5  , 0.375])
    """
    return _draw(
        {
            panel: {name: _relative(objective) for name, objective in lines.items()}
            for panel, lines in panels.items()
        },
        title="objective, relative to its start",
        direction=None,
        x_labels=dict.fromkeys(panels, "iteration"),
        against="the iteration",
        styles=styles,
    )


def _relative(objective: Sequence[float]) -> Curve:
    values = numbers(objective)
    start = abs(values[0]) if len(values) else 1
    return Curve(np.arange(len(values)), values / start if start > 0 else values)


def _draw(
    panels: Panels,
    *,
    title: str,
    direction: Direction | Mapping[str, Direction] | None,
    x_labels: Mapping[str, str],
    against: str,
    styles: MethodStyles | None,
    log_x: bool = False,
) -> Picture:
    directions = direction if isinstance(direction, Mapping) else dict.fromkeys(panels)
    common = None if isinstance(direction, Mapping) else direction
    styles = styles_of(panels.values(), styles)
    names = styles.pick(name for curves in panels.values() for name in curves)
    figure, grid_axes = grid(len(panels), height=2.15 if len(panels) > 1 else 2.7)
    columns = min(COLUMNS, len(panels))
    labels = list(x_labels.values())
    handles: dict[str, Any] = {}
    for place, (axes, (panel, curves)) in enumerate(zip(grid_axes, panels.items(), strict=True)):
        for name in styles.pick(curves):
            handles.setdefault(name, _draw_curve(axes, curves[name], names.index(name), **styles.line(name)))
        panel_title(axes, panel, better(directions[panel]))
        # An axis has no label if the panel below says the same.
        if labels[place] not in labels[place + columns : place + columns + 1]:
            axes.set_xlabel(labels[place])
        if log_x:
            log_scale(axes, _all(curves, "x"))
        else:
            _mark_places(axes, _all(curves, "x"))
        if np.ptp(_all(curves, "y") or [0.0]) < _LEVEL:
            # A level line would be magnified until its rounding shows.
            bottom, top = axes.get_ylim()
            axes.set_ylim((bottom + top) / 2 - 0.05, (bottom + top) / 2 + 0.05)
        axes.grid(axis="y", clip_on=False)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", left=False)
        axes.margins(x=0.03)
    figure_title(figure, title, common)
    legend(figure, [handles[name] for name in names], names)
    better_text = f" {common.capitalize()} is better." if common else ""
    return Picture(
        figure, f"{title} against {against}, on {listed(panels)}: curves of {listed(names)}.{better_text}"
    )


def _all(curves: Mapping[str, Curve], part: str) -> list[float]:
    places = [getattr(curve, part) for curve in curves.values() if getattr(curve, part) is not None]
    return [float(value) for values in places for value in numbers(values)]


def _mark_places(axes: Axes, places: list[float]) -> None:
    """Set ticks where there are points, or at whole numbers if the points are."""
    from matplotlib.ticker import MaxNLocator

    distinct = np.unique(places)
    if 0 < len(distinct) <= _FEW_POINTS:
        axes.set_xticks(distinct)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    elif (distinct == np.round(distinct)).all():
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))


def _draw_curve(axes: Axes, curve: Curve, place: int, **style: Any) -> Any:
    """Draw a curve or, of a value without a place, a level; returns what its legend shows."""
    from matplotlib.lines import Line2D

    handle = Line2D([], [], **style)
    # The axes hold all points, so there is nothing to cut but half of the markers at the edge.
    style["clip_on"] = False
    y = numbers(curve.y)
    if curve.x is None:
        style.pop("marker", None)
        if np.isfinite(y).any():
            axes.axhline(float(y[0]), **style)
        return handle
    x = numbers(curve.x)
    if len(x) != len(y):
        raise ValueError(f"x and y of a curve must be equally long. Got {len(x)} and {len(y)}.")
    is_there = np.isfinite(y)
    before, after = np.r_[False, is_there[:-1]], np.r_[is_there[1:], False]
    alone = np.flatnonzero(is_there & ~before & ~after)
    there = np.flatnonzero(is_there)
    if "marker" in style:
        # Markers of the curves start at different places, so that they do not cover one another.
        step = 1 if len(there) <= _FEW_POINTS else round(len(there) / _MARKERS_PER_CURVE)
        marked = np.union1d(there[place % step :: step], alone)
    else:
        # What has no neighbour would not be seen.
        style, marked = {**style, "marker": ".", "markersize": 5}, alone
    axes.plot(x, y, markevery=marked.tolist(), **style)
    return handle
