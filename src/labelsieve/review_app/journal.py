"""Review file that grows by a line per verdict, so that no verdict is lost.

The file starts with a heading that names the data and with the random draw. Every verdict appends a line, which is on
disk before `Journal.append` returns. An operating system lock, which ends with the process, keeps other processes out.
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import os
from collections import Counter
from pathlib import Path

import numpy as np

from labelsieve._numerics.sparse import is_sparse
from labelsieve.inspection._reviews import OPEN, Review
from labelsieve.inspection.review import (
    DATA_PREFIX,
    check_names,
    journal_to_csv,
    read_lines,
    read_review,
)
from labelsieve.io import Dataset, DatasetError


class Journal:
    """Open review file of a dataset.

    Attributes
    ----------
    path : Path
        The file.
    review : Review or None
        Content of the file when it was opened; None if it was new.
    changes : list of (row, label, verdict before)
        Changes in the file that were not undone, oldest first.
    """

    def __init__(self, path: Path, dataset: Dataset) -> None:
        check_names(dataset)
        self.path, self._dataset, self._size = path, dataset, 0
        self._checksum = data_checksum(dataset)
        is_new = not path.exists()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise DatasetError(
                f"{path}: cannot be written ({error.strerror}); choose another file with -o."
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.review = self._resume()
            self.changes = [] if self.review is None else self._changes()
        except BlockingIOError:
            os.close(self._file)
            raise DatasetError(
                f"{path}: another labelsieve review is using this file; continue there or stop it first."
            ) from None
        except BaseException:
            os.close(self._file)
            raise
        if is_new:
            _sync_folder(path)

    def append(self, review: Review) -> None:
        """Write some labels with their draws and verdicts, and wait until they are on disk."""
        text = journal_to_csv(review, self._dataset, self._checksum)
        self._write(text if not self._size else text.partition("\n")[2])

    def close(self) -> None:
        """Close the file and release its lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, text: str) -> None:
        if self._file < 0:
            raise DatasetError(f"{self.path}: the review is closed.")
        try:
            found, own = os.stat(self.path), os.fstat(self._file)
        except OSError:
            raise DatasetError(f"{self.path}: was moved or deleted. Restore it and start again.") from None
        if (found.st_ino, found.st_dev, found.st_size) != (own.st_ino, own.st_dev, self._size):
            raise DatasetError(f"{self.path}: was changed by another program. Start labelsieve review again.")
        rest = text.encode()
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise DatasetError(
                f"{self.path}: cannot be written ({error.strerror}). Free some disk space."
            ) from None
        self._size = os.fstat(self._file).st_size

    def _resume(self) -> Review | None:
        """Check and read the file. Remove incomplete lines, which the page never reported as saved."""
        with open(self._file, "rb", closefd=False) as stream:
            content = stream.read()
        no_labels = np.empty(0, dtype=np.intp)
        nothing = Review(no_labels, no_labels, no_labels, no_labels.astype(bool), no_labels, ())
        header = journal_to_csv(nothing, self._dataset, self._checksum).encode()
        lines = content.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        if not lines and not header.startswith(content):
            lines = [content]
        if lines:
            self._check_header(lines[0], header)
        self._size = sum(map(len, lines[: _n_complete(lines)]))
        if self._size < len(content):
            os.ftruncate(self._file, self._size)
        return read_review(self.path, self._dataset) if self._size > len(header) else None

    def _changes(self) -> list[tuple[int, int, int]]:
        """Follow the lines of the file. A line with the verdict before the last change undoes it."""
        lines, _ = read_lines(self.path, self._dataset)
        current: dict[tuple[int, int], int] = {}
        found: list[tuple[int, int, int]] = []
        for row, label, answer in zip(
            lines.rows.tolist(), lines.labels.tolist(), lines.answers.tolist(), strict=True
        ):
            before = current.get((row, label), OPEN)
            current[row, label] = answer
            if found and found[-1] == (row, label, answer):
                found.pop()
            elif answer != before:
                found.append((row, label, before))
        return found

    def _check_header(self, found: bytes, header: bytes) -> None:
        if found == header:
            return
        own, prefix = header.rpartition(b","), DATA_PREFIX.encode()
        same_format = found.rpartition(b",")
        if same_format[0] == own[0] and same_format[2].startswith(prefix):
            raise DatasetError(
                f"{self.path}: was written for other data than {self._dataset.source or 'these'}. Restore the data, "
                "or start a new review with -o."
            )
        raise DatasetError(
            f"{self.path}: is not a file of labelsieve review for these data, or was saved by another program. Choose "
            "another file with -o, and pass this one to --checked to continue with its verdicts."
        )


def data_checksum(dataset: Dataset) -> str:
    """Return a checksum of the files of a dataset, or of its numbers if it has no files."""
    checksum = hashlib.sha256(dataset.checksum.encode())
    if not dataset.checksum:
        for matrix in (dataset.X, dataset.candidates):
            parts = (matrix.data, matrix.indices, matrix.indptr) if is_sparse(matrix) else (matrix,)
            for part in parts:
                checksum.update(np.ascontiguousarray(part).data)
    return checksum.hexdigest()[:16]


def _n_complete(lines: list[bytes]) -> int:
    """Return the number of lines before a draw that was not written completely, which can only be the last one."""
    records = list(csv.reader(line.decode(errors="replace") for line in lines))
    if not records:
        return 0
    columns = [records[0].index(name) for name in ("draw", "planned")]
    width = len(records[0])
    draws = [tuple([*record, *[""] * width][at] for at in columns) for record in records]
    for (identifier, size), n_written in Counter(draws[1:]).items():
        if size.isdecimal() and n_written < int(size):
            first = draws.index((identifier, size))
            return first if first > 1 else 0
    return len(lines)


def _sync_folder(path: Path) -> None:
    """Make sure that a new file stays in its folder after a crash."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
