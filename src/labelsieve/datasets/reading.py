"""`read`: any file of the field in one line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve.datasets.arff import read_arff
from labelsieve.datasets.columns import CANDIDATE_PREFIX, as_count, count_columns, named_columns
from labelsieve.datasets.dataset import Dataset, DatasetError
from labelsieve.datasets.delimited import read_delimited
from labelsieve.datasets.matlab import read_matlab
from labelsieve.datasets.matrices import join
from labelsieve.datasets.mulan_xml import find_beside, label_names_in, parse_label_names
from labelsieve.datasets.source import Source
from labelsieve.datasets.table import Table, role_columns, stack, to_dataset

PathLike = str | os.PathLike[str]

_BY_ENDING = {
    ".arff": "arff", ".mat": "matlab", ".csv": "delimited", ".tsv": "delimited", ".parquet": "parquet",
    ".pq": "parquet", ".npz": "npz", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
_TABLES = ("arff", "delimited", "parquet")


def read(
    path: PathLike | Sequence[PathLike],
    labels: int | PathLike | Sequence[str] | None = None,
    *,
    candidates: PathLike | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    nominal: str = "code",
    missing: str = "error",
    name: str | None = None,
) -> Dataset:
    """Read a data set from a file; the format is recognised by content and ending.

    Parameters
    ----------
    path : path or sequence of paths
        ARFF (dense or sparse; Mulan or MEKA), MATLAB (up to version 7), CSV or TSV, Parquet (needs pyarrow), svmlight
        and LIBSVM multi-label text, the text format of the extreme classification repository, or NPZ. Text and MATLAB
        files may be compressed with gzip, bzip2 or zip. Several paths, such as training and test part, are put under
        one another.
    labels : int, str, path, sequence of str or None, default=None
        Which columns are labels:

        - None: what the file says. The Mulan XML file beside an ARFF file (``birds.xml`` for ``birds.arff`` or
          ``birds-train.arff``) or with it in a zip archive; else MEKA's ``-C q`` in the relation name; else columns
          named ``label:...``; in MATLAB and NPZ files the matrix with a usual name such as ``target`` or ``Y``.
        - an integer q: the last q columns; a negative one: the first columns. (MEKA's own ``-C`` counts the other way
          round.) A string of an integer means the same.
        - names or shell patterns such as ``"label_*"``: those columns; one string may hold several, parted by commas.
        - the path of a Mulan XML file, or of a second table whose columns are all labels.
        - for MATLAB and NPZ files, the name of the label matrix.
    candidates : str, path, sequence of str or None, default=None
        Columns, second table or matrix with candidate labels, given like `labels`. None takes columns named
        ``candidate:...``, or a matrix with a usual name such as ``partial_labels``.
    ignore : str, sequence of str or None, default=None
        Names or patterns of columns that are neither features nor labels, such as an identifier.
    nominal : {"code", "onehot"}, default="code"
        Nominal features become the position of the category (0, 1, 2, ..., in the order of the ARFF header, or
        alphabetical), or one 0/1 feature a category, named ``feature=category``.
    missing : {"error", "mean", "zero"}, default="error"
        What to do with missing feature values: refuse, put the mean of the feature (the most frequent category for a
        nominal one) or put 0. Missing labels are always refused.
    name : str or None, default=None
        Name of the data set; None takes the file name without endings.

    Returns
    -------
    Dataset
        Sparse files give sparse features and labels. Labels stand in the order of their columns.

    Raises
    ------
    DatasetError
        The file is damaged, contradictory, hostile or leaves a question open; the message names file, line and remedy.

    Notes
    -----
    String attributes of ARFF files are identifiers, not features, and are left out; dates become seconds since 1970.
    Text is UTF-8, or Latin-1 where a line is not valid UTF-8. A square label matrix in a MATLAB file is taken as labels
    x samples. A MATLAB or NPZ part without candidates, beside one with candidates, has its truth as candidates.
    Compressed files may expand to 250 times their size (or to 64 MiB), tables may have up to 2**22 columns.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from labelsieve.datasets import read
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "birds.csv")
    >>> _ = file.write_text("length,colour,wren,thrush\\n1.5,red,1,0\\n2.5,blue,1,1\\n")
    >>> read(file, labels=2)
    Dataset 'birds': 2 samples x 2 features (dense), 2 labels (true), cardinality 1.500
    >>> read(file, labels="wren,thrush", nominal="onehot").feature_names
    ('length', 'colour=blue', 'colour=red')
    >>> folder.cleanup()
    """
    _check_choice("nominal", nominal, ("code", "onehot"))
    _check_choice("missing", missing, ("error", "mean", "zero"))
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if not paths:
        raise DatasetError("read needs at least one path, got an empty list; name the data file.")
    sources = [Source(part) for part in paths]
    about = {
        "name": sources[0].stem if name is None else name,
        "source": " + ".join(str(part.path) for part in sources),
    }
    try:
        kinds = [_kind(part) for part in sources]
        if all(kind in _TABLES for kind in kinds):
            return _read_tables(sources, kinds, labels, candidates, ignore, nominal, missing, about)
        if len(set(kinds)) > 1:
            raise sources[0].error(f"and the other parts must have the same format, got {', '.join(kinds)}")
        return _read_matrices(sources, kinds[0], labels, candidates, ignore, about)
    except MemoryError:
        raise sources[0].error(
            "does not fit into memory; read a part of it, or check that it is not damaged"
        ) from None
    except DatasetError as error:
        if str(sources[0].path) in str(error) or any(str(part.path) in str(error) for part in sources[1:]):
            raise
        raise DatasetError(f"{about['source']}: {error}") from None


def _check_choice(parameter: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{parameter} must be one of {', '.join(choices)}, got {value!r}.")


def _kind(source: Source) -> str:
    """Format of a file: unmistakable content first, then the ending, then the look of its text."""
    if source.is_npz:
        return "npz"
    head = source.head()
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"MATLAB 5.0", b"MATLAB 7.3", b"\x89HDF")):
        return "matlab"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise source.error("is UTF-16 text; save it as UTF-8")
    text = re.sub(rb"\A(?:\xef\xbb\xbf)?(?:\s*+%[^\n\r]*+)*+\s*+", b"", head)
    if re.match(rb"@(relation|attribute|data)\b", text, re.IGNORECASE):
        return "arff"
    if source.ending in _BY_ENDING:
        return _BY_ENDING[source.ending]
    if text.startswith(b"<"):
        raise source.error("is an XML file; give the data file as path and this one as labels=")
    if re.match(rb"\d+ \d+ \d+[ \t]*\r?\n|[-+\d.,]*[ \t]*\d+:[^,;\s]+(?:\s|\Z)", text):
        return "svmlight"
    if b"\0" in head:
        raise source.error(
            "is a binary file of no known format; give ARFF, MATLAB, CSV, Parquet, svmlight or NPZ"
        )
    return "delimited"


def _read_table(source: Source, kind: str) -> Table:
    """Read one file of named columns."""
    if kind == "arff":
        return read_arff(source)
    return read_delimited(source)


def _read_tables(
    sources: list[Source],
    kinds: list[str],
    labels: Any,
    candidates: Any,
    ignore: Any,
    nominal: str,
    missing: str,
    about: dict[str, str],
) -> Dataset:
    """Read files of named columns and settle which are labels."""
    fail = sources[0].error
    table = stack([_read_table(part, kind) for part, kind in zip(sources, kinds, strict=True)], fail)
    ignored = [] if ignore is None else named_columns(table.names, ignore, fail, "ignored")
    table, candidate_columns = _candidate_columns(table, candidates, sources[0])
    if labels is None:
        label_columns, candidate_columns = _declared(table, candidate_columns, sources[0], kinds[0])
    else:
        table, label_columns = _label_columns(table, labels, ignored + candidate_columns, sources[0])
    label_columns = [index for index in label_columns if index not in ignored]
    return to_dataset(
        table,
        label_columns,
        candidate_columns,
        fail,
        ignored=ignored,
        nominal=nominal,
        missing=missing,
        **about,
    )


def _candidate_columns(table: Table, wanted: Any, source: Source) -> tuple[Table, list[int]]:
    """Columns of candidate labels, and the table extended by them if they came from another file."""
    if wanted is None:
        return table, role_columns(table.names)[1]
    file = _as_file(wanted, table)
    if file is not None:
        return _joined(table, file, source, CANDIDATE_PREFIX)
    return table, named_columns(table.names, wanted, source.error, "candidate")


def _label_columns(table: Table, wanted: Any, taken: list[int], source: Source) -> tuple[Table, list[int]]:
    """Columns of true labels as the caller names them, and the table extended if they came from another file."""
    count = as_count(wanted)
    if count is not None and wanted not in table.names:
        free = [index for index in range(len(table.names)) if index not in taken]
        return table, [
            free[place] for place in count_columns([table.names[i] for i in free], count, source.error)
        ]
    file = _as_file(wanted, table)
    if file is None:
        return table, named_columns(table.names, wanted, source.error)
    if file.suffix.lower() == ".xml":
        return table, _xml_columns(table, label_names_in(Source(file)), source, str(file))
    return _joined(table, file, source, "")


def _as_file(wanted: Any, table: Table) -> Path | None:
    """The file meant by `wanted`, if it is one and no column."""
    if isinstance(wanted, os.PathLike):
        return Path(wanted)
    if not isinstance(wanted, str) or wanted in table.names:
        return None
    try:
        return Path(wanted) if wanted.lower().endswith(".xml") or Path(wanted).is_file() else None
    except (OSError, ValueError):  # too long, or with a NUL: no path
        return None


def _joined(table: Table, file: Path, source: Source, prefix: str) -> tuple[Table, list[int]]:
    """The table with the columns of a second file, and where those are."""
    other_source = Source(file)
    kind = _kind(other_source)
    if kind not in _TABLES:
        raise other_source.error(
            "must be a table (ARFF, CSV or Parquet) to hold labels for another file; convert it"
        )
    other = _read_table(other_source, kind)
    if other.values.shape[0] != table.values.shape[0]:
        raise other_source.error(
            f"has {other.values.shape[0]} rows but {source.path} has {table.values.shape[0]}; they must match"
        )
    width = len(table.names)
    own = [f"label{index}" for index in range(len(other.names))] if other.headless else other.names
    matrices = [table.values, other.values]
    sparse = any(map(sp.issparse, matrices))
    return replace(
        table,
        names=[*table.names, *(prefix + name for name in own)],
        values=sp.hstack(matrices, format="csr") if sparse else np.hstack(matrices),
        categories={
            **table.categories,
            **{width + index: kinds for index, kinds in other.categories.items()},
        },
        free_text=table.free_text | {width + index for index in other.free_text},
        headless=False,
    ), list(range(width, width + len(own)))


def _declared(table: Table, candidates: list[int], source: Source, kind: str) -> tuple[list[int], list[int]]:
    """Label and candidate columns by what the file or its XML says."""
    names, origin = None, ""
    content = source.label_xml()
    if content is not None:
        names, origin = parse_label_names(content, source), str(source.path)
    elif kind == "arff" and (beside := find_beside(source)):
        names, origin = label_names_in(Source(beside)), str(beside)
    if names is not None:
        columns = _xml_columns(table, names, source, origin)
        return [index for index in columns if index not in candidates], candidates
    if table.declared_labels is not None:
        return named_columns(table.names, table.declared_labels, source.error), candidates
    labels, _ = role_columns(table.names)
    if not labels and not candidates:
        raise source.error(
            "does not say which columns are labels; give labels= (names, a pattern such as 'label_*', the number of "
            "last columns, a Mulan XML file or a second table)"
        )
    return labels, candidates


def _xml_columns(table: Table, names: list[str], source: Source, origin: str) -> list[int]:
    """Columns an XML file names; it must not contradict the header."""
    known = set(table.names)
    unknown = [label for label in names if label not in known]
    if unknown:
        raise source.error(
            f"has no attribute {unknown[0]!r}, which {origin} names as a label "
            f"({len(unknown)} of {len(names)} labels are unknown); give the XML file that belongs to it as labels="
        )
    wanted = set(names)
    return [index for index, name in enumerate(table.names) if name in wanted]


def _read_matrices(
    sources: list[Source], kind: str, labels: Any, candidates: Any, ignore: Any, about: dict[str, str]
) -> Dataset:
    """Read files of whole matrices."""
    for parameter, value in (("labels", labels), ("candidates", candidates)):
        if value is not None and not isinstance(value, str):
            raise sources[0].error(f"holds matrices, so {parameter} must be the name of one, got {value!r}")
    if ignore is not None:
        raise sources[0].error("has no named columns to ignore; leave ignore out")
    parts = [read_matlab(part, labels, candidates) for part in sources]
    whole = parts[0] if len(parts) == 1 else join(parts, sources[0])
    return Dataset(whole.X, whole.Y, whole.Y_candidates, name=about["name"], source=about["source"])
