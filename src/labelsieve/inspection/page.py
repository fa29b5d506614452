"""One self-contained HTML page about a fit. Needs jinja2 and matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelsieve import __version__
from labelsieve.datasets.writing import replacing
from labelsieve.inspection.figures import draw_convergence, draw_size_curve, draw_stability
from labelsieve.inspection.selection import Selection
from labelsieve.pages import render
from labelsieve.pictures import Picture

# A page of more rows is read by nobody; the ranking in full is what CSV is for.
_MOST_ROWS = 100


def render_page(
    found: Selection,
    *,
    title: str | None = None,
    pictures: Sequence[Picture] = (),
    evidence: Picture | None = None,
) -> str:
    """Return the page: pictures, ranking, doubtful candidates, and what was asked about size and stability.

    Parameters
    ----------
    found : Selection
        What to tell.
    title : str or None, default=None
        Heading; None makes one of the data's name and the method.
    pictures : sequence of Picture
        Figures about the data, which stand first.
    evidence : Picture or None, default=None
        A figure about the candidates that look wrong.
    """
    curves = [] if found.curve is None else [draw_size_curve(found)]
    curves += [] if found.objective is None else [draw_convergence(found)]
    return render(
        "inspection.html",
        generator=f"labelsieve {__version__}",
        found=found,
        title=title or f"{found.data}: features selected by {found.method}",
        pictures=[*pictures, *curves] if pictures else [],
        # Alone, a curve would leave most of a row empty.
        below_ranking=[] if pictures else curves,
        stability=None if found.stability is None else draw_stability(found),
        evidence=evidence,
        shown=found.selected[:_MOST_ROWS],
    )


def write_page(found: Selection, path: Path, **options: Any) -> None:
    """Write the page to a file, whole or not at all; `options` are those of `render_page`."""
    content = render_page(found, **options).encode()
    with replacing(path) as stream:
        stream.write(content)
