"""Numbers out of text by the block: what makes reading fast."""

from __future__ import annotations

import warnings

import numpy as np

_ZERO = np.uint8(ord("0"))
_POWERS = 10.0 ** np.arange(16)


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
    text += outer
    symbols = np.frombuffer(text, dtype=np.uint8)
    marks = np.flatnonzero((symbols - _ZERO) > 9)  # all that is no digit; smaller bytes wrap around
    kinds = symbols[marks]
    separators = np.flatnonzero((kinds == inner[0]) | (kinds == outer[0]))
    inner_at, outer_at = separators[0::2], separators[1::2]
    # Strict alternation is the proof that numbers taken two by two are the pairs of the text.
    if separators.size % 2 or (kinds[inner_at] != inner[0]).any() or (kinds[outer_at] != outer[0]).any():
        return None
    found = _short_pairs(text, marks, kinds, inner_at, outer_at)
    if found is not None:
        return found
    numbers = floats(text.replace(inner, b" ").replace(outer, b" "))
    if numbers is None or numbers.size != separators.size:
        return None
    return numbers[0::2], numbers[1::2]


def _short_pairs(
    text: bytes, marks: np.ndarray, kinds: np.ndarray, inner_at: np.ndarray, outer_at: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Pairs of whole indices and plain decimals of at most 15 digits, all at once; None if many differ.

    A decimal m / 10**k with m < 2**53 and k <= 22 is rounded correctly by one division of exact numbers
    (Clinger, "How to read floating point numbers accurately", PLDI 1990), so the result is that of `float`.

    Parameters
    ----------
    marks, kinds : ndarray
        Positions and bytes of all that is no digit.
    inner_at, outer_at : ndarray
        Which of the marks part index from value, and pair from pair.
    """
    if inner_at[0] != 0 or (inner_at[1:] - outer_at[:-1] != 1).any():
        return None  # something but digits in an index
    index_ends, value_ends = marks[inner_at], marks[outer_at]
    index_starts = np.concatenate([[0], value_ends[:-1] + 1])
    index_digits = index_ends - index_starts
    if index_digits.min() < 1 or index_digits.max() > 15:
        return None
    words = _words(text)
    index = _whole(words, index_starts, index_digits)
    value_digits = value_ends - index_ends - 1
    if marks.size == inner_at.size + outer_at.size and value_digits.min() > 0 and value_digits.max() <= 15:
        return index, _whole(words, index_ends + 1, value_digits).astype(np.float64)
    negative = (kinds[inner_at + 1] == ord("-")) & (marks[inner_at + 1] == index_ends + 1)
    has_point = kinds[outer_at - 1] == ord(".")
    whole_ends = np.where(has_point, marks[outer_at - 1], value_ends)
    decimals = value_ends - whole_ends - has_point
    value_starts = index_ends + 1 + negative
    digits = whole_ends - value_starts + decimals
    odd = (outer_at - inner_at - 1 != negative.astype(np.int64) + has_point) | (digits > 15) | (digits < 1)
    if np.count_nonzero(odd) * 20 > odd.size:
        return None
    value = _whole(words, value_starts, np.where(odd, 0, whole_ends - value_starts)).astype(np.float64)
    if has_point.any():
        decimals = np.where(odd, 0, decimals)
        value = (value * _POWERS[decimals] + _whole(words, value_ends - decimals, decimals)) / _POWERS[
            decimals
        ]
    if negative.any():
        value = np.where(negative, -value, value)
    for pair in np.flatnonzero(odd):
        try:
            value[pair] = number(text[index_ends[pair] + 1 : value_ends[pair]].decode("ascii"))
        except ValueError:
            return None
    return index, value


def _words(text: bytes) -> np.ndarray:
    """Eight bytes of text, as one number, ending before every position."""
    return np.ndarray((len(text) + 1,), dtype="<u8", buffer=b"0" * 8 + text, strides=(1,))


def _whole(words: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The whole numbers of `lengths` digits, at most 16, from `starts`; 0 where there is no digit."""
    ends = starts + lengths
    longest = lengths.max()
    numbers = _eight_digits(words, ends, np.minimum(lengths, 8) if longest > 8 else lengths)
    if longest > 8:
        long = np.flatnonzero(lengths > 8)
        numbers[long] += 10**8 * _eight_digits(words, ends[long] - 8, lengths[long] - 8)
    return numbers


def _eight_digits(words: np.ndarray, ends: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Up to eight digits before `ends`, added up pair by pair inside one 64-bit word."""
    unwanted = (64 - 8 * lengths).astype(np.uint64)
    word: np.ndarray = words[ends] >> unwanted << unwanted
    word[lengths == 0] = 0  # a shift by all 64 bits is undefined
    word = (word & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(2561) >> np.uint64(8)
    word = (word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601) >> np.uint64(16)
    word = (word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001) >> np.uint64(32)
    return word.view(np.int64)


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
