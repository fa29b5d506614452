"""Where blocks of lines begin in a text file: one scan, which is remembered beside the file if it may be."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.io.lazy.blocks import FileAtRest
from labelsieve.io.readers.source import BLOCK_BYTES, newlines

#: What a scan holds in memory.
_PIECE_BYTES = 2**20
_VERSION = 1


@dataclass(frozen=True)
class Span:
    """Lines of a file that are one block."""

    start: int
    stop: int
    first_line: int
    n_rows: int


def line_spans(
    file: FileAtRest,
    start: int,
    first_line: int,
    lines: int,
    count: Callable[[int, bytes], int],
    notes: dict[str, Any],
) -> list[Span]:
    """Cut the text from `start` on into blocks of so many lines.

    Parameters
    ----------
    count : callable
        Says how many rows some lines hold, given the number of the first of them.
    notes : dict
        What `count` finds out on its way; remembered with the blocks.
    """
    path = Path(f"{file.path}.index")
    key = {"version": _VERSION, "file": file.stamp, "start": start, "lines": lines}
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_bytes())
        if known["key"] == key:
            spans = [Span(*map(int, span)) for span in known["spans"]]
            notes.update(known["notes"])
            return spans
    spans = list(_spans(file, start, first_line, lines, count))
    content = {"key": key, "spans": [list(asdict(span).values()) for span in spans], "notes": notes}
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with suppress(OSError):  # a folder that may not be written to: then it is scanned again next time
        try:
            partial.write_text(json.dumps(content))
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    return spans


def _spans(
    file: FileAtRest, start: int, first_line: int, lines: int, count: Callable[[int, bytes], int]
) -> Iterator[Span]:
    begin, line, n_lines, n_rows = start, first_line, 0, 0
    for offset, piece in _whole_lines(file, start):
        ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n")) + 1
        done = taken = 0
        while taken < len(ends):
            more = min(lines - n_lines, len(ends) - taken)
            cut = int(ends[taken + more - 1])
            n_rows += count(line + n_lines, newlines(piece[done:cut]))
            done, taken, n_lines = cut, taken + more, n_lines + more
            if n_lines == lines:
                if n_rows:  # blank lines alone are no block
                    yield Span(begin, offset + done, line, n_rows)
                begin, line, n_lines, n_rows = offset + done, line + n_lines, 0, 0
    if n_rows:
        yield Span(begin, file.stamp[0], line, n_rows)


def _whole_lines(file: FileAtRest, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of whole lines and where they begin; the last one may get the newline it lacks."""
    with file.open() as stream:
        stream.seek(start)
        pending: list[bytes] = []
        while block := stream.read(_PIECE_BYTES):
            cut = block.rfind(b"\n") + 1
            if cut:
                piece = b"".join([*pending, block[:cut]])
                yield start, piece
                start += len(piece)
                pending = []
            pending.append(block[cut:])
        last = b"".join(pending)
        if last:
            yield start, last + b"\n"


def lines_of(file: FileAtRest, span: Span) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a block some at a time, each ended by one newline, and the number of the first of them."""
    text = file.read(span.start, span.stop - span.start)
    if len(text) < span.stop - span.start:
        raise file.source.error(
            "is shorter than its index says; delete the file of the same name with .index"
        )
    text = newlines(text if text.endswith((b"\n", b"\r")) else text + b"\n")
    line, start = span.first_line, 0
    while start < len(text):
        stop = text.find(b"\n", start + BLOCK_BYTES) + 1 or len(text)
        piece = text[start:stop]
        yield line, piece
        line, start = line + piece.count(b"\n"), stop


def check_rows_found(file: FileAtRest, span: Span, n_found: int) -> None:
    """See that a block has the rows that its index counted."""
    if n_found != span.n_rows:
        raise file.source.error(
            f"has {n_found} rows from line {span.first_line} on where its index counted {span.n_rows}; delete the "
            "file of the same name with .index"
        )
