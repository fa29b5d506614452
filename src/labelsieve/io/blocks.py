"""Files larger than memory as dask arrays: CSV and TSV, Parquet (one file or a folder) and NPY.

Any block of rows can be read by itself, so the same arrays serve one process, which reads block after block, and the
workers of a cluster. Every pass over the rows reads the file again.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve._blocks.streamed import lazy_rows
from labelsieve.io.column_choice import (
    CANDIDATE_PREFIX,
    NOMINAL_PREFIX,
    choose_columns,
    label_file,
    no_labels_said,
    plain_name,
    xml_columns,
)
from labelsieve.io.errors import DatasetError, Mention
from labelsieve.io.frames import has_numbers, separator_of
from labelsieve.io.matrices import Matrices, array_names
from labelsieve.io.mulan_xml import label_names_in
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source
from labelsieve.io.spellings import MISSING

#: Bytes of numbers in a block: smaller ones cost overhead, larger ones page faults.
_BLOCK_BYTES = 16 * 2**20
#: Row groups of Parquet are read whole, so a block may be larger by this factor.
_LENIENCE = 16


def check_chunks(chunks: object) -> int | None:
    """Return the number of rows of a block, or None for "auto"."""
    if chunks == "auto":
        return None
    if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks < 1:
        raise DatasetError("expected a number of rows or 'auto', got ", Mention("chunks", chunks), ".")
    return chunks


def files_in(path: Path) -> list[Path]:
    """Return the Parquet files of a folder sorted by name, or the file itself."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.glob("*.parquet") if file.is_file())
    if not files:
        raise DatasetError(f"{path}: is a folder without .parquet files; give the data file inside it.")
    return files


def open_in_blocks(
    sources: Sequence[Source], options: ReadOptions, rows: int | None, kind_of: Callable[[Source], str]
) -> Matrices:
    """Return features and labels of files as dask arrays; ``kind_of`` recognizes the format of a file."""
    first = sources[0]
    try:
        from dask.delayed import delayed
    except ImportError:
        raise first.error("can be read in blocks only with dask; pip install 'labelsieve[dask]'") from None
    if options.missing == "mean":
        raise first.error("cannot be read in blocks with ", Mention("missing", "mean"), "; use 'zero'")

    def open_table(source: Source, rows: int | None) -> BlockTable:
        kind = kind_of(source)
        if kind not in _FORMATS or source.compression is not None:
            form = "compressed" if kind in _FORMATS else kind
            raise source.error(f"is {form}, which cannot be read in blocks; use CSV, TSV, Parquet or NPY")
        return _FORMATS[kind](source, rows)

    tables = [open_table(source, rows) for source in sources]
    table = tables[0] if len(tables) == 1 else StackedTable(tables, first)
    reader = BlockReader(table, options, first, lambda path, rows: open_table(Source(path), rows))
    # The reader goes with every task: as a task of its own it would draw all blocks to the worker that holds it.
    blocks = range(len(reader.table.sizes))
    if reader.table.reads_whole_rows:
        shared = [delayed(_read_values, pure=False)(reader, index, None) for index in blocks]

    def lazy(role: str) -> Any:
        if reader.table.reads_whole_rows:
            parts = [delayed(_split_values, pure=False)(reader, values, role) for values in shared]
        else:
            parts = [delayed(_read_values, pure=False)(reader, index, role) for index in blocks]
        return lazy_rows(parts, reader.table.sizes, reader.convert(np.empty((0, reader.width(role))), role))

    Y, candidates = (lazy(role) if reader.columns[role] else None for role in ("Y", "Y_candidates"))
    return Matrices(lazy("X"), Y, candidates, reader.feature_names, reader.label_names, reader.nominal)


def _read_values(reader: BlockReader, index: int, role: str | None) -> np.ndarray:
    """Read one role of a block, or the numbers of all roles."""
    values = reader.table.values(index, reader.used if role is None else reader.columns[role])
    return values if role is None else reader.convert(values, role)


def _split_values(reader: BlockReader, values: np.ndarray, role: str) -> np.ndarray:
    """Take one role of the numbers of all roles."""
    return reader.convert(values[:, np.searchsorted(reader.used, reader.columns[role])], role)


class BlockReader:
    """Features and labels of a table, chosen as `read` chooses them; it is pickled and sent to workers.

    Parameters
    ----------
    table : BlockTable
        The data.
    open_second : callable
        Opens a second file that holds labels, with the given number of rows per block.
    """

    def __init__(
        self,
        table: BlockTable,
        options: ReadOptions,
        source: Source,
        open_second: Callable[[Path, int], BlockTable],
    ) -> None:
        self.table, self.source, self.missing = table, source, options.missing

        names = table.names
        xml = label_file(options.labels, names)
        if xml is not None and xml.suffix.lower() == ".xml":
            found = xml_columns(names, label_names_in(Source(xml)), str(xml), source.error)
            options = replace(options, labels=found)
        choice = choose_columns(names, options, source.error)
        if choice.labels is None:
            raise no_labels_said((), source.error)
        features = [place for place in range(len(names)) if place not in choice.taken]
        if not features:
            raise source.error("has no feature columns left besides its labels; check ", Mention("labels"))
        self.columns = {"X": features, "Y": choice.labels, "Y_candidates": choice.candidates}
        for role, said, prefix in (
            ("Y_candidates", options.candidates, CANDIDATE_PREFIX),
            ("Y", options.labels, ""),
        ):
            file = label_file(said, names)
            if file is not None:
                second = open_second(file, table.sizes[0])
                width = len(self.table.names)
                self.table = JoinedTable(self.table, second, source, prefix)
                self.columns[role] = list(range(width, width + len(second.names)))
        self.used = sorted({column for columns in self.columns.values() for column in columns})
        self.table.check_numbers(self.used)
        names = [names[column] for column in features]
        self.feature_names = tuple(name.removeprefix(NOMINAL_PREFIX) for name in names)
        self.nominal = tuple(
            name.removeprefix(NOMINAL_PREFIX) for name in names if name.startswith(NOMINAL_PREFIX)
        )
        labels = self.columns["Y"] or self.columns["Y_candidates"]
        self.label_names = tuple(
            f"label{place}" if self.table.headless else plain_name(self.table.names[column])
            for place, column in enumerate(labels)
        )
        if self.nominal and options.nominal == "onehot":
            raise source.error("cannot be read in blocks with ", Mention("nominal", "onehot"), "; use 'code'")

    def width(self, role: str) -> int:
        """Return the number of columns of ``X``, ``Y`` or ``Y_candidates``."""
        return len(self.columns[role])

    def convert(self, values: np.ndarray, role: str) -> np.ndarray:
        """Return features without missing values, or labels as 0 and 1."""
        missing = np.isnan(values)
        if role == "X" and self.missing == "zero":
            values[missing] = 0.0
        elif missing.any():
            column = int(np.nonzero(missing)[1].min())
            name = self.feature_names[column] if role == "X" else self.label_names[column]
            remedy = ("; complete them",) if role != "X" else ("; use ", Mention("missing", "zero"))
            raise self.source.error(f"has missing values in column {name!r}", *remedy)
        if role == "X":
            return values
        is_label = np.isin(values, (-1, 0, 1))
        if not is_label.all():
            raise self.source.error(
                f"label columns must hold 0/1 or -1/+1, got {float(values[~is_label][0])!r}; check ",
                Mention("labels"),
            )
        return (values > 0).astype(np.uint8)


class BlockTable(ABC):
    """Table of numbers in a file, of which any block of rows can be read."""

    source: Source
    names: list[str]
    sizes: tuple[int, ...]
    #: Whether the names are made up.
    headless: bool = False
    #: Whether reading some columns costs as much as reading all.
    reads_whole_rows: bool = False

    @abstractmethod
    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Return columns of a block as float64, NaN for missing values."""

    def check_numbers(self, columns: Sequence[int]) -> None:  # noqa: B027 - most formats know when they read
        """Raise if the file says that one of the columns does not hold numbers."""


class NumpyTable(BlockTable):
    """NPY file, memory-mapped."""

    headless = True

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source = source
        array = self._open()
        self.names = array_names(array, source)
        self.sizes = _block_sizes(array.shape[0], rows or _good_rows(len(self.names)))

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Copy columns of some rows."""
        first = index * self.sizes[0]
        block = self._open()[first : first + self.sizes[index]]
        start, stop = columns[0], columns[-1] + 1
        # A slice is copied once, chosen columns twice.
        chosen = slice(start, stop) if list(columns) == list(range(start, stop)) else list(columns)
        return np.array(block[:, chosen], dtype=np.float64, order="C")

    def _open(self) -> np.ndarray:
        try:
            array: np.ndarray = np.load(self.source.path.absolute(), mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise self.source.error(f"cannot be read as NPY ({error}); write it again") from None
        return array


class DelimitedTable(BlockTable):
    """CSV or TSV file with one line per row, parsed by pandas."""

    reads_whole_rows = True

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source = source
        n_lines = self._read_heading()
        n_rows, per_block = 0, rows or _good_rows(len(self.names))
        #: Where blocks begin and the last one ends, in bytes.
        self.bounds: list[int] = []
        position, n_separators = 0, len(self.names) - 1
        with open(source.path, "rb") as stream:
            for number, line in enumerate(stream, start=1):
                is_row = number > n_lines and not line.isspace()
                if is_row and line.count(self.separator.encode()) != n_separators and b'"' not in line:
                    n_fields = line.count(self.separator.encode()) + 1
                    raise source.error(f"expected {n_separators + 1} fields, got {n_fields}", line=number)
                if is_row and n_rows % per_block == 0:
                    self.bounds.append(position)
                n_rows += is_row
                position += len(line)
        if not n_rows:
            raise source.error("has a header but no rows; copy it again")
        self.bounds.append(position)
        self.sizes = _block_sizes(n_rows, per_block)

    def _read_heading(self) -> int:
        """Find separator and names; return the number of lines that the header takes."""
        with open(self.source.path, encoding="utf-8-sig", errors="replace", newline="") as stream:
            first = next((line for line in stream if line.strip()), "")
            stream.seek(0)
            self.separator = "\t" if self.source.ending in (".tsv", ".tab") else separator_of(first)
            reader = csv.reader(stream, delimiter=self.separator)
            record = next((record for record in reader if any(cell.strip() for cell in record)), [])
            self.headless = has_numbers(record)
            self.names = [f"x{place}" if self.headless else cell.strip() for place, cell in enumerate(record)]
            check_names(self.names, self.source)
            return 0 if self.headless else reader.line_num

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Parse the lines of a block."""
        with open(self.source.path.absolute(), "rb") as stream:
            stream.seek(self.bounds[index])
            lines = stream.read(self.bounds[index + 1] - self.bounds[index]).removeprefix(b"\xef\xbb\xbf")
        try:
            frame = self._parse(lines, columns, np.float64)
        except ValueError as error:
            raise self._explain(error, lines, index, columns) from None
        if len(frame) != self.sizes[index]:
            raise self.source.error("must have one line per row to be read in blocks; check its quotes")
        return np.ascontiguousarray(frame[list(columns)].to_numpy())

    def _parse(self, lines: bytes, columns: Sequence[int], dtype: Any) -> Any:
        import pandas as pd

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

    def _explain(self, error: Exception, lines: bytes, index: int, columns: Sequence[int]) -> DatasetError:
        """Name the first cell that is not a number."""
        import pandas as pd

        try:
            frame = self._parse(lines, columns, str)
        except ValueError:
            return self.source.error(f"cannot be parsed ({error})")
        for column, cells in frame.items():
            wrong = cells[cells.notna() & pd.to_numeric(cells, errors="coerce").isna()]
            if len(wrong):
                row = index * self.sizes[0] + int(wrong.index[0]) + 1
                return self.source.error(
                    f"column {self.names[column]!r} must hold numbers to be read in blocks, got "
                    f"{wrong.iloc[0][:40]!r} in row {row}; encode it, or use ",
                    Mention("ignore", self.names[column]),
                )
        return self.source.error(f"cannot be parsed ({error})")


class ParquetTable(BlockTable):
    """Parquet file, of which whole row groups are read."""

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source = source
        with reading_parquet(source) as (pa, pq), pq.ParquetFile(source.path) as file:
            self.names = list(file.schema_arrow.names)
            check_names(self.names, source)
            # Kept, since it is slow to read and every block needs it.
            self.metadata = file.metadata
            groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            self.numeric = [
                pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
                for kind in file.schema_arrow.types
            ]
        if not self.names or not sum(groups):
            raise source.error("has no rows or no columns; write it again")
        wanted, largest = rows or _good_rows(len(self.names)), max(groups)
        if largest > wanted * (1 if rows else _LENIENCE):
            raise source.error(
                f"has row groups of up to {largest} rows, which are read whole; write it with "
                f"row_group_size={wanted}, or use ",
                Mention("chunks", largest),
            )
        self.groups: list[list[int]] = []
        sizes: list[int] = []
        for group, size in enumerate(groups):
            if size and sizes and sizes[-1] + size <= wanted:
                self.groups[-1].append(group)
                sizes[-1] += size
            elif size:
                self.groups.append([group])
                sizes.append(size)
        self.sizes = tuple(sizes)

    def __getstate__(self) -> dict[str, Any]:
        # It may be as large as a block.
        return {**self.__dict__, "metadata": None}

    def check_numbers(self, columns: Sequence[int]) -> None:
        """Raise if one of the columns holds text or dates."""
        for column in columns:
            if not self.numeric[column]:
                name = self.names[column]
                raise self.source.error(
                    f"column {name!r} must hold numbers to be read in blocks; encode it, or use ",
                    Mention("ignore", name),
                )

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Read columns of some row groups."""
        names = [self.names[column] for column in columns]
        values = np.empty((self.sizes[index], len(columns)))
        with (
            reading_parquet(self.source) as (pa, pq),
            pq.ParquetFile(self.source.path.absolute(), metadata=self.metadata) as file,
        ):
            table = file.read_row_groups(self.groups[index], columns=names)
            for place, name in enumerate(names):
                column = table.column(name)
                if pa.types.is_boolean(column.type):
                    column = column.cast(pa.int8())
                values[:, place] = column.cast(pa.float64(), safe=False).to_numpy()
        return values


class StackedTable(BlockTable):
    """Files with the same columns, one below the other."""

    def __init__(self, tables: Sequence[BlockTable], source: Source) -> None:
        self.source, self.tables = source, list(tables)
        self.names, self.headless = tables[0].names, tables[0].headless
        self.reads_whole_rows = any(table.reads_whole_rows for table in tables)
        if any(table.names != self.names for table in tables):
            raise source.error("and the other files must have the same columns in the same order")
        self.blocks = [(table, index) for table in tables for index in range(len(table.sizes))]
        self.sizes = tuple(table.sizes[index] for table, index in self.blocks)

    def check_numbers(self, columns: Sequence[int]) -> None:
        """Check all files."""
        for table in self.tables:
            table.check_numbers(columns)

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Read a block of the file that holds it."""
        table, own_index = self.blocks[index]
        return table.values(own_index, columns)


class JoinedTable(BlockTable):
    """Two tables with the same rows, side by side."""

    def __init__(self, first: BlockTable, second: BlockTable, source: Source, prefix: str) -> None:
        self.source, self.tables = source, (first, second)
        self.names = [*first.names, *(prefix + name for name in second.names)]
        self.headless, self.sizes = second.headless, first.sizes
        self.reads_whole_rows = first.reads_whole_rows or second.reads_whole_rows
        if first.sizes != second.sizes:
            raise source.error(
                f"and {second.source.path} must have the same rows in every block, got {sum(first.sizes)} rows in "
                f"{len(first.sizes)} blocks and {sum(second.sizes)} in {len(second.sizes)}"
            )

    def check_numbers(self, columns: Sequence[int]) -> None:
        """Check both tables."""
        for table, own, _ in self._parts(columns):
            table.check_numbers(own)

    def values(self, index: int, columns: Sequence[int]) -> np.ndarray:
        """Read columns of both tables."""
        values = np.empty((self.sizes[index], len(columns)))
        for table, own, places in self._parts(columns):
            values[:, places] = table.values(index, own)
        return values

    def _parts(self, columns: Sequence[int]) -> list[tuple[BlockTable, list[int], list[int]]]:
        """Return each table with the columns that it holds and their places in the result."""
        width = len(self.tables[0].names)
        parts: list[tuple[BlockTable, list[int], list[int]]] = [(table, [], []) for table in self.tables]
        for place, column in enumerate(columns):
            _, own, places = parts[column >= width]
            own.append(column - width if column >= width else column)
            places.append(place)
        return [part for part in parts if part[1]]


def check_names(names: Sequence[str], source: Source) -> None:
    """Raise if a column has no name, or that of another one."""
    if not names or not all(names) or len(set(names)) < len(names):
        raise source.error("needs column names that all differ; rename one")


@contextmanager
def reading_parquet(source: Source) -> Iterator[tuple[Any, Any]]:
    """Give pyarrow and pyarrow.parquet, and turn their errors into one `DatasetError`."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise source.error("is Parquet, which needs pyarrow; pip install 'labelsieve[files]'") from None
    try:
        yield pa, pq
    except DatasetError:
        raise
    except Exception as error:  # pyarrow raises its own kinds, OSError, ValueError and more on damaged files
        first_line = str(error).partition("\n")[0]
        raise source.error(f"cannot be read as Parquet ({first_line}); write it again") from None


_FORMATS: dict[str, Callable[[Source, int | None], BlockTable]] = {
    "delimited": DelimitedTable,
    "parquet": ParquetTable,
    "npy": NumpyTable,
}


def _good_rows(n_columns: int) -> int:
    """Return the number of rows of a block of good size."""
    return max(1, _BLOCK_BYTES // (8 * n_columns))


def _block_sizes(n_rows: int, rows: int) -> tuple[int, ...]:
    """Return the sizes of blocks of so many rows; the last one may be smaller."""
    return tuple(min(rows, n_rows - first) for first in range(0, n_rows, rows))
