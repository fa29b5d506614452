"""Style and export of figures. Needs matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from labelsieve.io.writing import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of text, of highlighted data, and of other data (readable on white and on black).
INK, ACCENT, FAINT = "#1f2328", "#d1495b", "#7d8590"

_DPI = 144
_SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    ".pdf": {"metadata": {"CreationDate": None}},
    ".svg": {"metadata": {"Date": None}},
    ".png": {"dpi": _DPI, "facecolor": "white"},
}
_STYLE: dict[str, Any] = {
    # Names from data may contain dollar signs, which must not start a formula.
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "figure.titlesize": 11,
    "figure.titleweight": "bold",
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.solid_capstyle": "butt",
    "lines.markeredgewidth": 0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib, so figures look the same everywhere
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "path.simplify_threshold": 0.25,
}


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


@contextmanager
def chart_style() -> Iterator[None]:
    """Use the style of reports instead of the user's matplotlib settings."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        # SVG viewers draw glyphs that the font lacks. Other formats show boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


@dataclass(frozen=True)
class PageFigure:
    """Figure with a text description, for a page or for files."""

    figure: Figure
    description: str

    def save(self, folder: Path, stem: str, formats: Sequence[str] = ("pdf", "svg", "png")) -> list[Path]:
        """Save the figure as ``stem.pdf``, ``stem.svg`` and ``stem.png``, or some of them, in a folder.

        The same figure gives the same bytes, without dates. Files are replaced atomically.
        """
        if Path(stem).name != stem:
            raise ValueError(f"stem must be a file name without folders, got {stem!r}.")
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{stem}.{name}" for name in formats]
        for path in paths:
            with replacing(path) as stream:
                self._draw(stream, format=path.suffix[1:], **_SAVE_OPTIONS[path.suffix])
        return paths

    def _draw(self, stream: IO[bytes], **options: Any) -> None:
        import matplotlib as mpl
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        # A fixed salt gives the same identifiers for the same figure.
        with chart_style(), mpl.rc_context({"svg.hashsalt": self.description}):
            if isinstance(self.figure.get_layout_engine(), ConstrainedLayoutEngine):
                # Compute the layout once, not for every file.
                self.figure.draw_without_rendering()
                self.figure.set_layout_engine("none")
            self.figure.savefig(stream, **options)
