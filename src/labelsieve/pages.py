"""Self-contained HTML pages: one way to fill a template, and one policy of what a page may do. Needs jinja2."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from labelsieve._text import printable

__all__ = ["missing_packages", "render"]


def missing_packages() -> list[str]:
    """Name the packages of the ``report`` extra that are not installed."""
    return [package for package in ("jinja2", "matplotlib") if find_spec(package) is None]


def render(template: str, *, script: str = "", **values: Any) -> str:
    """Fill a template with values whose texts may come from data.

    A page loads nothing and runs nothing but its own script, whatever the names in it say. Styles are free, as
    figures carry theirs in attributes.

    Parameters
    ----------
    template : str
        Name of a file among the templates.
    script : str, default=""
        File of the one script of the page, if it has one.
    **values
        What the template needs.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("labelsieve"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["lines"] = _lines
    environment.filters["zip"] = zip
    code = (files("labelsieve") / "templates" / script).read_text("utf-8") if script else ""
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src {_digest(code)}; base-uri 'none'; form-action 'none'"
    )
    # Our own words: quotation marks would be escaped without need.
    return environment.get_template(template).render(policy=Markup(policy), script=Markup(code), **values)


def _shown(value: Any) -> Any:
    """Markup is ours; any other text must not steer what shows it."""
    return value if hasattr(value, "__html__") else printable(value)


def _lines(text: str) -> Any:
    """Keep the line breaks of a text, and nothing else that steers."""
    from markupsafe import Markup

    return Markup("\n").join(printable(line) for line in text.split("\n"))


def _digest(script: str) -> str:
    """Name the one script that may run; none if there is none."""
    if not script:
        return "'none'"
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
