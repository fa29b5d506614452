"""Files larger than memory as dask arrays: CSV and TSV, Parquet (one file or a folder) and NPY.

Each block of rows can be read independently, so the arrays work in a single process and on a cluster. Every
pass over the rows reads the file again.
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
from labelsieve._text import install_command
from labelsieve.io.column_choice import NOMINAL_PREFIX, choose_columns, plain_name
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import TABLE_FORMATS, detect_separator, has_numbers, import_pyarrow
from labelsieve.io.matrices import Matrices, check_numbers, labels_to_binary
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source
from labelsieve.io.spellings import MISSING

#: Size of a block in bytes. Smaller blocks cost overhead, larger ones page faults.
_BLOCK_BYTES = 16 * 2**20
#: Parquet row groups cannot be split, so a block may be larger by this factor.
_MAX_GROUP_RATIO = 16


def check_chunks(chunks: object) -> int | None:
    """Validate `chunks`. Return the number of rows in a block, or None for "auto"."""
    if chunks == "auto":
        return None
    if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks < 1:
        raise DatasetError(f"`chunks` must be a number of rows or 'auto', got `chunks={chunks!r}`.")
    return chunks


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files in a folder, sorted by name, or the file itself."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.glob("*.parquet") if file.is_file())
    if not files:
        raise DatasetError(f"{path}: is a folder without .parquet files; pass the data file inside it.")
    return files


def open_in_blocks(sources: Sequence[Source], options: ReadOptions, rows: int | None) -> Matrices:
    """Open the features and labels of files as dask arrays."""
    first = sources[0]
    try:
        import dask.delayed  # noqa: F401
    except ImportError:
        command = install_command("dask", "distributed")
        raise first.error(f"can only be read in blocks with dask; install it: {command}") from None
    if options.missing == "mean":
        raise first.error("cannot be read in blocks with `missing='mean'`; use 'zero'")
    if options.unknown is not None:
        raise first.error("cannot be read in blocks with `unknown`; read it without `chunks`")

    tables = [_open(source, rows) for source in sources]
    names = tables[0].names
    if any(table.names != names for table in tables):
        raise first.error("all parts must have the same columns in the same order; check the files")
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
            label_tables, read = tables, used
        else:
            label_tables = [_open(Source(file), sizes[0])]
            columns = read = list(range(len(label_tables[0].names)))
            label_sizes = label_tables[0].sizes
            if [*label_sizes] != sizes:
                raise first.error(
                    f"must have the same rows per block as {file}, got {sum(sizes)} rows in {len(sizes)} blocks and "
                    f"{sum(label_sizes)} rows in {len(label_sizes)} blocks; check the files"
                )
        if not columns:
            return None, None
        first_table = label_tables[0]
        Y = _dask_array(label_tables, read, columns, _binary_labels, np.uint8, reads)
        return Y, None if first_table.is_headless else [
            plain_name(first_table.names[column]) for column in columns
        ]

    candidates, candidate_names = lazy_labels(choice.candidate_file, choice.candidates)
    truth, true_names = lazy_labels(choice.label_file, choice.labels or ())
    X = _dask_array(tables, used, features, partial(_fill_missing, options.missing), np.float64, reads)
    feature_names = [names[column].removeprefix(NOMINAL_PREFIX) for column in features]
    return Matrices(X, truth, candidates, feature_names, true_names or candidate_names, nominal)


def _fill_missing(
    missing: str | None, values: np.ndarray, names: Sequence[str], source: Source
) -> np.ndarray:
    """Replace missing values with 0, or raise."""
    if missing == "zero":
        return np.where(np.isnan(values), 0.0, values)
    return _require_complete(values, names, "use `missing='zero'`", source)


def _binary_labels(values: np.ndarray, names: Sequence[str], source: Source) -> np.ndarray:
    """Convert labels to 0/1."""
    return dense(labels_to_binary(_require_complete(values, names, "fill them in", source), source.error))


def _require_complete(values: np.ndarray, names: Sequence[str], remedy: str, source: Source) -> np.ndarray:
    """Return the values, or raise if one is missing."""
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
    """Convert columns of all blocks to a dask array.

    `used` contains all feature and label columns. `reads` caches read tasks, which several arrays share.
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
            # Every task contains the table. A separate task for it would draw all blocks to one worker.
            key = (id(table), index, tuple(read))
            if key not in reads:
                reads[key] = delayed(type(table).values, pure=False)(table, index, read)
            values = reads[key][:, np.searchsorted(read, columns)]
            parts.append(delayed(convert, pure=False)(values, names, table.source))
    sizes = [size for table in tables for size in table.sizes]
    return lazy_rows(parts, sizes, np.empty((0, len(columns)), dtype=dtype))


class BlockTable(ABC):
    """Table of numbers in a file whose blocks of rows can be read independently."""

    source: Source
    names: list[str]
    sizes: tuple[int, ...]
    #: True if the file has no column names, so that they are generated.
    is_headless: bool = False
    #: True if reading some columns takes as long as reading all of them.
    reads_whole_rows: bool = False
    #: Columns that the file declares as not numeric.
    not_numeric: frozenset[int] = frozenset()

    @abstractmethod
    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Read columns of a block as float64, with NaN for missing values."""


class NumpyTable(BlockTable):
    """Memory-mapped NPY file."""

    is_headless = True

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source = source
        array = self._open()
        check_numbers(array, source)
        self.names = [f"x{position}" for position in range(array.shape[1])]
        self.sizes = _block_sizes(array.shape[0], _rows_per_block(rows, len(self.names)))

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Copy columns of a block from the memory map."""
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
        #: Byte offsets of the start of each block and of the end of the last one.
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
            raise source.error("must contain rows, got only a header; copy it again")
        self.bounds.append(offset)
        self.sizes = _block_sizes(n_rows, per_block)

    def _read_heading(self) -> int:
        """Detect the separator and the names. Return the number of lines in the header."""
        with open(self.source.path, encoding="utf-8-sig", errors="replace", newline="") as stream:
            first = next((line for line in stream if line.strip()), "")
            stream.seek(0)
            self.separator = detect_separator(first, self.source.ending)
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
        # Before pandas 3 the default parser may be off by one unit in the last place.
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
        """Build the error that names the first cell that is not a number."""
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
    """Parquet file, whose blocks consist of whole row groups."""

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
            raise source.error("must contain rows and columns; write it again")
        wanted, largest = _rows_per_block(rows, len(self.names)), max(groups)
        if largest > wanted * (1 if rows else _MAX_GROUP_RATIO):
            raise source.error(
                f"has row groups of up to {largest} rows, which cannot be split; write it with "
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
    """Raise if a column name is empty or occurs twice."""
    if not names or not all(names) or len(set(names)) < len(names):
        raise source.error("must have non-empty, unique column names; rename the columns")


def _open(source: Source, rows: int | None) -> BlockTable:
    """Open a file in the format of its extension."""
    ending = source.path.suffix.lower()
    if ending == ".npy":
        return NumpyTable(source, rows)
    kind = TABLE_FORMATS.get(ending)
    if kind == "parquet":
        return ParquetTable(source, rows)
    if kind == "delimited":
        return DelimitedTable(source, rows)
    raise source.error(f"must be CSV, TSV, Parquet or NPY to be read in blocks, got {ending!r}; convert it")


def _rows_per_block(rows: int | None, n_columns: int) -> int:
    """Return the number of rows in a block, by default those that fit into `_BLOCK_BYTES`."""
    return rows or max(1, _BLOCK_BYTES // (8 * n_columns))


def _block_sizes(n_rows: int, rows: int) -> tuple[int, ...]:
    """Divide rows into blocks of `rows` rows and a smaller last one, and return their sizes."""
    return tuple(min(rows, n_rows - first) for first in range(0, n_rows, rows))
