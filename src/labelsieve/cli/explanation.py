"""What ``labelsieve methods NAME`` says: a method explained by its own docstring."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.text import Text

from labelsieve.cli.docstrings import Entry, parse

if TYPE_CHECKING:
    from labelsieve._base import BaseSelector

_COST = "Cost: "
#: How far text lies under its heading.
_INDENT = 2


class Setting(NamedTuple):
    """A parameter with its default."""

    entry: Entry
    default: Any


class Explanation(NamedTuple):
    """A method in words."""

    slug: str
    class_name: str
    module: str
    summary: str
    description: list[str]
    is_reconstruction: bool
    cost: str | None
    parameters: list[Setting]
    attributes: list[Entry]
    notes: list[str]
    references: list[str]


def explain(slug: str, method: type[BaseSelector]) -> Explanation:
    """Read what a method says about itself.

    Examples
    --------
    >>> from labelsieve import FPML
    >>> found = explain("fpml", FPML)
    >>> found.is_reconstruction, found.references[0][:34]
    (True, '[1] Yu, Chen, Domeniconi, Wang, Li')
    """
    said = parse(inspect.getdoc(method) or "")
    documented = {entry.name: entry for entry in said.parameters}
    signature = inspect.signature(method).parameters.values()
    costs = [note for note in said.notes if note.startswith(_COST)]
    return Explanation(
        slug,
        method.__name__,
        method.__module__,
        said.summary,
        said.description,
        # Reconstructions call themselves after the method that they are in the style of.
        "-style" in said.summary,
        _capitalized(costs[0].removeprefix(_COST)) if costs else None,
        [
            Setting(documented.get(parameter.name, Entry(parameter.name, "", [])), parameter.default)
            for parameter in signature
        ],
        said.attributes,
        [note for note in said.notes if note not in costs],
        said.references,
    )


def as_json(found: Explanation) -> str:
    """Write an explanation for programs; a default that JSON cannot hold is written as in Python."""
    record = {
        "method": found.slug,
        "class": found.class_name,
        "module": found.module,
        "summary": found.summary,
        "description": "\n\n".join(found.description),
        "reconstruction": found.is_reconstruction,
        "cost": found.cost,
        "parameters": [
            {
                "parameter": entry.name,
                "type": entry.kind,
                "choices": [_value(choice) for choice in entry.choices],
                "default": default,
                "description": "\n\n".join(entry.paragraphs),
            }
            for entry, default in found.parameters
        ],
        "attributes": [
            {"attribute": entry.name, "type": entry.kind, "description": "\n\n".join(entry.paragraphs)}
            for entry in found.attributes
        ],
        "notes": "\n\n".join(found.notes),
        "references": found.references,
    }
    return json.dumps(record, indent=2, default=repr)


def show(found: Explanation, console: Console) -> None:
    """Print an explanation for people."""
    console.print(Text.assemble((found.slug, "bold"), f"  {found.class_name}"))
    _indented(console, Text(found.summary), 0)
    _section(console, "What it does", found.description)
    _section(console, "Paper", found.references or ["There is none."])
    known = "yes, in the style of the paper" if found.is_reconstruction else "no"
    _section(console, "Reconstruction", [known])
    _section(console, "What it costs", [found.cost] if found.cost else [])
    _heading(console, "Parameters")
    for entry, default in found.parameters:
        _entry(console, entry, f" = {default!r}")
    _heading(console, "Attributes after fit")
    for entry in found.attributes:
        _entry(console, entry)
    _section(console, "Notes", found.notes)
    _section(console, "On the command line", [f"labelsieve select DATA --method {found.slug}"])


def _heading(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def _section(console: Console, title: str, paragraphs: list[str]) -> None:
    """Print paragraphs under a heading, the items of a list close together."""
    if not paragraphs:
        return
    _heading(console, title)
    for number, paragraph in enumerate(paragraphs):
        if number and not paragraph.startswith("- "):
            console.print()
        _indented(console, Text(paragraph), _INDENT)


def _entry(console: Console, entry: Entry, default: str = "") -> None:
    head = Text.assemble((entry.name, "cyan"), default, (f"  {entry.kind}", "dim"))
    _indented(console, head, _INDENT)
    for paragraph in entry.paragraphs:
        _indented(console, Text(paragraph), 3 * _INDENT)


def _indented(console: Console, text: Text, indent: int) -> None:
    """Print lines that are broken where the terminal ends, without blanks at their ends."""
    for whole in text.split(allow_blank=True):
        # A formula stays as far in as it begins.
        start = indent + len(whole.plain) - len(whole.plain.lstrip())
        for line in whole[start - indent :].wrap(console, max(1, console.width - start), overflow="fold"):
            line.rstrip()
            console.print(Text(" " * start) + line)


def _value(choice: str) -> str | None:
    """Turn a choice as it is written in Python into what JSON holds."""
    return None if choice == "None" else choice.strip("\"'")


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
