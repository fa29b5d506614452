"""Read files that declare their features: ARFF, NPY, MATLAB, NPZ and svmlight."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

from labelsieve._blocks.collections import is_lazy
from labelsieve._numerics.candidates import fill_unknown, has_unknown, is_binary
from labelsieve._numerics.sparse import Matrix, by_columns, check_structure, dense, is_sparse
from labelsieve.io.column_choice import choose_columns, numbered_labels, plain_name, require_unique
from labelsieve.io.dataset import Dataset
from labelsieve.io.errors import Fail
from labelsieve.io.features import impute
from labelsieve.io.labels import Labels, ReadLabelFile, load_labels
from labelsieve.io.options import ReadOptions
from labelsieve.io.source import Source
from labelsieve.io.spellings import boolean_value, same_cell

# Lower-case variable names in published code. The first match wins.
_DATA = ("data", "x", "features", "fea", "feature", "x_data", "instances")
_TRUTH = (
    "target", "targets", "y", "labels", "label", "y_true", "true_labels", "ground_truth", "gt", "y_data",
)  # fmt: skip
_CANDIDATES = (
    "partial_labels", "partial_label", "partial_target", "candidate_labels", "candidate_label", "candidates",
    "candidate", "y_candidates", "pl", "p_target", "pml_target", "noisy_target", "noisy_labels", "plabels",
    "p_labels",
)  # fmt: skip
#: Names of the matrices in NPZ files of `write`, and suffixes of the arrays of a sparse matrix.
ROLES, SPARSE_PARTS = ("X", "Y", "Y_candidates"), ("data", "indices", "indptr", "shape")
#: Start of a comment in svmlight files of `write`, with the names and sizes that the format cannot store.
SVMLIGHT_HEADER = "# labelsieve "
# First line of files of the extreme classification repository: numbers of samples, features and labels.
_SIZES = re.compile(rb"(\d{1,18}) (\d{1,18}) (\d{1,18})[ \t]*\n")
_MAX_ONE_HOT_CELLS = 2**27


@dataclass(frozen=True)
class Matrices:
    """Features, 0/1 labels and names from a file. Parts that the file does not contain are None.

    Missing feature values are NaN. Before `split`, label columns may be among the features.
    """

    X: Matrix
    Y: Matrix | None = None
    Y_candidates: Matrix | None = None
    #: If None, features or labels are numbered.
    feature_names: Sequence[str] | None = None
    label_names: Sequence[str] | None = None
    #: Features that contain category codes, and their categories if the file declares them.
    nominal: Sequence[str] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Features that the file declares as labels.
    declared_labels: Sequence[str] | None = None
    row_ids: Sequence[str] | None = None
    name: str | None = None

    @cached_property
    def names(self) -> list[str]:
        """Names of the features."""
        return [*(self.feature_names or (f"x{position}" for position in range(self.X.shape[1])))]

    def split(self, options: ReadOptions, read_file: ReadLabelFile, fail: Fail) -> Matrices:
        """Split the columns of a table into features and labels."""
        if self.declared_labels == [] and options.labels is None:
            raise fail("declares more labels than attributes with -C in its relation name; pass `labels`")
        choice = choose_columns(self.names, options, fail, declared=self.declared_labels)
        features = choice.features(len(self.names), fail)
        if self.row_ids is not None:
            require_unique(self.row_ids, str(options.id), fail)
        truth, noisy = load_labels(
            choice,
            self.X.shape[0],
            lambda positions: self.labels(positions, fail, options.unknown),
            read_file,
            fail,
        )
        names = [self.names[position] for position in features]
        return replace(
            self,
            X=self.X[:, features],
            Y=None if truth is None else truth.Y,
            Y_candidates=None if noisy is None else noisy.Y,
            feature_names=names,
            label_names=(truth or noisy).names,  # type: ignore[union-attr]  # choice.features requires labels
            nominal=[name for name in names if name in self.categories],
        )

    def labels(self, positions: Sequence[int], fail: Fail, unknown: str | None = None) -> Labels:
        """Convert columns to 0/1 labels. Categories may be any words for yes and no.

        With `unknown`, missing values and cells with this text become NaN.
        """
        values = self.X[:, list(positions)]
        names = [self.names[position] for position in positions]
        if unknown is None and has_unknown(values):
            raise fail(
                "has missing values in its label columns; remove those rows, fill in the values, or use `unknown='?'` "
                "if they are unknown"
            )
        for column, name in enumerate(names):
            categories: Sequence[str] = self.categories.get(name, ("0", "1"))
            if name not in self.categories and unknown is not None:
                values = _mark_unknown(values, column, unknown)
            meaning = [
                np.nan if unknown is not None and same_cell(category, unknown) else boolean_value(category)
                for category in categories
            ]
            if None in meaning:
                raise fail(
                    f"label {name!r} must be 0/1, -1/+1, no/yes or false/true, got the categories "
                    f"{', '.join(categories[:5])!r}; recode it, or check `labels`"
                )
            if meaning != [False, True]:
                values = sp.lil_array(values) if is_sparse(values) else values
                codes = dense(values[:, [column]])
                known = ~np.isnan(codes)
                codes[known] = np.array(meaning, dtype=np.float64)[codes[known].astype(int)]
                values[:, [column]] = codes
        shown = numbered_labels(len(names)) if self.feature_names is None else map(plain_name, names)
        values = sp.csr_array(values) if is_sparse(values) else values
        filled = fill_unknown(values)
        Y = labels_to_binary(filled, fail)
        if has_unknown(values):
            Y = Y + (values - filled)  # NaN at unknown labels, and 0 elsewhere
        return Labels.of_matrix(Y, [*shown])

    def to_dataset(self, options: ReadOptions, fail: Fail, *, name: str, source: str) -> Dataset:
        """Fill in missing values, encode categories, and build a validated dataset."""
        X, names, nominal = self.X, self.feature_names, self.nominal
        if not is_lazy(X):
            is_nominal = set(nominal)
            coded = [position for position, feature in enumerate(self.names) if feature in is_nominal]
            X = _fill_missing(X, options.missing, self.names, coded, fail)
        if options.nominal == "onehot" and self.categories and nominal:
            X, names, nominal = _one_hot(X, self.names, self.categories, fail)
        return Dataset(
            X,
            self.Y,
            self.Y_candidates,
            names,  # type: ignore[arg-type]  # None stands for default names
            self.label_names,  # type: ignore[arg-type]
            name,
            source,
            tuple(nominal),
            row_ids=self.row_ids,  # type: ignore[arg-type]
            id_column=options.id,
        )


def concatenate(parts: Sequence[Matrices], fail: Fail) -> Matrices:
    """Concatenate the rows of parts, such as training and test rows."""
    first = parts[0]
    if len(parts) == 1:
        return first
    # For a part without candidates, use the true labels as candidates.
    candidates = [part.Y if part.Y_candidates is None else part.Y_candidates for part in parts]
    n_labels = [None if labels is None else labels.shape[1] for labels in candidates]
    kinds = [(sorted(part.names), part.label_names, part.categories, part.Y is None) for part in parts]
    if any(kind != kinds[0] for kind in kinds) or len({*n_labels}) > 1:
        raise fail(
            "all parts must have the same columns with the same categories, and true labels in all or none of them; "
            "check the files"
        )
    ordered = [
        part.X if part.names == first.names else part.X[:, [*map(part.names.index, first.names)]]
        for part in parts
    ]
    row_ids = [row_id for part in parts for row_id in part.row_ids or ()]
    has_candidates = any(part.Y_candidates is not None for part in parts)
    return replace(
        first,
        X=_stack_rows(ordered),
        Y=None if first.Y is None else _stack_rows([part.Y for part in parts]),
        Y_candidates=_stack_rows(candidates) if has_candidates else None,
        row_ids=None if first.row_ids is None else row_ids,
    )


def _stack_rows(matrices: Sequence[Any]) -> Matrix:
    """Stack matrices of the same width vertically."""
    if any(map(is_sparse, matrices)):
        return sp.csr_array(sp.vstack([sp.csr_array(matrix) for matrix in matrices]))
    return np.vstack(matrices)


def labels_to_binary(matrix: Any, fail: Fail) -> Matrix:
    """Convert labels written as 0/1 or -1/+1 to 0/1."""
    numbers = _stored_values(matrix)
    if not is_binary(numbers, signed=True):
        bad = numbers[~np.isin(numbers, (-1, 0, 1))].flat[0]
        raise fail(f"must have labels 0/1 or -1/+1, got {bad!s}; check `labels`, or threshold the values")
    positive: Matrix = matrix > 0
    return sp.csr_array(positive, dtype=np.uint8) if is_sparse(positive) else positive.astype(np.uint8)


def _mark_unknown(values: Any, column: int, unknown: str) -> Any:
    """Replace a number that means unknown by NaN in one column."""
    numbers = dense(values[:, [column]])
    holes = np.array([same_cell(str(number), unknown) for number in numbers.ravel()])
    if holes.any():
        values = sp.lil_array(values) if is_sparse(values) else values
        values[:, [column]] = np.where(holes[:, None], np.nan, numbers)
    return values


def _stored_values(values: Matrix) -> np.ndarray:
    stored: np.ndarray = values.data if is_sparse(values) else values
    return stored


def _fill_missing(
    values: Matrix, missing: str | None, names: Sequence[str], coded: Sequence[int], fail: Fail
) -> Matrix:
    """Fill in missing values, with the most frequent code for categories, or raise."""
    stored = _stored_values(values)
    # The minimum is NaN if any value is, and computing it needs no mask.
    if stored.dtype.kind != "f" or not np.isnan(stored.min(initial=0.0)):
        return values
    if missing in (None, "error"):
        is_missing = np.isnan(stored)
        column = (values.indices[is_missing] if is_sparse(values) else np.nonzero(is_missing)[1]).min()
        raise fail(
            f"has {int(is_missing.sum())} missing feature values, first in column {names[column]!r}; read it with "
            "`missing='mean'` (most frequent category for nominal features) or `missing='zero'`"
        )
    filled = impute(values, str(missing))
    if missing == "mean" and coded:
        filled = sp.lil_array(filled) if is_sparse(filled) else filled
        filled[:, coded] = dense(impute(values[:, coded], "most_frequent"))
    return sp.csr_array(filled) if is_sparse(filled) else filled


def _one_hot(
    values: Matrix, names: Sequence[str], categories: Mapping[str, tuple[str, ...]], fail: Fail
) -> tuple[Matrix, list[str], list[str]]:
    """Replace every nominal column with one 0/1 column per category, named ``column=category``."""
    coded = [name for name in names if name in categories]
    width = len(names) + sum(len(categories[name]) - 1 for name in coded)
    if values.shape[0] * (len(coded) if is_sparse(values) else width) > _MAX_ONE_HOT_CELLS:
        raise fail(
            f"has too many categories for one-hot encoding, got {width} columns; read it with `nominal='code'`"
        )
    columns = by_columns(values)
    blocks: list[Any] = []
    new_names: list[list[str]] = []
    for position, name in enumerate(names):
        block, known = columns[:, [position]], categories.get(name)
        blocks.append(block if known is None else (dense(block) == np.arange(len(known))).astype(np.float64))
        new_names.append([name] if known is None else [f"{name}={category}" for category in known])
    indicators = [
        new for name, own in zip(names, new_names, strict=True) if name in categories for new in own
    ]
    X = sp.hstack(list(map(sp.csc_array, blocks)), format="csr") if is_sparse(values) else np.hstack(blocks)
    return X, [new for own in new_names for new in own], indicators


def read_matlab(source: Source, options: ReadOptions) -> Matrices:
    """Read a MATLAB file up to version 7, whose labels are stored as labels x samples."""
    content = source.content
    if content.startswith((b"\x89HDF", b"MATLAB 7.3")):
        raise source.error("must be at most MATLAB version 7, got 7.3 (HDF5); save it with save(..., '-v7')")
    sizes = [math.prod(shape) for _, shape, kind in scipy.io.whosmat(BytesIO(content)) if kind != "sparse"]
    source.check_cells(sum(sizes))
    with warnings.catch_warnings():
        # Newer versions of SciPy announce a change to sparse arrays, which work as well.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = scipy.io.loadmat(BytesIO(content))
    arrays = {
        name: array
        for name, array in found.items()
        if is_sparse(array)
        or (isinstance(array, np.ndarray) and array.ndim == 2 and array.dtype.kind in "buif")
    }
    return _pick_matrices(arrays, source, options, label_rows_first=True)


def read_npz(source: Source, options: ReadOptions) -> Matrices:
    """Read an NPZ file of `write`, or one with matrices under common names such as X and Y."""
    with np.load(BytesIO(source.raw), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if "labelsieve" in arrays:
        metadata = json.loads(arrays["labelsieve"].astype(np.uint8).tobytes())
        X, Y, candidates = (_load_matrix(arrays, role, source) for role in ROLES)
        names_and_nominal = (metadata["feature_names"], metadata["label_names"], metadata["nominal"])
        return Matrices(X, Y, candidates, *names_and_nominal, name=metadata["name"] or None)
    matrices = {name: array for name, array in arrays.items() if array.ndim == 2}
    found = _pick_matrices(matrices, source, options, label_rows_first=False)
    names: dict[str, tuple[str, ...]] = {}
    for key in ("feature_names", "label_names"):
        if key in arrays:
            if arrays[key].dtype.kind != "U":
                raise source.error(
                    f"must contain {key!r} as text, got {arrays[key].dtype}; save numpy.array(names, dtype=str)"
                )
            names[key] = tuple(arrays[key].ravel().tolist())
    return replace(found, **names)  # type: ignore[arg-type]


def _load_matrix(arrays: Mapping[str, np.ndarray], role: str, source: Source) -> Any:
    """Load a matrix that `write` stored as one array, or as four arrays if sparse."""
    if f"{role}_shape" not in arrays:
        return arrays.get(role)
    data, indices, starts, shape = (arrays[f"{role}_{part}"] for part in SPARSE_PARTS)
    source.check_columns(int(shape[1]))
    matrix = sp.csr_array((data, indices, starts), shape=tuple(map(int, shape)))
    check_structure(matrix, role)
    return matrix


def read_npy(source: Source, options: ReadOptions) -> Matrices:
    """Read a single array as a table without names."""
    array = np.load(BytesIO(source.content), allow_pickle=False)
    check_numbers(array, source)
    return Matrices(array.astype(np.float64))


def check_numbers(array: np.ndarray, source: Source) -> None:
    """Raise unless an array is a two-dimensional array of real numbers."""
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "buif":
        raise source.error(
            f"must contain a two-dimensional array of real numbers, got shape {array.shape!r} of {array.dtype}; "
            "convert it"
        )


def read_svmlight(sources: Sequence[Source]) -> Matrices:
    """Read multi-label text files of svmlight, LIBSVM or the extreme classification repository.

    Feature indices start at 1 unless one of them is 0. In files of the repository they always start at 0.
    """
    from sklearn.datasets import load_svmlight_files

    texts = [source.text for source in sources]
    sizes = [_SIZES.match(text) for text in texts]
    header: dict[str, Any] = {}
    n_features: int | None
    n_labels: int | None
    if all(sizes):
        declared = [tuple(map(int, size.groups())) for size in sizes if size]
        for position, size in enumerate(declared):
            lines = texts[position].split(b"\n")[1:]
            while len(lines) > size[0] and not lines[-1].strip():
                lines.pop()
            # A blank line stands for a row of zeros without labels.
            texts[position] = b"\n".join(line if line.strip() else b" 0:0" for line in lines)
        n_features, n_labels = (max(size[position] for size in declared) for position in (1, 2))
    else:
        if texts[0].startswith(SVMLIGHT_HEADER.encode()):
            header = json.loads(texts[0].partition(b"\n")[0][len(SVMLIGHT_HEADER) :])
        n_features, n_labels = header.get("n_features"), header.get("n_labels")
    for width in (n_features or 0, n_labels or 0):
        sources[0].check_columns(width)
    found = load_svmlight_files(
        [BytesIO(text) for text in texts],
        n_features=n_features,
        multilabel=True,
        zero_based=bool(all(sizes)) or ("auto" if not header else False),
    )
    X = sp.csr_array(sp.vstack(found[0::2], format="csr"))
    sources[0].check_columns(X.shape[1])
    n_rows = sum(size[0] for size in declared) if all(sizes) else X.shape[0]
    if X.shape[0] != n_rows or not n_rows:
        raise sources[0].error(
            f"must contain {n_rows} rows as its first line says, got {X.shape[0]}; copy it again"
        )
    labels = [row for rows in found[1::2] for row in rows]
    Y, names = _binarize_labels(labels, n_labels, sources[0])
    is_candidate = header.get("holds") == "candidate"
    return Matrices(
        X,
        None if is_candidate else Y,
        Y if is_candidate else None,
        header.get("features"),
        header.get("labels") or names,
        header.get("nominal") or (),
        name=header.get("name"),
    )


def _binarize_labels(
    rows: Sequence[Sequence[float]], n_labels: int | None, source: Source
) -> tuple[sp.csr_array, tuple[str, ...] | None]:
    """Convert label numbers to a 0/1 matrix. Without a declared count, keep labels that occur, and name them."""
    known = sorted({number for row in rows for number in row})
    if not known and not n_labels:
        raise source.error(
            "must contain labels, got none in any row; start each row with its labels, separated by commas"
        )
    if any(number != int(number) for number in known):
        raise source.error("must have integers as labels; correct the first entry of each row")
    if n_labels is not None and known and not (known[0] >= 0 and known[-1] < n_labels):
        raise source.error(
            f"must have labels from 0 to {n_labels - 1} as its first line says, got others; correct the line"
        )
    classes = known if n_labels is None else range(n_labels)
    Y = MultiLabelBinarizer(classes=classes, sparse_output=True).fit_transform(rows)
    names = tuple(f"{number:.0f}" for number in known) if n_labels is None else None
    return sp.csr_array(Y.astype(np.uint8)), names


def _pick_matrices(
    arrays: Mapping[str, Any], source: Source, options: ReadOptions, *, label_rows_first: bool
) -> Matrices:
    """Find features, true labels and candidates by common names, or by the names in `options`.

    With `label_rows_first`, a square label matrix is labels x samples, as is common in MATLAB.
    """
    parts: list[Matrices] = []
    by_name = {name.lower(): array for name, array in reversed(list(arrays.items()))}

    def named(names: Sequence[str], part: str) -> Any:
        spellings = ("{0}_{1}", "{1}_{0}", "{0}{1}", "{1}{0}") if part else ("{1}",)
        found = (by_name.get(spelling.format(part, name)) for name in names for spelling in spellings)
        return next((array for array in found if array is not None), None)

    def labels(given: Any, names: Sequence[str], part: str) -> Any:
        if not given or part:  # options name only matrices that are not split
            return named(names, part)
        if given not in arrays:
            raise source.error(
                f"must contain a matrix {given!r}, got {_list_arrays(arrays)}; choose one of these"
            )
        return arrays[given]

    for part in ("", "train", "test"):
        X = named(_DATA, part)
        if X is None:
            continue
        truth = labels(options.labels, _TRUTH, part)
        noisy = labels(options.candidates, _CANDIDATES, part)
        if truth is None and noisy is None:
            raise source.error(f"must contain labels, got {_list_arrays(arrays)}; name them with `labels`")
        parts.append(_orient(X, truth, noisy, source, label_rows_first))
        if not part:
            break
    if not parts:
        raise source.error(
            f"must contain a matrix 'data' or 'X', got {_list_arrays(arrays)}; rename the feature matrix"
        )
    return concatenate(parts, source.error)


def _list_arrays(arrays: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name} {array.shape[0]}x{array.shape[1]}" for name, array in list(arrays.items())[:8])
    return shown or "no numeric matrix"


def _orient(X: Any, truth: Any, noisy: Any, source: Source, label_rows_first: bool) -> Matrices:
    """Transpose matrices to samples x columns if necessary, and convert the labels to 0/1."""
    for matrix in (X, truth, noisy):
        if is_sparse(matrix):
            check_structure(matrix, "a matrix")
            source.check_columns(max(matrix.shape))
    reference = truth if truth is not None else noisy
    if X.shape[0] not in reference.shape and X.shape[1] in reference.shape:
        X = X.T
    n_samples = X.shape[0]

    def oriented_labels(matrix: Any) -> Matrix | None:
        if matrix is None:
            return None
        if n_samples not in matrix.shape:
            raise source.error(
                f"must have a label matrix with {n_samples} samples, got shape {matrix.shape!r}; check the matrix"
            )
        is_transposed = matrix.shape[0] != n_samples or (label_rows_first and matrix.shape[1] == n_samples)
        return labels_to_binary(matrix.T if is_transposed else matrix, source.error)

    return Matrices(X, oriented_labels(truth), oriented_labels(noisy))
