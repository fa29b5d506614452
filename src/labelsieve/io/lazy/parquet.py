"""Parquet in blocks of whole row groups, of one file or of all files of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelsieve.io.errors import Mention
from labelsieve.io.lazy.blocks import FileAtRest, dense_rows
from labelsieve.io.lazy.tables import TableFile
from labelsieve.io.readers.parquet import column_values, reading_parquet
from labelsieve.io.readers.source import Source
from labelsieve.io.readers.table import check_names

#: Row groups are read whole, so a good size of blocks may be overstepped by so much.
_LENIENCE = 16


class GroupedFile(TableFile):
    """A Parquet file, of which some row groups are read at a time."""

    def __init__(self, source: Source, rows: int | None) -> None:
        self.source, self.file = source, FileAtRest(source)
        self.refused = {}
        with reading_parquet(source) as (pa, pq), pq.ParquetFile(self.file.path) as file:
            schema, metadata = file.schema_arrow, file.metadata
            self.names = list(schema.names)
            check_names(self.names, source)
            sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
            if not self.names or not sum(sizes):
                raise source.error("has no rows or no columns; write it again")
            for place, kind in enumerate(schema.types):
                if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
                    name = self.names[place]
                    self.refused[place] = source.error(
                        f"column {name!r} must hold numbers where a file is read in blocks, got text; code it before, "
                        "or leave it out with ",
                        Mention("ignore", name),
                    )
        self._join_groups(sizes, rows)
        # A few bytes of run-length encoding can stand for any number of rows.
        source.check_expanded(max(self.sizes) * len(self.names) * 8)

    def _join_groups(self, sizes: Sequence[int], rows: int | None) -> None:
        """Put neighbouring groups into blocks of at most so many rows."""
        limit = rows or dense_rows(len(self.names))
        largest = max(sizes)
        if largest > (limit if rows else _LENIENCE * limit):
            raise self.source.error(
                f"has row groups of up to {largest} rows, and a block holds whole ones; write it again with "
                f"row_group_size={limit}, or give ",
                Mention("chunks", largest),
            )
        self.groups: list[list[int]] = []
        joined: list[int] = []
        for group, size in enumerate(sizes):
            if size and joined and joined[-1] + size <= limit:
                self.groups[-1].append(group)
                joined[-1] += size
            elif size:
                self.groups.append([group])
                joined.append(size)
        self.sizes = tuple(joined)

    def columns(self, content: Any, index: int, places: Sequence[int]) -> np.ndarray:
        """Read columns of some row groups."""
        names = [self.names[place] for place in places]
        values = np.empty((self.sizes[index], len(places)))
        self.file.open().close()  # as it was?
        with reading_parquet(self.source) as (pa, pq), pq.ParquetFile(self.file.path) as file:
            table = file.read_row_groups(self.groups[index], columns=names)
            for column, name in enumerate(names):
                values[:, column], _ = column_values(table.column(name), pa)
        return values
