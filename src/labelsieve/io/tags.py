"""Read sets of tags as people write them: lists of any notation, or text with a separator."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any

#: Separators between tags, most likely first.
SEPARATORS = ("\n", ";", "|", ",", "/", " ")
# Separators that names hardly ever contain. One of them is enough in a column of labels.
_STRONG = ("\n", ";", "|", ",")
# Members of an object that name it, the best one first.
_NAMES = ("name", "label", "title", "tag", "login", "value")
# Python literals nest, so parsing long ones takes time and memory.
_MAX_LITERAL_LENGTH = 100_000
_MAX_TAG_LENGTH = 40
# Separators are guessed from this many different cells.
_N_GUESSED = 5000
# A tag repeats this often on average, and a separator occurs in this share of the cells.
_LEAST_REPEATS, _LEAST_SHARE = 4, 0.05
# Shares of the tags that also occur in another cell, or alone in a cell.
_LEAST_REUSED, _LEAST_ALONE = 0.75, 0.75


def tag_text(item: Any) -> str | None:
    """Convert one tag to text. An object has its name, and a missing value has None.

    Examples
    --------
    >>> tag_text({"id": 28, "name": "Action"}), tag_text(" Drama "), tag_text(3.0), tag_text(None)
    ('Action', 'Drama', '3', None)
    """
    if isinstance(item, dict):
        item = next((item[key] for key in _NAMES if key in item), None)
    if item is None or item != item:
        return None
    if isinstance(item, float) and item.is_integer():
        item = int(item)
    return str(item).strip() or None


def clean_tags(items: Iterable[Any]) -> tuple[str, ...]:
    """Convert tags to strings, and drop duplicates and missing values."""
    return tuple(dict.fromkeys(text for text in map(tag_text, items) if text))


def object_tags(value: dict[str, Any]) -> tuple[str, ...] | str | None:
    """Convert an object to its name, or to the names of its counts. Return None if it has neither.

    Examples
    --------
    >>> object_tags({"login": "ada", "id": 1}), object_tags({"Action": 12, "Indie": 3}), object_tags({"url": "x"})
    ('ada', ('Action', 'Indie'), None)
    """
    if any(isinstance(value.get(key), str) for key in _NAMES):
        return tag_text(value)
    if len(value) > 1 and all(isinstance(count, (int, float)) for count in value.values()):
        return clean_tags(name for name, count in value.items() if count)
    return None


def read_object(text: str) -> dict[str, Any] | None:
    """Parse an object in the notation of JSON or Python, or return None."""
    if text[:1] + text[-1:] != "{}" or len(text) > _MAX_LITERAL_LENGTH:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, dict):
            return found
    return None


def read_list(text: str) -> tuple[str, ...] | None:
    """Parse a list of tags in the notation of JSON, Python, NumPy or ``<a><b>``, or return None.

    Examples
    --------
    >>> read_list('["a", "b"]'), read_list("['a' 'b']"), read_list("<a><b>"), read_list("a;b")
    (('a', 'b'), ('a', 'b'), ('a', 'b'), None)
    >>> read_list("[{'id': 28, 'name': 'Action'}]")
    ('Action',)
    """
    found = parse_list(text)
    if found is not None:
        return clean_tags(found[0])
    return () if text.strip() == "{}" else None


def parse_list(text: str) -> tuple[list[Any], Callable[[list[Any]], str]] | None:
    """Parse a list. Return its items and a function that writes lists in the same notation, or None."""
    text = text.strip()
    if text[:1] + text[-1:] not in ("[]", "{}", "()", "<>") or len(text) > _MAX_LITERAL_LENGTH:
        return None
    for read, write in _LISTS:
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, (list, tuple, set)):
            return [*found], write
    return None


def _read_numpy_list(text: str) -> list[str]:
    if not re.fullmatch(r"\[(?:\s*'[^']*')+\s*\]", text):
        raise ValueError(text)
    return re.findall(r"'([^']*)'", text)


def _write_numpy_list(items: list[str]) -> str:
    return "[" + " ".join(f"'{item}'" for item in items) + "]"


def _read_brackets(text: str) -> list[str]:
    if not re.fullmatch(r"(?:<[^<>]+>)+", text):
        raise ValueError(text)
    return text[1:-1].split("><")


def _write_brackets(items: list[str]) -> str:
    return "".join(f"<{item}>" for item in items)


# Functions that read and write a list in each notation.
_LISTS: tuple[tuple[Callable[[str], Any], Callable[[list[Any]], str]], ...] = (
    (json.loads, partial(json.dumps, ensure_ascii=False)),
    (_read_numpy_list, _write_numpy_list),
    (_read_brackets, _write_brackets),
    (ast.literal_eval, repr),
)


def split_tags(text: str, separator: str | None) -> tuple[str, ...]:
    """Split a cell into tags at its separators, or as a list."""
    found = read_list(text)
    if found is not None:
        return found
    return clean_tags([text] if not separator else text.split(separator))


def guess_separator(cells: Mapping[str, int], *, is_label: bool = False) -> str | None:
    r"""Return the first separator that splits cells into short tags which repeat, or None.

    `cells` are different texts with their numbers of rows. In a column of labels, a single semicolon, bar, line break
    or comma is enough. Slashes and spaces are parts of many names, so their tags must also occur in several
    combinations.

    Examples
    --------
    >>> guess_separator({"cs.LG stat.ML": 9, "cs.LG": 9, "stat.ML": 5, "cs.CV cs.LG": 4, "cs.CV": 7})
    ' '
    >>> guess_separator({"New York": 9, "New Orleans": 9, "Los Angeles": 5})
    """
    if len(cells) > _N_GUESSED:
        cells = dict(islice(cells.items(), 0, None, -(-len(cells) // _N_GUESSED)))
    n_rows = sum(cells.values())
    for separator in SEPARATORS:
        n_split = sum(count for text, count in cells.items() if separator in text.strip())
        if n_split < max(2, _LEAST_SHARE * n_rows):
            continue
        if separator == " " and any(mark in text for text in cells for mark in _STRONG):
            continue
        split = {text: split_tags(text, separator) for text in cells}
        if _are_tags(split, cells, separator):
            return separator
    if not is_label:
        return None
    return next((mark for mark in _STRONG if any(mark in text.strip() for text in cells)), None)


def _are_tags(split: Mapping[str, tuple[str, ...]], cells: Mapping[str, int], separator: str) -> bool:
    """Return True if the parts of cells are short and repeat, and combine freely if names may contain them."""
    n_rows: Counter[str] = Counter()
    n_cells: Counter[str] = Counter()
    for text, tags in split.items():
        n_cells.update(tags)
        n_rows.update(dict.fromkeys(tags, cells[text]))
    if not n_rows or max(map(len, n_rows)) > _MAX_TAG_LENGTH:
        return False
    n_words = sum(len(tag.split()) for tag in n_rows) / len(n_rows)
    if n_words > (2 if separator == "," else 3):
        return False
    if n_rows.total() < min(_LEAST_REPEATS, sum(cells.values()) / 5) * len(n_rows):
        return False
    several = [tags for tags in split.values() if len(tags) > 1]
    if len(several) < 2:
        return False
    if separator not in "/ ":
        return True
    n_parts = sum(map(len, several))
    is_reused = sum(n_cells[tag] > 1 for tags in several for tag in tags) >= _LEAST_REUSED * n_parts
    if separator == "/":
        return is_reused
    alone = {tags[0] for tags in split.values() if len(tags) == 1}
    n_alone = sum(count for tag, count in n_rows.items() if tag in alone)
    return is_reused and len(split) > len(n_rows) and n_alone >= _LEAST_ALONE * n_rows.total()
