"""``labelsieve methods``: which methods there are, and what can be set."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from labelsieve.cli.console import results
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
    slug: Annotated[str | None, typer.Argument(metavar="METHOD", help="Show what this one can set.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Write a Markdown table.")] = False,
) -> None:
    """List the methods, or the parameters of one."""
    if as_json and as_markdown:
        raise typer.BadParameter("give one of --json and --markdown, not both", param_hint="--markdown")
    if slug is None:
        titles = ("method", "class", "what it does")
        rows = [(name, method.__name__, _summary(method)) for name, method in METHODS.items()]
    else:
        titles = ("parameter", "default", "what it is")
        rows = [
            (name, repr(value), text)
            for name, value, text in describe_parameters(find_method(slug, "METHOD"))
        ]
    if as_json:
        typer.echo(json.dumps(_for_programs(slug), indent=2, default=repr))
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


def closest(word: str, known: Any) -> str:
    """Say which of the known words comes nearest, or name them all."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}."


def describe_parameters(method: type[BaseSelector]) -> list[tuple[str, Any, str]]:
    """Return name, default and first sentence of the description of every parameter.

    Examples
    --------
    >>> from labelsieve import PMLFSMIR
    >>> describe_parameters(PMLFSMIR)[0]  # doctest: +NORMALIZE_WHITESPACE
    ('n_features_to_select', None,
     'How many features to keep: a number, a share in (0, 1], or None for half of them.')
    """
    texts = _parameter_texts(inspect.getdoc(method) or "")
    return [
        (parameter.name, parameter.default, texts.get(parameter.name, ""))
        for parameter in inspect.signature(method).parameters.values()
    ]


def _parameter_texts(docstring: str) -> dict[str, str]:
    """First sentences of a numpydoc Parameters section, by parameter."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", docstring, re.DOTALL | re.MULTILINE
    )
    texts = {}
    for entry in re.split(r"^(?=\S)", section[1] if section else "", flags=re.MULTILINE):
        head, _, body = entry.partition("\n")
        paragraph = " ".join(body.split("\n\n")[0].split())
        # An abbreviation such as "Eq. 8" is not followed by a capital.
        sentence = re.split(r"(?<=[.])\s+(?=[A-Z\"'`])", paragraph)[0]
        for name in head.partition(" :")[0].split(","):
            texts[name.strip()] = re.sub(r"\[\d+\]_", "the paper", sentence).replace("``", "")
    return texts


def _summary(method: type[BaseSelector]) -> str:
    """First line of the docstring."""
    return (inspect.getdoc(method) or "").partition("\n")[0]


def _for_programs(slug: str | None) -> list[dict[str, Any]]:
    if slug is None:
        return [
            {"method": name, "class": method.__name__, "summary": _summary(method)}
            for name, method in METHODS.items()
        ]
    return [
        {"parameter": name, "default": default, "description": text}
        for name, default, text in describe_parameters(METHODS[slug])
    ]


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
