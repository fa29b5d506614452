"""One self-contained HTML page about a fit. Needs jinja2 and matplotlib."""

from __future__ import annotations

from pathlib import Path

from labelsieve.datasets.writing import replacing
from labelsieve.report.figures import Picture, draw_convergence
from labelsieve.report.selection import Selection

# A page of more rows is read by nobody; the ranking in full is what CSV is for.
_MOST_ROWS = 100


def render_page(found: Selection, *, title: str | None = None, picture: Picture | None = None) -> str:
    """Return the page: ranking, picture, doubtful candidates, convergence.

    Parameters
    ----------
    found : Selection
        What to tell.
    title : str or None, default=None
        Heading; None makes one of the data's name and the method.
    picture : Picture or None, default=None
        A figure about the data that stands first.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("labelsieve.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = [] if picture is None else [picture]
    if picture is None and found.objective is not None:
        figures.append(draw_convergence(found))
    return environment.get_template("page.html").render(
        found=found,
        title=title or f"{found.data}: features selected by {found.method}",
        figures=figures,
        shown=found.selected[:_MOST_ROWS],
        highest=max(abs(feature.score) for feature in found.features) or 1.0,
    )


def write_page(
    found: Selection, path: Path, *, title: str | None = None, picture: Picture | None = None
) -> None:
    """Write the page to a file, whole or not at all; the parameters are those of `render_page`."""
    content = render_page(found, title=title, picture=picture).encode()
    with replacing(path) as stream:
        stream.write(content)
