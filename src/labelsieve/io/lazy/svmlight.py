"""svmlight, LIBSVM and the extreme classification format in blocks of lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelsieve._numerics.typing import Matrix
from labelsieve.io.lazy.blocks import BlockReader, Facts, FileAtRest, filled, sparse_rows
from labelsieve.io.lazy.lines import check_rows_found, line_spans, lines_of
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.matrices import listed_names
from labelsieve.io.readers.source import Source, newlines
from labelsieve.io.readers.svmlight import (
    Entries,
    LineReader,
    check_indices,
    check_same_kind,
    declared_labels,
    index_range,
    join_rows,
    label_names,
    label_rows,
    matrix_of,
)

_SAMPLE_BYTES = 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextPart:
    """One file: its first line, and where its blocks begin."""

    def __init__(self, source: Source, rows: int | None) -> None:
        self.file, self.lines = FileAtRest(source), LineReader(source)
        with self.file.open() as stream:
            raw = stream.readline()
        mark = len(_BYTE_ORDER_MARK) if raw.startswith(_BYTE_ORDER_MARK) else 0
        first_line, rest = self.lines.take_first_line(newlines(raw[mark:]))
        start = mark if first_line == 1 or rest else len(raw)
        self.notes: dict[str, Any] = {}
        count = self._count_declared if self.lines.sizes else self._count if self.lines.header else self._note
        self.lacking = self.lines.sizes[0] if self.lines.sizes else 0
        self.spans = line_spans(
            self.file, start, first_line, rows or self._good_rows(start), count, self.notes
        )
        n_rows = sum(span.n_rows for span in self.spans)
        if self.lines.sizes and n_rows < self.lines.sizes[0]:
            raise source.error(
                f"declares {self.lines.sizes[0]} samples but has {n_rows}; it is cut off or damaged", line=1
            )
        if not n_rows:
            raise source.error("has no rows; copy it again")

    def read(self, index: int) -> tuple[Entries, Entries]:
        """Features and labels of a block."""
        span = self.spans[index]
        features, labels = join_rows(
            [self.lines.rows(line, text) for line, text in lines_of(self.file, span)]
        )
        if self.lines.sizes:  # blank lines at the end are no rows
            features, labels = features.first(span.n_rows), labels.first(span.n_rows)
        check_rows_found(self.file, span, features.counts.size)
        return features, labels

    def _good_rows(self, start: int) -> int:
        """Rows of a block of good size, as the first of them say."""
        sample = self.file.read(start, _SAMPLE_BYTES)
        declared = self.lines.sizes[1] if self.lines.sizes else (self.lines.header or {}).get("n_features", 0)
        return sparse_rows(declared, sample.count(b":") / max(sample.count(b"\n"), 1))

    def _count(self, first_line: int, text: bytes) -> int:
        """Rows of some lines of a file that declares its columns."""
        return sum(bool(line.strip()) for line in self.lines.lines(text))

    def _count_declared(self, first_line: int, text: bytes) -> int:
        """Rows of some lines of a file that declares its rows too; blank lines at the end are none."""
        lines = self.lines.lines(text)
        n_rows = min(self.lacking, len(lines))
        self.lacking -= n_rows
        if any(line.strip() for line in lines[n_rows:]):
            raise self.file.source.error(
                "has more rows than its first line declares; correct it", line=first_line + n_rows
            )
        return n_rows

    def _note(self, first_line: int, text: bytes) -> int:
        """Rows of some lines; which columns and labels there are is noted, since nothing else says so."""
        features, labels = self.lines.rows(first_line, text)
        if features.indices.size:
            lowest, highest = int(features.indices.min()), int(features.indices.max())
            self.notes["lowest"] = min(lowest, self.notes.get("lowest", lowest))
            self.notes["highest"] = max(highest, self.notes.get("highest", highest))
        known = np.union1d(self.notes.get("labels", ()), labels.indices).astype(np.int64)
        self.notes["labels"] = known.tolist()
        return features.counts.size


class TextReader(BlockReader):
    """Features and labels of one or several files."""

    def __init__(self, sources: Sequence[Source], options: ReadOptions, rows: int | None) -> None:
        self.source, self.missing = sources[0], options.missing
        self.parts = [TextPart(source, rows) for source in sources]
        sizes = [part.lines.sizes for part in self.parts]
        check_same_kind(sizes, self.source)
        header = self.parts[0].lines.header or {}
        notes = [part.notes for part in self.parts]
        lowest = min((note["lowest"] for note in notes if "lowest" in note), default=1)
        highest = max((note["highest"] for note in notes if "highest" in note), default=None)
        self.base, self.width = index_range(sizes, header, lowest, highest, self.source)
        self.n_declared = declared_labels(sizes, header, self.source)
        self.distinct = (
            None if self.n_declared else np.unique(np.concatenate([note.get("labels", []) for note in notes]))
        )
        if self.distinct is not None:
            self.distinct = self.distinct.astype(np.int64)
        self.places = [(part, index) for part in self.parts for index in range(len(part.spans))]
        role = "Y_candidates" if header.get("holds") == "candidate" else "Y"
        self.facts = Facts(
            tuple(part.spans[index].n_rows for part, index in self.places),
            self.width,
            self.n_declared or len(self.distinct),  # type: ignore[arg-type]
            (role,),
            ("X", role),
            listed_names(header["features"]) if header.get("features") else None,
            label_names(header, self.distinct, self.source),
            listed_names(header.get("nominal") or []),
            str(header["name"]) if header.get("name") else None,
        )

    def visit(self, index: int) -> Any:
        """Parse the lines of a block."""
        part, own = self.places[index]
        return part.read(own)

    def part(self, content: Any, index: int, role: str) -> Matrix:
        """Make a matrix of what was parsed."""
        features, labels = content
        if role != "X":
            return label_rows(labels, self.n_declared, self.distinct, self.source)
        if features.indices.size:
            lowest, highest = int(features.indices.min()), int(features.indices.max())
            check_indices(lowest, highest, self.base, self.width, self.source)
        X = matrix_of(features, self.base, self.width)
        return filled(X, self.missing, self.source, self.facts.feature_names)
