"""`read`: any file of the field in one line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelsieve.datasets.arff import read_arff
from labelsieve.datasets.dataset import Dataset, DatasetError
from labelsieve.datasets.delimited import read_delimited
from labelsieve.datasets.labelling import check_options, split_table
from labelsieve.datasets.matlab import read_matlab
from labelsieve.datasets.matrices import join
from labelsieve.datasets.mulan_xml import find_beside, label_names_in, parse_label_names
from labelsieve.datasets.npz import Names, read_npz
from labelsieve.datasets.parquet import read_parquet
from labelsieve.datasets.source import Source
from labelsieve.datasets.svmlight import read_svmlight
from labelsieve.datasets.table import Table, fill_missing, stack

PathLike = str | os.PathLike[str]

_BY_ENDING = {
    ".arff": "arff", ".mat": "matlab", ".csv": "delimited", ".tsv": "delimited", ".parquet": "parquet",
    ".pq": "parquet", ".npz": "npz", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
# A line of sizes, or labels and a first index:value; possessive, so that a long line of digits takes no time.
_SVMLIGHT_LINE = re.compile(
    rb"\d++ \d++ \d++[ \t]*+\r?\n|(?:[-+\d.,]++[ \t]++)?+\d++:[^,;\s]++(?:\s|\Z)", re.ASCII
)
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
    r"""Read a data set from a file; the format is recognised by content and ending.

    Parameters
    ----------
    path : path or sequence of paths
        ARFF (dense or sparse; Mulan or MEKA), MATLAB (up to version 7), CSV or TSV, Parquet (needs pyarrow),
        svmlight and LIBSVM multi-label text, the text format of the extreme classification repository, or
        NPZ. All but NPZ may be compressed with gzip, bzip2 or zip. Several paths, such as training and test
        part, are put under one another.
    labels : int, str, path, sequence of str or None, default=None
        Which columns are labels:

        - None: what the file says. The Mulan XML file beside an ARFF file (``birds.xml`` for ``birds.arff``
          or ``birds-train.arff``) or with it in a zip archive; else MEKA's ``-C q`` in the relation name;
          else columns named ``label:...``; in MATLAB and NPZ files the matrix with a usual name such as
          ``target``.
        - an integer q: the last q columns; a negative one: the first columns. (MEKA's own ``-C`` counts the
          other way round.) A string of an integer means the same.
        - names or shell patterns such as ``"label_*"``; one string may hold several, parted by commas.
        - the path of a Mulan XML file, or of a second table whose columns are all labels.
        - for MATLAB and NPZ files, the name of the label matrix.
    candidates : str, path, sequence of str or None, default=None
        Columns, second table or matrix with candidate labels, given like `labels`. None takes columns named
        ``candidate:...``, or a matrix with a usual name such as ``partial_labels``.
    ignore : str, sequence of str or None, default=None
        Names or patterns of columns that are neither features nor labels, such as an identifier.
    nominal : {"code", "onehot"}, default="code"
        Nominal features become the position of the category (0, 1, 2, ..., in the order of the ARFF header,
        else alphabetical), or one 0/1 feature a category, named ``feature=category``.
    missing : {"error", "mean", "zero"}, default="error"
        What to do with missing feature values: refuse, put the mean of the feature (the most frequent
        category for a nominal one) or put 0. Missing labels are always refused.
    name : str or None, default=None
        Name of the data set; None takes the file name without endings.

    Returns
    -------
    Dataset
        Sparse files give sparse features and labels. Labels stand in the order of their columns.

    Raises
    ------
    DatasetError
        The file is damaged, contradictory, hostile or leaves a question open; the message names the file, the
        line and the remedy.

    Notes
    -----
    In CSV and TSV files, a column of numbers with text in it and a column with a different text in every row
    (five or more) are refused as features, unless the column is called ``nominal:...`` in the header. MATLAB,
    NPZ and svmlight files hold numbers, so only `missing` applies to them. String attributes of ARFF files
    are identifiers, not features, and left out; dates become seconds since 1970. Text is UTF-8, or Latin-1
    where a line is not valid UTF-8. A square label matrix in a MATLAB file is taken as labels x samples. A
    MATLAB or NPZ part without candidates, beside one with candidates, has its truth as candidates. Labels of
    svmlight files are those that occur, in numerical order. Compressed files may expand to 250 times their
    size (or to 64 MiB), and tables may have up to 2**22 columns.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from labelsieve.datasets import read
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "birds.csv")
    >>> _ = file.write_text("length,colour,wren,thrush\n1.5,red,1,0\n2.5,blue,1,1\n")
    >>> read(file, labels=2)
    Dataset 'birds': 2 samples x 2 features (dense), 2 labels (true), cardinality 1.500
    >>> read(file, labels="wren,thrush", nominal="onehot").feature_names
    ('length', 'colour=blue', 'colour=red')
    >>> folder.cleanup()
    """
    check_options(nominal, missing)
    paths = [path] if isinstance(path, (str, os.PathLike)) or not isinstance(path, Iterable) else list(path)
    for part in paths:
        if not isinstance(part, (str, os.PathLike)):
            raise DatasetError(f"read needs a path or a list of paths, got {part!r}; name the data file.")
    if not paths:
        raise DatasetError("read needs at least one path, got an empty list; name the data file.")
    sources = [Source(part) for part in paths]
    about = {
        "name": _common_stem(sources) if name is None else name,
        "source": " + ".join(str(part.path) for part in sources),
    }
    try:
        kinds = [_kind(part) for part in sources]
        if not all(kind in _TABLES for kind in kinds):
            if len(set(kinds)) > 1 or ignore is not None:
                raise sources[0].error(
                    f"cannot be combined with other formats or ignore=, got {', '.join(kinds)}"
                )
            if nominal != "code":
                raise sources[0].error(
                    f'holds numbers only, so nominal="{nominal}" cannot apply; leave it out'
                )
            data = _read_matrices(sources, kinds[0], labels, candidates, missing, about)
            return data if name is None or data.name == name else replace(data, name=name)
        parts = [_read_table(part, kind) for part, kind in zip(sources, kinds, strict=True)]
        return split_table(
            stack(parts, sources[0].error),
            sources[0].error,
            labels=labels,
            candidates=candidates,
            ignore=ignore,
            nominal=nominal,
            missing=missing,
            declared=_declared(sources[0], kinds[0]) if labels is None else None,
            second_table=_second_table,
            **about,
        )
    except MemoryError:
        raise sources[0].error("does not fit into memory; read a part of it, or check for damage") from None
    except DatasetError as error:
        if any(str(part.path) in str(error) for part in sources):
            raise
        raise DatasetError(f"{about['source']}: {error}") from None


def _common_stem(sources: list[Source]) -> str:
    """The name of one file without endings; what several file names share."""
    if len(sources) == 1:
        return sources[0].stem
    first, *others = (re.split(r"[-_. ]", source.stem) for source in sources)
    shared = [
        word for place, word in enumerate(first) if all(first[: place + 1] == o[: place + 1] for o in others)
    ]
    return sources[0].stem[: len("-".join(shared))] or sources[0].stem


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
    if _SVMLIGHT_LINE.match(text):
        return "svmlight"
    if b"\0" in head:
        raise source.error(
            "is a binary file of no known format; give ARFF, MATLAB, CSV, Parquet, svmlight or NPZ"
        )
    return "delimited"


def _read_table(source: Source, kind: str) -> Table:
    """Read one file of named columns."""
    readers = {"arff": read_arff, "delimited": read_delimited, "parquet": read_parquet}
    return readers[kind](source)


def _second_table(path: Path) -> Table:
    """Read a second file that holds labels only."""
    source = Source(path)
    kind = _kind(source)
    if kind not in _TABLES:
        raise source.error("must be ARFF, CSV or Parquet to hold the labels of another file; convert it")
    return _read_table(source, kind)


def _declared(source: Source, kind: str) -> tuple[Sequence[str], str] | None:
    """Labels the XML file beside or inside the data names, and that file."""
    content = source.label_xml()
    if content is not None:
        return parse_label_names(content, source), f"the XML file in {source.path}"
    beside = find_beside(source) if kind == "arff" else None
    return None if beside is None else (label_names_in(Source(beside)), str(beside))


def _read_matrices(
    sources: list[Source], kind: str, labels: Any, candidates: Any, missing: str, about: dict[str, str]
) -> Dataset:
    """Read files of whole matrices."""
    for parameter, value in (("labels", labels), ("candidates", candidates)):
        if value is not None and (not isinstance(value, str) or kind == "svmlight"):
            remedy = "leave it out" if kind == "svmlight" else "give the name of one"
            raise sources[0].error(f"holds whole matrices, so {parameter}={value!r} means nothing; {remedy}")
    if kind == "svmlight":
        return read_svmlight(sources, missing, about)
    if kind == "matlab":
        parts, names = [read_matlab(part, labels, candidates) for part in sources], Names()
    else:
        archives = [read_npz(part, labels, candidates) for part in sources]
        parts, names = [part for part, _ in archives], archives[0][1]
        if len({(own.feature_names, own.label_names) for _, own in archives}) > 1:
            raise sources[0].error("and the other parts must have the same names; check the files")
    whole = parts[0] if len(parts) == 1 else join(parts, sources[0])
    coded = [place for place, name in enumerate(names.feature_names or ()) if name in names.nominal]
    X = fill_missing(whole.X, missing, sources[0].error, names=names.feature_names, coded=coded)
    return Dataset(
        X,
        whole.Y,
        whole.Y_candidates,
        names.feature_names,  # type: ignore[arg-type]  # None stands for the default names
        names.label_names,  # type: ignore[arg-type]
        names.name or about["name"],
        about["source"],
        names.nominal,
    )
