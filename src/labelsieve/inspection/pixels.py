"""Figures of what an audit found in images: which pixels matter, and which images to review. Need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._figures import ACCENT, INK, PageFigure
from labelsieve._text import one_line
from labelsieve.inspection.displays import SizeCurveDisplay
from labelsieve.inspection.result import Audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_overview(found: Audit, mean_image: np.ndarray) -> PageFigure:
    """Draw the selected pixels, the worth of every pixel and, if there is one, the size curve next to each other."""
    from matplotlib.figure import Figure

    ranking, curve = found.ranking, found.size_curve
    assert ranking is not None
    n_panels = 2 if curve is None else 3
    figure = Figure(figsize=(3.6 * n_panels, 3.7), layout="constrained")
    selected, worth, *rest = figure.subplots(1, n_panels, gridspec_kw={"wspace": 0.12})
    # Half of the range of greys, so that black figures stand out.
    _pixels(selected, mean_image, cmap="Greys", vmax=1.6 * mean_image.max())
    for rank, pixel in enumerate(ranking.kept, start=1):
        row, column = divmod(int(pixel), mean_image.shape[1])
        _mark(selected, row, column, rank)
    _title(selected, f"The {ranking.n_kept} selected pixels", "by rank, on the mean of all images")
    # The root keeps one outstanding pixel from leaving all others blank.
    _pixels(worth, np.sqrt(np.maximum(ranking.worth, 0)).reshape(mean_image.shape), cmap="OrRd")
    _title(worth, f"{ranking.measure.capitalize()} of every pixel", "darker is more")
    if curve is not None:
        (axes,) = rest
        SizeCurveDisplay(curve).plot(axes)
        axes.axvline(ranking.n_kept, color=INK, linewidth=1, linestyle=":")
        _title(axes, "How many are enough?", f"precision on held-out rows, most at {curve.best}")
        axes.set_xlabel("features (dotted: selected)", color=INK)
        axes.set_ylabel("")  # the title says it
        axes.tick_params(colors=INK, labelsize=9)
        axes.set_box_aspect(1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    words = (
        f"The {ranking.n_kept} selected pixels on the mean image, and the {ranking.measure} of every pixel."
    )
    return PageFigure(figure, words)


def draw_label_issues(issues: Sequence[tuple[int, str]], images: np.ndarray) -> PageFigure:
    """Draw the images of rows with the label that looks wrong, five in a row."""
    from matplotlib.figure import Figure

    n_rows = -(-len(issues) // 5)
    figure = Figure(figsize=(6, 1.6 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, 5, squeeze=False).ravel()
    for axes, (row, label) in zip(panels, issues, strict=False):
        image = images[row]
        # Not quite black, which a dark page would turn to white.
        _pixels(axes, image, cmap="Greys", vmax=1.02 * image.max(), linewidth=0.2)
        axes.set_title(f"{one_line(label)}?", fontsize=8.5, color=INK, parse_math=False)
        axes.set_xlabel(f"row {row}", fontsize=8.5, color=INK)
    for axes in panels[len(issues) :]:
        axes.axis("off")
    return PageFigure(figure, f"The first {len(issues)} of the list, with the label in question.")


def _pixels(axes: Axes, values: np.ndarray, *, linewidth: float = 1, **style: Any) -> None:
    """Draw a grid of pixels, the first row on top."""
    axes.pcolormesh(values, edgecolors="white", linewidth=linewidth, vmin=0, **style)
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.invert_yaxis()
    axes.spines[:].set_color("#8b949e")


def _mark(axes: Axes, row: int, column: int, rank: int) -> None:
    """Frame a pixel and write its rank into it."""
    from matplotlib.patches import Rectangle

    corner, side = (column + 0.07, row + 0.07), 0.86
    axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=ACCENT, linewidth=2.2))
    axes.text(column + 0.5, row + 0.53, str(rank), ha="center", va="center", fontsize=9, color="#111111")


def _title(axes: Axes, title: str, remark: str) -> None:
    """Say what a panel shows, and below it how to read it."""
    axes.set_title(f"{title}\n", loc="left", fontsize=12, fontweight="bold", color=INK)
    above: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(remark, (0, 1), xytext=(0, 7), fontsize=9.5, color=INK, **above)
