"""Numbers, dates, truth values and lists of tags as people write them in tables."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

#: Words for a missing value, in small letters.
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "#n/a", "<na>", "nat"})
#: Words for yes and no, in small letters.
TRUE = frozenset({"1", "1.0", "true", "yes", "t", "y"})
FALSE = frozenset({"0", "0.0", "false", "no", "f", "n"})
_LABEL_MARKS = {
    "+1": True, "-1": False, "-1.0": False, "x": True, "✓": True, "✔": True, "✗": False, "✘": False,
}  # fmt: skip
#: Marks for a missing value that mean something else next to words.
DASHES = frozenset({"-", "--", "–", "—"})
#: What parts the tags of a cell, the likeliest first.
TAG_SEPARATORS = (";", "|", ",")

_LONGEST_NUMBER = 40
_LONGEST_DATE = 40
_CURRENCY = re.compile(r"([-+]?)\s*[€$£¥]\s*(?=[\d.,])|(?<=\d)\s*(?:[€$£¥]|EUR|USD|GBP)$")
# Spaces, apostrophes and underscores part thousands in several countries; none of them means anything else there.
_PARTED = re.compile(r"(?<=\d)[ \u00a0\u202f'’_](?=\d{3}(?!\d))")
_DECIMAL_POINT = re.compile(r"[-+]?(?=[.\d])(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?(?=[,\d])(?:\d{1,3}(?:\.\d{3})+|\d*)(?:,\d*)?(?:[eE][-+]?\d+)?")
_CODE = re.compile(r"0\d+")

_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y",
    "%B %d, %Y", "%d-%b-%Y", "%b %d %Y", "%B %d %Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y",
    "%Y-%m", "%m/%Y", "%b %Y", "%B %Y",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", ", %H:%M", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
_DATE_LIKE = re.compile(r"(?=.*\d).*[-/.: ].*", re.DOTALL)
# Whoever writes semicolons between cells mostly writes commas in numbers, and days before months.
_WRITTEN = {"%d": "day", "%m": "month", "%b": "month", "%B": "month", "%Y": "year", "%y": "year"}


@dataclass(frozen=True)
class Reading:
    """Texts with what they mean, and what should be said about it; a text that means nothing is not among them."""

    meaning: dict[str, Any]
    note: str = ""

    def array(self, texts: Iterable[str | None], missing: Any, kind: Any) -> np.ndarray:
        """The values of all cells."""
        return np.array(
            [missing if text is None else self.meaning.get(text, missing) for text in texts], kind
        )


def read_numbers(texts: Collection[str], *, commas_are_decimal: bool = False) -> Reading:
    """Read numbers in the one spelling that fits most of the texts.

    Where ``1,500`` could be 1.5 or 1500 throughout, `commas_are_decimal` decides.

    Examples
    --------
    >>> found = read_numbers(["1.234,5", "7", "unknown"])
    >>> found.meaning, found.note
    ({'1.234,5': 1234.5, '7': 7.0}, 'decimal commas')
    >>> read_numbers(["1,500", "2,000"]).meaning
    {'1,500': 1500.0, '2,000': 2000.0}
    """
    plain = {text: number for text in texts if (number := _plain(text)) is not None}
    if len(plain) == len(texts):
        return Reading(plain)
    bare = {text: _bare_number(text) for text in texts if len(text) <= _LONGEST_NUMBER}
    pointed = {text: bare[text] for text in bare if _DECIMAL_POINT.fullmatch(bare[text])}
    comma = {text: bare[text] for text in bare if _DECIMAL_COMMA.fullmatch(bare[text])}
    has_commas = any("," in text for text in pointed.values())
    is_tie = len(comma) == len(pointed)
    notes = []
    if len(comma) > len(pointed) or (is_tie and has_commas and commas_are_decimal):
        chosen = {text: number.replace(".", "").replace(",", ".") for text, number in comma.items()}
        notes.append("decimal commas")
    else:
        chosen = {text: number.replace(",", "") for text, number in pointed.items()}
        notes += ["commas part thousands"] * has_commas
    if is_tie and has_commas:
        example = next(text for text, number in pointed.items() if "," in number)
        notes[0] += f": {example} is {float(chosen[example]):.15g}"
    if any("%" in text for text in chosen):
        notes.append("per cent")
    meaning = {text: value for text, number in chosen.items() if (value := _plain(number)) is not None}
    return Reading(meaning, "; ".join(notes))


def _plain(text: str) -> float | None:
    """The number of a text that Python reads, without underscores."""
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) or "_" in text else number


def _bare_number(text: str) -> str:
    """A text without currency, per cent sign and what parts thousands but commas and points."""
    bare = _CURRENCY.sub(r"\1", text.strip().replace("−", "-")).strip()
    return _PARTED.sub("", bare.removesuffix("%").strip())


def are_codes(texts: Iterable[str]) -> bool:
    """Whether texts of digits begin with zeros, as postal codes and article numbers do, so that no number is meant."""
    return any(_CODE.fullmatch(text) for text in texts)


def read_dates(texts: Collection[str], *, days_first: bool = False) -> Reading:
    """Read dates and times in the one spelling that fits most of the texts, as seconds since 1970 without a zone.

    Where ``01/02/2020`` could be either throughout, `days_first` decides.

    Examples
    --------
    >>> found = read_dates(["1.2.1789", "14.7.1789"])
    >>> str(found.meaning["14.7.1789"]), found.note
    ('1789-07-14T00:00:00', 'day.month.year')
    >>> read_dates(["2024-02-30"]).meaning
    {}
    """
    likely = [text for text in texts if len(text) <= _LONGEST_DATE and _DATE_LIKE.fullmatch(text)]
    if 2 * len(likely) < len(texts):
        return Reading({})
    iso = {text: date for text in likely if (date := _iso_date(text)) is not None}
    if 2 * len(iso) >= len(texts):
        return Reading(iso)
    sample = likely[:20]
    fitting: list[tuple[int, Reading, str]] = []
    for day in _DAYS:
        for time in _TIMES:
            if 2 * sum(_parsed(text, day + time) is not None for text in sample) < len(sample):
                continue
            found = {text: date for text in likely if (date := _parsed(text, day + time)) is not None}
            fitting.append((len(found), Reading(found, _in_words(day)), day))
    if not fitting:
        return Reading({})
    most = max(size for size, _, _ in fitting)
    best = [(reading, day) for size, reading, day in fitting if size == most]
    first = "%d" if days_first else "%m"
    reading, _ = next((pair for pair in best if pair[1].startswith(first)), best[0])
    if len(best) > 1:
        return Reading(reading.meaning, f"{reading.note}, which is a guess")
    return reading


def _in_words(day: str) -> str:
    return re.sub(r"%[a-zA-Z]", lambda code: _WRITTEN[code.group()], day)


def _iso_date(text: str) -> np.datetime64 | None:
    try:
        return _moment(datetime.fromisoformat(text)) if "-" in text[1:] else None
    except ValueError:
        return None


def _parsed(text: str, form: str) -> np.datetime64 | None:
    try:
        return _moment(datetime.strptime(text, form))
    except ValueError:
        return None


def _moment(found: datetime) -> np.datetime64 | None:
    """A moment without a zone, in seconds, which reach before 1678 and beyond 2262."""
    try:
        bare = found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:  # the first or the last day that there is
        return None
    return np.datetime64(bare, "s")


def read_truth(texts: Collection[str]) -> Reading | None:
    """Read yes and no in any of the usual words; None unless both are there and nothing else.

    Examples
    --------
    >>> read_truth({"Yes", "no"}).meaning == {"Yes": 1.0, "no": 0.0}
    True
    """
    words = {text: text.strip().lower() for text in texts}
    said = set(words.values())
    if said <= TRUE | FALSE and said & TRUE and said & FALSE:
        return Reading({text: float(word in TRUE) for text, word in words.items()})
    return None


def truth_value(word: str) -> bool | None:
    """Return what a word or mark of a label says, or None if it is neither yes nor no.

    Examples
    --------
    >>> truth_value("Yes"), truth_value("-1"), truth_value("perhaps")
    (True, False, None)
    """
    word = word.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    try:
        # 1.000000000000000000e+00 is what numpy.savetxt writes.
        return _LABEL_MARKS[word] if word in _LABEL_MARKS else {0.0: False, 1.0: True}.get(float(word))
    except ValueError:
        return None


def read_list(text: str) -> tuple[str, ...] | None:
    """Read a list as JSON or Python write it, also as NumPy prints it; None if it is none.

    Examples
    --------
    >>> read_list('["a", "b"]'), read_list("['a', 'b']"), read_list("['a' 'b']"), read_list("a;b")
    (('a', 'b'), ('a', 'b'), ('a', 'b'), None)
    """
    found = items_of(text)
    if found is not None:
        return tags_of(found[0])
    return () if text.strip() == "{}" else None


def items_of(text: str) -> tuple[list[Any], Callable[[list[Any]], str]] | None:
    """The items of a text that is a list, and what writes a list as this one is written; None if it is none."""
    text = text.strip()
    if text[:1] + text[-1:] not in ("[]", "{}", "()"):
        return None
    for read, write in _LISTS:
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, (list, tuple, set)):
            return [*found], write
    return None


def json_text(value: Any) -> str:
    """A value as JSON, its letters as they are."""
    return json.dumps(value, ensure_ascii=False)


def _numpy_list(text: str) -> list[str]:
    """Quoted strings parted by white space."""
    if not re.fullmatch(r"\[(?:\s*'[^']*')+\s*\]", text):
        raise ValueError(text)
    return re.findall(r"'([^']*)'", text)


def _numpy_text(items: list[str]) -> str:
    return "[" + " ".join(f"'{item}'" for item in items) + "]"


# Who reads a list, and who writes it again.
_LISTS: tuple[tuple[Callable[[str], Any], Callable[[list[Any]], str]], ...] = (
    (json.loads, json_text),
    (_numpy_list, _numpy_text),
    (ast.literal_eval, repr),
)


def tags_of(items: Iterable[Any]) -> tuple[str, ...]:
    """Tags as texts, each once, without those that say nothing.

    Examples
    --------
    >>> tags_of([" bug", "bug", None, 3])
    ('bug', '3')
    """
    texts = (str(item).strip() for item in items if item is not None and item == item)
    return tuple(dict.fromkeys(text for text in texts if text))


def split_tags(text: str, separator: str | None) -> tuple[str, ...]:
    """Tags of a cell: a list, or texts parted by a separator.

    Examples
    --------
    >>> split_tags("billing; bug", ";"), split_tags("billing", None)
    (('billing', 'bug'), ('billing',))
    """
    found = read_list(text)
    if found is not None:
        return found
    return tags_of([text] if not separator else text.split(separator))
