"""`read`: any file, frame or pair of arrays as a `Dataset`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from labelsieve._base import check_problem
from labelsieve._candidates import binarize_tags
from labelsieve.io.arff import read_arff
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import DatasetError
from labelsieve.io.frames import TABLE_FORMATS, open_frame, open_table, stack_tables
from labelsieve.io.labels import Labels, read_labels
from labelsieve.io.matrices import Matrices, join, read_matlab, read_npy, read_npz, read_svmlight
from labelsieve.io.mulan_xml import find_label_xml, xml_labels
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source
from labelsieve.io.tables import table_dataset

PathLike = str | os.PathLike[str]

_READERS = {"arff": read_arff, "npy": read_npy, "matlab": read_matlab, "npz": read_npz}
_BY_ENDING = {
    ".arff": "arff", ".mat": "matlab", ".svm": "svmlight", ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}  # fmt: skip
# Number of bytes that identify the format.
_HEAD_BYTES = 2**16
# Content that cannot be mistaken, whatever the ending.
_MAGIC = {
    b"PAR1": "parquet", b"\x93NUMPY": "npy", b"MATLAB 5.0": "matlab", b"MATLAB 7.3": "matlab", b"\x89HDF": "matlab",
}  # fmt: skip
# A line of sizes, or labels and a first index:value. Possessive, so that a long line of digits takes no time. The group
# is not: before 3.11.5 Python does not go back to its start when it matches in part only (python/cpython#100061).
_SVMLIGHT_LINE = re.compile(
    rb"\d++ \d++ \d++[ \t]*+\r?\n|(?:[-+\d.,]++[ \t]++)?\d++:[^,;\s]++(?:\s|\Z)", re.ASCII
)
_ARFF_START = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s*+%[^\n\r]*+)*+\s*+@(?:relation|attribute|data)\b", re.IGNORECASE
)
_NAMES = {
    "arff": "ARFF", "matlab": "MATLAB", "npz": "NPZ", "npy": "NPY", "svmlight": "svmlight", "delimited": "CSV",
    "parquet": "Parquet", "excel": "Excel", "json": "JSON",
}  # fmt: skip


def read(
    source: Any,
    labels: Any = None,
    *,
    candidates: PathLike | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    id: str | None = None,
    roles: Mapping[str, str] | None = None,
    label_sep: str | None = None,
    text: str | None = None,
    nominal: str | None = None,
    missing: str | None = None,
    name: str | None = None,
    chunks: int | str | None = None,
) -> Dataset:
    r"""Read a dataset from a file, a frame or arrays.

    Columns of tables may hold anything. The type of each column is inferred, reported in `Dataset.columns`, and can be
    overruled by `roles`. A number or a boolean is one feature; a date becomes time, month, weekday and hour; a
    category or a list of tags becomes one 0/1 feature per frequent value. Columns that name the rows or never change
    are left out. ARFF, MATLAB, NPZ, NPY and svmlight files, and files of `write`, declare their features, which are
    all kept.

    Parameters
    ----------
    source : path, sequence of paths, DataFrame or {array-like, sparse matrix} of shape (n_samples, n_features)
        CSV or TSV, JSON (a list, or one object per line), Excel, Parquet, ARFF (dense or sparse; Mulan or MEKA), MATLAB
        (up to version 7), svmlight and LIBSVM multi-label text, the text format of the extreme classification
        repository, NPZ, or NPY. The format is recognised by content and ending. Files may be compressed with gzip,
        bzip2 or zip. Several paths, such as training and test part, are put below one another. Excel and Parquet need
        the extra ``files``.
    labels : int, str, path, sequence of str, array-like or None, default=None
        Which columns are labels:

        - None: what the file says. The Mulan XML file next to an ARFF file (``birds.xml`` for ``birds.arff`` or
          ``birds-train.arff``) or with it in a zip archive; else MEKA's ``-C q`` in the relation name; else columns
          named ``label:...``; in other tables the one column that holds tags; in MATLAB and NPZ files the matrix with a
          usual name such as ``target``.
        - an integer q: the last q columns; a negative one: the first columns. (MEKA's own ``-C`` counts the other way
          round.) A string of an integer means the same.
        - names or shell patterns such as ``"label_*"``; one string may hold several, separated by commas. In tables a
          label column holds yes and no in some spelling, or tags such as ``billing;bug`` or ``["billing", "bug"]``.
        - the path of a Mulan XML file, or of a second table whose columns are all labels.
        - for MATLAB and NPZ files, the name of the label matrix.
        - for arrays, the candidate labels: 0/1, classes or sets of tags.
    candidates : str, path, sequence of str or None, default=None
        Columns, second table or matrix with candidate labels, given like `labels`. None takes columns named
        ``candidate:...``, or a matrix with a usual name such as ``partial_labels``.
    ignore : str, sequence of str or None, default=None
        Names or patterns of columns that are neither features nor labels.
    id : str or None, default=None
        The column that names the rows. None takes the first one of a table that does, else the index of a frame.
    roles : mapping of str to str or None, default=None
        Roles of columns of a table, such as ``{"zip": "category"}``.
    label_sep : str or None, default=None
        Separator between the tags of a cell. None finds out.
    text : {"drop", "tfidf"} or None, default=None
        Whether free text in tables is left out (the default) or becomes one feature per frequent word.
    nominal : {"code", "onehot"} or None, default=None
        Encoding of categories: their position (0, 1, 2, ... in the order of the ARFF header, else alphabetical), or one
        0/1 feature per category, named ``feature=category``. None takes "onehot" for tables and "code" for files that
        declare their categories.
    missing : {"error", "mean", "zero"} or None, default=None
        How to treat missing values: raise, fill in the mean (the most frequent category), or fill in 0. None raises
        for files that declare their features; in tables it fills in the median, and adds a feature ``column: missing``
        if five rows or more have no value.
    name : str or None, default=None
        Name of the dataset. None takes the file name without endings.
    chunks : int, "auto" or None, default=None
        None reads everything into memory. A number of rows gives dask arrays with blocks of so many rows, which are
        read when they are used; "auto" takes blocks of 16 MB. See `docs/guide/scale.md`.

    Returns
    -------
    Dataset
        Sparse files give sparse features and labels. Labels stand in the order of their columns.

    Raises
    ------
    DatasetError
        The file is damaged, contradictory or leaves a question open. The message says what to do.

    Notes
    -----
    String attributes of ARFF files are left out; dates become seconds since 1970. A square label matrix in MATLAB files
    is taken as labels x samples. A MATLAB or NPZ part without candidates, next to one with candidates, has its truth as
    candidates. Labels of svmlight files are those that occur, in numerical order. A file may hold at most 32 cells per
    byte, or 2**24 cells; a column of a sparse matrix counts as 64 cells.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from labelsieve.io import read
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "birds.csv")
    >>> _ = file.write_text("length,colour,wren,thrush\n1.5,red,1,0\n2.5,blue,0,1\n")
    >>> read(file, labels=2)
    Dataset 'birds': 2 samples x 2 features (dense), 2 labels (true), cardinality 1.000
    >>> read(file, labels="wren,thrush").feature_names
    ('length', 'colour=red')
    >>> folder.cleanup()

    >>> import pandas as pd
    >>> frame = pd.DataFrame({
    ...     "ticket": ["T1", "T2", "T3", "T4", "T5"],
    ...     "opened": ["2024-01-01", "2024-02-03", None, "2024-02-05", "2024-03-01"],
    ...     "channel": ["mail", "phone", "mail", "phone", "mail"],
    ...     "tags": ["billing;bug", "bug", "billing", "bug", ""],
    ... })
    >>> data = read(frame)
    >>> [(column.name, column.role) for column in data.columns]
    [('ticket', 'id'), ('opened', 'date'), ('channel', 'category'), ('tags', 'label')]
    >>> data.label_names, data.row_ids[:2], data.feature_names[-1]
    (('billing', 'bug'), ('T1', 'T2'), 'channel=phone')
    """
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    is_frame = hasattr(source, "columns") and (hasattr(source, "iloc") or hasattr(source, "to_pandas"))
    options = ReadOptions(labels, candidates, ignore, id, roles, label_sep, text, nominal, missing)
    if isinstance(paths, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in paths):
        return read_files(paths, options, name=name, chunks=chunks)
    if is_frame and not _is_matrix(labels):
        return _read_frame(source, options, name)
    return _read_arrays(source, labels, name)


def read_files(
    paths: Sequence[PathLike],
    options: ReadOptions,
    *,
    name: str | None = None,
    chunks: int | str | None = None,
) -> Dataset:
    """Read the parts of one dataset; the parameters are those of `read`."""
    if not paths:
        raise DatasetError("read needs at least one path, got an empty list; name the data file.")
    parts = [Path(path) for path in paths]
    origin = " + ".join(map(str, parts))
    if chunks is not None:
        from labelsieve.io.blocks import check_chunks, files_in, open_in_blocks

        rows = check_chunks(chunks)
        parts = [file for path in parts for file in files_in(path)]
    sources = [Source(part) for part in parts]
    first = sources[0]
    kind = ""
    try:
        if chunks is not None:
            found = open_in_blocks(sources, options, rows)
            if name is None:
                name = Path(paths[0]).stem if len(paths) == 1 else _common_stem(sources)
            return found.to_dataset(options, first.error, name=name, source=origin)
        kind = format_of(first)
        if any(format_of(part) != kind for part in sources):
            raise first.error("and the other parts must have the same format; convert one")
        own_name = _common_stem(sources) if name is None else name
        if kind in TABLE_FORMATS.values():
            raw = stack_tables([open_table(part, kind) for part in sources], first.error)
            file = first if len(sources) == 1 else None
            data = table_dataset(
                raw, options, first.error, read_file=read_label_file, file=file, name=own_name, source=origin
            )
            return _with_checksum(data, sources)
        _check_options(first, kind, options)
        if kind == "svmlight":
            found = read_svmlight(sources)
        else:
            found = join([_READERS[kind](part, options) for part in sources], first.error)
        if kind == "arff" and options.labels is None:
            found = replace(found, declared_labels=_declared_labels(first, found))
        if kind in ("arff", "npy"):
            found = found.split(options, read_label_file, first.error)
        own_name = (found.name or own_name) if name is None else name
        data = found.to_dataset(options, first.error, name=own_name, source=origin)
        return _with_checksum(data, sources)
    except MemoryError:
        raise first.error("does not fit into memory; read a part of it, or check for damage") from None
    except DatasetError as error:
        if any(str(part.path) in str(error) for part in sources):
            raise
        raise DatasetError(f"{origin}: {error}") from None
    except Exception as error:  # on damaged files the libraries raise almost anything
        reason = str(error).partition("\n")[0] or type(error).__name__
        form = f" as {_NAMES[kind]}" if kind else ""
        raise first.error(f"cannot be read{form} ({reason}); save or copy it again") from error


def _with_checksum(dataset: Dataset, sources: Sequence[Source]) -> Dataset:
    return replace(dataset, checksum=", ".join(part.checksum for part in sources))


def format_of(source: Source) -> str:
    """Return the format of a file by its content, else by its ending, else by its first line."""
    if source.is_npz:
        return "npz"
    if source.is_workbook:
        return "excel"
    if source.path.suffix.lower() == ".xls":
        raise source.error("is an Excel file of the old kind; save it as .xlsx or .csv")
    head = source.content[:_HEAD_BYTES]
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if _ARFF_START.match(head):
        return "arff"
    if source.ending in (".npz", ".npy"):
        raise source.error("does not hold NumPy arrays; check its ending, or copy it again")
    by_ending = _BY_ENDING.get(source.ending) or TABLE_FORMATS.get(source.ending)
    if by_ending is not None and by_ending != "excel" and source.ending not in ("", ".txt"):
        return by_ending
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<"):
        raise source.error("is an XML file; give the data file as path and this one as `labels`")
    if _SVMLIGHT_LINE.match(text):
        return "svmlight"
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise source.error(
            "is a binary file of unknown format; give CSV, JSON, Excel, Parquet, ARFF, MATLAB, svmlight or NPZ"
        )
    return "delimited"


def _is_matrix(labels: Any) -> bool:
    """Return whether labels are values, not names of columns."""
    if labels is None or isinstance(labels, (int, str, os.PathLike)):
        return False
    return not (isinstance(labels, (list, tuple)) and all(isinstance(label, str) for label in labels))


def _read_arrays(X: Any, Y: Any, name: str | None) -> Dataset:
    """Take features and candidates as ``fit`` does; frames give their names."""
    if Y is None:
        raise DatasetError(
            f"{type(X).__name__} needs labels, got None; pass a 0/1 matrix, classes or sets of tags, or give the path "
            "of a file."
        )
    try:
        checked_X, checked_Y = check_problem(X, Y)
    except (TypeError, ValueError) as error:
        raise DatasetError(f"the arrays cannot be used: {error}") from None
    names = {"feature": getattr(X, "columns", None), "label": getattr(Y, "columns", binarize_tags(Y)[1])}
    shown: Any = {f"{kind}_names": tuple(map(str, own)) for kind, own in names.items() if own is not None}
    if hasattr(X, "iloc") and X.index.is_unique:
        shown["row_ids"] = X.index.tolist()
    return Dataset(checked_X, checked_Y, name=name or "", **shown)


def _read_frame(frame: Any, options: ReadOptions, name: str | None) -> Dataset:
    """Read a data frame."""

    def fail(message: str) -> DatasetError:
        return DatasetError(f"the table {message}.")

    raw = open_frame(frame)
    if not all(raw.frame.shape):
        raise fail(f"needs rows and columns, got shape {raw.frame.shape!r}")
    return table_dataset(raw, options, fail, read_file=read_label_file, file=None, name=name or "", source="")


def _common_stem(sources: Sequence[Source]) -> str:
    """Return the name of one file without endings, or the words that several file names begin with."""
    words = zip(*(re.split(r"[-_. ]", source.stem) for source in sources), strict=False)
    shared = [same[0] for same in takewhile(lambda same: len(set(same)) == 1, words)]
    return sources[0].stem[: len("-".join(shared))] or sources[0].stem


def _check_options(first: Source, kind: str, options: ReadOptions) -> None:
    """Reject options that mean nothing for files which are not tables."""
    unusable = {"roles", "label_sep", "text"}
    if kind != "arff":
        unusable.add("id")
    if kind not in ("arff", "npy"):
        unusable |= {"ignore", "nominal"}
    if kind == "svmlight":
        unusable |= {"labels", "candidates"}
    for option, value in options.given.items():
        is_matrix = option in ("labels", "candidates") and kind in ("matlab", "npz")
        if option in unusable or (is_matrix and not isinstance(value, str)):
            raise first.error(f"is {_NAMES[kind]}, so `{option}={value!r}` cannot apply; leave it out")


def _declared_labels(source: Source, table: Matrices) -> Sequence[str] | None:
    """Return the labels that an XML file in the archive or next to the file names, else those of the file."""
    if source.label_xml is not None:
        return xml_labels(source, source.label_xml, table.names, source.error)
    beside = find_label_xml(source)
    if beside is None:
        return table.declared_labels
    xml = Source(beside)
    return xml_labels(xml, xml.content, table.names, source.error)


def read_label_file(path: Path, n_rows: int) -> Labels:
    """Read a second file that holds labels only."""
    source = Source(path)
    kind = format_of(source)
    if kind in ("arff", "npy"):
        table = _READERS[kind](source, ReadOptions())
        labels = table.labels(range(table.X.shape[1]), source.error)
    elif kind in TABLE_FORMATS.values():
        raw = open_table(source, kind)
        found = read_labels(raw, range(len(raw.names)), None, source.error, must_vary=False)
        labels = Labels.of_matrix(found.Y, found.names)
    else:
        raise source.error("must be a table or ARFF to hold the labels of another file; convert it")
    if labels.Y.shape[0] != n_rows:
        raise source.error(f"has {labels.Y.shape[0]} rows, but the data have {n_rows}; they must match")
    return labels
