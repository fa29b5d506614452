"""NPY and NPZ in blocks of rows: pieces of arrays that are stored as they are, read by their offsets."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import check_structure
from labelsieve._numerics.typing import Matrix
from labelsieve.io.lazy.blocks import (
    BlockReader,
    Facts,
    FileAtRest,
    cut_rows,
    dense_rows,
    filled,
    sparse_rows,
)
from labelsieve.io.lazy.tables import TableFile
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.matrices import binary_labels, no_features, pick_half
from labelsieve.io.readers.npz import (
    FOREIGN_NAMES,
    ROLES,
    array_header,
    noticing_unsound,
    own_facts,
    own_parts,
    sparse_shape,
    table_names,
    text_names,
)
from labelsieve.io.readers.source import Source

_LOCAL_HEADER_BYTES = 30


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, of which pieces are read."""

    file: FileAtRest
    offset: int
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def rows(self, first: int, stop: int) -> np.ndarray:
        """Read the rows from `first` to before `stop`."""
        width = int(np.prod(self.shape[1:], dtype=np.int64))
        if not self.by_columns or self.ndim < 2:
            return self._values(first * width, (stop - first) * width).reshape(-1, *self.shape[1:])
        columns = [self._values(column * self.shape[0] + first, stop - first) for column in range(width)]
        return np.column_stack(columns)

    def whole(self) -> np.ndarray:
        """Read all of a small array."""
        return self.rows(0, self.shape[0]) if self.ndim else self._values(0, 1).reshape(())

    def _values(self, first: int, count: int) -> np.ndarray:
        content = self.file.read(self.offset + first * self.dtype.itemsize, count * self.dtype.itemsize)
        if len(content) < count * self.dtype.itemsize:
            raise self.file.source.error("is cut off; copy it again")
        return np.frombuffer(content, self.dtype)


@dataclass(frozen=True)
class StoredRows:
    """A sparse matrix in a file, of which rows are read."""

    data: StoredArray
    indices: StoredArray
    starts: StoredArray
    shape: tuple[int, int]

    def rows(self, first: int, stop: int) -> sp.csr_array:
        """Read the rows from `first` to before `stop`."""
        starts = self.starts.rows(first, stop + 1).astype(np.int64)
        if (np.diff(starts) < 0).any() or starts[0] < 0 or starts[-1] > self.data.shape[0]:
            raise self.data.file.source.error("holds a broken sparse matrix; write it again")
        places = (int(starts[0]), int(starts[-1]))
        matrix = sp.csr_array(
            (self.data.rows(*places), self.indices.rows(*places), starts - starts[0]),
            shape=(stop - first, self.shape[1]),
        )
        check_structure(matrix, "a block of rows")
        return matrix


class ArrayFile(TableFile):
    """A single array, which is a table without names."""

    headless = True

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source, self.refused = source, {}
        file = FileAtRest(source)
        with source.noticing_damage(), file.open() as stream:
            self.array = _stored(file, stream, source.path.name, source.size)
        self.names = table_names(self.array.shape, self.array.dtype, source)
        self.sizes = cut_rows(self.array.shape[0], rows or dense_rows(len(self.names)))
        self.rows = self.sizes[0]

    def visit(self, index: int, places: Sequence[int]) -> Any:
        """Read the rows of a block."""
        first = index * self.rows
        return self.array.rows(first, first + self.sizes[index])

    def columns(self, content: Any, index: int, places: Sequence[int]) -> np.ndarray:
        """Take columns of what was read, in one copy if they are neighbours."""
        first, stop = places[0], places[-1] + 1
        taken = content[:, first:stop] if stop - first == len(places) else content[:, list(places)]
        values: np.ndarray = taken.astype(np.float64)
        return values


class ArchiveReader(BlockReader):
    """Features and labels of an NPZ archive whose members are not compressed."""

    def __init__(self, source: Source, options: ReadOptions, rows: int | None) -> None:
        self.source, self.missing = source, options.missing
        arrays = _members(source)
        if "labelsieve" in arrays:
            with noticing_unsound(source):
                found = tuple(_own_matrix(arrays, role, source) for role in ROLES)
                if found[0] is None:
                    raise ValueError("X is missing")
                names = own_facts(arrays["labelsieve"].whole())
        else:
            tables = {name: array for name, array in arrays.items() if array.ndim == 2}
            picked = pick_half(tables, source, options)
            if picked is None:
                raise no_features(tables, source)
            found = picked
            told = {key: arrays[key].whole() for key in FOREIGN_NAMES if key in arrays}
            names = (*(text_names(told.get(key), key, source) for key in FOREIGN_NAMES), (), None)  # type: ignore[assignment]
        self.matrices = {
            role: matrix for role, matrix in zip(ROLES, found, strict=True) if matrix is not None
        }
        X, *labels = self.matrices.values()
        if X.shape[0] == 0 or any(Y.shape != (X.shape[0], labels[0].shape[1]) for Y in labels) or not labels:
            shapes = ", ".join(f"{role} {matrix.shape}" for role, matrix in self.matrices.items())
            raise source.error(
                f"must hold samples x features and samples x labels, got {shapes}; transpose them"
            )
        self.sizes = cut_rows(X.shape[0], rows or _good_rows(X))
        sparse = tuple(role for role, matrix in self.matrices.items() if isinstance(matrix, StoredRows))
        roles = tuple(role for role in self.matrices if role != "X")
        self.facts = Facts(self.sizes, X.shape[1], labels[0].shape[1], roles, sparse, *names)

    def part(self, content: Any, index: int, role: str) -> Matrix:
        """Read rows of one matrix."""
        first = index * self.sizes[0]
        rows = self.matrices[role].rows(first, first + self.sizes[index])
        if role != "X":
            return binary_labels(rows, self.source)
        return filled(rows.astype(np.float64), self.missing, self.source, self.facts.feature_names)


def _good_rows(X: StoredArray | StoredRows) -> int:
    if isinstance(X, StoredRows):
        return sparse_rows(X.shape[1], X.data.shape[0] / X.shape[0])
    return dense_rows(X.shape[1])


def _members(source: Source) -> dict[str, StoredArray]:
    """All arrays of an archive, none of them read."""
    file = FileAtRest(source)
    arrays = {}
    with source.noticing_damage(), file.open() as stream:
        for member in zipfile.ZipFile(stream).infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise source.error(
                    f"holds {member.filename!r} compressed, so it cannot be read in blocks; save it with numpy.savez "
                    "instead of numpy.savez_compressed"
                )
            stream.seek(member.header_offset)
            header = stream.read(_LOCAL_HEADER_BYTES)
            name_bytes, extra_bytes = struct.unpack("<HH", header[-4:])
            stream.seek(name_bytes + extra_bytes, 1)
            arrays[member.filename[:-4]] = _stored(file, stream, member.filename, member.file_size)
    return arrays


def _stored(file: FileAtRest, stream: IO[bytes], name: str, n_bytes: int) -> StoredArray:
    """The array whose header comes next, and which ends so many bytes from here at the latest."""
    end = stream.tell() + n_bytes
    shape, by_columns, dtype = array_header(stream, name, n_bytes, file.source)
    if stream.tell() + math.prod(shape) * dtype.itemsize > end:
        raise file.source.error("is cut off; copy it again")
    return StoredArray(file, stream.tell(), shape, by_columns, dtype)


def _own_matrix(arrays: dict[str, StoredArray], role: str, source: Source) -> StoredArray | StoredRows | None:
    """Put together what `write` took apart."""
    parts = own_parts(arrays, role)
    if parts is None or len(parts) == 1:
        return None if parts is None else parts[0]
    data, indices, starts, shape = parts
    return StoredRows(data, indices, starts, sparse_shape(role, indices, starts, shape.whole(), source))
