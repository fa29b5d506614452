"""Write a dataset to a file, completely or not at all."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.batches import batches
from labelsieve._numerics.candidates import has_unknown
from labelsieve._numerics.sparse import by_columns, dense
from labelsieve.io.column_choice import CANDIDATE_PREFIX, LABEL_PREFIX, NOMINAL_PREFIX
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.matrices import ROLES, SPARSE_PARTS, SVMLIGHT_HEADER
from labelsieve.io.mulan_xml import format_label_xml

_ROWS_AT_ONCE = 512


def write(
    data: Dataset,
    path: str | os.PathLike[str],
    *,
    row_names: tuple[str, Sequence[str]] | None = None,
) -> None:
    """Write a dataset in the format given by the extension of `path`. `read` restores it.

    Parameters
    ----------
    data : Dataset
        Dataset to write.
    path : path
        ``.arff`` (with a Mulan ``.xml`` next to it), ``.csv``, ``.tsv``, ``.npz``, ``.svm``, ``.svmlight`` or
        ``.libsvm``. A failed write leaves no partial file.
    row_names : tuple of (header, names) or None, default=None
        First column with the names of the rows, for CSV and TSV only. Pass its header as `ignore` to `read`.

    Raises
    ------
    DatasetError
        The format cannot represent this dataset, or the file cannot be written.

    Notes
    -----
    ARFF is sparse if the features are, and declares nominal features as ``{0,1,...}``. Candidate labels are
    attributes ``candidate:NAME``. The XML file lists them with the labels, so that other readers do not mistake
    them for features. CSV columns are named ``label:NAME``, ``candidate:NAME`` and ``nominal:NAME``, so that `read`
    needs no arguments. svmlight contains either true or candidate labels, and the names in a comment on its first
    line. Remove the comment with ``grep -v '^#'`` for the LIBSVM programs. NPZ contains everything.
    Unknown labels are ``?`` in ARFF and CSV; read them with ``unknown="?"``. svmlight cannot contain them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from labelsieve.io import Dataset, read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "toy.arff")
    ...     write(Dataset([[0.1, 2], [3, 4]], [[1], [0]], name="toy"), file)
    ...     read(file)
    Dataset 'toy': 2 samples x 2 features (dense), 1 labels (true), cardinality 0.500
    """
    if not isinstance(data, Dataset):
        raise DatasetError(
            f"data must be a Dataset, got {type(data).__name__}; wrap arrays with Dataset(X, Y)."
        )
    path = Path(path)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise DatasetError(f"{path}: the extension must be one of {', '.join(WRITERS)}, got {path.suffix!r}.")
    if row_names is not None and writer is not _write_csv:
        raise DatasetError(f"{path}: row_names can only be written to .csv and .tsv, got {path.suffix!r}.")
    data._require_rows("write")
    try:
        writer(data, path) if row_names is None else _write_csv(data, path, row_names)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be written ({error}); check the folder and free space.") from None


@contextmanager
def replacing(path: Path, mode_of: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when it is complete.

    For a link, the file that it points to is replaced. Devices and pipes are written directly. A replaced file keeps
    its mode, and a new file gets the mode of `mode_of`.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if path.exists() and not path.is_file():
        with open(path, "wb") as stream:
            yield stream
        return
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # otherwise a crash could replace the old file with an empty one
        if path.exists():
            mode_of = path
        if mode_of is not None and mode_of.exists():
            shutil.copymode(mode_of, temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_npz(data: Dataset, path: Path) -> None:
    """Write features, labels and names."""
    arrays: dict[str, Any] = {}
    for role in ROLES:
        matrix = getattr(data, role)
        if sp.issparse(matrix):
            arrays.update({f"{role}_{part}": np.asarray(getattr(matrix, part)) for part in SPARSE_PARTS})
        elif matrix is not None:
            arrays[role] = matrix
    metadata = {key: getattr(data, key) for key in ("feature_names", "label_names", "nominal", "name")}
    # Text arrays of NumPy would pad every name to the length of the longest.
    arrays["labelsieve"] = np.frombuffer(json.dumps(metadata).encode(), dtype=np.uint8)
    with replacing(path) as stream:
        np.savez(stream, **arrays)


def _labels(data: Dataset) -> list[tuple[str, Any]]:
    """Return prefixes and matrices of the true and candidate labels."""
    both = ((LABEL_PREFIX, data.Y), (CANDIDATE_PREFIX, data.Y_candidates))
    return [(prefix, labels) for prefix, labels in both if labels is not None]


def _label_columns(data: Dataset, path: Path) -> list[str]:
    """Return the names of the label columns with their prefixes. Raise if a name already starts with one."""
    for name in (*data.feature_names, *data.label_names):
        if name.startswith((LABEL_PREFIX, CANDIDATE_PREFIX, NOMINAL_PREFIX)):
            raise DatasetError(
                f"{path}: names must not start with a prefix of `write`, got {name!r}; rename it, or write .npz."
            )
    return [prefix + name for prefix, _ in _labels(data) for name in data.label_names]


def _number(value: float) -> str:
    """Format a number as briefly as possible, and an unknown label as ``?``."""
    if math.isnan(value):
        return "?"
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text


def _write_arff(data: Dataset, path: Path) -> None:
    label_names = [name.removeprefix(LABEL_PREFIX) for name in _label_columns(data, path)]
    lines = [f"@relation {_quoted(data.name)}", ""]
    nominal, columns = set(data.nominal), by_columns(data.X)
    for position, name in enumerate(data.feature_names):
        kind = "numeric"
        if name in nominal:
            kind = "{" + ",".join(map(str, range(int(columns[:, [position]].max()) + 1))) + "}"
        lines.append(f"@attribute {_quoted(name)} {kind}")
    lines += [f"@attribute {_quoted(name)} {{0,1}}" for name in label_names]
    header = "\n".join([*lines, "", "@data", ""])
    row_texts = _sparse_rows if sp.issparse(data.X) else _dense_rows
    with replacing(path) as stream, replacing(path.with_suffix(".xml")) as xml:
        xml.write(format_label_xml(label_names).encode())
        stream.write(header.encode("utf-8", errors="replace"))
        stream.writelines(row_texts(data))
        stream.flush()  # a full disk must raise before the XML file is replaced


def _quoted(name: str) -> str:
    """Quote a name for ARFF."""
    return "'" + name.replace("\n", " ").replace("\\", "\\\\").replace("'", "\\'") + "'"


def _row_batches(data: Dataset) -> Iterator[list[Any]]:
    """Yield batches of rows of the features and label matrices."""
    matrices = [data.X, *(labels for _, labels in _labels(data))]
    for rows in batches(data.X.shape[0], width=1, budget=_ROWS_AT_ONCE):
        yield [matrix[rows] for matrix in matrices]


def _dense_rows(data: Dataset, separator: str = ",") -> Iterator[bytes]:
    """Yield batches of lines with all values."""
    for matrices in _row_batches(data):
        rows = np.hstack([dense(matrix) for matrix in matrices])
        yield "".join(separator.join(map(_number, row)) + "\n" for row in rows.tolist()).encode()


def _sparse_rows(data: Dataset) -> Iterator[bytes]:
    """Yield batches of lines ``{index value,...}``."""
    for matrices in _row_batches(data):
        rows = sp.csr_array(sp.hstack([sp.csr_array(matrix) for matrix in matrices], format="csr"))
        lines = ("{" + ",".join(f"{i} {_number(v)}" for i, v in row) + "}\n" for row in _entries(rows))
        yield "".join(lines).encode()


def _entries(rows: sp.csr_array) -> Iterator[list[tuple[int, float]]]:
    """Yield the indices and values of the stored entries of each row."""
    pairs = list(zip(rows.indices.tolist(), rows.data.astype(float).tolist(), strict=True))
    starts = rows.indptr.tolist()
    return (pairs[start:end] for start, end in pairwise(starts))


def _write_csv(data: Dataset, path: Path, row_names: tuple[str, Sequence[str]] | None = None) -> None:
    nominal = set(data.nominal)
    names = [NOMINAL_PREFIX + name if name in nominal else name for name in data.feature_names]
    names += _label_columns(data, path)
    if row_names is not None:
        names.insert(0, row_names[0])
    spaced = [name for name in names if name != name.strip()]
    if spaced:
        raise DatasetError(
            f"{path}: names must not start or end with spaces, got {spaced[0]!r}; rename it, or write .npz."
        )
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    with replacing(path) as stream:
        stream.write(_quoted_line(names, separator))
        lines = (line for rows in _dense_rows(data, separator) for line in rows.splitlines(keepends=True))
        if row_names is not None:
            first_fields = (_quoted_line([name, ""], separator)[: -len('""\n')] for name in row_names[1])
            lines = (first + line for first, line in zip(first_fields, lines, strict=True))
        stream.writelines(lines)


def _quoted_line(texts: Sequence[str], separator: str) -> bytes:
    """Format a line of quoted fields, which may contain separators."""
    line = io.StringIO()
    csv.writer(line, delimiter=separator, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(texts)
    return line.getvalue().encode()


def _write_svmlight(data: Dataset, path: Path) -> None:
    if data.Y is not None and data.Y_candidates is not None:
        raise DatasetError(
            f"{path}: svmlight can contain either true or candidate labels, got both; write .npz or .arff."
        )
    if has_unknown(data.candidates):
        raise DatasetError(f"{path}: svmlight cannot hold unknown labels; write .npz, .arff or .csv.")
    header = {
        "name": data.name,
        "n_features": data.X.shape[1],
        "n_labels": len(data.label_names),
        "features": data.feature_names,
        "labels": data.label_names,
        "nominal": data.nominal,
        "holds": "candidate" if data.Y is None else "true",
    }
    with replacing(path) as stream:
        stream.write(f"{SVMLIGHT_HEADER}{json.dumps(header)}\n".encode())
        for X, Y in _row_batches(data):
            features, labels = (sp.csr_array(matrix) for matrix in (X, Y))
            for row, own in zip(_entries(features), _entries(labels), strict=True):
                body = " ".join(f"{index + 1}:{_number(value)}" for index, value in row)
                # Readers skip blank lines, so write a zero.
                stream.write(f"{','.join(str(index) for index, _ in own)} {body or '1:0'}\n".encode())


#: File extension -> writer.
WRITERS: dict[str, Callable[[Dataset, Path], None]] = {
    ".arff": _write_arff,
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".tsv": _write_csv,
    ".svm": _write_svmlight,
    ".svmlight": _write_svmlight,
    ".libsvm": _write_svmlight,
}
