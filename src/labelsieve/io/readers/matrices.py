"""Whole matrices out of a file: which is data, which the truth, which the candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelsieve._numerics.binary import is_binary
from labelsieve._numerics.sparse import is_sparse
from labelsieve._numerics.typing import Matrix
from labelsieve.io.errors import DatasetError, Mention
from labelsieve.io.options import ReadOptions
from labelsieve.io.readers.source import Source

# What published code of the field calls its variables, in lower case; the first match wins.
_DATA = ("data", "x", "features", "fea", "feature", "x_data", "instances")
_TRUTH = (
    "target",
    "targets",
    "y",
    "labels",
    "label",
    "y_true",
    "true_labels",
    "ground_truth",
    "gt",
    "y_data",
)
_CANDIDATES = (
    "partial_labels", "partial_label", "partial_target", "candidate_labels", "candidate_label", "candidates",
    "candidate", "y_candidates", "pl", "p_target", "pml_target", "noisy_target", "noisy_labels", "plabels",
    "p_labels",
)  # fmt: skip


@dataclass(frozen=True)
class Matrices:
    """What files hold, as a data set takes it: features, labels as samples x labels in 0/1, and their names.

    None stands for labels that are not there, and for names by default.
    """

    X: Matrix
    Y: Matrix | None = None
    Y_candidates: Matrix | None = None
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    nominal: tuple[str, ...] = ()
    name: str | None = None

    @property
    def coded(self) -> list[int]:
        """Columns of category codes."""
        nominal = set(self.nominal)
        return [place for place, name in enumerate(self.feature_names or ()) if name in nominal]


def pick_matrices(
    arrays: Mapping[str, Any],
    source: Source,
    options: ReadOptions,
    *,
    label_rows_first: bool,
) -> Matrices:
    """Find features, truth and candidates by their usual names, or by the names given.

    Parameters
    ----------
    label_rows_first : bool
        Whether a square label matrix is labels x samples, as MATLAB users store it.
    """
    halves: list[Matrices] = []
    for half in ("", "train", "test"):
        found = pick_half(arrays, source, options, half)
        if found is None:
            continue
        halves.append(_half(*found, source, label_rows_first))
        if not half:
            break
    if not halves:
        raise no_features(arrays, source)
    return halves[0] if len(halves) == 1 else join(halves, source)


def pick_half(
    arrays: Mapping[str, Any], source: Source, options: ReadOptions, half: str = ""
) -> tuple[Any, Any, Any] | None:
    """Features, truth and candidates as they stand there, of all rows or of a half; None without features."""
    X = _named(arrays, _DATA, half)
    if X is None:
        return None
    truth = _given_or_named(arrays, options.labels, _TRUTH, half, source)
    noisy = _given_or_named(arrays, options.candidates, _CANDIDATES, half, source)
    if truth is None and noisy is None:
        raise source.error(
            f"has features but no labels: {_listing(arrays)}; name them with ", Mention("labels")
        )
    return X, truth, noisy


def no_features(arrays: Mapping[str, Any], source: Source) -> DatasetError:
    """Say that no matrix looks like features."""
    return source.error(f"has no matrix called 'data' or 'X': {_listing(arrays)}; rename the feature matrix")


def join(parts: list[Matrices], source: Source) -> Matrices:
    """Put parts such as training and test half under one another."""
    if len({part.X.shape[1] for part in parts}) > 1:
        raise source.error(
            f"all parts need the same number of features, got {[p.X.shape[1] for p in parts]!r}"
        )
    has_truth = [part.Y is not None for part in parts]
    if any(has_truth) and not all(has_truth):
        raise source.error("one part has true labels and another has candidates only; save them as two files")
    candidates = None
    if any(part.Y_candidates is not None for part in parts):
        # A part without noise has its truth as candidates.
        candidates = _rows(
            [part.Y if part.Y_candidates is None else part.Y_candidates for part in parts], source
        )
    if len({(part.feature_names, part.label_names) for part in parts}) > 1:
        raise source.error("and the other parts must have the same names; check the files")
    return replace(
        parts[0],
        X=_rows([part.X for part in parts], source),
        Y=_rows([part.Y for part in parts], source) if all(has_truth) else None,
        Y_candidates=candidates,
    )


def _rows(blocks: list[Any], source: Source) -> Any:
    """Matrices under one another."""
    if len({block.shape[1] for block in blocks}) > 1:
        raise source.error(f"all parts need the same number of labels, got {[b.shape[1] for b in blocks]!r}")
    return sp.vstack(blocks, format="csr") if any(map(is_sparse, blocks)) else np.vstack(blocks)


def _named(arrays: Mapping[str, Any], names: tuple[str, ...], half: str) -> Any:
    """The first array with one of `names`: data, train_data, data_train, train_p_target, Xtrain..."""
    by_name = {name.lower(): array for name, array in reversed(list(arrays.items()))}
    for name in names:
        spellings = (
            (f"{half}_{name}", f"{name}_{half}", f"{half}{name}", f"{name}{half}") if half else (name,)
        )
        for spelling in spellings:
            if spelling in by_name:
                return by_name[spelling]
    return None


def _given_or_named(
    arrays: Mapping[str, Any], given: Any, names: tuple[str, ...], half: str, source: Source
) -> Any:
    """The array that the user names, else the first with a usual name; halves have usual names only."""
    if not given or half:
        return _named(arrays, names, half)
    if given not in arrays:
        raise source.error(f"has no matrix called {given!r}: {_listing(arrays)}; choose one of these")
    return arrays[given]


def _listing(arrays: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name} {array.shape[0]}x{array.shape[1]}" for name, array in list(arrays.items())[:8])
    return f"it holds {shown or 'no numeric matrix'}"


def _half(X: Any, truth: Any, noisy: Any, source: Source, label_rows_first: bool) -> Matrices:
    """Orient the matrices to samples x columns and map the labels to 0/1."""
    for matrix in (X, truth, noisy):
        if is_sparse(matrix):
            source.check_columns(max(matrix.shape))
    if X.dtype.kind not in "buif":
        raise source.error(f"must have real numbers as features, got {X.dtype!r}; convert the matrix")
    reference = truth if truth is not None else noisy
    if X.shape[0] not in reference.shape and X.shape[1] in reference.shape:
        X = X.T
    oriented: list[Any] = []
    for matrix in (truth, noisy):
        if matrix is None:
            oriented.append(None)
            continue
        n_samples = X.shape[0]
        if n_samples not in matrix.shape:
            raise source.error(
                f"has {n_samples} samples but a label matrix of shape {matrix.shape!r}; one side must match"
            )
        turn = matrix.shape[0] != n_samples or (label_rows_first and matrix.shape[1] == n_samples)
        oriented.append(binary_labels(matrix.T if turn else matrix, source))
    if noisy is not None and truth is not None and oriented[0].shape != oriented[1].shape:
        raise source.error(
            f"has truth {truth.shape!r} and candidates {noisy.shape!r} of different shape; fix one"
        )
    return Matrices(sp.csr_array(X) if is_sparse(X) else X, *oriented)


def binary_labels(matrix: Matrix, source: Source) -> Matrix:
    """Labels in {-1, +1} or {0, 1} as 0/1."""
    if not is_binary(matrix.data if is_sparse(matrix) else matrix, signed=True):
        raise source.error(
            "labels must be 0/1 or -1/+1, got other values; threshold them or name another matrix"
        )
    return signs_to_binary(matrix)


def signs_to_binary(matrix: Any) -> Matrix:
    """What is positive as 1."""
    positive: Matrix = sp.csr_array(matrix > 0) if sp.issparse(matrix) else matrix > 0
    return positive.astype(np.uint8)


def listed_names(value: Any) -> tuple[str, ...]:
    """The names of a JSON list that came with the data; anything else raises ValueError."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("names must be lists of text")
    return tuple(value)
