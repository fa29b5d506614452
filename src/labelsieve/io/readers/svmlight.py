"""svmlight and LIBSVM multi-label text, and the format of the extreme classification repository.

A row is ``label,label index:value index:value``. The extreme classification format adds a first line
``samples features labels`` and counts indices from 0; elsewhere they count from 1 unless some index is 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve.io.readers import bulk
from labelsieve.io.readers.matrices import Matrices, listed_names
from labelsieve.io.readers.source import MAX_COLUMNS, Source, decode

# A first line "# labelsieve {...}" carries what the format cannot: names, and columns that end in zeros.
HEADER_MARK = "# labelsieve "
_SIZES = re.compile(rb"(\d{1,18}) (\d{1,18}) (\d{1,18})[ \t]*\n")


@dataclass(frozen=True)
class Entries:
    """Rows as counts, column indices (as in the file) and values."""

    counts: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    def first(self, n_rows: int) -> Entries:
        """The first rows; the others must be empty."""
        return Entries(self.counts[:n_rows], self.indices, self.values)


@dataclass(frozen=True)
class _Part:
    """What one file holds."""

    features: Entries
    labels: Entries
    sizes: tuple[int, int, int] | None
    header: dict[str, Any] | None


def read_svmlight(sources: Sequence[Source]) -> Matrices:
    """Read one or several files of the same data set."""
    parts = [LineReader(source).read() for source in sources]
    first, source = parts[0], sources[0]
    check_same_kind([part.sizes for part in parts], source)
    header = first.header or {}
    X = _feature_matrix(parts, header, source)
    Y, names = _label_matrix(parts, header, source)
    holds_candidates = header.get("holds") == "candidate"
    return Matrices(
        X,
        None if holds_candidates else Y,
        Y if holds_candidates else None,
        listed_names(header["features"]) if header.get("features") else None,
        names,
        listed_names(header.get("nominal") or []),
        str(header["name"]) if header.get("name") else None,
    )


def check_same_kind(sizes: Sequence[tuple[int, int, int] | None], source: Source) -> None:
    """Refuse parts of which only some have a first line of sizes."""
    if len({size is None for size in sizes}) > 1:
        raise source.error(
            "and the other parts must all, or none, have a first line of sizes; check the files"
        )


def _feature_matrix(parts: list[_Part], header: dict[str, Any], source: Source) -> sp.csr_array:
    """The rows of all parts, as wide as declared or as the largest index says."""
    used = [part.features.indices for part in parts if part.features.indices.size]
    lowest = min((int(indices.min()) for indices in used), default=1)
    highest = max((int(indices.max()) for indices in used), default=None)
    base, width = index_range([part.sizes for part in parts], header, lowest, highest, source)
    matrices = [matrix_of(part.features, base, width) for part in parts]
    return matrices[0] if len(matrices) == 1 else sp.vstack(matrices, format="csr")


def index_range(
    sizes: Sequence[tuple[int, int, int] | None],
    header: dict[str, Any],
    lowest: int,
    highest: int | None,
    source: Source,
) -> tuple[int, int]:
    """Say what the first feature is called, and how many there are: as declared, or as the largest index says."""
    declared = max([size[1] for size in sizes if size] or [header.get("n_features", 0)])
    base = 0 if sizes[0] else 1 if header else min(lowest, 1)
    if highest is None:
        highest = base
    width = declared or highest - base + 1
    source.check_columns(width)
    check_indices(lowest, highest, base, width, source)
    return base, width


def check_indices(lowest: int, highest: int, base: int, width: int, source: Source) -> None:
    """Refuse indices of features that there are not."""
    if width <= 0 or highest - base >= width or lowest < base:
        raise source.error(
            f"has feature indices {lowest} to {highest} for {width} features (limit {MAX_COLUMNS}); "
            "correct the indices or the first line"
        )


def _label_matrix(
    parts: list[_Part], header: dict[str, Any], source: Source
) -> tuple[sp.csr_array, tuple[str, ...] | None]:
    """0/1 matrix of the labels and their names; without declared sizes, the labels that occur."""
    count = declared_labels([part.sizes for part in parts], header, source)
    counts = np.concatenate([part.labels.counts for part in parts])
    numbers = np.concatenate([part.labels.indices for part in parts])
    distinct = None if count else np.unique(numbers)
    Y = label_rows(Entries(counts, numbers, np.empty(0)), count, distinct, source)
    return Y, label_names(header, distinct, source)


def declared_labels(
    sizes: Sequence[tuple[int, int, int] | None], header: dict[str, Any], source: Source
) -> int:
    """How many labels the first line declares; 0 if it declares none."""
    count: int = max([size[2] for size in sizes if size] or [header.get("n_labels", 0)])
    source.check_columns(count)
    return count


def label_names(
    header: dict[str, Any], distinct: np.ndarray | None, source: Source
) -> tuple[str, ...] | None:
    """Names of the labels: those of the header, or the numbers that occur."""
    if distinct is None:
        return listed_names(header["labels"]) if header.get("labels") else None
    if not distinct.size:
        raise source.error("has no labels in any row; each row must start with its labels, parted by commas")
    return tuple(map(str, distinct.tolist()))


def label_rows(labels: Entries, count: int, distinct: np.ndarray | None, source: Source) -> sp.csr_array:
    """0/1 matrix of `count` declared labels, or of the `distinct` numbers that occur."""
    numbers = labels.indices
    if distinct is not None:
        numbers, count = np.searchsorted(distinct, numbers), distinct.size
    elif numbers.size and not (numbers.min() >= 0 and numbers.max() < count):
        raise source.error(f"has labels outside 0 to {count - 1}, which its first line declares; correct it")
    Y = matrix_of(Entries(labels.counts, numbers, np.ones(numbers.size, np.uint8)), 0, count)
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def matrix_of(entries: Entries, base: int, width: int) -> sp.csr_array:
    """Rows as a matrix."""
    starts = np.concatenate([[0], np.cumsum(entries.counts, dtype=np.int64)])
    indices = (entries.indices - base).astype(np.int32)
    return sp.csr_array((entries.values, indices, starts), shape=(starts.size - 1, width))


def join_rows(pieces: Sequence[tuple[Entries, Entries]]) -> tuple[Entries, Entries]:
    """Features and labels of pieces under one another."""
    features, labels = (
        Entries(*(np.concatenate([getattr(piece[side], field) for piece in pieces]) for field in fields))
        for side, fields in enumerate([("counts", "indices", "values")] * 2)
    )
    return features, labels


class LineReader:
    """Reads the rows of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.sizes: tuple[int, int, int] | None = None
        self.header: dict[str, Any] | None = None

    def read(self) -> _Part:
        """Read all rows, block by block."""
        pieces = []
        for first_line, block in self.source.blocks():
            if first_line == 1:
                first_line, block = self.take_first_line(block)
            pieces.append(self.rows(first_line, block))
        if not any(piece[0].counts.size for piece in pieces):
            raise self.source.error("has no rows; copy it again")
        features, labels = join_rows(pieces)
        if self.sizes:
            features, labels = self._sized(features), self._sized(labels)
        return _Part(features, labels, self.sizes, self.header)

    def rows(self, first_line: int, block: bytes) -> tuple[Entries, Entries]:
        """Features and labels of some lines."""
        found = self._in_bulk(block)
        return self._by_line(first_line, block) if found is None else found

    def take_first_line(self, block: bytes) -> tuple[int, bytes]:
        """Take a line of sizes or of names off the first block."""
        sizes = _SIZES.match(block)
        if sizes:
            n_samples, n_features, n_labels = map(int, sizes.groups())
            if not (0 < n_features <= MAX_COLUMNS and 0 < n_labels <= MAX_COLUMNS and n_samples):
                raise self.source.error(
                    f"declares {n_samples} samples, {n_features} features and {n_labels} labels, "
                    f"of which the last two must be 1 to {MAX_COLUMNS}; correct the line",
                    line=1,
                )
            self.sizes = (n_samples, n_features, n_labels)
            return 2, block[sizes.end() :]
        mark = HEADER_MARK.encode()
        if block.startswith(mark):
            line, _, rest = block.partition(b"\n")
            self.header = self._names(line[len(mark) :])
            return 2, rest
        return 1, block

    def _names(self, text: bytes) -> dict[str, Any]:
        """The checked content of a line of names."""
        try:
            header: dict[str, Any] = json.loads(text)
            features, labels = header["n_features"], header["n_labels"]
            for key in ("features", "labels", "nominal"):
                listed_names(header.get(key) or [])
            sound = (
                type(features) is int
                and type(labels) is int
                and 0 < features <= MAX_COLUMNS
                and 0 < labels <= MAX_COLUMNS
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise self.source.error(
                "has a damaged line of names; remove it to read the numbers alone", line=1
            )
        return header

    def _sized(self, entries: Entries) -> Entries:
        """Compare the number of rows with the declared one; blank lines at the end are no rows."""
        assert self.sizes is not None  # only called for files that declare sizes
        expected, found = self.sizes[0], entries.counts.size
        if found < expected or entries.counts[expected:].any():
            raise self.source.error(
                f"declares {expected} samples but has {found}; it is cut off or damaged", line=1
            )
        return entries.first(expected)

    def lines(self, block: bytes) -> list[bytes]:
        """Lines without comments."""
        lines = block[:-1].replace(b"\t", b" ").split(b"\n") if block else []
        if b"#" in block:
            lines = [line.partition(b"#")[0] if b"#" in line else line for line in lines]
        return lines

    def _in_bulk(self, block: bytes) -> tuple[Entries, Entries] | None:
        heads, bodies = [], []
        for line in self.lines(block):
            head, _, body = line.partition(b" ")
            if b":" in head:
                head, body = b"", line
            if self.sizes or line.strip():  # a blank line is a row only where the number of rows is declared
                heads.append(head)
                bodies.append(body)
        labels = _numbers_of(heads)
        if labels is None:
            return None
        counts = np.array([body.count(b":") for body in bodies], dtype=np.int64)
        text = b" ".join([body for body in bodies if body])
        if b"  " in text or text[:1] == b" " or text[-1:] == b" ":
            text = b" ".join(text.split())
        if not text:
            return Entries(counts, np.empty(0, np.int64), np.empty(0)), labels
        found = bulk.pairs(text, b":", b" ")
        if found is None or not bulk.valid_indices(found[0], counts, MAX_COLUMNS + 1):
            return None
        return Entries(counts, found[0].astype(np.int32), found[1]), labels

    def _by_line(self, first_line: int, block: bytes) -> tuple[Entries, Entries]:
        """Read line by line to find the mistake, or to cope with what is only unusual."""
        counts: list[int] = []
        indices: list[int] = []
        values: list[float] = []
        label_counts: list[int] = []
        labels: list[int] = []
        for number, raw in enumerate(self.lines(block), first_line):
            fields = decode(raw).split()
            if not fields and not self.sizes:
                continue
            own = fields.pop(0) if fields and ":" not in fields[0] and raw[:1] != b" " else ""
            row_labels = [self._integer(label, "a label", number) for label in own.split(",")] if own else []
            row: dict[int, float] = {}
            for field in fields:
                index_text, _, value_text = field.partition(":")
                index = self._integer(index_text, "an index before the colon", number)
                if not 0 <= index <= MAX_COLUMNS or index in row:
                    problem = "stands twice" if index in row else f"must be 0 to {MAX_COLUMNS}"
                    raise self.source.error(f"feature index {index} {problem}; correct the row", line=number)
                row[index] = self._value(value_text, number)
            counts.append(len(row))
            indices.extend(row)
            values.extend(row.values())
            label_counts.append(len(row_labels))
            labels.extend(row_labels)
        return (
            Entries(np.array(counts, np.int64), np.array(indices, np.int32), np.array(values, np.float64)),
            Entries(np.array(label_counts, np.int64), np.array(labels, np.int64), np.empty(0)),
        )

    def _integer(self, text: str, role: str, number: int) -> int:
        try:
            value = bulk.number(text)
            if value != int(value) or abs(value) > 2**53:
                raise ValueError(text)
        except (ValueError, OverflowError):
            raise self.source.error(
                f"expected {role}, got {text[:40]!r}; correct the row", line=number
            ) from None
        return int(value)

    def _value(self, text: str, number: int) -> float:
        try:
            return bulk.number(text)
        except ValueError:
            raise self.source.error(
                f"expected a number after the colon, got {text[:40]!r}; correct the row", line=number
            ) from None


def _numbers_of(heads: list[bytes]) -> Entries | None:
    """Labels of all rows, or None if one is no whole number."""
    counts = np.array([head.count(b",") + 1 if head else 0 for head in heads], dtype=np.int64)
    numbers = bulk.floats(b",".join([head for head in heads if head]), b",")
    if numbers is None or numbers.size != counts.sum() or not np.isfinite(numbers).all():
        return None
    if (numbers != np.floor(numbers)).any() or (np.abs(numbers) > 2**53).any():
        return None
    return Entries(counts, numbers.astype(np.int64), np.empty(0))
