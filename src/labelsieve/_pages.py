"""Self-contained HTML pages: one way to fill a template, and one policy of what a page may do. Needs jinja2."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from labelsieve._text import printable


def render(template: str, *, style: str, scripts: Sequence[str], data: Any, **values: Any) -> str:
    """Fill a template with values whose texts may come from data.

    A page loads nothing, runs nothing but its own script and obeys no style sheet but its own, whatever the names in
    it say: attributes cannot hold styles. `style` is the file of the style sheet. The files `scripts` become one
    script, which finds `data` as JSON in the element ``data``.
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
    folder = files("labelsieve") / "templates"
    css = (folder / style).read_text("utf-8")
    code = "".join((folder / name).read_text("utf-8") for name in scripts)
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(css)}; script-src {_digest(code)}; "
        "base-uri 'none'; form-action 'none'"
    )
    # Our own words: quotation marks would be escaped without need.
    ours = {"policy": policy, "style": css, "script": code, "data": _in_page(data)}
    return environment.get_template(template).render(
        **{name: Markup(text) for name, text in ours.items()}, **values
    )


def _in_page(data: Any) -> str:
    """JSON that no page can take for markup."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _shown(value: Any) -> Any:
    """Markup is ours; any other text must not steer what shows it."""
    return value if hasattr(value, "__html__") else printable(value)


def _lines(text: str) -> Any:
    """Keep the line breaks of a text, and nothing else that steers."""
    from markupsafe import Markup

    return Markup("\n").join(printable(line) for line in text.split("\n"))


def _digest(text: str) -> str:
    """Name the one script or style sheet that counts."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
