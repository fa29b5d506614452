"""Our numbers against published ones. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labelsieve._figures import FAINT, INK, Picture
from labelsieve.report.charts.method_styles import MethodStyles
from labelsieve.report.charts.panels import (
    COLUMNS,
    figure_title,
    fitted,
    grid,
    in_chart_style,
    legend,
    numbers,
    panel_title,
    styles_of,
)
from labelsieve.report.wording import listed

# Inches of a panel's side.
_SIDE = 2.0
_TITLE = "ours against the paper"


@in_chart_style
def draw_against_paper(
    panels: Mapping[str, Mapping[str, tuple[Any, Any]]],
    *,
    notes: Mapping[str, str] | None = None,
    styles: MethodStyles | None = None,
) -> Picture:
    """Draw our values against the published ones; on the diagonal they are equal.

    Parameters
    ----------
    panels : mapping of str to mapping of str to (published, ours)
        For each metric, by method, the values of all data sets in one order, or one value; a point that lacks
        either is left out.
    notes : mapping of str to str or None, default=None
        What a panel says in its corner, such as the rank correlation of the methods' order.
    styles : MethodStyles or None, default=None
        The methods.

    Examples
    --------
    >>> picture = draw_against_paper({"ranking loss": {"mifs": ([0.3, 0.4], [0.2, 0.5])}})
    >>> picture.description
    'ours against the paper, by ranking loss: 2 points of mifs.'
    """
    styles = styles_of(panels.values(), styles)
    names = styles.pick(name for methods in panels.values() for name in methods)
    figure, all_axes = grid(len(panels), height=2.75)
    handles: dict[str, Any] = {}
    n_points = 0
    for place, (axes, (panel, methods)) in enumerate(zip(all_axes, panels.items(), strict=True)):
        seen = []
        for name in styles.pick(methods):
            published, ours = (numbers(part) for part in methods[name])
            there = np.isfinite(published) & np.isfinite(ours)
            style = {**styles.line(name), "linestyle": "none", "clip_on": False}
            style.setdefault("marker", ".")
            (handles[name],) = axes.plot(published[there], ours[there], alpha=0.85, **style)
            seen.append(np.r_[published[there], ours[there]])
        n_points += sum(len(values) for values in seen) // 2
        _square(axes, np.concatenate(seen) if seen else np.empty(0))
        panel_title(axes, panel, room=_SIDE)
        note = (notes or {}).get(panel)
        if note:
            # The page may be dark; a box in the colour of paper would not be.
            axes.text(0.03, 0.97, fitted(note, _SIDE, 8.5), transform=axes.transAxes, va="top", fontsize=8.5)
        if place >= len(panels) - COLUMNS:
            axes.set_xlabel("published")
        if place % COLUMNS == 0:
            axes.set_ylabel("ours")
    figure_title(figure, _TITLE)
    legend(figure, [handles[name] for name in names], names)
    told = "".join(f" {panel}: {note}." for panel, note in (notes or {}).items())
    return Picture(figure, f"{_TITLE}, by {listed(panels)}: {n_points} points of {listed(names)}.{told}")


def _square(axes: Any, values: np.ndarray) -> None:
    """Give both axes one range and draw the line of equality."""
    low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    room = 0.06 * (high - low) or 0.05 * (abs(high) or 1)
    limits = (low - room, high + room)
    axes.plot(limits, limits, color=INK, linewidth=0.9, zorder=1)
    axes.set(xlim=limits, ylim=limits)
    axes.set_box_aspect(1)
    axes.locator_params(nbins=5)
    axes.grid(color=FAINT)
