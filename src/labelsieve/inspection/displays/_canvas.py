"""What all displays have in common: where they draw, and how names stand beside it. Needs matplotlib to draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelsieve._figures import INK
from labelsieve._text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

__all__ = ["Display", "check_lengths", "draw_ticks", "name_rows", "named_features"]

_LONGEST_NAME = 30


class Display:
    """Base of the displays: axes to draw on, given or new."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _begin(self, ax: Axes | None, n_rows: int | None = None) -> Axes:
        """Take the axes, or make a figure with room for so many rows; sets ``ax_`` and ``figure_``."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError(
                f"{type(self).__name__}.plot needs matplotlib, which is not installed; "
                "pip install 'labelsieve[plot]'."
            ) from None
        if ax is None:
            size = (6, 4) if n_rows is None else (6, 1.2 + 0.22 * n_rows)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax


def name_rows(ax: Axes, names: Sequence[object]) -> np.ndarray:
    """Name the rows of a chart of bars, the first on top; returns their heights."""
    rows = np.arange(len(names))
    # A dollar sign in a name is one, and no mathematics begins there.
    ax.set_yticks(rows, [_cut(one_line(name)) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    return rows


def draw_ticks(ax: Axes, values: np.ndarray, rows: np.ndarray, label: str | None = None) -> Line2D:
    """Mark a value on each of some bars."""
    look: dict[str, Any] = {"color": INK, "markersize": 9, "markeredgewidth": 2, "linestyle": "none"}
    (ticks,) = ax.plot(values, rows, marker="|", label=label, **look)
    return ticks


def check_lengths(expected: int, **given: Any) -> None:
    """Refuse lists that do not have one entry for each."""
    for parameter, values in given.items():
        if values is not None and len(values) != expected:
            raise ValueError(
                f"{parameter} must have {expected} entries. Got {len(values)}. Give one for each."
            )


def named_features(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return the names of the features, one for each, or make some."""
    check_lengths(n_features, feature_names=names)
    return [f"x{j}" for j in range(n_features)] if names is None else list(names)


def _cut(name: str) -> str:
    """Leave room for the bars."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
