"""A metric over two parameters, as an annotated heat map. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelsieve._figures import ACCENT, FAINT, Picture
from labelsieve.report.charts.panels import (
    WIDTH,
    Direction,
    better,
    figure_title,
    fitted,
    in_chart_style,
    power_text,
)


@in_chart_style
def draw_sensitivity_surface(
    values: Any,
    *,
    rows: Sequence[float],
    columns: Sequence[float],
    row_name: str,
    column_name: str,
    title: str,
    direction: Direction,
) -> Picture:
    """Draw a metric over a grid of two parameters.

    A flat map with numbers, where papers often show a surface in perspective: there, peaks hide what is
    behind them and no value can be read. Each value of a parameter takes one place, which for a geometric grid
    is a logarithmic axis.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_columns)
        The metric; NaN where it is missing.
    rows, columns : sequence of float
        Values of the two parameters, ascending.
    row_name, column_name : str
        Names of the parameters.
    title : str
        The metric and the data set.
    direction : {"higher", "lower"}
        Which values are better; the best have a frame.

    Examples
    --------
    >>> picture = draw_sensitivity_surface(
    ...     [[0.3, 0.2], [0.25, float("nan")]], rows=[0.1, 1], columns=[0.1, 1], row_name="alpha",
    ...     column_name="beta", title="ranking loss on birds", direction="lower"
    ... )
    >>> picture.description
    'ranking loss on birds over alpha and beta: best 0.200 at alpha = 0.1 and beta = 1. Lower is better.'
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    table = np.asarray(values, dtype=float)
    if table.shape != (len(rows), len(columns)) or not table.size:
        raise ValueError(
            f"values must have the shape of the parameters {(len(rows), len(columns))!r}, one value or more. "
            f"Got {table.shape!r}."
        )
    better(direction)
    gain = -table if direction == "lower" else table
    shades = _shades(gain)
    height = 0.36 * len(rows) + 0.9
    figure = Figure(figsize=(min(WIDTH, max(0.6 * len(columns) + 0.9, 3.6)), height), layout="constrained")
    axes = figure.subplots()
    # The first row is at the bottom, as on an axis.
    axes.pcolormesh(
        np.ma.masked_invalid(shades), cmap="Blues", vmin=-0.1, vmax=1.25, edgecolors="white", linewidth=1
    )
    for (row, column), value in np.ndenumerate(table):
        # Not the ink, which a page may turn to white.
        color = FAINT if np.isnan(value) else "#ffffff" if shades[row, column] > 0.87 else "#111111"
        text = "–" if np.isnan(value) else _number(value)
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center_baseline", color=color, fontsize=8.5)
    best = np.argwhere(gain == np.nanmax(gain)) if np.isfinite(gain).any() else np.empty((0, 2), dtype=int)
    for row, column in best:
        frame = Rectangle((column + 0.03, row + 0.04), 0.94, 0.92, fill=False, edgecolor=ACCENT, linewidth=2)
        axes.add_patch(frame)
    axes.set_xticks(np.arange(len(columns)) + 0.5, [power_text(value) for value in columns])
    axes.set_yticks(np.arange(len(rows)) + 0.5, [power_text(value) for value in rows])
    axes.set(xlabel=fitted(column_name, 2.5, 9), ylabel=fitted(row_name, height - 0.8, 9))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("darker is better; the best is framed", fontsize=8.5, fontweight="normal")
    figure_title(figure, title, direction)
    return Picture(figure, _description(table, best, rows, columns, row_name, column_name, title, direction))


def _shades(gain: np.ndarray) -> np.ndarray:
    """Scale to [0, 1]; what is all the same is in the middle."""
    finite = gain[np.isfinite(gain)]
    span = np.ptp(finite) if finite.size else 0
    return (gain - finite.min()) / span if span > 0 else np.where(np.isfinite(gain), 0.5, np.nan)


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"


def _description(
    table: np.ndarray,
    best: np.ndarray,
    rows: Sequence[float],
    columns: Sequence[float],
    row_name: str,
    column_name: str,
    title: str,
    direction: str,
) -> str:
    where = f"{title} over {row_name} and {column_name}"
    if not len(best):
        return f"{where}: no values."
    row, column = best[0]
    return (
        f"{where}: best {_number(table[row, column])} at {row_name} = {rows[row]:g} and "
        f"{column_name} = {columns[column]:g}. {direction.capitalize()} is better."
    )
