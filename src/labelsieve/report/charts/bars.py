"""Bars and dots, a row or a group for each method. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._figures import FAINT, INK, Picture
from labelsieve.report.charts.method_styles import MethodStyles, shorten
from labelsieve.report.charts.panels import (
    NOTHING,
    WIDTH,
    Direction,
    figure_title,
    in_chart_style,
    legend,
    log_scale,
    name_rows,
    numbers,
    panel_title,
    styles_of,
    text_width,
)
from labelsieve.report.wording import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue, grey and orange: apart for every colour vision, and dark enough or light enough for their numbers.
_OUTCOMES = (("wins", "#0072b2", "#ffffff"), ("ties", "#c4cad0", "#111111"), ("losses", "#e69f00", "#111111"))


@in_chart_style
def draw_win_tie_loss(
    comparisons: Mapping[str, Sequence[float]],
    *,
    control: str,
    title: str = "",
    alpha: float = 0.05,
    styles: MethodStyles | None = None,
) -> Picture:
    """Draw on how many data sets a control wins, ties and loses against every other method.

    Parameters
    ----------
    comparisons : mapping of str to (wins, ties, losses, p_value)
        By opponent; p-values already adjusted for their number (Holm), NaN where there is none.
    control : str
        Whose wins these are.
    title : str
        What was compared: the metric.
    alpha : float, default=0.05
        P-values below it are bold and carry a star.
    styles : MethodStyles or None, default=None
        Which opponents are references.

    Examples
    --------
    >>> picture = draw_win_tie_loss({"mifs": (6, 1, 1, 0.03), "rfs": (2, 0, 6, 0.4)}, control="pml-fsmir")
    >>> picture.description
    'Wins, ties and losses of pml-fsmir: mifs 6, 1, 1 (p = 0.030); rfs 2, 0, 6 (p = 0.400).'
    """
    names = list(comparisons)
    figure, axes = _rows(names)
    name_rows(axes, names, styles_of([comparisons], styles))
    counts = np.nan_to_num(np.array([numbers(comparisons[name])[:3] for name in names]))
    starts = np.cumsum(counts, axis=1) - counts
    handles = []
    for column, (_, color, ink) in enumerate(_OUTCOMES):
        widths, left = counts[:, column], starts[:, column]
        handles.append(axes.barh(range(len(names)), widths, left=left, height=0.72, color=color))
        for row in np.flatnonzero(widths).tolist():
            middle = left[row] + widths[row] / 2
            axes.text(
                middle, row, f"{widths[row]:g}", ha="center", va="center_baseline", color=ink, fontsize=8.5
            )
    total = max(counts.sum(axis=1).max(), 1)
    p_texts = [_p_text(numbers(comparisons[name])[3]) for name in names]
    for row, (name, text) in enumerate(zip(names, p_texts, strict=True)):
        is_different = numbers(comparisons[name])[3] < alpha
        axes.text(
            1.02 * total,
            row,
            f"{text} *" if is_different else text,
            va="center_baseline",
            fontsize=8.5,
            fontweight="bold" if is_different else "normal",
        )
    axes.set_xlim(0, 1.28 * total)
    axes.xaxis.set_visible(False)
    axes.spines[:].set_visible(False)
    short = shorten([control], 30)[control]
    figure_title(figure, f"{title}: {short} against…" if title else f"{short} against…")
    legend(figure, handles, [outcome for outcome, *_ in _OUTCOMES])
    told = "; ".join(
        f"{name} {', '.join(f'{count:g}' for count in row)} ({text})"
        for name, row, text in zip(names, counts, p_texts, strict=True)
    )
    return Picture(figure, f"{title + ': w' if title else 'W'}ins, ties and losses of {control}: {told}.")


def _p_text(p_value: float) -> str:
    if not np.isfinite(p_value):
        return "no p-value"
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


@in_chart_style
def draw_costs(
    panels: Mapping[str, Mapping[str, Mapping[str, float]]],
    *,
    title: str = "",
    styles: MethodStyles | None = None,
) -> Picture:
    """Draw what methods cost on a logarithmic axis, with a dot for each data set.

    Parameters
    ----------
    panels : mapping of str to mapping of str to mapping of str to float
        For each quantity, say ``"fit time (s)"``, the values by method and data set. A grey stroke marks the
        median of a method.
    title : str
        What all panels show.
    styles : MethodStyles or None, default=None
        The methods.

    Examples
    --------
    >>> picture = draw_costs({"fit time (s)": {"mifs": {"birds": 0.2, "yeast": 3.0}}})
    >>> picture.description
    'fit time (s) of mifs, a dot for each of 2 data sets. Medians: mifs 1.6.'
    """
    styles = styles_of(panels.values(), styles)
    names = styles.pick(name for methods in panels.values() for name in methods)
    datasets = MethodStyles(
        tuple(
            dict.fromkeys(
                data for methods in panels.values() for values in methods.values() for data in values
            )
        )
    )
    figure, all_axes = _rows_in_panels(names, len(panels))
    name_rows(all_axes[0], names, styles)
    handles: dict[str, Any] = {}
    medians = []
    for axes, (quantity, methods) in zip(all_axes, panels.items(), strict=True):
        for row, name in enumerate(names):
            values = methods.get(name, {})
            there = [value for value in values.values() if np.isfinite(value)]
            if there:
                median = float(np.median(there))
                medians.append(f"{name} {median:.3g}")
                axes.plot(
                    [median] * 2, [row - 0.34, row + 0.34], color=FAINT, linewidth=2, alpha=0.7, zorder=2
                )
            for data, value in values.items():
                (handles[data],) = axes.plot([value], [row], **_dot(datasets, data))
        log_scale(axes, [value for values in methods.values() for value in values.values()])
        axes.grid(axis="x")
        axes.tick_params(axis="y", left=False)
        panel_title(axes, quantity)
    figure_title(figure, title)
    legend(figure, list(handles.values()), list(handles))
    return Picture(
        figure,
        f"{listed(panels)} of {listed(names)}, a dot for each of {len(datasets.methods)} data sets. "
        f"Medians: {'; '.join(medians)}.",
    )


@in_chart_style
def draw_stability(
    measures: Mapping[str, Mapping[str, Any]], *, title: str = "", styles: MethodStyles | None = None
) -> Picture:
    """Draw how stable selections are, with a dot for each measure in the row of a method.

    Parameters
    ----------
    measures : mapping of str to mapping of str to float or sequence of float
        For each measure, say ``"Kuncheva"``, the values by method. Of several, one for each data set, the dot
        is the mean and a line goes from the least to the largest.
    title : str
        What is shown.
    styles : MethodStyles or None, default=None
        The methods.

    Examples
    --------
    >>> picture = draw_stability({"Kuncheva": {"mifs": [0.2, 0.4]}, "Jaccard": {"mifs": 0.5}})
    >>> [float(line.get_xdata()[0]) for line in picture.figure.axes[0].lines if line.get_marker() != "None"]
    [0.30000000000000004, 0.5]
    """
    styles = styles_of(measures.values(), styles)
    names = styles.pick(name for methods in measures.values() for name in methods)
    looks = MethodStyles(tuple(measures))
    figure, axes = _rows(names, row_height=0.1 + 0.1 * len(measures))
    name_rows(axes, names, styles)
    handles: dict[str, Any] = {}
    # Values of one method lie below one another, not on top.
    lanes = np.linspace(-0.25, 0.25, len(measures)) if len(measures) > 1 else np.zeros(1)
    for lane, (measure, methods) in zip(lanes, measures.items(), strict=True):
        color = looks.color(measure)
        for name in styles.pick(methods):
            values = numbers(methods[name])
            values = values[np.isfinite(values)]
            row = names.index(name) + lane
            if len(values) > 1:
                axes.plot([values.min(), values.max()], [row, row], color=color, linewidth=1.4, alpha=0.5)
            if len(values):
                (handles[measure],) = axes.plot([values.mean()], [row], **_dot(looks, measure))
    for boundary in range(len(names) - 1):
        axes.axhline(boundary + 0.5, color=FAINT, alpha=0.25, linewidth=0.6)
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, 0), max(right, 1.02))
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    axes.grid(axis="x")
    axes.set_xlabel("1 = the same features every time")
    figure_title(figure, title)
    legend(figure, list(handles.values()), list(handles))
    return Picture(
        figure, f"{title or 'Stability'} of {listed(names)}, by {listed(measures)}; 1 is the most stable."
    )


@in_chart_style
def draw_ablation(
    groups: Mapping[str, Mapping[str, Any]],
    *,
    title: str,
    direction: Direction,
    styles: MethodStyles | None = None,
) -> Picture:
    """Draw variants of a method as bars side by side, a group for each data set.

    Parameters
    ----------
    groups : mapping of str to mapping of str to float or (float, float)
        For each data set, the values by variant; of two numbers, the second is the length of the error bar to
        either side.
    title : str
        The metric.
    direction : {"higher", "lower"}
        Which values are better.
    styles : MethodStyles or None, default=None
        The variants; its control is the whole method.

    Examples
    --------
    >>> birds = {"pml-fsmir": (0.2, 0.01), "no label MI": (0.25, 0.02)}
    >>> picture = draw_ablation({"birds": birds}, title="ranking loss", direction="lower")
    >>> [float(bar.get_height()) for bar in picture.figure.axes[0].patches]
    [0.2, 0.25]
    """
    from matplotlib.figure import Figure

    styles = styles_of(groups.values(), styles)
    names = styles.pick(name for values in groups.values() for name in values)
    if not names:
        raise ValueError(NOTHING)
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(names)
    handles = []
    for place, name in enumerate(names):
        values = np.array([_with_error(variants.get(name, np.nan)) for variants in groups.values()])
        x = np.arange(len(groups)) + (place - (len(names) - 1) / 2) * width
        # Hatched where a line would be dashed: the colours have begun anew.
        hatch = None if styles.line(name).get("linestyle", "-") == "-" else "////"
        look: dict[str, Any] = {
            "color": styles.color(name),
            "hatch": hatch,
            "edgecolor": "white",
            "linewidth": 0,
        }
        handles.append(axes.bar(x, values[:, 0], 0.92 * width, **look))
        has_error = np.isfinite(values).all(axis=1)
        axes.errorbar(
            x[has_error],
            values[has_error, 0],
            values[has_error, 1],
            fmt="none",
            ecolor=INK,
            elinewidth=min(1.0, 20 * width / len(groups)),
        )
    _name_groups(axes, list(groups), WIDTH - 0.6)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="both", left=False, bottom=False)
    axes.set_xlim(-0.55, len(groups) - 0.45)
    figure_title(figure, title, direction)
    legend(figure, handles, names)
    return Picture(
        figure, f"{title} of {listed(names)} on {listed(groups)}. {direction.capitalize()} is better."
    )


def _with_error(value: Any) -> np.ndarray:
    return np.append(numbers(value), np.nan)[:2]


def _name_groups(axes: Axes, names: list[str], inches: float) -> None:
    """Name places on the x axis, aslant if there is no room."""
    short = shorten(names, 20)
    texts = [short[name] for name in names]
    if max(text_width(text, 8.5) for text in texts) < 0.95 * inches / len(texts):
        axes.set_xticks(range(len(texts)), texts)
    else:
        axes.set_xticks(range(len(texts)), texts, rotation=30, ha="right", rotation_mode="anchor")


def _dot(styles: MethodStyles, name: str) -> dict[str, Any]:
    line = styles.line(name)
    return {
        "color": line["color"],
        "marker": line["marker"],
        "markersize": 1.25 * line["markersize"],
        "linestyle": "none",
        "clip_on": False,
        "zorder": 3,
    }


def _rows(names: Sequence[str], row_height: float = 0.24) -> tuple[Figure, Axes]:
    figure, (axes,) = _rows_in_panels(names, 1, row_height)
    return figure, axes


def _rows_in_panels(
    names: Sequence[str], n_panels: int, row_height: float = 0.24
) -> tuple[Figure, list[Axes]]:
    """Make panels side by side that share rows for the names."""
    from matplotlib.figure import Figure

    if not names:
        raise ValueError(NOTHING)
    figure = Figure(figsize=(WIDTH, row_height * len(names) + 0.85), layout="constrained")
    return figure, list(figure.subplots(1, n_panels, sharey=True, squeeze=False)[0])
