"""The XML file next to a Mulan ARFF file, which names the labels."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from labelsieve.io.errors import Fail
from labelsieve.io.source import Source


def xml_labels(source: Source, content: bytes, names: Sequence[str], fail: Fail) -> list[str]:
    """Return the columns that a Mulan XML file names as labels, in the order of the columns.

    `source` is the XML file or an archive that holds it, `fail` makes the errors of the data file.
    """
    # Entities are how an XML file of a kilobyte grows to gigabytes.
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise source.error("holds a DOCTYPE or entities, which label files never need; remove them")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise source.error(f"is not well-formed XML ({error}); it should list <label name=.../>") from None
    labels = [node.get("name", "") for node in root.iter() if node.tag.rpartition("}")[2] == "label"]
    if root.tag.rpartition("}")[2] != "labels" or not labels or not all(labels):
        raise source.error(
            "is not a Mulan label file: it must be <labels> with <label name=.../> inside; check the path"
        )
    twice, times = Counter(labels).most_common(1)[0]
    if times > 1:
        raise source.error(f"names the label {twice!r} twice; remove one")
    unknown = [label for label in labels if label not in set(names)]
    if unknown:
        raise fail(
            f"has no attribute {unknown[0][:80]!r}, which {source.path} names as a label ({len(unknown)} of "
            f"{len(labels)} are unknown); give the XML file that belongs to it as `labels`"
        )
    return [name for name in names if name in set(labels)]


def find_label_xml(source: Source) -> Path | None:
    """Return the XML file of a data file: ``birds.xml`` for ``birds.arff`` and for ``birds-train.arff``."""
    folder = source.path.parent
    # `os.path.isfile` is false if the file system does not answer, as about links in a loop.
    files = {name.lower(): folder / name for name in os.listdir(folder) if os.path.isfile(folder / name)}
    stem = source.stem.lower()
    while stem:
        if f"{stem}.xml" in files:
            return files[f"{stem}.xml"]
        stem = re.sub(r"[-_.]?[^-_.]*$", "", stem)
    return None


def xml_text(names: list[str]) -> str:
    """Return the XML file that lists `names`."""
    lines = "".join(f"<label name={quoteattr(name)}></label>\n" for name in names)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<labels xmlns="http://mulan.sourceforge.net/labels">\n{lines}</labels>\n'
    )
