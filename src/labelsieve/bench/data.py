"""Load datasets, split them into folds and add candidate labels."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import KFold

from labelsieve._numerics.sparse import Matrix, dense, is_sparse
from labelsieve.bench import RunError
from labelsieve.bench.config import DatasetSpec, Experiment, NoiseSpec
from labelsieve.datasets import add_candidates, load
from labelsieve.io import Dataset
from labelsieve.io.reading import read_files


@dataclass(frozen=True)
class DatasetFacts:
    """Properties of a dataset that are stored with the results."""

    name: str
    n_samples: int
    n_features: int
    n_labels: int
    cardinality: float
    checksum: str
    size_unit: Literal["percent", "count"]


@dataclass(frozen=True)
class Fold:
    """Training and test rows of a fold."""

    X_train: Matrix
    #: Candidates of the training rows, the only labels that a method sees.
    Y_train: Matrix
    #: True labels of the training rows.
    Y_clean: Matrix
    X_test: Matrix
    #: True labels of the test rows.
    Y_test: Matrix
    #: Candidates of the test rows.
    Y_noisy: Matrix


def derive_seed(seed: int, purpose: str, *parts: str | int) -> int:
    """Derive a seed that does not depend on other methods or the order of the cells."""
    text = json.dumps([seed, purpose, *parts])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def load_dataset(spec: DatasetSpec, folder: str | None) -> Dataset:
    """Load a dataset, with file paths relative to the folder."""
    if not spec.path:
        dataset = load(spec.name)
    else:
        base = Path(folder or ".")
        # Unlike `Path.is_file`, `os.path.isfile` accepts a list of names that is too long for a path.
        label_files: dict[str, Any] = {
            option: base / given
            for option in ("labels", "candidates")
            if isinstance(given := getattr(spec, option), str) and os.path.isfile(base / given)
        }
        dataset = read_files([base / part for part in spec.path], replace(spec.options, **label_files))
    if dataset.Y is None:
        raise RunError(
            f"{spec.name}: expected true labels to judge the methods, got only candidates. To rank features without "
            "true labels, use: labelsieve select"
        )
    return dataset


def describe(spec: DatasetSpec, dataset: Dataset, experiment: Experiment) -> DatasetFacts:
    """Collect the properties of a dataset, including a checksum of all values."""
    assert dataset.Y is not None
    return DatasetFacts(
        name=spec.name,
        n_samples=dataset.X.shape[0],
        n_features=dataset.X.shape[1],
        n_labels=dataset.Y.shape[1],
        cardinality=float(dataset.Y.sum(dtype=np.int64) / dataset.X.shape[0]),
        checksum=_checksum(dataset),
        size_unit="count" if spec.name in experiment.sizes.counts else "percent",
    )


def _checksum(dataset: Dataset) -> str:
    digest = hashlib.sha256()
    for matrix in (dataset.X, dataset.Y, dataset.Y_candidates):
        if matrix is None:
            digest.update(b"none")
            continue
        parts = (matrix.indptr, matrix.indices, matrix.data) if is_sparse(matrix) else (matrix,)
        for part in parts:
            digest.update(f"{part.shape}{part.dtype.str}".encode())
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


@lru_cache(maxsize=2)
def _load_unchanged(spec: DatasetSpec, folder: str | None, checksum: str | None) -> Dataset:
    """Load a dataset and check that it is the planned one. The last two are cached."""
    dataset = load_dataset(spec, folder)
    if checksum is not None and _checksum(dataset) != checksum:
        raise RunError(f"{spec.name}: the data changed while the experiment was running. Run it again.")
    return dataset


@lru_cache(maxsize=1)
def _folds(
    spec: DatasetSpec, folder: str | None, checksum: str | None, n_folds: int, scheme: str, seed: int
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    dataset = _load_unchanged(spec, folder, checksum)
    random_state = derive_seed(seed, "folds", spec.name)

    if scheme == "consecutive":
        return tuple(KFold(n_folds).split(dataset.X))
    if scheme == "shuffled":
        return tuple(KFold(n_folds, shuffle=True, random_state=random_state).split(dataset.X))
    from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

    assert dataset.Y is not None  # see `load_dataset`
    Y = dense(dataset.Y)
    splitter = MultilabelStratifiedKFold(n_splits=n_folds, shuffle=True, random_state=random_state)
    return tuple(splitter.split(np.zeros((len(Y), 1)), Y))


def split_fold(
    experiment: Experiment,
    spec: DatasetSpec,
    noise: NoiseSpec,
    seed: int,
    fold: int,
    checksum: str | None = None,
    split: str = "shuffled",
) -> Fold:
    """Return a fold, which is the same for every method.

    `checksum` is that of the planned data. `split` is the convention for folds.
    """
    source = (spec, experiment.folder, checksum)
    dataset = _load_unchanged(*source)
    train, test = _folds(*source, experiment.folds, split, seed)[fold]
    Y = dataset.Y
    assert Y is not None
    return Fold(
        X_train=dataset.X[train],
        Y_train=_make_candidates(dataset, train, noise, derive_seed(seed, "noise", spec.name, fold)),
        Y_clean=Y[train],
        X_test=dataset.X[test],
        Y_test=Y[test],
        Y_noisy=_make_candidates(dataset, test, noise, derive_seed(seed, "test noise", spec.name, fold)),
    )


def _make_candidates(dataset: Dataset, rows: np.ndarray, noise: NoiseSpec, seed: int) -> Matrix:
    if noise.model == "given":
        assert dataset.Y_candidates is not None  # checked by the runner
        given: Matrix = dataset.Y_candidates[rows]
        return given
    assert dataset.Y is not None
    assert noise.rate is not None
    rate = int(noise.rate) if noise.model == "count" else noise.rate
    X = dataset.X[rows] if noise.model == "instance" else None
    noisy: Matrix = add_candidates(dataset.Y[rows], noise.model, rate=rate, X=X, random_state=seed)
    return noisy
