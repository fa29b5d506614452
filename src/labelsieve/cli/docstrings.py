"""Read numpydoc docstrings: what a method says about itself, in parts."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Titles of sections, each underlined.
_TITLE = re.compile(r"^(\S[^\n]*)\n-{3,}\n", re.MULTILINE)
_DEFAULT = re.compile(r",?\s*default\s*=?\s*(.*)$")


class Entry(NamedTuple):
    """A parameter or an attribute; several that are described together have an entry each."""

    name: str
    kind: str
    paragraphs: list[str]

    @property
    def choices(self) -> list[str]:
        """Values that the kind lists, as they are written in Python.

        Examples
        --------
        >>> Entry("solver", '{"cd", "mu"}', []).choices
        ['"cd"', '"mu"']
        >>> Entry("scale", '{"minmax", "standard"} or None', []).choices
        ['"minmax"', '"standard"', 'None']
        >>> Entry("alpha", "float", []).choices
        []
        """
        listed = re.match(r"\{(.*?)\}(.*)", self.kind)
        if listed is None:
            return []
        rest = re.findall(r"\bNone\b|\"\w+\"", listed[2])
        return [choice.strip() for choice in listed[1].split(",")] + rest


class Docstring(NamedTuple):
    """Parts of a docstring; text is a list of paragraphs, a paragraph with line breaks is to be left as it is."""

    summary: str
    description: list[str]
    parameters: list[Entry]
    attributes: list[Entry]
    notes: list[str]
    references: list[str]


def parse(text: str) -> Docstring:
    """Take a cleaned docstring apart.

    Examples
    --------
    >>> parsed = parse('''Add.
    ...
    ... Minimises::
    ...
    ...     |a|
    ...
    ... Parameters
    ... ----------
    ... a, b : int, default=1
    ...     What is ``added``.
    ... ''')
    >>> parsed.summary, parsed.description
    ('Add.', ['Minimises:', '    |a|'])
    >>> parsed.parameters[1]
    Entry(name='b', kind='int', paragraphs=['What is added.'])
    """
    head, *rest = _TITLE.split(text + "\n")
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    summary, _, description = head.partition("\n\n")
    return Docstring(
        " ".join(summary.split()),
        paragraphs(description),
        _entries(sections.get("Parameters", "")),
        _entries(sections.get("Attributes", "")),
        paragraphs(sections.get("Notes", "")),
        [
            plain(" ".join(reference.split()))
            for reference in re.split(r"^\.\. ", sections.get("References", ""), flags=re.MULTILINE)
            if reference.strip()
        ],
    )


def paragraphs(text: str) -> list[str]:
    r"""Cut a text into paragraphs and items of lists, each in one line; what is set out stays in its lines.

    Examples
    --------
    >>> paragraphs("It\nminimises::\n\n    |a|\n\nwhich is ::\n\n    a")
    ['It minimises:', '    |a|', 'which is', '    a']
    """
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if re.match(r"\s*(-\s|\*\s)", block):
            found += [
                " ".join(item.split()) for item in re.split(r"^(?=\s*[-*]\s)", block, flags=re.MULTILINE)
            ]
        elif block.startswith("    ") or "====" in block:
            found.append(block.rstrip())
        else:
            found.append(re.sub(r"::$", ":", " ".join(block.split()).removesuffix(" ::")))
    return [plain(paragraph) for paragraph in found if paragraph.strip()]


def plain(text: str) -> str:
    """Write reStructuredText as people read it.

    Examples
    --------
    >>> plain("See [1]_, `tol` and :class:`~labelsieve.RFS`: ``|W|_21``, **not** W, *a*-style: 2 * 3.")
    'See [1], tol and RFS: |W|_21, not W, a-style: 2 * 3.'
    """
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text)
    text = re.sub(r"\[(\d+)\]_", r"[\1]", text)
    text = re.sub(r"(?<!\w)(\*{1,2})(\w[^*\n]*)\1", r"\2", text)
    return re.sub(r"`+([^`]+)`+", r"\1", text)


def _entries(section: str) -> list[Entry]:
    found = []
    for block in re.split(r"^(?=\S)", section, flags=re.MULTILINE):
        head, _, body = block.partition("\n")
        names, _, kind = head.partition(" :")
        # The body is indented by four, what it sets out by eight.
        text = paragraphs(re.sub(r"^ {4}", "", body, flags=re.MULTILINE))
        found += [
            Entry(name.strip(), _DEFAULT.sub("", kind.strip()), text)
            for name in names.split(",")
            if name.strip()
        ]
    return found
