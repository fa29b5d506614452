"""Figures, as PNG files and as SVG for a page. Needs matplotlib."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve.datasets.writing import replacing
from labelsieve.report.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Stands for the colour of text; an SVG takes that of the page instead, which may be dark or light.
_INK = "#1f2328"
_ACCENT = "#d1495b"
_DPI = 144


@dataclass(frozen=True)
class Picture:
    """A figure and what it shows, in words for those who do not see it."""

    figure: Figure
    description: str

    def save_png(self, path: Path) -> None:
        """Write a PNG file, whole or not at all."""
        with replacing(path) as stream:
            self.figure.savefig(stream, format="png", dpi=_DPI, facecolor="white")

    def svg(self) -> str:
        """Return an ``<svg>`` element in the text colour of the page around it."""
        import matplotlib as mpl

        stream = io.StringIO()
        # A fixed salt and no date: the same findings give the same page. Text stays text.
        with mpl.rc_context({"svg.hashsalt": self.description, "svg.fonttype": "none"}):
            self.figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
        text = stream.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        # The size is the page's business; a style sheet of the figure would apply to the whole page.
        text = re.sub(
            r'(<svg[^>]*?) width="[^"]*"',
            r"\1",
            re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1),
            count=1,
        )
        text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
        return text.replace(_INK, "currentColor")


def draw_convergence(found: Selection) -> Picture:
    """Draw the objective over the iterations; `found` must have a history."""
    figure = _figure(7.2, 2.6)
    _convergence(figure.subplots(), found)
    return Picture(figure, _convergence_text(found))


def draw_pixels(found: Selection, mean_image: np.ndarray, scores: np.ndarray) -> Picture:
    """Draw selected pixels over the mean image, the scores of all, and the convergence if there is any."""
    n_panels = 2 + (found.objective is not None)
    figure = _figure(3.5 * n_panels, 3.6)
    panels = figure.subplots(1, n_panels)
    height, width = mean_image.shape
    image, heat = panels[:2]
    order = np.argsort(-scores, kind="stable")[: len(found.selected)]

    image.pcolormesh(mean_image, cmap="Greys", edgecolors="white", linewidth=0.5)
    for rank, pixel in enumerate(order, start=1):
        row, column = divmod(int(pixel), width)
        image.add_patch(_square(row, column, facecolor="none", edgecolor=_ACCENT, linewidth=2))
        colour = "white" if mean_image[row, column] > 0.5 * mean_image.max() else "black"
        image.text(column + 0.5, row + 0.52, str(rank), ha="center", va="center", fontsize=8, color=colour)
    image.set_title(f"{len(order)} selected pixels, by rank,\non the mean digit")

    # The root keeps one outstanding pixel from leaving all others blank.
    heat.pcolormesh(
        np.sqrt(np.maximum(scores, 0)).reshape(height, width),
        cmap="magma_r",
        edgecolors="white",
        linewidth=0.5,
    )
    heat.set_title("score of every pixel\n(square root)")
    for axes in (image, heat):
        axes.set_aspect("equal")
        axes.invert_yaxis()
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
    description = f"The {len(order)} selected pixels on the mean digit, and the score of every pixel."
    if found.objective is not None:
        _convergence(panels[2], found)
        panels[2].set_box_aspect(1)
        description += f" {_convergence_text(found)}"
    return Picture(figure, description)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _square(row: int, column: int, **style: Any) -> Any:
    from matplotlib.patches import Rectangle

    inset = 0.07
    return Rectangle((column + inset, row + inset), 1 - 2 * inset, 1 - 2 * inset, **style)


def _convergence(axes: Axes, found: Selection) -> None:
    assert found.objective is not None
    history = np.array(found.objective)
    axes.plot(history, color=_ACCENT, linewidth=2)
    if history.min() > 0:
        axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_title(
        f"objective: {'converged' if found.converged else 'not converged'}\nin {found.n_iter} iterations"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)


def _convergence_text(found: Selection) -> str:
    assert found.objective is not None
    return (
        f"The objective fell from {found.objective[0]:.4g} to {found.objective[-1]:.4g} "
        f"in {found.n_iter} iterations."
    )
