"""MATLAB files of the field: a data matrix, labels stored q x n, perhaps candidates beside the truth."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from typing import Any

import scipy.io
import scipy.sparse as sp

from labelsieve.datasets.matrices import Matrices, bounded_sparse, pick_matrices
from labelsieve.datasets.source import MAX_EXPANSION, MAX_EXPANSION_FREE, Source

_NUMERIC = {
    "double", "single", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "logical", "sparse",
}  # fmt: skip
_HEADER_BYTES = 128
_COMPRESSED = 15


def read_matlab(source: Source, labels: str | None, candidates: str | None) -> Matrices:
    """Read the matrices of a .mat file; versions 4 to 7."""
    content = source.content()
    if content.startswith(b"\x89HDF") or content.startswith(b"MATLAB 7.3"):
        raise source.error("is a MATLAB 7.3 (HDF5) file; in MATLAB, save it again with save(..., '-v7')")
    content = _unpacked(content, source)
    try:
        # Damaged files make loadmat raise almost anything, and warn about what it skips.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            listed = scipy.io.whosmat(io.BytesIO(content))
            wanted = [name for name, shape, kind in listed if kind in _NUMERIC and len(shape) == 2]
            # Objects, functions and cells are never touched: only plain matrices are loaded, by name.
            loaded: dict[str, Any] = {}
            if wanted:
                loaded = scipy.io.loadmat(io.BytesIO(content), variable_names=wanted)
            for matrix in loaded.values():
                if sp.issparse(matrix):
                    bounded_sparse(matrix)
    except Exception as error:
        raise source.error(
            f"cannot be read as a MATLAB file ({error}); copy it again or save it as -v7"
        ) from None
    arrays = {name: loaded[name] for name in wanted if name in loaded}
    return pick_matrices(arrays, source, labels, candidates, label_rows_first=True)


def _unpacked(content: bytes, source: Source) -> bytes:
    """The file with its compressed elements expanded, within limits; loadmat itself has none."""
    if content[:10] != b"MATLAB 5.0":
        return content
    order = ">" if content[126:128] == b"MI" else "<"
    parts, position, total = [content[:_HEADER_BYTES]], _HEADER_BYTES, 0
    while position + 8 <= len(content):
        kind, length = struct.unpack_from(f"{order}II", content, position)
        element = content[position + 8 : position + 8 + length]
        if len(element) < length:
            raise source.error("is cut off in the middle of a variable; copy it again")
        if kind == _COMPRESSED:
            limit = max(MAX_EXPANSION_FREE, MAX_EXPANSION * source.size) - total
            unpacker = zlib.decompressobj()
            try:
                element = unpacker.decompress(element, limit)
            except zlib.error as error:
                raise source.error(f"has a damaged variable ({error}); copy it again") from None
            if unpacker.unconsumed_tail:
                source.check_expanded(total + limit + 1)
            parts.append(element)
        else:
            parts.append(content[position : position + 8 + length])
        total += len(parts[-1])
        position += 8 + length
    return b"".join(parts)
