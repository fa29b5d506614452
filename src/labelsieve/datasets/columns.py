"""Which columns of a table are labels: by name, pattern, count or role prefix."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Sequence

from labelsieve.datasets.dataset import DatasetError

# Files written by this package say in a column's name what it is, so reading them needs no arguments.
LABEL_PREFIX, CANDIDATE_PREFIX, NOMINAL_PREFIX = "label:", "candidate:", "nominal:"

_TRUE = {"1", "1.0", "+1", "true", "yes", "t", "y"}
_FALSE = {"0", "0.0", "-1", "-1.0", "false", "no", "f", "n"}


def truth_value(word: str) -> bool | None:
    """What a category of a label means, or None if it is no yes and no no."""
    word = word.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def as_count(wanted: object) -> int | None:
    """The number meant by an integer or a string of one, else None."""
    if isinstance(wanted, str):
        try:
            return int(wanted)
        except ValueError:
            return None
    return int(wanted) if isinstance(wanted, int) and not isinstance(wanted, bool) else None


def count_columns(total: int, count: int, fail: Callable[[str], DatasetError]) -> list[int]:
    """Positions of the last `count` of `total` columns, or of the first ones for a negative count."""
    if not 0 < abs(count) < total:
        raise fail(
            f"labels={count} must leave at least one feature of {total} columns and at least one label; "
            "give the number of label columns (negative for the first columns)"
        )
    return list(range(total - count, total)) if count > 0 else list(range(-count))


def named_columns(
    names: Sequence[str],
    wanted: str | Sequence[str],
    fail: Callable[[str], DatasetError],
    role: str = "label",
) -> list[int]:
    """Positions of the columns with the wanted names or patterns, in file order.

    Parameters
    ----------
    names : sequence of str
        All columns.
    wanted : str or sequence of str
        Names or shell patterns such as ``"label_*"``; one string may hold several, parted by commas.
    """
    position = {name: index for index, name in enumerate(names)}
    if isinstance(wanted, str):
        wanted = (
            [wanted] if wanted in position else [part.strip() for part in wanted.split(",") if part.strip()]
        )
    chosen: set[int] = set()
    for item in wanted:
        if not isinstance(item, str):
            raise fail(f"{role} names must be strings, got {item!r}; give names, a pattern or a count")
        if item in position:
            chosen.add(position[item])
            continue
        matches = [index for index, name in enumerate(names) if fnmatch.fnmatchcase(name, item)]
        if not matches:
            # Bounded, since comparing long texts takes quadratic time.
            close = difflib.get_close_matches(
                item[:50], [name[:50] for name in names[:5000]], n=3, cutoff=0.0
            )
            raise fail(f"has no column {item[:80]!r}; the closest names are {', '.join(map(repr, close))}")
        chosen.update(matches)
    if not chosen:
        raise fail(f"got an empty list of {role} columns; name at least one")
    return sorted(chosen)
