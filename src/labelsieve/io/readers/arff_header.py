"""The header of an ARFF file: relation, attributes and the labels MEKA declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from labelsieve.io.readers.source import MAX_COLUMNS, Source, decode

QUOTED = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_DECLARATION = re.compile(
    rf"@attribute\s+({QUOTED}|[^\s{{}},%'\"][^\s{{}},]*)\s*(.*)", re.IGNORECASE | re.DOTALL
)
_CATEGORY = re.compile(rf"\s*+({QUOTED}|[^,}}'\"\s][^,}}]*+|)\s*+([,}}])", re.DOTALL)
_TYPE = re.compile(rf"([a-z]++)\s*+({QUOTED})?\s*+(?:%.*)?", re.IGNORECASE | re.DOTALL)
# MEKA keeps its options in the relation name, which Weka's filters extend: "Music: -C 6-weka.filters...".
_MEKA_COUNT = re.compile(r"(?<![\w.])-C\s+(-?\d{1,9})(?!\d)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}
# Java's SimpleDateFormat letters, which ARFF uses, to those of strptime.
_DATE_PARTS = {
    "yyyy": "%Y", "yy": "%y", "MMM": "%b", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d", "HH": "%H",
    "H": "%H", "hh": "%I", "h": "%I", "mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "SSS": "%f", "S": "%f",
    "a": "%p", "EEE": "%a", "E": "%a", "Z": "%z", "X": "%z", "XXX": "%z",
}  # fmt: skip


@dataclass(frozen=True)
class Attribute:
    """One declared column: kind is numeric, nominal, string or date."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    seconds: Callable[[str], float] | None = None


@dataclass(frozen=True)
class Header:
    """What stands before ``@data``, and the blocks of lines after it."""

    relation: str
    attributes: list[Attribute]
    data: Iterator[tuple[int, bytes]]

    def meka_labels(self) -> list[str] | None:
        """Labels that MEKA's ``-C q`` (the first q) or ``-C -q`` (the last q) declares; [] for nonsense."""
        options = self.relation.partition(":")[2]
        found = _MEKA_COUNT.search(options) or _MEKA_COUNT.search(self.relation)
        if not found:
            return None
        count = int(found.group(1))
        if not 0 < abs(count) < len(self.attributes):
            return []
        chosen = self.attributes[:count] if count > 0 else self.attributes[count:]
        return [attribute.name for attribute in chosen]


def unquote(token: str) -> str:
    """A name or value without its quotes and escapes; without quotes a backslash is a letter, as in Weka."""
    if len(token) < 2 or token[0] not in "'\"" or token[-1] != token[0]:
        return token
    token = token[1:-1]
    if "\\" not in token:
        return token
    return _ESCAPE.sub(
        lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else _CONTROL.get(m[1], m[1]), token
    )


def read_header(source: Source) -> Header:
    """Read up to ``@data``."""
    relation = ""
    attributes: list[Attribute] = []
    blocks = source.blocks()
    for first_line, block in blocks:
        start = 0
        line_number = first_line - 1
        while start < len(block):
            end = block.index(b"\n", start)
            line, start = decode(block[start:end]).strip(), end + 1
            line_number += 1
            if not line or line.startswith("%"):
                continue
            keyword = line.split(None, 1)[0].lower()
            if keyword == "@attribute":
                attributes.append(_attribute(line, line_number, source))
                if len(attributes) > MAX_COLUMNS:
                    raise source.error(
                        f"declares more than {MAX_COLUMNS} attributes; is it an ARFF file?", line=line_number
                    )
            elif keyword == "@relation":
                name = line[len(keyword) :].strip()
                quoted = re.match(QUOTED, name)
                relation = unquote(quoted.group()) if quoted else name.partition("%")[0].strip()
            elif keyword == "@data" or keyword.startswith("@data%"):
                return _finished(source, relation, attributes, blocks, line_number + 1, block[start:])
            else:
                raise source.error(
                    f"expected @relation, @attribute or @data, got {line[:40]!r}; correct the line",
                    line=line_number,
                )
    raise source.error("ends before @data, so it is no complete ARFF file; copy it again")


def _finished(
    source: Source,
    relation: str,
    attributes: list[Attribute],
    blocks: Iterator[tuple[int, bytes]],
    line_number: int,
    rest: bytes,
) -> Header:
    """Check the header as a whole."""
    if not attributes:
        raise source.error("declares no @attribute before @data; copy it again", line=line_number)
    seen: set[str] = set()
    for attribute in attributes:
        if attribute.name in seen:
            raise source.error(f"declares the attribute {attribute.name!r} twice; rename one")
        seen.add(attribute.name)

    def data() -> Iterator[tuple[int, bytes]]:
        if rest:
            yield line_number, rest
        yield from blocks

    return Header(relation, attributes, data())


def _attribute(line: str, line_number: int, source: Source) -> Attribute:
    """One ``@attribute`` line."""
    declaration = _DECLARATION.fullmatch(line)
    if not declaration:
        raise source.error(
            f"expected '@attribute name type', got {line[:60]!r}; quote the name", line=line_number
        )
    name, kind = unquote(declaration.group(1)), declaration.group(2)
    parsed = _TYPE.fullmatch(kind)
    word = parsed.group(1).lower() if parsed else ""
    if word in ("numeric", "real", "integer"):
        return Attribute(name, "numeric")
    if word == "string":
        return Attribute(name, "string")
    try:
        if kind.startswith("{"):
            return Attribute(name, "nominal", _categories(kind))
        if parsed and word == "date":
            pattern = unquote(parsed.group(2)) if parsed.group(2) else "yyyy-MM-dd'T'HH:mm:ss"
            return Attribute(name, "date", seconds=_date_reader(pattern))
    except ValueError as error:
        raise source.error(f"attribute {name!r} has {error}; correct the line", line=line_number) from None
    raise source.error(
        f"attribute {name!r} must be numeric, nominal, string or date, got {kind[:40]!r}; convert it",
        line=line_number,
    )


@lru_cache(maxsize=64)  # most files declare {0,1} for hundreds of attributes
def _categories(text: str) -> tuple[str, ...]:
    """The categories between braces."""
    categories: list[str] = []
    position, mark = 1, ","
    while mark == ",":
        token = _CATEGORY.match(text, position)
        if not token:
            raise ValueError("categories that do not end with a brace")
        if token.group(1):
            categories.append(unquote(token.group(1).strip()))
        position, mark = token.end(), token.group(2)
    rest = text[position:].strip()
    if rest and not rest.startswith("%"):
        raise ValueError(f"something after its categories, {rest[:40]!r}")
    if len(set(categories)) < len(categories) or not categories:
        raise ValueError("no categories or one of them twice")
    return tuple(categories)


def _date_reader(pattern: str) -> Callable[[str], float]:
    """Function from a date as text to seconds since 1970 (UTC where no zone is given)."""
    texts = [found.group() for found in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']+", pattern)]
    directives = [_DATE_PARTS.get(text, text) for text in texts if text[0].isalpha()]
    if not directives or "".join(texts) != pattern or len(set(directives)) < len(directives):
        raise ValueError(f"a date format that cannot be read, {pattern!r}")
    layout = ""
    for text in texts:
        if text[0].isalpha():
            if text not in _DATE_PARTS:
                raise ValueError(f"the unknown part {text!r} in its date format {pattern!r}")
            layout += _DATE_PARTS[text]
        else:
            layout += (text[1:-1] or "'" if text[0] == "'" else text).replace("%", "%%")

    def seconds(text: str) -> float:
        moment = datetime.strptime(text, layout)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    return seconds
