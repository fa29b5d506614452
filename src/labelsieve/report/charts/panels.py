"""Small multiples: panels in a grid under one title and over one legend. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np

from labelsieve._figures import ACCENT, FAINT, INK, chart_style
from labelsieve.report.charts.method_styles import MethodStyles, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Direction = Literal["higher", "lower"]
P = ParamSpec("P")
T = TypeVar("T")

#: Inches. Two columns of a paper, and on a phone the text is still read.
WIDTH = 6.4
#: Panels in a row.
COLUMNS = 2
_TITLE_HEIGHT = 0.4
#: Said of a figure without panels or names.
NOTHING = "A figure needs something to show. Got nothing. Leave the figure out."
_ARROWS = {"higher": "↑", "lower": "↓"}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def in_chart_style(draw: Callable[P, T]) -> Callable[P, T]:
    """Make a drawing function draw in the style of reports."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> T:
        with chart_style():
            return draw(*args, **kwargs)

    return styled


def better(direction: Direction | None) -> str:
    """Say which way is up.

    Examples
    --------
    >>> better("lower")
    '↓ lower is better'
    """
    if direction is None:
        return ""
    if direction not in _ARROWS:
        raise ValueError(f'direction must be "higher", "lower" or None. Got {direction!r}.')
    return f"{_ARROWS[direction]} {direction} is better"


def grid(n_panels: int, height: float) -> tuple[Figure, list[Axes]]:
    """Make a figure of panels `height` inches high.

    Places of the last row that no panel takes are left empty.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not n_panels:
        raise ValueError(NOTHING)
    columns = min(COLUMNS, n_panels)
    rows = -(-n_panels // columns)
    width = WIDTH if columns > 1 else 0.75 * WIDTH
    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05, wspace=0.03, hspace=0.03)
    figure = Figure(figsize=(width, rows * height + _TITLE_HEIGHT), layout=layout)
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in panels[n_panels:]:
        axes.set_axis_off()
    return figure, panels[:n_panels]


def panel_title(axes: Axes, name: str, remark: str = "", room: float | None = None) -> None:
    """Name a panel of which `room` inches are wide; a remark stands at the other end of the line."""
    room = _width(axes) if room is None else room
    if remark and text_width(remark, 8) > 0.45 * room:
        remark = remark[:1]
    axes.set_title(fitted(name, room - text_width(remark, 8), 10, is_bold=True))
    if remark:
        axes.set_title(remark, loc="right", fontsize=8, fontweight="normal", color=FAINT)


def figure_title(figure: Figure, title: str, direction: Direction | None = None) -> None:
    """Set the title of all panels, and which way is up."""
    remark = f"   {better(direction)}" if direction else ""
    room = figure.get_figwidth() - 0.2 - 1.15 * text_width(remark, 11)
    text = fitted(title, room, 11, is_bold=True) + remark
    if text.strip():
        figure.suptitle(text.strip(), x=0.012, ha="left")


def _width(axes: Any) -> float:
    """Return about how many inches are left for a panel beside the figures of its axis."""
    return float(axes.figure.get_figwidth() / axes.get_gridspec().ncols - 0.5)


def fitted(text: str, inches: float, size: float, *, is_bold: bool = False) -> str:
    """Cut a text until it fits."""
    inches /= 1.15 if is_bold else 1
    for limit in range(len(text), 4, -1):
        short = shorten([text], limit)[text]
        if text_width(short, size) <= inches:
            return short
    return text[:4]


def legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Put one legend for all panels into the empty place of the grid, or under it if it does not fit."""
    if not handles:
        return
    short = shorten(names, 34)
    texts = [short[name] for name in names]
    width = max(text_width(text, 8.5) for text in texts) + 0.6
    look: dict[str, Any] = {"columnspacing": 1.4, "labelspacing": 0.35, "handletextpad": 0.6}
    empty: Any = next((axes for axes in figure.axes if not axes.axison), None)
    if empty is not None:
        columns = int((_width(empty) + 0.4) / width)
        rows = -(-len(texts) // max(columns, 1))
        if columns and 0.18 * rows < 0.9 * figure.get_figheight() / empty.get_gridspec().nrows:
            box = empty.legend(handles, texts, loc="center left", ncols=-(-len(texts) // rows), **look)
            box.set_in_layout(False)
            return
    columns = max(1, min(len(texts), int((figure.get_figwidth() - 0.1) / width)))
    rows = -(-len(texts) // columns)
    figure.set_figheight(figure.get_figheight() + 0.18 * rows + 0.05)
    ncols = -(-len(texts) // rows)
    figure.legend(handles, texts, loc="outside lower center", ncols=ncols, borderaxespad=0.2, **look)


def text_width(text: str, size: float) -> float:
    """Return the width of a text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    width, _, _ = TextToPath().get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width) / 72


def name_rows(axes: Axes, names: Sequence[str], styles: MethodStyles) -> None:
    """Name the rows of a panel, the first on top: the control in colour, references in grey."""
    short = shorten(names, 30)
    axes.set_yticks(range(len(names)), [short[name] for name in names])
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        is_control, is_reference = name == styles.control, name in styles.references
        label.set(
            color=ACCENT if is_control else FAINT if is_reference else INK,
            fontweight="bold" if is_control else "normal",
        )
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", left=False)


def log_scale(axes: Axes, values: Iterable[float]) -> None:
    """Make the axis of x logarithmic, with a linear piece for 0 if it occurs; negative values leave it linear."""
    from matplotlib.ticker import NullLocator

    finite = np.array([value for value in values if np.isfinite(value)])
    positive = finite[finite > 0]
    if not positive.size or (finite < 0).any():
        return
    if positive.size == finite.size:
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=positive.min())
    axes.xaxis.set_major_formatter(lambda value, _: power_text(value))
    axes.xaxis.set_minor_locator(NullLocator())


def power_text(value: float) -> str:
    """Write a power of ten, in figures while they are few.

    Examples
    --------
    >>> power_text(0.01), power_text(100), power_text(1e-5)
    ('0.01', '100', '10⁻⁵')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:g}"
    digits, exponent = f"{value:.1e}".split("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    return power if digits == "1.0" else f"{float(digits):g}·{power}"


def numbers(values: Any) -> np.ndarray:
    """Turn values into a vector of floats, what is missing into NaN."""
    return np.atleast_1d(np.asarray(values, dtype=float)).ravel()


def styles_of(series: Iterable[Mapping[str, Any]], styles: MethodStyles | None) -> MethodStyles:
    """Return the styles, or those of all names in the order they come."""
    return styles or MethodStyles(tuple(dict.fromkeys(name for names in series for name in names)))
