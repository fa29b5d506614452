"""``labelsieve methods``: list the methods or explain one from its docstring."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsieve._text import closest
from labelsieve.cli._console import lay_out, results
from labelsieve.cli._options import AsJson
from labelsieve.methods import METHODS

if TYPE_CHECKING:
    from labelsieve._base import BaseSelector

EPILOG = """\
\b
Examples:
  labelsieve methods
  labelsieve methods pml-fsmir
  labelsieve methods --json
"""

_COST = "Cost: "
# Underlined section titles of a numpydoc docstring.
_TITLE = re.compile(r"^(\S[^\n]*)\n-{3,}\n", re.MULTILINE)
_DEFAULT = re.compile(r",?\s*default\s*=?\s*(.*)$")


def methods(
    slug: Annotated[
        str | None, typer.Argument(metavar="[METHOD]", help="Method to explain.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods or explain one."""
    found: Any
    if slug is not None:
        found = explain(slug, find_method(slug, "METHOD"))
    else:
        found = [
            {
                "method": name,
                "class": method.__name__,
                "summary": (inspect.getdoc(method) or "").partition("\n")[0],
            }
            for name, method in METHODS.items()
        ]
    if as_json:
        # Defaults that JSON cannot represent are written as in Python.
        typer.echo(json.dumps(found, indent=2, default=repr))
    elif slug is not None:
        text = (inspect.getdoc(METHODS[slug]) or "").partition("\nExamples\n---")[0]
        typer.echo(f"{slug}  {found['class']}\n\n{_plain(text).rstrip()}")
        typer.echo(f"\nOn the command line: labelsieve select DATA --method {slug}")
    else:
        console = results()
        # On a narrow terminal, class names would leave no room for the summaries.
        shown = ("method", "summary") if console.width < 60 else ("method", "class", "summary")
        columns = {name: [row[name] for row in found] for name in shown}
        console.print(lay_out(console, columns, long="summary"))


def find_method(slug: str, given_as: str = "--method") -> type[BaseSelector]:
    """Return the class of a method."""
    if slug not in METHODS:
        raise typer.BadParameter(
            f"{slug!r} is not a method; {closest(slug.lower(), METHODS)}", param_hint=given_as
        )
    return METHODS[slug]


def explain(slug: str, method: type[BaseSelector]) -> dict[str, Any]:
    """Return the sections of a method's docstring.

    Examples
    --------
    >>> from labelsieve import FPML
    >>> found = explain("fpml", FPML)
    >>> found["reconstruction"], found["references"][0][:34]
    (True, '[1] Yu, Chen, Domeniconi, Wang, Li')
    >>> found["parameters"][0]["parameter"], found["parameters"][0]["default"]
    ('n_features_to_select', None)
    """
    head, *rest = _TITLE.split((inspect.getdoc(method) or "") + "\n")
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    summary, _, description = head.partition("\n\n")
    documented = _entries(sections.get("Parameters", ""))
    notes = [_plain(note) for note in sections.get("Notes", "").strip().split("\n\n")]
    cost = next(
        (" ".join(note.removeprefix(_COST).split()) for note in notes if note.startswith(_COST)), None
    )
    references = re.split(r"^\.\. ", sections.get("References", ""), flags=re.MULTILINE)
    return {
        "method": slug,
        "class": method.__name__,
        "module": method.__module__,
        "summary": " ".join(summary.split()),
        "description": _plain(description.strip()),
        # The summary of a reconstruction says "NAME-style".
        "reconstruction": "-style" in summary,
        "cost": cost and cost[0].upper() + cost[1:],
        "parameters": [
            {
                "parameter": name,
                "type": documented[name][0],
                "choices": _choices(documented[name][0]),
                "default": parameter.default,
                "description": documented[name][1],
            }
            for name, parameter in inspect.signature(method).parameters.items()
        ],
        "attributes": [
            {"attribute": name, "type": kind, "description": text}
            for name, (kind, text) in _entries(sections.get("Attributes", "")).items()
        ],
        "notes": "\n\n".join(note for note in notes if not note.startswith(_COST)),
        "references": [_plain(" ".join(reference.split())) for reference in references if reference.strip()],
    }


def _entries(section: str) -> dict[str, tuple[str, str]]:
    """Parse the types and descriptions of parameters or attributes."""
    found: dict[str, tuple[str, str]] = {}
    for block in re.split(r"^(?=\S)", section, flags=re.MULTILINE):
        head, _, body = block.partition("\n")
        names, _, kind = head.partition(" :")
        text = _plain(textwrap.dedent(body).strip())
        found |= {
            name.strip(): (_DEFAULT.sub("", kind.strip()), text) for name in names.split(",") if name.strip()
        }
    return found


def _choices(kind: str) -> list[str | None]:
    """Parse the values that a type lists.

    Examples
    --------
    >>> _choices('{"minmax", "standard"} or None'), _choices("float")
    (['minmax', 'standard', None], [])
    """
    listed = re.match(r"\{(.*?)\}(.*)", kind)
    if listed is None:
        return []
    found = [*listed[1].split(","), *re.findall(r"\bNone\b|\"\w+\"", listed[2])]
    return [None if value.strip() == "None" else value.strip(" \"'") for value in found]


def _plain(text: str) -> str:
    """Remove reStructuredText markup.

    Examples
    --------
    >>> _plain("See [1]_, `tol` and :class:`~labelsieve.RFS`: ``|W|_21``, **not** W, *a*-style: 2 * 3.")
    'See [1], tol and RFS: |W|_21, not W, a-style: 2 * 3.'
    """
    text = re.sub(r" ?::$", ":", text, flags=re.MULTILINE)
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text)
    text = re.sub(r"\[(\d+)\]_", r"[\1]", text)
    text = re.sub(r"(?<!\w)(\*{1,2})(\w[^*\n]*)\1", r"\2", text)
    return re.sub(r"`+([^`]+)`+", r"\1", text)
