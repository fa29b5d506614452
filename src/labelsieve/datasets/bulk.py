"""Numbers out of text by the block: what makes reading fast."""

from __future__ import annotations

import warnings

import numpy as np


def floats(text: bytes, separator: bytes = b" ") -> np.ndarray | None:
    """All numbers of `text`, or None if anything in it is not a number."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # older NumPy only warns about what it cannot read
            return np.fromstring(text, dtype=np.float64, sep=separator.decode())
    except (ValueError, DeprecationWarning):
        return None


def pairs(text: bytes, inner: bytes, outer: bytes) -> tuple[np.ndarray, np.ndarray] | None:
    """Index and value of every ``index<inner>value`` in `text`, or None where that is not its strict form.

    `text` holds at least one pair, pairs are parted by one `outer` byte, and there is no other white space.
    """
    symbols = np.frombuffer(text, dtype=np.uint8)
    separators = symbols[(symbols == inner[0]) | (symbols == outer[0])]
    # Strict alternation is the proof that numbers taken two by two are the pairs of the text.
    if (
        (separators[0::2] != inner[0]).any()
        or (separators[1::2] != outer[0]).any()
        or separators.size % 2 == 0
    ):
        return None
    numbers = floats(text.replace(inner, b" ").replace(outer, b" "))
    if numbers is None or numbers.size != separators.size + 1:
        return None
    return numbers[0::2], numbers[1::2]


def table(lines: bytes, separator: bytes, n_columns: int) -> np.ndarray | None:
    """Rows of a purely numeric block of lines, or None if it is anything else."""
    while b"\n\n" in lines:
        lines = lines.replace(b"\n\n", b"\n")
    lines = lines.strip(b"\n") + b"\n"
    if lines == b"\n":
        return np.empty((0, n_columns))
    symbols = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(symbols == ord("\n"))
    fields = np.searchsorted(np.flatnonzero(symbols == separator[0]), ends)
    if (np.diff(fields, prepend=0) != n_columns - 1).any():
        return None
    numbers = floats(lines[:-1].replace(b"\n", separator), separator)
    if numbers is None or numbers.size != ends.size * n_columns:
        return None
    return numbers.reshape(-1, n_columns)


def valid_indices(index: np.ndarray, counts: np.ndarray, n_columns: int) -> bool:
    """Whether all indices are whole, in range and different within their row of `counts` entries each."""
    if not index.size:
        return True
    if not (index.min() >= 0 and index.max() < n_columns and (index == np.floor(index)).all()):
        return False
    steps = np.diff(index)
    starts = np.cumsum(counts)[:-1]
    starts = starts[(starts > 0) & (starts < index.size)] - 1
    steps[starts] = 1  # from the last entry of a row to the first of the next
    if (steps > 0).all():
        return True
    rows = np.repeat(np.arange(counts.size), counts)
    keys = np.sort(rows * float(n_columns) + index)
    return bool((np.diff(keys) > 0).all())


def number(text: str) -> float:
    """The number a single field stands for; stricter than `float`, which reads 1_000."""
    if "_" in text:
        raise ValueError(text)
    return float(text)
