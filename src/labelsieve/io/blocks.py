"""Files larger than memory as dask arrays: CSV and TSV, Parquet (one file or a folder) and NPY.

Any block of rows can be read by itself, so the same arrays serve one process, which reads block after block, and the
workers of a cluster. Every pass over the rows reads the file again.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from labelsieve._blocks.streamed import lazy_rows
from labelsieve._numerics.sparse import dense
from labelsieve.io.column_choice import NOMINAL_PREFIX, choose_columns, plain_name
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import TABLE_FORMATS, has_numbers, import_pyarrow, separator_of
from labelsieve.io.matrices import Matrices, check_numbers, labels_to_binary
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source
from labelsieve.io.spellings import MISSING

#: Bytes of numbers in a block: smaller ones cost overhead, larger ones page faults.
_BLOCK_BYTES = 16 * 2**20
#: Row groups of Parquet are read whole, so a block may be larger by this factor.
_MAX_GROUP_RATIO = 16


def check_chunks(chunks: object) -> int | None:
    """Return the number of rows of a block, or None for "auto"."""
    if chunks == "auto":
        return None
    if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks < 1:
        raise DatasetError(f"expected a number of rows or 'auto', got `chunks={chunks!r}`.")
    return chunks


def files_in(path: Path) -> list[Path]:
    """Return the Parquet files of a folder sorted by name, or the file itself."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.glob("*.parquet") if file.is_file())
    if not files:
        raise DatasetError(f"{path}: is a folder without .parquet files; give the data file inside it.")
    return files


def open_in_blocks(sources: Sequence[Source], options: ReadOptions, rows: int | None) -> Matrices:
    """Return features and labels of files as dask arrays."""
    first = sources[0]
    try:
        import dask.delayed  # noqa: F401
    except ImportError:
        raise first.error("can be read in blocks only with dask; pip install 'labelsieve[dask]'") from None
    if options.missing == "mean":
        raise first.error("cannot be read in blocks with `missing='mean'`; use 'zero'")

    tables = [_open(source, rows) for source in sources]
    names = tables[0].names
    if any(table.names != names for table in tables):
        raise first.error("and the other files must have the same columns in the same order")
    choice = choose_columns(names, options, first.error)
    features = choice.features(len(names), first.error)
    nominal = [plain_name(names[column]) for column in features if names[column].startswith(NOMINAL_PREFIX)]
    if nominal and options.nominal == "onehot":
        raise first.error("cannot be read in blocks with `nominal='onehot'`; use 'code'")
    sizes = [size for table in tables for size in table.sizes]
    used = sorted({*features, *(choice.labels or ()), *choice.candidates})
    reads: dict[Any, Any] = {}

    def lazy_labels(file: Path | None, columns: Sequence[int]) -> tuple[Any, list[str] | None]:
        if file is None:
            own, wanted = tables, used
        else:
            own = [_open(Source(file), sizes[0])]
            columns = wanted = list(range(len(own[0].names)))
            if [*own[0].sizes] != sizes:
                raise first.error(
                    f"and {file} must have the same rows in every block, got {sum(sizes)} rows in {len(sizes)} blocks "
                    f"and {sum(own[0].sizes)} in {len(own[0].sizes)}"
                )
        if not columns:
            return None, None
        Y = _dask_array(own, wanted, columns, _binary_labels, np.uint8, reads)
        return Y, None if own[0].is_headless else [plain_name(own[0].names[column]) for column in columns]

    candidates, candidate_names = lazy_labels(choice.candidate_file, choice.candidates)
    truth, true_names = lazy_labels(choice.label_file, choice.labels or ())
    X = _dask_array(tables, used, features, partial(_fill_missing, options.missing), np.float64, reads)
    feature_names = [names[column].removeprefix(NOMINAL_PREFIX) for column in features]
    return Matrices(X, truth, candidates, feature_names, true_names or candidate_names, nominal)


def _fill_missing(
    missing: str | None, values: np.ndarray, names: Sequence[str], source: Source
) -> np.ndarray:
    """Return the values without missing ones."""
    if missing == "zero":
        return np.where(np.isnan(values), 0.0, values)
    return _require_complete(values, names, "use `missing='zero'`", source)


def _binary_labels(values: np.ndarray, names: Sequence[str], source: Source) -> np.ndarray:
    """Return labels as 0/1."""
    return dense(labels_to_binary(_require_complete(values, names, "complete them", source), source.error))


def _require_complete(values: np.ndarray, names: Sequence[str], remedy: str, source: Source) -> np.ndarray:
    """Raise if a value is missing."""
    missing = np.isnan(values).any(axis=0)
    if missing.any():
        raise source.error(f"has missing values in column {names[int(missing.argmax())]!r}; {remedy}")
    return values


def _dask_array(
    tables: Sequence[BlockTable],
    used: Sequence[int],
    columns: Sequence[int],
    convert: Callable[[np.ndarray, Sequence[str], Source], np.ndarray],
    dtype: Any,
    reads: dict[Any, Any],
) -> Any:
    """Return columns of all blocks, converted, as a dask array.

    `used` are the columns of features and labels, `reads` the tasks so far.
    """
    from dask.delayed import delayed

    parts = []
    for table in tables:
        read = used if table.reads_whole_rows else sorted(columns)
        names = [table.names[column] for column in columns]
        text = next((table.names[column] for column in read if column in table.not_numeric), None)
        if text is not None:
            raise table.source.error(
                f"column {text!r} must hold numbers to be read in blocks; encode it, or use `ignore={text!r}`"
            )
        for index in range(len(table.sizes)):
            # The table goes with every task: as a task of its own it would draw all blocks to one worker.
            key = (id(table), index, tuple(read))
            if key not in reads:
                reads[key] = delayed(type(table).values, pure=False)(table, index, read)
            values = reads[key][:, np.searchsorted(read, columns)]
            parts.append(delayed(convert, pure=False)(values, names, table.source))
    sizes = [size for table in tables for size in table.sizes]
    return lazy_rows(parts, sizes, np.empty((0, len(columns)), dtype=dtype))


class BlockTable(ABC):
    """Table of numbers in a file, of which any block of rows can be read."""

    source: Source
    names: list[str]
    sizes: tuple[int, ...]
    #: Whether the names are made up.
    is_headless: bool = False
    #: Whether reading some columns costs as much as reading all.
    reads_whole_rows: bool = False
    #: Columns that do not hold numbers, if the file says so.
    not_numeric: frozenset[int] = frozenset()

    @abstractmethod
    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Return columns of a block as float64, NaN for missing values."""


class NumpyTable(BlockTable):
    """NPY file, memory-mapped."""

    is_headless = True

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source = source
        array = self._open()
        check_numbers(array, source)
        self.names = [f"x{position}" for position in range(array.shape[1])]
        self.sizes = _block_sizes(array.shape[0], _rows_per_block(rows, len(self.names)))

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Copy columns of some rows."""
        first = index * self.sizes[0]
        block = self._open()[first : first + self.sizes[index]]
        return np.array(block[:, list(columns)], dtype=np.float64, order="C")

    def _open(self) -> np.ndarray:
        array: np.ndarray = np.load(self.source.path.absolute(), mmap_mode="r", allow_pickle=False)
        return array


class DelimitedTable(BlockTable):
    """CSV or TSV file with one line per row, parsed by pandas."""

    reads_whole_rows = True

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source = source
        n_lines = self._read_heading()
        per_block = _rows_per_block(rows, len(self.names))
        #: Where blocks begin and the last one ends, in bytes.
        self.bounds: list[int] = []
        n_rows, offset, mark = 0, 0, self.separator.encode()
        with open(source.path, "rb") as stream:
            for number, line in enumerate(stream, start=1):
                if number > n_lines and not line.isspace():
                    n_fields = line.count(mark) + 1
                    if n_fields != len(self.names) and b'"' not in line:
                        raise source.error(f"expected {len(self.names)} fields, got {n_fields}", line=number)
                    if n_rows % per_block == 0:
                        self.bounds.append(offset)
                    n_rows += 1
                offset += len(line)
        if not n_rows:
            raise source.error("has a header but no rows; copy it again")
        self.bounds.append(offset)
        self.sizes = _block_sizes(n_rows, per_block)

    def _read_heading(self) -> int:
        """Find separator and names; return the number of lines that the header takes."""
        with open(self.source.path, encoding="utf-8-sig", errors="replace", newline="") as stream:
            first = next((line for line in stream if line.strip()), "")
            stream.seek(0)
            self.separator = separator_of(first, self.source.ending)
            reader = csv.reader(stream, delimiter=self.separator)
            record = next((record for record in reader if any(cell.strip() for cell in record)), [])
            self.is_headless = has_numbers(record)
            self.names = [
                f"x{position}" if self.is_headless else cell.strip() for position, cell in enumerate(record)
            ]
            check_names(self.names, self.source)
            return 0 if self.is_headless else reader.line_num

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Parse the lines of a block."""
        with open(self.source.path.absolute(), "rb") as stream:
            stream.seek(self.bounds[index])
            lines = stream.read(self.bounds[index + 1] - self.bounds[index]).removeprefix(b"\xef\xbb\xbf")
        try:
            frame = self._parse(lines, columns, np.float64)
        except ValueError as error:
            raise self._cell_error(error, lines, index, columns) from None
        if len(frame) != self.sizes[index]:
            raise self.source.error("must have one line per row to be read in blocks; check its quotes")
        return np.ascontiguousarray(frame[list(columns)].to_numpy())

    def _parse(self, lines: bytes, columns: Sequence[int], dtype: Any) -> Any:
        # Up to pandas 2 the default parser may miss the nearest float by one unit in the last place.
        exact = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}
        return pd.read_csv(
            BytesIO(lines),
            sep=self.separator,
            header=None,
            names=range(len(self.names)),
            usecols=list(columns),
            dtype=dtype,
            na_values=sorted(MISSING),
            skipinitialspace=True,
            encoding_errors="replace",
            **exact,
        )

    def _cell_error(self, error: Exception, lines: bytes, index: int, columns: Sequence[int]) -> DatasetError:
        """Name the first cell that is not a number."""
        if not isinstance(error, pd.errors.ParserError):
            for column, cells in self._parse(lines, columns, str).items():
                wrong = cells[cells.notna() & pd.to_numeric(cells, errors="coerce").isna()]
                if len(wrong):
                    name, row = self.names[column], index * self.sizes[0] + int(wrong.index[0]) + 1
                    return self.source.error(
                        f"column {name!r} must hold numbers to be read in blocks, got {wrong.iloc[0][:40]!r} in row "
                        f"{row}; encode it, or use `ignore={name!r}`"
                    )
        return self.source.error(f"cannot be parsed ({error})")


class ParquetTable(BlockTable):
    """Parquet file, of which whole row groups are read."""

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source = source
        pa, pq = import_pyarrow(source)
        with pq.ParquetFile(source.path) as file:
            self.names = list(file.schema_arrow.names)
            check_names(self.names, source)
            groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            self.not_numeric = frozenset(
                column
                for column, kind in enumerate(file.schema_arrow.types)
                if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
            )
        if not self.names or not sum(groups):
            raise source.error("has no rows or no columns; write it again")
        wanted, largest = _rows_per_block(rows, len(self.names)), max(groups)
        if largest > wanted * (1 if rows else _MAX_GROUP_RATIO):
            raise source.error(
                f"has row groups of up to {largest} rows, which are read whole; write it with "
                f"row_group_size={wanted}, or use `chunks={largest!r}`",
            )
        blocks: list[list[int]] = [[]]
        for group, size in enumerate(groups):
            if sum(groups[other] for other in blocks[-1]) + size > wanted and blocks[-1]:
                blocks.append([])
            blocks[-1].append(group)
        self.groups = blocks
        self.sizes = tuple(sum(groups[group] for group in block) for block in blocks)

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Read columns of some row groups."""
        names = [self.names[column] for column in columns]
        values = np.empty((self.sizes[index], len(columns)))
        pa, pq = import_pyarrow(self.source)
        with pq.ParquetFile(self.source.path.absolute()) as file:
            table = file.read_row_groups(self.groups[index], columns=names)
            for position, name in enumerate(names):
                column = table.column(name)
                if pa.types.is_boolean(column.type):
                    column = column.cast(pa.int8())
                values[:, position] = column.cast(pa.float64(), safe=False).to_numpy()
        return values


def check_names(names: Sequence[str], source: Source) -> None:
    """Raise if a column has no name, or that of another one."""
    if not names or not all(names) or len(set(names)) < len(names):
        raise source.error("needs column names that all differ; rename one")


def _open(source: Source, rows: int | None) -> BlockTable:
    """Open a file in the format of its ending."""
    ending = source.path.suffix.lower()
    if ending == ".npy":
        return NumpyTable(source, rows)
    kind = TABLE_FORMATS.get(ending)
    if kind == "parquet":
        return ParquetTable(source, rows)
    if kind == "delimited":
        return DelimitedTable(source, rows)
    raise source.error(f"ends in {ending!r}, which cannot be read in blocks; use CSV, TSV, Parquet or NPY")


def _rows_per_block(rows: int | None, n_columns: int) -> int:
    """Return the number of rows of a block, of a good size if none is given."""
    return rows or max(1, _BLOCK_BYTES // (8 * n_columns))


def _block_sizes(n_rows: int, rows: int) -> tuple[int, ...]:
    """Return the sizes of blocks of so many rows; the last one may be smaller."""
    return tuple(min(rows, n_rows - first) for first in range(0, n_rows, rows))
