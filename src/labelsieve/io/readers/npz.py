"""NumPy archives: everything a data set holds, exactly; pickles are never loaded."""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.sparse import check_structure
from labelsieve._numerics.typing import Matrix
from labelsieve.io.errors import DatasetError
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.matrices import Matrices, listed_names, pick_matrices
from labelsieve.io.readers.source import Source
from labelsieve.io.readers.table import Table

ROLES = ("X", "Y", "Y_candidates")
SPARSE_PARTS = ("data", "indices", "indptr", "shape")
#: Where an archive that is not of this package may name its features and labels.
FOREIGN_NAMES = ("feature_names", "label_names")


def read_npz(source: Source, options: ReadOptions) -> Matrices:
    """Read an archive of this package, or one with matrices under usual names such as X and Y."""
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(source.path) as archive:
            warnings.simplefilter("ignore")  # about headers written by Python 2
            arrays = {member.filename[:-4]: _array(archive, member, source) for member in archive.infolist()}
    except DatasetError:
        raise
    except Exception as error:  # zipfile and numpy raise almost anything on damaged archives
        raise source.error(f"is a damaged NPZ archive ({error}); copy it again") from None
    if "labelsieve" in arrays:
        return _own(arrays, source)
    matrices = {name: array for name, array in arrays.items() if array.ndim == 2}
    found = pick_matrices(matrices, source, options, label_rows_first=False)
    features, labels = (text_names(arrays.get(key), key, source) for key in FOREIGN_NAMES)
    return replace(found, feature_names=features, label_names=labels)


def read_npy(source: Source) -> Table:
    """Read a single array, which is a table without names."""
    with source.noticing_damage():
        with source.open() as stream:
            shape, _, _ = array_header(
                stream, source.path.name, None if source.is_compressed else source.size, source
            )
        with source.open() as stream:
            source.check_expanded(math.prod(shape))
            array = np.lib.format.read_array(stream, allow_pickle=False)
    names = table_names(array.shape, array.dtype, source)
    return Table(names, array.astype(np.float64), headless=True)


def table_names(shape: tuple[int, ...], dtype: np.dtype[Any], source: Source) -> list[str]:
    """Names of the columns of an array, if it is a table of numbers."""
    if len(shape) != 2 or 0 in shape or dtype.kind not in "buif":
        raise source.error(
            f"must hold rows and columns of real numbers, got shape {shape!r} of {dtype}; convert it"
        )
    source.check_columns(shape[1])
    return [f"x{index}" for index in range(shape[1])]


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: Source) -> np.ndarray:
    """One array, after checking that the file can honestly hold what its header declares."""
    source.check_expanded(member.file_size)
    with archive.open(member) as stream:
        array_header(stream, member.filename, member.file_size, source)
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def array_header(
    stream: IO[bytes], name: str, n_bytes: int | None, source: Source
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns stand one after the other, and dtype; the stream then stands before the first value."""
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise source.error(f"holds {name!r} in an unknown version; save it with numpy.savez")
    shape, by_columns, dtype = read_header(stream)
    if dtype.hasobject:
        raise source.error(f"holds Python objects in {name!r}, which are never loaded; save plain arrays")
    if min(shape, default=0) < 0 or (n_bytes is not None and math.prod(shape) * dtype.itemsize > n_bytes):
        raise source.error(f"declares shape {shape!r} for {name!r}, more than it holds; copy it again")
    return shape, by_columns, dtype


def text_names(array: np.ndarray | None, key: str, source: Source) -> tuple[str, ...] | None:
    """Names that an array of text holds; none where there is no array."""
    if array is None:
        return None
    if array.dtype.kind != "U":
        raise source.error(
            f"must hold {key!r} as text, got {array.dtype}; save numpy.array(names, dtype=str)"
        )
    return tuple(array.ravel().tolist())


def _own(arrays: dict[str, np.ndarray], source: Source) -> Matrices:
    """Put together what `write` took apart."""
    with noticing_unsound(source):
        X, Y, candidates = (_matrix(arrays, role, source) for role in ROLES)
        if X is None:
            raise ValueError("X is missing")
        return Matrices(X, Y, candidates, *own_facts(arrays["labelsieve"]))


@contextmanager
def noticing_unsound(source: Source) -> Iterator[None]:
    """Say in one sentence that an archive of this package does not hold what it should."""
    try:
        yield
    except DatasetError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise source.error(f"is not a sound archive of a data set ({error}); write it again") from None


def own_facts(array: np.ndarray) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str | None]:
    """Names of features, of labels and of nominal features, and the name of the data set."""
    facts = json.loads(array.astype(np.uint8).tobytes())
    features, labels, nominal = (
        listed_names(facts[key]) for key in ("feature_names", "label_names", "nominal")
    )
    return features, labels, nominal, str(facts["name"]) if facts.get("name") else None


def _matrix(arrays: dict[str, np.ndarray], role: str, source: Source) -> Matrix | None:
    parts = own_parts(arrays, role)
    if parts is None or len(parts) == 1:
        return None if parts is None else parts[0]
    data, indices, starts, shape = parts
    matrix: Matrix = sp.csr_array(
        (data, indices, starts), shape=sparse_shape(role, indices, starts, shape, source)
    )
    check_structure(matrix, role)
    return matrix


def own_parts(arrays: Mapping[str, Any], role: str) -> list[Any] | None:
    """What `write` made of a matrix: one array, the four of a sparse one, or nothing."""
    if role in arrays:
        if arrays[role].ndim != 2:
            raise ValueError(f"{role} must have rows and columns, got shape {arrays[role].shape!r}")
        return [arrays[role]]
    return [arrays[f"{role}_{part}"] for part in SPARSE_PARTS] if f"{role}_shape" in arrays else None


def sparse_shape(role: str, indices: Any, starts: Any, shape: np.ndarray, source: Source) -> tuple[int, int]:
    """The declared sides of a sparse matrix, if its arrays can be those of one."""
    if indices.dtype.kind not in "iu" or starts.dtype.kind not in "iu":
        raise ValueError(f"{role} has places that are no whole numbers")
    if shape.shape != (2,):
        raise ValueError(f"{role} must declare rows and columns, got {shape.size} numbers")
    n_rows, n_columns = (int(side) for side in shape)
    source.check_columns(n_columns)
    if starts.shape != (n_rows + 1,) or n_columns <= 0:
        raise ValueError(f"{role} declares {n_rows}x{n_columns} but holds {starts.shape[0] - 1} rows")
    return n_rows, n_columns
