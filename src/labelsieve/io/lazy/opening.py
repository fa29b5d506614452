"""Files as dask arrays: which reader gives their blocks, and what cannot be had without all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from labelsieve.io.errors import DatasetError, Mention
from labelsieve.io.lazy.arrays import ArchiveReader, ArrayFile
from labelsieve.io.lazy.blocks import BlockReader, StackedReader, lazy_matrices
from labelsieve.io.lazy.delimited import DelimitedFile
from labelsieve.io.lazy.parquet import GroupedFile
from labelsieve.io.lazy.svmlight import TextReader
from labelsieve.io.lazy.tables import TableFile, TableReader
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.matrices import Matrices
from labelsieve.io.readers.source import Source

_TABLE_FILES: dict[str, Callable[[Source, int | None], TableFile]] = {
    "delimited": DelimitedFile,
    "parquet": GroupedFile,
    "npy": ArrayFile,
}


def check_chunks(chunks: object) -> int | None:
    """Return the rows of a block, or None where the files shall decide."""
    if chunks == "auto":
        return None
    if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks < 1:
        raise DatasetError(
            "a number of rows of 1 or more, or 'auto', was expected, got ", Mention("chunks", chunks), "."
        )
    return chunks


def files_in(path: Path) -> list[Path]:
    """The Parquet files of a folder in the order of their names; a file is itself."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.glob("*.parquet") if file.is_file())
    if not files:
        raise DatasetError(f"{path}: is a folder without .parquet files; give the data file inside it.")
    return files


def open_in_blocks(
    sources: Sequence[Source],
    options: ReadOptions,
    rows: int | None,
    kind_of: Callable[[Source], str],
) -> Matrices:
    """Make lazy matrices of files; `kind_of` recognises the format of one."""
    first = sources[0]
    try:
        import dask  # noqa: F401
    except ImportError:
        raise first.error("is read in blocks with dask; pip install 'labelsieve[dask]'") from None
    if options.missing == "mean":
        raise first.error(
            "has means only once all rows were read; give ",
            Mention("missing", "zero"),
            ", or fill them in before",
        )
    kinds = [kind_of(source) for source in sources]
    readers: list[BlockReader]
    if set(kinds) == {"svmlight"}:
        readers = [TextReader(sources, options, rows)]
    elif set(kinds) == {"npz"}:
        readers = [ArchiveReader(source, options, rows) for source in sources]
    else:

        def open_file(source: Source, rows: int | None) -> TableFile:
            kind = kind_of(source)
            if kind not in _TABLE_FILES:
                raise source.error(
                    f"is {kind}, which cannot be read in blocks; convert it to Parquet, NPZ, NPY, CSV or svmlight"
                )
            return _TABLE_FILES[kind](source, rows)

        readers = [
            TableReader(
                open_file(source, rows), options, lambda path, own_rows: open_file(Source(path), own_rows)
            )
            for source in sources
        ]
    return lazy_matrices(readers[0] if len(readers) == 1 else StackedReader(readers, first))
