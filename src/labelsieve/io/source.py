"""Input file that is decompressed within limits, and whose errors name file and line."""

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

# Limits for files that expand to huge tables. Real tables stay below them.
_MIN_CELL_LIMIT, _CELLS_PER_BYTE = 2**24, 32
CELL_BYTES = 8
# Even an empty column of a sparse matrix needs memory for its name. Hashed text has 2**20 columns.
_CELLS_PER_COLUMN = 8
_COMPRESSED_ENDINGS = {".gz", ".bz2", ".zip"}


class Source:
    """Regular file that is read once and as a whole. gzip, bzip2 and zip are recognised by content."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.ending = ending_of(self.path)
        # Reading devices and pipes could block forever. Unlike `Path.is_file`, these functions never raise.
        if os.path.isdir(self.path):
            raise self.error("is a folder; pass the data file inside it")
        if not os.path.isfile(self.path):
            raise self.error("does not exist or is not a regular file; check the path")
        self.size = os.path.getsize(self.path)
        if not self.size:
            raise self.error("is empty; copy it again")

    @cached_property
    def raw(self) -> bytes:
        """Bytes of the file."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise self.error(f"cannot be opened ({error}); check path and permissions") from None

    @cached_property
    def content(self) -> bytes:
        """Decompressed bytes of the file."""
        if self.compression is None:
            return self.raw
        if self.compression == "zip":
            return self._archive[0]
        opener: Any = gzip.open if self.compression == "gzip" else bz2.open
        with self._report_damage(), opener(BytesIO(self.raw)) as stream:
            content = stream.read(CELL_BYTES * self._max_cells + 1)
        self.check_cells(-(-len(content) // CELL_BYTES))
        return content

    @contextmanager
    def _report_damage(self) -> Iterator[None]:
        """Convert decompression errors to errors that name the file."""
        try:
            yield
        except (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise self.error(f"is damaged or truncated ({error}); copy it again") from None

    @property
    def checksum(self) -> str:
        """SHA-256 checksum of the file."""
        return hashlib.sha256(self.raw).hexdigest()

    @cached_property
    def compression(self) -> str | None:
        """Compression format, or None. Workbooks and NPZ files do not count as compressed."""
        magic = self.raw[:4]
        if magic.startswith(b"\x1f\x8b"):
            return "gzip"
        if magic.startswith(b"BZh"):
            return "bzip2"
        return "zip" if magic == b"PK\x03\x04" and not (self.is_npz or self.is_workbook) else None

    @cached_property
    def _members(self) -> list[zipfile.ZipInfo]:
        """Files in a zip archive."""
        if self.raw[:4] != b"PK\x03\x04":
            return []
        with self._report_damage(), zipfile.ZipFile(BytesIO(self.raw)) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
        self.check_cells(sum(member.file_size for member in members) // CELL_BYTES)
        return [member for member in members if not member.filename.startswith("__MACOSX/")]

    @property
    def is_npz(self) -> bool:
        """True if the file is an archive of NumPy arrays."""
        return bool(self._members) and all(member.filename.endswith(".npy") for member in self._members)

    @property
    def is_workbook(self) -> bool:
        """True if the file is an Excel workbook."""
        return any(member.filename == "[Content_Types].xml" for member in self._members)

    @cached_property
    def _archive(self) -> tuple[bytes, bytes | None]:
        """Contents of the data file and of the XML label file in a zip archive."""
        names = [PurePosixPath(member.filename) for member in self._members]
        xml = [name for name in names if name.suffix.lower() == ".xml"]
        data = [name for name in names if name.suffix.lower() != ".xml"]
        if len(data) != 1 or len(xml) > 1:
            found = ", ".join(map(str, names[:5])) or "nothing"
            raise self.error(
                f"must contain one data file and at most one XML label file, got {found}; unpack it"
            )
        self.ending = data[0].suffix.lower()
        with self._report_damage(), zipfile.ZipFile(BytesIO(self.raw)) as archive:
            return archive.read(str(data[0])), archive.read(str(xml[0])) if xml else None

    @property
    def label_xml(self) -> bytes | None:
        """Content of the XML label file in a zip archive, or None."""
        return self._archive[1] if self.compression == "zip" else None

    @property
    def stem(self) -> str:
        """File name without the extensions of format and compression."""
        name = self.path.name
        if self.path.suffix.lower() in _COMPRESSED_ENDINGS:
            name = name[: -len(self.path.suffix)]
        return name[: -len(self.ending)] if self.ending and name.lower().endswith(self.ending) else name

    def error(self, message: str, line: int | None = None) -> DatasetError:
        """Build an error that names this file and the line."""
        place = f"{self.path}, line {line}" if line is not None else f"{self.path}"
        # Messages quote damaged files, but must stay one printable line.
        return DatasetError(f"{place}: {printable(message)}.")

    @property
    def _max_cells(self) -> int:
        return max(_MIN_CELL_LIMIT, _CELLS_PER_BYTE * self.size)

    def check_cells(self, n_cells: int) -> None:
        """Raise if the file expands to more cells than allowed for its size."""
        if n_cells > self._max_cells:
            raise self.error(
                f"must have at most {self._max_cells} cells for its {self.size} bytes, but expands to {n_cells} or "
                "more; if you trust it, unpack it or save it in another format"
            )

    def check_columns(self, n_columns: int) -> None:
        """Raise if the file has more sparse columns than allowed for its size."""
        self.check_cells(_CELLS_PER_COLUMN * n_columns)

    @property
    def text(self) -> bytes:
        """Content of a text file without byte order mark and with Unix line endings."""
        text = self.content.removeprefix(b"\xef\xbb\xbf")
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        nul = text.find(b"\0")
        if nul >= 0:
            line = text.count(b"\n", 0, nul) + 1
            raise self.error("must be a text file, got a NUL byte; save it as UTF-8 text", line=line)
        return text if text.endswith(b"\n") else text + b"\n"


def ending_of(path: Path) -> str:
    """Return the lower-case extension of a file name, ignoring that of a compression format."""
    endings = [part.lower() for part in path.suffixes]
    if endings and endings[-1] in _COMPRESSED_ENDINGS:
        endings.pop()
    return endings[-1] if endings else ""
