"""``labelsieve methods``: list the methods, or explain one from its docstring."""

from __future__ import annotations

import inspect
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from labelsieve._text import closest
from labelsieve.cli._console import plain_table, results
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
_INDENT = 2
# Section titles of a numpydoc docstring are underlined.
_TITLE = re.compile(r"^(\S[^\n]*)\n-{3,}\n", re.MULTILINE)
_DEFAULT = re.compile(r",?\s*default\s*=?\s*(.*)$")


def methods(
    slug: Annotated[
        str | None, typer.Argument(metavar="[METHOD]", help="Method to explain.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Write a Markdown table.")] = False,
) -> None:
    """List the methods, or explain one."""
    if as_json and as_markdown:
        raise typer.BadParameter("cannot be combined with --json", param_hint="--markdown")
    if slug is None:
        rows = [(name, method.__name__, _summary(method)) for name, method in METHODS.items()]
        keys = ("method", "class", "summary")
    else:
        found = explain(slug, find_method(slug, "METHOD"))
        rows = [
            (entry.name, repr(default), entry.first_sentence) for entry, default in found.parameters.values()
        ]
        keys = ("parameter", "default", "description")
    if as_markdown:
        typer.echo(_markdown((*keys[:2], "what it does"), rows))
    elif slug is None and as_json:
        typer.echo(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
    elif slug is None:
        _print_list((*keys[:2], "what it does"), rows)
    elif as_json:
        # A default that JSON cannot hold is written as in Python.
        typer.echo(json.dumps(found.as_dict(), indent=2, default=repr))
    else:
        _print_explanation(found, results())


def find_method(slug: str, given_as: str = "--method") -> type[BaseSelector]:
    """Return the method with a slug."""
    if slug not in METHODS:
        raise typer.BadParameter(
            f"{slug!r} is not a method; {closest(slug.lower(), METHODS)}", param_hint=given_as
        )
    return METHODS[slug]


class Entry(NamedTuple):
    """A parameter or attribute of a docstring."""

    name: str
    kind: str
    paragraphs: list[str]

    @property
    def choices(self) -> list[str | None]:
        """Values that the kind lists.

        Examples
        --------
        >>> Entry("scale", '{"minmax", "standard"} or None', []).choices
        ['minmax', 'standard', None]
        >>> Entry("alpha", "float", []).choices
        []
        """
        listed = re.match(r"\{(.*?)\}(.*)", self.kind)
        if listed is None:
            return []
        found = [*listed[1].split(","), *re.findall(r"\bNone\b|\"\w+\"", listed[2])]
        return [None if value.strip() == "None" else value.strip(" \"'") for value in found]

    @property
    def first_sentence(self) -> str:
        """First sentence of the description."""
        # An abbreviation such as "Eq. 8" is not followed by a capital.
        sentence = re.split(r"(?<=[.])\s+(?=[A-Z\"'`])", self.paragraphs[0] if self.paragraphs else "")[0]
        return re.sub(r"\[\d+\]", "the paper", sentence)


class Setting(NamedTuple):
    """A parameter with its default."""

    entry: Entry
    default: Any


class Explanation(NamedTuple):
    """What the docstring of a method says."""

    slug: str
    class_name: str
    module: str
    summary: str
    description: list[str]
    is_reconstruction: bool
    cost: str | None
    parameters: dict[str, Setting]
    attributes: list[Entry]
    notes: list[str]
    references: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return values for JSON."""
        return {
            "method": self.slug,
            "class": self.class_name,
            "module": self.module,
            "summary": self.summary,
            "description": "\n\n".join(self.description),
            "reconstruction": self.is_reconstruction,
            "cost": self.cost,
            "parameters": [
                {
                    "parameter": entry.name,
                    "type": entry.kind,
                    "choices": entry.choices,
                    "default": default,
                    "description": "\n\n".join(entry.paragraphs),
                }
                for entry, default in self.parameters.values()
            ],
            "attributes": [
                {"attribute": entry.name, "type": entry.kind, "description": "\n\n".join(entry.paragraphs)}
                for entry in self.attributes
            ],
            "notes": "\n\n".join(self.notes),
            "references": self.references,
        }


def explain(slug: str, method: type[BaseSelector]) -> Explanation:
    """Read the docstring of a method.

    Examples
    --------
    >>> from labelsieve import FPML
    >>> found = explain("fpml", FPML)
    >>> found.is_reconstruction, found.references[0][:34]
    (True, '[1] Yu, Chen, Domeniconi, Wang, Li')
    >>> found.parameters["n_features_to_select"].default is None
    True
    """
    head, *rest = _TITLE.split((inspect.getdoc(method) or "") + "\n")
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    summary, _, description = head.partition("\n\n")
    documented = {entry.name: entry for entry in _entries(sections.get("Parameters", ""))}
    notes = paragraphs(sections.get("Notes", ""))
    cost = next((note.removeprefix(_COST) for note in notes if note.startswith(_COST)), None)
    references = re.split(r"^\.\. ", sections.get("References", ""), flags=re.MULTILINE)
    return Explanation(
        slug,
        method.__name__,
        method.__module__,
        " ".join(summary.split()),
        paragraphs(description),
        # Reconstructions are named after the method they follow.
        "-style" in summary,
        cost and cost[0].upper() + cost[1:],
        {
            parameter.name: Setting(
                documented.get(parameter.name, Entry(parameter.name, "", [])), parameter.default
            )
            for parameter in inspect.signature(method).parameters.values()
        },
        _entries(sections.get("Attributes", "")),
        [note for note in notes if not note.startswith(_COST)],
        [plain(" ".join(reference.split())) for reference in references if reference.strip()],
    )


def _entries(section: str) -> list[Entry]:
    found = []
    for block in re.split(r"^(?=\S)", section, flags=re.MULTILINE):
        head, _, body = block.partition("\n")
        names, _, kind = head.partition(" :")
        # The body is indented by four, a formula in it by eight.
        text = paragraphs(re.sub(r"^ {4}", "", body, flags=re.MULTILINE))
        found += [
            Entry(name.strip(), _DEFAULT.sub("", kind.strip()), text)
            for name in names.split(",")
            if name.strip()
        ]
    return found


def paragraphs(text: str) -> list[str]:
    r"""Split a text into paragraphs and list items of one line each. Formulas keep their lines.

    Examples
    --------
    >>> paragraphs("It\nminimises::\n\n    |a|\n\nwhich is ::\n\n    a")
    ['It minimises:', '    |a|', 'which is', '    a']
    """
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if re.match(r"\s*(-\s|\*\s)", block):
            items = re.split(r"^(?=\s*[-*]\s)", block, flags=re.MULTILINE)
            found += [" ".join(item.split()) for item in items]
        elif block.startswith("    ") or "====" in block:
            found.append(block.rstrip())
        else:
            found.append(re.sub(r"::$", ":", " ".join(block.split()).removesuffix(" ::")))
    return [plain(paragraph) for paragraph in found if paragraph.strip()]


def plain(text: str) -> str:
    """Remove reStructuredText markup.

    Examples
    --------
    >>> plain("See [1]_, `tol` and :class:`~labelsieve.RFS`: ``|W|_21``, **not** W, *a*-style: 2 * 3.")
    'See [1], tol and RFS: |W|_21, not W, a-style: 2 * 3.'
    """
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text)
    text = re.sub(r"\[(\d+)\]_", r"[\1]", text)
    text = re.sub(r"(?<!\w)(\*{1,2})(\w[^*\n]*)\1", r"\2", text)
    return re.sub(r"`+([^`]+)`+", r"\1", text)


def _summary(method: type[BaseSelector]) -> str:
    return (inspect.getdoc(method) or "").partition("\n")[0]


def _markdown(titles: tuple[str, ...], rows: list[tuple[str, str, str]]) -> str:
    lines = [titles, tuple("---" for _ in titles)]
    lines += [(f"`{name}`", f"`{second}`", text.replace("|", "\\|")) for name, second, text in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _print_list(titles: tuple[str, ...], rows: list[tuple[str, str, str]]) -> None:
    console = results()
    # On a narrow terminal the class names leave no room for the summaries.
    shown = [0, 2] if console.width < 60 else [0, 1, 2]
    table = plain_table()
    for column in shown:
        table.add_column(titles[column], no_wrap=column == 1, overflow="fold")
    for row in rows:
        table.add_row(*(row[column] for column in shown))
    console.print(table)


def _print_explanation(found: Explanation, console: Console) -> None:
    console.print(Text.assemble((found.slug, "bold"), f"  {found.class_name}"))
    _print_indented(console, Text(found.summary), 0)
    _print_section(console, "What it does", found.description)
    _print_section(console, "Paper", found.references or ["None."])
    known = "yes, in the style of the paper" if found.is_reconstruction else "no"
    _print_section(console, "Reconstruction", [known])
    _print_section(console, "Cost", [found.cost] if found.cost else [])
    _print_heading(console, "Parameters")
    for entry, default in found.parameters.values():
        _print_entry(console, entry, f" = {default!r}")
    _print_heading(console, "Attributes after fit")
    for entry in found.attributes:
        _print_entry(console, entry)
    _print_section(console, "Notes", found.notes)
    _print_section(console, "On the command line", [f"labelsieve select DATA --method {found.slug}"])


def _print_heading(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def _print_section(console: Console, title: str, texts: list[str]) -> None:
    """Print paragraphs under a heading, list items without blank lines between them."""
    if not texts:
        return
    _print_heading(console, title)
    for number, paragraph in enumerate(texts):
        if number and not paragraph.startswith("- "):
            console.print()
        _print_indented(console, Text(paragraph), _INDENT)


def _print_entry(console: Console, entry: Entry, default: str = "") -> None:
    head = Text.assemble((entry.name, "cyan"), default, (f"  {entry.kind}", "dim"))
    _print_indented(console, head, _INDENT)
    for paragraph in entry.paragraphs:
        _print_indented(console, Text(paragraph), 3 * _INDENT)


def _print_indented(console: Console, text: Text, indent: int) -> None:
    """Print lines wrapped at the edge of the terminal, without trailing blanks."""
    for whole in text.split(allow_blank=True):
        # The later lines of a formula are indented like its first one.
        start = indent + len(whole.plain) - len(whole.plain.lstrip())
        for line in whole[start - indent :].wrap(console, max(1, console.width - start), overflow="fold"):
            line.rstrip()
            console.print(Text(" " * start) + line)
