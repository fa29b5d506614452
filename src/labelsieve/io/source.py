"""One input file: its content, decompressed within limits, and errors that name file and line."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from labelsieve._text import printable
from labelsieve.io.errors import DatasetError

# A few bytes of a compressed format can stand for any number of cells; no real table packs more into a byte.
_MIN_CELL_LIMIT, _CELLS_PER_BYTE = 2**24, 32
CELL_BYTES = 8
# An empty column of a sparse matrix costs a name; hashed text has 2**20 columns.
_CELLS_PER_COLUMN = 8
_COMPRESSED_ENDINGS = {".gz", ".bz2", ".zip"}


class Source:
    """A regular file, read once and as a whole; gzip, bzip2 and zip are recognised by content."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.ending = ending_of(self.path)
        # Devices and pipes could block or never end. Unlike `Path.is_file`, these functions never raise.
        if os.path.isdir(self.path):
            raise self.error("is a folder; give the data file inside it")
        if not os.path.isfile(self.path):
            raise self.error("does not exist or is not a regular file; check the path")
        self.size = os.path.getsize(self.path)
        if not self.size:
            raise self.error("is empty; copy it again")

    @cached_property
    def raw(self) -> bytes:
        """The bytes of the file."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise self.error(f"cannot be opened ({error}); check the path and its permissions") from None

    @cached_property
    def content(self) -> bytes:
        """The bytes of the file, decompressed."""
        if self.compression is None:
            return self.raw
        if self.compression == "zip":
            return self._archive[0]
        opener: Any = gzip.open if self.compression == "gzip" else bz2.open
        with self._damage_errors(), opener(BytesIO(self.raw)) as stream:
            content = stream.read(CELL_BYTES * self._max_cells + 1)
        self.check_cells(-(-len(content) // CELL_BYTES))
        return content

    @contextmanager
    def _damage_errors(self) -> Iterator[None]:
        """Turn the errors of decompression into the one of this file."""
        try:
            yield
        except (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise self.error(f"is damaged or cut off ({error}); copy it again") from None

    @property
    def checksum(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.raw).hexdigest()

    @cached_property
    def compression(self) -> str | None:
        """How the content is compressed; workbooks and NPZ files are archives, but not compressed content."""
        magic = self.raw[:4]
        if magic.startswith(b"\x1f\x8b"):
            return "gzip"
        if magic.startswith(b"BZh"):
            return "bzip2"
        return "zip" if magic == b"PK\x03\x04" and not (self.is_npz or self.is_workbook) else None

    @cached_property
    def _members(self) -> list[zipfile.ZipInfo]:
        """The files of an archive."""
        if self.raw[:4] != b"PK\x03\x04":
            return []
        with self._damage_errors(), zipfile.ZipFile(BytesIO(self.raw)) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
        self.check_cells(sum(member.file_size for member in members) // CELL_BYTES)
        return [member for member in members if not member.filename.startswith("__MACOSX/")]

    @property
    def is_npz(self) -> bool:
        """Whether the file is an archive of NumPy arrays."""
        return bool(self._members) and all(member.filename.endswith(".npy") for member in self._members)

    @property
    def is_workbook(self) -> bool:
        """Whether the file is an Excel workbook, which is an archive too."""
        return any(member.filename == "[Content_Types].xml" for member in self._members)

    @cached_property
    def _archive(self) -> tuple[bytes, bytes | None]:
        """The data file and the XML label file of a zip archive."""
        names = [PurePosixPath(member.filename) for member in self._members]
        xml = [name for name in names if name.suffix.lower() == ".xml"]
        data = [name for name in names if name.suffix.lower() != ".xml"]
        if len(data) != 1 or len(xml) > 1:
            found = ", ".join(map(str, names[:5])) or "nothing"
            raise self.error(
                f"must hold one data file and at most one XML label file, got {found}; unpack it"
            )
        self.ending = data[0].suffix.lower()
        with self._damage_errors(), zipfile.ZipFile(BytesIO(self.raw)) as archive:
            return archive.read(str(data[0])), archive.read(str(xml[0])) if xml else None

    @property
    def label_xml(self) -> bytes | None:
        """The XML label file in a zip archive, if there is one."""
        return self._archive[1] if self.compression == "zip" else None

    @property
    def stem(self) -> str:
        """File name without format and compression endings."""
        name = self.path.name
        if self.path.suffix.lower() in _COMPRESSED_ENDINGS:
            name = name[: -len(self.path.suffix)]
        return name[: -len(self.ending)] if self.ending and name.lower().endswith(self.ending) else name

    def error(self, message: str, line: int | None = None) -> DatasetError:
        """Build the error that names this file and the line."""
        place = f"{self.path}, line {line}" if line is not None else f"{self.path}"
        # Quoted pieces of a damaged file may hold anything; the message stays one printable line.
        return DatasetError(f"{place}: {printable(message)}.")

    @property
    def _max_cells(self) -> int:
        return max(_MIN_CELL_LIMIT, _CELLS_PER_BYTE * self.size)

    def check_cells(self, n_cells: int) -> None:
        """Raise if the file would expand to more cells than a file of its size can hold."""
        if n_cells > self._max_cells:
            raise self.error(
                f"has {self.size} bytes and expands to {n_cells} cells or more, the limit is {self._max_cells}; "
                "if you trust it, unpack it or save it in another format"
            )

    def check_columns(self, n_columns: int) -> None:
        """Raise if a file of this size cannot have so many sparse columns."""
        self.check_cells(_CELLS_PER_COLUMN * n_columns)

    @property
    def text(self) -> bytes:
        """The content of a text file without byte order mark, every line ending as one newline."""
        text = self.content.removeprefix(b"\xef\xbb\xbf")
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        nul = text.find(b"\0")
        if nul >= 0:
            line = text.count(b"\n", 0, nul) + 1
            raise self.error("holds a NUL byte, so it is not a text file; save it as UTF-8 text", line=line)
        return text if text.endswith(b"\n") else text + b"\n"


def ending_of(path: Path) -> str:
    """Return the ending of a file name in lower case, without that of a compression."""
    endings = [part.lower() for part in path.suffixes]
    if endings and endings[-1] in _COMPRESSED_ENDINGS:
        endings.pop()
    return endings[-1] if endings else ""
