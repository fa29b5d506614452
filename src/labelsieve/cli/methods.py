"""``labelsieve methods``: which methods there are, and what one of them is."""

from __future__ import annotations

import inspect
import json
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from labelsieve._text import closest
from labelsieve.cli import explanation
from labelsieve.cli.console import AsJson, results
from labelsieve.cli.docstrings import Entry
from labelsieve.methods import METHODS

if TYPE_CHECKING:
    from labelsieve._base import BaseSelector

EPILOG = """\
Examples:

labelsieve methods

labelsieve methods pml-fsmir

labelsieve methods --json
"""


def methods(
    slug: Annotated[str | None, typer.Argument(metavar="METHOD", help="Explain this one.")] = None,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Write a Markdown table.")] = False,
) -> None:
    """List the methods, or explain one."""
    if as_json and as_markdown:
        raise typer.BadParameter("give one of --json and --markdown, not both", param_hint="--markdown")
    if slug is None:
        _list_methods(as_json, as_markdown)
        return
    method = find_method(slug, "METHOD")
    if as_markdown:
        described = describe_parameters(method)
        rows = [(name, repr(default), text) for name, default, text in described]
        typer.echo(_markdown(("parameter", "default", "what it is"), rows))
    elif as_json:
        typer.echo(explanation.as_json(explanation.explain(slug, method)))
    else:
        explanation.show(explanation.explain(slug, method), results())


def _list_methods(as_json: bool, as_markdown: bool) -> None:
    titles = ("method", "class", "what it does")
    rows = [(name, method.__name__, _summary(method)) for name, method in METHODS.items()]
    if as_json:
        keys = ("method", "class", "summary")
        typer.echo(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
    elif as_markdown:
        typer.echo(_markdown(titles, rows))
    else:
        _print_table(titles, rows)


def find_method(slug: str, given_as: str = "--method") -> type[BaseSelector]:
    """Return the method of that slug, or say which come close."""
    if slug not in METHODS:
        raise typer.BadParameter(
            f"{slug!r} is not a method; {closest(slug.lower(), METHODS)}", param_hint=given_as
        )
    return METHODS[slug]


def describe_parameters(method: type[BaseSelector]) -> list[tuple[str, Any, str]]:
    """Return name, default and first sentence of the description of every parameter.

    Examples
    --------
    >>> from labelsieve import PMLFSMIR
    >>> describe_parameters(PMLFSMIR)[0]  # doctest: +NORMALIZE_WHITESPACE
    ('n_features_to_select', None,
     'How many features to keep: a number, a share in (0, 1], or None for half of them.')
    """
    found = explanation.explain("", method)
    return [(entry.name, default, _first_sentence(entry)) for entry, default in found.parameters]


def _first_sentence(entry: Entry) -> str:
    # An abbreviation such as "Eq. 8" is not followed by a capital.
    sentence = re.split(r"(?<=[.])\s+(?=[A-Z\"'`])", entry.paragraphs[0] if entry.paragraphs else "")[0]
    return re.sub(r"\[\d+\]", "the paper", sentence)


def _summary(method: type[BaseSelector]) -> str:
    """First line of the docstring."""
    return (inspect.getdoc(method) or "").partition("\n")[0]


def _markdown(titles: tuple[str, ...], rows: list[tuple[str, str, str]]) -> str:
    lines = [titles, tuple("---" for _ in titles)]
    lines += [(f"`{name}`", f"`{second}`", text.replace("|", "\\|")) for name, second, text in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _print_table(titles: tuple[str, ...], rows: list[tuple[str, str, str]]) -> None:
    console = results()
    # Two columns where three would be squeezed into ribbons.
    narrow = console.width < 60
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(titles[0], no_wrap=not narrow, overflow="fold")
    if not narrow:
        table.add_column(titles[1], no_wrap=True)
    table.add_column(titles[2])
    for name, second, text in rows:
        table.add_row(*((name, text) if narrow else (name, second, text)))
    console.print(table)
