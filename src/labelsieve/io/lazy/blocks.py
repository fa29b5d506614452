"""Any block of rows of a data set by itself, and the dask arrays that are made of them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from labelsieve._blocks.lazy_columns import lazy_rows
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve.io.errors import Mention
from labelsieve.io.readers.matrices import Matrices
from labelsieve.io.readers.source import Source
from labelsieve.io.splitting import fill_missing, has_missing

#: Bytes of features in a block: the work per block makes smaller ones slow, page faults larger ones. The memory of
#: arrays below 32 MiB is used again by the allocator of the GNU C library; other memory is new each time.
_DENSE_BYTES, _SPARSE_BYTES, _LARGEST_BYTES = 16 * 2**20, 32 * 2**20, 64 * 2**20
#: A value of a sparse matrix and its column.
_ENTRY_BYTES = 12
#: Entries that a sparse block should have for every column, since sums over a block have a value for each.
_ENTRIES_PER_COLUMN = 16


def dense_rows(n_columns: int) -> int:
    """Rows of a block of good size, of so many numbers each."""
    return max(1, _DENSE_BYTES // (8 * n_columns))


def sparse_rows(n_columns: int, entries_per_row: float) -> int:
    """Rows of a block of good size that stays sparse."""
    wanted = _ENTRIES_PER_COLUMN * n_columns * _ENTRY_BYTES
    n_bytes = min(max(_SPARSE_BYTES, wanted), _LARGEST_BYTES)
    return max(1, int(n_bytes / (_ENTRY_BYTES * max(entries_per_row, 1.0))))


def filled(X: Matrix, missing: str, source: Source, names: Sequence[str] | None) -> Matrix:
    """Features of a block without missing values, sparse ones sorted and without zeros."""
    stored = X.data if is_sparse(X) else X
    if missing == "error" and has_missing(stored):
        holes = np.isnan(stored)
        columns = X.indices[holes] if is_sparse(X) else np.nonzero(holes)[1]
        column = int(columns.min())
        raise source.error(
            f"has missing feature values, first in column {names[column] if names else f'x{column}'!r}; read it with ",
            Mention("missing", "zero"),
            ", or fill them in before",
        )
    complete: Any = fill_missing(X, missing, source.error)
    if sp.issparse(complete):
        complete.sum_duplicates()
        complete.eliminate_zeros()
    return complete


def cut_rows(n_rows: int, rows: int) -> tuple[int, ...]:
    """Sizes of blocks of so many rows; the last one is what is left."""
    return tuple(min(rows, n_rows - first) for first in range(0, n_rows, rows))


class FileAtRest:
    """A file of which any piece can be read, as long as nobody changes it."""

    def __init__(self, source: Source) -> None:
        if source.is_compressed and not source.is_npz:
            raise source.error("is compressed, so it cannot be read in blocks; unpack it first")
        self.source = source
        self.path = os.path.abspath(source.path)
        self.stamp = self._present_stamp()

    def open(self) -> IO[bytes]:
        """Open the file, which must be as it was."""
        with self.source.noticing_damage():
            if self._present_stamp() != self.stamp:
                raise self.source.error("was changed since it was opened; read it again")
            return open(self.path, "rb")

    def read(self, start: int, n_bytes: int) -> bytes:
        """Read a piece; a file that ends too early gives what it has."""
        with self.open() as stream, self.source.noticing_damage():
            stream.seek(start)
            return stream.read(n_bytes)

    def _present_stamp(self) -> list[int]:
        status = os.stat(self.path)
        return [status.st_size, status.st_mtime_ns]


@dataclass(frozen=True)
class Facts:
    """What is known of the rows before any is read.

    Attributes
    ----------
    sizes : tuple of int
        Rows of every block.
    roles : tuple of str
        Which of ``Y`` and ``Y_candidates`` there are.
    sparse : tuple of str
        Which of these and of ``X`` are CSR.
    feature_names, label_names, nominal, name
        As in `Matrices`.
    """

    sizes: tuple[int, ...]
    n_features: int
    n_labels: int
    roles: tuple[str, ...]
    sparse: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    nominal: tuple[str, ...] = ()
    name: str | None = None


class BlockReader(ABC):
    """Gives features and labels of one block of rows at a time; is pickled to where that happens."""

    facts: Facts

    def visit(self, index: int) -> Any:
        """Read what features and labels of a block have in common: the text they stand in, for example."""
        return None

    @abstractmethod
    def part(self, content: Any, index: int, role: str) -> Matrix:
        """Return ``X``, ``Y`` or ``Y_candidates`` of a block, given what `visit` returned."""


class StackedReader(BlockReader):
    """The blocks of several files under one another."""

    def __init__(self, readers: Sequence[BlockReader], source: Source) -> None:
        self.readers = list(readers)
        first = readers[0].facts
        for reader in readers:
            if replace(reader.facts, sizes=(), name=None) != replace(first, sizes=(), name=None):
                raise source.error(
                    "and the other parts must have the same columns in the same order; check the files"
                )
        self.facts = replace(first, sizes=tuple(size for reader in readers for size in reader.facts.sizes))
        self.places = [
            (number, index)
            for number, reader in enumerate(readers)
            for index in range(len(reader.facts.sizes))
        ]

    def visit(self, index: int) -> Any:
        """Read a block of the file that holds it."""
        number, own = self.places[index]
        return self.readers[number].visit(own)

    def part(self, content: Any, index: int, role: str) -> Matrix:
        """Return a part of a block of the file that holds it."""
        number, own = self.places[index]
        return self.readers[number].part(content, own, role)


def lazy_matrices(reader: BlockReader) -> Matrices:
    """Make dask arrays of what a reader would read."""
    from dask.delayed import delayed

    facts = reader.facts
    # One node of the graph, so that the reader travels once to a worker and not with every block.
    node = delayed(reader, name=f"read-{uuid4().hex}", traverse=False)
    visits = [delayed(_visit, pure=False)(node, index) for index in range(len(facts.sizes))]

    def lazy(role: str) -> Any:
        width, dtype = (facts.n_features, np.float64) if role == "X" else (facts.n_labels, np.uint8)
        empty = sp.csr_array((0, width), dtype=dtype) if role in facts.sparse else np.empty((0, width), dtype)
        parts = [
            delayed(_part, pure=False)(node, content, index, role) for index, content in enumerate(visits)
        ]
        return lazy_rows(parts, facts.sizes, empty)

    Y, candidates = (lazy(role) if role in facts.roles else None for role in ("Y", "Y_candidates"))
    names = (facts.feature_names, facts.label_names, facts.nominal, facts.name)
    return Matrices(lazy("X"), Y, candidates, *names)


def _visit(reader: BlockReader, index: int) -> Any:
    return reader.visit(index)


def _part(reader: BlockReader, content: Any, index: int, role: str) -> Matrix:
    return reader.part(content, index, role)
