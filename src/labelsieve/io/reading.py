"""`read`: any file of the field in one line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from labelsieve.io.blocks import check_chunks, files_in, open_in_blocks
from labelsieve.io.dataset import Dataset, dataset_of
from labelsieve.io.errors import DatasetError, Fail, Mention
from labelsieve.io.labelling import split_table
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers import arff, delimited, parquet
from labelsieve.io.readers.arff import read_arff
from labelsieve.io.readers.delimited import read_delimited
from labelsieve.io.readers.matlab import read_matlab
from labelsieve.io.readers.matrices import Matrices, join
from labelsieve.io.readers.mulan_xml import find_beside, label_names_in, parse_label_names
from labelsieve.io.readers.npz import read_npy, read_npz
from labelsieve.io.readers.parquet import read_parquet
from labelsieve.io.readers.source import Source
from labelsieve.io.readers.svmlight import read_svmlight
from labelsieve.io.readers.table import Table, stack
from labelsieve.io.splitting import fill_missing

PathLike = str | os.PathLike[str]

_BY_ENDING = {
    ".arff": "arff", ".mat": "matlab", ".csv": "delimited", ".tsv": "delimited", ".parquet": "parquet",
    ".pq": "parquet", ".npz": "npz", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
}  # fmt: skip
# A line of sizes, or labels and a first index:value; possessive, so that a long line of digits takes no time. The group
# is not: before 3.11.5 Python does not go back to its start when it matches in part only (python/cpython#100061).
_SVMLIGHT_LINE = re.compile(
    rb"\d++ \d++ \d++[ \t]*+\r?\n|(?:[-+\d.,]++[ \t]++)?\d++:[^,;\s]++(?:\s|\Z)", re.ASCII
)
_TABLES = {"arff": read_arff, "delimited": read_delimited, "parquet": read_parquet, "npy": read_npy}
_MATRICES = {"matlab": read_matlab, "npz": read_npz}
# Content that cannot be mistaken, whatever the ending.
_MAGIC = {
    b"PAR1": "parquet", b"\x93NUMPY": "npy", b"MATLAB 5.0": "matlab", b"MATLAB 7.3": "matlab", b"\x89HDF": "matlab",
    b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16",
}  # fmt: skip


def read(
    path: PathLike | Sequence[PathLike],
    labels: int | PathLike | Sequence[str] | None = None,
    *,
    candidates: PathLike | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    nominal: str = "code",
    missing: str = "error",
    name: str | None = None,
    chunks: int | str | None = None,
) -> Dataset:
    r"""Read a data set from a file; the format is recognised by content and ending.

    Parameters
    ----------
    path : path or sequence of paths
        ARFF (dense or sparse; Mulan or MEKA), MATLAB (up to version 7), CSV or TSV, Parquet (needs pyarrow),
        svmlight and LIBSVM multi-label text, the text format of the extreme classification repository, NPZ, or
        NPY (one table of numbers). All but NPZ may be compressed with gzip, bzip2 or zip. Several paths, such as
        training and test part, are put under one another.
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
    chunks : int, "auto" or None, default=None
        None reads everything into memory. A number of rows gives dask arrays with blocks of so many rows, which are
        read when they are used; "auto" takes blocks of 16 MB. See `docs/scale.md`.

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
    size (or to 64 MiB), and tables may have up to 2**22 columns; from 2**18 on, the file must have a byte for
    every 64 of them.

    With `chunks` (needs dask) files must be CSV, TSV, Parquet (also a folder of files) or NPY, not compressed, with
    numbers in all columns that are used. A Parquet block consists of whole row groups. Values are checked when they are
    read, every pass over the rows reads the file again, and `missing` cannot be "mean".

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from labelsieve.io import read
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "birds.csv")
    >>> _ = file.write_text("length,colour,wren,thrush\n1.5,red,1,0\n2.5,blue,1,1\n")
    >>> read(file, labels=2)
    Dataset 'birds': 2 samples x 2 features (dense), 2 labels (true), cardinality 1.500
    >>> read(file, labels="wren,thrush", nominal="onehot").feature_names
    ('length', 'colour=blue', 'colour=red')
    >>> folder.cleanup()
    """
    options = ReadOptions(labels, candidates, ignore, nominal, missing)
    is_one = isinstance(path, (str, os.PathLike)) or not isinstance(path, Iterable)
    paths = [path] if is_one else list(path)  # type: ignore[arg-type]
    return read_files(paths, options, name=name, chunks=chunks)  # type: ignore[arg-type]


def read_files(
    paths: Sequence[PathLike],
    options: ReadOptions,
    *,
    name: str | None = None,
    chunks: int | str | None = None,
) -> Dataset:
    """Read the parts of one data set, told by `options` what the files do not say."""
    for part in paths:
        if not isinstance(part, (str, os.PathLike)):
            raise DatasetError(f"read needs a path or a list of paths, got {part!r}; name the data file.")
    if not paths:
        raise DatasetError("read needs at least one path, got an empty list; name the data file.")
    if chunks is not None:
        return _read_lazily([Path(part) for part in paths], options, name, check_chunks(chunks))
    sources = [Source(part) for part in paths]
    origin = " + ".join(str(part.path) for part in sources)
    try:
        found = _read_parts(sources, options)
        own_name = found.name or _common_stem(sources)
        return dataset_of(found, name=own_name if name is None else name, source=origin)
    except MemoryError:
        raise sources[0].error("does not fit into memory; read a part of it, or check for damage") from None
    except DatasetError as error:
        if any(str(part.path) in str(error) for part in sources):
            raise
        raise DatasetError(f"{origin}: ", *error.args) from None


def _read_lazily(paths: Sequence[Path], options: ReadOptions, name: str | None, rows: int | None) -> Dataset:
    """Open the parts of one data set, or the files of a folder, to be read in blocks of rows."""
    sources = [Source(file) for path in paths for file in files_in(path)]
    found = open_in_blocks(sources, options, rows, format_of)
    own_name = found.name or (paths[0].stem if len(paths) == 1 else _common_stem(sources))
    return dataset_of(found, name=own_name if name is None else name, source=" + ".join(map(str, paths)))


def read_identifiers(paths: Sequence[PathLike], column: str) -> tuple[tuple[str, ...], bool]:
    """Read the column that names the rows, as text.

    Returns the names, all different, and whether `read_files` would leave that column out by itself, as it does with
    string attributes of ARFF files; otherwise it has to be told to ignore it.
    """
    names: list[str] = []
    is_left_out = False
    for source in map(Source, paths):
        kind = format_of(source)
        if kind == "arff":
            texts, is_left_out = arff.read_texts(source, column)
        elif kind in ("delimited", "parquet"):
            texts = (delimited if kind == "delimited" else parquet).read_texts(source, column)
        else:
            raise source.error("has no columns that could name its rows; leave out ", Mention("id"))
        names += texts
    require_naming(names, column, lambda *parts: DatasetError(f"{paths[0]}: ", *parts, "."))
    return tuple(names), is_left_out


def require_naming(names: Iterable[str], column: str, fail: Fail) -> None:
    """Refuse a column that does not name every row, and each differently."""
    seen: set[str] = set()
    for name in names:
        if name in seen or not name:
            problem = f"{name[:80]!r} twice" if name else "a row without a name"
            raise fail(
                f"column {column!r} must name every row once, got {problem}; name all rows, or leave out ",
                Mention("id"),
            )
        seen.add(name)


def _read_parts(sources: list[Source], options: ReadOptions) -> Matrices:
    """Read all files, which hold either tables or whole matrices, and put them under one another."""
    kinds = [format_of(part) for part in sources]
    if not _TABLES.keys() >= set(kinds):
        return _read_matrices(sources, kinds, options)
    first, fail = sources[0], sources[0].error
    parts = [_TABLES[kind](part) for part, kind in zip(sources, kinds, strict=True)]
    declared = _declared(first, kinds[0]) if options.labels is None else None
    return split_table(stack(parts, fail), options, fail, declared=declared, second_table=_second_table)


def _common_stem(sources: list[Source]) -> str:
    """The name of one file without endings; what several file names share."""
    if len(sources) == 1:
        return sources[0].stem
    first, *others = (re.split(r"[-_. ]", source.stem) for source in sources)
    shared = [
        word for place, word in enumerate(first) if all(first[: place + 1] == o[: place + 1] for o in others)
    ]
    return sources[0].stem[: len("-".join(shared))] or sources[0].stem


def format_of(source: Source) -> str:
    """Format of a file: unmistakable content first, then the ending, then the look of its text."""
    if source.is_npz:
        return "npz"
    head = source.head()
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if kind == "utf-16":
        raise source.error("is UTF-16 text; save it as UTF-8")
    text = re.sub(rb"\A(?:\xef\xbb\xbf)?(?:\s*+%[^\n\r]*+)*+\s*+", b"", head)
    if re.match(rb"@(relation|attribute|data)\b", text, re.IGNORECASE):
        kind = "arff"
    return kind or _BY_ENDING.get(source.ending) or _kind_of_text(source, head, text)


def _kind_of_text(source: Source, head: bytes, text: bytes) -> str:
    """Format by the look of the first lines; `text` is the head from the first row on."""
    if text.startswith(b"<"):
        raise source.error("is an XML file; give the data file as path and this one as ", Mention("labels"))
    if _SVMLIGHT_LINE.match(text):
        return "svmlight"
    if b"\0" in head:
        raise source.error(
            "is a binary file of no known format; give ARFF, MATLAB, CSV, Parquet, svmlight or NPZ"
        )
    return "delimited"


def _second_table(path: Path) -> Table:
    """Read a second file that holds labels only."""
    source = Source(path)
    kind = format_of(source)
    if kind not in _TABLES:
        raise source.error("must be ARFF, CSV or Parquet to hold the labels of another file; convert it")
    return _TABLES[kind](source)


def _declared(source: Source, kind: str) -> tuple[Sequence[str], str] | None:
    """Labels the XML file beside or inside the data names, and that file."""
    content = source.label_xml()
    if content is not None:
        return parse_label_names(content, source), f"the XML file in {source.path}"
    beside = find_beside(source) if kind == "arff" else None
    return None if beside is None else (label_names_in(Source(beside)), str(beside))


def _read_matrices(sources: list[Source], kinds: list[str], options: ReadOptions) -> Matrices:
    """Read files of whole matrices, all of one kind."""
    first, kind = sources[0], kinds[0]
    _check_matrix_options(first, kinds, options)
    if kind == "svmlight":
        found = read_svmlight(sources)
    else:
        parts = [_MATRICES[kind](part, options) for part in sources]
        found = parts[0] if len(parts) == 1 else join(parts, first)
    X = fill_missing(found.X, options.missing, first.error, names=found.feature_names, coded=found.coded)
    return replace(found, X=X)


def _check_matrix_options(first: Source, kinds: Sequence[str], options: ReadOptions) -> None:
    """Refuse what means nothing for files of whole matrices, which are all of one kind."""
    if len(set(kinds)) > 1 or options.ignore is not None:
        raise first.error(
            "cannot be combined with other formats or ", Mention("ignore"), f", got {', '.join(kinds)}"
        )
    if options.nominal != "code":
        nominal = Mention("nominal", options.nominal)
        raise first.error("holds numbers only, so ", nominal, " cannot apply; leave it out")
    for option in ("labels", "candidates"):
        value = getattr(options, option)
        if value is not None and (not isinstance(value, str) or kinds[0] == "svmlight"):
            remedy = "leave it out" if kinds[0] == "svmlight" else "give the name of one"
            raise first.error(
                "holds whole matrices, so ", Mention(option, value), f" means nothing; {remedy}"
            )
