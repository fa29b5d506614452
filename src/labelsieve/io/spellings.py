"""Parse numbers, dates and booleans as people write them in tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np

#: Lower-case words for a missing value.
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "#n/a", "<na>", "nat"})
#: Lower-case words for yes and no.
TRUE = frozenset({"1", "1.0", "true", "yes", "t", "y"})
FALSE = frozenset({"0", "0.0", "false", "no", "f", "n"})
#: Words and marks for yes and no that are also common tags.
AMBIGUOUS = frozenset("tfynx")
_LABEL_MARKS = {
    "+1": True, "-1": False, "-1.0": False, "x": True, "✓": True, "✔": True, "✗": False, "✘": False,
}  # fmt: skip
#: Dashes, which mean a missing value among numbers, but not among words.
DASHES = frozenset({"-", "--", "–", "—"})

_MAX_NUMBER_LENGTH = 40
_MAX_DATE_LENGTH = 40
_MONEY = r"(?:(?:US|CA?|AU?|HK|NZ)?[€$£¥₹₩]|Rs\.?|EUR|USD|GBP|INR|CHF|JPY|CAD|AUD)"
_CURRENCY = re.compile(rf"([-+]?)\s*{_MONEY}\s*(?=[-+]?[\d.,])|(?<=\d)\s*{_MONEY}$")
#: Pattern of a number with thousands separators and a currency, or without.
NUMBER_WITH_CURRENCY = rf"[-+]?\s*(?:{_MONEY}\s*)?[-+]?(?:\d[\d.,'’\u00a0\u202f ]*\d|\d|\.\d+)"
# Thousands separators that are unambiguous between digits.
_THOUSANDS = re.compile(r"(?<=\d)[ \u00a0\u202f'’_](?=\d{3}(?!\d))")
_DECIMAL_POINT = re.compile(r"[-+]?(?=[.\d])(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?(?=[,\d])(?:\d{1,3}(?:\.\d{3})+|\d*)(?:,\d*)?(?:[eE][-+]?\d+)?")

_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y",
    "%B %d, %Y", "%d-%b-%Y", "%b %d %Y", "%B %d %Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y",
    "%Y-%m", "%m/%Y", "%b %Y", "%B %Y",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", ", %H:%M", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
_DATE_LIKE = re.compile(r"(?=.*\d).*[-/.: ].*", re.DOTALL)
_DATE_FIELDS = {"%d": "day", "%m": "month", "%b": "month", "%B": "month", "%Y": "year", "%y": "year"}


def read_numbers(texts: Collection[str], *, commas_are_decimal: bool = False) -> tuple[dict[str, float], str]:
    """Parse numbers in the notation that fits most of the texts. Return them with a note about the notation.

    If all commas are ambiguous, as in ``1,500``, `commas_are_decimal` decides.

    Examples
    --------
    >>> read_numbers(["1.234,5", "7", "unknown"])
    ({'1.234,5': 1234.5, '7': 7.0}, 'decimal commas')
    >>> read_numbers(["1,500", "2,000"])[0]
    {'1,500': 1500.0, '2,000': 2000.0}
    """
    plain = {text: number for text in texts if (number := plain_float(text)) is not None}
    if len(plain) == len(texts):
        return plain, ""
    bare = {text: _strip_units(text) for text in texts if len(text) <= _MAX_NUMBER_LENGTH}
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
        notes += ["commas separate thousands"] * has_commas
    if is_tie and has_commas:
        example = next(text for text, number in pointed.items() if "," in number)
        notes[0] += f" ({example} is {float(chosen[example]):.15g})"
    if any("%" in text for text in chosen):
        notes.append("percentages")
    numbers = {text: value for text, number in chosen.items() if (value := plain_float(number)) is not None}
    return numbers, "; ".join(notes)


def plain_float(text: str) -> float | None:
    """Parse a number in Python's notation without underscores, or return None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) or "_" in text else number


def _strip_units(text: str) -> str:
    """Remove currency, percent sign and thousands separators except commas and points."""
    bare = _CURRENCY.sub(r"\1", text.strip().replace("−", "-")).strip()
    return _THOUSANDS.sub("", bare.removesuffix("%").strip())


def read_dates(texts: Collection[str], *, days_first: bool = False) -> tuple[dict[str, np.datetime64], str]:
    """Parse dates in the format that fits most of the texts. Return them with a note about the format.

    Dates have no time zone. If all texts are ambiguous, as in ``01/02/2020``, `days_first` decides.

    Examples
    --------
    >>> dates, note = read_dates(["1.2.1789", "14.7.1789"])
    >>> str(dates["14.7.1789"]), note
    ('1789-07-14T00:00:00', 'day.month.year')
    >>> read_dates(["2024-02-30"])
    ({}, '')
    """
    likely = [text for text in texts if len(text) <= _MAX_DATE_LENGTH and _DATE_LIKE.fullmatch(text)]
    if 2 * len(likely) < len(texts):
        return {}, ""
    iso = _parse_dates([text for text in likely if "-" in text[1:]], datetime.fromisoformat)
    if 2 * len(iso) >= len(texts):
        return iso, ""
    sample = likely[:20]
    fitting: list[tuple[dict[str, np.datetime64], str]] = []
    for day in _DAYS:
        for time in _TIMES:
            layout = day + time
            if 2 * len(_parse_dates(sample, layout)) >= len(sample):
                fitting.append((_parse_dates(likely, layout), day))
    if not fitting:
        return {}, ""
    most = max(len(dates) for dates, _ in fitting)
    best = [(dates, day) for dates, day in fitting if len(dates) == most]
    first = "%d" if days_first else "%m"
    dates, day = next((pair for pair in best if pair[1].startswith(first)), best[0])
    note = re.sub(r"%[a-zA-Z]", lambda code: _DATE_FIELDS[code.group()], day)
    return dates, note if len(best) == 1 else f"{note} (ambiguous)"


def _parse_dates(texts: Iterable[str], layout: str | Callable[[str], datetime]) -> dict[str, np.datetime64]:
    """Parse dates in a `strptime` format or with a function. Skip texts that do not match."""
    dates: dict[str, np.datetime64] = {}
    for text in texts:
        try:
            date = datetime.strptime(text, layout) if isinstance(layout, str) else layout(text)
            if date.tzinfo is not None:
                date = date.astimezone(UTC).replace(tzinfo=None)
        except (ValueError, OverflowError):
            continue
        # Nanoseconds would limit dates to the years 1678 to 2262.
        dates[text] = np.datetime64(date, "s")
    return dates


def read_booleans(texts: Collection[str]) -> dict[str, float]:
    """Parse words for yes and no as 1 and 0. Return nothing unless both occur and nothing else does."""
    words = {text: text.strip().lower() for text in texts}
    distinct = set(words.values())
    if distinct <= TRUE | FALSE and distinct & TRUE and distinct & FALSE:
        return {text: float(word in TRUE) for text, word in words.items()}
    return {}


def boolean_value(word: str) -> bool | None:
    """Parse a word or mark for yes or no, or return None.

    Examples
    --------
    >>> boolean_value("Yes"), boolean_value("-1"), boolean_value("perhaps")
    (True, False, None)
    """
    word = word.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    try:
        # numpy.savetxt writes 1.000000000000000000e+00.
        return _LABEL_MARKS[word] if word in _LABEL_MARKS else {0.0: False, 1.0: True}.get(float(word))
    except ValueError:
        return None


def same_cell(text: Any, other: str) -> bool:
    """Return whether two cells hold the same text or number.

    Examples
    --------
    >>> same_cell("?", "?"), same_cell("-1.0", "-1"), same_cell("", "?")
    (True, True, False)
    """
    if not isinstance(text, str) or text.strip() == other.strip():
        return isinstance(text, str)
    number = plain_float(text)
    return number is not None and number == plain_float(other)
