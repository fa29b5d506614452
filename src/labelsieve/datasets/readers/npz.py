"""NumPy archives: everything a data set holds, exactly; pickles are never loaded."""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from labelsieve.datasets.errors import DatasetError
from labelsieve.datasets.options import ReadOptions
from labelsieve.datasets.readers.matrices import Matrices, listed_names, pick_matrices
from labelsieve.datasets.readers.source import Source
from labelsieve.numerics.sparse import check_structure
from labelsieve.numerics.typing import Matrix

ROLES = ("X", "Y", "Y_candidates")
SPARSE_PARTS = ("data", "indices", "indptr", "shape")


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
    names = arrays.get("feature_names"), arrays.get("label_names")
    return replace(found, feature_names=_names(names[0]), label_names=_names(names[1]))


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: Source) -> np.ndarray:
    """One array, after checking that the file can honestly hold what its header declares."""
    source.check_expanded(member.file_size)
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            raise source.error(f"holds {member.filename!r} in an unknown version; save it with numpy.savez")
        shape, _, dtype = read_header(stream)
    if dtype.hasobject:
        raise source.error(
            f"holds Python objects in {member.filename!r}, which are never loaded; save plain arrays"
        )
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > member.file_size:
        raise source.error(
            f"declares shape {shape!r} for {member.filename!r}, more than it holds; copy it again"
        )
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _names(array: np.ndarray | None) -> tuple[str, ...] | None:
    return None if array is None or array.dtype.kind != "U" else tuple(array.ravel().tolist())


def _own(arrays: dict[str, np.ndarray], source: Source) -> Matrices:
    """Put together what `write` took apart."""
    try:
        facts = json.loads(arrays["labelsieve"].astype(np.uint8).tobytes())
        features, labels, nominal = (
            listed_names(facts[key]) for key in ("feature_names", "label_names", "nominal")
        )
        X, Y, candidates = (_matrix(arrays, role, source) for role in ROLES)
        if X is None:
            raise ValueError("X is missing")
        name = str(facts["name"]) if facts.get("name") else None
    except DatasetError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise source.error(f"is not a sound archive of a data set ({error}); write it again") from None
    return Matrices(X, Y, candidates, features, labels, nominal, name)


def _matrix(arrays: dict[str, np.ndarray], role: str, source: Source) -> Matrix | None:
    if role in arrays:
        if arrays[role].ndim != 2:
            raise ValueError(f"{role} must have rows and columns, got shape {arrays[role].shape!r}")
        return arrays[role]
    if f"{role}_shape" not in arrays:
        return None
    data, indices, starts, shape = (arrays[f"{role}_{part}"] for part in SPARSE_PARTS)
    if indices.dtype.kind not in "iu" or starts.dtype.kind not in "iu":
        raise ValueError(f"{role} has places that are no whole numbers")
    if shape.shape != (2,):
        raise ValueError(f"{role} must declare rows and columns, got {shape.size} numbers")
    n_rows, n_columns = (int(side) for side in shape)
    source.check_columns(n_columns)
    if starts.size != n_rows + 1 or n_columns <= 0:
        raise ValueError(f"{role} declares {n_rows}x{n_columns} but holds {starts.size - 1} rows")
    matrix: Matrix = sp.csr_array((data, indices, starts), shape=(n_rows, n_columns))
    check_structure(matrix, role)
    return matrix
