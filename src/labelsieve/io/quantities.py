"""Parse numbers with units: durations, money, sizes, weights, lengths, ratings and counts of anything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from labelsieve.io.spellings import NUMBER_WITH_CURRENCY, read_numbers

_MAX_LENGTH = 60
# Values in the first unit of each dimension.
_DIMENSIONS: dict[str, dict[str, float]] = {
    "min": {
        "min": 1, "minute": 1, "m": 1, "s": 1 / 60, "sec": 1 / 60, "second": 1 / 60, "h": 60, "hr": 60, "hour": 60,
        "d": 1440, "day": 1440, "week": 10_080, "month": 43_830, "yr": 525_960, "year": 525_960,
    },
    "": {
        "": 1, "k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9,
        "t": 1e12, "trillion": 1e12, "lakh": 1e5, "crore": 1e7, "cr": 1e7,
    },
    "MB": {"b": 1e-6, "byte": 1e-6, "kb": 1e-3, "mb": 1, "gb": 1e3, "tb": 1e6},
    "kg": {"mg": 1e-6, "g": 1e-3, "kg": 1, "t": 1e3, "lb": 0.4536, "oz": 0.02835},
    "m": {"mm": 1e-3, "cm": 1e-2, "m": 1, "km": 1e3, "in": 0.0254, "inch": 0.0254, "ft": 0.3048, "mi": 1609.344},
}  # fmt: skip
_QUANTITY = re.compile(
    rf"[~≈<>]?\s*({NUMBER_WITH_CURRENCY})\s*(/\s*\d+|[^\d\s/+][^\d]{{0,23}}?)?\s*\+?", re.IGNORECASE
)
_COMPOUND = re.compile(r"(?:\d+(?:\.\d+)?\s*[a-z]+\.?(?:,?\s*(?:and\s)?\s*)?){2,}", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?(?<!P)(?<!T)", re.IGNORECASE)
# More units than this are parts of names.
_MAX_UNITS = 3


def read_quantities(
    texts: Collection[str], *, commas_are_decimal: bool = False
) -> tuple[dict[str, float], dict[str, str], str]:
    """Parse numbers with units. Return the values, the unit of each text, and a note.

    Units of one dimension are converted to one unit. Other units are kept apart.

    Examples
    --------
    >>> read_quantities(["90 min", "1h 30m", "45 s"])
    ({'1h 30m': 90.0, '90 min': 90.0, '45 s': 0.75}, {}, 'in min')
    >>> read_quantities(["90 min", "2 Seasons", "1 Season"])[1:]
    ({'90 min': 'min', '2 Seasons': 'season', '1 Season': 'season'}, 'in min or season')
    >>> read_quantities(["$1.2M", "$350K"])[0], read_quantities(["4.1/5", "3/5"])[0]
    ({'$1.2M': 1200000.0, '$350K': 350000.0}, {'4.1/5': 4.1, '3/5': 3.0})
    """
    values: dict[str, float] = {}
    units: dict[str, str] = {}
    bare: dict[str, str] = {}
    for text in texts:
        if len(text) > _MAX_LENGTH:
            continue
        minutes = _minutes(text)
        if minutes is not None:
            values[text], units[text] = minutes, "min"
        elif found := _QUANTITY.fullmatch(text.strip()):
            bare[text], units[text] = found[1], _plain_unit(found[2] or "")
    numbers, note = read_numbers(dict.fromkeys(bare.values()), commas_are_decimal=commas_are_decimal)
    values |= {text: numbers[number] for text, number in bare.items() if number in numbers}
    if not values:
        return {}, {}, ""
    units = {text: units[text] for text in values}
    kinds = Counter(units.values())
    if "" in kinds and len(kinds) == 2 and min(kinds, key=bool) == "":
        main = max(kinds, key=bool)
        if main not in _DIMENSIONS[""]:  # numbers without a unit have that of the others
            units, kinds = dict.fromkeys(units, main), Counter([main])
    dimension = next((base for base, known in _DIMENSIONS.items() if known.keys() >= kinds.keys()), None)
    if dimension is not None and (len(kinds) > 1 or dimension in ("", "min")):
        factors = _DIMENSIONS[dimension]
        values = {text: value * factors[units[text]] for text, value in values.items()}
        kinds, units = Counter([dimension]), {}
    elif len(kinds) == 1:
        units = {}
    elif len(kinds) > _MAX_UNITS or not all(len(unit) > 2 and unit.isalpha() for unit in kinds):
        return {}, {}, ""
    shown = f"in {' or '.join(kinds)}".replace("in /", "out of ").strip()
    return values, units, "; ".join(filter(None, (note, "" if shown == "in" else shown)))


def _minutes(text: str) -> float | None:
    """Parse a duration in several units, a clock time or an ISO 8601 duration, or return None."""
    text = text.strip()
    if found := _CLOCK.fullmatch(text):
        return 60 * float(found[1]) + float(found[2]) + float(found[3] or 0) / 60
    if (found := _ISO.fullmatch(text)) and any(found.groups()):
        return sum(
            float(part or 0) * factor
            for part, factor in zip(found.groups(), (1440, 60, 1, 1 / 60), strict=True)
        )
    if not _COMPOUND.fullmatch(text):
        return None
    parts = [(float(number), _plain_unit(unit)) for number, unit in _PART.findall(text)]
    factors = _DIMENSIONS["min"]
    if not all(unit in factors for _, unit in parts):
        return None
    return sum(number * factors[unit] for number, unit in parts)


def _plain_unit(unit: str) -> str:
    """Return a unit in lower case and singular."""
    plain = " ".join(unit.lower().split()).strip(". ")
    return plain.removesuffix("s") if len(plain) > 2 and not plain.endswith("ss") else plain
