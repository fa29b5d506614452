"""A figure that can be written to files and into a page. Needs matplotlib."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from xml.etree import ElementTree

from labelsieve.datasets.writing import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Stands for the colour of text; an SVG takes that of the page instead, which may be dark or light.
INK = "#1f2328"
#: What a figure is about.
ACCENT = "#d1495b"
#: What stands back; seen on white and on black.
FAINT = "#7d8590"

_DPI, _PAGE_DPI = 144, 100
# What `savefig` is told of a format.
_OPTIONS: dict[str, dict[str, Any]] = {
    ".pdf": {"metadata": {"CreationDate": None}},
    ".svg": {"metadata": {"Date": None}},
    ".png": {"dpi": _DPI, "facecolor": "white"},
}
_STYLE: dict[str, Any] = {
    # Names come from data: a dollar sign is one, and no mathematics begins there.
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
    "font.sans-serif": ["DejaVu Sans"],  # matplotlib brings it along: the same figure everywhere
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "path.simplify_threshold": 0.25,
}


@contextmanager
def chart_style() -> Iterator[None]:
    """Draw in the style of reports, whatever the user's matplotlib is set to."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        # Names in scripts that the font lacks are drawn by the reader of an SVG, and as boxes elsewhere.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


@dataclass(frozen=True)
class Picture:
    """A figure and what it shows, in words for those who do not see it."""

    figure: Figure
    description: str

    def save_png(self, path: Path) -> None:
        """Write a PNG file, whole or not at all."""
        self._write(path, **_OPTIONS[".png"])

    def save(self, folder: Path, stem: str, formats: Sequence[str] = ("pdf", "svg", "png")) -> list[Path]:
        """Write ``stem.pdf``, ``stem.svg`` and ``stem.png``, or some of them, into a folder, each whole or not at all.

        The same figure gives the same bytes: no file holds a date.
        """
        if Path(stem).name != stem:
            raise ValueError(
                f"stem must be a file name without folders. Got {stem!r}. Name the folder apart."
            )
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{stem}.{name}" for name in formats]
        for path in paths:
            self._write(path, **_OPTIONS[path.suffix])
        return paths

    def png(self) -> bytes:
        """Return a PNG file for a page, smaller than those that are saved."""
        stream = io.BytesIO()
        self._draw(stream, format="png", **{**_OPTIONS[".png"], "dpi": _PAGE_DPI})
        return stream.getvalue()

    def svg(self) -> str:
        """Return an ``<svg>`` element in the text colour and font of the page around it."""
        stream = io.BytesIO()
        self._draw(stream, format="svg", transparent=True, metadata={"Date": None})
        root = ElementTree.fromstring(stream.getvalue())
        _shrink(root, set())
        # The size is the page's business, up to where text would be larger than that of other figures.
        for name in ("width", "height"):
            root.attrib.pop(name)
        widest = 1.25 * self.figure.get_figwidth()
        root.set("style", f"stroke-linejoin:round;fill:currentColor;max-width:{widest:.3g}in")
        root.attrib = {"xmlns": "http://www.w3.org/2000/svg", **root.attrib}
        return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")

    def _write(self, path: Path, **options: Any) -> None:
        with replacing(path) as stream:
            self._draw(stream, format=path.suffix[1:], **options)

    def _draw(self, stream: IO[bytes], **options: Any) -> None:
        import matplotlib as mpl
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        # A fixed salt: the same figure has the same identifiers.
        with chart_style(), mpl.rc_context({"svg.hashsalt": self.description}):
            if isinstance(self.figure.get_layout_engine(), ConstrainedLayoutEngine):
                # Arranged once, not for every file.
                self.figure.draw_without_rendering()
                self.figure.set_layout_engine("none")
            self.figure.savefig(stream, **options)


def _shrink(element: ElementTree.Element, stroked: set[str], *, is_defined: bool = False) -> None:
    """Leave of matplotlib's SVG what a page needs, about a third: a page may hold dozens of figures.

    `stroked` collects the identifiers of markers that say themselves how they are stroked; what `is_defined` is drawn
    where it is used.
    """
    element.tag = element.tag.rpartition("}")[2]
    element.attrib = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    if element.tag == "g":
        element.attrib.pop("id", None)
    if element.tag != "text":
        element.text = None
    element.tail = None
    if element.tag in ("path", "use") and not is_defined and "fill" not in element.get("style", ""):
        # Black, which matplotlib leaves unsaid. In a picture of data it is no ink of the page.
        element.set("style", f"fill: #000000; {element.get('style', '')}".rstrip("; "))
    _shrink_attributes(element, stroked)
    kept = []
    for child in element:
        _shrink(child, stroked, is_defined=is_defined or element.tag in ("defs", "clipPath"))
        # A style sheet of the figure would apply to the whole page.
        if child.tag in ("metadata", "style") or (child.tag in ("g", "defs") and not len(child)):
            continue
        is_bare = child.tag == "g" and not child.attrib
        kept += list(child) if is_bare else [child]
    element[:] = kept
    styles = {child.get("style") for child in kept if child.tag == "use"}
    style = styles.pop() if len(styles) == 1 else None
    if element.tag == "g" and style and all(child.tag == "use" for child in kept):
        # Markers of one line look alike: say so once.
        element.set("style", style)
        for child in kept:
            child.attrib.pop("style", None)


def _shrink_attributes(element: ElementTree.Element, stroked: set[str]) -> None:
    attributes = element.attrib
    style = attributes.get("style", "")
    outline = attributes.get("d", "")
    # A tenth of a point is enough for data; a marker is small, drawn once and stands everywhere.
    digits = 1 if "fill: none" in style or element.tag == "use" or len(outline) > 300 else 2
    for name in ("x", "y", "transform"):
        if name in attributes:
            attributes[name] = _NUMBER.sub(partial(_rounded, digits=digits), attributes[name])
    if outline:
        attributes["d"] = _short_outline(outline, digits)
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    if not style:
        return
    if "id" in attributes:
        stroked.add(attributes["id"])
    # The font and colour of text are the page's.
    unsaid = ["font-family", "stroke-dashoffset"]
    if element.tag == "text":
        unsaid.append("fill: currentColor")
    if attributes.get("href", "")[1:] in stroked:
        unsaid += ["stroke", "fill: currentColor"]
    said = style.replace(INK, "currentColor").split("; ")
    attributes["style"] = ";".join(part for part in said if not part.startswith(tuple(unsaid))).replace(
        ": ", ":"
    )
    if not attributes["style"]:
        del attributes["style"]


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _rounded(number: re.Match[str], digits: int) -> str:
    return f"{round(float(number[0]), digits):g}"


def _short_outline(outline: str, digits: int) -> str:
    """Round an outline; one of straight lines is told by steps, which have fewer figures than places."""
    commands = re.findall(r"([A-Za-z])([^A-Za-z]*)", outline)
    if {letter for letter, _ in commands} - set("MLz"):
        return re.sub(
            r"\s*([A-Za-z])\s*", r"\1", _NUMBER.sub(partial(_rounded, digits=digits), outline)
        ).strip()
    parts, before = [], ""
    x = y = 0.0
    for letter, numbers in commands:
        if letter == "z":
            parts.append("z")
        else:
            # Steps between rounded places: their errors do not add up.
            new_x, new_y = (round(float(number), digits) for number in numbers.split())
            lead = "M" if letter == "M" else " " if before == "L" else "l"
            step = (new_x, new_y) if letter == "M" else (new_x - x, new_y - y)
            parts.append(lead + " ".join(f"{round(value, digits):g}" for value in step))
            x, y = new_x, new_y
        before = letter
    return re.sub(r"(?<!\d)0\.", ".", "".join(parts)).replace(" -", "-")
