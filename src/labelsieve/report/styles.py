"""Looks of the methods in figures: the same in every figure of a report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from labelsieve._figures import ACCENT, FAINT
from labelsieve._text import one_line

__all__ = ["Styles", "shorten", "text_width"]

# Blue, orange and green are those of Okabe and Ito, "Color universal design" (2008). The others were searched
# for: no two, nor the accent or the grey, come closer than 10 in CIE Lab to an eye that lacks one kind of
# cone (simulated after Machado et al. 2009), and all are seen on white and on black.
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#d98cc0", "#33bbcc", "#a0522d", "#bb99ff", "#bb9955")
_MARKERS = "s^DvPX<>phd*8H"
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.2)), (0, (1.5, 1)))
_REFERENCE_DASHES: tuple[Any, ...] = tuple(
    (0, pattern)
    for pattern in ((6, 2), (1.2, 1.6), (6, 2, 1.2, 2), (3, 3), (10, 3), (4, 1.5, 1, 1.5, 1, 1.5))
)


@dataclass(frozen=True)
class Styles:
    """Colours, markers and dashes by name.

    Parameters
    ----------
    methods : tuple of str
        Each has a colour and a marker; after eight the lines are dashed as well.
    references : tuple of str, default=()
        Grey and dashed.
    control : str or None, default=None
        The method a figure is about; it is drawn on top, thick.

    Examples
    --------
    >>> styles = Styles(("pml-fsmir", "mifs"), ("all-features",), control="pml-fsmir")
    >>> styles.line("mifs")["color"], styles.line("all-features")["color"]
    ('#0072b2', '#7d8590')
    """

    methods: tuple[str, ...]
    references: tuple[str, ...] = ()
    control: str | None = None

    def line(self, name: str) -> dict[str, Any]:
        """Return the line style of a name for matplotlib."""
        if name in self.references:
            dashes = _REFERENCE_DASHES[self.references.index(name) % len(_REFERENCE_DASHES)]
            return {"color": FAINT, "linestyle": dashes, "linewidth": 1.2, "zorder": 2}
        if name == self.control:
            return {"color": ACCENT, "marker": "o", "markersize": 5, "linewidth": 2.3, "zorder": 4}
        place = [method for method in self.methods if method != self.control].index(name)
        marker = _MARKERS[place % len(_MARKERS)]
        return {
            "color": _COLORS[place % len(_COLORS)],
            "linestyle": _DASHES[place // len(_COLORS) % len(_DASHES)],
            "marker": marker,
            # A cross or star covers less of its square.
            "markersize": 5.5 if marker in "PX*" else 4.2,
            "linewidth": 1.4,
            "zorder": 3,
        }


def shorten(names: Iterable[str], limit: int) -> dict[str, str]:
    """Cut long names in the middle, because names of one family differ at the end.

    If two become equal, all stay as they are.

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
