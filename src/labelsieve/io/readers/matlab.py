"""MATLAB files of the field: a data matrix, labels stored q x n, perhaps candidates beside the truth.

`scipy.io.loadmat` cannot be trusted with damaged files: it takes the process down inside SciPy, before its
result could be checked and although `whosmat` found the sizes in order (SciPy 1.17.1, segmentation faults on 11
of 1500 randomly damaged files with sparse matrices), and it has no limit for compressed variables. So this reader
takes what a data set can be made of, numeric and sparse matrices, and steps over everything else. The layout is
that of "MAT-File Format" (The MathWorks, version 5 and, in its appendix, version 4).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import check_structure
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.matrices import Matrices, pick_matrices
from labelsieve.io.readers.source import MAX_COLUMNS, MAX_EXPANSION, MAX_EXPANSION_FREE, Source

_NUMBER_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_OLD_NUMBER_TYPES = ("f8", "f4", "i4", "i2", "u2", "u1")
_MATRIX, _COMPRESSED = 14, 15
_SPARSE_CLASS, _NUMERIC_CLASSES = 5, range(6, 16)
_HEADER_BYTES = 128


def read_matlab(source: Source, options: ReadOptions) -> Matrices:
    """Read the matrices of a .mat file; versions 4 to 7."""
    content = source.content()
    if content.startswith((b"\x89HDF", b"MATLAB 7.3")):
        raise source.error("is a MATLAB 7.3 (HDF5) file; in MATLAB, save it again with save(..., '-v7')")
    try:
        if content.startswith(b"MATLAB 5.0"):
            arrays = dict(_variables(content, source))
        else:
            arrays = dict(_old_variables(content))
    except (struct.error, IndexError, KeyError, ValueError, TypeError, OverflowError, zlib.error) as error:
        raise source.error(
            f"is damaged or no MATLAB file ({error}); copy it again or save it as -v7"
        ) from None
    return pick_matrices(arrays, source, options, label_rows_first=True)


def _variables(content: bytes, source: Source) -> Iterator[tuple[str, Any]]:
    """Names and matrices of a version 5 file."""
    order = ">" if content[126:128] == b"MI" else "<"
    position, unpacked = _HEADER_BYTES, 0
    while position + 8 <= len(content):
        kind, length = struct.unpack_from(f"{order}II", content, position)
        body = content[position + 8 : position + 8 + length]
        if len(body) < length:
            raise ValueError("a variable is cut off")
        position += 8 + length
        if kind == _COMPRESSED:
            limit = max(MAX_EXPANSION_FREE, MAX_EXPANSION * source.size) - unpacked + 1
            unpacker = zlib.decompressobj()
            body = unpacker.decompress(body, limit)
            unpacked += len(body)
            source.check_expanded(unpacked)
            if not unpacker.eof:
                raise ValueError("a compressed variable is cut off")
            kind, length = struct.unpack_from(f"{order}II", body)
            body = body[8 : 8 + length]
        if kind == _MATRIX:
            yield from _matrix(body, order)


def _elements(body: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Type and bytes of the elements inside a variable."""
    position = 0
    while position + 8 <= len(body):
        kind, length = struct.unpack_from(f"{order}II", body, position)
        if kind >> 16:  # short elements keep type, length and content in eight bytes
            kind, length, start = kind & 0xFFFF, kind >> 16, position + 4
            position += 8
        else:
            start = position + 8
            position = start + length + -length % 8
        if len(body) < start + length:
            raise ValueError("an element is cut off")
        yield kind, body[start : start + length]


def _matrix(body: bytes, order: str) -> Iterator[tuple[str, Any]]:
    """The variable if it is a real two-dimensional matrix; nothing for text, cells and objects."""
    elements = _elements(body, order)
    flags = np.frombuffer(next(elements, (0, b""))[1], f"{order}u4")
    shape = np.frombuffer(next(elements, (0, b""))[1], f"{order}i4").tolist()
    name = next(elements, (0, b""))[1].decode("latin-1")
    kind, is_complex = int(flags[0]) & 0xFF, int(flags[0]) & 0x0800
    if is_complex or len(shape) != 2 or (kind != _SPARSE_CLASS and kind not in _NUMERIC_CLASSES):
        return
    if kind == _SPARSE_CLASS:
        rows, starts, values = (_numbers(*next(elements, (0, b"")), order) for _ in range(3))
        yield name, _sparse(values, rows, starts, shape)
    else:
        values = _numbers(*next(elements, (0, b"")), order)
        yield name, _shaped(values, shape)


def _numbers(kind: int, content: bytes, order: str) -> np.ndarray:
    """Numbers in this machine's byte order."""
    values = np.frombuffer(content, f"{order}{_NUMBER_TYPES[kind]}")
    return values.astype(values.dtype.newbyteorder("="))


def _shaped(values: np.ndarray, shape: list[int]) -> np.ndarray:
    if min(shape) < 0 or values.size != shape[0] * shape[1]:
        raise ValueError(f"a matrix declared as {shape[0]}x{shape[1]} holds {values.size} numbers")
    return values.reshape(shape, order="F")


def _sparse(values: np.ndarray, rows: np.ndarray, starts: np.ndarray, shape: list[int]) -> Any:
    """A sparse matrix stored by columns, checked before anybody follows its indices."""
    if not (min(shape) >= 0 and max(shape) <= MAX_COLUMNS and starts.size == shape[1] + 1):
        raise ValueError(f"a sparse matrix declared as {shape[0]}x{shape[1]} has {starts.size - 1} columns")
    stored = int(starts[-1])  # MATLAB may reserve room for more
    parts = (values[:stored].astype(np.float64), rows[:stored].astype(np.int32), starts.astype(np.int32))
    matrix = sp.csc_array(parts, shape=shape)
    check_structure(matrix, "a variable")
    return matrix


def _old_variables(content: bytes) -> Iterator[tuple[str, Any]]:
    """Names and matrices of a version 4 file."""
    position = 0
    order = "<" if 0 <= struct.unpack_from("<i", content)[0] <= 5000 else ">"
    while position < len(content):
        code, n_rows, n_columns, is_complex, name_length = struct.unpack_from(f"{order}5i", content, position)
        if not (0 <= code <= 5000 and min(n_rows, n_columns, name_length) >= 0):
            raise ValueError("a variable has an impossible header")
        dtype = np.dtype(f"{order}{_OLD_NUMBER_TYPES[code // 10 % 10]}")
        start = position + 20 + name_length
        count = n_rows * n_columns
        name = content[position + 20 : start].rstrip(b"\0").decode("latin-1")
        if len(content) < start + count * dtype.itemsize:
            raise ValueError("a variable is cut off")
        values = np.frombuffer(content, dtype, count, start).astype(dtype.newbyteorder("="))
        position = start + count * dtype.itemsize * (2 if is_complex else 1)
        if code % 10 == 0 and not is_complex:
            yield name, _shaped(values, [n_rows, n_columns])
        elif code % 10 == 2 and n_columns == 3 and n_rows:
            yield name, _old_sparse(values.reshape((n_rows, 3), order="F"))


def _old_sparse(triples: np.ndarray) -> Any:
    """Rows of (row, column, value) from 1, closed by one with the shape."""
    shape = triples[-1, :2]
    places = triples[:-1, :2]
    if not (
        shape.min() >= 0 and shape.max() <= MAX_COLUMNS and (places >= 1).all() and (places <= shape).all()
    ):
        raise ValueError("a sparse matrix has indices outside its shape")
    rows, columns = places.astype(np.int32).T - 1
    shape_of_two = (int(shape[0]), int(shape[1]))
    return sp.csc_array(
        sp.coo_array((triples[:-1, 2].astype(np.float64), (rows, columns)), shape=shape_of_two)
    )
