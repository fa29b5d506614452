"""Critical-difference diagrams of average ranks, after Demsar [1]_. Needs matplotlib.

References
----------
.. [1] Demsar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine Learning
   Research 7, 2006; figures 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._figures import ACCENT, FAINT, INK, PageFigure, chart_style
from labelsieve.report.styles import shorten, text_width
from labelsieve.report.wording import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["WIDTH", "draw_cd_diagram", "draw_control_diagram", "groups_not_different"]

#: Inches. Two columns of a paper, and readable on a phone.
WIDTH = 6.4
# Inches.
_ROW = 0.21
_LANE = 0.09
_TOP = 0.72
_TEXT_SIZE = 9
# Names longer than this would leave too little of the axis.
_MOST_LETTERS = 20
# What leaders and texts need beside a name.
_GAP = 0.12


def groups_not_different(ranks: Sequence[float], cd: float) -> list[list[int]]:
    """Find the largest groups of two or more ranks that differ by less than `cd`: positions, best first.

    Examples
    --------
    >>> groups_not_different([1.0, 1.5, 2.2, 4.0], cd=1.0)
    [[0, 1], [1, 2]]
    """
    values = np.asarray(ranks, dtype=float)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    groups, reached = [], 0
    for first in range(len(order)):
        end = first + int(np.count_nonzero(ordered[first:] - ordered[first] < cd))
        # A group that ends where an earlier one does is part of it.
        if end > reached and end - first > 1:
            groups.append(order[first:end].tolist())
        reached = max(reached, end)
    return groups


@chart_style()
def draw_cd_diagram(
    ranks: Mapping[str, float], cd: float, *, title: str = "", control: str | None = None
) -> PageFigure:
    """Draw average ranks with bars that join groups without a significant difference (Nemenyi).

    The best rank, 1, is at the right. The critical difference is drawn above the axis.

    Parameters
    ----------
    ranks : mapping of str to float
        Average rank by method; methods with NaN are left out.
    cd : float
        Critical difference, from `labelsieve.report.statistics.nemenyi_cd`.
    title : str
        What was ranked: the metric.
    control : str or None, default=None
        The method the report is about, in colour.

    Examples
    --------
    >>> picture = draw_cd_diagram({"a": 1.2, "b": 1.9, "c": 2.9}, cd=1.1)
    >>> picture.description
    'Average ranks: a 1.20, b 1.90 and c 2.90. Critical difference 1.10; not different: a and b; b and c.'
    """
    diagram = _Diagram(ranks, title)
    groups = groups_not_different(diagram.ranks, cd)
    # From the right, a little longer than what they join.
    bars = [
        (diagram.x(diagram.ranks[group[0]]) + 0.05, diagram.x(diagram.ranks[group[-1]]) - 0.05)
        for group in groups
    ]
    lanes = _lanes(bars)
    diagram.start(n_lanes=max(lanes, default=-1) + 1)
    for ends, lane in zip(bars, lanes, strict=True):
        y = diagram.axis_y + 0.1 + lane * _LANE
        diagram.axes.plot(ends, [y, y], color=INK, linewidth=4, zorder=3, label="group")
    diagram.draw_length(cd)
    for place, name in enumerate(diagram.names):
        diagram.draw_name(place, color=ACCENT if name == control else INK, is_bold=name == control)
    told = "; ".join(listed([diagram.names[place] for place in group]) for group in groups) or "none"
    return diagram.picture(f"Critical difference {cd:.2f}; not different: {told}.")


@chart_style()
def draw_control_diagram(
    ranks: Mapping[str, float], cd: float, *, control: str, title: str = ""
) -> PageFigure:
    """Draw average ranks with a band of one critical difference around a control (Bonferroni-Dunn).

    Parameters are those of `draw_cd_diagram`. Methods outside the band differ from the control and are bold.

    Examples
    --------
    >>> picture = draw_control_diagram({"mifs": 1.2, "rfs": 1.9, "drmfs": 2.9}, cd=1.1, control="mifs")
    >>> picture.description
    'Average ranks: mifs 1.20, rfs 1.90 and drmfs 2.90. Different from mifs by at least 1.10: drmfs.'
    """
    from matplotlib.patches import Rectangle

    diagram = _Diagram(ranks, title)
    if control not in diagram.names:
        raise ValueError(f"control must have a rank, as {diagram.names!r} do. Got {control!r}.")
    diagram.start(n_lanes=1)
    centre = diagram.ranks[diagram.names.index(control)]
    left, right = diagram.x(min(centre + cd, diagram.worst)), diagram.x(max(centre - cd, 1))
    band = Rectangle((left, diagram.axis_y - 0.1), right - left, 0.2, color=ACCENT, alpha=0.22, linewidth=0)
    diagram.axes.add_patch(band)
    short = shorten([control], _MOST_LETTERS)[control]
    diagram.axes.text(
        diagram.left, diagram.axis_y - 0.42, f"band: {short} ± CD = {cd:.2f}", fontsize=8.5, color=ACCENT
    )
    different = []
    for place, name in enumerate(diagram.names):
        is_control, is_different = name == control, abs(diagram.ranks[place] - centre) >= cd
        if is_different:
            different.append(name)
        color = ACCENT if is_control else INK if is_different else FAINT
        diagram.draw_name(place, color=color, is_bold=is_control or is_different)
        diagram.axes.plot(
            [diagram.x(diagram.ranks[place])],
            [diagram.axis_y],
            marker="o",
            markersize=5.5,
            color=color,
            markeredgewidth=1.2,
            markerfacecolor=color if is_control or is_different else "none",
            zorder=4,
        )
    return diagram.picture(f"Different from {control} by at least {cd:.2f}: {listed(different) or 'none'}.")


class _Diagram:
    """An axis of ranks with names to both sides, laid out in inches from the top left."""

    figure: Figure
    axes: Axes

    def __init__(self, ranks: Mapping[str, float], title: str) -> None:
        there = {name: float(rank) for name, rank in ranks.items() if np.isfinite(rank)}
        if not there:
            raise ValueError("ranks must have a number for one method or more. Got none.")
        self.names = sorted(there, key=lambda name: there[name])
        self.ranks = [there[name] for name in self.names]
        self.worst = max(2, len(there), int(np.ceil(self.ranks[-1])))
        self.title = title
        self.texts = list(shorten(self.names, _MOST_LETTERS).values())
        # The better half stands at the right, the best on top; the worse half likewise at the left.
        self.n_right = -(-len(self.names) // 2)
        self.axis_y = _TOP + (0.25 if title else 0)
        margin = max(text_width(text, _TEXT_SIZE) for text in self.texts) * 1.12 + 0.65
        self.left, self.right = margin, WIDTH - margin

    def start(self, n_lanes: int) -> None:
        """Draw title and axis, with room under it for so many bars."""
        from matplotlib.figure import Figure

        self.first_row = self.axis_y + 0.22 + n_lanes * _LANE
        height = self.first_row + self.n_right * _ROW
        self.figure = Figure(figsize=(WIDTH, height))
        self.axes = self.figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
        self.axes.set_axis_off()
        if self.title:
            title = shorten([self.title], 60)[self.title]
            self.axes.text(0.08, 0.2, title, fontsize=11, fontweight="bold")
        self._line([self.left, self.right], [self.axis_y] * 2, linewidth=1.1)
        # Numbers that far apart can be read.
        step = int(np.ceil(0.18 * (self.worst - 1) / (self.right - self.left)))
        for rank in range(1, self.worst + 1, step):
            self._line([self.x(rank)] * 2, [self.axis_y - 0.07, self.axis_y], linewidth=0.9)
            self.axes.text(self.x(rank), self.axis_y - 0.11, str(rank), ha="center", fontsize=8.5)
        self.axes.text(self.right + 0.12, self.axis_y - 0.11, "better →", fontsize=8.5, color=FAINT)

    def x(self, rank: float) -> float:
        """Place of a rank on the axis; 1 is at the right."""
        return self.right - (rank - 1) / (self.worst - 1) * (self.right - self.left)

    def draw_length(self, cd: float) -> None:
        """Draw how long the critical difference is, no longer than the axis."""
        length = min(cd / (self.worst - 1), 1) * (self.right - self.left)
        y = self.axis_y - 0.38
        self._line([self.left, self.left + length], [y, y], linewidth=1.6, label="cd")
        for end in (self.left, self.left + length):
            self._line([end, end], [y - 0.04, y + 0.04], linewidth=1.6)
        is_cut = cd > self.worst - 1
        text = f"CD = {cd:.2f}" + (" (more than the axis)" if is_cut else "")
        self.axes.text(self.left, y - 0.08, text, fontsize=8.5)

    def draw_name(self, place: int, *, color: str, is_bold: bool) -> None:
        """Lead from the axis to the name of a method."""
        is_right = place < self.n_right
        row = place if is_right else len(self.names) - 1 - place
        y = self.first_row + row * _ROW
        x, end = self.x(self.ranks[place]), self.right + _GAP if is_right else self.left - _GAP
        self._line(
            [x, x, end], [self.axis_y, y, y], color=color, linewidth=1.6 if is_bold else 0.9, label="leader"
        )
        beside = partial(self.axes.text, y=y, ha="left" if is_right else "right", va="center_baseline")
        outwards = 1 if is_right else -1
        beside(x=end + 0.05 * outwards, s=f"{self.ranks[place]:.2f}", fontsize=8, color=FAINT)
        beside(
            x=end + 0.43 * outwards,
            s=self.texts[place],
            fontsize=_TEXT_SIZE,
            fontweight="bold" if is_bold else "normal",
            color=color,
        )

    def _line(self, x: Sequence[float], y: Sequence[float], **style: Any) -> None:
        self.axes.plot(x, y, **{"color": INK, "clip_on": False, **style})

    def picture(self, findings: str) -> PageFigure:
        ranked = listed([f"{name} {rank:.2f}" for name, rank in zip(self.names, self.ranks, strict=True)])
        return PageFigure(self.figure, f"{self.title or 'Average ranks'}: {ranked}. {findings}")


def _lanes(bars: Sequence[tuple[float, float]]) -> list[int]:
    """Give each bar, from the right, the highest lane where it does not touch another."""
    ends: list[float] = []
    lanes = []
    for start, end in bars:
        lane = next((lane for lane, taken in enumerate(ends) if start < taken - 0.04), len(ends))
        ends[lane : lane + 1] = [end]
        lanes.append(lane)
    return lanes
