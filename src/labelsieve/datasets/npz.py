"""NumPy archives: everything a data set holds, exactly; no pickle in either direction."""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from labelsieve.datasets.dataset import Dataset, DatasetError
from labelsieve.datasets.matrices import Matrices, bounded_sparse, pick_matrices
from labelsieve.datasets.source import MAX_COLUMNS, Source

_ROLES = ("X", "Y", "Y_candidates")
_SPARSE_PARTS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class Names:
    """What an archive calls its features, labels and itself; None stands for the default."""

    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    nominal: tuple[str, ...] = ()
    name: str | None = None


def read_npz(source: Source, labels: str | None, candidates: str | None) -> tuple[Matrices, Names]:
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
    found = pick_matrices(matrices, source, labels, candidates, label_rows_first=False)
    return found, Names(_names(arrays.get("feature_names")), _names(arrays.get("label_names")))


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


def _own(arrays: dict[str, np.ndarray], source: Source) -> tuple[Matrices, Names]:
    """Put together what `write_npz` took apart."""
    try:
        facts = json.loads(arrays["labelsieve"].astype(np.uint8).tobytes())
        X, Y, candidates = (_matrix(arrays, role) for role in _ROLES)
        features, labels, nominal = (tuple(facts[key]) for key in ("feature_names", "label_names", "nominal"))
        name = str(facts["name"]) if facts.get("name") else None
        if X is None:
            raise ValueError("X is missing")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise source.error(f"is not a sound archive of a data set ({error}); write it again") from None
    return Matrices(X, Y, candidates), Names(features, labels, nominal, name)


def _matrix(arrays: dict[str, np.ndarray], role: str) -> Any:
    if role in arrays:
        if arrays[role].ndim != 2:
            raise ValueError(f"{role} must have rows and columns, got shape {arrays[role].shape!r}")
        return arrays[role]
    if f"{role}_shape" not in arrays:
        return None
    data, indices, starts, shape = (arrays[f"{role}_{part}"] for part in _SPARSE_PARTS)
    n_rows, n_columns = (int(side) for side in shape)
    if starts.size != n_rows + 1 or not 0 < n_columns <= MAX_COLUMNS:
        raise ValueError(f"{role} declares {n_rows}x{n_columns} but holds {starts.size - 1} rows")
    return bounded_sparse(sp.csr_array((data, indices, starts), shape=(n_rows, n_columns)))


def write_npz(data: Dataset, stream: IO[bytes]) -> None:
    """Write all of a data set but where it came from."""
    arrays: dict[str, Any] = {}
    for role in _ROLES:
        matrix = getattr(data, role)
        if sp.issparse(matrix):
            arrays.update({f"{role}_{part}": np.asarray(getattr(matrix, part)) for part in _SPARSE_PARTS})
        elif matrix is not None:
            arrays[role] = matrix
    facts = {
        "feature_names": data.feature_names,
        "label_names": data.label_names,
        "nominal": data.nominal,
        "name": data.name,
    }
    # As bytes, since NumPy's own text arrays pad every name to the longest.
    arrays["labelsieve"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    np.savez(stream, **arrays)
