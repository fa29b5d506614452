"""Read a dataset from files, frames or arrays."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
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
from labelsieve.io.matrices import Matrices, concatenate, read_matlab, read_npy, read_npz, read_svmlight
from labelsieve.io.memory import lacks_memory, memory_reason
from labelsieve.io.mulan_xml import find_label_xml, labels_from_xml
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source
from labelsieve.io.tables import dataset_from_table

PathLike = str | os.PathLike[str]

_READERS = {"arff": read_arff, "npy": read_npy, "matlab": read_matlab, "npz": read_npz}
_BY_ENDING = {
    ".arff": "arff", ".mat": "matlab", ".svm": "svmlight", ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}  # fmt: skip
# Number of bytes used to recognise the format.
_HEAD_BYTES = 2**16
# First bytes that identify a format, whatever the extension.
_MAGIC = {
    b"PAR1": "parquet", b"\x93NUMPY": "npy", b"MATLAB 5.0": "matlab", b"MATLAB 7.3": "matlab", b"\x89HDF": "matlab",
}  # fmt: skip
# A line of sizes, or labels and a first index:value. Possessive repeats keep matching linear. The group is not
# possessive, because Python before 3.11.5 fails to backtrack after a partial match (python/cpython#100061).
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
    unknown: str | None = None,
    merge: str | Sequence[str] | None = None,
    label_names: Any = None,
    show: str | Sequence[str] | None = None,
    group: str | None = None,
    name: str | None = None,
    chunks: int | str | None = None,
) -> Dataset:
    r"""Read a dataset from a file, a frame or arrays.

    Tables may have columns of any type. `read` infers the role of each column, reports it in `Dataset.columns`, and
    encodes the column as features. You can override the roles with `roles`. A number or boolean gives one feature. A
    date gives time, month, weekday and hour. A category or a list of tags gives one 0/1 feature per frequent value,
    free text one TF-IDF feature per frequent word or pair of words, and a vector one feature per number. Identifiers
    and constant columns are left out. ARFF, MATLAB, NPZ, NPY and svmlight files, and files from `write`,
    declare their features, and all of them are kept.

    Parameters
    ----------
    source : path, sequence of paths, DataFrame or {array-like, sparse matrix} of shape (n_samples, n_features)
        CSV or TSV, JSON (a list, or one object per line), Excel, Parquet, ARFF (dense or sparse; Mulan or MEKA), MATLAB
        (up to version 7), svmlight and LIBSVM multi-label text, the text format of the extreme classification
        repository, NPZ, or NPY. The format is recognised by content and extension. Files may be compressed with gzip,
        bzip2 or zip. The rows of several paths, such as training and test set, are concatenated. Excel and Parquet
        need the extra ``files``.
    labels : int, str, path, sequence of str, array-like or None, default=None
        Label columns:

        - None: declared by the file. For ARFF, the Mulan XML file next to it (``birds.xml`` for ``birds.arff`` or
          ``birds-train.arff``) or in the same zip archive, or MEKA's ``-C q`` in the relation name. For tables,
          columns named ``label:...``, or the only column of tags. For MATLAB and NPZ files, the matrix with a common
          name such as ``target``.
        - an integer q: the last q columns, or the first ones if negative. (MEKA's ``-C`` is the other way round.) You
          can also pass the integer as a string.
        - names or shell patterns such as ``"label_*"``. A string may contain several, separated by commas. In tables, a
          label column contains any words for yes and no, or tags such as ``billing;bug`` or ``["billing", "bug"]``.
        - the path of a Mulan XML file, or of a second table that contains only labels.
        - for MATLAB and NPZ files, the name of the label matrix.
        - for arrays, the candidate labels: a 0/1 matrix (NaN if unknown), classes or sets of tags.
    candidates : str, path, sequence of str or None, default=None
        Columns, second table or matrix with candidate labels, given like `labels`. None selects columns named
        ``candidate:...``, or a matrix with a common name such as ``partial_labels``.
    ignore : str, sequence of str or None, default=None
        Names or patterns of columns that are neither features nor labels.
    id : str or None, default=None
        Column with the names of the rows. None selects the first identifier column, or else the index of a frame. If
        the names of a table repeat or are empty, rows are numbered and the column is shown next to them.
    roles : mapping of str to str or None, default=None
        Roles of columns of a table, such as ``{"zip": "category"}``.
    label_sep : str or None, default=None
        Separator between tags in a cell. None detects it.
    text : {"drop", "tfidf"} or None, default=None
        Encoding of free text in tables: none, or one feature per frequent word and pair of words (at most 1000 per
        column). None means "tfidf".
    nominal : {"code", "onehot"} or None, default=None
        Encoding of categories: as codes (0, 1, 2, ... in the order of the ARFF header, or else alphabetical), or as one
        0/1 feature per category, named ``feature=category``. None means "onehot" for tables and "code" for files that
        declare their categories.
    missing : {"error", "mean", "zero"} or None, default=None
        Treatment of missing values: raise an error, fill in the mean (or the most frequent category), or fill in 0.
        None raises for files that declare their features. In tables it fills in the median, and adds a feature
        ``column is missing`` if at least five values are missing.
    unknown : str or None, default=None
        Text of label cells that means "unknown", such as "?". These labels become NaN. So do missing values in label
        columns that say no in other rows; without `unknown` they raise. Use "" if empty cells mean unknown in all
        label columns.
    merge : str, sequence of str or None, default=None
        Columns of tags that form one set, such as ``"Type 1,Type 2"``. They are labels.
    label_names : path, sequence of str, mapping or None, default=None
        Names of labels that are codes: a mapping, names in the order of the codes, or a file with either (JSON, one
        name per line, or one code and name per line).
    show : str, sequence of str or None, default=None
        Columns of a table to show with every row. Free text is always shown.
    group : str or None, default=None
        Column of a table whose rows belong together, such as the patient. Splits and permutations keep rows with the
        same value together, and so they do with repeated rows.
    name : str or None, default=None
        Name of the dataset. None uses the file name without extensions.
    chunks : int, "auto" or None, default=None
        Number of rows per block. None reads everything into memory. Otherwise the result contains dask arrays, whose
        blocks are read when they are used. "auto" uses blocks of 16 MB. See `docs/guide/scale.md`.

    Returns
    -------
    Dataset
        Features and labels, sparse if the file is sparse. Labels are in column order.

    Raises
    ------
    DatasetError
        The file is damaged, inconsistent or ambiguous. The message says what to do.

    Notes
    -----
    String attributes of ARFF files are left out, and dates become seconds since 1970. A square label matrix in a MATLAB
    file is read as labels x samples. If only some parts of a MATLAB or NPZ file have candidates, the other parts use
    their true labels as candidates. In svmlight files, the labels that occur are kept in numerical order. A file may
    contain at most 32 cells per byte, or 2**24 cells if that is more. A column of a sparse matrix counts as 8 cells.

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
    options = ReadOptions(
        labels,
        candidates,
        ignore,
        id,
        roles,
        label_sep,
        text,
        nominal,
        missing,
        unknown,
        merge,
        label_names,
        show,
        group,
    )
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
    """Read the parts of one dataset. The parameters are those of `read`."""
    if not paths:
        raise DatasetError("source must have at least one path, got an empty list; pass the data file.")
    parts = [Path(path) for path in paths]
    origin = " + ".join(map(str, parts))
    if chunks is not None:
        from labelsieve.io.blocks import check_chunks, open_in_blocks, parquet_files

        rows = check_chunks(chunks)
        parts = [file for path in parts for file in parquet_files(path)]
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
            raise first.error("all parts must have the same format; convert the others")
        default_name = _common_stem(sources)
        if kind in TABLE_FORMATS.values():
            raw = stack_tables([open_table(part, kind) for part in sources], first.error)
            file = first if len(sources) == 1 else None
            table_name = default_name if name is None else name
            data = dataset_from_table(
                raw,
                options,
                first.error,
                read_file=partial(read_label_file, unknown=options.unknown),
                file=file,
                name=table_name,
                source=origin,
            )
            return _with_checksum(data, sources)
        _check_options(first, kind, options)
        if kind == "svmlight":
            found = read_svmlight(sources)
        else:
            found = concatenate([_READERS[kind](part, options) for part in sources], first.error)
        if kind == "arff" and options.labels is None:
            found = replace(found, declared_labels=_declared_labels(first, found))
        if kind in ("arff", "npy"):
            found = found.split(options, partial(read_label_file, unknown=options.unknown), first.error)
        if name is None:
            name = found.name or default_name
        data = found.to_dataset(options, first.error, name=name, source=origin)
        return _with_checksum(data, sources)
    except DatasetError as error:
        if any(str(part.path) in str(error) for part in sources):
            raise
        raise DatasetError(f"{origin}: {error}") from None
    except Exception as error:  # libraries raise errors of any type on damaged files
        if lacks_memory(error):
            raise first.error(
                f"does not fit into memory ({memory_reason(error)}); read a part of it, or check if it is damaged"
            ) from None
        reason = str(error).partition("\n")[0] or type(error).__name__
        form = f" as {_NAMES[kind]}" if kind else ""
        raise first.error(f"cannot be read{form} ({reason}); save or copy it again") from error


def _with_checksum(dataset: Dataset, sources: Sequence[Source]) -> Dataset:
    return replace(dataset, checksum=", ".join(part.checksum for part in sources))


def format_of(source: Source) -> str:
    """Detect the format of a file by its content, its extension or its first line."""
    if source.is_npz:
        return "npz"
    if source.is_workbook:
        return "excel"
    if source.path.suffix.lower() == ".xls":
        raise source.error("is in the old Excel format; save it as .xlsx or .csv")
    head = source.content[:_HEAD_BYTES]
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if _ARFF_START.match(head):
        return "arff"
    if source.ending in (".npz", ".npy"):
        raise source.error("must contain NumPy arrays; check its extension, or copy it again")
    by_ending = _BY_ENDING.get(source.ending) or TABLE_FORMATS.get(source.ending)
    if by_ending is not None and by_ending != "excel" and source.ending not in ("", ".txt"):
        return by_ending
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<"):
        raise source.error("is an XML file; pass the data file as path and this one as `labels`")
    if _SVMLIGHT_LINE.match(text):
        return "svmlight"
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise source.error(
            "must be CSV, JSON, Excel, Parquet, ARFF, MATLAB, svmlight or NPZ, got an unknown format; convert it"
        )
    return "delimited"


def _is_matrix(labels: Any) -> bool:
    """Return True if labels are values rather than names of columns."""
    if labels is None or isinstance(labels, (int, str, os.PathLike)):
        return False
    return not (isinstance(labels, (list, tuple)) and all(isinstance(label, str) for label in labels))


def _read_arrays(X: Any, Y: Any, name: str | None) -> Dataset:
    """Build a dataset from features and candidates as in ``fit``, with the names of frames."""
    if Y is None:
        raise DatasetError(
            f"labels must be a 0/1 matrix, classes or sets of tags for a source of type {type(X).__name__}, got None; "
            "pass them, or the path of a file."
        )
    try:
        checked_X, checked_Y = check_problem(X, Y, takes_unknown=True)
    except (TypeError, ValueError) as error:
        raise DatasetError(f"invalid arrays: {error}") from None
    columns = {"feature": getattr(X, "columns", None), "label": getattr(Y, "columns", binarize_tags(Y)[1])}
    names: Any = {f"{kind}_names": tuple(map(str, own)) for kind, own in columns.items() if own is not None}
    if hasattr(X, "iloc") and X.index.is_unique:
        names["row_ids"] = X.index.tolist()
    return Dataset(checked_X, checked_Y, name=name or "", **names)


def _read_frame(frame: Any, options: ReadOptions, name: str | None) -> Dataset:
    """Read a data frame."""

    def fail(message: str) -> DatasetError:
        return DatasetError(f"the table {message}.")

    raw = open_frame(frame)
    if not all(raw.frame.shape):
        raise fail(f"must contain rows and columns, got shape {raw.frame.shape!r}")
    read_file = partial(read_label_file, unknown=options.unknown)
    return dataset_from_table(raw, options, fail, read_file=read_file, file=None, name=name or "", source="")


def _common_stem(sources: Sequence[Source]) -> str:
    """Return the name of a file without extensions, or the words that several file names start with."""
    words = zip(*(re.split(r"[-_. ]", source.stem) for source in sources), strict=False)
    shared = [same[0] for same in takewhile(lambda same: len(set(same)) == 1, words)]
    return sources[0].stem[: len("-".join(shared))] or sources[0].stem


def _check_options(first: Source, kind: str, options: ReadOptions) -> None:
    """Raise for options that do not apply to the format."""
    unusable = {"roles", "label_sep", "text", "merge", "label_names", "show", "group"}
    if kind != "arff":
        unusable.add("id")
    if kind not in ("arff", "npy"):
        unusable |= {"ignore", "nominal", "unknown"}
    if kind == "svmlight":
        unusable |= {"labels", "candidates"}
    for option, value in options.given.items():
        is_matrix = option in ("labels", "candidates") and kind in ("matlab", "npz")
        if option in unusable or (is_matrix and not isinstance(value, str)):
            raise first.error(
                f"is a file in {_NAMES[kind]} format, which does not support `{option}={value!r}`; omit it"
            )


def _declared_labels(source: Source, table: Matrices) -> Sequence[str] | None:
    """Return the labels listed by an XML file in the archive or next to the file, or else by the file itself."""
    if source.label_xml is not None:
        return labels_from_xml(source, source.label_xml, table.names, source.error)
    beside = find_label_xml(source)
    if beside is None:
        return table.declared_labels
    xml = Source(beside)
    return labels_from_xml(xml, xml.content, table.names, source.error)


def read_label_file(path: Path, n_rows: int, unknown: str | None = None) -> Labels:
    """Read a second file that contains only labels."""
    source = Source(path)
    kind = format_of(source)
    if kind in ("arff", "npy"):
        table = _READERS[kind](source, ReadOptions())
        labels = table.labels(range(table.X.shape[1]), source.error, unknown)
    elif kind in TABLE_FORMATS.values():
        raw = open_table(source, kind)
        positions = range(len(raw.names))
        found = read_labels(raw, positions, ReadOptions(unknown=unknown), source.error, must_vary=False)
        labels = Labels.of_matrix(found.Y, found.names)
    else:
        raise source.error("must be a table or an ARFF file to contain labels of another file; convert it")
    if labels.Y.shape[0] != n_rows:
        raise source.error(f"must have {n_rows} rows like the data, got {labels.Y.shape[0]}; check the file")
    return labels
