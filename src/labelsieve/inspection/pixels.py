"""Figures of what an audit found in images: which pixels matter, and which images to review. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._figures import ACCENT, INK, PageFigure
from labelsieve._text import one_line
from labelsieve.inspection.displays import ConvergenceDisplay, SizeCurveDisplay
from labelsieve.inspection.ranking import Ranking
from labelsieve.inspection.result import Audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_selected_pixels(ranking: Ranking, mean_image: np.ndarray) -> PageFigure:
    """Draw the selected pixels, with their ranks, over the mean image."""
    figure = _figure()
    _selected_pixels(figure.subplots(), ranking, mean_image)
    return PageFigure(figure, f"The {ranking.n_kept} selected pixels, by rank, on the mean of all images.")


def draw_pixel_worth(ranking: Ranking, shape: tuple[int, ...]) -> PageFigure:
    """Draw what every pixel is worth by itself."""
    figure = _figure()
    _pixel_worth(figure.subplots(), ranking, shape)
    return PageFigure(figure, f"The {ranking.measure} of every pixel, darker is more.")


def draw_overview(found: Audit, mean_image: np.ndarray) -> PageFigure:
    """Draw selected pixels, what pixels are worth and, if there are any, the curves next to each other."""
    ranking = found.ranking
    assert ranking is not None
    curves = [
        draw
        for given, draw in ((found.size_curve, _size_curve), (ranking.objective, _convergence))
        if given is not None
    ]
    figure = _figure(2 + len(curves))
    panels = figure.subplots(1, 2 + len(curves), gridspec_kw={"wspace": 0.12})
    _selected_pixels(panels[0], ranking, mean_image)
    _pixel_worth(panels[1], ranking, mean_image.shape)
    for axes, draw in zip(panels[2:], curves, strict=True):
        draw(axes, found, ranking)
    return PageFigure(figure, "Selected pixels, what pixels are worth, and curves.")


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


def _selected_pixels(axes: Axes, ranking: Ranking, mean_image: np.ndarray) -> None:
    # Half of the range of greys, so that black figures stand out.
    _pixels(axes, mean_image, cmap="Greys", vmax=1.6 * mean_image.max())
    for rank, pixel in enumerate(ranking.kept, start=1):
        row, column = divmod(int(pixel), mean_image.shape[1])
        axes.add_patch(_square(row, column))
        axes.text(column + 0.5, row + 0.53, str(rank), ha="center", va="center", fontsize=9, color="#111111")
    _title(axes, f"The {ranking.n_kept} selected pixels", "by rank, on the mean of all images")


def _pixel_worth(axes: Axes, ranking: Ranking, shape: tuple[int, ...]) -> None:
    # The root keeps one outstanding pixel from leaving all others blank.
    _pixels(axes, np.sqrt(np.maximum(ranking.worth, 0)).reshape(shape), cmap="OrRd")
    _title(axes, f"{ranking.measure.capitalize()} of every pixel", "darker is more")


def _figure(n_panels: int = 1) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(3.6 * n_panels, 3.7), layout="constrained")


def _pixels(axes: Axes, values: np.ndarray, *, linewidth: float = 1, **style: Any) -> None:
    """Draw a grid of pixels, the first row on top."""
    axes.pcolormesh(values, edgecolors="white", linewidth=linewidth, vmin=0, **style)
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.invert_yaxis()
    axes.spines[:].set_color("#8b949e")


def _square(row: int, column: int) -> Any:
    from matplotlib.patches import Rectangle

    inset = 0.07
    side = 1 - 2 * inset
    return Rectangle((column + inset, row + inset), side, side, fill=False, edgecolor=ACCENT, linewidth=2.2)


def _title(axes: Axes, title: str, remark: str) -> None:
    """Say what a panel shows, and below it how to read it."""
    axes.set_title(f"{title}\n", loc="left", fontsize=12, fontweight="bold", color=INK)
    above: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(remark, (0, 1), xytext=(0, 7), fontsize=9.5, color=INK, **above)


def _size_curve(axes: Axes, found: Audit, ranking: Ranking) -> None:
    curve = found.size_curve
    assert curve is not None
    SizeCurveDisplay.from_curve(curve, ax=axes)
    axes.axvline(ranking.n_kept, color=INK, linewidth=1, linestyle=":")
    _title(axes, "How many are enough?", f"precision on held-out rows, most at {curve.best}")
    _as_curve(axes, "features (dotted: selected)")


def _convergence(axes: Axes, found: Audit, ranking: Ranking) -> None:
    assert ranking.objective is not None
    ConvergenceDisplay(objective=ranking.objective).plot(axes)
    end = "converged" if ranking.converged else "not converged"
    _title(axes, "Objective", f"{end} in {ranking.n_iter} iterations")
    _as_curve(axes, "iteration")


def _as_curve(axes: Axes, x_label: str) -> None:
    """Frame a curve as wide as the pixels beside it."""
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel("")  # the title says it
    axes.tick_params(colors=INK, labelsize=9)
    axes.set_box_aspect(1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_color(INK)
    axes.grid(axis="y", alpha=0.3)
