"""Rendering of self-contained HTML pages with a content security policy."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from labelsieve._text import printable


def render(
    template: str,
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Any,
    policy: str | None = None,
    **values: Any,
) -> str:
    """Render a template with untrusted values.

    `styles` and `scripts` are file names. The files become one style sheet and one script, which reads `data` as
    JSON from the element ``data``. `policy` is the content security policy; the default is that of a file.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("labelsieve"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escape_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["lines"] = _keep_lines
    environment.filters["zip"] = zip
    css, code = _contents(styles), _contents(scripts)
    policy = policy or content_policy(styles, scripts)
    # These texts are trusted, and their quotation marks must not be escaped.
    trusted = {"policy": policy, "style": css, "script": code, "data": _json_for_html(data)}
    return environment.get_template(template).render(
        **{name: Markup(text) for name, text in trusted.items()}, **values
    )


def content_policy(styles: Sequence[str], scripts: Sequence[str], own: str = "") -> str:
    """Return a policy that blocks all requests, scripts and style sheets except those of the page itself.

    This includes style attributes. `own` adds directives, e.g. for images of the page's server.
    """
    return (
        f"default-src 'none'; {own or 'img-src data:'}; style-src {_digest(_contents(styles))}; "
        f"script-src {_digest(_contents(scripts))}; base-uri 'none'; form-action 'none'"
    )


def _contents(names: Sequence[str]) -> str:
    """Return the joined contents of files next to the templates."""
    folder = files("labelsieve") / "templates"
    return "".join((folder / name).read_text("utf-8") for name in names)


def _json_for_html(data: Any) -> str:
    """Write JSON without characters that HTML could interpret as markup."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _escape_controls(value: Any) -> Any:
    """Escape control characters, except in markup, which is trusted."""
    return value if hasattr(value, "__html__") else printable(value)


def _keep_lines(text: str) -> Any:
    """Escape control characters except line breaks."""
    from markupsafe import Markup

    return Markup("\n").join(printable(line) for line in text.split("\n"))


def _digest(text: str) -> str:
    """Return the hash source of a script or style sheet for the policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
