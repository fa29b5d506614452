"""CSV and TSV in blocks of lines; numbers only, since categories are known when all rows are."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from labelsieve.io.errors import Mention
from labelsieve.io.lazy.blocks import FileAtRest, dense_rows
from labelsieve.io.lazy.lines import check_rows_found, line_spans, lines_of
from labelsieve.io.lazy.tables import TableFile
from labelsieve.io.readers import bulk
from labelsieve.io.readers.delimited import field_number, read_heading
from labelsieve.io.readers.source import Source, decode

_BLANK_LINE = re.compile(rb"(?:\A|\n)[ \t]*\n")


class DelimitedFile(TableFile):
    """A CSV or TSV file, parsed block by block."""

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source, self.file = source, FileAtRest(source)
        heading = read_heading(source)
        self.names, self.headless, self.separator = heading.names, heading.headless, heading.separator
        self.refused = {}
        start = 0 if self.headless else _end_of_line(self.file, heading.n_lines)
        first_line = 1 if self.headless else heading.n_lines + 1
        lines = rows or dense_rows(len(self.names))
        self.spans = line_spans(self.file, start, first_line, lines, _count_rows, {})
        self.sizes = tuple(span.n_rows for span in self.spans)
        if not self.sizes:
            raise source.error("has a header but no rows; copy it again")

    def visit(self, index: int, places: Sequence[int]) -> Any:
        """Read and parse the lines of a block."""
        span = self.spans[index]
        values = np.concatenate(
            [self._parsed(text, line, places) for line, text in lines_of(self.file, span)]
        )
        check_rows_found(self.file, span, len(values))
        return values

    def columns(self, content: Any, index: int, places: Sequence[int]) -> np.ndarray:
        """Take columns of what was parsed."""
        values: np.ndarray = content[:, list(places)]
        return values

    def _parsed(self, lines: bytes, first_line: int, places: Sequence[int]) -> np.ndarray:
        """All columns of some lines."""
        lines = lines.removeprefix(b"\xef\xbb\xbf")
        values = None if b'"' in lines else bulk.table(lines, self.separator.encode(), len(self.names))
        return self._by_record(lines, first_line, places) if values is None else values

    def _by_record(self, block: bytes, first_line: int, places: Sequence[int]) -> np.ndarray:
        """Parse field by field what has gaps, quotes or columns of text that nobody asks for."""
        lines = [decode(raw) for raw in block[:-1].split(b"\n")]
        reader = csv.reader(lines, delimiter=self.separator, strict=True)
        rows = []
        try:
            for record in reader:
                if not record or (len(record) == 1 and not record[0].strip()):
                    continue
                line = first_line + reader.line_num - 1
                if len(record) != len(self.names):
                    raise self.source.error(
                        f"expected {len(self.names)} fields, got {len(record)}; correct the row, which must be one "
                        "line where a file is read in blocks",
                        line=line,
                    )
                row = np.zeros(len(self.names))
                for place in places:
                    row[place] = self._number(record[place], place, line)
                rows.append(row)
        except csv.Error as error:
            raise self.source.error(
                f"is no proper table from line {first_line} on ({error}); check its quotes, which must end in the "
                "line they begin in where a file is read in blocks"
            ) from None
        return np.array(rows).reshape(-1, len(self.names))

    def _number(self, field: str, place: int, line: int) -> float:
        try:
            return field_number(field)
        except ValueError:
            name = self.names[place]
            raise self.source.error(
                f"column {name!r} must hold numbers where a file is read in blocks, got {field.strip()[:40]!r}; code "
                "it before, or leave the column out with ",
                Mention("ignore", name),
                line=line,
            ) from None


def _count_rows(_: int, text: bytes) -> int:
    """Lines that are not blank."""
    if _BLANK_LINE.search(text) is None:
        return text.count(b"\n")
    return sum(bool(line.strip()) for line in text.split(b"\n"))


def _end_of_line(file: FileAtRest, n_lines: int) -> int:
    """Where the lines of the header end."""
    with file.open() as stream:
        for _ in range(n_lines):
            stream.readline()
        return stream.tell()
