"""Container for features, labels and the columns they come from."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_array

from labelsieve._blocks.collections import is_lazy
from labelsieve._numerics.candidates import count_labels, fill_unknown, has_unknown, is_binary
from labelsieve._numerics.sparse import Matrix, check_structure, entries, is_sparse, with_short_indices
from labelsieve._text import html_table
from labelsieve.io.description import DatasetDescription, describe
from labelsieve.io.errors import DatasetError
from labelsieve.io.spellings import MISSING, plain_float
from labelsieve.io.tags import clean_tags, object_tags, read_list, read_object

# Control characters, lone surrogates and two noncharacters.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Maximum number of labels in the notebook view.
_LABELS_SHOWN = 10
_MAX_CELL_LENGTH = 60
_MAX_CONTEXT_LENGTH = 600


class Column(NamedTuple):
    """One column of a table.

    Attributes
    ----------
    name : str
        Name of the column.
    role : {"id", "date", "number", "category", "boolean", "text", "tags", "vector", "constant", "label", "ignored"}
        How the column is used.
    n_missing : int
        Number of missing values.
    note : str
        Remark about the column, or "".
    features : tuple of int
        Columns of `Dataset.X` that encode this column. Empty for labels and for columns that are left out.
    block : tuple of int
        Positions of all table columns that this entry stands for, if it is the first of several numbers of one vector,
        such as ``emb_0, emb_1, ...``. Empty otherwise.

    Examples
    --------
    >>> import pandas as pd
    >>> from labelsieve.io import read
    >>> data = read(pd.DataFrame({"size": [1.5, 2, 4], "tags": ["a;b", "b", "a"]}))
    >>> [(column.name, column.role, column.features) for column in data.columns]
    [('size', 'number', (0,)), ('tags', 'label', ())]
    """

    name: str
    role: str
    n_missing: int = 0
    note: str = ""
    features: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features with true labels, candidate labels or both, and the columns they come from.

    The constructor checks that features are finite, that labels are 0, 1 or unknown, and that names are unique
    and match the shapes.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Finite numbers, stored as a float64 array, or as a CSR array if sparse. Dask arrays stay lazy, and their
        values are checked when they are read.
    Y : array-like or sparse matrix of shape (n_samples, n_labels), or None, default=None
        True labels, 0 or 1, stored as a uint8 array, or as a CSR array if sparse. None if unknown.
        Single entries may be unknown: they are NaN, in an array of float64.
    Y_candidates : array-like or sparse matrix of shape (n_samples, n_labels), or None, default=None
        Candidate labels, like `Y`. None if there are only true labels.
    feature_names : iterable of str or None, default=None
        One name per column of `X`. None gives ``x0, x1, ...``.
    label_names : iterable of str or None, default=None
        One name per label. None gives ``label0, label1, ...``.
    name : str, default=""
        Name of the dataset.
    source : str, default=""
        Path or address of the data.
    nominal : iterable of str, default=()
        Names of the features whose values are category codes (0, 1, 2, ...).
    columns : sequence of Column or None, default=None
        Columns of the original table. None gives one column per feature.
    column_of : array-like of int of shape (n_features,) or None, default=None
        Position in `columns` of the column that each feature encodes, in ascending order.
    label_column_of : array-like of int of shape (n_labels,) or None, default=None
        Position in `columns` of the column of each label, or -1 for labels from elsewhere.
    row_ids : sequence or None, default=None
        Names of the rows. None numbers them from 0.
    id_column : str or None, default=None
        Name of the column that contains `row_ids`.
    frame : DataFrame or None, default=None
        Cells as written in the table.
    values : DataFrame or None, default=None
        Parsed cells of all columns except labels: numbers, dates, strings and tuples of tags.
    notes : tuple of str, default=()
        Remarks about the table as a whole.
    shown : tuple of int, default=()
        Positions of columns to show with every row, besides free text.
    groups : array-like of int of shape (n_samples,) or None, default=None
        Group of every row. Splits and permutations keep the rows of a group together. None if every row is its own
        group.
    checksum : str, default=""
        SHA-256 checksums of the files, separated by commas.

    Raises
    ------
    DatasetError
        The shapes do not match, or the values are invalid.

    Examples
    --------
    >>> from labelsieve.io import Dataset
    >>> data = Dataset([[0.5, 1], [2, 0], [1, 1]], [[1, 0], [1, 1], [0, 0]], name="toy")
    >>> data
    Dataset 'toy': 3 samples x 2 features (dense), 2 labels (true), cardinality 1.000
    >>> data.label_names, data.column_names, list(data.row_ids)
    (('label0', 'label1'), ('x0', 'x1'), [0, 1, 2])
    """

    X: np.ndarray | sp.csr_array
    Y: np.ndarray | sp.csr_array | None = None
    Y_candidates: np.ndarray | sp.csr_array | None = None
    # __post_init__ replaces None with the default.
    feature_names: tuple[str, ...] = None  # type: ignore[assignment]
    label_names: tuple[str, ...] = None  # type: ignore[assignment]
    name: str = ""
    source: str = ""
    nominal: tuple[str, ...] = ()
    columns: tuple[Column, ...] = None  # type: ignore[assignment]
    column_of: np.ndarray = None  # type: ignore[assignment]
    label_column_of: np.ndarray = None  # type: ignore[assignment]
    row_ids: Sequence[Hashable] = None  # type: ignore[assignment]
    id_column: str | None = None
    frame: pd.DataFrame | None = None
    values: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    shown: tuple[int, ...] = ()
    groups: np.ndarray | None = None
    checksum: str = ""
    #: Format of the file, needed to copy it.
    _origin: Any = None

    def __post_init__(self) -> None:
        X = _check_features(self.X)
        Y = None if self.Y is None else _check_labels(self.Y, "Y")
        candidates = None if self.Y_candidates is None else _check_labels(self.Y_candidates, "Y_candidates")
        given = [labels for labels in (Y, candidates) if labels is not None]
        if not given:
            raise DatasetError(
                "Dataset must have Y, Y_candidates or both, got neither; pass at least one label matrix."
            )
        if len({is_lazy(matrix) for matrix in (X, *given)}) > 1:
            raise DatasetError(
                "X and the labels must be all dask arrays or all in memory, got both; convert one kind."
            )
        for labels in given:
            if labels.shape != (X.shape[0], given[0].shape[1]):
                raise DatasetError(
                    f"label matrices must have shape {(X.shape[0], given[0].shape[1])!r} to match X and Y, "
                    f"got {labels.shape!r}; transpose them or drop the extra rows."
                )
        features = _check_names(self.feature_names, "x", X.shape[1], "feature")
        label_names = _check_names(self.label_names, "label", given[0].shape[1], "label")
        name, times = Counter((*features, *label_names)).most_common(1)[0]
        if times > 1:
            raise DatasetError(
                f"feature and label names must be unique, got {name!r} {times} times; rename duplicates."
            )
        nominal = tuple(self.nominal)
        _check_nominal(X, features, nominal)
        columns, column_of, label_column_of = self.columns, self.column_of, self.label_column_of
        if columns is None:
            roles = dict.fromkeys(nominal, "category")
            columns = [
                Column(name, roles.get(name, "number"), features=(position,))
                for position, name in enumerate(features)
            ]
            column_of = np.arange(len(features))
        if label_column_of is None:
            label_column_of = np.full(len(label_names), -1)
        if np.shape(column_of) != (len(features),) or np.shape(label_column_of) != (len(label_names),):
            raise DatasetError(
                "column_of and label_column_of must have one entry per feature and label; pass them with columns."
            )
        notes = [*self.notes]
        n_unknown = _count_unknown(given[-1])
        if n_unknown:
            notes.append(f"{n_unknown} of {X.shape[0] * len(label_names)} labels are unknown")
        row_ids = range(X.shape[0]) if self.row_ids is None else self.row_ids
        if len(row_ids) != X.shape[0]:
            raise DatasetError(f"row_ids must have {X.shape[0]} entries, one per row, got {len(row_ids)}.")
        groups = None if self.groups is None else np.unique(np.asarray(self.groups), return_inverse=True)[1]
        if groups is not None and groups.shape != (X.shape[0],):
            raise DatasetError(f"groups must have {X.shape[0]} entries, one per row, got {groups.shape!r}.")
        checked: dict[str, Any] = {
            "X": X,
            "Y": Y,
            "Y_candidates": candidates,
            "feature_names": features,
            "label_names": label_names,
            "nominal": nominal,
            "columns": tuple(columns),
            "column_of": np.asarray(column_of, dtype=np.intp),
            "label_column_of": np.asarray(label_column_of),
            "row_ids": row_ids if isinstance(row_ids, range) else tuple(row_ids),
            "notes": tuple(dict.fromkeys(notes)),  # a copy has the note already
            "groups": groups,
        }
        for field, value in checked.items():
            object.__setattr__(self, field, value)

    @property
    def candidates(self) -> np.ndarray | sp.csr_array:
        """Labels to fit on: `Y_candidates` if available, otherwise `Y`."""
        labels = self.Y if self.Y_candidates is None else self.Y_candidates
        assert labels is not None  # the constructor rejects a dataset without labels
        return labels

    @property
    def ranked(self) -> tuple[int, ...]:
        """Positions of the columns that have features."""
        return tuple(np.unique(self.column_of).tolist())

    @property
    def n_columns(self) -> int:
        """Number of columns that have features."""
        return len(self.ranked)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns that have features."""
        return tuple(self.columns[position].name for position in self.ranked)

    @property
    def is_table(self) -> bool:
        """True if the data were read from a table with columns of any type."""
        return self.frame is not None

    def account(self) -> list[dict[str, Any]]:
        """Return the role of every column, as rows of ``column, role, missing, features, note``."""
        return [
            {
                "column": column.name,
                "role": column.role,
                "missing": column.n_missing,
                "features": len(column.features),
                "note": column.note,
            }
            for column in self.columns
        ]

    def summary(self) -> str:
        """Summarize the number of columns per role in one line."""
        roles = Counter(column.role for column in self.columns)
        n_missing = sum(column.n_missing for column in self.columns)
        missing = f"; {n_missing} missing values" if n_missing else ""
        return ", ".join(f"{count} {role}" for role, count in roles.items()) + missing

    def cell(self, row: int, column: int) -> str:
        """Format one cell of the table as short text. `column` is a position in `columns`."""
        found = self.columns[column]
        if self.values is None or self.frame is None:
            return show_value(self.X[row, found.features[0]])
        if found.block:
            return "vector"
        cell = self.frame.iloc[row, column]
        if isinstance(cell, str) and cell.strip().lower() in MISSING:
            return "missing"
        if found.role == "number":  # plain numbers are shortened, everything else is shown as written
            value = self.values[found.name].iat[row]
            if not isinstance(cell, str) or plain_float(cell) is not None or value != value:
                cell = value
        return show_value(shown_cell(cell))

    def context(self, row: int) -> dict[str, str]:
        """Return the free text and the columns to show of one row, as text by column name, in table order."""
        if self.frame is None:
            return {}
        shown = {*self.shown, *(at for at, column in enumerate(self.columns) if column.role == "text")}
        return {
            self.columns[at].name: show_value(shown_cell(self.frame.iloc[row, at]), most=_MAX_CONTEXT_LENGTH)
            for at in sorted(shown)
        }

    @property
    def has_context(self) -> bool:
        """True if rows have free text or columns to show."""
        return self.frame is not None and bool(
            self.shown or any(column.role == "text" for column in self.columns)
        )

    def describe(self) -> DatasetDescription:
        """Compute the size, label statistics, and constant and duplicate features.

        Returns
        -------
        DatasetDescription
            Statistics of `Y` if the true labels are known, otherwise of `Y_candidates`. Print it, or use its fields.
        """
        self._require_rows("a description")
        return describe(self)

    def to_pandas(self) -> pd.DataFrame:
        """Convert to a DataFrame with features, ``label:NAME`` and ``candidate:NAME`` columns.

        Sparse features become sparse columns, and nominal features become categorical columns.
        """
        self._require_rows("a frame")
        parts: list[pd.DataFrame] = []
        for prefix, names, matrix in (
            ("", self.feature_names, self.X),
            ("label:", self.label_names, self.Y),
            ("candidate:", self.label_names, self.Y_candidates),
        ):
            if matrix is not None:
                build = pd.DataFrame.sparse.from_spmatrix if is_sparse(matrix) else pd.DataFrame
                parts.append(build(matrix, columns=[prefix + name for name in names]))
        frame = pd.concat(parts, axis=1)
        for name in self.nominal:
            codes = np.asarray(frame[name]).astype(int)
            frame[name] = pd.Categorical.from_codes(codes, categories=range(codes.max() + 1))
        return frame

    @property
    def is_lazy(self) -> bool:
        """True if `X` and the labels are dask arrays, whose rows are read in blocks."""
        return is_lazy(self.X)

    def _require_rows(self, what: str) -> None:
        """Raise for a lazy dataset."""
        if self.is_lazy:
            raise DatasetError(
                f"{self.source or self.name}: {what} needs all rows in memory; read the file without `chunks`."
            )

    def __repr__(self) -> str:
        (n_samples, n_features), labels = self.X.shape, self.candidates
        kinds = [kind for kind, Y in (("true", self.Y), ("candidate", self.Y_candidates)) if Y is not None]
        X: Any = self.X
        if self.is_lazy:
            last = f"{X.numblocks[0]} blocks of rows"
            X = X._meta
        else:
            counted = labels if self.Y is None else self.Y
            last = f"cardinality {fill_unknown(counted).sum() / max(n_samples, 1):.3f}"
        return (
            f"Dataset {self.name!r}: {n_samples} samples x {n_features} features "
            f"({'sparse' if is_sparse(X) else 'dense'}), "
            f"{labels.shape[1]} labels ({' and '.join(kinds)}), {last}"
        )

    def _repr_html_(self) -> str:
        if self.is_lazy:  # the notebook view must not read the file
            return html_table(repr(self), ("label",), [(name,) for name in self.label_names[:_LABELS_SHOWN]])
        kinds = [
            (kind, count_labels(labels)[0].astype(np.int64))
            for kind, labels in (("true", self.Y), ("candidates", self.Y_candidates))
            if labels is not None
        ]
        candidates = fill_unknown(self.candidates)
        n_empty = int((np.asarray(candidates.sum(axis=1, dtype=np.int64)).ravel() == 0).sum())
        order = np.argsort(-kinds[-1][1], kind="stable")
        left = len(order) - _LABELS_SHOWN
        return html_table(
            repr(self),
            ("label", *(kind for kind, _ in kinds)),
            [
                (self.label_names[label], *(counts[label] for _, counts in kinds))
                for label in order[:_LABELS_SHOWN]
            ],
            (f"and {left} rarer labels; " if left > 0 else "") + f"{n_empty} rows without a label",
        )


def known_wrong(dataset: Dataset, rows: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    """Return a mask of the wrong candidates, or None if the true labels are unknown."""
    if dataset.Y is None or dataset.Y_candidates is None:
        return None
    return entries(dataset.Y, rows, labels) == 0


def shown_cell(cell: Any) -> Any:
    """Return the tags of a list or object as one text, and other cells unchanged."""
    if isinstance(cell, str):
        found = read_list(cell)
        cell = (read_object(cell) or cell) if found is None else found
    if isinstance(cell, dict):
        cell = object_tags(cell) or json.dumps(cell, default=str)
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        return ", ".join(clean_tags(cell))
    return cell


def show_value(value: Any, most: int = _MAX_CELL_LENGTH) -> str:
    r"""Format a cell as short text.

    Examples
    --------
    >>> [show_value(value) for value in (3.0, 0.123456, 2010, 12345.6, None, float("nan"), True, "two\n lines")]
    ['3', '0.123', '2010', '12,346', 'missing', 'missing', 'yes', 'two lines']
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, float, np.integer, np.floating)):
        number = float(value)
        if math.isnan(number):
            return "missing"
        if 100 <= abs(number) < 1e15:
            return f"{number:.0f}" if abs(number) < 1e4 else f"{number:,.0f}"
        return f"{number:.3g}"
    text = "missing" if value is None else " ".join(str(value).split())
    if text in {"NaT", "<NA>", "nan"}:
        return "missing"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _check_features(X: Any) -> Matrix:
    """Convert X to a finite float64 array or canonical CSR array, or raise."""
    if is_lazy(X):
        return _check_lazy(X, "X")
    try:
        check_structure(X, "X")  # invalid indices would crash the process
        X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0].removesuffix(".")
        raise DatasetError(
            f"X must contain finite numbers, with at least one sample and feature ({reason}); encode text, and fill in "
            "missing values or read the file with `missing='mean'` or `missing='zero'`."
        ) from None
    return _canonicalize(X)


def _check_lazy(matrix: Any, role: str) -> Any:
    """Return a dask array, or raise if its sizes are unknown."""
    if matrix.ndim != 2 or any(size != size for size in (*matrix.shape, *matrix.chunks[0])):
        raise DatasetError(
            f"{role} must be a two-dimensional dask array of known size, got shape {matrix.shape!r}; call "
            "compute_chunk_sizes()."
        )
    return matrix


def _count_unknown(Y: Any) -> int:
    """Return the number of unknown labels; 0 for a dask array, which has none."""
    return 0 if is_lazy(Y) else int((Y.shape[0] - count_labels(Y)[1]).sum())


def _check_labels(Y: Any, role: str) -> Matrix:
    """Convert Y to a 0/1 uint8 array or CSR array, of float64 if entries are unknown, or raise."""
    if is_lazy(Y):
        return _check_lazy(Y, role)
    try:
        check_structure(Y, role)
        Y = sp.csr_array(Y) if is_sparse(Y) else np.asarray(Y)
        dtype = np.float64 if has_unknown(Y) else np.uint8
        known = fill_unknown(Y)
        if not is_binary(known.data if is_sparse(known) else known):
            raise ValueError("other values")
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"{role} must contain only 0 and 1, got {error}; map the values first, e.g. Y > 0 for -1 and +1."
        ) from None
    if Y.ndim != 2 or Y.shape[1] == 0:
        raise DatasetError(
            f"{role} must have shape (n_samples, n_labels) with at least one label, got {Y.shape!r}."
        )
    return _canonicalize(Y.astype(dtype))


def _canonicalize(matrix: Any) -> Any:
    """Sort the indices of a sparse matrix, remove duplicates and zeros, and use 32-bit indices for liblinear."""
    if not is_sparse(matrix):
        return matrix
    matrix = sp.csr_array(matrix)
    # `matrix` may share its arrays with the caller's matrix, which must not change.
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return with_short_indices(matrix)


def _check_names(names: Iterable[str] | None, prefix: str, count: int, role: str) -> tuple[str, ...]:
    """Return one name per column, or raise if a name is empty or not printable."""
    if names is None:
        return tuple(f"{prefix}{index}" for index in range(count))
    names = tuple(names)
    if len(names) != count:
        raise DatasetError(f"{role}_names must have {count} entries, got {len(names)}.")
    for name in names:
        if not isinstance(name, str) or not name or not is_writable(name):
            raise DatasetError(
                f"{role} names must be non-empty, printable strings, got {name!r}; rename that column."
            )
    return names


def is_writable(name: str) -> bool:
    """Return True if a name can be written to XML and to a line of text."""
    return not _UNWRITABLE.search(name)


def _check_nominal(X: Matrix, features: tuple[str, ...], nominal: tuple[str, ...]) -> None:
    """Raise unless nominal features exist and contain category codes."""
    if not nominal:
        return
    position = {name: index for index, name in enumerate(features)}
    unknown = [name for name in nominal if name not in position]
    if unknown or len(set(nominal)) < len(nominal):
        raise DatasetError(f"nominal must contain unique names of features, got {(unknown or nominal)[0]!r}.")
    if is_lazy(X):
        return
    columns = X if len(nominal) == len(features) else X[:, [position[name] for name in nominal]]
    codes = columns.data if is_sparse(columns) else columns
    if codes.size and (codes.min() < 0 or (codes != np.floor(codes)).any()):
        raise DatasetError(
            "nominal features must contain category codes 0, 1, 2, ..., got other numbers; encode them first."
        )
