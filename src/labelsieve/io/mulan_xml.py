"""Mulan XML files, which list the labels of an ARFF file."""

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


def labels_from_xml(source: Source, content: bytes, names: Sequence[str], fail: Fail) -> list[str]:
    """Return the labels that a Mulan XML file lists, in column order.

    `source` is the XML file or the archive that contains it. `fail` creates errors about the data file.
    """
    # Nested entities could expand a kilobyte of XML to gigabytes.
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise source.error("contains a DOCTYPE or entities, which label files never need; remove them")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise source.error(f"must be well-formed XML with <label name=.../>, got {error}") from None
    labels = [node.get("name", "") for node in root.iter() if node.tag.rpartition("}")[2] == "label"]
    if root.tag.rpartition("}")[2] != "labels" or not labels or not all(labels):
        raise source.error(
            "must be a Mulan label file, with <label name=.../> inside <labels>; check the path"
        )
    duplicate, times = Counter(labels).most_common(1)[0]
    if times > 1:
        raise source.error(f"lists the label {duplicate!r} {times} times; remove duplicates")
    unknown = [label for label in labels if label not in set(names)]
    if unknown:
        raise fail(
            f"has no attribute {unknown[0][:80]!r}, which {source.path} lists as a label ({len(unknown)} of "
            f"{len(labels)} are unknown); pass the matching XML file as `labels`"
        )
    return [name for name in names if name in set(labels)]


def find_label_xml(source: Source) -> Path | None:
    """Find the XML file of a data file: ``birds.xml`` for ``birds.arff`` and for ``birds-train.arff``."""
    folder = source.path.parent
    # `os.path.isfile` never raises, not even for circular links.
    files = {name.lower(): folder / name for name in os.listdir(folder) if os.path.isfile(folder / name)}
    stem = source.stem.lower()
    while stem:
        if f"{stem}.xml" in files:
            return files[f"{stem}.xml"]
        stem = re.sub(r"[-_.]?[^-_.]*$", "", stem)
    return None


def format_label_xml(names: list[str]) -> str:
    """Format the XML file that lists `names`."""
    lines = "".join(f"<label name={quoteattr(name)}></label>\n" for name in names)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<labels xmlns="http://mulan.sourceforge.net/labels">\n{lines}</labels>\n'
    )
