"""Critical difference diagrams of average ranks by Demsar [1]_. Needs matplotlib.

References
----------
.. [1] Demsar, "Statistical comparisons of classifiers over multiple data
   sets", Journal of Machine Learning Research 7, 2006, figures 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter

import numpy as np

from labelsieve._figures import ACCENT, FAINT, INK, PageFigure, chart_style
from labelsieve._text import one_line
from labelsieve.report.tables import listed

#: Inches: two columns of a paper, still readable on a phone.
WIDTH = 6.4
# Distances between names and between bars, in inches.
_ROW, _LANE = 0.21, 0.09
_TEXT_SIZE = 9
# Longer names would leave too little room for the axis.
_MOST_LETTERS = 20


def groups_not_different(ranks: Sequence[float], cd: float) -> list[list[int]]:
    """Find the maximal groups of ranks that differ by less than `cd`, as positions with the best first."""
    values = np.asarray(ranks, dtype=float)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    groups, reached = [], 0
    for first in range(len(order)):
        end = first + int(np.count_nonzero(ordered[first:] - ordered[first] < cd))
        # A group with the same end as an earlier one is part of it.
        if end > reached and end - first > 1:
            groups.append(order[first:end].tolist())
        reached = max(reached, end)
    return groups


@chart_style()
def draw_cd_diagram(
    ranks: Mapping[str, float],
    cd: float,
    *,
    title: str = "",
    control: str | None = None,
    around_control: bool = False,
) -> PageFigure:
    """Draw average ranks and mark significant differences. The best rank, 1, is on the right.

    Methods without a rank are left out. The `control` is highlighted. Bars join groups that do not differ significantly
    (Nemenyi). With `around_control`, a band of one critical difference around the control is drawn instead
    (Bonferroni–Dunn), and methods outside the band are bold.

    Examples
    --------
    >>> draw_cd_diagram({"a": 1.2, "b": 1.9, "c": 2.9}, cd=1.1).description
    'Average ranks: a 1.20, b 1.90 and c 2.90. Critical difference 1.10; not different: a and b; b and c.'
    """
    from matplotlib.figure import Figure

    finite = {name: float(rank) for name, rank in ranks.items() if np.isfinite(rank)}
    averages = dict(sorted(finite.items(), key=itemgetter(1)))
    if not averages:
        raise ValueError("ranks must have a finite value for at least one method, got none.")
    if around_control and control not in averages:
        raise ValueError(f"control must be one of the ranked methods {list(averages)!r}, got {control!r}.")
    names, values = list(averages), list(averages.values())
    texts = shorten(names, _MOST_LETTERS)
    groups = [] if around_control else groups_not_different(values, cd)
    # Positions are in inches from the top left.
    margin = max(text_width(text, _TEXT_SIZE) for text in texts.values()) * 1.12 + 0.65
    left, right, axis_y = margin, WIDTH - margin, 0.97 if title else 0.72
    first_row = axis_y + 0.22 + (1 if around_control else len(groups)) * _LANE
    # The better half is on the right with the best at the top, the worse half on the left.
    n_right = -(-len(names) // 2)
    height = first_row + n_right * _ROW
    worst = max(2, len(names), int(np.ceil(values[-1])))
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    line, write = partial(axes.plot, clip_on=False), partial(axes.text, fontsize=8.5)

    def x(rank: float) -> float:
        return float(right - (rank - 1) / (worst - 1) * (right - left))

    if title:
        axes.text(0.08, 0.2, shorten([title], 60)[title], fontsize=11, fontweight="bold")
    line([left, right], [axis_y] * 2, color=INK, linewidth=1.1)
    # Leave enough space between numbers.
    for tick in range(1, worst + 1, int(np.ceil(0.18 * (worst - 1) / (right - left)))):
        line([x(tick)] * 2, [axis_y - 0.07, axis_y], color=INK, linewidth=0.9)
        write(x(tick), axis_y - 0.11, str(tick), ha="center")
    write(right + 0.12, axis_y - 0.11, "better →", color=FAINT)
    if around_control:
        name = str(control)
        centre = averages[name]
        ends = x(min(centre + cd, worst)), x(max(centre - cd, 1))
        line(ends, [axis_y] * 2, color=ACCENT, alpha=0.22, linewidth=14, label="band")
        write(left, axis_y - 0.42, f"band: {texts[name]} ± CD = {cd:.2f}", color=ACCENT)
        different = [name for name in names if abs(averages[name] - centre) >= cd]
        findings = f"Different from {control} by at least {cd:.2f}: {listed(different) or 'none'}."
    else:
        for lane, group in enumerate(groups):
            y = axis_y + 0.1 + lane * _LANE
            # Bars are slightly longer than the group.
            ends = x(values[group[0]]) + 0.05, x(values[group[-1]]) - 0.05
            line(ends, [y, y], color=INK, linewidth=4, zorder=3, label="group")
        ends = left, left + min(cd / (worst - 1), 1) * (right - left)
        line(ends, [axis_y - 0.38] * 2, color=INK, linewidth=1.6, marker="|", mew=1.6, label="cd")
        cut = " (more than the axis)" if cd > worst - 1 else ""
        write(left, axis_y - 0.46, f"CD = {cd:.2f}{cut}")
        different = []
        joined = "; ".join(listed([names[place] for place in group]) for group in groups) or "none"
        findings = f"Critical difference {cd:.2f}; not different: {joined}."
    for place, (name, rank) in enumerate(averages.items()):
        is_bold = name == control or name in different
        color = ACCENT if name == control else FAINT if around_control and not is_bold else INK
        side = 1 if place < n_right else -1
        y = first_row + (place if side > 0 else len(names) - 1 - place) * _ROW
        end = right + 0.12 if side > 0 else left - 0.12
        width = 1.6 if is_bold else 0.9
        line([x(rank), x(rank), end], [axis_y, y, y], color=color, linewidth=width, label="leader")
        if around_control:
            fill = color if is_bold else "none"
            line([x(rank)], [axis_y], "o", ms=5.5, color=color, markerfacecolor=fill, mew=1.2)
        beside = partial(axes.text, y=y, ha="left" if side > 0 else "right", va="center_baseline")
        beside(x=end + 0.05 * side, s=f"{rank:.2f}", fontsize=8, color=FAINT)
        weight = "bold" if is_bold else "normal"
        beside(x=end + 0.43 * side, s=texts[name], fontsize=_TEXT_SIZE, fontweight=weight, color=color)
    ranked = listed([f"{name} {rank:.2f}" for name, rank in averages.items()])
    return PageFigure(figure, f"{title or 'Average ranks'}: {ranked}. {findings}")


def shorten(names: Iterable[str], limit: int) -> dict[str, str]:
    """Cut long names in the middle, as similar names often differ at the end.

    If two names would become equal, none are cut.

    Examples
    --------
    >>> shorten(["pml-fsmir", "a-very-long-name alpha=0.1"], 16)
    {'pml-fsmir': 'pml-fsmir', 'a-very-long-name alpha=0.1': 'a-ver… alpha=0.1'}
    """
    whole = {name: one_line(name) for name in names}
    kept = (limit - 1) // 3
    short = {
        name: text if len(text) <= limit else f"{text[: limit - 1 - 2 * kept]}…{text[-2 * kept :]}"
        for name, text in whole.items()
    }
    return short if len(set(short.values())) == len(short) else whole


def text_width(text: str, size: float) -> float:
    """Return the width of a text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    width, _, _ = TextToPath().get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width) / 72
