"""The XML file next to a Mulan ARFF file, which names the labels."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from labelsieve.io.errors import DatasetError
from labelsieve.io.source import Source


def label_names_in(source: Source) -> list[str]:
    """Names of all labels in a Mulan XML file, nested ones included, in document order."""
    return parse_label_names(source.content, source)


def parse_label_names(content: bytes, source: Source) -> list[str]:
    """Names of all labels in the text of a Mulan XML file that came from `source`."""
    names: list[str] = []
    roots: list[str] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        roots.append(tag) if not roots else None
        if tag != "label":
            return
        if not attributes.get("name"):
            raise source.error('has a <label> without name="..."; add it', line=parser.CurrentLineNumber)
        names.append(attributes["name"])

    def refuse(*_: object) -> None:
        # Entities are how an XML file of a kilobyte grows to gigabytes or reads other files.
        raise source.error("holds a DOCTYPE or entities, which label files never need; remove them")

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except DatasetError:
        raise
    except (expat.ExpatError, ValueError, LookupError, UnicodeError) as error:
        line = getattr(error, "lineno", None)
        raise source.error(
            f"is no well-formed XML ({error}); it should list <label name=.../>", line=line
        ) from None
    if roots != ["labels"] or not names:
        raise source.error(
            "is no Mulan label file: it must be <labels> with <label name=.../> inside; check the path"
        )
    twice, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise source.error(f"names the label {twice!r} twice; remove one")
    return names


def find_label_xml(source: Source) -> Path | None:
    """The XML file of a data file: ``birds.xml`` for ``birds.arff`` and for ``birds-train.arff``."""
    try:
        names = os.listdir(source.path.parent)
    except OSError:
        return None
    # `os.path.isfile` says no where the file system refuses to answer, as it does about links in a loop.
    files = {
        name.lower(): name
        for name in names
        if name.lower().endswith(".xml") and os.path.isfile(source.path.parent / name)
    }
    stem = source.stem.lower()
    while stem:
        if f"{stem}.xml" in files:
            return source.path.parent / files[f"{stem}.xml"]
        stem = stem[: max(stem.rfind(mark) for mark in "-_.") if any(mark in stem for mark in "-_.") else 0]
    return None


def xml_text(names: list[str]) -> str:
    """The XML file that lists `names`."""
    lines = "".join(f"<label name={quoteattr(name)}></label>\n" for name in names)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<labels xmlns="http://mulan.sourceforge.net/labels">\n{lines}</labels>\n'
    )
