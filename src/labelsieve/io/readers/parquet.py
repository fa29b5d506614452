"""Parquet, through pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from labelsieve.io.errors import DatasetError
from labelsieve.io.readers.source import Source
from labelsieve.io.readers.table import (
    MAX_CATEGORIES,
    Table,
    check_names,
    coded,
    column_place,
    in_order,
)


def read_parquet(source: Source) -> Table:
    """Read a Parquet file: numbers, truth values and dates as numbers, text as nominal."""
    with _opened(source) as (table, pa):
        names = list(table.column_names)
        check_names(names, source)
        values = np.empty(table.shape)
        categories: dict[int, dict[str, int]] = {}
        free_text = set()
        for index, column in enumerate(table.columns):
            values[:, index], codes = column_values(column, pa)
            if codes is not None and len(codes) > MAX_CATEGORIES:
                values[:, index] = 0.0
                free_text.add(index)
            elif codes is not None:
                categories[index] = codes
    return Table(names, values, in_order(values, categories), free_text=frozenset(free_text))


def read_texts(source: Source, column: str) -> list[str]:
    """One column as text; nothing for null."""
    with _opened(source) as (table, _):
        place = column_place(table.column_names, column, source)
        values = table.columns[place].to_pylist()
    return ["" if value is None else str(value) for value in values]


@contextmanager
def _opened(source: Source) -> Iterator[tuple[Any, Any]]:
    """The table of a file, and pyarrow."""
    with reading_parquet(source) as (pa, pq):
        file = pq.ParquetFile(pa.BufferReader(source.content()))
        # A few bytes of run-length encoding can stand for any number of rows.
        source.check_expanded(file.metadata.num_rows * file.metadata.num_columns * 8)
        table = file.read()
        if 0 in table.shape:
            raise source.error("has no rows or no columns; write it again")
        yield table, pa


@contextmanager
def reading_parquet(source: Source) -> Iterator[tuple[Any, Any]]:
    """The packages pyarrow and pyarrow.parquet; what goes wrong meanwhile is said in one sentence."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise source.error("is Parquet, which needs pyarrow; pip install 'labelsieve[parquet]'") from None
    try:
        yield pa, pq
    except DatasetError:
        raise
    except Exception as error:  # pyarrow raises its own kinds, OSError, ValueError and more on damaged files
        first_line = str(error).partition("\n")[0]
        raise source.error(f"cannot be read as Parquet ({first_line}); write it again") from None


def column_values(column: Any, pa: Any) -> tuple[Any, dict[str, int] | None]:
    """Values of one column, and its categories by code if it is text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        codes: dict[str, int] = {}
        return coded(["" if text is None else text for text in column.to_pylist()], codes), codes
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        milliseconds = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
        return _floats(milliseconds, pa) / 1000.0, None
    return _floats(column, pa), None


def _floats(column: Any, pa: Any) -> np.ndarray:
    """Numbers with NaN for null."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    numbers: np.ndarray = column.cast(pa.float64(), safe=False).to_numpy()
    return numbers
