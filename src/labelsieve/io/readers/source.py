"""One input file: opened plain or decompressed, in bounded memory, with errors that name file and line."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from labelsieve._text import printable
from labelsieve.io.errors import DatasetError, Mention

# No real table compresses better than this; a compression bomb does (deflate reaches 1032:1, bzip2 far more).
MAX_EXPANSION = 250
MAX_EXPANSION_FREE = 64 * 2**20
# Wider than published benchmarks.
MAX_COLUMNS = 2**22
# Columns may well be empty in a part of a file, but each costs a name: so many are free, more want more bytes.
_COLUMNS_FREE = 2**18
_COLUMNS_PER_BYTE = 64
BLOCK_BYTES = 2**18  # what is computed from a block stays in the processor's cache
_HEAD_BYTES = 2**16
_COMPRESSED_ENDINGS = {".gz", ".bz2", ".zip"}


class Source:
    """A regular file with everything a reader needs to read it safely.

    Parameters
    ----------
    path : path-like
        The file. Gzip, bzip2 and zip are recognised by content, not by ending.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        endings = [part.lower() for part in self.path.suffixes]
        if endings and endings[-1] in _COMPRESSED_ENDINGS:
            endings.pop()
        self.ending = endings[-1] if endings else ""
        try:
            # Devices and pipes could block or never end.
            if self.path.is_dir():
                raise self.error("is a folder; give the data file inside it")
            if not self.path.is_file():
                raise self.error("does not exist or is no regular file; check the path")
            self.size = self.path.stat().st_size
            with open(self.path, "rb") as file:
                magic = file.read(4)
        except (OSError, ValueError) as error:
            if isinstance(error, DatasetError):
                raise
            raise self.error(f"cannot be opened ({error}); check the path and its permissions") from None
        if not self.size:
            raise self.error("is empty; copy it again")
        self._member: zipfile.ZipInfo | None = None
        self._xml_member: zipfile.ZipInfo | None = None
        self._kind = _kind_of(magic)
        if self._kind == "zip":
            self._choose_members()
            if self._kind == "zip" and self._member is not None:
                self.ending = PurePosixPath(self._member.filename).suffix.lower()

    @property
    def stem(self) -> str:
        """File name without format and compression endings."""
        name = self.path.name
        if self.path.suffix.lower() in _COMPRESSED_ENDINGS:
            name = name[: -len(self.path.suffix)]
        return name[: -len(self.ending)] if self.ending and name.lower().endswith(self.ending) else name

    @property
    def is_compressed(self) -> bool:
        """Whether reading expands the file."""
        return self._kind != "plain"

    @property
    def is_npz(self) -> bool:
        """Whether the file is a zip archive of NumPy arrays."""
        return self._kind == "npz"

    def error(self, *parts: str | Mention, line: int | None = None) -> DatasetError:
        """Build the error that names this file, the line and the remedy."""
        place = f"{self.path}, line {line}: " if line is not None else f"{self.path}: "
        # Quoted pieces of a damaged file may hold anything; the message stays one printable line.
        said = [printable(part) if isinstance(part, str) else part for part in parts]
        return DatasetError(place, *said, ".")

    def check_expanded(self, n_bytes: int) -> None:
        """Refuse `n_bytes` of content where the file is far too small to hold them honestly."""
        if n_bytes > max(MAX_EXPANSION_FREE, MAX_EXPANSION * self.size):
            raise self.error(
                f"expands to over {MAX_EXPANSION} times its {self.size} bytes, which no real table does; "
                "if you trust it, unpack it or convert it to NPZ"
            )

    def check_columns(self, n_columns: int) -> None:
        """Refuse more columns than the file can honestly have: one forged index must not cost their names."""
        limit = min(MAX_COLUMNS, max(_COLUMNS_FREE, _COLUMNS_PER_BYTE * self.size))
        if n_columns > limit:
            raise self.error(
                f"has {n_columns} columns in {self.size} bytes, more than the {limit} that are believed of a file "
                "of this size; correct the largest index or the declared number of columns"
            )

    def open(self) -> io.BufferedReader:
        """Open the content for reading, decompressed; reading checks the expansion limit."""
        with self.noticing_damage():
            stream = self.raw()
        return io.BufferedReader(_Bounded(self, stream), buffer_size=2**20)

    def head(self) -> bytes:
        """Return the first 64 KiB of the content."""
        with self.open() as stream:
            return stream.read(_HEAD_BYTES)

    def content(self) -> bytes:
        """Return all of the content."""
        with self.open() as stream:
            return stream.read()

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield ``(number of the first line, whole lines)`` with every line ending as one newline."""
        line = 1
        pending: list[bytes] = []
        with self.open() as stream:
            if stream.peek(3)[:3] == b"\xef\xbb\xbf":
                stream.read(3)
            while True:
                block = stream.read(BLOCK_BYTES)
                if b"\0" in block:
                    at = line + b"".join(pending).count(b"\n") + block[: block.index(b"\0")].count(b"\n")
                    raise self.error(
                        "holds a NUL byte, so it is no text table; save it as UTF-8 text", line=at
                    )
                if not block:
                    lines = b"".join(pending)
                    if lines:
                        yield line, newlines(lines if lines.endswith((b"\n", b"\r")) else lines + b"\n")
                    return
                cut = block.rfind(b"\n") + 1
                if not cut and b"\n" not in block and b"\r" in block[:-1]:
                    cut = block.rfind(b"\r", 0, -1) + 1  # a carriage return alone ended lines on old systems
                if not cut:
                    pending.append(block)
                    continue
                lines = newlines(b"".join([*pending, block[:cut]]))
                pending = [block[cut:]]
                yield line, lines
                line += lines.count(b"\n")

    def label_xml(self) -> bytes | None:
        """Return the XML file inside a zip archive, if there is one."""
        if self._xml_member is None:
            return None
        self.check_expanded(self._xml_member.file_size)
        with self.noticing_damage(), zipfile.ZipFile(self.path) as archive:
            return archive.read(self._xml_member)

    @contextmanager
    def noticing_damage(self) -> Iterator[None]:
        """Turn what the standard library raises on damaged files into one `DatasetError`."""
        try:
            yield
        except DatasetError:
            raise
        except (
            EOFError,
            OSError,
            ValueError,
            RuntimeError,
            NotImplementedError,
            IndexError,
            KeyError,
            struct.error,
            zlib.error,
            zipfile.BadZipFile,
        ) as error:
            raise self.error(f"is damaged or cut off ({error}); copy it again") from None

    def raw(self) -> IO[bytes]:
        """Open the content of this file as an undecorated, possibly decompressing stream."""
        if self._kind == "gzip":
            return gzip.open(self.path, "rb")  # type: ignore[return-value]
        if self._kind == "bzip2":
            return bz2.open(self.path, "rb")
        if self._kind == "zip" and self._member is not None:
            self.check_expanded(self._member.file_size)
            return zipfile.ZipFile(self.path).open(self._member)
        return open(self.path, "rb")

    def _choose_members(self) -> None:
        """Pick the data file, and the label file, of a zip archive."""
        with self.noticing_damage(), zipfile.ZipFile(self.path) as archive:
            members = [
                member
                for member in archive.infolist()
                if not member.is_dir() and not member.filename.startswith("__MACOSX/")
            ]
        names = [PurePosixPath(member.filename) for member in members]
        for name in names:
            if name.is_absolute() or ".." in name.parts or "\\" in str(name):
                raise self.error(
                    f"holds the member {str(name)!r}, which points out of the archive; do not trust it"
                )
        if names and all(name.suffix == ".npy" for name in names):
            self._kind = "npz"
            return
        if any(str(name) == "[Content_Types].xml" for name in names):  # a workbook is an archive too
            self.check_expanded(sum(member.file_size for member in members))
            self._kind = "plain"
            return
        xml = [member for member, name in zip(members, names, strict=True) if name.suffix.lower() == ".xml"]
        data = [member for member, name in zip(members, names, strict=True) if name.suffix.lower() != ".xml"]
        if len(data) != 1 or len(xml) > 1:
            found = ", ".join(map(str, names[:5])) or "nothing"
            raise self.error(
                f"must hold one data file and at most one XML label file, got {found}; unpack it"
            )
        self._member, self._xml_member = data[0], xml[0] if xml else None


class _Bounded(io.RawIOBase):
    """A stream that turns damage into `DatasetError` and stops at the expansion limit."""

    def __init__(self, source: Source, stream: IO[bytes]) -> None:
        self._source = source
        self._stream = stream
        self._seen = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._source.noticing_damage():
            data = self._stream.read(len(buffer))
        self._seen += len(data)
        self._source.check_expanded(self._seen if self._source.is_compressed else 0)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _kind_of(magic: bytes) -> str:
    """Compression by the first bytes."""
    if magic.startswith(b"\x1f\x8b"):
        return "gzip"
    if magic.startswith(b"BZh"):
        return "bzip2"
    return "zip" if magic == b"PK\x03\x04" else "plain"


def newlines(lines: bytes) -> bytes:
    """Every line ending as one newline."""
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return lines


def decode(line: bytes) -> str:
    """Text of a line: UTF-8, or Latin-1 where it is not valid UTF-8, as older ARFF files are."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")
